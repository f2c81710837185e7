"""Exercises and their checks: a stub falls back to the reference, a check says what is wrong and why.

An exercise is data: the reference, an oracle that shares no code with it, cases, and the catalogue of mistakes that
students make. ``check`` runs the student's function on every case and compares it with the oracle; if it is wrong, it
looks for the mistake whose results are the same as the student's, and names it.
"""

from __future__ import annotations

import copy
import functools
import inspect
import io
import os
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arrays import is_torch
from ..core.errors import MiniquantError
from . import record
from .compare import Difference, Fields, difference, equal, short
from .limit import TooSlow, time_limit
from .report import Report

SECONDS = 10.0  # for one call of a student's function; every case is small
Case = tuple[Any, ...]


@dataclass(frozen=True)
class Mistake:
    """A wrong implementation that students write: what it is called, what it does, where it comes from, the cure."""

    name: str
    wrong: Callable[..., Any]
    cause: str  # one sentence
    cure: str  # one sentence
    see: str  # what the student sees, for "Help: I see …"


@dataclass(frozen=True)
class Exercise:
    """One exercise of a lab.

    ``cases`` gives the arguments of every call: small and recognisable first, then random ones from the generator it
    is handed (always the same seed). ``oracle`` computes what is expected; it shares no code with ``reference``.
    ``observe`` turns a call into what is compared, for functions that work by side effect. ``fields`` names the parts
    of a result that is bytes. ``may_view`` allows a result that shares memory with an argument.
    """

    name: str
    lab: str
    goal: str  # one sentence
    minutes: int
    difficulty: str  # "warm-up", "core" or "stretch"
    reference: Callable[..., Any]
    oracle: Callable[..., Any]
    cases: Callable[[np.random.Generator], Iterable[Case]]
    hints: tuple[str, str]
    why: str  # one line, printed on success
    mistakes: tuple[Mistake, ...] = ()
    tolerance: float = 0.0
    fields: Callable[..., Fields] | None = None
    observe: Callable[[Callable[..., Any], Case], Any] | None = None
    may_view: bool = False

    def all_cases(self) -> list[Case]:
        """Every case, the random ones included; the same each time."""
        return list(self.cases(np.random.default_rng(sum(self.name.encode()))))

    def run(self, function: Callable[..., Any], case: Case) -> Any:
        """What ``function`` makes of a copy of the case."""
        return self.observe(function, case) if self.observe else function(*case)


class Finding(Exception):
    """What an ``observe`` found instead of a result: ``Finding("no file stands at the path", "None was returned")``."""

    def __init__(self, what: str, got: str) -> None:
        super().__init__(what, got)
        self.what, self.got = what, got


@dataclass(frozen=True)
class Outcome:
    """What one call did: a result or an exception, what it printed, whether it changed its arguments."""

    result: Any = None
    error: BaseException | None = None
    printed: str = ""
    mutated: bool = False
    view: bool = False
    warned: str = ""  # the first warning, say of a division by zero

    def same_as(self, other: Outcome, tolerance: float = 0.0) -> bool:
        """Whether two calls cannot be told apart by their results."""
        if self.error or other.error:
            return _alike(self.error, other.error)
        return self.mutated == other.mutated and equal(self.result, other.result, tolerance)


def _alike(a: BaseException | None, b: BaseException | None) -> bool:
    """Whether two errors are of one sort, for a diagnosis; numpy raises ValueError for shapes in more ways than one."""
    if isinstance(a, Finding) or isinstance(b, Finding):
        return type(a) is type(b) and a.args == b.args
    related = (
        isinstance(a, ValueError) and isinstance(b, ValueError) and (isinstance(a, type(b)) or isinstance(b, type(a)))
    )
    return (type(a) is type(b) or related) and all((w in str(a)) == (w in str(b)) for w in ("broadcast", "reshape"))


