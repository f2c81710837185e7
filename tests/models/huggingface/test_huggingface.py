"""Hugging Face folders in llama.cpp: same tokens and same text as in transformers, logits as near as float32 allows.

What moves a logit, at most, with weights that make logits of up to 2: 8e-6 for a Llama whose cache stays float32, 3e-3
with the default float16 cache, 3e-3 for GPT-2 (ggml's GELU is a table of float16), and for quantized matrices 0.12,
since llama.cpp rounds the activations as well. A head permuted wrongly moves it by a tenth or more.
"""

from __future__ import annotations

import copy
import json
import shutil

import gguf
import numpy as np
import pytest
import torch
from hf_models import (
    TEXTS,
    as_the_file_has_it,
    by_hand,
    checkpoint,
    edit,
    greedy,
    logits,
    make_tokenizer,
    official_names,
    save_gpt2,
    save_llama,
    save_qwen2,
)
from safetensors.torch import load_file, save_file
from thorough import THOROUGH, in_turns

from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, read_gguf
from miniquant.models.corpus import load_tokenizer
from miniquant.models.file_types import FILE_TYPES, PRESETS
from miniquant.models.huggingface import convert as huggingface
from miniquant.models.huggingface.convert import convert_folder
from miniquant.models.quantize_gguf import quantize_gguf

LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
MODELS = {
    "llama": (save_llama, {}),
    "llama, tied": (save_llama, {"tie_word_embeddings": True}),
    "llama, a key head for each query head": (save_llama, {"num_key_value_heads": 4}),
    "llama, one key head": (save_llama, {"num_key_value_heads": 1}),
    "llama, biases, heads wider than the model": (
        save_llama,
        {"attention_bias": True, "mlp_bias": True, "head_dim": 24},
    ),
    "llama, another base and epsilon": (
        save_llama,
        {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}, "rms_norm_eps": 1e-3},
    ),
    "llama, linear": (save_llama, {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}}),
    "llama, llama3": (
        save_llama,
        {"rope_parameters": {"rope_type": "llama3", "factor": 8.0, "rope_theta": 500.0, **LLAMA3}},
    ),
    "llama, sharded": (save_llama, {"max_shard_size": "40KB"}),
    "llama, bfloat16": (save_llama, {"dtype": torch.bfloat16, "max_shard_size": "40KB"}),
    "llama, float16": (save_llama, {"dtype": torch.float16}),
    "llama, sentencepiece": (save_llama, {"pre": "sentencepiece"}),
    "qwen2": (save_qwen2, {"seed": 1, "tie_word_embeddings": False}),
    "qwen2, tied, another base": (
        save_qwen2,
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
    ),
    "qwen2, linear, one key head, sharded, bfloat16": (
        save_qwen2,
        {
            "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4},
            **{"num_key_value_heads": 1, "dtype": torch.bfloat16, "max_shard_size": "40KB"},
        },
    ),
    "gpt2": (save_gpt2, {}),
    "gpt2, untied, another width": (save_gpt2, {"tie_word_embeddings": False, "n_inner": 160}),
    "gpt2, bfloat16, sharded": (save_gpt2, {"dtype": torch.bfloat16, "max_shard_size": "40KB"}),
    "gpt2, a large epsilon": (save_gpt2, {"layer_norm_epsilon": 1e-2}),
}
IDS = make_tokenizer().encode(TEXTS[2] + TEXTS[0]).ids


def in_llamacpp(path, float32_cache=True):
    with LlamaCpp(path, float32_cache=float32_cache) as llama:
        return llama.logits(IDS)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of each kind of model, saved once, and a copy of the model that is the test's own."""
    made = {}

    def get(save, **options):
        key = (save, repr(options))
        if key not in made:
            folder = tmp_path_factory.mktemp("saved") / "folder"
            made[key] = folder, save(folder, **options)
        folder, model = made[key]
        return folder, copy.deepcopy(model)

    return get


# ---- weights, logits, text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", MODELS)
def test_llamacpp_computes_what_transformers_computes(case, saved, tmp_path):
    save, options = MODELS[case]
    folder, model = saved(save, **options)
    convert_folder(folder, tmp_path / "m.gguf", "f32")
    expected = logits(model, IDS)
    assert expected.std() > 0.4  # not flat
    bound = 3e-3 if "gpt2" in case else 1e-5
    with LlamaCpp(tmp_path / "m.gguf", float32_cache=True) as llama:
        assert np.abs(llama.logits(IDS) - expected).max() < bound
        assert llama.greedy(IDS[:5], 12) == greedy(model, IDS[:5], 12)
    if case in ("llama", "qwen2", "gpt2") or THOROUGH:  # a cache of float16 is llama.cpp's own affair
        assert np.abs(in_llamacpp(tmp_path / "m.gguf", False) - expected).max() < 3e-3


