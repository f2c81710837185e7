"""Searches for the scale and the minimum of a block: judged as Q4_1 stores them, on blocks that are always the same."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miniquant.evaluate import block_search
from miniquant.evaluate.block_search import (
    block_errors,
    ggml_search,
    made_worse,
    plain_rounding,
    restored,
    score_search,
    score_searches,
    unseen_blocks,
)
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, decode
from miniquant.quantization.packing import pack_runs


@pytest.fixture(scope="module")
def families():
    return unseen_blocks()


def as_q4_1(w, scale, minimum):
    """The same blocks, written as Q4_1 and read by the official package."""
    d, m = scale.astype("<f2"), minimum.astype("<f2")
    step = np.where(d == 0, np.float32(1), d.astype(np.float32))
    q = np.rint((w - m.astype(np.float32)) / step).clip(0, 15).astype(np.uint8)
    raw = np.concatenate([d.view(np.uint8), m.view(np.uint8), pack_runs(q, 4, 16)], axis=1)
    return gguf.quants.dequantize(raw, gguf.GGMLQuantizationType.Q4_1)


@given(seed=st.integers(0, 2**32 - 1))
def test_the_weights_that_come_back_are_those_that_the_official_package_reads(seed):
    rng = np.random.default_rng(seed)
    w = (rng.standard_normal((8, 32)) * rng.uniform(1e-3, 10) + rng.uniform(-3, 3)).astype(np.float32)
    for search in (plain_rounding, ggml_search):
        scale, minimum = search(w)
        assert scale.shape == minimum.shape == (8, 1)
        assert scale.dtype == minimum.dtype == np.float32
        assert np.array_equal(restored(w, scale, minimum), as_q4_1(w, scale, minimum))


def test_an_error_is_the_sum_of_the_squares_of_a_block():
    w = np.float32([[0, 1, 2, 3] * 8, [0, 1, 2, 15] * 8])
    zero = np.float32([[0], [0]])
    assert block_errors(w, np.float32([[1], [1]]), zero).tolist() == [[0], [0]]
    assert block_errors(w, np.float32([[0], [0]]), zero).tolist() == [[8 * 14], [8 * 230]]


def test_a_block_is_worse_from_one_per_cent_more_on_and_nan_is_worse():
    w = np.random.default_rng(0).standard_normal((3, 32)).astype(np.float32)
    scale, minimum = plain_rounding(w)
    assert not made_worse(w, scale, minimum).any()
    assert made_worse(w, scale * np.float32([[1], [3], [np.nan]]), minimum).tolist() == [False, True, True]
    ramp = np.float32([[0, 1, 2, 15] * 8])  # exact: not even rounding noise may count as worse
    assert not made_worse(ramp, np.float32([[1 + 1e-6]]), np.float32([[1e-6]])).any()


def test_the_blocks_are_finite_and_the_same_each_time(families):
    again = unseen_blocks()
    for name, w in families.items():
        assert w.shape == (2000, 32) and w.dtype == np.float32
        assert np.isfinite(w).all() and np.ptp(w, axis=1).min() > 0
        assert np.array_equal(w, again[name])


def test_ggml_s_search_is_the_one_of_its_q4_k(families):
    """Eight equal sub-blocks make a super-block whose scales and mins need no rounding to six bits but that of d."""
    w = np.repeat(families["the model"][:50], 8, axis=0).reshape(50, 256)
    with LlamaCpp(None) as llama:
        theirs = decode(llama.quantize(w, GGMLType.Q4_K), GGMLType.Q4_K)
    ours = restored(w[:, :32], *ggml_search(w[:, :32]))
    far = np.abs(theirs[:, :32] - ours).max(axis=1) / np.ptp(w, axis=1)
    assert np.median(far) < 1e-3


def test_ggml_s_search_gains_on_every_family_and_plain_rounding_is_never_worse_than_itself(families):
    scores = score_searches({"plain": plain_rounding, "ggml": ggml_search}, families)
    for name in families:
        plain, ggml = scores["plain"][name], scores["ggml"][name]
        assert plain.worse == 0 and plain.blocks == 2000
        assert 0.8 * plain.rmse < ggml.rmse < 0.95 * plain.rmse


def test_a_score_is_the_error_in_per_cent_of_the_weights_own_size():
    w = np.float32([[0, 1, 2, 3] * 8])
    nothing = score_search(lambda w: (np.zeros((len(w), 1), np.float32),) * 2, w)
    assert nothing == (pytest.approx(100), 1, 1)


def test_scoring_needs_no_torch():
    source = block_search.__file__
    with open(source, encoding="utf-8") as file:
        assert "torch" not in file.read()
