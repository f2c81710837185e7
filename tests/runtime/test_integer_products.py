"""Products of integers are ggml's: the blocks of activations byte for byte, the sums within 1e-6 of what is added."""

from __future__ import annotations

import math

import gguf
import numpy as np
import pytest

from miniquant.core.errors import QuantizationError
from miniquant.evaluate.llamacpp import LlamaCpp, LlamaCppError
from miniquant.formats.gguf import GGMLType, decode, encode
from miniquant.formats.gguf.codecs import CODECS
from miniquant.formats.gguf.codecs.codec import split_fields
from miniquant.formats.gguf.codecs.q8_1 import FIELDS, decode_q8_1, encode_q8_1
from miniquant.formats.gguf.codecs.q8_k import decode_q8_k
from miniquant.runtime.integer_products import activation_type, encode_activations, integer_products

WITH_SUMS = (GGMLType.Q8_1, GGMLType.Q8_K)
ACTIVATIONS = (GGMLType.Q8_0, *WITH_SUMS)
KINDS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")
VEC_DOT_TYPE = {"Q4_1": "Q8_1", "Q5_1": "Q8_1", **dict.fromkeys(("Q4_0", "Q5_0", "Q8_0"), "Q8_0")}


def families():
    """Activations: like a bell, few large ones, one outlier, all alike, all positive, halves, small, none."""
    random = np.random.default_rng(7)
    bell = random.normal(0, 1, (6, 512))
    outlier = bell.copy()
    outlier[:, 77] = -90
    halves = random.integers(-254, 255, (6, 512)) / 2
    halves[:, ::32] = 127
    made = {
        "bell": bell,
        "few large": random.standard_t(2, (6, 512)),
        "one outlier": outlier,
        "alike": np.full((2, 512), 0.3),
        "positive": random.uniform(0, 5, (6, 512)),
        "halves": halves,
        "small": bell * 1e-6,
        "none": np.where(np.arange(512) < 256, 0, bell),
    }
    return {name: x.astype(np.float32) for name, x in made.items()}


FAMILIES = families()


@pytest.fixture(scope="module")
def ggml():
    with LlamaCpp(None) as llama:
        yield llama


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(1).standard_t(4, (12, 512)).astype(np.float32) * np.float32(0.05)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", ACTIVATIONS, ids=lambda kind: kind.name)
def test_activations_are_rounded_as_ggml_s_reference_does_it(kind, family, ggml):
    x = FAMILIES[family]
    mine = encode_activations(x, kind)
    assert np.array_equal(mine, ggml.round_activations(x, kind))
    on_this_processor = ggml.round_activations(x, kind, reference=False)
    blocks = (mine != on_this_processor).reshape(-1, kind.n_bytes).any(axis=1)
    assert blocks.mean() < 0.05 or family == "halves"  # which a processor's own code may round to even


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_product_is_ggml_s_within_1e_6_of_the_sizes_that_are_added_up(kind, family, weights, ggml):
    """Of those, not of the sum: numbers of both signs may cancel, and ggml adds floats in an order of its own."""
    kind = GGMLType[kind]
    w, x = encode(weights, kind), encode_activations(FAMILIES[family], activation_type(kind))
    theirs, ours = ggml.products(w, kind, x), integer_products(w, kind, x)
    assert ours.dtype == np.float32 and ours.shape == (len(x), len(w))
    sizes = np.abs(FAMILIES[family]) @ np.abs(weights).T
    assert (np.abs(ours - theirs) <= 1e-6 * sizes).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_product_is_that_of_the_numbers_that_the_blocks_stand_for(kind, weights):
    """But for the sums of Q8_1, which are float16."""
    kind = GGMLType[kind]
    other = activation_type(kind)
    w, x = encode(weights, kind), encode_activations(FAMILIES["bell"], other)
    official = gguf.quants.dequantize(w, gguf.GGMLQuantizationType[kind.name])
    decoded = {
        GGMLType.Q8_0: lambda: decode(x, GGMLType.Q8_0),
        GGMLType.Q8_1: lambda: decode_q8_1(x),
        GGMLType.Q8_K: lambda: decode_q8_k(x),
    }[other]()
    plain = decoded.astype(np.float64) @ official.astype(np.float64).T
    limit = 2e-3 if other == GGMLType.Q8_1 else 1e-6
    assert np.abs(integer_products(w, kind, x) - plain).max() <= limit * np.abs(plain).max()


def test_weights_whose_integers_are_at_their_ends_meet_the_largest_activations(ggml):
    """32 · 127 · 127 and the like: no sum overflows."""
    for kind in map(GGMLType.__getitem__, KINDS):
        raw = np.full((2, kind.bytes_of((512,))), 0x77, np.uint8)  # every scale and integer large, in either byte order
        x = encode_activations(np.tile(np.float32([1, 1, 1, -1]), 128)[None], activation_type(kind))
        theirs, ours = ggml.products(raw, kind, x), integer_products(raw, kind, x)
        assert np.allclose(ours, theirs, rtol=1e-6), kind.name


