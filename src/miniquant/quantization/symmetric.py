"""Symmetric quantization: one float16 scale for a tensor, a channel (row) or a group of weights in a row.

The scale is rounded to float16 before the weights are divided by it, and every function here uses that rounded scale. A
file stores the same float16, so the weights that it gives back are equal, bit for bit, to the weights that a
fake-quantized model computes with. Works on numpy arrays and on torch
tensors; torch is never imported here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.arrays import Array, like, to_numpy
from ..core.errors import QuantizationError
from . import grids


class Quantized(NamedTuple):
    """Integers and the scales that bring them back: ``w ≈ values * scale``.

    values: the shape of the weights, int8
    scale: () per tensor, (out,) per channel, (out, in / group_size) per group; float16
    """

    values: Array
    scale: Array


def qmax(bits: int) -> int:
    """The largest integer of a symmetric range: 127 for 8 bits, 7 for 4; the smallest is its negative.

    >>> qmax(8), qmax(4), qmax(2)
    (127, 7, 1)
    """
    if not 2 <= bits <= 8:
        raise QuantizationError(f"bits must be from 2 to 8, not {bits}")
    return (1 << bits - 1) - 1


def quantize_per_tensor(w: Array, bits: int = 8) -> Quantized:
    """One scale for the whole tensor.

    w: any shape, floating point   ->   values: int8 of the same shape, scale: () float16

    Raises ``QuantizationError`` if a weight is not finite or the scale does not fit in float16.

    >>> quantize_per_tensor(np.array([-127.0, 0.0, 64.4]))
    Quantized(values=array([-127,    0,   64], dtype=int8), scale=array(1., dtype=float16))
    """
    array = to_numpy(w)
    values, scale = _quantize(array.reshape(1, -1), None, bits)
    return Quantized(like(values.reshape(array.shape), w), like(scale.reshape(()), w))


def quantize_per_channel(w: Array, bits: int = 8) -> Quantized:
    """One scale a row (output channel).

    w: (out, in) floating point   ->   values: (out, in) int8, scale: (out,) float16

    Raises ``QuantizationError`` for another number of dimensions, a weight that is not finite,
    or a scale beyond float16.
    """
    values, scale = _quantize(to_numpy(w), None, bits)
    return Quantized(like(values, w), like(scale[:, 0], w))


def quantize_per_group(w: Array, bits: int = 4, group_size: int = 64) -> Quantized:
    """One scale for each ``group_size`` neighbours of a row.

    w: (out, in) floating point   ->   values: (out, in) int8, scale: (out, in / group_size) float16

    Raises ``QuantizationError`` as ``quantize_per_channel`` does, and if a row does not divide into groups.
    """
    values, scale = _quantize(to_numpy(w), group_size, bits)
    return Quantized(like(values, w), like(scale, w))


def dequantize(quantized: Quantized) -> Array:
    """The float32 weights that the integers and scales stand for, in the shape of the integers.

    Raises ``QuantizationError`` if the scales fit neither the tensor, nor its rows, nor groups of its rows, and if
    int8 or float16 would change a number.

    >>> dequantize(quantize_per_channel(np.array([[-127.0, 64.4], [0.0, 0.0]]))).tolist()
    [[-127.0, 64.0], [0.0, 0.0]]
    """
    values, scale = to_numpy(quantized.values, np.int8), to_numpy(quantized.scale, np.float16)
    columns = scale.reshape(-1, 1) if scale.ndim < 2 else scale
    rows = values.reshape(1, -1) if scale.ndim == 0 else values
    fits = rows.ndim == columns.ndim == 2 and len(columns) == len(rows)
    if not fits or rows.shape[1] % max(1, columns.shape[1]) or (rows.size and not columns.size):
        raise QuantizationError(f"scales of shape {scale.shape} do not fit integers of shape {values.shape}")
    return like(dequantize_rows(rows, columns).reshape(values.shape), quantized.values)


def fake_quantize(w: Array, bits: int = 8, *, per: str = "channel", group_size: int = 64) -> Array:
    """Quantize and bring back: the float32 weights that a file of this scheme will hold.

    w: floating point   ->   float32 of the same shape; ``per`` is ``"tensor"``, ``"channel"`` or ``"group"``
    """
    if per == "tensor":
        return dequantize(quantize_per_tensor(w, bits))
    if per == "channel":
        return dequantize(quantize_per_channel(w, bits))
    if per == "group":
        return dequantize(quantize_per_group(w, bits, group_size))
    raise QuantizationError(f"per={per!r} is unknown; choose 'tensor', 'channel' or 'group'")


# ---- the arithmetic of grids, on numpy matrices ----------------------------------------------------------------------


def absmax_scales(w: np.ndarray, n_groups: int, bits: int) -> np.ndarray:
    """scale = float16(absmax / qmax).   w: (out, in) float32   ->   (out, n_groups) float16.

    Raises ``QuantizationError`` if a weight is not finite, or a scale beyond float16.
    """
    group_size = None if n_groups == 1 else w.shape[1] // max(1, n_groups) or 1
    return _rule(group_size, bits).fit(w).scale.astype(np.float16)


def quantize_rows(w: np.ndarray, scale: np.ndarray, bits: int) -> np.ndarray:
    """q = round_half_even(w / scale), clipped.

    w: (out, in) float32, finite; scale: (out, groups) float16   ->   (out, in) int8

    Where the scale is zero (a group of zeros, or of weights below half of float16's smallest number), q is zero.
    """
    grid = grids.Grid.symmetric(scale, -qmax(bits), qmax(bits))
    return grids.quantize_finite(w, grid, dtype=np.int8)


def dequantize_rows(values: np.ndarray, scale: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """w = q * scale.   values: (out, in) int8, scale: (out, groups) float16   ->   (out, in) float32."""
    return grids.dequantize(values, grids.Grid.symmetric(scale, -128, 127), out)


def _rule(group_size: int | None, bits: int) -> grids.Symmetric:
    return grids.Symmetric(f"int{bits}", group_size, qmax(bits), -qmax(bits), qmax(bits))


def _quantize(w: np.ndarray, group_size: int | None, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """w: (out, in) float32   ->   values: (out, in) int8, scale: (out, groups) float16."""
    grid = _rule(group_size, bits).fit(w)
    return grids.quantize_finite(w, grid, dtype=np.int8), grid.scale.astype(np.float16)


def cast_checked(w: np.ndarray, dtype: type, start: int = 0) -> np.ndarray:
    """Weights as float32 or float16, little-endian.   w: (n,) float32   ->   (n,), a view where nothing changes.

    ``start`` is the index of the first, for messages. Raises ``QuantizationError`` unless all are finite, as stored.
    """
    limit = 65520 if dtype == np.float16 else np.inf  # halfway from 65504 to the next: what rounds to infinity
    bad = ~(np.abs(w) < limit)  # true for NaN too
    if bad.any():
        at = int(bad.argmax())
        found = f"the weight at flat index {start + at} is {w[at]:g}"
        if np.isfinite(w[at]):
            raise QuantizationError(f"{found}, and float16 ends at 65504; store this tensor as f32")
        raise QuantizationError(f"{found}; a file holds finite weights only")
    return w.astype(np.dtype(dtype).newbyteorder("<"), copy=False)
