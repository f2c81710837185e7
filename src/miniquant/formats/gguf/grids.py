"""Integers that are chosen already, and the grid that they stand on, as blocks of a GGUF file."""

from __future__ import annotations

import numpy as np

from ...core.errors import QuantizationError
from ...quantization.grids import Grid, group_shape, has_minimum
from .codecs import CODECS, Codec, codec_of
from .types import GGMLType


def encode_grid(q: np.ndarray, grid: Grid, dtype: GGMLType | str) -> np.ndarray:
    """Integers that are chosen already, as GGUF blocks; decoding them gives what ``dequantize`` gives, bit for bit.

    q: (out, in) integers, dtype: a type with ``levels``, such as Q4_0   ->   (out, bytes of a row) uint8

    Raises ``QuantizationError`` for a grid that the type cannot hold: other groups than of 32, scales or mins that
    float16 would round, a minimum where the type has none, integers beyond its range.

    >>> grid = Grid(np.float32([[0.5]]), np.float32([[-1.0]]), 0, 15)
    >>> encode_grid(np.arange(32).reshape(1, 32) % 16, grid, "Q4_1")[0, :8].tobytes().hex(" ")
    '00 38 00 bc 00 11 22 33'
    """
    codec = codec_of(dtype)
    if codec.levels is None:
        known = ", ".join(codec.dtype.name for codec in CODECS.values() if codec.levels)
        raise QuantizationError(f"no blocks of type {codec.dtype.name} are made from a grid; there are {known}")
    _check(q, grid, codec, *codec.levels)
    blocks = q.reshape(-1, codec.dtype.block)  # (blocks, 32)
    out = np.empty((len(blocks), codec.dtype.n_bytes), np.uint8)
    halves = out.view("<f2")
    halves[:, 0] = grid.scale.reshape(-1)
    if codec.has_min:
        halves[:, 1] = grid.minimum.reshape(-1)
    codec.put_levels(blocks, out)
    return out.reshape(len(q), -1)


def _check(q: np.ndarray, grid: Grid, codec: Codec, low: int, high: int) -> None:
    _, size = group_shape(q.shape, grid)
    dtype = codec.dtype
    if size != dtype.block:
        raise QuantizationError(f"{dtype.name} has a scale for {dtype.block} weights, the grid one for {size}")
    if not np.issubdtype(q.dtype, np.integer):
        raise QuantizationError(f"q holds {q.dtype}; expected integers, as quantize gives them")
    found = [grid.low, grid.high, *((int(q.min()), int(q.max())) if q.size else ())]
    if min(found) < low or max(found) > high:
        raise QuantizationError(
            f"{dtype.name} holds integers from {low} to {high}, found some from {min(found)} to {max(found)}"
        )
    if not codec.has_min and has_minimum(grid):
        raise QuantizationError(
            f"{dtype.name} holds signed integers and no minimum, and this grid is unsigned or has one; use Q4_1"
        )
    for what, values in (("scale", grid.scale), ("minimum", grid.minimum)):
        with np.errstate(over="ignore"):
            kept = values.astype(np.float16).astype(np.float32)
        if not (np.isfinite(values) & (kept == values)).all():
            wrong = values[~(np.isfinite(values) & (kept == values))][0]
            raise QuantizationError(
                f"a {what} is {wrong:.9g}, and float16, which a block of {dtype.name} stores, would change it; "
                "round scales and mins to float16 before choosing the integers"
            )
