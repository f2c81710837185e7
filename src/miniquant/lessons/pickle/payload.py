"""The exercises of lab 02 on running code: a pickle that calls print, and a loader that would not let it."""

from __future__ import annotations

import io
import math
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ...formats.pickle.scan import imports, off_list
from ...lab.compare import kind
from ...lab.spec import Case, Exercise, Finding, Mistake
from ..shared.by_hand import by_digits

# ---- harmless_payload ------------------------------------------------------------------------------------------------


class _Call:
    """Pickled, it is a call; unpickled, it is what the call returned."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.function, self.arguments


class _Stand:
    """Stands for an imported object: a call of it is written down and not made."""

    def __init__(self, name: str, calls: list[tuple[str, tuple[Any, ...]]]) -> None:
        self.name, self.calls = name, calls

    def __call__(self, *arguments: Any) -> str:
        self.calls.append((self.name, arguments))
        return f"what {self.name} returned"

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Stand) and other.name == self.name

    __hash__ = None


class _Watcher(pickle.Unpickler):
    """Runs a pickle with stand-ins in the place of everything that it imports."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def find_class(self, module: str, name: str) -> _Stand:
        return _Stand(f"{module}.{name}", self.calls)


def watched_load(function: Callable[..., Any], case: Case) -> tuple[list[tuple[str, tuple[Any, ...]]], Any]:
    """The calls that loading would make, and what it would return; nothing is imported or called."""
    data = function(*case)
    if not isinstance(data, bytes):
        raise Finding("a pickle is bytes, and your function returned something else", f"{kind(data)}: {data!r}"[:200])
    watcher = _Watcher(data)
    try:
        result = watcher.load()
    except Exception as error:
        raise Finding("the bytes are no pickle", f"{type(error).__name__} when it is loaded") from None
    return watcher.calls, repr(result) if isinstance(result, _Stand) else result


def harmless_payload(message: str) -> bytes:
    """The reference: a message -> a pickle that prints it when it is loaded."""
    return pickle.dumps(_Call(print, (message,)), 4)


def payload_oracle(message: str) -> bytes:
    """Byte by byte: import, push the text, a tuple of it, call, stop."""
    text = message.encode()
    return b"cbuiltins\nprint\n" + b"X" + by_digits(len(text), 4) + text + b"\x85R."


def _payload_cases(random: np.random.Generator) -> list[Case]:
    drawn = ["".join(chr(c) for c in random.integers(97, 123, n)) for n in (4, 40)]
    return [(text,) for text in ("hello", "two words", "it's", "café\nau lait", *drawn)]


HARMLESS_PAYLOAD = Exercise(
    name="harmless_payload",
    lab="02",
    goal="Build a pickle that calls `print` with a message at the moment when it is loaded.",
    minutes=8,
    difficulty="core",
    reference=harmless_payload,
    oracle=payload_oracle,
    cases=_payload_cases,
    observe=watched_load,
    hints=(
        "An object tells pickle how it is to be rebuilt by its method `__reduce__`, returning a pair: what to call, "
        "and a tuple of arguments. Nothing demands that it be a class of yours.",
        "A class whose `__reduce__` returns `(print, (message,))`; then `pickle.dumps` of one object of it.",
    ),
    why="you have just written malware, but for the choice of the function.",
    mistakes=(
        Mistake(
            "printed while it is built",
            lambda message: pickle.dumps(print(message)),
            "`print(message)` runs at once, and what goes into the pickle is the None that it returns.",
            "Hand over the function and its arguments apart from each other: `(print, (message,))`.",
            "the message on the screen before anything is loaded",
        ),
        Mistake(
            "only the message",
            lambda message: pickle.dumps(message),
            "This is a pickle of a text, and loading it calls nothing.",
            "Pickle an object whose `__reduce__` asks for a call.",
            "no call at all, and the text as the result",
        ),
        Mistake(
            "the function without a call",
            lambda message: pickle.dumps(print),
            "The pickle imports `print` and returns it, and nobody calls it.",
            "Return `(print, (message,))` from `__reduce__`.",
            "no call, and builtins.print as the result",
        ),
        Mistake(
            "a pair instead of a call",
            lambda message: pickle.dumps((print, (message,))),
            "The pair itself was pickled, as data. It becomes a call only if `__reduce__` returns it.",
            "Put it into the `__reduce__` of a class, and pickle an object of that class.",
            "no call, and the pair as the result",
        ),
        Mistake(
            "arguments that are no tuple",
            lambda message: pickle.dumps(_Call(print, message)),
            "`(message)` is just the message; a tuple of one item has a comma in it.",
            "Write `(message,)`.",
            "a PicklingError about a tuple",
        ),
        Mistake(
            "a letter each",
            lambda message: pickle.dumps(_Call(print, tuple(message))),
            "`tuple(message)` takes the message apart, and print gets a letter for each argument.",
            "Write `(message,)`.",
            "a call with many short arguments",
        ),
        Mistake(
            "eval",
            lambda message: pickle.dumps(_Call(eval, (f"print({message!r})",))),
            "It works, and it runs Python source where a single call was asked for.",
            "Name `print` itself.",
            "a call of builtins.eval",
        ),
    ),
)

# ---- load_restricted -------------------------------------------------------------------------------------------------

Pairs = set[tuple[str, str]]


def _load(data: bytes, find: Callable[[Callable[[str, str], Any], str, str], Any]) -> Any:
    class Loader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            return find(super().find_class, module, name)

    return Loader(io.BytesIO(data)).load()