@pytest.mark.parametrize(("kind", "case"), in_turns(["F32", "F16", "BF16"], MODELS))
def test_the_official_reader_finds_every_weight_where_the_official_names_say(case, kind, saved, tmp_path):
    save, options = MODELS[case]
    folder, model = saved(save, **options)
    converted = convert_folder(folder, tmp_path / "m.gguf", kind)
    official, weights = official_names(model.config), checkpoint(model)
    found = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "m.gguf").tensors}
    assert found.keys() - {"rope_freqs.weight"} == set(map(official, weights))
    assert {name: tensor.tensor_type.name for name, tensor in found.items()} == converted.types
    for name, w in weights.items():
        tensor = found[official(name)]
        expected = np.ascontiguousarray(by_hand(name, w, model.config))
        assert tensor.shape.tolist() == list(expected.shape)[::-1]
        vector = w.ndim == 1 or "wpe" in name
        assert tensor.tensor_type.name == ("F32" if vector else kind)
        assert tensor.data.tobytes() == gguf.quants.quantize(expected, tensor.tensor_type).tobytes()


def test_a_checkpoint_in_16_bits_arrives_bit_for_bit(tmp_path):
    """No way round through float32 changes a bit; the checkpoint is read by the safetensors library."""
    for dtype, kind in ((torch.bfloat16, "BF16"), (torch.float16, "F16")):
        save_gpt2(tmp_path / kind, dtype)
        convert_folder(tmp_path / kind, tmp_path / "m.gguf", kind)
        stored = load_file(tmp_path / kind / "model.safetensors")
        with read_gguf(tmp_path / "m.gguf") as file:
            for theirs, ours in (("wte", "token_embd"), ("h.1.mlp.c_fc", "blk.1.ffn_up")):
                w = stored[f"transformer.{theirs}.weight"]
                w = w.T.contiguous() if theirs != "wte" else w
                assert file.raw(f"{ours}.weight").tobytes() == w.view(torch.int16).numpy().tobytes()


QUANTIZED = [name for name, kind in FILE_TYPES.items() if kind.weights.quantized]
WIDE = {  # rows of 256: a K-quant's block
    save_llama: {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 4},
    save_qwen2: {"hidden_size": 256, "intermediate_size": 256},
    save_gpt2: {"n_embd": 256, "n_inner": 256},
}


@pytest.mark.parametrize(("kind", "save"), in_turns(QUANTIZED, WIDE))
def test_quantized_matrices_compute_what_their_dequantized_weights_do(kind, save, saved, tmp_path):
    folder, model = saved(save, **WIDE[save])
    converted = convert_folder(folder, tmp_path / "m.gguf", kind)
    plain = logits(model, IDS)
    expected = logits(as_the_file_has_it(model, tmp_path / "m.gguf"), IDS)
    assert np.abs(in_llamacpp(tmp_path / "m.gguf") - expected).max() < 0.12
    assert not np.array_equal(plain, expected)
    matrices = {name: kind for name, kind in converted.types.items() if kind != "F32"}
    head = "Q6_K" if FILE_TYPES[kind].weights.block == 256 else "Q8_0"
    heads = {matrices.pop(name) for name in ("token_embd.weight", "output.weight") if name in matrices}
    if kind == "Q4_K_M":
        assert heads == ({"Q4_K", head} if save is save_llama else {head})  # an embedding that is no head is a matrix
    else:
        assert heads == {head} and set(matrices.values()) == {kind}
    with read_gguf(tmp_path / "m.gguf") as file:
        assert file.metadata["general.file_type"] == FILE_TYPES[kind].number
        assert file.metadata["general.quantization_version"] == gguf.GGML_QUANT_VERSION


def test_the_mix_gives_more_bits_to_values_and_half_of_ffn_down(saved, tmp_path):
    types = convert_folder(saved(save_llama, **WIDE[save_llama])[0], tmp_path / "m.gguf", "q4_k_m").types
    more = [name for name, kind in types.items() if kind == "Q6_K"]
    assert more == [
        *("output.weight", "blk.2.attn_v.weight", "blk.2.ffn_down.weight"),
        *("blk.3.attn_v.weight", "blk.3.ffn_down.weight"),
    ]
    types = convert_folder(saved(save_gpt2, **WIDE[save_gpt2])[0], tmp_path / "m.gguf", "q4_k_m").types
    assert [types[f"blk.{n}.attn_qkv.weight"] for n in range(2)] == ["Q4_K", "Q6_K"]  # the values are in it
    assert types["token_embd.weight"] == "Q6_K"  # it is the head as well


