"""How much Python a call runs, counted in lines: in place of a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable

from miniquant.core.errors import FormatError


def lines_of_python(function: Callable[[], object]) -> int:
    """How many lines run, also if the call ends with an error of ours; then the error is dropped."""
    count = 0

    def trace(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except FormatError:
        pass
    finally:
        sys.settrace(before)
    return count
