"""From a bump file back: its tensors under llama.cpp's names, and a MiniGPT in PyTorch, dequantized first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import MiniquantError
from ..formats.bump.read import BumpFile
from ..formats.bump.types import parts

if TYPE_CHECKING:
    from .minigpt import MiniGPT


def gguf_tensors(file: BumpFile) -> dict[str, np.ndarray]:
    """Every tensor under the name that it has in GGUF, decoded; zeros that only keep a bias's place are left out."""
    found: dict[str, np.ndarray] = {}
    for part in parts(file.config):
        w = file.tensor(part.name)
        for name, piece in zip(part.sources, np.split(w, len(part.sources))):
            if not part.optional or piece.any():
                found[name] = piece
    return found


def minigpt_from_bump(file: BumpFile) -> MiniGPT:
    """Rebuild a MiniGPT from an open bump file of model_type 2, in evaluation mode.

    Raises ``MiniquantError`` for another model, or one with a head of its own.
    """
    import torch

    from .minigpt import MiniGPTConfig, parameter_shapes, with_weights
    from .to_gguf import gguf_name

    config = file.config
    if config.architecture != "gpt2" or not config.tied:
        raise MiniquantError(f"{file.label} is no MiniGPT: {config.architecture}, tie_word_embeddings={config.tied}")
    sizes = dict(vocab_size=config.vocab, context=config.context, d_model=config.embed, n_layers=config.layers)
    sizes |= dict(n_heads=config.heads, d_mlp=config.intermediate)
    found = gguf_tensors(file)
    whole = MiniGPTConfig(**sizes, layer_norm_epsilon=config.epsilon)
    return with_weights(whole, {name: torch.from_numpy(found[gguf_name(name)]) for name in parameter_shapes(whole)})
