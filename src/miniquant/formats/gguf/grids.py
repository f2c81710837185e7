"""Integers that are chosen already, and the grid that they stand on, as blocks of a GGUF file."""

from __future__ import annotations

import numpy as np

from ...core.errors import QuantizationError
from ...quantization.grids import Grid, group_shape, has_minimum
from .types import GGMLType

_RANGES = {GGMLType.Q8_0: (-128, 127), GGMLType.Q4_0: (-8, 7), GGMLType.Q4_1: (0, 15)}


def encode_grid(q: np.ndarray, grid: Grid, kind: GGMLType | str) -> np.ndarray:
    """Integers that are chosen already, as GGUF blocks; decoding them gives what ``dequantize`` gives, to the bit.

    q: (out, in) integers, kind: Q8_0, Q4_0 or Q4_1   ->   (out, row_bytes) uint8

    Raises ``QuantizationError`` for a grid that the type cannot hold: other groups than of 32, scales or mins that
    float16 would round, a minimum where the type has none, integers beyond its range.

    >>> grid = Grid(np.float32([[0.5]]), np.float32([[-1.0]]), 0, 15)
    >>> encode_grid(np.arange(32).reshape(1, 32) % 16, grid, "Q4_1")[0, :8].tobytes().hex(" ")
    '00 38 00 bc 00 11 22 33'
    """
    kind = _kind(kind)
    _check(q, grid, kind)
    blocks = q.reshape(-1, kind.block)  # (blocks, 32)
    out = np.empty((len(blocks), kind.n_bytes), np.uint8)
    halves = out.view("<f2")
    halves[:, 0] = grid.scale.reshape(-1)
    if kind == GGMLType.Q8_0:
        out[:, 2:] = blocks.astype(np.int8).view(np.uint8)
    elif kind == GGMLType.Q4_0:
        out[:, 2:] = _packed((blocks + 8).astype(np.uint8))
    else:
        halves[:, 1] = grid.minimum.reshape(-1)
        out[:, 4:] = _packed(blocks.astype(np.uint8))
    return out.reshape(len(q), -1)


def _packed(nibbles: np.ndarray) -> np.ndarray:
    """Byte j holds weight j in its low nibble and weight j + 16 in its high one.   (blocks, 32)   ->   (blocks, 16)."""
    return nibbles[:, :16] | nibbles[:, 16:] << np.uint8(4)


def _kind(kind: GGMLType | str) -> GGMLType:
    found = GGMLType.__members__.get(str(kind).upper()) if isinstance(kind, str) else kind
    if found not in _RANGES:
        raise QuantizationError(f"no blocks of type {kind!r} are made from a grid; there are Q8_0, Q4_0 and Q4_1")
    return found


def _check(q: np.ndarray, grid: Grid, kind: GGMLType) -> None:
    _, size = group_shape(q.shape, grid)
    low, high = _RANGES[kind]
    if size != kind.block:
        raise QuantizationError(f"{kind.name} has a scale for {kind.block} weights, the grid one for {size}")
    if not np.issubdtype(q.dtype, np.integer):
        raise QuantizationError(f"q holds {q.dtype}; expected integers, as quantize gives them")
    found = [grid.low, grid.high, *((int(q.min()), int(q.max())) if q.size else ())]
    if min(found) < low or max(found) > high:
        raise QuantizationError(
            f"{kind.name} holds integers from {low} to {high}, found some from {min(found)} to {max(found)}"
        )
    if kind != GGMLType.Q4_1 and has_minimum(grid):
        raise QuantizationError(
            f"{kind.name} holds signed integers and no minimum, and this grid is unsigned or has one; use Q4_1"
        )
    for what, values in (("scale", grid.scale), ("minimum", grid.minimum)):
        with np.errstate(over="ignore"):
            kept = values.astype(np.float16).astype(np.float32)
        if not (np.isfinite(values) & (kept == values)).all():
            wrong = values[~(np.isfinite(values) & (kept == values))][0]
            raise QuantizationError(
                f"a {what} is {wrong:.9g}, and float16, which a block of {kind.name} stores, would change it; "
                "round scales and mins to float16 before choosing the integers"
            )
