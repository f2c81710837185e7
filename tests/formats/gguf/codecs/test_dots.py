"""The kernels of the types, as plain Python: rows of blocks times a vector, against the official package's weights.

``runtime`` compiles these functions; its own tests measure the compiled ones.
"""

from __future__ import annotations

import numpy as np
import pytest
from gguf.quants import dequantize

from miniquant.formats.gguf import encode
from miniquant.formats.gguf.codecs import CODECS

WITH_A_DOT = [dtype for dtype, codec in CODECS.items() if codec.dot is not None]


def product(dtype, w, x, first, last):
    """What the kernel writes: NaN where it wrote nothing."""
    codec, rows = CODECS[dtype], len(w)
    raw = np.ascontiguousarray(encode(w, dtype)).reshape(rows, -1)
    if codec.dot.view is None:
        blocks = raw.reshape(rows, -1, dtype.n_bytes).astype(np.int64)  # numba computes with int64, too
        vector = x.reshape(-1, dtype.block // codec.dot.width, codec.dot.width)
    else:
        blocks, vector = raw.view(codec.dot.view).reshape(rows, -1), x
    out = np.full(rows, np.nan, np.float32)
    with np.errstate(all="ignore"):  # shifts beyond an integer's width are what the compiled code does
        codec.dot.function(blocks, vector, out, first, last)
    return out, dequantize(raw.view(np.float32) if dtype.name == "F32" else raw, dtype.value)


@pytest.mark.parametrize("dtype", WITH_A_DOT, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("rows", [1, 4, 5])
def test_a_kernel_in_plain_python_gives_the_product_of_the_official_weights(dtype, rows):
    random = np.random.default_rng(rows)
    n = 2 * max(dtype.block, 32)
    w = random.normal(0, 0.02, (rows, n)).astype(np.float32) * np.float32(4) ** np.arange(rows)[:, None]
    w[0, :32] = 0
    x = random.normal(size=n).astype(np.float32)
    out, weights = product(dtype, w, x, 0, rows)
    expected = weights.astype(np.float64) @ x
    assert np.abs(out - expected).max() <= 1e-5 * np.abs(weights).sum(axis=1).max()
    assert np.abs(expected).max() > 0


@pytest.mark.parametrize("dtype", WITH_A_DOT, ids=lambda dtype: dtype.name)
def test_a_kernel_writes_the_rows_that_it_is_asked_for_and_no_other(dtype):
    n = max(dtype.block, 32)
    w, x = np.ones((7, n), np.float32), np.ones(n, np.float32)
    out, _ = product(dtype, w, x, 2, 5)
    assert np.isfinite(out).tolist() == [False, False, True, True, True, False, False]
