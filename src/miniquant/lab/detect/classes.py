"""Which inputs a function is wrong on: a property that all of them have, and none of the others."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from ..spec import Exercise
from ..verdict import Call, Facts, distinct
from .doubts import is_wrong_elsewhere
from .formulas import quantities_of
from .properties import ITEMS, of_lesson, properties_at
from .seen import one_of

LARGEST_UNION = 3  # so many properties are joined by "or"
FEWEST = 3  # wrong calls of which such a property is said: fewer may have it by chance
SETS = 40  # so many sets of as many inputs there must be: of few inputs, many properties fit by chance
CONFIRMED = 3  # so many further inputs with a property, and so many without it, confirm it
NEARLY_ALL = 0.9  # such a share of the inputs with a property is wrong: others may be right by chance
MOST = 0.5  # more than such a share of the inputs without a property is wrong, where those with it are right
TRIVIAL = (" is 0", " is empty", " is None", " is all zeros")  # nearly every function is right there
NEARLY = "nearly "  # stands before such a property
CROSSING = 2  # and so many cases that one small change makes inputs of the other kind
Test = Callable[[Call], bool]
NOWHERE: tuple[str, Test] = ("", lambda call: False)
BORDER = re.compile(  # a property with a border that may as well lie elsewhere
    r"(?:`(\w+)`|the right result) (?:has (\d+) bytes or|is (?:a number )?(?:less than )?2\*\*(\d+))"
)
SIZE = re.compile(r" (odd|even)$|2\*\*\d+( or more)?$")  # right inputs have it by chance: they come from few cases
BY_CHANCE = re.compile(  # so are the few inputs for which most wrong functions are right, too
    r"\s(?:is\s(?:u?int|float)\d+|has\s(?:a\s0|-0\.0|values\s(?:farther|nearer)\s.*|a\s(?:row|column)\sof\szeros))$"
)
SINGLE = (" is empty", " is None", " is 0")  # of such inputs there may be no other one
OF_ONE = (
    " is 0",
    " is empty",
    " is None",
    " is all zeros",
    " has NaN",
    " is infinite",
    " is NaN",
    " has one value",
    " has no axes",
)


def where(
    facts: Facts,
    wrong: Sequence[Call],
    among: Sequence[Call],
    fresh: Sequence[Call],
    changed: Sequence[Call],
    pairs: bool = False,
) -> tuple[str, Test]:
    """``where `data` is empty``: a property of exactly these calls among all, and whether a call is one of those.

    The words are "" if no property is known, or all are wrong.

    Of the ``fresh`` calls and the ``changed`` ones, by which it is not found, exactly those with a problem must have
    it, too, and pairs of inputs that differ in one thing must confirm it. With ``pairs``, two properties together as
    well.
    """
    chosen = {call.number for call in wrong}
    if len(among) - len(chosen) < 2 or len(among) < 3:
        return NOWHERE  # of a single right call too much is true
    fits = list(_found(facts, chosen, among, pairs))
    for least in (1.0, NEARLY_ALL):
        for text, holds in fits:
            least_often = 1 if text.endswith(SINGLE) else CONFIRMED if least == 1 else 3 * CONFIRMED
            if least < 1 and (text.startswith("everywhere") or text.endswith(SINGLE)):
                continue
            if not _at_the_border(text, facts, [*among, *fresh, *changed]):
                continue
            if confirmed(facts, holds, fresh, changed, least, least_often):
                return text if least == 1 else f"{NEARLY}{text}", holds
    return NOWHERE


def _at_the_border(text: str, facts: Facts, calls: Sequence[Call]) -> bool:
    """Whether numbers just below and just above a power of two, or lengths beside the one said, were tried."""
    found = BORDER.search(text)
    if not found:
        return True
    power, sizes = int(found[3]) if found[3] else 0, []
    for call in calls:
        name = found[1] or ""
        value = call.case[facts.names.index(name)] if name in facts.names[: len(call.case)] else call.expected.result
        value = len(value) if isinstance(value, bytes) else value
        if isinstance(value, int | float | np.number):
            sizes.append(int(value) if isinstance(value, int | np.integer) else float(value))
    if not power:
        length = int(found[2])
        return {length - 1, length} <= {*sizes} if "or more" in text else {length, length + 1} <= {*sizes}
    border = 2**power
    return any(border / 2 <= size < border for size in sizes) and any(border <= size < 2 * border for size in sizes)


def confirmed(
    facts: Facts, holds: Test, fresh: Sequence[Call], changed: Sequence[Call], least: float, often: int
) -> bool:
    """Whether inputs by which a property is not found confirm that results are wrong where it holds, and only there.

    There must be ``often`` of both kinds, and as many cases that a small change makes one of the others, or two. Of
    those with the property at ``least`` this share must be wrong: a result may be right by chance.
    """
    inside: list[Call] = []
    outside: list[Call] = []
    for call in (*fresh, *changed):
        (inside if holds(call) else outside).append(call)
    if any(call.problem for call in outside) or min(len(inside), len(outside)) < often:
        return False
    if sum(call.problem is not None for call in inside) < least * len(inside):
        return False
    across = [call for call in changed if holds(call) != holds(facts.origin(call))]
    differ = sum((call.problem is None) != (facts.origin(call).problem is None) for call in across)
    return differ >= min(often, CROSSING)


def at_least_where(
    facts: Facts,
    calls: Sequence[Call],
    among: Sequence[Call],
    others: Sequence[Call],
    changed: Sequence[Call],
    shows: Test,
) -> str:
    """The words where other calls may be wrong without it: those of the ``others`` that have it show the same."""
    every = [*others, *changed]
    for text, holds in _found(facts, {call.number for call in calls}, among, False):
        inside = [call for call in every if holds(call)]
        crossing = sum(holds(call) and not holds(facts.origin(call)) for call in changed)
        enough = len(inside) >= CONFIRMED and crossing >= CROSSING
        wrong = enough and all(call.problem for call in inside)
        if wrong and not text.startswith("everywhere") and all(map(shows, inside)):
            return text
    return ""


def right_where(
    facts: Facts, wrong: Sequence[Call], among: Sequence[Call], fresh: Sequence[Call], changed: Sequence[Call]
) -> str:
    """``all 9 where `a` has one row are right, and 30 of the 41 others are wrong``: a property of right calls alone.

    Most of the others must be wrong, and so many ``fresh`` and ``changed`` calls have it that chance does not explain
    it. Of several such properties the one without which the largest share is wrong; "" if there is none.
    """
    chosen, calls = {call.number for call in wrong}, distinct([*among, *fresh, *changed])
    tables = {call.number: properties_at(facts.spec, call.number) for call in among}
    best, said = MOST, ""
    for name, true in _having(tables).items():
        if len(true) < 2 or true & chosen or name.endswith(TRIVIAL) or SIZE.search(name):
            continue
        holds = _has(facts.spec, [name])
        inside, others = ([call for call in calls if holds(call) == yes] for yes in (True, False))
        n = sum(call.problem is not None for call in others)
        enough = len(inside) >= len(true) + 3 * CONFIRMED and not any(call.problem for call in inside)
        by_chance = BY_CHANCE.search(name) and n < len(others)
        if enough and not by_chance and n > best * len(others) and not is_wrong_elsewhere(facts, name, wrong):
            best = n / len(others)
            if n == len(others):
                said = f"all {len(inside)} {name} are right, and all {n} others are wrong"
            else:
                said = f"all {len(inside)} {name} are right, and {n} of the {len(others)} others are wrong"
    return said


def _found(facts: Facts, chosen: set[int], among: Sequence[Call], pairs: bool) -> Iterator[tuple[str, Test]]:
    """Properties of exactly these calls: the words, and whether another call has it."""
    chance = math.comb(len(among), len(chosen)) < SETS
    tables = {call.number: properties_at(facts.spec, call.number) for call in among}
    by_lesson = of_lesson(facts, among)
    named = tuple(f"where {words}" for words in quantities_of(facts.spec, among[0].case))
    has = partial(_has, facts.spec)
    alike = [name for name, true in by_lesson.items() if true == chosen]
    if len(alike) > 1 and len(chosen) > 1 and not facts.fresh:
        return  # no input tells which of them it is
    for name, true in _having(tables).items():
        simple = name in by_lesson or name.endswith(OF_ONE) or name.startswith(named)
        enough = len(chosen) >= (FEWEST if name.endswith(ITEMS) else 2) and not chance
        if true == chosen and (simple or enough):
            yield name, has([name])  # of a single call, too much is true by chance
    right = {call.number for call in among} - chosen
    for name, true in by_lesson.items():
        if true == right:
            yield f"everywhere but {name}", has([name], False)
    if union := _union(facts, chosen, among):
        yield _or(union), has(union)
    for rest in _all_but(tables, right):
        yield f"everywhere but {_or(rest)}", has(rest, False)
    for index, parameter in enumerate(facts.names):
        for found in (_one, _range, _border, _values):
            if said := found(parameter, index, chosen, among):
                yield said
    if not chance:
        for one, two in _both(tables, chosen, pairs):
            yield f"{one} and {two.removeprefix('where ')}", _both_hold(has([one]), has([two]))


def _having(tables: dict[int, dict[str, bool]]) -> dict[str, set[int]]:
    """For each property the numbers of the calls that have it."""
    names = dict.fromkeys(name for table in tables.values() for name in table)
    return {name: {number for number, table in tables.items() if table.get(name)} for name in names}


def _has(spec: Exercise, names: Sequence[str], yes: bool = True) -> Test:
    """Whether a call has one of these properties; or none of them, if not ``yes``."""
    return lambda call: any(properties_at(spec, call.number).get(name, False) for name in names) == yes


def _both_hold(one: Test, two: Test) -> Test:
    return lambda call: one(call) and two(call)


def _or(names: Sequence[str]) -> str:
    """``where a is so, or b is so``."""
    first, *rest = names
    return ", or ".join([first, *(name.removeprefix("where ") for name in rest)])


def _all_but(tables: dict[int, dict[str, bool]], right: set[int]) -> Iterator[list[str]]:
    """``where a is so``, ``where b is so``: properties of at least two right calls each, and together of all."""
    have = _having(tables)
    ends = (*OF_ONE, *(f" has {n}" for n in ITEMS))
    inside = [(name, true) for name, true in have.items() if true <= right and len(true) > 1 and name.endswith(ends)]
    for n, (one, a) in enumerate(inside):
        if a == right:
            yield [one]
        yield from ([one, two] for two, b in inside[n + 1 :] if a | b == right)


def _one(parameter: str, index: int, chosen: set[int], among: Sequence[Call]) -> tuple[str, Test] | None:
    """``where `bits` is 8``: one integer that all wrong calls have; "8 or more" would speak of others, too."""
    wrong = {call.case[index] for call in among if call.number in chosen and type(call.case[index]) is int}
    return _values(parameter, index, chosen, among) if len(wrong) == 1 else None


def _values(parameter: str, index: int, chosen: set[int], among: Sequence[Call]) -> tuple[str, Test] | None:
    """``where `file` is 'A' or 'B'``: few values of an argument that the wrong calls have, and no other."""
    values = [(call.number in chosen, call.case[index]) for call in among if index < len(call.case)]
    if not all((type(v) is str and len(v) <= 30) or (type(v) is int and abs(v) < 1000) for _, v in values):
        return None
    wrong = list(dict.fromkeys(v for is_wrong, v in values if is_wrong))
    if len(values) > 3 and len(chosen) < 2 and isinstance(wrong[0], int) and wrong[0] not in (0, 1, -1):
        return None  # any number may be the one by chance
    if len(wrong) > 3 or any(v in wrong for is_wrong, v in values if not is_wrong):
        return None
    if isinstance(wrong[0], int) and len(wrong) > 1 and len(chosen) < 2 * len(wrong):
        return None  # the same of two numbers, if each is there once
    return f"where `{parameter}` is {one_of(wrong)}", lambda call: call.case[index] in wrong


def _both(tables: dict[int, dict[str, bool]], chosen: set[int], pairs: bool) -> Iterator[tuple[str, str]]:
    """Two properties that only the wrong calls have together, where there are at least two of these.

    Any two with ``pairs``; else one must name a text.
    """
    if len(chosen) < 2:
        return
    have = _having(tables)
    wide = [name for name in have if chosen < have[name]]
    for one in wide:
        for two in wide:
            if (pairs or " is '" in one) and one != two and have[one] & have[two] == chosen:
                yield one, two


def _union(facts: Facts, chosen: set[int], among: Sequence[Call]) -> list[str]:
    """``where a is so``, ``where b is so``: properties of the lesson that together have exactly these calls."""
    inside = [(name, true) for name, true in of_lesson(facts, among).items() if true and true <= chosen]
    names: list[str] = []
    left = set(chosen)
    while left and len(names) < LARGEST_UNION:
        best = max(inside, key=lambda pair: len(pair[1] & left), default=None)
        if not best or not best[1] & left:
            return []
        names.append(best[0])
        left -= best[1]
    return names if not left else []


def _range(parameter: str, index: int, chosen: set[int], among: Sequence[Call]) -> tuple[str, Test] | None:
    """``where `data` has 15 bytes or fewer``: a length of bytes that parts the wrong calls from the others."""
    values = [(call.number in chosen, call.case[index]) for call in among if index < len(call.case)]
    if not all(isinstance(v, bytes) for _, v in values):
        return None
    wrong, right = ([len(v) for is_wrong, v in values if is_wrong == side] for side in (True, False))
    if len(wrong) < 2 or not right:
        return None  # one of them may be the shortest by chance
    most, least = max(wrong), min(wrong)
    if most < min(right):
        return f"where `{parameter}` has {most} bytes or fewer", lambda call: len(call.case[index]) <= most
    if least > max(right):
        return f"where `{parameter}` has {least} bytes or more", lambda call: len(call.case[index]) >= least
    return None


def _border(parameter: str, index: int, chosen: set[int], among: Sequence[Call]) -> tuple[str, Test] | None:
    """``where `steps` is 2 or more``: two neighbouring integers between which wrong and right calls part."""
    values = [(call.number in chosen, call.case[index]) for call in among if index < len(call.case)]
    if not all(isinstance(v, int) and not isinstance(v, bool) for _, v in values):
        return None
    wrong, right = ([v for is_wrong, v in values if is_wrong == side] for side in (True, False))
    if min(len(wrong), len(right)) < 2:
        return None  # one of them may be the largest by chance
    most, least = max(wrong), min(wrong)
    if least == max(right) + 1:
        return f"where `{parameter}` is {least} or more", lambda call: call.case[index] >= least
    if most == min(right) - 1:
        return f"where `{parameter}` is {most} or less", lambda call: call.case[index] <= most
    return None
