"""weights.bump against a parser that shares no code with it: layout, order, blocks, and what is refused."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tracemalloc

import gguf
import numpy as np
import pytest
from bump_models import SMALL, TINY, llama_tensors, parse_bump, write_llama
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import tried

from miniquant import MiniquantError, WriteError
from miniquant.formats.bump import BumpType, open_bump, write_bump
from miniquant.formats.bump.types import BUMP_TYPES, HEADER, OFFSETS, SIZES, aligned
from miniquant.formats.gguf import GGMLType, RawTensor, read_gguf, write_gguf
from miniquant.models.corpus import load_tokenizer
from miniquant.models.minigpt import MiniGPTConfig, random_model
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import write_minigpt

LAYER = ["ln1_gamma", "ln2_gamma", "Wq", "bq", "Wk", "bk", "Wv", "bv", "Wo", "bo"]  # as the document draws it
LAYER += ["W_gate", "W_up", "b1", "W_down", "b2"]


@pytest.fixture(scope="module")
def minigpt(tmp_path_factory):
    """The trained model as Q8_0 in GGUF, and as bump."""
    folder = tmp_path_factory.mktemp("minigpt")
    write_minigpt(folder / "m.gguf", load_pretrained(), load_tokenizer(), "Q8_0")
    write_bump(folder / "m.gguf", folder / "weights.bump")
    return folder


def convert(folder, **how):
    write_llama(folder / "m.gguf", TINY, **how)
    write_bump(folder / "m.gguf", folder / "weights.bump")
    return parse_bump(folder / "weights.bump")


def test_the_header_is_the_document_s_table_byte_by_byte(tmp_path):
    convert(tmp_path)
    data = (tmp_path / "weights.bump").read_bytes()
    by_hand = (
        b"BUMPWGT3"
        + bytes([3, 0, 0, 0])  # version
        + bytes([1, 0, 0, 0])  # model_type
        + bytes([1, 0, 0, 0])  # num_layers
        + bytes([3, 0, 0, 0])  # vocab_size
        + bytes([4, 0, 0, 0])  # embed_dim
        + bytes([5, 0, 0, 0])  # context_len
        + bytes([2, 0, 0, 0])  # num_heads
        + bytes([2, 0, 0, 0])  # head_dim
        + bytes([16, 0, 0, 0, 0, 0, 0, 0]) * 3  # the aligned dims: 16 float32 are 64 bytes
        + hashlib.sha256(data[128:]).digest()
        + bytes(32)
    )
    assert data[:128] == by_hand
    assert HEADER.size == 128
    table = "0 8 12 16 20 24 28 32 36 40 48 56 64 96"
    assert list(OFFSETS.values()) == list(map(int, table.split()))
    assert sum(SIZES.values()) == 128


def test_the_tensors_stand_in_the_document_s_order_and_are_the_ones_of_the_gguf(tmp_path):
    weights = llama_tensors(**TINY)
    _, tensors = convert(tmp_path)
    names = [name for name, *_ in tensors]
    assert names == [
        "token_embd",
        *(f"layers.0.{part}" for part in LAYER),
        "output_norm",
    ]
    found = {name: raw for name, _, _, _, raw in tensors}
    sources = {"ln1_gamma": "attn_norm", "ln2_gamma": "ffn_norm", "Wq": "attn_q", "Wk": "attn_k", "Wv": "attn_v"}
    sources |= {"Wo": "attn_output", "W_gate": "ffn_gate", "W_up": "ffn_up", "W_down": "ffn_down"}
    for part, source in sources.items():
        assert found[f"layers.0.{part}"] == weights[f"blk.0.{source}.weight"].tobytes(), part
    assert found["token_embd"] == weights["token_embd.weight"].tobytes()
    assert found["output_norm"] == weights["output_norm.weight"].tobytes()
    for name in ["bq", "bk", "bv", "bo", "b1", "b2"]:
        assert not any(found[f"layers.0.{name}"])
    assert len(found["layers.0.b1"]) == 4 * 2 * TINY["inner"]  # gate and up
    assert all(offset % 64 == 0 for _, _, _, offset, _ in tensors)


def test_the_type_table_stands_behind_the_header_inside_the_hash_with_bump_s_own_codes(minigpt):
    data = (minigpt / "weights.bump").read_bytes()
    (count,) = struct.unpack_from("<I", data, 128)
    assert count == 4 + 12 * 4
    assert list(data[132:136]) == [8, 0, 0, 0]  # token_embd Q8_0, positions, ln1_gamma, ln1_beta FP32
    document = "FP32 0, BF16 1, FP16 2, INT8 3, INT4 4, Q4_0 5, Q4_K 6, Q6_K 7, Q8_0 8, Q8_K 9"
    named = [f"{kind.name} {kind.value}" for kind in BumpType]
    assert ", ".join(named[:10]) == document
    assert named[10:] == ["Q4_1 10", "Q5_0 11", "Q5_1 12", "Q5_K 13"]
    official = {kind.name: kind.value for kind in gguf.GGMLQuantizationType}
    for source, target in BUMP_TYPES.items():
        assert official[source.name] == source.value
        assert {"F32": "FP32", "F16": "FP16"}.get(source.name, source.name) == target.name


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0"])
def test_every_block_of_a_minigpt_is_copied_as_it_is(kind, tmp_path):
    config = MiniGPTConfig(vocab_size=1024, context=16, d_model=64, n_layers=2, n_heads=2, d_mlp=128)
    write_minigpt(tmp_path / "m.gguf", random_model(3, config), load_tokenizer(), kind)
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    _, tensors = parse_bump(tmp_path / "weights.bump")
    found = {name: (code, raw) for name, code, _, _, raw in tensors}
    sources = {"ln1_gamma": "attn_norm.weight", "ln1_beta": "attn_norm.bias", "ln2_gamma": "ffn_norm.weight"}
    sources |= {"ln2_beta": "ffn_norm.bias", "Wqkv": "attn_qkv.weight", "bqkv": "attn_qkv.bias"}
    sources |= {"Wo": "attn_output.weight", "bo": "attn_output.bias", "W_up": "ffn_up.weight", "b1": "ffn_up.bias"}
    sources |= {"W_down": "ffn_down.weight", "b2": "ffn_down.bias"}
    expected = {f"layers.{i}.{part}": f"blk.{i}.{source}" for i in range(2) for part, source in sources.items()}
    expected |= {"token_embd": "token_embd.weight", "position_embd": "position_embd.weight"}
    expected |= {"output_norm": "output_norm.weight", "output_norm_beta": "output_norm.bias"}
    official = {t.name: t for t in gguf.GGUFReader(tmp_path / "m.gguf").tensors}
    assert expected.keys() == found.keys() and set(expected.values()) == official.keys()
    for name, source in expected.items():
        code, raw = found[name]
        assert raw == official[source].data.tobytes(), name
        assert BumpType(code).ggml == official[source].tensor_type


def test_k_quants_are_copied_too(tmp_path):
    random, tensors = np.random.default_rng(0), llama_tensors(**SMALL)
    for name, w in tensors.items():
        if w.ndim == 2:
            kind = GGMLType.Q6_K if "down" in name else GGMLType.Q4_K
            raw = random.integers(0, 256, (w.shape[0], w.shape[1] // 256 * kind.n_bytes), np.uint8)
            tensors[name] = RawTensor(raw, kind, w.shape)
    write_llama(tmp_path / "m.gguf", SMALL, extra=tensors)
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    found = {name: (code, raw) for name, code, _, _, raw in parse_bump(tmp_path / "weights.bump")[1]}
    assert found["layers.1.W_down"] == (7, tensors["blk.1.ffn_down.weight"].raw.tobytes())
    assert found["layers.1.Wq"] == (6, tensors["blk.1.attn_q.weight"].raw.tobytes())


def test_the_reader_and_the_referee_agree(minigpt):
    header, tensors = parse_bump(minigpt / "weights.bump")
    with open_bump(minigpt / "weights.bump") as file, read_gguf(minigpt / "m.gguf") as source:
        assert [(t.name, t.dtype, t.shape, t.offset) for t in file.tensors.values()] == [t[:4] for t in tensors]
        for name, _, _, _, raw in tensors:
            assert file.raw(name).tobytes() == raw
            assert file.raw(name).ctypes.data % 64 == 0
        assert np.array_equal(file.tensor("layers.2.Wqkv"), source.tensor("blk.2.attn_qkv.weight"))
        assert file.header.checksum == header["checksum"]


def test_config_json_says_what_the_header_cannot_and_transformers_understands_it(minigpt, tmp_path):
    from transformers import AutoConfig

    gpt2 = AutoConfig.from_pretrained(minigpt)
    assert (gpt2.model_type, gpt2.n_embd, gpt2.n_inner, gpt2.n_positions) == ("gpt2", 256, 1024, 256)
    assert (gpt2.n_layer, gpt2.n_head, gpt2.vocab_size, gpt2.activation_function) == (4, 4, 1024, "gelu_new")
    convert(tmp_path, more={"llama.rope.freq_base": 500000.0})
    llama = AutoConfig.from_pretrained(tmp_path)
    assert (llama.num_key_value_heads, llama.intermediate_size, llama.hidden_size) == (1, 3, 4)
    assert (llama.rms_norm_eps, llama.rope_parameters["rope_theta"]) == (1e-5, 500000.0)
    assert (llama.tie_word_embeddings, llama.attention_bias, llama.mlp_bias) == (True, False, False)


def test_biases_of_a_llama_take_the_places_of_the_zeros(tmp_path):
    shapes = {"attn_q": 4, "attn_k": 2, "attn_v": 2, "ffn_up": 3}
    biases = {f"blk.0.{name}.bias": np.arange(1, n + 1, dtype=np.float32) for name, n in shapes.items()}
    found = {name: raw for name, _, _, _, raw in convert(tmp_path, extra=biases)[1]}
    assert found["layers.0.bq"] == biases["blk.0.attn_q.bias"].tobytes()
    assert found["layers.0.bv"] == biases["blk.0.attn_v.bias"].tobytes()
    assert found["layers.0.b1"] == bytes(12) + biases["blk.0.ffn_up.bias"].tobytes()  # no bias for the gate
    assert not any(found["layers.0.bo"])
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["attention_bias"] and config["mlp_bias"]


def test_a_rope_that_is_scaled_by_one_number_gets_that_number_for_every_pair(tmp_path):
    linear = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.5}
    _, tensors = convert(tmp_path, more=linear)
    assert [name for name, *_ in tensors][:3] == ["token_embd", "rope_factors", "layers.0.ln1_gamma"]
    assert tensors[1][1:3] == (0, (1,)) and tensors[1][4] == struct.pack("<f", 2.5)
    assert json.loads((tmp_path / "config.json").read_text())["rope_factors"] is True
    _, tensors = convert(tmp_path, more=linear | {"llama.attention.key_length": 6}, head_dim=6)
    assert tensors[1][4] == 3 * struct.pack("<f", 2.5)
    _, tensors = convert(tmp_path, more={"llama.rope.scaling.type": "none"})
    assert tensors[1][0] == "layers.0.ln1_gamma"
    write_minigpt(tmp_path / "g.gguf", load_pretrained(), load_tokenizer(), "Q8_0")
    with read_gguf(tmp_path / "g.gguf") as file:
        own = {f"gpt2.{key.partition('.')[2]}": value for key, value in linear.items()}
        write_gguf(tmp_path / "m.gguf", {n: file.tensor(n) for n in file.tensors}, {**file.metadata, **own})
    with pytest.raises(MiniquantError, match=r"gpt2\.rope\.scaling\.type is 'linear', expected 'none'"):
        write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")  # positions of a gpt2 are no angles


@pytest.fixture(scope="module")
def small_gpt2(tmp_path_factory):
    """The tensors and the metadata of a MiniGPT with heads of 32, as GGUF's gpt2."""
    path = tmp_path_factory.mktemp("gpt2") / "m.gguf"
    config = MiniGPTConfig(vocab_size=1024, context=16, d_model=64, n_layers=1, n_heads=2, d_mlp=128)
    write_minigpt(path, random_model(3, config), load_tokenizer(), "F32")
    with read_gguf(path) as file:
        return {name: file.tensor(name) for name in file.tensors}, dict(file.metadata)


