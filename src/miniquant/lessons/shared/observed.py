"""What is compared of a result: its values, where the order of a dict or the type of a number does not matter."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any


def in_any_order(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    """A dict by its keys, in any order.

    >>> in_any_order(lambda: {"b": 1, "a": 2}, ())
    {'a': 2, 'b': 1}
    """
    result = function(*case)
    if isinstance(result, dict) and all(isinstance(key, str) for key in result):
        return {key: result[key] for key in sorted(result)}
    return result


def values(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    """Dicts by their keys, in any order; numbers as floats, so that 32 and 32.0 bytes are the same.

    >>> values(lambda: {"b": 1, "a": (2, 3)}, ())
    {'a': (2, 3), 'b': 1.0}
    """
    result = in_any_order(function, case)
    return {key: _as_float(result[key]) for key in result} if isinstance(result, dict) else _as_float(result)


def _as_float(value: Any) -> Any:
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else value
