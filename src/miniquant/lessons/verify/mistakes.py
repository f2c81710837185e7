"""What students write instead in lab 08 when they compare arrays, and what the checks then say."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...lab.spec import Mistake

Arrays = dict[str, np.ndarray]


def _float64(*arrays: Any) -> list[np.ndarray]:
    return [np.asarray(a, np.float64) for a in arrays]


# ---- max_abs_error ---------------------------------------------------------------------------------------------------


def _no_abs(expected: np.ndarray, found: np.ndarray) -> float:
    a, b = _float64(expected, found)
    return float((a - b).max())


def _abs_of_max(expected: np.ndarray, found: np.ndarray) -> float:
    return abs(_no_abs(expected, found))


def _maxima(expected: np.ndarray, found: np.ndarray) -> float:
    a, b = _float64(expected, found)
    return float(abs(a.max() - b.max()))


def _mean(expected: np.ndarray, found: np.ndarray) -> float:
    a, b = _float64(expected, found)
    return float(np.abs(a - b).mean())


def _nanmax(expected: np.ndarray, found: np.ndarray) -> float:
    worst = 0.0
    for gap in np.abs(np.subtract(*_float64(expected, found))).ravel().tolist():
        if gap > worst:
            worst = gap
    return worst


def _norm(expected: np.ndarray, found: np.ndarray) -> float:
    a, b = _float64(expected, found)
    return float(np.sqrt(((a - b) ** 2).sum()))


def _all_of_them(expected: np.ndarray, found: np.ndarray) -> np.ndarray:
    return np.abs(expected - found)


def _relative(expected: np.ndarray, found: np.ndarray) -> float:
    a, b = _float64(expected, found)
    with np.errstate(all="ignore"):
        return float((np.abs(a - b) / np.abs(a)).max())


def _overflow(expected: np.ndarray, found: np.ndarray) -> float:
    return float(np.abs(np.asarray(expected) - np.asarray(found)).max())


MAX_ABS_ERROR = (
    Mistake(
        "no absolute value",
        _no_abs,
        "A negative difference, however large, never is the maximum.",
        "Take `np.abs` of the differences before you take the maximum.",
        "zero or a negative number where a weight came back too large",
    ),
    Mistake(
        "absolute value of the maximum",
        _abs_of_max,
        "The maximum was taken over signed differences, so the most negative one was lost before `abs` saw it.",
        "Swap the two: `np.abs(...)` inside, `.max()` outside.",
        "an answer that is too small whenever the worst difference is negative",
    ),
    Mistake(
        "difference of the maxima",
        _maxima,
        "Each array was reduced to its own largest value, and these two need not stand at the same place.",
        "Subtract element by element first, then reduce.",
        "zero for two arrays that hold the same numbers in another order",
    ),
    Mistake(
        "mean instead of maximum",
        _mean,
        "A mean spreads one bad weight over all the good ones.",
        "Use `.max()`: the limit is for the worst element.",
        "an answer that shrinks as the tensor grows",
    ),
    Mistake(
        "length of the difference",
        _norm,
        "All the differences were squared and added up, as for the length of a vector.",
        "Take the largest of them: `np.abs(...).max()`.",
        "an answer that grows with the size of the tensor",
    ),
    Mistake(
        "no maximum",
        _all_of_them,
        "Every difference was returned, and the question was for the worst one.",
        "Add `.max()`.",
        "`the type differs`, with an array on your side",
    ),
    Mistake(
        "NaN ignored",
        _nanmax,
        "`np.nanmax`, or a loop with `if gap > worst`, steps over NaN, because NaN is not greater than anything.",
        "Use `.max()` of the array, which hands a NaN on.",
        "a number where `nan` is expected",
    ),
    Mistake(
        "relative error",
        _relative,
        "The difference was divided by the expected value.",
        "The assignment's limits are absolute: leave out the division.",
        "`inf` or `nan` where the expected value is 0",
    ),
    Mistake(
        "subtracted in the arrays' own type",
        _overflow,
        "Two int8 numbers were subtracted as int8, and 100 - (-100) does not fit: it wraps around to -56.",
        "Convert both to float64 before you subtract.",
        "`56` where `200.0` is expected",
    ),
)


# ---- tensor_errors ---------------------------------------------------------------------------------------------------


def _worst(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(np.subtract(*_float64(a, b))).max())


def _asserted(expected: Arrays, found: Arrays) -> dict[str, float]:
    assert expected.keys() == found.keys()
    assert all(expected[n].shape == found[n].shape for n in expected)
    return {n: _worst(expected[n], found[n]) for n in expected}


def _names_asserted(expected: Arrays, found: Arrays) -> dict[str, float]:
    assert expected.keys() == found.keys()
    return {n: _worst(expected[n], found[n]) for n in expected}


def _same_order(expected: Arrays, found: Arrays) -> dict[str, float]:
    if list(expected) != list(found):
        raise ValueError("order")
    _refuse_shapes(expected, found)
    return {n: _worst(expected[n], found[n]) for n in expected}


def _refuse_names(expected: Arrays, found: Arrays) -> None:
    if expected.keys() != found.keys():
        raise ValueError("names")


def _refuse_shapes(expected: Arrays, found: Arrays) -> None:
    if any(expected[n].shape != found[n].shape for n in expected):
        raise ValueError("shapes")


def _common(expected: Arrays, found: Arrays) -> dict[str, float]:
    names = [n for n in expected if n in found]
    _refuse_shapes({n: expected[n] for n in names}, found)
    return {n: _worst(expected[n], found[n]) for n in names}


def _extra_accepted(expected: Arrays, found: Arrays) -> dict[str, float]:
    if any(name not in found for name in expected):
        raise ValueError("names")
    return _common(expected, found)


def _values_only(expected: Arrays, found: Arrays) -> dict[str, float]:
    return {n: _worst(expected[n], found[n]) for n in expected}


def _checked(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        raise ValueError("shapes")
    return _worst(a, b)


def _broadcast(expected: Arrays, found: Arrays) -> dict[str, float]:
    _refuse_names(expected, found)
    return {n: _worst(expected[n], found[n]) for n in expected}


def _zipped(expected: Arrays, found: Arrays) -> dict[str, float]:
    _refuse_names(expected, found)
    return {n: _checked(a, b) for (n, a), b in zip(expected.items(), found.values())}


def _sizes_only(expected: Arrays, found: Arrays) -> dict[str, float]:
    _refuse_names(expected, found)
    if any(expected[n].size != found[n].size for n in expected):
        raise ValueError("sizes")
    return {n: _worst(expected[n].ravel(), found[n].ravel()) for n in expected}


TENSOR_ERRORS = (
    Mistake(
        "only the common names",
        _common,
        "A name that stands on one side only is skipped, so a lost tensor has no error.",
        "Raise `ValueError` if `expected.keys() != found.keys()`.",
        "an answer, even an empty one, where the input must be refused because a name is missing",
    ),
    Mistake(
        "an extra tensor is accepted",
        _extra_accepted,
        "Only the names of `expected` are looked up, so a tensor that should not be there goes unseen.",
        "Compare the two sets of names in both directions.",
        "an answer where `found` has a name too many",
    ),
    Mistake(
        "neither names nor shapes compared",
        _values_only,
        "A missing name ends in a `KeyError`, an extra one goes unseen, and NumPy stretches shapes that do not match.",
        "Before you subtract, compare the names, then each pair of shapes, and raise a `ValueError` that says which.",
        "`KeyError` where `ValueError` is expected",
    ),
    Mistake(
        "shapes not compared",
        _broadcast,
        "NumPy stretched a row of shape (1, 2) to (2, 2) without a word, and compared it twice.",
        "Raise `ValueError` if the two shapes differ, before you subtract.",
        "an answer where the shapes are (2, 2) and (1, 2)",
    ),
    Mistake(
        "sizes compared instead of shapes",
        _sizes_only,
        "Four numbers in a row and four in a column have the same size, and are not the same tensor.",
        "Compare `.shape`, not `.size`, and do not flatten.",
        "`0.0` where the shapes are (1, 4) and (4, 1)",
    ),
    Mistake(
        "another order refused",
        _same_order,
        "The names were compared as lists, but two dicts may hold the same tensors in different orders.",
        "Compare `expected.keys()` with `found.keys()`: they compare like sets.",
        "a `ValueError` where both sides have the names `a` and `b`",
    ),
    Mistake(
        "an assert, and no look at the shapes",
        _names_asserted,
        "Python leaves out every `assert` when it runs with `-O`, and nobody looks at the shapes.",
        "Raise a `ValueError` for different names, and another one for different shapes.",
        "`AssertionError` where `ValueError` is expected, and an answer for the shapes (2, 2) and (1, 2)",
    ),
    Mistake(
        "an assert instead of a ValueError",
        _asserted,
        "Python leaves out every `assert` when it runs with `-O`, and then nothing is refused.",
        "Write `if ...: raise ValueError(...)`, and say in it which tensor it is.",
        "`AssertionError` where `ValueError` is expected",
    ),
    Mistake(
        "paired by position",
        _zipped,
        "Two dicts with the same names may hold them in different orders, and `zip` pairs what stands side by side.",
        "Look each one up by its name: `found[name]`.",
        "large errors for two dicts that hold the same tensors in another order",
    ),
)


# ---- beyond_limit ----------------------------------------------------------------------------------------------------


def _greater(errors: dict[str, float], limit: float) -> list[str]:
    return [n for n, e in errors.items() if e > limit]


def _strict(errors: dict[str, float], limit: float) -> list[str]:
    return [n for n, e in errors.items() if not e < limit]


def _within(errors: dict[str, float], limit: float) -> list[str]:
    return [n for n, e in errors.items() if e <= limit]


def _sorted(errors: dict[str, float], limit: float) -> list[str]:
    return sorted(n for n, e in errors.items() if not e <= limit)


def _verdict(errors: dict[str, float], limit: float) -> bool:
    return all(e <= limit for e in errors.values())


BEYOND_LIMIT = (
    Mistake(
        "NaN passes",
        _greater,
        "`nan > limit` is False, so a layer full of NaN is reported as fine.",
        "Turn the question around: keep the name when `not error <= limit`.",
        "a missing name where the error is `nan`",
    ),
    Mistake(
        "the limit itself is refused",
        _strict,
        "An error equal to the limit counts as beyond it here, and the assignment says at most.",
        "Use `<=` for what is within.",
        "a name too many where the error equals the limit",
    ),
    Mistake(
        "the names that are within",
        _within,
        "These are the tensors that pass.",
        "Put `not` in front of the comparison.",
        "exactly the names that should not be there",
    ),
    Mistake(
        "sorted by name",
        _sorted,
        "The order of computation is lost, and with it the first layer that breaks.",
        "Go over `errors.items()` and keep its order.",
        "the right names in alphabetical order",
    ),
    Mistake(
        "a verdict instead of names",
        _verdict,
        "True or False says that something failed, but not what.",
        "Return the list of names; an empty list means that all is well.",
        "`the type differs`, with `bool` on your side",
    ),
)
