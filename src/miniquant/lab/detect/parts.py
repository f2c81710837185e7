"""How wrong sequences are related to the right ones: of another type, a part missing, too much, turned around."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.arrays import is_torch
from ..compare import equal, kind, numpy_of, short
from .letters import is_subsequence, of_letters
from .numbers import array_of
from .orders import told_apart
from .places import of_shapes
from .seen import Seen


def of_types(expected: Any, got: Any, tolerance: float = 0.0) -> Iterator[Seen]:
    """A result of another type, dtype or shape: with the right values, and without."""
    if (
        isinstance(expected, list | tuple)
        and len(expected) == 1
        and type(expected[0]) is type(got)
        and equal(expected[0], got)
    ):
        bracket = "a tuple of one needs a comma, `(x,)`" if isinstance(expected, tuple) else "a list of one is `[x]`"
        yield Seen("one item without its brackets", f"the one item is there by itself; {bracket}", "", 4)
        return
    if isinstance(got, list | tuple) and len(got) == 1 and equal(expected, got[0]):
        box = "a tuple of one; a comma makes it" if isinstance(got, tuple) else "a list of one"
        yield Seen("one level of brackets", f"the right result is there, inside {box}", "", 4)
        return
    number = isinstance(expected, int | float | np.integer | np.floating) and not isinstance(expected, bool)
    inside = isinstance(got, np.ndarray) and got.size == 1 and got.ndim and got.dtype.kind in "iuf"
    if number and inside and _close(np.asarray(expected), got.reshape(()), tolerance):
        text = f"the right number is there, in an array of shape {got.shape}; a number by itself is asked for"
        yield Seen("a number in an array", text, "", 5)
    same_class = type(expected) is type(got) or (isinstance(expected, tuple) and type(got) is tuple)
    a, b = (None, None) if isinstance(expected, bytes) else (array_of(expected), array_of(got))
    if isinstance(expected, np.ndarray) and a is not None and isinstance(got, np.ndarray) and b is not None:
        if (
            a.dtype != b.dtype
            and a.shape == b.shape
            and (
                _close(a, b, tolerance)
                or (a.dtype.kind == "f" == b.dtype.kind and np.array_equal(a, b, equal_nan=True))
            )
        ):
            yield Seen(
                "another dtype",
                f"the values are right, and the dtype is {b.dtype} in place of {a.dtype}",
                f"End with `.astype(np.{a.dtype})`.",
                5,
            )
            yield from _rounded_to_its_type(a, b)
        elif a.dtype != b.dtype:
            yield from _rounded_to_its_type(a, b)
            yield Seen(
                "another dtype",
                f"the dtype is {b.dtype} in place of {a.dtype}",
                f"Convert with `.astype(np.{a.dtype})`.",
                45,
            )
        if a.shape != b.shape and a.size == b.size and _close(a.reshape(-1), b.reshape(-1), tolerance):
            yield Seen(
                "another shape",
                "the values are right, and the shape is different",
                "Reshape the result as the docstring says.",
                6,
            )
        elif a.ndim != b.ndim:
            yield Seen(
                "another number of axes",
                f"the result has {_axes(b)}, and {_axes(a)} {'is' if a.ndim == 1 else 'are'} asked for",
                "Look at `reshape`, `axis=` and `keepdims=`.",
                24,
            )
        elif a.shape != b.shape and a.shape == b.shape[::-1]:
            text = "the lengths of the axes are those of the right result in reversed order"
            yield Seen("axes exchanged", text, "Look at where you transpose.", 14)
        elif a.shape != b.shape:
            yield from of_shapes(a, b)
            yield Seen(
                "another shape",
                "the number of axes is right, and not all of their lengths are",
                "Work the shapes of the smallest case by hand.",
                33,
            )
        return
    if same_class or isinstance(got, bool) != isinstance(expected, bool):
        if not same_class:
            yield _other_type(expected, got, 30)
        return
    if isinstance(got, np.integer) and isinstance(expected, int):
        return
    if isinstance(expected, int | float) and isinstance(got, int | float | np.number) and not isinstance(expected, int):
        return
    right = _plain(expected) == _plain(got) or _close(a, b, tolerance)
    if right:
        yield _other_type(expected, got, 5, right=True)
    else:
        yield _other_type(expected, got, 13 if isinstance(expected, dict) != isinstance(got, dict) else 30)


def _rounded_to_its_type(a: np.ndarray, b: np.ndarray) -> Iterator[Seen]:
    """The right values, as exact as a narrower type of floats can hold them."""
    if a.dtype.kind == b.dtype.kind == "f" and b.dtype.itemsize < a.dtype.itemsize and a.shape == b.shape:
        with np.errstate(all="ignore"):
            if np.array_equal(a.astype(b.dtype), b, equal_nan=True):
                text = f"the dtype is {b.dtype} in place of {a.dtype}, and each value is the right one rounded to it"
                yield Seen("another dtype", text, f"Compute in {a.dtype}.", 5.5)
            if np.allclose(a, b.astype(a.dtype), rtol=4 * float(np.finfo(b.dtype).eps), atol=0, equal_nan=True):
                text = f"the dtype is {b.dtype} in place of {a.dtype}, and only the last digits that it has are off"
                yield Seen("another dtype", text, f"Compute in {a.dtype}.", 5.7)


def _close(a: np.ndarray | None, b: np.ndarray | None, tolerance: float) -> bool:
    """Whether two arrays have the same values, within the tolerance."""
    if a is None or b is None or a.shape != b.shape or a.dtype == object or b.dtype == object:
        return False
    if not told_apart(a, b):
        return False
    return bool(np.array_equal(a, b) or np.allclose(a.astype(float), b.astype(float), rtol=0, atol=tolerance))


def _axes(array: np.ndarray) -> str:
    return f"{array.ndim} {'axis' if array.ndim == 1 else 'axes'}"


def _other_type(expected: Any, got: Any, rank: int, right: bool = False) -> Seen:
    wanted, found = named_type(expected), named_type(got)
    text = f"the result is {found}; {asked_for(wanted)}"
    remedy = {
        "a list": "`list(...)`",
        "a tuple": "a comma, or `tuple(...)`",
        "bytes": "`bytes(...)` or `.encode()`",
        "an int": "`int(...)`",
        "a float": "`float(...)`",
        "a dict": "`dict(...)`",
    }.get(wanted, "")
    cure = f"Make {wanted} of it: {remedy}." if remedy else ""
    return Seen(f"{found} in place of {wanted}", f"the values are right; {text}" if right else text, cure, rank)


def named_type(value: Any) -> str:
    """The type of a value with its article: ``a list``."""
    if hasattr(value, "_fields"):
        return "a tuple"
    name = kind(value).split(" of ")[0].split(" (")[0] if not hasattr(value, "dtype") else type(value).__name__
    name = {"ndarray": "numpy array", "NoneType": "None"}.get(name, name)
    name = "torch tensor" if type(value).__name__ == "Tensor" else name
    if name in ("None", "bytes"):
        return name
    return f"a{'n' * (name[0] in 'aeiou')} {name}"


def asked_for(wanted: str) -> str:
    """``a list is asked for``, ``bytes are asked for``."""
    return f"{wanted} {'are' if wanted == 'bytes' else 'is'} asked for"


def _plain(value: Any) -> Any:
    """A value without its containers' types, so that (1, 2), [1, 2] and an array of them are the same."""
    if hasattr(value, "detach"):
        value = numpy_of(value)
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, bytes | bytearray | memoryview):
        return list(bytes(value))
    if isinstance(value, str):
        return list(value.encode("utf-8", "replace"))
    if isinstance(value, list | tuple | type({}.keys()) | type({}.values()) | range):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return value


