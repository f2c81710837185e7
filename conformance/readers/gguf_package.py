"""The official ``gguf`` package: ``python conformance/readers/gguf_package.py FILE``. Any error of it is a refusal."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import sys
import warnings
from typing import Any

from gguf import GGUFReader, dequantize

warnings.simplefilter("ignore")


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    return value


def read(path: str) -> dict[str, Any]:
    """What is in a GGUF file."""
    file = GGUFReader(path)
    said: dict[str, Any] = {"metadata": {}, "types": {}, "tensors": {}}
    for key, field in file.fields.items():
        if not key.startswith("GGUF."):  # the header's numbers, which are not keys of the file
            said["metadata"][key] = plain(field.contents())
            kinds = [kind.name for kind in field.types]
            if kinds != ["ARRAY"]:  # of an empty array it does not keep the type of the elements
                said["types"][key] = " of ".join(kinds)
    for t in file.tensors:
        about = {"type": t.tensor_type.name, "dims": [int(dim) for dim in t.shape], "bytes": int(t.n_bytes)}
        about |= {"offset": int(t.data_offset) - int(file.data_offset)}
        about |= {"sha256": hashlib.sha256(t.data.tobytes()).hexdigest()}
        with contextlib.suppress(NotImplementedError):
            about["values"] = plain(dequantize(t.data, t.tensor_type).reshape(-1).tolist())
        said["tensors"][t.name] = about
    return said


if __name__ == "__main__":
    try:
        print(json.dumps(read(sys.argv[1])))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
