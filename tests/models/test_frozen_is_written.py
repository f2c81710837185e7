"""What is frozen is what is written: in every format, from a model of every dtype, bit for bit.

The official ``gguf`` package, ggml's own C code and the safetensors library read what they can read.
"""

from __future__ import annotations

import json
from importlib import resources

import gguf
import numpy as np
import pytest
import safetensors.numpy
import torch
from hf_models import by_hand, checkpoint, official_names, save_llama
from thorough import in_turns

from miniquant.core.errors import SchemeError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.bump import write_bump
from miniquant.formats.gguf_lite.write import write_gguf_lite
from miniquant.models.bridge import ModelExporter
from miniquant.models.corpus import load_tokenizer
from miniquant.models.export import Exporter, ExportFormat, ModelWeights
from miniquant.models.load import weights_of
from miniquant.models.minigpt import MiniGPTConfig, random_model
from miniquant.models.quantizer import freeze, quantize_linear_layers, quantized_layers
from miniquant.models.to_gguf import gguf_name, write_minigpt
from miniquant.models.to_gguf_lite import to_gguf_lite
from miniquant.quantization.config import Config, QuantizationConfig
from miniquant.quantization.grids import GRID_RULES

ASSETS = resources.files("miniquant").joinpath("assets")
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
every_dtype = pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
CONFIG = MiniGPTConfig(vocab_size=1024, context=32, d_model=64, n_layers=2, n_heads=2, d_mlp=128)


def quantized(dtype, rule):
    model = random_model(3, CONFIG).to(dtype)
    return quantize_linear_layers(model, Config(QuantizationConfig(GRID_RULES[rule])))


@pytest.fixture(scope="module")
def ggml():
    """ggml's C code, in one process for all tests."""
    with LlamaCpp(None) as llama:
        yield llama


def by_official(path, ggml):
    """name -> weights, by the official package; each quantized tensor also by ggml's C code."""
    found = {}
    for t in gguf.GGUFReader(path).tensors:
        w = gguf.quants.dequantize(t.data, t.tensor_type)
        if t.tensor_type.name not in ("F32", "F16"):
            assert np.array_equal(ggml.dequantize(np.array(t.data), int(t.tensor_type)), w)
        found[t.name] = w.reshape(tuple(map(int, t.shape))[::-1])
    return found


def by_miniquant(path, ggml):
    return weights_of(path)


def by_safetensors(path, ggml):
    return safetensors.numpy.load_file(path)


def by_json(path, ggml):
    tensors = json.loads(path.read_text("utf-8"))["tensors"]
    return {n: np.array(t["data"], np.float32).reshape(t["shape"]) for n, t in tensors.items()}


def bridged(model, folder):
    return ModelExporter(export_dir=folder).export_gguf_model(model, ASSETS, "minigpt", embedding="F32")


def to_bump(model, folder):
    write_bump(bridged(model, folder), folder / "weights.bump")
    return folder / "weights.bump"


def to_lite(model, folder):
    schemes, chosen = to_gguf_lite(model)
    write_gguf_lite(folder / "m.gguf-lite", model, schemes, chosen=chosen)
    return folder / "m.gguf-lite"


def to_f32_gguf(model, folder):
    write_minigpt(folder / "m.gguf", model, load_tokenizer(), "F32")
    return folder / "m.gguf"


def exported(format):
    def write(model, folder):
        return Exporter(folder).export(ModelWeights.from_model(model), format, f"m.{format.extension}").path

    return write


BLOCKS, LITE = ("Q8_0", "Q4_0", "Q4_1"), ("int8", "int4_g64")
WAYS = {  # what is written, by whom it is read, and the rules that it can hold
    "gguf by the bridge": (bridged, by_official, BLOCKS),
    "bump of that gguf": (to_bump, by_miniquant, ("Q8_0", "Q4_0")),
    "gguf-lite": (to_lite, by_miniquant, LITE),
    "gguf, F32": (to_f32_gguf, by_official, (*BLOCKS, *LITE, "int3_g64")),
    "exporter's gguf": (exported(ExportFormat.GGUF), by_official, (*BLOCKS, *LITE, "int3_g64")),
    "exporter's safetensors": (exported(ExportFormat.SAFETENSORS), by_safetensors, (*BLOCKS, *LITE, "int3_g64")),
    "exporter's apr": (exported(ExportFormat.APR), by_json, (*BLOCKS, *LITE, "int3_g64")),
}
CASES = [(way, rule) for way, (*_, rules) in WAYS.items() for rule in rules]
TYPED = [pytest.param(*case, DTYPES[dtype], id=", ".join([*case, dtype])) for case, dtype in in_turns(CASES, DTYPES)]


@pytest.mark.parametrize(("way", "rule", "dtype"), TYPED)
def test_every_format_holds_the_weights_that_the_frozen_model_computes_with(way, rule, dtype, ggml, tmp_path):
    model = freeze(quantized(dtype, rule))
    write, read, _ = WAYS[way]
    found = read(write(model, tmp_path), ggml)
    for name, w in model.state_dict().items():
        written = found[gguf_name(name)]
        assert written.dtype == np.float32
        assert np.array_equal(written, w.float().numpy()), name
    for name in quantized_layers(model):
        assert model.get_submodule(name).weight.dtype == torch.float32


def test_every_format_that_is_exported_is_tried():
    tried = {way.rpartition(" ")[2] for way in WAYS}
    assert {format.value for format in ExportFormat if format.is_safe} <= tried


@every_dtype
@pytest.mark.parametrize("rule", BLOCKS)
def test_a_llama_of_any_dtype_is_written_as_it_was_frozen(rule, dtype, ggml, tmp_path):
    model = save_llama(tmp_path / "folder").to(dtype)
    model = freeze(quantize_linear_layers(model, Config(QuantizationConfig(GRID_RULES[rule]), exclude=["lm_head"])))
    path = ModelExporter(export_dir=tmp_path).export_gguf_model(model, tmp_path / "folder", "llama", embedding="F32")
    found, name_of = by_official(path, ggml), official_names(model.config)
    for name, w in checkpoint(model.float()).items():  # float() widens what is not frozen, and changes no number
        assert np.array_equal(found[name_of(name)], by_hand(name, w, model.config)), name


@pytest.mark.parametrize("way", WAYS)
@torch.no_grad()
def test_a_model_that_is_not_frozen_or_was_cast_since_is_refused_before_anything_is_written(way, tmp_path):
    write, _, rules = WAYS[way]
    model = quantized(torch.float32, rules[0])
    with pytest.raises(SchemeError, match=r"'layers\.0\.attn\.qkv' still rounds .* freeze it first"):
        write(model, tmp_path)
    if rules in (BLOCKS, LITE):  # where integers are written; elsewhere it is the cast weights themselves
        with pytest.raises(SchemeError, match="other weights than when it was frozen"):
            write(freeze(model).to(torch.bfloat16), tmp_path)
    assert list(tmp_path.iterdir()) == []
