"""Models for the tests of bump: a small llama written as GGUF, and a parser of bump files that knows struct alone."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from conformance.bump_files import FIELDS, layout
from miniquant.formats.gguf import write_gguf

TINY = dict(embed=4, heads=2, kv_heads=1, inner=3, vocab=3, context=5, layers=1)
SMALL = dict(embed=256, heads=4, kv_heads=2, inner=512, vocab=96, context=64, layers=2)


def llama_tensors(
    *,
    embed: int,
    heads: int,
    kv_heads: int,
    inner: int,
    vocab: int,
    layers: int,
    seed: int = 0,
    head_dim: int = 0,
    **_: int,
) -> dict[str, np.ndarray]:
    """Random weights under llama.cpp's names, float32; no biases, no head."""
    random = np.random.default_rng(seed)
    head_dim = head_dim or embed // heads
    kv, q = head_dim * kv_heads, head_dim * heads

    def matrix(rows: int, columns: int) -> np.ndarray:
        return random.normal(0, 0.5 / np.sqrt(columns), (rows, columns)).astype(np.float32)

    def gamma() -> np.ndarray:
        return random.normal(1, 0.1, embed).astype(np.float32)

    tensors = {"token_embd.weight": 4 * matrix(vocab, embed), "output_norm.weight": gamma()}
    for i in range(layers):
        shapes = {"attn_q": (q, embed), "attn_k": (kv, embed), "attn_v": (kv, embed), "attn_output": (embed, q)}
        shapes |= {"ffn_gate": (inner, embed), "ffn_up": (inner, embed), "ffn_down": (embed, inner)}
        tensors |= {f"blk.{i}.{name}.weight": matrix(*shape) for name, shape in shapes.items()}
        tensors |= {f"blk.{i}.attn_norm.weight": gamma(), f"blk.{i}.ffn_norm.weight": gamma()}
    return tensors


def llama_metadata(*, embed: int, heads: int, kv_heads: int, inner: int, context: int, layers: int, **_: int) -> dict:
    """The keys that llama.cpp wants of a llama."""
    return {
        "general.architecture": "llama",
        "llama.block_count": layers,
        "llama.context_length": context,
        "llama.embedding_length": embed,
        "llama.feed_forward_length": inner,
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": kv_heads,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 10000.0,
    }


def write_llama(
    path: Path, sizes: dict[str, int], kinds: Any = None, extra: dict | None = None, more: dict | None = None, **change
) -> dict[str, Any]:
    """Write a llama as GGUF: ``kinds`` maps parts of names to types, ``extra`` are tensors, ``more`` metadata."""
    tensors: dict[str, Any] = {**llama_tensors(**(sizes | change)), **(extra or {})}
    for name, w in tensors.items():
        kind = next((k for part, k in (kinds or {}).items() if part in name and getattr(w, "ndim", 0) == 2), None)
        if kind is not None:
            tensors[name] = (w, kind)
    write_gguf(path, tensors, {**llama_metadata(**(sizes | change)), **(more or {})})
    return tensors


def write_qwen2(path: Path, sizes: dict[str, int], kinds: Any = None, more: dict | None = None, **change) -> None:
    """The same under the names of a qwen2, with biases on q, k and v; its head is the embedding."""
    sizes = sizes | change
    random, head_dim = np.random.default_rng(9), sizes.get("head_dim") or sizes["embed"] // sizes["heads"]
    tensors: dict[str, Any] = llama_tensors(**sizes)
    for i in range(sizes["layers"]):
        for name, heads in (("q", "heads"), ("k", "kv_heads"), ("v", "kv_heads")):
            bias = random.normal(0, 0.5, head_dim * sizes[heads]).astype(np.float32)
            tensors[f"blk.{i}.attn_{name}.bias"] = bias
    for name, w in tensors.items():
        kind = next((k for part, k in (kinds or {}).items() if part in name and w.ndim == 2), None)
        tensors[name] = w if kind is None else (w, kind)
    metadata = {key.replace("llama.", "qwen2."): value for key, value in llama_metadata(**sizes).items()}
    write_gguf(path, tensors, {**metadata, "general.architecture": "qwen2", **(more or {})})


# ---- the referee -----------------------------------------------------------------------------------------------------

BLOCKS = {0: (1, 4), 1: (1, 2), 2: (1, 2), 5: (32, 18), 6: (256, 144), 7: (256, 210), 8: (32, 34), 9: (256, 292)}
BLOCKS |= {10: (32, 20), 11: (32, 22), 12: (32, 24), 13: (256, 176)}


def parse_bump(path: Path) -> tuple[dict[str, Any], list[tuple[str, int, tuple[int, ...], int, bytes]]]:
    """The header, and (name, code, shape, offset, bytes) of each tensor, by struct, hashlib and json alone."""
    data, config = path.read_bytes(), json.loads((path.parent / "config.json").read_text())
    assert data[:8] == b"BUMPWGT3"
    words = struct.unpack("<8I", data[8:40])
    header: dict[str, Any] = dict(zip(FIELDS, words))
    header["aligned"] = struct.unpack("<3Q", data[40:64])
    header["checksum"] = data[64:96]
    assert data[96:128] == bytes(32)
    assert hashlib.sha256(data[128:]).digest() == data[64:96]
    (count,) = struct.unpack("<I", data[128:132])
    codes = data[132 : 132 + count]
    shapes = layout(header, config)
    assert len(shapes) == count
    at, tensors = 132 + count, []
    for (name, shape), code in zip(shapes, codes):
        at += -at % 64
        weights, size = BLOCKS[code]
        length = size
        for dim in shape:
            length *= dim
        length //= weights
        tensors.append((name, code, shape, at, data[at : at + length]))
        assert len(tensors[-1][4]) == length
        at += length
    assert at + -at % 64 == len(data)
    return header, tensors
