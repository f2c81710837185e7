"""The kernels of the types, as plain Python: rows of blocks unpacked, or times a vector, against the official weights.

``runtime`` compiles these functions; its own tests measure the compiled ones.
"""

from __future__ import annotations

import numpy as np
import pytest
from gguf.quants import dequantize

from miniquant.formats.gguf import encode
from miniquant.formats.gguf.codecs import CODECS
from miniquant.formats.gguf.codecs.common import float16_of

WITH_A_DOT = [dtype for dtype, codec in CODECS.items() if codec.kernels and codec.kernels.dot]
UNPACKED = [dtype for dtype, codec in CODECS.items() if codec.kernels and codec.kernels.unpack]


def stored(dtype, w):
    """The blocks of the rows as a kernel takes them, and the weights that the official package finds in them."""
    raw = np.ascontiguousarray(encode(w, dtype)).reshape(len(w), -1)
    weights = dequantize(raw.view(np.float32) if dtype.name == "F32" else raw, dtype.value)
    if view := CODECS[dtype].kernels.view:
        return raw.view(view), weights
    return raw.reshape(len(w), -1, dtype.n_bytes).astype(np.int64), weights  # numba computes with int64, too


def product(dtype, w, x, first, last):
    """What the kernel writes: NaN where it wrote nothing."""
    kernels = CODECS[dtype].kernels
    blocks, weights = stored(dtype, w)
    vector = x if kernels.view else x.reshape(-1, dtype.block // kernels.width, kernels.width)
    out = np.full(len(w), np.nan, np.float32)
    with np.errstate(all="ignore"):  # shifts beyond an integer's width are what the compiled code does
        kernels.dot(blocks, vector, out, first, last)
    return out, weights


def random_rows(dtype, rows):
    """Two blocks a row, rows of different sizes, and 32 zeros."""
    random = np.random.default_rng(rows)
    w = random.normal(0, 0.02, (rows, 2 * max(dtype.block, 32)))
    w = w.astype(np.float32) * np.float32(4) ** np.arange(rows)[:, None]
    w[0, :32] = 0
    return w, random.normal(size=w.shape[1]).astype(np.float32)


@pytest.mark.parametrize("dtype", WITH_A_DOT, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("rows", [1, 4, 5])
def test_a_kernel_in_plain_python_gives_the_product_of_the_official_weights(dtype, rows):
    w, x = random_rows(dtype, rows)
    out, weights = product(dtype, w, x, 0, rows)
    expected = weights.astype(np.float64) @ x
    assert np.abs(out - expected).max() <= 1e-5 * np.abs(weights).sum(axis=1).max()
    assert np.abs(expected).max() > 0


@pytest.mark.parametrize("dtype", UNPACKED, ids=lambda dtype: dtype.name)
def test_a_kernel_in_plain_python_unpacks_the_official_weights(dtype):
    blocks, weights = stored(dtype, random_rows(dtype, 3)[0])
    out = np.full((*blocks.shape[:2], dtype.block) if blocks.ndim == 3 else blocks.shape, np.nan, np.float32)
    with np.errstate(all="ignore"):
        CODECS[dtype].kernels.unpack(blocks, out)
    assert np.array_equal(out.reshape(weights.shape), weights)


def test_a_kernel_reads_every_float16_as_numpy_does():
    expected = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    found = np.array([float16_of(bits) for bits in range(2**16)], np.float32)
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(expected))


def test_the_types_with_kernels_are_those_that_the_runtime_computes_with():
    quantized = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q6_K"]
    assert {dtype.name for dtype in WITH_A_DOT} == {"F32", "F16", "BF16", *quantized}
    assert {dtype.name for dtype in UNPACKED} == {"F16", "BF16", *quantized, "Q5_K"}


@pytest.mark.parametrize("dtype", WITH_A_DOT, ids=lambda dtype: dtype.name)
def test_a_kernel_writes_the_rows_that_it_is_asked_for_and_no_other(dtype):
    n = max(dtype.block, 32)
    w, x = np.ones((7, n), np.float32), np.ones(n, np.float32)
    out, _ = product(dtype, w, x, 2, 5)
    assert np.isfinite(out).tolist() == [False, False, True, True, True, False, False]
