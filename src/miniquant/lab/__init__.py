"""The teaching engine: exercises that fall back to the reference, checks that say what is wrong and why."""

from .catalogue import exercises, find
from .checking import check, evaluate, exercise
from .guide import hint, progress
from .spec import Exercise, Mistake, body, edit, omit

__all__ = [
    "Exercise",
    "Mistake",
    "body",
    "check",
    "edit",
    "evaluate",
    "exercise",
    "exercises",
    "find",
    "hint",
    "omit",
    "progress",
]
