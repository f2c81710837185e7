"""The exercise of lab 06 on packing two 4-bit integers into a byte."""

from __future__ import annotations

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from ...quantization.packing import pack_nibbles
from ..shared.gguf_lite_by_hand import pack_oracle

# ---- pack_int4 -------------------------------------------------------------------------------------------------------


def pack_int4(values: np.ndarray) -> np.ndarray:
    """The reference: values (..., n) int8 -> (..., n // 2) uint8."""
    return pack_nibbles(values)


def _pack_cases(random: np.random.Generator) -> list[Case]:
    small = [[1, 2], [0, 7], [-1, 3], [-8, 7], [5, -6], [0, 1, 2, 3, 4, 5, 6, 7], [-1, -2, -3, -4]]
    made = [(np.array(row, np.int8),) for row in small] + [(np.arange(-8, 8, dtype=np.int8).reshape(2, 8),)]
    return [*made, (random.integers(-8, 8, (4, 64)).astype(np.int8),)]


def _low_high(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    nibbles = values.astype(np.uint8) & 0x0F
    return nibbles[..., 0::2], nibbles[..., 1::2]


def swapped(values: np.ndarray) -> np.ndarray:
    """The even index in the high nibble."""
    low, high = _low_high(values)
    return (low << 4) | high


def _not_masked(values: np.ndarray) -> np.ndarray:
    return values[..., 0::2].astype(np.uint8) | (values[..., 1::2].astype(np.uint8) << 4)


def _by_arithmetic(values: np.ndarray) -> np.ndarray:
    wide = values.astype(np.int32)
    return (wide[..., 0::2] + 16 * wide[..., 1::2]).astype(np.uint8)


def shifted_by_eight(values: np.ndarray) -> np.ndarray:
    """0 to 15 instead of two's complement, as real GGUF's Q4_0 has it."""
    low, high = _low_high((values + 8).astype(np.uint8))
    return low | (high << 4)


def _sign_and_magnitude(values: np.ndarray) -> np.ndarray:
    nibbles = ((values < 0) * 8 + (np.abs(values.astype(np.int32)) & 7)).astype(np.uint8)
    return nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)


def halves_packed(values: np.ndarray) -> np.ndarray:
    """The order of real GGUF: the first half of a row in the low nibbles, the second half in the high ones."""
    nibbles = values.astype(np.uint8) & 0x0F
    half = values.shape[-1] // 2
    return nibbles[..., :half] | (nibbles[..., half:] << 4)


PACK_INT4 = Exercise(
    name="pack_int4",
    lab="06",
    goal="Put two signed 4-bit integers into each byte, the even index in the low nibble.",
    minutes=6,
    difficulty="core",
    reference=pack_int4,
    oracle=pack_oracle,
    cases=_pack_cases,
    hints=(
        "`values.astype(np.uint8) & 0x0F` keeps the four bits that matter, the sign among them.",
        "Slice the last axis: `[..., 0::2]` are the even indices, `[..., 1::2]` the odd ones; shift the odd ones left "
        "by four and join the two with `|`.",
    ),
    why="most of the file is made of these bytes, and every reader in every language must agree on their order.",
    mistakes=(
        Mistake(
            "nibbles swapped",
            swapped,
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
            "arithmetic instead of bits",
            _by_arithmetic,
            "`even + 16 * odd` is right for positive numbers, and a negative even value borrows one from "
            "its neighbour.",
            "Mask both with `& 0x0F`, shift with `<<`, and join with `|`.",
            "a high nibble one too small wherever the even value is negative",
        ),
        Mistake(
            "signed bytes",
            lambda values: pack_oracle(values).view(np.int8),
            "Shifting and joining int8 gives int8, and the bytes of a file are unsigned.",
            "Convert to uint8 first: `values.astype(np.uint8) & 0x0F`.",
            "a result of dtype int8",
        ),
        Mistake(
            "shifted by eight",
            shifted_by_eight,
            "Adding 8 is how real GGUF's Q4_0 stores a nibble; this format keeps two's complement.",
            "Mask with `& 0x0F` and add nothing.",
            "`0x88` where zeros are packed",
        ),
        Mistake(
            "sign and magnitude",
            _sign_and_magnitude,
            "The top bit holds the sign and the other three the size, and the format wants two's complement: -1 is "
            "`1111`.",
            "Mask the int8 with `& 0x0F`, which is two's complement already.",
            "`9` where `f` is expected for -1",
        ),
        Mistake(
            "halves instead of pairs",
            halves_packed,
            "The first half of the row went to the low nibbles and the second half to the high ones, as in real GGUF.",
            "Pair neighbours: indices 0 and 1 share the first byte.",
            "the first row right for two values and wrong for eight",
        ),
    ),
)
