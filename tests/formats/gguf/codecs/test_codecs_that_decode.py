"""The types whose blocks are decoded here and not encoded, against the ``gguf`` package and ggml."""

from __future__ import annotations

import platform
from base64 import b64decode

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thorough import THOROUGH

from miniquant.core.errors import QuantizationError, SchemeError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, RawTensor, decode, encode, read_gguf, write_gguf
from miniquant.formats.gguf.codecs import CODECS, codebooks, rows
from miniquant.models.file_types import FILE_TYPES, file_type

KINDS = [kind for kind, codec in CODECS.items() if not codec.encodes]
SAME_COMPILER = platform.machine() in ("x86_64", "AMD64")  # others fuse a product with a sum
f32 = np.float32
every_type = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@pytest.fixture(scope="module")
def ggml():
    with LlamaCpp(None) as llama:
        yield llama


def same_floats(a, b):
    """Bit for bit, except that any NaN is as good as any other."""
    return a.shape == b.shape and bool(((a.view(np.uint32) == b.view(np.uint32)) | np.isnan(a) & np.isnan(b)).all())


def official_decode(raw, kind):
    with np.errstate(all="ignore"):
        return gguf.quants.dequantize(raw, gguf.GGMLQuantizationType(kind))


def test_these_are_the_types():
    assert [kind.name for kind in KINDS] == ["IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ3_S", "IQ2_S"]


@every_type
def test_any_bytes_decode_as_both_referees_decode_them(kind, ggml):
    raw = np.random.default_rng(2).integers(0, 256, (5000, kind.n_bytes), dtype=np.uint8)
    assert same_floats(decode(raw, kind), official_decode(raw, kind))
    if SAME_COMPILER:
        assert same_floats(decode(raw, kind), ggml.dequantize(raw, kind))


@every_type
@given(data=st.data())
def test_any_block_decodes_as_the_official_package_does(kind, data):
    raw = np.frombuffer(data.draw(st.binary(min_size=kind.n_bytes, max_size=kind.n_bytes)), np.uint8)[None]
    assert same_floats(decode(raw, kind), official_decode(raw, kind))


WEIGHTS = (np.random.default_rng(3).standard_normal((1, 256)) * 0.02).astype(f32)
ENCODED = {  # these weights by ggml, which makes tables for seconds before its first block of two bits
    "IQ2_XXS": "Ug1uAyIi+rwG+6JMDFJUHlPumfGMsXMl3KuFvrwc0ELl5Ht8GFKozcmu0VStpMJAkagqdgz8Dy7bn9RM3RzS5yzE",
    "IQ2_XS": "aQ6I9APywzSzsDqpj3gOmJ3kaOahlcrh4r3/oG8LJCs3TpNQzTYxTp3sioXdAneKJ4lRHu24Dthd/QGlj56iZzVCj715q2y5mLo=",
    "IQ2_S": "TQ7RA1cgVNkO8EhSk9fY4VVA3XQ28CqPsyFjwA6ySdl7Pvr5itnQLMxSs+rgzlEFlyM4mwf2RoHFVA9YbX/ay3MpUALs"
    "KQSHhDOPvXqrbLmYqQ==",
    "IQ3_XXS": "rwgVVwpMFxIlGz22bVFlYxZLtmeYrp14FdJPYWLBbLY/JH9TRS9UARIaYoaaKd8KSHvOcAWqkRBRugrNjFRa7xck+rwG"
    "+1QeU95zJdyr0ELlpKjNye7CQJG4Dy7bj9LnLKQ=",
    "IQ3_S": "3Qh7SRYtKoZJIMqs3fLQcovnPd8hnn/plrMyxG+FgkHOL0//3b6pGw6OyhI4VPB+kTd00AkV0AsphxOfW55V4RkvAAKd"
    "KAGWiSb6+YrZ0CzMUrPq4M5RBZcjOJsH9kaBxVQPWG1/2stzKc+5qrg=",
}


def encoded(kind):
    return np.frombuffer(b64decode(ENCODED[kind.name]), np.uint8)[None]


