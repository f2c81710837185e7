"""The exercises of lab 11 on four bits: blocks of Q4_0, there and back."""

from __future__ import annotations

import struct
from functools import partial

import numpy as np

from ...formats.gguf import GGMLType, decode, encode
from ...lab.compare import Fields
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import nearest32
from .q8 import F32, block_fields, filled, inverse

# ---- encode_q4_0 -----------------------------------------------------------------------------------------------------


def encode_q4_0(w: np.ndarray) -> bytes:
    """The reference: w (n, 32) float32 -> n blocks of 18 bytes."""
    return encode(w, GGMLType.Q4_0).tobytes()


def q4_0_oracle(w: np.ndarray) -> bytes:
    """One block at a time, one byte at a time."""
    out = b""
    for block in w.tolist():
        extreme = 0.0
        for x in block:
            if abs(x) > abs(extreme):
                extreme = x
        d = nearest32(extreme / -8)
        factor = nearest32(1 / d) if d else 0.0
        levels = [min(15, int(nearest32(nearest32(x * factor) + 8.5))) for x in block]
        out += struct.pack("<e", d) + bytes(levels[j] + 16 * levels[j + 16] for j in range(16))
    return out


def q4_0_fields(w: np.ndarray) -> Fields:
    """The scale and the 16 bytes of each block."""
    return block_fields(w, 16)


def _q4_0_cases(random: np.random.Generator) -> list[Case]:
    ramp = np.arange(32) // 2 - 8.0  # -8, -8, -7, … 7, 7: d is 1
    made = [
        [ramp],
        [-ramp],
        [filled(-8, 8, 7.5, 0.5, -0.5, 1.5, 2.5)],
        [filled()],
        [ramp, 2 * ramp[::-1], np.roll(ramp, 5)],
        [filled(0.9, 0.84375), filled(1.3, 1.21875)],  # x * (1 / d) and x / d fall on two sides of a half
    ]
    return [*((np.array(w, F32),) for w in made), (random.normal(0, 0.02, (24, 32)).astype(F32),)]


def _truncated(x: np.ndarray) -> np.ndarray:
    return (x + F32(8.5)).astype(np.uint8)


def _halves(q: np.ndarray) -> np.ndarray:
    return q[:, :16] | q[:, 16:] << 4


def _swapped_halves(q: np.ndarray) -> np.ndarray:
    return q[:, 16:] | q[:, :16] << 4


def _neighbours(q: np.ndarray) -> np.ndarray:
    return q[:, 0::2] | q[:, 1::2] << 4


def _signed(w: np.ndarray) -> np.ndarray:
    return np.take_along_axis(w, np.abs(w).argmax(axis=1, keepdims=True), axis=1)  # (n, 1)


def _absolute(w: np.ndarray) -> np.ndarray:
    return np.abs(w).max(axis=1, keepdims=True)


def _largest(w: np.ndarray) -> np.ndarray:
    return w.max(axis=1, keepdims=True)


def _q4_0_parts(
    w, extreme=_signed, over=-8, level=_truncated, top=15, pack=_halves, late=True, divide=False
) -> tuple[np.ndarray, np.ndarray]:
    d = extreme(w) / F32(over)
    step = d if late else d.astype(np.float16).astype(F32)
    x = w / np.where(step == 0, F32(np.inf), step) if divide else w * inverse(step)
    return d.astype("<f2"), pack(np.minimum(level(x), top).astype(np.uint8))


def _q4_0(w: np.ndarray, **how) -> bytes:
    return b"".join(d.tobytes() + packed.tobytes() for d, packed in zip(*_q4_0_parts(w, **how)))


def _scales_first(w: np.ndarray) -> bytes:
    d, packed = _q4_0_parts(w)
    return d.tobytes() + packed.tobytes()


def _of_lite(w: np.ndarray) -> bytes:
    d = (np.abs(w).max(axis=1, keepdims=True) / F32(7)).astype("<f2")
    step = d.astype(F32)
    q = np.rint(w / np.where(step == 0, F32(np.inf), step)).clip(-7, 7).astype(np.int8).view(np.uint8) & 15
    return b"".join(a.tobytes() + b.tobytes() for a, b in zip(d, _neighbours(q)))


