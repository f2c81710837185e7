"""The exercises of lab 13 on mins: equation (2), and where zero lands once the minimum is a float16."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from ...quantization.grids import Grid, dequantize, quantize
from ..shared.by_hand import nearest16, nearest32
from .zero import F32, TOP

# ---- round_with_minimum ----------------------------------------------------------------------------------------------


def round_with_minimum(x: np.ndarray, scale: np.ndarray, minimum: np.ndarray) -> np.ndarray:
    """The reference, equation (2): x (n, k) float32, scale and minimum (n, 1) float32 -> (n, k) float32."""
    grid = Grid(scale, minimum, 0, TOP)
    return dequantize(quantize(x, grid), grid)


def minimum_oracle(x: np.ndarray, scale: np.ndarray, minimum: np.ndarray) -> np.ndarray:
    """One number at a time."""
    rows = []
    for block, [s], [m] in zip(x.tolist(), scale.tolist(), minimum.tolist()):
        integers = [max(0, min(TOP, round(nearest32(nearest32(v - m) / s)))) for v in block]
        rows.append([nearest32(nearest32(q * s) + m) for q in integers])
    return np.array(rows, F32)


def _columns(*rows: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    return F32([[s] for s, _ in rows]), F32([[m] for _, m in rows])


def _minimum_cases(random: np.random.Generator) -> list[Case]:
    w = random.normal(0, 0.05, (20, 32)).astype(F32)
    low = w.min(axis=1, keepdims=True).astype(np.float16).astype(F32)
    scale = ((w.max(axis=1, keepdims=True) - low) / F32(TOP)).astype(np.float16).astype(F32)
    return [
        (F32([[-5, -1.2, 0, 2.4, 10]]), *_columns((1, -5))),
        (F32([[-2.5, -1.3, 0, 1.4, 5]]), *_columns((0.5, -2.5))),
        (F32([[-99, -6, 11, 99]]), *_columns((1, -5))),
        (F32([[3, 4.4, 9, 18]]), *_columns((1, 3))),  # a minimum above zero
        (F32([[-0.25, 0.3, 1]]), *_columns((0.5, -0.3))),  # not a multiple of the scale
        (F32([[0, 4, 9], [-9, -4, 0]]), *_columns((1, 0), (2, -9))),
        (w, scale, low),
    ]


def _minimum(x, s, m, inside=-1, outside=1, size=None, power=1, together=False, rounding=np.rint, clip=(0, TOP)):
    m = size(m) if size else m
    q = np.clip(rounding((x + inside * m) / s), *clip)
    if together:
        return ((q + m) * s).astype(F32)
    return ((q * s + outside * m) * s ** (power - 1)).astype(F32)


def _in_parts(x: np.ndarray, s: np.ndarray, m: np.ndarray) -> np.ndarray:
    return (np.clip(np.rint(x / s) - np.rint(m / s), 0, TOP) * s + m).astype(F32)


ROUND_WITH_MINIMUM = Exercise(
    name="round_with_minimum",
    lab="13",
    goal="Quantize and bring back with a minimum: equation (2).",
    minutes=4,
    difficulty="core",
    reference=round_with_minimum,
    oracle=minimum_oracle,
    cases=_minimum_cases,
    hints=(
        "Shift the weights so that the minimum stands at 0, count steps, clip, multiply, and shift back.",
        "`q = np.clip(np.rint((x - minimum) / scale), 0, 15)`, then `q * scale + minimum`.",
    ),
    why="this is what a block of Q4_1 stands for.",
    mistakes=(
        Mistake(
            "not shifted back",
            partial(_minimum, outside=0),
            "The weights still count from the minimum.",
            "Add the minimum at the end.",
            "every weight too large by -minimum",
        ),
        Mistake(
            "shifted the wrong way",
            partial(_minimum, inside=1, outside=-1),
            "The minimum was added first and subtracted at the end.",
            "Subtract it first, so that the smallest weight becomes 0.",
            "nothing below -minimum comes back",
        ),
        Mistake(
            "subtracted both times",
            partial(_minimum, outside=-1),
            "The minimum was subtracted on the way back as well.",
            "Add it at the end.",
            "every weight too large by twice -minimum",
        ),
        Mistake(
            "the minimum unsigned",
            partial(_minimum, size=np.abs),
            "The minimum lost its sign, and nearly every minimum is negative.",
            "Use it as it is.",
            "everything clipped to the smallest integer, or shifted up",
        ),
        Mistake(
            "the scale applied twice",
            partial(_minimum, power=2),
            "Scale and minimum were multiplied by the scale once more.",
            "`q * scale + minimum`, and nothing else.",
            "right for a scale of 1, wrong for any other",
        ),
        Mistake(
            "the minimum taken for a zero point",
            partial(_minimum, together=True),
            "The minimum is a weight already; adding it to the integers multiplies it by the scale.",
            "Multiply first, then add.",
            "right for a scale of 1, too close to zero for a smaller one",
        ),
        Mistake(
            "rounded in two parts",
            _in_parts,
            "`rint(x / s) - rint(m / s)` rounds twice, and a minimum need not be a whole number of steps.",
            "Subtract first, then divide and round once.",
            "right where the minimum is a multiple of the scale, a step off elsewhere",
        ),
        Mistake(
            "cut off instead of rounded",
            partial(_minimum, rounding=np.trunc),
            "Converting to an integer drops what stands behind the point.",
            "Use `np.rint`.",
            "about half of the weights one step too low",
        ),
        Mistake(
            "no clip",
            partial(_minimum, clip=(-np.inf, np.inf)),
            "Four bits end at 0 and 15, and weights beyond the range were kept.",
            "Clip the integers to 0 … 15.",
            "99 where 10 is expected",
        ),
    ),
)

# ---- where_zero_lands ------------------------------------------------------------------------------------------------


def where_zero_lands(scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """The reference: scale (n,) float32, zero point (n,) int16 -> (n,) float32."""
    minimum = (-scale * zero_point).astype(np.float16).astype(F32)
    grid = Grid(scale[:, None], minimum[:, None], 0, TOP)
    return dequantize(zero_point[:, None].astype(np.int16), grid)[:, 0]


def zero_oracle(scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """One block at a time."""
    pairs = zip(scale.tolist(), zero_point.tolist())
    return np.array([nearest32(s * z + nearest16(-s * z)) for s, z in pairs], F32)


def _zero_cases(random: np.random.Generator) -> list[Case]:
    def case(scales, zeros):
        return F32(np.float16(scales)), np.int16(zeros)

    drawn = random.normal(0, 0.02, 40), random.integers(0, 16, 40)
    return [
        case([0.1], [3]),
        case([0.1], [7]),
        case([0.5, 0.25, 1], [3, 7, 15]),  # powers of two: exact
        case([0.1, 0.1, 0.1], [0, 1, 2]),
        case([0.0123, 0.7, 3.3], [11, 13, 15]),
        case(np.abs(drawn[0]), drawn[1]),
    ]


def _zero(scale, zero_point, rounded=True, sign=-1, power=1, give="weight"):
    s, z = scale.astype(F32), zero_point.astype(F32)
    product = s**power * z
    m = sign * (product.astype(np.float16).astype(F32) if rounded else product)
    found = s * z + m
    return {"weight": found, "steps": found / s, "size": np.abs(found), "minimum": m, "half": found.astype(np.float16)}[
        give
    ].astype(np.float16 if give == "half" else F32)


WHERE_ZERO_LANDS = Exercise(
    name="where_zero_lands",
    lab="13",
    goal="Find the weight that a block of Q4_1 gives back for the integer of zero, once its minimum is a float16.",
    minutes=5,
    difficulty="core",
    reference=where_zero_lands,
    oracle=zero_oracle,
    cases=_zero_cases,
    hints=(
        "The block stores m, which is -scale × zero_point rounded to float16. The integer of zero is "
        "zero_point, and a reader makes d × zero_point + m of it.",
        "`minimum = (-scale * zero_point).astype(np.float16).astype(np.float32)`, then `scale * zero_point + minimum`, "
        "all of it in float32.",
    ),
    why="a product of 11 bits and 4 bits takes up to 15, float16 keeps 11, and the rest is where zero went.",
    mistakes=(
        Mistake(
            "the minimum not rounded",
            partial(_zero, rounded=False),
            "Without rounding to float16, or with both products rounded, everything cancels, and that is not what is "
            "in the file.",
            "Round the minimum, and only the minimum, to float16.",
            "exactly 0 everywhere",
        ),
        Mistake(
            "the minimum unsigned",
            partial(_zero, sign=1),
            "The minimum was taken as +scale × zero_point, so it adds up where it should cancel.",
            "The minimum is -scale × zero_point.",
            "twice scale × zero_point",
        ),
        Mistake(
            "the scale applied twice",
            partial(_zero, power=2),
            "The minimum has the scale in it twice.",
            "It is -scale × zero_point.",
            "right for a scale of 1, far from 0 for any other",
        ),
        Mistake(
            "in steps",
            partial(_zero, give="steps"),
            "The distance was divided by the scale.",
            "Return the weight itself.",
            "numbers too large by 1 / scale",
        ),
        Mistake(
            "the distance without its side",
            partial(_zero, give="size"),
            "Zero may land below zero, and the sign was dropped.",
            "Return the weight with its sign.",
            "right where the weight is positive",
        ),
        Mistake(
            "the minimum returned",
            partial(_zero, give="minimum"),
            "That is what integer 0 gives back; zero has the integer zero_point.",
            "Add scale × zero_point.",
            "-0.3 where something tiny is expected",
        ),
        Mistake(
            "a float16 result",
            partial(_zero, give="half"),
            "The last sum was converted to float16 as well.",
            "Only the minimum is stored; compute the rest in float32.",
            "the dtype float16",
        ),
    ),
)
