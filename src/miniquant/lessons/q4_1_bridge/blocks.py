"""The exercises of lab 13 on blocks: Q4_1 from integers, scale and zero point, and back."""

from __future__ import annotations

import struct
from functools import partial

import numpy as np

from ...formats.gguf import GGMLType, decode
from ...formats.gguf.grids import encode_grid
from ...lab.compare import Fields
from ...lab.spec import Case, Exercise, Mistake
from ...quantization.grids import Grid
from ..shared.by_hand import nearest32
from .zero import F32, TOP

# ---- zero_point_to_q4_1 ----------------------------------------------------------------------------------------------


def zero_point_to_q4_1(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> bytes:
    """The reference: q (n, 32) uint8, scale (n, 1) float32, zero point (n, 1) int16 -> n blocks of 20 bytes."""
    minimum = (-scale * zero_point).astype(np.float16).astype(F32)
    raw = b""
    for row in range(len(q)):
        part = slice(row, row + 1)
        raw += encode_grid(q[part], Grid(scale[part], minimum[part], 0, TOP), "Q4_1").tobytes()
    return raw


def q4_1_oracle(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> bytes:
    """One block at a time, one byte at a time."""
    out = b""
    for levels, [s], [z] in zip(q.tolist(), scale.tolist(), zero_point.tolist()):
        out += struct.pack("<ee", s, -s * z) + bytes(levels[j] + 16 * levels[j + 16] for j in range(16))
    return out


def q4_1_fields(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> Fields:
    """d, m and the 16 bytes of each block."""
    fields = []
    for i in range(len(q)):
        at = 20 * i
        names = (f"d of block {i}", f"m of block {i}", f"the values of block {i}")
        fields += [(name, at + a, at + b) for name, (a, b) in zip(names, ((0, 2), (2, 4), (4, 20)))]
    return fields


RAMP = np.arange(32, dtype=np.uint8) % 16


def _q4_1_cases(random: np.random.Generator) -> list[Case]:
    def case(q, scales, zeros):
        return np.array(q, np.uint8), F32(np.float16(scales))[:, None], np.int16(zeros)[:, None]

    drawn = random.integers(0, 16, (6, 32)), np.abs(random.normal(0, 0.02, 6)), random.integers(0, 16, 6)
    return [
        case([RAMP], [1], [5]),
        case([np.repeat(np.arange(16), 2)], [0.5], [8]),
        case([RAMP, RAMP[::-1]], [0.5, 2], [3, 12]),
        case([RAMP], [0.1], [7]),
        case([RAMP], [0.25], [0]),
        case(*drawn),
    ]


def _halves(q: np.ndarray) -> np.ndarray:
    return q[:, :16] | q[:, 16:] << 4


def _exchanged(q: np.ndarray) -> np.ndarray:
    return q[:, 16:] | q[:, :16] << 4


def _neighbours(q: np.ndarray) -> np.ndarray:
    return q[:, 0::2] | q[:, 1::2] << 4


def _by_product(s: np.ndarray, z: np.ndarray) -> np.ndarray:
    return -s * z


def _parts(q, s, z, minimum=_by_product, pack=_halves, form="<f2", swapped=False, signed=False):
    levels = ((q.astype(np.int16) - z) & 15).astype(np.uint8) if signed else q
    d, m = s.astype(form), minimum(s, z).astype(form)
    pair = (m, d) if swapped else (d, m)
    return [np.ascontiguousarray(part).view(np.uint8).reshape(len(q), -1) for part in (*pair, pack(levels))]


def _blocks(q, s, z, **how) -> bytes:
    return np.concatenate(_parts(q, s, z, **how), axis=1).tobytes()


def _apart(q, s, z) -> bytes:
    return b"".join(part.tobytes() for part in _parts(q, s, z))


ZERO_POINT_TO_Q4_1 = Exercise(
    name="zero_point_to_q4_1",
    lab="13",
    goal="Write blocks of Q4_1 from what a quantizer keeps: integers, a scale and a zero point for each 32 weights.",
    minutes=8,
    difficulty="core",
    reference=zero_point_to_q4_1,
    oracle=q4_1_oracle,
    cases=_q4_1_cases,
    fields=q4_1_fields,
    hints=(
        "Twenty bytes a block: d is the scale, m is -scale × zero_point, both float16; then byte j holds integer j in "
        "its low nibble and integer j + 16 in its high one. The integers cross as they are.",
        'Make three arrays of uint8 with a row for each block: `scale.astype("<f2").view(np.uint8)`, m likewise, and '
        "`q[:, :16] | q[:, 16:] << 4`; join them with `np.concatenate(…, axis=1)` and take `.tobytes()`.",
    ),
    why="nothing was rounded but the minimum: whatever chose the integers, they cross the bridge untouched.",
    mistakes=(
        Mistake(
            "the minimum unsigned",
            partial(_blocks, minimum=lambda s, z: s * z),
            "m was stored as scale × zero_point, and a reader adds m.",
            "Store -scale × zero_point.",
            "the sign bit missing in byte 3",
        ),
        Mistake(
            "the zero point stored",
            partial(_blocks, minimum=lambda s, z: z),
            "m is a weight, the smallest that the block can hold, and not an integer.",
            "Store -scale × zero_point.",
            "a whole number in m",
        ),
        Mistake(
            "the scale left out of the minimum",
            partial(_blocks, minimum=lambda s, z: -z),
            "-zero_point counts steps, and m is a weight.",
            "Multiply it by the scale.",
            "right for a scale of 1, a whole number in m for any other",
        ),
        Mistake(
            "the scale applied twice",
            partial(_blocks, minimum=lambda s, z: -s * s * z),
            "m has the scale in it two times.",
            "Store -scale × zero_point.",
            "right for a scale of 1, a wrong m for any other",
        ),
        Mistake(
            "d and m exchanged",
            partial(_blocks, swapped=True),
            "m stands in front, and d belongs there.",
            "Write d, then m.",
            "the first four bytes in the order 2 3 0 1",
        ),
        Mistake(
            "neighbours in one byte",
            partial(_blocks, pack=_neighbours),
            "A byte holds two neighbours, as in GGUF-lite; in Q4_1 byte j holds integer j and integer j + 16.",
            "Pack the first half with the second: `q[:, :16] | q[:, 16:] << 4`.",
            "d and m right, the values in another order",
        ),
        Mistake(
            "halves exchanged",
            partial(_blocks, pack=_exchanged),
            "The first half of the block went to the high nibbles.",
            "Shift the second half, `q[:, 16:] << 4`.",
            "d and m right, every byte of the values with its two digits exchanged",
        ),
        Mistake(
            "the zero point taken off the integers",
            partial(_blocks, signed=True),
            "The minimum undoes the zero point already; the integers are stored from 0 to 15.",
            "Pack q as it is.",
            "d and m right, the values shifted around",
        ),
        Mistake(
            "scales first",
            _apart,
            "All d stand in front, then all m, then all values; in GGUF each block has its own.",
            "Join the three parts row by row, with `axis=1`.",
            "right for one block, wrong from the third byte on for more",
        ),
        Mistake(
            "float32 scales",
            partial(_blocks, form="<f4"),
            "d and m take four bytes each, and a block gives them two.",
            'Convert with `.astype("<f2")`.',
            "24 bytes for a block where 20 are expected",
        ),
        Mistake(
            "big-endian",
            partial(_blocks, form=">f2"),
            "The bytes of d and m lie the other way round.",
            'Use `"<f2"`.',
            "`3c 00` where `00 3c` is expected",
        ),
    ),
)

# ---- decode_q4_1 -----------------------------------------------------------------------------------------------------


def decode_q4_1(raw: bytes) -> np.ndarray:
    """The reference: n blocks of 20 bytes -> (n, 32) float32."""
    return decode(np.frombuffer(raw, np.uint8).reshape(-1, 20), GGMLType.Q4_1)


def decode_oracle(raw: bytes) -> np.ndarray:
    """One block at a time, one weight at a time."""
    found = []
    for start in range(0, len(raw), 20):
        d, m = struct.unpack_from("<ee", raw, start)
        packed = raw[start + 4 : start + 20]
        levels = [byte % 16 for byte in packed] + [byte // 16 for byte in packed]
        found.append([nearest32(nearest32(d * q) + m) for q in levels])
    return np.array(found, F32)


def _decode_cases(random: np.random.Generator) -> list[Case]:
    def block(d: float, m: float, values: bytes) -> bytes:
        return struct.pack("<ee", d, m) + values

    ramp = bytes(j + 16 * (15 - j) for j in range(16))
    drawn = b"".join(
        block(abs(d), -8 * abs(d), random.integers(0, 256, 16, np.uint8).tobytes()) for d in random.normal(0, 1, 5)
    )
    made = [
        block(1, -5, ramp),
        block(0.5, -2.5, ramp),
        block(0.5, 1, bytes(range(16))),
        block(1, -8, ramp) + block(2, -3, bytes(range(0, 256, 16))),
        block(0, 0.25, ramp),
        drawn,
    ]
    return [(raw,) for raw in made]


def _decode(raw, swapped=False, order="halves", sign=1, together=False, shift=0, size=None, power=1, kind=F32):
    rows = np.frombuffer(raw, np.uint8).reshape(-1, 20)
    d, m = (np.ascontiguousarray(rows[:, at : at + 2]).view("<f2").astype(F32) for at in (0, 2))
    d, m = (m, d) if swapped else (d, m)
    m = sign * (size(m) if size else m)
    low, high = (rows[:, 4:] & 15).astype(F32), (rows[:, 4:] >> 4).astype(F32)
    pairs = (high, low) if order == "exchanged" else (low, high)
    q = np.stack(pairs, axis=2).reshape(len(rows), 32) if order == "neighbours" else np.concatenate(pairs, axis=1)
    q = q - F32(shift)
    with np.errstate(all="ignore"):
        return (d * (q + m) if together else d**power * q + m).astype(kind)


DECODE_Q4_1 = Exercise(
    name="decode_q4_1",
    lab="13",
    goal="Turn blocks of Q4_1 back into weights: d × integer + m, the low nibbles first, then the high ones.",
    minutes=5,
    difficulty="core",
    reference=decode_q4_1,
    oracle=decode_oracle,
    cases=_decode_cases,
    hints=(
        "`np.frombuffer(raw, np.uint8).reshape(-1, 20)` has a row for each block: columns 0 and 1 are d, 2 and 3 are "
        "m, the other 16 hold the integers.",
        '`np.ascontiguousarray(rows[:, :2]).view("<f2").astype(np.float32)` is d, of shape (n, 1). The integers are '
        "`np.concatenate([packed & 15, packed >> 4], axis=1)`; nothing is subtracted from them.",
    ),
    why="the other end of the bridge: from here on nobody knows that there ever was a zero point.",
    mistakes=(
        Mistake(
            "m subtracted",
            partial(_decode, sign=-1),
            "m is the smallest weight itself, mostly negative already.",
            "Add m.",
            "every weight too large by -2 × m",
        ),
        Mistake(
            "m left out",
            partial(_decode, sign=0),
            "That is d × integer alone, which starts at zero.",
            "Add m.",
            "no negative weights",
        ),
        Mistake(
            "m read unsigned",
            partial(_decode, size=np.abs),
            "m lost its sign.",
            "Read both as float16, which has a sign of its own.",
            "right where m is positive, too large elsewhere",
        ),
        Mistake(
            "d and m exchanged",
            partial(_decode, swapped=True),
            "d stands in the first two bytes, m in the next two.",
            "Exchange them.",
            "weights that fall where they should rise",
        ),
        Mistake(
            "m multiplied by d",
            partial(_decode, together=True),
            "m is a weight and not a number of steps.",
            "Multiply first, then add.",
            "right for d = 1, wrong for any other",
        ),
        Mistake(
            "8 subtracted",
            partial(_decode, shift=8),
            "That is Q4_0, which has no m.",
            "Take the integers as they are, 0 to 15.",
            "every weight too small by 8 × d",
        ),
        Mistake(
            "the scale applied twice",
            partial(_decode, power=2),
            "The integers were multiplied by d two times.",
            "Multiply once.",
            "right for d = 1, wrong for any other",
        ),
        Mistake(
            "neighbours in one byte",
            partial(_decode, order="neighbours"),
            "The two nibbles of a byte were taken for neighbours, as in GGUF-lite.",
            "All 16 low nibbles come first, then all 16 high ones.",
            "the right numbers in the wrong places",
        ),
        Mistake(
            "halves exchanged",
            partial(_decode, order="exchanged"),
            "The high nibbles came first.",
            "Put the low nibbles in front.",
            "the two halves of each block exchanged",
        ),
        Mistake(
            "computed in float16",
            partial(_decode, kind=np.float16),
            "d and m were left float16, and so is everything that comes from them.",
            "Convert both with `.astype(np.float32)`.",
            "the right numbers as float16",
        ),
    ),
)
