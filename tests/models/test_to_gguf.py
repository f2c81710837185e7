"""MiniGPT as GGUF: names, keys and types that llama.cpp looks for, and every byte as the official package has it."""

from __future__ import annotations

import json

import gguf
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models

from miniquant.core.errors import MiniquantError, SchemeError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, read_gguf, write_gguf
from miniquant.formats.gguf.codecs import CODECS
from miniquant.models.corpus import load_tokenizer
from miniquant.models.file_types import FILE_TYPES, QUANTIZATION_VERSION, more_bits
from miniquant.models.minigpt import MiniGPTConfig, random_model
from miniquant.models.to_gguf import (
    gguf_name,
    minigpt_from_gguf,
    minigpt_metadata,
    minigpt_tokenizer_metadata,
    minigpt_types,
    write_minigpt,
)

KINDS = [kind.name for kind, codec in CODECS.items() if codec.encodes]
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer()


@pytest.fixture
def path(no_leftovers):
    return no_leftovers / "minigpt.gguf"


def wide_enough(kind):
    """A small model whose rows are whole blocks."""
    narrow = GGMLType[kind].block <= 32
    d_model, d_mlp = (64, 96) if narrow else (256, 512)
    return MiniGPTConfig(context=16, d_model=d_model, n_layers=1, n_heads=2, d_mlp=d_mlp)


# ---- names -----------------------------------------------------------------------------------------------------------


def test_every_parameter_gets_the_name_that_the_official_package_gives_it_in_gpt2(trained):
    """The package knows Hugging Face's names for GPT-2; each of ours is paired with its own here, by hand."""
    theirs = {
        "tok_emb": "wte", "pos_emb": "wpe", "ln_f": "ln_f", "ln1": "ln_1", "attn.qkv": "attn.c_attn",
        "attn.proj": "attn.c_proj", "ln2": "ln_2", "mlp.fc1": "mlp.c_fc", "mlp.fc2": "mlp.c_proj",
    }  # fmt: skip
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GPT2, trained.config.n_layers)
    for name in trained.state_dict():
        owner, _, kind = name.rpartition(".")
        layer = owner.split(".")[1] if owner.startswith("layers.") else None
        part = owner.split(".", 2)[2] if layer else owner
        official = f"transformer.h.{layer}.{theirs[part]}" if layer else f"transformer.{theirs[part]}"
        assert gguf_name(name) == f"{table.get_name(official)}.{kind}"


def test_no_two_parameters_share_a_name(trained):
    names = [gguf_name(name) for name in trained.state_dict()]
    assert len(set(names)) == len(names) == 4 + 12 * trained.config.n_layers


@pytest.mark.parametrize(
    "name", ["head.weight", "layers.0.attn.rotary.weight", "weight", "", "layers.ln1.weight", "x.0.ln1.weight"]
)
def test_a_parameter_that_a_minigpt_does_not_have_is_refused(name):
    with pytest.raises(SchemeError, match="is no parameter of a MiniGPT"):
        gguf_name(name)


# ---- types -----------------------------------------------------------------------------------------------------------


@every_kind
def test_norms_biases_and_positions_are_f32_and_the_embedding_keeps_6_bits_at_least(kind, trained):
    for name, found in minigpt_types(trained, kind).items():
        if name == "tok_emb.weight":
            assert GGMLType[found].bits_per_weight > 6
            assert GGMLType[kind].block % GGMLType[found].block == 0
        elif name.startswith("layers") and ".ln" not in name and name.endswith("weight"):
            assert found == kind
        else:
            assert found == "F32"


def test_the_embedding_may_have_a_type_of_its_own_and_types_any_case(trained):
    assert minigpt_types(trained, "q4_0", "f16")["tok_emb.weight"] == "F16"
    assert minigpt_types(trained, GGMLType.Q4_1, GGMLType.Q4_1)["tok_emb.weight"] == "Q4_1"


