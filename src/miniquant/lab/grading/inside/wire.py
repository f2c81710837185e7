"""Values as plain data between the grader and the process of a student: JSON, and nothing of a class survives.

A value becomes a list whose first item is its tag: ``["i", "1f"]``, ``["a", "<f4", [2, 3], "C", true, "…base64…"]``.
Whoever decodes builds the value anew from types of Python, numpy and torch. What is none of these arrives as a
``Foreign``: the name of its type and its text. So a subclass of ``bytes`` that says it equals everything arrives as the
bytes that it holds.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import sys
from collections import namedtuple
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import numpy as np

Plain = Any  # what json can write
DEEP = 20  # so many containers in each other are carried
LONGEST_INTEGER = 1 << 20  # bits
LARGEST = 10 << 20  # bytes of an array, a text and so on that is carried
LONGEST_SET = 10_000  # values: with more, values of one hash would hold up whoever builds the set
LONGEST_FRACTION = 2_000  # hexadecimal digits
LONGEST_TEXT = 300  # characters of what is no plain data
NUMBERS = "biufc"  # the kinds of arrays that are carried, and texts
# functions of these modules are carried by name
NAMED = ("builtins", "collections", "copyreg", "fractions", "math", "ntpath", "operator", "posixpath")


class WireError(ValueError):
    """A message is none: not JSON, an unknown tag, an array whose bytes do not fit its shape."""


class Foreign:
    """A value that is no plain data: only its type's name and its text are known."""

    text = ""

    def __repr__(self) -> str:
        return self.text


def foreign(type_name: str, text: str) -> Foreign:
    """A value of a class that nobody here has; the class is called ``type_name``.

    >>> type(foreign("Liar", "a liar")).__name__, foreign("Liar", "a liar")
    ('Liar', a liar)
    """
    found: Foreign = type(str(type_name)[:80] or "object", (Foreign,), {})()
    found.text = str(text)[:LONGEST_TEXT]
    return found


def write(message: Any) -> bytes:
    """A message as one line.

    >>> write({"call": "f"})
    b'{"call": "f"}\\n'
    """
    return json.dumps(message).encode() + b"\n"


