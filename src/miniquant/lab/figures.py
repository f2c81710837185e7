"""Figures for people: with a few digits, or as a bound that is the same on every machine."""

from __future__ import annotations

import math
from typing import Any


def figure(value: float, digits: int = 3) -> str:
    """A number for people: whole numbers in full, others with so many significant digits.

    >>> figure(3.0831), figure(1048576), figure(12345.6), figure(0.00012345), figure(1e-9)
    ('3.08', '1,048,576', '12,300', '0.000123', '1e-09')
    """
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    rounded = float(f"{value:.{digits}g}")
    if 1e-5 <= abs(rounded) < 1e15:
        places = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
        text = f"{rounded:,.{places}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.{digits}g}"


def at_most(value: Any, limit: float | None = None) -> str:
    """An upper bound of a number that differs a little from machine to machine: the next of 1, 2, 5, 10, 20 …

    limit: the bound to show if the number keeps it, for numbers that may differ by more

    >>> at_most(0.0031), at_most(3.4e-8), at_most(0.5), at_most(0)
    ('at most 0.005', 'at most 5e-08', 'at most 0.5', '0')
    >>> at_most(0.0031, limit=0.15), at_most(0.31, limit=0.15)
    ('at most 0.15', 'at most 0.5')
    """
    if limit is not None and float(value) <= limit:
        return f"at most {limit:g}"
    return _bound(float(value), "at most", upper=True)


def at_least(value: Any, limit: float | None = None) -> str:
    """A lower bound, in the same steps.

    >>> at_least(0.0031), at_least(47), at_least(0), at_least(47, limit=10)
    ('at least 0.002', 'at least 20', '0', 'at least 10')
    """
    if limit is not None and float(value) >= limit:
        return f"at least {limit:g}"
    return _bound(float(value), "at least", upper=False)


def _bound(value: float, words: str, *, upper: bool) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if value < 0:
        raise ValueError(f"{value:g} is negative; pass its size")
    power = math.floor(math.log10(value))
    steps = [float(f"{step}e{power + more}") for more in (-1, 0, 1) for step in (1, 2, 5)]
    fits = [step for step in steps if (step >= value if upper else step <= value)]
    return f"{words} {min(fits) if upper else max(fits):g}"
