"""The small models with random weights that tests of other rooms use have the shapes that they are there for."""

from __future__ import annotations

import torch
from hf_models import logits
from transformers import AutoModelForCausalLM, AutoTokenizer


def test_the_small_qwen2_has_biases_on_q_k_and_v_alone_and_a_tied_head(tiny_qwen2):
    model = AutoModelForCausalLM.from_pretrained(tiny_qwen2, dtype=torch.float32)
    biased = {name.split(".")[-2] for name, w in model.named_parameters() if name.endswith("bias") and w.any()}
    assert type(model).__name__ == "Qwen2ForCausalLM"
    assert biased == {"q_proj", "k_proj", "v_proj"}
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_the_small_llama_3_stretches_its_positions_and_has_heads_of_their_own_width(tiny_llama3):
    model = AutoModelForCausalLM.from_pretrained(tiny_llama3, dtype=torch.float32)
    config = model.config
    assert config.head_dim != config.hidden_size // config.num_attention_heads
    assert model.model.layers[0].self_attn.q_proj.weight.shape == (128, 64)
    ids = list(range(40))
    before = logits(model, ids)
    model.model.rotary_emb.inv_freq = 500000.0 ** -(torch.arange(0, 32, 2) / 32)
    assert abs(before - logits(model, ids)).max() > 1e-3


def test_both_folders_have_a_tokenizer_that_reads_any_text(tiny_qwen2, tiny_llama3):
    for folder in (tiny_qwen2, tiny_llama3):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        assert tokenizer.decode(tokenizer("é 12 \n漢").input_ids) == "é 12 \n漢"
