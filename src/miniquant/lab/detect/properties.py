"""Properties of an input that a report can name: those that its lesson names, and those that any value can have."""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.arrays import is_torch
from ..attempt import cases_of, expected_of
from ..compare import numpy_of
from ..fresh_cases import fresh_cases
from ..more_cases import more_cases
from ..pair_cases import pair_cases
from ..spec import Case, Exercise
from ..verdict import Call, Facts
from .formulas import quantities_of
from .relations import related

ITEMS = ("no item", "one item", "two items", "three items")
POWERS = (64, 63, 53, 48, 32, 31, 24, 16, 15, 12, 8, 7, 4)  # from the largest: wrong numbers are as large as it says


def of_lesson(facts: Facts, among: Sequence[Call]) -> dict[str, set[int]]:
    """The properties that the lesson names, and the calls that have them."""
    found: dict[str, set[int]] = {}
    for call in among:
        for words, holds in _traits(facts.spec, call.number).items():
            found.setdefault(f"where {words}", set()).update([call.number] if holds else [])
    return found


@functools.lru_cache(maxsize=4096)
def _traits(spec: Exercise, number: int) -> Mapping[str, bool]:
    """What the lesson says of a case, computed once: a report asks several times."""
    return spec.traits(*copy.deepcopy(_at(spec, number)[0])) if spec.traits else {}


@functools.lru_cache(maxsize=4096)
def properties_at(spec: Exercise, number: int) -> dict[str, bool]:
    """Properties of one case, by the words for them; computed once, as ``_traits``."""
    case, right = _at(spec, number)
    return dict(_properties_of(spec, _traits(spec, number), case, right))


def properties_of(spec: Exercise, case: Case, right: Any) -> dict[str, bool]:
    """The same of an input that has no number."""
    traits = spec.traits(*copy.deepcopy(case)) if spec.traits else {}
    return dict(_properties_of(spec, traits, case, right))


def _at(spec: Exercise, number: int) -> tuple[Case, Any]:
    """The arguments and the right result of a call: of a case, or of an input beyond the cases."""
    cases = cases_of(spec)
    if number < len(cases):
        return cases[number], expected_of(spec)[number].result
    further, beyond = more_cases(spec), number - len(cases)
    if beyond >= len(further) + len(fresh := fresh_cases(spec)):
        pair = pair_cases(spec)[beyond - len(further) - len(fresh)]
        return pair.case, pair.right.result
    case, right = further[beyond] if beyond < len(further) else fresh[beyond - len(further)]
    return case, right.result


def _properties_of(spec: Exercise, traits: Mapping[str, bool], case: Case, right: Any) -> Iterator[tuple[str, bool]]:
    """Properties of one case: (the words for it, whether it has it)."""
    for words, holds in traits.items():
        yield f"where {words}", holds
    for field in getattr(right, "_fields", ()):
        part = getattr(right, field)
        if isinstance(part, int | float | np.number):
            yield f"where the right {field} is 0", not part
        elif isinstance(part, np.ndarray) and part.dtype.kind == "f":
            yield f"where the right {field} has a 0", not part.all()
    yield from _of_quantities(quantities_of(spec, case))
    for name, value in zip(inspect.signature(spec.reference).parameters, case):
        yield from _of_value(f"`{name}`", value)
    yield from _of_expected(right)
    if isinstance(right, bool | np.bool_):
        yield from related(dict(zip(inspect.signature(spec.reference).parameters, case)))


