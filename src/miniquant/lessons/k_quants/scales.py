"""The exercises of lab 15 on the twelve bytes that hold 8 scales and 8 mins."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from ...quantization.packing import pack_scales_and_mins, unpack_scales_and_mins

# ---- unpack_k_scales -------------------------------------------------------------------------------------------------


class Scales(NamedTuple):
    """What the twelve bytes hold, by name."""

    scales: np.ndarray
    mins: np.ndarray


def unpack_k_scales(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The reference: (12,) uint8 -> scales (8,), mins (8,), uint8."""
    return unpack_scales_and_mins(packed)


def unpack_oracle(packed: np.ndarray) -> Scales:
    """From the bits as text: where each number's bits stand."""
    bits = [f"{byte:08b}" for byte in packed.tolist()]
    scales = [bits[j][2:] for j in range(4)] + [bits[j][:2] + bits[8 + j][4:] for j in range(4)]
    mins = [bits[4 + j][2:] for j in range(4)] + [bits[4 + j][:2] + bits[8 + j][:4] for j in range(4)]
    return Scales(*(np.array([int(b, 2) for b in found], np.uint8) for found in (scales, mins)))


def _packed_cases(random: np.random.Generator) -> list[Case]:
    made = [
        [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0],  # the early ones alone
        [0, 0, 0, 0, 0, 0, 0, 0, 0x21, 0x43, 0x65, 0x87],  # the lower bits of the late ones
        [64, 128, 192, 0, 0, 64, 128, 192, 0, 0, 0, 0],  # their upper bits
        [0x54, 0x55, 0x56, 0x57, 0xF8, 0xF9, 0xFA, 0xFB, 0xC8, 0xD9, 0xEA, 0xFB],
    ]
    drawn = random.integers(0, 256, (4, 12), np.uint8)
    return [(np.array(packed, np.uint8),) for packed in [*made, *drawn]]


def _unpack(p: np.ndarray, early=63, late="right", shift=4, upper=("first", "second")) -> tuple[np.ndarray, np.ndarray]:
    run = {"first": p[:4], "second": p[4:8], "none": p[:4] * 0}
    lows = {"right": (p[8:] & 15, p[8:] >> 4), "exchanged": (p[8:] >> 4, p[8:] & 15)}[late]
    found = []
    for part, low, high in zip((p[:4], p[4:8]), lows, upper):
        found.append(np.concatenate([part & early, low | run[high] >> 6 << shift]).astype(np.uint8))
    return found[0], found[1]


