"""Numbers as levels, with a scale and a smallest number for each line along an axis."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from .toys import quantized_by_hand


def quantize_along(x, axis, bits):
    """Levels of an array, with one scale and one min for all numbers along
    an axis.

    x: float32, of any shape, each size 0 or from 0.001 to 60,000; axis: int
        from 0 up; bits: int from 2 to 8
    ->   levels: uint8, the shape of x;
         scale: float16, the shape of x with length 1 at the axis;
         low: float16, the same shape as scale

    low is the smallest number along the axis. The scale is (the largest -
    the smallest) / (2**bits - 1). Both are rounded to float16. A level is
    (x - low) / scale, computed with the rounded low and scale: rounded,
    halves to even, and clipped to 0 to 2**bits - 1. It is 0 where the
    rounded scale is 0. Every difference and quotient is float32.
    """
    top = 2**bits - 1
    smallest = x.min(axis=axis, keepdims=True)
    largest = x.max(axis=axis, keepdims=True)
    low = smallest.astype(np.float16)
    scale = ((largest - smallest) / np.float32(top)).astype(np.float16)
    step = np.where(scale == 0, np.float32(np.inf), scale)  # float32
    levels = np.rint((x - low) / step).clip(0, top)
    return levels.astype(np.uint8), scale, low


def oracle(x, axis, bits):
    """Line by line in Python's own arithmetic."""
    return quantized_by_hand(x, axis, bits)


def cases(random):
    """One row, one column, both axes, a constant, other bits, numbers beyond the last level, then drawn arrays."""
    made = [
        ([[0, 15, 3]], 1, 4),
        ([[0], [15], [3]], 0, 4),
        ([[-1, 2, 0.5]], 1, 2),
        ([[1, 10], [4, 40], [2, 20]], 0, 4),
        ([[1, 10], [4, 40], [2, 20]], 1, 4),
        ([[0.5, 0.5], [2049, 2049], [1, 16]], 1, 4),
        ([[0, 0, 0]], 1, 8),
        ([[-1000, -1010.5, -1003.25]], 1, 4),
        ([[0, 15, 0.5, 2.5, 3.5], [0, 105, 45.5, 87.5, 101.5]], 1, 4),
        ([[2049, 2053, 2051]], 1, 4),  # float16 has 2048 for the smallest
        ([[0.1, 0.1, 0.1]], 1, 4),
        ([[2, 2.5], [7, 1]], 0, 8),
        ([5, -2, 1.25, 0], 0, 3),
        ([[1000.3, 1000.4, 1000.35]], 1, 4),  # float16 has 1000.5 for the smallest: below level 0
        ([[-60000, 60000, 100]], 1, 2),  # float16 does not hold the difference
        ([[0.001, 0.0010000002]], 1, 8),  # not alike, and the scale is 0 in float16
        ([[0.0012, 0.0012000002]], 1, 8),  # the same, with both numbers above low
        ([[-100, 155, 0.50000006]], 1, 8),  # the difference to the smallest is 100.5 in float32
    ]
    keys = random.normal(0, [1, 1, 12, 0.2], (9, 4)) + np.array([0, 3, -40, 1])
    return [
        *((np.array(x, np.float32), axis, bits) for x, axis, bits in made),
        (keys.astype(np.float32), 0, 4),
        (keys.astype(np.float32), 1, 4),
        (random.normal(0, 1, (2, 5, 3)).astype(np.float32), 1, 2),
        (random.normal(0, 1, (2, 3, 6)).astype(np.float32), 2, 3),
        (random.normal(0, 1, (4, 2, 3)).astype(np.float32), 0, 4),
    ]


def traits(x, axis, bits):
    """What is special about an array."""
    spread = x.max(axis=axis) - x.min(axis=axis)
    rounded = (spread / np.float32(2**bits - 1)).astype(np.float16)
    return {
        "the axis is 0": axis == 0,
        "the smallest number is not 0": bool((x.min(axis=axis) != 0).any()),
        "all numbers along the axis are alike": bool((spread == 0).any()),
        "a scale is rounded to 0, and the numbers differ": bool(((spread != 0) & (rounded == 0)).any()),
        "there are several lines": spread.size > 1,
        "the bits are not 4": bits != 4,
        "a number is negative": bool((x < 0).any()),
    }


