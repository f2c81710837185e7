"""What students write instead in lab 08 when they measure a scale that is rounded too late, and what the checks say."""

from __future__ import annotations

import numpy as np

from ...lab.spec import Mistake

# ---- late_rounding_error ---------------------------------------------------------------------------------------------


def _products(values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return values.astype(np.float64) * np.asarray(scale, np.float64)[:, None]


def _both_rounded(values: np.ndarray, scale: np.ndarray) -> float:
    stored = scale.astype(np.float16)
    return float(np.abs(_products(values, stored) - _products(values, stored)).max())


def _weights_rounded(values: np.ndarray, scale: np.ndarray) -> float:
    exact = _products(values, scale)
    return float(np.abs(exact - exact.astype(np.float16).astype(np.float64)).max())


def _signed(values: np.ndarray, scale: np.ndarray) -> float:
    return float((_products(values, scale) - _products(values, scale.astype(np.float16))).max())


def _late_relative(values: np.ndarray, scale: np.ndarray) -> float:
    return float(np.abs(1 - scale.astype(np.float16).astype(np.float64) / scale.astype(np.float64)).max())


def _scales_only(values: np.ndarray, scale: np.ndarray) -> float:
    return float(np.abs(scale.astype(np.float64) - scale.astype(np.float16).astype(np.float64)).max())


def _half_products(values: np.ndarray, scale: np.ndarray) -> float:
    stored = (values * scale.astype(np.float16)[:, None]).astype(np.float64)
    return float(np.abs(_products(values, scale) - stored).max())


def _largest_assumed(values: np.ndarray, scale: np.ndarray) -> float:
    return 127 * _scales_only(values, scale)


def _bound(values: np.ndarray, scale: np.ndarray) -> float:
    return float(np.abs(_products(values, scale)).max()) * 2**-11


def _columns(values: np.ndarray, scale: np.ndarray) -> float:
    wide = values.astype(np.float64)
    return float(np.abs(wide * scale.astype(np.float64) - wide * scale.astype(np.float16).astype(np.float64)).max())


LATE_ROUNDING_ERROR = (
    Mistake(
        "both sides rounded",
        _both_rounded,
        "With the rounded scale on both sides there is no error: that is the cure, not the trap.",
        "Use the float32 scale on one side and the float16 one on the other.",
        "`0.0` everywhere",
    ),
    Mistake(
        "the weights rounded to float16",
        _weights_rounded,
        "The products were rounded, but the file stores integers and a rounded scale.",
        "Round `scale` to float16 and multiply afterwards.",
        "errors of the right size with other digits",
    ),
    Mistake(
        "the product in float16",
        _half_products,
        "An int8 array times a float16 array is float16 again in NumPy, so every product was rounded once more.",
        "Widen the rounded scale with `.astype(np.float64)` before you multiply.",
        "errors up to twice as large as expected",
    ),
    Mistake(
        "no absolute value",
        _signed,
        "Where the stored scale is too large, the differences of positive weights are negative.",
        "Take `np.abs` of the differences before you take the maximum.",
        "an answer that is too small on some cases",
    ),
    Mistake(
        "relative error",
        _late_relative,
        "This is the error as a part of each weight, which is at most about 2^-11 whatever the weights are.",
        "Leave out the division: the limit is absolute.",
        "a number near `1e-4`, whatever the integers are",
    ),
    Mistake(
        "the error of the scale alone",
        _scales_only,
        "A scale that is off by a little is multiplied by integers up to 127.",
        "Compare the weights, `values * scale`, not the scales.",
        "an answer that is about a hundred times too small",
    ),
    Mistake(
        "127 assumed in every row",
        _largest_assumed,
        "The error of the scale was multiplied by 127, and the row with the worst scale need not hold such an integer.",
        "Multiply by the integers that are there: compare `values * scale` on both sides.",
        "the right answer for some cases, and one that is too large for the others",
    ),
    Mistake(
        "the bound instead of the error",
        _bound,
        "The largest weight times 2^-11 is what the error can be at most, not what it is.",
        "Round the scales that you are given, and measure.",
        "answers that are somewhat too large, everywhere",
    ),
    Mistake(
        "one scale a column",
        _columns,
        "Without a new axis, NumPy lines the scales up with the columns; in a square matrix nothing else warns you.",
        "Write `scale[:, None]`: one scale for each row.",
        "an error about shapes, or other digits where the matrix is square",
    ),
)
