"""The types that only round, against two referees that share no code with ours: the ``gguf`` package, ggml.

The package does not encode NVFP4, it neither encodes nor decodes Q1_0, and it does not know Q2_0: there ggml alone is
the referee. Types whose encoder searches have ``test_codecs_that_search.py``, those that are only decoded
``test_codecs_that_decode.py``.
"""

from __future__ import annotations

import functools
import warnings

import gguf
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from thorough import tried

from miniquant.core.errors import QuantizationError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, decode, encode, write_gguf
from miniquant.formats.gguf.codecs import CODECS, rows

KINDS = [kind for kind, codec in CODECS.items() if codec.encodes and not codec.searches]
QUANTIZED = [kind for kind in KINDS if kind.quantized]
WITH_FLOAT16 = [kind for kind in QUANTIZED if any(field.code == "<e" for field in CODECS[kind].fields)]
f32 = np.float32
LARGEST, SMALLEST = np.finfo(f32).max, f32(1e-45)

SIGNED = {GGMLType.Q4_0: 8, GGMLType.Q5_0: 16}  # the scale is the weight of largest magnitude / -8, or -16
SHIFTED = {GGMLType.Q4_1: 15, GGMLType.Q5_1: 31}  # the scale is (largest - smallest) / 15, or 31


def knows(function, kind: GGMLType, argument: np.ndarray) -> bool:
    """Whether the package has an encoder, or decoder, of a type."""
    try:
        function(argument, gguf.GGMLQuantizationType(kind))
    except (NotImplementedError, ValueError):  # no code for it; or no such type
        return False
    return True


pytestmark = pytest.mark.filterwarnings("error")  # nothing is warned about, whatever the weights
ENCODED_THERE = [kind for kind in KINDS if knows(gguf.quants.quantize, kind, np.ones((1, 256), f32))]
DECODED_THERE = [kind for kind in KINDS if knows(gguf.quants.dequantize, kind, np.ones((1, kind.n_bytes), np.uint8))]

every_type = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def normal(rng, n):
    return rng.standard_normal((n, 32)).astype(f32)


def constant(rng, n):
    return np.repeat(normal(rng, n)[:, :1], 32, axis=1)


def ties(rng, n):
    """The largest magnitude stands in every block with both signs, and halves round both ways."""
    return rng.choice(np.array([-1, -0.5, 0, 0.5, 1], f32), (n, 32)) * np.exp2(rng.integers(-9, 9, (n, 1))).astype(f32)


def halves(rng, n):
    """Whole and half multiples of a scale that is exact: the ties of every rounding."""
    w = (rng.integers(-254, 255, (n, 32)) / 2).astype(f32)
    w[:, 0] = 127
    return w * np.exp2(rng.integers(-20, 20, (n, 1))).astype(f32)


def next_to_halves(rng, n):
    """A few units in the last place beside those ties."""
    w = halves(rng, n)
    w[w == 0] = 0.5
    return (w.view(np.int32) + rng.integers(-2, 3, w.shape)).astype(np.int32).view(f32)


def subnormal(rng, n):
    return rng.integers(-(2**22), 2**22, (n, 32)).astype(f32) * SMALLEST


def tiny(rng, n):
    """Around the smallest numbers of float32, where 1 / d overflows; no zeros, which have a test of their own."""
    w = normal(rng, n) * np.exp2(rng.integers(-146, -100, (n, 1))).astype(f32)
    return np.where(w == 0, SMALLEST, w)


def tiny_for_float16(rng, n):
    return normal(rng, n) * np.exp2(rng.integers(-32, -6, (n, 1))).astype(f32)


def huge(rng, n):
    return normal(rng, n) * np.exp2(rng.integers(10, 125, (n, 1))).astype(f32)


def around_the_top_of_float16(rng, n):
    return rng.choice(np.array([65503, 65504, 65519, 65520, 65536, -65519, -65520, 131072, 1], f32), (n, 32))


def largest(rng, n):
    return rng.choice(np.array([LARGEST, -LARGEST, 1, 0], f32), (n, 32))


def negative_max(rng, n):
    w = normal(rng, n)
    w[np.arange(n), rng.integers(0, 32, n)] = -np.abs(w).max(axis=1) * f32(1.25)
    return w


