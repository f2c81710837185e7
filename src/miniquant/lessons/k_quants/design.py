"""The exercises of lab 15 on the design: what a super-block costs, and which scale suits integers best."""

from __future__ import annotations

import math

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from ..shared.observed import values

F32 = np.float32

# ---- k_bits ----------------------------------------------------------------------------------------------------------


def k_bits(q_bits: int, scale_bits: int, sub_block: int, mins: bool, floats: int) -> float:
    """The reference: bits a weight of a super-block of 256."""
    return q_bits + (1 + mins) * scale_bits / sub_block + 16 * floats / 256


def k_bits_oracle(q_bits: int, scale_bits: int, sub_block: int, mins: bool, floats: int) -> float:
    """Bit by bit: every weight, every sub-block, every float."""
    bits = sum(q_bits for _ in range(256))
    for _ in range(0, 256, sub_block):
        bits += scale_bits
        if mins:
            bits += scale_bits
    for _ in range(floats):
        bits += 16
    return bits / 256


def _k_bits_cases(random: np.random.Generator) -> list[Case]:
    real = [(4, 6, 32, True, 2), (6, 8, 16, False, 1), (5, 6, 32, True, 2), (2, 4, 16, True, 2), (3, 6, 16, False, 1)]
    drawn = [
        (
            int(random.integers(1, 9)),
            int(random.integers(3, 9)),
            int(2 ** random.integers(3, 8)),
            bool(i % 2),
            1 + i % 3,
        )
        for i in range(6)
    ]
    return [*real, *drawn]


K_BITS = Exercise(
    name="k_bits",
    lab="15",
    goal="Count the bits that a weight of a super-block takes, its share of the scales included.",
    minutes=4,
    difficulty="warm-up",
    reference=k_bits,
    oracle=k_bits_oracle,
    cases=_k_bits_cases,
    observe=values,
    hints=(
        "Count the bits of the whole super-block, 256 weights, then divide by 256.",
        "There are `256 // sub_block` sub-blocks, each with one scale, and with one minimum if there are any; the "
        "floats take 16 bits each.",
    ),
    why="a super-block spends its bits twice: on the weights, and on 6-bit scales that would cost 16 bits in Q4_0.",
    mistakes=(
        Mistake(
            "only the integers",
            lambda q_bits, scale_bits, sub_block, mins, floats: float(q_bits),
            "The scales take room too.",
            "Add the bits of the scales, of the mins and of the floats.",
            "4 for Q4_K",
        ),
        Mistake(
            "the floats forgotten",
            lambda q_bits, scale_bits, sub_block, mins, floats: q_bits + (1 + mins) * scale_bits / sub_block,
            "The float16 numbers at the head of the super-block are missing.",
            "Add 16 bits for each of them, shared by 256 weights.",
            "4.375 for Q4_K",
        ),
        Mistake(
            "the mins forgotten",
            lambda q_bits, scale_bits, sub_block, mins, floats: q_bits + scale_bits / sub_block + floats / 16,
            "Where there are mins, every sub-block has one beside its scale.",
            "Count `scale_bits` twice if `mins` is true.",
            "right for Q6_K, too few for Q4_K",
        ),
        Mistake(
            "float32 at the head",
            lambda q_bits, scale_bits, sub_block, mins, floats: (
                q_bits + (1 + mins) * scale_bits / sub_block + floats / 8
            ),
            "d and dmin were counted with 32 bits, and they are float16.",
            "Count 16 bits for each.",
            "4.625 for Q4_K",
        ),
        Mistake(
            "one scale for the super-block",
            lambda q_bits, scale_bits, sub_block, mins, floats: q_bits + (1 + mins) * scale_bits / 256 + floats / 16,
            "The small scale was counted once, and every sub-block has its own.",
            "Multiply its bits by `256 // sub_block`.",
            "a little more than 4.1 for Q4_K",
        ),
        Mistake(
            "a scale for every weight",
            lambda q_bits, scale_bits, sub_block, mins, floats: q_bits + (1 + mins) * float(scale_bits) + floats / 16,
            "The scale's bits were added to every weight, and a sub-block of weights shares them.",
            "Divide them by `sub_block`.",
            "more than 16 for Q4_K",
        ),
        Mistake(
            "bytes instead of bits",
            lambda q_bits, scale_bits, sub_block, mins, floats: k_bits(q_bits, scale_bits, sub_block, mins, floats) / 8,
            "That is how many bytes a weight takes.",
            "Multiply by 8.",
            "less than 1",
        ),
        Mistake(
            "bits of the whole super-block",
            lambda q_bits, scale_bits, sub_block, mins, floats: (
                256 * k_bits(q_bits, scale_bits, sub_block, mins, floats)
            ),
            "That is what all 256 weights take together.",
            "Divide by 256.",
            "1152 for Q4_K",
        ),
    ),
)

# ---- fitted_scale ----------------------------------------------------------------------------------------------------


