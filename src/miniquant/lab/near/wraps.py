"""Small steps that a student may put in a solution, as functions that a variant calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.arrays import is_torch
from .arrays import ARRAY_STEPS

PREFIX = "_near_"  # of the names under which a variant sees these functions


def _numeric(x: Any) -> bool:
    return (isinstance(x, int | float | np.number) and not isinstance(x, bool)) or isinstance(x, np.ndarray)


def _each(array: Callable[[Any], Any], scalar: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of an array, a number or a torch tensor."""

    def function(x: Any, *_: Any, **__: Any) -> Any:
        if is_torch(x):
            return type(x)(array(x.detach().numpy()))
        return array(x) if isinstance(x, np.ndarray | np.generic) else scalar(x)

    return function


def _half_away(x: Any) -> Any:
    return np.trunc(x + np.copysign(0.5, x))


def _rounded_to(dtype: str) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if isinstance(x, np.ndarray) and x.dtype.kind in "iuf":
            return x.astype(dtype).astype(x.dtype)
        if isinstance(x, np.floating):
            return x.astype(dtype).astype(x.dtype)
        if isinstance(x, int | float) and not isinstance(x, bool):
            return type(x)(float(np.dtype(dtype).type(x)))
        return x

    return function


def _converted_to(dtype: str) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        return x.astype(dtype) if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "iuf" else x

    return function


def _kept_in(bits: int, signed: bool) -> Callable[[Any], Any]:
    half = 2 ** (bits - 1) if signed else 0

    def function(x: Any) -> Any:
        if (isinstance(x, np.ndarray) and x.dtype.kind in "iu") or type(x) is int:
            return (x + half) % 2**bits - half
        return x

    return function


def _applied(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(x) if _numeric(x) else x


ROUNDINGS: dict[str, tuple[Callable[..., Any], str]] = {
    "floor": (_each(np.floor, math.floor), "rounds down where the right one rounds to the nearest"),
    "trunc": (_each(np.trunc, math.trunc), "cuts off the decimals where the right one rounds to the nearest"),
    "ceil": (_each(np.ceil, math.ceil), "rounds up where the right one rounds to the nearest"),
    "away": (
        _each(_half_away, lambda x: int(_half_away(x))),
        "adds 0.5 away from 0 and cuts off the decimals where the right one rounds halves to the even number",
    ),
    "half_up": (
        _each(lambda x: np.floor(x + 0.5), lambda x: math.floor(x + 0.5)),
        "adds 0.5 and rounds down where the right one rounds halves to the even number",
    ),
}

WRAPS: dict[str, tuple[Callable[..., Any], str]] = {
    "to16": (_rounded_to("float16"), "rounds {} to float16 on the way"),
    "to32": (_rounded_to("float32"), "rounds {} to float32 on the way"),
    "as16": (_converted_to("float16"), "computes with {} in float16"),
    "as32": (_converted_to("float32"), "computes with {} in float32"),
    "as64": (_converted_to("float64"), "computes with {} in float64"),
    "abs": (_applied(np.abs), "takes the absolute value of {}"),
    "positive": (_applied(lambda x: np.maximum(x, 0)), "puts 0 for negative values of {}"),
    "i32": (_kept_in(32, True), "keeps {} in 32 bits with a sign"),
    "u32": (_kept_in(32, False), "keeps {} in 32 bits"),
    "i16": (_kept_in(16, True), "keeps {} in 16 bits with a sign"),
    "u16": (_kept_in(16, False), "keeps {} in 16 bits"),
    "i8": (_kept_in(8, True), "keeps {} in 8 bits with a sign"),
    "u8": (_kept_in(8, False), "keeps {} in 8 bits"),
}

ITEMS: dict[str, tuple[Callable[..., Any], str]] = {
    "sorted": (sorted, "goes through {} in sorted order in a loop"),
    "reversed": (lambda x: list(x)[::-1], "goes through {} in the opposite order in a loop"),
    "butfirst": (lambda x: list(x)[1:], "leaves out the first round of a loop"),
    "butlast": (lambda x: list(x)[:-1], "leaves out the last round of a loop"),
    "first": (lambda x: list(x)[:1], "does only the first round of a loop"),
    "last": (lambda x: list(x)[-1:], "does only the last round of a loop"),
}

OF_NUMPY = ("sqrt", "abs", "mean", "sum", "rint", "floor", "ceil")


def _of_floats(name: str) -> Callable[[Any], Any]:
    """A function of numpy that makes no floats of integers, and no array of a list: that may be right by accident."""

    def function(x: Any) -> Any:
        floats = isinstance(x, float | np.floating) or (isinstance(x, np.ndarray) and x.dtype.kind == "f")
        return getattr(np, name)(x) if floats or name in ("sqrt", "mean", "sum") else x

    return function


SCOPE = {PREFIX + name: function for table in (ROUNDINGS, WRAPS, ITEMS) for name, (function, _) in table.items()}
SCOPE |= {PREFIX + name: function for name, (function, _, _) in ARRAY_STEPS.items()}
SCOPE |= {PREFIX + "np_" + name: _of_floats(name) for name in OF_NUMPY}