def negative(rng, n):
    return -np.abs(normal(rng, n))


def one_weight(rng, n):
    w = np.zeros((n, 32), f32)
    w[np.arange(n), rng.integers(0, 32, n)] = rng.standard_normal(n).astype(f32)
    return w


def any_bits(rng, n):
    """Every finite float32 is as likely as any other; no zeros of both signs in one block."""
    w = rng.integers(0, 2**32, (n, 32), dtype=np.uint32).view(f32)
    return np.where(np.isfinite(w) & (w != 0), w, f32(1))


def zero(rng, n):
    return np.zeros((n, 32), f32)


def negative_zero(rng, n):
    return -np.zeros((n, 32), f32)


FAMILIES = [
    *(normal, constant, ties, halves, next_to_halves, subnormal, tiny, tiny_for_float16, huge, largest),
    *(around_the_top_of_float16, negative_max, negative, one_weight, any_bits, zero, negative_zero),
]
every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)


def width(kind: GGMLType) -> int:
    """The weights of a row of one block, and of 32 in a type without blocks."""
    return max(32, kind.block)


def blocks(family, n: int = tried(160, 600), kind: GGMLType = GGMLType.F32) -> np.ndarray:
    """(n, 32) float32, the same in every run; joined to rows of one block where that is longer."""
    return family(np.random.default_rng(20), n).reshape(-1, width(kind))


def official_encode(w: np.ndarray, kind: GGMLType) -> np.ndarray:
    """The package's bytes; ggml's for what it cannot encode."""
    if kind not in ENCODED_THERE:
        return shared_ggml().quantize(w, kind)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.ascontiguousarray(gguf.quants.quantize(w, gguf.GGMLQuantizationType(kind))).view(np.uint8)


def official_decode(raw: np.ndarray, kind: GGMLType) -> np.ndarray:
    """The package's weights; ggml's for what it cannot decode."""
    if kind not in DECODED_THERE:
        return shared_ggml().dequantize(raw.reshape(-1, kind.n_bytes), kind).reshape(*raw.shape[:-1], -1)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gguf.quants.dequantize(raw, gguf.GGMLQuantizationType(kind))


