"""Two dicts of arrays, compared by name."""

import numpy as np

from ...lab import Exercise, Mistake, edit, omit
from ..shared import observed
from .max_abs_error import max_abs_error
from .max_abs_error import oracle as worst_by_hand
from .toys import NAN, array


def tensor_errors(expected, found):
    """The largest absolute error of every tensor.

    expected, found: dicts, name -> array   ->   dict, name -> float, in the order of `expected`

    Raises ValueError if the two dicts have different names, or a name has different shapes.
    """
    if expected.keys() != found.keys():
        raise ValueError(f"these names stand on one side only: {sorted(expected.keys() ^ found.keys())}")
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
            raise ValueError(f"{name!r} stands on one side only")
    errors = {}
    for name in expected:
        if expected[name].shape != found[name].shape:
            raise ValueError(f"{name!r} has two shapes: {expected[name].shape} and {found[name].shape}")
        errors[name] = worst_by_hand(expected[name], found[name])
    return errors


def cases(random):
    """Two dicts that agree, in the same order and in another; missing names; other shapes; a NaN."""
    a, b, c = array(1, 2, 3, 4), array([1, 2], [3, 4]), array(0, 0.5)
    names = ["tok_emb.weight", "ln_f.weight", "ln_f.bias"]
    one, two = ({n: (random.integers(-80, 80, (4, 8)) / 8).astype(np.float32) for n in names} for _ in range(2))
    return [
        ({"a": a}, {"a": a + c.max()}),
        ({"a": a, "b": b}, {"a": a, "b": b - 2}),
        ({"b": b, "a": b * 2}, {"a": b * 2, "b": b}),
        ({"a": a, "b": b}, {"a": a}),
        ({"a": a}, {"a": a, "b": b}),
        ({"a": a}, {}),
        ({"a": b}, {"a": b[:1]}),
        ({"a": a[None, :]}, {"a": a[:, None]}),
        ({"a": a, "b": c}, {"a": a, "b": array(0, NAN)}),
        (one, two),
    ]


EXERCISE = Exercise(
    goal="Compare two dicts of arrays name by name, and refuse with a ValueError if a name or a shape differs.",
    reference=tensor_errors, oracle=oracle, cases=cases, minutes=8, difficulty="core", observe=observed.values,
    hints=(
        "Before any arithmetic, compare `expected.keys()` with `found.keys()`: `!=` works on keys as on sets.",
        "For each name, compare the two `.shape`s and `raise ValueError(...)` if they differ; then call your `max_abs_error`.",
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
            cause="Only the names of `expected` are looked up, so a tensor that should not be there goes unseen.",
            cure="Compare the two sets of names in both directions.",
            see="an answer where `found` has a name too many"),
        Mistake("neither names nor shapes compared", omit("if expected.keys()").omit("if tensor.shape"),
            cause="A missing name ends in a `KeyError`, an extra one goes unseen, and NumPy stretches shapes that do not match.",
            cure="Before you subtract, compare the names, then each pair of shapes, and raise a `ValueError` that says which.",
            see="`KeyError` where `ValueError` is expected"),
        Mistake("shapes not compared", omit("if tensor.shape"),
            cause="NumPy stretched a row of shape (1, 2) to (2, 2) without a word, and compared it twice.",
            cure="Raise `ValueError` if the two shapes differ, before you subtract.",
            see="an answer where the shapes are (2, 2) and (1, 2)"),
        Mistake("sizes compared instead of shapes", edit("if tensor.shape != found[name].shape", "if tensor.size != found[name].size").edit(
                "max_abs_error(tensor, found[name])", "max_abs_error(tensor.ravel(), found[name].ravel())"
            ),
            cause="Four numbers in a row and four in a column have the same size, and are not the same tensor.",
            cure="Compare `.shape`, not `.size`, and do not flatten.",
            see="`0.0` where the shapes are (1, 4) and (4, 1)"),
        Mistake("another order refused", edit("expected.keys() != found.keys()", "list(expected) != list(found)"),
            cause="The names were compared as lists, but two dicts may hold the same tensors in different orders.",
            cure="Compare `expected.keys()` with `found.keys()`: they compare like sets.",
            see="a `ValueError` where both sides have the names `a` and `b`"),
        Mistake("an assert, and no look at the shapes", omit("if expected.keys()")
            .edit("    errors = {}", "    assert expected.keys() == found.keys()\n    errors = {}")
            .omit("if tensor.shape"),
            cause="Python leaves out every `assert` when it runs with `-O`, and nobody looks at the shapes.",
            cure="Raise a `ValueError` for different names, and another one for different shapes.",
            see="`AssertionError` where `ValueError` is expected, and an answer for the shapes (2, 2) and (1, 2)"),
        Mistake("an assert instead of a ValueError", omit("if expected.keys()")
            .edit("    errors = {}", "    assert expected.keys() == found.keys()\n    errors = {}")
            .omit("if tensor.shape")
            .edit("        errors[name] =", "        assert tensor.shape == found[name].shape\n        errors[name] ="),
            cause="Python leaves out every `assert` when it runs with `-O`, and then nothing is refused.",
            cure="Write `if ...: raise ValueError(...)`, and say in it which tensor it is.",
            see="`AssertionError` where `ValueError` is expected"),
        Mistake("paired by position", edit(
                "for name, tensor in expected.items():",
                "for (name, tensor), other in zip(expected.items(), found.values()):",
            )
            .edit("if tensor.shape != found[name].shape", "if tensor.shape != other.shape")
            .edit("max_abs_error(tensor, found[name])", "max_abs_error(tensor, other)"),
            cause="Two dicts with the same names may hold them in different orders, and `zip` pairs what stands side by side.",
            cure="Look each one up by its name: `found[name]`.",
            see="large errors for two dicts that hold the same tensors in another order"),
    ),
)
