"""How an error reads: its name and text, and the lines of its traceback that are the student's."""

from __future__ import annotations

import dis
import re
import traceback
import types
from collections.abc import Iterator
from itertools import pairwise
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
    numbers = [number for _, number in lines_of(error)]
    frames = [
        traceback.FrameSummary(f.filename, n, f.name)
        for f, n in zip(traceback.extract_tb(error.__traceback__), numbers)
    ]
    first = next((i for i, f in enumerate(frames) if f.name == function.__name__), len(frames))
    lines = [f"line {f.lineno} in {f.name}: {f.line}" for f in frames[first:]]
    if isinstance(error, RecursionError) and len(lines) > FRAMES:
        lines = [*lines[:FRAMES], f"… and {len(lines) - FRAMES} more lines like these"]
    return "\n".join([*lines, named(error)])


def lines_of(error: BaseException | None) -> Iterator[tuple[types.FrameType, int]]:
    """The frames of a traceback and the numbers of their lines, from the call to where the error was raised.

    Python 3.11 joins two loads of names to one step after some calls, and then gives the first one's line for a name
    that has no value: the line of that name is found here.
    """
    unset = re.search(r"'(\w+)'", str(error)) if isinstance(error, UnboundLocalError) else None
    step = error.__traceback__ if error else None
    while step:
        number = step.tb_lineno
        if unset and step.tb_next is None:
            for one, two in pairwise(dis.get_instructions(step.tb_frame.f_code)):
                if one.offset == step.tb_lasti and unset[1] not in (one.argval, None) and two.argval == unset[1]:
                    number = two.positions.lineno or number if two.positions else number
        yield step.tb_frame, number
        step = step.tb_next