@pytest.mark.parametrize(
    ("key", "right", "wrong", "expected"),
    [
        ("attention.key_length", 32, 64, "expected 32"),
        ("attention.value_length", 32, 64, "expected 32"),
        ("rope.dimension_count", 32, 64, "expected 32"),
        ("vocab_size", 1024, 1023, "expected 1024"),
        ("rope.scaling.type", "none", "yarn", "expected 'none'"),
        ("expert_count", 0, 8, "expected 0"),
        ("expert_used_count", 0, 2, "expected 0"),
        ("attention.head_count", 2, 3, "embedding_length is 64, no multiple of 3 heads"),
        ("attention.head_count_kv", 2, 3, "attention.head_count is 2, no multiple of head_count_kv, 3"),
        ("attention.layer_norm_epsilon", 1e-5, 0.0, "expected a number above 0"),
    ],
)
def test_a_key_of_a_gpt2_that_says_what_the_model_is_does_no_harm_and_another_value_is_refused(
    key, right, wrong, expected, small_gpt2, tmp_path
):
    tensors, metadata = small_gpt2
    write_gguf(tmp_path / "m.gguf", tensors, metadata | {f"gpt2.{key}": right})
    config = write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    assert (config.architecture, config.heads, config.kv_heads, config.head_dim) == ("gpt2", 2, 2, 32)
    assert (config.vocab, config.embed, config.context, config.intermediate) == (1024, 64, 16, 128)
    assert (config.epsilon, config.tied, config.attention_bias, config.mlp_bias) == (1e-5, True, True, True)
    write_gguf(tmp_path / "m.gguf", tensors, metadata | {f"gpt2.{key}": wrong})
    with pytest.raises(MiniquantError, match=expected):
        write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")


