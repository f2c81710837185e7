"""The registry of tensor types: every type says about itself what others need, and a new one is a file."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import gguf
import numpy as np
import pytest

from miniquant.core.errors import QuantizationError
from miniquant.formats.gguf import GGMLType, RawTensor, codecs, decode, encode, write_gguf
from miniquant.formats.gguf.codecs import CODECS, Codec, codec_of
from miniquant.formats.gguf.codecs.codec import split_fields
from miniquant.formats.gguf.codecs.q8_1 import FIELDS as Q8_1_FIELDS
from miniquant.formats.gguf.codecs.q8_k import FIELDS as Q8_K_FIELDS
from miniquant.formats.gguf.fields import block_fields
from miniquant.formats.gguf.types import LAYOUTS
from miniquant.inspect.hexview import hexview, ribbon
from miniquant.models.file_types import FILE_TYPES

every_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=lambda codec: codec.dtype.name)
f32 = np.float32


def test_the_types_stand_in_the_order_of_ggml_s_numbers():
    assert list(CODECS) == sorted(CODECS)
    assert all(codec.dtype is dtype for dtype, codec in CODECS.items())


@every_codec
def test_a_type_stands_in_a_file_of_its_own_name(codec):
    assert type(codec).__module__ == f"{codecs.__name__}.{codec.dtype.name.lower()}"
    assert type(codec).__name__ == codec.dtype.name


def test_a_file_in_the_folder_is_all_that_a_new_type_needs(tmp_path, monkeypatch):
    """A package like ours, with ours' modules and one more, which no line names."""
    (tmp_path / "i8.py").write_text(
        "from miniquant.formats.gguf.codecs.codec import Codec\n"
        "from miniquant.formats.gguf.types import GGMLType\n"
        "class I8(Codec):\n"
        "    dtype, file_type, description = GGMLType.I8, 99, 'a byte'\n"
        "    def decode(self, raw, out, scratch):\n"
        "        out[...] = raw.view('i1')\n"
    )
    monkeypatch.setattr(codecs, "__path__", [*codecs.__path__, str(tmp_path)])
    try:
        codecs.register_all()
        assert list(CODECS) == sorted(CODECS)
        assert decode(np.array([255, 1], np.uint8), "i8").tolist() == [-1, 1]
    finally:
        CODECS.pop(GGMLType.I8, None)
        sys.modules.pop(f"{codecs.__name__}.i8", None)


def test_two_codecs_of_one_type_are_a_mistake_of_the_programmer():
    with pytest.raises(TypeError, match=r"Q8_0 has a codec already: miniquant\.formats\.gguf\.codecs\.q8_0"):
        type("Again", (Codec,), {"dtype": GGMLType.Q8_0})


@every_codec
@pytest.mark.parametrize("spelling", [str, str.lower])
def test_a_type_may_be_given_by_its_name(codec, spelling):
    w = np.random.default_rng(0).standard_normal(256).astype(f32)
    name = spelling(codec.dtype.name)
    assert codec_of(name) is codec
    raw = np.arange(codec.dtype.n_bytes, dtype=np.uint8)
    assert np.array_equal(decode(raw, name), decode(raw, codec.dtype))
    if codec.encodes:
        assert np.array_equal(encode(w, name), encode(w, codec.dtype))


@pytest.mark.parametrize("wrong", ["Q9_9", "", "Q4_K_M", "Q8_K", None, 8, 3.5, GGMLType.Q8_1])
def test_what_is_no_type_with_a_codec_is_refused_with_those_that_there_are(wrong):
    for call in (lambda: encode(np.zeros(256, f32), wrong), lambda: decode(np.zeros(256, np.uint8), wrong)):
        with pytest.raises(QuantizationError, match=r"no codec for .* here; there are F32, F16, Q4_0, "):
            call()


# ---- what a type says about itself -----------------------------------------------------------------------------------


@every_codec
def test_the_fields_of_a_block_are_its_bytes_in_order(codec):
    raw = np.arange(3 * codec.dtype.n_bytes).reshape(3, -1).astype(np.uint8)
    parts = codec.split(raw)
    assert list(parts) == [field.name for field in codec.fields]
    assert np.array_equal(np.concatenate(list(parts.values()), axis=1), raw)
    assert all(np.shares_memory(part, raw) for part in parts.values())
    assert {field.category for field in codec.fields} <= {"header", "scales", "values"}
    assert all((field.text and field.text[0].islower()) or field.text.startswith("byte") for field in codec.fields)


