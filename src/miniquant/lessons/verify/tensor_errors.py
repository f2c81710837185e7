"""Two dicts of arrays, compared by name."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit, omit
from ..shared.names import ODD_NAMES
from .max_abs_error import max_abs_error
from .max_abs_error import oracle as worst_by_hand
from .toys import NAN, array, as_tensors


def tensor_errors(expected, found):
    """The largest absolute error of every tensor.

    expected, found: dicts, name -> array or tensor, as in max_abs_error,
        and of the same kind (array or tensor) on both sides
    ->   dict, name -> float, in the order of `expected`

    Raises ValueError if the two dicts have different names, or a name has
    different shapes. `found` may hold the names in another order.
    """
    if expected.keys() != found.keys():
        raise ValueError(f"these names are on one side only: {sorted(expected.keys() ^ found.keys())}")
    errors = {}
    for name, tensor in expected.items():
        if tensor.shape != found[name].shape:
            raise ValueError(f"{name}: expected shape {tensor.shape}, found {found[name].shape}")
        errors[name] = max_abs_error(tensor, found[name])
    return errors


def oracle(expected, found):
    """Name by name, in alphabetical order first."""
    for name in sorted({*expected, *found}):
        if name not in expected or name not in found:
            raise ValueError(f"{name!r} is on one side only")
    errors = {}
    for name in expected:
        if expected[name].shape != found[name].shape:
            raise ValueError(f"{name!r} has two shapes: {expected[name].shape} and {found[name].shape}")
        errors[name] = worst_by_hand(expected[name], found[name])
    return errors


def cases(random):
    """Two dicts that agree, in the same order and in another; missing names; other shapes; a NaN."""
    a, b, c, hole = array(1, 2, 3, 4), array([1, 2], [3, 4]), array(0, 0.5), array(0, NAN)
    small, none = np.array([100, -100, 3, 0], np.int8), np.zeros((0, 2), np.float32)
    close, far = np.array([1 - 2.0**-40]), np.array([1 + 2.0**-40])  # float32 does not tell them apart
    names = ["tok_emb.weight", "ln_f.weight", "ln_f.bias"]
    one, two = ({n: random.normal(0, 4, (4, 8)).astype(np.float32) for n in names} for _ in range(2))
    return [
        ({"a": a}, {"a": a + c.max()}),
        ({"a": a, "b": b}, {"a": a, "b": b - 2}),
        ({"b": hole, "a": b * 2}, {"a": b * 2, "b": hole}),  # the same array, with NaN in it
        ({"a": a, "b": b}, {"a": a}),
        ({"a": a}, {"a": a, "b": b}),
        ({"a": a}, {}),
        ({}, {"a": a}),
        ({"a": b}, {"a": b[:, :1]}),
        ({"a": a[None, :], "b": a[:, None]}, {"a": a[:, None], "b": a[None, :]}),  # the shapes exchanged
        ({"b": c, "a": a}, {"b": array(0, NAN), "a": array(1, 2, float("inf"), 4)}),
        ({"c": a, "a": a, "b": a}, {"c": a, "A": a, "b": a}),  # only one in the middle
        ({"a": b, "b": np.stack([b, b], 1)}, {"a": b, "b": b[:, None]}),  # a dim of 1 in the middle
        ({"c": a, "a": b, "b": a}, {"c": a, "a": b[:1], "b": a}),
        ({"s": np.array(3.0, np.float32)}, {"s": np.array(1.0, np.float32)}),
        ({"s": np.array(3.0, np.float32)}, {"s": array(3.0)}),
        ({"e": np.zeros((0, 2), np.float32)}, {"e": np.zeros((2, 0), np.float32)}),
        ({}, {}),
        ({"h": a.astype(np.float16), "q": small, "e": none, "d": close, "f": far}, {"h": a * 2, "q": -small, "e": none, "d": far, "f": far + 3 * close}),  # of four dtypes
        (one, two),
        (two, dict(reversed(one.items()))),
        ({name: b for name in ODD_NAMES}, {name: b + i for i, name in enumerate(reversed(ODD_NAMES))}),
        ({"b": b, "a": a, "c": c}, {"a": a - 0.25, "c": c, "b": b * 3}),
        ({"x": one["ln_f.bias"], "y": a}, {"y": a[::-1].copy(), "x": two["ln_f.bias"]}),
        *[({"a": x}, {"a": y}) for x, y in as_tensors((b, b + 3), (b, b[:1]))],
    ]


def traits(expected, found):
    """What is special about two dicts."""
    shared = [name for name in expected if name in found]
    shapes = [(tuple(expected[name].shape), tuple(found[name].shape)) for name in shared]
    other = [(a, b) for a, b in shapes if a != b]
    same = [(expected[name], found[name]) for name, (a, b) in zip(shared, shapes) if a == b]
    return {
        "`found` lacks a name that `expected` has": any(name not in found for name in expected),
        "`found` has a name that `expected` lacks": any(name not in expected for name in found),
        "the names are in another order": list(expected) != list(found) and sorted(expected) == sorted(found),
        "a tensor has two shapes": bool(other),
        "a tensor has two shapes with as many axes": any(len(a) == len(b) for a, b in other),
        "a tensor has two shapes with as many values": any(math.prod(a) == math.prod(b) for a, b in other),
        "a tensor has two shapes that numpy stretches to one shape": any(_stretches(a, b) for a, b in other),
        "the first tensor of `expected` has one shape on both sides, and another one has two": bool(other)
        and next(iter(expected)) in found
        and shapes[0][0] == shapes[0][1],
        "two tensors of one name and shape have a difference of NaN": any(map(_has_nan, same)),
        "there is no tensor": not expected and not found,
        "`expected` has more than one tensor": len(expected) > 1,
    }


def _has_nan(pair):
    a, b = (np.asarray(side, np.float64) for side in pair)
    with np.errstate(all="ignore"):
        return bool(np.isnan(a - b).any())


def _stretches(a, b):
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


EXERCISE = Exercise(
    traits=traits,
    goal="Compare two dicts of arrays name by name, and refuse with a ValueError if a name or a shape differs.",
    reference=tensor_errors, oracle=oracle, cases=cases, minutes=8, difficulty="core", ordered=True,
    hints=(
        "Ask before you compute: are the names the same on both sides, and is each shape the same? Only then subtract.",
        "`.keys()` of a dict compare like sets, and `.shape` says what NumPy would otherwise stretch; `max_abs_error` does the rest.",
    ),
    why="a tensor that nobody compared is a tensor that nobody verified: a lost name must be loud.",
    mistakes=(
        Mistake("only the common names", omit("if expected.keys()").edit(
                "if tensor.shape", "if name not in found:\n            continue\n        if tensor.shape"
            ),
            cause="A name that stands on one side only is skipped, so a lost tensor has no error.",
            cure="Raise `ValueError` if `expected.keys() != found.keys()`.",
            see="an answer, even an empty one, where the input must be refused because a name is missing"),
        Mistake("an extra tensor is accepted",
            edit("expected.keys() != found.keys()", "expected.keys() - found.keys()"),
            cause="A name that only `found` has is accepted, so nobody sees a tensor that must not be there.",
            cure="Compare the two sets of names in both directions.",
            see="an answer where `found` has a name too many"),
        Mistake("neither names nor shapes compared", omit("if expected.keys()").omit("if tensor.shape"),
            cause="A missing name ends in a `KeyError`, an extra one is not noticed, and NumPy can stretch one shape to another, as (1, 2) to (2, 2).",
            cure="Before you subtract, compare the names, then each pair of shapes, and raise a `ValueError` that says which.",
            see="`KeyError` where `ValueError` is expected"),
        Mistake("shapes not compared", omit("if tensor.shape"),
            cause="Two different shapes are accepted where NumPy can stretch them: a row of shape (1, 2) becomes (2, 2) and is compared twice.",
            cure="Raise `ValueError` if the two shapes differ, before you subtract.",
            see="an answer where the shapes are (2, 2) and (1, 2)"),
        Mistake("sizes compared instead of shapes", edit("if tensor.shape != found[name].shape", "if np.size(tensor) != np.size(found[name])").edit(
                "max_abs_error(tensor, found[name])", "max_abs_error(np.ravel(tensor), np.ravel(found[name]))"
            ),
            cause="Four numbers in a row and four in a column have the same size, and are not the same tensor.",
            cure="Compare `.shape`, not `.size`, and do not flatten.",
            see="`0.0` where the shapes are (1, 4) and (4, 1)"),
        Mistake("another order refused", edit("expected.keys() != found.keys()", "list(expected) != list(found)"),
            cause="Another order of the names is refused, but two dicts may hold the same tensors in different orders.",
            cure="Compare `expected.keys()` with `found.keys()`: they compare like sets.",
            see="a `ValueError` where both sides have the names `a` and `b`"),
        Mistake("another error than ValueError, and no look at the shapes", omit("if expected.keys()")
            .edit("    errors = {}", "    assert expected.keys() == found.keys()\n    errors = {}")
            .omit("if tensor.shape"),
            cause="Other names are refused with another error than a ValueError, as an `assert` does, and different shapes are accepted where NumPy can stretch them.",
            cure="Raise a `ValueError` for different names, and another one for different shapes.",
            see="`AssertionError` where `ValueError` is expected, and an answer for the shapes (2, 2) and (1, 2)"),
        Mistake("an assert instead of a ValueError", omit("if expected.keys()")
            .edit("    errors = {}", "    assert expected.keys() == found.keys()\n    errors = {}")
            .omit("if tensor.shape")
            .edit("        errors[name] =", "        assert tensor.shape == found[name].shape\n        errors[name] ="),
            cause="An AssertionError is raised, as by an `assert`, and a ValueError is asked for.",
            cure="Write `if ...: raise ValueError(...)`, and say in it which tensor it is.",
            see="`AssertionError` where `ValueError` is expected"),
        Mistake("in the order of the other dict", edit("for name, tensor in expected.items():", "for name in found:\n        tensor = expected[name]"),
            cause="The result has the order of `found`.",
            cure="Go over `expected`: its order is the one that is asked for.", see="`the order of the keys differs`"),
        Mistake("paired by position", edit(
                "for name, tensor in expected.items():",
                "for (name, tensor), other in zip(expected.items(), found.values()):",
            )
            .edit("if tensor.shape != found[name].shape", "if tensor.shape != other.shape")
            .edit("max_abs_error(tensor, found[name])", "max_abs_error(tensor, other)"),
            cause="The first tensor is compared with the first, whatever their names, and two dicts may have different orders.",
            cure="Look each one up by its name: `found[name]`.",
            see="large errors for two dicts that hold the same tensors in another order"),
    ),
)
