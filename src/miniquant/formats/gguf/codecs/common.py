"""Arithmetic that several types share: columns, scales, nibbles.

Where arithmetic goes across the weights of a block, the blocks are transposed first: numpy is fast along long rows and
slow along short ones.
"""

from __future__ import annotations

import numpy as np

from .codec import BlockField

f32, i32 = np.float32, np.int32
SCALE = BlockField("d", 2, "header", "the scale, float16", "<e")
MIN = BlockField("m", 2, "header", "the min, which is added to every weight, float16", "<e")
FIFTH_BITS = BlockField("qh", 4, "values", "bit j, the lowest of the first byte first: the fifth bit of weight j")
NIBBLES = BlockField("qs", 16, "values", "byte j: weight j in the low half, weight j + 16 in the high half")


def columns(w: np.ndarray, scratch: np.ndarray) -> np.ndarray:
    """A copy, transposed: (blocks, 32)   ->   (32, blocks), in ``scratch``."""
    x = scratch[0, : w.size].reshape(w.shape[1], -1)
    x[...] = w.T
    return x


def first_extreme(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The weight of largest magnitude of every block, with its sign; of several, the first.

    w: (blocks, 32), x: its columns (32, blocks)   ->   (blocks,)
    """
    top, bottom = x.max(axis=0), x.min(axis=0)
    extreme: np.ndarray = np.where(top > -bottom, top, bottom)
    ties = np.flatnonzero(top == -bottom)
    extreme[ties] = w[ties, np.abs(w[ties]).argmax(axis=1)]
    return extreme


def sums(x: np.ndarray, start: float = 0.0) -> np.ndarray:
    """Down each column, one number after another, as ggml adds; numpy adds a lone column in another order.

    x: (n, columns) float32; start: 0.0, or -0.0, which leaves a sum of nothing but -0.0 what it is
    ->   (columns,) float32
    """
    if x.shape[1] == 1:
        return np.asarray(np.cumsum(x, axis=0)[-1] + f32(start))
    total: np.ndarray = np.add.reduce(x, axis=0, initial=f32(start))
    return total


def inverse(d: np.ndarray) -> np.ndarray:
    """1 / d, and 0 where d is 0."""
    return np.where(d == 0, f32(0), f32(1) / d)


def float16_at(raw: np.ndarray, index: int) -> np.ndarray:
    """The float16 number ``index`` of every block: (blocks, 1) float32."""
    return raw.view("<f2")[:, index : index + 1].astype(f32)


def round_to_levels(x: np.ndarray, d: np.ndarray, shift: np.float32, top: int) -> np.ndarray:
    """x / d + shift, cut to 0 … top.   x: (32, blocks) float32, overwritten   ->   (32, blocks) uint8."""
    inverted = inverse(d)
    x *= inverted
    x += shift
    x[:, ~(np.isfinite(inverted) & np.isfinite(d))] = 0  # what casting infinity to an integer gives on a PC
    q = x.astype(np.uint8)  # 0 to top + 1
    q -= (q > top).view(np.uint8)
    return q


def pack_columns(q: np.ndarray) -> np.ndarray:
    """Nibbles, weight j with weight j + 16.   q: (32, blocks) uint8 below 16, overwritten   ->   (16, blocks) uint8."""
    high = q[16:]
    high *= np.uint8(16)  # a shift of bytes takes ten times as long
    high |= q[:16]
    return high


def weighted(importance: np.ndarray, w: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """How much an error counts: the importance of its column, times a little more than the weight's magnitude.

    importance, w: (blocks, weights); spread: (blocks, 1), a mean square of weights   ->   (blocks, weights) float32
    """
    found: np.ndarray = importance * np.sqrt(spread + w * w)
    return found


def mean_square(w: np.ndarray) -> np.ndarray:
    """Of each row, its sum in ggml's order.   (rows, n) float32   ->   (rows, 1) float32."""
    found: np.ndarray = sums(np.ascontiguousarray((w * w).T)) / f32(w.shape[1])
    return found[:, None]


def unpack_nibbles(packed: np.ndarray, out: np.ndarray) -> None:
    """Packed nibbles as floats.   packed: (blocks, 16) uint8   ->   out: (blocks, 32) float32, 0 … 15."""
    packed = np.ascontiguousarray(packed)
    out[:, :16] = packed & np.uint8(0x0F)
    out[:, 16:] = packed >> np.uint8(4)


def put_five_bits(q: np.ndarray, out: np.ndarray) -> None:
    """Fifth bits, then nibbles.   q: (32, blocks) uint8 below 32, overwritten   ->   out: (blocks, 20) uint8."""
    out[:, :4] = np.packbits(q >> np.uint8(4), axis=0, bitorder="little").T
    q &= np.uint8(0x0F)
    out[:, 4:] = pack_columns(q).T


def take_five_bits(raw: np.ndarray, out: np.ndarray) -> None:
    """The inverse of ``put_five_bits``, as floats.   raw: (blocks, 20) uint8   ->   out: (blocks, 32) float32."""
    unpack_nibbles(raw[:, 4:], out)
    out += np.unpackbits(raw[:, :4], axis=1, bitorder="little") * f32(16)
