"""What one weight costs, with its share of the scale."""

from ...lab import Exercise, Mistake, edit


def bits_per_weight(bits, group_size):
    """The bits that one weight takes on average: those of its integer, and
    its share of its group's float16 scale.

    bits: of one integer; group_size: how many weights share one scale; both
        integers, 1 or more
    ->   a float, not rounded; a difference of up to 1e-9 is allowed, and
         an integer where the number is whole
    """
    return bits + 16 / group_size


def oracle(bits, group_size):
    """All the bits of a group, counted, over its weights."""
    total = sum([bits] * group_size) + len("0" * 16)
    return total / group_size


def cases(random):
    """Common formats, then random bits and sizes."""
    made = [(4, 64), (4, 16), (8, 256), (3, 4), (4, 1), (16, 48), (1, 5), (12, 10)]
    return [*made, *((int(random.integers(2, 9)), 32 * k) for k in (1, 3, 8))]


def quantities(bits, group_size):
    """What students take for the result, or for a part of it."""
    return {
        "`bits`": bits,
        "`group_size`": group_size,
        "16 / `group_size`": 16 / group_size,
        "`bits` / `group_size`": bits / group_size,
        "`bits` * `group_size`": bits * group_size,
        "(`bits` + 16) / `group_size`": (bits + 16) / group_size,
        "`group_size` / 16": group_size / 16,
        "`group_size` + 1": group_size + 1,
        "`group_size` - 1": max(group_size - 1, 0),
        "16": 16,
    }


EXERCISE = Exercise(
    goal="Count what one weight really costs: its own bits, and its share of its group's float16 scale.",
    reference=bits_per_weight, oracle=oracle, cases=cases, quantities=quantities, minutes=5, difficulty="warm-up", tolerance=1e-9,
    hints=(
        "A group takes `bits` bits for each of its weights, and one float16 in addition.",
        "Python's `/` keeps the fraction of a quotient, and `//` drops it. One weight pays its share of a scale that the whole group uses.",
    ),
    why="smaller groups are more exact and cost more bits. Now you know the price before you write a single byte.",
    mistakes=(
        Mistake("scale counted for every weight", edit("16 / group_size", "16.0"),
            cause="The scale is stored once a group, so the weights of a group share its 16 bits.",
            cure="Divide its 16 bits by `group_size`.", see="20.0 where 4.25 is expected"),
        Mistake("scale left out", edit("bits + 16 / group_size", "float(bits)"),
            cause="The integers are useless without their scale, so its bits count too.",
            cure="Add 16 / group_size.", see="exactly 4.0 for every group size"),
        Mistake("bytes mixed with bits", edit("16", "2"),
            cause="A float16 has 2 bytes, but this sum is in bits.",
            cure="Write 16, not 2.", see="4.03125 where 4.25 is expected"),
        Mistake("a float32 scale", edit("16", "32"),
            cause="This format stores its scales as float16.",
            cure="Write 16, not 32.", see="4.5 where 4.25 is expected"),
        Mistake("whole bits", edit("/", "//"),
            cause="The fraction is lost, and the share of a scale is often less than one bit.",
            cure="Divide with `/`, and return the fraction too: an average need not be a whole number.", see="4 where 4.25 is expected"),
        Mistake("bits of a whole group", edit("bits + 16 / group_size", "float(bits * group_size + 16)"),
            cause="That is what all weights of a group take together.",
            cure="Divide by `group_size`.", see="272.0 where 4.25 is expected"),
        Mistake("always four bits",
            edit("bits + 16 / group_size", "4 + 16 / group_size"),
            cause="The number of bits is an argument, and the results are always those of 4 bits.",
            cure="Write `bits`.",
            see="right for 4 bits, wrong for 8"),
        Mistake("always groups of 64",
            edit("group_size", "64"),
            cause="The size of a group is an argument, and the results are always those of groups of 64.",
            cure="Write `group_size`.",
            see="right for groups of 64, wrong for others"),
        Mistake("share upside down",
            edit("16 / group_size", "group_size / 16"),
            cause="group_size / 16 grows with the group. A weight's share of one scale gets smaller in a larger group.",
            cure="Divide 16 by `group_size`.",
            see="8.0 where 4.25 is expected"),
        Mistake("weight's own bits shared too",
            edit("bits + 16 / group_size", "(bits + 16) / group_size"),
            cause="The weight's own bits are divided by the size of the group as well.",
            cure="Only the 16 bits of the scale are shared.",
            see="0.3125 where 4.25 is expected"),
        Mistake("bits times share",
            edit("bits + 16", "bits * 16"),
            cause="A weight takes the bits of its integer and its share of the scale as well, so they add up.",
            cure="Write `+`.",
            see="1.0 where 4.25 is expected"),
    ),
)
