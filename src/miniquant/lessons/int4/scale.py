"""The exercises of lab 05 on scales: what they cost, and one for each group."""

from __future__ import annotations

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from ...quantization import symmetric
from ..shared.by_hand import stored_scale
from ..shared.steps import rounded

F32 = np.float32


def slices(row: list[float], group_size: int) -> list[list[float]]:
    """A row cut into groups."""
    return [row[i : i + group_size] for i in range(0, len(row), group_size)]


def grouped(w: np.ndarray, group_size: int) -> np.ndarray:
    """(out, in) -> (out, groups, group_size)."""
    return w.reshape(len(w), -1, group_size)


def exact(w: np.ndarray, group_size: int) -> np.ndarray:
    """absmax / 7, not rounded: (out, groups)."""
    return np.abs(grouped(w, group_size)).max(axis=2) / F32(7)


# ---- bits_per_weight -------------------------------------------------------------------------------------------------


def bits_per_weight(bits: int, group_size: int) -> float:
    """The reference: the bits of one integer and its share of a float16 scale."""
    return bits + 16 / group_size


def _bits_oracle(bits: int, group_size: int) -> float:
    """All the bits of a group, counted, over its weights."""
    total = sum([bits] * group_size) + len("0" * 16)
    return total / group_size


def _bits_cases(random: np.random.Generator) -> list[Case]:
    return [(4, 64), (4, 16), (8, 256), *((int(random.integers(2, 9)), 32 * int(k)) for k in (1, 3, 8))]


BITS_PER_WEIGHT = Exercise(
    name="bits_per_weight",
    lab="05",
    goal="Count what one weight really costs: its own bits, and its share of its group's float16 scale.",
    minutes=5,
    difficulty="warm-up",
    reference=bits_per_weight,
    oracle=_bits_oracle,
    cases=_bits_cases,
    tolerance=1e-9,
    hints=(
        "A group takes `bits` bits for each of its weights, and one float16 in addition.",
        "A float16 has 16 bits, shared by `group_size` weights.",
    ),
    why="smaller groups are more exact and cost more bits; this is the price, before you write a single byte.",
    mistakes=(
        Mistake(
            "scale counted for every weight",
            lambda bits, group_size: float(bits + 16),
            "The scale is stored once a group, not once a weight.",
            "Divide its 16 bits by `group_size`.",
            "20.0 where 4.25 is expected",
        ),
        Mistake(
            "scale left out",
            lambda bits, group_size: float(bits),
            "The integers cannot be read without their scale, so its bits count too.",
            "Add 16 / group_size.",
            "exactly 4.0, whatever the group",
        ),
        Mistake(
            "bytes mixed with bits",
            lambda bits, group_size: bits + 2 / group_size,
            "A float16 is 2 bytes, and this sum is in bits.",
            "Write 16, not 2.",
            "4.03125 where 4.25 is expected",
        ),
        Mistake(
            "a float32 scale",
            lambda bits, group_size: bits + 32 / group_size,
            "This format stores its scales as float16.",
            "Write 16, not 32.",
            "4.5 where 4.25 is expected",
        ),
        Mistake(
            "whole bits",
            lambda bits, group_size: bits + 16 // group_size,
            "`//` rounds the share of the scale down, for most groups to nothing.",
            "Divide with `/`: an average may be a fraction.",
            "4 where 4.25 is expected",
        ),
        Mistake(
            "bits of a whole group",
            lambda bits, group_size: float(bits * group_size + 16),
            "That is what a group takes, all weights together.",
            "Divide by `group_size`.",
            "272.0 where 4.25 is expected",
        ),
    ),
)

# ---- group_scales ----------------------------------------------------------------------------------------------------


def group_scales(w: np.ndarray, group_size: int) -> np.ndarray:
    """The reference: w (out, in) float32 -> (out, in / group_size) float32, rounded to float16."""
    return symmetric.quantize_per_group(w, 4, group_size).scale.astype(F32)


def scales_oracle(w: np.ndarray, group_size: int) -> np.ndarray:
    """Group by group, with Python's own numbers."""
    return np.array([[stored_scale(g, 7) for g in slices(row, group_size)] for row in w.tolist()], F32)


def _scales_cases(random: np.random.Generator) -> list[Case]:
    return [
        (np.array([[7, 1, 2, 14], [21, 0, 0, 28]], F32), 2),
        (np.array([[1, -7, 2, -3], [0, 0, -14, 5]], F32), 2),
        (np.arange(32, dtype=F32).reshape(4, 8), 4),
        (np.array([[1.0, 0.5, 0.3, 0.2], [0.2, 0.7, 0.6, 0.1]], F32), 1),
        (random.normal(0, 0.02, (3, 12)).astype(F32), 4),
    ]


