"""``predict`` asks before an experiment: the student writes a number, and then sees by how much it missed."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ..core.language import translated
from .figures import figure
from .report import marked

_COLOUR = "#3a6ea5"
FAR = 3  # from here on a difference is told as a factor


@dataclass(frozen=True)
class Beside:
    """A guess and the measurement, in one line."""

    line: str

    def __repr__(self) -> str:
        return self.line

    def _repr_html_(self) -> str:
        return _box("".join(f"<div>{html.escape(part)}</div>" for part in self.line.split(" · ")))


@dataclass(frozen=True)
class Prediction:
    """A question and what a student expects. ``float`` gives the guess, or nan where there is none.

    ``problem`` says why a guess is not counted; it is empty for a number and for ``None``.
    """

    question: str
    unit: str
    guess: float | None = None
    problem: str = ""

    def __float__(self) -> float:
        return math.nan if self.guess is None else self.guess

    def beside(self, measured: Any, digits: int = 3) -> Beside:
        """The guess beside what was measured, and how far apart they are; ``digits`` are significant ones.

        measured: a number, also one of numpy or torch

        >>> predict("By what factor does the file get smaller?", "times", 4).beside(3.08)
        your guess: 4 times · measured: 3.08 times · off by 30 %
        """
        found = float(measured)
        shown = f"{translated('measured')}: {_with_unit(found, self.unit, digits)}"
        if self.guess is None:
            return Beside(f"{translated('no guess')} · {shown}")
        distance = translated(_distance(self.guess, found, self.unit, digits))
        return Beside(f"{translated('your guess')}: {self._own()} · {shown} · {distance}")

    def _own(self) -> str:
        return _with_unit(float(self), self.unit, 6)

    def _state(self) -> str:
        if self.problem:
            return translated(self.problem)
        if self.guess is None:
            return translated("no guess yet; write your number in place of `None`")
        return f"{translated('your guess')}: {self._own()}"

    def __repr__(self) -> str:
        return f"{self.question}\n  {self._state().replace('`', '')}"

    def _repr_html_(self) -> str:
        return _box(f"<strong>{html.escape(self.question)}</strong><br>{marked(self._state())}")


def predict(question: str, unit: str, guess: Any = None) -> Prediction:
    """A question before an experiment. A student replaces ``None`` by a number.

    A guess that is no finite number is not counted: the prediction says why, and nothing stops.

    >>> predict("By what factor does the file get smaller?", "times", None)
    By what factor does the file get smaller?
      no guess yet; write your number in place of None
    >>> float(predict("By what factor does the file get smaller?", "times", 4))
    4.0
    """
    if guess is None:
        return Prediction(question, unit)
    if isinstance(guess, str):
        return Prediction(
            question, unit, problem=f"{guess!r} is text; write a number without quotes and without a unit"
        )
    if isinstance(guess, bool) or not isinstance(guess, Real):
        return Prediction(question, unit, problem=f"the guess is of type {type(guess).__name__}; write one number")
    try:
        number = float(guess)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        return Prediction(question, unit, problem="the guess is not finite; write a finite number")
    return Prediction(question, unit, number)


def _with_unit(value: float, unit: str, digits: int) -> str:
    return f"{figure(value, digits)} {unit}".strip()


def _distance(guess: float, found: float, unit: str, digits: int) -> str:
    if not math.isfinite(found):
        return "no difference can be computed"
    if guess == found:
        return "exactly right"
    if unit in ("%", "percent"):
        return f"off by {figure(abs(guess - found), digits)} percentage points"
    if found == 0:
        return f"off by {_with_unit(abs(guess), unit, digits)}"
    ratio = guess / found
    if ratio >= FAR or 0 < ratio <= 1 / FAR:
        return f"off by a factor of {figure(max(ratio, 1 / ratio), 2)}"
    percent = 100 * abs(guess - found) / abs(found)
    return f"off by {percent:.0f} %" if percent >= 1 else "off by less than 1 %"


def _box(inside: str) -> str:
    style = f"border-left:.3em solid {_COLOUR};padding:.4em .8em;color:inherit;overflow-x:auto"
    return f"<div role='note' class='mq-report' style='{style}'>{inside}</div>"
