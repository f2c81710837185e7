"""Two 4-bit integers in a byte."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.gguf_lite_by_hand import pack_oracle


def pack_int4(values):
    """Pack signed 4-bit integers two per byte.

    values: (..., n) int8 in [-8, 7], n even, not empty
    ->   (..., n // 2) uint8: byte i holds index 2 i in its low nibble and
         index 2 i + 1 in its high nibble, each in two's complement
    """
    low_four = values.astype(np.uint8) & 0x0F
    return low_four[..., 0::2] | (low_four[..., 1::2] << 4)


def parts(result, values):
    """The low and the high nibbles of all bytes."""
    if not isinstance(result, np.ndarray) or result.dtype != np.uint8:
        return {}
    return {"the low nibbles": result & 15, "the high nibbles": result >> 4}


def cases(random):
    """Single bytes, rows, a matrix, three dims, every pair, and a random matrix."""
    small = [[1, 2], [0, 7], [-1, 3], [-8, 7], [0, 0], [0, 1, 2, 3, 4, 5, 6, 7], [-1, -2, -3, -4]]
    ramp = np.arange(-8, 8)
    pairs = [[even, odd] for even in range(-8, 8) for odd in range(-8, 8)]
    made = [*small, ramp.reshape(2, 8), ramp.reshape(2, 2, 4), pairs, random.integers(-8, 8, (64, 4)).T]
    return [(np.array(values, np.int8),) for values in made]


EXERCISE = Exercise(
    goal="Put two signed 4-bit integers into each byte, the even index in the low nibble.",
    reference=pack_int4, oracle=pack_oracle, cases=cases, parts=parts, minutes=6, difficulty="core",
    hints=(
        "First keep only the four bits that matter of each value. Then every byte is the sum of two parts that share no bit: the even index, and the odd index four places higher.",
        "Convert to uint8 before you use bits; a mask keeps bits, a shift moves them, `|` joins. A slice with a step of 2 takes every second index of the last axis, and `...` stands for all axes before it.",
    ),
    why="most of the file is made of these bytes, and every reader in every language must agree on their order.",
    mistakes=(
        Mistake("nibbles swapped",
            edit("0::2] | (", "1::2] | (").edit("(low_four[..., 1::2]", "(low_four[..., 0::2]"),
            cause="The even index is in the high nibble.",
            cure="Shift the odd indices, not the even ones.", see="`0x12` where `0x21` is expected"),
        Mistake("sign bits not masked", edit(" & 0x0F", ""),
            cause="A negative number at an even index sets all four bits of its neighbour, as if its upper bits were not masked.",
            cure="Keep four bits of each with `& 0x0F` before you join them.",
            see="`0xff` wherever the even value is negative"),
        Mistake("one taken from the neighbour", body("""
                wide = values.astype(np.int32)
                return (wide[..., 0::2] + 16 * wide[..., 1::2]).astype(np.uint8)
            """),
            cause="A negative number at an even index takes one from its neighbour, as `even + 16 * odd` does.",
            cure="Mask both with `& 0x0F`, shift with `<<`, and join with `|`.",
            see="a high nibble one too small wherever the even value is negative"),
        Mistake("signed bytes", edit(".astype(np.uint8)", ""),
            cause="The result is int8, and uint8 is asked for.",
            cure="Convert to uint8 first: `values.astype(np.uint8) & 0x0F`.", see="a result of dtype int8"),
        Mistake("rows instead of columns", edit("low_four[..., 0::2]", "low_four[0::2]").edit("low_four[..., 1::2]", "low_four[1::2]"),
            cause="Neighbours along the first axis were paired, as `[0::2]` takes them, and pairs are neighbours in a row.",
            cure='Slice the last axis: `[..., 0::2]`.', see='right for a single row, another shape for a matrix'),
        Mistake("three bits", edit("0x0F", "0x07"),
            cause='Only three bits of each value are kept, and a nibble has four; the sign is in the fourth.',
            cure='Mask with `0x0F`.', see='negative values wrong, positive ones right'),
        Mistake("upper bits in the high nibble", edit("(low_four[..., 1::2] << 4)", "(values.astype(np.uint8)[..., 1::2] & 0xF0)"),
            cause="The high nibble holds the upper four bits of the number at the odd index, and its lower four bits belong there.",
            cure='Shift the lower four bits up: `<< 4`.', see='the high nibble 0 or f'),
        Mistake("absolute values", edit("values.astype", "np.abs(values).astype"),
            cause="The numbers from -7 to -1 lost their sign, as with `abs`.",
            cure="Mask the int8 as it is: two's complement holds the sign.", see='1 where f is expected for -1'),
        Mistake("a wider dtype", edit("np.uint8", "np.int32"),
            cause='The values of the result are right, and its dtype takes four bytes for each.',
            cure='Convert to uint8 first.', see='a result of dtype int32'),
        Mistake("clipped to -7", edit("values.astype", "values.clip(-7, 7).astype"),
            cause='-8 fits into four bits, and a packer keeps every value.',
            cure='Do not clip here.', see='9 where 8 is expected for -8'),
        Mistake("flattened", edit("return low_four[..., 0::2] | (low_four[..., 1::2] << 4)", "return (low_four[..., 0::2] | (low_four[..., 1::2] << 4)).reshape(-1)"),
            cause="The rows were joined; the result keeps all axes, and the last one is half as long.",
            cure='Leave out the reshape.', see='the shape (8,) where (2, 4) is expected'),
        Mistake("shifted by eight", edit("values.astype", "(values + 8).astype"),
            cause="Each nibble is the value + 8, as in real GGUF's Q4_0; this format keeps two's complement.",
            cure="Mask with `& 0x0F` and add nothing.", see="`0x88` where zeros are packed"),
        Mistake("sign and magnitude",
            edit("values.astype(np.uint8) & 0x0F", "((values < 0) * 8 + (np.abs(values) & 7)).astype(np.uint8)"),
            cause="From -7 to -1 the top bit is the sign and the other three hold the absolute value; the format wants two's complement: -1 is `1111`.",
            cure="Mask the int8 with `& 0x0F`, which is two's complement already.",
            see="`9` where `f` is expected for -1"),
        Mistake("halves instead of pairs",
            edit("0::2", ": values.shape[-1] // 2").edit("1::2", "values.shape[-1] // 2 :"),
            cause="The first half of the row is in the low nibbles, the second half in the high ones, much as in a block of real GGUF's Q4_0.",
            cure="Pair neighbours: indices 0 and 1 share the first byte.",
            see="the first row right for two values and wrong for eight"),
    ),
)