EXERCISE = Exercise(
    goal="Quantize an array with one scale and one min for each line along an axis, whichever axis it is.",
    reference=quantize_along, oracle=oracle, cases=cases, minutes=8, difficulty="core", traits=traits,
    hints=(
        "It is Q4_1's rule from lab 17 with the axis as an argument: the smallest number becomes level 0, the largest the last level. Round what is stored first, and compute the levels with the rounded numbers.",
        "`min` and `max` with `axis=axis, keepdims=True` keep an axis of length 1, so the arrays fit together. `np.where` can put infinity in place of a scale of 0: a number divided by it is 0.",
    ),
    why="one function quantizes keys per channel and values per token: only the axis differs.",
    mistakes=(
        Mistake("the other axis", edit("x.min(axis=axis,", "x.min(axis=x.ndim - 1 - axis,").edit("x.max(axis=axis,", "x.max(axis=x.ndim - 1 - axis,"),
            cause="The smallest and the largest number were taken along the other axis.",
            cure="Give `axis=axis` to both.", see="a scale of another shape"),
        Mistake("the last axis, always", edit("x.min(axis=axis,", "x.min(axis=-1,").edit("x.max(axis=axis,", "x.max(axis=-1,"),
            cause="The last axis was used, whatever the argument says.",
            cure="Give `axis=axis` to `min` and `max`.", see="right where the axis is the last one"),
        Mistake("one scale for all", edit("x.min(axis=axis, keepdims=True)", "np.broadcast_to(x.min(), x.min(axis=axis, keepdims=True).shape)").edit("x.max(axis=axis, keepdims=True)", "np.broadcast_to(x.max(), x.min(axis=axis, keepdims=True).shape)"),
            cause="The smallest and the largest number of the whole array were used for every line.",
            cure="Take them along the axis.", see="right for one line, the same scale everywhere for more"),
        Mistake("2**bits steps", edit("2**bits - 1", "2**bits").edit("clip(0, top)", "clip(0, top - 1)"),
            cause="The range was divided by 2**bits. Between 2**bits levels there is one step less.",
            cure="Divide by 2**bits - 1.", see="scales that are too small"),
        Mistake("four bits, always", edit("2**bits - 1", "15"),
            cause="The last level is 15, whatever the bits are.",
            cure="Compute it from bits.", see="right for 4 bits"),
        Mistake("not rounded first", edit("np.where(scale == 0, np.float32(np.inf), scale)", "np.where(scale == 0, np.float32(np.inf), (largest - smallest) / np.float32(top))").edit("(x - low)", "(x - smallest)"),
            cause="The levels were computed with a low and a scale that were not rounded to float16. Who restores them has the rounded ones.",
            cure="Round both, then compute the levels.", see="a level that is one off, here and there"),
        Mistake("the range of rounded numbers", edit("((largest - smallest) / np.float32(top))", "((largest.astype(np.float16) - low).astype(np.float32) / np.float32(top))"),
            cause="The range was made of the largest and the smallest number after both were rounded to float16.",
            cure="Subtract the numbers as they are, divide, and round the scale.", see="a scale that is a little off where float16 does not hold the largest or the smallest number"),
        Mistake("symmetric", edit("((largest - smallest) / np.float32(top))", "(np.maximum(np.abs(largest), np.abs(smallest)) / np.float32(top // 2))"),
            cause="The scale was made from the largest size, as if 0 were in the middle.",
            cure="Divide the distance of the largest and the smallest number.", see="scales that are too large, mostly"),
        Mistake("the largest number as the range", edit("(largest - smallest) / np.float32(top)", "np.abs(largest) / np.float32(top)"),
            cause="The largest number was divided, and the smallest was not subtracted.",
            cure="The range is the largest less the smallest.", see="right where the smallest number is 0"),
        Mistake("low not subtracted", edit("(x - low) / step", "x / step"),
            cause="The numbers were divided without subtracting low.",
            cure="Subtract low first.", see="right where the smallest number is 0"),
        Mistake("not clipped", edit(".clip(0, top)", ".clip(0, 255)"),
            cause="Levels may lie beyond the last one, as low and scale were rounded.",
            cure="Clip to 0 to 2**bits - 1.", see="one level too large, such as 4 for two bits"),
        Mistake("cut off", edit("np.rint((x - low) / step)", "np.floor((x - low) / step)"),
            cause="What comes after the point was cut off.",
            cure="Round with `np.rint`.", see="about half of the levels one too small"),
        Mistake("halves up", edit("np.rint((x - low) / step)", "np.floor((x - low) / step + np.float32(0.5))"),
            cause="Halves were rounded up, and the text says to even.",
            cure="Round with `np.rint`.", see="one level too large for a number halfway between two levels"),
        Mistake("divided by 0", edit("np.where(scale == 0, np.float32(np.inf), scale)", "scale.astype(np.float32)"),
            cause="Where all numbers are alike the scale is 0, and you divided by it.",
            cure="Put infinity in place of a scale of 0.", see="a warning, and level 15 where all numbers are alike"),
        Mistake("the axis lost", edit("    return levels.astype(np.uint8), scale, low", "    return levels.astype(np.uint8), np.squeeze(scale, axis), np.squeeze(low, axis)"),
            cause="Scale and low have lost the axis.",
            cure="Keep it, with `keepdims=True`.", see="a scale with one axis less"),
        Mistake("float32 scales", edit("((largest - smallest) / np.float32(top)).astype(np.float16)", "((largest - smallest) / np.float32(top)).astype(np.float16).astype(np.float32)").edit("low = smallest.astype(np.float16)", "low = smallest.astype(np.float16).astype(np.float32)"),
            cause="Scale and low were returned as float32.",
            cure="Return the float16 arrays.", see="the dtype float32"),
        Mistake("float levels", edit("levels.astype(np.uint8), scale", "levels, scale"),
            cause="The levels are floats.",
            cure="Convert them to uint8.", see="the dtype float32"),
        Mistake("low and scale exchanged", edit("levels.astype(np.uint8), scale, low", "levels.astype(np.uint8), low, scale"),
            cause="Low was returned before the scale.",
            cure="Return levels, scale, low.", see="two arrays exchanged"),
    ),
)