def test_the_embedding_s_type_is_the_codec_s_to_say():
    heads = {name: FILE_TYPES[name].head.name for name in ("F32", "F16", "Q8_0", "Q4_0", "Q4_1", "Q2_K", "Q4_K")}
    assert heads == {
        **{"F32": "F32", "F16": "F16", "Q8_0": "Q8_0", "Q4_0": "Q8_0", "Q4_1": "Q8_0"},
        **{"Q2_K": "Q6_K", "Q4_K": "Q6_K"},
    }


def test_q4_k_m_mixes_as_llama_cpp_does(trained):
    """The tied output, and attn_qkv and ffn_down of the last two of four layers in Q6_K, the rest in Q4_K."""
    expected = {"tok_emb.weight": "Q6_K"}
    for i in range(4):
        favoured = "Q6_K" if i >= 2 else "Q4_K"
        expected |= {f"layers.{i}.attn.qkv.weight": favoured, f"layers.{i}.attn.proj.weight": "Q4_K"}
        expected |= {f"layers.{i}.mlp.fc1.weight": "Q4_K", f"layers.{i}.mlp.fc2.weight": favoured}
    found = minigpt_types(trained, "q4_k_m")
    assert {name: kind for name, kind in found.items() if kind != "F32"} == expected
    assert minigpt_types(trained, "Q4_K_M", "Q8_0") == found | {"tok_emb.weight": "Q8_0"}


@pytest.mark.parametrize(
    ("n_layers", "layers"),
    {
        4: [2, 3],
        12: [0, 3, 6, 9, 10, 11],
        28: [0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 24, 25, 26, 27],
        30: [0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 26, 27, 28, 29],
    }.items(),
)
def test_more_bits_go_to_the_layers_that_llama_cpp_gives_them(n_layers, layers):
    """Worked out by hand from its rule; those of 28 and 30 layers are those of published files."""
    assert [i for i in range(n_layers) if more_bits(i, n_layers)] == layers


def test_a_mix_is_no_type_of_a_tensor(trained):
    with pytest.raises(SchemeError, match="no codec for 'Q4_K_M' here; there are F32"):
        minigpt_types(trained, "Q4_K", "Q4_K_M")


@pytest.mark.parametrize("kind", ["Q8_1", "Q8_K", "Q9_K_M", "int4", "", 8, None])
def test_an_unknown_type_is_refused_and_names_those_that_there_are(kind, trained, tokenizer, path):
    path.write_bytes(b"before")
    with pytest.raises(SchemeError, match="there are F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0"):
        write_minigpt(path, trained, tokenizer, kind)
    with pytest.raises(SchemeError, match="there are F32"):
        write_minigpt(path, trained, tokenizer, "F32", embedding="Q9")
    assert path.read_bytes() == b"before"


# ---- metadata --------------------------------------------------------------------------------------------------------


@every_kind
def test_the_keys_are_those_of_the_official_package(kind, trained, tokenizer):
    config, llm, own = trained.config, gguf.Keys.LLM, gguf.Keys.Tokenizer
    expected = {
        gguf.Keys.General.ARCHITECTURE: "gpt2",
        gguf.Keys.General.NAME: "MiniGPT",
        gguf.Keys.General.FILE_TYPE: FILE_TYPES[kind].number,
        llm.CONTEXT_LENGTH: config.context,
        llm.EMBEDDING_LENGTH: config.d_model,
        llm.BLOCK_COUNT: config.n_layers,
        llm.FEED_FORWARD_LENGTH: config.d_mlp,
        gguf.Keys.Attention.HEAD_COUNT: config.n_heads,
        gguf.Keys.Attention.LAYERNORM_EPS: config.layer_norm_epsilon,
    }
    if GGMLType[kind].block > 1:
        expected[gguf.Keys.General.QUANTIZATION_VERSION] = gguf.GGML_QUANT_VERSION
    found = minigpt_metadata(trained, tokenizer, kind)
    assert {key.format(arch="gpt2"): value for key, value in expected.items()}.items() <= found.items()
    assert found.keys() - {key.format(arch="gpt2") for key in expected} == {
        *(own.MODEL, own.PRE, own.LIST, own.TOKEN_TYPE, own.MERGES, own.BOS_ID, own.EOS_ID, own.ADD_BOS)
    }


