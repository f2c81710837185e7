"""Blocks of 32 weights with one scale: Q4_0, Q4_1, Q5_0 and Q5_1. Their integers have four bits or five.

Source: ``quantize_row_q4_0_ref``, ``dequantize_row_q4_0`` and those of the other types in ggml's ``ggml-quants.c``.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..types import GGMLType
from .codec import Codec
from .common import (
    columns,
    f32,
    first_extreme,
    float16_at,
    pack_columns,
    put_five_bits,
    round_to_levels,
    take_five_bits,
    unpack_nibbles,
    weighted,
)
from .search import finer_steps, integers, search_scale, search_scale_and_min


class SmallBlock(Codec):
    """What the four types share: how integers are packed after the scale, or after scale and min."""

    head = GGMLType.Q8_0
    weighs = True
    levels: ClassVar[tuple[int, int]]  # 16 of them, or 32

    def _pack(self, q: np.ndarray, out: np.ndarray) -> None:
        """q: (32, blocks) uint8 from 0 on, overwritten   ->   out: (blocks, bytes)."""
        packed = out[:, 4 if self.has_min else 2 :]
        if packed.shape[1] == 16:
            packed[...] = pack_columns(q).T
        else:
            put_five_bits(q, packed)

    def _unpack(self, raw: np.ndarray, out: np.ndarray) -> None:
        """The inverse, as floats."""
        packed = raw[:, 4 if self.has_min else 2 :]
        (unpack_nibbles if packed.shape[1] == 16 else take_five_bits)(packed, out)

    def error_weights(self, w: np.ndarray, importance: np.ndarray, mean_square: np.ndarray) -> np.ndarray:
        """The spread is that of the whole row."""
        return weighted(importance, w, mean_square)

    def put_levels(self, q: np.ndarray, out: np.ndarray) -> None:
        """Each less the smallest level."""
        self._pack((q - self.levels[0]).astype(np.uint8).T.copy(), out)


class AroundZero(SmallBlock):
    """d × q. The weight of largest magnitude becomes the lowest level, and d has the sign for that."""

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d is the weight of largest magnitude / the lowest level; of several, the first."""
        low, high = self.levels
        x = columns(w, scratch)  # (32, blocks)
        d = first_extreme(w, x) / f32(low)
        out.view("<f2")[:, 0] = d
        self._pack(round_to_levels(x, d, f32(0.5 - low), high - low), out)

    def encode_weighted(self, w: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """The scale by search."""
        low, high = self.levels
        found = search_scale(np.ascontiguousarray(w.T), -low, np.ascontiguousarray(weights.T))
        out.view("<f2")[:, 0] = found.scale
        self._pack(integers(found, len(w), low, high), out)

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """The lowest level is 0 in the file."""
        self._unpack(raw, out)
        out += f32(self.levels[0])
        out *= float16_at(raw, 0)


class AboveMin(SmallBlock):
    """d × q + m. The smallest weight is m."""

    has_min = True

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """m is the smallest weight, d is (largest - smallest) / the highest level; halves are rounded up."""
        top = self.levels[1]
        x = columns(w, scratch)  # (32, blocks)
        m = x.min(axis=0)
        d = (x.max(axis=0) - m) / f32(top)
        x -= m
        out.view("<f2")[:, 0] = d
        out.view("<f2")[:, 1] = m
        self._pack(round_to_levels(x, d, f32(0.5), top), out)

    def encode_weighted(self, w: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """Scale and min by search."""
        top = self.levels[1]
        x, counts = np.ascontiguousarray(w.T), np.ascontiguousarray(weights.T)
        found = search_scale_and_min(x, counts, top, finer_steps(top), absolute=False, cut_first=True)
        out.view("<f2")[:, 0], out.view("<f2")[:, 1] = found.scale, -found.min
        self._pack(integers(found, len(w), 0, top), out)

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × q + m."""
        self._unpack(raw, out)
        out *= float16_at(raw, 0)
        out += float16_at(raw, 1)