def two_runs(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two runs of 48 bits, 6 a number."""
    runs = [int.from_bytes(bytes(p[at : at + 6]), "little") for at in (0, 6)]
    return tuple(np.array([run >> 6 * j & 63 for j in range(8)], np.uint8) for run in runs)


def _late_first(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.roll(values, 4) for values in _unpack(p))


def _neighbours(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Four bits from each of bytes 8 to 11, but two late scales in one byte."""
    scales, mins = _unpack(p)
    low = np.stack([p[8:] & 15, p[8:] >> 4], axis=1).ravel()
    scales, mins = scales.copy(), mins.copy()
    scales[4:], mins[4:] = low[:4] | p[:4] >> 6 << 4, low[4:] | p[4:8] >> 6 << 4
    return scales, mins


UNPACK_K_SCALES = Exercise(
    name="unpack_k_scales",
    lab="15",
    goal="Take 8 scales and 8 mins of 6 bits each out of 12 bytes.",
    minutes=9,
    difficulty="core",
    reference=unpack_k_scales,
    oracle=unpack_oracle,
    cases=_packed_cases,
    may_view=True,
    hints=(
        "Cut the bytes into three runs of four: `first, second, third = packed[:4], packed[4:8], packed[8:]`. The "
        "early scales are `first & 63`, the early mins `second & 63`.",
        "A late scale is `third & 15 | first >> 6 << 4`, a late minimum `third >> 4 | second >> 6 << 4`; join early "
        "and late with `np.concatenate`.",
    ),
    why="sixteen numbers of six bits fill twelve bytes exactly, with no bit to spare.",
    mistakes=(
        Mistake(
            "two runs of six bytes",
            two_runs,
            "That is how the document has them: one run of bits for the scales, one for the mins.",
            "Take six bits from each of the first eight bytes, and piece the late ones together.",
            "the first scale right, and almost nothing else",
        ),
        Mistake(
            "the mask forgotten",
            partial(_unpack, early=255),
            "The upper two bits of bytes 0 to 7 belong to the late ones, and they stayed in the early ones.",
            "Mask with 63, six ones in binary.",
            "early scales above 63",
        ),
        Mistake(
            "the upper bits forgotten",
            partial(_unpack, upper=("none", "none")),
            "The late ones have their lower four bits only.",
            "Add `first >> 6 << 4` to the scales and `second >> 6 << 4` to the mins.",
            "late ones of 15 at most",
        ),
        Mistake(
            "upper bits from the wrong byte",
            partial(_unpack, upper=("second", "first")),
            "The late scales took their upper bits from bytes 4 to 7, where those of the mins lie.",
            "Those of the scales lie on top of the early scales, bytes 0 to 3.",
            "late ones that are wrong by 16, 32 or 48",
        ),
        Mistake(
            "upper bits of both from the scales",
            partial(_unpack, upper=("first", "first")),
            "Both late ones took their upper bits from bytes 0 to 3.",
            "Those of the mins lie in bytes 4 to 7.",
            "late scales right, late mins wrong by 16, 32 or 48",
        ),
        Mistake(
            "upper bits not moved up",
            partial(_unpack, shift=0),
            "`first >> 6` are two bits at the bottom, and there the lower four already stand.",
            "Shift them up again by 4.",
            "late ones of 15 at most, some too large",
        ),
        Mistake(
            "upper bits moved up by 2",
            partial(_unpack, shift=2),
            "Shifted by 2 they fall on bits 2 and 3, where the lower four already stand.",
            "Shift them up by 4: they are bits 4 and 5.",
            "0x04 where 0x10 is expected",
        ),
        Mistake(
            "upper bits left at the top",
            partial(_unpack, shift=6),
            "The upper two bits stayed at bits 6 and 7, and in a number of six bits they are bits 4 and 5.",
            "Shift them right by 6 and left by 4.",
            "late ones above 63",
        ),
        Mistake(
            "nibbles exchanged",
            partial(_unpack, late="exchanged"),
            "The lower half of bytes 8 to 11 belongs to the scale, the upper half to the minimum.",
            "Use `third & 15` for the scales and `third >> 4` for the mins.",
            "early ones right, the lower bits of late scales and mins exchanged",
        ),
        Mistake(
            "neighbours share a byte",
            _neighbours,
            "Scales 4 and 5 were taken from byte 8; a byte holds a scale and a minimum.",
            "Byte 8 + j holds scale 4 + j and minimum 4 + j.",
            "early ones right, the lower bits of the late ones in another order",
        ),
        Mistake(
            "mins first",
            lambda p: _unpack(p)[::-1],
            "The two results changed places.",
            "Return the scales first.",
            "scales and mins exchanged",
        ),
        Mistake(
            "the late ones first",
            _late_first,
            "Scales 4 to 7 came in front of scales 0 to 3.",
            "Put the early ones in front.",
            "the two halves of each result exchanged",
        ),
    ),
)

# ---- pack_k_scales ---------------------------------------------------------------------------------------------------


def pack_k_scales(scales: np.ndarray, mins: np.ndarray) -> np.ndarray:
    """The reference: scales (8,), mins (8,), uint8 below 64 -> (12,) uint8."""
    return pack_scales_and_mins(scales, mins)


def pack_oracle(scales: np.ndarray, mins: np.ndarray) -> np.ndarray:
    """As text: the bits of each byte, put together."""
    s, m = ([f"{value:06b}" for value in values.tolist()] for values in (scales, mins))
    bits = [s[4 + j][:2] + s[j] for j in range(4)] + [m[4 + j][:2] + m[j] for j in range(4)]
    bits += [m[4 + j][2:] + s[4 + j][2:] for j in range(4)]
    return np.array([int(b, 2) for b in bits], np.uint8)


def _scale_cases(random: np.random.Generator) -> list[Case]:
    ramp, back = np.arange(8, dtype=np.uint8), np.arange(63, 55, -1).astype(np.uint8)
    made = [(ramp, 0 * ramp), (0 * ramp, ramp + np.uint8(20)), (ramp * np.uint8(9), back), (back, ramp)]
    drawn = [tuple(random.integers(0, 64, (2, 8), np.uint8)) for _ in range(3)]
    return [*made, *drawn]


def _pack(s: np.ndarray, m: np.ndarray, top=("s", "m"), move=6, low="right") -> np.ndarray:
    upper = {"s": s[4:] >> 4, "m": m[4:] >> 4, "none": s[4:] * 0}
    third = {"right": s[4:] & 15 | m[4:] << 4, "exchanged": m[4:] & 15 | s[4:] << 4}[low]
    first, second = (part[:4] | upper[which] << move for part, which in zip((s, m), top))
    return np.concatenate([first, second, third]).astype(np.uint8)


def _pack_runs(s: np.ndarray, m: np.ndarray) -> np.ndarray:
    runs = (sum(int(value) << 6 * j for j, value in enumerate(values)).to_bytes(6, "little") for values in (s, m))
    return np.frombuffer(b"".join(runs), np.uint8)


def _lower_bits_on_top(s: np.ndarray, m: np.ndarray) -> np.ndarray:
    """The lower two bits go on top, the upper four to the third run."""
    first, second = (part[:4] | (part[4:] & 3) << 6 for part in (s, m))
    return np.concatenate([first, second, s[4:] >> 2 | m[4:] >> 2 << 4]).astype(np.uint8)


PACK_K_SCALES = Exercise(
    name="pack_k_scales",
    lab="15",
    goal="Pack 8 scales and 8 mins of 6 bits each into 12 bytes: the inverse.",
    minutes=6,
    difficulty="core",
    reference=pack_k_scales,
    oracle=pack_oracle,
    cases=_scale_cases,
    fields=lambda scales, mins: [
        ("the early scales", 0, 4),
        ("the early mins", 4, 8),
        ("the late ones", 8, 12),
    ],
    hints=(
        "Go back through `unpack_k_scales`, and ask of each bit of a late scale where it came from.",
        "`first = scales[:4] | scales[4:] >> 4 << 6`, the second run likewise from the mins, and "
        "`third = scales[4:] & 15 | mins[4:] << 4`; a uint8 drops what is shifted out.",
    ),
    why="what you unpack and pack again is the same, and so is what you pack and unpack: the layout wastes nothing.",
    mistakes=(
        Mistake(
            "two runs of six bytes",
            _pack_runs,
            "That is how the document has them, and no reader of Q4_K.",
            "Give each early one a byte of its own, and cut the late ones.",
            "nearly every byte another",
        ),
        Mistake(
            "the upper bits lost",
            partial(_pack, top=("none", "none")),
            "A late one of 16 or more lost its upper two bits.",
            "Put them on top of the early ones: `scales[4:] >> 4 << 6`.",
            "bytes 0 to 7 too small",
        ),
        Mistake(
            "upper bits exchanged",
            partial(_pack, top=("m", "s")),
            "The upper bits of the late mins went on top of the early scales.",
            "Scales on scales, mins on mins.",
            "bytes 0 to 7 wrong in their upper two bits",
        ),
        Mistake(
            "upper bits not moved up",
            partial(_pack, move=0),
            "`scales[4:] >> 4` are two bits at the bottom, where an early one stands.",
            "Shift them up by 6.",
            "bytes 0 to 7 below 64",
        ),
        Mistake(
            "upper bits moved by 4",
            partial(_pack, move=4),
            "Shifted by 4 they fall on the early one's bits 4 and 5.",
            "Shift them by 6: the two bits above its six.",
            "bytes 0 to 7 below 64, their bits 4 and 5 wrong",
        ),
        Mistake(
            "nibbles exchanged",
            partial(_pack, low="exchanged"),
            "The scale's lower bits belong in the lower half of bytes 8 to 11.",
            "Shift the mins, `mins[4:] << 4`.",
            "bytes 8 to 11 with their two digits exchanged",
        ),
        Mistake(
            "cut at the other end",
            _lower_bits_on_top,
            "The lower two bits went on top, and the upper four to the last run.",
            "Keep the lower four together, `scales[4:] & 15`, and move the upper two.",
            "every late one in pieces",
        ),
        Mistake(
            "the lower four not masked",
            lambda scales, mins: np.concatenate([pack_k_scales(scales, mins)[:8], scales[4:] | mins[4:] << 4]),
            "A late scale of 16 or more still has its upper bits in the last run, and they fall on the minimum.",
            "Mask with 15 there: `scales[4:] & 15`.",
            "bytes 8 to 11 too large where a late scale is 16 or more",
        ),
        Mistake(
            "sixteen bytes",
            lambda s, m: np.concatenate([s, m]),
            "Every number took a byte of its own, and there is room for twelve.",
            "Cut the late ones into four bits and two.",
            "a result of 16 bytes",
        ),
    ),
)
