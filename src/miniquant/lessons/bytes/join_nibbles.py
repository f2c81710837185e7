"""Two small numbers in one byte."""

from ...lab import Exercise, Mistake, body, edit


def join_nibbles(low, high):
    """Two signed integers of four bits in one byte.

    low, high: integers (int) from -8 to 7
    ->   an integer from 0 to 255: low in bits 0 to 3, high in bits 4 to 7,
         both in two's complement
    """
    return (low & 0x0F) | ((high & 0x0F) << 4)


def oracle(low, high):
    """As two hexadecimal digits; a negative number has 16 added."""
    digits = "0123456789abcdef"
    return int(digits[high % 16] + digits[low % 16], 16)


def cases(random):
    """Positive, negative, both ends, zeros, then random pairs."""
    made = [(1, 2), (7, 0), (0, 7), (-1, 0), (0, -1), (-8, 7), (7, -8), (-1, -1), (0, 0), (-8, -8), (5, -3), (-3, 5)]
    return [*made, *map(tuple, random.integers(-8, 8, (6, 2)).tolist())]


def quantities(low, high):
    """The two nibbles, and the signs of the numbers."""
    return {
        "the low nibble": low % 16,
        "the high nibble": high % 16,
        "the size of `low`": abs(low),
        "the size of `high`": abs(high),
        "`low` or `high` is negative": min(low, high) < 0,
        "`low` and `high` are both negative": max(low, high) < 0,
        "`low` is -8": low == -8,
        "`high` is -8": high == -8,
        "`low` or `high` is -8": -8 in (low, high),
        "`low` or `high` is 0": 0 in (low, high),
        "`low` and `high` differ": low != high,
        "`low` or `high` is negative and not -8": any(-8 < n < 0 for n in (low, high)),
        "`low` is negative and not -8": -8 < low < 0,
        "`high` is negative and not -8": -8 < high < 0,
    }


