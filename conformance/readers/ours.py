"""miniquant's readers, all four formats: ``python conformance/readers/ours.py FILE``."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import sys
from typing import Any

import numpy as np

from miniquant import FormatError, QuantizationError, open_gguf_lite
from miniquant.formats.bump import open_bump
from miniquant.formats.gguf import Typed, ValueType, read_gguf
from miniquant.formats.safetensors.read import open_safetensors

OPEN = {"gguf": read_gguf, "gguf-lite": open_gguf_lite, "bump": open_bump, "safetensors": open_safetensors}


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, str | int | float) or value is None:
        return value
    return [plain(each) for each in value]


def kind(typed: Typed) -> str:
    """The name of a value's type."""
    return f"ARRAY of {ValueType(typed.of).name}" if typed.of is not None else ValueType(typed.kind).name


def read(path: str) -> dict[str, Any]:
    """What is in a file, for the ending of its name. Raises ``FormatError`` if it is malformed."""
    with OPEN[path.rpartition(".")[2]](path) as file:
        said: dict[str, Any] = {"tensors": {}}
        if path.endswith(".bump"):
            header = file.header._asdict()
            wanted = ("version", "model_type", "num_layers", "vocab_size", "embed_dim", "context_len", "num_heads")
            said["metadata"] = {key: header[key] for key in (*wanted, "head_dim")}
        else:
            said["metadata"] = {key: plain(value) for key, value in file.metadata.items()}
        if path.endswith(".gguf"):
            said["types"] = {key: kind(typed) for key, typed in file.typed().items()}
        for name, info in file.tensors.items():
            raw = bytes(file.raw(name))
            dims = info.shape[::-1] if path.endswith(".gguf") else info.shape
            about = {"type": info.dtype.name, "dims": list(dims), "offset": info.offset, "bytes": info.n_bytes}
            said["tensors"][name] = about | {"sha256": hashlib.sha256(raw).hexdigest()}
            with contextlib.suppress(QuantizationError):  # a type that is not decoded here
                said["tensors"][name]["values"] = plain(file.tensor(name).reshape(-1))
        return said


if __name__ == "__main__":
    try:
        print(json.dumps(read(sys.argv[1])))
    except FormatError as error:
        sys.exit(f"{error}")
