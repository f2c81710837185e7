"""Go on with a text: a bump file's model and the tokenizer beside it, text in and text out, piece by piece."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..core.errors import FormatError, MiniquantError
from .runtime import Runtime

PATIENCE = 5  # attempts to open a file that another program keeps replacing


def speak(path: str | os.PathLike[str], prompt: str, n: int, temperature: float = 0.0, seed: int = 0) -> Iterator[str]:
    """What a model adds to ``prompt``: at most ``n`` tokens, piece by piece, up to the end of the text.

    temperature, seed: as ``Runtime.generate`` takes them. A piece is some characters that are whole; a token may give
    none.

    Raises ``MiniquantError`` for a file without a tokenizer, a prompt that is empty or as long as the context, and when
    the context is full before ``n`` tokens are there.
    """
    from tokenizers import Tokenizer
    from tokenizers.decoders import DecodeStream

    if not prompt:
        raise MiniquantError('the prompt is empty; give a text that the model goes on with, for example "A list is a"')
    model, text = _opened(path)
    with model:
        tokenizer: Any = Tokenizer.from_str(text.decode("utf-8", "surrogatepass"))
        ids = tokenizer.encode(prompt).ids
        if len(ids) > model.context:
            raise MiniquantError(
                f"the prompt has {len(ids)} tokens, and the context {model.context}; give a shorter prompt"
            )
        stream = DecodeStream(ids=ids, skip_special_tokens=True)
        room = model.context - len(ids) + 1  # the last token is not read any more
        for token in model.generate(ids, min(n, room), temperature, seed):
            if token == model.config.eos:
                return
            if piece := stream.step(tokenizer, token):
                yield piece
        if n > room:
            raise MiniquantError(
                f"the context of {model.context} tokens is full: {len(ids)} of the prompt, and {room} of {n} more; "
                f"ask for {room} at most, or give a shorter prompt"
            )


def _opened(path: str | os.PathLike[str]) -> tuple[Runtime, bytes]:
    """The model and its tokenizer; again, if another program replaced the files in between."""
    for attempt in range(PATIENCE):
        model = Runtime(path)
        try:
            return model, model.file.tokenizer()
        except FormatError:
            model.close()
            if attempt == PATIENCE - 1:
                raise
        except MiniquantError:
            model.close()
            raise
    raise AssertionError("the last attempt returns or raises")
