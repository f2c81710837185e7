"""``LlamaForCausalLM`` and ``Qwen2ForCausalLM`` in llama.cpp's terms.

The two turn queries and keys (rope) by the same angles, and pair the numbers of a head differently: Hugging Face turns
number i together with number i + half, llama.cpp number 2i together with 2i + 1 in a Llama. So there the rows of the
two matrices that make queries and keys, and their biases, change places; attention sees dot products alone, which stay
what they were. In a Qwen2 llama.cpp pairs the numbers as Hugging Face does, and the rows stay.

Source: ``modeling_llama.py``, ``modeling_qwen2.py`` and ``modeling_rope_utils.py`` in transformers;
``models/llama.cpp``, ``models/qwen2.cpp`` and ``llama-arch.cpp`` in llama.cpp.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from ...core.errors import SchemeError
from .config import Config, Recipe, Row

_WHOLE = {  # what belongs to no layer: theirs, ours
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_ROPE_KEYS = {
    "default": set(),
    "linear": {"factor"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
}


def llama(config: Config) -> Recipe:
    """The recipe of a Llama; raises ``FormatError`` for a config that llama.cpp would compute differently."""
    attention, mlp = config.flag("attention_bias", False), config.flag("mlp_bias", False)
    base, scaling = _rope(config, ("default", "linear", "llama3"))
    recipe = _recipe(config, "llama", base, scaling, {"qkv": attention, "o": attention, "mlp": mlp}, reorder=True)
    if scaling["rope_type"] != "llama3":
        return recipe
    head = recipe.metadata["llama.attention.key_length"]
    return recipe._replace(added=lambda: {"rope_freqs.weight": rope_factors(head, base, scaling)})


def qwen2(config: Config) -> Recipe:
    """The recipe of a Qwen2: queries, keys and values have biases. Raises ``FormatError`` as ``llama`` does."""
    config.one_of("use_sliding_window", (False,), False)  # then the two keys that describe the window say nothing
    for key in ("sliding_window", "max_window_layers"):
        config.get(key)
    kinds = config.get("layer_types", [])
    if not isinstance(kinds, list) or any(kind != "full_attention" for kind in kinds):
        raise config.error("layer_types", f"found {kinds!r:.80}; this converter knows 'full_attention' in every layer")
    base, scaling = _rope(config, ("default", "linear"))
    recipe = _recipe(config, "qwen2", base, scaling, {"qkv": True, "o": False, "mlp": False}, reorder=False)
    about = recipe.metadata
    head, heads, d = (
        about[f"qwen2.{key}"] for key in ("attention.key_length", "attention.head_count", "embedding_length")
    )
    if head * heads != d:
        raise config.error("head_dim", f"found {head}, and llama.cpp takes hidden_size {d} / {heads} heads for a Qwen2")
    return recipe


def _recipe(
    config: Config, arch: str, base: float, scaling: dict[str, Any], biases: dict[str, bool], reorder: bool
) -> Recipe:
    """What both have in common; ``reorder`` puts the rows of queries and keys in llama.cpp's order."""
    d, mlp = config.count("hidden_size"), config.count("intermediate_size")
    heads, vocabulary = config.count("num_attention_heads"), config.count("vocab_size")
    groups = config.count("num_key_value_heads", heads)
    if heads % groups:
        raise config.error("num_key_value_heads", f"found {groups}, which does not divide {heads} heads")
    if config.get("head_dim") is None and d % heads:
        raise config.error("num_attention_heads", f"found {heads}, which does not divide hidden_size {d}")
    head = config.count("head_dim", max(1, d // heads))
    if head % 2:
        raise config.error("head_dim", f"found {head}; rope turns pairs, so it must be even")
    config.one_of("hidden_act", ("silu", "swish"), "silu")
    layers = config.count("num_hidden_layers")
    about: dict[str, Any] = {
        "context_length": config.count("max_position_embeddings"),
        "embedding_length": d,
        "block_count": layers,
        "feed_forward_length": mlp,
        "attention.head_count": heads,
        "attention.head_count_kv": groups,
        "attention.key_length": head,
        "attention.value_length": head,
        "attention.layer_norm_rms_epsilon": config.number("rms_norm_eps", 1e-6),
        "rope.dimension_count": head,
        "rope.freq_base": base,
        "vocab_size": vocabulary,
    }
    if scaling["rope_type"] == "linear":
        about |= {"rope.scaling.type": "linear", "rope.scaling.factor": scaling["factor"]}
    metadata = {"general.architecture": arch} | {f"{arch}.{key}": value for key, value in about.items()}
    layer = _layer(d, mlp, heads * head, groups * head, biases)
    if reorder:
        turned = {"attn_q": heads, "attn_k": groups}
        layer = [row._replace(heads=turned.get(row.ours.split(".")[2], 0)) for row in layer]
    whole = [Row(theirs, ours, (d,) if "norm" in ours else (vocabulary, d)) for theirs, ours in _WHOLE.items()]
    tied = config.flag("tie_word_embeddings", False)
    skipped = r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq"
    return Recipe(metadata, whole, layer, layers, vocabulary, tied, skipped)


def _layer(d: int, mlp: int, queries: int, keys: int, biases: dict[str, bool]) -> list[Row]:
    matrices = [  # theirs, ours, (out, in), which of the biases
        ("self_attn.q_proj", "attn_q", (queries, d), "qkv"),
        ("self_attn.k_proj", "attn_k", (keys, d), "qkv"),
        ("self_attn.v_proj", "attn_v", (keys, d), "qkv"),
        ("self_attn.o_proj", "attn_output", (d, queries), "o"),
        ("mlp.gate_proj", "ffn_gate", (mlp, d), "mlp"),
        ("mlp.up_proj", "ffn_up", (mlp, d), "mlp"),
        ("mlp.down_proj", "ffn_down", (d, mlp), "mlp"),
    ]
    rows = [
        Row("input_layernorm.weight", "attn_norm.weight", (d,)),
        Row("post_attention_layernorm.weight", "ffn_norm.weight", (d,)),
    ]
    for theirs, ours, shape, part in matrices:
        rows.append(Row(f"{theirs}.weight", f"{ours}.weight", shape))
        if biases[part]:
            rows.append(Row(f"{theirs}.bias", f"{ours}.bias", shape[:1]))
    return [row._replace(theirs=f"model.layers.{{}}.{row.theirs}", ours=f"blk.{{}}.{row.ours}") for row in rows]


def gguf_name(name: str) -> str:
    """llama.cpp's name of a parameter. Raises ``SchemeError`` for one that these models do not have.

    >>> gguf_name("model.layers.3.self_attn.q_proj.weight"), gguf_name("lm_head.weight")
    ('blk.3.attn_q.weight', 'output.weight')
    """
    if name in _WHOLE:
        return _WHOLE[name]
    found = re.fullmatch(r"model\.layers\.(\d+)\.(.+)", name)
    names = {row.theirs: row.ours for row in _layer(1, 1, 1, 1, dict.fromkeys(("qkv", "o", "mlp"), True))}
    theirs = f"model.layers.{{}}.{found[2]}" if found else ""
    if found is None or theirs not in names:
        raise SchemeError(f"{name!r} is no parameter of a Llama or Qwen2")
    return names[theirs].format(found[1])


def rope_order(heads: int, head_dim: int) -> np.ndarray:
    """For every row of llama.cpp's query (or key) matrix, the row of Hugging Face's that belongs there.

    >>> rope_order(1, 8).tolist()
    [0, 4, 1, 5, 2, 6, 3, 7]
    """
    return np.arange(heads * head_dim).reshape(heads, 2, head_dim // 2).swapaxes(1, 2).reshape(-1)


def _rope(config: Config, kinds: tuple[str, ...]) -> tuple[float, dict[str, Any]]:
    """The base of the angles and how they are scaled: transformers 5 says it in one object, older ones in two keys."""
    new, old = config.get("rope_parameters"), config.get("rope_scaling")
    key = "rope_scaling" if new is None else "rope_parameters"
    if old is not None and new is not None and old != new:
        raise config.error("rope_scaling", "it differs from rope_parameters; keep the one that is right")
    given = new if new is not None else old if old is not None else {}
    if not isinstance(given, dict):
        raise config.error(key, f"found {given!r:.40}, expected an object")
    scaling = dict(given)
    kind = scaling.pop("rope_type", scaling.pop("type", "default"))
    inner, outer = scaling.pop("rope_theta", None), config.get("rope_theta")
    if inner is not None and outer is not None and inner != outer:
        raise config.error("rope_theta", f"found {outer!r:.40}, and {inner!r:.40} in {key}; keep the one that is right")
    theta = Config(config.path, {"rope_theta": outer if inner is None else inner}).number("rope_theta", 10000.0)
    if kind not in kinds:
        raise config.error(
            key,
            f"found the type {kind!r:.40}; this converter knows {', '.join(kinds)}, and turning by other angles "
            "gives another model: take a checkpoint with one of these",
        )
    if unknown := scaling.keys() - _ROPE_KEYS[kind]:
        raise config.error(key, f"{min(unknown)!r:.40} is unknown for the type {kind}")
    numbers = Config(config.path, {f"{key}.{name}": value for name, value in scaling.items()})
    scaling = {name: numbers.number(f"{key}.{name}") for name in sorted(_ROPE_KEYS[kind])}
    if kind == "llama3" and scaling["low_freq_factor"] >= scaling["high_freq_factor"]:
        raise config.error(key, "low_freq_factor is not below high_freq_factor")
    return theta, {"rope_type": kind, **scaling}


def rope_factors(head_dim: int, base: float, scaling: dict[str, float]) -> np.ndarray:
    """What Llama 3 divides the angle of each pair by: 1 where it is fast, ``factor`` where slow, in between between.

    -> (head_dim / 2,) float32
    """
    turn = 2 * math.pi * base ** (np.arange(0, head_dim, 2) / head_dim)  # tokens until a pair is round once
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    fast = (scaling["original_max_position_embeddings"] / turn - low) / (high - low)
    fast = fast.clip(0, 1)
    return (1 / ((1 - fast) / scaling["factor"] + fast)).astype(np.float32)
