"""The twelve bytes of 8 scales and 8 mins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...lab import Exercise, Mistake, body, edit


def unpack_k_scales(packed):
    """The scales and mins of a super-block of Q4_K.

    packed: (12,) uint8
    ->   scales: (8,) uint8, mins: (8,) uint8, each from 0 to 63

    Numbers 0 to 3 are early, 4 to 7 late. The upper two bits of the late
    scales are in bytes 0 to 3, those of the late mins in bytes 4 to 7, each
    in a byte's highest two bits.
    """
    first, second, third = packed[:4], packed[4:8], packed[8:]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4])
    mins = np.concatenate([second & 63, third >> 4 | second >> 6 << 4])
    return scales, mins


class Scales(NamedTuple):
    """What the twelve bytes hold, by name."""

    scales: np.ndarray
    mins: np.ndarray


def oracle(packed):
    """From the bits as text: where each number's bits stand."""
    bits = [f"{byte:08b}" for byte in packed.tolist()]
    scales = [bits[j][2:] for j in range(4)] + [bits[j][:2] + bits[8 + j][4:] for j in range(4)]
    mins = [bits[4 + j][2:] for j in range(4)] + [bits[4 + j][:2] + bits[8 + j][:4] for j in range(4)]
    return Scales(*(np.array([int(b, 2) for b in found], np.uint8) for found in (scales, mins)))


def cases(random):
    """Each part of the layout alone, then together, then random bytes."""
    made = [
        [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0],  # the early ones alone
        [0, 0, 0, 0, 0, 0, 0, 0, 0x21, 0x43, 0x65, 0x87],  # the lower bits of the late ones
        [64, 128, 192, 0, 0, 64, 128, 192, 0, 0, 0, 0],  # their upper bits
        [0x54, 0x55, 0x56, 0x57, 0xF8, 0xF9, 0xFA, 0xFB, 0xC8, 0xD9, 0xEA, 0xFB],
    ]
    drawn = random.integers(0, 256, (4, 12), np.uint8)
    return [(np.array(packed, np.uint8),) for packed in [*made, *drawn]]


EXERCISE = Exercise(
    goal="Take 8 scales and 8 mins of 6 bits each out of 12 bytes.",
    reference=unpack_k_scales, oracle=oracle, cases=cases, minutes=9, difficulty="core", may_view=True,
    hints=(
        "Cut the bytes into three runs of four. The early scales are the low six bits of the first run, the early mins those of the second.",
        "A late number has its low four bits in the third run, the scales in its low nibble and the mins in its high one; its upper two bits are the top bits of the first or the second run. `&`, `>>`, `<<` and `|` do it, and `np.concatenate` joins early and late.",
    ),
    why="sixteen numbers of six bits fill twelve bytes exactly, with no bit to spare.",
    mistakes=(
        Mistake("two runs of six bytes", body("""
                runs = [int.from_bytes(bytes(packed[at : at + 6]), "little") for at in (0, 6)]
                return tuple(np.array([run >> 6 * j & 63 for j in range(8)], np.uint8) for run in runs)
            """),
            cause="You read one run of 48 bits for the scales and one for the mins. ggml cuts the late ones in two.",
            cure="Take six bits from each of the first eight bytes, and piece the late ones together.",
            see="the first scale right, and almost nothing else"),
        Mistake("the mask forgotten", edit("first & 63", "first").edit("second & 63", "second"),
            cause="The upper two bits of bytes 0 to 7 belong to the late ones, and they stayed in the early ones.",
            cure="Mask with 63, six ones in binary.", see="early scales above 63"),
        Mistake("the upper bits forgotten", edit(" | first >> 6 << 4", "").edit(" | second >> 6 << 4", ""),
            cause="The late ones have their lower four bits only.",
            cure="Add `first >> 6 << 4` to the scales and `second >> 6 << 4` to the mins.",
            see="late ones of 15 at most"),
        Mistake("upper bits from the wrong byte",
            edit("first >> 6", "SECOND >> 6").edit("second >> 6", "first >> 6").edit("SECOND", "second"),
            cause="The late scales took their upper bits from bytes 4 to 7, where those of the mins lie.",
            cure="Those of the scales lie on top of the early scales, bytes 0 to 3.",
            see="late ones that are wrong by 16, 32 or 48"),
        Mistake("upper bits of both from the scales", edit("second >> 6", "first >> 6"),
            cause="Both late ones took their upper bits from bytes 0 to 3.",
            cure="Those of the mins lie in bytes 4 to 7.", see="late scales right, late mins wrong by 16, 32 or 48"),
        Mistake("upper bits not moved up",
            edit("first >> 6 << 4", "first >> 6").edit("second >> 6 << 4", "second >> 6"),
            cause="`first >> 6` are two bits at the bottom, and there the lower four already stand.",
            cure="Shift them up again by 4.", see="late ones of 15 at most, some too large"),
        Mistake("upper bits moved up by 2",
            edit("first >> 6 << 4", "first >> 6 << 2").edit("second >> 6 << 4", "second >> 6 << 2"),
            cause="Shifted by 2 they fall on bits 2 and 3, where the lower four already stand.",
            cure="Shift them up by 4: they are bits 4 and 5.", see="0x04 where 0x10 is expected"),
        Mistake("upper bits left at the top",
            edit("first >> 6 << 4", "first >> 6 << 6").edit("second >> 6 << 4", "second >> 6 << 6"),
            cause="The upper two bits stayed at bits 6 and 7, and in a number of six bits they are bits 4 and 5.",
            cure="Shift them right by 6 and left by 4.", see="late ones above 63"),
        Mistake("nibbles exchanged",
            edit("third & 15 |", "THIRD |").edit("third >> 4 |", "third & 15 |").edit("THIRD", "third >> 4"),
            cause="The lower half of bytes 8 to 11 belongs to the scale, the upper half to the minimum.",
            cure="Use `third & 15` for the scales and `third >> 4` for the mins.",
            see="early ones right, the lower bits of late scales and mins exchanged"),
        Mistake("neighbours share a byte", edit("    scales =", "    low = np.stack([third & 15, third >> 4], axis=1).ravel()\n    scales =")
            .edit("third & 15 |", "low[:4] |")
            .edit("third >> 4 |", "low[4:] |"),
            cause="Scales 4 and 5 were taken from byte 8; a byte holds a scale and a minimum.",
            cure="Byte 8 + j holds scale 4 + j and minimum 4 + j.",
            see="early ones right, the lower bits of the late ones in another order"),
        Mistake("mins first", edit("return scales, mins", "return mins, scales"),
            cause="The two results changed places.",
            cure="Return the scales first.", see="scales and mins exchanged"),
        Mistake("the late ones first", edit("return scales, mins", "return np.roll(scales, 4), np.roll(mins, 4)"),
            cause="Scales 4 to 7 came before scales 0 to 3.",
            cure="Put the early ones in front.", see="the two halves of each result exchanged"),
    ),
)
