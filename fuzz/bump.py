"""Bump files for the fuzzer. One is two files, so they are damaged as one: the weights, a line between, config.json.

Both carry checksums, which notice every damage. So most damaged files get them mended, and one of the injuries tells
the same lie in the header and in config.json: only then does a reader look further.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import struct
import tempfile
from pathlib import Path

import numpy as np

from miniquant.formats.bump import open_bump, write_bump
from miniquant.formats.bump.types import COUNT, HEADER, MAGIC, OFFSETS, SIZES, BumpConfig, aligned, parts
from miniquant.formats.gguf import write_gguf
from miniquant.formats.gguf.codecs import CODECS

from .mutate import EXTREMES, INJURIES
from .seeds import Seed

BETWEEN = b"\n---- config.json ----\n"
CHECKSUM = slice(OFFSETS["checksum"], OFFSETS["checksum"] + 32)
NAMES = {  # field of the header -> its key in config.json: a llama's, a gpt2's
    "num_layers": ("num_hidden_layers", "n_layer"),
    "vocab_size": ("vocab_size", "vocab_size"),
    "embed_dim": ("hidden_size", "n_embd"),
    "context_len": ("max_position_embeddings", "n_positions"),
    "num_heads": ("num_attention_heads", "n_head"),
    "head_dim": ("head_dim", "head_dim"),
    "": ("intermediate_size", "n_inner"),
}


def read_bump(path: str) -> None:
    """Everything in a bump file, its two parts laid beside each other first."""
    weights, _, config = Path(path).read_bytes().partition(BETWEEN)
    for name, data in (("weights.bump", weights), ("config.json", config)):
        beside = Path(path).with_name(name)
        beside.unlink(missing_ok=True)
        beside.write_bytes(data)
    with open_bump(Path(path).with_name("weights.bump")) as file:
        for name, info in file.tensors.items():
            assert len(file.raw(name)) == info.n_bytes
            if info.dtype.ggml in CODECS:
                assert file.tensor(name).shape == info.shape


def bump_seeds() -> list[Seed]:
    """A llama with and without biases, in float32 and in blocks; a gpt2, a qwen2; C-Kernel-Engine's layout."""
    small = dict(layers=1, vocab=3, embed=4, context=5, heads=2, head_dim=2, kv_heads=1, intermediate=3)
    wide = small | dict(embed=32, head_dim=16, intermediate=32, layers=2)
    rest = dict(epsilon=1e-5, rope_theta=1e4, tied=True)
    configs = [
        (BumpConfig("llama", **small, **rest), "F32"),
        (BumpConfig("llama", **wide, **(rest | {"tied": False, "attention_bias": True})), "Q4_0"),
        (BumpConfig("gpt2", **(wide | {"kv_heads": 2}), **rest), "Q8_0"),
        (BumpConfig("qwen2", **(small | {"head_dim": 6}), **rest, attention_bias=True, rope_factors=True), "F32"),
        (BumpConfig("llama", **small, **rest, layout="ckernel"), "F32"),
    ]
    return [_seed(_written(config, kind)) for config, kind in configs]


def _written(config: BumpConfig, kind: str) -> bytes:
    keys = {"block_count": config.layers, "context_length": config.context, "embedding_length": config.embed}
    keys |= {"feed_forward_length": config.intermediate, "attention.head_count": config.heads}
    if config.architecture != "gpt2":
        keys |= {"attention.key_length": config.head_dim, "attention.value_length": config.head_dim}
        keys |= {"attention.head_count_kv": config.kv_heads, "attention.layer_norm_rms_epsilon": config.epsilon}
        keys |= {"rope.freq_base": config.rope_theta}
    else:
        keys |= {"attention.layer_norm_epsilon": config.epsilon}
    metadata = {f"{config.architecture}.{key}": value for key, value in keys.items()}
    tensors = {}
    for part in parts(config):
        if part.optional and not config.attention_bias:
            continue
        rows = part.shape[0] // len(part.sources)
        for source in part.sources:
            w = np.linspace(-1, 1, rows * int(np.prod(part.shape[1:])), dtype=np.float32)
            w = w.reshape(rows, *part.shape[1:])
            tensors[source] = (w, kind) if w.ndim == 2 and kind != "F32" else w
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "m.gguf", Path(folder) / "weights.bump"
        write_gguf(source, tensors, {"general.architecture": config.architecture, **metadata})
        write_bump(source, target, config.layout)
        return target.read_bytes() + BETWEEN + target.with_name("config.json").read_bytes()


def _seed(data: bytes) -> Seed:
    (count,) = COUNT.unpack_from(data, HEADER.size)
    numbers = [(OFFSETS[name], SIZES[name]) for name in SIZES if SIZES[name] <= 8] + [(HEADER.size, COUNT.size)]
    types = [(at, at + 1) for at in range(HEADER.size + COUNT.size, HEADER.size + COUNT.size + count)]
    digits = [(at.start(), 1) for at in re.finditer(rb"(?<=: )\d", data)]
    return Seed(data, [*numbers, *((at, 1) for at, _ in types[:6]), *digits], {(HEADER.size, COUNT.size): types})


def mend(data: bytearray) -> None:
    """Make the three checksums right again, as far as there is room for them."""
    weights, between, config = bytes(data).partition(BETWEEN)
    if len(weights) < HEADER.size:
        return
    found = hashlib.sha256(weights[HEADER.size :]).digest()
    data[CHECKSUM] = found
    config = re.sub(rb'(?<="weights_sha256": ")[^"]*', found.hex().encode(), config)
    own = re.compile(rb'(?<="config_sha256": ")[^"]*')
    blank = own.sub(b"0" * 64, config)
    data[len(weights) :] = between + own.sub(hashlib.sha256(blank).hexdigest().encode(), blank)


def mend_if_bump(data: bytearray) -> None:
    """``mend``, for files among which there are others."""
    if BETWEEN in data and data.startswith(MAGIC):
        mend(data)


def lie_twice(random: random.Random, data: bytearray, seed: Seed, seeds: list[Seed]) -> None:
    """The header and config.json say the same wrong number; what follows from it is right again."""
    weights, between, config = bytes(data).partition(BETWEEN)
    try:
        found = json.loads(config)
        names = {name: keys[found["model_type"] == "gpt2"] for name, keys in NAMES.items()}
        name, key = random.choice(list(names.items()))
        old = int(found.get(key, 1))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return
    drawn = random.choice([*EXTREMES, old + 1, old - 1, 2 * old, 16 * old, len(data)]) & (2**32 - 1)
    found[key] = drawn
    if len(weights) >= HEADER.size and name:
        struct.pack_into("<I", data, OFFSETS[name], drawn)
        wide = {"embed_dim": "aligned_embed_dim", "head_dim": "aligned_head_dim", "context_len": "aligned_context"}
        if name in wide:
            struct.pack_into("<Q", data, OFFSETS[wide[name]], aligned(drawn))
    data[len(weights) :] = between + json.dumps(found, indent=2).encode() + b"\n"


BUMP_INJURIES = [*INJURIES, *[lie_twice] * 8]
