"""The teaching engine: exercises that fall back to the reference, checks that say what is wrong and why."""

from .catalogue import exercises, find
from .checking import check, evaluate, exercise
from .contest import board
from .figures import at_least, at_most
from .guide import hint, progress
from .prediction import Prediction, predict
from .spec import Contest, Exercise, Mistake, body, edit, omit
from .unknown_name import watch

__all__ = [
    "Contest",
    "Exercise",
    "Mistake",
    "Prediction",
    "at_least",
    "at_most",
    "board",
    "body",
    "check",
    "edit",
    "evaluate",
    "exercise",
    "exercises",
    "find",
    "hint",
    "omit",
    "predict",
    "progress",
]

watch()
