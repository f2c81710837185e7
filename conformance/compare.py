"""What a reader printed, compared with what the manifest expects."""

from __future__ import annotations

import math
import struct
from typing import Any

PARTS = ("metadata", "types", "tensors")
OF_A_TENSOR = ("type", "dims", "offset", "bytes", "sha256", "values")


def number(value: Any) -> Any:
    """The number that a text stands for: JSON has no NaN, and JavaScript no integers of 64 bits."""
    if value == "-0":
        return -0.0
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            try:
                return float(value)
            except ValueError:
                return value
    return value


def same(expected: Any, said: Any) -> bool:
    """Whether two values of metadata or of weights are equal: numbers by value, floats also after float32."""
    if isinstance(expected, list):
        return isinstance(said, list) and len(expected) == len(said) and all(map(same, expected, said))
    if isinstance(expected, bool) or isinstance(said, bool):
        return expected is said
    if isinstance(expected, str) and expected not in ("NaN", "Infinity", "-Infinity"):
        return bool(expected == said)
    left, right = number(expected), number(said)
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if isinstance(left, int) and isinstance(right, float):
        return left == right
    try:
        left, right = float(left), float(right)
    except (TypeError, ValueError, OverflowError):
        return False
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    if left == right:
        return math.copysign(1, left) == math.copysign(1, right) or isinstance(said, int)
    try:  # a reader may print a float32 in as few digits as a float32 needs
        (nearest,) = struct.unpack("<f", struct.pack("<f", right))
        return bool(nearest == left) and f"{left:.6g}" == f"{right:.6g}"
    except OverflowError:
        return False


def dims(values: Any, kind: str) -> list[int]:
    """The dims as whole numbers; in GGUF ones at the end do not count: ggml itself always has four."""
    found = [int(each) for each in values]
    while kind == "gguf" and found and found[-1] == 1:
        found.pop()
    return found


def difference(kind: str, expected: dict[str, Any], said: Any) -> str:
    """The first thing that a reader got wrong, or nothing. What it does not print is not compared, except for names."""
    if not isinstance(said, dict) or not isinstance(said.get("tensors"), dict):
        return "no JSON object with tensors was printed"
    for part in ("metadata", "types"):
        found = said.get(part)
        if found is None or part not in expected:
            continue
        if not isinstance(found, dict) or (part == "metadata" and found.keys() != expected[part].keys()):
            return f"{part}: other keys"
        for key, value in found.items():
            if key not in expected[part] or not same(expected[part][key], value):
                return f"{part}: {key[:40]} is {str(value)[:60]}, expected {str(expected[part].get(key))[:60]}"
    if said["tensors"].keys() != expected["tensors"].keys():
        return f"tensors: {sorted(said['tensors'])[:5]}, expected {sorted(expected['tensors'])[:5]}"
    for name, right in expected["tensors"].items():
        found = said["tensors"][name]
        for key in OF_A_TENSOR:
            if key not in found or key not in right:
                continue
            pair = [dims(each[key], kind) if key == "dims" else each[key] for each in (right, found)]
            if not same(*pair):
                return f"tensor {name[:40]}: {key} is {str(found[key])[:60]}, expected {str(right[key])[:60]}"
    return ""


def compared(said: dict[str, Any]) -> list[str]:
    """Which parts a reader printed at all."""
    parts = [part for part in PARTS[:2] if said.get(part)]
    tensors = said.get("tensors") or {}
    return parts + [key for key in OF_A_TENSOR if any(key in each for each in tensors.values())]
