"""The exercises of lab 05 on weights: integers from -7 to 7, and the way back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from ...quantization import symmetric
from ..shared.by_hand import Pair, integer, nearest32
from ..shared.steps import divided, rounded, to_int8
from .scale import exact, grouped, scales_oracle, slices

F32 = np.float32
Two = tuple[np.ndarray, np.ndarray]
Rounding = Callable[[np.ndarray], np.ndarray]

# ---- quantize_per_group ----------------------------------------------------------------------------------------------


def quantize_per_group(w: np.ndarray, group_size: int) -> Two:
    """The reference: w (out, in) float32 -> q (out, in) int8 in [-7, 7], scale (out, in / group_size) float32."""
    values, scale = symmetric.quantize_per_group(w, 4, group_size)
    return values, scale.astype(F32)


def _quantize_oracle(w: np.ndarray, group_size: int) -> Pair:
    scale = scales_oracle(w, group_size)
    rows = zip(w.tolist(), scale.tolist())
    q = [[integer(x, s, 7) for g, s in zip(slices(row, group_size), ss) for x in g] for row, ss in rows]
    return Pair(np.array(q, np.int8), scale)


def _quantize_cases(random: np.random.Generator) -> list[Case]:
    return [
        (np.array([[7, 1, 70, 10]], F32), 2),
        (np.array([[7, 0.75, -0.75, -7]], F32), 2),
        (np.array([[7, 0.5, 1.5, 2.5], [-0.5, -1.5, -2.5, -7]], F32), 4),
        (np.array([[1.0, 0.3571, 0.25, -1.0]], F32), 4),  # 2.4997 exact steps, 2.5003 rounded ones
        (np.arange(-16, 16, dtype=F32).reshape(4, 8), 4),
        (np.array([[1, 2, 0, 0], [1e-9, -1e-9, 3, 4]], F32), 2),
        (
            np.array([[6e-7, -6e-7, 3e-7, 0.0], [0.0, 1.0, 2.0, 3.0]], F32),
            4,
        ),  # 1.44 of float16's smallest steps: the scale is rounded down by a third
        (random.normal(0, 0.02, (4, 64)).astype(F32), 16),
    ]


def _pair(
    w: np.ndarray, group_size: int, whole: Callable[[np.ndarray], np.ndarray], scale: np.ndarray | None = None
) -> Two:
    """q = ``whole``(w / scale), right but for ``whole``, and the rounded scale."""
    scale = rounded(exact(w, group_size)) if scale is None else scale
    return whole(divided(grouped(w, group_size), scale[..., None])).reshape(w.shape), rounded(scale)


def _four(q: np.ndarray) -> np.ndarray:
    return to_int8(q, 7)


def _scale_rounded_late(w: np.ndarray, group_size: int) -> Two:
    return _pair(w, group_size, _four, exact(w, group_size))


def _scale_never_rounded(w: np.ndarray, group_size: int) -> Two:
    scale = exact(w, group_size)
    return _pair(w, group_size, _four, scale)[0], scale


def _truncated(w: np.ndarray, group_size: int) -> Two:
    return _pair(w, group_size, lambda q: q.clip(-7, 7).astype(np.int8))


def _half_up(w: np.ndarray, group_size: int) -> Two:
    return _pair(w, group_size, lambda q: np.floor(q + F32(0.5)).clip(-7, 7).astype(np.int8))


def _down_to_minus_8(w: np.ndarray, group_size: int) -> Two:
    return _pair(w, group_size, lambda q: np.rint(q).clip(-8, 7).astype(np.int8))


def _never_clipped(w: np.ndarray, group_size: int) -> Two:
    return _pair(w, group_size, lambda q: np.rint(q).astype(np.int8))


def _divided_by_zero(w: np.ndarray, group_size: int) -> Two:
    scale = rounded(exact(w, group_size))
    return _four(grouped(w, group_size) / scale[..., None]).reshape(w.shape), scale


def _left_in_groups(w: np.ndarray, group_size: int) -> Two:
    q, scale = _pair(w, group_size, _four)
    return grouped(q, group_size), scale


def _put_back_transposed(w: np.ndarray, group_size: int) -> Two:
    q, scale = _left_in_groups(w, group_size)
    return q.transpose(0, 2, 1).reshape(w.shape), scale


def _not_spread(w: np.ndarray, group_size: int) -> Two:
    scale = rounded(exact(w, group_size))
    return to_int8(divided(w, scale), 7), scale


def _scales_tiled(w: np.ndarray, group_size: int) -> Two:
    scale = rounded(exact(w, group_size))
    return _four(divided(w, np.tile(scale, group_size))), scale


QUANTIZE_PER_GROUP = Exercise(
    name="quantize_per_group",
    lab="05",
    goal="Turn a matrix into integers from -7 to 7 and a scale for each group.",
    minutes=10,
    difficulty="core",
    reference=quantize_per_group,
    oracle=_quantize_oracle,
    cases=_quantize_cases,
    hints=(
        "Everything is ready: `group_scales`, `group_reshape`, one division, and `ungroup` at the end.",
        "With `groups` of shape (out, groups, group_size), divide by `scale[..., None]`, infinite where the scale is "
        "0; then `np.rint`, `.clip(-7, 7)`, `.astype(np.int8)`, `ungroup`.",
    ),
    why="fifteen levels for a weight, and the model still speaks: this is the arithmetic behind every 4-bit file.",
    mistakes=(
        Mistake(
            "scale rounded late",
            _scale_rounded_late,
            "You divided by the exact scale and returned the rounded one, so the integers belong to another scale.",
            "Round first: divide by what `group_scales` gives.",
            "the scales right, and an integer here and there off by one",
        ),
        Mistake(
            "scale never rounded",
            _scale_never_rounded,
            "The scales still have float32's digits, and the file has room for float16's.",
            "Use `group_scales`, which rounds them.",
            "scales that differ in the fourth significant digit",
        ),
        Mistake(
            "truncated",
            _truncated,
            "The cast to int8 cuts the fraction off; with so few levels that doubles the error.",
            "Call `np.rint` before the cast.",
            "0 where 1 is expected for 0.75",
        ),
        Mistake(
            "half rounded up",
            _half_up,
            "`floor(x + 0.5)` sends every tie upwards.",
            "Use `np.rint`, which sends ties to the even neighbour.",
            "1 where 0 is expected for 0.5",
        ),
        Mistake(
            "clipped to -8",
            _down_to_minus_8,
            "-8 exists in four bits, and a symmetric range leaves it unused, so that w and -w get opposite integers.",
            "Clip to [-7, 7].",
            "-8 where -7 is expected, in a group of very small weights",
        ),
        Mistake(
            "never clipped",
            _never_clipped,
            "A scale that was rounded down makes the longest quotient larger than 7, and 8 does not fit in four bits.",
            "Clip to [-7, 7] before the cast.",
            "integers beyond 7, in a group of very small weights",
        ),
        Mistake(
            "divided by zero",
            _divided_by_zero,
            "A group of zeros, or of weights too small for float16, has the scale 0, and dividing by it gives infinity "
            "or NaN.",
            "Use `np.where(scale == 0, np.float32(np.inf), scale)` as the divisor: anything over infinity is 0.",
            "7 where 0 is expected for weights near 1e-9, or a warning about a division",
        ),
        Mistake(
            "left in groups",
            _left_in_groups,
            "The integers still have three axes.",
            "Put them back into rows with `ungroup`.",
            "the shape (1, 2, 2) where (1, 4) is expected",
        ),
        Mistake(
            "put back transposed",
            _put_back_transposed,
            "The way back swapped two axes, so the integers of different groups are shuffled into each other.",
            "Use `ungroup`, the exact inverse of `group_reshape`.",
            "the right integers in the wrong places",
        ),
        Mistake(
            "scales not spread over their groups",
            _not_spread,
            "(out, in) / (out, groups) has no meaning for numpy: it wants a scale for each weight, or an axis of "
            "length 1.",
            "Divide the groups, of shape (out, groups, group_size), by `scale[..., None]`.",
            "an error about operands that could not be broadcast together",
        ),
        Mistake(
            "scales in turns",
            _scales_tiled,
            "`np.tile` lays the scales out as a, b, a, b, and neighbours in a group need a, a, b, b.",
            "Divide the groups by `scale[..., None]`, and let numpy do the repeating.",
            "every second integer far too large or too small",
        ),
    ),
)

# ---- dequantize_per_group --------------------------------------------------------------------------------------------


def dequantize_per_group(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The reference: q (out, in) int8, scale (out, groups) float32 -> (out, in) float32."""
    return symmetric.dequantize_rows(q, scale)


