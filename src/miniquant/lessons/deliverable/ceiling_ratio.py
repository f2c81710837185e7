"""The most that a format can save."""

from fractions import Fraction

from ...lab import Exercise, Mistake, edit
from ..shared import observed


def ceiling_ratio(bits, group_size):
    """How many times smaller than float32 a format can be at best.

    bits: of one value; group_size: how many weights share one float16 scale
    ->   a float, not rounded

    At best: every weight is quantized, and the file has nothing but the
    values and their scales. Count in bits: a group may end inside a byte,
    and nothing is rounded up.
    """
    return 32 / (bits + 16 / group_size)


def oracle(bits, group_size):
    """An exact fraction for a whole group, rounded once."""
    return float(Fraction(32 * group_size, bits * group_size + 16))


def cases(random):
    """Formats of the course and others, then a random one."""
    drawn = (int(random.integers(2, 9)), int(random.integers(1, 9)) * 32)
    return [(4, 64), (4, 16), (8, 256), (2, 16), (3, 32), (1, 1), drawn, (8, 32), (4, 128), (32, 1), (5, 7), (2, 64)]


def quantities(bits, group_size):
    """What the ratio is made of."""
    return {
        "32 divided by `bits`": 32 / bits,
        "16 divided by `group_size`": 16 / group_size,
        "16 divided by `bits` and by `group_size`": 16 / (bits * group_size),
        "the bits of one weight with its part of the scale": bits + 16 / group_size,
        "the bits of a group with its scale": bits * group_size + 16,
        "the bits of a group without its scale": bits * group_size,
        "the bits of a group in float32": 32 * group_size,
        "`bits` and the 16 bits of a scale": bits + 16,
        "the 32 bits of float32 with their part of a scale": 32 + 16 / group_size,
    }


EXERCISE = Exercise(
    goal="Return the largest saving against float32 that a format of some bits and one float16 scale a group can give.",
    reference=ceiling_ratio, oracle=oracle, cases=cases, minutes=6, difficulty="core", observe=observed.values,
    tolerance=1e-9, quantities=quantities,
    hints=(
        "Ask first how many bits one weight really takes, its share of the group's scale included.",
        "A float16 has 16 bits, a float32 has 32; everything here is a sum and two divisions, all in bits.",
    ),
    why="you now know which promises no file of this format can keep, however large the model is.",
    mistakes=(
        Mistake("scales forgotten", edit(" + 16 / group_size", ""),
            cause="The result is that without scales: every weight must also pay its part of a scale.",
            cure="Add `16 / group_size` bits to each weight.", see="`8.0` for 4 bits, whatever the group size"),
        Mistake("a whole scale for each weight", edit("16 / group_size", "16"),
            cause="Every weight pays a whole scale in the result, not its part of one.",
            cure="Divide its 16 bits by `group_size`.", see="`1.6` for 4 bits"),
        Mistake("scales in float32", edit("16 / group_size", "32 / group_size"),
            cause="The result is that of a scale of 32 bits for each group.",
            cure="This format stores scales as float16: 16 bits.", see="`7.11` where `7.53` is expected"),
        Mistake("bytes added to bits", edit("16 / group_size", "2 / group_size"),
            cause="The result is that of a scale of 2 bits for each group; it takes two bytes, which are 16 bits.",
            cure="Count the scale in bits as well: 16.", see="`7.94` where `7.53` is expected"),
        Mistake("against float16", edit("32 /", "16 /"),
            cause="The result is half the right one: it is the saving against float16, where the assignment's 4 times comes from.",
            cure="Compare with float32: 32 bits.", see="half the expected answer"),
        Mistake("upside down", edit("32 / (bits + 16 / group_size)", "(bits + 16 / group_size) / 32"),
            cause="The result is 1 divided by the right one, so a better format gives a smaller number.",
            cure="Divide the 32 bits of float32 by what one weight takes.", see="`0.13` where `7.53` is expected"),
        Mistake("bits, not a ratio", edit("32 / (bits + 16 / group_size)", "bits + 16 / group_size"),
            cause="The result is the bits that one weight takes.",
            cure="Divide the 32 bits of float32 by it.", see="`4.25` where `7.53` is expected"),
    ),
)
