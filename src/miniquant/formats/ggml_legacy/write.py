"""Write legacy GGML, as its GPT-2 example did; ``types`` has the layout."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

from .types import HPARAMS, MAGIC, LegacyType

_PARTS = {
    "ln1": "ln_1",
    "ln2": "ln_2",
    "qkv": "attn/c_attn",
    "proj": "attn/c_proj",
    "fc1": "mlp/c_fc",
    "fc2": "mlp/c_proj",
}


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
    """A whole file; ``more`` are numbers that a later version puts before ftype. Matrices take ftype's type.

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
        out.append(np.ascontiguousarray(w, LegacyType(kind).numpy).tobytes())
    return b"".join(out)
