"""The kernels of bump's runtime: each block format against the official package's decoder, ggml's C, and float64."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import tried

from miniquant import QuantizationError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.bump import BumpType
from miniquant.formats.gguf import GGMLType
from miniquant.runtime import crew, kernels, products
from miniquant.runtime.crew import Crew
from miniquant.runtime.integer_products import activation_type, encode_activations, integer_products
from miniquant.runtime.kernels import Given, Matrix, matmul, matvec, multiply, packed_floats, place

KERNELS = kernels.kernels()
FLOATS = (BumpType.FP32, BumpType.FP16, BumpType.BF16)

every_kernel = pytest.mark.parametrize("kind", KERNELS, ids=lambda kind: kind.name)
of_integers = pytest.mark.parametrize("kind", [k for k in KERNELS if k not in FLOATS], ids=lambda kind: kind.name)


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


def expected(raw: np.ndarray, kind: BumpType, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In float64, with the roundings that the kernels make: (tokens, rows); and the sizes of what is added up."""
    w = official(raw, kind)
    sizes = np.abs(x.astype(float)) @ np.abs(w).T
    if kind in FLOATS:
        return x.astype(float) @ w.T, sizes
    rounded = encode_activations(x, activation_type(kind.ggml))
    return integer_products(raw, kind.ggml, rounded), sizes


def close(out: np.ndarray, raw: np.ndarray, kind: BumpType, x: np.ndarray) -> bool:
    """Whether float32 sums in any order explain the difference: 1e-6 of the sizes of what is added up."""
    right, sizes = expected(raw, kind, x)
    return bool((np.abs(out - right) <= 1e-6 * sizes + 1e-30).all())


def product(raw: np.ndarray, kind: BumpType, x: np.ndarray) -> np.ndarray:
    """What ``matmul`` writes: NaN where it wrote nothing."""
    out = np.full((len(x), len(raw)), np.nan, np.float32)
    matmul(raw.reshape(-1), kind, x, out)
    return out


def test_every_type_that_to_bump_writes_for_models_has_a_kernel():
    assert {kind.name for kind in KERNELS} == {kind.name for kind in BumpType} - {"INT8", "INT4", "Q8_K"}


