"""The kernels of bump's runtime: each block format against the official package's decoder and float64."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize
from hypothesis import given, settings
from hypothesis import strategies as st

from miniquant import QuantizationError
from miniquant.formats.bump import BumpType
from miniquant.runtime import kernels
from miniquant.runtime.kernels import matmul, matvec

KERNELS = kernels.kernels()

every_kernel = pytest.mark.parametrize("kind", KERNELS, ids=lambda kind: kind.name)


def random_blocks(kind: BumpType, rows: int, blocks: int, seed: int) -> np.ndarray:
    """Random bytes, except that every float in a block is finite and of a sensible size: (rows, bytes) uint8."""
    random = np.random.default_rng(seed)
    raw = random.integers(0, 256, (rows, blocks, kind.ggml.n_bytes), np.uint8)
    scale = random.uniform(-2, 2, (rows, blocks)).astype("<f2").view(np.uint8).reshape(rows, blocks, 2)
    if kind == BumpType.FP32:
        raw = random.normal(size=(rows, blocks)).astype("<f4").view(np.uint8)
    elif kind == BumpType.FP16:
        raw = scale
    elif kind == BumpType.BF16:
        raw[..., 1] &= 0xBF  # below 2
    else:
        at = {BumpType.Q6_K: 208}.get(kind, 0)
        raw[..., at : at + 2] = scale
        if kind in (BumpType.Q4_K, BumpType.Q5_K, BumpType.Q4_1, BumpType.Q5_1):
            raw[..., 2:4] = scale[:, ::-1]
    return np.ascontiguousarray(raw).reshape(rows, -1)


def official(raw: np.ndarray, kind: BumpType) -> np.ndarray:
    """Decoded by the official package: (rows, n) float64."""
    if kind == BumpType.FP32:
        return raw.view("<f4").astype(float)
    if kind == BumpType.FP16:
        return raw.view("<f2").astype(float)
    return dequantize(raw, gguf.GGMLQuantizationType(kind.ggml)).astype(float)


def close(out: np.ndarray, w: np.ndarray, x: np.ndarray) -> bool:
    """Whether a float32 sum in any order explains the difference."""
    room = 1e-6 * (np.abs(w) @ np.abs(x.astype(float))) + 1e-30
    return bool((np.abs(out - w @ x.astype(float)) <= room).all())


def test_every_type_that_to_bump_writes_for_models_has_a_kernel():
    assert {kind.name for kind in KERNELS} == {kind.name for kind in BumpType} - {"INT8", "INT4", "Q8_K"}


@every_kernel
@settings(max_examples=50, deadline=None)
@given(rows=st.integers(1, 7), blocks=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_a_product_is_that_of_the_official_decoder_s_weights(kind, rows, blocks, seed):
    raw = random_blocks(kind, rows, blocks, seed)
    w = official(raw, kind)
    x = np.random.default_rng(seed + 1).normal(size=w.shape[1]).astype(np.float32)
    out = np.full(rows, np.nan, np.float32)
    matvec(raw.reshape(-1), kind, x, out)
    assert close(out, w, x)


@every_kernel
@settings(max_examples=30, deadline=None)
@given(tokens=st.integers(1, 9), rows=st.integers(1, 7), blocks=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_a_product_with_several_vectors_is_that_of_the_official_decoder_s_weights(kind, tokens, rows, blocks, seed):
    raw = random_blocks(kind, rows, blocks, seed)
    w = official(raw, kind)
    x = np.random.default_rng(seed + 1).normal(size=(tokens, w.shape[1])).astype(np.float32)
    out = np.full((tokens, rows), np.nan, np.float32)
    matmul(raw.reshape(-1), kind, x, out)
    assert all(close(out[t], w, x[t]) for t in range(tokens))


@every_kernel
def test_each_weight_of_a_block_meets_its_own_number_of_every_vector(kind):
    raw = random_blocks(kind, 3, 1 if kind.ggml.block > 1 else 32, 5)
    w = official(raw, kind)
    out = np.empty((w.shape[1], 3), np.float32)
    matmul(raw.reshape(-1), kind, np.eye(w.shape[1], dtype=np.float32), out)
    assert np.allclose(out, w.T, rtol=1e-6, atol=1e-6)


def test_a_tile_has_as_many_rows_as_fit_a_quarter_of_a_megabyte_and_is_used_again(monkeypatch):
    taken, tiles = [], set()

    def compiled(function):
        if function is kernels._multiply:
            return lambda w, x, out, first: taken.append((first, len(w), w.ctypes.data))
        return lambda w, out: tiles.add((out.ctypes.data, out.nbytes // len(out)))

    monkeypatch.setattr(kernels, "compiled", compiled)
    monkeypatch.setattr(kernels, "THREADS", 1)
    x, out = np.zeros((2, 4096), np.float32), np.zeros((2, 35), np.float32)
    matmul(np.zeros(35 * 4096 // 32 * 34, np.uint8), BumpType.Q8_0, x, out)
    assert [(first, rows) for first, rows, _ in taken] == [(0, 16), (16, 16), (32, 3)]
    assert tiles == {(taken[0][2], 2**18 // 16)} and len({place for *_, place in taken}) == 1
    taken.clear()
    matmul(np.zeros(35 * 4096 * 4, np.uint8), BumpType.FP32, x, out)  # nothing to unpack
    assert [(first, rows) for first, rows, _ in taken] == [(0, 16), (16, 16), (32, 3)] and len(tiles) == 1


def test_rows_too_wide_for_a_tile_are_taken_by_two(monkeypatch):
    taken = []
    monkeypatch.setattr(kernels, "compiled", lambda function: lambda w, x, out, first: taken.append((first, len(w))))
    matmul(np.zeros(3 * 4 * 40000, np.uint8), BumpType.FP32, np.zeros((2, 40000), np.float32), np.zeros((2, 3), "f4"))
    assert taken == [(0, 2), (2, 1)]


@every_kernel
def test_each_weight_of_a_block_meets_its_own_number_of_x(kind):
    raw = random_blocks(kind, 3, 1 if kind.ggml.block > 1 else 32, 5)
    w = official(raw, kind)
    for column in range(w.shape[1]):
        x, out = np.zeros(w.shape[1], np.float32), np.empty(3, np.float32)
        x[column] = 1
        matvec(raw.reshape(-1), kind, x, out)
        assert np.allclose(out, w[:, column], rtol=1e-6, atol=1e-6), column


@every_kernel
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_does_not_change_a_bit(kind, threads, monkeypatch):
    raw = random_blocks(kind, 37, 8, 1)
    x = np.random.default_rng(2).normal(size=official(raw, kind).shape[1]).astype(np.float32)
    expected, out = np.empty(37, np.float32), np.full(37, np.nan, np.float32)
    matvec(raw.reshape(-1), kind, x, expected)
    monkeypatch.setattr(kernels, "THREADS", threads)
    monkeypatch.setattr(kernels, "PARALLEL_MIN", 0)
    monkeypatch.setattr(kernels, "STRETCH", 6 * len(raw[0]))  # 6 rows at a time, and one at the end
    kernels._pool.cache_clear()
    matvec(raw.reshape(-1), kind, x, out)
    several = np.full((3, 37), np.nan, np.float32)
    matmul(raw.reshape(-1), kind, np.tile(x, (3, 1)), several)
    kernels._pool.cache_clear()
    assert np.array_equal(out, expected)
    monkeypatch.setattr(kernels, "THREADS", 1)
    alone = np.full((3, 37), np.nan, np.float32)
    matmul(raw.reshape(-1), kind, np.tile(x, (3, 1)), alone)
    assert np.array_equal(several, alone)


@pytest.mark.parametrize("kind", [BumpType.FP16, BumpType.Q8_0, BumpType.Q4_0, BumpType.Q6_K])
def test_every_float16_is_the_number_that_struct_says(kind):
    """As a weight of its own, or as the scale of a block whose first value is 1; infinities and NaNs too."""
    every = np.arange(1 << 16, dtype="<u2")
    n = kind.ggml.block
    raw = np.zeros((1 << 16, kind.ggml.n_bytes), np.uint8)
    at = 208 if kind == BumpType.Q6_K else 0
    raw[:, at : at + 2] = every.view(np.uint8).reshape(-1, 2)
    if kind == BumpType.Q8_0:
        raw[:, 2] = 1
    elif kind == BumpType.Q4_0:
        raw[:, 2:] = 0x88
        raw[:, 2] = 0x89
    elif kind == BumpType.Q6_K:
        raw[:, 0], raw[:, 128:192], raw[:, 192] = 1, 0xAA, 1
    x, out = np.zeros(n, np.float32), np.empty(1 << 16, np.float32)
    x[0] = 1
    matvec(raw.reshape(-1), kind, x, out)
    expected = every.view("<f2").astype(np.float32)
    assert np.array_equal(out, expected, equal_nan=True)


def test_the_ends_of_the_range_of_every_field():
    for kind in (BumpType.Q8_0, BumpType.Q4_0, BumpType.Q4_K, BumpType.Q6_K):
        for fill in (0x00, 0x7F, 0x80, 0xFF):
            raw = np.full((2, kind.ggml.n_bytes), fill, np.uint8)
            for at in {BumpType.Q6_K: [208], BumpType.Q4_K: [0, 2]}.get(kind, [0]):
                raw[:, at : at + 2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
            w = official(raw, kind)
            x, out = np.arange(1, w.shape[1] + 1, dtype=np.float32), np.empty(2, np.float32)
            matvec(raw.reshape(-1), kind, x, out)
            assert close(out, w, x), (kind, fill)


def test_a_type_without_a_kernel_is_refused():
    with pytest.raises(QuantizationError, match="no kernel for Q8_K; there are FP32"):
        matvec(np.zeros(292, np.uint8), BumpType.Q8_K, np.zeros(256, np.float32), np.zeros(1, np.float32))


def test_the_package_is_not_littered_with_compiled_code():
    import miniquant

    assert not list(__import__("pathlib").Path(miniquant.__file__).parent.rglob("*.nb[ic]"))


@pytest.mark.parametrize(("threads", "rows"), [(4, 2), (1, 4096)])
def test_a_small_matrix_and_a_single_thread_start_no_pool(threads, rows, monkeypatch):
    monkeypatch.setattr(kernels, "THREADS", threads)
    monkeypatch.setattr(kernels, "_pool", lambda: pytest.fail("a second thread was started"))
    raw = np.zeros(rows * 1024, np.uint8)
    out = np.ones(rows, np.float32)
    matvec(raw, BumpType.FP32, np.zeros(256, np.float32), out)
    assert not out.any()


def test_threads_take_stretches_of_a_quarter_of_a_megabyte(monkeypatch):
    rows, taken = 4096, []
    raw, x = np.zeros(rows * 1024, np.uint8), np.zeros(256, np.float32)
    record = lambda blocks, columns, out, start, end: taken.append((start, end))  # noqa: E731
    monkeypatch.setattr(kernels, "compiled", lambda function: record)
    monkeypatch.setattr(kernels, "THREADS", 2)
    monkeypatch.setattr(kernels, "_pool", lambda: ThreadPoolExecutor(1))
    matvec(raw, BumpType.FP32, x, np.zeros(rows, np.float32))
    assert sorted(taken) == [(start, start + 256) for start in range(0, rows, 256)]