@every_type
def test_weights_that_ggml_encoded_come_back_near_what_they_were(kind):
    back = decode(encoded(kind), kind)
    assert same_floats(back, official_decode(encoded(kind), kind))
    assert np.sqrt(np.mean((back - WEIGHTS) ** 2)) < (0.4 if "IQ2" in kind.name else 0.25) * WEIGHTS.std()


@pytest.mark.skipif(not SAME_COMPILER, reason="its search for a scale ends elsewhere if a product joins a sum")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if THOROUGH or "IQ3" in kind.name], ids=lambda kind: kind.name)
def test_ggml_encodes_them_to_these_bytes(kind, ggml):
    assert np.array_equal(ggml.quantize(WEIGHTS, kind, np.ones(256)), encoded(kind))


PLACES = {  # type: the bytes of a block, then where the number of its first point lies: its low byte, what is above it
    "IQ2_XXS": (66, 2, None),
    "IQ2_XS": (74, 2, 3),
    "IQ2_S": (82, 2, 66),
    "IQ3_XXS": (98, 2, None),
    "IQ3_S": (110, 2, 66),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_codebook_is_the_one_that_ggml_decodes_with(name, ggml):
    """Blocks with d = 1 and a scale of 0, whose first point is each of the list in turn."""
    points, (n_bytes, low, high) = getattr(codebooks, name), PLACES[name]
    raw = np.zeros((len(points), n_bytes), np.uint8)
    raw[:, :2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
    raw[:, low] = np.arange(len(points)) & 255
    if high is not None:
        raw[:, high] = np.arange(len(points)) >> 8
    found = ggml.dequantize(raw, GGMLType[name])[:, : points.shape[1]]
    factor = {"IQ2": 1 / 8, "IQ3_XXS": 1 / 4, "IQ3_S": 1}[name if "IQ3" in name else "IQ2"]
    assert np.array_equal(points, found / factor)
    assert len({tuple(point) for point in points.tolist()}) == len(points)


def test_the_points_of_two_bits_have_an_even_sum():
    for name in ("IQ2_XXS", "IQ2_XS", "IQ2_S"):
        digits = np.searchsorted([8, 25, 43], getattr(codebooks, name))
        assert not (digits.sum(axis=1) % 2).any()


@pytest.mark.parametrize("name", PLACES)
def test_a_codebook_holds_float32_so_that_decoding_needs_nothing_wider(name):
    assert getattr(codebooks, name).dtype == f32


def test_seven_signs_give_the_eighth():
    found = codebooks.signs_of_seven(np.arange(128))
    assert (found.prod(axis=1) == 1).all()
    assert np.array_equal(found[:, :7] < 0, np.arange(128)[:, None] >> np.arange(7) & 1)


@every_type
def test_encoding_is_refused_and_no_model_is_offered_in_the_type(kind):
    with pytest.raises(QuantizationError, match=f"{kind.name} is decoded here and not encoded"):
        encode(np.zeros((1, 256), f32), kind)
    with pytest.raises(SchemeError):
        file_type(kind)
    assert kind.name not in FILE_TYPES


@every_type
@pytest.mark.parametrize("threads", [1, 3])
def test_the_weights_do_not_depend_on_chunks_or_threads(kind, threads, monkeypatch):
    raw = np.random.default_rng(4).integers(0, 64, (37, kind.n_bytes), dtype=np.uint8)
    back = decode(raw, kind)
    monkeypatch.setattr(rows, "CHUNK", 7 * 256)
    monkeypatch.setattr(rows, "THREADS", threads)
    monkeypatch.setattr(rows, "PARALLEL_MIN", 0)
    assert np.array_equal(decode(raw, kind), back)


def test_a_file_of_every_such_type_is_read(tmp_path):
    tensors = {}
    for kind in KINDS:
        raw = np.random.default_rng(5).integers(0, 256, (8, kind.n_bytes), np.uint8)
        raw[:, :2] = encoded(kind)[:, :2]  # a scale that is a number
        tensors[kind.name] = RawTensor(raw.reshape(4, -1), kind, (4, 512))
    write_gguf(tmp_path / "w.gguf", tensors, {})
    with read_gguf(tmp_path / "w.gguf") as file:
        for tensor in gguf.GGUFReader(tmp_path / "w.gguf").tensors:
            assert np.array_equal(file.tensor(tensor.name), official_decode(tensor.data, tensor.tensor_type))
