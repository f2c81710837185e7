"""Observers: which range of weights or inputs the integers shall cover; what lies outside is clipped.

An observer looks at rows of numbers and answers with a lowest and a highest number for each row. Covering everything
leaves nothing out and makes every step large; covering less makes steps small and clips what is rare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ..core.errors import SchemeError

FakeQuantize = Callable[[np.ndarray, "Range"], np.ndarray]


class Range(NamedTuple):
    """The numbers to cover, row by row.   low, high: (rows,) float32, low <= 0 <= high."""

    low: np.ndarray
    high: np.ndarray


class Observer(Protocol):
    """What a specification asks for the range of each row."""

    def range(self, x: np.ndarray, fake_quantize: FakeQuantize) -> Range:
        """x: (rows, n) float32   ->   its range. ``fake_quantize`` gives ``x`` back as a range would round it."""
        ...


@dataclass(frozen=True)
class MinMax:
    """From the smallest number to the largest, 0 included, so that 0 lies on the grid.

    >>> MinMax().range(np.float32([[-1, 0.5, 2], [1, 2, 3]]), None)
    Range(low=array([-1.,  0.], dtype=float32), high=array([2., 3.], dtype=float32))
    """

    def range(self, x: np.ndarray, fake_quantize: FakeQuantize) -> Range:
        """x: (rows, n) float32   ->   its range."""
        return _with_zero(x.min(axis=1), x.max(axis=1))


@dataclass(frozen=True)
class Percentile:
    """Leaves out the same share of the numbers at either end: ``percentile=99`` covers the middle 98 of 100.

    Between two numbers it takes the point that the share falls on (numpy's default). Raises ``SchemeError`` for a
    percentile that is not above 50 and at most 100.

    >>> Percentile(90).range(np.arange(-10, 91, dtype=np.float32)[None], None)
    Range(low=array([0.], dtype=float32), high=array([80.], dtype=float32))
    """

    percentile: float = 99.9

    def __post_init__(self) -> None:
        if not 50 < self.percentile <= 100:
            raise SchemeError(f"the percentile is {self.percentile}; expected above 50, and at most 100 (all of them)")

    def range(self, x: np.ndarray, fake_quantize: FakeQuantize) -> Range:
        """x: (rows, n) float32   ->   its range."""
        low, high = np.percentile(x, [100 - self.percentile, self.percentile], axis=1)
        return _with_zero(low.astype(np.float32), high.astype(np.float32))


@dataclass(frozen=True)
class MSE:
    """The whole range or a smaller one, down to ``smallest`` of it in ``steps`` steps: that of the least squared error.

    Raises ``SchemeError`` unless ``smallest`` is above 0 and at most 1, and there are steps.
    """

    steps: int = 32
    smallest: float = 0.4

    def __post_init__(self) -> None:
        if self.steps < 1 or not 0 < self.smallest <= 1:
            raise SchemeError(f"{self} tries no range; expected at least one step, and smallest above 0 and at most 1")

    def range(self, x: np.ndarray, fake_quantize: FakeQuantize) -> Range:
        """x: (rows, n) float32   ->   its range."""
        whole = MinMax().range(x, fake_quantize)
        best, least = whole, np.full(len(x), np.inf)
        for share in np.linspace(1, self.smallest, self.steps, dtype=np.float32):
            tried = Range(whole.low * share, whole.high * share)
            error = np.square(fake_quantize(x, tried) - x, dtype=np.float64).sum(axis=1)  # (rows,)
            better = error < least
            least = np.where(better, error, least)
            best = Range(np.where(better, tried.low, best.low), np.where(better, tried.high, best.high))
        return best


def _with_zero(low: np.ndarray, high: np.ndarray) -> Range:
    return Range(np.minimum(low, np.float32(0)), np.maximum(high, np.float32(0)))
