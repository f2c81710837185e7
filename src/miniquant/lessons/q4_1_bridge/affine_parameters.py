"""A scale and a zero point for each block."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.by_hand import nearest16, nearest32


def affine_parameters(w):
    """Scale and zero point of each block, for the integers 0 to 15.

    w: (n, k) float32
    ->   scale: (n, 1) float32, rounded to float16; zero_point: (n, 1)
         int16, from 0 to 15

    The range goes from low, the smallest weight (0 if that is above 0), to
    the largest weight (0 if that is below 0); the scale is the range / 15,
    rounded to float16. The zero point is -low / that rounded scale, halves
    rounded to even, clipped to 0 … 15; 0 where the rounded scale is 0.
    Every difference and quotient is float32.
    """
    low = np.minimum(w.min(axis=1, keepdims=True), np.float32(0))  # (n, 1)
    high = np.maximum(w.max(axis=1, keepdims=True), np.float32(0))
    scale = ((high - low) / np.float32(15)).astype(np.float16).astype(np.float32)
    zero_point = np.rint(-low / np.where(scale == 0, np.float32(np.inf), scale))
    return scale, zero_point.clip(0, 15).astype(np.int16)


def oracle(w):
    """One block at a time, one number at a time."""
    scales, zeros = [], []
    for block in w.tolist():
        low, high = min(0.0, *block), max(0.0, *block)
        scale = nearest16(nearest32(nearest32(high - low) / 15))
        scales.append([scale])
        zeros.append([max(0, min(15, round(nearest32(-low / scale)))) if scale else 0])
    return np.array(scales, np.float32), np.array(zeros, np.int16)


STEP = 307 / 2**12  # float16 holds it; 7.5 × STEP, times 1 / STEP in float32, is less than 7.5


def _filled(*first):
    return [*first, *[first[-1]] * (32 - len(first))]


def cases(random):
    """Blocks that can be worked by eye, ends of the range, tiny weights, then random ones."""
    made = [
        [_filled(-5, 10)],  # scale 1, zero point 5
        [_filled(3, 15)],  # zero lies outside of the weights
        [_filled(-15, -3)],
        [_filled(0)],
        [_filled(-5, 10), _filled(-20, 10)],
        [_filled(-5, 10), _filled(0), _filled(-3, 12)],
        [_filled(-7.501, 7.505)],  # 15.006 / 15 is 1.0004, which float16 rounds to 1
        [_filled(-0.3, 0.6)],
        [_filled(-0.5, 14.5), _filled(-1.5, 13.5), _filled(-2.5, 12.5), _filled(-14.5, 0.5)],  # zero lies between two integers
        [STEP * np.array(_filled(-7.5, 7.5)), STEP * np.array(_filled(-3.5, 11.5))],  # so it does here, and 1 / scale is rounded
        [[-5, 10, *[1] * 36, 20]],  # blocks of another length
        [[50000, -25000], [0, -3]],
        [_filled(-1e-8, 2e-8), _filled(-4e-7), _filled(1e-8)],  # the scale is 0 as float16
        [_filled(-1.029, 16.116997), _filled(-0.15, 14.857325), _filled(-0.958, 15.001472)],  # range / 15 between two float16
        [_filled(-1.25e-6)],  # below the smallest scales float16 rounds so coarsely that -low / scale is 21
    ]
    return [*((np.array(w, np.float32),) for w in made), (random.normal(0, 0.05, (24, 32)).astype(np.float32),)]


EXERCISE = Exercise(
    goal="Find the scale and the zero point of each block, so that 16 levels cover its weights and one of them is zero.",
    reference=affine_parameters, oracle=oracle, cases=cases, minutes=6, difficulty="core",
    hints=(
        "The range goes from the smallest weight, or 0 if that is smaller, to the largest weight, or 0 if that is larger. The range / 15 is the scale; round that to float16 at once.",
        "`np.minimum` and `np.maximum` compare with 0. The zero point is how many steps zero lies above the low end, rounded with `np.rint`. Where the scale is 0, `np.where` can put infinity in its place before you divide.",
    ),
    why="zero has an integer of its own, so a weight of 0 stays 0.",
    mistakes=(
        Mistake("zero left out of the range", edit("np.minimum(w.min(axis=1, keepdims=True), np.float32(0))", "w.min(axis=1, keepdims=True)").edit(
                "np.maximum(w.max(axis=1, keepdims=True), np.float32(0))", "w.max(axis=1, keepdims=True)"
            ),
            cause="Where all weights of a block have one sign, your range does not contain zero.",
            cure="Take the minimum of the weights and 0, and the maximum of the weights and 0.",
            see="right for blocks with both signs, wrong for `3 … 15`"),
        Mistake("divided by 16", edit("np.float32(15)", "np.float32(16)"),
            cause="Sixteen levels have fifteen spaces between them.",
            cure="Divide the range by 15.", see="every scale a sixteenth too small"),
        Mistake("a negative zero point", edit("-low / np", "low / np").edit(".clip(0, 15)", ""),
            cause="The low end is negative, and low / scale is too.",
            cure="The zero point counts upwards from the low end: -low / scale.", see="zero points below 0"),
        Mistake("counted from the high end", edit("-low / np", "high / np"),
            cause="high / scale counts the steps from zero to the top, and integer 0 stands at the bottom.",
            cure="Use -low / scale.", see="10 where 5 is expected"),
        Mistake("the zero point not clipped", edit(".clip(0, 15)", ""),
            cause="For tiny weights float16 may round the scale down so far that zero lies more than 15 steps above the low end.",
            cure="Clip the zero point to 0 … 15.",
            see="everything right but for a block of tiny weights, where 21 is found and 15 is expected"),
        Mistake("cut off instead of rounded", edit("np.rint", "np.trunc"),
            cause="The zero point is the integer below -low / scale, and not the nearest one.",
            cure="Round first, with `np.rint`.", see="some zero points one too small"),
        Mistake("halves rounded up", edit("np.rint(-low / np.where(scale == 0, np.float32(np.inf), scale))", "np.floor(-low / np.where(scale == 0, np.float32(np.inf), scale) + np.float32(0.5))"),
            cause="A half goes up, and here it goes to the even integer.",
            cure="Use `np.rint`.", see="3 where 2 is expected, for a zero point between the two"),
        Mistake("multiplied by 1 / scale", edit("-low / np.where(scale == 0, np.float32(np.inf), scale)", "-low * (1 / np.where(scale == 0, np.float32(np.inf), scale))"),
            cause="1 / scale is rounded to float32, and so is the product, and a half may become less than a half.",
            cure="Divide by the scale.", see="nearly everything right, and a zero point between two integers off by one"),
        Mistake("the range in float64", edit("((high - low) / np.float32(15))", "((high.astype(np.float64) - low) / 15)"),
            cause="The range / 15 was computed in float64. Float32 rounds it first, and then it may lie between two float16.",
            cure="Subtract and divide in float32.", see="nearly everything right, and a last digit of a scale"),
        Mistake("the scale rounded last", edit(".astype(np.float16).astype(np.float32)", "").edit(
                "return scale,", "return scale.astype(np.float16).astype(np.float32),"
            ),
            cause="The zero point was counted in steps of the float32 scale, and the file has steps of float16.",
            cure="Round the scale first, then divide by it.",
            see="scales right, and a zero point here and there off by one"),
        Mistake("the scale not rounded", edit(".astype(np.float16).astype(np.float32)", ""),
            cause="A block stores its scale as float16, and yours has more digits.",
            cure="Convert to float16 and back to float32.", see="0.06 where 0.05999756 is expected"),
        Mistake("one scale for all blocks", edit("w.min(axis=1, keepdims=True)", "np.full((len(w), 1), w.min())").edit(
                "w.max(axis=1, keepdims=True)", "np.full((len(w), 1), w.max())"
            ),
            cause="Minimum and maximum were taken over all blocks.",
            cure="Take them along the last axis, `axis=1, keepdims=True`.",
            see="right for one block, the same numbers in every block for more"),
        Mistake("symmetric", body("""
                scale = (np.abs(w).max(axis=1, keepdims=True) / np.float32(7)).astype(np.float16).astype(np.float32)
                return scale, np.full((len(w), 1), 8, np.int16)
            """),
            cause="absmax / 7 with the zero point in the middle is the symmetric rule; it wastes levels on an asymmetric block.",
            cure="Use both ends of the range.", see="8 in every block"),
    ),
)
