"""C-Kernel-Engine's own body, checked byte for byte against a table of its fields that knows nothing of our writer.

The table says what that project's document and its converter for GGUF files agree on; it was written from them, as a
list of what stands where. Nothing of ``miniquant`` makes the expected bytes.
"""

from __future__ import annotations

import hashlib
import json
import struct

import numpy as np
import pytest
from bump_models import SMALL, TINY, llama_tensors, write_llama, write_qwen2
from gguf import GGUFReader

from miniquant import FormatError, MiniquantError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.bump import open_bump, write_bump
from miniquant.formats.fields import fields
from miniquant.models.corpus import load_tokenizer
from miniquant.models.load import weights_of
from miniquant.models.to_gguf import minigpt_tokenizer_metadata
from miniquant.runtime.runtime import Runtime

HEADER = """
0  8s BUMPWGT3
8  I  3
12 I  1
16 I  layers
20 I  vocab
24 I  embed
28 I  context
32 I  heads
36 I  head_dim
40 Q  embed
48 Q  head_dim
56 Q  context_in_lines
64 32s sha256
96 32s zeros
"""
FIRST = "token_embd.weight | zeros context*embed"
LAYER = """
attn_norm.weight | ffn_norm.weight
attn_q.weight | zeros heads*head_dim
attn_k.weight | zeros kv_heads*head_dim
attn_v.weight | zeros kv_heads*head_dim
attn_output.weight | zeros embed
ffn_gate.weight + ffn_up.weight | zeros 2*inner
ffn_down.weight | zeros embed
"""  # 14 entries, each with a byte in the table of types
LAST = "output_norm.weight | zeros embed"
CODES = {"F32": 0, "Q4_K": 6, "Q6_K": 7}


