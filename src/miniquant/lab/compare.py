"""What is the first thing that differs between what an exercise expects and what a student's function returned?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..core.arrays import is_torch

SMALL = 4096  # bytes of an array; they are compared before its numbers are
Fields = list[tuple[str, int, int]]  # (name, first byte, byte after the last)


def numpy_of(tensor: Any) -> np.ndarray:
    """The numbers of a tensor as a numpy array; types that numpy does not have become float32."""
    values = tensor.detach()
    try:
        found: np.ndarray = values.numpy()
    except TypeError:
        found = values.float().numpy()
    return found


def one_after_another(sizes: Iterable[tuple[str, int]]) -> Fields:
    """The fields of bytes whose parts follow each other without a gap, from (name, number of bytes) of each.

    >>> one_after_another([("magic", 4), ("version", 2)])
    [('magic', 0, 4), ('version', 4, 6)]
    """
    fields, at = [], 0
    for name, size in sizes:
        fields.append((name, at, at + size))
        at += size
    return fields


@dataclass(frozen=True)
class Difference:
    """One sentence on what differs, and both sides of it as short text; ``path`` is the place with which it begins."""

    what: str
    expected: str
    got: str
    path: str = field(default="", repr=False)


NOTHING = "your function returned nothing; is a return missing?"


def difference(
    expected: Any, got: Any, tolerance: float = 0.0, fields: Fields | None = None, *, ordered: bool = True
) -> Difference | None:
    """The first difference, or ``None``: types, then shapes, then dtypes, then the first differing element or byte.

    The order of a dict's keys counts if ``ordered``.

    >>> difference(np.array([1, 2]), np.array([1, 3]))
    Difference(what='the element [1] differs', expected='2', got='3')
    """
    if got is None and expected is not None:
        return Difference(NOTHING, kind(expected), "None")
    return _difference(expected, got, tolerance, fields, ordered)


def _difference(expected: Any, got: Any, tolerance: float, fields: Fields | None, ordered: bool) -> Difference | None:
    """The same for a part of a result, too: a None inside one is a value, and no missing return."""
    if got is None and expected is not None:
        return Difference("None found", kind(expected), "None")
    if isinstance(expected, str) and isinstance(got, str):
        return _text_difference(expected, got)
    if isinstance(expected, bytes):
        return _bytes_difference(expected, got, fields)
    if is_torch(expected):
        if not is_torch(got):
            return Difference("the type differs", kind(expected), kind(got))
        if expected.shape == got.shape and expected.dtype != got.dtype:
            dtypes = [str(tensor.dtype).removeprefix("torch.") for tensor in (expected, got)]
            return Difference("the dtype differs", *dtypes)
        return _array_difference(numpy_of(expected), numpy_of(got), tolerance)
    if isinstance(expected, np.ndarray):
        if not isinstance(got, np.ndarray) and not (expected.ndim == 0 and isinstance(got, np.generic)):
            remedy = "; make an array of it with np.array(...)" if isinstance(got, list | tuple) else ""
            return Difference(f"the type differs{remedy}", kind(expected), kind(got))
        return _array_difference(expected, np.asarray(got), tolerance)
    if isinstance(expected, dict):
        return _dict_difference(expected, got, tolerance, ordered)
    if isinstance(expected, list | tuple):
        return _sequence_difference(expected, got, tolerance, ordered)
    return _scalar_difference(expected, got, tolerance)


def told_apart(found: Difference, expected: Any, got: Any) -> Difference:
    """The same difference; if both sides of it read the same, with more of them, so that they do not.

    >>> told_apart(Difference("the value differs", "x", "x"), 1, np.int64(1)).got
    'x (int64)'
    """
    if found.expected != found.got:
        return found
    texts = [repr(value) for value in (expected, got)]
    at = next((i for i, (a, b) in enumerate(zip(*texts)) if a != b), min(map(len, texts)))
    if type(expected) is not type(got):
        sides = [f"{found.expected} ({type(value).__name__})" for value in (expected, got)]
    elif texts[0] != texts[1]:
        sides = [f"{'… ' * (at > 20)}{text[max(0, at - 20) : at + 60]}{' …' * (at + 60 < len(text))}" for text in texts]
    else:
        sides = [found.expected, f"{found.got}, which reads the same and is not equal"]
    return replace(found, expected=sides[0], got=sides[1])


def equal(a: Any, b: Any, tolerance: float = 0.0, *, ordered: bool = True) -> bool:
    """Whether two results are the same, types and all; never raises."""
    try:
        return _same(a, b, tolerance, ordered)
    except Exception:
        return False


def _same(a: Any, b: Any, tolerance: float, ordered: bool) -> bool:
    """Whether there is no difference from ``a`` to ``b``, nor from ``b`` to ``a``; it writes no sentence about one."""
    if type(a) is type(b) and type(a) in (int, float):
        return bool(a == b) or _close(a, b, tolerance)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        return _same_bytes(a, b) or bool(_same_numbers(a, b, tolerance).all())
    if type(a) is type(b) and isinstance(a, str | bytes):
        return bool(a == b)
    if isinstance(a, dict) and isinstance(b, dict):
        same_keys = list(a) == list(b) if ordered else a.keys() == b.keys()
        return same_keys and all(_same(a[key], b[key], tolerance, ordered) for key in a)
    if (isinstance(a, list) and isinstance(b, list)) or (isinstance(a, tuple) and isinstance(b, tuple)):
        return len(a) == len(b) and all(_same(x, y, tolerance, ordered) for x, y in zip(a, b))
    return all(difference(x, y, tolerance, ordered=ordered) is None for x, y in ((a, b), (b, a)))


def _same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two small arrays of one shape and dtype hold the same bytes: then all is equal, and is soon known."""
    if type(a) is not np.ndarray or type(b) is not np.ndarray or a.nbytes > SMALL or a.dtype.kind not in "biuf":
        return False
    return a.tobytes() == b.tobytes()


