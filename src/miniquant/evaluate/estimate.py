"""A mean of several measurements, and how far chance may have moved it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error.

    >>> print(Estimate(0.123456, 0.0021))
    0.1235 ± 0.0021
    """

    mean: float
    error: float

    def __str__(self) -> str:
        if self.error == 0 or not math.isfinite(self.error):
            return f"{self.mean:.3g}"
        digits = max(0, 1 - math.floor(math.log10(abs(self.error))))
        if digits > 6:
            return f"{self.mean:.2e} ± {self.error:.1e}"
        return f"{self.mean:.{digits}f} ± {self.error:.{digits}f}"

    @classmethod
    def of(cls, samples: np.ndarray) -> Estimate:
        """samples: (n,) one value a window."""
        error = samples.std(ddof=1) / math.sqrt(len(samples)) if len(samples) > 1 else math.nan
        return cls(float(samples.mean()), float(error))
