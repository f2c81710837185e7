"""Two 4-bit integers in a byte."""

import numpy as np

from ...lab import Exercise, Mistake, edit, omit


def unpack_int4(packed):
    """Unpack signed 4-bit integers, two from each byte.

    packed: (..., n) uint8   ->   (..., 2 n) int8 in [-8, 7]; the low nibble is the even index
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
    """A few bytes that can be read by eye, every nibble, then random bytes."""
    small = [[0x21], [0x70], [0x3F], [0x8F], [0x00], [0x88], [0x10, 0x32, 0x54, 0x76], [0xEF, 0xCD]]
    made = [(np.array(row, np.uint8),) for row in small] + [(np.arange(16, dtype=np.uint8).reshape(2, 8) * 17,)]
    return [*made, (random.integers(0, 256, (4, 32)).astype(np.uint8),)]


EXERCISE = Exercise(
    goal="Take two signed 4-bit integers out of each byte, the low nibble first, and give them their signs back.",
    reference=unpack_int4, oracle=oracle, cases=cases, minutes=6, difficulty="core",
    hints=(
        "`packed & 0x0F` is the low nibble and `packed >> 4` the high one, both from 0 to 15. Convert to int8, and subtract 16 where the nibble is 8 or more.",
        "Make an empty int8 array twice as wide, and fill `out[..., 0::2]` with the low nibbles and `out[..., 1::2]` with the high ones; `np.where(n >= 8, n - 16, n)` restores a sign.",
    ),
    why="a sign that is lost here turns every negative weight into a large positive one, and nothing complains.",
    mistakes=(
        Mistake("sign not restored", omit("values[values >= 8]"),
            cause="A nibble holds 0 to 15 as it stands, and in two's complement 8 to 15 mean -8 to -1.",
            cure="Subtract 16 where the nibble is 8 or more.", see="15 where -1 is expected"),
        Mistake("nibbles swapped", edit("0::2", "1::2").edit("1::2] = packed >> 4", "0::2] = packed >> 4"),
            cause="The high nibble went to the even index.",
            cure="Put the low nibble at the even indices.", see="each pair in the wrong order"),
        Mistake("shifted by eight", edit("values[values >= 8] -= 16", "values -= 8"),
            cause="Subtracting 8 is how real GGUF's Q4_0 reads a nibble; this format keeps two's complement.",
            cure="Subtract 16, and only where the nibble is 8 or more.", see="-8 where 0 is expected"),
        Mistake("halves instead of pairs", edit("0::2", ": packed.shape[-1]").edit("1::2", "packed.shape[-1] :"),
            cause="All low nibbles came first and then all high ones, as in the blocks of real GGUF.",
            cure="Let them alternate: the two nibbles of a byte are neighbours.",
            see="right for one byte, wrong for four"),
        Mistake("eight stays positive", edit(">= 8", "> 8"),
            cause="You compare with `> 8`, and the nibble 8 itself means -8.",
            cure="Compare with `>= 8`.", see="8 where -8 is expected, all else right"),
        Mistake("subtracted as unsigned", edit("np.int8", "np.uint8").edit("-= 16", "-= np.uint8(16)"),
            cause="In uint8 there is no -1, and 15 - 16 wraps around to 255.",
            cure="Convert the nibbles to int8 before you subtract.",
            see="a result of dtype uint8, with 255 where -1 belongs"),
        Mistake("only the high sign restored",
            edit("packed >> 4", "packed.view(np.int8) >> 4").edit("    values[values >= 8] -= 16\n", ""),
            cause="Shifting a signed byte right brings the sign of the high nibble back, and the low one never had its own.",
            cure="Treat the low nibble the same way: subtract 16 where it is 8 or more.",
            see="odd indices right, and even ones never negative"),
        Mistake("sign and magnitude",
            edit("values[values >= 8] -= 16", "values[values >= 8] = 8 - values[values >= 8]"),
            cause="You took the top bit for a minus sign and the other three for the number, and the format has two's complement: `1111` is -1.",
            cure="Subtract 16 where the nibble is 8 or more.", see="-7 where -1 is expected"),
    ),
)
