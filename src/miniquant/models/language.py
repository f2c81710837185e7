"""What every language model here can be asked, whichever class it is: MiniGPT, or a model of transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from .huggingface import llama
from .minigpt import MiniGPT
from .to_gguf import gguf_name


def logits_of(model: Any, tokens: Tensor) -> Tensor:
    """tokens: (batch, time) int64   ->   logits: (batch, time, vocab_size)."""
    found = model(tokens)
    logits: Tensor = getattr(found, "logits", found)
    return logits


def context_of(model: Any) -> int:
    """How many tokens a model reads at once.

    >>> from miniquant.models.minigpt import random_model
    >>> context_of(random_model())
    32
    """
    config = model.config
    return int(config.context if hasattr(config, "context") else config.max_position_embeddings)


def gguf_names(model: Any) -> Callable[[str], str]:
    """What gives llama.cpp's name of a parameter: of a MiniGPT, a Llama or a Qwen2.

    >>> from miniquant.models.minigpt import random_model
    >>> gguf_names(random_model())("tok_emb.weight")
    'token_embd.weight'
    """
    return gguf_name if isinstance(model, MiniGPT) else llama.gguf_name
