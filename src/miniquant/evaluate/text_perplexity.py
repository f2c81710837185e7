"""The perplexity of any GGUF file on any text, computed by llama.cpp, as its own program does it.

The file's tokenizer cuts the text into tokens, and those are cut into windows that do not overlap; what is left at the
end is not used. In each window only the second half is scored, so that every scored token has some text before it. A
model that wants a token at the beginning of a text gets it in place of the first token of each window.

Source: ``perplexity`` in ``llama.cpp/tools/perplexity/perplexity.cpp``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..core.errors import MiniquantError
from ..formats.gguf.read import read_gguf
from .estimate import Estimate
from .llamacpp import LlamaCpp

CONTEXT = 512  # of llama.cpp's program, unless it is told another


class TextPerplexity(NamedTuple):
    """The negative log-likelihood of every scored token, in nats: (windows, scored in a window) float64."""

    nll: np.ndarray
    context: int

    @property
    def perplexity(self) -> Estimate:
        """exp of the mean, and its standard error by the delta method: tokens count as independent draws."""
        count, mean = self.nll.size, float(self.nll.mean())
        error = float(self.nll.std()) / math.sqrt(count - 1) if count > 1 else math.nan
        return Estimate(math.exp(mean), math.exp(mean) * error)


def text_perplexity(
    path: str | os.PathLike[str],
    text: str,
    context: int | None = None,
    windows: int | None = None,
    float32_cache: bool = False,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> TextPerplexity:
    """The perplexity of a GGUF file on a text, in windows of ``context`` tokens; of the first ``windows`` of them.

    The context is 512 tokens, or the model's own where that is smaller. A newline at the end of the text is left out,
    as llama.cpp's program leaves it out. ``advance(done, total)`` hears of each window.

    Raises ``MiniquantError`` for a text shorter than one window, a context that is below 4 or beyond the model's, and a
    model that wants a token after every text; ``LlamaCppError`` if llama.cpp refuses the file.
    """
    context = _context_of(path, context)
    with LlamaCpp(path, context=context, float32_cache=float32_cache) as llama:
        first_token, ends = llama.around_a_text()
        if ends:
            raise MiniquantError(f"{path}: the model wants a token after every text, and windows have no end")
        tokens = llama.tokenize(text.removesuffix("\n"), whole=True)
        total = min(len(tokens) // context, windows or len(tokens))
        if not total:
            raise MiniquantError(
                f"the text has {len(tokens)} token{'s' * (len(tokens) != 1)} in this vocabulary, and one window needs "
                f"{context}; give a longer text or a smaller --context"
            )
        found = []
        for start in range(0, total * context, context):
            window = tokens[start : start + context]
            window[0] = window[0] if first_token is None else first_token
            found.append(llama.surprise(window, context // 2))
            advance(len(found), total)
    return TextPerplexity(np.array(found), context)


def text_of(path: Path) -> str:
    """A text file, UTF-8. Raises ``MiniquantError`` for one that is not."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise MiniquantError(f"{path} is no UTF-8 text: the byte at {error.start} fits no character") from None


def _context_of(path: str | os.PathLike[str], asked: int | None) -> int:
    with read_gguf(path) as file:
        most = file.metadata.get(f"{file.architecture}.context_length")
    if not isinstance(most, int):
        raise MiniquantError(f"{path} lacks {file.architecture}.context_length: it holds no model that llama.cpp runs")
    if asked is not None and not 4 <= asked <= most:
        raise MiniquantError(f"a context of {asked} tokens; from 4 up to the model's {most} are possible")
    return min(CONTEXT, most) if asked is None else asked