@every_kernel
@settings(max_examples=tried(15, 40), deadline=None)
@given(tokens=st.integers(1, 9), rows=st.integers(1, 35), blocks=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_a_product_is_that_of_float64_with_the_same_roundings_within_1e_6_of_what_is_added(
    kind, tokens, rows, blocks, seed
):
    """Of integers: ``integer_products``, which is compared with ggml's C and with the official decoder's weights."""
    blocks = blocks * 7 if kind in FLOATS else blocks
    raw = random_blocks(kind, rows, blocks, seed)
    n = official(raw[:1], kind).shape[1]
    x = np.random.default_rng(seed + 1).normal(size=(tokens, n)).astype(np.float32)
    assert close(product(raw, kind, x), raw, kind, x)
    out = np.full(rows, np.nan, np.float32)
    matvec(raw.reshape(-1), kind, x[-1], out)
    assert close(out[None], raw, kind, x[-1:])


@of_integers
def test_a_product_is_ggml_s_own(kind):
    """Of whatever activations: like a bell, one outlier, all alike, zeros, halves."""
    raw = random_blocks(kind, 5, 512 // kind.ggml.block, 3)
    bell = np.random.default_rng(8).normal(size=(5, 512)).astype(np.float32)
    x = bell.copy()
    x[1, 77], x[2], x[3, :256] = -90, 0.3, 0
    x[4] = np.trunc(2 * bell[4] * 20) / 2
    x[4, ::32] = 127
    with LlamaCpp(None) as ggml:
        theirs = ggml.products(raw, kind.ggml, ggml.round_activations(x, activation_type(kind.ggml)))
    sizes = np.abs(x) @ np.abs(official(raw, kind)).T
    assert (np.abs(product(raw, kind, x) - theirs) <= 2e-6 * sizes).all()  # both round their sums


@every_kernel
def test_each_weight_of_a_block_meets_its_own_number_of_every_vector(kind):
    raw = random_blocks(kind, 3, 1 if kind.ggml.block > 1 else 37, 5)
    w = official(raw, kind)
    out = product(raw, kind, 127 * np.eye(w.shape[1], dtype=np.float32))  # the scale of 127 is 1, with nothing lost
    assert np.allclose(out, 127 * w.T, rtol=1e-6, atol=1e-5 * np.abs(w).max())
    for column in range(w.shape[1]):
        x, alone = np.zeros(w.shape[1], np.float32), np.empty(3, np.float32)
        x[column] = 127
        matvec(raw.reshape(-1), kind, x, alone)
        assert np.allclose(alone, out[column], rtol=1e-6, atol=1e-5 * np.abs(w).max()), column


@of_integers
def test_what_another_product_left_in_a_tile_and_in_the_room_for_activations_counts_nothing(kind):
    """An odd number of blocks fills a chunk by half; the rest of it is zeros, whatever was there."""
    n = 5 * kind.ggml.block
    raw, x = random_blocks(kind, 7, 5, 0), np.random.default_rng(1).normal(size=(3, n)).astype(np.float32)
    right = product(raw, kind, x)
    crew = Crew(1, n)
    crew._tiles[0][:] = 0xFF  # NaN as floats
    room, out = np.full(packed_floats(3, n), np.nan, np.float32), np.empty((3, 7), np.float32)
    with crew:
        multiply(crew, Matrix(raw.reshape(-1), kind, (7, n)), Given(x, room), place(out))
    assert np.array_equal(out, right)


def test_vectors_are_rounded_once_for_matrices_of_one_sort_and_again_for_another(monkeypatch):
    rounded = []
    compiled = kernels.compiled
    monkeypatch.setattr(
        kernels, "compiled", lambda f: lambda *args: rounded.append((args[0], args[-1])) or compiled(f)(*args)
    )
    x = np.random.default_rng(1).normal(size=(2, 256)).astype(np.float32)
    crew, vectors, out = Crew(1, 256), Given(x, np.empty(packed_floats(2, 256), np.float32)), np.empty((2, 3), "f4")
    with crew:
        for kind in (BumpType.Q4_K, BumpType.Q5_K, BumpType.Q6_K, BumpType.FP32, BumpType.Q6_K, BumpType.Q4_K):
            raw = random_blocks(kind, 3, 256 // kind.ggml.block, 4)
            multiply(crew, Matrix(raw.reshape(-1), kind, (3, 256)), vectors, place(out))
            assert close(out, raw, kind, x)
    assert rounded == [(True, 0), (True, 32), (True, 0)]


@every_kernel
@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_does_not_change_a_bit(kind, threads, monkeypatch):
    raw = random_blocks(kind, 67, 8, 1)
    x = np.random.default_rng(2).normal(size=(3, official(raw, kind).shape[1])).astype(np.float32)
    monkeypatch.setattr(kernels, "THREADS", threads)
    right = product(raw, kind, x)  # a matrix too small for a second thread
    monkeypatch.setattr(kernels, "PARALLEL_MIN", 0)
    for _ in range(20):
        assert np.array_equal(product(raw, kind, x), right)
        assert np.array_equal(product(raw, kind, x[:1])[0], product(raw, kind, x[:1])[0])


def test_helpers_come_to_every_product_of_a_shift_and_go_home_after_it():
    """A thousand small products in a row, each with a helper that may or may not have come."""
    raw, n = random_blocks(BumpType.Q8_0, 64, 2, 1), 64
    x = np.random.default_rng(2).normal(size=(1, n)).astype(np.float32)
    matrix, room = Matrix(raw.reshape(-1), BumpType.Q8_0, (64, n)), np.empty(packed_floats(1, n), np.float32)
    right, team = product(raw, BumpType.Q8_0, x), Crew(2, n)
    for _ in range(5):
        with team:
            for _ in range(200):
                multiply(team, matrix, Given(x, room), place(out := np.full((1, 64), np.nan, np.float32)))
                assert np.array_equal(out, right)
    crew._pool(2).submit(lambda: None).result(timeout=20)  # the helper's thread is free again


def test_a_helper_that_nobody_dismisses_goes_home_when_no_product_comes():
    Crew(2, 64).call()
    crew._pool(2).submit(lambda: None).result(timeout=20)


def test_helpers_who_are_there_are_not_called_again_and_those_who_went_home_are(monkeypatch):
    called = []

    class Pool:
        def submit(self, *job):
            called.append((job, Future()))
            return called[-1][1]

    monkeypatch.setattr(crew, "_pool", lambda threads: Pool())
    team = Crew(3, 64)
    team.call()
    team.call()
    assert [job[1:] for job, _ in called] == [(team._tiles[1], 0), (team._tiles[2], 0)]
    called[1][1].set_result(None)
    team.call()
    assert [job[1:] for job, _ in called[2:]] == [(team._tiles[2], 0)]
    team.dismiss()
    with team:
        assert [job[1:] for job, _ in called[3:]] == [(team._tiles[1], 1), (team._tiles[2], 1)]
    assert team._desk.view(np.int64)[products.SHIFT // 8] == 2


def test_a_helper_takes_rows_that_the_others_have_not_begun():
    """Alone at an open desk, it computes all of them."""
    raw, n = random_blocks(BumpType.Q8_0, 64, 2, 1), 64
    x, out = np.random.default_rng(2).normal(size=(1, n)).astype(np.float32), np.full((1, 64), np.nan, np.float32)
    team, matrix = Crew(2, n), Matrix(raw.reshape(-1), BumpType.Q8_0, (64, n))
    given_ = Given(x, np.empty(packed_floats(1, n), np.float32))
    address, stride = given_.packed(matrix)
    job = 8, matrix.address, matrix.stride, 64, n, address, stride, 1, *place(out)
    crew.JOB.pack_into(team._desk, products.JOB, *job)
    desk = team._desk.view(np.int64)
    with team:
        desk[products.OPEN // 8] = 1
        for _ in range(10000):
            if not np.isnan(out).any():
                break
            time.sleep(0.001)
    assert np.array_equal(out, product(raw, BumpType.Q8_0, x)) and desk[products.NEXT // 8] >= 64


@pytest.mark.parametrize(("threads", "rows"), [(4, 2), (1, 4096)])
def test_a_small_matrix_and_a_single_thread_start_no_pool(threads, rows, monkeypatch):
    monkeypatch.setattr(kernels, "THREADS", threads)
    monkeypatch.setattr(crew, "_pool", lambda threads: pytest.fail("a second thread was started"))
    out = np.ones(rows, np.float32)
    matvec(np.zeros(rows * 1024, np.uint8), BumpType.FP32, np.zeros(256, np.float32), out)
    assert not out.any()


@pytest.mark.parametrize("kind", [BumpType.FP16, BumpType.Q8_0, BumpType.Q4_0, BumpType.Q6_K])
def test_every_float16_is_the_number_that_struct_says(kind):
    """As a weight of its own, or as the scale of a block whose first value is 1; nothing finite of what is not."""
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
    x[0] = 127
    matvec(raw.reshape(-1), kind, x, out)
    right = every.view("<f2").astype(np.float32)
    right[np.isfinite(right)] *= 127
    finite = np.isfinite(right)
    assert np.array_equal(out[finite], right[finite]) and not np.isfinite(out[~finite]).any()


def test_the_ends_of_the_range_of_every_field():
    for kind in (BumpType.Q8_0, BumpType.Q4_0, BumpType.Q5_1, BumpType.Q4_K, BumpType.Q5_K, BumpType.Q6_K):
        for fill in (0x00, 0x7F, 0x80, 0xFF):
            raw = np.full((2, kind.ggml.n_bytes), fill, np.uint8)
            for at in {BumpType.Q6_K: [208], BumpType.Q8_0: [0], BumpType.Q4_0: [0]}.get(kind, [0, 2]):
                raw[:, at : at + 2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
            for x in (np.arange(1, kind.ggml.block + 1), np.full(kind.ggml.block, -127)):
                x = x.astype(np.float32)[None]
                assert close(product(raw, kind, x), raw, kind, x), (kind, fill)


@of_integers
def test_activations_are_rounded_as_ggml_s_reference_does_it(kind):
    """Halves too, numbers too small for a scale, and zeros: the integers and scales that lie in the room."""
    other, n = activation_type(kind.ggml), 512
    x = np.random.default_rng(3).standard_t(2, (6, n)).astype(np.float32)
    x[1] = np.random.default_rng(4).integers(-254, 255, n) / 2
    x[1, ::32] = 127
    x[2], x[3], x[4, ::2] = 0, x[3] * np.float32(1e-30), 0
    x[5] *= np.float32(1e-36 if kind.ggml.block == 256 else 1e-42)  # below that, ggml's inverse is infinite
    matrix = Matrix(random_blocks(kind, 2, n // kind.ggml.block, 0).reshape(-1), kind, (2, n))
    room = np.empty(packed_floats(len(x), n), np.float32)
    Given(x, room).packed(matrix)
    packed = room.view(np.uint8).reshape(len(x), -1)
    chunks = packed[:, : n // 64 * 192].reshape(len(x), -1, 192)
    raw = encode_activations(x, other).reshape(len(x), -1, other.n_bytes)
    at = {GGMLType.Q8_0: 2, GGMLType.Q8_1: 4, GGMLType.Q8_K: 4}[other]
    assert np.array_equal(chunks[..., :64].reshape(len(x), -1, other.block), raw[..., at : at + other.block])
    scales = np.ascontiguousarray(chunks[..., 128:]).view(np.float32).reshape(len(x), n // other.block, -1)
    read = "<f4" if other == GGMLType.Q8_K else "<f2"
    stored = np.ascontiguousarray(raw[..., : np.dtype(read).itemsize]).view(read)
    assert np.array_equal(scales, np.broadcast_to(stored, scales.shape))


def test_a_type_without_a_kernel_is_refused():
    with pytest.raises(QuantizationError, match="no kernel for Q8_K; there are FP32"):
        matvec(np.zeros(292, np.uint8), BumpType.Q8_K, np.zeros(256, np.float32), np.zeros(1, np.float32))


def test_the_package_is_not_littered_with_compiled_code():
    import miniquant

    assert not list(__import__("pathlib").Path(miniquant.__file__).parent.rglob("*.nb[ic]"))


@every_kernel
def test_what_is_multiplied_to_compile_is_of_whole_rows_and_has_the_room_that_it_needs(kind, monkeypatch):
    """A column more would read beyond the matrix."""
    seen, right = [], kernels.Given

    def given(x, room):
        seen.append((x.shape, room.dtype, room.size))
        return right(x, room)

    monkeypatch.setattr(kernels, "Given", given)
    kernels.warm([kind])
    assert seen == [((2, 256), np.float32, kernels.packed_floats(2, 256))]


def test_vectors_of_another_type_or_order_in_memory_are_made_float32_first():
    raw, n = random_blocks(BumpType.Q8_0, 3, 2, 5), 64
    x = np.random.default_rng(3).normal(size=(2, n)).astype(np.float32)
    for given_ in (x.astype(np.float64), np.asfortranarray(x)):
        out = np.full((2, 3), np.nan, np.float32)
        matmul(raw.reshape(-1), BumpType.Q8_0, given_, out)
        assert np.array_equal(out, product(raw, BumpType.Q8_0, x))


@pytest.mark.parametrize(("threads", "rows", "opened"), [(1, 64, 0), (2, 64, 1), (2, products.TILE, 0)])
def test_the_desk_is_opened_to_helpers_only_if_there_are_some_and_the_product_is_not_small(threads, rows, opened):
    raw, n = random_blocks(BumpType.Q8_0, rows, 2, 1), 64
    team = Crew(threads, n)
    vectors = Given(np.ones((1, n), np.float32), np.empty(packed_floats(1, n), np.float32))
    multiply(team, Matrix(raw.reshape(-1), BumpType.Q8_0, (rows, n)), vectors, place(np.empty((1, rows), np.float32)))
    assert team._desk.view(np.int64)[products.EPOCH // 8] == opened


def test_the_threads_of_a_crew_have_a_name():
    assert crew._pool(2).submit(lambda: threading.current_thread().name).result(timeout=20).startswith("bump")
