"""K-quants: super-blocks of 256 weights, whose scales are quantized themselves; bytes and values equal to ggml's.

A super-block is cut into sub-blocks of 16 or 32 weights. Each sub-block has a small integer scale of its own, and in
Q2_K, Q4_K and Q5_K a small integer minimum; one or two float16 numbers say what those integers are worth. A weight is
``d · scale · q``, less ``dmin · minimum`` where there are mins. ``kquants_search`` finds good scales.

Source: ggml's ``ggml-quants.c`` (``quantize_row_*_K_ref``, ``dequantize_row_*_K``) and ``ggml-common.h`` (the structs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...quantization.packing import (
    pack_runs,
    pack_scales,
    pack_scales_and_mins,
    unpack_runs,
    unpack_scales,
    unpack_scales_and_mins,
)
from .kquants_search import (
    SMALLEST,
    Search,
    largest,
    search_scale,
    search_scale_and_minimum,
    search_scale_of_3_bits,
    steps,
)
from .types import GGMLType

PIECE = 128  # super-blocks encoded at once: what the search touches fits a core's cache
PARTS = {  # type -> the parts of a super-block in their order, with their bytes
    GGMLType.Q2_K: {"scales": 16, "qs": 64, "d": 2, "dmin": 2},
    GGMLType.Q3_K: {"hmask": 32, "qs": 64, "scales": 12, "d": 2},
    GGMLType.Q4_K: {"d": 2, "dmin": 2, "scales": 12, "qs": 128},
    GGMLType.Q5_K: {"d": 2, "dmin": 2, "scales": 12, "qh": 32, "qs": 128},
    GGMLType.Q6_K: {"ql": 128, "qh": 64, "scales": 16, "d": 2},
    GGMLType.Q8_K: {"d": 4, "qs": 256, "bsums": 32},
}
f32 = np.float32


def parts(raw: np.ndarray, kind: GGMLType) -> dict[str, np.ndarray]:
    """The parts of super-blocks by ggml's names, as views of the same bytes.

    raw: (..., bytes of a block) uint8   ->   name: (..., bytes of the part)

    >>> {name: part.shape for name, part in parts(np.zeros((3, 144), np.uint8), GGMLType.Q4_K).items()}
    {'d': (3, 2), 'dmin': (3, 2), 'scales': (3, 12), 'qs': (3, 128)}
    """
    found, at = {}, 0
    for name, size in PARTS[kind].items():
        found[name] = raw[..., at : at + size]
        at += size
    return found


def _number(part: np.ndarray) -> np.ndarray:
    """A float16 part as float32: (blocks, 2) uint8 -> (blocks, 1)."""
    return np.ascontiguousarray(part).view("<f2").astype(f32)


def _float16(numbers: np.ndarray) -> np.ndarray:
    """(blocks, 1) float32 -> (blocks, 2) uint8."""
    return numbers.astype("<f2").view(np.uint8)


# ---- decoding --------------------------------------------------------------------------------------------------------


def _decode_q2_k(raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    p = parts(raw, GGMLType.Q2_K)
    out[...] = unpack_runs(p["qs"], 2, 32)
    _scale(out, _number(p["d"]) * (p["scales"] & 15), _number(p["dmin"]) * (p["scales"] >> 4))


def _decode_q3_k(raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    p = parts(raw, GGMLType.Q3_K)
    out[...] = unpack_runs(p["qs"], 2, 32) | unpack_runs(p["hmask"], 1, 32) << 2
    out -= f32(4)
    _scale(out, _number(p["d"]) * (unpack_scales(p["scales"]).astype(f32) - f32(32)))


def _decode_q4_k(raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    p = parts(raw, GGMLType.Q4_K)
    out[...] = unpack_runs(p["qs"], 4, 32)
    scales, mins = unpack_scales_and_mins(p["scales"])
    _scale(out, _number(p["d"]) * scales, _number(p["dmin"]) * mins)


def _decode_q5_k(raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    p = parts(raw, GGMLType.Q5_K)
    out[...] = unpack_runs(p["qs"], 4, 32) | unpack_runs(p["qh"], 1, 32) << 4
    scales, mins = unpack_scales_and_mins(p["scales"])
    _scale(out, _number(p["d"]) * scales, _number(p["dmin"]) * mins)


def _decode_q6_k(raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    p = parts(raw, GGMLType.Q6_K)
    out[...] = unpack_runs(p["ql"], 4, 64) | unpack_runs(p["qh"], 2, 32) << 4
    out -= f32(32)
    _scale(out, _number(p["d"]) * p["scales"].view(np.int8))


def _scale(out: np.ndarray, scales: np.ndarray, mins: np.ndarray | None = None) -> None:
    """Integers to weights, in place.   out: (blocks, 256)   scales, mins: (blocks, sub-blocks) float32."""
    split = out.reshape(*scales.shape, -1)  # (blocks, sub-blocks, weights)
    split *= scales[..., None]
    if mins is not None:
        split -= mins[..., None]


# ---- encoding with a minimum -----------------------------------------------------------------------------------------


class _Fit(NamedTuple):
    """Super-blocks as integers: the weights, and what the scales (and mins) of the sub-blocks became."""

    q: np.ndarray  # (blocks, 256) uint8
    scales: np.ndarray  # (blocks, sub-blocks) uint8
    mins: np.ndarray  # (blocks, sub-blocks) uint8
    d: np.ndarray  # (blocks, 1) float32
    dmin: np.ndarray  # (blocks, 1) float32


def _fit_with_minimum(
    w: np.ndarray,
    size: int,
    top: int,
    scale_top: int,
    importance: Callable,
    factors: np.ndarray,
    absolute: bool = False,
) -> _Fit:
    """A scale and a minimum for every sub-block, then integers for them, then the weights rounded to those."""
    x = _sub_blocks(w, size)  # (weights, sub-blocks of all)
    found = search_scale_and_minimum(x, importance(x), top, factors, absolute)
    scales, d = _whole(found.scale.reshape(len(w), -1), scale_top)
    mins, dmin = _whole(found.minimum.reshape(len(w), -1), scale_top)
    step = (_rounded(d) * scales).reshape(-1)
    q = np.rint((x + (_rounded(dmin) * mins).reshape(-1)) / step)
    return _Fit(_weights(q, found, step, 0, top), scales, mins, d, dmin)


def _whole(numbers: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers of 0 to ``top``, and what one of them is worth.   (blocks, n) -> (blocks, n) uint8, (blocks, 1)."""
    largest = np.maximum(numbers.max(axis=1, keepdims=True), f32(0))
    inverse = f32(top) / largest
    inverse[~np.isfinite(inverse)] = 0  # nothing but zeros, or what float16 takes for them
    return np.fmin(np.fmax(np.rint(inverse * numbers), f32(0)), f32(top)).astype(np.uint8), largest / f32(top)


