"""A sign in the top bit."""

from ...lab import Exercise, Mistake, body, edit


def from_twos_complement(number, n_bits):
    """The signed number that some bits stand for in two's complement.

    number: an int, the bits read without a sign, 0 to 2**n_bits - 1;
        n_bits: how many bits there are, 1 or more, also more than 64
    ->   an integer, from -2**(n_bits - 1) to 2**(n_bits - 1) - 1
    """
    if number >= 2 ** (n_bits - 1):
        return number - 2**n_bits
    return number


def oracle(number, n_bits):
    """Bit by bit: the top bit counts negative, the others positive."""
    top, *others = (int(bit) for bit in f"{number:0{n_bits}b}")
    return -top * 2 ** len(others) + sum(bit << place for place, bit in enumerate(reversed(others)))


def cases(random):
    """Four bits, all of them; the ends of 8, 16, 32 and 64 bits; odd widths; random numbers."""
    made = [(15, 4), (7, 4), (8, 4), (0, 4), (255, 8), (128, 8), (127, 8), (0xFF80, 16), (0x8000, 16)]
    made += [(n, 4) for n in range(1, 15) if n not in (7, 8)]
    made += [(2**32 - 2, 32), (2**31, 32), (2**31 - 1, 32), (2**64 - 1, 64), (2**63, 64), (2**63 + 1, 64), (2**63 - 1, 64)]
    made += [(0, 1), (1, 1), (33, 6), (31, 6), (3, 2), (200, 8), (200, 9), (15, 5), (2**71 + 3, 72)]
    return [*made, *((int(n), 16) for n in random.integers(0, 2**16, 4))]


def quantities(number, n_bits):
    """Numbers that a wrong formula may take, and which bits are set."""
    half = 2 ** (n_bits - 1)
    return {
        "2**n_bits": 2**n_bits,
        "2**(n_bits - 1)": half,
        "the number without its top bit": number % half,
        "the number with all bits flipped": 2**n_bits - 1 - number,
        "all bits are 1": number == 2**n_bits - 1,
        "only the top bit is 1": number == half,
        "the top bit is 1 and another one, too": number > half,
        "the number is one less than half the range": number == half - 1,
        "`n_bits` is not 4": n_bits != 4,
        "`n_bits` is not 8": n_bits != 8,
        "`n_bits` is less than 8": n_bits < 8,
        "`n_bits` is more than 8": n_bits > 8,
        "`n_bits` is a multiple of 8": n_bits % 8 == 0,
    }


EXERCISE = Exercise(
    goal="Turn bits that were read without a sign into the signed number that they stand for.",
    reference=from_twos_complement, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up", quantities=quantities,
    hints=(
        "The top bit is 1 in the upper half of the numbers. There, it counts negative and not positive.",
        "An `if` tells the upper half from the lower one. What must be subtracted in the upper half depends on `n_bits`.",
    ),
    why="quantized weights are signed integers of eight or four bits, and no type of numpy has four.",
    mistakes=(
        Mistake("never negative", edit("return number - 2**n_bits", "return number"),
            cause="Numbers of the upper half are returned as they are, but their top bit counts negative.",
            cure="Subtract 2**n_bits from them.", see="8 where -8 is expected, and 15 where -1 is"),
        Mistake("four bits built in", edit("2 ** (n_bits - 1)", "8").edit("2**n_bits", "16"),
            cause="The results are those for four bits, and there may be any number of bits.",
            cure="Compute both from `n_bits`.", see="four bits right, and eight bits wrong"),
        Mistake("eight bits built in", edit("2 ** (n_bits - 1)", "128").edit("2**n_bits", "256"),
            cause="The results are those for eight bits, and there may be any number of bits.",
            cure="Compute both from `n_bits`.", see="eight bits right, and four bits wrong"),
        Mistake("the first negative number left out", edit(">=", ">"),
            cause="The number 2**(n_bits - 1) has its top bit set, so it is negative, too.",
            cure="Use `>=`.", see="8 where -8 is expected"),
        Mistake("half the range subtracted", edit("number - 2**n_bits", "number - 2 ** (n_bits - 1)"),
            cause="In the upper half, 2**(n_bits - 1) is missing from what must be subtracted: the top bit is gone, and it counts negative.",
            cure="Subtract 2**n_bits.", see="0 where -8 is expected"),
        Mistake("sign and size", edit("number - 2**n_bits", "-(number - 2 ** (n_bits - 1))"),
            cause="These are the numbers if the top bit is a minus sign and the rest the size; two's complement counts otherwise.",
            cure="Subtract 2**n_bits from numbers of the upper half.", see="0 where -8 is expected, and -7 where -1 is"),
        Mistake("one's complement", edit("number - 2**n_bits", "number - (2**n_bits - 1)"),
            cause="Every negative number is one too large.",
            cure="Subtract 2**n_bits.", see="-7 where -8 is expected, and 0 where -1 is"),
        Mistake("an offset of half the range",
            edit("if number >= 2 ** (n_bits - 1):", "if True:").edit("2**n_bits", "2 ** (n_bits - 1)"),
            cause="Every result is half the range below the number. Some formats store signs like this, but it is not two's complement.",
            cure="Leave the lower half as it is, and subtract 2**n_bits in the upper half.", see="-1 where 7 is expected"),
        Mistake("the minus sign lost", edit("number - 2**n_bits", "2**n_bits - number"),
            cause="The size is right and the sign is missing.",
            cure="Subtract 2**n_bits from the number, not the other way round.", see="1 where -1 is expected"),
        Mistake("2**n_bits subtracted from all", edit("if number >= 2 ** (n_bits - 1):", "if True:"),
            cause="All results are 2**n_bits below the number, those of the lower half, too, which must stay as they are.",
            cure='Subtract only where the top bit is 1.', see='-9 where 7 is expected'),
        Mistake("a minus before it", edit("number - 2**n_bits", "-number"),
            cause="Where a negative number is expected, this is the number itself with a minus sign before it.",
            cure='Subtract 2**n_bits from numbers of the upper half.', see='-9 where -7 is expected'),
        Mistake("a float", edit("number - 2**n_bits", "float(number - 2**n_bits)"),
            cause="Negative results are floats; an int is asked for, and beyond 2**53 a float does not hold every whole number.",
            cure='Compute with integers.', see='-8.0 where -8 is expected'),
        Mistake("^ for a power", edit("2 ** (n_bits - 1)", "2 ^ (n_bits - 1)").edit("2**n_bits", "(2 ^ n_bits)"),
            cause="These are the results with `^` for a power; in Python `^` is an operation on bits, and a power is `**`.",
            cure='Write `**`.', see='1 where 7 is expected'),
        Mistake("bit 3 as the sign", body("""
                return number - 2**n_bits if number & 8 else number
            """),
            cause="Bit 3 decides the sign for every `n_bits`; it is the top bit of four bits only.",
            cure='Test bit n_bits - 1, or compare with 2**(n_bits - 1).', see='four bits right, and other widths wrong'),
        Mistake("every number but 0 taken as negative", edit("2 ** (n_bits - 1)", "1"),
            cause="2**n_bits is subtracted from every number but 0. A number of the lower half is written with zeros in front if it gets all its bits.",
            cure="Look at bit n_bits - 1, and not at the first digit that is 1.", see="-15 where 1 is expected"),
        Mistake("the lowest eight bits only", body("""
                import numpy as np
                return int(np.uint8(number % 256).view(np.int8))
            """),
            cause="The results are those of the lowest eight bits, and there may be any number of bits.",
            cure='Compute the border and the subtraction from `n_bits`.', see='eight bits right, and four bits wrong'),
    ),
)
