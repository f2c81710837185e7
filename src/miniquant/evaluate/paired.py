"""Two models on the same windows of text: how much better one is, and how far chance may have moved that figure.

Windows differ much more from each other than two models do on one window. So the windows are drawn again and again with
replacement, the same ones for both models, and the figure of each draw is computed: what the models share drops out.

Source: the percentile bootstrap, Efron and Tibshirani, "An Introduction to the Bootstrap", chapter 13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

RESAMPLES, CONFIDENCE = 10_000, 0.95


class Interval(NamedTuple):
    """A figure, and the two ends between which 95 % of its values on drawn windows lie."""

    value: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a value lies between the ends: the figure may differ from it by chance.

        >>> Interval(0.9, 0.7, 1.1).holds(1), Interval(0.5, 0.4, 0.6).holds(1)
        (True, False)
        """
        return self.low <= value <= self.high


class Bootstrap:
    """Intervals over ``n`` windows. The draws are the same for every figure, so that figures are compared in pairs.

    >>> Bootstrap(2).interval(lambda a, b: a - b, np.array([1.0, 1.0]), np.array([0.5, 0.5]))
    Interval(value=0.5, low=0.5, high=0.5)
    """

    def __init__(self, n: int) -> None:
        draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES)
        self.weights = draws / n  # (resamples, windows)

    def interval(self, statistic: Callable[..., Any], *samples: np.ndarray) -> Interval:
        """A statistic of the means of samples, each (windows,), one value a window."""
        value = statistic(*(s.mean() for s in samples))
        tail = 50 * (1 - CONFIDENCE)
        low, high = np.percentile(statistic(*(self.weights @ s for s in samples)), [tail, 100 - tail])
        return Interval(float(value), float(low), float(high))

    def mean(self, sample: np.ndarray) -> Interval:
        """The mean of a sample: (windows,)."""
        return self.interval(lambda a: a, sample)

    def ratio(self, sample: np.ndarray, other: np.ndarray) -> Interval:
        """The mean of one sample over that of another on the same windows: each (windows,)."""
        return self.interval(np.divide, sample, other)

    def difference(self, sample: np.ndarray, other: np.ndarray) -> Interval:
        """The mean of one sample less that of another on the same windows: each (windows,)."""
        return self.interval(np.subtract, sample, other)


def gap_closed(nll: np.ndarray, plain: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Which part of the perplexity that plain rounding adds to the float model's is gone again.

    >>> float(gap_closed(np.log(5.5), np.log(6), np.log(5)).round(6))
    0.5
    """
    closed: np.ndarray = (np.exp(plain) - np.exp(nll)) / (np.exp(plain) - np.exp(base))
    return closed
