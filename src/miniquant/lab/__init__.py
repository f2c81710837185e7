"""The teaching engine: exercises that fall back to the reference, checks that say what is wrong and why."""

from .engine import Exercise, Mistake, check, exercise, exercises
from .guide import hint, progress

__all__ = ["Exercise", "Mistake", "check", "exercise", "exercises", "hint", "progress"]
