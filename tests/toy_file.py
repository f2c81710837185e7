"""A GGUF-lite file of a hundred bytes, written by hand, and what each of its bytes is."""

import struct

import numpy as np

# 1. header  2. one line of metadata  3. two descriptors  4. data: w is 1 × 64 in Q4, b two float32
TOY = (
    b"TFLG" + struct.pack("<3I", 1, 2, 4) + b"a=bc"
    + struct.pack("<H", 1) + b"w" + struct.pack("<B2IBQ", 2, 1, 64, 3, 0)
    + struct.pack("<H", 1) + b"b" + struct.pack("<BIBQ", 1, 2, 0, 34)
    + np.float16(0.5).tobytes() + bytes([0x21, 0x8F]) + bytes(30)
    + struct.pack("<2f", 1.0, -2.0)
)  # fmt: skip
NAMES = [
    ("header.magic", 0, 4, 0x474C4654),
    ("header.version", 4, 8, 1),
    ("header.n_tensors", 8, 12, 2),
    ("header.metadata_len", 12, 16, 4),
    ("metadata 'a'", 16, 20, "bc"),
    ("descriptor 0: name_len", 20, 22, 1),
    ("tensor 'w': name", 22, 23, "w"),
    ("tensor 'w': n_dims", 23, 24, 2),
    ("tensor 'w': dims", 24, 32, (1, 64)),
    ("tensor 'w': dtype", 32, 33, 3),
    ("tensor 'w': offset", 33, 41, 0),
    ("descriptor 1: name_len", 41, 43, 1),
    ("tensor 'b': name", 43, 44, "b"),
    ("tensor 'b': n_dims", 44, 45, 1),
    ("tensor 'b': dims", 45, 49, (2,)),
    ("tensor 'b': dtype", 49, 50, 0),
    ("tensor 'b': offset", 50, 58, 34),
    ("tensor 'w': scales", 58, 60, [[0.5]]),
    ("tensor 'w': values", 60, 92, [[1, 2, -1, -8] + [0] * 60]),
    ("tensor 'b': values", 92, 100, [1.0, -2.0]),
]
