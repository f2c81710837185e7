"""What students write instead in lab 12 when they compare sizes and bits, and what the checks then say."""

from __future__ import annotations

import numpy as np

from ...lab.spec import Mistake

# ---- sizes_fall ------------------------------------------------------------------------------------------------------

SIZES_FALL = (
    Mistake(
        "equal sizes pass",
        lambda sizes: sizes["Q4_0"] <= sizes["Q8_0"] <= sizes["F32"],
        "`<=` lets two files of one size pass, and the claim says smaller.",
        "Use `<` in both places.",
        "`True` for sizes that are equal",
    ),
    Mistake(
        "the ends only",
        lambda sizes: sizes["Q4_0"] < sizes["F32"],
        "Q8_0, which stands in the middle, was not looked at.",
        "Compare Q4_0 with Q8_0, and Q8_0 with F32.",
        "`True` where Q8_0 is the largest",
    ),
    Mistake(
        "upside down",
        lambda sizes: sizes["Q4_0"] > sizes["Q8_0"] > sizes["F32"],
        "More bits make a larger file, and the comparison says the opposite.",
        "Turn both signs round.",
        "`False` for good sizes",
    ),
    Mistake(
        "the order of the dict",
        lambda sizes: list(sizes.values()) == sorted(set(sizes.values())),
        "The sizes were taken in the order in which they happen to stand in the dict.",
        'Look each size up by its name, such as `sizes["Q4_0"]`.',
        "`False` for good sizes that stand in another order",
    ),
    Mistake(
        "F32 is the largest, no more",
        lambda sizes: sizes["Q4_0"] < sizes["F32"] and sizes["Q8_0"] < sizes["F32"],
        "Both are compared with F32, and never with each other.",
        "Compare Q4_0 with Q8_0 as well.",
        "`True` where Q4_0 is as large as Q8_0",
    ),
    Mistake(
        "or instead of and",
        lambda sizes: sizes["Q4_0"] < sizes["Q8_0"] or sizes["Q8_0"] < sizes["F32"],
        "One of the two comparisons is enough for `or`.",
        "Both must hold: use `and`, or the chain `a < b < c`.",
        "`True` where one pair is in the wrong order",
    ),
    Mistake(
        "Q4_0 is the smallest, no more",
        lambda sizes: sizes["Q4_0"] < sizes["Q8_0"] and sizes["Q4_0"] < sizes["F32"],
        "Q4_0 is compared with both others, and they are never compared with each other.",
        "Compare Q8_0 with F32 as well.",
        "`True` where Q8_0 is as large as F32",
    ),
)

# ---- bits_survive ----------------------------------------------------------------------------------------------------


def _without_shape(before: np.ndarray, after: np.ndarray) -> bool:
    return before.dtype == after.dtype and before.tobytes() == after.tobytes()


BITS_SURVIVE = (
    Mistake(
        "values instead of bits",
        lambda before, after: np.array_equal(before, after),
        "`==` finds NaN unequal to itself, and 0.0 equal to -0.0.",
        "Compare `before.tobytes()` with `after.tobytes()`.",
        "`False` for a NaN that came back unharmed",
    ),
    Mistake(
        "values, with NaN allowed",
        lambda before, after: np.array_equal(before, after, equal_nan=True),
        "Now NaN equals NaN, whatever its bits are, and -0.0 still equals 0.0.",
        "Compare the bytes instead of the values.",
        "`True` for 0.0 that came back as -0.0",
    ),
    Mistake(
        "values, element by element",
        lambda before, after: bool((before == after).all()),
        "`==` compares values, and it spreads an array of one element over all of the other.",
        "Compare types and shapes first, then the bytes.",
        "`True` for three numbers that came back as one",
    ),
    Mistake(
        "close is not the same",
        lambda before, after: before.shape == after.shape and np.allclose(before, after, equal_nan=True),
        "`allclose` forgives small differences, and a claim about bits forgives none.",
        "Compare the bytes.",
        "`True` for a number whose last bit was changed",
    ),
    Mistake(
        "the shape is forgotten",
        _without_shape,
        "Two rows of three hold the same bytes as three rows of two, and rows must stay rows.",
        "Compare the two shapes as well.",
        "`True` for an array that came back with another shape",
    ),
    Mistake(
        "the type is forgotten",
        lambda before, after: before.shape == after.shape and before.tobytes() == after.astype(np.float32).tobytes(),
        "The array was converted before it was compared, so another type passes.",
        "Compare the two `dtype`s first, and convert nothing.",
        "`True` for float64",
    ),
    Mistake(
        "NaN left out",
        lambda before, after: (
            before.dtype == after.dtype
            and before.shape == after.shape
            and before[~np.isnan(before)].tobytes() == after[~np.isnan(before)].tobytes()
        ),
        "NaNs were taken out before the bytes were compared, as the document does.",
        "Leave nothing out: a NaN has bits like any other number.",
        "`True` for a NaN with other bits",
    ),
    Mistake(
        "the order is forgotten",
        lambda before, after: (
            before.dtype == after.dtype
            and before.shape == after.shape
            and sorted(before.view(np.uint32).flat) == sorted(after.view(np.uint32).flat)
        ),
        "Sorted, an array is equal to its reverse.",
        "Compare the bytes in the order in which they stand.",
        "`True` for numbers that changed places",
    ),
)
