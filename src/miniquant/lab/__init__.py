"""The teaching engine: exercises that fall back to the reference, checks that say what is wrong and why."""

from .engine import Exercise, Mistake, check, exercise, exercises

__all__ = ["Exercise", "Mistake", "check", "exercise", "exercises"]
