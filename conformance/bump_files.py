"""Bump files, valid and malformed, built with ``struct`` alone: the weights and the ``config.json`` beside them.

A malformation is made from a valid pair, so that the tests can make the same ones from the pairs that the library
writes. Where only the structure shall be wrong, both checksums are made right again.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

ZEROS = b'"config_sha256": "' + b"0" * 64 + b'"'
OWN = re.compile(rb'"config_sha256": "[0-9a-f]{64}"')
FIELDS = ["version", "model_type", "num_layers", "vocab_size", "embed_dim", "context_len", "num_heads", "head_dim"]
Shapes = list[tuple[str, tuple[int, ...]]]


class BumpMalformation(NamedTuple):
    """``offset`` is the byte in the file at fault, the weights or ``config.json``; ``None`` where it is arbitrary."""

    weights: bytes
    config: bytes | None
    field: str
    offset: int | None


def layout(header: dict[str, int], config: dict[str, Any]) -> Shapes:
    """The tensors of a file in their order. A bump file says neither name nor shape: they follow from these numbers."""
    e, v, q = header["embed_dim"], header["vocab_size"], header["num_heads"] * header["head_dim"]
    shapes: Shapes = [("token_embd", (v, e))]
    if header["model_type"] in (1, 3):
        if config["rope_factors"]:
            shapes.append(("rope_factors", (header["head_dim"] // 2,)))
        kv, inner = config["num_key_value_heads"] * header["head_dim"], config["intermediate_size"]
        layer = [("ln1_gamma", (e,)), ("ln2_gamma", (e,)), ("Wq", (q, e)), ("bq", (q,)), ("Wk", (kv, e)), ("bk", (kv,))]
        layer += [("Wv", (kv, e)), ("bv", (kv,)), ("Wo", (e, q)), ("bo", (e,)), ("W_gate", (inner, e))]
        layer += [("W_up", (inner, e)), ("b1", (2 * inner,)), ("W_down", (e, inner)), ("b2", (e,))]
        last = [("output_norm", (e,))]
    else:
        inner = config["n_inner"]
        shapes.append(("position_embd", (header["context_len"], e)))
        layer = [("ln1_gamma", (e,)), ("ln1_beta", (e,)), ("ln2_gamma", (e,)), ("ln2_beta", (e,))]
        layer += [("Wqkv", (3 * e, e)), ("bqkv", (3 * e,)), ("Wo", (e, e)), ("bo", (e,)), ("W_up", (inner, e))]
        layer += [("b1", (inner,)), ("W_down", (e, inner)), ("b2", (e,))]
        last = [("output_norm", (e,)), ("output_norm_beta", (e,))]
    for i in range(header["num_layers"]):
        shapes += [(f"layers.{i}.{name}", shape) for name, shape in layer]
    shapes += last
    if not config["tie_word_embeddings"]:
        shapes.append(("output", (v, e)))
    return shapes


def rehashed(data: bytes) -> bytes:
    """The weights with the right checksum, whatever else they say."""
    return data[:64] + hashlib.sha256(data[128:]).digest() + data[96:]


def resigned(text: bytes) -> bytes:
    """config.json with the right checksum of its own, whatever else it says."""
    digits = hashlib.sha256(OWN.sub(ZEROS, text)).hexdigest().encode()
    return OWN.sub(b'"config_sha256": "' + digits + b'"', text)


def belonging(text: bytes, weights: bytes) -> bytes:
    """config.json with the checksums of these weights and of itself."""
    return resigned(
        re.sub(rb'"weights_sha256": "\w+"', b'"weights_sha256": "' + weights[64:96].hex().encode() + b'"', text)
    )


# ---- valid -----------------------------------------------------------------------------------------------------------

BLOCKS = {"FP32": (0, 1, 4), "Q4_0": (5, 32, 18), "Q8_0": (8, 32, 34)}  # code, weights and bytes of a block
LLAMA = dict(model_type=1, num_layers=1, vocab_size=3, embed_dim=4, context_len=5, num_heads=2, head_dim=2)
GPT2 = LLAMA | dict(model_type=2)
WIDE = LLAMA | dict(embed_dim=32, head_dim=16)


class Weights(NamedTuple):
    """One tensor: its type by name, its shape, the file's offset, its bytes, and the weights that they stand for."""

    name: str
    kind: str
    shape: tuple[int, ...]
    offset: int
    raw: bytes
    values: list[float]