def exercise(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function as the student's answer to an exercise.

    As long as its body raises ``NotImplementedError``, a call gives what the reference gives, so later cells work. An
    error from deeper down, in a function that the student's own code calls, is never covered up.
    """
    spec = find(name)

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except NotImplementedError as error:
                if not is_stub(error, function):
                    raise
                return spec.reference(*args, **kwargs)

        call.exercise, call.student = spec, function
        return call

    return mark


def is_stub(error: BaseException | None, function: Callable[..., Any]) -> bool:
    """Whether ``error`` is the ``NotImplementedError`` that the body of ``function`` itself raises."""
    if not isinstance(error, NotImplementedError) or error.__traceback__ is None:
        return False
    *_, (last, _) = traceback.walk_tb(error.__traceback__)
    return last.f_code is function.__code__


def check(function: Callable[..., Any]) -> Report:
    """Run the checks of a student's function; show the report in a notebook, or print it.

    The report's ``status`` is ``"passed"``, ``"not attempted"`` or ``"failed"``. With ``MINIQUANT_STRICT=1`` in the
    environment, anything but a pass raises ``AssertionError``: so that graders which count exceptions can grade.
    """
    spec = getattr(function, "exercise", None)
    if spec is None:
        name = getattr(function, "__name__", repr(function))
        return Report(
            "failed", name, what=f"{name} is not marked as an exercise", cure="put @exercise(...) back above it"
        )
    report = evaluate(spec, function.student)
    record.write(spec.name, report.status)
    if os.environ.get("MINIQUANT_STRICT") == "1" and not report.passed:
        raise AssertionError(repr(report))
    return report


def evaluate(spec: Exercise, function: Callable[..., Any]) -> Report:
    """``check`` without the decorator and without the record: what a grader calls."""
    if wrong := _signature_problem(spec, function):
        return Report("failed", spec.name, what=wrong, cure="restore the line that begins with def", hint=spec.hints[0])
    cases = spec.all_cases()
    outcomes: list[Outcome] = []
    for case in cases:
        outcomes.append(attempt(spec, function, case, SECONDS))
        if isinstance(outcomes[-1].error, TooSlow) or is_stub(outcomes[-1].error, function):
            break  # one call that never ends is enough
    if is_stub(outcomes[-1].error, function):
        return Report("not attempted", spec.name, what="your function still raises NotImplementedError", hint=spec.goal)
    expected = [attempt(spec, spec.oracle, case) for case in cases[: len(outcomes)]]
    wrong_cases = []  # good input first, then what must be refused; the smallest first
    for number, (case, outcome, right) in enumerate(zip(cases, outcomes, expected)):
        if problem := _problem(spec, case, outcome, right):
            order = (right.error is not None, _size(case), number)
            wrong_cases.append((order, case, outcome, problem))
    if not wrong_cases:
        note = f"it also prints, which nobody asked for: {short(outcomes[0].printed)}" if outcomes[0].printed else ""
        warned = next((o.warned for o in outcomes if o.warned), "")
        note = note or (f"right, but numpy or Python warns: {warned}" if warned else "")
        return Report("passed", spec.name, what=f"right on all {len(cases)} cases", why=spec.why, note=note)
    (bad_input, _, shown), case, outcome, problem = min(wrong_cases, key=lambda w: w[0])
    calls = list(zip(cases, outcomes))
    mistake = _diagnose(spec, calls)
    if not mistake and not bad_input:  # a function that refuses nothing yet can still have a mistake with a name
        mistake = _diagnose(spec, calls, [number for number, right in enumerate(expected) if not right.error])
    note = _note(outcome)
    if not mistake:  # two mistakes at once, perhaps
        mistake, explained = _diagnose_in_part(spec, calls, {order[-1] for order, *_ in wrong_cases}, shown)
        if mistake:
            note = f"this explains {explained} of the {len(wrong_cases)} wrong cases; check again once it is mended"
    return Report(
        "failed",
        spec.name,
        what=f"wrong on {len(wrong_cases)} of {len(cases)} cases: {problem.what}",
        case=_describe_case(spec, case),
        expected=problem.expected,
        got=problem.got,
        mistake=mistake.name if mistake else "",
        cause=mistake.cause if mistake else "",
        cure=mistake.cure if mistake else "",
        hint=spec.hints[0],
        note=note,
        trace=_trace(outcome.error, function) if outcome.error and not isinstance(outcome.error, Finding) else "",
    )


def attempt(spec: Exercise, function: Callable[..., Any], case: Case, seconds: float | None = None) -> Outcome:
    """Call a function on a copy of a case, within a time limit (for students' functions), its printing caught."""
    arguments = copy.deepcopy(case)
    printed = io.StringIO()
    try:
        with time_limit(seconds), redirect_stdout(printed), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = spec.run(function, arguments)
    except (Exception, TooSlow, SystemExit) as error:
        return Outcome(error=error, printed=printed.getvalue())
    mutated = not all(_unchanged(before, after) for before, after in zip(case, arguments))
    view = not spec.may_view and any(_shares_memory(result, argument) for argument in arguments)
    warned = next((str(w.message) for w in caught if not issubclass(w.category, ResourceWarning)), "")
    return Outcome(_copied(result), None, printed.getvalue(), mutated, view, warned)


def _problem(spec: Exercise, case: Case, outcome: Outcome, expected: Outcome) -> Difference | None:
    if isinstance(outcome.error, TooSlow):
        return Difference(
            f"no answer after {SECONDS:g} seconds; does a loop never end?", _expectation(expected), "nothing"
        )
    if isinstance(outcome.error, Finding):
        return Difference(outcome.error.what, _expectation(expected), outcome.error.got)
    if expected.error:  # the case is bad input, and refusing it is the right answer
        if isinstance(outcome.error, type(expected.error)):
            return None
        got = _named(outcome.error) if outcome.error else short(outcome.result)
        wanted = type(expected.error).__name__
        what = f"this input must be refused with a{'n' * (wanted[0] in 'AEIOU')} {wanted}"
        return Difference(what, _expectation(expected), got)
    if outcome.error:
        refused = isinstance(outcome.error, MiniquantError)
        what = "your function refuses good input" if refused else "your function raised an error"
        return Difference(what, short(expected.result), _named(outcome.error))
    if outcome.result is None and outcome.printed and expected.result is not None:
        return Difference("your function prints its answer; it must return it", short(expected.result), "None")
    fields = spec.fields(*case) if spec.fields else None
    if found := difference(expected.result, outcome.result, spec.tolerance, fields):
        return found
    if outcome.mutated:
        return Difference(
            "your function changes its argument in place; work on a copy", "the argument as it was", "changed"
        )
    if outcome.view:
        what = "the result shares memory with the argument: changing one changes the other; return a copy"
        return Difference(what, "a fresh array", "a view")
    return None


def _diagnose(spec: Exercise, calls: list[tuple[Case, Outcome]], needed: list[int] | None = None) -> Mistake | None:
    """The mistake of the catalogue that gives what the student's function gave: in each call, or in each one needed.

    Of several that do, it is the one that agrees with the most calls, and the first of these.
    """
    found, most = None, 0
    for mistake in spec.mistakes:
        same = [attempt(spec, mistake.wrong, case).same_as(outcome, spec.tolerance) for case, outcome in calls]
        if all(same if needed is None else (same[i] for i in needed)) and sum(same) > most:
            found, most = mistake, sum(same)
    return found


def _diagnose_in_part(
    spec: Exercise, calls: list[tuple[Case, Outcome]], wrong: set[int], shown: int
) -> tuple[Mistake | None, int]:
    """The mistake that explains the wrong call shown and the most of the others, and that spoils no right one.

    It must explain at least half of the wrong calls. ``wrong`` and ``shown`` number the calls; returned beside it is
    how many it explains.
    """
    best, most = None, 0
    for mistake in spec.mistakes if not calls[shown][1].error else ():
        outcomes = (attempt(spec, mistake.wrong, case).same_as(outcome, spec.tolerance) for case, outcome in calls)
        same = {number for number, alike in enumerate(outcomes) if alike}
        if shown in same and len(same | wrong) == len(calls) and len(same & wrong) >= max(len(wrong) / 2, most + 1):
            best, most = mistake, len(same & wrong)
    return best, most


def _signature_problem(spec: Exercise, function: Callable[..., Any]) -> str:
    wanted = list(inspect.signature(spec.reference).parameters)
    found = list(inspect.signature(function).parameters)
    return (
        "" if wanted == found else f"the parameters are ({', '.join(found)}); the exercise needs ({', '.join(wanted)})"
    )


def _copied(result: Any) -> Any:
    """A copy that later calls cannot change; a generator and the like, which nobody can copy, as it is."""
    try:
        return copy.deepcopy(result)
    except Exception:
        return result


def _unchanged(before: Any, after: Any) -> bool:
    if hasattr(before, "state_dict"):
        return equal(dict(before.state_dict()), dict(after.state_dict()))
    return equal(before, after) or not isinstance(before, np.ndarray | list | dict | bytearray)


def _shares_memory(result: Any, argument: Any) -> bool:
    arrays = []
    for value in (result, argument):
        value = value.detach().numpy() if is_torch(value) else value
        if not isinstance(value, np.ndarray) or not value.size:
            return False
        arrays.append(value)
    return np.shares_memory(*arrays)


def _size(case: Case) -> int:
    lengths = [len(part) if isinstance(part, bytes) else len(repr(part)) for part in case]
    return sum(lengths) + sum(part.size for part in case if isinstance(part, np.ndarray))


def _describe_case(spec: Exercise, case: Case) -> str:
    names = inspect.signature(spec.reference).parameters
    return ", ".join(f"{name} = {short(value)}" for name, value in zip(names, case))


def _expectation(expected: Outcome) -> str:
    return _named(expected.error) if expected.error else short(expected.result)


def _named(error: BaseException) -> str:
    """``ValueError: …``, or the type alone if the error says nothing; ``struct.error`` rather than ``error``."""
    name = type(error).__name__
    name = f"{type(error).__module__}.{name}" if name == "error" else name
    return f"{name}: {error}" if str(error) else name


def _note(outcome: Outcome) -> str:
    if outcome.printed:
        return f"it printed {short(outcome.printed)}"
    return f"numpy or Python warns: {outcome.warned}" if outcome.warned else ""


def _trace(error: BaseException, function: Callable[..., Any]) -> str:
    """The lines of the traceback that lie in the student's function or below it."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, f in enumerate(frames) if f.name == function.__name__), len(frames))
    lines = [f"line {f.lineno} in {f.name}: {f.line}" for f in frames[first:]]
    return "\n".join([*lines, _named(error)])


# ---- the list of all exercises ---------------------------------------------------------------------------------------


@functools.cache
def exercises() -> Mapping[str, Exercise]:
    """Every exercise by name, in the order of the labs; a lab is loaded when it is needed."""
    from . import catalogue

    return catalogue.Catalogue()


def find(name: str) -> Exercise:
    """The exercise of this name. Raises ``MiniquantError`` naming the nearest if there is none."""
    import difflib

    if name not in exercises():
        close = difflib.get_close_matches(name, exercises(), n=1)
        raise MiniquantError(f"no exercise is called {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
    return exercises()[name]