def same_floats(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal to the bit, the sign of zero included; any NaN equals any other."""
    return np.array_equal(np.where(np.isnan(a), 0, a.view(np.uint32)), np.where(np.isnan(b), 0, b.view(np.uint32)))


@functools.cache
def shared_ggml() -> LlamaCpp:
    """One process for the module; it ends when nobody writes to it any more."""
    return LlamaCpp(None)


@pytest.fixture(scope="module")
def ggml():
    yield shared_ggml()
    shared_ggml().close()
    shared_ggml.cache_clear()


# ---- bytes and values, against both referees -------------------------------------------------------------------------


def test_the_official_package_lacks_these_encoders_and_this_decoder():
    assert set(KINDS) - set(ENCODED_THERE) == {GGMLType.NVFP4, GGMLType.Q1_0, GGMLType.Q2_0}
    assert set(KINDS) - set(DECODED_THERE) == {GGMLType.Q1_0, GGMLType.Q2_0}


@every_type
@every_family
def test_bytes_and_decoded_values_equal_those_of_the_official_package_and_of_ggml(kind, family, ggml):
    w = blocks(family, kind=kind)
    before = w.copy()
    raw = encode(w, kind)
    assert np.array_equal(w.view(np.uint32), before.view(np.uint32))
    if kind in ENCODED_THERE:
        assert np.array_equal(raw, official_encode(w, kind))
    found = decode(raw, kind)
    if kind.quantized:
        assert same_floats(found, ggml.dequantize(raw, kind))
    if kind in DECODED_THERE:
        assert same_floats(found, official_decode(raw, kind))
    defined = np.ones(len(w), bool)
    if kind in (*SIGNED, *SHIFTED):  # casting infinity to an integer, where 1 / d overflows, is undefined in C
        wide = w.astype(np.float64)
        d = np.abs(wide).max(axis=1) / SIGNED[kind] if kind in SIGNED else np.ptp(wide, axis=1) / SHIFTED[kind]
        defined = (d == 0) | (d > 2.0**-127) & (d < LARGEST)
    ours, theirs = raw[defined], ggml.quantize(w[defined], kind)
    if kind in SIGNED and family is negative_zero:  # ggml begins with +0 and finds nothing larger: d = 0 / -8
        assert (ours[:, 1] == 0x00).all() and (theirs[:, 1] == 0x80).all()
        ours[:, 1] = 0x80
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("kind", QUANTIZED, ids=lambda kind: kind.name)
def test_zeros_of_both_signs_give_zero_whichever_sign_the_scale_gets(kind):
    """Which zero is the larger one differs between processors; the bytes beside the signs do not."""
    w = np.random.default_rng(3).choice(np.array([0.0, -0.0], f32), (500, width(kind)))
    ours, official = encode(w, kind), official_encode(w, kind)
    ours[:, [1, 3]] &= 0x7F
    official[:, [1, 3]] &= 0x7F
    assert np.array_equal(ours, official)
    assert not decode(encode(w, kind), kind).any()


@every_type
@given(data=st.binary(min_size=128, max_size=512).map(lambda b: b[: len(b) // 128 * 128]))
@example(data=bytes(128))
@example(data=np.full(32, np.finfo(f32).tiny, f32).tobytes())
@example(data=np.array([-LARGEST, LARGEST] * 16, f32).tobytes())
def test_any_finite_weights_encode_and_decode_as_the_official_package_does(kind, data):
    w = np.frombuffer(data, f32)
    w = np.resize(w, (-(-w.size // width(kind)), width(kind)))
    w = np.where(np.isfinite(w) & (w != 0), w, f32(0))  # and all zeros are positive
    raw = encode(w, kind)
    assert np.array_equal(raw, official_encode(w, kind))
    assert same_floats(decode(raw, kind), official_decode(raw, kind))


@every_type
@given(data=st.data())
def test_any_bytes_decode_as_the_official_package_does(kind, data):
    raw = np.frombuffer(data.draw(st.binary(min_size=kind.n_bytes * 4, max_size=kind.n_bytes * 4)), np.uint8)
    assert same_floats(decode(raw, kind), official_decode(raw, kind))


@every_type
@given(shape=st.lists(st.integers(0, 5), min_size=0, max_size=3), count=st.integers(0, 4), seed=st.integers(0, 2**32))
def test_any_shape_keeps_its_rows(kind, shape, count, seed):
    w = np.random.default_rng(seed).standard_normal((*shape, count * width(kind))).astype(f32)
    raw = encode(w, kind)
    assert raw.shape == (*shape, kind.bytes_of((count * width(kind),)))
    assert raw.nbytes == kind.bytes_of(w.shape)
    assert decode(raw, kind).shape == w.shape
    if w.size:
        assert np.array_equal(raw.reshape(-1), official_encode(w.reshape(-1, count * width(kind)), kind).reshape(-1))
        assert np.array_equal(decode(raw, kind), official_decode(raw, kind))


# ---- the floats that are not quantized -------------------------------------------------------------------------------


def test_every_float16_decodes_to_its_value():
    raw = np.arange(65536, dtype="<u2")
    with np.errstate(all="ignore"):
        expected = raw.view("<f2").astype(f32)
    assert same_floats(decode(raw.view(np.uint8), GGMLType.F16), expected)


@pytest.mark.parametrize("large", [False, True], ids=["within float16", "beyond it"])
def test_every_float16_and_every_midpoint_and_their_neighbours_round_as_ieee_754_says(large):
    codes = np.arange(0x7C00, dtype=np.uint16)
    below = codes.view(np.float16).astype(f32)
    above = np.append(below[1:], f32(65536))
    middle = ((below.astype(np.float64) + above) / 2).astype(f32)  # exact
    bits = np.concatenate([below, middle]).view(np.int32)
    w = np.concatenate([(bits + step).astype(np.int32) for step in (-1, 0, 1)]).view(f32)
    w = np.concatenate([w, -w, np.array([np.inf, -np.inf, np.nan, 1e30, -1e30], f32)])
    w = w[np.isfinite(w) | large]
    w = w if large else w[np.abs(w) < 65536]  # those take the quick way
    with np.errstate(all="ignore"):
        expected = w.astype(np.float16)
    assert np.array_equal(encode(w, GGMLType.F16).view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("w", [65519, 65520, 65535.99, 65536, 100_000, 131_071.99, 131_072, 3.4e38, -65520, -1e5])
def test_a_single_weight_at_the_end_of_float16_rounds_to_its_largest_number_or_to_infinity(w):
    """Alone, so that no larger one leads the others onto the slow way."""
    assert decode(encode(np.array([w, 1], f32), GGMLType.F16), GGMLType.F16).tolist() == [
        np.copysign(65504 if abs(w) < 65520 else np.inf, w),
        1,
    ]


@pytest.mark.parametrize("kind", [GGMLType.F32, GGMLType.F16, GGMLType.BF16], ids=lambda kind: kind.name)
def test_infinities_and_nans_stay_what_they_are(kind):
    w = np.array([np.inf, -np.inf, np.nan, -np.nan, 1], f32)
    w = np.append(w, np.array([0x7F800001, 0xFFBFFFFF, 0x7FFFFFFF], np.uint32).view(f32))  # NaNs of other bits
    raw = encode(w, kind)
    assert np.array_equal(raw, official_encode(w, kind).reshape(-1))
    assert np.array_equal(np.isnan(decode(raw, kind)), np.isnan(w))
    assert np.array_equal(decode(raw, kind)[:2], w[:2])


# ---- the table -------------------------------------------------------------------------------------------------------


def test_the_types_and_their_numbers_are_the_official_package_s_and_one_that_is_newer():
    official = {kind.name: int(kind) for kind in gguf.GGMLQuantizationType}
    assert {kind.name: int(kind) for kind in GGMLType} == {**official, "Q2_0": 42}


def test_the_block_sizes_are_the_official_package_s_but_for_one_that_no_file_uses():
    ours = {int(kind): (kind.block, kind.n_bytes) for kind in GGMLType}
    official = {int(kind): size for kind, size in gguf.GGML_QUANT_SIZES.items()}
    assert {kind for kind in official if ours[kind] != official[kind]} == {GGMLType.Q8_1}
    assert official[GGMLType.Q8_1] == (32, 40)


@pytest.mark.parametrize("kind", GGMLType, ids=lambda kind: kind.name)
def test_the_block_sizes_are_those_of_ggml(kind, ggml):
    assert ggml.block(kind) == (kind.block, kind.n_bytes)


def test_bits_per_weight_count_the_scales():
    found = {kind.name: kind.bits_per_weight for kind in KINDS}
    assert found == {
        **{"F32": 32, "F16": 16, "BF16": 16, "Q8_0": 8.5, "Q4_0": 4.5, "Q4_1": 5, "Q5_0": 5.5, "Q5_1": 6},
        **{"TQ1_0": 1.6875, "TQ2_0": 2.0625, "MXFP4": 4.25, "NVFP4": 4.5, "Q1_0": 1.125, "Q2_0": 2.25},
    }


# ---- by hand ---------------------------------------------------------------------------------------------------------


def test_q8_0_by_hand():
    w = np.zeros(32, f32)
    w[0], w[1], w[2], w[31] = 127, -0.5, 0.5, -63.5  # d = 1; halves go away from zero
    q = [127, -1, 1, *[0] * 28, -64]
    assert encode(w, GGMLType.Q8_0).tobytes() == np.float16(1).tobytes() + np.array(q, np.int8).tobytes()


def test_q4_0_by_hand():
    w = np.zeros(32, f32)
    w[0], w[1], w[16], w[17] = 8, -8, -4, 7  # of two largest the first: d = 8 / -8
    raw = encode(w, GGMLType.Q4_0)
    assert raw[:2].tobytes() == np.float16(-1).tobytes()
    assert raw[2:].tolist() == [12 << 4 | 0, 1 << 4 | 15, *[8 << 4 | 8] * 14]
    assert decode(raw, GGMLType.Q4_0)[[0, 1, 16, 17]].tolist() == [8, -7, -4, 7]


def test_q4_1_by_hand():
    w = np.full(32, -2, f32)
    w[3], w[19] = 13, 5.5  # d = 1, m = -2; a half goes up
    raw = encode(w, GGMLType.Q4_1)
    assert raw[:4].tobytes() == np.array([1, -2], np.float16).tobytes()
    assert raw[4:].tolist() == [0, 0, 0, 8 << 4 | 15, *[0] * 12]
    assert decode(raw, GGMLType.Q4_1)[[0, 3, 19]].tolist() == [-2, 13, 6]


def test_q5_0_by_hand():
    w = np.zeros(32, f32)
    w[0], w[1], w[9], w[16], w[31] = 16, -16, -15, 0.5, -7.25  # of two largest the first: d = 16 / -16
    raw = encode(w, GGMLType.Q5_0)
    q = np.full(32, 16)
    q[[0, 1, 9, 31]] = 0, 31, 31, 23  # -0.5 + 16.5 = 16: a half goes up; 7.25 + 16.5 = 23.75
    assert raw[:2].tobytes() == np.float16(-1).tobytes()
    assert raw[2:6].tolist() == [0b11111110, 0xFF, 0xFF, 0xFF]
    assert raw[6:].tolist() == [0, 15, *[0] * 7, 15, *[0] * 5, 7 << 4]
    assert decode(raw, GGMLType.Q5_0).tolist() == (16.0 - q).tolist()


def test_q5_1_by_hand():
    w = np.full(32, -2, f32)
    w[3], w[8], w[19] = 29, 14, 5.5  # d = 1, m = -2; a half goes up
    raw = encode(w, GGMLType.Q5_1)
    assert raw[:4].tobytes() == np.array([1, -2], np.float16).tobytes()
    assert raw[4:8].tolist() == [0b1000, 1, 0, 0]
    assert raw[8:].tolist() == [0, 0, 0, 8 << 4 | 15, *[0] * 12]
    assert decode(raw, GGMLType.Q5_1)[[0, 3, 8, 19]].tolist() == [-2, 29, 14, 6]


def test_tq1_0_by_hand():
    w = np.tile(np.array([1, 0, -1, -0.5, 0.4375], f32), 52)[:256]  # d = 1; a half goes away from zero
    digits = np.tile([2, 1, 0, 0, 1], 52)[:256]
    raw = encode(w, GGMLType.TQ1_0)
    n = [sum(digits[32 * i + j] * 3 ** (4 - i) for i in range(5)) for j in range(32)]
    n += [sum(digits[160 + 16 * i + j] * 3 ** (4 - i) for i in range(5)) for j in range(16)]
    n += [sum(digits[240 + 4 * i + j] * 3 ** (4 - i) for i in range(4)) for j in range(4)]
    assert raw.tolist() == [-(-256 * number // 243) for number in n] + list(np.float16(1).tobytes())
    assert decode(raw, GGMLType.TQ1_0).tolist() == (digits - 1.0).tolist()


def test_tq2_0_by_hand():
    w = np.zeros(256, f32)
    w[0], w[32], w[64], w[255] = 4, -4, 2, -1.75  # d = 4; a half goes away from zero
    raw = encode(w, GGMLType.TQ2_0)
    assert raw.tolist() == [0b01100010, *[0b01010101] * 63, *np.float16(4).tobytes()]
    assert decode(raw, GGMLType.TQ2_0)[[0, 32, 64, 255]].tolist() == [4, -4, 4, 0]


def test_mxfp4_by_hand():
    w = np.zeros(32, f32)
    w[0], w[1], w[2], w[16], w[17], w[31] = 7.5, 5, -2.5, 0.25, -0.26, -6  # the scale is 1: 4 is the power below 7.5
    raw = encode(w, GGMLType.MXFP4)  # of two that are as near, the smaller: 5 becomes 4, -2.5 -2, 0.25 0
    assert raw.tolist() == [127, 7, 9 << 4 | 6, 12, *[0] * 12, 15 << 4]
    assert decode(raw, GGMLType.MXFP4)[[0, 1, 2, 16, 17, 31]].tolist() == [6, 4, -2, 0, -0.5, -6]


def test_nvfp4_by_hand():
    w = np.zeros(64, f32)
    w[0], w[8], w[15], w[16], w[63] = 6, -2.5, 0.25, 0.046875, -6 * 448  # scales of 1, 2^-7, 0 and 448
    raw = encode(w, GGMLType.NVFP4)
    assert raw[:4].tolist() == [7 << 3, 4, 0, 0x7E]
    assert raw[4:].tolist() == [12 << 4 | 7, *[0] * 7, 7, *[0] * 22, 15 << 4]
    assert decode(raw, GGMLType.NVFP4)[[0, 8, 15, 16, 63]].tolist() == [6, -2, 0, 0.046875, -2688]


def test_weights_beyond_the_scale_of_nvfp4_are_refused_by_the_writer(tmp_path):
    w = np.ones((2, 64), f32)
    write_gguf(tmp_path / "w.gguf", {"w": (w * 2688, "NVFP4")}, {})
    w[1, 3] = 2689
    with pytest.raises(QuantizationError, match="row 1, column 3 is 2689; NVFP4 holds magnitudes up to 2688"):
        write_gguf(tmp_path / "w.gguf", {"w": (w, "NVFP4")}, {})


@pytest.mark.parametrize("kind", QUANTIZED, ids=lambda kind: kind.name)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_weights_that_are_no_numbers_are_refused_by_the_writer(kind, value, tmp_path):
    w = np.ones((2, width(kind)), f32)
    w[1, 3] = value
    with pytest.raises(QuantizationError, match=r"row 1, column 3 is .*; quantization needs finite weights"):
        write_gguf(tmp_path / "w.gguf", {"w": (w, kind)}, {})


def test_q1_0_by_hand():
    w = np.zeros(128, f32)
    w[0], w[9], w[127] = 64, -32, -32  # d = 128 / 128
    raw = encode(w, GGMLType.Q1_0)
    assert raw.tolist() == [*np.float16(1).tobytes(), 0xFF, 0b11111101, *[0xFF] * 13, 0x7F]
    assert decode(raw, GGMLType.Q1_0)[[0, 1, 9, 127]].tolist() == [1, 1, -1, -1]


def test_q2_0_by_hand():
    w = np.zeros(64, f32)
    w[0], w[1], w[2], w[3], w[63] = 4, -4, 2, -2, 1.75  # d = 4; halves go away from zero
    raw = encode(w, GGMLType.Q2_0)
    assert raw.tolist() == [*np.float16(4).tobytes(), 0b00100010, *[0b01010101] * 15]
    assert decode(raw, GGMLType.Q2_0)[[0, 1, 2, 3, 63]].tolist() == [4, -4, 4, -4, 0]


def test_q2_0_decodes_the_level_that_rounding_never_gives():
    raw = np.array([*np.float16(0.5).tobytes(), 0b11100100, *[0b01010101] * 15], np.uint8)
    assert decode(raw, GGMLType.Q2_0)[:5].tolist() == [-0.5, 0, 0.5, 1, 0]


def test_a_scale_beyond_float16_becomes_infinite_as_in_ggml(ggml):
    for kind in WITH_FLOAT16:
        w = np.full((1, width(kind)), 1e30, f32)
        raw = encode(w, kind)
        assert np.array_equal(raw, ggml.quantize(w, kind))
        assert not np.isfinite(decode(raw, kind)).any()


def test_the_scale_of_mxfp4_reaches_where_float16_does_not(ggml):
    w = np.full((1, 32), 1e30, f32)
    raw = encode(w, GGMLType.MXFP4)
    assert np.array_equal(raw, ggml.quantize(w, GGMLType.MXFP4))
    assert np.allclose(decode(raw, GGMLType.MXFP4), w, rtol=0.25)


# ---- chunks and threads ----------------------------------------------------------------------------------------------


@every_type
def test_the_bytes_do_not_depend_on_chunks_or_threads(kind, monkeypatch):
    given = [blocks(normal, n * width(kind) // 32).reshape(-1) for n in (1, 3, 4, 5, 8, 25)]
    whole = [(encode(w, kind), decode(encode(w, kind), kind)) for w in given]
    monkeypatch.setattr(rows, "CHUNK", 4 * width(kind))
    monkeypatch.setattr(rows, "THREADS", 2)
    monkeypatch.setattr(rows, "PARALLEL_MIN", 0)
    for w, (raw, back) in zip(given, whole, strict=True):
        assert np.array_equal(encode(w, kind), raw), w.size
        assert np.array_equal(decode(raw, kind), back), w.size


@every_type
def test_a_tensor_that_is_large_enough_for_threads_is_encoded_as_the_official_package_does(kind, monkeypatch):
    monkeypatch.setattr(rows, "THREADS", 2)
    w = np.random.default_rng(8).standard_normal((33, 32 * 1000), f32)
    assert w.size > rows.PARALLEL_MIN
    raw = encode(w, kind)
    assert np.array_equal(raw, official_encode(w, kind))
    assert np.array_equal(decode(raw, kind), official_decode(raw, kind))


# ---- arrays of other kinds, and what is refused ----------------------------------------------------------------------


@every_type
def test_strided_and_turned_and_byte_swapped_arrays_are_taken_for_their_values(kind):
    w = np.random.default_rng(1).standard_normal((64, 3 * width(kind))).astype(f32)
    raw = encode(w, kind)
    assert np.array_equal(encode(np.asfortranarray(w), kind), raw)
    assert np.array_equal(encode(w.astype(">f4"), kind), raw)
    assert np.array_equal(encode(np.repeat(w, 2, axis=0)[::2], kind), raw)
    assert np.array_equal(encode(w.astype(np.float64), kind), raw)
    assert np.array_equal(decode(np.repeat(raw, 2, axis=0)[::2], kind), decode(raw, kind))


@pytest.mark.parametrize("kind", QUANTIZED, ids=lambda kind: kind.name)
@pytest.mark.parametrize("found", [1, 16, 31, 33, 63])
def test_a_row_that_is_no_multiple_of_the_block_is_refused(kind, found):
    message = f"multiple of {kind.block} weights, found {found}; store it as F16 or F32"
    with pytest.raises(QuantizationError, match=message):
        encode(np.zeros((32, found), f32), kind)


@every_type
def test_bytes_that_are_no_whole_number_of_blocks_are_refused(kind):
    for wrong in (np.zeros(kind.n_bytes + 1, np.uint8), np.zeros(kind.n_bytes, np.int8), np.zeros((), np.uint8)):
        with pytest.raises(QuantizationError, match=f"{kind.name} has blocks of {kind.n_bytes} bytes"):
            decode(wrong, kind)


@pytest.mark.parametrize("kind", sorted(set(GGMLType) - set(CODECS)), ids=lambda kind: kind.name)
def test_a_type_without_a_codec_is_refused_by_name(kind):
    with pytest.raises(QuantizationError, match=f"no codec for {kind.name} here; there are F32, F16"):
        encode(np.zeros(256, f32), kind)
    with pytest.raises(QuantizationError, match=f"no codec for {kind.name} here"):
        decode(np.zeros(kind.n_bytes, np.uint8), kind)


@settings(max_examples=tried(15, 50))
@given(seed=st.integers(0, 2**32), exponent=st.integers(-10, 4))
def test_decoding_and_encoding_again_changes_nothing_in_q8_0(seed, exponent):
    """A block that holds a 127 gives its own scale back, so encoding is idempotent, but for the scale's rounding."""
    rng = np.random.default_rng(seed)
    q = rng.integers(-127, 128, (8, 32)).astype(np.int8)
    q[:, 0] = 127
    d = np.full((8, 1), 2.0**exponent, "<f2")
    raw = np.concatenate([d.view(np.uint8), q.view(np.uint8)], axis=1)
    assert np.array_equal(encode(decode(raw, GGMLType.Q8_0), GGMLType.Q8_0), raw)


def test_f32_is_handed_out_and_not_copied():
    w = np.random.default_rng(0).standard_normal((6, 32)).astype(f32)
    raw = encode(w, GGMLType.F32)
    assert raw.shape == (6, 128)
    assert np.shares_memory(raw, w)
    assert np.shares_memory(decode(raw, GGMLType.F32), w)
    raw.flags.writeable = False
    assert not decode(raw, GGMLType.F32).flags.writeable
    for other in (w.astype(np.float64), w.astype(">f4"), w.T.copy().T):  # what has to be converted is converted
        assert not np.shares_memory(encode(other, GGMLType.F32), other)
        assert np.array_equal(encode(other, GGMLType.F32), raw)
    shifted = np.frombuffer(b"-" + raw.tobytes(), np.uint8)[1:].reshape(raw.shape)  # no address for a float
    assert decode(shifted, GGMLType.F32).flags.aligned
    assert np.array_equal(decode(shifted, GGMLType.F32), w)
