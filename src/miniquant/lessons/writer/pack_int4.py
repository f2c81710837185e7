"""Two 4-bit integers in a byte."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.gguf_lite_by_hand import pack_oracle


def pack_int4(values):
    """Pack signed 4-bit integers two per byte.

    values: (..., n) int8 in [-8, 7], n even   ->   (..., n // 2) uint8; the low nibble is the even index
    """
    low_four = values.astype(np.uint8) & 0x0F
    return low_four[..., 0::2] | (low_four[..., 1::2] << 4)


def cases(random):
    """Single bytes, rows, a matrix, three dims, and a random matrix."""
    small = [[1, 2], [0, 7], [-1, 3], [-8, 7], [5, -6], [0, 1, 2, 3, 4, 5, 6, 7], [-1, -2, -3, -4]]
    ramp = np.arange(-8, 8)
    made = [*small, ramp.reshape(2, 8), ramp.reshape(2, 2, 4), random.integers(-8, 8, (4, 64))]
    return [(np.array(values, np.int8),) for values in made]


EXERCISE = Exercise(
    goal="Put two signed 4-bit integers into each byte, the even index in the low nibble.",
    reference=pack_int4, oracle=pack_oracle, cases=cases, minutes=6, difficulty="core",
    hints=(
        "`values.astype(np.uint8) & 0x0F` keeps the four bits that matter, the sign among them.",
        "Slice the last axis: `[..., 0::2]` are the even indices, `[..., 1::2]` the odd ones; shift the odd ones left by four and join the two with `|`.",
    ),
    why="most of the file is made of these bytes, and every reader in every language must agree on their order.",
    mistakes=(
        Mistake("nibbles swapped",
            edit("0::2] | (", "1::2] | (").edit("(low_four[..., 1::2]", "(low_four[..., 0::2]"),
            cause="The even index went to the high nibble.",
            cure="Shift the odd indices, not the even ones.", see="`0x12` where `0x21` is expected"),
        Mistake("sign bits not masked", edit(" & 0x0F", ""),
            cause="A negative number has ones above its four bits, and they spill into its neighbour.",
            cure="Keep four bits of each with `& 0x0F` before you join them.",
            see="`0xff` wherever the even value is negative"),
        Mistake("arithmetic instead of bits", body("""
                wide = values.astype(np.int32)
                return (wide[..., 0::2] + 16 * wide[..., 1::2]).astype(np.uint8)
            """),
            cause="`even + 16 * odd` is right for positive numbers; a negative even value takes one from its neighbour.",
            cure="Mask both with `& 0x0F`, shift with `<<`, and join with `|`.",
            see="a high nibble one too small wherever the even value is negative"),
        Mistake("signed bytes", edit(".astype(np.uint8)", ""),
            cause="Shifting and joining int8 gives int8, and the bytes of a file are unsigned.",
            cure="Convert to uint8 first: `values.astype(np.uint8) & 0x0F`.", see="a result of dtype int8"),
        Mistake("shifted by eight", edit("values.astype", "(values + 8).astype"),
            cause="Adding 8 is how real GGUF's Q4_0 stores a nibble; this format keeps two's complement.",
            cure="Mask with `& 0x0F` and add nothing.", see="`0x88` where zeros are packed"),
        Mistake("sign and magnitude",
            edit("values.astype(np.uint8) & 0x0F", "((values < 0) * 8 + (np.abs(values) & 7)).astype(np.uint8)"),
            cause="The top bit holds the sign and the other three the size, and the format wants two's complement: -1 is `1111`.",
            cure="Mask the int8 with `& 0x0F`, which is two's complement already.",
            see="`9` where `f` is expected for -1"),
        Mistake("halves instead of pairs",
            edit("0::2", ": values.shape[-1] // 2").edit("1::2", "values.shape[-1] // 2 :"),
            cause="The first half of the row went to the low nibbles, the second half to the high ones, as in real GGUF.",
            cure="Pair neighbours: indices 0 and 1 share the first byte.",
            see="the first row right for two values and wrong for eight"),
    ),
)
