"""Arithmetic of quantized caches for oracles, one number at a time."""

from __future__ import annotations

import numpy as np

from ..shared.by_hand import nearest16, nearest32


def levels_by_hand(numbers: list[float], bits: int) -> tuple[list[int], float, float]:
    """Levels, scale and smallest number of a few float32 numbers, as a cache stores them.

    >>> levels_by_hand([1.0, 4.0, 2.0], 2)
    ([0, 3, 1], 1.0, 1.0)
    """
    top = 2**bits - 1
    low = nearest16(min(numbers))
    scale = nearest16(nearest32(nearest32(max(numbers) - min(numbers)) / top))
    found = [max(0, min(top, round(nearest32(nearest32(x - low) / scale)))) if scale else 0 for x in numbers]
    return found, scale, low


def quantized_by_hand(x: np.ndarray, axis: int, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same along an axis of an array, line by line."""
    lines = np.moveaxis(x, axis, -1)
    shape = lines.shape[:-1]
    made = [levels_by_hand(row, bits) for row in lines.reshape(-1, lines.shape[-1]).tolist()]
    levels = np.array([row for row, _, _ in made], np.uint8).reshape(lines.shape)
    scale, low = (np.array([row[i] for row in made], np.float16).reshape(*shape, 1) for i in (1, 2))
    return tuple(np.ascontiguousarray(np.moveaxis(part, -1, axis)) for part in (levels, scale, low))
