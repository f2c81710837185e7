"""The parts of a GGUF-lite file, byte by byte: nothing from the library, no ``struct``."""

from __future__ import annotations

import struct

import numpy as np

from .by_hand import by_digits


def header_oracle(n_tensors: int, metadata_len: int) -> bytes:
    """The magic and the version are typed in, the counts are taken apart digit by digit.

    >>> header_oracle(2, 5).hex(" ", 4)
    '54464c47 01000000 02000000 05000000'
    """
    return bytes.fromhex("54 46 4c 47  01 00 00 00") + by_digits(n_tensors, 4) + by_digits(metadata_len, 4)


def descriptor_oracle(name: str, dims: tuple[int, ...], dtype: int, offset: int) -> bytes:
    """Each number taken apart digit by digit.

    >>> descriptor_oracle("w", (2,), 1, 8).hex(" ")
    '01 00 77 01 02 00 00 00 01 08 00 00 00 00 00 00 00'
    """
    text = bytes(name, "utf-8")
    parts = [by_digits(len(text), 2), text, by_digits(len(dims), 1)]
    parts += [by_digits(dim, 4) for dim in dims]
    return b"".join([*parts, by_digits(dtype, 1), by_digits(offset, 8)])


def pack_oracle(values: np.ndarray) -> np.ndarray:
    """One pair at a time, by the digits of the hexadecimal number: (..., n) int8 -> (..., n // 2) uint8.

    >>> pack_oracle(np.array([1, -2], np.int8))
    array([225], dtype=uint8)
    """
    flat = [int(v) % 16 for v in values.reshape(-1)]
    digits = [f"{high:x}{low:x}" for low, high in zip(flat[0::2], flat[1::2])]
    return np.array([int(d, 16) for d in digits], np.uint8).reshape(*values.shape[:-1], values.shape[-1] // 2)


Q8, Q4 = "q8_per_channel", "q4_per_group_64"


def tensor_bytes_oracle(scheme: str, dims: tuple[int, ...]) -> int:
    """Builds one row of the data, measures its length, and counts the rows.

    >>> tensor_bytes_oracle(Q4, (3, 128)), tensor_bytes_oracle("f16", ())
    (204, 2)
    """
    if scheme in ("f32", "f16"):
        letter, count = {"f32": "f", "f16": "e"}[scheme], 1
        for dim in dims:
            count *= dim
        return count * struct.calcsize(letter)
    # a scheme or dims that the docstrings exclude raise an error, so that no input is made with them
    out, width = dims
    if scheme == Q4 and width % 64:
        raise ValueError(f"rows of {width} weights do not divide into groups of 64")
    row = {Q8: b"ss" + b"v" * width, Q4: (b"ss" + b"v" * 32) * len(range(0, width, 64))}[scheme]
    return len(row) * len(range(out))