@pytest.mark.parametrize("embedding", [None, "Q8_0", "Q6_K", "BF16"])
@pytest.mark.parametrize("kind", ["F32", "F16", "Q4_0"])
def test_a_file_with_any_quantized_tensor_says_the_quantization_version(kind, embedding, trained, tokenizer, path):
    write_minigpt(path, trained, tokenizer, kind, embedding)
    with read_gguf(path) as file:
        quantized = any(info.dtype.name[0] == "Q" for info in file.tensors.values())
        assert file.metadata.get("general.quantization_version") == (gguf.GGML_QUANT_VERSION if quantized else None)


def test_the_numbers_of_the_file_types_are_the_official_package_s():
    small = {"Q2_K", "Q3_K", "Q4_K", "Q5_K"}  # one type for every layer: llama.cpp's "small" mix of a shallow model
    ours = {name: kind.number for name, kind in FILE_TYPES.items()}
    assert ours.pop("Q2_0") == 41  # it is newer than the package; llama.cpp's log gives its name to this number
    official = {kind: f"MOSTLY_{kind}_S" if kind in small else f"MOSTLY_{kind}" for kind in ours}
    official |= {"F32": "ALL_F32", "MXFP4": "MOSTLY_MXFP4_MOE"}
    assert {kind: int(gguf.LlamaFileType[name]) for kind, name in official.items()} == ours
    assert set(FILE_TYPES) == {*KINDS, "Q4_K_M"}
    assert QUANTIZATION_VERSION == gguf.GGML_QUANT_VERSION


def test_the_vocabulary_in_the_file_is_the_tokenizer_s(trained, tokenizer, path):
    write_minigpt(path, trained, tokenizer)
    parts = json.loads(tokenizer.to_str())
    with read_gguf(path) as file:
        tokens = file.metadata["tokenizer.ggml.tokens"]
        assert {token: i for i, token in enumerate(tokens)} == tokenizer.get_vocab(with_added_tokens=True)
        assert len(tokens) == trained.config.vocab_size
        merges = [merge.split(" ") for merge in file.metadata["tokenizer.ggml.merges"]]
        assert merges == [list(merge) for merge in parts["model"]["merges"]]
        kinds = file.metadata["tokenizer.ggml.token_type"]
        assert kinds.dtype == np.int32
        assert [int(i) for i in np.flatnonzero(kinds == gguf.TokenType.CONTROL)] == [0]
        assert set(kinds.tolist()) == {gguf.TokenType.NORMAL, gguf.TokenType.CONTROL}
        assert file.metadata["tokenizer.ggml.eos_token_id"] == file.metadata["tokenizer.ggml.bos_token_id"] == 0
        assert file.metadata["tokenizer.ggml.add_bos_token"] is False
        assert (file.metadata["tokenizer.ggml.model"], file.metadata["tokenizer.ggml.pre"]) == ("gpt2", "gpt-2")


def test_a_tokenizer_that_is_not_the_model_s_is_refused(tokenizer, path):
    with pytest.raises(SchemeError, match="the tokenizer has 1024 tokens, the model 64; pass its own tokenizer"):
        write_minigpt(path, random_model(), tokenizer)


def test_a_tokenizer_without_an_end_or_of_another_kind_is_refused():
    for model in (models.BPE(), models.WordLevel({"a": 0}, unk_token="a")):
        with pytest.raises(SchemeError, match="a BPE tokenizer with a special token is needed"):
            minigpt_tokenizer_metadata(Tokenizer(model))


# ---- tensors ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ggml():
    with LlamaCpp(None) as llama:
        yield llama


