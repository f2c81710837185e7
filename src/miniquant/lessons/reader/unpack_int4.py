"""Two 4-bit integers in a byte."""

import numpy as np

from ...lab import Exercise, Mistake, edit, omit


def unpack_int4(packed):
    """Unpack signed 4-bit integers, two from each byte.

    packed: (..., n) uint8, not empty
    ->   (..., 2 n) int8 in [-8, 7]: the low nibble of byte i is index 2 i,
         its high nibble is index 2 i + 1; a nibble is in two's complement,
         so 8 to 15 mean -8 to -1
    """
    values = np.empty((*packed.shape[:-1], 2 * packed.shape[-1]), np.int8)
    values[..., 0::2] = packed & 0x0F
    values[..., 1::2] = packed >> 4
    values[values >= 8] -= 16
    return values


def oracle(packed):
    """One hexadecimal digit at a time, looked up in a table."""
    table = dict(zip("0123456789abcdef", [0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1]))
    out = []
    for byte in packed.reshape(-1).tolist():
        high, low = f"{byte:02x}"
        out += [table[low], table[high]]
    return np.array(out, np.int8).reshape(*packed.shape[:-1], -1)


def cases(random):
    """A few bytes that can be read by eye, every byte, three dims, one of them 1, then random bytes."""
    small = [[0x21], [0x70], [0x3F], [0x8F], [0x00], [0x88], [0x10, 0x32, 0x54, 0x76], [0xEF, 0xCD]]
    made = [(np.array(row, np.uint8),) for row in small] + [(np.arange(16, dtype=np.uint8).reshape(2, 8) * 17,)]
    made += [(np.arange(256, dtype=np.uint8),), (np.arange(24, dtype=np.uint8).reshape(2, 1, 12) * 11,)]
    return [*made, (random.integers(0, 256, (32, 4)).astype(np.uint8).T,)]


EXERCISE = Exercise(
    goal="Take two signed 4-bit integers out of each byte, the low nibble first, and give them their signs back.",
    reference=unpack_int4, oracle=oracle, cases=cases, minutes=6, difficulty="core",
    hints=(
        "A mask gives the low nibble, a shift the high one, both from 0 to 15. Then restore the sign, in a dtype that has negative numbers.",
        "Make an int8 array that is twice as wide, and assign to every second index of its last axis: a slice with a step of 2 can stand on the left of `=`, too. A condition such as `a >= 8` can be an index.",
    ),
    why="a sign that is lost here turns every negative weight into a large positive one, and no error is raised.",
    mistakes=(
        Mistake("sign not restored", omit("values[values >= 8]"),
            cause="A nibble without a sign is 0 to 15; in two's complement 8 to 15 mean -8 to -1.",
            cure="Subtract 16 where the nibble is 8 or more.", see="15 where -1 is expected"),
        Mistake("nibbles swapped", edit("0::2", "1::2").edit("1::2] = packed >> 4", "0::2] = packed >> 4"),
            cause="The high nibble is at the even index.",
            cure="Put the low nibble at the even indices.", see="each pair in the wrong order"),
        Mistake("shifted by eight", edit("values[values >= 8] -= 16", "values -= 8"),
            cause="Every value is the nibble - 8, as in real GGUF's Q4_0; this format keeps two's complement.",
            cure="Subtract 16, and only where the nibble is 8 or more.", see="-8 where 0 is expected"),
        Mistake("halves instead of pairs", edit("0::2", ": packed.shape[-1]").edit("1::2", "packed.shape[-1] :"),
            cause="In each row all low nibbles came first and then all high ones, as in a block of real GGUF's Q4_0.",
            cure="Let them alternate: the two nibbles of a byte are neighbours.",
            see="right for one byte, wrong for four"),
        Mistake("eight stays positive", edit(">= 8", "> 8"),
            cause="The nibble 8 came out positive, and it means -8.",
            cure="Compare with `>= 8`.", see="8 where -8 is expected, all else right"),
        Mistake("left in uint8", edit("np.int8", "np.uint8").edit("-= 16", "-= np.uint8(16)"),
            cause="The result is uint8, in which there is no -1: it came out as 255.",
            cure="Convert the nibbles to int8 before you subtract.",
            see="a result of dtype uint8, with 255 where -1 belongs"),
        Mistake("only the high sign restored",
            edit("packed >> 4", "packed.view(np.int8) >> 4").edit("    values[values >= 8] -= 16\n", ""),
            cause="The high nibble has its sign, and the low nibble has none.",
            cure="Treat the low nibble the same way: subtract 16 where it is 8 or more.",
            see="odd indices right, and even ones never negative"),
        Mistake("the top bit dropped", edit("-= 16", "-= 8"),
            cause="The nibble 15 means -1 and came out as 7, as if 8 were subtracted.",
            cure='Subtract 16.', see='7 where -1 is expected'),
        Mistake("high nibble not shifted", edit("packed >> 4", "packed & 0xF0"),
            cause="The bits of the high nibble are still in the upper half of the byte, as without a shift.",
            cure='Shift right by 4.', see='odd indices wrong'),
        Mistake("three bits", edit("0x0F", "0x07"),
            cause='Only three bits of the low nibble are kept, and a nibble has four.',
            cure='Mask with `0x0F`.', see='even indices never negative'),
        Mistake("shifted by three", edit(">> 4", ">> 3"),
            cause='The high nibble begins four bits higher.',
            cure='Shift right by 4.', see='odd indices wrong'),
        Mistake("subtracted the wrong way", edit("values[values >= 8] -= 16", "values[values >= 8] = 16 - values[values >= 8]"),
            cause="16 - nibble is positive; from 8 on the value is nibble - 16.",
            cure='Subtract 16 from the nibble.', see='1 where -1 is expected'),
        Mistake("negated", edit("values[values >= 8] -= 16", "values[values >= 8] *= -1"),
            cause='The nibble 15 means -1, not -15.',
            cure='Subtract 16.', see='-15 where -1 is expected'),
        Mistake("a wider dtype", edit("return values", "return values.astype(np.int32)"),
            cause='The values are right, and the docstring promises int8.',
            cure='Return int8.', see='a result of dtype int32'),
        Mistake("flattened", edit("return values", "return values.reshape(-1)"),
            cause="The rows were joined; the result must keep all axes.",
            cure='Leave out the reshape.', see='the shape (16,) where (2, 8) is expected'),
        Mistake("clipped to -7", edit("return values", "return values.clip(-7, 7)"),
            cause='This writer never makes -8, but a file may hold it, and a reader takes it.',
            cure='Do not clip.', see='-7 where -8 is expected'),
        Mistake("sign and magnitude",
            edit("values[values >= 8] -= 16", "values[values >= 8] = 8 - values[values >= 8]"),
            cause="The top bit was taken for a minus sign and the other three for the number, and the format has two's complement: `1111` is -1.",
            cure="Subtract 16 where the nibble is 8 or more.", see="-7 where -1 is expected"),
    ),
)
