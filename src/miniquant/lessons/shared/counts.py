"""What the sizes in a file are counted from, by the words for it: a check compares wrong numbers with these."""

from __future__ import annotations

import math
from typing import Any

from .gguf_lite_by_hand import Q4, Q8

BITS = {"f32": 32, "f16": 16, Q8: 8, Q4: 4}
Dims = tuple[int, ...]


def scales_in(scheme: str, dims: Dims) -> int:
    """How many scales a tensor has.

    >>> scales_in("q4_per_group_64", (3, 128)), scales_in("q8_per_channel", (3, 128)), scales_in("f16", (3,))
    (6, 3, 0)
    """
    return {Q8: math.prod(dims[:1]), Q4: math.prod(dims) // 64}.get(scheme, 0)


def of_tensor(scheme: str, dims: Dims) -> dict[str, Any]:
    """The counts of one tensor."""
    values = math.prod(dims)
    found = {
        "the number of values": values,
        "the number of scales": scales_in(scheme, dims),
        "the number of whole groups of 64": values // 64,
        "the number of whole groups of 32": values // 32,
    }
    if len(dims) == 2:
        found |= {
            "the number of rows": dims[0],
            "the number of columns": dims[1],
            "the number of whole groups of 64 in a row": dims[1] // 64,
        }
    if len(dims) > 2:
        found |= {"the product of the first two of three dims or more": dims[0] * dims[1], "the third of the dims": dims[2]}
    return found | {
        "the number of dims": len(dims),
        "the sum of the dims": sum(dims),
        "`dims` has no item": not dims,
        "`dims` has one item": len(dims) == 1,
        "`dims` has more than two items": len(dims) > 2,
        "`scheme` is a quantized one": scheme in (Q8, Q4),
        "`scheme` is f32 or f16": scheme in ("f32", "f16"),
    }


def of_shapes(shapes: dict[str, Dims]) -> dict[str, Any]:
    """The counts of all tensors together, and those that are taken in their place."""
    counts = [math.prod(dims) for dims in shapes.values()]
    return {
        "the number of values": sum(counts),
        "the number of tensors": len(shapes),
        "the number of values of tensors with two dims": sum(math.prod(d) for d in shapes.values() if len(d) == 2),
        "the number of values of tensors with two dims or more": sum(math.prod(d) for d in shapes.values() if len(d) > 1),
        "the number of values of tensors with one dim or more": sum(math.prod(d) for d in shapes.values() if d),
        "the number of values of the last tensor": counts[-1] if counts else 0,
        "the number of values of the first tensor": counts[0] if counts else 0,
        "the number of values of the largest tensor": max(counts, default=0),
        "the mean number of values of a tensor": sum(counts) / max(len(counts), 1),
        "the sum of all dims": sum(map(sum, shapes.values())),
        "the sum of the first dims": sum(dims[0] for dims in shapes.values() if dims),
        "the sum of the first dims, 1 for a scalar": sum((*dims, 1)[0] for dims in shapes.values()),
        "the sum of the last dims": sum(dims[-1] for dims in shapes.values() if dims),
        "the sum of the last dims, 1 for a scalar": sum((1, *dims)[-1] for dims in shapes.values()),
        "the product of all dims": math.prod(counts),
        "the number of dims": sum(map(len, shapes.values())),
        "there is a scalar": () in shapes.values(),
        "there is a tensor with one dim": any(len(dims) == 1 for dims in shapes.values()),
        "there is a tensor with more than two dims": any(len(dims) > 2 for dims in shapes.values()),
        "there is more than one tensor": len(shapes) > 1,
        "there is no tensor": not shapes,
    }


def of_tensors(shapes: dict[str, Dims], schemes: dict[str, str]) -> dict[str, Any]:
    """The counts of all tensors together, and of those of each scheme."""
    used = {name: schemes.get(name, "f32") for name in shapes}
    values = {name: math.prod(dims) for name, dims in shapes.items()}
    scales = {name: scales_in(used[name], dims) for name, dims in shapes.items()}
    size = {name: values[name] * BITS[used[name]] // 8 + 2 * scales[name] for name in shapes}
    with_scales = {scheme: sum(size[name] for name in shapes if used[name] == scheme) for scheme in BITS}
    found: dict[str, Any] = {"the number of values": sum(values.values()), "the number of tensors": len(shapes)}
    found["the number of scales"] = sum(scales.values())
    unnamed = [name for name in shapes if name not in schemes]
    found["the number of values that `schemes` does not name"] = sum(values[name] for name in unnamed)
    found["the number of tensors that `schemes` does not name"] = len(unnamed)
    for scheme in BITS:
        found[f"the number of values in {scheme}"] = sum(values[name] for name in shapes if used[name] == scheme)
    last = {used[name]: values[name] * BITS[used[name]] // 8 for name in shapes}
    return found | {
        "the number of scales in q8_per_channel": sum(scales[name] for name in shapes if used[name] == Q8),
        "the number of scales in q4_per_group_64": sum(scales[name] for name in shapes if used[name] == Q4),
        "the number of rows in q4_per_group_64": sum(dims[0] for name, dims in shapes.items() if used[name] == Q4),
        "the number of columns in q8_per_channel": sum(dims[1] for name, dims in shapes.items() if used[name] == Q8),
        "the number of values of tensors with one dim or none": sum(values[n] for n, d in shapes.items() if len(d) < 2),
        "what the last tensor takes there": {**dict.fromkeys(BITS, 0), **last, "scales": 2 * [0, *scales.values()][-1]},
        "what it takes with its scales": with_scales,
        "the number of tensors there": {scheme: [*used.values()].count(scheme) for scheme in BITS}
        | {"scales": sum(scheme in (Q8, Q4) for scheme in used.values())},
        "the number of values there": {s: sum(values[n] for n in shapes if used[n] == s) for s in BITS}
        | {"scales": sum(scales.values())},
        "there is a scalar": () in shapes.values(),
        "there is a tensor with one dim": any(len(dims) == 1 for dims in shapes.values()),
        "there is more than one tensor": len(shapes) > 1,
        "two tensors are stored with the same scheme": len(set(used.values())) < len(used),
        "there is no tensor": not shapes,
    }
