"""Write APR; ``types`` has the layout."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.errors import QuantizationError
from ...core.files import atomic_write
from .types import APR_VERSION, AprType


def write_apr(path: str | os.PathLike[str], tensors: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
    """Write float32 arrays by name, and metadata that JSON holds. Every float32 comes back bit for bit.

    Raises ``QuantizationError`` for a number that is not finite, ``WriteError`` if the file cannot be written.
    """
    for name, w in tensors.items():
        if not np.isfinite(w).all():
            raise QuantizationError(f"{name!r} holds a number that is not finite, and JSON has no word for it")
    kind = AprType.F32.value
    data = {n: {"shape": list(w.shape), "dtype": kind, "data": w.reshape(-1).tolist()} for n, w in tensors.items()}
    found = {"version": APR_VERSION, "metadata": dict(metadata), "tensors": data}
    text = json.dumps(found, sort_keys=True, ensure_ascii=False)
    with atomic_write(path) as file:
        file.write(text.encode("utf-8") + b"\n")
