"""Write safetensors, with the library of that name, atomically."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from ...core.files import atomic_write


def write_safetensors(
    path: str | os.PathLike[str], tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]
) -> None:
    """Write arrays by name, and metadata: text by name. Raises ``WriteError`` if the file cannot be written."""
    from safetensors.numpy import save

    with atomic_write(path) as file:
        arrays = {name: np.ascontiguousarray(w) for name, w in tensors.items()}
        file.write(save(arrays, dict(metadata) or None))  # with {} and no tensors, the library's header is no JSON
