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
from ..formats.gguf.metadata import Typed, ValueType
from ..formats.gguf.types import GGMLType
from ..formats.gguf.write import write_gguf
from .file_types import file_type, quantization_version, tensor_type

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from ..formats.gguf.read import GGUFFile
    from .minigpt import MiniGPT

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


def minigpt_types(model: MiniGPT, kind: GGMLType | str, embedding: GGMLType | str | None = None) -> dict[str, str]:
    """The type of every parameter, by our names: ``kind`` for the linear layers, F32 for norms, biases and positions.

    ``kind`` is one of ``FILE_TYPES``, a mix among them. The token embedding is the output head as well, and takes the
    type of a head unless ``embedding`` says otherwise. Raises ``SchemeError`` for a type without a codec.
    """
    config = model.config
    keys = {"block_count": config.n_layers, "attention.head_count": config.n_heads}
    shapes = {gguf_name(name): tuple(w.shape) for name, w in model.state_dict().items()}
    quantized = file_type(kind).types_of(
        shapes, {"general.architecture": "gpt2"} | {f"gpt2.{key}": value for key, value in keys.items()}
    )
    types = {name: quantized.get(gguf_name(name), GGMLType.F32).name for name in model.state_dict()}
    if embedding is not None:
        types["tok_emb.weight"] = tensor_type(embedding).name
    return types


def minigpt_metadata(
    model: MiniGPT,
    tokenizer: Tokenizer,
    kind: GGMLType | str = "F32",
    name: str = "MiniGPT",
    embedding: GGMLType | str | None = None,
) -> dict[str, Any]:
    """Every key that llama.cpp needs to run the model, and the few that it guesses wrong without.

    Raises ``SchemeError`` for an unknown type, or a tokenizer that is not the model's.
    """
    config = model.config
    types = minigpt_types(model, kind, embedding).values()
    n_tokens = tokenizer.get_vocab_size()
    if n_tokens != config.vocab_size:
        raise SchemeError(f"the tokenizer has {n_tokens} tokens, the model {config.vocab_size}; pass its own tokenizer")
    metadata: dict[str, Any] = {
        "general.architecture": "gpt2",
        "general.name": name,
        "general.file_type": file_type(kind).number,
        "gpt2.context_length": config.context,
        "gpt2.embedding_length": config.d_model,
        "gpt2.block_count": config.n_layers,
        "gpt2.feed_forward_length": config.d_mlp,
        "gpt2.attention.head_count": config.n_heads,
        "gpt2.attention.layer_norm_epsilon": config.layer_norm_epsilon,
    }
    version = quantization_version(GGMLType[dtype] for dtype in types)
    return metadata | version | minigpt_tokenizer_metadata(tokenizer)


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
    path: str | os.PathLike[str],
    model: MiniGPT,
    tokenizer: Tokenizer,
    kind: GGMLType | str = "F32",
    embedding: GGMLType | str | None = None,
) -> None:
    """Write a MiniGPT as a GGUF file that llama.cpp runs; ``kind`` is one of ``FILE_TYPES``.

    The weights of quantized layers are written as they were frozen where ``kind`` is F32; any other type rounds them
    again, and ``bridge.ModelExporter`` writes their integers.

    Raises ``SchemeError`` for an unknown type or a quantized layer that is not frozen, and whatever ``write_gguf``
    raises.
    """
    from .quantizer import refuse_thawed

    refuse_thawed(model)
    types = minigpt_types(model, kind, embedding)
    tensors = {gguf_name(name): (w.detach(), types[name]) for name, w in model.state_dict().items()}
    write_gguf(path, tensors, minigpt_metadata(model, tokenizer, kind, embedding=embedding))


def minigpt_from_gguf(file: GGUFFile) -> MiniGPT:
    """Rebuild a MiniGPT from an open GGUF file of architecture ``gpt2``, in evaluation mode.

    Raises ``MiniquantError`` if a key or a tensor is missing, has another shape, or has no place in a MiniGPT.
    """
    import torch

    from .minigpt import MiniGPTConfig, parameter_shapes, with_weights

    architecture = file.metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture != "gpt2":
        raise MiniquantError(f"the file's architecture is {architecture!r:.80}; expected 'gpt2'")
    sizes: dict[str, Any] = {}
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
    except ValueError as error:  # heads that do not divide
        raise MiniquantError(f"the metadata describes no MiniGPT: {error}") from None
    found = {name: info.shape for name, info in file.tensors.items()}
    expected = parameter_shapes(config)
    wanted = {gguf_name(name): shape for name, shape in expected.items()}
    if found != wanted:
        wrong = sorted(found.items() ^ wanted.items())[0][0]
        raise MiniquantError(
            f"tensor {wrong!r} has shape {found.get(wrong, 'missing')}, expected {wanted.get(wrong, 'no such tensor')}"
        )
    return with_weights(config, {name: torch.from_numpy(file.tensor(gguf_name(name))) for name in expected})


_CONFIG_KEYS = {
    "context": "gpt2.context_length",
    "d_model": "gpt2.embedding_length",
    "n_layers": "gpt2.block_count",
    "n_heads": "gpt2.attention.head_count",
    "d_mlp": "gpt2.feed_forward_length",
    "layer_norm_epsilon": "gpt2.attention.layer_norm_epsilon",
}
