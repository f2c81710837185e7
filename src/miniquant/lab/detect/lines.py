"""Which line of a student's function runs where the result is wrong, and hardly anywhere else."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..attempt import attempt
from ..limit import TooSlow, spent
from ..verdict import Call, Facts, problem
from .contrast import remembers
from .seen import Seen

SECONDS = 3.0  # of the processor, for all calls together: they take milliseconds
FEWEST = 3  # right calls: with fewer, many lines run in all of them and in no wrong one by chance
CHANCE = 0.04  # so likely it may be that all wrong calls run a line by chance
FEW = 0.4  # a line is telling if at most this share of the right calls runs it
BEYOND = 20  # inputs that are no cases
LONGEST = 60  # characters of a line that is shown


@dataclass(frozen=True)
class Block:
    """Lines that follow each other and run in the same calls."""

    first: int
    last: int
    text: str
    wrong: int  # how many of the wrong calls run it
    right: int  # and of the right ones

    @property
    def named(self) -> str:
        """``line 3, `x = 1` ``, or ``lines 3 to 5, from `x = 1` on``."""
        if self.first == self.last:
            return f"line {self.first}, `{self.text}`,"
        return f"lines {self.first} to {self.last}, from `{self.text}` on,"


def of_lines(facts: Facts) -> Seen | None:
    """The line that all wrong calls on good input run, and no right one or few; or one that no wrong call runs."""
    good = [call for call in facts.calls if not call.refusal]
    wrong, right = [c for c in good if c.problem], [c for c in good if not c.problem]
    raised = [call for call in wrong if call.outcome.error]  # a traceback has their place
    if (
        not wrong
        or len(raised) * 2 > len(wrong)
        or len(right) < FEWEST
        or any(isinstance(call.outcome.error, TooSlow) for call in wrong)
        or remembers(facts.function)  # what is known from the check runs no lines now
    ):
        return None
    beyond = [call for call in facts.further if call.comparable][:BEYOND]
    ran = _lines_run(facts, [*good, *beyond])
    if not ran:
        return None
    blocks = _blocks(facts, ran, {c.number for c in wrong}, {c.number for c in right})
    blocks = [block for block in blocks if _is_so_beyond(block, ran, beyond)]
    what = "good inputs" if len(good) < len(facts.calls) else "cases"
    n, m = len(wrong), len(right)
    for found in (
        [b for b in blocks if b.wrong == n and b.right == 0],
        _fewest([b for b in blocks if b.wrong == n > 1 and 0 < b.right <= FEW * m and not _is_chance(b, n, m)]),
        [b for b in blocks if b.wrong == 0 and b.right == m],
        _most([b for b in blocks if b.right == 0 and b.wrong >= max(2, n / 2)]),
    ):
        if 1 <= len(found) <= 2:
            names = " and ".join(block.named for block in found).replace(", and", " and")
            some = found[0]
            runs = "runs" if len(found) == 1 and some.first == some.last else "run"
            text = f"{names} {runs} {_count(some.wrong, n, f'wrong {what}')} and {_count(some.right, m, 'right ones')}"
            return Seen(
                "a line of the wrong cases", text[0].upper() + text[1:] + ".", "Work this line by hand.", rank=30
            )
    return None


def _is_so_beyond(block: Block, ran: dict[int, set[int]], beyond: Sequence[Call]) -> bool:
    """Whether wrong calls run a line more often than right ones beyond the cases, too, if they do so in the cases."""
    runs = ran[block.first]
    shares = []
    for side in (True, False):
        those = [call for call in beyond if bool(call.problem) == side]
        shares.append(sum(call.number in runs for call in those) / len(those) if those else None)
    wrong, right = shares
    if wrong is None or right is None:
        return True
    return (wrong > right) if block.wrong else (wrong < right)


def _is_chance(block: Block, wrong: int, right: int) -> bool:
    """Whether so few wrong calls may all run these lines by chance."""
    return ((block.wrong + block.right) / (wrong + right)) ** wrong > CHANCE


def _count(n: int, of: int, what: str) -> str:
    """``on all 9 wrong cases``, ``on none of the 4 right ones``, ``on 1 of the 4 right ones``."""
    if of == 1:
        return f"{'' if n else 'not '}on the one {what[:-1]}"
    return f"on {'both' if of == 2 else f'all {of}'} {what}" if n == of else f"on {n or 'none'} of the {of} {what}"


def _fewest(blocks: list[Block]) -> list[Block]:
    return [b for b in blocks if b.right == min(x.right for x in blocks)]


def _most(blocks: list[Block]) -> list[Block]:
    return [b for b in blocks if b.wrong == max(x.wrong for x in blocks)]


def _lines_run(facts: Facts, calls: Sequence[Call]) -> dict[int, set[int]]:
    """For each line of the function the calls that run it; nothing if the code cannot be read or takes too long."""
    function = inspect.unwrap(facts.function)
    if not isinstance(function, types.FunctionType):
        return {}
    home = function.__code__.co_filename
    ran: dict[int, set[int]] = {}
    number = 0

    def watch(frame: types.FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != home:
            return None
        if event == "line":
            ran.setdefault(frame.f_lineno, set()).add(number)
        return watch

    late, before = spent(SECONDS), sys.gettrace()
    for call in calls:
        number = call.number
        sys.settrace(watch)
        try:
            outcome = attempt(facts.spec, facts.function, call.case, SECONDS)
        finally:
            sys.settrace(before)
        if isinstance(outcome.error, TooSlow) or late():
            return {}
        again = problem(facts.spec, call.case, outcome, call.expected)
        if bool(again) != bool(call.problem):
            return {}  # something is kept between calls: other lines ran when the result was wrong
    return ran


def _blocks(facts: Facts, ran: dict[int, set[int]], wrong: set[int], right: set[int]) -> list[Block]:
    """The lines of the function's own text, those that run in the same calls together."""
    try:
        lines, first = inspect.getsourcelines(inspect.unwrap(facts.function))
    except (OSError, TypeError):
        return []
    found: list[Block] = []
    same: set[int] | None = None
    idle = _code_lines(inspect.unwrap(facts.function).__code__) - set(ran)  # between two lines that run alike
    for number in sorted(n for n in ran if first <= n < first + len(lines)):
        text = lines[number - first].split("  #")[0].strip().rstrip(":")
        if same == ran[number] and idle.isdisjoint(range(found[-1].last, number)):
            old = found.pop()
            found.append(Block(old.first, number, old.text, old.wrong, old.right))
        elif text and "`" not in text:
            text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
            found.append(Block(number, number, text, len(ran[number] & wrong), len(ran[number] & right)))
        else:
            same = None
            continue
        same = ran[number]
    return found


def _code_lines(code: types.CodeType) -> set[int]:
    """The lines of a function and of those that are defined in it."""
    inner = [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return {line for *_, line in code.co_lines() if line}.union(*map(_code_lines, inner))