def _of_quantities(quantities: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Properties of the quantities that a lesson names; one that is True or False is a property itself."""
    for words, value in quantities.items():
        if isinstance(value, bool):
            yield f"where {words}", value
    numbers = {words: q for words, q in quantities.items() if isinstance(q, int) and not isinstance(q, bool)}
    for words, q in numbers.items():
        yield f"where {words} is 0", q == 0
        yield f"where {words} is not 0", q != 0
        yield f"where {words} is 1", q == 1
        yield f"where {words} is more than 1", q > 1
        if q == int(q):
            yield f"where {words} is odd", q % 2 == 1


def _of_expected(value: Any) -> Iterator[tuple[str, bool]]:
    if isinstance(value, bool):
        yield "where the answer is True", value
        yield "where the answer is False", not value
    elif isinstance(value, str) and 0 < len(value) <= 20:
        yield f"where {value!r} is right", True
    elif isinstance(value, list | tuple | dict | str | bytes):
        yield "where the right result is empty", len(value) == 0
    elif isinstance(value, int | float | np.number):
        number = int(value) if isinstance(value, int | np.integer) else float(value)
        yield "where the right result is 0", number == 0
        yield "where the right result is negative", number < 0
        yield "where the right result is NaN", number != number
        yield "where the right result is infinite", number in (math.inf, -math.inf)
        for power in POWERS:
            yield f"where the right result is 2**{power} or more", number >= 2**power


def _of_value(name: str, value: Any) -> Iterator[tuple[str, bool]]:
    """Properties of one argument, the simplest first."""
    if value is None:
        yield f"where {name} is None", True
        return
    if is_torch(value):
        value = numpy_of(value)
    if isinstance(value, bool):
        yield f"where {name} is {value}", True
    elif isinstance(value, np.ndarray):
        yield from _of_array(name, value)
    elif isinstance(value, bytes | bytearray):
        yield f"where {name} is empty", len(value) == 0
        yield f"where {name} ends with a newline", bytes(value[-1:]) == b"\n"
        yield f"where {name} has bytes of 128 or more", any(b > 127 for b in value)
    elif isinstance(value, str):
        yield f"where {name} is empty", value == ""
        yield f"where {name} has characters outside ASCII", not value.isascii()
        yield f"where {name} has white space at an end", value != value.strip()
        yield f"where {name} has a newline", "\n" in value
        if 0 < len(value) <= 30 and value.isprintable():
            yield f"where {name} is {value!r}", True
        yield f"where {name} has capital letters", value != value.lower()
    elif isinstance(value, int | float | np.number):
        yield from _of_number(name, int(value) if isinstance(value, int | np.integer) else float(value))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from _of_list(name, list(value))
    elif isinstance(value, dict):
        yield from _of_list(f"the keys of {name}", list(value), name)
        yield f"where {name} has more than one key", len(value) > 1
        yield from _of_items(name, list(value.values()))


def _of_items(name: str, values: list[Any]) -> Iterator[tuple[str, bool]]:
    """Properties of a dict's values: tuples of different lengths, words, equal ones, numbers that are 0.

    Each is said of any dict, whatever its other values are: a property that is not said of an input is none of it.
    """
    tuples = [value for value in values if isinstance(value, tuple)]
    for length, words in ((0, "()"), (1, "a tuple of one"), (2, "a tuple of two"), (3, "a tuple of three")):
        there = any(len(value) == length for value in tuples)
        yield f"where a value of {name} is {words}", there
        if length:
            yield f"where no value of {name} is {words}", not there
    yield f"where a tuple in {name} has a 0", any(_is_zero(part) for value in tuples for part in value)
    for value in dict.fromkeys(value for value in values if isinstance(value, str) and len(value) <= 30):
        yield f"where a value of {name} is {value!r}", True
    yield f"where a value of {name} is empty", any(isinstance(value, str) and not value for value in values)
    yield f"where a value of {name} is 0", any(map(_is_zero, values))
    yield f"where a value of {name} is NaN", any(isinstance(value, float) and math.isnan(value) for value in values)
    if all(isinstance(value, int | float) for value in values) and values:
        yield f"where two values of {name} are equal", len(set(values)) < len(values)
        yield f"where the largest value of {name} is there twice", values.count(max(values)) > 1
        yield f"where the first value of {name} is not the largest", values[0] != max(values)
        yield f"where the last value of {name} is not the largest", values[-1] != max(values)


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def _of_number(name: str, value: int | float) -> Iterator[tuple[str, bool]]:
    yield f"where {name} is one number and no array", True
    yield f"where {name} is 0", value == 0
    yield f"where {name} is negative", value < 0
    yield f"where {name} is 1", value == 1
    yield f"where {name} is less than 2**-14 and not 0", 0 < abs(value) < 2.0**-14
    if not math.isnan(value):
        for power in POWERS:
            yield f"where {name} is 2**{power} or more", value >= 2**power
            yield f"where {name} is a number less than 2**{power}", value < 2**power  # an array is none


def _of_array(name: str, value: np.ndarray) -> Iterator[tuple[str, bool]]:
    yield f"where {name} is empty", value.size == 0
    yield f"where {name} has no axes", value.ndim == 0
    for axes in (1, 2, 3):
        yield f"where {name} has {axes} {'axis' if axes == 1 else 'axes'}", value.ndim == axes
    if value.dtype.kind in "iuf" and not value.size:
        yield f"where {name} has no negative values", True
        yield f"where {name} has no positive values", True
        yield f"where {name} is all zeros", True
        yield f"where {name} is {value.dtype}", True
        if value.ndim == 2:
            yield f"where {name} has more than one row", len(value) > 1
            yield f"where {name} has one row", len(value) == 1
        return
    yield f"where {name} has values", value.size > 0
    yield f"where {name} has one value", value.size == 1
    yield f"where {name} has more than one value", value.size > 1
    if value.ndim == 2:
        yield f"where {name} has more than one row", len(value) > 1
        yield f"where {name} has one row", len(value) == 1
    yield f"where {name} is {value.dtype}", True
    if value.dtype.kind not in "iuf" or not value.size:
        return
    with np.errstate(all="ignore"):
        finite = np.isfinite(value.astype(float))
        yield f"where {name} has NaN", bool(np.isnan(value.astype(float)).any())
        yield f"where {name} has NaN or infinite values", not finite.all()
        yield f"where {name} is all zeros", not value.any()
        yield f"where {name} has a 0", not value.all()
        yield f"where {name} has negative values", bool((value < 0).any())
        yield f"where {name} has no negative values", not (value < 0).any()
        yield f"where {name} has no positive values", not (value > 0).any()
        if value.ndim == 2:
            yield f"where {name} has a row of zeros", bool((~value.any(axis=1)).any())
            yield f"where {name} has a column of zeros", bool((~value.any(axis=0)).any())
        size = np.abs(value.astype(float))
        yield (
            f"where the value of {name} farthest from 0 (the first, if several are) is negative",
            bool(value.reshape(-1)[int(np.argmax(size))] < 0),
        )
        if value.dtype.kind == "f":
            yield f"where {name} has values farther from 0 than 65504", bool((size > 65504).any())
            yield (
                f"where {name} has values nearer to 0 than 2**-14, and not 0",
                bool(((size > 0) & (size < 2.0**-14)).any()),
            )
            yield f"where {name} has -0.0", bool((np.signbit(value) & (value == 0)).any())
    yield f"where {name} is not contiguous", not value.flags.c_contiguous


def _of_list(name: str, value: list[Any], owner: str = "") -> Iterator[tuple[str, bool]]:
    owner = owner or name
    yield f"where {owner} is empty", not value
    if owner == name:
        for length in (1, 2):
            yield f"where {owner} has more than {length} item{'s' * (length > 1)}", len(value) > length
        for length, words in enumerate(ITEMS):
            yield f"where {owner} has {words}", len(value) == length
    texts = [repr(item) for item in value]
    yield f"where {owner} has duplicates", len(set(texts)) < len(texts)
    found = [item for item in value if isinstance(item, str)]
    yield f"where {name} have characters outside ASCII", not "".join(found).isascii()
    yield f"where a text in {name} is empty", "" in found
