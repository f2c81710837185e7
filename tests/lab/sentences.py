"""A slow and independent check of what a report says: each sentence is computed again from the results of all cases.

Nothing of the detectors is used here. A sentence that is not known is left alone; a known one must be true.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sentences_of_calls import PATTERNS, of_code

from miniquant.lab.attempt import attempt, cases_of, expected_of
from miniquant.lab.verdict import problem

KINDS = {
    "cases": lambda facts: facts,
    "inputs": lambda facts: facts,
    "good inputs": lambda facts: [one for one in facts if not one.refused],
    "bad inputs": lambda facts: [one for one in facts if one.refused],
}


@dataclass(frozen=True)
class One:
    """One call: its arguments by name, what is right, what came, and whether that is right."""

    number: int
    case: dict[str, Any]
    right: Any
    mine: Any
    error: BaseException | None
    refused: bool
    wrong: bool
    traits: dict[str, Any]
    tolerance: float


def facts_of(spec, function, names):
    """All calls of a function, made again."""
    found = []
    for number, case in enumerate(cases_of(spec)):
        outcome, expected = attempt(spec, function, case, 5.0), expected_of(spec)[number]
        traits = dict(spec.traits(*case)) if spec.traits else {}
        wrong = problem(spec, case, outcome, expected) is not None
        found.append(
            One(
                number,
                dict(zip(names, case)),
                expected.result,
                outcome.result,
                outcome.error,
                expected.error is not None,
                wrong,
                traits,
                spec.tolerance,
            )
        )
    return found


BEGINS = "[A-Z]"  # what a sentence begins with


def sentences(text: str) -> list[str]:
    """The sentences of a report's part; a point inside a number or between backticks ends none."""
    pieces, hidden = re.findall(r"`[^`]*`", text), re.sub(r"`[^`]*`", "``", text)
    found = []
    for part in re.split(rf"(?<=\.) (?={BEGINS})", hidden):
        while "``" in part:
            part = part.replace("``", pieces.pop(0), 1)
        found.append(part.strip())
    return [part for part in found if part]


def claims_of(report) -> list[tuple[str, bool]]:
    """Every sentence of a report, and whether what it says can be computed again here."""
    known = []
    for sentence in sentences(f"{report.cause} {report.also}"):
        claim = COUNTS.split(sentence)[0]
        code = any(re.match(pattern, sentence, re.DOTALL) for pattern, _ in PATTERNS)
        known.append((sentence, code or relation(claim) is not None))
    return known


def mistakes_of(report, facts: list[One], spec=None, function=None) -> Iterator[str]:
    """What is not true of a report."""
    head = re.match(r"wrong on (\d+) of (\d+) cases", report.what)
    wrong = [one for one in facts if one.wrong]
    if head and (int(head[1]), int(head[2])) != (len(wrong), len(facts)):
        yield f"{report.what}: it is {len(wrong)} of {len(facts)}"
    for sentence in sentences(f"{report.cause} {report.also}"):
        if function is not None and of_code(sentence, facts, spec, function) is False:
            yield f"{sentence}: it is not so"
        yield from _of_sentence(sentence, facts)


def _is_so(test: Callable[[One], bool], one: One) -> bool:
    """Whether a relation holds; of a result of another kind it does not."""
    try:
        return bool(test(one))
    except (TypeError, ValueError, AttributeError, OverflowError):
        return False


COUNTS = re.compile(
    r", on (?:(all|at least) )?(\d+)(?: of (?:the )?(\d+))?( wrong)? (cases|good inputs|bad inputs)(?=[.;:]|$)"
)