@pytest.mark.parametrize("kind", [kind for kind in FILE_TYPES if kind != "Q2_0"])
def test_every_tensor_holds_the_bytes_of_the_official_quantizer(kind, shallow, shallow_in, ggml):
    """The package's, and ggml's for what it cannot encode: types that search, NVFP4 and Q1_0."""
    types = minigpt_types(shallow, kind)
    reader = gguf.GGUFReader(shallow_in(kind))
    found = {tensor.name: tensor for tensor in reader.tensors}
    assert list(found) == [gguf_name(name) for name in shallow.state_dict()]
    for name, w in shallow.state_dict().items():
        tensor = found[gguf_name(name)]
        official = gguf.GGMLQuantizationType[types[name]]
        assert tensor.tensor_type == official
        assert tensor.shape.tolist() == list(w.shape)[::-1]  # ggml counts dims from the innermost
        by_ggml = CODECS[GGMLType[types[name]]].searches or types[name] in ("NVFP4", "Q1_0")
        theirs = ggml.quantize(w.numpy(), official) if by_ggml else gguf.quants.quantize(w.numpy(), official)
        assert tensor.data.tobytes() == theirs.tobytes()


def test_a_file_in_a_type_that_the_official_package_lacks_holds_ggml_s_bytes(shallow, shallow_in, ggml):
    types = minigpt_types(shallow, "Q2_0")
    ggml.check(shallow_in("Q2_0"))
    with read_gguf(shallow_in("Q2_0")) as file:
        for name, w in shallow.state_dict().items():
            dtype, raw = GGMLType[types[name]], file.raw(gguf_name(name))
            assert file.tensors[gguf_name(name)].dtype == dtype
            assert raw.tobytes() == (ggml.quantize(w.numpy(), dtype) if dtype.quantized else w.numpy()).tobytes()
    with LlamaCpp(shallow_in("Q2_0")) as llama:
        assert "file type   = Q2_0\n" in llama.log


@every_kind
def test_a_random_model_comes_back_as_its_type_holds_it(kind, tokenizer, path):
    model = random_model(7, wide_enough(kind))
    before = {name: w.clone() for name, w in model.state_dict().items()}
    write_minigpt(path, model, tokenizer, kind, embedding=kind)
    with read_gguf(path) as file:
        for name, w in model.state_dict().items():
            assert torch.equal(w, before[name])
            back, info = torch.from_numpy(file.tensor(gguf_name(name))), file.tensors[gguf_name(name)]
            assert info.n_bytes == info.dtype.bytes_of(tuple(w.shape))
            if info.dtype == GGMLType.F32:
                assert torch.equal(back, w)
            else:
                steps = {"F16": 2**-11, "BF16": 2**-8, "Q8_0": 1 / 127, "Q4_0": 1 / 8, "Q4_1": 1 / 8}
                steps |= {"Q2_K": 1, "Q3_K": 1 / 3, "Q4_K": 1 / 6, "Q5_K": 1 / 12, "Q6_K": 1 / 31}
                step = steps.get(kind, 4 / 2 ** int(info.dtype.bits_per_weight))
                assert (back - w).abs().max() <= step * w.abs().max() * 1.01


@every_kind
def test_the_same_model_gives_the_same_bytes(kind, shallow, tokenizer, shallow_in, path):
    write_minigpt(path, shallow, tokenizer, kind)
    assert path.read_bytes() == shallow_in(kind).read_bytes()


def test_a_model_whose_rows_are_no_whole_blocks_is_refused_with_a_remedy(tokenizer, path):
    model = random_model(1, MiniGPTConfig(context=8, d_model=48, n_layers=1, n_heads=2, d_mlp=64))
    with pytest.raises(SchemeError, match="multiple of 32 weights, found 48; store it as F16 or F32"):
        write_minigpt(path, model, tokenizer, "Q8_0")
    assert not path.exists()
    write_minigpt(path, model, tokenizer, "F16")
    assert len(read_gguf(path).tensors) == 16


