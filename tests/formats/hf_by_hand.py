"""Hugging Face folders of a toy llama and a toy GPT-2, written byte by byte: no library's version changes them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np


def weights(seed: int, *shape: int) -> np.ndarray:
    """Bell-shaped, standard deviation 0.29, between -1 and 1: float32 that needs 18 bits, so nothing is rounded."""
    return _weights(seed, *shape).copy()


@cache
def _weights(seed: int, *shape: int) -> np.ndarray:
    raw = np.random.PCG64(seed).random_raw(int(np.prod(shape, dtype=int)))
    parts = (raw >> np.uint64(at) & np.uint64(0xFFFF) for at in (0, 16, 32, 48))
    total = np.add.reduce([part.astype(np.int64) for part in parts])
    return ((total - 2 * 0xFFFF) * 2.0**-17).astype(np.float32).reshape(shape)


def byte_symbols() -> list[str]:
    """GPT-2's characters for the 256 bytes, spelled out anew."""
    printed = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printed else next(others)) for byte in range(256)]


MERGES = ["t h", "th e", "i n", "Ġ the", "in g", "e r", "Ġ a"]
VOCABULARY = 280  # of the models; the tokenizers have fewer


def safetensors(tensors: dict[str, np.ndarray], dtype: str) -> bytes:
    """The container, byte by byte."""
    header, parts, at = {}, [], 0
    for name, w in tensors.items():
        if dtype == "BF16":
            raw = (w.view(np.uint32) >> np.uint32(16)).astype("<u2").tobytes()  # cut off
        else:
            raw = w.astype({"F32": "<f4", "F16": "<f2"}[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": list(w.shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")


def write_tokenizer(folder: Path, pre: str) -> None:
    """A byte-level BPE with seven merges: as tokenizer.json, or as GPT-2's two lists."""
    tokens = ["<s>", "</s>", *byte_symbols(), *("".join(merge.split(" ")) for merge in MERGES)]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    named = {"bos_token": "<s>", "eos_token": "</s>"}
    if pre == "lists":
        write_json(folder / "vocab.json", vocabulary)
        (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *MERGES]) + "\n", "utf-8")
        write_json(folder / "tokenizer_config.json", {"tokenizer_class": "GPT2Tokenizer", **named})
        return
    steps: list[dict] = [{"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}]
    if pre == "smollm":
        steps.insert(0, {"type": "Digits", "individual_digits": True})
    added = [("<s>", 0, True), ("</s>", 1, True), ("<|tool|>", len(tokens), False)]
    template = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    found = {
        "added_tokens": [{"content": token, "id": i, "special": special} for token, i, special in added],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps} if len(steps) > 1 else steps[0],
        "post_processor": {"type": "TemplateProcessing", "single": template},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [merge.split(" ") for merge in MERGES]},
    }
    write_json(folder / "tokenizer.json", found)
    write_json(folder / "tokenizer_config.json", {**named, "chat_template": "{{ messages }}"})


def write_folder(folder: Path, shapes: dict[str, tuple[int, ...]], dtype: str, shards: int, pre: str) -> None:
    tensors = {name: weights(seed, *shape) for seed, (name, shape) in enumerate(shapes.items(), 100)}
    names = list(tensors)
    if shards == 1:
        (folder / "model.safetensors").write_bytes(safetensors(tensors, dtype))
    else:
        places = {}
        for i in range(shards):
            shard, mine = f"model-{i + 1:05}-of-{shards:05}.safetensors", names[i::shards]
            (folder / shard).write_bytes(safetensors({name: tensors[name] for name in mine}, dtype))
            places |= dict.fromkeys(mine, shard)
        write_json(folder / "model.safetensors.index.json", {"weight_map": places})
    write_tokenizer(folder, pre)


def llama_folder(folder: Path, d: int = 64, dtype: str = "F32", shards: int = 1, pre: str = "gpt-2", **more) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": d,
        "intermediate_size": 3 * d // 2 if d < 256 else d, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "hidden_act": "silu", **more,
    }  # fmt: skip
    write_json(folder / "config.json", config)
    mlp, bias = config["intermediate_size"], config.get("attention_bias", False)
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCABULARY, d)}
    for i in range(2):
        at = f"model.layers.{i}"
        for name, rows in (("q", d), ("k", d // 2), ("v", d // 2), ("o", d)):
            shapes[f"{at}.self_attn.{name}_proj.weight"] = (rows, d)
            if bias:
                shapes[f"{at}.self_attn.{name}_proj.bias"] = (rows,)
        shapes |= {f"{at}.mlp.gate_proj.weight": (mlp, d), f"{at}.mlp.up_proj.weight": (mlp, d)}
        shapes |= {f"{at}.mlp.down_proj.weight": (d, mlp), f"{at}.input_layernorm.weight": (d,)}
        shapes |= {f"{at}.post_attention_layernorm.weight": (d,)}
    shapes["model.norm.weight"] = (d,)
    if not config.get("tie_word_embeddings"):
        shapes["lm_head.weight"] = (VOCABULARY, d)
    write_folder(folder, shapes, dtype, shards, pre)


def gpt2_folder(folder: Path, d: int = 64, dtype: str = "F32", shards: int = 1, pre: str = "gpt-2", prefix="") -> None:
    config = {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": VOCABULARY, "n_embd": d,
        "n_head": 4, "n_layer": 2, "n_positions": 32, "activation_function": "gelu_new",
    }  # fmt: skip
    write_json(folder / "config.json", config)
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (VOCABULARY, d), "wpe.weight": (32, d)}
    for i in range(2):
        for name, rows, columns in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("mlp.c_fc", d, 4 * d)):
            shapes |= {f"h.{i}.{name}.weight": (rows, columns), f"h.{i}.{name}.bias": (columns,)}
        shapes |= {f"h.{i}.mlp.c_proj.weight": (4 * d, d), f"h.{i}.mlp.c_proj.bias": (d,)}
        shapes |= {f"h.{i}.{ln}.{part}": (d,) for ln in ("ln_1", "ln_2") for part in ("weight", "bias")}
    shapes |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
    write_folder(folder, {prefix + name: shape for name, shape in shapes.items()}, dtype, shards, pre)