@pytest.mark.parametrize(("given", "kept"), [(0, 0), (2**32 - 1, 2**32 - 1), (2**32, None), (-1, None), ("1", None)])
def test_a_token_of_any_number_of_32_bits_has_its_place_in_config_json_and_anything_else_has_none(
    given, kept, tmp_path
):
    write_llama(tmp_path / "m.gguf", TINY, more={f"tokenizer.ggml.{name}_token_id": given for name in ("bos", "eos")})
    config = write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    assert (config.bos, config.eos) == (kept, kept)
    stored = json.loads((tmp_path / "config.json").read_text())
    assert (stored["bos_token_id"], stored["eos_token_id"]) == (kept, kept)


@pytest.mark.parametrize(("name", "attention", "mlp"), [("attn_output", True, False), ("ffn_down", False, True)])
def test_biases_of_one_part_say_nothing_of_the_other_part(name, attention, mlp, tmp_path):
    write_llama(tmp_path / "m.gguf", TINY, extra={f"blk.0.{name}.bias": np.ones(4, np.float32)})
    config = write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    assert (config.attention_bias, config.mlp_bias) == (attention, mlp)


def test_a_head_that_is_not_the_embedding_comes_last(tmp_path):
    head = np.arange(12, dtype=np.float32).reshape(3, 4)
    _, tensors = convert(tmp_path, extra={"output.weight": head})
    assert tensors[-1][0] == "output" and tensors[-1][4] == head.tobytes()
    assert json.loads((tmp_path / "config.json").read_text())["tie_word_embeddings"] is False


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"extra": {"rope_freqs.weight": np.ones(3, np.float32)}}, "'rope_freqs.weight' has shape (3,), expected (1,)"),
        ({"extra": {"blk.0.attn_q_norm.weight": np.ones(2, np.float32)}}, "no place for 'blk.0.attn_q_norm.weight'"),
        ({"extra": {"blk.1.attn_q.weight": np.ones((4, 4), np.float32)}}, "no place for 'blk.1.attn_q.weight'"),
        ({"more": {"llama.rope.scaling.type": "yarn"}}, "llama.rope.scaling.type is 'yarn', expected 'none'"),
        ({"more": {"llama.rope.scaling.factor": 2.0}}, "the key llama.rope.scaling.factor is 2.0, and nothing"),
        ({"more": {"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 2.0}}, "scaling.factor is 2.0, and"),
        (
            {"more": {"llama.rope.scaling.type": "linear"}},
            "llama.rope.scaling.factor is None, expected a number",
        ),
        (
            {"more": {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 0.0}},
            "the key llama.rope.scaling.factor is 0.0, expected a number above 0",
        ),
        (
            {
                "more": {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.0},
                "extra": {"rope_freqs.weight": np.ones(1, np.float32)},
            },
            "it has rope_freqs.weight and the rope scaling 'linear'; one or the other says how angles shrink",
        ),
        ({"more": {"llama.expert_count": 8}}, "llama.expert_count is 8, expected 0"),
        ({"more": {"llama.attention.key_length": 7}}, "'blk.0.attn_q.weight' has shape (4, 4), expected (14, 4)"),
        ({"more": {"llama.attention.value_length": 7}}, "llama.attention.value_length is 7, expected 2"),
        ({"more": {"llama.rope.dimension_count": 1}}, "llama.rope.dimension_count is 1, expected 2"),
        ({"more": {"llama.attention.sliding_window": 9}}, "nothing in a bump file can say that"),
        ({"more": {"llama.attention.layer_norm_rms_epsilon": float("nan")}}, "expected a number above 0"),
        ({"more": {"llama.block_count": 2}}, "'blk.1.attn_norm.weight' is missing"),
        ({"more": {"llama.block_count": 10**9}}, "layers cannot be made of"),
        ({"more": {"llama.feed_forward_length": 4}}, "has shape (3, 4), expected (4, 4)"),
        ({"more": {"llama.attention.head_count": 3}}, "no multiple of 3 heads"),
        ({"more": {"llama.attention.head_count": [2]}}, "expected a whole number above 0"),
        (
            {"more": {"general.architecture": "qwen3"}},
            "its architecture is 'qwen3'; bump has layouts for llama, gpt2, qwen2",
        ),
        ({"kinds": {"attn_q": "F64"}}, "attn_q.weight' is F64, for which bump has no code"),
    ],
)
def test_what_the_layout_cannot_hold_is_refused_and_nothing_is_written(how, message, tmp_path):
    if "kinds" in how:
        w = llama_tensors(**TINY)["blk.0.attn_q.weight"].astype(np.float64)
        how = {"extra": {"blk.0.attn_q.weight": w}}
    write_llama(tmp_path / "m.gguf", TINY, **how)
    with pytest.raises(MiniquantError) as caught:
        write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    assert message in str(caught.value)
    assert os.listdir(tmp_path) == ["m.gguf"]


def test_q3_k_has_no_code_and_a_quantized_norm_no_place(tmp_path):
    write_llama(tmp_path / "a.gguf", SMALL, {"ffn_up": "Q3_K"})
    with pytest.raises(MiniquantError, match="is Q3_K, for which bump has no code; export the GGUF in one of F32"):
        write_bump(tmp_path / "a.gguf", tmp_path / "weights.bump")
    norm = np.ones(256, np.float32).astype(np.float16)
    write_llama(tmp_path / "b.gguf", SMALL, extra={"output_norm.weight": norm})
    with pytest.raises(MiniquantError, match=r"output_norm.weight' is F16; norms and biases are F32"):
        write_bump(tmp_path / "b.gguf", tmp_path / "weights.bump")


def test_the_same_model_gives_the_same_bytes_and_another_another_checksum(tmp_path):
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / folder).mkdir()
        convert(tmp_path / folder, seed=seed)
    for name in ("weights.bump", "config.json"):
        a, b, c = ((tmp_path / folder / name).read_bytes() for folder in "abc")
        assert a == b != c


