"""Whether a property that one wrong call alone has says why it is wrong: many things are true of one call."""

from __future__ import annotations

from collections.abc import Sequence

from ..verdict import Call, Facts
from .classes import OF_ONE
from .formulas import quantities_of
from .properties import of_lesson, properties_at


def is_telling(facts: Facts, call: Call, place: str, among: Sequence[Call]) -> bool:
    """Whether a property of one call alone says something: the lesson names it, or no other argument is special.

    Where two arguments of the call are special, nobody knows which of them it is.
    """
    ones = [f"where `{name}` is 1" for name in facts.names]
    if place.endswith(OF_ONE) or place in (*ones, *of_lesson(facts, among)):
        return True
    if place.startswith("where a value of"):
        return False  # one of the values of a dict is something else in each input
    case = quantities_of(facts.spec, call.case)
    words = next((words for words in case if place.startswith(f"where {words}")), None)
    if place.endswith(" has duplicates") or (words and not isinstance(case[words], bool)):
        return False
    others = [properties_at(facts.spec, other.number) for other in among if not other.problem]
    mine = [name for name, holds in properties_at(facts.spec, call.number).items() if holds and " is '" not in name]
    alone = [name for name in mine if not any(table.get(name) for table in others)]
    return len({name.split("`")[1] for name in alone if "`" in name}) < 2


def as_well(facts: Facts, wrong: Sequence[Call], place: str, among: Sequence[Call]) -> str:
    """``, and the only one where …``: what else the lesson says of these calls alone, if it is one thing or two."""
    by_lesson, chosen = of_lesson(facts, among), {call.number for call in wrong}
    others = [name for name, true in by_lesson.items() if true == chosen and name != place]
    return "".join(f", and the only one {name}" for name in others) if place in by_lesson and len(others) <= 2 else ""
