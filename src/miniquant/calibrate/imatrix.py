"""An importance matrix: how large the numbers are that meet each column of each matrix, on calibration text.

A layer computes ``y = x Wᵀ``. If the weights of column j move by d, every output moves by ``x_j d``, so the mean square
of ``x_j`` over the text says how much an error in that column counts. It is the diagonal of GPTQ's ``H``; the rest of
``H``, what two columns have to do with each other, is left out. AWQ acts on the same knowledge in another way: it makes
important columns larger before they are rounded.

Source: ``collect_imatrix`` in ``llama.cpp/tools/imatrix/imatrix.cpp``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from ..core.errors import FormatError, QuantizationError
from ..formats.gguf.imatrix import ImportanceMatrix, Squares
from ..models import corpus
from ..models.huggingface.convert import read_recipe
from ..models.language import context_of, gguf_names
from ..models.load import load_any
from ..models.minigpt import MiniGPT
from .inputs import calibration_tokens, calibration_walk


def collect_importance(
    model: Any, tokens: np.ndarray | None = None, dataset: str = "calibration text", progress: bool | None = None
) -> ImportanceMatrix:
    """What every matrix of the blocks meets, by llama.cpp's names; embedding and head are left out, as there.

    model: a MiniGPT, a Llama or a Qwen2. tokens: (n, length) int64, chunks of text; MiniGPT's training text if
    ``None``. dataset: the name of the text. ``progress=None`` shows a bar on a terminal only.

    Raises ``QuantizationError`` for another model, or for tokens that are not the model's own.

    >>> from miniquant.models.minigpt import random_model
    >>> found = collect_importance(random_model(), np.zeros((2, 8), np.int64), progress=False)
    >>> found.chunk_count, found.chunk_size, found.squares["blk.0.ffn_down.weight"].counts.tolist()
    (2, 8, [16.0])
    """
    if tokens is None and isinstance(model, MiniGPT):
        tokens = calibration_tokens(length=min(256, context_of(model)))
    _, groups = calibration_walk(model, tokens, "importance", progress)
    chunks, squares = np.asarray(tokens), {}
    for group in groups:
        sums = group.seen.hessian.diagonal() * chunks.size  # the diagonal of H holds mean squares
        met = Squares(sums[None].astype(np.float32), np.array([chunks.size], np.float32))
        squares.update({gguf_names(model)(f"{name}.weight"): met for name in group.layers})
    return ImportanceMatrix(squares, (dataset,), *chunks.shape)


def text_chunks(text: str, tokenizer: Tokenizer, length: int, count: int | None = None) -> np.ndarray:
    """A text as chunks that do not overlap, as ``llama-imatrix`` cuts it; what is left at the end is not used.

    A tokenizer that puts a token before a text puts it in place of the first token of each chunk. A newline at the end
    of the text is left out.   -> (n, length) int64, n at most ``count``

    Raises ``QuantizationError`` for a text that is shorter than one chunk.
    """
    ids = tokenizer.encode(text.removesuffix("\n")).ids
    n = min(len(ids) // length, len(ids) if count is None else count)
    if not n:
        raise QuantizationError(
            f"the text has {len(ids)} token{'s' * (len(ids) != 1)} in this vocabulary, and one chunk needs {length}; "
            "give a longer text or a smaller --context"
        )
    chunks = np.array(ids[: n * length], np.int64).reshape(n, length)
    if before := tokenizer.encode("").ids[:1]:
        chunks[:, 0] = before[0]
    return chunks


def model_and_tokenizer(path: Path) -> tuple[Any, Tokenizer]:
    """A MiniGPT from a file, with the course's tokenizer; or a Hugging Face folder of a Llama or Qwen2, with its own.

    Raises ``MiniquantError`` for anything else.
    """
    if not path.is_dir():
        return load_any(path), corpus.load_tokenizer()
    from transformers import AutoModelForCausalLM

    read_recipe(path)  # says what is wrong with a folder
    if not (path / "tokenizer.json").exists():
        raise FormatError("no tokenizer.json in it, and the text must be cut into the model's own tokens", path=path)
    if not [*path.glob("*.safetensors")]:
        raise FormatError("no .safetensors file in it: weights in a pickle are not loaded", path=path)
    model = AutoModelForCausalLM.from_pretrained(
        path, dtype="float32", local_files_only=True, use_safetensors=True, trust_remote_code=False
    )
    return model.eval(), Tokenizer.from_file(str(path / "tokenizer.json"))
