"""Blocks of Q8_1, with their sums."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest16, nearest32


def encode_q8_1(x):
    """Blocks of Q8_1.

    x: (blocks, 32) float32; no quotient of a number and its scale is within
        0.001 of a half
    ->   (blocks, 36) uint8: d, s and 32 signed bytes q. The scale is the
         largest size / 127, in float32; q is the nearest integer to
         number / scale, 0 for a block of zeros; s is scale × the sum of
         the q, in float32; d is the scale. Scale and s become float16 when
         they are stored, not before
    """
    scale = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)  # (blocks, 1)
    q = np.rint(x / np.where(scale > 0, scale, 1)).astype(np.int8)
    s = scale * q.sum(axis=1, keepdims=True)
    stored = np.concatenate([scale, s], axis=1).astype(np.float16)  # (blocks, 2)
    return np.concatenate([stored.view(np.uint8), q.view(np.uint8)], axis=1)


def oracle(x):
    """One number at a time, with struct."""
    found = []
    for block in x.tolist():
        scale = nearest32(max(max(block), -min(block)) / 127)
        q = [round(number / scale) if scale else 0 for number in block]
        found.append(list(struct.pack("<2e32b", nearest16(scale), nearest16(scale * sum(q)), *q)))
    return np.array(found, np.uint8)


def cases(random):
    """A scale of 1, a large number below 0, zeros, equal numbers, scales that float16 does not hold, a scale for which float32 matters, random blocks."""

    def row(*numbers):
        return [*numbers, *[0] * (32 - len(numbers))]

    made = [
        [row(127, 2, -3)],
        [row(-63.5, 10, 20, 0.6)],
        [[1] * 32],
        [row()],
        [row(), row(10, -1, 7, 0.03), row(0.1, 0.02, -0.07), [-3] * 16 + [2.9] * 16],
        [row(1.27e-5, 1e-6, -4e-6), row(1.27e-6, 3e-7, -1e-6), row(1.27e-12, 3e-13, -1e-12)],  # float16 has 0 for two scales
        [row(4085)],  # halfway between two float16, and s is a little off, as the scale is float32
        [[106 - i / 4 for i in range(32)]],  # the sum of its q is odd and above 2048, where float16 has even numbers
    ]
    drawn = random.normal(0, 1, (40, 32)).astype(np.float32) * np.float32(0.7)
    scale = np.abs(drawn).max(axis=1, keepdims=True) / np.float32(127)
    clear = (np.abs((drawn / scale) % 1 - 0.5) > 0.002).all(axis=1)
    return [*((np.array(x, np.float32),) for x in made), (drawn[clear][:6],)]


def fields(x):
    """The parts of each block: (name, start, end)."""
    found = []
    for i in range(len(x)):
        at = 36 * i
        found += [(f"d of block {i}", at, at + 2), (f"s of block {i}", at + 2, at + 4)]
        found.append((f"the integers of block {i}", at + 4, at + 36))
    return found


_SCALE = "np.abs(x).max(axis=1, keepdims=True) / np.float32(127)"
_S = "scale * q.sum(axis=1, keepdims=True)"
_OUT = "np.concatenate([stored.view(np.uint8), q.view(np.uint8)], axis=1)"

EXERCISE = Exercise(
    goal="Round activations to blocks of Q8_1: a scale, the sum of the block, and 32 signed bytes.",
    reference=encode_q8_1, oracle=oracle, cases=cases, minutes=9, difficulty="core",
    hints=(
        "First the scale of each block, then its integers, then their sum times the scale. Only after that do scale and sum become float16.",
        "`keepdims=True` keeps a column, so that scales fit their blocks. `np.where` avoids a division by 0, and `np.rint` rounds. `.view(np.uint8)` shows numbers as bytes; `np.concatenate` along axis 1 joins them.",
    ),
    why="the sum is made once for each block, and then every row of the matrix uses it.",
    mistakes=(
        Mistake("divided by 128", edit("np.float32(127)", "np.float32(128)"),
            cause="The scale is the largest size / 128, so the largest number becomes 128, which is no int8.",
            cure="Divide by 127.", see="other scales, and -128 where 127 is expected"),
        Mistake("the largest, with its sign", edit("np.abs(x).max", "x.max"),
            cause="The largest number is not the number of largest size: a large negative one was passed over.",
            cure="Take the largest of `np.abs(x)`.", see="right where the largest size is above 0"),
        Mistake("one scale for all blocks", edit("np.abs(x).max(axis=1, keepdims=True)", "np.full((len(x), 1), np.abs(x).max())"),
            cause="All blocks were given the scale of the largest one.",
            cure="Take the largest size of each block, along axis 1.", see="right for one block"),
        Mistake("cut off", edit("np.rint(x /", "np.trunc(x /"),
            cause="The digits after the point were cut off.",
            cure="Round, with `np.rint`.", see="integers that are too close to 0"),
        Mistake("rounded down", edit("np.rint(x /", "np.floor(x /"),
            cause="The quotients were rounded down.",
            cure="Round to the nearest, with `np.rint`.", see="some integers too small by 1"),
        Mistake("s without the scale", edit(_S, "q.sum(axis=1, keepdims=True).astype(np.float32)"),
            cause="s is the sum of the integers alone.",
            cure="Multiply the sum by the scale.", see="d and q right, s right where the scale is 1"),
        Mistake("s from the numbers themselves", edit(_S, "x.sum(axis=1, keepdims=True)"),
            cause="The numbers were added up before they were rounded. s must be what the integers stand for.",
            cure="Add up the q, times the scale.", see="d and q right, s nearly"),
        Mistake("s from the stored scale", edit(_S, "scale.astype(np.float16).astype(np.float32) * q.sum(axis=1, keepdims=True)"),
            cause="The scale was rounded to float16 before it was multiplied with the sum.",
            cure="Use the scale as it was before it was stored.", see="right where float16 holds the scale"),
        Mistake("q from the stored scale", edit(_SCALE, f"({_SCALE}).astype(np.float16).astype(np.float32)"),
            cause="The scale became float16 first, and integers and sum were made with that.",
            cure="Round scale and sum when you store them.", see="right where float16 holds the scale"),
        Mistake("the sum in int8", edit("q.sum(axis=1, keepdims=True)", "q.sum(axis=1, keepdims=True, dtype=np.int8)"),
            cause="The integers were added up in int8, where sums wrap around beyond 127.",
            cure="Leave out the dtype, or take a larger one.", see="d and q right, s right where the sum is small"),
        Mistake("sizes added up", edit("scale * q.sum", "scale * np.abs(q).sum"),
            cause="The sizes were added up, without their signs.",
            cure="Add up the integers as they are.", see="s right where no number is below 0"),
        Mistake("the mean", edit(_S, f"{_S} / 32"),
            cause="s is the mean of the block.",
            cure="Keep the sum.", see="d and q right, s too small by the same factor"),
        Mistake("s first", edit("[scale, s]", "[s, scale]"),
            cause="s was stored before d.",
            cure="Store d first.", see="the first two numbers of each block exchanged"),
        Mistake("s at the end", edit(_OUT, "np.concatenate([stored[:, :1].copy().view(np.uint8), q.view(np.uint8), stored[:, 1:].copy().view(np.uint8)], axis=1)"),
            cause="s was stored after the integers.",
            cure="The order is d, s, q.", see="d right, the integers two bytes too early"),
        Mistake("s left out", edit(_OUT, "np.concatenate([stored[:, :1].copy().view(np.uint8), q.view(np.uint8)], axis=1)"),
            cause="There is no s: this is Q8_0.",
            cure="Store s after d.", see="34 bytes for each block"),
        Mistake("8 bits plus 128", edit("q.view(np.uint8)", "(q.astype(np.int16) + 128).astype(np.uint8)"),
            cause="The integers were stored plus 128.",
            cure="Store them as two's complement: view them as uint8.", see="`80` where 0 is expected"),
        Mistake("int8", edit(_OUT, f"{_OUT}.view(np.int8)"),
            cause="The result is int8.",
            cure="Return uint8.", see="the dtype int8"),
    ),
)
