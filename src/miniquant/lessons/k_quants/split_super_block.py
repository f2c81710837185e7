"""The four parts of a super-block of Q4_K."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from ...lab import Exercise, Mistake, edit
from .toys import made_block


def split_super_block(raw):
    """The four parts of a super-block of Q4_K.

    raw: 144 bytes   ->   d, dmin: numbers; scales: (12,) uint8; qs: (128,) uint8
    """
    d, dmin = struct.unpack("<2e", raw[:4])
    return d, dmin, np.frombuffer(raw[4:16], np.uint8), np.frombuffer(raw[16:], np.uint8)


class SuperBlock(NamedTuple):
    """The four parts of a super-block, by name."""

    d: float
    dmin: float
    scales: np.ndarray
    qs: np.ndarray


def oracle(raw):
    """One byte after another."""
    d, dmin = struct.unpack("<2e", raw[:4])
    return SuperBlock(d, dmin, np.array(list(raw[4:16]), np.uint8), np.array(list(raw[16:]), np.uint8))


def cases(random):
    """Bytes that can be counted, equal nibbles, then random blocks."""
    ramp = made_block(1, 2, bytes(range(100, 112)), bytes(range(128)))
    drawn = [made_block(a, b, random.bytes(12), random.bytes(128)) for a, b in random.uniform(-1, 1, (3, 2)).tolist()]
    return [(raw,) for raw in [ramp, made_block(-0.5, 0.25, bytes(12), bytes([0x21]) * 128), *drawn]]


EXERCISE = Exercise(
    goal="Cut a super-block of Q4_K into its four parts: d, dmin, the scale bytes, the nibble bytes.",
    reference=split_super_block, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up",
    hints=(
        "2 + 2 + 12 + 128 bytes, in this order; the first two parts are float16.",
        "`struct.unpack` knows float16 as `e`; `np.frombuffer` reads the other two parts as uint8.",
    ),
    why="144 bytes, four parts, no gap between them.",
    mistakes=(
        Mistake("dmin first", edit("d, dmin =", "dmin, d ="),
            cause="The two numbers changed places.",
            cure="d stands in bytes 0 and 1.", see="d and dmin exchanged"),
        Mistake("big-endian", edit("<2e", ">2e"),
            cause="The most significant byte was taken first.",
            cure="Begin the format with `<`.", see="d and dmin with strange values, the rest right"),
        Mistake("float32 numbers",
            edit('<2e", raw[:4]', '<2f", raw[:8]').edit("raw[4:16]", "raw[8:20]").edit("raw[16:]", "raw[20:]"),
            cause="d and dmin were read as float32, four bytes each, and everything after them moved.",
            cure="They are float16: two bytes each, `e` in `struct`.", see="124 nibble bytes where 128 are expected"),
        Mistake("integers", edit("<2e", "<2H"),
            cause="The bytes of a float16 were read as an integer.",
            cure="Use `e`, float16, instead of `H`.", see="d in the thousands"),
        Mistake("bfloat16",
            edit('struct.unpack("<2e", raw[:4])', 'struct.unpack("<2f", bytes(2) + raw[:2] + bytes(2) + raw[2:4])'),
            cause="The bytes were read as the upper half of a float32; there is another 16-bit float, and this is not it.",
            cure="Use `e` of `struct`, or numpy's `<f2`.", see="a d of a very different size"),
        Mistake("scales after the nibbles", edit("raw[4:16]", "raw[132:]").edit("raw[16:]", "raw[4:132]"),
            cause="The scale bytes were taken from the end, where Q6_K has its own.",
            cure="In Q4_K they follow dmin.", see="d and dmin right, the arrays moved by 12"),
        Mistake("d and dmin at the end",
            edit("raw[:4]", "raw[140:]").edit("raw[4:16]", "raw[:12]").edit("raw[16:]", "raw[12:140]"),
            cause="That is the order of Q2_K, which ends with its floats.",
            cure="Q4_K begins with them.", see="everything moved by 4"),
    ),
)
