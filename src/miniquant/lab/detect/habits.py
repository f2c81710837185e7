"""What all results of a function are, and right results are not: numbers of few digits, steps of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..verdict import Call, Facts
from .formulas import quantities_of
from .numbers import array_of
from .seen import Seen, number

Test = Callable[[np.ndarray], bool]
MOST = 3  # whole arguments of which a result may be a sum
SHARE = 0.5  # of the wrong calls whose right results must be otherwise, and of the right values
MANY = 200  # values of a result that are looked at one by one


def of_habits(facts: Facts, calls: Sequence[Call]) -> Seen | None:
    """A property of every result on good input that most right results of the wrong calls do not have."""
    every = facts.comparable
    found = [array_of(call.outcome.result) for call in every if not isinstance(call.outcome.result, bytes)]
    right = [array_of(call.expected.result) for call in calls]
    if len(calls) < 3 or len(found) < len(every):
        return None
    if seen := _of_sums(facts, [*every, *(call for call in facts.fresh if call.comparable)]):
        return seen
    whole = [g for g in found if g is not None and g.dtype.kind in "iuf"]
    endless = any(not np.isfinite(g.astype(float)).all() for g in whole)
    mine = [_finite(g) for g in whole]
    theirs = [_finite(e) for e in right if e is not None and e.dtype.kind in "iuf"]
    if len(mine) < len(every) or len(theirs) < len(calls):
        return None
    floats = any(g.dtype.kind == "f" for g in mine)
    with np.errstate(all="ignore"):
        of_most = list(_of_floats()) if floats else []
        for text, test, rank in [*_of_any(), *of_most, *(_of_small() if floats else ())]:
            if text.endswith("binary digits") and all((g == np.rint(g)).all() for g in mine):
                continue  # of small whole numbers, it is not said better than by their size
            if endless and not text.startswith("no value is"):
                continue  # of values that are infinite or NaN, it is not so
            numbers = [g[~np.isnan(g.astype(float))] for g in whole] if text.startswith("no value is") else mine
            if all(test(g) for g in numbers) and sum(not test(e) for e in theirs) > SHARE * len(theirs):
                if (text, test, rank) in of_most and not _is_rare(test, theirs):
                    continue
                if not _is_so_of(test, facts.fresh, endless=text.startswith("no value is")):
                    continue
                text = f"{text}, {facts.tried}"
                return Seen("results of one kind", text, "Look for the step that makes them so.", rank)
    return None


def _is_rare(test: Test, right: Sequence[np.ndarray]) -> bool:
    """Whether most of the right values, and not only some in each result, lack a property."""
    values = [x.reshape(-1)[i : i + 1] for x in right for i in range(min(x.size, MANY))]
    return sum(not test(value) for value in values) > SHARE * len(values)


def _is_so_of(test: Test, calls: Sequence[Call], *, endless: bool) -> bool:
    """Whether the results of calls by which nothing is found have a property, which infinite ones may have or not."""
    found = [array_of(call.outcome.result) for call in calls if call.comparable]
    known = [g.astype(float) if g.dtype.kind == "O" else g for g in found if g is not None]
    if endless:
        return all(test(g[~np.isnan(g)]) for g in known)
    return all(np.isfinite(g).all() and test(g) for g in known)


def _finite(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):  # a signalling NaN, as bytes read in the wrong place may be
        return np.asarray(x[np.isfinite(x.astype(float))])


def _of_any() -> Iterator[tuple[str, Test, float]]:
    yield "every result is 0", lambda x: not x.any(), 15
    yield "every value of a result is 0 or 1", lambda x: bool(np.isin(x, (0, 1)).all()), 23
    yield "in binary, every value is 0 or only ones", lambda x: bool((x >= 0).all()) and _is_ones(x), 23.5
    yield "no value is negative", lambda x: bool((x >= 0).all()), 33
    yield "no value is positive", lambda x: bool((x <= 0).all()), 33


def _is_ones(x: np.ndarray) -> bool:
    return x.dtype.kind in "iuO" and all(int(v) & (int(v) + 1) == 0 for v in x.flat)


def _of_floats() -> Iterator[tuple[str, Test, float]]:
    """Properties, the narrowest first."""
    yield "every value is a whole number", lambda x: bool((x == np.rint(x)).all()), 24
    for digits in range(1, 7):
        yield f"no value has more than {digits} decimal{'s' * (digits > 1)}", _written(f".{digits}f"), 24
    for digits in range(1, 6):
        yield f"no value has more than {digits} significant digit{'s' * (digits > 1)}", _written(f".{digits}g"), 24
    for bits in range(1, 12):
        yield f"every value is a multiple of 1/{2**bits}", _on_a_grid(bits), 24
    yield (
        "every value is one that float16 can hold",
        lambda x: bool((x.astype("e").astype(float) == x.astype(float)).all()),
        24,
    )
    for bits in range(2, 23):
        yield f"no value has more than {bits} significant binary digits", _in_binary(bits), 25


def _of_small() -> Iterator[tuple[str, Test, float]]:
    yield (
        "no value lies between 0 and 2**-14, where float16 has fewer digits",
        lambda x: bool(((x == 0) | (np.abs(x) >= 2.0**-14)).all()),
        25,
    )


def _written(form: str) -> Test:
    """Whether numbers are those that their texts stand for."""

    def test(x: np.ndarray) -> bool:
        flat = x.reshape(-1)
        kind = flat.dtype.type if flat.dtype.kind == "f" else float  # an integer of 64 bits may not hold the float
        if flat.dtype.name == "float16":
            return False  # its values are shown with so few digits that all of them have few
        return x.size < 2000 and all(kind(float(format(float(value), form))) == value for value in flat)

    return test


def _on_a_grid(bits: int) -> Test:
    return lambda x: bool((x.astype(float) * 2**bits % 1 == 0).all())


def _in_binary(bits: int) -> Test:
    return lambda x: bool((np.frexp(x.astype(float))[0] * 2**bits % 1 == 0).all())


def _of_sums(facts: Facts, every: Sequence[Call]) -> Seen | None:
    """Whole results that are one and the same sum of multiples of the whole arguments, or one of these, or 0."""
    whole = [{f"`{n}`": v for n, v in zip(facts.names, call.case) if type(v) is int} for call in every]
    named = [{w: q for w, q in quantities_of(facts.spec, call.case).items() if type(q) is int} for call in every]
    results = [call.outcome.result for call in every]
    if not all(type(g) is int for g in results):
        return None
    for tables in (whole, named):
        names = list(tables[0])
        if not 0 < len(names) <= MOST or any(list(table) != names for table in tables):
            continue
        for name in names:
            others = [g for g, table in zip(results, tables) if g]
            if len(set(others)) > 2 and all(g in (0, table[name]) for g, table in zip(results, tables)):
                text = f"every result is 0 or {name}, {facts.tried}"
                return Seen("one of two results", text, "Compare it with the docstring.", 23)
        if found := _multiples([list(table.values()) for table in tables], results):
            terms = [
                f"{number(c)} times {name}" if abs(c) != 1 else name if c == 1 else f"-{name}"
                for c, name in zip(found, names)
                if c
            ]
            text = f"the result is {' plus '.join(terms)}, {facts.tried}"
            return Seen("a sum of multiples", text, "Compare it with the docstring.", 20.9)
    return None


def _multiples(rows: Sequence[Sequence[int]], results: Sequence[int]) -> list[int] | None:
    """The whole numbers by which the columns are multiplied in each sum; ``None`` if there are none."""
    small = [(row, g) for row, g in zip(rows, results) if max(abs(x) for x in (*row, g)) < 2**40]
    if len(small) < 2 * len(rows[0]) + 1:
        return None
    matrix = np.array([row for row, _ in small], float)
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        return None
    solved = np.linalg.lstsq(matrix, np.array([g for _, g in small], float), rcond=None)[0]
    found = [int(c) for c in np.rint(solved)]
    right = all(sum(c * x for c, x in zip(found, row)) == g for row, g in zip(rows, results))
    return found if right and any(found) else None
