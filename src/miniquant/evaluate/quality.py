"""How good a model is on held-out text, and how far a quantized one has moved: each figure with its standard error.

Windows of text do not overlap, so their means are treated as independent draws: a standard error is the standard
deviation over windows, divided by the square root of their number. Two models are compared on the same windows, in
pairs, which takes out most of the noise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor
from tqdm import tqdm

from ..core.errors import MiniquantError
from ..formats.gguf.read import read_gguf
from ..models import corpus
from ..models.language import logits_of
from .estimate import Estimate
from .kept import keeping


@dataclass(frozen=True)
class Quality:
    """What one model makes of held-out text, window by window.

    nll: (n,) mean negative log-likelihood of a token, in nats
    kl: (n,) mean KL(reference || model) of a token in nats, or ``None`` without a reference
    bytes_per_token: (n,) float64
    """

    nll: np.ndarray
    kl: np.ndarray | None
    bytes_per_token: np.ndarray

    @property
    def perplexity(self) -> Estimate:
        """exp of the mean NLL; the error by the delta method."""
        nll = Estimate.of(self.nll)
        return Estimate(math.exp(nll.mean), math.exp(nll.mean) * nll.error)

    @property
    def bits_per_byte(self) -> Estimate:
        """Independent of the tokenizer: total bits over total bytes; the error is that of a ratio."""
        bits, size = self.nll / math.log(2), self.bytes_per_token
        ratio = bits.sum() / size.sum()
        return Estimate(float(ratio), Estimate.of((bits - ratio * size) / size.mean()).error)

    @property
    def kl_divergence(self) -> Estimate:
        """Mean KL(reference || model) of a token, in nats."""
        if self.kl is None:
            raise ValueError("no reference was given; call evaluate(model, windows, reference=float_model)")
        return Estimate.of(self.kl)

    def nll_change(self, other: Quality) -> Estimate:
        """This model's NLL less another's on the same windows, in nats a token; paired."""
        return Estimate.of(self.nll - other.nll)


def evaluate(
    model: Any,
    windows: np.ndarray | None = None,
    reference: Any = None,
    batch: int = 8,
    progress: bool = False,
    tokenizer: Tokenizer | None = None,
) -> Quality:
    """The quality of a model on windows of held-out text, ``batch`` of them at once.

    model, reference: a MiniGPT, a model of transformers, or anything that makes logits of tokens. windows:
    (n, length + 1) int64, the held-out topics by default   ->   ``Quality``: nll in nats per token, one value a window;
    kl only with ``reference``. ``tokenizer`` is the model's, MiniGPT's by default. Raises ``ValueError`` if ``length``
    is beyond the context of a MiniGPT.
    """
    windows = corpus.held_out_windows(tokenizer=tokenizer) if windows is None else windows
    starts = tqdm(range(0, len(windows), batch), desc="evaluating", unit="batch", disable=not progress)
    batches = (windows[start : start + batch] for start in starts)
    return _measure(model, batches, keeping(reference, windows, batch), tokenizer)


def evaluate_in_llamacpp(
    path: str | os.PathLike[str],
    windows: np.ndarray | None = None,
    reference: Any = None,
    progress: bool = False,
    tokenizer: Tokenizer | None = None,
    cache_types: tuple[int, int] | None = None,
    rotate_cache: bool = True,
) -> Quality:
    """``evaluate``, with llama.cpp computing the logits from a GGUF file, one window at a time.

    windows, result: as in ``evaluate``; cache_types, rotate_cache: as in ``LlamaCpp``. Raises ``LlamaCppError`` if
    llama.cpp refuses the file or the types.
    """
    from .llamacpp import LlamaCpp

    windows = corpus.held_out_windows(tokenizer=tokenizer) if windows is None else windows
    context = windows.shape[1] - 1
    with LlamaCpp(path, context=context, cache_types=cache_types, rotate_cache=rotate_cache) as llama:
        one_by_one = tqdm(windows[:, None], desc="llama.cpp", unit="window", disable=not progress)

        def by_llama(tokens: Tensor) -> Tensor:
            return torch.from_numpy(llama.logits(tokens[0].tolist()))[None]

        return _measure(by_llama, one_by_one, keeping(reference, windows, 1), tokenizer)


def refuse_another_vocabulary(path: str | os.PathLike[str]) -> None:
    """Raises ``MiniquantError`` for a GGUF file whose tokens are not the course's: the windows would be other text."""
    with read_gguf(path) as file:
        tokens, known = file.metadata.get("tokenizer.ggml.tokens", ()), corpus.load_tokenizer()
        ours = {i: token for token, i in known.get_vocab(with_added_tokens=True).items()}
        if len(tokens) != len(ours) or any(token != ours[i] for i, token in enumerate(tokens)):
            raise MiniquantError(
                f"{file.path} has a vocabulary of its own, {len(tokens)} tokens, and the held-out text is in the "
                f"{len(ours)} tokens of MiniGPT; give a text of your own with --text FILE"
            )


@torch.no_grad()
def _measure(
    model: Callable[[Tensor], Any],
    batches: Iterable[np.ndarray],
    reference: Callable[[Tensor], Any] | None,
    tokenizer: Tokenizer | None,
) -> Quality:
    """model: (batch, length) int64 -> (batch, length, vocab) float32; batches: (batch, length + 1) int64 each."""
    nll, kl, bytes_per_token = [], [], []
    for windows in batches:
        tokens = torch.from_numpy(windows)
        logp = F.log_softmax(logits_of(model, tokens[:, :-1]).double(), dim=-1)  # (batch, length, vocab)
        nll.append(-logp.gather(-1, tokens[:, 1:, None])[..., 0].mean(-1).numpy())
        if reference is not None:
            logq = F.log_softmax(logits_of(reference, tokens[:, :-1]).double(), dim=-1)
            kl.append((logq.exp() * (logq - logp)).sum(-1).mean(-1).numpy())
        bytes_per_token.append(corpus.window_bytes(windows, tokenizer).mean(axis=1, dtype=np.float64))
    return Quality(np.concatenate(nll), np.concatenate(kl) if kl else None, np.concatenate(bytes_per_token))