EXERCISE = Exercise(
    goal="Store two integers from -8 to 7 in one byte.",
    reference=join_nibbles, oracle=oracle, cases=cases, minutes=4, difficulty="core", quantities=quantities,
    hints=(
        "Cut each number to four bits first: a negative one has ones in all higher bits. Then move one of the two up.",
        "`& 0x0F` keeps four bits, `<<` moves bits up, and `|` joins two numbers that share no bit.",
    ),
    why="four-bit weights are stored like this, two in each byte.",
    mistakes=(
        Mistake("nibbles swapped", edit("(low & 0x0F) | ((high & 0x0F) << 4)", "(high & 0x0F) | ((low & 0x0F) << 4)"),
            cause="The first number is in the high nibble and the second in the low one.",
            cure="Move `high` up by four bits, and leave `low` where it is.", see="18 where 33 is expected"),
        Mistake("the low one not cut", edit("(low & 0x0F)", "low"),
            cause="Where `low` is negative, so is the result: a negative number has ones in all higher bits, and they cover the high nibble.",
            cure="Cut `low` to four bits with `& 0x0F`.", see="-1 where 15 is expected"),
        Mistake("negative where `high` is", edit("((high & 0x0F) << 4)", "(high << 4)"),
            cause="Where `high` is negative, so is the result, and a byte is a number from 0 to 255.",
            cure="Cut `high` to four bits with `& 0x0F` before you move it.", see="-16 where 240 is expected"),
        Mistake("added, not cut", edit("(low & 0x0F) | ((high & 0x0F) << 4)", "low + 16 * high"),
            cause="These are the values of low + 16 * high: with negative numbers the sum borrows from the other nibble, or leaves the byte.",
            cure="Cut both to four bits with `& 0x0F`, then join them with `|`.", see="-1 where 15 is expected, and 111 where 127 is"),
        Mistake("the sign dropped", edit("(low & 0x0F) | ((high & 0x0F) << 4)", "abs(low) | (abs(high) << 4)"),
            cause="The sign is gone: -1 and 1 give the same.",
            cure="Cut to four bits with `& 0x0F`: -1 becomes 15.", see="1 where 15 is expected"),
        Mistake("eight added", edit("(low & 0x0F) | ((high & 0x0F) << 4)", "(low + 8) | ((high + 8) << 4)"),
            cause="Both numbers come out 8 larger. Some formats do so, but this is not two's complement.",
            cure="Cut to four bits with `& 0x0F`.", see="169 where 33 is expected"),
        Mistake("three bits kept", edit("low & 0x0F", "low & 0x07").edit("high & 0x0F", "high & 0x07"),
            cause="Each nibble has its lowest three bits only; the fourth, with the sign, is 0.",
            cure="Four ones are 0x0F.", see="7 where 15 is expected"),
        Mistake("not moved", edit("((high & 0x0F) << 4)", "(high & 0x0F)"),
            cause="Both numbers are in the same four bits.",
            cure="Move `high` up by four bits with `<< 4`.", see="3 where 33 is expected"),
        Mistake("moved by a byte", edit("<< 4", "<< 8"),
            cause="`high` stands eight bits up, and a nibble has four.",
            cure="Use `<< 4`.", see="513 where 33 is expected"),
        Mistake("joined with &", edit(") | (", ") & ("),
            cause="The result is 0 for every pair, as with `&`, which keeps only the bits that both have; the two nibbles have none in common.",
            cure="Join them with `|`.", see="0 for every pair"),
        Mistake("returned as bytes", body("return bytes([(low & 0x0F) | ((high & 0x0F) << 4)])"),
            cause="The byte is right, but the exercise asks for an integer.",
            cure="Return the number itself.", see="bytes where an integer is expected"),
        Mistake("the whole cut, the low one not", edit("(low & 0x0F) | ((high & 0x0F) << 4)", "(low | (high << 4)) & 0xFF"),
            cause="Where `low` is negative, the high nibble is all ones: a negative number has ones in all higher bits.",
            cure='Cut `low` to four bits first.', see='255 where 15 is expected'),
        Mistake("borrowed from the high nibble", edit("(low & 0x0F) | ((high & 0x0F) << 4)", "(low + (high << 4)) % 256"),
            cause="Where `low` is negative, 1 was taken from the high nibble, as in a sum; 0 becomes 15 there.",
            cure='Cut `low` to four bits first, then join.', see='255 where 15 is expected, and 239 where 255 is'),
        Mistake("the mask shifted, not the number", edit("((high & 0x0F) << 4)", "(high & 0x0F << 4)"),
            cause="The high nibble is made of bits 4 to 7 of `high`; the number is in its bits 0 to 3.",
            cure='Put parentheses around `high & 0x0F`.', see='1 where 33 is expected'),
        Mistake("the wrong half kept", edit("high & 0x0F", "high & 0xF0"),
            cause="Bits 4 to 7 of `high` were moved up, and the number is in its bits 0 to 3.",
            cure='Keep bits 0 to 3, then move them up.', see='1 where 33 is expected, and more than a byte for a negative number'),
        Mistake("as text", edit("(low & 0x0F) | ((high & 0x0F) << 4)", "hex((low & 0x0F) | ((high & 0x0F) << 4))"),
            cause='The number is right, but as text.',
            cure='Return the number itself.', see="'0x21' where 33 is expected"),
        Mistake("two numbers", edit("(low & 0x0F) | ((high & 0x0F) << 4)", "low & 0x0F, high & 0x0F"),
            cause='Both nibbles are right, but they are not in one byte yet.',
            cure='Move `high` up by four bits and join them with `|`.', see='a tuple where a number is expected'),
        Mistake("negative numbers as 0", edit("(low & 0x0F) | ((high & 0x0F) << 4)", "max(0, low) | (max(0, high) << 4)"),
            cause='Negative numbers were set to 0.',
            cure='Cut to four bits with `& 0x0F`: -1 becomes 15.', see='0 where 15 is expected'),
    ),
)
