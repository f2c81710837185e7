"""Rows of weights as blocks, and back: tensors of any shape, a chunk at a time, in up to four threads.

The bytes and values equal ggml's, bit for bit. A codec runs on an eighth of a million weights at a time.

Source: ggml's ``ggml-quants.c`` (``quantize_row_*_ref``, ``dequantize_row_*``) and ``ggml-common.h`` (the structs).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ....core.errors import QuantizationError
from ....core.machine import threads
from ..compiled import DECODE, ENCODE, ENCODE_WEIGHTED, chosen
from ..types import GGMLType
from .codec import Codec, codec_of
from .common import mean_square

CHUNK = 131_072  # weights handled at once: with their scratch they stay in a core's own cache
THREADS = threads()  # at most; numpy and compiled functions let other threads run while they compute
PARALLEL_MIN = 1_000_000  # weights up to which a second thread is not worth its start


def encode(w: np.ndarray, dtype: GGMLType | str, importance: np.ndarray | None = None) -> np.ndarray:
    """Encode rows of weights; the type is a ``GGMLType`` or its name.

    w: (..., n) float32, finite   ->   (..., bytes of a row) uint8

    importance: (n,) float32, not negative: how much an error in each column counts, a row of an importance matrix.
    A type whose encoder does not search, such as Q8_0, leaves it out of account, as ggml's does.

    The bytes equal those of ggml's reference, overflow of the float16 scale included (it becomes infinite, as there).
    For F32 they are a view of ``w`` where that is contiguous float32 already: there is nothing to do.

    Raises ``QuantizationError`` for a type that cannot be encoded here, rows that are no whole number of blocks, or an
    importance that does not fit them.
    """
    codec = codec_of(dtype)
    dtype = codec.dtype
    if not codec.encodes:
        raise QuantizationError(f"{dtype.name} is decoded here and not encoded; llama.cpp's quantizer makes its blocks")
    w = np.ascontiguousarray(w, dtype=np.float32)  # a scalar becomes a row of one
    shape = (*w.shape[:-1], dtype.bytes_of(w.shape[-1:]))
    if codec.identity:
        return w.astype("<f4", copy=False).view(np.uint8)
    if importance is not None and codec.weighs:
        return _encode_weighted(codec, w, _checked(importance, w.shape[-1])).reshape(shape)
    blocks = w.reshape(-1, dtype.block)
    out = np.empty((len(blocks), dtype.n_bytes), np.uint8)
    _in_chunks(chosen(dtype, ENCODE, codec.encode), blocks, out, dtype.block)
    return out.reshape(shape)


def _checked(importance: np.ndarray, n: int) -> np.ndarray:
    found = np.ascontiguousarray(importance, np.float32)
    if found.shape != (n,):
        raise QuantizationError(f"rows of {n} weights need an importance of each column, found shape {found.shape}")
    if not (np.isfinite(found) & (found >= 0)).all():
        wrong = found[~(np.isfinite(found) & (found >= 0))][0]
        raise QuantizationError(f"an importance is a finite number from 0 on, found {wrong:g}")
    return found


def _encode_weighted(codec: Codec, w: np.ndarray, importance: np.ndarray) -> np.ndarray:
    """Whole rows at once, since some types ask for the mean square of a row."""
    dtype, n = codec.dtype, w.shape[-1]
    rows, out = w.reshape(-1, n), np.empty((w.size // max(n, 1), dtype.bytes_of((n,))), np.uint8)

    def work(given: np.ndarray, found: np.ndarray, scratch: np.ndarray) -> None:
        blocks = given.reshape(-1, dtype.block)
        columns = np.tile(importance.reshape(-1, dtype.block), (len(given), 1))
        spread = np.repeat(mean_square(given), n // dtype.block, axis=0)
        codec.encode_weighted(blocks, codec.error_weights(blocks, columns, spread), found.reshape(-1, dtype.n_bytes))

    if rows.size:
        _in_chunks(chosen(dtype, ENCODE_WEIGHTED, work, importance), rows, out, n)
    return out


def decode(raw: np.ndarray, dtype: GGMLType | str) -> np.ndarray:
    """Decode rows of blocks; the inverse of ``encode``, as far as the type allows.

    raw: (..., m) uint8, whole blocks   ->   (..., n) float32; for F32 a view of ``raw``, read-only if that is

    Raises ``QuantizationError`` for a type that cannot be decoded here, or bytes that are no whole number of blocks.
    """
    codec = codec_of(dtype)
    dtype = codec.dtype
    raw = np.asarray(raw)
    if raw.dtype != np.uint8 or raw.ndim == 0 or raw.shape[-1] % dtype.n_bytes:
        raise QuantizationError(
            f"{dtype.name} has blocks of {dtype.n_bytes} bytes (uint8); found {raw.dtype} of shape {raw.shape}"
        )
    shape = (*raw.shape[:-1], raw.shape[-1] // dtype.n_bytes * dtype.block)
    if codec.identity:
        return np.require(np.ascontiguousarray(raw).view("<f4"), np.float32, "A")
    blocks = np.ascontiguousarray(raw).reshape(-1, dtype.n_bytes)
    out = np.empty((len(blocks), dtype.block), np.float32)
    _in_chunks(chosen(dtype, DECODE, codec.decode), blocks, out, dtype.block)
    return out.reshape(shape)


Work = Callable[[np.ndarray, np.ndarray, np.ndarray], None]  # source, target, scratch


def _in_chunks(work: Work, source: np.ndarray, target: np.ndarray, block: int) -> None:
    """Do the work on ``CHUNK`` weights after another; in several threads if there is much of it."""
    n, step = len(source), max(1, CHUNK // block)  # in blocks
    count = THREADS if n * block > PARALLEL_MIN else 1  # of threads
    share = -(-n // (count * step)) * step  # of a thread, in whole chunks

    def run(first: int) -> None:
        last = min(first + share, n)
        scratch = np.empty((2, min(step, last - first) * block), np.float32)
        with np.errstate(all="ignore"):  # an overflow is the caller's to find
            for start in range(first, last, step):
                part = slice(start, min(start + step, last))
                work(source[part], target[part], scratch)

    if count == 1:
        return run(0)
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(run, range(0, n, share)))
