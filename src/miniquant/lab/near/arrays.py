"""What students do to an array in the wrong place: turned around, moved by one, one row for all, a row left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[Any], Any]


def _kept(function: Step) -> Step:
    """The function for arrays with axes; its result has the dtype of the array."""

    def keeping(x: np.ndarray) -> np.ndarray:
        return np.asarray(function(x)).astype(x.dtype)

    return keeping


def _moved(shift: int, axis: int) -> Step:
    """Each value is that of its neighbour; at the end, the last one is taken twice."""

    def function(x: np.ndarray) -> np.ndarray:
        n = x.shape[axis]
        return np.take(x, np.clip(np.arange(n) - shift, 0, n - 1), axis)

    return function


def _only(at: int, axis: int, rest: int) -> Step:
    """One row or column as it is, and ``rest`` in all others."""

    def function(x: np.ndarray) -> np.ndarray:
        new = np.full_like(x, rest)
        place: list[Any] = [slice(None)] * x.ndim
        place[axis] = at
        new[tuple(place)] = x[tuple(place)]
        return new

    return function


def _without(at: int, axis: int, value: int) -> Step:
    """``value`` in one row or column."""

    def function(x: np.ndarray) -> np.ndarray:
        new = x.copy()
        place: list[Any] = [slice(None)] * x.ndim
        place[axis] = at
        new[tuple(place)] = value
        return new

    return function


def _for_all(function: Callable[..., Any], axis: int | None) -> Step:
    """One number for all values along an axis, or for all values."""
    return _kept(lambda x: np.broadcast_to(function(x, axis=axis, keepdims=True), x.shape))


def _taken(at: int, axis: int) -> Step:
    return lambda x: np.broadcast_to(np.take(x, [at], axis), x.shape).copy()


def _in_blocks(x: np.ndarray) -> np.ndarray:
    """The columns as they are if rows of n are cut in the other way: 0, 2, 4, 1, 3, 5."""
    return np.concatenate([x[..., ::2], x[..., 1::2]], axis=-1)


def _along(function: Callable[..., Any], *values: Any) -> Step:
    return _kept(lambda x: function(x, *values))


def _cut(axis: int, part: slice) -> Step:
    return lambda x: x[part] if axis == 0 else x[..., part]


# the lines of an array: (name, axis, one of them, all of them, along them, one for each, what can move)
LINES = (
    ("axis0", 0, "row", "the rows", "down the rows", "each column", "the rows"),
    ("axis8", -1, "value in each row", "each row", "along each row", "each row", "the values of each row"),
)
PLACES = (("first", 0, slice(1, None)), ("last", -1, slice(None, -1)))
NUMBERS = (("mean", np.mean), ("largest", np.max), ("smallest", np.min), ("sum", np.sum))
OF_ONE_AXIS = (
    ("the values of each row moved", "the values moved"),
    ("value in each row of", "value of"),
    ("value in each row ", "value "),
    ("sorts each column of", "sorts"),
    ("sorts each row of", "sorts"),
    ("around each row of", "around the values of"),
    (" along each row", ""),
    ("for each row of", "for all of"),
    ("for each column of", "for all of"),
    ("the rows", "the values"),
    (" down the values", ""),
    ("first row", "first value"),
    ("last row", "last value"),
)
OF_MANY_AXES = (
    ("the rows moved", "the parts along axis 0 moved"),
    ("the values of each row moved", "the values along axis -1 moved"),
    ("value in each row", "value along axis -1"),
    (" along each row", " along axis -1"),
    ("for each row of", "along axis -1 of"),
    ("each row of", "the values along axis -1 of"),
    ("for each column of", "along axis 0 of"),
    ("sorts each column of", "sorts the values along axis 0 of"),
    (" down the rows", " along axis 0"),
    ("the rows of", "the parts along axis 0 of"),
    ("first row of", "first part along axis 0 of"),
    ("last row of", "last part along axis 0 of"),
)
Steps = dict[str, tuple[Step, str, float]]  # for each step its function, its words, and how unlikely it is


def _of_lines(name: str, axis: int, line: str, lines: str, along: str, each: str, moved: str) -> Steps:
    """The steps for one axis."""
    table: Steps = {}
    for word, at, part in PLACES:
        one = f"the {word} {line} of {{}}"
        table[f"without_{word}"] = _cut(axis, part), f"leaves out {one}", 0.1
        table[f"{word}_for_all"] = _taken(at, axis), f"takes {one} for all", 0.2
        table[f"only_{word}"] = _only(at, axis, 1), f"uses only {one}, and 1 for the others", 0.6
        table[f"zero_{word}"] = _without(at, axis, 0), f"leaves out {one}, or takes 0 for it", 0.5
        table[f"one_{word}"] = _without(at, axis, 1), f"takes 1 for {one}", 0.5
    for word, end, shift in (("before", "end", 1), ("after", "beginning", -1)):
        words = f"uses {{}} with {moved} moved by one place towards the {end}"
        table[f"rolled_{word}"] = _along(np.roll, shift, axis), words, 0.45
        table[f"moved_{word}"] = _moved(shift, axis), words, 0.45
    for word, function in NUMBERS:
        table[word] = _for_all(function, axis), f"takes one number for {each} of {{}}: the {word}", 0.5
    table["turned"] = _along(np.flip, axis), f"turns around {lines} of {{}}", 0.2
    table["sorted"] = _along(np.sort, axis), f"sorts {'each column' if axis == 0 else lines} of {{}}", 0.4
    table["so_far"] = _along(np.maximum.accumulate, axis), f"takes the largest so far {along} of {{}}", 0.4
    table["summed"] = _along(np.cumsum, axis), f"adds up the values of {{}} {along}", 0.6
    return {f"{name}_{key}": step for key, step in table.items()}


def _of_all() -> Steps:
    """The steps that know no axis."""
    table: Steps = {
        f"all_{word}": (_for_all(function, None), f"takes one number for all of {{}}: the {word}", 0.4)
        for word, function in NUMBERS
    }
    table["first_of_all"] = _along(lambda x: np.full_like(x, x.flat[0])), "takes the first value of {} for all", 0.2
    table["last_of_all"] = _along(lambda x: np.full_like(x, x.flat[-1])), "takes the last value of {} for all", 0.2
    table["every_second"] = _along(lambda x: x[..., ::2]), "takes every second value of {}", 0.5
    table["in_blocks"] = _in_blocks, "takes first the values of {} in even places, then those in odd places", 0.6
    table["ones"] = np.ones_like, "takes 1 in place of every value of {}", 0.5
    table["zeros"] = np.zeros_like, "takes 0 in place of every value of {}", 0.5
    table["transposed"] = _along(lambda x: x.T if x.ndim == 2 else x), "uses {} transposed, in one place at least", 0.3
    table["by_columns"] = _by_columns, "reads {} by columns in place of rows", 0.5
    table["minus"] = _along(np.negative), "changes the sign of {}", 0.4
    table["cut"] = _along(np.trunc), "cuts off the decimals of {}", 0.5
    table["whole"] = _along(np.rint), "rounds {} to whole numbers", 0.5
    table["in_one"] = _along(np.clip, -1, 1), "clips {} to -1 … 1", 0.6
    table["negative"] = _along(np.minimum, 0), "puts 0 for positive values of {}", 0.5
    return table


def _by_columns(x: np.ndarray) -> np.ndarray:
    return x.T.reshape(x.shape) if x.ndim == 2 else x


def _is_taken(x: Any) -> bool:
    """Whether a step changes a value: an array of numbers with an axis; everything else stays as it is."""
    return isinstance(x, np.ndarray) and bool(x.ndim and x.size) and x.dtype.kind in "iuf"


def _applied(function: Step) -> Step:
    """The step for what it changes."""
    return lambda x: np.asarray(function(x)) if _is_taken(x) else x


def noting(step: Step, axes: set[int]) -> Step:
    """The same step, which also puts down how many axes the arrays have that it changes."""

    def noted(x: Any) -> Any:
        if _is_taken(x):
            axes.add(x.ndim)
        return step(x)

    return noted


def of_values(words: str) -> str:
    """The words for an array with one axis, in which a row is a value.

    >>> of_values("sorts each row of `w`"), of_values("leaves out the last row of `w`")
    ('sorts `w`', 'leaves out the last value of `w`')
    """
    return _replaced(words, OF_ONE_AXIS)


def of_parts(words: str) -> str:
    """The words for an array with three axes or more, which has more than one kind of row.

    >>> of_parts("leaves out the last value in each row of `w`")
    'leaves out the last value along axis -1 of `w`'
    """
    return _replaced(words, OF_MANY_AXES)


def _replaced(words: str, table: tuple[tuple[str, str], ...]) -> str:
    for old, new in table:
        words = words.replace(old, new)
    return words


def _of_one_axis() -> Steps:
    """The steps for arrays with one axis, in which a row is a value."""
    found = {name: step for name, step in ARRAY_STEPS.items() if not name.startswith("axis8")}
    return {name: (function, of_values(words), far) for name, (function, words, far) in found.items()}


ARRAY_STEPS: Steps = {
    name: (_applied(function), words, far)
    for table in (*(_of_lines(*line) for line in LINES), _of_all())
    for name, (function, words, far) in table.items()
}
ONE_AXIS_STEPS = _of_one_axis()
