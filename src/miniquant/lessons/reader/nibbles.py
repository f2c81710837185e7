"""The exercise of lab 07 on two 4-bit integers in a byte."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from ...quantization.packing import unpack_nibbles

# ---- unpack_int4 -----------------------------------------------------------------------------------------------------


def unpack_int4(packed: np.ndarray) -> np.ndarray:
    """The reference: packed (..., n) uint8 -> (..., 2 n) int8."""
    return unpack_nibbles(packed)


def unpack_oracle(packed: np.ndarray) -> np.ndarray:
    """One hexadecimal digit at a time, looked up in a table."""
    table = dict(zip("0123456789abcdef", [0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1]))
    out = []
    for byte in packed.reshape(-1).tolist():
        high, low = f"{byte:02x}"
        out += [table[low], table[high]]
    return np.array(out, np.int8).reshape(*packed.shape[:-1], -1)


def _unpack_cases(random: np.random.Generator) -> list[Case]:
    small = [[0x21], [0x70], [0x3F], [0x8F], [0x00], [0x88], [0x10, 0x32, 0x54, 0x76], [0xEF, 0xCD]]
    made = [(np.array(row, np.uint8),) for row in small] + [(np.arange(16, dtype=np.uint8).reshape(2, 8) * 17,)]
    return [*made, (random.integers(0, 256, (4, 32)).astype(np.uint8),)]


def joined(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Even indices from ``low``, odd ones from ``high``."""
    out = np.empty((*low.shape[:-1], 2 * low.shape[-1]), np.int8)
    out[..., 0::2], out[..., 1::2] = low, high
    return out


def _signed(nibble: np.ndarray, limit: int = 8) -> np.ndarray:
    return nibble.astype(np.int8) - np.int8(16) * (nibble >= limit)


def unpacked(packed: np.ndarray, low: Any = _signed, high: Any = _signed) -> np.ndarray:
    """Pairs, low nibble first; ``low`` and ``high`` give a nibble its value."""
    return joined(low(packed & 0x0F), high(packed >> 4))


def _sign_and_magnitude(nibble: np.ndarray) -> np.ndarray:
    size = (nibble & 7).astype(np.int8)
    return np.where(nibble >= 8, -size, size)


def _in_uint8(packed: np.ndarray) -> np.ndarray:
    low, high = (np.where(n >= 8, n - np.uint8(16), n) for n in (packed & 0x0F, packed >> 4))
    return np.stack([low, high], axis=-1).reshape(*packed.shape[:-1], -1)


def swapped(packed: np.ndarray) -> np.ndarray:
    """The even index from the high nibble."""
    return joined(_signed(packed >> 4), _signed(packed & 0x0F))


def unsigned(packed: np.ndarray) -> np.ndarray:
    """0 to 15, the sign not restored."""
    return unpacked(packed, np.int8, np.int8)


def minus_eight(packed: np.ndarray) -> np.ndarray:
    """0 to 15 minus 8, as real GGUF's Q4_0 has it."""
    return unpacked(packed, lambda n: n.astype(np.int8) - np.int8(8), lambda n: n.astype(np.int8) - np.int8(8))


def halves(packed: np.ndarray) -> np.ndarray:
    """All low nibbles, then all high ones, as in the blocks of real GGUF."""
    return np.concatenate([_signed(packed & 0x0F), _signed(packed >> 4)], axis=-1)


UNPACK_INT4 = Exercise(
    name="unpack_int4",
    lab="07",
    goal="Take two signed 4-bit integers out of each byte, the low nibble first, and give them their signs back.",
    minutes=6,
    difficulty="core",
    reference=unpack_int4,
    oracle=unpack_oracle,
    cases=_unpack_cases,
    hints=(
        "`packed & 0x0F` is the low nibble and `packed >> 4` the high one, both from 0 to 15. Convert to int8, and "
        "subtract 16 where the nibble is 8 or more.",
        "Make an empty int8 array twice as wide, and fill `out[..., 0::2]` with the low nibbles and `out[..., 1::2]` "
        "with the high ones; `np.where(n >= 8, n - 16, n)` restores a sign.",
    ),
    why="a sign that is lost here turns every negative weight into a large positive one, and nothing complains.",
    mistakes=(
        Mistake(
            "sign not restored",
            unsigned,
            "A nibble holds 0 to 15 as it stands, and in two's complement 8 to 15 mean -8 to -1.",
            "Subtract 16 where the nibble is 8 or more.",
            "15 where -1 is expected",
        ),
        Mistake(
            "nibbles swapped",
            swapped,
            "The high nibble went to the even index.",
            "Put the low nibble at the even indices.",
            "each pair in the wrong order",
        ),
        Mistake(
            "shifted by eight",
            minus_eight,
            "Subtracting 8 is how real GGUF's Q4_0 reads a nibble; this format keeps two's complement.",
            "Subtract 16, and only where the nibble is 8 or more.",
            "-8 where 0 is expected",
        ),
        Mistake(
            "halves instead of pairs",
            halves,
            "All low nibbles came first and then all high ones, as in the blocks of real GGUF.",
            "Let them alternate: the two nibbles of a byte are neighbours.",
            "right for one byte, wrong for four",
        ),
        Mistake(
            "eight stays positive",
            partial(unpacked, low=partial(_signed, limit=9), high=partial(_signed, limit=9)),
            "You compare with `> 8`, and the nibble 8 itself means -8.",
            "Compare with `>= 8`.",
            "8 where -8 is expected, all else right",
        ),
        Mistake(
            "subtracted as unsigned",
            _in_uint8,
            "In uint8 there is no -1, and 15 - 16 wraps around to 255.",
            "Convert the nibbles to int8 before you subtract.",
            "a result of dtype uint8, with 255 where -1 belongs",
        ),
        Mistake(
            "only the high sign restored",
            partial(unpacked, low=np.int8),
            "Shifting a signed byte right brings the sign of the high nibble back, and the low one never had its own.",
            "Treat the low nibble the same way: subtract 16 where it is 8 or more.",
            "odd indices right, and even ones never negative",
        ),
        Mistake(
            "sign and magnitude",
            partial(unpacked, low=_sign_and_magnitude, high=_sign_and_magnitude),
            "You took the top bit for a minus sign and the other three for the number, and the format has two's "
            "complement: `1111` is -1.",
            "Subtract 16 where the nibble is 8 or more.",
            "-7 where -1 is expected",
        ),
    ),
)
