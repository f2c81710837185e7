"""``GPT2LMHeadModel`` in llama.cpp's terms: its matrices are stored (in, out), so each is transposed on the way.

Source: ``modeling_gpt2.py`` and ``pytorch_utils.py`` (``Conv1D``) in transformers; ``models/gpt2.cpp`` in llama.cpp.
"""

from __future__ import annotations

from .config import Config, Recipe, Row

TANH_GELU = ("gelu_new", "gelu_pytorch_tanh", "gelu_fast")  # three spellings of the formula that ggml computes


def gpt2(config: Config) -> Recipe:
    """The recipe of a GPT-2; raises ``FormatError`` for a config that llama.cpp would compute differently."""
    d, heads, vocabulary = config.count("n_embd", 768), config.count("n_head", 12), config.count("vocab_size", 50257)
    context, layers = config.count("n_positions", 1024), config.count("n_layer", 12)
    mlp = config.count("n_inner", 4 * d)
    if d % heads:
        raise config.error("n_head", f"found {heads}, which does not divide n_embd {d}")
    config.one_of("activation_function", TANH_GELU, "gelu_new")
    config.one_of("scale_attn_weights", (True,), True)
    config.one_of("scale_attn_by_inverse_layer_idx", (False,), False)
    config.one_of("add_cross_attention", (False,), False)
    metadata = {
        "general.architecture": "gpt2",
        "gpt2.context_length": context,
        "gpt2.embedding_length": d,
        "gpt2.block_count": layers,
        "gpt2.feed_forward_length": mlp,
        "gpt2.attention.head_count": heads,
        "gpt2.attention.layer_norm_epsilon": config.number("layer_norm_epsilon", 1e-5),
    }
    whole = [
        Row("wte.weight", "token_embd.weight", (vocabulary, d)),
        Row("wpe.weight", "position_embd.weight", (context, d)),
        Row("ln_f.weight", "output_norm.weight", (d,)),
        Row("ln_f.bias", "output_norm.bias", (d,)),
        Row("lm_head.weight", "output.weight", (vocabulary, d)),
    ]
    tied = config.flag("tie_word_embeddings", True)
    skipped = r"h\.\d+\.attn\.(bias|masked_bias)"  # the causal mask, and what stands for minus infinity in it
    return Recipe(metadata, whole, _layer(d, mlp), layers, vocabulary, tied, skipped, prefix="transformer.")


def _layer(d: int, mlp: int) -> list[Row]:
    parts = [
        ("ln_1", "attn_norm", (d,)),
        ("attn.c_attn", "attn_qkv", (d, 3 * d)),
        ("attn.c_proj", "attn_output", (d, d)),
        ("ln_2", "ffn_norm", (d,)),
        ("mlp.c_fc", "ffn_up", (d, mlp)),
        ("mlp.c_proj", "ffn_down", (mlp, d)),
    ]
    rows = []
    for theirs, ours, shape in parts:
        rows.append(Row(f"h.{{}}.{theirs}.weight", f"blk.{{}}.{ours}.weight", shape, transposed=len(shape) == 2))
        rows.append(Row(f"h.{{}}.{theirs}.bias", f"blk.{{}}.{ours}.bias", shape[-1:]))
    return rows