def _rounded(d: np.ndarray) -> np.ndarray:
    """As it will be read back."""
    return d.astype(np.float16).astype(f32)


def _sub_blocks(w: np.ndarray, size: int) -> np.ndarray:
    """A copy, turned: numpy is quick along long rows.   (blocks, 256)   ->   (size, blocks · 256 / size)."""
    return np.ascontiguousarray(w.reshape(-1, size).T)


def _weights(q: np.ndarray, found: Search, step: np.ndarray, bottom: int, top: int) -> np.ndarray:
    """Rounded weights, cut to the type's range and turned back, from 0.   (size, sub-blocks) -> (blocks, 256) uint8.

    Where a scale was rounded to nothing, any integer will do; ggml leaves what the search had there.
    """
    lost = np.flatnonzero(step == 0)
    q[:, lost] = found.q(lost)
    whole = np.fmin(np.fmax(q, f32(bottom)), f32(top))  # NaN becomes the bottom
    whole -= f32(bottom)
    return whole.astype(np.uint8).T.reshape(-1, 256)


def _size(x: np.ndarray) -> np.ndarray:
    return np.abs(x)


def _size_and_spread(x: np.ndarray) -> np.ndarray:
    """Large weights matter more, but none matters little."""
    return np.sqrt(np.add.reduce(x * x, axis=0) / f32(len(x))) + np.abs(x)


def _encode_q2_k(w: np.ndarray, out: np.ndarray) -> None:
    fit = _fit_with_minimum(w, 16, 3, 15, _size, steps(3, -0.5, 15), absolute=True)
    p = parts(out, GGMLType.Q2_K)
    p["scales"][...] = fit.scales | fit.mins << 4
    p["qs"][...] = pack_runs(fit.q, 2, 32)
    p["d"][...], p["dmin"][...] = _float16(fit.d), _float16(fit.dmin)


def _encode_q4_k(w: np.ndarray, out: np.ndarray) -> None:
    fit = _fit_with_minimum(w, 32, 15, 63, _size_and_spread, steps(15, -1.0, 20))
    p = parts(out, GGMLType.Q4_K)
    p["d"][...], p["dmin"][...] = _float16(fit.d), _float16(fit.dmin)
    p["scales"][...] = pack_scales_and_mins(fit.scales, fit.mins)
    p["qs"][...] = pack_runs(fit.q, 4, 32)


def _encode_q5_k(w: np.ndarray, out: np.ndarray) -> None:
    fit = _fit_with_minimum(w, 32, 31, 63, _size_and_spread, steps(31, -0.5, 15))
    p = parts(out, GGMLType.Q5_K)
    p["d"][...], p["dmin"][...] = _float16(fit.d), _float16(fit.dmin)
    p["scales"][...] = pack_scales_and_mins(fit.scales, fit.mins)
    p["qh"][...] = pack_runs(fit.q >> 4, 1, 32)
    p["qs"][...] = pack_runs(fit.q & 15, 4, 32)


