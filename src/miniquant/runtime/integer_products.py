"""The product that llama.cpp computes: activations become integers of eight bits, and integers meet integers.

Before a matrix of blocks meets a vector, ggml rounds the vector to blocks as well, of a type that fits the matrix:

* Q8_0 for weights without a min: 32 signed bytes and a scale.
* Q8_1 for Q4_1 and Q5_1: the scaled sum of the block as well, which the min of a block of weights is multiplied with.
* Q8_K for K-quants: 256 signed bytes, a float32 scale, and the sums of 16 integers each.

Inside a block everything is a sum of products of integers, which is exact. What a block gives is multiplied with both
scales, and the blocks are added up as floats. Only this last sum is rounded, and in what order it is made depends on
the processor. Here it is made in float64. Q8_1 and Q8_K are made and used within one product; no file holds them.

Source: ``ggml_vec_dot_*_generic`` in ggml's ``ggml-cpu/quants.c``; ``type_traits_cpu`` in ``ggml-cpu/ggml-cpu.c``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ..core.errors import QuantizationError
from ..formats.gguf.codecs import codec_of, encode
from ..formats.gguf.codecs.codec import split_fields
from ..formats.gguf.codecs.common import take_five_bits
from ..formats.gguf.codecs.kquant import KQuantWithPackedMins
from ..formats.gguf.codecs.q8_1 import FIELDS as Q8_1_FIELDS
from ..formats.gguf.codecs.q8_1 import encode_q8_1
from ..formats.gguf.codecs.q8_k import FIELDS as Q8_K_FIELDS
from ..formats.gguf.codecs.q8_k import encode_q8_k
from ..formats.gguf.types import GGMLType
from ..quantization.packing import unpack_runs, unpack_scales, unpack_scales_and_mins


class Weights(NamedTuple):
    """Blocks of weights as integers: a weight is scale × q, plus min.

    q: (blocks, sub-blocks, weights) int32; scale, min: (blocks, sub-blocks) float64; a type of 32 weights has one
    sub-block, and min is ``None`` in a type without one
    """

    q: np.ndarray
    scale: np.ndarray
    min: np.ndarray | None = None


class Activations(NamedTuple):
    """Blocks of activations as integers.

    q: (blocks, numbers) int32; scale: (blocks,) float64; sums: (blocks, n) float64, of equal parts of the block, times
    the scale; ``None`` in Q8_0
    """

    q: np.ndarray
    scale: np.ndarray
    sums: np.ndarray | None = None


Parts = Mapping[str, np.ndarray]  # of blocks, by ggml's names: (blocks, bytes) uint8


def activation_type(kind: GGMLType) -> GGMLType:
    """What ggml rounds activations to before it multiplies them with weights of a type: its ``vec_dot_type``.

    Raises ``QuantizationError`` for a type whose product is not written here.

    >>> activation_type(GGMLType.Q4_1).name
    'Q8_1'
    """
    if kind not in _WEIGHTS:
        raise QuantizationError(
            f"no integer product with {kind.name} here; there are {', '.join(k.name for k in _WEIGHTS)}"
        )
    if kind.block == 256:
        return GGMLType.Q8_K
    return GGMLType.Q8_1 if codec_of(kind).has_min else GGMLType.Q8_0


def encode_activations(x: np.ndarray, kind: GGMLType) -> np.ndarray:
    """Round activations to Q8_0, Q8_1 or Q8_K.   x: (..., n) float32   ->   (..., bytes) uint8.

    The bytes are those of ggml's reference, ``quantize_row_*_ref``. What it runs on a processor with vector
    instructions may round a number halfway between two integers, or next to that, to the other one.

    Raises ``QuantizationError`` for another type, and for rows that are no whole number of blocks.
    """
    kind.bytes_of(x.shape[-1:])
    if kind not in _ACTIVATIONS:
        raise QuantizationError(f"activations become Q8_0, Q8_1 or Q8_K, not {kind.name}")
    found: np.ndarray = _ACTIVATIONS[kind][0](np.asarray(x, np.float32))
    return found


def integer_products(w: np.ndarray, kind: GGMLType, x: np.ndarray) -> np.ndarray:
    """Rows of blocks times rows of activation blocks, as llama.cpp multiplies them.

    w: (rows, bytes) uint8, blocks of ``kind``; x: (tokens, bytes) uint8, blocks of ``activation_type(kind)``
    ->   (tokens, rows) float32

    Raises ``QuantizationError`` for a type without a product here, or rows that do not have the same number of blocks.
    """
    other = activation_type(kind)
    blocks = w.shape[-1] // kind.n_bytes
    if w.shape[-1] != blocks * kind.n_bytes or x.shape[-1] != blocks * (kind.block // other.block) * other.n_bytes:
        raise QuantizationError(
            f"rows of {w.shape[-1]} bytes of {kind.name} and of {x.shape[-1]} bytes of {other.name} "
            "are not the same number of blocks"
        )
    weights = _WEIGHTS[kind](codec_of(kind).split(w.reshape(-1, kind.n_bytes)))
    given = _ACTIVATIONS[other][1](x.reshape(-1, other.n_bytes))
    rows, tokens, subs = len(w), len(x), weights.q.shape[1]
    wq = weights.q.reshape(rows, blocks, subs, -1)
    xq = given.q.reshape(tokens, blocks, subs, -1)
    dots = np.einsum("tbsi,rbsi->trbs", xq, wq)  # int32, exact
    scale = given.scale.reshape(tokens, blocks)
    total = np.einsum("trbs,rbs,tb->tr", dots, weights.scale.reshape(rows, blocks, subs), scale)
    if weights.min is not None and given.sums is not None:
        sums = given.sums.reshape(tokens, blocks, subs, -1).sum(axis=-1)  # of 16 numbers each: two make a sub-block
        total += np.einsum("tbs,rbs->tr", sums, weights.min.reshape(rows, blocks, subs))
    return np.asarray(total, np.float32)


# ---- blocks taken apart ----------------------------------------------------------------------------------------------


def _half(part: np.ndarray) -> np.ndarray:
    """A float16 part as numbers: (blocks, 2) uint8 -> (blocks, 1) float64."""
    return np.ascontiguousarray(part).view("<f2").astype(np.float64)


def _one(q: np.ndarray) -> np.ndarray:
    """One sub-block: (blocks, weights)   ->   (blocks, 1, weights) int32."""
    return q.astype(np.int32)[:, None]


def _nibbles(p: Parts) -> np.ndarray:
    return _one(unpack_runs(p["qs"], 4, 16))


def _five_bits(p: Parts) -> np.ndarray:
    raw = np.concatenate([p["qh"], p["qs"]], axis=1)
    q = np.empty((len(raw), 32), np.float32)
    take_five_bits(raw, q)
    return _one(q)


def _sub_blocks(q: np.ndarray, size: int) -> np.ndarray:
    return q.reshape(len(q), -1, size).astype(np.int32)


def _q2_k(p: Parts) -> Weights:
    q, scales = _sub_blocks(unpack_runs(p["qs"], 2, 32), 16), p["scales"]
    return Weights(q, _half(p["d"]) * (scales & 15), -_half(p["dmin"]) * (scales >> 4))


def _q3_k(p: Parts) -> Weights:
    q = _sub_blocks(unpack_runs(p["qs"], 2, 32) | unpack_runs(p["hmask"], 1, 32) << 2, 16) - 4
    return Weights(q, _half(p["d"]) * (unpack_scales(p["scales"]).astype(np.float64) - 32))


def _packed_mins(kind: GGMLType) -> Callable[[Parts], Weights]:
    def taken_apart(p: Parts) -> Weights:
        codec = codec_of(kind)
        assert isinstance(codec, KQuantWithPackedMins)
        scales, mins = unpack_scales_and_mins(p["scales"])
        q = _sub_blocks(codec.unpack_integers(dict(p)), 32)
        return Weights(q, _half(p["d"]) * scales, -_half(p["dmin"]) * mins)

    return taken_apart


def _q6_k(p: Parts) -> Weights:
    q = _sub_blocks(unpack_runs(p["ql"], 4, 64) | unpack_runs(p["qh"], 2, 32) << 4, 16) - 32
    return Weights(q, _half(p["d"]) * p["scales"].view(np.int8))


def _of_q8_0(raw: np.ndarray) -> Activations:
    p = codec_of(GGMLType.Q8_0).split(raw)
    return Activations(p["qs"].view(np.int8).astype(np.int32), _half(p["d"])[:, 0])


def _of_q8_1(raw: np.ndarray) -> Activations:
    p = split_fields(raw, Q8_1_FIELDS)
    return Activations(p["qs"].view(np.int8).astype(np.int32), _half(p["d"])[:, 0], _half(p["s"]))


def _of_q8_k(raw: np.ndarray) -> Activations:
    p = split_fields(raw, Q8_K_FIELDS)
    scale = np.ascontiguousarray(p["d"]).view("<f4")[:, 0].astype(np.float64)
    sums = np.ascontiguousarray(p["bsums"]).view("<i2")  # (blocks, 16)
    return Activations(p["qs"].view(np.int8).astype(np.int32), scale, scale[:, None] * sums)


_WEIGHTS: dict[GGMLType, Callable[[Parts], Weights]] = {
    GGMLType.Q4_0: lambda p: Weights(_nibbles(p) - 8, _half(p["d"])),
    GGMLType.Q4_1: lambda p: Weights(_nibbles(p), _half(p["d"]), _half(p["m"])),
    GGMLType.Q5_0: lambda p: Weights(_five_bits(p) - 16, _half(p["d"])),
    GGMLType.Q5_1: lambda p: Weights(_five_bits(p), _half(p["d"]), _half(p["m"])),
    GGMLType.Q8_0: lambda p: Weights(_one(p["qs"].view(np.int8)), _half(p["d"])),
    GGMLType.Q2_K: _q2_k,
    GGMLType.Q3_K: _q3_k,
    GGMLType.Q4_K: _packed_mins(GGMLType.Q4_K),
    GGMLType.Q5_K: _packed_mins(GGMLType.Q5_K),
    GGMLType.Q6_K: _q6_k,
}
_ACTIVATIONS: dict[GGMLType, tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], Activations]]] = {
    GGMLType.Q8_0: (lambda x: encode(x, GGMLType.Q8_0), _of_q8_0),
    GGMLType.Q8_1: (encode_q8_1, _of_q8_1),
    GGMLType.Q8_K: (encode_q8_k, _of_q8_k),
}
