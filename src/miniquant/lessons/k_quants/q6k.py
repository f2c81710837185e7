"""The exercise of lab 15 on Q6_K: four bits here, two bits there, signed scales."""

from __future__ import annotations

import struct
from functools import partial

import numpy as np

from ...formats.gguf import GGMLType, decode
from ...lab.spec import Case, Exercise, Mistake
from ...quantization.packing import unpack_runs

F32 = np.float32


def decode_q6_k(raw: bytes) -> np.ndarray:
    """The reference: n super-blocks of 210 bytes -> (n, 256) float32."""
    return decode(np.frombuffer(raw, np.uint8).reshape(-1, 210), GGMLType.Q6_K)


def decode_q6_k_oracle(raw: bytes) -> np.ndarray:
    """One weight at a time, in Python's own arithmetic."""
    found = []
    for start in range(0, len(raw), 210):
        ql, qh = raw[start : start + 128], raw[start + 128 : start + 192]
        scales = struct.unpack_from("<16b", raw, start + 192)
        (d,) = struct.unpack_from("<e", raw, start + 208)
        row = []
        for i in range(256):
            half, rest = divmod(i, 128)
            quarter, place = divmod(rest, 32)
            byte = ql[64 * half + 32 * (quarter % 2) + place]
            low = byte >> 4 if quarter >= 2 else byte & 15
            high = qh[32 * half + place] >> 2 * quarter & 3
            row.append(d * scales[i // 16] * (low + 16 * high - 32))
        found.append(row)
    return np.array(found, F32)


def _made(ql: bytes, qh: bytes, scales: list[int], d: float) -> bytes:
    return ql + qh + struct.pack("<16be", *scales, d)


def _q6_k_cases(random: np.random.Generator) -> list[Case]:
    ramp = bytes(i % 16 | (15 - i % 16) << 4 for i in range(128))
    high = bytes([0b11100100] * 32 + [0b00011011] * 32)
    made = [
        _made(ramp, b"\xaa" * 64, [1] * 16, 1 / 64),  # the upper bits are 2 everywhere: q is the low nibble
        _made(ramp, high, [1] * 16, 1 / 64),
        _made(ramp[::-1], high[::-1], list(range(1, 17)), 1 / 128),
        _made(ramp, high, [-8, 7, -6, 5, -4, 3, -2, 1] * 2, -1 / 128),
    ]
    drawn = b"".join(
        _made(random.bytes(128), random.bytes(64), random.integers(-128, 128, 16).tolist(), d)
        for d in random.uniform(0, 0.001, 4).tolist()
    )
    return [(raw,) for raw in [*made, drawn]]


def _decode(raw, shift=32, form=np.int8, run=64, high=4, order=1, spread=16, at=208, wrap=False) -> np.ndarray:
    rows = np.frombuffer(raw, np.uint8).reshape(-1, 210)
    start = 2 if at == 0 else 0
    ql, qh, scales = (rows[:, start + a : start + b] for a, b in ((0, 128), (128, 192), (192, 208)))
    d = np.ascontiguousarray(rows[:, at : at + 2]).view("<f2").astype(F32)
    low = unpack_runs(ql, 4, run) if run else np.stack([ql & 15, ql >> 4], axis=2).reshape(-1, 256)
    upper = unpack_runs(qh, 2, 32).reshape(-1, 2, 4, 32)[:, :, ::order].reshape(-1, 256)
    q = low | upper << high if high is not None else low
    q = (q - np.uint8(shift)).astype(F32) if wrap else q.astype(F32) - F32(shift)
    wide = np.repeat(np.ascontiguousarray(scales).view(form).astype(F32)[:, : 256 // spread], spread, axis=1)
    with np.errstate(all="ignore"):
        return (d * wide * q).astype(F32)


DECODE_Q6_K = Exercise(
    name="decode_q6_k",
    lab="15",
    goal="Turn super-blocks of Q6_K into weights: d × scale × (q - 32), with q in two pieces.",
    minutes=9,
    difficulty="core",
    reference=decode_q6_k,
    oracle=decode_q6_k_oracle,
    cases=_q6_k_cases,
    tolerance=2e-6,
    hints=(
        "Each half, 128 weights, has 64 bytes of ql and 32 of qh. Its four quarters of 32 weights: low nibbles of "
        "ql[0:32], of ql[32:64], then the high nibbles of the same; bits 0-1, 2-3, 4-5 and 6-7 of qh.",
        "`ql = rows[:, :128].reshape(-1, 2, 2, 32)`; `low = np.concatenate([ql & 15, ql >> 4], axis=2)` has shape "
        "(n, 2, 4, 32). `shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]`, and `qh[:, :, None] >> shifts & 3` has "
        "the same shape for qh of (n, 2, 32).",
    ),
    why="with q from -32 to 31 and sixteen scales, this is what K-quants give to the tensors that hurt most.",
    mistakes=(
        Mistake(
            "no 32 subtracted",
            partial(_decode, shift=0),
            "q is stored plus 32, so that it needs no sign.",
            "Subtract 32.",
            "every weight with the sign of its scale",
        ),
        Mistake(
            "scales read unsigned",
            partial(_decode, form=np.uint8),
            "A scale of -1 was read as 255.",
            "View the sixteen bytes as int8.",
            "right where the scales are positive",
        ),
        Mistake(
            "the upper bits forgotten",
            partial(_decode, high=None),
            "q was taken from ql alone.",
            "Add the two bits of qh, shifted by 4.",
            "no weight above -16 steps",
        ),
        Mistake(
            "the upper bits not moved up",
            partial(_decode, high=0),
            "The two bits of qh fell on the lower four.",
            "Shift them by 4.",
            "no weight above -16 steps, and some low bits lost",
        ),
        Mistake(
            "the upper bits from the top",
            partial(_decode, order=-1),
            "The first quarter took the highest two bits of qh.",
            "It takes the lowest two: shifts 0, 2, 4, 6.",
            "right where the upper bits are equal",
        ),
        Mistake(
            "runs of 32",
            partial(_decode, run=32),
            "ql was cut as Q4_K's nibbles are: 32 low ones, 32 high ones.",
            "In Q6_K 64 low nibbles come first, then the 64 high ones.",
            "the first 32 weights of each half right, the second and third 32 exchanged",
        ),
        Mistake(
            "neighbours in one byte",
            partial(_decode, run=0),
            "Byte i of ql was taken for weights 2i and 2i + 1.",
            "Take runs of 64 bytes: low nibbles first, then the high ones.",
            "almost every weight another",
        ),
        Mistake(
            "sub-blocks of 32",
            partial(_decode, spread=32),
            "A scale was used for 32 weights, as in Q4_K; there are sixteen scales.",
            "Repeat each scale 16 times.",
            "the first 16 weights right",
        ),
        Mistake(
            "d at the start",
            partial(_decode, at=0),
            "d was read from the first two bytes, and everything else behind it; Q6_K ends with its d.",
            "Read it from bytes 208 and 209.",
            "every weight another",
        ),
        Mistake(
            "subtracted in uint8",
            partial(_decode, wrap=True),
            "A uint8 has no negative numbers: 3 - 32 becomes 227.",
            "Convert to float32 or int8 before you subtract.",
            "weights of over 200 steps",
        ),
    ),
)