# ---- and back --------------------------------------------------------------------------------------------------------


@every_kind
def test_a_minigpt_is_rebuilt_from_the_file_alone(kind, tokenizer, path):
    model = random_model(7, wide_enough(kind))
    write_minigpt(path, model, tokenizer, kind)
    with read_gguf(path) as file:
        back = minigpt_from_gguf(file)
        assert back.config.to_dict() == pytest.approx(model.config.to_dict())  # epsilon is a float32 in the file
        for name, w in back.state_dict().items():
            assert torch.equal(w, torch.from_numpy(file.tensor(gguf_name(name))))


NO_MODEL = {
    "another architecture": ({"general.architecture": "llama"}, {}, "architecture is 'llama'; expected 'gpt2'"),
    "no architecture": ({"general.architecture": None}, {}, "architecture is None"),
    "an architecture of numbers": ({"general.architecture": [1, 2]}, {}, "expected 'gpt2'"),
    "a key is missing": ({"gpt2.block_count": None}, {}, "lacks the number gpt2.block_count"),
    "a size is text": ({"gpt2.block_count": "1"}, {}, "lacks the number gpt2.block_count"),
    "a size is a fraction": ({"gpt2.context_length": 16.5}, {}, "lacks the number gpt2.context_length"),
    "a size is a truth value": ({"gpt2.block_count": True}, {}, "lacks the number gpt2.block_count"),
    "a size is an array": ({"gpt2.block_count": [1]}, {}, "lacks the number gpt2.block_count"),
    "a size is zero": ({"gpt2.attention.head_count": 0}, {}, "head_count=0; expected a number above 0"),
    "a size is negative": ({"gpt2.embedding_length": -64}, {}, "embedding_length=-64; expected a number above 0"),
    "a size is immense": ({"gpt2.embedding_length": 2**40}, {}, "below"),
    "a size that overflows": ({"gpt2.embedding_length": 2**31 - 2}, {}, "describes no MiniGPT|has shape"),
    "the epsilon is NaN": ({"gpt2.attention.layer_norm_epsilon": float("nan")}, {}, "=nan; expected"),
    "heads that do not divide": ({"gpt2.attention.head_count": 3}, {}, "must be a multiple of n_heads 3"),
    "a million layers": ({"gpt2.block_count": 10**6}, {}, "tensors cannot make up this model"),
    "another number of layers": ({"gpt2.block_count": 2}, {}, "has shape missing"),
    "another context": (
        {"gpt2.context_length": 8},
        {},
        r"'position_embd.weight' has shape \(16, 64\), expected \(8, 64\)",
    ),
    "no embedding": ({}, {"token_embd.weight": None}, "token_embd.weight and others are missing"),
    "an embedding without dims": ({}, {"token_embd.weight": np.array(1.0)}, "token_embd.weight and others are missing"),
    "a bias is missing": ({}, {"blk.0.ffn_up.bias": None}, "'blk.0.ffn_up.bias' has shape missing"),
    "a tensor too many": ({}, {"output.weight": np.ones((2, 2), np.float32)}, "expected no such tensor"),
}


@pytest.mark.parametrize("case", NO_MODEL)
def test_a_file_that_is_no_minigpt_is_refused_before_it_is_built(case, tokenizer, path):
    metadata, tensors, message = NO_MODEL[case]
    model = random_model(7, MiniGPTConfig(context=16, d_model=64, n_layers=1, n_heads=2, d_mlp=96))
    tensors = {gguf_name(name): w for name, w in model.state_dict().items()} | tensors
    metadata = minigpt_metadata(model, tokenizer) | metadata
    write_gguf(
        path,
        {name: w for name, w in tensors.items() if w is not None},
        {key: value for key, value in metadata.items() if value is not None},
    )
    with read_gguf(path) as file, pytest.raises(MiniquantError, match=message):
        minigpt_from_gguf(file)
