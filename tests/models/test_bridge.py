"""The bridge to llama.cpp: the file's weights are the frozen model's to the bit, and llama.cpp runs it."""

from __future__ import annotations

import copy
import shutil
from fractions import Fraction
from importlib import resources

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from miniquant.core.errors import QuantizationError, SchemeError
from miniquant.evaluate.quality import evaluate, evaluate_in_llamacpp
from miniquant.formats.gguf import GGMLType, decode
from miniquant.models import corpus
from miniquant.models.bridge import (
    GGUF_TYPES,
    STORED,
    ExporterConfig,
    JsonExporterConfig,
    ModelExporter,
    encode_quantized,
    gguf_type,
    gguf_types_table,
)
from miniquant.models.quantizer import freeze, quantize_linear_layers, quantized_layers
from miniquant.models.to_gguf import gguf_name
from miniquant.quantization.config import Config, QuantizationConfig
from miniquant.quantization.grids import GRID_RULES, Grid, QuantizedMatrix, dequantize
from miniquant.quantization.observers import MSE
from miniquant.quantization.spec import Dtype, QSchemeType, QuantizationSpec, RoundType, ScaleType

f32 = np.float32
SPECS = {f"{spec.dtype.name} as {kind.name}": spec for spec, kind in GGUF_TYPES.items()}
RULES = SPECS | {name: GRID_RULES[name] for name in ("Q8_0", "Q4_0", "Q4_1")}
every_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
Q4_1 = SPECS["uint4 as Q4_1"]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    """A folder with a tokenizer, as a model's folder is."""
    folder = tmp_path_factory.mktemp("minigpt")
    with resources.as_file(resources.files("miniquant").joinpath("assets/tokenizer.json")) as path:
        shutil.copy(path, folder)
    return folder


def frozen(model, rule, **others):
    layers, exclude = others.pop("layers", {}), others.pop("exclude", ())
    config = Config(QuantizationConfig(rule, **others), layers, exclude)
    return freeze(quantize_linear_layers(copy.deepcopy(model), config))


def official(path):
    """name -> (type, weights), through the official package alone."""
    return {
        t.name: (t.tensor_type.name, gguf.quants.dequantize(t.data, t.tensor_type))
        for t in gguf.GGUFReader(path).tensors
    }


# ---- which specification is which type -------------------------------------------------------------------------------


@every_spec
def test_rounding_and_observer_leave_no_trace_in_a_block_and_do_not_count(spec):
    from dataclasses import replace

    other = replace(spec, round_method=RoundType.half_away, observer_cls=MSE, ch_axis=0)
    assert gguf_type(other) == gguf_type(spec) == GGUF_TYPES[spec]


def test_the_types_of_ggml_s_own_rules_are_themselves_and_other_targets_have_none():
    assert {name: gguf_type(GRID_RULES[name]).name for name in ("Q8_0", "Q4_0", "Q4_1")} == {
        k: k for k in RULES if k[0] == "Q"
    }
    with pytest.raises(SchemeError, match="no GGUF type holds int3_g64; there are Q8_0, Q4_0, Q4_1"):
        gguf_type(GRID_RULES["int3_g64"])


@pytest.mark.parametrize(
    ("change", "nearest"),
    [
        ({"group_size": 64}, "Q4_1 needs group_size=32 (found 64)"),
        ({"scale_type": ScaleType.float32}, "Q4_1 needs scale_type=float16 (found float32)"),
        ({"dtype": Dtype.int4}, "Q4_0 needs symmetric=True (found False); Q4_1 needs dtype=uint4 (found int4)"),
        ({"dtype": Dtype.uint8}, "Q8_0 needs symmetric=True (found False); Q4_1 needs dtype=uint4 (found uint8)"),
        ({"dtype": Dtype.int3, "symmetric": True}, "Q8_0 needs dtype=int8 (found int3); Q4_0 needs dtype=int4 (found"),
        (
            {"qscheme": QSchemeType.per_channel, "group_size": None},
            "Q4_1 needs qscheme=per_group (found per_channel), group_size=32 (found None)",
        ),
    ],
)
def test_a_specification_without_a_type_lists_the_nearest_and_what_to_change(change, nearest):
    from dataclasses import replace

    spec = replace(Q4_1, **change)
    with pytest.raises(SchemeError) as error:
        gguf_type(spec)
    message = str(error.value)
    assert message.startswith(f"no GGUF type holds {spec.name}. Nearest first: ")
    assert f"Nearest first: {nearest}" in message
    assert all(f"{kind} needs" in message for kind in ("Q8_0", "Q4_0", "Q4_1"))


@every_spec
def test_the_changes_that_a_message_asks_for_are_enough(spec):
    """From every neighbour of a specification in the table: do what the first advice says, and it has a type."""
    from dataclasses import replace

    choices = {
        "dtype": Dtype, "symmetric": (True, False), "scale_type": ScaleType, "group_size": (16, 64, 32),
    }  # fmt: skip
    for name, values in choices.items():
        for value in values:
            tried = replace(spec, **{name: value})
            try:
                gguf_type(tried)
            except SchemeError as error:
                advice = str(error).split("Nearest first: ")[1].split("; ")[0]
                kind, _, changes = advice.partition(" needs ")
                mended = {}
                for change in changes.split(", "):
                    field, _, wanted = change.split(" ")[0].partition("=")
                    enum = {"dtype": Dtype, "scale_type": ScaleType}.get(field)
                    mended[field] = enum[wanted] if enum else {"True": True, "False": False, "32": 32}[wanted]
                assert gguf_type(replace(tried, **mended)).name == kind


