"""safetensors' own reader: ``python conformance/readers/safetensors_package.py FILE``."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from safetensors import deserialize, safe_open


def read(path: str) -> dict[str, Any]:
    """What is in a safetensors file."""
    with safe_open(path, "np") as file:
        said: dict[str, Any] = {"metadata": file.metadata() or {}, "tensors": {}}
    for name, found in deserialize(Path(path).read_bytes()):
        raw = bytes(found["data"])
        about = {"type": found["dtype"], "dims": list(found["shape"]), "bytes": len(raw)}
        said["tensors"][name] = about | {"sha256": hashlib.sha256(raw).hexdigest()}
    return said


if __name__ == "__main__":
    try:
        print(json.dumps(read(sys.argv[1])))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
