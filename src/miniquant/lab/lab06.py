"""The exercises of lab 06: the writer (the assignment's Block A)."""

from __future__ import annotations

import numpy as np

from ..packing import pack_nibbles
from .engine import Case, Exercise, Mistake

# ---- pack_int4 -------------------------------------------------------------------------------------------------------


def pack_int4(values: np.ndarray) -> np.ndarray:
    """The reference: values (..., n) int8 -> (..., n // 2) uint8."""
    return pack_nibbles(values)


def _pack_oracle(values: np.ndarray) -> np.ndarray:
    """One pair at a time, by the digits of the hexadecimal number."""
    flat = [int(v) % 16 for v in values.reshape(-1)]
    digits = [f"{high:x}{low:x}" for low, high in zip(flat[0::2], flat[1::2])]
    return np.array([int(d, 16) for d in digits], np.uint8).reshape(*values.shape[:-1], -1)


def _pack_cases(random: np.random.Generator) -> list[Case]:
    small = [[1, 2], [0, 7], [-1, 3], [-8, 7], [5, -6], [0, 1, 2, 3, 4, 5, 6, 7], [-1, -2, -3, -4]]
    made = [(np.array(row, np.int8),) for row in small] + [(np.arange(-8, 8, dtype=np.int8).reshape(2, 8),)]
    return [*made, (random.integers(-8, 8, (4, 64)).astype(np.int8),)]


def _swapped(values: np.ndarray) -> np.ndarray:
    nibbles = values.astype(np.uint8) & 0x0F
    return (nibbles[..., 0::2] << 4) | nibbles[..., 1::2]


def _not_masked(values: np.ndarray) -> np.ndarray:
    return values[..., 0::2].astype(np.uint8) | (values[..., 1::2].astype(np.uint8) << 4)


def _shifted_by_eight(values: np.ndarray) -> np.ndarray:
    nibbles = (values + 8).astype(np.uint8)
    return nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)


def _halves(values: np.ndarray) -> np.ndarray:
    nibbles = values.astype(np.uint8) & 0x0F
    half = values.shape[-1] // 2
    return nibbles[..., :half] | (nibbles[..., half:] << 4)


PACK_INT4 = Exercise(
    name="pack_int4",
    lab="06",
    goal="Put two signed 4-bit integers into each byte, the even index in the low nibble.",
    minutes=10,
    difficulty="core",
    reference=pack_int4,
    oracle=_pack_oracle,
    cases=_pack_cases,
    hints=(
        "`values.astype(np.uint8) & 0x0F` keeps the four bits that matter, the sign among them.",
        "Slice the last axis: `[..., 0::2]` are the even indices, `[..., 1::2]` the odd ones; shift the odd ones left "
        "by four and join the two with `|`.",
    ),
    why="half of the file is made of these bytes, and every reader in every language must agree on their order.",
    mistakes=(
        Mistake(
            "nibbles swapped",
            _swapped,
            "The even index went to the high nibble.",
            "Shift the odd indices, not the even ones.",
            "`0x12` where `0x21` is expected",
        ),
        Mistake(
            "sign bits not masked",
            _not_masked,
            "A negative number has ones above its four bits, and they spill into its neighbour.",
            "Keep four bits of each with `& 0x0F` before you join them.",
            "`0xff` wherever the even value is negative",
        ),
        Mistake(
            "shifted by eight",
            _shifted_by_eight,
            "Adding 8 is how real GGUF's Q4_0 stores a nibble; this format keeps two's complement.",
            "Mask with `& 0x0F` and add nothing.",
            "`0x88` where zeros are packed",
        ),
        Mistake(
            "halves instead of pairs",
            _halves,
            "The first half of the row went to the low nibbles and the second half to the high ones, as real GGUF does.",
            "Pair neighbours: indices 0 and 1 share the first byte.",
            "the first row right for two values and wrong for eight",
        ),
    ),
)

EXERCISES = [PACK_INT4]