def expected(gguf, sizes) -> bytes:
    """The whole file, made of the tables above and of the raw tensors that the official package reads."""
    tensors = {t.name: t for t in GGUFReader(gguf).tensors}
    sizes = sizes | {"head_dim": sizes["embed"] // sizes["heads"]}
    entries = FIRST.split("|")
    for i in range(sizes["layers"]):
        for line in LAYER.strip().splitlines():
            for entry in line.split("|"):
                named = entry.split("+")
                entries.append("+".join(f"blk.{i}.{n.strip()}" if "zeros" not in n else n for n in named))
    entries += LAST.split("|")
    types, body = b"", b""
    for entry in (entry.strip() for entry in entries):
        if entry.startswith("zeros"):
            types += b"\0"
            body += bytes(4 * eval(entry[5:], {}, sizes))
            continue
        parts = [tensors[name.strip()] for name in entry.split("+")]
        types += bytes([CODES[parts[0].tensor_type.name]])
        body += b"".join(part.data.tobytes() for part in parts)
    assert len(types) == 14 * sizes["layers"] + 4
    payload = struct.pack("<I", len(types)) + types + body  # nothing between the two, and nothing after them
    known = {"BUMPWGT3": b"BUMPWGT3", "sha256": hashlib.sha256(payload).digest(), "zeros": bytes(32)}
    known |= {"context_in_lines": -(-sizes["context"] // 16) * 16}
    header = b""
    for at, form, value in (line.split() for line in HEADER.strip().splitlines()):
        assert len(header) == int(at)
        found = known.get(value, sizes.get(value))
        header += struct.pack("<" + form, int(value) if found is None else found)
    return header + payload


@pytest.mark.parametrize(
    ("sizes", "kinds"),
    [
        (TINY, {}),
        (TINY | {"layers": 2}, {}),  # 32 types, as many as our own layout has for two layers
        (SMALL, {"": "Q4_K"}),
        (SMALL | {"kv_heads": 4, "context": 33}, {"ffn_down": "Q6_K", "token": "Q6_K", "attn_v": "F32", "": "Q4_K"}),
    ],
    ids=["tiny", "two layers", "Q4_K", "mixed"],
)
def test_the_file_is_the_one_that_the_table_of_fields_describes(sizes, kinds, tmp_path):
    write_llama(tmp_path / "m.gguf", sizes, {part: kind for part, kind in kinds.items() if kind != "F32"})
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump", "ckernel")
    data = (tmp_path / "weights.bump").read_bytes()
    assert data == expected(tmp_path / "m.gguf", sizes)
    with open_bump(tmp_path / "weights.bump") as file:
        assert (file.config.layout, file.alignment) == ("ckernel", 1)
        assert [t.name for t in file.tensors.values()][:2] == ["token_embd", "position_embd"]
        assert len(file.tensors) == 14 * sizes["layers"] + 4


def test_a_file_with_the_config_json_of_its_converter_is_read_and_runs(tmp_path):
    """The converter's keys, and no checksum in it."""
    sizes = SMALL | {"vocab": 1024}
    write_llama(tmp_path / "m.gguf", sizes, {"": "Q4_K"}, more=minigpt_tokenizer_metadata(load_tokenizer()))
    (tmp_path / "weights.bump").write_bytes(expected(tmp_path / "m.gguf", sizes))
    (tmp_path / "config.json").write_text(json.dumps(converter_s(sizes), indent=2) + "\n")
    tokens = np.random.default_rng(0).integers(0, 1024, 40).tolist()
    with Runtime(tmp_path / "weights.bump") as model:
        theirs = model.logits(tokens)
        assert model.file.beside.checksum is None and model.file.beside.tokenizer is None
        with pytest.raises(MiniquantError, match="has no tokenizer beside it"):
            model.file.tokenizer()
    with LlamaCpp(tmp_path / "m.gguf", 64) as other:
        assert (theirs.argmax(1) == other.logits(tokens).argmax(1)).mean() > 0.8  # it rounds activations to 8 bits
    (tmp_path / "ours").mkdir()
    for layout in ("aligned", "ckernel"):
        write_bump(tmp_path / "m.gguf", tmp_path / "ours" / "weights.bump", layout)
        with Runtime(tmp_path / "ours" / "weights.bump") as model:
            assert np.array_equal(model.logits(tokens), theirs)
    assert (tmp_path / "ours" / "weights.bump").read_bytes() == (tmp_path / "weights.bump").read_bytes()


def converter_s(sizes) -> dict:
    """``config.json`` as C-Kernel-Engine's converter writes it: its eleven keys."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": sizes["layers"],
        "hidden_size": sizes["embed"],
        "intermediate_size": sizes["inner"],
        "num_attention_heads": sizes["heads"],
        "num_key_value_heads": sizes["kv_heads"],
        "vocab_size": sizes["vocab"],
        "max_position_embeddings": sizes["context"],
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
    }


@pytest.fixture
def tiny(tmp_path):
    """A file of the converter: the weights, and its own config.json."""
    write_llama(tmp_path / "m.gguf", TINY)
    (tmp_path / "weights.bump").write_bytes(expected(tmp_path / "m.gguf", TINY))
    (tmp_path / "config.json").write_text(json.dumps(converter_s(TINY)))
    return tmp_path


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("model_type", "qwen2", "model_type"),
        ("architectures", ["Qwen2ForCausalLM"], "architectures"),
        ("hidden_size", 5, "hidden_size"),
        ("num_hidden_layers", 0, "num_hidden_layers"),
        ("num_hidden_layers", 2, "header.num_layers"),
        ("num_hidden_layers", 10**9, "header.num_layers"),
        ("vocab_size", 4, "header.vocab_size"),
        ("num_attention_heads", 4, "header.num_heads"),
        ("intermediate_size", 4, "tensor 'layers.0.W_down'"),
        ("rms_norm_eps", 0.0, "rms_norm_eps"),
        ("extra", 1, "bump.config_sha256"),
    ],
)
def test_what_the_converter_s_config_json_must_not_say_is_named(key, value, field, tiny):
    (tiny / "config.json").write_text(json.dumps(converter_s(TINY) | {key: value}))
    with pytest.raises(FormatError) as caught:
        open_bump(tiny / "weights.bump")
    assert caught.value.field == field


def test_every_byte_of_the_weights_is_under_the_checksum_and_placeholders_are_zeros(tiny):
    path, data = tiny / "weights.bump", (tiny / "weights.bump").read_bytes()
    open_bump(path).close()
    for at in range(128, len(data), 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(FormatError):
            open_bump(path)
    with_names = {f.name: f for f in fields(tiny / "weights.bump")}
    assert not [name for name in with_names if name.startswith("padding")]
    for name in ("position_embd", "output_norm_beta"):
        field = with_names[f"tensor {name!r}: data"]
        damaged = bytearray(data)
        damaged[field.end - 1] = 1
        damaged[64:96] = hashlib.sha256(damaged[128:]).digest()
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match="these bytes are zeros in a llama") as caught:
            open_bump(path)
        assert (caught.value.field, caught.value.offset) == (f"tensor {name!r}", field.start)
    path.write_bytes(data)
    explained = {f.name: f.explanation for f in fields(path)}
    assert explained["tensor 'position_embd': data"] == "zeros: the place of positions that the model does not have"
    assert explained["tensor 'layers.0.bq': data"] == "zeros: the place of a bias that the model does not have"


def test_the_two_layouts_do_not_pass_for_each_other(tmp_path):
    """With one or two layers they may have equally many types."""
    for layers in (1, 2, 3):
        write_llama(tmp_path / "m.gguf", TINY | {"layers": layers})
        write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
        (tmp_path / "config.json").write_text(json.dumps(converter_s(TINY | {"layers": layers})))
        with pytest.raises(FormatError) as caught:
            open_bump(tmp_path / "weights.bump")
        assert caught.value.field in ("dtype table: count", "header.aligned_embed_dim")
        (tmp_path / "config.json").unlink()


def test_real_biases_take_the_places_of_the_zeros(tmp_path):
    bias = np.arange(1, 5, dtype=np.float32)
    write_llama(tmp_path / "m.gguf", TINY, extra={"blk.0.attn_q.bias": bias})
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump", "ckernel")
    with open_bump(tmp_path / "weights.bump") as file:
        assert np.array_equal(file.tensor("layers.0.bq"), bias)
    found, weights = weights_of(tmp_path / "weights.bump"), llama_tensors(**TINY)
    assert found.keys() == weights.keys() | {"blk.0.attn_q.bias"}
    assert all(np.array_equal(found[name], w) for name, w in weights.items())


@pytest.mark.parametrize("which", ["qwen2", "head", "factors", "linear", "wide heads", "Q8_0", "two types"])
def test_what_the_layout_has_no_place_for_is_refused(which, tmp_path):
    path, message = tmp_path / "m.gguf", "holds a llama whose head is its embedding, whose heads are together as wide"
    if which == "qwen2":
        write_qwen2(path, TINY)
    elif which == "head":
        write_llama(path, TINY, extra={"output.weight": np.ones((3, 4), np.float32)})
    elif which == "factors":
        write_llama(path, TINY, extra={"rope_freqs.weight": np.ones(1, np.float32)})
    elif which == "linear":
        assert not [key for key in [*converter_s(TINY), *HEADER.split()] if "scal" in key or "factor" in key]
        write_llama(path, TINY, more={"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.0})
    elif which == "wide heads":
        write_llama(path, TINY, more={"llama.attention.key_length": 4, "llama.attention.value_length": 4}, head_dim=4)
    elif which == "Q8_0":
        write_llama(path, SMALL, {"attn_q": "Q8_0"})
        message = "'blk.0.attn_q.weight' is Q8_0, for which bump has no code; export the GGUF in one of F32, Q4_K, Q6_K"
    else:
        write_llama(path, SMALL, {"ffn_up": "Q6_K", "": "Q4_K"})
        message = "blk.0.ffn_gate.weight and blk.0.ffn_up.weight, which are Q4_K and Q6_K, not one type"
    with pytest.raises(MiniquantError) as caught:
        write_bump(path, tmp_path / "weights.bump", "ckernel")
    assert message in str(caught.value)
    assert not (tmp_path / "weights.bump").exists()
