"""Five damaged files of one model: each is a legal file that loads without an error, and each has a bug of its own.

The files are made from a good one by changing bytes of its data section, as a wrong writer would have written them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from ...formats.gguf_lite.read import GGUFLite, open_gguf_lite
from ...formats.gguf_lite.types import DType

BUGS = (
    "matrix transposed",
    "nibbles swapped",
    "offset wrong",
    "scales shifted",
    "scales truncated",
    "sign lost",
    "tensors exchanged",
)
Floats = Mapping[str, np.ndarray]  # the trained weights by name
Parts = tuple[np.ndarray, np.ndarray]  # the scales and the values of a tensor, as bytes of the file


def nibbles_swapped(tensors: dict[str, Parts], floats: Floats) -> None:
    """In one layer, the low nibble holds the odd weight."""
    for name, (_, values) in tensors.items():
        if name.startswith("layers.1.") and name.endswith(".weight"):
            values[:] = (values << 4) | (values >> 4)


def scales_shifted(tensors: dict[str, Parts], floats: Floats) -> None:
    """Each group of one matrix has the scale of the group before it."""
    scales, _ = tensors["layers.2.mlp.fc1.weight"]
    scales[:] = np.roll(scales.view("<f2"), 1).view(np.uint8)


def scales_truncated(tensors: dict[str, Parts], floats: Floats) -> None:
    """The scales were cut to float16 and not rounded: those that were rounded up are one unit too small."""
    for name, (scales, values) in tensors.items():
        w = floats[name]
        groups = len(scales) // 2 // len(w)
        largest = 127 if groups == 1 and values.size == w.size else 7
        exact = np.abs(w.reshape(len(w), groups, -1)).max(axis=2).ravel() / np.float32(largest)
        stored = scales.view("<f2")
        stored[:] = np.where(stored > exact, np.nextafter(stored, np.float16(0)), stored)


def sign_lost(tensors: dict[str, Parts], floats: Floats) -> None:
    """In one matrix, the sign bit of every 4-bit number is 0."""
    _, values = tensors["layers.0.mlp.fc2.weight"]
    values &= 0x77


def tensors_exchanged(tensors: dict[str, Parts], floats: Floats) -> None:
    """Two matrices of one shape have changed places."""
    for one, two in zip(tensors["layers.1.attn.qkv.weight"], tensors["layers.3.attn.qkv.weight"]):
        one[:], two[:] = two.copy(), one.copy()


DAMAGE: dict[str, Callable[[dict[str, Parts], Floats], None]] = {
    "A": scales_shifted,
    "B": nibbles_swapped,
    "C": scales_truncated,
    "D": tensors_exchanged,
    "E": sign_lost,
}


def damaged_files(
    good: str | os.PathLike[str], floats: Floats, folder: str | os.PathLike[str]
) -> dict[str, Path]:
    """Five damaged copies of a good file: letter -> path.

    good: a GGUF-lite file of the trained MiniGPT with 4-bit matrices, as the preset ``int4-small-embeddings`` writes it;
    floats: the trained weights by name
    """
    paths = {letter: Path(folder) / f"mystery-{letter}.gguf-lite" for letter in DAMAGE}
    for letter, path in paths.items():
        data = np.fromfile(good, np.uint8)
        with open_gguf_lite(good) as file:
            DAMAGE[letter]({name: _parts(file, name, data) for name in _quantized(file)}, floats)
        data.tofile(path)
    return paths


def _quantized(file: GGUFLite) -> list[str]:
    return [name for name, info in file.tensors.items() if info.dtype in (DType.Q8_PER_CHANNEL, DType.Q4_PER_GROUP_64)]


def _parts(file: GGUFLite, name: str, data: np.ndarray) -> Parts:
    """The scales and the values of a tensor, as views of the bytes of a copy of the file."""
    info = file.tensors[name]
    start = file.data_start + info.offset
    middle = start + info.dtype.scale_bytes(info.shape)
    return data[start:middle], data[middle : start + info.n_bytes]


def weights_side_by_side(expected: np.ndarray, found: np.ndarray, count: int = 8) -> str:
    """The first weights of a matrix on two lines, in thousandths; the last line is their ratio.

    >>> print(weights_side_by_side(np.array([[0.002, -0.004]]), np.array([[0.004, -0.008]])))
    expected     2.0    -4.0
    found        4.0    -8.0
    ratio     2.0000  2.0000
    """
    a, b = (np.asarray(w, float).ravel()[:count] for w in (expected, found))
    ratio = "".join(f"{y / x:8.4f}" if x else "       -" for x, y in zip(a, b))
    lines = ["".join(f"{1000 * x:8.1f}" for x in row) for row in (a, b)]
    return f"expected{lines[0]}\nfound   {lines[1]}\nratio   {ratio}"
