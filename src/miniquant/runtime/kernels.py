"""Matrix times vector, straight from the blocks of a file: each is dequantized where it is used, and nowhere else.

The kernels are plain loops, compiled by numba. Loops over the weights of a block have a fixed length, so that the
compiler turns them into vector instructions; two rows at a time share what they load of ``x``. Nothing is cached on
the disk: a kernel takes about half a second to compile, once in a process.

Source: the layouts are those of ``gguf.blocks`` and ``gguf.kquants``; this is the same arithmetic with a sum around it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numba import njit

from ..core.errors import QuantizationError
from ..formats.bump.types import BumpType

THREADS = min(4, os.cpu_count() or 1)  # at most; the kernels run without Python's lock
ALONE = 2**19  # bytes of a matrix up to which a second thread is not worth its start
STRETCH = 2**18  # bytes of a matrix that a thread takes at a time
_ANY_ORDER = {"reassoc", "contract", "nsz"}  # sums may be regrouped; infinities and NaNs stay what they are
F, N = np.float32, np.int32

Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray, int, int], None]


def matvec(raw: np.ndarray, kind: BumpType, x: np.ndarray, out: np.ndarray) -> None:
    """out = W · x, where the rows of W are blocks of ``kind``.

    raw: (rows · row bytes,) uint8, x: (n,) float32   ->   out: (rows,) float32, overwritten

    Raises ``QuantizationError`` for a type without a kernel.
    """
    kernel, blocks, columns = _arranged(raw, kind, x, len(out))
    if raw.nbytes <= ALONE or THREADS == 1:
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
        raw = np.zeros(2 * kind.ggml.n_bytes * (256 // kind.ggml.block), np.uint8)
        matvec(raw, kind, np.zeros(256, F), np.zeros(2, F))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, THREADS - 1), "bump")


def _arranged(raw: np.ndarray, kind: BumpType, x: np.ndarray, rows: int) -> tuple[Kernel, np.ndarray, np.ndarray]:
    """The kernel of a type, and its arguments in the shape that it wants: (rows, blocks, bytes), (blocks, weights)."""
    if kind not in KERNELS:
        raise QuantizationError(f"no kernel for {kind.name}; there are {', '.join(k.name for k in KERNELS)}")
    if kind in _PLAIN:
        return KERNELS[kind], raw.view(_PLAIN[kind]).reshape(rows, -1), x
    width = 32 if kind == BumpType.Q4_K else 16 if kind in (BumpType.Q6_K, BumpType.Q4_0) else kind.ggml.block
    return KERNELS[kind], raw.reshape(rows, -1, kind.ggml.n_bytes), x.reshape(-1, kind.ggml.block // width, width)


_compiled = njit(nogil=True, fastmath=_ANY_ORDER)


@_compiled
def _half(h: int) -> float:
    """A float16 from its bits. Its exponent counts from 15, that of a float32 from 127; 0 and 31 mean something else.

    Multiplying by 2¹¹² would move the exponent as well, subnormal numbers included, and processors are slow at those.
    """
    bits, exponent = (h & 0x7FFF) << 13, h & 0x7C00
    x = np.uint32(bits + (112 << 23)).view(F)
    if exponent == 0x7C00:  # infinite, or NaN
        x = np.uint32(bits | 0x7F800000).view(F)
    if exponent == 0:
        x = F(N(h & 0x3FF)) * F(2.0**-24)
    return -x if h & 0x8000 else x


@_compiled
def _scale(block: np.ndarray, at: int) -> float:
    """The float16 at a byte of a block."""
    return _half(N(block[at]) | N(block[at + 1]) << 8)


@_compiled
def _fp32(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    for row in range(first, last):
        total, line = F(0), w[row]
        for i in range(len(x)):
            total += line[i] * x[i]
        out[row] = total


@_compiled
def _fp16(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    for row in range(first, last):
        total, line = F(0), w[row]
        for i in range(len(x)):
            total += _half(N(line[i])) * x[i]
        out[row] = total


@_compiled
def _bf16(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    for row in range(first, last):
        total, line = F(0), w[row]
        for i in range(len(x)):
            total += np.uint32(np.uint32(line[i]) << np.uint32(16)).view(F) * x[i]
        out[row] = total


@_compiled
def _q8_0(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """w: (rows, blocks, 34) uint8, x: (blocks, 1, 32)."""
    for row in range(first, last, 2):
        other = min(row + 1, last - 1)  # of an odd number of rows, the last one is computed twice
        total, total2 = F(0), F(0)
        for b in range(x.shape[0]):
            block, block2, xb = w[row, b], w[other, b], x[b, 0]
            q, q2 = block[2:], block2[2:]
            dot, dot2 = F(0), F(0)
            for i in range(32):
                dot += F(N(np.int8(q[i]))) * xb[i]
                dot2 += F(N(np.int8(q2[i]))) * xb[i]
            total += _scale(block, 0) * dot
            total2 += _scale(block2, 0) * dot2
        out[row], out[other] = total, total2


@_compiled
def _q4_0(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """w: (rows, blocks, 18) uint8, x: (blocks, 2, 16): what the low nibbles meet, and what the high ones."""
    for row in range(first, last, 2):
        other = min(row + 1, last - 1)
        total, total2 = F(0), F(0)
        for b in range(x.shape[0]):
            block, block2, low, high = w[row, b], w[other, b], x[b, 0], x[b, 1]
            q, q2 = block[2:], block2[2:]
            dot, dot2 = F(0), F(0)
            for i in range(16):
                dot += F(N((q[i] & 15) - 8)) * low[i] + F(N((q[i] >> 4) - 8)) * high[i]
                dot2 += F(N((q2[i] & 15) - 8)) * low[i] + F(N((q2[i] >> 4) - 8)) * high[i]
            total += _scale(block, 0) * dot
            total2 += _scale(block2, 0) * dot2
        out[row], out[other] = total, total2


@_compiled
def _q4_k(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """w: (rows, super-blocks, 144) uint8, x: (super-blocks, 8, 32).

    A weight is d·sc·q - dmin·m, so a sub-block adds d·sc·Σ q·x - dmin·m·Σ x; the second sum is the same for all rows.
    """
    sums = np.zeros((x.shape[0], 8), F)
    for b in range(x.shape[0]):
        for sub in range(8):
            for i in range(32):
                sums[b, sub] += x[b, sub, i]
    for row in range(first, last):
        total = F(0)
        for b in range(x.shape[0]):
            block = w[row, b]
            s = block[4:16]
            scaled, least = F(0), F(0)
            for pair in range(4):
                sub = 2 * pair
                if pair < 2:
                    sc, m, sc2, m2 = s[sub] & 63, s[sub + 4] & 63, s[sub + 1] & 63, s[sub + 5] & 63
                else:  # four bits in the last bytes, two more in the first
                    sc, m = s[sub + 4] & 15 | s[sub - 4] >> 6 << 4, s[sub + 4] >> 4 | s[sub] >> 6 << 4
                    sc2, m2 = s[sub + 5] & 15 | s[sub - 3] >> 6 << 4, s[sub + 5] >> 4 | s[sub + 1] >> 6 << 4
                q, low, high = block[16 + 32 * pair :], x[b, sub], x[b, sub + 1]
                dot, dot2 = F(0), F(0)
                for i in range(32):
                    dot += F(N(q[i] & 15)) * low[i]
                    dot2 += F(N(q[i] >> 4)) * high[i]
                scaled += F(sc) * dot + F(sc2) * dot2
                least += F(m) * sums[b, sub] + F(m2) * sums[b, sub + 1]
            total += _scale(block, 0) * scaled - _scale(block, 2) * least
        out[row] = total


@_compiled
def _q6_k(w: np.ndarray, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """w: (rows, super-blocks, 210) uint8, x: (super-blocks, 16, 16), a scale for each 16.

    Four low bits in ``ql``, two high bits in ``qh``: of the four weights that share a byte of ``qh``, two share a byte
    of ``ql`` with one another's neighbours 64 places on.
    """
    for row in range(first, last):
        total = F(0)
        for b in range(x.shape[0]):
            block = w[row, b]
            scales = block[192:208]
            scaled = F(0)
            for part in range(4):  # 128 weights are two of these parts
                half, sixteen = part // 2, part % 2
                at = 8 * half + sixteen
                ql, ql2 = block[64 * half + 16 * sixteen :], block[64 * half + 32 + 16 * sixteen :]
                qh = block[128 + 32 * half + 16 * sixteen :]
                x0, x1, x2, x3 = x[b, at], x[b, at + 2], x[b, at + 4], x[b, at + 6]
                d0, d1, d2, d3 = F(0), F(0), F(0), F(0)
                for i in range(16):
                    high = qh[i]
                    d0 += F(N(np.int8((ql[i] & 15 | (high & 3) << 4) - 32))) * x0[i]
                    d1 += F(N(np.int8((ql2[i] & 15 | (high & 12) << 2) - 32))) * x1[i]
                    d2 += F(N(np.int8((ql[i] >> 4 | high & 48) - 32))) * x2[i]
                    d3 += F(N(np.int8((ql2[i] >> 4 | (high & 192) >> 2) - 32))) * x3[i]
                scaled += F(np.int8(scales[at])) * d0 + F(np.int8(scales[at + 2])) * d1
                scaled += F(np.int8(scales[at + 4])) * d2 + F(np.int8(scales[at + 6])) * d3
            total += _scale(block, 208) * scaled
        out[row] = total


_PLAIN = {BumpType.FP32: "<f4", BumpType.FP16: "<u2", BumpType.BF16: "<u2"}
KERNELS: dict[BumpType, Kernel] = {
    BumpType.FP32: _fp32,
    BumpType.BF16: _bf16,
    BumpType.FP16: _fp16,
    BumpType.Q4_0: _q4_0,
    BumpType.Q4_K: _q4_k,
    BumpType.Q6_K: _q6_k,
    BumpType.Q8_0: _q8_0,
}
