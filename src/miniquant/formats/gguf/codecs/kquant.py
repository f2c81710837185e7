"""K-quants: super-blocks of 256 weights, whose scales are quantized themselves. What the five types share.

A super-block is cut into sub-blocks of 16 or 32 weights. Each sub-block has a small integer scale of its own, and in
Q2_K, Q4_K and Q5_K a small integer min; one or two float16 numbers say what those integers are worth. A weight is
``d · scale · q``, less ``dmin · min`` where there are mins. ``search`` finds good scales.

Source: ggml's ``ggml-quants.c`` (``quantize_row_*_K_ref``, ``dequantize_row_*_K``) and ``ggml-common.h`` (the structs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from ....quantization.packing import pack_scales_and_mins, unpack_scales_and_mins
from ..types import GGMLType
from .codec import BlockField, Codec
from .common import mean_square as mean_square_of
from .common import sums, weighted
from .search import (
    SMALLEST,
    Search,
    finer_steps,
    integers,
    nearest,
    search_positive_scale,
    search_scale,
    search_scale_and_min,
    steps,
)

PIECE = 128  # super-blocks encoded at once: what the search touches fits a core's cache
f32 = np.float32

D = BlockField("d", 2, "header", "what a scale of 1 is worth, float16", "<e")
DMIN = BlockField("dmin", 2, "header", "what a min of 1 is worth, float16", "<e")
SCALES = BlockField("scales", 12, "scales", "a small integer for each sub-block")
QS = BlockField("qs", 128, "values", "the weights' integers, or the lower bits of them")
QH = BlockField("qh", 32, "values", "the upper bits of the weights' integers")


class KQuant(Codec):
    """A type of super-blocks."""

    head = GGMLType.Q6_K
    super_block = True
    searches = True
    weighs = True
    sub_block: ClassVar[int]  # weights with a scale of their own
    pieces: ClassVar[int] = 1  # ``PIECE`` super-blocks, so many times, are encoded at once

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """w: (blocks, 256) float32   ->   out: (blocks, bytes) uint8, a piece at a time."""
        for start in range(0, len(w), step := self.pieces * PIECE):
            self.encode_piece(w[start : start + step], out[start : start + step])

    def error_weights(self, w: np.ndarray, importance: np.ndarray, mean_square: np.ndarray) -> np.ndarray:
        """The spread is twice that of the super-block."""
        return weighted(importance, w, f32(2) * mean_square_of(w))

    def encode_weighted(self, w: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """As ``encode``, with finer attempts."""
        for start in range(0, len(w), step := self.pieces * PIECE):
            piece = slice(start, start + step)
            self.encode_piece(w[piece], out[piece], weights[piece])

    def encode_piece(self, w: np.ndarray, out: np.ndarray, weights: np.ndarray | None = None) -> None:
        """The same for a few super-blocks; weights: how much the error of each weight counts, if that is given."""
        raise NotImplementedError


class KQuantWithPackedMins(KQuant):
    """Q4_K and Q5_K: twelve bytes hold 8 scales and 8 mins."""

    def text_of(self, field: BlockField, part: np.ndarray) -> str:
        """The scales and mins in their plain numbers."""
        if field is not SCALES:
            return field.text
        scales, mins = (" ".join(map(str, numbers)) for numbers in unpack_scales_and_mins(part))
        return f"{field.text}: scales {scales}; mins {mins}"

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """d × scale × q - dmin × min."""
        p = self.split(raw)
        out[...] = self.unpack_integers(p)
        scales, mins = unpack_scales_and_mins(p["scales"])
        scale_weights(out, number(p["d"]) * scales, number(p["dmin"]) * mins)

    def put_scales(self, fit: Fit, p: dict[str, np.ndarray]) -> None:
        """Write everything but the weights' integers."""
        p["d"][...], p["dmin"][...] = float16_bytes(fit.d), float16_bytes(fit.dmin)
        p["scales"][...] = pack_scales_and_mins(fit.scales, fit.mins)

    def unpack_integers(self, p: dict[str, np.ndarray]) -> np.ndarray:
        """The parts of super-blocks   ->   (blocks, 256) uint8."""
        raise NotImplementedError


def number(part: np.ndarray) -> np.ndarray:
    """A float16 part as float32: (blocks, 2) uint8 -> (blocks, 1)."""
    return np.ascontiguousarray(part).view("<f2").astype(f32)


def float16_bytes(numbers: np.ndarray) -> np.ndarray:
    """(blocks, 1) float32 -> (blocks, 2) uint8."""
    return numbers.astype("<f2").view(np.uint8)


