"""The types whose encoder searches, K-quants among them, against two referees that share no code with ours.

ggml encodes and decodes, the ``gguf`` package decodes. Float32 sums differ where a compiler fuses a product with a sum,
so equal bytes are asked for on x86-64, where none of the wheels does. What is asked for everywhere is an error as small
as ggml's.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tracemalloc

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thorough import tried

from miniquant.core.errors import QuantizationError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, decode, encode, read_gguf, write_gguf
from miniquant.formats.gguf.codecs import CODECS, kquant, rows
from miniquant.formats.gguf.codecs.codec import split_fields
from miniquant.formats.gguf.codecs.q8_k import FIELDS, decode_q8_k, encode_q8_k

KINDS = [kind for kind, codec in CODECS.items() if codec.searches]
pytestmark = pytest.mark.filterwarnings("error")  # no weights of any family are warned about
SAME_COMPILER = platform.machine() in ("x86_64", "AMD64")
f32 = np.float32
every_type = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@pytest.fixture(scope="module")
def ggml():
    with LlamaCpp(None) as llama:
        yield llama


def gaussian(rng):
    return rng.standard_normal((400, 256)) * 0.02


def student_t(rng):
    return rng.standard_t(3, (400, 256)) * 0.02


def laplace(rng):
    return rng.laplace(size=(400, 256))


def sparse(rng):
    return rng.standard_normal((400, 256)) * (rng.random((400, 256)) < 0.1)


def real(rng):
    """The matrices of the trained model."""
    from miniquant.models.pretrained import load_pretrained

    matrices = [w.numpy() for name, w in load_pretrained().state_dict().items() if w.ndim == 2 and "pos" not in name]
    return np.concatenate([w.reshape(-1, 256)[rng.integers(0, w.size // 256, 60)] for w in matrices])


def zeros(rng):
    return rng.choice([0.0, -0.0], (20, 256))


def constant(rng):
    return np.repeat(rng.standard_normal((100, 1)), 256, axis=1)


def flat_in_places(rng):
    """Sub-blocks of one value, beside others."""
    return np.where(rng.random((200, 16, 1)) < 0.5, rng.standard_normal((200, 16, 16)), 0.25).reshape(200, 256)


def negative(rng):
    return -np.abs(rng.standard_normal((200, 256)))


def positive(rng):
    return np.abs(rng.standard_normal((200, 256)))


def whole(rng):
    return rng.integers(-8, 8, (200, 256))


def signs(rng):
    """Two largest weights of one magnitude: the first one gives the scale its sign."""
    return rng.choice([-1.0, 0.0, 1.0], (200, 256))


def one_outlier(rng):
    w = rng.standard_normal((200, 256)) * 1e-3
    w[np.arange(200), rng.integers(0, 256, 200)] = rng.choice([-5, 5], 200)
    return w


def unlike_sub_blocks(rng):
    """Scales that round to nothing."""
    return (rng.standard_normal((200, 16, 16)) * np.exp2(rng.integers(-14, 1, (200, 16, 1)))).reshape(200, 256)


def small_for_float16(rng):
    return rng.standard_normal((200, 256)) * np.exp2(rng.integers(-30, -6, (200, 1)))


def tiny(rng):
    return rng.standard_normal((200, 256)) * np.exp2(rng.integers(-60, -30, (200, 1)))


def subnormal(rng):
    return rng.integers(-(2**22), 2**22, (100, 256)) * 1e-45


def large(rng):
    return rng.standard_normal((200, 256)) * np.exp2(rng.integers(0, 14, (200, 1)))


ORDINARY = [gaussian, student_t, laplace, sparse, real]
EDGES = [zeros, constant, flat_in_places, negative, positive, whole, signs, one_outlier, unlike_sub_blocks]
EDGES += [small_for_float16, tiny, subnormal, large]


def blocks(family):
    """(n, 256) float32, the same in every run; in everyday runs an eighth of them."""
    return np.ascontiguousarray(family(np.random.default_rng(5)).astype(f32)[:: tried(8, 1)])


def rmse(w, raw, kind):
    return float(np.sqrt(np.mean((decode(raw, kind).astype(np.float64) - w) ** 2)))


def same_floats(a, b):
    """Bit for bit, except that any NaN is as good as any other."""
    return a.shape == b.shape and bool(((a.view(np.uint32) == b.view(np.uint32)) | np.isnan(a) & np.isnan(b)).all())


def official_decode(raw, kind):
    with np.errstate(all="ignore"):
        return gguf.quants.dequantize(raw, gguf.GGMLQuantizationType(kind))


# ---- against ggml and the official package ---------------------------------------------------------------------------


@every_type
@pytest.mark.parametrize("family", [*ORDINARY, *EDGES], ids=lambda family: family.__name__)
def test_the_error_is_ggml_s_and_on_x86_the_bytes_are_and_both_referees_decode_them_as_we_do(kind, family, ggml):
    w = blocks(family)
    before = w.copy()
    ours, theirs = encode(w, kind), ggml.quantize(w, kind)
    back = decode(ours, kind)
    assert rmse(w, ours, kind) <= 1.02 * rmse(w, theirs, kind)
    assert same_floats(back, official_decode(ours, kind))
    assert np.array_equal(w.view(np.uint32), before.view(np.uint32))
    if SAME_COMPILER:
        assert np.array_equal(ours, theirs)
        assert same_floats(back, ggml.dequantize(ours, kind))
    elif family in ORDINARY:
        assert (ours == theirs).all(axis=1).mean() > 0.5


@pytest.mark.parametrize("kind", [GGMLType.Q2_K, GGMLType.Q4_K, GGMLType.Q5_K], ids=lambda kind: kind.name)
def test_the_two_percent_see_an_encoder_that_does_not_search(kind, ggml, monkeypatch):
    monkeypatch.setattr(kquant, "steps", lambda *_: [])
    monkeypatch.setenv("MINIQUANT_COMPILED", "0")  # the other form has no steps to take away
    w = blocks(gaussian)
    assert rmse(w, rows.encode(w, kind), kind) > 1.02 * rmse(w, ggml.quantize(w, kind), kind)


@every_type
def test_any_bytes_decode_as_both_referees_decode_them(kind, ggml):
    raw = np.random.default_rng(2).integers(0, 256, (tried(1000, 5000), kind.n_bytes), dtype=np.uint8)
    assert same_floats(decode(raw, kind), official_decode(raw, kind))
    if SAME_COMPILER:
        assert same_floats(decode(raw, kind), ggml.dequantize(raw, kind))


@every_type
@given(data=st.data())
def test_any_block_decodes_as_the_official_package_does(kind, data):
    raw = np.frombuffer(data.draw(st.binary(min_size=kind.n_bytes, max_size=kind.n_bytes)), np.uint8)[None]
    assert same_floats(decode(raw, kind), official_decode(raw, kind))


@every_type
@given(data=st.binary(min_size=1024, max_size=1024))
def test_any_finite_weights_are_encoded_as_ggml_does_or_as_well(kind, data, ggml):
    w = np.frombuffer(data, f32).reshape(1, 256)
    w = np.where(np.isfinite(w) & (np.abs(w) < 1e4), w, f32(0))
    ours, theirs = encode(w, kind), ggml.quantize(w, kind)
    assert rmse(w, ours, kind) <= 1.02 * rmse(w, theirs, kind)
    assert same_floats(decode(ours, kind), official_decode(ours, kind))


@every_type
@given(shape=st.lists(st.integers(0, 4), max_size=2), width=st.integers(0, 3), seed=st.integers(0, 2**32))
def test_any_shape_keeps_its_rows(kind, shape, width, seed):
    w = np.random.default_rng(seed).standard_normal((*shape, width * 256)).astype(f32)
    raw = encode(w, kind)
    assert raw.shape == (*shape, kind.bytes_of((width * 256,)))
    assert decode(raw, kind).shape == w.shape
    for at in np.ndindex(*shape):
        assert np.array_equal(encode(w[at], kind), raw[at])


@every_type
def test_weights_beyond_the_scale_s_float16_are_refused_by_the_writer(kind, tmp_path):
    for value, reason in ((1e30, "beyond float16"), (np.inf, "finite"), (np.nan, "finite"), (-np.inf, "finite")):
        w = np.random.default_rng(1).standard_normal((3, 512)).astype(f32)
        w[1, 300:] = value
        with pytest.raises(QuantizationError, match=rf"'w': the weight at row 1, column \d+ is .*{reason}"):
            write_gguf(tmp_path / "w.gguf", {"w": (w, kind)}, {})


@every_type
def test_writing_takes_at_most_three_times_the_largest_tensor(kind, tmp_path):
    w = np.ones((600, 3328), f32)
    write_gguf(tmp_path / "w.gguf", {"small": (w[:1], kind)}, {})
    tracemalloc.start()
    try:
        write_gguf(tmp_path / "w.gguf", {"w": (w, kind)}, {})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * w.nbytes


@every_type
def test_a_row_that_is_no_multiple_of_the_block_is_refused(kind):
    for width in (1, kind.block // 8, kind.block - 1, kind.block + 1, 3 * kind.block // 2):
        message = f"multiple of {kind.block} weights, found {width}; store it as F16 or F32"
        with pytest.raises(QuantizationError, match=message):
            encode(np.zeros((4, width), f32), kind)


@every_type
@pytest.mark.parametrize("threads", [1, 3])
def test_the_bytes_do_not_depend_on_pieces_chunks_or_threads(kind, threads, monkeypatch):
    w = blocks(student_t)[:17]
    raw, back = encode(w, kind), decode(encode(w, kind), kind)
    monkeypatch.setattr(kquant, "PIECE", 3)
    monkeypatch.setattr(rows, "CHUNK", 7 * 256)
    monkeypatch.setattr(rows, "THREADS", threads)
    monkeypatch.setattr(rows, "PARALLEL_MIN", 0)
    assert np.array_equal(encode(w, kind), raw)
    assert np.array_equal(decode(raw, kind), back)


def test_more_bits_mean_a_smaller_error():
    kinds = [kind for kind in KINDS if CODECS[kind].super_block]
    w = blocks(gaussian)
    errors = {k: rmse(w, encode(w, k), k) for k in kinds}
    bits = sorted(kinds, key=lambda k: k.bits_per_weight)
    assert sorted(errors, key=errors.get, reverse=True) == bits
    assert {k.name: k.bits_per_weight for k in bits} == {
        **{"Q2_K": 2.625, "Q3_K": 3.4375, "Q4_K": 4.5},
        **{"IQ4_XS": 4.25, "Q5_K": 5.5, "Q6_K": 6.5625},
    }


@every_type
def test_nothing_is_warned_about_where_weights_are_too_large_or_nan_either(kind):
    for value in (1e30, np.nan):
        decode(encode(np.full((2, 256), value, f32), kind), kind)


# ---- by hand ---------------------------------------------------------------------------------------------------------


def half(number):
    return list(np.float16(number).tobytes())


def test_q4_k_by_hand():
    """Every weight is one of its own: sub-block 0 has scale 1, sub-block 1 scale 2, the rest 0."""
    scales = [1, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0]  # byte 5: the minimum of sub-block 1
    nibbles = [(i % 16) | (15 - i % 16) << 4 for i in range(32)] + [0xFF] * 96
    raw = np.array([*half(0.5), *half(0.25), *scales, *nibbles], np.uint8)
    w = decode(raw, GGMLType.Q4_K)
    assert w[:32].tolist() == [0.5 * 1 * (i % 16) for i in range(32)]
    assert w[32:64].tolist() == [0.5 * 2 * (15 - i % 16) - 0.25 * 3 for i in range(32)]
    assert not w[64:].any()


def test_q5_k_by_hand():
    scales = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    high = [0b01] * 16 + [0b10] * 16  # the fifth bit of weights 0 to 15, and of 48 to 63
    raw = np.array([*half(1), *half(0), *scales, *high, *[0x21] * 32, *[0] * 96], np.uint8)
    w = decode(raw, GGMLType.Q5_K)
    assert w[:64].tolist() == [17.0] * 16 + [1.0] * 16 + [2.0] * 16 + [18.0] * 16


def test_q6_k_by_hand():
    low, high = [0] * 128, [0] * 64
    low[0], low[32], low[64] = 0x21, 0x43, 0x05  # weights 0 and 64, 32 and 96, 128
    high[0] = 0b11100100  # the upper bits of weights 0, 32, 64, 96: 0, 1, 2, 3
    scales = np.array([1, 0, -2, 0, 3, 0, -4, 0, 5, *[0] * 7], np.int8).view(np.uint8).tolist()
    w = decode(np.array([*low, *high, *scales, *half(1)], np.uint8), GGMLType.Q6_K)
    expected = [1 * (1 - 32), -2 * (3 + 16 - 32), 3 * (2 + 32 - 32), -4 * (4 + 48 - 32), 5 * (5 - 32)]
    assert w[[0, 32, 64, 96, 128]].tolist() == expected


def test_q3_k_by_hand():
    """A high bit that is set means nothing is subtracted; one that is not, 4."""
    mask, low = [0] * 32, [0] * 64
    mask[0], low[0] = 0b00010001, 0b11100100  # weights 0, 32, 64, 96 have 0, 1, 2, 3; 0 and 128 their high bit
    scales = [0x11] * 8 + [0b10101010] * 4  # every scale is 1 + 32, less 32
    w = decode(np.array([*mask, *low, *scales, *half(2)], np.uint8), GGMLType.Q3_K)
    assert w[[0, 32, 64, 96, 128, 160]].tolist() == [0, -6, -4, -2, 0, -8]


def test_q2_k_by_hand():
    """Sixteen bytes of scales, each with its minimum on top of it."""
    scales = [0x21, 0x00, 0x13] + [0] * 13
    raw = np.array([*scales, 0b11100100, *[0] * 63, *half(1), *half(0.5)], np.uint8)
    w = decode(raw, GGMLType.Q2_K)
    assert w[[0, 1, 32, 33]].tolist() == [0 - 1, 0 - 1, 3 * 1 - 0.5, -0.5]
    assert not w[64:].any()


# ---- Q8_K ------------------------------------------------------------------------------------------------------------

IN_C = """
import ctypes, importlib.util, sys
from pathlib import Path
import numpy as np
folder = Path(next(iter(importlib.util.find_spec("xllamacpp").submodule_search_locations)))
lib = ctypes.CDLL(str(next(folder.glob("xllamacpp*.so"))))
w = np.load(sys.argv[1])
raw, back = np.zeros((w.size // 256, 292), np.uint8), np.zeros_like(w)
for function, source, target in ((lib.quantize_row_q8_K_ref, w, raw), (lib.dequantize_row_q8_K, raw, back)):
    function.restype, function.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    function(source.ctypes.data, target.ctypes.data, w.size)
np.savez(sys.argv[2], raw=raw, back=back)
"""


def test_q8_k_is_ggml_s_to_the_byte_and_no_file_may_hold_it(tmp_path):
    w = np.concatenate([blocks(family) for family in (gaussian, student_t, negative, signs, one_outlier, zeros, tiny)])
    np.save(tmp_path / "w.npy", w)
    command = [sys.executable, "-c", IN_C, str(tmp_path / "w.npy"), str(tmp_path / "out.npz")]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    theirs = np.load(tmp_path / "out.npz")
    raw = encode_q8_k(w)
    assert np.array_equal(raw, theirs["raw"])
    assert np.array_equal(decode_q8_k(raw), theirs["back"])
    assert np.abs(decode_q8_k(raw) - w).max() <= np.abs(w).max() / 127
    with pytest.raises(QuantizationError, match="no codec for Q8_K here"):
        encode(w, GGMLType.Q8_K)
    for family in (*ORDINARY, *EDGES):  # there is no warning
        assert encode_q8_k(blocks(family)).shape[1] == 292


def test_q8_k_s_sums_are_those_of_sixteen_integers():
    p = split_fields(encode_q8_k(blocks(gaussian)), FIELDS)
    q, sums = p["qs"].view(np.int8).astype(int), np.ascontiguousarray(p["bsums"]).view("<i2")
    assert np.array_equal(q.reshape(-1, 16, 16).sum(axis=2), sums)


def test_a_file_of_every_such_type_is_read_back(tmp_path):
    w = blocks(gaussian).reshape(-1, 512)
    write_gguf(tmp_path / "w.gguf", {kind.name: (w, kind) for kind in KINDS}, {})
    reader = gguf.GGUFReader(tmp_path / "w.gguf")
    with read_gguf(tmp_path / "w.gguf") as file:
        for tensor in reader.tensors:
            assert np.array_equal(file.tensor(tensor.name), official_decode(tensor.data, tensor.tensor_type))
