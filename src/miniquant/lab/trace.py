"""How an error reads: its name and text, and the lines of its traceback that are the student's."""

from __future__ import annotations

import traceback
from typing import Any

from .attempt import origin_of

FRAMES = 3  # so many lines of a traceback that repeats itself are shown


def named(error: BaseException) -> str:
    """``ValueError: …``, or the type alone if the error says nothing; ``struct.error`` rather than ``error``."""
    name = type(error).__name__
    name = f"{type(error).__module__}.{name}" if name == "error" else name
    return f"{name}: {error}" if str(error) else name


def trace_of(error: BaseException, function: Any) -> str:
    """The lines of the traceback that lie in the student's function or below it; of a long one only the first."""
    if origin := origin_of(error):
        return origin.trace
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, f in enumerate(frames) if f.name == function.__name__), len(frames))
    lines = [f"line {f.lineno} in {f.name}: {f.line}" for f in frames[first:]]
    if isinstance(error, RecursionError) and len(lines) > FRAMES:
        lines = [*lines[:FRAMES], f"… and {len(lines) - FRAMES} more lines like these"]
    return "\n".join([*lines, named(error)])