def test_writing_takes_a_few_megabytes_whatever_the_size_of_the_model(tmp_path):
    w = np.zeros((16384, 512), np.float32)  # 32 MiB
    sizes = dict(embed=512, heads=4, kv_heads=4, inner=512, vocab=4, context=8, layers=1)
    write_llama(tmp_path / "m.gguf", sizes, extra={"token_embd.weight": w})
    tracemalloc.start()
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2**20 < (tmp_path / "weights.bump").stat().st_size / 8


def test_opening_allocates_next_to_nothing(minigpt):
    open_bump(minigpt / "weights.bump")
    tracemalloc.start()
    open_bump(minigpt / "weights.bump")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500_000 < (minigpt / "weights.bump").stat().st_size / 4


def test_a_failure_leaves_both_files_as_they_were(tmp_path, monkeypatch):
    convert(tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in ("weights.bump", "config.json")}
    write_llama(tmp_path / "m.gguf", TINY, seed=1)
    import miniquant.formats.bump.write as module

    def no_room(*_):
        raise OSError(28, "No space left on device")

    for broken in ("_pieces", "config_text"):
        with monkeypatch.context() as patch:
            patch.setattr(module, broken, no_room)
            with pytest.raises(OSError, match="No space left"):
                write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
        assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert sorted(os.listdir(tmp_path)) == ["config.json", "m.gguf", "weights.bump"]


