"""A GGUF-lite file of five small tensors, spelled out byte by byte, and what it reads as."""

from __future__ import annotations

import numpy as np
import torch

from miniquant import write_gguf_lite

TOY = {
    "bias": np.array([1.0, -2.0, 0.1], np.float32),
    "half": np.array([[0.5], [-1.0 / 3.0]], np.float32),
    "eight": np.array([[127.0, -127.0, 0.5, 1.5], [0.0, 0.0, 0.0, 0.0], [3.0, -1.0, 0.01, 1.0]], np.float32),
    "four": np.concatenate([np.arange(64) % 15 - 7, 2.0 * (np.arange(64) % 3 == 0)]).astype(np.float32)[None],
    "one": np.array(-1.5, np.float32),
}
TOY_SCHEMES = {"half": "f16", "eight": "q8_per_channel", "four": "q4_per_group_64"}
TOY_BYTES = bytes.fromhex(
    # 1. header
    "54 46 4C 47"  # magic 0x474C4654, little-endian: T F L G
    "01 00 00 00"  # version 1
    "05 00 00 00"  # n_tensors
    "2B 00 00 00"  # metadata_len: 17 + 1 + 13 + 1 + 11 = 43
    # 2. metadata
    "64 69 6D 73 5F 6F 72 64 65 72 3D 6F 75 74 2C 69 6E 0A"  # dims_order=out,in LF
    "67 72 6F 75 70 5F 73 69 7A 65 3D 36 34 0A"  # group_size=64 LF
    "6E 61 6D 65 3D 74 6F 79 20 C3 A9"  # name=toy é; no newline at the end
    # 3. descriptors
    "04 00  62 69 61 73  01  03 00 00 00  00  00 00 00 00 00 00 00 00"  # bias  (3)       F32 at 0
    "04 00  68 61 6C 66  02  02 00 00 00 01 00 00 00  01  0C 00 00 00 00 00 00 00"  # half  (2, 1)  F16 at 12
    "05 00  65 69 67 68 74  02  03 00 00 00 04 00 00 00  02  10 00 00 00 00 00 00 00"  # eight (3, 4)  Q8 at 16
    "04 00  66 6F 75 72  02  01 00 00 00 80 00 00 00  03  22 00 00 00 00 00 00 00"  # four (1, 128)  Q4 at 34
    "03 00  6F 6E 65  00  00  66 00 00 00 00 00 00 00"  # one   ()        F32 at 102
    # 4. data: bias, 3 × f32
    "00 00 80 3F"  # 1.0: exponent 127
    "00 00 00 C0"  # -2.0: sign, exponent 128
    "CD CC CC 3D"  # 0.1, rounded up in the last bit
    # half, 2 × f16
    "00 38"  # 0.5: exponent 14, so 01110 and ten zeros
    "55 B5"  # -1/3: sign, exponent 13, mantissa 0101010101
    # eight, scales 3 × f16, then 3 × 4 × i8
    "00 3C"  # 127/127 = 1.0
    "00 00"  # a row of zeros: 0
    "0C 26"  # 3/127 = 0.0236220; steps of 2^-16: 1548.1 -> 1548 = 1024 + 524 (20C), exponent 9: 0 01001 1000001100
    "7F 81 00 02"  # 127 -127; 0.5 -> 0 and 1.5 -> 2, ties to even
    "00 00 00 00"
    "7F D6 00 2A"  # 3.0/s = 127.005 -> 127; 1/s = 42.335: -42 = D6, 42 = 2A; 0.01/s = 0.42 -> 0
    # four, scales 1 × 2 × f16, then 1 × 64 bytes
    "00 3C"  # 7/7 = 1.0
    "92 34"  # 2/7 = 0.285714; steps of 2^-12: 1170.29 -> 1170 = 1024 + 146 (092), exponent 13
    # group 0: -7 -6 -5 ... 7 and again; low nibble first: 9 A B C D E F 0 1 2 3 4 5 6 7
    "A9 CB ED 0F 21 43 65 97 BA DC FE 10 32 54 76"  # 30 weights
    "A9 CB ED 0F 21 43 65 97 BA DC FE 10 32 54 76"  # 30 more
    "A9 CB"  # the last four: -7 -6 -5 -4
    # group 1: 2 0 0 2 0 0 ... as 7 0 0 7 0 0: 2/s = 7.0017 -> 7
    "07 70 00 07 70 00 07 70 00 07 70 00 07 70 00 07 70 00 07 70 00 07 70 00 07 70 00 07 70 00 07 70"
    # one, f32
    "00 00 C0 BF"  # -1.5
)
S8, S4 = 1548 * 2.0**-16, 1170 * 2.0**-12  # the two scales that had to be rounded
TOY_READ = {
    "bias": [1.0, -2.0, 13421773 * 2.0**-27],
    "half": [[0.5], [-1365 * 2.0**-12]],
    "eight": [[127.0, -127.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0], [127 * S8, -42 * S8, 0.0, 42 * S8]],
    "four": [[float(i % 15 - 7) for i in range(64)] + [7 * S4 if i % 3 == 0 else 0.0 for i in range(64)]],
    "one": -1.5,
}


def write_toy(path, kind="numpy"):
    state = TOY if kind == "numpy" else {name: torch.from_numpy(w.copy()) for name, w in TOY.items()}
    write_gguf_lite(path, state, TOY_SCHEMES, {"name": "toy é"})
