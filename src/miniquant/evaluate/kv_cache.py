"""What a KV cache costs: its bytes, and how far its types move llama.cpp's probabilities.

    path = "minigpt.gguf"
    CacheShape.of(path).n_bytes(4096, "Q8_0", "Q8_0")            # of 4096 tokens
    found = cache_qualities(path, [("F16", "F16"), ("Q4_0", "Q4_0")])
    found["Q4_0", "Q4_0"].kl_divergence                          # nats a token, with its standard error

The weights are the same in every row, and so is everything else that llama.cpp rounds. What is compared is a cache of
float32 with a cache of other types, so the KL divergence is the price of the cache alone.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from ..core.errors import MiniquantError
from ..formats.gguf.read import read_gguf
from ..formats.gguf.types import GGMLType
from ..models import corpus
from ..models.file_types import tensor_type
from .kept import LARGEST
from .llamacpp import LlamaCpp
from .quality import Quality, evaluate_in_llamacpp

TYPES = ("F16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "IQ4_NL", "Q4_0")  # llama.cpp's --cache-type-k offers these
_last: dict[bytes, list[np.ndarray]] = {}  # of one file and its windows: the logits, window by window
SAME: tuple[tuple[GGMLType | str, GGMLType | str], ...] = tuple((name, name) for name in TYPES)


class CacheShape(NamedTuple):
    """What the size of a cache depends on: the numbers of layers and key-value heads, and how wide a head is.

    >>> CacheShape(layers=32, kv_heads=8, width_k=128, width_v=128).n_bytes(8192, "F16", "F16") / 2**30
    1.0
    """

    layers: int
    kv_heads: int
    width_k: int
    width_v: int

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> CacheShape:
        """The shape that a GGUF file's metadata states. Raises ``MiniquantError`` if a key is missing."""
        with read_gguf(path) as file:
            found, arch = file.metadata, file.architecture

        def number(*keys: str) -> int:
            for key in keys:
                if isinstance(value := found.get(f"{arch}.{key}"), int):
                    return value
            raise MiniquantError(f"{os.fspath(path)} lacks {arch}.{keys[-1]}, a whole number")

        heads = number("attention.head_count")
        width = number("embedding_length") // max(1, heads)
        widths = (found.get(f"{arch}.attention.{part}_length", width) for part in ("key", "value"))
        return cls(number("block_count"), number("attention.head_count_kv", "attention.head_count"), *widths)

    def n_bytes(self, context: int, type_k: GGMLType | str, type_v: GGMLType | str) -> int:
        """The bytes of the cache of so many tokens.

        Raises ``SchemeError`` for an unknown type, ``MiniquantError`` if a head is no whole number of its blocks.
        """
        total = 0
        for width, dtype in ((self.width_k, tensor_type(type_k)), (self.width_v, tensor_type(type_v))):
            if width % dtype.block:
                raise MiniquantError(f"a head of {width} numbers is no whole number of {dtype.name}'s {dtype.block}")
            total += self.kv_heads * width // dtype.block * dtype.n_bytes
        return context * self.layers * total


def cache_qualities(
    path: str | os.PathLike[str],
    types: Iterable[tuple[GGMLType | str, GGMLType | str]] = SAME,
    windows: np.ndarray | None = None,
    rotate: bool = True,
    reference: Any = None,
    tokenizer: Tokenizer | None = None,
    progress: bool = False,
) -> dict[tuple[str, str], Quality]:
    """The quality of a GGUF file in llama.cpp, for each pair of types of keys and values.

    windows: (n, length + 1) int64, the held-out topics by default; ``tokenizer`` is the model's, MiniGPT's by default.
    ``rotate``: whether llama.cpp may rotate what it quantizes, as it does by default. ``reference`` makes the logits
    that each KL divergence starts from: llama.cpp itself on the same file by default, with a cache of float32.
    -> (type of the keys, type of the values) -> ``Quality``, on the same windows

    Raises ``SchemeError`` for an unknown type, ``LlamaCppError`` if llama.cpp refuses the file or the types.
    """
    windows = corpus.held_out_windows(tokenizer=tokenizer) if windows is None else windows
    pairs = [(tensor_type(k), tensor_type(v)) for k, v in types]
    exact = None if reference is not None else float32_logits(path, windows)
    found = {}
    for k, v in pairs:
        compared = reference if exact is None else _Replayed(exact)
        found[k.name, v.name] = evaluate_in_llamacpp(path, windows, compared, progress, tokenizer, (k, v), rotate)
    return found


def float32_logits(path: str | os.PathLike[str], windows: np.ndarray) -> list[np.ndarray]:
    """llama.cpp's logits with a cache of float32, window by window: (length, vocabulary) float32 each.

    windows: (n, length + 1) int64. Those of the last file are kept, if they are not too large: one file is often
    measured several times. Other windows, or a file of which a byte has changed, in any of its parts, are computed.
    """
    digest = hashlib.sha256(f"{windows.shape}".encode() + np.ascontiguousarray(windows).tobytes())
    for part in _parts(Path(path)):
        with part.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    if (key := digest.digest()) not in _last:
        with LlamaCpp(path, context=windows.shape[1] - 1, float32_cache=True) as llama:
            found = [llama.logits(window[:-1].tolist()) for window in windows]
        _last.clear()
        if sum(one.nbytes for one in found) > LARGEST:
            return found
        _last[key] = found
    return [one.copy() for one in _last[key]]


def _parts(path: Path) -> list[Path]:
    """The file and the other parts of its model, which llama.cpp opens with it: ``name-00001-of-00002.gguf`` and so on.

    None if there is no such file: llama.cpp says so.
    """
    if not path.is_file():
        return []
    pattern = re.sub(r"(.*-)\d{5}(-of-\d{5}\.gguf)", r"\1[0-9][0-9][0-9][0-9][0-9]\2", glob.escape(path.name))
    return sorted(path.parent.glob(pattern))


class _Replayed:
    """Logits that are known, handed out window by window."""

    def __init__(self, logits: list[np.ndarray]) -> None:
        self.rest = iter(logits)

    def __call__(self, tokens: Tensor) -> Tensor:
        return torch.from_numpy(next(self.rest))[None]
