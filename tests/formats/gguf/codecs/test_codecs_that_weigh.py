"""Encoding with an importance of each column, as an importance matrix has it: byte for byte as ggml does."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from test_codecs_that_search import EDGES, ORDINARY, blocks, gaussian, student_t
from thorough import in_turns, tried

from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import decode, encode
from miniquant.formats.gguf.codecs import CODECS, kquant, rows

KINDS = [kind for kind, codec in CODECS.items() if codec.weighs]
SAME_COMPILER = platform.machine() in ("x86_64", "AMD64")
f32 = np.float32
every_type = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@pytest.fixture(scope="module")
def ggml():
    with LlamaCpp(None) as llama:
        yield llama


IMPORTANCE = {
    "all equal": lambda rng: np.ones(512),
    "a few large": lambda rng: 10 * rng.gamma(0.5, size=512),
    "far apart": lambda rng: np.exp2(rng.integers(-20, 20, 512)),
    "some zero": lambda rng: np.where(rng.random(512) < 0.3, 0.0, 1.0),
    "all zero": lambda rng: np.zeros(512),
}


def importance(name):
    return IMPORTANCE[name](np.random.default_rng(9)).astype(f32)


def two_blocks(family):
    """Rows of 512 weights."""
    w = blocks(family)
    return w[: len(w) // 2 * 2].reshape(-1, 512)


def error(w, raw, kind, counts):
    return float((np.square(decode(raw, kind) - w, dtype=np.float64) * counts).sum())


def test_these_are_the_types():
    assert [kind.name for kind in KINDS] == [
        *("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS")
    ]


FAMILIES = [*ORDINARY, *EDGES]


@every_type
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_the_weighted_error_is_ggml_s_and_on_x86_the_bytes_are(kind, family, ggml):
    w = two_blocks(family)
    for name in (name for name, other in in_turns(IMPORTANCE, FAMILIES) if other is family):
        counts = importance(name)
        ours, theirs = encode(w, kind, counts), ggml.quantize(w, kind, counts)
        assert error(w, ours, kind, counts) <= 1.04 * error(w, theirs, kind, counts)
        if SAME_COMPILER:
            assert np.array_equal(ours, theirs), name


@every_type
@pytest.mark.parametrize("sign", [None, -1, 1], ids=["both signs", "negative", "positive"])
def test_bytes_are_ggml_s_where_few_weights_count_and_least_squares_leaves_the_range(kind, sign, ggml):
    """Hardly a range is left, so ggml divides by nearly nothing, and scales below zero wrap around in eight bits."""
    if not SAME_COMPILER:
        return
    rng = np.random.default_rng(2)
    densities, zeros, n = (0.02, 0.05, 0.1, 0.3), (0.3, 0.7, 0.95), tried(40, 100)
    for density in densities:
        w = (rng.standard_normal((n, 512)) * (rng.random((n, 512)) < density)).astype(f32)
        w = w if sign is None else np.copysign(w, f32(sign))
        if CODECS[kind].searches:
            assert np.array_equal(encode(w, kind), ggml.quantize(w, kind)), density
        for zero in (zero for zero, other in in_turns(zeros, densities) if other == density):
            counts = np.where(rng.random(512) < zero, 0, rng.choice([1.0, 0.3, 7.7], 512)).astype(f32)
            assert np.array_equal(encode(w, kind, counts), ggml.quantize(w, kind, counts)), (density, zero)


@every_type
def test_the_columns_that_count_more_have_less_error(kind):
    w, counts = two_blocks(gaussian), np.where(np.arange(512) % 4, 1, 100).astype(f32)
    plain, weighed = (np.square(decode(encode(w, kind, given), kind) - w)[:, ::4].mean() for given in (None, counts))
    assert weighed < 0.97 * plain


@pytest.mark.parametrize("kind", [k for k, codec in CODECS.items() if codec.encodes and not codec.weighs])
def test_other_types_leave_it_out_of_account_as_ggml_does(kind, ggml):
    w = two_blocks(gaussian)
    ours = encode(w, kind, importance("a few large"))
    assert np.array_equal(ours, encode(w, kind))
    if kind.quantized:
        assert np.array_equal(ours, ggml.quantize(w, kind, importance("a few large")))


@every_type
@pytest.mark.parametrize("threads", [1, 3])
def test_the_bytes_do_not_depend_on_pieces_chunks_or_threads(kind, threads, monkeypatch):
    w, counts = two_blocks(student_t)[:10], importance("a few large")
    raw = encode(w, kind, counts)
    monkeypatch.setattr(kquant, "PIECE", 3)
    monkeypatch.setattr(rows, "CHUNK", 3 * 512)
    monkeypatch.setattr(rows, "THREADS", threads)
    monkeypatch.setattr(rows, "PARALLEL_MIN", 0)
    assert np.array_equal(encode(w, kind, counts), raw)
    monkeypatch.setattr(rows, "CHUNK", 100)  # less than a row
    assert np.array_equal(encode(w, kind, counts), raw)


@every_type
@pytest.mark.parametrize("family", [gaussian, student_t], ids=lambda family: family.__name__)
def test_a_row_and_a_block_alone_are_summed_as_ggml_sums_them(kind, family, ggml):
    """numpy adds up a lone column in another order than one of several."""
    for row in blocks(family)[: tried(5, 40)]:
        for n in (256, kind.block):
            w, counts = row[None, :n], importance("a few large")[:n]
            if SAME_COMPILER:
                assert np.array_equal(encode(w, kind, counts), ggml.quantize(w, kind, counts))
                assert np.array_equal(encode(w, kind), ggml.quantize(w, kind))


@every_type
def test_any_shape_keeps_its_rows(kind):
    w, counts = two_blocks(gaussian)[:24], importance("a few large")
    raw = encode(w, kind, counts)
    assert np.array_equal(encode(w.reshape(2, 3, 4, 512), kind, counts), raw.reshape(2, 3, 4, -1))
    assert np.array_equal(encode(w[5], kind, counts), raw[5])
    assert encode(w[:0], kind, counts).shape == (0, raw.shape[1])