def scale_weights(out: np.ndarray, scales: np.ndarray, mins: np.ndarray | None = None) -> None:
    """Integers to weights, in place.   out: (blocks, 256)   scales, mins: (blocks, sub-blocks) float32."""
    split = out.reshape(*scales.shape, -1)  # (blocks, sub-blocks, weights)
    split *= scales[..., None]
    if mins is not None:
        split -= mins[..., None]


# ---- encoding with mins ----------------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """Super-blocks as integers: the weights, and what the scales and mins of the sub-blocks became."""

    q: np.ndarray  # (blocks, 256) uint8
    scales: np.ndarray  # (blocks, sub-blocks) uint8
    mins: np.ndarray  # (blocks, sub-blocks) uint8
    d: np.ndarray  # (blocks, 1) float32
    dmin: np.ndarray  # (blocks, 1) float32


Importance = Callable[[np.ndarray], np.ndarray]  # (weights, sub-blocks) -> how much the error of each counts, as large
Packed = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]  # scales, mins -> scales, mins


def fit_scales_and_mins(
    w: np.ndarray,
    *,
    size: int,
    top: int,
    scale_top: int,
    importance: Importance,
    first: float,
    count: int,
    absolute: bool = False,
) -> Fit:
    """A scale and a min for every sub-block, then integers for them, then the weights rounded to those.

    w: (blocks, 256) float32
    size: weights in a sub-block; top: the largest integer of a weight, from 0; scale_top: that of a scale or min
    importance: how much the error of each weight counts
    first, count: the attempts of the search, see ``steps``; absolute: the error is not squared
    """
    x = sub_blocks(w, size)  # (size, sub-blocks of all)
    factors = steps(top, first, count)
    found = search_scale_and_min(x, importance(x), top, factors, absolute=absolute, cut_first=False)
    scales, d = unsigned_integers(found.scale.reshape(len(w), -1), scale_top)
    mins, dmin = unsigned_integers(found.min.reshape(len(w), -1), scale_top)
    return _round(x, found, top, scales, d, mins, dmin)


def fit_weighted_scales_and_mins(
    w: np.ndarray, weights: np.ndarray, *, size: int, top: int, scale_top: int, packed: Packed
) -> Fit:
    """The same where ``weights`` says how much the error of each weight counts; it chooses the integers of scales, too.

    w, weights: (blocks, 256) float32; the others as above
    packed: scales and mins of eight bits -> what is left of them in the file, where they are too large for it

    Source: ``quantize_row_q4_K_impl`` in ``ggml-quants.c``.
    """
    x, counts = sub_blocks(w, size), sub_blocks(weights, size)
    found = search_scale_and_min(x, counts, top, finer_steps(top), absolute=False, cut_first=True)
    together = _by_block(sums(counts), w)
    d, scales = search_positive_scale(_by_block(found.scale, w), together, scale_top)
    dmin, mins = search_positive_scale(_by_block(found.min, w), together, scale_top)
    scales, mins = packed(scales.T.astype(np.uint8), mins.T.astype(np.uint8))
    return _round(x, found, top, scales, d[:, None], mins, dmin[:, None])