def config_values(header: dict[str, int], kv_heads: int, inner: int, tied: bool = True) -> dict[str, Any]:
    """The keys of config.json without the checksums, in their order."""
    llama = header["model_type"] == 1
    end = {"tie_word_embeddings": tied}
    if not llama:
        keys = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new"}
        names = {
            "n_layer": "num_layers",
            "vocab_size": "vocab_size",
            "n_embd": "embed_dim",
            "n_positions": "context_len",
        }
        keys |= {key: header[name] for key, name in names.items()} | {"n_head": header["num_heads"], "n_inner": inner}
        return keys | {"layer_norm_epsilon": 1e-5} | end | {"bos_token_id": None, "eos_token_id": None}
    keys = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu"}
    keys |= {"num_hidden_layers": header["num_layers"], "vocab_size": header["vocab_size"]}
    keys |= {"hidden_size": header["embed_dim"], "max_position_embeddings": header["context_len"]}
    keys |= {"num_attention_heads": header["num_heads"], "head_dim": header["head_dim"]}
    keys |= {"num_key_value_heads": kv_heads, "intermediate_size": inner, "rms_norm_eps": 1e-5, "rope_theta": 10000.0}
    keys |= {"rope_factors": False} | end | {"attention_bias": False, "mlp_bias": False}
    return keys | {"bos_token_id": None, "eos_token_id": None}