ENCODE_Q4_0 = Exercise(
    name="encode_q4_0",
    lab="11",
    goal="Encode blocks of 32 weights as Q4_0: a float16 scale, then 16 bytes with one weight of each half.",
    minutes=9,
    difficulty="core",
    reference=encode_q4_0,
    oracle=q4_0_oracle,
    cases=_q4_0_cases,
    fields=q4_0_fields,
    hints=(
        "The weight of largest size, with its sign: `at = np.abs(w).argmax(axis=1, keepdims=True)` and "
        "`np.take_along_axis(w, at, axis=1)`. Divided by -8 it gives d, and it lands on level 0 itself.",
        "`q = np.minimum((w * factor + np.float32(8.5)).astype(np.uint8), 15)` with `factor` 1 / d, or 0 for a block "
        "of zeros; then `q[:, :16] | q[:, 16:] << 4` behind `d` as float16.",
    ),
    why="18 bytes for 32 weights, the same 18 that ggml writes: 4.5 bits a weight.",
    mistakes=(
        Mistake(
            "neighbours in one byte",
            partial(_q4_0, pack=_neighbours),
            "A byte holds two neighbours, as in GGUF-lite; in Q4_0 byte j holds weight j and weight j + 16.",
            "Pack the first half with the second: `q[:, :16] | q[:, 16:] << 4`.",
            "scales right, values in the wrong order",
        ),
        Mistake(
            "halves exchanged",
            partial(_q4_0, pack=_swapped_halves),
            "The first half of the block went to the high nibbles.",
            "Shift the second half, `q[:, 16:] << 4`.",
            "scales right, and every byte of the values with its two digits exchanged",
        ),
        Mistake(
            "the sign of the extreme lost",
            partial(_q4_0, extreme=_absolute),
            "d was made from absmax, so it is always negative, and a block whose extreme is negative needs a positive "
            "one.",
            "Take the weight of largest size with its sign.",
            "right where the extreme is positive, wrong where it is negative",
        ),
        Mistake(
            "the largest instead of the extreme",
            partial(_q4_0, extreme=_largest),
            "`w.max()` is the largest weight, and the one farthest from zero may be negative.",
            "Look for it in `np.abs(w)`, and take its signed value.",
            "right where the extreme is positive, clipped values where it is negative",
        ),
        Mistake(
            "divided by 8 instead of -8",
            partial(_q4_0, over=8),
            "The extreme must land on -8, the end of the range that has one level more.",
            "Divide it by -8.",
            "the sign of every scale",
        ),
        Mistake(
            "four bits of GGUF-lite",
            _of_lite,
            "That is GGUF-lite's group: absmax / 7, two's complement, neighbours in one byte.",
            "Follow the three steps above: the extreme over -8, plus 8.5 and cut off, halves.",
            "every scale and every value another",
        ),
        Mistake(
            "no limit at 15",
            partial(_q4_0, top=255),
            "A weight that is as large as the extreme, with the other sign, gets level 16, which takes five bits and "
            "spills into its neighbour.",
            "Take `np.minimum(q, 15)` before you pack.",
            "a nibble 0 where f is expected",
        ),
        Mistake(
            "rounded half to even",
            partial(_q4_0, level=lambda x: np.rint(x) + 8),
            "`np.rint` takes a half to the even side, and cutting off after adding 8.5 always takes it up.",
            "Add 8.5 and convert to uint8.",
            "a value one off where the weight is exactly half of d",
        ),
        Mistake(
            "cut off without the half",
            partial(_q4_0, level=lambda x: (x + F32(8)).astype(np.uint8)),
            "Adding 8 and converting cuts off; the further half makes it round.",
            "Add 8.5.",
            "about half of the values one too small",
        ),
        Mistake(
            "two's complement",
            partial(_q4_0, level=lambda x: np.floor(x + F32(0.5)).clip(-8, 7).astype(np.int8).view(np.uint8) & 15),
            "The levels were kept signed, and Q4_0 stores each plus 8.",
            "Add 8.5 before you convert, so that 0 becomes 8.",
            "`00` where a block of zeros has `88`",
        ),
        Mistake(
            "the scale rounded first",
            partial(_q4_0, late=False),
            "You divided by the scale as float16 will hold it; that is GGUF-lite's rule, and ggml does not follow it.",
            "Compute the values with the float32 scale, and round it only when you store it.",
            "scales right, and a value here and there off by one",
        ),
        Mistake(
            "divided by d",
            partial(_q4_0, divide=True),
            "`w / d` rounds once, `w * (1 / d)` twice, so a weight near a half may land on the other side.",
            "Compute `1 / d` in float32 and multiply by it.",
            "nearly everything right, and a single value off by one",
        ),
        Mistake(
            "scales first",
            _scales_first,
            "All scales stand in front, as in GGUF-lite, and here each block carries its own.",
            "Join each scale with its 16 bytes, block by block.",
            "right for one block, wrong from the third byte on for more",
        ),
    ),
)

# ---- decode_q4_0 -----------------------------------------------------------------------------------------------------


def decode_q4_0(raw: bytes) -> np.ndarray:
    """The reference: n blocks of 18 bytes -> (n, 32) float32."""
    return decode(np.frombuffer(raw, np.uint8).reshape(-1, 18), GGMLType.Q4_0)


