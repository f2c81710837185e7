"""Rows of weights as blocks, and back: tensors of any shape, a chunk at a time, in up to four threads.

The bytes and values equal ggml's, bit for bit. A codec runs on an eighth of a million weights at a time, its compiled
form on eight million: it needs no scratch, and what Python does between two chunks would take a tenth of the time.

Source: ggml's ``ggml-quants.c`` (``quantize_row_*_ref``, ``dequantize_row_*``) and ``ggml-common.h`` (the structs).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ....core.errors import QuantizationError
from ....core.machine import threads
from ..compiled import DECODE, ENCODE, ENCODE_WEIGHTED, ChosenWork, chosen
from ..types import GGMLType
from .codec import Codec, codec_of
from .common import mean_square

CHUNK = 131_072  # weights handled at once: with their scratch they stay in a core's own cache
LARGE = 64  # chunks that a compiled form handles at once
THREADS = threads()  # at most; numpy and compiled functions let other threads run while they compute
PAST_MIN = 4_000_000  # bytes of weights that leave a core's own cache before anybody reads them
PARALLEL_MIN = 1_000_000  # weights up to which a second thread is not worth its start


def encode(
    w: np.ndarray, dtype: GGMLType | str, importance: np.ndarray | None = None, out: np.ndarray | None = None
) -> np.ndarray:
    """Encode rows of weights; the type is a ``GGMLType`` or its name.

    w: (..., n) float32, finite   ->   (..., bytes of a row) uint8

    importance: (n,) float32, not negative: how much an error in each column counts, a row of an importance matrix.
    A type whose encoder does not search, such as Q8_0, leaves it out of account, as ggml's does.

    out: (..., bytes of a row) uint8, contiguous, to be filled and returned: memory that is used again takes less time

    The bytes equal those of ggml's reference, overflow of the float16 scale included (it becomes infinite, as there).
    For F32 they are a view of ``w`` where that is contiguous float32 already: there is nothing to do.

    Raises ``QuantizationError`` for a type that cannot be encoded here, rows that are no whole number of blocks, an
    importance that does not fit them, or another ``out``.
    """
    codec = codec_of(dtype)
    dtype = codec.dtype
    if not codec.encodes:
        raise QuantizationError(f"{dtype.name} is decoded here and not encoded; llama.cpp's quantizer makes its blocks")
    w = np.ascontiguousarray(w, dtype=np.float32)  # a scalar becomes a row of one
    shape = (*w.shape[:-1], dtype.bytes_of(w.shape[-1:]))
    _check_out(out, shape, np.uint8)
    if codec.identity:
        raw = w.astype("<f4", copy=False).view(np.uint8)
        if out is None:
            return raw
        np.copyto(out, raw)
        return out
    if out is None:
        out = np.empty(shape, np.uint8)
    if importance is not None and codec.weighs:
        _encode_weighted(codec, w, _checked(importance, w.shape[-1]), out)
    else:
        blocks = w.reshape(-1, dtype.block)
        _in_chunks(chosen(dtype, ENCODE, codec.encode), blocks, out.reshape(len(blocks), dtype.n_bytes), dtype.block)
    return out


def _check_out(out: np.ndarray | None, shape: tuple[int, ...], kind: type) -> None:
    if out is not None and not (out.shape == shape and out.dtype == kind and out.flags.carray):
        raise QuantizationError(
            f"out must be contiguous {kind.__name__} of shape {shape}, found {out.dtype} of {out.shape}"
        )


def _checked(importance: np.ndarray, n: int) -> np.ndarray:
    found = np.ascontiguousarray(importance, np.float32)
    if found.shape != (n,):
        raise QuantizationError(f"rows of {n} weights need an importance of each column, found shape {found.shape}")
    if not (np.isfinite(found) & (found >= 0)).all():
        wrong = found[~(np.isfinite(found) & (found >= 0))][0]
        raise QuantizationError(f"an importance is a finite number from 0 on, found {wrong:g}")
    return found


def _encode_weighted(codec: Codec, w: np.ndarray, importance: np.ndarray, out: np.ndarray) -> None:
    """Whole rows at once, since some types ask for the mean square of a row."""
    dtype, n = codec.dtype, w.shape[-1]
    rows = w.reshape(-1, n)

    def work(given: np.ndarray, found: np.ndarray, scratch: np.ndarray) -> None:
        blocks = given.reshape(-1, dtype.block)
        columns = np.tile(importance.reshape(-1, dtype.block), (len(given), 1))
        spread = np.repeat(mean_square(given), n // dtype.block, axis=0)
        codec.encode_weighted(blocks, codec.error_weights(blocks, columns, spread), found.reshape(-1, dtype.n_bytes))

    if rows.size:
        _in_chunks(chosen(dtype, ENCODE_WEIGHTED, work, importance), rows, out.reshape(len(rows), -1), n)


def decode(raw: np.ndarray, dtype: GGMLType | str, out: np.ndarray | None = None) -> np.ndarray:
    """Decode rows of blocks; the inverse of ``encode``, as far as the type allows.

    raw: (..., m) uint8, whole blocks   ->   (..., n) float32; for F32 a view of ``raw``, read-only if that is

    out: (..., n) float32, contiguous, to be filled and returned: memory that is used again takes half the time

    Raises ``QuantizationError`` for a type that cannot be decoded here, bytes that are no whole number of blocks, or
    another ``out``.
    """
    codec = codec_of(dtype)
    dtype = codec.dtype
    raw = np.asarray(raw)
    if raw.dtype != np.uint8 or raw.ndim == 0 or raw.shape[-1] % dtype.n_bytes:
        raise QuantizationError(
            f"{dtype.name} has blocks of {dtype.n_bytes} bytes (uint8); found {raw.dtype} of shape {raw.shape}"
        )
    shape = (*raw.shape[:-1], raw.shape[-1] // dtype.n_bytes * dtype.block)
    _check_out(out, shape, np.float32)
    if codec.identity:
        weights = np.require(np.ascontiguousarray(raw).view("<f4"), np.float32, "A")
        if out is None:
            return weights
        np.copyto(out, weights)
        return out
    blocks = np.ascontiguousarray(raw).reshape(-1, dtype.n_bytes)
    past = out is not None and out.nbytes >= PAST_MIN
    if out is None:
        out = _in_whole_lines(len(blocks) * dtype.block).reshape(shape)
    _in_chunks(chosen(dtype, DECODE, codec.decode, past=past), blocks, out.reshape(-1, dtype.block), dtype.block)
    return out


def _in_whole_lines(n: int) -> np.ndarray:
    """(n,) float32 that begins with a line of the caches, 64 bytes: a register then lies in one line and not in two."""
    found = np.empty(n + 15, np.float32)
    first = -found.ctypes.data % 64 // 4
    return found[first : first + n]


def _in_chunks(work: ChosenWork, source: np.ndarray, target: np.ndarray, block: int) -> None:
    """Do the work, one part after another; in several threads if there is much of it."""
    n, step = len(source), max(1, CHUNK // block)  # in blocks
    count = THREADS if n * block > PARALLEL_MIN else 1  # of threads
    share = -(-n // (count * step)) * step  # of a thread, in whole chunks

    def run(first: int) -> None:
        last = min(first + share, n)
        scratch = np.empty((2, min(step, last - first) * block), np.float32)
        with np.errstate(all="ignore"):  # an overflow is the caller's to find
            while first < last:
                part = slice(first, min(first + LARGE * step, last))
                first += work(source[part], target[part], scratch, step)

    if count == 1:
        return run(0)
    with ThreadPoolExecutor(count - 1) as pool:  # this thread works too: of two new ones, both can begin on one core
        others = pool.map(run, range(share, n, share))
        run(0)
        list(others)