def _dequantize_oracle(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    size = q.shape[1] // scale.shape[1]
    rows = zip(q.tolist(), scale.tolist())
    return np.array([[nearest32(x * ss[i // size]) for i, x in enumerate(row)] for row, ss in rows], F32)


def _dequantize_cases(random: np.random.Generator) -> list[Case]:
    made = [
        ([[1, 2, 3, 4]], [[1.0, 10.0]]),
        ([[1, 2, 3, 4], [-1, -2, -3, -4]], [[1.0, 10.0], [100.0, 1000.0]]),
        ([[7, -7, 1, 0, 2, 3], [5, 6, 7, -5, -6, -7]], [[0.5, 0.25], [1.0, 0.0]]),
    ]
    q = random.integers(-7, 8, (4, 24)).astype(np.int8)
    return [
        *((np.array(rows, np.int8), np.array(scale, F32)) for rows, scale in made),
        (q, random.uniform(0, 0.01, (4, 3)).astype(np.float16).astype(F32)),
    ]


def _multiplied_in_turns(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return q * np.tile(scale, q.shape[1] // scale.shape[1])


def _multiplied_unspread(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return q * scale


def _repeated_without_an_axis(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return q * np.repeat(scale, q.shape[1] // scale.shape[1])


def _first_scale_only(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return q * scale[:, :1]


def _reloaded_transposed(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    groups = q.reshape(*scale.shape, -1) * scale[..., None]
    return groups.transpose(0, 2, 1).reshape(q.shape)


def _multiplied_in_float16(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return (q.reshape(*scale.shape, -1) * scale.astype(np.float16)[..., None]).reshape(q.shape)


def _multiplied_in_float64(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return (q.reshape(*scale.shape, -1) * scale.astype(float)[..., None]).reshape(q.shape)


def _weights_left_in_groups(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return q.reshape(*scale.shape, -1) * scale[..., None]


DEQUANTIZE_PER_GROUP = Exercise(
    name="dequantize_per_group",
    lab="05",
    goal="Bring the weights back: every integer times the scale of its own group, in float32.",
    minutes=5,
    difficulty="core",
    reference=dequantize_per_group,
    oracle=_dequantize_oracle,
    cases=_dequantize_cases,
    hints=(
        "Nobody tells you the size of a group, and nobody needs to: the shape of the scales says how many there are.",
        "`group_reshape(q, q.shape[1] // scale.shape[1])` gives (out, groups, group_size); multiply it by "
        "`scale[..., None]` and call `ungroup`.",
    ),
    why="the reshape here is the mirror image of the one in quantize_per_group, so every scale meets its own weights.",
    mistakes=(
        Mistake(
            "scales in turns",
            _multiplied_in_turns,
            "`np.tile` lays the scales out as a, b, a, b, and neighbours in a group need a, a, b, b.",
            "Cut q into groups and multiply by `scale[..., None]`, or use `np.repeat` along axis 1.",
            "20.0 where 2.0 is expected",
        ),
        Mistake(
            "scales not spread over their groups",
            _multiplied_unspread,
            "(out, in) * (out, groups) has no meaning for numpy: it wants a scale for each weight, or an axis of "
            "length 1.",
            "Cut q into groups, and multiply them by `scale[..., None]`.",
            "an error about operands that could not be broadcast together, for every case",
        ),
        Mistake(
            "repeated without an axis",
            _repeated_without_an_axis,
            "`np.repeat` without `axis` flattens the scales first, so those of all rows stand in one line.",
            "Say `axis=1`.",
            "an error about operands that could not be broadcast together, for more than one row",
        ),
        Mistake(
            "first scale of the row only",
            _first_scale_only,
            "Every weight was multiplied by the scale of its row's first group.",
            "Each group has a scale of its own: multiply group by group.",
            "the first group right, and the others wrong",
        ),
        Mistake(
            "transposed inverse",
            _reloaded_transposed,
            "The reshape back into rows swapped two axes, so every weight is right and stands in the wrong place.",
            "Use `ungroup`, the exact inverse of `group_reshape`.",
            "[1, 30, 2, 40] where [1, 2, 30, 40] is expected",
        ),
        Mistake(
            "multiplied in float16",
            _multiplied_in_float16,
            "int8 times float16 is float16 in numpy, and the product loses digits.",
            "Multiply by the float32 scales.",
            "the dtype float16 where float32 is expected",
        ),
        Mistake(
            "multiplied in float64",
            _multiplied_in_float64,
            "`astype(float)` makes float64, twice the memory, and a file or a model would have to round it again.",
            "Say `np.float32`.",
            "the dtype float64 where float32 is expected",
        ),
        Mistake(
            "left in groups",
            _weights_left_in_groups,
            "The weights still have three axes.",
            "Put them back into rows with `ungroup`.",
            "the shape (1, 2, 2) where (1, 4) is expected",
        ),
    ),
)