def _of_sentence(sentence: str, facts: list[One]) -> Iterator[str]:
    counts = re.search(
        r", on (?:(all|at least) )?(\d+)(?: of (?:the )?(\d+))?( wrong)? (cases|good inputs|bad inputs)", sentence
    )
    kind = counts[5] if counts else "cases"
    among = KINDS[kind](facts)
    wrong = [one for one in among if one.wrong]
    if counts:
        n, of = int(counts[2]), int(counts[3] or counts[2])
        if counts[4] and of != len(wrong):
            yield f"{sentence}: {len(wrong)} of the {kind} are wrong"
        if not counts[4] and of != len(among):
            yield f"{sentence}: there are {len(among)} {kind}"
        if n > len(wrong):
            yield f"{sentence}: only {len(wrong)} of the {kind} are wrong"
        claim = sentence[: counts.start()]
        test = relation(claim)
        if test is not None:
            holds = [one for one in wrong if not one.error and _is_so(test, one)]
            if len(holds) < n:
                yield f"{sentence}: it is so on {len(holds)} only"
    yield from _of_places(sentence, facts)


PLACE = re.compile(
    r"[Oo]f the (bad inputs|good inputs|inputs) tried, "
    r"(exactly those|on all those|all but those|nearly all of those)"
    r" where (.+?)(?: (are wrong|show this|raise an error|have a wrong result)|\.$|$)"
)


def _of_places(sentence: str, facts: list[One]) -> Iterator[str]:
    for found in PLACE.finditer(sentence):
        among = KINDS[found[1]](facts)
        if "for which" in sentence:
            return
        test = condition(found[3], among)
        if test is None:
            continue
        inside = {one.number for one in among if test(one)}
        wrong = {one.number for one in among if one.wrong}
        if found[2] == "exactly those":
            true = inside == wrong if found[4] == "are wrong" else inside <= wrong
        elif found[2] == "all but those":
            others = {one.number for one in among} - inside
            true = others == wrong if found[4] == "are wrong" else others <= wrong
        elif found[2] == "on all those":
            true = inside <= wrong
        else:
            true = wrong <= inside
        if not true:
            yield f"{sentence}: it is so for {sorted(inside)}, and {sorted(wrong)} are wrong"


def condition(words: str, among: list[One]) -> Callable[[One], bool] | None:
    """A condition on inputs; ``None`` if it is not known here."""
    if all(words in one.traits for one in among):
        return lambda one: bool(one.traits[words])
    if ", or " in words:
        parts = [condition(part, among) for part in words.split(", or ")]
        return None if None in parts else lambda one: any(part(one) for part in parts)
    if found := re.fullmatch(r"`(\w+)` (is|has) (.+)", words):
        name, verb, rest = found[1], found[2], found[3]
        test = _of_argument(verb, rest)
        return None if test is None else lambda one: bool(test(one.case.get(name)))
    if found := re.fullmatch(r"the right result is (.+)", words):
        test = _of_argument("is", found[1])
        return None if test is None else lambda one: bool(test(one.right))
    return None


def _part(one: One, name: str) -> One:
    """One part of both results, by its number or name."""
    pick = (lambda x: x[int(name.split()[1])]) if name.lower().startswith("item ") else (lambda x: getattr(x, name))
    named = one.right._fields.index(name) if hasattr(one.right, "_fields") and name in one.right._fields else None
    mine = one.mine[named] if named is not None else pick(one.mine)
    return replace(one, right=pick(one.right), mine=mine)


def _number(words: str) -> float | None:
    found = re.fullmatch(r"(-?\d+)(?:\*\*(-?\d+))?", words)
    return None if not found else int(found[1]) ** int(found[2]) if found[2] else int(found[1])


