"""The file format that GGUF replaced: legacy GGML, as its GPT-2 example wrote it. Kept for the lab that shows why.

1. magic      the number 0x67676d6c, which lies on disk as "lmgg"
2. numbers    n_vocab, n_ctx, n_embd, n_head, n_layer, ftype: an i32 each, without names; the reader knows the order
3. vocabulary an i32 how many tokens; for each an i32 length and its bytes
4. tensors    to the end of the file: i32 n_dims, i32 length of the name, i32 type, an i32 for each dim, innermost
              first, the name, the data; no alignment, no count

ftype is the type of most matrices, plus 1000 times the version of the quantization. Linear weights lie here as PyTorch
keeps them.

Source: ``examples/gpt-2/convert-ckpt-to-ggml.py`` of ggml in 2023, and *Historical State of Affairs* in ``gguf.md``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import FormatError

MAGIC = 0x67676D6C
HPARAMS = ("n_vocab", "n_ctx", "n_embd", "n_head", "n_layer", "ftype")
DTYPES = {0: np.dtype("<f4"), 1: np.dtype("<f2")}  # GGML's types of tensors: F32 and F16
_PARTS = {
    "ln1": "ln_1",
    "ln2": "ln_2",
    "qkv": "attn/c_attn",
    "proj": "attn/c_proj",
    "fc1": "mlp/c_fc",
    "fc2": "mlp/c_proj",
}


class GGMLFile(NamedTuple):
    """What a reader found: numbers by name, tokens as bytes, tensors by name."""

    hparams: dict[str, int]
    vocabulary: list[bytes]
    tensors: dict[str, np.ndarray]


def ggml_name(name: str) -> str:
    """A parameter's name in a GPT-2 of GGML.

    >>> ggml_name("layers.0.attn.qkv.weight"), ggml_name("layers.3.ln2.bias"), ggml_name("tok_emb.weight")
    ('model/h0/attn/c_attn/w', 'model/h3/ln_2/b', 'model/wte')
    """
    *owners, kind = name.split(".")
    if owners[0] in ("tok_emb", "pos_emb"):
        return {"tok_emb": "model/wte", "pos_emb": "model/wpe"}[owners[0]]
    norm = owners[-1].startswith("ln")
    last = {"weight": "g" if norm else "w", "bias": "b"}[kind]
    if owners[0] == "ln_f":
        return f"model/ln_f/{last}"
    return f"model/h{owners[1]}/{_PARTS[owners[-1]]}/{last}"


def ggml_bytes(
    hparams: Mapping[str, int], vocabulary: Sequence[bytes], tensors: Mapping[str, np.ndarray], more: Sequence[int] = ()
) -> bytes:
    """A whole file; ``more`` are numbers that a later version puts in front of ftype. Matrices take ftype's type.

    tensors: {name: (…) float32}
    """
    out = [struct.pack("<I", MAGIC)]
    numbers = [hparams[name] for name in HPARAMS]
    out.append(struct.pack(f"<{len(numbers) + len(more)}i", *numbers[:-1], *more, numbers[-1]))
    out.append(struct.pack("<i", len(vocabulary)))
    out += [struct.pack("<i", len(token)) + token for token in vocabulary]
    for name, w in tensors.items():
        kind = hparams["ftype"] % 1000 if w.ndim == 2 else 0
        text = name.encode()
        out.append(struct.pack(f"<3i{w.ndim}i", w.ndim, len(text), kind, *reversed(w.shape)) + text)
        out.append(np.ascontiguousarray(w, DTYPES[kind]).tobytes())
    return b"".join(out)


def read_ggml(data: bytes) -> GGMLFile:
    """Read a file the way a program of that time did: by position, believing what it says.

    Raises ``FormatError`` only where it cannot go on: another magic, an impossible length, a type it does not know.
    """
    at = 0

    def take(size: int, what: str) -> bytes:
        nonlocal at
        if not 0 <= size <= len(data) - at:
            raise FormatError(f"{size} bytes are wanted, {len(data) - at} are left", field=what, offset=at)
        at += size
        return data[at - size : at]

    def numbers(count: int, what: str) -> tuple[int, ...]:
        return struct.unpack(f"<{count}i", take(4 * count, what))

    magic = struct.unpack("<I", take(4, "magic"))[0]
    if magic != MAGIC:
        raise FormatError(f"found 0x{magic:08x}, expected 0x{MAGIC:08x}", field="magic", offset=0)
    hparams = dict(zip(HPARAMS, numbers(len(HPARAMS), "hyperparameters")))
    vocabulary = []
    for index in range(numbers(1, "number of tokens")[0]):
        vocabulary.append(take(numbers(1, f"token {index}: length")[0], f"token {index}"))
    tensors: dict[str, Any] = {}
    while at < len(data):
        n_dims, length, kind = numbers(3, "tensor header")
        if kind not in DTYPES or not 0 <= n_dims <= 4:
            raise FormatError(
                f"{n_dims} dims of type {kind}; known are types 0 and 1", field="tensor header", offset=at - 12
            )
        dims = numbers(n_dims, "dims")[::-1]
        name = take(length, "tensor name").decode("utf-8", "replace")
        raw = take(math.prod(dims) * DTYPES[kind].itemsize, f"tensor {name!r}")
        tensors[name] = np.frombuffer(raw, DTYPES[kind]).reshape(dims)
    return GGMLFile(hparams, vocabulary, tensors)