def _same_numbers(a: np.ndarray, b: np.ndarray, tolerance: float) -> np.ndarray:
    """For arrays of one shape and dtype, which elements are equal: both NaN, or no farther apart than ``tolerance``."""
    if a.dtype.kind in "biu":
        whole: np.ndarray = a == b
        return whole
    with np.errstate(invalid="ignore"):  # a signalling NaN, as bytes read in the wrong place may be
        same: np.ndarray = a == b
        if a.dtype.kind == "f" and not same.all():
            wide_a, wide_b = a.astype(float), b.astype(float)
            same |= np.isnan(wide_a) & np.isnan(wide_b)
            same |= np.abs(wide_a - wide_b) <= tolerance
    return same


def kind(value: Any) -> str:
    """The type of a value as a student should read it: ``float32 array of shape (2, 3)``.

    >>> kind(np.zeros((2, 3), np.float32)), kind(b"abc"), kind([1, 2])
    ('float32 array of shape (2, 3)', 'bytes of length 3', 'list of length 2')
    """
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of shape {value.shape}"
    if is_torch(value):
        return f"{str(value.dtype).removeprefix('torch.')} torch tensor of shape {tuple(value.shape)}"
    if hasattr(value, "_fields"):
        return f"tuple ({', '.join(value._fields)})"
    if isinstance(value, bytes | bytearray | list | tuple | dict):
        return f"{type(value).__name__} of length {len(value)}"
    return type(value).__name__


