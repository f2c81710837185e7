"""Matrix times vector, straight from the blocks of a file: each is dequantized where it is used, and nowhere else.

The kernels are the codecs' ``dot``: plain loops, compiled here by numba. Loops over the weights of a block have a fixed
length, so that the compiler turns them into vector instructions; two rows at a time share what they load of ``x``.
Nothing is cached on the disk: a kernel takes about half a second to compile, once in a process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numba import njit
from numba.extending import register_jitable

from ..core.errors import QuantizationError
from ..formats.bump.types import BumpType
from ..formats.gguf.codecs import CODECS
from ..formats.gguf.codecs.common import float16_of, scale_at

THREADS = min(4, os.cpu_count() or 1)  # at most; the kernels run without Python's lock
PARALLEL_MIN = 2**19  # bytes of a matrix up to which a second thread is not worth its start
STRETCH = 2**18  # bytes of a matrix that a thread takes at a time
_ANY_ORDER = {"reassoc", "contract", "nsz"}  # sums may be regrouped; infinities and NaNs stay what they are

_compiled = cache(njit(nogil=True, fastmath=_ANY_ORDER))  # when it is first called with these arguments

Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray, int, int], None]


def matvec(raw: np.ndarray, kind: BumpType, x: np.ndarray, out: np.ndarray) -> None:
    """out = W · x, where the rows of W are blocks of ``kind``.

    raw: (rows · row bytes,) uint8, x: (n,) float32   ->   out: (rows,) float32, overwritten

    Raises ``QuantizationError`` for a type without a kernel.
    """
    kernel, blocks, columns = _arranged(raw, kind, x, len(out))
    if raw.nbytes <= PARALLEL_MIN or THREADS == 1:
        return kernel(blocks, columns, out, 0, len(out))
    step = max(2, STRETCH * len(out) // raw.nbytes // 2 * 2)  # rows, an even number
    starts = iter(range(0, len(out), step))  # whoever is free takes the next stretch: a busy core delays nobody

    def work() -> None:
        for start in starts:
            kernel(blocks, columns, out, start, min(start + step, len(out)))

    others = [_pool().submit(work) for _ in range(THREADS - 1)]
    work()
    for job in others:
        job.result()


def warm(kinds: Iterable[BumpType]) -> None:
    """Compile the kernels of these types now, so that no later call waits for the compiler."""
    for kind in sorted(set(kinds)):
        raw = np.zeros(2 * kind.blocks.n_bytes * (256 // kind.blocks.block), np.uint8)
        matvec(raw, kind, np.zeros(256, np.float32), np.zeros(2, np.float32))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, THREADS - 1), "bump")


def _arranged(raw: np.ndarray, kind: BumpType, x: np.ndarray, rows: int) -> tuple[Kernel, np.ndarray, np.ndarray]:
    """The kernel of a type, and its arguments in the shape that it wants: (rows, blocks, bytes), (blocks, weights)."""
    dtype = kind.ggml
    dot = CODECS[dtype].dot if dtype in CODECS else None
    if dtype is None or dot is None:
        raise QuantizationError(f"no kernel for {kind.name}; there are {', '.join(k.name for k in kernels())}")
    if dot.view is not None:
        return _compiled(dot.function), raw.view(dot.view).reshape(rows, -1), x
    return (
        _compiled(dot.function),
        raw.reshape(rows, -1, dtype.n_bytes),
        x.reshape(-1, dtype.block // dot.width, dot.width),
    )


def kernels() -> list[BumpType]:
    """The types with a kernel: those of bump whose codec has a ``dot``."""
    return [kind for kind in BumpType if kind.ggml in CODECS and CODECS[kind.ggml].dot is not None]


for _function in (float16_of, scale_at):  # what those products call
    register_jitable(fastmath=_ANY_ORDER)(_function)
