"""Is the outcome of one call right, and if not, what is the first thing that is wrong with it?"""

from __future__ import annotations

import builtins
import functools
import inspect
import pickle
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import errors
from ..core.errors import MiniquantError
from .attempt import SECONDS, Outcome, cases_of, expected_of, is_own, outcomes_of
from .compare import Difference, difference, short, told_apart
from .fresh_cases import fresh_cases
from .limit import TooSlow
from .more_cases import further, more_cases, tried
from .pair_cases import pair_cases
from .spec import Case, Exercise, Finding, Function, Same
from .trace import named

MANY = 1000  # outcomes of which it is kept what is wrong with them
_KEPT: dict[int, tuple[Outcome, Outcome, Difference | None]] = {}  # outcomes are held, so their ids stay their own
DIGITS = 10  # characters that a value of an array counts, whatever its digits


@dataclass(frozen=True)
class Call:
    """One call of a student's function: what was expected, what came, and what is wrong; ``None`` if it is right."""

    number: int
    case: Case
    expected: Outcome
    outcome: Outcome
    problem: Difference | None

    @property
    def refusal(self) -> bool:
        """Whether the input is bad, so that refusing it is the right answer."""
        return self.expected.error is not None

    @property
    def comparable(self) -> bool:
        """Whether there are two results to compare."""
        return self.expected.error is None and self.outcome.error is None


@dataclass(frozen=True, eq=False)
class Facts:
    """Everything that a check saw: all calls of a student's function, in the order of the cases."""

    spec: Exercise
    function: Function
    calls: tuple[Call, ...]

    @functools.cached_property
    def wrong(self) -> tuple[Call, ...]:
        """The calls whose outcome is not right."""
        return tuple(call for call in self.calls if call.problem)

    @functools.cached_property
    def further(self) -> tuple[Call, ...]:
        """Calls with good inputs that are no cases: what is said of the cases must be true of these, too."""
        n = len(self.calls)
        return tuple(
            Call(n + i, case, right, mine, problem(self.spec, case, mine, right))
            for i, (case, right, mine) in enumerate(further(self.spec, self.function))
        )

    @functools.cached_property
    def fresh(self) -> tuple[Call, ...]:
        """Calls with good inputs by which nothing is found: a condition that is not so of these is not said."""
        n = len(self.calls) + len(more_cases(self.spec))
        return tuple(
            Call(n + i, case, right, mine, problem(self.spec, case, mine, right))
            for i, (case, right, mine) in enumerate(tried(self.spec, self.function, fresh_cases(self.spec)))
        )

    @functools.cached_property
    def changed(self) -> tuple[Call, ...]:
        """Calls with inputs that are cases with one small change: a condition is said only if these confirm it."""
        n = len(self.calls) + len(more_cases(self.spec)) + len(fresh_cases(self.spec))
        pairs = [(pair.case, pair.right) for pair in pair_cases(self.spec)]
        return tuple(
            Call(n + i, case, right, mine, problem(self.spec, case, mine, right))
            for i, (case, right, mine) in enumerate(tried(self.spec, self.function, pairs))
        )

    def origin(self, call: Call) -> Call:
        """The call of the case from which the input of a call of ``changed`` was made."""
        n = len(self.calls) + len(more_cases(self.spec)) + len(fresh_cases(self.spec))
        return self.calls[pair_cases(self.spec)[call.number - n].number]

    @functools.cached_property
    def comparable(self) -> tuple[Call, ...]:
        """All calls with two results to compare, those of the cases first."""
        return tuple(call for call in (*self.calls, *self.further) if call.comparable)

    @functools.cached_property
    def tried(self) -> str:
        """The inputs of which a sentence on all results speaks, with their number: those that must give one, and do.

        What looks for a contrast may try more of them later.
        """
        every = distinct(call for call in (*self.calls, *self.further, *self.fresh) if call.comparable)
        kind = "good inputs" if any(call.refusal for call in self.calls) else "inputs"
        return f"for each of {len(every)} {kind} tried"

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(inspect.signature(self.spec.reference).parameters)


