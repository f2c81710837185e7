"""The exercises of lab 15 on Q4_K: the parts of a super-block, its nibbles, its weights."""

from __future__ import annotations

import struct
from functools import partial
from typing import NamedTuple

import numpy as np

from ...formats.gguf import GGMLType, decode
from ...lab.spec import Case, Exercise, Mistake
from ...quantization.packing import unpack_runs
from .scales import two_runs, unpack_k_scales

F32 = np.float32


def made_block(d: float, dmin: float, scales: bytes, qs: bytes) -> bytes:
    """A super-block of Q4_K from its parts."""
    return struct.pack("<2e", d, dmin) + scales + qs


# ---- split_super_block -----------------------------------------------------------------------------------------------


class SuperBlock(NamedTuple):
    """The four parts of a super-block, by name."""

    d: float
    dmin: float
    scales: np.ndarray
    qs: np.ndarray


def split_super_block(raw: bytes) -> tuple[float, float, np.ndarray, np.ndarray]:
    """The reference: 144 bytes -> d, dmin, scales (12,) uint8, qs (128,) uint8."""
    d, dmin = np.frombuffer(raw, "<f2", 2).astype(float).tolist()
    return d, dmin, np.frombuffer(raw, np.uint8, 12, 4), np.frombuffer(raw, np.uint8, 128, 16)


def split_oracle(raw: bytes) -> SuperBlock:
    """One byte after another."""
    d, dmin = struct.unpack("<2e", raw[:4])
    return SuperBlock(d, dmin, np.array(list(raw[4:16]), np.uint8), np.array(list(raw[16:]), np.uint8))


def _block_cases(random: np.random.Generator) -> list[Case]:
    ramp = made_block(1, 2, bytes(range(100, 112)), bytes(range(128)))
    drawn = [made_block(a, b, random.bytes(12), random.bytes(128)) for a, b in random.uniform(-1, 1, (3, 2)).tolist()]
    return [(raw,) for raw in [ramp, made_block(-0.5, 0.25, bytes(12), bytes([0x21]) * 128), *drawn]]


def _split(raw: bytes, number: str = "<e", d: int = 0, dmin: int = 2, scales: int = 4, qs: int = 16) -> tuple:
    numbers = (struct.unpack_from(number, raw, at)[0] for at in (d, dmin))
    return *map(float, numbers), np.frombuffer(raw, np.uint8, 12, scales), np.frombuffer(raw[qs:][:128], np.uint8)


def _bfloat16(raw: bytes) -> tuple:
    numbers = (struct.unpack("<f", bytes(2) + raw[at : at + 2])[0] for at in (0, 2))
    return *numbers, *_split(raw)[2:]


SPLIT_SUPER_BLOCK = Exercise(
    name="split_super_block",
    lab="15",
    goal="Cut a super-block of Q4_K into its four parts: d, dmin, the scale bytes, the nibble bytes.",
    minutes=4,
    difficulty="warm-up",
    reference=split_super_block,
    oracle=split_oracle,
    cases=_block_cases,
    hints=(
        "2 + 2 + 12 + 128 bytes, in this order; the first two parts are float16.",
        '`struct.unpack("<2e", raw[:4])` gives d and dmin, `np.frombuffer(raw[4:16], np.uint8)` the scale bytes.',
    ),
    why="144 bytes, four parts, no gap between them.",
    mistakes=(
        Mistake(
            "dmin first",
            partial(_split, d=2, dmin=0),
            "The two numbers changed places.",
            "d stands in bytes 0 and 1.",
            "d and dmin exchanged",
        ),
        Mistake(
            "big-endian",
            partial(_split, number=">e"),
            "The most significant byte was taken first.",
            "Begin the format with `<`.",
            "d and dmin with strange values, the rest right",
        ),
        Mistake(
            "float32 numbers",
            partial(_split, number="<f", dmin=4, scales=8, qs=20),
            "d and dmin were read as float32, four bytes each, and everything behind them moved.",
            "They are float16: two bytes each, `e` in `struct`.",
            "124 nibble bytes where 128 are expected",
        ),
        Mistake(
            "integers",
            partial(_split, number="<H"),
            "The bytes of a float16 were read as an integer.",
            "Use `e`, float16, instead of `H`.",
            "d in the thousands",
        ),
        Mistake(
            "bfloat16",
            _bfloat16,
            "The bytes were read as the upper half of a float32; there is another 16-bit float, and this is not it.",
            "Use `e` of `struct`, or numpy's `<f2`.",
            "a d of a very different size",
        ),
        Mistake(
            "scales behind the nibbles",
            partial(_split, scales=132, qs=4),
            "The scale bytes were taken from the end, where Q6_K has its own.",
            "In Q4_K they follow dmin.",
            "d and dmin right, the arrays moved by 12",
        ),
        Mistake(
            "d and dmin at the end",
            partial(_split, d=140, dmin=142, scales=0, qs=12),
            "That is the order of Q2_K, which ends with its floats.",
            "Q4_K begins with them.",
            "everything moved by 4",
        ),
    ),
)

