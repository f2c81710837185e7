"""The most that a format can save."""

from fractions import Fraction

from ...lab import Exercise, Mistake, edit
from ..shared import observed


def ceiling_ratio(bits, group_size):
    """How many times smaller than float32 a format can be at best.

    bits: of one value; group_size: how many weights share one float16 scale   ->   a float
    """
    return 32 / (bits + 16 / group_size)


def oracle(bits, group_size):
    """An exact fraction for a whole group, rounded once."""
    return float(Fraction(32 * group_size, bits * group_size + 16))


def cases(random):
    """Formats of the course and others, then a random one."""
    drawn = (int(random.integers(2, 9)), int(random.integers(1, 9)) * 32)
    return [(4, 64), (4, 16), (8, 256), (2, 16), (3, 32), drawn]


EXERCISE = Exercise(
    goal="Return the largest saving against float32 that a format of some bits and one float16 scale a group can give.",
    reference=ceiling_ratio, oracle=oracle, cases=cases, minutes=6, difficulty="core", observe=observed.values,
    tolerance=1e-9,
    hints=(
        "One weight takes its own bits, and its share of the group's scale.",
        "A scale of 16 bits is shared by `group_size` weights, so a weight takes `bits + 16 / group_size` bits; float32 takes 32.",
    ),
    why="you now know which promises no file of this format can keep, however large the model is.",
    mistakes=(
        Mistake("scales forgotten", edit(" + 16 / group_size", ""),
            cause="This is the clean 8 of the assignment's question: every weight must also pay its part of a scale.",
            cure="Add `16 / group_size` bits to each weight.", see="`8.0` for 4 bits, whatever the group size"),
        Mistake("a whole scale for each weight", edit("16 / group_size", "16"),
            cause="The scale was not shared out among the weights of its group.",
            cure="Divide its 16 bits by `group_size`.", see="`1.6` for 4 bits"),
        Mistake("scales in float32", edit("16 / group_size", "32 / group_size"),
            cause="A scale was counted with 32 bits.",
            cure="This format stores scales as float16: 16 bits.", see="`7.11` where `7.53` is expected"),
        Mistake("bytes added to bits", edit("16 / group_size", "2 / group_size"),
            cause="The scale's two bytes were added to a number of bits.",
            cure="Count the scale in bits as well: 16.", see="`7.94` where `7.53` is expected"),
        Mistake("against float16", edit("32 /", "16 /"),
            cause="The saving was measured against float16, where the assignment's 4 times comes from.",
            cure="Compare with float32: 32 bits.", see="half the expected answer"),
        Mistake("bits, not a ratio", edit("32 / (bits + 16 / group_size)", "bits + 16 / group_size"),
            cause="This is what one weight takes.",
            cure="Divide the 32 bits of float32 by it.", see="`4.25` where `7.53` is expected"),
    ),
)
