"""Quark's workflow under Quark's names: its listing runs, and the algorithms of a configuration are run."""

from __future__ import annotations

import copy
import re

import gguf
import numpy as np
import pytest
import torch
from hf_models import as_the_file_has_it, logits, make_tokenizer, save_gpt2, save_llama

from miniquant import quark
from miniquant.calibrate import awq, gptq, round_to_nearest, smoothquant
from miniquant.core.errors import MiniquantError, QuantizationError, SchemeError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.models.minigpt import random_model
from miniquant.models.quantizer import quantized_layers
from miniquant.quantization.grids import GRID_RULES
from miniquant.quark import AWQConfig, Config, GPTQConfig, ModelQuantizer, QuantizationConfig, SmoothQuantConfig

# From "Bridge from Quark to llama.cpp" in Quark's documentation (AMD, MIT licence), steps 1 and 2, as it stands there.
LISTING = """
# 1. Set model
from transformers import AutoModelForCausalLM, AutoTokenizer
model = AutoModelForCausalLM.from_pretrained("llama2-7b")
model.eval()
tokenizer = AutoTokenizer.from_pretrained("llama2-7b")

# 2. Set quantization configuration
from quark.torch.quantization.config.type import Dtype, ScaleType, RoundType, QSchemeType
from quark.torch.quantization.config.config import Config, QuantizationSpec, QuantizationConfig
from quark.torch.quantization.observer.observer import PerTensorMinMaxObserver
DEFAULT_UINT4_PER_GROUP_ASYM_SPEC = QuantizationSpec(dtype=Dtype.uint4,
                                                    observer_cls=PerChannelMinMaxObserver,
                                                    symmetric=False,
                                                    scale_type=ScaleType.float,
                                                    round_method=RoundType.half_even,
                                                    qscheme=QSchemeType.per_group,
                                                    ch_axis=0,
                                                    is_dynamic=False,
                                                    group_size=32)

DEFAULT_W_UINT4_PER_GROUP_CONFIG = QuantizationConfig(weight=DEFAULT_UINT4_PER_GROUP_ASYM_SPEC)
quant_config = Config(global_quant_config=DEFAULT_W_UINT4_PER_GROUP_CONFIG)

# 3. Define calibration dataloader (still need this step for weight only and dynamic quantization)
from torch.utils.data import DataLoader
text = "Hello, how are you?"
tokenized_outputs = tokenizer(text, return_tensors="pt")
calib_dataloader = DataLoader(tokenized_outputs['input_ids'])

# 4. In-place replacement with quantized modules in model
from quark.torch import ModelQuantizer
quantizer = ModelQuantizer(quant_config)
quant_model = quantizer.quantize_model(model, calib_dataloader)

# If you want to export the quantized model, please freeze the quantized model first
freezed_quantized_model = quantizer.freeze(quant_model)
export_path = "./output_dir"
model_dir = "<HuggingFace model directory>"
from quark.torch import ModelExporter
from quark.torch.export.config.config import ExporterConfig, JsonExporterConfig
config = ExporterConfig(json_export_config=JsonExporterConfig())
exporter = ModelExporter(config=config, export_dir=export_path)
exporter.export_gguf_model(model, model_dir, model_type)
"""
IDS = make_tokenizer("sentencepiece").encode("The import statement").ids
RULE = GRID_RULES["Q4_1"]
TOKENS = np.random.default_rng(0).integers(0, 64, (6, 32))


def with_our_import(listing):
    """Every import of Quark as one line of ours; it names the observer that the listing uses."""
    names = re.findall(r"from quark\.\S+ import (.*)", listing)
    names = sorted({name.strip() for line in names for name in line.split(",")} | {"PerChannelMinMaxObserver"})
    rest = re.sub(r"from quark\.\S+ import .*\n", "", listing)
    return f"from miniquant.quark import {', '.join(names)}\n{rest}"


def test_the_document_s_listing_runs_with_the_import_line_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = save_llama(tmp_path / "llama2-7b", pre="sentencepiece")
    (tmp_path / "<HuggingFace model directory>").symlink_to(tmp_path / "llama2-7b")
    names = {"model_type": "llama"}  # which the document defines nowhere
    exec(compile(with_our_import(LISTING), "listing", "exec"), names)
    path = tmp_path / "output_dir" / "llama.gguf"
    kinds = {t.name: t.tensor_type.name for t in gguf.GGUFReader(path).tensors}
    assert list(kinds.values()).count("Q4_1") == 7 * 2 + 1 and kinds["output.weight"] == "Q4_1"
    model = names["model"]
    assert names["freezed_quantized_model"] is names["quant_model"] is model
    written = as_the_file_has_it(before, path).state_dict()
    for name in quantized_layers(model):
        assert torch.equal(written[f"{name}.weight"], model.get_submodule(name).weight), name
    with LlamaCpp(path) as llama:
        assert llama.tokenize("Hello, how are you?") == names["tokenized_outputs"]["input_ids"][0].tolist()[1:]
        assert np.abs(llama.logits(IDS) - logits(model, IDS)).max() < 0.2  # its embedding is Q8_0 in the file


def test_every_name_of_the_package_is_there():
    assert all(hasattr(quark, name) for name in quark.__all__)
    assert quark.__all__ == sorted(quark.__all__, key=str)


# ---- what an algorithm does is what the function does ----------------------------------------------------------------


def config(**more):
    return Config(QuantizationConfig(RULE), **more)