def test_converting_to_a_preset_is_converting_to_f32_and_quantizing(saved, tmp_path):
    folder, _ = saved(save_llama, **WIDE[save_llama])
    convert_folder(folder, tmp_path / "f32.gguf", "F32")
    for name, kind in PRESETS.items():
        if name in ("Q4_0", "Q4_K_M", "IQ4_NL"):
            convert_folder(folder, tmp_path / "at_once.gguf", kind)
            quantize_gguf(tmp_path / "f32.gguf", tmp_path / "in_two_steps.gguf", name)
            with read_gguf(tmp_path / "at_once.gguf") as one, read_gguf(tmp_path / "in_two_steps.gguf") as two:
                assert one.tensors.keys() == two.tensors.keys()
                assert one.metadata["general.file_type"] == two.metadata["general.file_type"] == kind.number
                assert all(one.tensors[n].dtype == two.tensors[n].dtype for n in one.tensors)
                assert all(np.array_equal(one.raw(n), two.raw(n)) for n in one.tensors)


def test_a_head_left_as_it_was_would_be_noticed(tmp_path, monkeypatch):
    model = save_llama(tmp_path / "folder")
    monkeypatch.setattr(huggingface, "rope_order", lambda heads, width: np.arange(heads * width))
    convert_folder(tmp_path / "folder", tmp_path / "m.gguf", "f32")
    assert np.abs(in_llamacpp(tmp_path / "m.gguf") - logits(model, IDS)).max() > 0.1


# ---- what a checkpoint may have besides ------------------------------------------------------------------------------


def test_gpt2_s_old_names_without_a_prefix_and_its_masks_give_the_same_file(tmp_path):
    """The first checkpoints of GPT-2 are the bare model, and hold the causal mask of each layer."""
    save_gpt2(tmp_path / "folder")
    convert_folder(tmp_path / "folder", tmp_path / "new.gguf", "q8_0")
    stored = tmp_path / "folder" / "model.safetensors"
    bare = {name.removeprefix("transformer."): w for name, w in load_file(stored).items()}
    for n in range(2):
        bare[f"h.{n}.attn.bias"] = torch.tril(torch.ones(128, 128)).view(1, 1, 128, 128)
        bare[f"h.{n}.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(bare, stored)
    converted = convert_folder(tmp_path / "folder", tmp_path / "old.gguf", "q8_0")
    assert (tmp_path / "old.gguf").read_bytes() == (tmp_path / "new.gguf").read_bytes()
    assert sorted(converted.skipped) == [f"h.{n}.attn.{what}" for n in (0, 1) for what in ("bias", "masked_bias")]


def test_a_llama_s_stored_frequencies_and_tied_head_are_left_out_by_name(tmp_path):
    save_llama(tmp_path / "folder", tie_word_embeddings=True)
    convert_folder(tmp_path / "folder", tmp_path / "new.gguf", "f16")
    stored = tmp_path / "folder" / "model.safetensors"
    tensors = load_file(stored)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    tensors["model.layers.1.self_attn.rotary_emb.inv_freq"] = torch.ones(8)
    save_file(tensors, stored)
    converted = convert_folder(tmp_path / "folder", tmp_path / "old.gguf", "f16")
    assert (tmp_path / "old.gguf").read_bytes() == (tmp_path / "new.gguf").read_bytes()
    assert converted.skipped == {
        "model.layers.1.self_attn.rotary_emb.inv_freq": "a buffer, computed anew",
        "lm_head.weight": "tied, equal to model.embed_tokens.weight",
    }


def test_the_keys_of_transformers_4_give_the_same_file(tmp_path):
    save_llama(tmp_path / "folder", rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 500.0})
    convert_folder(tmp_path / "folder", tmp_path / "new.gguf", "f16")
    config = tmp_path / "folder" / "config.json"
    for scaling in ({"type": "linear", "factor": 4.0}, {"rope_type": "linear", "factor": 4.0}):
        edit(config, rope_parameters=..., rope_theta=500.0, rope_scaling=scaling, head_dim=..., dtype=...)
        convert_folder(tmp_path / "folder", tmp_path / "old.gguf", "f16")
        assert (tmp_path / "old.gguf").read_bytes() == (tmp_path / "new.gguf").read_bytes()