def fitted_scale(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The reference: least squares, one scale a row."""
    q = q.astype(np.float64)
    up, down = (x * q).sum(axis=1), (q * q).sum(axis=1)
    return np.divide(up, down, out=np.zeros_like(up), where=down > 0).astype(F32)


def fitted_scale_oracle(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Row by row, with exact sums."""
    found = []
    for weights, integers in zip(x.tolist(), q.tolist()):
        down = sum(i * i for i in integers)
        up = math.fsum(w * i for w, i in zip(weights, integers))
        found.append(up / down if down else 0.0)
    return np.array(found, F32)


def _fitted_cases(random: np.random.Generator) -> list[Case]:
    made = [
        ([[2.0, 4.0, -6.0]], [[1, 2, -3]]),
        ([[2.5, 4.0, -7.0, 1.0]], [[1, 2, -3, 0]]),
        ([[1.0, -1.0]], [[0, 0]]),
        ([[3.0, 1.0], [-2.0, 9.0]], [[-1, 1], [1, 3]]),
    ]
    cases = [(np.array(x, F32), np.array(q, np.int8)) for x, q in made]
    x = random.normal(0, 1, (6, 16)).astype(F32)
    return [*cases, (x, np.rint(x * 9).clip(-32, 31).astype(np.int8))]


def _by_ratio(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    ratios = np.divide(x, q, out=np.zeros(x.shape), where=q != 0)
    return (ratios.sum(axis=1) / np.maximum((q != 0).sum(axis=1), 1)).astype(F32)


def _divided(up: np.ndarray, down: np.ndarray) -> np.ndarray:
    return np.divide(up, down, out=np.zeros(np.shape(up)), where=down != 0).astype(F32)


def _without_zero(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return ((x * _wide(q)).sum(axis=1) / (_wide(q) ** 2).sum(axis=1)).astype(F32)


def _wide(q: np.ndarray) -> np.ndarray:
    return q.astype(np.float64)


FITTED_SCALE = Exercise(
    name="fitted_scale",
    lab="15",
    goal="For integers that are chosen already, find the scale that makes the sum of squared errors smallest.",
    minutes=7,
    difficulty="stretch",
    reference=fitted_scale,
    oracle=fitted_scale_oracle,
    cases=_fitted_cases,
    tolerance=1e-6,
    hints=(
        "The error is Σ(x - s·q)². Its derivative by s is -2·Σq·(x - s·q); set it to zero and solve for s.",
        "s = Σx·q / Σq², along the last axis, and 0 where all q are 0. int8 overflows in q × q: convert it first.",
    ),
    why="ggml tries some twenty ways to round, fits each like this, and keeps the best: that is its whole secret.",
    mistakes=(
        Mistake(
            "the mean of the ratios",
            _by_ratio,
            "Every x / q counts the same, and a small q has a ratio that is mostly rounding.",
            "Weigh them by q²: Σx·q / Σq².",
            "right for exact multiples, a little off for the rest",
        ),
        Mistake(
            "the ratio of the sums",
            lambda x, q: _divided(x.astype(np.float64).sum(axis=1), _wide(q).sum(axis=1)),
            "Σx / Σq lets positive and negative weights cancel.",
            "Multiply both by q before you sum.",
            "wild numbers where the signs are mixed",
        ),
        Mistake(
            "the largest over the largest",
            lambda x, q: _divided(np.abs(x).max(axis=1), np.abs(_wide(q)).max(axis=1)),
            "One weight decides alone, as in Q4_0.",
            "Let all weights speak: Σx·q / Σq².",
            "right for exact multiples only, and never negative",
        ),
        Mistake(
            "divided by Σx²",
            lambda x, q: _divided((x * _wide(q)).sum(axis=1), (x.astype(np.float64) ** 2).sum(axis=1)),
            "That is the factor from weights to integers.",
            "Divide by Σq².",
            "about one over the scale",
        ),
        Mistake(
            "Σx² over Σx·q",
            lambda x, q: _divided((x.astype(np.float64) ** 2).sum(axis=1), (x * _wide(q)).sum(axis=1)),
            "That fits q to x and turns it round; it is always a little too large.",
            "Take Σx·q / Σq².",
            "right for exact multiples, a little too large for the rest",
        ),
        Mistake(
            "squared in int8",
            lambda x, q: _divided((x * _wide(q)).sum(axis=1), (q * q).sum(axis=1, dtype=np.int8).astype(float)),
            "An int8 holds 127 at most, and q × q overflows in silence.",
            "Convert q to floating point before you square it.",
            "right for few small integers, nonsense for many",
        ),
        Mistake(
            "one scale for all rows",
            lambda x, q: np.full(len(x), (x * _wide(q)).sum() / max((_wide(q) ** 2).sum(), 1), F32),
            "The sums went over all rows.",
            "Sum along the last axis, `axis=1`.",
            "right for one row, equal scales for more",
        ),
        Mistake(
            "no answer for zeros",
            _without_zero,
            "Where all q are 0, that is 0 / 0.",
            "Return 0 there.",
            "`nan`",
        ),
    ),
)