def short(value: Any, limit: int = 300) -> str:
    """A value on one line, cut if it is long.

    >>> short(b"a=b"), short(bytes([1, 2])), short({"w": np.zeros((2, 64)), "n": 2})
    ("b'a=b' (3 bytes)", '01 02 (2 bytes)', "{'w': float64 array of shape (2, 64), 'n': 2}")
    """
    if is_torch(value):
        array = numpy_of(value)  # of a dtype that numpy lacks, another one
        if array.size > 40:
            return f"{kind(value)} beginning {_plain(array.reshape(-1)[:8])}"
        return f"{_plain(array)} (torch tensor, {str(value.dtype).removeprefix('torch.')}, shape {array.shape})"
    if isinstance(value, bytes):
        text = repr(value[:48]) if _is_text(value) or not value else value[:48].hex(" ")
        return f"{text}{' …' if len(value) > 48 else ''} ({len(value)} bytes)"
    if isinstance(value, dict) and any(isinstance(part, np.ndarray) for part in value.values()):
        parts = [f"{key!r}: {kind(part) if np.size(part) > 8 else short(part)}" for key, part in value.items()]
        text = "{" + ", ".join(parts) + "}"
        return text if len(text) <= limit else text[: limit - 1] + "…"
    if isinstance(value, np.ndarray):
        if value.size > 40:
            return f"{kind(value)} beginning {_plain(value.reshape(-1)[:8])}"
        return f"{_plain(value)} ({value.dtype}, shape {value.shape})"
    if isinstance(value, tuple) and (hasattr(value, "_fields") or any(isinstance(part, np.ndarray) for part in value)):
        names = [f"{name} = " for name in getattr(value, "_fields", [])] or [""] * len(value)
        return f"({', '.join(name + short(part, limit) for name, part in zip(names, value))})"
    if type(value) is int and value.bit_length() > 1000:
        return f"an integer of {value.bit_length():,} bits"
    try:
        text = str(value) if isinstance(value, np.generic) else repr(value)
    except Exception:  # an integer of more than 4300 digits, an object that holds itself or lacks a field
        text = kind(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _is_text(data: bytes) -> bool:
    """Whether bytes are better read as text: UTF-8 without control characters other than newlines."""
    try:
        return data.decode("utf-8").replace("\n", "").isprintable() and len(data) > 0
    except UnicodeDecodeError:
        return False


def _plain(array: np.ndarray) -> str:
    """The numbers with the digits that their type has: 0.1, not 0.10000000149011612; bytes in hexadecimal."""
    if array.dtype.kind not in "?biuf":
        return repr(array.tolist())
    if array.ndim:
        return f"[{', '.join(_plain(part) for part in array)}]"
    if array.dtype == np.uint8:
        return f"0x{int(array):02x}"
    return str(array[()]) if np.issubdtype(array.dtype, np.number) else repr(array.item())


def _array_difference(expected: np.ndarray, got: np.ndarray, tolerance: float) -> Difference | None:
    if expected.shape != got.shape:
        return Difference("the shape differs", str(expected.shape), str(got.shape))
    if expected.dtype != got.dtype:
        return Difference("the dtype differs", str(expected.dtype), str(got.dtype))
    if expected.size == 0:
        return None
    same = _same_numbers(expected, got, tolerance)
    if same.all():
        return None
    if expected.dtype.kind == "f" and (new := np.isnan(got) & ~np.isnan(expected)).any():
        at = np.argwhere(new)[0]
        return Difference(f"the element {at.tolist()} is not a number (NaN)", _number(expected, at), "nan")
    at = np.argwhere(~same)[0] if same.ndim else np.array([], int)
    place = f"the element {at.tolist()} differs" if same.ndim else "the value differs"
    if same.size > 1 and (~same).sum() > 1:
        place += f" (the first of {(~same).sum()} among {same.size})"
    return Difference(place, _number(expected, at), _number(got, at))


def _number(array: np.ndarray, at: np.ndarray) -> str:
    return _plain(np.asarray(array[tuple(at)]))


def _bytes_difference(expected: bytes, got: Any, fields: Fields | None) -> Difference | None:
    if not isinstance(got, bytes):
        remedy = "; wrap it in bytes(...)" if isinstance(got, bytearray | memoryview) else ""
        return Difference(f"the type differs{remedy}", kind(expected), kind(got))
    if expected == got:
        return None
    common = min(len(expected), len(got))
    at = next((i for i in range(common) if expected[i] != got[i]), common)
    field = next((f"{n} ({_span(a, min(b, len(expected)))})" for n, a, b in fields or [] if a <= at < b), "")
    where = f", in {field}" if field and at < len(expected) else ""
    lengths = "" if len(expected) == len(got) else f"; {len(got)} bytes found in all, {len(expected)} expected"
    both = [_around(b, at) for b in (expected, got)]
    if at == common:
        what = f"the bytes end too early{where}" if at == len(got) else f"there are bytes after the end{where}"
        agree = f": the first {at} agree" if at else ""
        return Difference(f"{what}{agree}{lengths}", *both)
    return Difference(f"byte {at} differs{where}: {expected[at]:02x} expected, {got[at]:02x} found{lengths}", *both)


def _span(start: int, end: int) -> str:
    return f"byte {start}" if end == start + 1 else f"bytes {start} to {end - 1}"


def _around(data: bytes, at: int) -> str:
    """The bytes near ``at``, all of them if they are few; "…" where something is left out, "(end)" where nothing is."""
    start, end = (0, len(data)) if len(data) <= 16 else (max(0, at - 4), at + 8)
    shown = data[start:end].hex(" ") or "nothing"
    return f"{'… ' if start else ''}{shown}{' …' if end < len(data) else ' (end)' if start else ''}"


def _text_difference(expected: str, got: str) -> Difference | None:
    """The first line that differs, if either text has several; white space shows, because the lines are quoted."""
    if expected == got:
        return None
    lines, found = expected.split("\n"), got.split("\n")
    if len(lines) == len(found) == 1:
        return Difference("the value differs", short(expected), short(got))
    at = next((i for i, (a, b) in enumerate(zip(lines, found)) if a != b), min(len(lines), len(found)))
    sides = [short(side[at]) if at < len(side) else f"{len(side)} lines" for side in (lines, found)]
    return Difference(f"line {at + 1} differs", *sides)


def _dict_difference(expected: dict[Any, Any], got: Any, tolerance: float, ordered: bool) -> Difference | None:
    if not isinstance(got, dict):
        return Difference("the type differs", kind(expected), kind(got))
    if expected.keys() != got.keys():
        missing, extra = ([k for k in a if k not in b] for a, b in ((expected, got), (got, expected)))
        parts = [f"{_listed(missing)} missing"] if missing else []
        parts += [f"{_listed(extra)} not expected"] if extra else []
        keys = (short(list(expected)), short(list(got)))
        if keys[0] == keys[1]:  # too many to be shown whole: show where they part
            keys = (short(missing) if missing else "no other keys", short(extra) if extra else "not these keys")
        return Difference(f"the keys differ: {' and '.join(parts)}", *keys)
    for key in expected:
        if found := _difference(expected[key], got[key], tolerance, None, ordered):
            return _at(f"at key {key!r}", found)
    if ordered and list(expected) != list(got):
        return Difference("the order of the keys differs", short(list(expected)), short(list(got)))
    return None


def _listed(keys: list[Any]) -> str:
    """At most three keys and a verb: ``'a' and 'b' are``."""
    names = [short(key) for key in keys[:3]] + ([f"{len(keys) - 3} more"] if len(keys) > 3 else [])
    return f"{', '.join(names[:-1])} and {names[-1]} are" if len(names) > 1 else f"{names[0]} is"


def _at(where: str, found: Difference) -> Difference:
    """A difference inside a part: the places read as one path, ``at item 0, at key 'a': …``."""
    path = f"{where}, {found.path}" if found.path else where
    what = found.what.removeprefix(f"{found.path}: ")
    return Difference(f"{path}: {what}", found.expected, found.got, path)


def _sequence_difference(
    expected: list[Any] | tuple[Any, ...], got: Any, tolerance: float, ordered: bool
) -> Difference | None:
    wanted = list if isinstance(expected, list) else tuple
    if not isinstance(got, wanted):
        return Difference("the type differs", _with_kind(expected), _with_kind(got))
    if len(expected) != len(got):
        what = f"the number of items differs: {len(expected)} expected, {len(got)} found"
        return Difference(what, short(expected), short(got))
    for index, (a, b) in enumerate(zip(expected, got)):
        if found := _difference(a, b, tolerance, None, ordered):
            where = f"in {expected._fields[index]}" if hasattr(expected, "_fields") else f"at item {index}"
            whole = short(expected), short(got)
            if found.what == "the value differs" and len(expected) <= 8 and whole[0] != whole[1]:  # few enough to read
                return Difference(f"{where}: {found.what}", *whole)
            return _at(where, found)
    return None


def _with_kind(value: Any) -> str:
    """A value and its type, each said once; of a long list or dict, only the type."""
    if isinstance(value, np.ndarray):
        return short(value)
    text = short(value)
    return kind(value) if text.endswith("…") else f"{text} ({kind(value)})"


def _scalar_difference(expected: Any, got: Any, tolerance: float) -> Difference | None:
    if isinstance(got, np.ndarray) and got.ndim == 0:
        got = got[()]  # an array without axes is a number
    if isinstance(got, np.integer):
        got = int(got)  # an unsigned number less another may wrap around
    if isinstance(expected, bool | np.bool_) or isinstance(got, bool | np.bool_):
        alike = isinstance(got, bool | np.bool_) and isinstance(expected, bool | np.bool_)
    elif isinstance(expected, Integral):
        alike = isinstance(got, Integral)
    elif isinstance(expected, Real):
        alike = isinstance(got, Real)
    else:
        alike = isinstance(got, type(expected))
    if not alike:
        return Difference("the type differs", _with_kind(expected), _with_kind(got))
    # beside a float32 numpy would round a float of Python to float32
    one, other = (float(value) if isinstance(value, np.floating) else value for value in (expected, got))
    same = one == other
    if not same and isinstance(expected, Real) and not isinstance(expected, bool):
        same = _close(one, other, tolerance)
    return None if same else Difference("the value differs", short(expected), short(got))


def _close(expected: Any, got: Any, tolerance: float) -> bool:
    """Whether two numbers are equal but for a tolerance, or both NaN; an integer may be too large for a float."""
    try:
        with np.errstate(over="ignore"):  # two float16, say, of which one is far from the other
            return (math.isnan(expected) and math.isnan(got)) or bool(abs(expected - got) <= tolerance)
    except OverflowError:
        return False