def test_a_product_of_q4_1_by_hand():
    """(2 · 3 + 1) · 1.0 for one pair, and 1 · 1.0 for each other: 38; the sum in the block is 32."""
    w = np.zeros(20, np.uint8)
    w[:4] = np.array([2, 1], np.float16).view(np.uint8)  # d and m
    w[4] = 3
    x = encode_q8_1(np.ones((1, 32), np.float32))
    d, s = (float(x[0, at : at + 2].view(np.float16)[0]) for at in (0, 2))
    assert (s, x[0, 4:].view(np.int8).tolist()) == (32, [127] * 32)
    assert integer_products(w[None], GGMLType.Q4_1, x)[0, 0] == np.float32(2 * d * 3 * 127 + 32)


def test_a_product_of_q4_k_by_hand():
    """Sub-block 1 alone has a scale and a min: 2 · 3 · (5 · Σ x) less 0.5 · 4 · Σ x, which is 28 Σ x."""
    w = np.zeros(144, np.uint8)
    w[:4] = np.array([2, 0.5], np.float16).view(np.uint8)
    w[4 + 1], w[8 + 1] = 3, 4
    w[16:48] = 0x50  # the high halves of the first 32 bytes are the second sub-block
    x = np.zeros(256, np.float32)
    x[32:64] = np.arange(32)
    x[100] = 127  # the scale is 1, with its sign
    found = integer_products(w[None], GGMLType.Q4_K, encode_activations(x[None], GGMLType.Q8_K))
    assert found.tolist() == [[28 * sum(range(32))]]


def test_the_type_of_the_activations_is_the_one_that_ggml_multiplies_with(ggml, weights):
    for kind in KINDS:
        other = activation_type(GGMLType[kind])
        assert other.name == VEC_DOT_TYPE.get(kind, "Q8_K")
        wrong = GGMLType.Q8_0 if other != GGMLType.Q8_0 else GGMLType.Q8_1
        with pytest.raises(LlamaCppError, match=r"bytes are not 512 numbers of type"):
            ggml.products(encode(weights, kind), GGMLType[kind], encode_activations(FAMILIES["bell"], wrong))


def test_the_sum_of_q8_1_is_made_before_its_scale_is_rounded():
    x = np.random.default_rng(0).normal(0, 1, (50, 32)).astype(np.float32)
    p = split_fields(encode_q8_1(x), FIELDS)
    q, s = p["qs"].view(np.int8), np.ascontiguousarray(p["s"]).view("<f2")[:, 0]
    exact = np.abs(x).max(axis=1) / np.float32(127) * q.sum(axis=1, dtype=np.float32)
    stored = np.ascontiguousarray(p["d"]).view("<f2")[:, 0].astype(np.float32) * q.sum(axis=1, dtype=np.float32)
    assert np.array_equal(s, exact.astype(np.float16)) and not np.array_equal(s, stored.astype(np.float16))
    assert np.abs(decode_q8_1(encode_q8_1(x)) - x).max() <= np.abs(x).max() / 127


def test_activations_of_any_shape_keep_it():
    x = FAMILIES["bell"].reshape(2, 3, 512)
    for kind in ACTIVATIONS:
        raw = encode_activations(x, kind)
        assert raw.shape == (2, 3, 512 // kind.block * kind.n_bytes) and raw.dtype == np.uint8
        assert np.array_equal(raw[1, 2], encode_activations(x[1, 2], kind))


def test_no_file_holds_the_two_types_with_sums(weights):
    for kind in WITH_SUMS:
        assert kind not in CODECS
        with pytest.raises(QuantizationError, match=f"no codec for {kind.name} here"):
            encode(weights, kind)


def test_what_has_no_product_or_does_not_fit_is_refused(weights):
    x = encode_activations(FAMILIES["bell"], GGMLType.Q8_0)
    for kind in (GGMLType.F16, GGMLType.IQ4_NL, GGMLType.Q8_K):
        with pytest.raises(QuantizationError, match=rf"no integer product with {kind.name} here; there are Q4_0, Q4_1"):
            integer_products(encode(weights, GGMLType.Q4_0), kind, x)
    with pytest.raises(QuantizationError, match="activations become Q8_0, Q8_1 or Q8_K, not Q4_0"):
        encode_activations(FAMILIES["bell"], GGMLType.Q4_0)
    with pytest.raises(QuantizationError, match="Q8_K stores rows of a multiple of 256 weights, found 32"):
        encode_activations(np.zeros((1, 32), np.float32), GGMLType.Q8_K)
    for w, given in ((encode(weights, "Q4_0")[:, :-1], x), (encode(weights, "Q4_0"), x[:, :-34])):
        with pytest.raises(QuantizationError, match="are not the same number of blocks"):
            integer_products(w, GGMLType.Q4_0, given)


def test_a_scale_beyond_float16_is_infinite_as_in_ggml(ggml):
    x = np.full((1, 32), 1e8, np.float32)
    for kind in (GGMLType.Q8_0, GGMLType.Q8_1):
        raw = encode_activations(x, kind)
        assert np.array_equal(raw, ggml.round_activations(x, kind))
        assert math.isinf(raw[0, :2].view(np.float16)[0])
