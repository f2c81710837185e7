"""What happened to an exercise since Python was started: the rungs of help that were shown, and the last check."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..core.language import translated
from .report import Report


@dataclass
class State:
    """``failed`` counts the failed checks since the last pass, ``step`` the rungs of help that were shown.

    ``figure`` is that of the last answer to an open exercise that passed.
    """

    failed: int = 0
    step: int = 0
    report: Report | None = None
    figure: float | None = None


_states: dict[str, State] = {}
_stood_in: set[str] = set()  # exercises whose reference was used, and somebody was told
_checking = [0]


def state(exercise: str) -> State:
    """The state of an exercise; new ones have seen nothing."""
    return _states.setdefault(exercise, State())


def reset() -> None:
    """Forget everything, as in a fresh kernel."""
    _states.clear()
    _stood_in.clear()


@contextmanager
def checking() -> Iterator[None]:
    """While a check runs a student's function, nobody is told that a reference stands in."""
    _checking[0] += 1
    try:
        yield
    finally:
        _checking[0] -= 1


def reference_stands_in(exercise: str) -> None:
    """Say once that a cell uses the reference, since the student's function failed its check."""
    if not _checking[0] and exercise not in _stood_in:
        _stood_in.add(exercise)
        print(translated(f"this cell uses the reference for `{exercise}`: yours is not right yet"))


def is_right_again(exercise: str) -> None:
    """The function passed; if it fails later, say so again."""
    _stood_in.discard(exercise)