def read(line: bytes) -> dict[str, Any]:
    """The message of a line. Raises ``WireError`` for anything but a JSON object."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a message is no JSON: {type(error).__name__}") from None
    if not isinstance(found, dict):
        raise WireError("a message is no object")
    return found


def encode(value: Any, other: Callable[[Any], Plain | None] | None = None, depth: int = 0) -> Plain:
    """A value as plain data. ``other`` may say how a value is carried that is none, or ``None``.

    >>> encode([True, 255, "a"])
    ['l', [['T', True], ['i', 'ff'], ['s', 'a']]]
    """
    if depth > DEEP:
        return ["o", type(value).__name__, "too deep"]
    if value is None:
        return ["n"]
    if isinstance(value, Enum) and other and (found := other(value)):
        return found
    if isinstance(value, bool):
        return ["T", value]
    if isinstance(value, np.generic):
        found = _array(np.asarray(value))
        return ["g", found] if found else _named(value)
    if isinstance(value, int):
        number = int.__index__(value)
        return ["i", format(number, "x")] if number.bit_length() <= LONGEST_INTEGER else _huge(number)
    if isinstance(value, float):
        return ["f", float.hex(value)]
    if isinstance(value, complex):
        return ["c", float.hex(value.real), float.hex(value.imag)]
    if _bytes_of(value) > LARGEST:
        return ["o", type(value).__name__, "too large to be compared"]
    if isinstance(value, str):
        return ["s", str.__str__(value)]
    if isinstance(value, bytes | bytearray):
        return ["b" if isinstance(value, bytes) else "ba", base64.b64encode(value).decode()]
    if isinstance(value, np.ndarray):
        return _array(value) or _named(value)
    if _is_torch(value):
        return _tensor(value)
    return _container(value, other, depth + 1) or (other(value) if other else None) or _named(value)


def _bytes_of(value: Any) -> int:
    kinds: tuple[Any, ...] = (str, bytes, bytearray)
    if kind := next((kind for kind in kinds if isinstance(value, kind)), None):
        return int(kind.__len__(value))
    if isinstance(value, np.ndarray):
        return value.size * value.itemsize
    return value.untyped_storage().nbytes() if _is_torch(value) and value.layout is sys.modules["torch"].strided else 0


def _container(value: Any, other: Callable[[Any], Plain | None] | None, depth: int) -> Plain | None:
    def inside(values: Any) -> list[Plain]:
        return [encode(each, other, depth) for each in values]

    if isinstance(value, list):
        return ["l", inside(list.__iter__(value))]
    if isinstance(value, tuple):
        names = getattr(type(value), "_fields", None)
        if names:
            return ["N", type(value).__name__, [str(name) for name in names], inside(tuple.__iter__(value))]
        return ["t", inside(tuple.__iter__(value))]
    if isinstance(value, dict):
        return ["d", [inside(pair) for pair in dict.items(value)]]
    if isinstance(value, set | frozenset):
        kind = "S" if isinstance(value, set) else "F"
        return [kind, sorted(inside(value), key=json.dumps)]
    if isinstance(value, Fraction):
        return ["q", *inside((value.numerator, value.denominator))]
    if isinstance(value, BaseException):
        return ["x", encode_error(value)]
    if isinstance(value, PurePath):
        return ["P", str(value)]
    return None


def _huge(number: int) -> Plain:
    return ["o", "int", f"an integer of {number.bit_length():,} bits"]


def _named(value: Any) -> Plain:
    name, owner = getattr(value, "__qualname__", ""), getattr(value, "__self__", None)
    module = getattr(owner if isinstance(owner, type) else value, "__module__", "")
    if module in NAMED and isinstance(name, str) and (callable(value) or isinstance(value, type)):
        return ["m", module, name]
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return ["o", type(value).__name__, text[:LONGEST_TEXT]]


def _array(value: np.ndarray) -> Plain | None:
    """An array with its byte order, its layout in memory and whether it may be changed."""
    if value.dtype.kind not in NUMBERS + "US":
        return None
    layout = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "gaps"
    order: Any = "F" if layout == "F" else "C"
    raw = np.array(value, copy=True, subok=False).tobytes(order)
    return [
        "a",
        value.dtype.str,
        list(value.shape),
        layout,
        bool(value.flags.writeable),
        base64.b64encode(raw).decode(),
    ]


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _tensor(value: Any) -> Plain:
    """A tensor with the storage that it views; tensors with the same storage name the same address."""
    torch = sys.modules["torch"]
    bare = value.detach().as_subclass(torch.Tensor).cpu()
    if bare.layout != torch.strided:
        return ["o", "Tensor", "a sparse tensor"]
    bare = bare.resolve_conj().resolve_neg()
    storage = bare.untyped_storage()
    raw = bytes(torch.empty(0, dtype=torch.uint8).set_(storage).numpy())
    kind = "parameter" if isinstance(value, torch.nn.Parameter) else "leaf" if value.requires_grad else ""
    grad = _tensor(value.grad) if value.is_leaf and value.grad is not None else None
    place = [list(bare.shape), list(bare.stride()), bare.storage_offset()]
    name = str(bare.dtype).removeprefix("torch.")
    return ["R", storage.data_ptr(), base64.b64encode(raw).decode(), name, *place, kind, grad]


def decode(data: Plain, other: Callable[[Plain], Any] | None = None, *, share: bool = False) -> Any:
    """The value of plain data, built anew. ``other`` builds what has a tag of its own.

    ``share``: tensors of one storage share it again; else each has its own.

    Raises ``WireError`` for what ``encode`` never writes.
    """
    try:
        return _decode(data, other, {} if share else None, 0)
    except WireError:
        raise
    except Exception as error:
        raise WireError(f"a value cannot be read: {type(error).__name__}: {str(error)[:100]}") from None


def _decode(data: Plain, other: Callable[[Plain], Any] | None, storages: dict[int, Any] | None, depth: int) -> Any:
    if depth > DEEP + 2:
        raise WireError("too deep")

    def inside(values: list[Plain]) -> list[Any]:
        return [_decode(each, other, storages, depth + 1) for each in values]

    match data:
        case ["n"]:
            return None
        case ["T", bool(value)] | ["s", str(value)]:
            return value
        case ["i", str(digits)] if len(digits) <= LONGEST_INTEGER // 4 + 2:
            return int(digits, 16)
        case ["f", str(digits)]:
            return float.fromhex(digits)
        case ["c", str(real), str(imaginary)]:
            return complex(float.fromhex(real), float.fromhex(imaginary))
        case ["b", str(text)]:
            return base64.b64decode(text, validate=True)
        case ["ba", str(text)]:
            return bytearray(base64.b64decode(text, validate=True))
        case ["a", *parts]:
            return _array_of(parts)
        case ["g", ["a", *parts]]:
            return _array_of(parts)[()]
        case ["R", *parts]:
            return _tensor_of(parts, storages)
        case ["l", list(values)]:
            return inside(values)
        case ["t", list(values)]:
            return tuple(inside(values))
        case ["N", str(name), list(names), list(values)]:
            return _tuple_class(name, tuple(names))(*inside(values))
        case ["d", list(pairs)]:
            return dict(inside(pair) for pair in pairs)
        case ["S" | "F" as kind, list(values)] if len(values) <= LONGEST_SET:
            return set(inside(values)) if kind == "S" else frozenset(inside(values))
        case ["q", ["i", str(above)], ["i", str(below)]] if len(above) + len(below) <= LONGEST_FRACTION:
            return Fraction(int(above, 16), int(below, 16))
        case ["m", str(module), str(name)] if module in NAMED:
            first, _, rest = name.partition(".")
            found = getattr(sys.modules[module], first)
            return getattr(found, rest) if rest and not rest.startswith("_") else found
        case ["x", dict(error)]:
            return decode_error(error)
        case ["o", str(name), str(text)]:
            return foreign(name, text)
    if other is not None:
        return other(data)
    raise WireError("an unknown tag")


@functools.lru_cache(maxsize=256)
def _tuple_class(name: str, names: tuple[str, ...]) -> Any:
    return namedtuple(name, names)


def _array_of(parts: list[Any]) -> np.ndarray:
    match parts:
        case [str(name), list(shape), str(layout), bool(writeable), str(text)]:
            dtype = np.dtype(name)
            if dtype.kind not in NUMBERS + "US":
                raise WireError(f"an array of {dtype}")
            raw = base64.b64decode(text, validate=True)
            if any(type(n) is not int or n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != len(raw):
                raise WireError("an array whose bytes do not fit its shape")
            order: Any = "F" if layout == "F" else "C"
            found = np.frombuffer(bytearray(raw), dtype).reshape(shape, order=order)
            if layout == "gaps" and found.ndim:
                wide = np.zeros([*shape[:-1], 2 * shape[-1]], dtype)
                wide[..., ::2] = found
                found = wide[..., ::2]
            found.flags.writeable = writeable
            return found
    raise WireError("no array")


def _tensor_of(parts: list[Any], storages: dict[int, Any] | None) -> Any:
    import torch

    match parts:
        case [int(address), str(text), str(name), list(shape), list(strides), int(offset), str(kind), grad]:
            dtype = getattr(torch, name)
            if not isinstance(dtype, torch.dtype):
                raise WireError("no dtype")
            if any(type(n) is not int or n < 0 for n in (*shape, *strides, offset)) or len(shape) != len(strides):
                raise WireError("no shape")
            raw = bytearray(base64.b64decode(text, validate=True))
            whole = storages.get(address) if storages is not None else None
            if whole is None:
                whole = torch.frombuffer(raw, dtype=torch.uint8).clone() if raw else torch.empty(0, dtype=torch.uint8)
            if storages is not None and raw:
                storages[address] = whole
            if storages is None and math.prod(shape) * dtype.itemsize > len(raw):
                raise WireError("a tensor that is larger than its storage")
            last = offset + sum((n - 1) * step for n, step in zip(shape, strides))
            if 0 not in shape and (last + 1) * dtype.itemsize > len(raw):
                raise WireError("a tensor that does not lie in its storage")
            found = torch.empty(0, dtype=dtype).set_(whole.untyped_storage(), offset, tuple(shape), tuple(strides))
            if kind == "parameter":
                found = torch.nn.Parameter(found)
            elif kind == "leaf":
                found.requires_grad_()
            if grad is not None:
                found.grad = _tensor_of(grad[1:], None)
            return found
    raise WireError("no tensor")


# ---- errors ----------------------------------------------------------------------------------------------------------


def encode_error(error: BaseException, **more: Any) -> dict[str, Any]:
    """An error as the names of its classes, from its own to ``BaseException``, and its text."""
    try:
        text = str(error)
    except Exception:
        text = "<an error without a text>"
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__]
    return {"classes": names[:20], "text": text[:10_000], **more}


def decode_error(data: dict[str, Any]) -> BaseException:
    """An error of the nearest class that is known here, under the name of its own, with its text.

    >>> decode_error({"classes": ["__main__.Mine", "builtins.KeyError", "builtins.Exception"], "text": "no such key"})
    Mine('no such key')
    """
    classes = [str(name) for name in data.get("classes", [])] or ["builtins.Exception"]
    base = next((found for name in classes if (found := _error_class(name))), Exception)
    module, _, own = classes[0].rpartition(".")
    kind = base if (base.__module__, base.__qualname__) == (module, own) else type(own[:80] or "Error", (base,), {})
    kind = _plain_text(kind)
    made = kind.__new__(kind)
    made.args = (str(data.get("text", "")),)
    return made


def _plain_text(kind: type[BaseException]) -> type[BaseException]:
    """The same class with the text that came over the wire: a KeyError would quote it, a UnicodeError build its own."""
    own = {"__str__": lambda self: self.args[0], "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), own)


def _error_class(name: str) -> type[BaseException] | None:
    module, _, own = name.rpartition(".")
    if module not in ("builtins", "struct", "miniquant.core.errors", "pickle", "_pickle", "json.decoder"):
        return None
    if own in ("SystemExit", "KeyboardInterrupt", "GeneratorExit", "BaseException"):
        return None if own != "SystemExit" else SystemExit
    found = getattr(sys.modules.get(module), own, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None