def decode_oracle(raw: bytes) -> np.ndarray:
    """One block at a time, one weight at a time."""
    found = []
    for start in range(0, len(raw), 18):
        (d,) = struct.unpack_from("<e", raw, start)
        packed = raw[start + 2 : start + 18]
        found.append([d * (byte % 16 - 8) for byte in packed] + [d * (byte // 16 - 8) for byte in packed])
    return np.array(found, F32)


def _decode_cases(random: np.random.Generator) -> list[Case]:
    ramp = bytes(j + 16 * (15 - j) for j in range(16))
    made = [
        np.float16(1).tobytes() + ramp,
        np.float16(-0.5).tobytes() + ramp,
        np.float16(1).tobytes() + bytes(range(16)) + np.float16(2).tobytes() + bytes(range(0, 256, 16)),
        bytes(2) + b"\x88" * 16,
    ]
    drawn = b"".join(
        d.tobytes() + random.integers(0, 256, 16, np.uint8).tobytes() for d in random.normal(0, 1, 5).astype("<f2")
    )
    return [(raw,) for raw in [*made, drawn]]


def _decode(raw: bytes, at: int = 0, form: str = "<f2", shift: int = 8, signed=False, order="halves") -> np.ndarray:
    rows = np.frombuffer(raw, np.uint8).reshape(-1, 18)
    d = np.ascontiguousarray(rows[:, at : at + 2]).view(form).astype(F32)
    packed = rows[:, 2:] if at == 0 else rows[:, :16]
    low, high = (packed & 15).astype(F32), (packed >> 4).astype(F32)
    pairs = {"halves": (low, high), "exchanged": (high, low), "neighbours": (low, high)}[order]
    q = np.stack(pairs, axis=2).reshape(len(rows), 32) if order == "neighbours" else np.concatenate(pairs, axis=1)
    q = np.where(q >= 8, q - 16, q) if signed else q - shift
    with np.errstate(all="ignore"):
        return (d * q).astype(F32)


def _all_scales_first(raw: bytes) -> np.ndarray:
    n = len(raw) // 18
    scales, packed = raw[: 2 * n], raw[2 * n :]
    return _decode(b"".join(scales[2 * i : 2 * i + 2] + packed[16 * i : 16 * i + 16] for i in range(n)))


def _wrapped(raw: bytes) -> np.ndarray:
    rows = np.frombuffer(raw, np.uint8).reshape(-1, 18)
    levels = np.concatenate([rows[:, 2:] & 15, rows[:, 2:] >> 4], axis=1) - np.uint8(8)  # 3 - 8 is 251
    return np.ascontiguousarray(rows[:, :2]).view("<f2").astype(F32) * levels


DECODE_Q4_0 = Exercise(
    name="decode_q4_0",
    lab="11",
    goal="Turn blocks of Q4_0 back into weights: d × (level - 8), the low nibbles first, then the high ones.",
    minutes=5,
    difficulty="core",
    reference=decode_q4_0,
    oracle=decode_oracle,
    cases=_decode_cases,
    hints=(
        "`np.frombuffer(raw, np.uint8).reshape(-1, 18)` has a row for each block; its first two columns are d, and "
        '`np.ascontiguousarray(rows[:, :2]).view("<f2")` reads them.',
        "`np.concatenate([packed & 15, packed >> 4], axis=1)` are the 32 levels. They are uint8: convert to float32 "
        "before you subtract 8.",
    ),
    why="a reader of real GGUF needs no more than this for the most common type of a small model.",
    mistakes=(
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
            "two's complement",
            partial(_decode, signed=True),
            "8 to 15 were read as negative, as in GGUF-lite, and a level of Q4_0 is stored plus 8.",
            "Subtract 8 from every level.",
            "0 where -8 × d is expected",
        ),
        Mistake(
            "no 8 subtracted",
            partial(_decode, shift=0),
            "The levels 0 to 15 stand for -8 to 7.",
            "Subtract 8 from every level.",
            "every weight with the sign of d",
        ),
        Mistake(
            "7.5 subtracted",
            partial(_decode, shift=7.5),
            "The middle of 0 to 15 is 7.5, but zero must stay zero: its level is 8.",
            "Subtract 8.",
            "every weight off by half of d",
        ),
        Mistake(
            "subtracted in uint8",
            _wrapped,
            "A uint8 has no negative numbers: 3 - 8 becomes 251.",
            "Convert to float32 or int8 before you subtract.",
            "weights around 250 × d",
        ),
        Mistake(
            "computed in float16",
            lambda raw: _decode(raw).astype(np.float16),
            "d was left a float16, and so is everything that it is multiplied by.",
            "Convert d with `.astype(np.float32)`.",
            "the right numbers as float16",
        ),
        Mistake(
            "the scale behind the values",
            partial(_decode, at=16),
            "d was read from the last two bytes of each block.",
            "It stands in the first two.",
            "every weight another",
        ),
        Mistake(
            "all scales first",
            _all_scales_first,
            "The scales were taken from the front of the bytes, as in GGUF-lite.",
            "Each block of 18 bytes begins with its own.",
            "right for one block, wrong for more",
        ),
    ),
)
