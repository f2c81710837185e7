"""A Llama of transformers, quantized and frozen, as a file that llama.cpp runs: Quark's own case."""

from __future__ import annotations

import copy

import gguf
import numpy as np
import pytest
from hf_models import TEXTS, by_hand, checkpoint, edit, logits, make_tokenizer, official_names, save_gpt2, save_llama

from miniquant.core.errors import FormatError, SchemeError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.models.bridge import GGUF_TYPES, ModelExporter
from miniquant.models.huggingface.sentencepiece import OTHER_SPACES
from miniquant.models.quantizer import freeze, quantize_linear_layers
from miniquant.quantization.config import Config, QuantizationConfig
from miniquant.quantization.grids import GRID_RULES

SPECS = {f"{spec.dtype.name} as {kind.name}": spec for spec, kind in GGUF_TYPES.items()}
RULES = SPECS | {name: GRID_RULES[name] for name in ("Q8_0", "Q4_0", "Q4_1")}
CASES = {"tied": {"tie_word_embeddings": True}, "untied, biases": {"attention_bias": True, "mlp_bias": True}}
IDS = make_tokenizer().encode(TEXTS[2] + TEXTS[0]).ids


def frozen(model, rule, exclude=("lm_head",)):
    return freeze(quantize_linear_layers(copy.deepcopy(model), Config(QuantizationConfig(rule), exclude=exclude)))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_file_holds_the_frozen_weights_to_the_bit_with_rows_in_llama_cpp_s_order(case, rule, tmp_path):
    model = frozen(save_llama(tmp_path / "folder", **CASES[case]), rule)
    path = ModelExporter(export_dir=tmp_path).export_gguf_model(model, tmp_path / "folder", "llama", embedding="F32")
    assert path.name == "llama.gguf"
    official, weights = official_names(model.config), checkpoint(model)
    found = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    assert found.keys() == set(map(official, weights))
    quantized = {name for name, tensor in found.items() if tensor.tensor_type.name != "F32"}
    assert len(quantized) == 7 * 2
    for name, w in weights.items():
        tensor = found[official(name)]
        back = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(by_hand(name, w, model.config).shape)
        assert np.array_equal(back, by_hand(name, w, model.config))
    with LlamaCpp(path) as llama:
        assert np.abs(llama.logits(IDS) - logits(model, IDS)).max() < 0.12  # inputs are rounded to 8 bits there


def test_a_head_that_is_not_tied_may_be_quantized_like_a_layer(tmp_path):
    model = frozen(save_llama(tmp_path / "folder"), GRID_RULES["Q4_1"], exclude=())
    path = ModelExporter(export_dir=tmp_path).export_gguf_model(model, tmp_path / "folder", "llama")
    kinds = {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors}
    assert (kinds["output.weight"], kinds["token_embd.weight"]) == ("Q4_1", "Q8_0")


def test_the_notes_of_the_tokenizer_are_printed_as_convert_prints_them(tmp_path, capsys):
    model = frozen(save_llama(tmp_path / "folder", num_hidden_layers=1, pre="sentencepiece"), GRID_RULES["Q4_1"])
    ModelExporter(export_dir=tmp_path).export_gguf_model(model, tmp_path / "folder", "llama")
    assert capsys.readouterr().out == ""
    edit(tmp_path / "folder" / "tokenizer_config.json", tokenizer_class="LlamaTokenizer")
    ModelExporter(export_dir=tmp_path).export_gguf_model(model, tmp_path / "folder", "llama")
    assert capsys.readouterr().out == f"note: {OTHER_SPACES}\n"


def test_a_tied_head_is_refused_by_the_quantizer_and_says_to_exclude_it(tmp_path):
    with pytest.raises(SchemeError, match=r"'lm_head' are those of 'model\.embed_tokens' too.*exclude it"):
        frozen(save_llama(tmp_path / "folder", tie_word_embeddings=True), GRID_RULES["Q4_1"], exclude=())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 3}, r"'model\.layers\.2\..*' a tensor of shape .*, and the model has none"),
        ({"num_hidden_layers": 1}, r"the model holds 'model\.layers\.1\..*has no place"),
        ({"intermediate_size": 128}, r"a tensor of shape \(128, 64\), and the model has \(96, 64\)"),
    ],
)
def test_the_folder_of_another_model_is_refused_before_anything_is_written(changes, message, tmp_path):
    model = frozen(save_llama(tmp_path / "folder"), GRID_RULES["Q4_1"])
    edit(tmp_path / "folder" / "config.json", **changes)
    with pytest.raises(FormatError, match=message):
        ModelExporter(export_dir=tmp_path / "out").export_gguf_model(model, tmp_path / "folder", "llama")
    assert not (tmp_path / "out").exists()


def test_a_gpt2_of_transformers_has_no_linear_layers_inside_and_says_so(tmp_path):
    model = save_gpt2(tmp_path / "folder", tie_word_embeddings=False)
    with pytest.raises(SchemeError, match="no rule for GPT2LMHeadModel as 'gpt2'"):
        ModelExporter(export_dir=tmp_path).export_gguf_model(
            frozen(model, GRID_RULES["Q4_1"], ()), tmp_path / "folder", "gpt2"
        )