def _over_8(w: np.ndarray, group_size: int) -> np.ndarray:
    return rounded(np.abs(grouped(w, group_size)).max(axis=2) / F32(8))


def _over_15(w: np.ndarray, group_size: int) -> np.ndarray:
    groups = grouped(w, group_size)
    return rounded((groups.max(axis=2) - groups.min(axis=2)) / F32(15))


def _over_127(w: np.ndarray, group_size: int) -> np.ndarray:
    return rounded(np.abs(grouped(w, group_size)).max(axis=2) / F32(127))


def _signed_max(w: np.ndarray, group_size: int) -> np.ndarray:
    return rounded(grouped(w, group_size).max(axis=2) / F32(7))


def _across_the_groups(w: np.ndarray, group_size: int) -> np.ndarray:
    return rounded(np.abs(grouped(w, group_size)).max(axis=1) / F32(7))


def _scale_of_the_row(w: np.ndarray, group_size: int) -> np.ndarray:
    row = np.abs(w).max(axis=1, keepdims=True) / F32(7)
    return rounded(np.repeat(row, w.shape[1] // group_size, axis=1))


def _scales_never_rounded(w: np.ndarray, group_size: int) -> np.ndarray:
    return exact(w, group_size)


def _scales_left_in_float16(w: np.ndarray, group_size: int) -> np.ndarray:
    return exact(w, group_size).astype(np.float16)


def _kept_as_an_axis(w: np.ndarray, group_size: int) -> np.ndarray:
    return rounded(exact(w, group_size))[..., None]


GROUP_SCALES = Exercise(
    name="group_scales",
    lab="05",
    goal="Give every group a scale of its own, for integers from -7 to 7, rounded as the file will hold it.",
    minutes=10,
    difficulty="core",
    reference=group_scales,
    oracle=scales_oracle,
    cases=_scales_cases,
    hints=(
        "Cut w with `group_reshape` first; the maximum then runs along the last axis.",
        "`np.abs(groups).max(axis=2)` has the shape (out, groups); divide it by 7 and round it to float16 and back.",
    ),
    why="a long weight now costs precision to its own group only; the rest of the row does not notice.",
    mistakes=(
        Mistake(
            "divided by 8",
            _over_8,
            "Four bits reach down to -8 but up to 7 only, so a positive absmax would land on 8, which does not exist.",
            "Divide by 7.",
            "scales that are 7/8 of what is expected",
        ),
        Mistake(
            "from minimum to maximum over 15",
            _over_15,
            "(max - min) / 15 is the scale of asymmetric quantization, which also stores a minimum or a zero point.",
            "Use the largest absolute value and 7.",
            "a scale that depends on both ends of the group",
        ),
        Mistake(
            "divided by 127",
            _over_127,
            "127 is the range of 8 bits.",
            "Four bits have 7 steps on either side of zero.",
            "scales about eighteen times too small",
        ),
        Mistake(
            "signed maximum",
            _signed_max,
            "A negative weight that lies farther from zero than all others was not seen.",
            "Take `np.abs` before the maximum.",
            "a scale too small for groups whose longest weight is negative",
        ),
        Mistake(
            "maximum across the groups",
            _across_the_groups,
            "`axis=1` compares the first weights of all groups, then the second ones, and so on.",
            "The weights of a group lie along the last axis: use `axis=2`.",
            "as many scales in a row as a group has weights",
        ),
        Mistake(
            "scale of the whole row",
            _scale_of_the_row,
            "All groups of a row got the same scale, so the long weight still costs everybody.",
            "Take the maximum within each group, after the reshape.",
            "equal numbers along each row",
        ),
        Mistake(
            "scale never rounded",
            _scales_never_rounded,
            "The scales still have float32's digits, and the file has room for float16's.",
            "Round them: `.astype(np.float16).astype(np.float32)`.",
            "scales that differ in the fourth significant digit",
        ),
        Mistake(
            "left in float16",
            _scales_left_in_float16,
            "The scales were rounded and not converted back, so what is computed from them is rounded again.",
            "Add `.astype(np.float32)`.",
            "the dtype float16 where float32 is expected",
        ),
        Mistake(
            "an axis too many",
            _kept_as_an_axis,
            "`keepdims=True` leaves an axis of length 1 at the end, and the file stores (out, groups).",
            "Leave `keepdims` out here, and add the axis where you divide.",
            "the shape (2, 2, 1) where (2, 2) is expected",
        ),
    ),
)
