"""``exercise`` marks a student's function, ``check`` runs its checks and gives help, one step more each time.

The first failed check shows the case, both results and the cause; from the second on Hint 1 is there as well. The cure
is never printed here: ``hint`` gives it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..core.errors import MiniquantError
from . import record, session
from .attempt import is_stub
from .catalogue import find
from .compare import kind
from .contest import measured, sentence
from .guide import next_rung
from .judging import evaluate
from .report import Report
from .spec import Exercise, Function

__all__ = ["Answer", "check", "evaluate", "exercise"]


def exercise(name: str) -> Callable[[Function], Answer]:
    """Mark a function as the student's answer to an exercise.

    As long as its body raises ``NotImplementedError``, a call gives what the reference gives, so later cells work. So
    does a function whose last check failed, and one line says so. An error from deeper down, in a function that the
    student's own code calls, is never covered up.

    Raises ``MiniquantError`` if there is no exercise of this name.
    """
    if not isinstance(name, str):
        own = getattr(name, "__name__", "")
        example = own or "magic_bytes"
        raise MiniquantError(f'@exercise needs the name of the exercise in quotes: write @exercise("{example}")')
    spec = find(name)
    return lambda function: Answer(spec, function)


class Answer:
    """A student's function with its exercise; called, it is the function.

    While it is a stub, and after a check that failed, it is the reference.
    """

    def __init__(self, spec: Exercise, function: Function) -> None:
        functools.update_wrapper(self, function)
        self.exercise, self.student = spec, function
        self.failed = False  # in its last check

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; as long as it is a stub or wrong, the reference."""
        if self.failed:
            session.reference_stands_in(self.exercise.name)
            return self.exercise.reference(*args, **kwargs)
        try:
            return self.student(*args, **kwargs)
        except NotImplementedError as error:
            if not is_stub(error, self.student):
                raise
            return self.exercise.reference(*args, **kwargs)


def check(function: Function) -> Report:
    """Run the checks of a student's function; show the report in a notebook, or print it.

    The report's ``status`` is ``"passed"``, ``"not attempted"`` or ``"failed"``; ``report.case`` has the case that
    failed. With ``MINIQUANT_STRICT=1`` in the environment, anything but a pass raises ``AssertionError``: so that
    graders which count exceptions can grade.
    """
    if not isinstance(function, Answer):
        return _not_an_answer(function)
    spec = function.exercise
    report = evaluate(spec, function.student)
    figure = measured(spec.contest, function.student) if spec.contest and report.passed else None
    lower = spec.contest is None or spec.contest.lower_is_better
    record.write(spec.name, report.status, figure, lower_is_better=lower)
    function.failed = report.status == "failed"
    state = session.state(spec.name)
    if report.passed:
        state.failed, state.report, state.figure = 0, None, figure
        report = replace(report, score=sentence(spec, figure))
        session.is_right_again(spec.name)
    elif report.status == "failed":
        state.failed, state.report = state.failed + 1, report
        if state.failed > 1:  # the second time, the first hint comes by itself
            state.step = max(state.step, 1)
            report = replace(report, hint=spec.hints[0])
        report = replace(report, next=next_rung(spec))
    if os.environ.get("MINIQUANT_STRICT") == "1" and not report.passed:
        raise AssertionError(repr(report))
    return report


def _not_an_answer(value: Any) -> Report:
    """What was passed to ``check`` in place of a function that is marked as an exercise, and what is wanted."""
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        what = f'{name} is not marked as an exercise; put @exercise("{name}") back above its def'
        return Report("failed", name, what=what)
    what = f"check was given a result ({kind(value)}), not a function; write the name alone, as in check(magic_bytes)"
    return Report("failed", "check", what=what)
