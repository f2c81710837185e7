"""The exercises of lab 13 on zero points: scale and zero point, equation (1), and the ties at which it is not (4)."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from ...quantization.spec import Dtype, QuantizationSpec, ScaleType
from ..shared.by_hand import nearest16, nearest32

F32 = np.float32
TOP = 15  # the largest 4-bit integer
_UINT4 = QuantizationSpec(Dtype.uint4, symmetric=False, scale_type=ScaleType.float16)

# ---- affine_parameters -----------------------------------------------------------------------------------------------


def affine_parameters(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The reference: w (n, 32) float32 -> scale (n, 1) float32, zero point (n, 1) int16."""
    scale, zero_point = _UINT4.affine(w)
    return scale, zero_point.astype(np.int16)


def parameters_oracle(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One block at a time, one number at a time."""
    scales, zeros = [], []
    for block in w.tolist():
        low, high = min(0.0, *block), max(0.0, *block)
        scale = nearest16(nearest32(nearest32(high - low) / TOP))
        scales.append([scale])
        zeros.append([max(0, min(TOP, round(nearest32(-low / scale)))) if scale else 0])
    return np.array(scales, F32), np.array(zeros, np.int16)


def _filled(*first: float) -> list[float]:
    return [*first, *[first[-1]] * (32 - len(first))]


def _parameter_cases(random: np.random.Generator) -> list[Case]:
    made = [
        [_filled(-5, 10)],  # scale 1, zero point 5
        [_filled(3, 15)],  # zero lies outside of the weights
        [_filled(-15, -3)],
        [_filled(0)],
        [_filled(-5, 10), _filled(-20, 10)],
        [_filled(-7.501, 7.505)],  # 15.006 / 15 is 1.0004, which float16 rounds to 1
        [_filled(-0.3, 0.6)],
        [_filled(-1.25e-6)],  # below the smallest scales float16 rounds so coarsely that -low / scale is 21
    ]
    return [*((np.array(w, F32),) for w in made), (random.normal(0, 0.05, (24, 32)).astype(F32),)]


def _parameters(w, zero=True, over=TOP, end=-1, rounding=np.rint, first=True, stored=True, axis=1, clip=True):
    low, high = (np.broadcast_to(f(w, axis=axis, keepdims=True), (len(w), 1)) for f in (np.min, np.max))
    if zero:
        low, high = np.minimum(low, F32(0)), np.maximum(high, F32(0))
    exact = (high - low) / F32(over)
    scale = exact.astype(np.float16).astype(F32)
    step = scale if first else exact
    z = rounding({-1: -low, 1: high, 0: low}[end] / np.where(step == 0, F32(np.inf), step))
    z = np.clip(z, 0, TOP) if end and clip else z
    return (scale if stored else exact), z.astype(np.int16)


def _symmetric(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scale = (np.abs(w).max(axis=1, keepdims=True) / F32(7)).astype(np.float16).astype(F32)
    return scale, np.full((len(w), 1), 8, np.int16)


AFFINE_PARAMETERS = Exercise(
    name="affine_parameters",
    lab="13",
    goal="Find the scale and the zero point of each block, so that 16 marks cover its weights and one of them is zero.",
    minutes=6,
    difficulty="core",
    reference=affine_parameters,
    oracle=parameters_oracle,
    cases=_parameter_cases,
    hints=(
        "The range goes from `np.minimum(w.min(axis=1, keepdims=True), 0)` to the maximum, taken likewise. Its "
        "fifteenth part is the scale; round that to float16 at once, `.astype(np.float16).astype(np.float32)`.",
        "The zero point is how many steps zero lies above the low end: `np.rint(-low / scale)`, from 0 to 15, as "
        "int16. Where the scale is 0, divide by infinity instead: `np.where(scale == 0, np.float32(np.inf), scale)`.",
    ),
    why="zero has an integer of its own, so a weight of 0 stays 0.",
    mistakes=(
        Mistake(
            "zero left out of the range",
            partial(_parameters, zero=False),
            "Where all weights of a block have one sign, the range does not reach zero, so the zero point falls "
            "outside of 0 to 15.",
            "Take the minimum of the weights and 0, and the maximum of the weights and 0.",
            "right for blocks with both signs, wrong for `3 … 15`",
        ),
        Mistake(
            "divided by 16",
            partial(_parameters, over=16),
            "Sixteen marks have fifteen spaces between them.",
            "Divide the range by 15.",
            "every scale a sixteenth too small",
        ),
        Mistake(
            "a negative zero point",
            partial(_parameters, end=0),
            "The low end is negative, and low / scale is too.",
            "The zero point counts upwards from the low end: -low / scale.",
            "zero points below 0",
        ),
        Mistake(
            "counted from the high end",
            partial(_parameters, end=1),
            "high / scale counts the steps from zero to the top, and integer 0 stands at the bottom.",
            "Use -low / scale.",
            "10 where 5 is expected",
        ),
        Mistake(
            "the zero point not clipped",
            partial(_parameters, clip=False),
            "For tiny weights float16 may round the scale down so far that zero lies more than 15 steps above the low "
            "end.",
            "Clip the zero point to 0 … 15.",
            "everything right but for a block of tiny weights, where 21 is found and 15 is expected",
        ),
        Mistake(
            "cut off instead of rounded",
            partial(_parameters, rounding=np.trunc),
            "Converting to an integer drops what stands behind the point.",
            "Round first, with `np.rint`.",
            "some zero points one too small",
        ),
        Mistake(
            "the scale rounded last",
            partial(_parameters, first=False),
            "The zero point was counted in steps of the float32 scale, and the file has steps of float16.",
            "Round the scale first, then divide by it.",
            "scales right, and a zero point here and there off by one",
        ),
        Mistake(
            "the scale not rounded",
            partial(_parameters, first=False, stored=False),
            "A block stores its scale as float16, and yours has more digits.",
            "Convert to float16 and back to float32.",
            "0.06 where 0.05999756 is expected",
        ),
        Mistake(
            "one scale for all blocks",
            partial(_parameters, axis=None),
            "Minimum and maximum were taken over all blocks.",
            "Take them along the last axis, `axis=1, keepdims=True`.",
            "right for one block, the same numbers in every block for more",
        ),
        Mistake(
            "symmetric",
            _symmetric,
            "absmax / 7 with the zero point in the middle is the symmetric rule; it wastes marks on a lopsided block.",
            "Use both ends of the range.",
            "8 in every block",
        ),
    ),
)

# ---- round_with_zero_point -------------------------------------------------------------------------------------------


def round_with_zero_point(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """The reference, equation (1): x (n, k) float32, scale and zero point (n, 1) -> (n, k) float32."""
    q = np.clip(np.rint(x / scale) + zero_point, 0, TOP)
    return ((q - zero_point) * scale).astype(np.float32)


def zero_point_oracle(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """One number at a time."""
    rows = []
    for block, [s], [z] in zip(x.tolist(), scale.tolist(), zero_point.tolist()):
        integers = [max(0, min(TOP, round(nearest32(v / s)) + z)) for v in block]
        rows.append([nearest32((q - z) * s) for q in integers])
    return np.array(rows, F32)


def _column(*values: float, dtype: type = F32) -> np.ndarray:
    return np.array([[v] for v in values], dtype)


def _zero_point_cases(random: np.random.Generator) -> list[Case]:
    w = random.normal(0, 0.05, (20, 32)).astype(F32)
    return [
        (F32([[-5, -1.2, 0, 2.4, 10]]), _column(1), _column(5, dtype=np.int16)),
        (F32([[-2.5, -1.25, 0, 1.5, 4]]), _column(0.5), _column(5, dtype=np.int16)),
        (F32([[-99, -6, 11, 99]]), _column(1), _column(5, dtype=np.int16)),  # beyond both ends
        (F32([[-0.5, 0.5, 1.5, 2.5]]), _column(1), _column(3, dtype=np.int16)),  # ties
        (F32([[0, 4, 9], [-9, -4, 0]]), _column(1, 2), _column(0, 15, dtype=np.int16)),
        (w, *parameters_oracle(w)),
    ]


def _zero_point(x, s, z, rounding=np.rint, clip=(0, TOP), before=False, side=1, off=True, power=1, late=False):
    low, high = clip
    if before:
        q = np.clip(rounding(x / s), low, high) + z
    elif late:
        q = np.clip(rounding(x / s + z), low, high)
    else:
        q = np.clip(rounding(x / s) + side * z, low, high)
    return ((q - side * z if off else q) * s**power).astype(F32)


def _half_up(x: np.ndarray) -> np.ndarray:
    return np.floor(x + F32(0.5))


ROUND_WITH_ZERO_POINT = Exercise(
    name="round_with_zero_point",
    lab="13",
    goal="Quantize and bring back with a zero point: equation (1).",
    minutes=5,
    difficulty="core",
    reference=round_with_zero_point,
    oracle=zero_point_oracle,
    cases=_zero_point_cases,
    hints=(
        "Read the equation from the inside out: divide, round, add the zero point, clip to 0 … 15; then take the zero "
        "point off again, and multiply.",
        "`q = np.clip(np.rint(x / scale) + zero_point, 0, 15)`, then `(q - zero_point) * scale`. The types "
        "stay float32 by themselves.",
    ),
    why="this is what a quantizer with a zero point, such as Quark's or PyTorch's, computes with.",
    mistakes=(
        Mistake(
            "clipped before the zero point is added",
            partial(_zero_point, before=True),
            "The weights were clipped to 0 … 15 when zero still had the integer 0, so everything negative was lost.",
            "Add the zero point inside of the clip.",
            "zeros where negative weights are expected",
        ),
        Mistake(
            "the zero point on the wrong side",
            partial(_zero_point, side=-1),
            "The zero point was subtracted first and added at the end.",
            "Add it on the way to the integers, subtract it on the way back.",
            "positive weights wherever small or negative ones are expected",
        ),
        Mistake(
            "the zero point never taken off",
            partial(_zero_point, off=False),
            "The integers still count from the low end of the range.",
            "Subtract the zero point before you multiply.",
            "every weight too large by zero_point × scale",
        ),
        Mistake(
            "the scale applied twice",
            partial(_zero_point, power=2),
            "The result was multiplied by the scale two times.",
            "Multiply once.",
            "right for a scale of 1, wrong for any other",
        ),
        Mistake(
            "integers returned",
            partial(_zero_point, power=0),
            "The steps were not turned back into weights.",
            "Multiply by the scale.",
            "right for a scale of 1, whole numbers for any other",
        ),
        Mistake(
            "rounded after the zero point is added",
            partial(_zero_point, late=True),
            "That is equation (4). An odd zero point turns an even integer into an odd one, so a tie goes to the other "
            "side.",
            "Round x / s alone, then add the zero point.",
            "nearly everything right, and a tie one step off",
        ),
        Mistake(
            "halves rounded up",
            partial(_zero_point, rounding=_half_up),
            "`np.floor(x + 0.5)` sends every half upwards, and the specification says half to even.",
            "Use `np.rint`.",
            "a tie one step too high",
        ),
        Mistake(
            "cut off instead of rounded",
            partial(_zero_point, rounding=np.trunc),
            "Converting to an integer drops what stands behind the point.",
            "Use `np.rint`.",
            "about half of the weights one step too close to zero",
        ),
        Mistake(
            "no clip",
            partial(_zero_point, clip=(-np.inf, np.inf)),
            "Four bits end at 0 and 15, and weights beyond the range were kept.",
            "Clip the integers to 0 … 15.",
            "99 where 10 is expected",
        ),
        Mistake(
            "clipped as if signed",
            partial(_zero_point, clip=(-8, 7)),
            "-8 … 7 is the range of a signed integer; with a zero point, integers start at 0.",
            "Clip to 0 … 15.",
            "large weights cut off",
        ),
    ),
)

# ---- ties_apart ------------------------------------------------------------------------------------------------------


def ties_apart(scale: float, zero_point: int) -> np.ndarray:
    """The reference: (n,) float32, rising."""
    steps = np.arange(TOP) + 0.5 - zero_point
    return (steps[np.rint(steps) + zero_point != np.rint(steps + zero_point)] * scale).astype(np.float32)


def ties_oracle(scale: float, zero_point: int) -> np.ndarray:
    """One midpoint at a time; Python's round is half to even as well."""
    found = []
    for k in range(TOP):
        step = k + 0.5 - zero_point
        if round(step) + zero_point != round(k + 0.5):
            found.append(nearest32(step * scale))
    return np.array(found, F32)


def _ties_cases(random: np.random.Generator) -> list[Case]:
    return [(1.0, 0), (1.0, 1), (1.0, 4), (0.5, 7), (0.25, 8), (2.0, 15), (0.125, 3)]


def _ties(scale, zero_point, rounding=np.rint, same=False, twice=False, shift=1, ends=0, first=False, give="x"):
    z = zero_point
    levels = np.arange(-ends, TOP + ends)
    steps = levels + 0.5 - shift * z
    apart = rounding(steps) + z != rounding(steps + z) + (z if twice else 0)
    apart = ~apart if same else apart
    found = {"x": steps * scale, "steps": steps, "levels": levels}[give][apart]
    return found[: 1 if first else None].astype(F32)


TIES_APART = Exercise(
    name="ties_apart",
    lab="13",
    goal="Find the weights between two marks, exactly in the middle, at which equations (4) and (5) part.",
    minutes=6,
    difficulty="stretch",
    reference=ties_apart,
    oracle=ties_oracle,
    cases=_ties_cases,
    hints=(
        "In steps of the scale, the middles lie at `np.arange(15) + 0.5 - zero_point`: half a step above each integer "
        "but the last, with zero at the zero point.",
        "Equation (5) rounds first, `np.rint(steps) + zero_point`, and (4) adds first, `np.rint(steps + zero_point)`. "
        "Keep the steps where the two differ, and multiply them by the scale.",
    ),
    why="with an odd zero point all fifteen middles part, with an even one none: parity decides.",
    mistakes=(
        Mistake(
            "halves rounded up",
            partial(_ties, rounding=lambda x: np.floor(x + 0.5)),
            "`np.floor(x + 0.5)` does not look at parity, so the two equations agree everywhere; both are meant with "
            "half to even.",
            "Round with `np.rint`.",
            "an empty array for every zero point",
        ),
        Mistake(
            "where they agree",
            partial(_ties, same=True),
            "The middles were kept where the two integers are equal.",
            "Keep them where they differ, with `!=`.",
            "fifteen numbers for an even zero point, none for an odd one",
        ),
        Mistake(
            "the zero point added twice",
            partial(_ties, twice=True),
            "One of the two equations got the zero point inside and outside of the rounding.",
            "Equation (4) adds it inside, (5) outside, each once.",
            "fifteen numbers for every zero point but 0",
        ),
        Mistake(
            "steps instead of weights",
            partial(_ties, give="steps"),
            "The result counts steps.",
            "Multiply by the scale.",
            "right for a scale of 1, too large for a smaller one",
        ),
        Mistake(
            "integers instead of weights",
            partial(_ties, give="levels"),
            "The result has the integer below each middle.",
            "Return the weight in the middle, `steps * scale`.",
            "0, 1, 2 …",
        ),
        Mistake(
            "zero at integer 0",
            partial(_ties, shift=0),
            "The middles were taken between 0 and 15 steps, and the grid begins zero_point steps below zero.",
            "Subtract the zero point from the steps.",
            "no negative weights",
        ),
        Mistake(
            "beyond the ends",
            partial(_ties, ends=1),
            "Below the first mark and above the last one both equations are clipped to the same integer.",
            "Sixteen marks have fifteen middles.",
            "one number too many at either end",
        ),
        Mistake(
            "only the first",
            partial(_ties, first=True),
            "The search stopped at the first difference.",
            "Return all of them.",
            "one number where fifteen are expected",
        ),
    ),
)
