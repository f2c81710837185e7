"""What every language model here can be asked, whichever class it is: MiniGPT, or a model of transformers."""

from __future__ import annotations

from typing import Any

from torch import Tensor


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