def _of_argument(verb: str, rest: str) -> Callable[[Any], Any] | None:
    real = (int, float, np.number)
    if verb == "is":
        if rest == "empty":
            return lambda x: (
                x is not None and np.size(x) == 0 if isinstance(x, np.ndarray) else hasattr(x, "__len__") and not len(x)
            )
        if rest == "None":
            return lambda x: x is None
        if rest == "negative":
            return lambda x: isinstance(x, real) and x < 0
        if (value := _number(rest)) is not None:
            return lambda x: isinstance(x, real) and not isinstance(x, bool) and x == value
        if (found := re.fullmatch(r"(\S+) or (more|less)", rest)) and (value := _number(found[1])) is not None:
            more = found[2] == "more"
            return lambda x: isinstance(x, real) and (x >= value if more else x <= value)
        if (found := re.fullmatch(r"less than (\S+)", rest)) and (value := _number(found[1])) is not None:
            return lambda x: isinstance(x, real) and x < value
        return None
    table = {
        "one value": lambda x: isinstance(x, np.ndarray) and x.size == 1,
        "more than one value": lambda x: isinstance(x, np.ndarray) and x.size > 1,
        "a 0": lambda x: isinstance(x, np.ndarray) and x.size > 0 and not x.all(),
        "negative values": lambda x: isinstance(x, np.ndarray) and bool((x < 0).any()),
        "characters outside ASCII": lambda x: isinstance(x, str) and any(ord(c) > 127 for c in x),
        "duplicates": lambda x: isinstance(x, list | tuple) and len({repr(i) for i in x}) < len(x),
        "more than one key": lambda x: isinstance(x, dict) and len(x) > 1,
    }
    if found := re.fullmatch(r"(\d+) bytes or (more|fewer)", rest):
        n, more = int(found[1]), found[2] == "more"
        return lambda x: len(x) >= n if more else len(x) <= n
    return table.get(rest)


def relation(claim: str) -> Callable[[One], bool] | None:
    """A relation of the wrong result to the right one; ``None`` if it is not known here."""
    claim = re.sub("^but for the last digits, ", "", claim, flags=re.IGNORECASE)  # a claim is compared so, too
    if part := re.fullmatch(r"(?:only )?in (item \d+|[a-z]\w*), (.+)", claim, re.IGNORECASE | re.DOTALL):
        inner = relation(part[2])
        return None if inner is None else lambda one: _is_so(inner, _part(one, part[1]))
    for pattern, make in RELATIONS:
        if found := re.fullmatch(pattern, claim, re.IGNORECASE | re.DOTALL):
            return make(*found.groups())
    return None


def _array(x: Any) -> np.ndarray:
    x = x.detach().float().numpy() if hasattr(x, "detach") else list(x.values()) if isinstance(x, dict) else x
    return np.asarray(x, dtype=float)


def _near(a: Any, b: Any, rtol: float = 3e-4, atol: float = 0.0) -> bool:
    a, b = _array(a), _array(b)
    with np.errstate(all="ignore"):
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True))


def _times(factor: str, side: str) -> Callable[[One], bool]:
    f = float(factor)
    return lambda one: _near(one.mine, _array(one.right) * (f if side == "large" else 1 / f), 2e-3)


def _off(side: str, far: str) -> Callable[[One], bool]:
    sign = 1 if side == "large" else -1
    return lambda one: _near(
        _array(one.mine) - _array(one.right), np.full_like(_array(one.right), sign * float(far)), 1e-3
    )


def _length(one: One) -> int:
    return len(one.mine) - len(one.right)


def _missing(one: One) -> set[Any]:
    return set(one.right) - set(one.mine)


def _extra(one: One) -> set[Any]:
    return set(one.mine) - set(one.right)


def _wrong_in(one: One) -> np.ndarray:
    e, g = _array(one.right), _array(one.mine)
    return ~((e == g) | (np.isnan(e) & np.isnan(g)) | (np.abs(e - g) <= one.tolerance))


def _only_set(which: Callable[[np.ndarray], np.ndarray]) -> Callable[[], Callable[[One], bool]]:
    def make() -> Callable[[One], bool]:
        return lambda one: bool((_wrong_in(one) == which(_array(one.right))).all())

    return make


def _first(e: np.ndarray) -> np.ndarray:
    mask = np.zeros(e.shape, bool)
    mask.reshape(-1)[0] = True
    return mask


def _last(e: np.ndarray) -> np.ndarray:
    mask = np.zeros(e.shape, bool)
    mask.reshape(-1)[-1] = True
    return mask