def all_the_same(expected: list[Any], got: list[Any]) -> Iterator[Seen]:
    """All parts of a result are the same list or dict, as if one were filled again and again."""
    if len(got) < 2 or len(expected) != len(got) or not isinstance(got[0], list | dict):
        return
    if all(equal(got[0], part) for part in got) and not all(equal(expected[0], part) for part in expected):
        title, text, cure = "all parts are the same", "all parts of the result are the same", "Make a new one for each."
        yield Seen(title, text, cure, 6.5)
        if equal(expected[-1], got[-1]):
            yield Seen(title, f"{text}, and each is what the last one must be", cure, 6)


def of_sequences(expected: Any, got: Any) -> Iterator[Seen]:
    """Lists, tuples, texts and bytes: what is missing, what is too much, what is in another order."""
    flat = isinstance(expected, np.ndarray) and isinstance(got, np.ndarray) and expected.ndim == got.ndim == 1
    if flat and expected.dtype == got.dtype and len(expected) != len(got):
        expected, got = expected.tolist(), got.tolist()
    e: Any
    g: Any
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        yield from all_the_same(list(expected), list(got))
        if (len(expected) == 1 and equal(expected[0], got)) or (len(got) == 1 and equal(expected, got[0])):
            yield Seen(
                "one level of brackets",
                "the right result is there, with one level of brackets more or less",
                "Look at the brackets and the commas.",
                8,
            )
        e, g, word = list(expected), list(got), "items"
    elif isinstance(expected, bytes) and isinstance(got, bytes):
        e, g, word = expected, got, "bytes"
    elif isinstance(expected, str) and isinstance(got, list | tuple) and all(isinstance(x, str) for x in got):
        for separator in ("\n", "", " ", ", "):
            if len(got) > 1 and expected == separator.join(got):
                text = f"the parts of the text are right, in {named_type(got)}, and not joined with {separator!r}"
                yield Seen("not joined", text, "Use `.join`.", 4)
        return
    elif isinstance(expected, str) and isinstance(got, str):
        yield from of_letters(expected, got)
        e, g, word = expected, got, "characters"
    else:
        return
    if _eq(e, g):
        return
    if word != "items" and len(e) == len(g):
        newline: Any = b"\n" if word == "bytes" else "\n"
        if e.count(newline) and sorted(e.split(newline)) == sorted(g.split(newline)):
            yield Seen(
                "lines in another order", "the lines are right, in another order", "Keep the order of the input.", 8
            )
    yield from _lengths(e, g, word)
    if len(e) == len(g) and len(e) > 1:
        if word == "items" and len(e) == 2 and _eq([e[1], e[0]], g):
            yield Seen("exchanged", "the two parts are exchanged", "Return them in the order of the docstring.", 9)
        if _eq(e[::-1], g):
            yield Seen("reversed", f"the {word} are right, in reversed order", "Turn the order around.", 10)
        elif word != "bytes" and same_items(e, g):
            if word == "items" and _is_sorted(g):
                yield Seen("sorted", "the right items are there, sorted", "Keep the order that is asked for.", 12)
            yield Seen(
                "another order",
                f"the right {word} are there, in another order",
                "Compare the order with the docstring.",
                20,
            )
    if word == "items":
        yield from _which_items(e, g)


