"""What is compared of one number: numpy's float32, because the next function of the lab calls ``astype`` on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...lab.spec import Finding
from .by_hand import Pair


def number32(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    """A result that is one number, as a float32 of numpy; any other result as it is.

    >>> number32(lambda x: x, (np.array(0.5, np.float32),))
    np.float32(0.5)

    Raises ``Finding`` for a number of another type.
    """
    return _number32(function(*case))


def number32_of_number(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    """As ``number32`` where the argument is one number; what is made of an array stays as it is.

    >>> number32_of_number(lambda x: x[0], (np.array([0.5]),))
    np.float64(0.5)
    """
    return function(*case) if np.ndim(case[0]) else number32(function, case)


def integers_and_number32(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    """A pair of integers and one scale: the scale as in ``number32``."""
    result = function(*case)
    if isinstance(result, tuple) and len(result) == 2:
        parts = (result[0], _number32(result[1]))
        return Pair(*parts) if isinstance(result, Pair) else parts
    return result


def _number32(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.float32 | bool) or not isinstance(value, int | float | np.number):
        return value
    name = f"np.{value.dtype}" if isinstance(value, np.number) else f"Python's {type(value).__name__}"
    raise Finding("the type differs: np.float32 is expected", f"{value} ({name})")
