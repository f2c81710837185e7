"""The fastest exact decoder of Q8_0: an open exercise."""

import struct
import time
from functools import partial

import numpy as np

from ...lab import Contest, Exercise, Mistake, body, edit, omit
from ..shared.observed import anew

ROUNDS = 9  # of which the fastest counts
KEPT, RESULTS = {}, {}  # for two mistakes: arrays that outlive a call


def decode_fast(raw):
    """Weights from blocks of Q8_0, exactly, and as fast as you can.

    raw: (n, 34) uint8, each row a block: a little-endian float16 d, then 32
        signed bytes q
    ->   (n, 32) float32: d × q

    d is finite, and every product is exact in float32; 0.0 and -0.0 are
    equal. raw is not changed. Each call computes its result anew and
    returns a new array.
    """
    d = raw[:, :2].copy().view("<f2").astype(np.float32)  # (n, 1)
    out = raw[:, 2:].view(np.int8).astype(np.float32)  # (n, 32)
    out *= d
    return out


def oracle(raw):
    """Block by block, with struct."""
    blocks = [struct.unpack("<e32b", block.tobytes()) for block in raw]
    return np.array([[d * number for number in q] for d, *q in blocks], np.float32)


def block(d, *q):
    """A block whose first values are given; the others are 0."""
    return np.frombuffer(struct.pack("<e32b", d, *q, *[0] * (32 - len(q))), np.uint8)


def cases(random):
    """A scale of 1, one that is negative, several blocks, first and last alike, a tiny scale, zeros, random blocks, the largest scales."""
    scales = random.normal(0, 0.01, (1100, 1)).astype("<f2").view(np.uint8)
    many = np.concatenate([scales, random.integers(0, 256, (1100, 32), np.uint8)], axis=1)
    other = np.concatenate([scales, many[:, :1:-1]], axis=1)  # the same scales, other values
    return [
        (np.array([block(1, 1, 2, -3, 127, -128)]),),
        (np.array([block(-0.5, 1, -1, 7)]),),
        (np.array([block(2, 1, -1), block(0.25, 4, 5), block(-1, 3, 3)]),),
        (np.array([block(2, 1, -1), block(0.25, 4, 5), block(2, 3, 3)]),),
        (np.array([block(2**-24, 127, -1)]),),
        (np.array([block(0)]),),
        (np.array([block(3.0009765625, *range(-16, 16))]),),  # 11 bits of the scale are used
        (many,),
        (other,),
        (np.array([block(65504, 3, -2), block(0, 5, 6), block(2**-15, 3), block(-65504, 1)]),),
    ]


def times_a_copy(decode):
    """The time for 100,000 blocks, as a multiple of the time of copying their floats."""
    random = np.random.default_rng(7)
    raw = random.integers(0, 256, (100_000, 34), np.uint8)
    raw[:, 1] &= 0x3F  # no infinite scale
    floats = np.ones((100_000, 32), np.float32)
    target = np.zeros_like(floats)

    def fresh():
        raw[:, 2] += 1  # so that what was kept of an earlier call is of no use
        return raw

    def seconds(work):
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    pairs = [(seconds(partial(decode, fresh())), seconds(lambda: np.copyto(target, floats))) for _ in range(ROUNDS)]
    return min(mine for mine, _ in pairs) / min(copy for _, copy in pairs)


def rivals():
    """The official package's decoder and this library's."""
    from gguf.quants import dequantize

    from ...formats.gguf import GGMLType, decode

    return {
        "the official package": times_a_copy(lambda raw: dequantize(raw, 8)),
        "miniquant": times_a_copy(lambda raw: decode(raw, GGMLType.Q8_0)),
        "with float64 in between": times_a_copy(_in_float64),
    }


def _in_float64(raw):
    return (raw[:, :2].copy().view("<f2").astype(float) * raw[:, 2:].view(np.int8)).astype(np.float32)


EXERCISE = Exercise(
    goal="Decode blocks of Q8_0 exactly, in as little time as you can.",
    reference=decode_fast, oracle=oracle, cases=cases, minutes=6, difficulty="core",
    observe=anew,
    contest=Contest(
        what="time for 100,000 blocks", unit="times a copy of the floats", measure=times_a_copy, rivals=rivals, digits=2, steady=False),
    hints=(
        "A loop in Python over blocks takes much longer than the products. Do each step once, for all blocks together.",
        "`view` reads the same bytes as another type, without a copy. An operation such as `*=` writes into an array that is there already.",
    ),
    why="a decoder may be as fast as memory allows, and it is right only if every bit is right.",
    mistakes=(
        Mistake("values read as unsigned bytes", edit(".view(np.int8)", ""),
            cause="Values above 127 come out where negative ones are right.",
            cure="Read the 32 bytes as int8.", see="253 where -3 is expected"),
        Mistake("the scale read big-endian", edit('"<f2"', '">f2"'),
            cause="The scale is that of its two bytes in the other order.",
            cure='Use `"<f2"`.', see="a scale far from 1 in the first case"),
        Mistake("one scale for all blocks", edit("out *= d", "out *= d[0]"),
            cause="All blocks are multiplied by the scale of the first one.",
            cure="Keep d as a column, one number for each row.", see="the first block right and the others not"),
        Mistake("products rounded to float16", edit(
                "out *= d", "out = (out.astype(np.float16) * d.astype(np.float16)).astype(np.float32)"),
            cause="The results are products rounded to float16, which keeps 11 bits; d × q needs up to 18.",
            cure="Multiply in float32.", see="small differences where d has many bits"),
        Mistake("the scale left out", omit("out *= d"),
            cause="The results are the integers q alone.",
            cure="Multiply by d.", see="whole numbers everywhere"),
        Mistake("the scale read from the end of the block", edit("raw[:, :2]", "raw[:, 32:]").edit("raw[:, 2:]", "raw[:, :32]"),
            cause="The results are those of blocks with the scale after the values.",
            cure="Bytes 0 and 1 are the scale.", see="0 for blocks that end in zeros"),
        Mistake("one buffer for all calls", body("""
                out = KEPT.setdefault(len(raw), np.empty((len(raw), 32), np.float32))
                out[:] = raw[:, 2:].view(np.int8)
                out *= raw[:, :2].copy().view("<f2").astype(np.float32)
                return out
            """),
            cause="The array of an earlier call is used again, so this call changes what that one returned.",
            cure="Make a new array in each call.", see="the memory of an earlier result"),
        Mistake("results kept", body("""
                key = raw.tobytes()
                if key not in RESULTS:
                    RESULTS[key] = raw[:, :2].copy().view("<f2").astype(np.float32) * raw[:, 2:].view(np.int8)
                return RESULTS[key].copy()
            """),
            cause="The result of each call is kept, and each call must compute its own.",
            cure="Keep nothing from one call to the next.", see="a result that is found again after the call"),
        Mistake("one long row", edit("return out", "return out.ravel()"),
            cause="The result has one axis; (n, 32) is expected.",
            cure="Return one row for each block.", see="the shape (32,) where (1, 32) is expected"),
    ),
)
