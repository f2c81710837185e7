"""What the text of a student's function proves: that it does not use what a cause speaks of."""

from __future__ import annotations

import inspect
import re

from .spec import Function


def speaks_of_other_code(cause: str, function: Function) -> bool:
    """Whether a cause names a function or an operator that the student's code does not contain.

    Two different lines may give the same results: `//` and `int()`. Where the code cannot be read, nothing is proven.
    """
    try:
        source = inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):
        return False
    body = source.split('"""')[-1] if source.count('"""') == 2 else source  # without the docstring
    names = [name for fragment in re.findall(r"`([^`]+)`", cause) for name in _used(fragment)]
    if re.search(r"\bnumpy\b", cause, re.I):
        names.append("np.")
    return any(name not in body for name in names)


def _used(fragment: str) -> list[str]:
    """The functions and operators in a piece of code."""
    called = re.findall(r"(\w+)\(", fragment)
    operators = re.findall(r"//|\*\*|<<|>>|%|==|keepdims=True", fragment)
    return called + [operator for operator in operators if not re.search(r"[\"']", fragment)]