def test_the_table_in_the_book_has_a_row_for_every_entry():
    lines = gguf_types_table().splitlines()
    assert len(lines) == 2 + len(GGUF_TYPES)
    assert lines[0] == "| GGUF type | " + " | ".join(f"`{name}`" for name in STORED) + " | bits a weight |"
    assert "| Q4_1 | uint4 | False | float16 | per_group | 32 | 5.0 |" in lines
    assert len({line.count("|") for line in lines}) == 1


# ---- blocks ----------------------------------------------------------------------------------------------------------


@every_spec
@given(seed=st.integers(0, 2**32 - 1), power=st.integers(-18, 10))
def test_the_blocks_of_a_specification_decode_to_its_own_weights_to_the_bit(spec, seed, power):
    w = (np.random.default_rng(seed).standard_normal((3, 64)) * 2.0**power).astype(f32)
    grid = spec.fit(w)
    q = spec.quantize(w, grid)
    raw = encode_quantized(QuantizedMatrix(q, grid), GGUF_TYPES[spec])
    expected = dequantize(q, grid)
    for found in (
        decode(raw, GGUF_TYPES[spec]),
        gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[GGUF_TYPES[spec].name]),
    ):
        assert np.array_equal(found + f32(0), expected + f32(0))  # -0.0 and 0.0 are the same weight
        assert np.array_equal((found + f32(0)).view(np.uint32), (expected + f32(0)).view(np.uint32))


def test_an_unsigned_grid_that_is_not_symmetric_does_not_fit_a_signed_type():
    grid = Grid(np.ones((1, 1), f32), np.full((1, 1), -7, f32), 0, 15)
    with pytest.raises(QuantizationError, match="holds integers from -8 to 7, found some from 0 to 15"):
        encode_quantized(QuantizedMatrix(np.zeros((1, 32), np.int16), grid), GGMLType.Q4_0)


# ---- files -----------------------------------------------------------------------------------------------------------


@every_rule
def test_the_file_holds_the_frozen_weights_to_the_bit_as_the_official_package_reads_them(
    rule, shallow, model_dir, tmp_path
):
    model = frozen(shallow, rule)
    path = ModelExporter(export_dir=tmp_path / "out").export_gguf_model(model, model_dir, "minigpt", embedding="F32")
    assert path == tmp_path / "out" / "minigpt.gguf"
    found = official(path)
    state = model.state_dict()
    assert len(found) == len(state)
    for name, w in state.items():
        kind, weights = found[gguf_name(name)]
        owner = name.rpartition(".")[0]
        quantized = name.endswith(".weight") and owner in quantized_layers(model)
        assert kind == (gguf_type(rule).name if quantized else "F32")
        assert np.array_equal(weights.reshape(w.shape), w.numpy())


@pytest.mark.parametrize("rule", [RULES["Q8_0"], RULES["Q4_0"], RULES["Q4_1"]], ids=lambda rule: rule.name)
def test_llama_cpp_runs_the_file_with_the_frozen_model_s_quality(rule, trained, model_dir, tmp_path):
    """It computes in its own way (inputs in 8 bits, keys and values in 16): the tokens' distributions hardly move."""
    model = frozen(trained, rule)
    windows = corpus.held_out_windows(limit=2)
    path = ModelExporter(export_dir=tmp_path).export_gguf_model(model, model_dir, "gpt2", embedding="F32")
    here, there = evaluate(model, windows), evaluate_in_llamacpp(path, windows, model)
    assert abs(here.nll.mean() - there.nll.mean()) < 5e-3
    assert there.kl.mean() < 1e-3


def test_by_default_the_embedding_of_a_4_bit_model_is_q8_0(trained, model_dir, tmp_path):
    path = ModelExporter(export_dir=tmp_path).export_gguf_model(frozen(trained, Q4_1), model_dir, "minigpt")
    reader = gguf.GGUFReader(path)
    assert {t.name: t.tensor_type.name for t in reader.tensors}["token_embd.weight"] == "Q8_0"
    assert reader.get_field("general.file_type").contents() == int(gguf.LlamaFileType.MOSTLY_Q4_1)
    assert reader.get_field("general.quantization_version").contents() == gguf.GGML_QUANT_VERSION


def test_layers_with_rules_of_their_own_have_types_of_their_own_and_excluded_ones_stay_f32(
    trained, model_dir, tmp_path
):
    model = frozen(
        trained, Q4_1, exclude=["layers.0.mlp.fc2"], layers={"*.attn.qkv": QuantizationConfig(GRID_RULES["Q8_0"])}
    )
    found = official(ModelExporter(export_dir=tmp_path).export_gguf_model(model, model_dir, "minigpt"))
    kinds = {name: kind for name, (kind, _) in found.items()}
    assert kinds["blk.0.ffn_down.weight"] == "F32"
    assert kinds["blk.3.attn_qkv.weight"] == "Q8_0"
    assert kinds["blk.1.ffn_down.weight"] == kinds["blk.0.ffn_up.weight"] == "Q4_1"