def encoded(kind: str, index: int, count: int) -> tuple[bytes, list[float]]:
    """Bytes for so many weights, another ones for each tensor, and what they stand for: all exact in float32."""
    if kind == "FP32":
        values = [((index * 7 + i * 3) % 33 - 16) / 8 for i in range(count)]
        return struct.pack(f"<{count}f", *values), values
    raw, values = b"", []
    for block in range(count // 32):
        scale = 2.0 ** -(1 + (index + block) % 5)
        levels = [(index + block * 5 + i * 11) % (16 if kind == "Q4_0" else 255) for i in range(32)]
        raw += struct.pack("<e", scale)
        if kind == "Q4_0":  # byte i holds weight i in its low half and weight i + 16 in its high half
            raw += bytes(levels[i] | levels[i + 16] << 4 for i in range(16))
            values += [scale * (level - 8) for level in levels]
        else:
            raw += struct.pack("<32b", *(level - 127 for level in levels))
            values += [scale * (level - 127) for level in levels]
    return raw, values


def bump(
    header: dict[str, int], kv_heads: int, inner: int, kind: str = "FP32", tied: bool = True
) -> tuple[bytes, bytes, list[Weights]]:
    """The weights, the config.json, and what is in them; matrices are of that type, norms and biases FP32."""
    values = config_values(header, kv_heads, inner, tied)
    shapes = layout(header, values)
    kinds = [kind if len(shape) == 2 else "FP32" for _, shape in shapes]
    body = struct.pack("<I", len(shapes)) + bytes(BLOCKS[each][0] for each in kinds)
    tensors = []
    for index, ((name, shape), each) in enumerate(zip(shapes, kinds)):
        body += bytes(-len(body) % 64)
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        raw, numbers = encoded(each, index, count)
        tensors.append(Weights(name, each, shape, 128 + len(body), raw, numbers))
        body += raw
    body += bytes(-len(body) % 64)
    aligned = [-(-header[name] // 16) * 16 for name in ("embed_dim", "head_dim", "context_len")]
    head = struct.pack("<8s8I3Q", b"BUMPWGT3", 3, *(header[name] for name in FIELDS[1:]), *aligned)
    weights = rehashed(head + bytes(64) + body)
    own = {"file": "weights.bump", "layout": "aligned", "weights_sha256": "", "config_sha256": "0" * 64}
    own |= {"tokenizer_sha256": None, "weights_sha256": weights[64:96].hex()}
    text = resigned(json.dumps({**values, "bump": own}, indent=2).encode() + b"\n")
    return weights, text, tensors


# ---- malformed -------------------------------------------------------------------------------------------------------

HEADER_LIES = {  # byte, format, value -> field, byte of the error
    "magic": (0, "8s", b"BUMPWGT4"),
    "version": (8, "I", 2),
    "model_type": (12, "I", 3),
    "num_layers": (16, "I", 0),
    "vocab_size": (20, "I", 0),
    "embed_dim": (24, "I", 0),
    "context_len": (28, "I", 0),
    "num_heads": (32, "I", 0),
    "head_dim": (36, "I", 3),
    "aligned_embed_dim": (40, "Q", 64),
    "aligned_head_dim": (48, "Q", 2),
    "aligned_context": (56, "Q", 2**63),
    "checksum": (64, "32s", bytes(32)),
    "reserved": (96, "32s", bytes(31) + b"\1"),
}


def malformations(weights: bytes, config: bytes) -> Iterator[tuple[str, BumpMalformation]]:
    """Names and malformed files, each made from this valid pair."""
    for field, (at, form, value) in HEADER_LIES.items():
        data = bytearray(weights)
        struct.pack_into(f"<{form}", data, at, value)
        yield f"header with a wrong {field}", BumpMalformation(bytes(data), config, f"header.{field}", at)

    def structure(data: bytes, field: str, offset: int | None) -> BumpMalformation:
        data = rehashed(data)
        return BumpMalformation(data, belonging(config, data), field, offset)

    def patched(at: int, new: bytes) -> bytes:
        return weights[:at] + new + weights[at + len(new) :]

    (count,) = struct.unpack_from("<I", weights, 128)
    last = 132 + count - 1
    wrongs = {"none": 0, "one less": count - 1, "two more": count + 2, "2^31": 2**31, "all ones": 2**32 - 1}
    for name, wrong in wrongs.items():
        yield f"type count {name}", structure(patched(128, struct.pack("<I", wrong)), "dtype table: count", 128)
    for code, name in {3: "INT8", 4: "INT4", 10: "Q4_1", 12: "Q5_1", 255: "all ones", 8: "Q8_0"}.items():
        yield f"first type {name}", structure(patched(132, bytes([code])), "dtype table: tensor 0", 132)
    yield "last type FP16", structure(patched(last, b"\2"), f"dtype table: tensor {count - 1}", last)
    yield (
        "a byte in the padding after the types",
        structure(patched(last + 1, b"\1"), "padding after the dtype table", last + 1),
    )
    yield "a byte in the padding at the end", structure(weights[:-1] + b"\1", "padding after ", None)
    yield "64 bytes more", structure(weights + bytes(64), "end", None)
    yield "cut in the header", BumpMalformation(weights[:100], config, "header", 0)
    yield "cut in the types", BumpMalformation(weights[:133], config, "dtype table", 132)
    yield "cut in a tensor", BumpMalformation(weights[: len(weights) // 2], config, "tensor", None)
    yield "an empty file", BumpMalformation(b"", config, "header", 0)
    changed = weights[:-64] + bytes([weights[-64] ^ 1]) + weights[-63:]
    yield "a flipped bit in a weight", BumpMalformation(changed, config, "header.checksum", 64)

    yield "no config.json", BumpMalformation(weights, None, "config.json", None)
    double = resigned(config.replace(b'  "model_type"', b'  "model_type": "gpt2",\n  "model_type"'))
    for name, text, field in [
        ("an empty config.json", b"", "config.json"),
        ("a config.json that is a list", b"[]", "config.json"),
        ("a config.json that is cut", config[:-3], "bump.config_sha256"),
        ("a config.json that is there twice", config + config, "bump.config_sha256"),
        ("a config.json with an epsilon that was edited", config.replace(b"1e-05", b"1e-06"), "bump.config_sha256"),
        ("a config.json with a key twice", double, "config.json"),
    ]:
        yield name, BumpMalformation(weights, text, field, None)
    llama = b"rope_theta" in config
    for key, value, field in [
        ("vocab_size", 4, "header.vocab_size"),
        ("tie_word_embeddings", False, "dtype table: count"),
        ("bos_token_id", -1, "bos_token_id"),
        ("num_hidden_layers" if llama else "n_layer", 2, "header.num_layers"),
        ("intermediate_size" if llama else "n_inner", 2**31, "tensor"),
        ("num_attention_heads" if llama else "n_head", 3, "header.num_heads" if llama else "n_embd"),
    ]:
        said = json.loads(config)
        said[key] = value
        text = resigned(json.dumps(said, indent=2).encode() + b"\n")
        yield f"a config.json whose {key} is {value}", BumpMalformation(weights, text, field, None)
