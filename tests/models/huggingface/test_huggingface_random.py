"""Models of random shapes, converted: llama.cpp runs each as transformers does, or it was refused for a reason."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hf_models import as_the_file_has_it, greedy, logits, make_tokenizer, save_gpt2, save_llama, save_qwen2
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import tried

from miniquant.core.errors import SchemeError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, read_gguf
from miniquant.models.file_types import FILE_TYPES
from miniquant.models.huggingface.convert import convert_folder

IDS = make_tokenizer().encode("def f(x: int) -> str: return 'the import statement'").ids
BOUNDS = {"F32": 2e-5, "F16": 5e-3, "BF16": 0.05}  # else quantized: 0.12
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
common = {
    "vocab_size": st.integers(512, 700),
    "dtype": st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
    "tie_word_embeddings": st.booleans(),
    "max_shard_size": st.sampled_from(["1GB", "50KB"]),
    "seed": st.integers(0, 9),
}


@st.composite
def llamas(draw):
    groups, head = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([4, 8, 16, 32]))
    heads = groups * draw(st.sampled_from([1, 2, 4]))
    rope = draw(st.sampled_from([{"rope_type": "default"}, {"rope_type": "linear", "factor": 2.0}, LLAMA3]))
    config = st.fixed_dictionaries(common | {
        "num_hidden_layers": st.integers(1, 3),
        "hidden_size": st.sampled_from([d for d in (24, 32, 48, 64, 96, 256) if d % heads == 0]),
        "intermediate_size": st.sampled_from([32, 100, 256]),
        "num_attention_heads": st.just(heads),
        "attention_bias": st.booleans(),
        "mlp_bias": st.booleans(),
        "rms_norm_eps": st.sampled_from([1e-6, 1e-5, 1e-2]),
    })  # fmt: skip
    rope = {"rope_type": "llama3", "rope_theta": draw(st.sampled_from([1e2, 1e4, 5e5])), **rope}
    return draw(config) | {"num_key_value_heads": groups, "head_dim": head, "rope_parameters": rope}


@st.composite
def qwen2s(draw):
    config = draw(llamas())
    rope = config["rope_parameters"]
    if rope["rope_type"] == "llama3":
        rope = {"rope_type": "default", "rope_theta": rope["rope_theta"]}
    wide = {"rope_parameters": rope, "hidden_size": config["num_attention_heads"] * config["head_dim"]}
    return {k: v for k, v in config.items() if "bias" not in k} | wide


@st.composite
def gpt2s(draw):
    heads = draw(st.sampled_from([1, 2, 3, 4]))
    config = st.fixed_dictionaries(common | {
        "n_layer": st.integers(1, 3),
        "n_inner": st.sampled_from([None, 32, 100, 256]),
        "activation_function": st.sampled_from(["gelu_new", "gelu_pytorch_tanh", "gelu_fast"]),
        "layer_norm_epsilon": st.sampled_from([1e-5, 1e-2]),
    })  # fmt: skip
    return draw(config) | {"n_head": heads, "n_embd": heads * draw(st.sampled_from([16, 32, 64]))}


def check(save, config, kind):
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name) / "folder", Path(name) / "m.gguf"
        model = save(folder, **config)
        try:
            types = convert_folder(folder, path, kind).types
        except SchemeError as error:
            block = GGMLType[kind.removesuffix("_M")].block
            assert "has rows of" in str(error) and any(
                value % block for key, value in widths(config).items() if isinstance(value, int)
            )
            assert os.listdir(name) == ["folder"]
            return
        with read_gguf(path) as file:
            assert file.tensors.keys() == types.keys()
        plain = logits(model, IDS) if kind == "F32" else None
        with torch.no_grad():
            as_the_file_has_it(model, path)
        expected = logits(model, IDS)
        assert plain is None or np.array_equal(plain, expected)
        bound = BOUNDS.get(kind, 0.12) if save is not save_gpt2 else max(3e-3, BOUNDS.get(kind, 0.12))
        with LlamaCpp(path, float32_cache=True) as llama:
            assert np.abs(llama.logits(IDS) - expected).max() < bound
            assert np.abs(expected).max() > 0.5
            if kind == "F32":
                assert llama.greedy(IDS[:4], 6) == greedy(model, IDS[:4], 6)


def widths(config):
    """The rows that a matrix of such a model may have."""
    if "n_embd" in config:
        return {"d": config["n_embd"], "mlp": config["n_inner"] or 4 * config["n_embd"]}
    heads = config["num_attention_heads"] * config["head_dim"]
    return {"d": config["hidden_size"], "mlp": config["intermediate_size"], "heads": heads}


@settings(max_examples=tried(6, 30))
@given(llamas(), st.sampled_from(list(FILE_TYPES)) | st.just("F32"))
def test_a_llama_of_any_shape_is_the_same_in_llamacpp(config, kind):
    check(save_llama, config, kind)


@settings(max_examples=tried(6, 30))
@given(qwen2s(), st.sampled_from(list(FILE_TYPES)) | st.just("F32"))
def test_a_qwen2_of_any_shape_is_the_same_in_llamacpp(config, kind):
    check(save_qwen2, config, kind)


@settings(max_examples=tried(6, 30))
@given(gpt2s(), st.sampled_from(list(FILE_TYPES)) | st.just("F32"))
def test_a_gpt2_of_any_shape_is_the_same_in_llamacpp(config, kind):
    check(save_gpt2, config, kind)


def test_the_random_models_are_not_all_refused():
    """Float types take every shape above, the mix does with other types for short rows, blocks of 32 take some."""
    for config in ({"hidden_size": 64, "intermediate_size": 96}, {"hidden_size": 40, "intermediate_size": 100}):
        with tempfile.TemporaryDirectory() as name:
            save_llama(Path(name) / "folder", num_hidden_layers=1, **config)
            for kind in FILE_TYPES:
                fits = config["hidden_size"] == 64 and FILE_TYPES[kind].weights.block == 32
                if kind in BOUNDS or kind == "Q4_K_M" or fits:
                    convert_folder(Path(name) / "folder", Path(name) / "m.gguf", kind)
                else:
                    with pytest.raises(SchemeError, match="has rows of"):
                        convert_folder(Path(name) / "folder", Path(name) / "m.gguf", kind)