def test_a_model_that_is_not_frozen_is_refused_before_anything_is_written(trained, model_dir, tmp_path):
    model = quantize_linear_layers(copy.deepcopy(trained), Config(QuantizationConfig(Q4_1)))
    with pytest.raises(SchemeError, match=r"'layers\.0\.attn\.qkv' still rounds .* freeze it first"):
        ModelExporter(export_dir=tmp_path / "out").export_gguf_model(model, model_dir, "minigpt")
    with pytest.raises(SchemeError, match="nothing in this model is quantized"):
        ModelExporter(export_dir=tmp_path / "out").export_gguf_model(trained, model_dir, "minigpt")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("rule", "others", "message"),
    [
        (QuantizationSpec(Dtype.int3), {}, r"'layers\.0\.attn\.qkv': no GGUF type holds int3 .* Nearest first: Q8_0"),
        (Q4_1, {"input_tensors": QuantizationSpec(Dtype.int8, is_dynamic=True)}, "a GGUF file holds weights only"),
        (Q4_1, {"output_tensors": QuantizationSpec(Dtype.int8, is_dynamic=True)}, "a GGUF file holds weights only"),
    ],
)
def test_what_a_file_cannot_hold_is_refused_before_anything_is_written(
    rule, others, message, trained, model_dir, tmp_path
):
    with pytest.raises(SchemeError, match=message):
        exporter = ModelExporter(export_dir=tmp_path / "out")
        exporter.export_gguf_model(frozen(trained, rule, **others), model_dir, "minigpt")
    assert not (tmp_path / "out").exists()


def test_a_folder_in_the_place_of_the_configuration_is_refused(tmp_path):
    with pytest.raises(SchemeError, match=r"config='out' is no ExporterConfig; a folder is export_dir='out'"):
        ModelExporter("out")
    assert ModelExporter(export_dir=tmp_path).config == ExporterConfig(JsonExporterConfig())


def test_an_unknown_model_and_a_folder_without_its_tokenizer_are_refused(trained, model_dir, tmp_path):
    model, exporter = frozen(trained, Q4_1), ModelExporter(export_dir=tmp_path / "out")
    with pytest.raises(SchemeError, match="no rule for MiniGPT as 'mamba'; there are MiniGPT as 'minigpt', "):
        exporter.export_gguf_model(model, model_dir, "mamba")
    with pytest.raises(SchemeError, match="no rule for Linear as 'gpt2'"):
        exporter.export_gguf_model(torch.nn.Linear(32, 32), model_dir, "gpt2")
    with pytest.raises(SchemeError, match=r"holds no tokenizer\.json"):
        exporter.export_gguf_model(model, tmp_path, "minigpt")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(SchemeError, match="is no tokenizer"):
        exporter.export_gguf_model(model, tmp_path, "minigpt")
    assert not (tmp_path / "out").exists()


# ---- the bridge itself, in exact fractions ---------------------------------------------------------------------------


def equation_1(x, scale, zero_point):
    """By Quark's equation (1), in exact fractions; and how far x / scale is from a tie, in steps."""
    steps = Fraction(float(x)) / Fraction(float(scale))
    q = max(0, min(15, round(steps) + int(zero_point)))  # Python rounds halves to even
    return q, (q - int(zero_point)) * Fraction(float(scale)), abs(abs(steps) % 1 - Fraction(1, 2))


@given(seed=st.integers(0, 2**32 - 1), power=st.integers(-10, 6), shift=st.integers(-40, 40))
def test_a_zero_point_crosses_as_a_minimum_exactly_but_for_ties_and_the_float16_of_the_minimum(seed, power, shift):
    """Integers are those of equation (1); weights differ by what float16 took from the minimum, and by nothing else."""
    w = ((np.random.default_rng(seed).standard_normal((1, 32)) + shift / 40) * 2.0**power).astype(f32)
    scale, zero_point = (x[0, 0] for x in Q4_1.affine(w))
    grid = Q4_1.fit(w)
    q = Q4_1.quantize(w, grid)
    raw = encode_quantized(QuantizedMatrix(q, grid), GGMLType.Q4_1)
    found = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType.Q4_1)
    exact_minimum = -Fraction(float(scale)) * int(zero_point)
    lost = Fraction(float(grid.minimum[0, 0])) - exact_minimum
    assert abs(lost) <= abs(exact_minimum) / 2**11 + Fraction(1, 2**25)
    for x, integer, weight in zip(w[0], q[0], found[0], strict=True):
        expected, value, from_tie = equation_1(x, scale, zero_point)
        if from_tie > abs(lost) / Fraction(float(scale)) + Fraction(1, 10**5):
            assert integer == expected
            assert abs(Fraction(float(weight)) - value - lost) <= abs(value) / 2**23
