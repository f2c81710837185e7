"""Held-out text, and what PyTorch makes of it with the weights of a GGUF file: to compare llama.cpp with."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import log_softmax

from miniquant.formats.gguf import read_gguf
from miniquant.models import corpus
from miniquant.models.minigpt import MiniGPT
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import gguf_name


def dequantized(path: Path) -> MiniGPT:
    """The trained model's architecture with the weights of a GGUF file."""
    model = load_pretrained()
    with read_gguf(path) as file:
        model.load_state_dict({name: torch.from_numpy(file.tensor(gguf_name(name))) for name in model.state_dict()})
    return model


@torch.no_grad()
def ours(model: MiniGPT, tokens: np.ndarray) -> np.ndarray:
    """Logits after every token, by PyTorch."""
    return model(torch.from_numpy(tokens)[None])[0].numpy()


def windows(n: int) -> np.ndarray:
    """Held-out text: (n, 257) tokens, spread over all of it."""
    every = _every_window()
    return every[np.linspace(0, len(every) - 1, n).astype(int)]


@functools.cache
def _every_window() -> np.ndarray:
    return corpus.held_out_windows()


def nll(logits: np.ndarray, targets: np.ndarray) -> float:
    """Mean negative log-likelihood of the tokens that came, in nats."""
    return float(-log_softmax(torch.from_numpy(logits).double(), -1).numpy()[np.arange(len(targets)), targets].mean())


def kl(p: np.ndarray, q: np.ndarray) -> float:
    """Mean KL(p || q) of a token in nats, of two arrays of logits."""
    logp, logq = (log_softmax(torch.from_numpy(x).double(), -1) for x in (p, q))
    return float((logp.exp() * (logp - logq)).sum(-1).mean())
