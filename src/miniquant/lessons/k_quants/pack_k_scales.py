"""Scales and mins back into twelve bytes."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit


def pack_k_scales(scales, mins):
    """Twelve bytes from 8 scales and 8 mins: the inverse of ``unpack_k_scales``.

    scales, mins: (8,) uint8, each from 0 to 63   ->   (12,) uint8
    """
    first = scales[:4] | scales[4:] >> 4 << 6
    second = mins[:4] | mins[4:] >> 4 << 6
    third = scales[4:] & 15 | mins[4:] << 4
    return np.concatenate([first, second, third])


def oracle(scales, mins):
    """As text: the bits of each byte, put together."""
    s, m = ([f"{value:06b}" for value in values.tolist()] for values in (scales, mins))
    bits = [s[4 + j][:2] + s[j] for j in range(4)] + [m[4 + j][:2] + m[j] for j in range(4)]
    bits += [m[4 + j][2:] + s[4 + j][2:] for j in range(4)]
    return np.array([int(b, 2) for b in bits], np.uint8)


def cases(random):
    """Ramps in the scales, in the mins, in both, then random ones."""
    ramp, back = np.arange(8, dtype=np.uint8), np.arange(63, 55, -1).astype(np.uint8)
    made = [(ramp, 0 * ramp), (0 * ramp, ramp + np.uint8(20)), (ramp * np.uint8(9), back), (back, ramp)]
    drawn = [tuple(random.integers(0, 64, (2, 8), np.uint8)) for _ in range(3)]
    return [*made, *drawn]


EXERCISE = Exercise(
    goal="Pack 8 scales and 8 mins of 6 bits each into 12 bytes: the inverse.",
    reference=pack_k_scales, oracle=oracle, cases=cases, minutes=6, difficulty="core",
    fields=lambda scales, mins: [("the early scales", 0, 4), ("the early mins", 4, 8), ("the late ones", 8, 12)],
    hints=(
        "Go back through `unpack_k_scales`, and ask of each bit of a late scale where it came from.",
        "Shift the upper bits of a late number down with `>>`, then up to the top of the byte with `<<`, and join with `|`; a uint8 drops what is shifted out. `&` with 15 keeps the low nibble.",
    ),
    why="what you unpack and pack again is the same, and so is what you pack and unpack: the layout wastes nothing.",
    mistakes=(
        Mistake("two runs of six bytes", body("""
                runs = (sum(int(value) << 6 * j for j, value in enumerate(values)) for values in (scales, mins))
                return np.frombuffer(b"".join(run.to_bytes(6, "little") for run in runs), np.uint8)
            """),
            cause="That is how the document has them, and no reader of Q4_K.",
            cure="Give each early one a byte of its own, and cut the late ones.", see="nearly every byte another"),
        Mistake("the upper bits lost", edit(" | scales[4:] >> 4 << 6", "").edit(" | mins[4:] >> 4 << 6", ""),
            cause="A late one of 16 or more lost its upper two bits.",
            cure="Put them on top of the early ones: `scales[4:] >> 4 << 6`.", see="bytes 0 to 7 too small"),
        Mistake("upper bits exchanged",
            edit("scales[4:] >> 4", "MINS[4:] >> 4").edit("mins[4:] >> 4", "scales[4:] >> 4").edit("MINS", "mins"),
            cause="The upper bits of the late mins went on top of the early scales.",
            cure="Scales on scales, mins on mins.", see="bytes 0 to 7 wrong in their upper two bits"),
        Mistake("upper bits not moved up",
            edit("scales[4:] >> 4 << 6", "scales[4:] >> 4").edit("mins[4:] >> 4 << 6", "mins[4:] >> 4"),
            cause="`scales[4:] >> 4` are two bits at the bottom, where an early one stands.",
            cure="Shift them up by 6.", see="bytes 0 to 7 below 64"),
        Mistake("upper bits moved by 4",
            edit("scales[4:] >> 4 << 6", "scales[4:] >> 4 << 4").edit("mins[4:] >> 4 << 6", "mins[4:] >> 4 << 4"),
            cause="Shifted by 4 they fall on the early one's bits 4 and 5.",
            cure="Shift them by 6: the two bits above its six.", see="bytes 0 to 7 below 64, their bits 4 and 5 wrong"),
        Mistake("nibbles exchanged", edit("scales[4:] & 15 | mins[4:] << 4", "mins[4:] & 15 | scales[4:] << 4"),
            cause="The scale's lower bits belong in the lower half of bytes 8 to 11.",
            cure="Shift the mins, `mins[4:] << 4`.", see="bytes 8 to 11 with their two digits exchanged"),
        Mistake("cut at the other end", edit("scales[4:] >> 4 << 6", "(scales[4:] & 3) << 6")
            .edit("mins[4:] >> 4 << 6", "(mins[4:] & 3) << 6")
            .edit("scales[4:] & 15 | mins[4:] << 4", "scales[4:] >> 2 | mins[4:] >> 2 << 4"),
            cause="The lower two bits went on top, and the upper four to the last run.",
            cure="Keep the lower four together, `scales[4:] & 15`, and move the upper two.",
            see="every late one in pieces"),
        Mistake("the lower four not masked", edit("scales[4:] & 15", "scales[4:]"),
            cause="A late scale of 16 or more still has its upper bits in the last run, and they fall on the minimum.",
            cure="Mask with 15 there: `scales[4:] & 15`.",
            see="bytes 8 to 11 too large where a late scale is 16 or more"),
        Mistake("sixteen bytes", edit("[first, second, third]", "[scales, mins]"),
            cause="Every number took a byte of its own, and there is room for twelve.",
            cure="Cut the late ones into four bits and two.", see="a result of 16 bytes"),
    ),
)
