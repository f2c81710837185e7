"""A MiniGPT, with its tokenizer, as a GGUF file of architecture ``gpt2`` that llama.cpp runs.

What changes on the way: the names, the types (llama.cpp wants biases and norms in F32), and a tokenizer in the
metadata. The weights do not: PyTorch's ``(out, in)`` is what ggml calls ``{in, out}``, the same bytes in one order.

Source: ``llama.cpp/src/llama-arch.cpp`` and ``models/gpt2.cpp`` for names and keys, ``llama-vocab.cpp`` for the
tokenizer's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.errors import MiniquantError, SchemeError
from ..formats.gguf.codecs import CODECS
from ..formats.gguf.metadata import Typed, ValueType
from ..formats.gguf.types import GGMLType
from ..formats.gguf.write import write_gguf
from ..quantization.schemes import role_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from ..formats.gguf.read import GGUFFile
    from .minigpt import MiniGPT

FILE_TYPES = {  # llama.h, enum llama_ftype; for a K-quant its ..._S, where it has one
    **{"F32": 0, "F16": 1, "BF16": 32, "Q8_0": 7, "Q4_0": 2, "Q4_1": 3},
    **{"Q2_K": 21, "Q3_K": 11, "Q4_K": 14, "Q4_K_M": 15, "Q5_K": 16, "Q6_K": 18},
}
MIXES = ("Q4_K_M",)
QUANTIZATION_VERSION = 2  # ggml.h, GGML_QNT_VERSION
_PARTS = {
    "ln1": "attn_norm",
    "attn.qkv": "attn_qkv",
    "attn.proj": "attn_output",
    "ln2": "ffn_norm",
    "mlp.fc1": "ffn_up",
    "mlp.fc2": "ffn_down",
}
_WHOLE = {"tok_emb": "token_embd", "pos_emb": "position_embd", "ln_f": "output_norm"}


def gguf_name(name: str) -> str:
    """llama.cpp's name of a MiniGPT parameter. Raises ``SchemeError`` for a parameter that a MiniGPT does not have.

    >>> gguf_name("layers.2.mlp.fc1.weight"), gguf_name("ln_f.bias")
    ('blk.2.ffn_up.weight', 'output_norm.bias')
    """
    owner, _, kind = name.rpartition(".")
    if owner in _WHOLE:
        return f"{_WHOLE[owner]}.{kind}"
    layers, _, rest = owner.partition(".")
    number, _, part = rest.partition(".")
    if layers != "layers" or part not in _PARTS:
        raise SchemeError(f"{name!r} is no parameter of a MiniGPT; llama.cpp's gpt2 has no place for it")
    return f"blk.{number}.{_PARTS[part]}.{kind}"


def minigpt_types(model: MiniGPT, kind: str, embedding: str | None = None) -> dict[str, str]:
    """The type of every parameter, by our names: ``kind`` for the linear layers, F32 for norms, biases and positions.

    The token embedding is the output head as well, and few bits cost it too much: it is Q6_K where ``kind`` is a
    K-quant, as in llama.cpp, and Q8_0 where it is Q4_0 or Q4_1, unless ``embedding`` says otherwise. ``Q4_K_M`` is a
    mix: Q4_K, but Q5_K for the fused ``attn_qkv``, and Q6_K for ``ffn_down`` where ``more_bits`` says so.
    Raises ``SchemeError`` for a type without a codec.

    Source of the mix: ``llama_tensor_get_type`` in ``llama.cpp/src/llama-quant.cpp``.
    """
    kind = _known(kind, MIXES)
    chosen = {"weight": kind.removesuffix("_M"), "token embedding": _known(embedding or head_type(kind))}
    types = {name: chosen.get(role_of(name), "F32") for name in model.state_dict()}
    if kind == "Q4_K_M":
        n_layers = model.config.n_layers
        for i in range(n_layers):
            types[f"layers.{i}.attn.qkv.weight"] = "Q5_K"
            types[f"layers.{i}.mlp.fc2.weight"] = "Q6_K" if more_bits(i, n_layers) else "Q4_K"
    return types


def head_type(kind: str) -> str:
    """The type of a token embedding or an output head beside matrices of a type.

    >>> head_type("Q4_K_M"), head_type("Q4_0"), head_type("F16")
    ('Q6_K', 'Q8_0', 'F16')
    """
    return "Q6_K" if "_K" in kind else "Q8_0" if kind.startswith("Q4") else kind


def more_bits(layer: int, n_layers: int) -> bool:
    """Whether Q4_K_M stores ``ffn_down`` of a layer in Q6_K: in the first and last eighth, and every third between.

    Source: ``use_more_bits`` in ``llama.cpp/src/llama-quant.cpp``.

    >>> [layer for layer in range(32) if more_bits(layer, 32)]
    [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]
    """
    first = n_layers // 8
    return layer < first or layer >= 7 * n_layers // 8 or (layer - first) % 3 == 2


def minigpt_metadata(model: MiniGPT, tokenizer: Tokenizer, kind: str = "F32", name: str = "MiniGPT") -> dict[str, Any]:
    """Every key that llama.cpp needs to run the model, and the few that it guesses wrong without.

    Raises ``SchemeError`` for an unknown type, or a tokenizer that is not the model's.
    """
    config = model.config
    kind = _known(kind, MIXES)
    n_tokens = tokenizer.get_vocab_size()
    if n_tokens != config.vocab_size:
        raise SchemeError(f"the tokenizer has {n_tokens} tokens, the model {config.vocab_size}; pass its own tokenizer")
    metadata: dict[str, Any] = {
        "general.architecture": "gpt2",
        "general.name": name,
        "general.file_type": FILE_TYPES[kind],
        "gpt2.context_length": config.context,
        "gpt2.embedding_length": config.d_model,
        "gpt2.block_count": config.n_layers,
        "gpt2.feed_forward_length": config.d_mlp,
        "gpt2.attention.head_count": config.n_heads,
        "gpt2.attention.layer_norm_epsilon": config.layer_norm_epsilon,
    }
    if kind.startswith("Q"):
        metadata["general.quantization_version"] = QUANTIZATION_VERSION
    return metadata | minigpt_tokenizer_metadata(tokenizer)


def minigpt_tokenizer_metadata(tokenizer: Tokenizer) -> dict[str, Any]:
    """A byte-level BPE tokenizer as llama.cpp's ``gpt2`` vocabulary; special tokens are of type CONTROL.

    Raises ``SchemeError`` for a tokenizer without a special token: llama.cpp wants to know where a text ends.
    """
    parts: Mapping[str, Any] = json.loads(tokenizer.to_str())
    special = {token["id"] for token in parts["added_tokens"] if token["special"]}
    if parts["model"]["type"] != "BPE" or not special:
        raise SchemeError(f"a BPE tokenizer with a special token is needed, found {parts['model']['type']}, {special=}")
    tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in parts["model"]["merges"]]
    end = min(special)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if i in special else 1 for i in range(len(tokens))],
        "tokenizer.ggml.merges": Typed(merges, ValueType.ARRAY, ValueType.STRING),
        "tokenizer.ggml.bos_token_id": end,
        "tokenizer.ggml.eos_token_id": end,
        "tokenizer.ggml.add_bos_token": False,
    }


def write_minigpt(
    path: str | os.PathLike[str], model: MiniGPT, tokenizer: Tokenizer, kind: str = "F32", embedding: str | None = None
) -> None:
    """Write a MiniGPT as a GGUF file that llama.cpp runs; ``kind`` is one of ``FILE_TYPES``.

    Raises ``SchemeError`` for an unknown type, and whatever ``write_gguf`` raises.
    """
    types = minigpt_types(model, kind, embedding)
    tensors = {gguf_name(name): (w.detach(), types[name]) for name, w in model.state_dict().items()}
    write_gguf(path, tensors, minigpt_metadata(model, tokenizer, kind))


def minigpt_from_gguf(file: GGUFFile) -> MiniGPT:
    """Rebuild a MiniGPT from an open GGUF file of architecture ``gpt2``, in evaluation mode.

    Raises ``MiniquantError`` if a key or a tensor is missing, has another shape, or has no place in a MiniGPT.
    """
    import torch

    from .minigpt import MiniGPT, MiniGPTConfig

    architecture = file.metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture != "gpt2":
        raise MiniquantError(f"the file's architecture is {architecture!r:.80}; expected 'gpt2'")
    sizes = {}
    for field, key in _CONFIG_KEYS.items():
        value = file.metadata.get(key)
        if isinstance(value, bool) or not isinstance(value, float if field == "layer_norm_epsilon" else int):
            raise MiniquantError(f"the metadata lacks the number {key}; the file does not describe a whole model")
        if not 0 < value < 2**31:
            raise MiniquantError(f"the metadata says {key}={value}; expected a number above 0 and below 2**31")
        sizes[field] = value
    vocabulary = file.tensors["token_embd.weight"].shape[:1] if "token_embd.weight" in file.tensors else ()
    if sizes["n_layers"] > len(file.tensors) or not vocabulary:  # before anything of that size is built
        raise MiniquantError(
            f"{len(file.tensors)} tensors cannot make up this model; token_embd.weight and others are missing"
        )
    try:
        config = MiniGPTConfig(vocab_size=vocabulary[0], **sizes)
        with torch.device("meta"):
            expected = {name: tuple(w.shape) for name, w in MiniGPT(config).state_dict().items()}
    except (ValueError, RuntimeError) as error:  # heads that do not divide; sizes that overflow
        raise MiniquantError(f"the metadata describes no MiniGPT: {error}") from None
    found = {name: info.shape for name, info in file.tensors.items()}
    wanted = {gguf_name(name): shape for name, shape in expected.items()}
    if found != wanted:
        wrong = sorted(found.items() ^ wanted.items())[0][0]
        raise MiniquantError(
            f"tensor {wrong!r} has shape {found.get(wrong, 'missing')}, expected {wanted.get(wrong, 'no such tensor')}"
        )
    model = MiniGPT(config)
    model.load_state_dict({name: torch.from_numpy(file.tensor(gguf_name(name))) for name in expected})
    return model.eval()


_CONFIG_KEYS = {
    "context": "gpt2.context_length",
    "d_model": "gpt2.embedding_length",
    "n_layers": "gpt2.block_count",
    "n_heads": "gpt2.attention.head_count",
    "d_mlp": "gpt2.feed_forward_length",
    "layer_norm_epsilon": "gpt2.attention.layer_norm_epsilon",
}


def _known(kind: str, mixes: tuple[str, ...] = ()) -> str:
    found = kind.name if isinstance(kind, GGMLType) else str(kind).upper()
    names = [*(codec.name for codec in CODECS), *mixes]
    if found not in names:
        raise SchemeError(f"no type {kind!r}; there are {', '.join(names)}")
    return found