def load_restricted(data: bytes, allowed: Pairs) -> Any:
    """The reference: a pickle and an allow-list -> its object, or an ``UnpicklingError``."""

    def find(real: Callable[[str, str], Any], module: str, name: str) -> Any:
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"{module}.{name} is not on the list")
        return real(module, name)

    return _load(data, find)


def load_oracle(data: bytes, allowed: Pairs) -> Any:
    """Scanned first, without running it; loaded only if there is nothing to object to."""
    if off_list(imports(data), allowed):
        raise pickle.UnpicklingError("a name is not on the list")
    return pickle.loads(data)


def _load_cases(random: np.random.Generator) -> list[Case]:
    ordered, numbers = ("collections", "OrderedDict"), ("fractions", "Fraction")
    values = random.integers(0, 100, 5).tolist()
    return [
        (pickle.dumps([1, "two"]), set()),
        (pickle.dumps(OrderedDict(a=1)), {ordered}),
        (pickle.dumps(OrderedDict(a=1)), set()),
        (pickle.dumps(Fraction(1, 3), 2), {ordered, numbers}),
        (pickle.dumps(Fraction(1, 3), 4), {ordered}),
        (pickle.dumps(_Call(math.factorial, (5,))), {("math", "factorial")}),
        (pickle.dumps(_Call(math.factorial, (5,))), {("math", "sqrt"), ordered}),
        (pickle.dumps(_Call(len, ("abc",))), {("operator", "len"), ("builtins", "max")}),
        (pickle.dumps({"w": [_Call(math.gcd, (4, 6))]}), {("fractions", "gcd"), numbers}),
        (pickle.dumps({1, 2}, 2), {("__builtin__", "set")}),
        (pickle.dumps(values), {ordered}),
        (pickle.dumps(math.floor), {ordered}),
        (pickle.dumps(_Call(sys.intern, ("a",))), {ordered}),
    ]


def _refusing(ok: Callable[[str, str, Pairs], bool], error: type[Exception] = pickle.UnpicklingError) -> Callable:
    def load(data: bytes, allowed: Pairs) -> Any:
        def find(real: Callable[[str, str], Any], module: str, name: str) -> Any:
            if not ok(module, name, allowed):
                raise error(f"{module}.{name}")
            return real(module, name)

        return _load(data, find)

    return load


def _silently(data: bytes, allowed: Pairs) -> Any:
    return _load(data, lambda real, module, name: real(module, name) if (module, name) in allowed else None)


def _forgetful(data: bytes, allowed: Pairs) -> Any:
    def find(real: Callable[[str, str], Any], module: str, name: str) -> None:
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"{module}.{name}")
        real(module, name)

    return _load(data, find)


LOAD_RESTRICTED = Exercise(
    name="load_restricted",
    lab="02",
    goal="Load a pickle that may import nothing but what stands on an allow-list.",
    minutes=8,
    difficulty="core",
    reference=load_restricted,
    oracle=load_oracle,
    cases=_load_cases,
    hints=(
        "Every import of a pickle goes through one method of `pickle.Unpickler`: `find_class(module, name)`. A "
        "subclass may refuse.",
        "In `find_class`: if `(module, name)` is not in `allowed`, raise `pickle.UnpicklingError`; else return "
        "`super().find_class(module, name)`. Then `Loader(io.BytesIO(data)).load()`.",
    ),
    why="`weights_only=True` is this idea, with a list that PyTorch's people keep.",
    mistakes=(
        Mistake(
            "everything allowed",
            lambda data, allowed: pickle.loads(data),
            "The list is never looked at: whatever the pickle names is imported, and called.",
            "Subclass `pickle.Unpickler` and override `find_class`.",
            "a result where UnpicklingError is expected",
        ),
        Mistake(
            "the module alone compared",
            _refusing(lambda module, name, allowed: module in {m for m, _ in allowed}),
            "Any name of a listed module gets through, and modules import other modules.",
            "Compare the pair (module, name).",
            "math.factorial let through because math.sqrt is listed",
        ),
        Mistake(
            "the name alone compared",
            _refusing(lambda module, name, allowed: name in {n for _, n in allowed}),
            "A listed name gets through from any module.",
            "Compare the pair (module, name).",
            "builtins.len let through because operator.len is listed",
        ),
        Mistake(
            "a list of what is bad",
            _refusing(lambda module, name, allowed: module not in ("os", "posix", "nt", "subprocess", "sys")),
            "This forbids a few modules and lets the rest through; there is always one more that you did not think of.",
            "List what is allowed, and refuse all else.",
            "an import that is not on the list let through",
        ),
        Mistake(
            "None for what is refused",
            _silently,
            "A refused name became None, and the pickle goes on with it.",
            "Raise `pickle.UnpicklingError`.",
            "None where a refusal is expected, or an error that None cannot be called",
        ),
        Mistake(
            "the import not returned",
            _forgetful,
            "`find_class` looks the listed name up and returns nothing, so the pickle goes on with None in its place.",
            "Write `return` in front of `super().find_class(module, name)`.",
            "the refusals right, and `'NoneType' object is not callable` for a name that is listed",
        ),
        Mistake(
            "everything refused",
            _refusing(lambda module, name, allowed: False),
            "Listed names are refused as well.",
            "Return `super().find_class(module, name)` for a listed pair.",
            "an UnpicklingError for an OrderedDict that is listed",
        ),
        Mistake(
            "another error",
            _refusing(lambda module, name, allowed: (module, name) in allowed, PermissionError),
            "The right names are refused with an error that callers of pickle do not expect.",
            "Raise `pickle.UnpicklingError`.",
            "a PermissionError where an UnpicklingError is expected",
        ),
    ),
)
