"""``check``: run a student's function on every case, compare it with the oracle, and say what is wrong and why.

If the function is wrong, the catalogue is searched for the mistake whose results are the same as the student's.
"""

from __future__ import annotations

import functools
import inspect
import os
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import MiniquantError
from . import record
from .attempt import SECONDS, Outcome, attempt, cases_of, expected_of, is_stub
from .catalogue import find
from .compare import Difference, difference, short
from .diagnose import diagnose, diagnose_in_part
from .limit import TooSlow
from .report import Report
from .spec import Case, Exercise, Finding, Function


def exercise(name: str) -> Callable[[Function], Answer]:
    """Mark a function as the student's answer to an exercise.

    As long as its body raises ``NotImplementedError``, a call gives what the reference gives, so later cells work. An
    error from deeper down, in a function that the student's own code calls, is never covered up.
    """
    spec = find(name)
    return lambda function: Answer(spec, function)


class Answer:
    """A student's function with its exercise; called, it is the function, or the reference while it is a stub."""

    def __init__(self, spec: Exercise, function: Function) -> None:
        functools.update_wrapper(self, function)
        self.exercise, self.student = spec, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; as long as it is a stub, the reference."""
        try:
            return self.student(*args, **kwargs)
        except NotImplementedError as error:
            if not is_stub(error, self.student):
                raise
            return self.exercise.reference(*args, **kwargs)


def check(function: Function) -> Report:
    """Run the checks of a student's function; show the report in a notebook, or print it.

    The report's ``status`` is ``"passed"``, ``"not attempted"`` or ``"failed"``. With ``MINIQUANT_STRICT=1`` in the
    environment, anything but a pass raises ``AssertionError``: so that graders which count exceptions can grade.
    """
    if not isinstance(function, Answer):
        name = getattr(function, "__name__", repr(function))
        return Report(
            "failed", name, what=f"{name} is not marked as an exercise", cure="put @exercise(...) back above it"
        )
    spec = function.exercise
    report = evaluate(spec, function.student)
    record.write(spec.name, report.status)
    if os.environ.get("MINIQUANT_STRICT") == "1" and not report.passed:
        raise AssertionError(repr(report))
    return report


def evaluate(spec: Exercise, function: Function) -> Report:
    """``check`` without the decorator and without the record: what a grader calls."""
    if wrong := _signature_problem(spec, function):
        return Report("failed", spec.name, what=wrong, cure="restore the line that begins with def", hint=spec.hints[0])
    cases = cases_of(spec)
    outcomes: list[Outcome] = []
    for case in cases:
        outcomes.append(attempt(spec, function, case, SECONDS))
        if isinstance(outcomes[-1].error, TooSlow) or is_stub(outcomes[-1].error, function):
            break  # one call that never ends is enough
    if is_stub(outcomes[-1].error, function):
        return Report("not attempted", spec.name, what="your function still raises NotImplementedError", hint=spec.goal)
    expected = expected_of(spec)[: len(outcomes)]
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
    mistake = diagnose(spec, outcomes)
    if not mistake and not bad_input:  # a function that refuses nothing yet can still have a mistake with a name
        mistake = diagnose(spec, outcomes, [number for number, right in enumerate(expected) if not right.error])
    note = _note(outcome)
    if not mistake:  # two mistakes at once, perhaps
        mistake, explained = diagnose_in_part(spec, outcomes, {order[-1] for order, *_ in wrong_cases}, shown)
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


def _signature_problem(spec: Exercise, function: Function) -> str:
    wanted = list(inspect.signature(spec.reference).parameters)
    found = list(inspect.signature(function).parameters)
    return (
        "" if wanted == found else f"the parameters are ({', '.join(found)}); the exercise needs ({', '.join(wanted)})"
    )


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


def _trace(error: BaseException, function: Function) -> str:
    """The lines of the traceback that lie in the student's function or below it."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, f in enumerate(frames) if f.name == function.__name__), len(frames))
    lines = [f"line {f.lineno} in {f.name}: {f.line}" for f in frames[first:]]
    return "\n".join([*lines, _named(error)])