def frozen(model, tokens=TOKENS, **more):
    loader = None if tokens is None else torch.from_numpy(tokens).split(2)
    return ModelQuantizer.freeze(ModelQuantizer(config(**more)).quantize_model(model, loader))


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return save_llama(tmp_path_factory.mktemp("llama") / "folder", num_hidden_layers=1)


@pytest.fixture(params=["minigpt", "llama"])
def model(request, llama):
    return random_model() if request.param == "minigpt" else copy.deepcopy(llama)


def assert_equal(found, expected):
    assert found.state_dict().keys() == expected.state_dict().keys()
    for name, w in expected.state_dict().items():
        assert torch.equal(found.state_dict()[name], w), name
    for name, layer in quantized_layers(expected).items():
        assert np.array_equal(quantized_layers(found)[name].frozen.q, layer.frozen.q), name


CASES = {
    "nearest": ({}, lambda m: round_to_nearest(m, RULE)),
    "awq": ({"algo_config": AWQConfig()}, lambda m: round_to_nearest(awq(m, TOKENS, RULE), RULE)),
    "awq without clipping": (
        {"algo_config": AWQConfig(clip=False)},
        lambda m: round_to_nearest(awq(m, TOKENS, RULE, clip=False), RULE),
    ),
    "gptq": ({"algo_config": GPTQConfig()}, lambda m: gptq(m, TOKENS, RULE)),
    "gptq in order": (
        {"algo_config": GPTQConfig(damp_percent=0.1, desc_act=False)},
        lambda m: gptq(m, TOKENS, RULE, damping=0.1, act_order=False),
    ),
    "smoothquant": (
        {"pre_quant_opt_config": SmoothQuantConfig(alpha=0.7)},
        lambda m: round_to_nearest(smoothquant(m, TOKENS, 0.7), RULE),
    ),
    "smoothquant, then gptq": (
        {"pre_quant_opt_config": SmoothQuantConfig(), "algo_config": GPTQConfig()},
        lambda m: gptq(smoothquant(m, TOKENS), TOKENS, RULE),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_configuration_runs_the_algorithm_that_it_names(case, model):
    more, expected = CASES[case]
    head = [] if type(model).__name__ == "MiniGPT" else ["lm_head"]
    assert_equal(frozen(copy.deepcopy(model), exclude=head, **more), expected(model))


def test_a_head_outside_of_the_blocks_may_be_rounded_to_nearest_beside_an_algorithm(tmp_path):
    model = save_llama(tmp_path / "folder")
    found = frozen(copy.deepcopy(model), algo_config=GPTQConfig())
    assert len(quantized_layers(found)) == 15
    w = model.lm_head.weight.detach().numpy()
    assert np.array_equal(found.lm_head.frozen.grid.scale, RULE.fit(w).scale)
    assert torch.equal(
        found.model.layers[1].mlp.up_proj.weight, gptq(model, TOKENS, RULE).model.layers[1].mlp.up_proj.weight
    )


def test_a_model_that_an_algorithm_does_not_know_is_refused(tmp_path):
    model = save_gpt2(tmp_path / "folder")
    known = "no description of GPT2LMHeadModel; there are MiniGPT, LlamaForCausalLM, Qwen2ForCausalLM"
    with pytest.raises(QuantizationError, match=known):
        frozen(model, exclude=["lm_head"], algo_config=AWQConfig())
    assert not quantized_layers(model)


def test_a_minigpt_needs_no_calibration_and_a_llama_does(tmp_path):
    model = save_llama(tmp_path / "folder")
    before = {name: w.clone() for name, w in model.state_dict().items()}
    with pytest.raises(QuantizationError, match="has no default; pass tokens"):
        frozen(model, None, algo_config=AWQConfig())
    assert not quantized_layers(model)
    assert all(torch.equal(w, before[name]) for name, w in model.state_dict().items())


def test_what_an_algorithm_cannot_do_is_refused_and_the_model_stays_as_it_was():
    other = {"layers.1.mlp.fc2": QuantizationConfig(GRID_RULES["Q8_0"])}
    for more in ({"layer_quant_config": other}, {"exclude": ["layers.1.mlp.fc2"]}, {"exclude": ["layers.0.attn.qkv"]}):
        model = random_model()
        with pytest.raises(
            SchemeError, match=r"one specification for all .* and 'layers\.\d\.\w+\.\w+' has another or none"
        ):
            frozen(model, algo_config=AWQConfig(), **more)
        assert not quantized_layers(model)
    with pytest.raises(SchemeError, match=r"windows have the lengths \[8, 16\]; cut them to one length"):
        ModelQuantizer(config(algo_config=GPTQConfig())).quantize_model(
            random_model(), [torch.zeros(1, 16, dtype=torch.int64), torch.zeros(8, dtype=torch.int64)]
        )
    with pytest.raises(SchemeError, match=r"QuantizationConfig is no Config; write Config\(global_quant_config"):
        ModelQuantizer(QuantizationConfig(RULE))
    with pytest.raises(SchemeError, match="nothing to freeze"):
        ModelQuantizer.freeze(random_model())


def test_a_failure_after_an_algorithm_gives_the_model_its_weights_back(monkeypatch):
    model = random_model()
    before = {name: w.clone() for name, w in model.state_dict().items()}

    def fail(*_):
        raise MiniquantError("no")

    monkeypatch.setattr("miniquant.quark.quantizer.quantize_linear_layers", fail)
    with pytest.raises(MiniquantError, match="no"):
        frozen(model, algo_config=AWQConfig())
    assert all(torch.equal(w, before[name]) for name, w in model.state_dict().items())