# ---- k_nibbles -------------------------------------------------------------------------------------------------------


def k_nibbles(qs: np.ndarray) -> np.ndarray:
    """The reference: (128,) uint8 -> (8, 32) uint8, a row for every sub-block."""
    return unpack_runs(qs, 4, 32).reshape(8, 32)


def nibbles_oracle(qs: np.ndarray) -> np.ndarray:
    """Weight by weight: in which byte, and in which half of it."""
    rows = []
    for sub in range(8):
        run = 32 * (sub // 2)
        rows.append([int(qs[run + i]) // 16 if sub % 2 else int(qs[run + i]) % 16 for i in range(32)])
    return np.array(rows, np.uint8)


def _nibble_cases(random: np.random.Generator) -> list[Case]:
    ramp = np.array([i % 16 | (15 - i % 16) << 4 for i in range(128)], np.uint8)
    runs = np.repeat(np.array([0x10, 0x32, 0x54, 0x76], np.uint8), 32)
    return [(runs,), (ramp,), *((random.integers(0, 256, 128, np.uint8),) for _ in range(2))]


def _nibbles(qs: np.ndarray, run: int, exchanged: bool = False, mask: int = 15) -> np.ndarray:
    split = qs.reshape(-1, run)
    pair = (split & mask, split >> 4)
    return np.stack(pair[::-1] if exchanged else pair, axis=1).reshape(8, 32)


def _pairs(qs: np.ndarray) -> np.ndarray:
    return np.stack([qs & 15, qs >> 4], axis=1).reshape(8, 32)


K_NIBBLES = Exercise(
    name="k_nibbles",
    lab="15",
    goal="Take the 256 integers out of 128 bytes, one row for each sub-block.",
    minutes=5,
    difficulty="core",
    reference=k_nibbles,
    oracle=nibbles_oracle,
    cases=_nibble_cases,
    hints=(
        "Cut the bytes into four runs of 32: `runs = qs.reshape(4, 32)`. The low nibbles of run 0 are sub-block 0, its "
        "high nibbles sub-block 1.",
        "`np.stack([runs & 15, runs >> 4], axis=1)` has shape (4, 2, 32); reshape it to (8, 32).",
    ),
    why="32 bytes are loaded at once, masked once and shifted once: two sub-blocks without moving a byte.",
    mistakes=(
        Mistake(
            "neighbours in one byte",
            _pairs,
            "Byte i was taken for weights 2i and 2i + 1, as the document has it; the weights of a byte lie 32 apart.",
            "Take runs of 32 bytes: low nibbles one sub-block, high nibbles the next.",
            "the right numbers in another order: in row 0 the nibbles of 16 bytes",
        ),
        Mistake(
            "halves of 16 bytes",
            partial(_nibbles, run=16),
            "That is Q4_0's rule, 16 low nibbles and then 16 high ones.",
            "A run of Q4_K has 32 bytes.",
            "the first half of row 0 right, the second half from high nibbles",
        ),
        Mistake(
            "all low nibbles first",
            partial(_nibbles, run=128),
            "The low nibbles of all 128 bytes came before the first high one.",
            "Go run by run: 32 low ones, 32 high ones, then the next run.",
            "row 0 right, row 1 from the next run",
        ),
        Mistake(
            "halves of 64 bytes",
            partial(_nibbles, run=64),
            "The runs were 64 bytes long, as those of Q6_K's ql are.",
            "A run of Q4_K has 32 bytes.",
            "row 0 right, row 1 from the next run, row 2 from the high nibbles of the first",
        ),
        Mistake(
            "high nibbles first",
            partial(_nibbles, run=32, exchanged=True),
            "The high nibbles came first.",
            "Put the low ones in front.",
            "each pair of rows exchanged",
        ),
        Mistake(
            "no mask",
            partial(_nibbles, run=32, mask=255),
            "The low nibble still has the high one above it.",
            "Mask with 15.",
            "numbers above 15 in the even rows",
        ),
        Mistake(
            "rows and columns exchanged",
            lambda qs: np.ascontiguousarray(k_nibbles(qs).reshape(32, 8).T),
            "The 256 integers were laid out down the columns.",
            "Reshape to (8, 32) without a transpose.",
            "the right numbers, eight apart",
        ),
    ),
)

# ---- decode_q4_k -----------------------------------------------------------------------------------------------------


def decode_q4_k(raw: bytes) -> np.ndarray:
    """The reference: n super-blocks of 144 bytes -> (n, 256) float32."""
    return decode(np.frombuffer(raw, np.uint8).reshape(-1, 144), GGMLType.Q4_K)


def decode_q4_k_oracle(raw: bytes) -> np.ndarray:
    """One weight at a time, in Python's own arithmetic."""
    found = []
    for start in range(0, len(raw), 144):
        d, dmin = struct.unpack_from("<2e", raw, start)
        s, qs = raw[start + 4 : start + 16], raw[start + 16 : start + 144]
        row = []
        for i in range(256):
            run, place = divmod(i, 64)
            sub, byte = i // 32, qs[32 * run + place % 32]
            q = byte >> 4 if place >= 32 else byte & 15
            if sub < 4:
                sc, m = s[sub] & 63, s[sub + 4] & 63
            else:
                sc = s[sub + 4] & 15 | s[sub - 4] >> 6 << 4
                m = s[sub + 4] >> 4 | s[sub] >> 6 << 4
            row.append(d * sc * q - dmin * m)
        found.append(row)
    return np.array(found, F32)


def _q4_k_cases(random: np.random.Generator) -> list[Case]:
    ramp = bytes(i % 16 | (15 - i % 16) << 4 for i in range(128))
    plain = made_block(1 / 64, 1 / 64, bytes([1, 2, 3, 4, 1, 1, 2, 2, 0x15, 0x26, 0x37, 0x48]), ramp)
    made = [
        made_block(1 / 64, 0, bytes([1] * 4 + [0] * 4 + [1] * 4), ramp),
        plain,
        plain + made_block(1 / 128, 1 / 32, bytes(range(200, 212)), ramp[::-1]),
    ]
    drawn = b"".join(
        made_block(a, b, random.bytes(12), random.bytes(128)) for a, b in random.uniform(0, 0.01, (4, 2)).tolist()
    )
    return [(raw,) for raw in [*made, drawn]]


def _decode(
    raw: bytes, formula="ggml", scales=unpack_k_scales, nibbles=k_nibbles, spread=np.repeat, number=F32
) -> np.ndarray:
    found = []
    for start in range(0, len(raw), 144):
        d, dmin, packed, qs = split_super_block(raw[start : start + 144])
        d, dmin = number(d), number(dmin)
        sc, m = (values.astype(number) for values in scales(packed))
        q = nibbles(qs).astype(number)  # (8, 32)
        sc, m = (spread(values, 32).reshape(8, 32) for values in (sc, m))
        found.append(
            {
                "ggml": d * sc * q - dmin * m,
                "document": (q - number(8)) * d * sc + dmin * m,
                "added": d * sc * q + dmin * m,
                "eight": d * sc * (q - number(8)) - dmin * m,
                "whole minimum": d * sc * q - m,
                "small": d * (sc * q % 256) - dmin * m,
                "no d": sc * q - dmin * m,
                "no scale": d * q - dmin * m,
                "no minimum": d * sc * q,
                "inside": d * sc * (q - dmin * m),
            }[formula].ravel()
        )
    return np.array(found, F32)


DECODE_Q4_K = Exercise(
    name="decode_q4_k",
    lab="15",
    goal="Turn super-blocks of Q4_K into weights: d × scale × q - dmin × minimum, by the sub-block.",
    minutes=8,
    difficulty="core",
    reference=decode_q4_k,
    oracle=decode_q4_k_oracle,
    cases=_q4_k_cases,
    tolerance=2e-6,
    hints=(
        "You have all parts: `split_super_block`, `unpack_k_scales`, `k_nibbles`. The scales are one a row of the "
        "nibbles: `scales[:, None]` has shape (8, 1).",
        "For one super-block: `w = np.float32(d) * scales[:, None] * q - np.float32(dmin) * mins[:, None]`, then "
        "`w.ravel()`; `np.stack` the rows of all super-blocks.",
    ),
    why="this reads the most common type of the models that people run at home.",
    mistakes=(
        Mistake(
            "the document's formula",
            partial(_decode, formula="document"),
            "(q - 8) × d × scale + dmin × minimum: the 8 belongs to Q4_0, and the minimum is subtracted.",
            "Write d × scale × q - dmin × minimum.",
            "weights of about the right size, and wrong everywhere",
        ),
        Mistake(
            "the minimum added",
            partial(_decode, formula="added"),
            "dmin × minimum is stored as a positive number, and it lies below zero.",
            "Subtract it.",
            "right where the minimum is 0, no negative weight anywhere",
        ),
        Mistake(
            "8 subtracted",
            partial(_decode, formula="eight"),
            "q goes from 0 to 15 here; its zero is the minimum's work.",
            "Subtract nothing from q.",
            "every weight too small by 8 steps",
        ),
        Mistake(
            "the minimum without dmin",
            partial(_decode, formula="whole minimum"),
            "The minimum is a small integer, and dmin says what one of it is worth.",
            "Multiply it by dmin.",
            "weights around -20",
        ),
        Mistake(
            "the scale without d",
            partial(_decode, formula="no d"),
            "The scale is a small integer, and d says what one of it is worth.",
            "Multiply it by d.",
            "weights in the hundreds",
        ),
        Mistake(
            "d without the scale",
            partial(_decode, formula="no scale"),
            "Every sub-block has a scale of its own, and you used d alone.",
            "Multiply d by the sub-block's scale.",
            "right where the scale is 1",
        ),
        Mistake(
            "no minimum",
            partial(_decode, formula="no minimum"),
            "The mins were unpacked and not used.",
            "Subtract dmin × minimum.",
            "right where the minimum is 0, no negative weight anywhere else",
        ),
        Mistake(
            "the minimum inside",
            partial(_decode, formula="inside"),
            "The minimum was subtracted from q, before the scale.",
            "Subtract dmin × minimum from d × scale × q.",
            "right where the minimum is 0",
        ),
        Mistake(
            "the document's scales",
            partial(_decode, scales=two_runs),
            "The scales were read as two runs of six bytes.",
            "Use your `unpack_k_scales`.",
            "nearly every weight wrong, but in the right order within a sub-block",
        ),
        Mistake(
            "the document's nibbles",
            partial(_decode, nibbles=_pairs),
            "Byte i was taken for weights 2i and 2i + 1.",
            "Use your `k_nibbles`.",
            "the right numbers in the wrong places, where the scales are equal",
        ),
        Mistake(
            "scales in turn",
            partial(_decode, spread=lambda values, n: np.tile(values, n)),
            "Weight i took scale i % 8, and a sub-block is 32 neighbours.",
            "Repeat each scale 32 times, or use `scales[:, None]`.",
            "right where all scales are equal",
        ),
        Mistake(
            "computed in float16",
            partial(_decode, number=np.float16),
            "d was left a float16, and the products with it.",
            "Convert d and dmin to float32 first.",
            "right to three digits",
        ),
        Mistake(
            "multiplied in uint8",
            partial(_decode, formula="small"),
            "scale × q was computed first, in uint8, where 63 × 15 does not fit and wraps around in silence.",
            "Convert the scales to float32, or multiply them by d first.",
            "right where the scales are small, much too small elsewhere",
        ),
        Mistake(
            "the first super-block alone",
            lambda raw: _decode(raw[:144]),
            "Only the first 144 bytes were decoded.",
            "Go on in steps of 144 bytes, to the end of raw.",
            "(1, 256) where (2, 256) is expected",
        ),
    ),
)
