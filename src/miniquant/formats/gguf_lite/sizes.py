"""Where every byte of a GGUF-lite file goes."""

from __future__ import annotations

import io
import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

from ...quantization.schemes import role_of
from .read import GGUFLite, open_gguf_lite
from .types import HEADER

PLURALS = {
    "weight": "weights",
    "bias": "biases",
    "norm": "norms",
    "token embedding": "embeddings",
    "position embedding": "embeddings",
}


@dataclass(frozen=True)
class FileSizes:
    """The bytes of one file, counted four ways; the first three add up to ``total``.

    ``by_part``: header, metadata, descriptors, data, padding. ``by_dtype``: the data of each dtype, scales apart, and
    the rest. ``by_role``: weights, scales, embeddings, norms, biases, and the rest. ``by_tensor``: the data alone,
    scales included, so it adds up to ``by_part["data"]``.
    """

    total: int
    by_part: dict[str, int]
    by_dtype: dict[str, int]
    by_role: dict[str, int]
    by_tensor: dict[str, int]

    @property
    def overhead(self) -> int:
        """Bytes of header, metadata and descriptors."""
        return self.by_part["header"] + self.by_part["metadata"] + self.by_part["descriptors"]


def file_sizes(path: str | os.PathLike[str]) -> FileSizes:
    """Account for every byte of a GGUF-lite file. Raises ``FormatError`` for a malformed one."""
    with open_gguf_lite(path) as file:
        return _account(file)


def _account(file: GGUFLite) -> FileSizes:
    descriptors = sum(end - start for start, end in file.spans.values())
    data = sum(info.n_bytes for info in file.tensors.values())
    by_part = {
        "header": HEADER.size,
        "metadata": file.data_start - HEADER.size - descriptors,
        "descriptors": descriptors,
        "data": data,
        "padding": file.n_bytes - file.data_start - data,
    }
    by_dtype: Counter[str] = Counter()
    by_role: Counter[str] = Counter()
    for info in file.tensors.values():
        scales = info.dtype.scale_bytes(info.shape)
        by_dtype[info.dtype.name] += info.n_bytes - scales
        by_role[PLURALS[role_of(info.name)]] += info.n_bytes - scales
        by_dtype["scales (F16)"] += scales
        by_role["scales"] += scales
    rest = {"header, metadata, descriptors": file.data_start}
    if by_part["padding"]:
        rest["padding"] = by_part["padding"]
    by_tensor = {name: info.n_bytes for name, info in file.tensors.items()}
    return FileSizes(file.n_bytes, by_part, {**by_dtype, **rest}, {**by_role, **rest}, by_tensor)


def torch_save_size(model: Any) -> int:
    """The bytes that ``torch.save(model.state_dict())`` writes: the size that everything is compared with."""
    import torch

    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    return buffer.tell()


def human(n_bytes: int) -> str:
    """A size as people read it: bytes below 1000, else kB, MB or GB of 1000.

    >>> human(999), human(14_000_000)
    ('999 B', '14.00 MB')
    """
    size = float(n_bytes)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"