def distinct(calls: Iterable[Call]) -> list[Call]:
    """The calls without those whose input an earlier one has: sentences count inputs."""
    found: dict[bytes, Call] = {}
    for call in calls:
        found.setdefault(pickle.dumps(call.case), call)
    return list(found.values())


@functools.lru_cache(maxsize=4096)
def rightness_of(spec: Exercise, wrong: Function) -> tuple[bool, ...]:
    """For each case, whether a mistake of the catalogue gives the right answer."""
    parts = zip(cases_of(spec), outcomes_of(spec, wrong), expected_of(spec))
    return tuple(problem_on_case(spec, case, outcome, expected) is None for case, outcome, expected in parts)


def problem_on_case(spec: Exercise, case: Case, outcome: Outcome, expected: Outcome) -> Difference | None:
    """The same as ``problem``, for outcomes that are known anyway, as those of the mistakes are.

    It is kept for a while: the checks of a lesson ask it of each mistake alone, and beside its neighbours.
    """
    known = _KEPT.get(id(outcome))
    if known is None or known[1] is not expected:
        if len(_KEPT) >= MANY:
            _KEPT.clear()
        known = _KEPT[id(outcome)] = outcome, expected, problem(spec, case, outcome, expected)
    return known[2]


USED_AGAIN = "the result is in the memory of an earlier call's result: changing one changes the other; make a new one"


def problem(spec: Exercise, case: Case, outcome: Outcome, expected: Outcome) -> Difference | None:
    """The first thing that is wrong with an outcome, or ``None``."""
    if isinstance(outcome.error, TooSlow):
        what = f"no answer after {SECONDS:g} seconds; does a loop never end?"
        return Difference(what, _expectation(expected), "nothing")
    if isinstance(outcome.error, Finding):
        return Difference(outcome.error.what, outcome.error.expected or _expectation(expected), outcome.error.got)
    if expected.error:
        return _refusal_problem(spec, outcome, expected.error) or _changed(spec, outcome)
    if outcome.error:
        refused = isinstance(outcome.error, MiniquantError | ValueError) and is_own(outcome.error)
        what = "your function refuses good input" if refused else "your function raised an error"
        if isinstance(expected.result, bool):
            what = f"the answer here is {expected.result}; this function answers and never raises"
        return Difference(what, short(expected.result), named(outcome.error))
    if isinstance(outcome.result, BaseException):
        what = "your function returns an error object; an error must be raised"
        return Difference(what, short(expected.result), f"{named(outcome.result)}, returned")
    if outcome.result is None and outcome.printed and expected.result is not None:
        return Difference(
            "your function prints and returns None; it must return its answer", short(expected.result), "None"
        )
    fields = spec.fields(*case) if spec.fields else None
    if found := difference(expected.result, outcome.result, spec.tolerance, fields, ordered=spec.ordered):
        return told_apart(found, expected.result, outcome.result)
    if outcome.change:
        return _changed(spec, outcome)
    if outcome.kept:
        return Difference(USED_AGAIN, "a fresh result", "the same memory again")
    if outcome.view:
        what = "the result shares memory with the argument: changing one changes the other; return a copy"
        if isinstance(outcome.result, dict | list | set | bytearray):
            return Difference(what, "a fresh result", "the same memory again")
        return Difference(what, "a fresh array", "a view")
    return None


def _changed(spec: Exercise, outcome: Outcome) -> Difference | None:
    """The argument that a call changed, and the place in it."""
    if not outcome.change:
        return None
    name = list(inspect.signature(spec.reference).parameters)[outcome.change.index]
    what = f"your function changes its argument in place: {name}{outcome.change.place}; work on a copy"
    return Difference(what, *change_shown(outcome.change.before, outcome.change.after))