def _by_block(numbers: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A number for each sub-block: (sub-blocks of all,)   ->   (sub-blocks of one, blocks)."""
    return np.ascontiguousarray(numbers.reshape(len(w), -1).T)


def _round(
    x: np.ndarray,
    found: Search,
    top: int,
    scales: np.ndarray,
    d: np.ndarray,
    mins: np.ndarray,
    dmin: np.ndarray,
) -> Fit:
    step = (as_float16(d) * scales).reshape(-1)
    q = nearest((x + (as_float16(dmin) * mins).reshape(-1)) / step)
    return Fit(integers_of_weights(q, found, step, 0, top), scales, mins, d, dmin)


def absolute_importance(x: np.ndarray) -> np.ndarray:
    """A weight counts as much as its magnitude."""
    size: np.ndarray = np.abs(x)
    return size


def spread_importance(x: np.ndarray) -> np.ndarray:
    """A weight counts as much as its magnitude plus the root mean square of its sub-block: none counts little."""
    spread: np.ndarray = np.sqrt(sums(x * x) / f32(len(x))) + np.abs(x)
    return spread


# ---- encoding around zero --------------------------------------------------------------------------------------------


class SignedFit(NamedTuple):
    """Super-blocks without mins as integers."""

    q: np.ndarray  # (blocks, 256) uint8, counted from 0
    scales: np.ndarray  # (blocks, sub-blocks) float32, integers with a sign
    d: np.ndarray  # (blocks, 1) float32
    zero: np.ndarray  # (blocks,) bool: no sub-block has a scale above ``SMALLEST``


def fit_scales(
    w: np.ndarray, *, size: int, bottom: int, scale_bottom: int, search: Callable[[np.ndarray], Search]
) -> SignedFit:
    """A scale for every sub-block, then an integer for it, then the weights rounded to those.

    w: (blocks, 256) float32
    size: weights in a sub-block; bottom: the smallest integer of a weight; scale_bottom: that of a scale
    search: (size, sub-blocks) float32 -> the scales
    """
    x = sub_blocks(w, size)  # (size, sub-blocks of all)
    found = search(x)
    numbers = found.scale.reshape(len(w), -1)
    scales, d = signed_integers(numbers, scale_bottom)
    step = (as_float16(d) * scales).reshape(-1)
    q = integers_of_weights(nearest(x / step), found, step, bottom, -bottom - 1)
    return SignedFit(q, scales, d, np.abs(numbers).max(axis=1) < SMALLEST)


def fit_weighted_scales(w: np.ndarray, weights: np.ndarray, *, size: int, bottom: int, scale_bottom: int) -> SignedFit:
    """The same where ``weights`` says how much the error of each weight counts; it chooses the integers of scales, too.

    w, weights: (blocks, 256) float32. Source: ``quantize_row_q3_K_impl`` in ``ggml-quants.c``.
    """
    x, counts = sub_blocks(w, size), sub_blocks(weights, size)
    found = search_scale(x, -bottom, counts)
    outer = search_scale(_by_block(found.scale, w), -scale_bottom, _by_block(sums(counts), w))
    scales = integers(outer, len(w), scale_bottom, -scale_bottom - 1).T + f32(scale_bottom)
    d = outer.scale[:, None]
    step = (as_float16(d) * scales).reshape(-1)
    q = integers_of_weights(nearest(x / step), found, step, bottom, -bottom - 1)
    return SignedFit(q, scales, d, d[:, 0] == 0)


# ---- what all five encoders use --------------------------------------------------------------------------------------


def sub_blocks(w: np.ndarray, size: int) -> np.ndarray:
    """A copy, transposed: numpy is fast along long rows.   (blocks, 256)   ->   (size, blocks · 256 / size)."""
    return np.ascontiguousarray(w.reshape(-1, size).T)


def as_float16(d: np.ndarray) -> np.ndarray:
    """As it will be read back."""
    return d.astype(np.float16).astype(f32)


def unsigned_integers(numbers: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of one sign as integers from 0 to ``top``, with the worth of 1: the largest number becomes ``top``.

    numbers: (blocks, n) float32   ->   (blocks, n) uint8, (blocks, 1) float32
    """
    largest = np.maximum(numbers.max(axis=1, keepdims=True), f32(0))
    inverse = f32(top) / largest
    inverse[~np.isfinite(inverse)] = 0  # nothing but zeros, or what float16 takes for them
    return np.fmin(np.fmax(np.rint(inverse * numbers), f32(0)), f32(top)).astype(np.uint8), largest / f32(top)


def signed_integers(numbers: np.ndarray, bottom: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of both signs as integers from ``bottom`` to ``-bottom - 1``, with the worth of 1.

    The number of largest magnitude becomes ``bottom``; where it is positive, 1 is worth a negative number.

    numbers: (blocks, n) float32   ->   (blocks, n), (blocks, 1), both float32 since they are multiplied next
    """
    extreme = np.take_along_axis(numbers, np.abs(numbers).argmax(axis=1)[:, None], axis=1)
    inverse = np.where(extreme == 0, f32(0), f32(bottom) / extreme)
    integers = np.fmin(np.fmax(np.rint(inverse * numbers), f32(bottom)), f32(-bottom - 1))
    return integers, np.where(extreme == 0, f32(0), f32(1) / inverse)


def integers_of_weights(q: np.ndarray, found: Search, step: np.ndarray, bottom: int, top: int) -> np.ndarray:
    """Rounded weights, cut to ``bottom`` … ``top``, counted from 0.   (size, sub-blocks) -> (blocks, 256) uint8.

    Where a scale was rounded to nothing, any integer will do; ggml leaves what the search had there.
    """
    lost = np.flatnonzero(step == 0)
    q[:, lost] = found.q(lost)
    integers: np.ndarray = np.fmin(np.fmax(q, f32(bottom)), f32(top))  # NaN becomes the bottom
    integers -= f32(bottom)
    return integers.astype(np.uint8).T.reshape(-1, 256)
