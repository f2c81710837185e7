"""``LlamaForCausalLM`` in llama.cpp's terms.

The two turn queries and keys (rope) by the same angles, and pair the numbers of a head differently: Hugging Face turns
number i together with number i + half, llama.cpp number 2i together with 2i + 1. So the rows of the two matrices that
make queries and keys, and their biases, change places; attention sees dot products alone, which stay what they were.

Source: ``modeling_llama.py`` and ``modeling_rope_utils.py`` in transformers; ``models/llama.cpp`` and
``llama-arch.cpp`` in llama.cpp.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .config import Config, Recipe, Row

_ROPE_KEYS = {
    "default": set(),
    "linear": {"factor"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
}


def llama(config: Config) -> Recipe:
    """The recipe of a Llama; raises ``FormatError`` for a config that llama.cpp would compute differently."""
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
    base, scaling = _rope(config)
    metadata: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.context_length": config.count("max_position_embeddings"),
        "llama.embedding_length": d,
        "llama.block_count": config.count("num_hidden_layers"),
        "llama.feed_forward_length": mlp,
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": groups,
        "llama.attention.key_length": head,
        "llama.attention.value_length": head,
        "llama.attention.layer_norm_rms_epsilon": config.number("rms_norm_eps", 1e-6),
        "llama.rope.dimension_count": head,
        "llama.rope.freq_base": base,
        "llama.vocab_size": vocabulary,
    }
    if scaling["rope_type"] == "linear":
        metadata |= {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": scaling["factor"]}
    layer = _layer(d, mlp, heads, groups, head, config.flag("attention_bias", False), config.flag("mlp_bias", False))
    whole = [
        Row("model.embed_tokens.weight", "token_embd.weight", (vocabulary, d)),
        Row("model.norm.weight", "output_norm.weight", (d,)),
        Row("lm_head.weight", "output.weight", (vocabulary, d)),
    ]
    tied = config.flag("tie_word_embeddings", False)
    added = (
        dict if scaling["rope_type"] != "llama3" else lambda: {"rope_freqs.weight": rope_factors(head, base, scaling)}
    )
    skipped = r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq"
    return Recipe(metadata, whole, layer, config.count("num_hidden_layers"), vocabulary, tied, skipped, added=added)


def _layer(d: int, mlp: int, heads: int, groups: int, head: int, attention_bias: bool, mlp_bias: bool) -> list[Row]:
    matrices = [  # theirs, ours, (out, in), heads whose rows change places, whether there is a bias
        ("self_attn.q_proj", "attn_q", (heads * head, d), heads, attention_bias),
        ("self_attn.k_proj", "attn_k", (groups * head, d), groups, attention_bias),
        ("self_attn.v_proj", "attn_v", (groups * head, d), 0, attention_bias),
        ("self_attn.o_proj", "attn_output", (d, heads * head), 0, attention_bias),
        ("mlp.gate_proj", "ffn_gate", (mlp, d), 0, mlp_bias),
        ("mlp.up_proj", "ffn_up", (mlp, d), 0, mlp_bias),
        ("mlp.down_proj", "ffn_down", (d, mlp), 0, mlp_bias),
    ]
    rows = [
        Row("input_layernorm.weight", "attn_norm.weight", (d,)),
        Row("post_attention_layernorm.weight", "ffn_norm.weight", (d,)),
    ]
    for theirs, ours, shape, turned, bias in matrices:
        rows.append(Row(f"{theirs}.weight", f"{ours}.weight", shape, heads=turned))
        if bias:
            rows.append(Row(f"{theirs}.bias", f"{ours}.bias", shape[:1], heads=turned))
    return [row._replace(theirs=f"model.layers.{{}}.{row.theirs}", ours=f"blk.{{}}.{row.ours}") for row in rows]


def rope_order(heads: int, head_dim: int) -> np.ndarray:
    """For every row of llama.cpp's query (or key) matrix, the row of Hugging Face's that belongs there.

    >>> rope_order(1, 8).tolist()
    [0, 4, 1, 5, 2, 6, 3, 7]
    """
    return np.arange(heads * head_dim).reshape(heads, 2, head_dim // 2).swapaxes(1, 2).reshape(-1)


def _rope(config: Config) -> tuple[float, dict[str, Any]]:
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
    if not isinstance(kind, str) or kind not in _ROPE_KEYS:
        known = ", ".join(_ROPE_KEYS)
        raise config.error(key, f"found the type {kind!r:.40}; this converter knows {known}")
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
