"""What is special about the weights of a case: a scale of 0, quotients that end in .5 or lie beyond the range."""

from __future__ import annotations

import numpy as np


def of_quotients(w: np.ndarray, scale: np.ndarray, limit: int) -> dict[str, bool]:
    """Properties of the quotients w / scale, by the words for them.

    >>> [words for words, holds in of_quotients(np.float32([[2.5, 9.0]]), np.float32([[1.0]]), 7).items() if holds]
    ['a quotient ends in exactly .5', 'a rounded quotient lies beyond ±7', 'a quotient is not whole']
    """
    divisor = np.where(scale == 0, np.float32(np.inf), scale)
    quotient = np.asarray(w, np.float32) / divisor
    fraction = np.abs(quotient) % 1
    return {
        "a scale is 0": bool(np.any(scale == 0)),
        "a quotient ends in exactly .5": bool((fraction == 0.5).any()),
        f"a rounded quotient lies beyond ±{limit}": bool((np.abs(np.rint(quotient)) > limit).any()),
        f"a rounded quotient lies below -{limit}": bool((np.rint(quotient) < -limit).any()),
        "a quotient is negative and not whole": bool(((quotient < 0) & (fraction > 0)).any()),
        "a quotient is not whole": bool((fraction > 0).any()),
        "a quotient is rounded away from 0": bool((np.abs(np.rint(quotient)) > np.abs(quotient)).any()),
    }
