"""IQ4_NL: 32 nibbles and a scale; a nibble is an index into sixteen levels, which are denser around zero.

Source: ``quantize_row_iq4_nl_impl``, ``best_index_int8``, ``dequantize_row_iq4_nl`` in ggml's ``ggml-quants.c``;
``kvalues_iq4nl`` in ``ggml-common.h``.
"""

from __future__ import annotations

import numpy as np

from ..types import GGMLType
from .codec import Codec
from .common import NIBBLES, SCALE, columns, f32, float16_at, inverse, pack_columns, sums, unpack_nibbles, weighted
from .common import mean_square as mean_square_of
from .search import SMALLEST, largest

LEVELS = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], f32)
_FIRST, _LAST = 2 * int(LEVELS[0]), 2 * int(LEVELS[-1])  # in halves: the middle of two levels is a multiple of 1/2
_INDEX_OF = np.searchsorted((LEVELS[:-1] + LEVELS[1:]) / 2, np.arange(_FIRST, _LAST + 1) / 2, "right").astype(np.uint8)
_TRIES = range(-7, 8)  # by how much the level of the largest weight is moved from -127


class IQ4_NL(Codec):
    """4.5 bits a weight."""

    dtype = GGMLType.IQ4_NL
    file_type = 25
    description = (
        "a float16 scale d, then 16 bytes of nibbles as in Q4_0; each nibble is an index into the levels "
        f"{' '.join(f'{level:g}' for level in LEVELS)}; each weight is d × level"
    )
    fields = (SCALE, NIBBLES)
    head = GGMLType.Q8_0
    searches = True
    weighs = True

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """The error of a weight counts as much as its square."""
        x = columns(w, scratch)  # (32, blocks)
        self._encode(x, x * x, out)

    def error_weights(self, w: np.ndarray, importance: np.ndarray, mean_square: np.ndarray) -> np.ndarray:
        """The spread is twice that of the block."""
        return weighted(importance, w, f32(2) * mean_square_of(w))

    def encode_weighted(self, w: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """The same search."""
        self._encode(np.ascontiguousarray(w.T), np.ascontiguousarray(weights.T), out)

    def _encode(self, x: np.ndarray, importance: np.ndarray, out: np.ndarray) -> None:
        scale = search_levels(x, importance)
        out.view("<f2")[:, 0] = scale
        out[:, 2:] = pack_columns(nearest_level(x * inverse(scale))).T

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × level."""
        unpack_levels(raw[:, 2:], out)
        out *= float16_at(raw, 0)


def search_levels(x: np.ndarray, importance: np.ndarray) -> np.ndarray:
    """A scale for every block: some that put the largest weight near -127 are tried, each fitted by least squares.

    x, importance: (32, blocks) float32; how much the error of each weight counts   ->   (blocks,) float32
    """
    extreme = largest(x)
    sum_qx, sum_qq = _sums(x, importance, f32(1) / (-extreme / LEVELS[0]))
    scale = np.where(sum_qq == 0, f32(0), sum_qx / sum_qq)  # NaN, if a weight was
    best = scale * sum_qx
    for step in _TRIES:
        sum_qx, sum_qq = _sums(x, importance, (f32(step) + LEVELS[0]) / extreme)
        better = (sum_qq > 0) & (sum_qx * sum_qx > best * sum_qq)
        scale = np.where(better, sum_qx / sum_qq, scale)
        best = np.where(better, scale * sum_qx, best)
    return np.where(np.abs(extreme) < SMALLEST, f32(0), scale)


def nearest_level(x: np.ndarray) -> np.ndarray:
    """The index of the level nearest to each number; of two, the upper one, and 15 for a NaN."""
    halves = np.fmax(np.fmin(np.floor(x + x), f32(_LAST)), f32(_FIRST))
    index: np.ndarray = _INDEX_OF[halves.astype(np.int16) - _FIRST]
    return index


def unpack_levels(packed: np.ndarray, out: np.ndarray) -> None:
    """Nibbles as levels.   packed: (blocks, 16) uint8   ->   out: (blocks, 32) float32."""
    unpack_nibbles(packed, out)
    np.take(LEVELS, out.astype(np.uint8), out=out)


def _sums(x: np.ndarray, importance: np.ndarray, inverted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sums over the weights of a block, of q·x and q², for the levels q nearest to x · inverted."""
    q = LEVELS[nearest_level(x * inverted)]
    weighted_q = importance * q
    return sums(weighted_q * x), sums(weighted_q * q)