def test_weights_and_config_of_two_conversions_do_not_pass_for_a_pair(tmp_path):
    convert(tmp_path)
    old = (tmp_path / "config.json").read_bytes()
    convert(tmp_path, seed=1)
    (tmp_path / "config.json").write_bytes(old)  # as if the machine had stopped between the two
    with pytest.raises(MiniquantError, match=r"header.checksum at byte 64: .*config.json belongs to"):
        open_bump(tmp_path / "weights.bump")


def test_a_config_json_of_somebody_else_is_not_overwritten(tmp_path):
    write_llama(tmp_path / "m.gguf", TINY)
    theirs = '{"model_type": "llama", "torch_dtype": "bfloat16"}'
    (tmp_path / "config.json").write_text(theirs)
    with pytest.raises(WriteError, match="was not written by to-bump; choose another folder"):
        write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    assert (tmp_path / "config.json").read_text() == theirs
    (tmp_path / "config.json").unlink()
    write_bump(tmp_path / "m.gguf", tmp_path / "a.bump")
    with pytest.raises(WriteError, match=r"it belongs to a\.bump"):
        write_bump(tmp_path / "m.gguf", tmp_path / "b.bump")
    for name in ("config.json", "m.gguf"):
        with pytest.raises(WriteError, match="that name is taken"):
            write_bump(tmp_path / "m.gguf", tmp_path / name)
    write_bump(tmp_path / "m.gguf", tmp_path / "a.bump")  # the same again is fine