def _rounded(x: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return _array(x).astype(np.float16)


def _found_at(one: One, which: np.ndarray, value: str | None) -> bool:
    """Whether exactly these values are wrong, and each of them is what a sentence says, if that is a number."""
    mine = _array(one.mine)[_wrong_in(one)]
    number = bool(value) and re.fullmatch(r"-?[\d.]+", str(value))
    return bool((_wrong_in(one) == which).all()) and (not number or _near(mine, np.full(mine.shape, float(str(value)))))


def _type_name(value: Any) -> str:
    """The type of a value as a report names it."""
    if isinstance(value, tuple):
        return "tuple"
    name = type(value).__name__
    return {"ndarray": "numpy array", "NoneType": "None", "Tensor": "torch tensor"}.get(name, name)


def _bare(value: Any) -> Any:
    """A value as plain lists and numbers, whatever holds them."""
    value = value.detach().numpy() if hasattr(value, "detach") else value
    value = value.tolist() if hasattr(value, "tolist") else value
    value = value.encode() if isinstance(value, str) else value
    return [_bare(part) for part in value] if isinstance(value, list | tuple | bytes | range) else value


def _alike(a: Any, b: Any) -> bool:
    """Whether two values hold the same; a NaN is like a NaN, and -0.0 like 0.0."""
    return _bare(a) == _bare(b) or repr(_bare(a)) == repr(_bare(b))


def _of_types(mine: str, right: str) -> Callable[[One], bool]:
    return lambda x: (_type_name(x.mine), _type_name(x.right)) == (mine, right)


def _right_of_types(mine: str, right: str) -> Callable[[One], bool]:
    def test(x: One) -> bool:
        return _of_types(mine, right)(x) and (_bare(x.mine) == _bare(x.right) or _near(x.mine, x.right, 0, x.tolerance))

    return test


def _items(value: Any) -> Any:
    return value if isinstance(value, str | bytes) else _bare(value)


def _prefix(x: One) -> bool:
    mine, right = _items(x.mine), _items(x.right)
    return len(mine) > len(right) and mine[: len(right)] == right


def _farthest(far: str, *more: str) -> Callable[[One], bool]:
    return lambda x: float(np.nanmax(np.abs(_array(x.mine) - _array(x.right)))) <= float(far) * 1.001


def _sided(side: str) -> Callable[[One], bool]:
    def test(x: One) -> bool:
        off = _array(x.mine) - _array(x.right)
        return bool(((off >= 0) if side == "large" else (off <= 0)).all() and off.any())

    return test


def _set_wrong(which: Callable[[np.ndarray], np.ndarray]) -> Callable[[], Callable[[One], bool]]:
    """Exactly these places are wrong."""
    return lambda: lambda x: bool((_wrong_in(x) == which(_array(x.right))).all())


def _one_row(which: int, axis: int) -> Callable[[np.ndarray], np.ndarray]:
    def mask(e: np.ndarray) -> np.ndarray:
        index = np.indices(e.shape)[axis]
        return index == (e.shape[axis] - 1 if which else 0)

    return mask


def _only_row(which: int, axis: int) -> Callable[[], Callable[[One], bool]]:
    """All wrong values are in one row or column."""
    return lambda: (
        lambda x: bool(_wrong_in(x).any() and not (_wrong_in(x) & ~_one_row(which, axis)(_array(x.right))).any())
    )


def _exchanged(one: str, two: str) -> Callable[[One], bool]:
    a, b = one.strip("'"), two.strip("'")
    return lambda x: _same(x.right[a], x.mine[b], 0) and _same(x.right[b], x.mine[a], 0)


def _example(text: str) -> Callable[[One], bool]:
    """Examples are of some calls; of this one it is only said that it is wrong."""
    return lambda x: x.wrong


def _float(dtype: str, want: str) -> Callable[[One], bool]:
    return lambda x: (
        (str(x.mine.dtype), str(x.right.dtype)) == (dtype, want)
        and bool(np.array_equal(x.right.astype(dtype), x.mine, equal_nan=True))
    )


def _nearly_float(dtype: str, want: str) -> Callable[[One], bool]:
    return lambda x: (str(x.mine.dtype), str(x.right.dtype)) == (dtype, want) and _near(x.mine, x.right, 4e-3)


def _swapped_nibbles(x: One) -> bool:
    return all(b == (a >> 4 | (a & 15) << 4) for a, b in zip(_bare(x.right), _bare(x.mine)) if a != b)


NAMES = r"list|tuple|dict|str|int|float|bool|bytes|numpy array|torch tensor|(?:u?int|float)\d+|number|bytearray|set"
TYPES = "list|tuple|dict|str|int|float"
RELATIONS: tuple[tuple[str, Callable[..., Callable[[One], bool]]], ...] = (
    (r"every value is (?:about )?([\d.e+-]+) times too (large|small)", _times),
    (r"every value is too (large|small) by (?:about )?([\d.e+-]+)", _off),
    (r"every value has the opposite sign", lambda: lambda x: _near(x.mine, -_array(x.right))),
    (r"every value is the square of the right one", lambda: lambda x: _near(x.mine, _array(x.right) ** 2)),
    (r"every value is the absolute value of the right one", lambda: lambda x: _near(x.mine, abs(_array(x.right)))),
    (r"the absolute value of every result is right", lambda: lambda x: _near(abs(_array(x.mine)), x.right)),
    (r"every value is 1 divided by the right one", lambda: lambda x: _near(1 / _array(x.mine), x.right)),
    (
        r"the values are right, and the dtype is (\w+) in place of (\w+)",
        lambda a, b: lambda x: (str(x.mine.dtype), str(x.right.dtype)) == (a, b) and _near(x.mine, x.right, 1e-12),
    ),
    (r"the dtype is (\w+) in place of (\w+)", lambda a, b: lambda x: (x.mine.dtype, x.right.dtype) == (a, b)),
    (
        r"the values are right, and the shape is different",
        lambda: (
            lambda x: (
                x.mine.shape != x.right.shape
                and _near(_array(x.mine).reshape(-1), _array(x.right).reshape(-1), 0, x.tolerance)
            )
        ),
    ),
    (r"every value is the right one rounded to float16", lambda: lambda x: _near(x.mine, _rounded(x.right), 0)),
    (r"every value is right once it is rounded to float16", lambda: lambda x: _near(_rounded(x.mine), x.right, 0)),
    (
        r"the result is rounded to (\d+) decimals",
        lambda n: lambda x: _near(x.mine, np.round(_array(x.right), int(n)), 1e-6, 1e-12),
    ),
    (
        r"the result is the right one, rounded down to whole numbers",
        lambda: lambda x: _near(x.mine, np.floor(_array(x.right)), 0),
    ),
    (r"the result is empty", lambda: lambda x: len(x.mine) == 0),
    (r"there are too many (?:items|bytes)", lambda: lambda x: _length(x) > 0),
    (r"there are too few (?:items|bytes)", lambda: lambda x: _length(x) < 0),
    (r"there (?:are|is) (\d+) bytes? too many", lambda n: lambda x: _length(x) == int(n)),
    (r"there (?:are|is) (\d+) bytes? too few", lambda n: lambda x: _length(x) == -int(n)),
    (
        r"the last (?:byte|item|character) is missing, and the rest is right",
        lambda: lambda x: _alike(x.mine, x.right[:-1]),
    ),
    (
        r"the (?:bytes|items|characters) are right, in reversed order",
        lambda: lambda x: _alike(list(x.mine), list(x.right)[::-1]),
    ),
    (r"the result is None|the function returns None", lambda: lambda x: x.mine is None),
    (r"only the first value is wrong", _only_set(_first)),
    (r"only the last value is wrong", _only_set(_last)),
    (r"exactly the negative values are wrong", _only_set(lambda e: e < 0)),
    (r"exactly the positive values are wrong", _only_set(lambda e: e > 0)),
    (
        r"the wrong values are all 0, and the others are right",
        lambda: lambda x: not _array(x.mine)[_wrong_in(x)].any(),
    ),
    (
        r"the answer is (True|False) where (True|False) is right",
        lambda a, b: lambda x: (str(bool(x.mine)), str(bool(x.right))) == (a, b),
    ),
    (r"the answer is '([^']*)' where '([^']*)' is right", lambda a, b: lambda x: (x.mine, x.right) == (a, b)),
    (r"keys are missing: .*", lambda: lambda x: bool(_missing(x))),
    (r"keys are not expected: .*", lambda: lambda x: not _missing(x) and bool(_extra(x))),
    (rf"the result is (?:an? )?({NAMES}); (?:an? )?({NAMES}) (?:is|are) asked for", _of_types),
    (
        rf"the values are right; the result is (?:an? )?({NAMES}); (?:an? )?({NAMES}) (?:is|are) asked for",
        _right_of_types,
    ),
    (r"the type is right, and (?:all )?the numbers are off by up to ([\d.e+-]+)(.*)", _farthest),
    (r"type and shape are right, and (?:all )?values are off,? by up to ([\d.e+-]+)(.*)", _farthest),
    (r"the type of the results is right, and what is in them is not(.*)", _example),
    (r"the results are not the right ones; (.*)", _example),
    (
        r"every value is (NaN|infinite)",
        lambda k: lambda x: bool((np.isnan if k == "NaN" else np.isinf)(_array(x.mine)).all()),
    ),
    (
        r"the first (?:item|byte|character) is missing, and the rest is right",
        lambda: lambda x: _items(x.mine) == _items(x.right)[1:],
    ),
    (r"the result is right, and then comes? .*", lambda: _prefix),
    (
        r"the (positive|negative) values are wrong, and all others are right",
        lambda k: _set_wrong(lambda e: e > 0 if k == "positive" else e < 0)(),
    ),
    (
        r"the first values are right, and all after them are wrong",
        lambda: (
            lambda x: (
                not _wrong_in(x).reshape(-1)[0] and bool(_wrong_in(x).reshape(-1)[int(np.argmax(_wrong_in(x))) :].all())
            )
        ),
    ),
    (r"no value is too large, and some are too small", lambda: _sided("small")),
    (r"no value is too small, and some are too large", lambda: _sided("large")),
    (r"every value that is wrong is too (large|small)", _sided),
    (
        r"the right (?:items|bytes|characters) are there twice, one after the other",
        lambda: lambda x: repr(_items(x.mine)) == repr(_items(x.right) * 2),
    ),
    (r"items are there more than once", lambda: lambda x: len({repr(i) for i in x.mine}) < len(x.mine)),
    (r"only the last row is wrong", _only_row(1, 0)),
    (r"only the first row is wrong", _only_row(0, 0)),
    (r"only the last column is wrong", _only_row(1, -1)),
    (r"only the first column is wrong", _only_row(0, -1)),
    (r"the values of ('[^']*') and ('[^']*') are exchanged", _exchanged),
    (r"the two parts are exchanged", lambda: lambda x: _bare(x.mine) == _bare(x.right)[::-1]),
    (r"the dtype is (\w+) in place of (\w+), and each value is the right one rounded to it", _float),
    (r"the dtype is (\w+) in place of (\w+), and only the last digits that it has are off", _nearly_float),
    (
        r"the result is the first part of the right one(?: along axis (\d))?",
        lambda axis: lambda x: _near(x.mine, np.take(_array(x.right), 0, int(axis or 0)), 0, x.tolerance),
    ),
    (
        r"the right values are in reversed order along axis (\d)",
        lambda axis: lambda x: _near(x.mine, np.flip(_array(x.right), int(axis)), 1e-5),
    ),
    (
        r"the right values are in reversed order",
        lambda: lambda x: _near(_array(x.mine).reshape(-1), _array(x.right).reshape(-1)[::-1], 1e-5),
    ),
    (
        r"only all rows but the (first|last) are there, and right",
        lambda k: lambda x: _near(x.mine, _array(x.right)[1:] if k == "first" else _array(x.right)[:-1], 0),
    ),
    (
        r"the right values are clipped to (\S+) … (\S+)",
        lambda a, b: lambda x: _near(x.mine, _array(x.right).clip(float(a), float(b)), 1e-3),
    ),
    (
        r"the result has (\d+) ax[ie]s, and (\d+) ax[ie]s (?:is|are) asked for",
        lambda a, b: lambda x: (np.ndim(x.mine), np.ndim(x.right)) == (int(a), int(b)),
    ),
    (
        r"only item (\d+) is wrong, and the rest is right",
        lambda k: (
            lambda x: [i for i, (a, b) in enumerate(zip(x.right, x.mine)) if not _same(a, b, x.tolerance)] == [int(k)]
        ),
    ),
    (
        r"only the (first|last) item is wrong, and the rest is right",
        lambda k: (
            lambda x: (
                [i for i, (a, b) in enumerate(zip(x.right, x.mine)) if not _same(a, b, x.tolerance)]
                == [0 if k == "first" else len(x.right) - 1]
            )
        ),
    ),
    (
        r"some values have the wrong sign, and their sizes are right",
        lambda: lambda x: _near(np.abs(_array(x.mine)), np.abs(_array(x.right))),
    ),
    (r"keys are missing(?:, and the other values are right)?", lambda: lambda x: bool(_missing(x)) and not _extra(x)),
    (r"the last key is missing, and the rest is right", lambda: lambda x: list(x.mine) == list(x.right)[:-1]),
    (
        r"the right values are there, under other keys",
        lambda: (
            lambda x: sorted(map(repr, map(_bare, x.mine.values()))) == sorted(map(repr, map(_bare, x.right.values())))
        ),
    ),
    (r"each wrong value is (-?\d+)", lambda k: lambda x: bool((_array(x.mine)[_wrong_in(x)] == float(k)).all())),
    (r"the bytes that differ have their two nibbles exchanged", lambda: _swapped_nibbles),
    (
        r"every (?:byte|value) is 0",
        lambda: lambda x: not any(_bare(x.mine)) if isinstance(x.mine, bytes) else not _array(x.mine).any(),
    ),
    (r"the function returns None|the result is None", lambda: lambda x: x.mine is None),
    (
        r"each wrong number is (\d+) or more and comes out (\d+) too small, .*",
        lambda low, off: lambda x: _each(x, -int(off), int(low), math.inf),
    ),
    (
        r"each wrong number is negative and comes out (\d+) too large, .*",
        lambda off: lambda x: _each(x, int(off), -math.inf, -1),
    ),
    (
        r"values are wrong exactly where the right value is 0(?:: each is (\S+))?",
        lambda value: lambda x: _found_at(x, _array(x.right) == 0, value),
    ),
    (
        r"values are wrong exactly where the right value is negative(?:: each is (\S+))?",
        lambda value: lambda x: _found_at(x, _array(x.right) < 0, value),
    ),
    (
        r"only the value of '([^']*)' is wrong.*",
        lambda key: lambda x: all(_same(x.right[k], x.mine[k], x.tolerance) == (k != key) for k in x.right),
    ),
)


def _each(one: One, off: int, low: float, high: float) -> bool:
    e, g = np.asarray(one.right, object).reshape(-1), np.asarray(one.mine, object).reshape(-1)
    return all(a == b or (int(b) - int(a) == off and low <= a <= high) for a, b in zip(e, g))


def _same(a: Any, b: Any, tolerance: float) -> bool:
    try:
        return _near(a, b, 0, tolerance)
    except (TypeError, ValueError):
        return bool(a == b)