# ---- encoding around zero --------------------------------------------------------------------------------------------


def _encode_q3_k(w: np.ndarray, out: np.ndarray) -> None:
    x = _sub_blocks(w, 16)
    found = search_scale_of_3_bits(x)
    scales, d = _signed(found.scale.reshape(len(w), 16), -32)
    step = (_rounded(d) * scales).reshape(-1)
    q = _weights(np.rint(x / step), found, step, -4, 3)
    p = parts(out, GGMLType.Q3_K)
    p["hmask"][...] = pack_runs(q >> 2, 1, 32)
    p["qs"][...] = pack_runs(q & 3, 2, 32)
    p["scales"][...] = pack_scales((scales + f32(32)).astype(np.uint8))
    p["scales"][d[:, 0] == 0] = 0
    p["d"][...] = _float16(d)


def _encode_q6_k(w: np.ndarray, out: np.ndarray) -> None:
    x = _sub_blocks(w, 16)
    found = search_scale(x, 32)
    numbers = found.scale.reshape(len(w), 16)
    scales, d = _signed(numbers, -128)
    step = (_rounded(d) * scales).reshape(-1)
    q = _weights(np.rint(x / step), found, step, -32, 31)
    p = parts(out, GGMLType.Q6_K)
    p["ql"][...] = pack_runs(q & 15, 4, 64)
    p["qh"][...] = pack_runs(q >> 4, 2, 32)
    p["scales"][...] = scales.astype(np.int8).view(np.uint8)
    p["d"][...] = _float16(d)
    out[np.abs(numbers).max(axis=1) < SMALLEST] = 0


def _signed(numbers: np.ndarray, bottom: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers of which the largest is ``bottom``, and what one is worth.   (blocks, n) -> (blocks, n), (blocks, 1).

    Both are float32, since they are multiplied next. The other end of the range is one step nearer.
    """
    extreme = np.take_along_axis(numbers, np.abs(numbers).argmax(axis=1)[:, None], axis=1)
    inverse = np.where(extreme == 0, f32(0), f32(bottom) / extreme)
    whole = np.fmin(np.fmax(np.rint(inverse * numbers), f32(bottom)), f32(-bottom - 1))
    return whole, np.where(extreme == 0, f32(0), f32(1) / inverse)


# ---- Q8_K: for activations -------------------------------------------------------------------------------------------


def encode_q8_k(w: np.ndarray) -> np.ndarray:
    """Activations, as ggml rounds them before a product with K-quants; no file holds this type.

    w: (..., n) float32, n a multiple of 256   ->   (..., n / 256 · 292) uint8

    A super-block is a float32 scale, 256 signed bytes, and 16 sums of 16 of those, each an int16: a minimum is
    multiplied with such a sum. The bytes are those of ``quantize_row_q8_K_ref``; zeros get sums of zero.
    """
    blocks = np.ascontiguousarray(w, f32).reshape(-1, 256)
    extreme = largest(blocks.T)[:, None]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        inverse = np.where(extreme == 0, f32(0), f32(-127) / extreme)
        q = np.fmin(np.rint(inverse * blocks), f32(127)).astype(np.int8)
        d = np.where(extreme == 0, f32(0), f32(1) / inverse)
    sums = q.reshape(-1, 16, 16).sum(axis=2, dtype=np.int16).astype("<i2")
    raw = np.concatenate([d.astype("<f4").view(np.uint8), q.view(np.uint8), sums.view(np.uint8)], axis=1)
    return raw.reshape(*w.shape[:-1], -1)


def decode_q8_k(raw: np.ndarray) -> np.ndarray:
    """The inverse of ``encode_q8_k``, but for the rounding.   (..., k · 292) uint8 -> (..., k · 256) float32."""
    p = parts(np.ascontiguousarray(raw).reshape(-1, GGMLType.Q8_K.n_bytes), GGMLType.Q8_K)
    w = np.ascontiguousarray(p["d"]).view("<f4") * p["qs"].view(np.int8)
    return w.reshape(*raw.shape[:-1], -1)


# ---- the table -------------------------------------------------------------------------------------------------------


def _in_pieces(encode: Callable[[np.ndarray, np.ndarray], None], n: int = 1) -> Callable:
    """The same, ``n`` pieces at a time."""

    def work(w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        for start in range(0, len(w), step := n * PIECE):
            encode(w[start : start + step], out[start : start + step])

    return work


K_CODECS = {  # type -> how to encode, how to decode
    GGMLType.Q2_K: (_in_pieces(_encode_q2_k), _decode_q2_k),
    GGMLType.Q3_K: (_in_pieces(_encode_q3_k, 8), _decode_q3_k),
    GGMLType.Q4_K: (_in_pieces(_encode_q4_k), _decode_q4_k),
    GGMLType.Q5_K: (_in_pieces(_encode_q5_k), _decode_q5_k),
    GGMLType.Q6_K: (_in_pieces(_encode_q6_k), _decode_q6_k),
}