@settings(max_examples=tried(15, 50), deadline=None)
@given(
    heads=st.integers(1, 4),
    head_dim=st.integers(1, 9),
    group=st.integers(1, 3),
    inner=st.integers(1, 40),
    vocab=st.integers(1, 20),
    layers=st.integers(1, 3),
    context=st.integers(1, 70),
    tied=st.booleans(),
    seed=st.integers(0, 99),
)
def test_any_llama_comes_back_tensor_by_tensor(
    tmp_path_factory, heads, head_dim, group, inner, vocab, layers, context, tied, seed
):
    folder = tmp_path_factory.mktemp("any")
    kv_heads, heads = heads, heads * group
    sizes = dict(embed=heads * head_dim, heads=heads, kv_heads=kv_heads, inner=inner)
    sizes |= dict(vocab=vocab, context=context, layers=layers)
    head = {} if tied else {"output.weight": np.full((vocab, heads * head_dim), 2.5, np.float32)}
    write_llama(folder / "m.gguf", sizes, extra=head, seed=seed)
    write_bump(folder / "m.gguf", folder / "weights.bump")
    header, tensors = parse_bump(folder / "weights.bump")
    assert header["aligned"] == tuple(-(-dim // 16) * 16 for dim in (heads * head_dim, head_dim, context))
    official = {t.name: t.data.tobytes() for t in gguf.GGUFReader(folder / "m.gguf").tensors}
    kept = [raw for _, _, shape, _, raw in tensors if any(raw)]
    assert sorted(kept) == sorted(official.values())
    with open_bump(folder / "weights.bump") as file:
        assert [file.raw(name).tobytes() for name in file.tensors] == [raw for *_, raw in tensors]


def test_aligned_dims_are_counts_whose_float32_bytes_are_multiples_of_64():
    assert [aligned(n) * 4 % 64 for n in range(1, 200)] == [0] * 199
    assert all(0 <= aligned(n) - n < 16 for n in range(1, 200))


def test_a_scalar_and_a_raw_tensor_of_the_wrong_shape_are_refused(tmp_path):
    write_gguf(tmp_path / "m.gguf", {"token_embd.weight": np.float32(1)}, {"general.architecture": "llama"})
    with pytest.raises(MiniquantError, match="cannot become a bump file"):
        write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
