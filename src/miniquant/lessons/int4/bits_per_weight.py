"""What one weight costs, with its share of the scale."""

from ...lab import Exercise, Mistake, edit


def bits_per_weight(bits, group_size):
    """The bits that one weight takes, its share of a float16 scale included.

    bits: of one integer, group_size: the weights that share a scale   ->   a number, not always whole
    """
    return bits + 16 / group_size


def oracle(bits, group_size):
    """All the bits of a group, counted, over its weights."""
    total = sum([bits] * group_size) + len("0" * 16)
    return total / group_size


def cases(random):
    """Common formats, then random bits and sizes."""
    return [(4, 64), (4, 16), (8, 256), *((int(random.integers(2, 9)), 32 * k) for k in (1, 3, 8))]


EXERCISE = Exercise(
    goal="Count what one weight really costs: its own bits, and its share of its group's float16 scale.",
    reference=bits_per_weight, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up", tolerance=1e-9,
    hints=(
        "A group takes `bits` bits for each of its weights, and one float16 in addition.",
        "A float16 has 16 bits, shared by `group_size` weights.",
    ),
    why="smaller groups are more exact and cost more bits; this is the price, before you write a single byte.",
    mistakes=(
        Mistake("scale counted for every weight", edit("16 / group_size", "16.0"),
            cause="The scale is stored once a group, not once a weight.",
            cure="Divide its 16 bits by `group_size`.", see="20.0 where 4.25 is expected"),
        Mistake("scale left out", edit("bits + 16 / group_size", "float(bits)"),
            cause="The integers cannot be read without their scale, so its bits count too.",
            cure="Add 16 / group_size.", see="exactly 4.0, whatever the group"),
        Mistake("bytes mixed with bits", edit("16", "2"),
            cause="A float16 is 2 bytes, and this sum is in bits.",
            cure="Write 16, not 2.", see="4.03125 where 4.25 is expected"),
        Mistake("a float32 scale", edit("16", "32"),
            cause="This format stores its scales as float16.",
            cure="Write 16, not 32.", see="4.5 where 4.25 is expected"),
        Mistake("whole bits", edit("/", "//"),
            cause="`//` rounds the share of the scale down, for most groups to nothing.",
            cure="Divide with `/`: an average may be a fraction.", see="4 where 4.25 is expected"),
        Mistake("bits of a whole group", edit("bits + 16 / group_size", "float(bits * group_size + 16)"),
            cause="That is what a group takes, all weights together.",
            cure="Divide by `group_size`.", see="272.0 where 4.25 is expected"),
    ),
)
