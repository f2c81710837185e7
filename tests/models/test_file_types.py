"""The types of a file's tensors, against what llama.cpp's own quantizer made of the same models.

``quantizer_models`` has the models, and says how its answers were made.
"""

from __future__ import annotations

import json
from functools import cache

import gguf
import pytest
from quantizer_models import MODELS, STORED, summary

from miniquant.core.errors import SchemeError
from miniquant.formats.gguf import GGMLType, Typed, ValueType
from miniquant.models import file_types
from miniquant.models.file_types import FILE_TYPES, PRESETS, Model, file_type, is_quantized, place, preset

ANSWERS = json.loads(STORED.read_text("utf-8"))


def metadata(name):
    what = MODELS[name]
    pairs = {f"{what['architecture']}.{key}": value for key, value in what["keys"].items()}
    return {"general.architecture": what["architecture"]} | pairs


@pytest.fixture
def asked_once(monkeypatch):
    """What a name says is the same in every preset."""
    for function in (file_types._part, file_types.is_quantized, file_types.place):
        monkeypatch.setattr(file_types, function.__name__, cache(function))


@pytest.mark.parametrize("name", MODELS)
def test_the_types_of_every_preset_are_llama_cpp_s(name, asked_once):
    shapes = MODELS[name]["shapes"]
    kept = dict.fromkeys(sorted(shapes, key=place), GGMLType.F32)
    for preset_, kind in PRESETS.items():
        found = {tensor: chosen.name for tensor, chosen in (kept | kind.types_of(shapes, metadata(name))).items()}
        assert summary(found) == ANSWERS[name][preset_].rsplit(";", ANSWERS[name][preset_].count(";") - 1)[0], preset_


def test_llama_cpp_was_asked_for_every_preset_of_every_model():
    assert ANSWERS.keys() == {*MODELS, "MiniGPT"}
    assert all(list(found) == list(PRESETS) for found in ANSWERS.values())
    assert not any("refused" in answer for found in ANSWERS.values() for answer in found.values())


def test_the_presets_have_the_numbers_of_the_official_package():
    official = {int(kind): kind.name.removeprefix("MOSTLY_").removeprefix("ALL_") for kind in gguf.LlamaFileType}
    assert {name: official[kind.number] for name, kind in PRESETS.items()} == {name: name for name in PRESETS}
    assert FILE_TYPES["Q4_K_M"] is PRESETS["Q4_K_M"]


def test_a_model_says_its_layers_and_its_heads():
    keys = {"general.architecture": "x", "x.block_count": 3, "x.attention.head_count": 8}
    assert Model.of(keys) == ("x", 3, 1, 0)
    assert Model.of(keys | {"x.attention.head_count_kv": 2, "x.expert_count": 8}) == ("x", 3, 4, 8)
    assert Model.of(keys | {"x.attention.head_count_kv": [0, 4]}).n_gqa == 0
    assert Model.of(keys | {"x.attention.head_count": [6, 8], "x.attention.head_count_kv": [2, 8]}).n_gqa == 3
    typed = {key: Typed(value, ValueType.UINT32) for key, value in keys.items()}
    assert Model.of(typed) == Model.of(keys)
    assert Model.of({"general.architecture": "clip"}) == ("clip", 0, 0, 0)
    with pytest.raises(SchemeError, match=r"the metadata lacks x\.block_count: the types of a mix depend"):
        Model.of({"general.architecture": "x", "y.block_count": 3})
    with pytest.raises(SchemeError, match=r"the metadata lacks unknown\.block_count"):
        Model.of({})


def test_a_file_of_floats_needs_no_layers():
    shapes = {"blk.0.ffn_up.weight": (2, 40), "token_embd.weight": (2, 40), "blk.0.ffn_up.bias": (2,)}
    for name in ("F16", "BF16", "F32"):
        kind = GGMLType[name]
        assert preset(name).types_of(shapes, {}) == {"token_embd.weight": kind, "blk.0.ffn_up.weight": kind}


def test_a_file_of_one_type_gives_its_heads_more_bits_where_a_preset_goes_by_the_rules():
    shapes = dict.fromkeys(("token_embd.weight", "output.weight", "blk.0.attn_v.weight"), (2, 256))
    keys = {"general.architecture": "llama", "llama.block_count": 1}
    named = {name: kind.name for name, kind in file_type("Q4_0").types_of(shapes, keys).items()}
    assert named == {"output.weight": "Q8_0", "token_embd.weight": "Q8_0", "blk.0.attn_v.weight": "Q4_0"}
    named = {name: kind.name for name, kind in preset("Q4_0").types_of(shapes, keys).items()}
    assert named == {"output.weight": "Q6_K", "token_embd.weight": "Q4_0", "blk.0.attn_v.weight": "Q4_0"}
    assert file_type(PRESETS["Q5_K_M"]) is PRESETS["Q5_K_M"]


@pytest.mark.parametrize("wrong", ["Q4_K", "q9", "", None, GGMLType.Q8_1])
def test_a_name_that_llama_cpp_s_quantizer_does_not_have_is_refused_with_those_that_there_are(wrong):
    with pytest.raises(SchemeError, match=r"no type .*; there are F32, F16, Q4_0, Q4_1, Q5_0, .*Q5_K_M, Q6_K"):
        preset(wrong)


@pytest.mark.parametrize(
    ("name", "shape", "quantized"),
    [
        ("blk.0.ffn_up.weight", (2, 32), True),
        ("blk.0.ffn_up.weight", (1, 32), False),  # ggml counts one dim
        ("blk.0.ffn_up_exps.weight", (2, 1, 32), True),
        ("blk.0.ffn_up.weight", (32,), False),
        ("blk.0.ffn_up.weight", (), False),
        ("blk.0.ffn_up.bias", (2, 32), False),
        ("position_embd.weight", (2, 32), False),
    ],
)
def test_matrices_are_quantized_and_vectors_are_not(name, shape, quantized):
    assert is_quantized(name, shape) is quantized
