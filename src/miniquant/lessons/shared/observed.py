"""What is compared of a result: its values, where the order of a dict or the type of a number does not matter."""

from __future__ import annotations

import gc
import inspect
import types
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from ...lab.spec import Finding


def in_any_order(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    """A dict by its keys, in any order.

    >>> in_any_order(lambda: {"b": 1, "a": 2}, ())
    {'a': 2, 'b': 1}
    """
    result = function(*case)
    if isinstance(result, dict) and all(isinstance(key, str) for key in result):
        return {key: result[key] for key in sorted(result)}
    return result


class Number(float):
    """A number of any type: 32 and 32.0 are the same, and each is shown as it was written.

    >>> Number(32), Number(32.0), Number(32) == Number(32.0)
    (32, 32.0, True)
    """

    def __new__(cls, given: Any) -> Number:
        """The number, and its text."""
        self = super().__new__(cls, given)
        self.text = str(given)
        return self

    def __repr__(self) -> str:
        return self.text


Number.__name__ = "number"  # how a report calls its type


def values(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    """Dicts by their keys, in any order; numbers of any type, so that 32 and 32.0 bytes are the same.

    >>> values(lambda: {"b": 1, "a": (2, 3)}, ())
    {'a': (2, 3), 'b': 1}
    """
    result = in_any_order(function, case)
    return {key: _as_number(result[key]) for key in result} if isinstance(result, dict) else _as_number(result)


def where_a_float_is_asked(asked: Callable[..., bool]) -> Callable[..., Any]:
    """An observation that finds an int as the second of three results where a float is asked for, and numpy's numbers
    there and in a list there.

    >>> where_a_float_is_asked(lambda: True)(lambda: ("key", 2.0, 9), ())
    ('key', 2.0, 9)
    """

    def observe(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
        result = function(*case)
        if isinstance(result, tuple) and len(result) == 3 and isinstance(result[1], Integral) and asked(*case):
            what = f"the value has the type {type(result[1]).__name__}, and a float is asked for"
            raise Finding(what, f"{result[1]!r} ({type(result[1]).__name__})")
        if isinstance(result, tuple) and len(result) == 3:
            one, items = "the value", [result[1]]
            if isinstance(result[1], list):
                one, items = "an item of the list", result[1]
            for item in items:
                if isinstance(item, np.generic) and (one != "the value" or not isinstance(item, float | str)):
                    what = f"{one} has numpy's type {type(item).__name__}, and one of Python is asked for"
                    raise Finding(what, f"{item!r} ({type(item).__name__})")
        return result

    return observe


def anew(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    """The result; a finding if an equal array, another one, is kept after the call where the next call can find it.

    >>> anew(lambda x: x + 1, (np.int8([1, 2]),))
    array([2, 3], dtype=int8)
    """
    result = function(*case)
    if isinstance(result, np.ndarray) and result.size and (name := _keeper(inspect.unwrap(function), result)):
        raise Finding("the result is kept for later calls, and each call must compute its own", f"it is in {name}")
    return result


def _keeper(function: Any, result: np.ndarray) -> str:
    """Where an equal array is kept: in a variable that the function names, in its defaults or attributes, or a cache."""
    function = function if hasattr(function, "__code__") else getattr(function, "function", function)  # of a mistake
    code, scope = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    names = _names(code) if code else []
    held = [(f"`{name}`", scope[name]) for name in names if name in scope]
    held += [("a default value", getattr(function, "__defaults__", None)), ("an attribute", vars(function))]
    cells = getattr(function, "__closure__", None) or ()
    held += [("a variable around the function", cell.cell_contents) for cell in cells]
    return next((name for name, value in held if _holds(value, result, 4)), "")


def _names(code: types.CodeType) -> list[str]:
    inner = [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return [*code.co_names, *(name for part in inner for name in _names(part))]


def _holds(value: Any, result: np.ndarray, depth: int) -> bool:
    if isinstance(value, np.ndarray):
        return value.shape == result.shape and np.array_equal(value, result) and not np.shares_memory(value, result)
    if isinstance(value, dict):
        inside = list(value.values())
    elif isinstance(value, list | tuple | set):
        inside = list(value)
    elif hasattr(value, "cache_info"):
        inside = gc.get_referents(value)  # those of functools.lru_cache
    else:
        return False
    return depth > 0 and any(_holds(part, result, depth - 1) for part in inside[:10_000])


def quiet_values(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    """The same, where a right function may meet inf - inf, of which numpy would warn.

    >>> quiet_values(np.subtract, (np.inf, np.inf))
    nan
    """
    with np.errstate(invalid="ignore"):
        return values(function, case)


def _as_number(value: Any) -> Any:
    return Number(value) if isinstance(value, Real) and not isinstance(value, bool) else value
