"""Products straight from the blocks of a file: each block is dequantized where it is used, and nowhere else.

A matrix meets one vector in a codec's ``dot``, or several at once: then a tile of a few rows is unpacked and meets all
of them. They are plain loops, compiled by numba. Loops over the weights of a block have a fixed length, so that the
compiler turns them into vector instructions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from ..core.errors import QuantizationError
from ..formats.bump.types import BumpType
from ..formats.gguf.codecs import CODECS, Kernels
from .compiled import compiled

THREADS = min(4, os.cpu_count() or 1)  # at most; the kernels run without Python's lock
PARALLEL_MIN = 2**19  # bytes of a matrix up to which a second thread is not worth its start
STRETCH = 2**18  # bytes of a matrix, or of an unpacked tile, that a thread takes at a time

Stretch = Callable[[int, int], None]  # computes the rows from the first number up to the second


def matvec(raw: np.ndarray, kind: BumpType, x: np.ndarray, out: np.ndarray) -> None:
    """out = W · x, where the rows of W are blocks of ``kind``.

    raw: (rows · row bytes,) uint8, x: (n,) float32   ->   out: (rows,) float32, overwritten

    Raises ``QuantizationError`` for a type without a kernel.
    """
    found = _kernels_of(kind)
    if found.dot is None:
        return matmul(raw, kind, x[None], out[None])
    dot, blocks = compiled(found.dot), _blocks(raw, kind, found, len(out))
    columns = x if found.view is not None else x.reshape(-1, kind.block // found.width, found.width)
    step = max(2, STRETCH * len(out) // max(1, raw.nbytes) // 2 * 2)  # rows, an even number
    _in_stretches(lambda: lambda first, last: dot(blocks, columns, out, first, last), len(out), step, raw.nbytes)


def matmul(raw: np.ndarray, kind: BumpType, x: np.ndarray, out: np.ndarray) -> None:
    """out = x · Wᵀ, a row for each of several vectors; every block is unpacked once for all of them.

    raw: as in ``matvec``, x: (tokens, n) float32   ->   out: (tokens, rows) float32, overwritten

    Raises ``QuantizationError`` for a type without a kernel.
    """
    found = _kernels_of(kind)
    rows, n = out.shape[1], x.shape[1]
    blocks, multiply = _blocks(raw, kind, found, rows), compiled(_multiply)
    unpack = compiled(found.unpack) if found.unpack is not None else None
    step = max(2, STRETCH // (4 * n) // 2 * 2)

    def worker() -> Stretch:
        tile = np.empty((step, *blocks.shape[1:-1], kind.block if blocks.ndim == 3 else n), np.float32)

        def work(first: int, last: int) -> None:
            w = blocks[first:last]
            if unpack is not None:
                w = tile[: last - first]
                unpack(blocks[first:last], w)
            multiply(_read_only(w.reshape(last - first, n)), x, out, first)

        return work

    _in_stretches(worker, rows, step, raw.nbytes)


def _multiply(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int) -> None:
    """Two rows and four vectors at a time share what they load; of an odd number, the last is computed again.

    w: (rows, n), x: (tokens, n) float32   ->   out[:, first:]: (tokens, rows)
    """
    for row in range(0, len(w), 2):
        other = min(row + 1, len(w) - 1)
        a, b = w[row], w[other]
        for t in range(0, len(x), 4):
            t1, t2, t3 = min(t + 1, len(x) - 1), min(t + 2, len(x) - 1), min(t + 3, len(x) - 1)
            x0, x1, x2, x3 = x[t], x[t1], x[t2], x[t3]
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = np.float32(0)
            for i in range(len(x0)):
                a0, b0 = a0 + a[i] * x0[i], b0 + b[i] * x0[i]
                a1, b1 = a1 + a[i] * x1[i], b1 + b[i] * x1[i]
                a2, b2 = a2 + a[i] * x2[i], b2 + b[i] * x2[i]
                a3, b3 = a3 + a[i] * x3[i], b3 + b[i] * x3[i]
            out[t, first + row], out[t, first + other] = a0, b0
            out[t1, first + row], out[t1, first + other] = a1, b1
            out[t2, first + row], out[t2, first + other] = a2, b2
            out[t3, first + row], out[t3, first + other] = a3, b3


def _in_stretches(worker: Callable[[], Stretch], rows: int, step: int, n_bytes: int) -> None:
    """Do all rows, ``step`` at a time; in several threads if there is much of it."""
    starts = iter(range(0, rows, step))  # whoever is free takes the next stretch: a busy core delays nobody

    def work() -> None:
        stretch = worker()
        for first in starts:
            stretch(first, min(first + step, rows))

    alone = n_bytes <= PARALLEL_MIN or THREADS == 1
    others = [] if alone else [_pool().submit(work) for _ in range(THREADS - 1)]
    work()
    for job in others:
        job.result()


def warm(kinds: Iterable[BumpType]) -> None:
    """Compile the kernels of these types now, so that no later call waits for the compiler."""
    for kind in sorted(set(kinds)):
        raw = np.zeros(2 * kind.blocks.n_bytes * (256 // kind.blocks.block), np.uint8)
        matvec(raw, kind, np.zeros(256, np.float32), np.zeros(2, np.float32))
        matmul(raw, kind, np.zeros((2, 256), np.float32), np.zeros((2, 2), np.float32))


def kernels() -> list[BumpType]:
    """The types that can be multiplied: those of bump whose codec has kernels."""
    return [kind for kind in BumpType if kind.ggml in CODECS and CODECS[kind.ggml].kernels is not None]


def _kernels_of(kind: BumpType) -> Kernels:
    found = CODECS[kind.ggml].kernels if kind.ggml in CODECS else None
    if found is None:
        raise QuantizationError(f"no kernel for {kind.name}; there are {', '.join(k.name for k in kernels())}")
    return found


def _blocks(raw: np.ndarray, kind: BumpType, found: Kernels, rows: int) -> np.ndarray:
    """The rows of a matrix as its kernels want them: (rows, blocks, bytes) uint8, or (rows, n) floats."""
    return _read_only(
        raw.view(found.view).reshape(rows, -1) if found.view else raw.reshape(rows, -1, kind.blocks.n_bytes)
    )


def _read_only(array: np.ndarray) -> np.ndarray:
    """A view that nobody may write to: for numba, the same array with and without that are two types to compile."""
    found = array.view()
    found.flags.writeable = False
    return found


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, THREADS - 1), "bump")