def _refusal_problem(spec: Exercise, outcome: Outcome, wanted: BaseException) -> Difference | None:
    """What is wrong with an outcome where the input must be refused."""
    if isinstance(outcome.error, asked_errors(spec, wanted)):
        return None
    name = type(wanted).__name__
    article = f"a{'n' * (name[0] in 'AEIOU')} {name}"
    if isinstance(outcome.result, BaseException):
        what = f"you return the error; write `raise`: this input must be refused with {article}"
        return Difference(what, named(wanted), f"{named(outcome.result)}, returned")
    if outcome.error:
        what = f"this input must be refused with {article}, and another error was raised"
        return Difference(what, named(wanted), named(outcome.error))
    return Difference(f"this input must be refused with {article}", named(wanted), short(outcome.result))


def asked_errors(spec: Exercise, wanted: BaseException) -> tuple[type[BaseException], ...]:
    """The errors that are a right refusal: the one of the oracle, and what the docstring asks for if it is a parent."""
    asked: list[type[BaseException]] = [type(wanted)]
    for name in re.findall(r"\b\w+Error\b", spec.reference.__doc__ or ""):
        found: Any = getattr(errors, name, None) or getattr(builtins, name, None)
        if isinstance(found, type) and isinstance(wanted, found):
            asked.append(found)
    return tuple(asked)


def size_of(case: Case) -> tuple[int, float]:
    """How large a case is to read, and how large its numbers are: the smallest is shown first."""
    return _size_of(Same(case))


@functools.lru_cache(maxsize=4096)
def _size_of(same: Same) -> tuple[int, float]:
    case = same.value
    arrays = sum(part.size for part in case if isinstance(part, np.ndarray | np.generic))
    return sum(map(_length, case)) + arrays, sum(map(_magnitude, case))


def _magnitude(part: Any) -> float:
    """The sum of the numbers in an argument, without their signs; 0 of what holds none."""
    if isinstance(part, list | tuple):
        return sum(map(_magnitude, part))
    if isinstance(part, int | float):
        return float(min(abs(part), sys.float_info.max))
    if not isinstance(part, np.ndarray | np.generic) or part.dtype.kind not in "iuf":
        return 0.0
    with np.errstate(all="ignore"):  # a NaN of any kind
        return float(np.nansum(np.abs(np.asarray(part, np.float64))))


def _length(part: Any) -> int:
    """The characters of an argument; of an array or one of its numbers so many for each value, whatever its digits."""
    if isinstance(part, np.ndarray | np.generic):
        return DIGITS * part.size
    return len(part) if isinstance(part, bytes) else len(repr(part))


def smallest(calls: Sequence[Call]) -> Call:
    """The smallest of some calls, good input before bad."""
    return min(calls, key=lambda call: (call.refusal, size_of(call.case), call.number))


def shown_first(wrong: Sequence[Call]) -> Call:
    """The smallest wrong call on good input; not one with an empty argument if that fails as few others do.

    Nor one with an empty array if others fail like it.
    """
    first = smallest(wrong)
    good = [call for call in wrong if not call.refusal]
    if first.refusal or not any(_is_empty(part) for part in first.case):
        return first
    kinds = Counter(_failure_kind(call) for call in good)
    (most, n), *_ = kinds.most_common()
    if n > kinds[_failure_kind(first)]:
        return smallest([call for call in good if _failure_kind(call) == most])
    alike = [call for call in good if _failure_kind(call) == _failure_kind(first) and not _has_empty_array(call)]
    return smallest(alike) if alike and _has_empty_array(first) else first


def _has_empty_array(call: Call) -> bool:
    return any(hasattr(part, "shape") and 0 in part.shape for part in call.case)


def _is_empty(value: Any) -> bool:
    """Whether an argument is an empty array, text or container, or the number 0 that says how many."""
    if hasattr(value, "shape"):
        return 0 in value.shape
    return isinstance(value, bytes | str | list | tuple | dict | int) and not value


def _failure_kind(call: Call) -> str:
    return type(call.outcome.error or call.outcome.result).__name__


def change_shown(before: Any, after: Any) -> tuple[str, str]:
    """The value before and after a change, as short text; "changed" where the texts are the same."""
    texts = f"before the call: {short(before)}", f"after the call: {short(after)}"
    return texts if short(before) != short(after) else (texts[0], "after the call: other values")


def _expectation(expected: Outcome) -> str:
    return named(expected.error) if expected.error else short(expected.result)
