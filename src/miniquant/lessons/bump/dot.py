"""The exercise of lab 16 on arithmetic: a dot product with blocks that are never written down as floats."""

from __future__ import annotations

import struct

import numpy as np

from ...formats.gguf.codecs import decode
from ...formats.gguf.types import GGMLType
from ...lab.spec import Case, Exercise, Mistake

F32 = np.float32


def q8_dot(blocks: np.ndarray, x: np.ndarray) -> float:
    """The reference: one row as Q8_0 blocks (n, 34) uint8, x (32 n,) float32 -> their dot product."""
    return float(decode(blocks.reshape(-1), GGMLType.Q8_0).astype(float) @ x.astype(float))


def dot_oracle(blocks: np.ndarray, x: np.ndarray) -> float:
    """One number after another, with struct."""
    total, numbers = 0.0, x.tolist()
    for index, block in enumerate(blocks):
        d, *q = struct.unpack("<e32b", block.tobytes())
        for place, value in enumerate(q):
            total += d * value * numbers[32 * index + place]
    return total


def _block(d: float, q: list[int]) -> list[int]:
    return list(struct.pack("<e32b", d, *q, *[0] * (32 - len(q))))


def _dot_cases(random: np.random.Generator) -> list[Case]:
    one, ramp = np.ones(32, F32), np.arange(64, dtype=F32) / 8
    made = [
        ([_block(0.5, [4, 2])], one),
        ([_block(0.5, [-1, -128, 127])], np.arange(32, dtype=F32)),
        ([_block(1.0, [1, 2, 3]), _block(0.25, [100, -60])], ramp),
        ([_block(-2.0, [7] * 32), _block(0.5, [1] * 32)], ramp),
        ([_block(0.0, [9])], one),
    ]
    cases: list[Case] = [(np.array(blocks, np.uint8), x) for blocks, x in made]
    for n in (3, 8):
        blocks = [_block(float(d), q.tolist()) for d, q in zip(random.normal(0, 0.02, n), _drawn(random, n))]
        cases.append((np.array(blocks, np.uint8), random.normal(size=32 * n).astype(F32)))
    return cases


def _drawn(random: np.random.Generator, n: int) -> np.ndarray:
    return random.integers(-127, 128, (n, 32))


def _parts(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scales (n,) and the values (n, 32)."""
    d = np.ascontiguousarray(blocks[:, :2]).view("<f2")[:, 0].astype(float)
    return d, np.ascontiguousarray(blocks[:, 2:]).view(np.int8).astype(float)


def _unsigned(blocks: np.ndarray, x: np.ndarray) -> float:
    return float(_parts(blocks)[0] @ (blocks[:, 2:].astype(float) * x.reshape(-1, 32)).sum(axis=1))


def _first_scale(blocks: np.ndarray, x: np.ndarray) -> float:
    d, q = _parts(blocks)
    return float(d[0] * (q.reshape(-1) @ x.astype(float)))


def _no_scale(blocks: np.ndarray, x: np.ndarray) -> float:
    return float(_parts(blocks)[1].reshape(-1) @ x.astype(float))


def _same_x(blocks: np.ndarray, x: np.ndarray) -> float:
    d, q = _parts(blocks)
    return float(d @ (q @ x[:32].astype(float)))


def _scale_last(blocks: np.ndarray, x: np.ndarray) -> float:
    turned = np.concatenate([blocks[:, 32:], blocks[:, :32]], axis=1)
    return q8_dot(np.nan_to_num(turned), x)


def _big_endian(blocks: np.ndarray, x: np.ndarray) -> float:
    return q8_dot(np.concatenate([blocks[:, 1::-1], blocks[:, 2:]], axis=1), x)


def _last_block_only(blocks: np.ndarray, x: np.ndarray) -> float:
    return q8_dot(blocks[-1:], x[-32:])


def _divided(blocks: np.ndarray, x: np.ndarray) -> float:
    d, q = _parts(blocks)
    dots = (q * x.reshape(-1, 32)).sum(axis=1)
    return float(sum(dot / scale if scale else 0.0 for dot, scale in zip(dots, d)))


def _one_in_an_array(blocks: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.array([q8_dot(blocks, x)], F32)


def _int8_sums(blocks: np.ndarray, x: np.ndarray) -> float:
    """Products kept in int8, which wrap around and lose what stands behind the point."""
    d, q = _parts(blocks)
    products = np.trunc(q * x.reshape(-1, 32)).astype(np.int64).astype(np.int8)
    return float(d @ products.sum(axis=1).astype(float))


Q8_DOT = Exercise(
    name="q8_dot",
    lab="16",
    goal="Multiply a row of Q8_0 blocks by a vector, block by block, without making a row of floats first.",
    minutes=6,
    difficulty="core",
    reference=q8_dot,
    oracle=dot_oracle,
    cases=_dot_cases,
    tolerance=1e-5,
    hints=(
        "In one block all weights share d, so d can wait: sum q · x over the 32, multiply by d once, add to the total.",
        '`d = block[:2].view("<f2")[0]` and `q = block[2:].view(np.int8)`; make float32 of both before you multiply.',
    ),
    why="this loop is the whole trick: a block is floats for as long as it takes to add it up.",
    mistakes=(
        Mistake(
            "unsigned values",
            _unsigned,
            "The bytes were read as 0 to 255, and half of them are negative.",
            "View them as int8.",
            "right where all values are positive, much too large elsewhere",
        ),
        Mistake(
            "one scale for the row",
            _first_scale,
            "The first block's d was taken for all blocks.",
            "Multiply each block's sum by its own d.",
            "right for one block, wrong for two",
        ),
        Mistake(
            "no scale",
            _no_scale,
            "The integers were multiplied by x, and d was never applied.",
            "Multiply each block's sum by its d.",
            "12 times too large, or 2 times",
        ),
        Mistake(
            "the same part of x for every block",
            _same_x,
            "Every block met the first 32 numbers of x.",
            "Block i meets `x[32 * i : 32 * i + 32]`.",
            "right for one block, wrong for two",
        ),
        Mistake(
            "the scale behind the values",
            _scale_last,
            "d was read from the last two bytes of each block, and it stands in the first two.",
            "Take d from `block[:2]`.",
            "0, or nonsense, even for one block",
        ),
        Mistake(
            "a big-endian scale",
            _big_endian,
            "The two bytes of d were read the other way round.",
            "Read d as `<f2`.",
            "a number close to 0",
        ),
        Mistake(
            "only the last block",
            _last_block_only,
            "The total was overwritten by each block.",
            "Add to it: `total += ...`.",
            "right for one block, too little for two",
        ),
        Mistake(
            "divided by the scale",
            _divided,
            "Quantizing divides by d; coming back multiplies.",
            "Multiply by d.",
            "four times too large where d is 0.5",
        ),
        Mistake(
            "one number in an array",
            _one_in_an_array,
            '`block[:2].view("<f2")` is an array of one number, and so is all that was multiplied by it.',
            "Take the number out of it with `[0]`.",
            "`[0.5]` of shape (1,) where a number is expected",
        ),
        Mistake(
            "multiplied in int8",
            _int8_sums,
            "The products stayed int8, where 127 is the largest number.",
            "Convert q to float32 before you multiply.",
            "right for small numbers",
        ),
    ),
)
