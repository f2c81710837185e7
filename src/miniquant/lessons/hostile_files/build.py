"""The bytes of GGUF files whose numbers may lie: what lab 23 makes its test files with."""

from __future__ import annotations

import struct

ALIGNMENT = 32  # of the data; the files have no metadata that says otherwise


def info(name: bytes, dims: tuple[int, ...], offset: int = 0) -> bytes:
    """A tensor info of type F32: its name, its dims in ggml's order, its offset. Nothing is checked.

    >>> info(b"w", (4,)).hex(" ", -8)
    '0100000000000000 7701000000040000 0000000000000000 0000000000000000 00'
    """
    return struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, 0, offset)


def gguf_file(*infos: bytes, data: bytes = b"", n_tensors: int | None = None) -> bytes:
    """A GGUF file without metadata: header, tensor infos, zeros up to a multiple of 32, data. Nothing is checked.

    n_tensors: what the header says; by default how many infos there are

    >>> len(gguf_file(info(b"w", (4,)), data=bytes(16)))
    80
    """
    count = len(infos) if n_tensors is None else n_tensors
    head = b"GGUF" + struct.pack("<IQQ", 3, count, 0) + b"".join(infos)
    return head + bytes(-len(head) % ALIGNMENT) + data
