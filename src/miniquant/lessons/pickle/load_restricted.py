"""A loader that imports nothing off a list."""

import io
import math
import pickle
import sys
from collections import OrderedDict
from fractions import Fraction

from ...formats.pickle.scan import imports, off_list
from ...lab import Exercise, Mistake, edit
from .toys import Call


def load_restricted(data, allowed):
    """Load a pickle that imports nothing off the list.

    data: bytes, allowed: a set of (module, name)   ->   the object

    Raises pickle.UnpicklingError at the first import that is not allowed.
    """

    class Loader(pickle.Unpickler):
        def find_class(self, module, name):
            if (module, name) not in allowed:
                raise pickle.UnpicklingError(f"{module}.{name} is not on the list")
            return super().find_class(module, name)

    return Loader(io.BytesIO(data)).load()


def oracle(data, allowed):
    """Scanned first, without running it; loaded only if there is nothing to object to."""
    if off_list(imports(data), allowed):
        raise pickle.UnpicklingError("a name is not on the list")
    return pickle.loads(data)


def cases(random):
    """Data without imports; listed and unlisted classes and calls, nested and in old protocols; random numbers."""
    ordered, numbers = ("collections", "OrderedDict"), ("fractions", "Fraction")
    return [
        (pickle.dumps([1, "two"]), set()),
        (pickle.dumps(OrderedDict(a=1)), {ordered}),
        (pickle.dumps(OrderedDict(a=1)), set()),
        (pickle.dumps(Fraction(1, 3), 2), {ordered, numbers}),
        (pickle.dumps(Fraction(1, 3), 4), {ordered}),
        (pickle.dumps(Call(math.factorial, (5,))), {("math", "factorial")}),
        (pickle.dumps(Call(math.factorial, (5,))), {("math", "sqrt"), ordered}),
        (pickle.dumps(Call(len, ("abc",))), {("operator", "len"), ("builtins", "max")}),
        (pickle.dumps({"w": [Call(math.gcd, (4, 6))]}), {("fractions", "gcd"), numbers}),
        (pickle.dumps({1, 2}, 2), {("__builtin__", "set")}),
        (pickle.dumps(random.integers(0, 100, 5).tolist()), {ordered}),
        (pickle.dumps(math.floor), {ordered}),
        (pickle.dumps(Call(sys.intern, ("a",))), {ordered}),
    ]


EXERCISE = Exercise(
    goal="Load a pickle that may import nothing but what stands on an allow-list.",
    reference=load_restricted, oracle=oracle, cases=cases, minutes=8, difficulty="core",
    hints=(
        "Every import of a pickle goes through one method of `pickle.Unpickler`: `find_class(module, name)`. A subclass may refuse.",
        "In `find_class`: if `(module, name)` is not in `allowed`, raise `pickle.UnpicklingError`; else return `super().find_class(module, name)`. Then `Loader(io.BytesIO(data)).load()`.",
    ),
    why="`weights_only=True` is this idea, with a list that the authors of PyTorch keep.",
    mistakes=(
        Mistake("everything allowed", edit("Loader(io.BytesIO(data)).load()", "pickle.loads(data)"),
            cause="The list is never looked at: whatever the pickle names is imported, and called.",
            cure="Subclass `pickle.Unpickler` and override `find_class`.",
            see="a result where UnpicklingError is expected"),
        Mistake("the module alone compared",
            edit("(module, name) not in allowed", "module not in {m for m, _ in allowed}"),
            cause="Any name of a listed module gets through, and modules import other modules.",
            cure="Compare the pair (module, name).", see="math.factorial let through because math.sqrt is listed"),
        Mistake("the name alone compared",
            edit("(module, name) not in allowed", "name not in {n for _, n in allowed}"),
            cause="A listed name gets through from any module.",
            cure="Compare the pair (module, name).", see="builtins.len let through because operator.len is listed"),
        Mistake("a list of what is bad",
            edit("(module, name) not in allowed", 'module in ("os", "posix", "nt", "subprocess", "sys")'),
            cause="This forbids a few modules and lets the rest through; there is always one more that you did not think of.",
            cure="List what is allowed, and refuse all else.", see="an import that is not on the list let through"),
        Mistake("None for what is refused",
            edit('raise pickle.UnpicklingError(f"{module}.{name} is not on the list")', "return None"),
            cause="A refused name became None, and the pickle goes on with it.",
            cure="Raise `pickle.UnpicklingError`.",
            see="None where a refusal is expected, or an error that None cannot be called"),
        Mistake("the import not returned", edit("return super()", "super()"),
            cause="`find_class` looks the listed name up and returns nothing, so the pickle goes on with None in its place.",
            cure="Write `return` in front of `super().find_class(module, name)`.",
            see="the refusals right, and `'NoneType' object is not callable` for a name that is listed"),
        Mistake("everything refused", edit("if (module, name) not in allowed", "if module"),
            cause="Listed names are refused as well.",
            cure="Return `super().find_class(module, name)` for a listed pair.",
            see="an UnpicklingError for an OrderedDict that is listed"),
        Mistake("another error", edit("raise pickle.UnpicklingError", "raise PermissionError"),
            cause="The right names are refused with an error that callers of pickle do not expect.",
            cure="Raise `pickle.UnpicklingError`.", see="a PermissionError where an UnpicklingError is expected"),
    ),
)