def _is_sorted(items: list[Any]) -> bool:
    try:
        return bool(sorted(items) == items)
    except (TypeError, ValueError):
        return False


def _eq(a: Any, b: Any) -> bool:
    return bool(a == b) if isinstance(a, str | bytes) else equal(a, b)


def same_items(e: Any, g: Any) -> bool:
    """Whether two sequences have the same items in any order."""
    return sorted(map(_name, e)) == sorted(map(_name, g))


def _name(item: Any) -> str:
    """A text that only equal items have: the one that numpy and torch show is rounded, and leaves values out."""
    item = numpy_of(item) if is_torch(item) else item
    return f"{item.dtype} {item.shape} {item.tobytes()!r}" if isinstance(item, np.ndarray) else repr(item)


def _lengths(e: Any, g: Any, word: str) -> Iterator[Seen]:
    one = word[:-1]
    if not len(g) and len(e):
        yield Seen("nothing in it", "the result is empty", "", 13)
        return
    missing = len(e) - len(g)
    if missing > 0 and _eq(e[: len(g)], g):
        if len(g) == 1 and missing > 1 and word == "items":
            yield Seen(
                "only the first",
                "only the first item is there",
                "Does a `return` stand inside the loop? It ends the loop at once.",
                10,
            )
        if missing == 1:
            yield Seen(
                f"the last {one} is missing",
                f"the last {one} is missing, and the rest is right",
                "Look at where the loop or the slice ends.",
                9,
            )
        yield Seen(
            "only the beginning",
            f"only the beginning is there: the first {word} are right, and the last are missing",
            "Look at where the loop or the slice ends.",
            13,
        )
    elif missing > 0 and _eq(e[missing:], g):
        few = f"first {missing} {word} are" if missing > 1 else f"first {one} is"
        cure = "Look at where the loop or the slice begins."
        yield Seen("the beginning is missing", f"the {few} missing, and the rest is right", cure, 10)
        yield Seen(
            "the beginning is missing",
            f"the first {word} are missing, and the rest is right",
            "Look at where the loop or the slice begins.",
            13,
        )
    elif missing < 0 and _eq(g[: len(e)], e):
        extra = g[len(e) :]
        if len(e) and _eq(extra, e):
            yield Seen("twice", f"the right {word} are there twice, one after the other", "", 9)
        if not len(e):
            yield Seen("not empty", f"there are {word}, and none are asked for", "", 13)
            return
        shown = short(extra) if len(extra) < 9 else ""
        if shown:
            yield Seen(
                "too much at the end",
                f"the result is right, and then comes {shown}",
                "Leave out what comes at the end.",
                10,
            )
        if isinstance(extra, bytes) and not any(extra):
            for n in (64, 32, 16, 8, 4):  # of the multiples that hold for all, the largest is said
                if len(g) % n == 0 and len(extra) < n:
                    text = f"the result is right, and then come zero bytes up to a multiple of {n} bytes"
                    cure = "Leave out the padding."
                    yield Seen("padded", text, cure, 9.9 - n / 1000, needs=3, whole=True)
            yield Seen(
                "zeros at the end",
                "the result is right, and then come zero bytes",
                "Leave out the padding, or count it again.",
                11,
            )
        yield Seen(
            "too much at the end",
            f"the result is right, and then come more {word}",
            "Look at where the loop or the slice ends.",
            13,
        )
    elif missing < 0 and _eq(g[-len(e) :], e) and len(e):
        extra = g[: len(g) - len(e)]
        if len(extra) < 9:
            yield Seen(
                "too much at the beginning",
                f"the right result comes after {short(extra)}",
                "Leave out what comes at the beginning.",
                10,
            )
        yield Seen("too much at the beginning", f"the right {word} come after others that do not belong there", "", 13)
    elif missing and word == "bytes":
        many, n = "many" if missing < 0 else "few", abs(missing)
        there = f"there are {n} bytes" if n > 1 else "there is 1 byte"
        yield Seen(f"too {many} bytes", f"{there} too {many}", "Count the bytes of each part.", 24)
        yield Seen(f"too {many} bytes", f"there are too {many} bytes", "Count the bytes of each part.", 32)
    elif missing and word == "items":
        many = "many" if missing < 0 else "few"
        yield Seen(f"too {many} items", f"there are too {many} items", "", 32)


def _which_items(e: list[Any], g: list[Any]) -> Iterator[Seen]:
    names_e, names_g = [_name(x) for x in e], [_name(x) for x in g]
    if len(set(names_g)) < len(names_g) and list(dict.fromkeys(names_g)) == names_e:
        yield Seen("duplicates", "items are there more than once", "Add each item once.", 9)
    if len(set(names_e)) < len(names_e) and list(dict.fromkeys(names_e)) == names_g:
        yield Seen(
            "duplicates lost",
            "an item that comes more than once is there only once",
            "A set or the keys of a dict keep one of each.",
            9,
        )
    if len(g) < len(e) and names_g and is_subsequence(names_g, names_e):
        yield Seen(
            "items missing",
            "what is there is right, and some items are missing",
            "Look at what your condition leaves out.",
            15,
        )
    if len(g) > len(e) and is_subsequence(names_e, names_g):
        yield Seen(
            "too many items",
            "the right items are there, and others that do not belong there",
            "Look at what your condition lets in.",
            15,
        )
    if any(type(a) is not type(b) for a, b in zip(e, g)) and [str(x) for x in e] == [str(x) for x in g]:
        yield Seen("items of another type", "the items read right, and have another type", "Convert each item.", 8)