def test_the_same_folder_gives_the_same_bytes_and_shards_do_not_matter(tmp_path):
    for name, size in (("one", "1GB"), ("many", "40KB")):
        save_llama(tmp_path / name / "folder", max_shard_size=size)
        convert_folder(tmp_path / name / "folder", tmp_path / f"{name}.gguf", "q4_0")
    assert len(list((tmp_path / "many" / "folder").glob("*.safetensors"))) > 3
    assert (tmp_path / "one.gguf").read_bytes() == (tmp_path / "many.gguf").read_bytes()
    shutil.rmtree(tmp_path / "many" / "folder")  # and nothing of the folder is held open


@pytest.mark.parametrize("save", [save_llama, save_qwen2, save_gpt2])
def test_the_keys_are_the_official_package_s_and_of_the_types_llamacpp_reads(save, tmp_path):
    save(tmp_path / "folder")
    convert_folder(tmp_path / "folder", tmp_path / "m.gguf", "q8_0")
    arch = save.__name__.removeprefix("save_")
    keys = {
        value.replace("{arch}", arch)
        for group in (gguf.Keys.General, gguf.Keys.LLM, gguf.Keys.Attention, gguf.Keys.Rope, gguf.Keys.Tokenizer)
        for value in vars(group).values()
        if isinstance(value, str)
    }
    with read_gguf(tmp_path / "m.gguf") as file:
        assert file.metadata.keys() <= keys
        assert file.metadata["general.name"] == "folder"
        for key, value in file.metadata.items():
            if isinstance(value, float):
                assert file.types[key][0].name == "FLOAT32"
            if type(value) is int:
                assert file.types[key][0].name == "UINT32"
        assert all(info.dtype in (GGMLType.F32, GGMLType.Q8_0) for info in file.tensors.values())


@pytest.fixture(scope="module")
def its_folder(shallow, tmp_path_factory):
    """A MiniGPT as Hugging Face would keep it. Do not change it: it is written once."""
    parts = {"ln1": "ln_1", "attn.qkv": "attn.c_attn", "attn.proj": "attn.c_proj", "ln2": "ln_2"}
    parts |= {"mlp.fc1": "mlp.c_fc", "mlp.fc2": "mlp.c_proj"}
    whole, tensors = {"tok_emb": "wte", "pos_emb": "wpe", "ln_f": "ln_f"}, {}
    for name, w in shallow.state_dict().items():
        owner, _, last = name.rpartition(".")
        _, n, part = owner.split(".", 2) if owner not in whole else (None, None, None)
        theirs = whole.get(owner, f"h.{n}.{parts.get(part)}")
        tensors[f"transformer.{theirs}.{last}"] = (w.T if n and w.ndim == 2 else w).contiguous().clone()
    c, folder = shallow.config, tmp_path_factory.mktemp("hugging") / "MiniGPT"
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    load_tokenizer().save(str(folder / "tokenizer.json"))
    sizes = {"vocab_size": c.vocab_size, "n_positions": c.context, "n_embd": c.d_model, "n_layer": c.n_layers}
    sizes |= {"n_head": c.n_heads, "n_inner": c.d_mlp, "layer_norm_epsilon": c.layer_norm_epsilon}
    config = {"architectures": ["GPT2LMHeadModel"], "bos_token_id": 0, "eos_token_id": 0, **sizes}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


@pytest.mark.parametrize("kind", FILE_TYPES if THOROUGH else ["F32", "BF16", "Q8_0", "Q4_0", "TQ1_0", "Q4_K_M"])
def test_a_minigpt_by_way_of_a_folder_is_the_file_that_is_written_directly(kind, its_folder, shallow_in, tmp_path):
    """Same tensors, same tokenizer, in the same bytes; only the model's name is another."""
    convert_folder(its_folder, tmp_path / "folder.gguf", kind)
    with read_gguf(tmp_path / "folder.gguf") as one, read_gguf(shallow_in(kind)) as two:
        assert one.tensors.keys() == two.tensors.keys()
        for name in one.tensors:
            assert one.tensors[name].dtype == two.tensors[name].dtype
            assert np.array_equal(one.raw(name), two.raw(name))
        assert two.metadata.keys() - one.metadata.keys() == set()
        assert one.metadata.keys() - two.metadata.keys() <= {"tokenizer.ggml.add_eos_token"}
        for key, value in two.metadata.items():
            assert np.array_equal(one.metadata[key], value)