@pytest.mark.parametrize("codec", [c for c in CODECS.values() if c.super_block], ids=lambda codec: codec.dtype.name)
def test_a_super_block_is_a_whole_number_of_sub_blocks(codec):
    assert codec.dtype.block % codec.sub_block == 0 < codec.sub_block < codec.dtype.block


@pytest.mark.parametrize(("n_bytes", "fields"), [(36, Q8_1_FIELDS), (292, Q8_K_FIELDS)], ids=["Q8_1", "Q8_K"])
def test_the_fields_of_activations_which_no_file_holds_are_their_bytes_too(n_bytes, fields):
    raw = np.arange(2 * n_bytes).reshape(2, -1).astype(np.uint8)
    assert np.array_equal(np.concatenate(list(split_fields(raw, fields).values()), axis=1), raw)


@every_codec
def test_a_block_s_fields_are_found_where_the_codec_put_them(codec):
    """The scale is the float16 that the file's field shows; in a block of zeros there is none."""
    w = np.random.default_rng(4).standard_normal(codec.dtype.block).astype(f32)
    raw = encode(w, codec.dtype) if codec.encodes else np.arange(1, codec.dtype.n_bytes + 1).astype(np.uint8)
    found = block_fields(raw, codec.dtype)
    assert [field.name for field in found] == [field.name for field in codec.fields]
    assert found[-1].end == len(raw) == codec.dtype.n_bytes
    for field, part in zip(found, codec.fields, strict=True):
        if part.code == "<e":
            assert field.value == np.frombuffer(raw.tobytes()[field.start : field.end], "<f2")[0] != 0


@every_codec
def test_hexview_names_the_fields_and_the_table_describes_the_type(codec, tmp_path):
    w = np.random.default_rng(4).standard_normal((2, 256)).astype(f32)
    raw = np.ones((2, codec.dtype.bytes_of((256,))), np.uint8)
    tensor = (w, codec.dtype) if codec.encodes else RawTensor(raw, codec.dtype, w.shape)
    write_gguf(tmp_path / "w.gguf", {"w": tensor}, {})
    picture = repr(hexview(tmp_path / "w.gguf", 0, 512))
    if codec.dtype.quantized:
        for field in codec.fields:
            assert f"{field.name} of block 0" in picture or f"{field.name}, " in picture
    assert codec.dtype.name in repr(ribbon(tmp_path / "w.gguf"))
    assert codec.dtype.name in codec.dtype.description
    assert not codec.dtype.quantized or codec.description in codec.dtype.description


@every_codec
def test_the_file_type_is_the_official_package_s(codec):
    newer = {41: "MOSTLY_Q2_0"}  # than the package
    name = newer.get(codec.file_type) or gguf.LlamaFileType(codec.file_type).name
    assert name.removeprefix("MOSTLY_").removeprefix("ALL_").removesuffix("_MOE").removesuffix(
        "_S"
    ) == codec.dtype.name.removesuffix("_S")
    if codec.encodes:
        assert FILE_TYPES[codec.dtype.name].number == codec.file_type
    else:
        assert codec.dtype.name not in FILE_TYPES


@pytest.mark.parametrize("codec", [c for c in CODECS.values() if c.encodes], ids=lambda codec: codec.dtype.name)
def test_the_head_beside_a_type_is_no_coarser_and_fits_the_same_rows(codec):
    head = codec.head or codec.dtype
    assert head in CODECS
    assert head.bits_per_weight >= max(6, codec.dtype.bits_per_weight)
    assert codec.dtype.block % head.block == 0


@every_codec
def test_integers_that_are_put_into_blocks_are_decoded(codec):
    if codec.levels is None:
        with pytest.raises(NotImplementedError):
            codec.put_levels(np.zeros((1, 32), np.int16), np.zeros((1, 18), np.uint8))
        return
    low, high = codec.levels
    q = np.random.default_rng(1).integers(low, high + 1, (5, codec.dtype.block)).astype(np.int16)
    out = np.zeros((5, codec.dtype.n_bytes), np.uint8)
    out.view("<f2")[:, 0] = 1
    codec.put_levels(q, out)
    assert np.array_equal(decode(out, codec.dtype), q)


def test_the_codecs_need_neither_torch_nor_numba():
    code = "import miniquant.formats.gguf.codecs, sys; assert not {'torch', 'numba', 'llvmlite'} & sys.modules.keys()"
    source = str(Path(import_module("miniquant").__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": source}, timeout=60)


@every_codec
def test_a_type_of_ggml_says_what_its_codec_says_of_a_block(codec):
    assert LAYOUTS[codec.dtype] == codec.description
