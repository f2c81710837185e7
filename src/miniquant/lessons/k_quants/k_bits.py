"""What a super-block costs."""

from ...lab import Exercise, Mistake, edit, omit
from ..shared import observed


def k_bits(q_bits, scale_bits, sub_block, mins, floats):
    """Bits a weight, scales included.

    q_bits, scale_bits: the bits of one integer and of one scale; sub_block:
        how many weights share a scale, a divisor of 256
    mins: bool, whether each sub-block has a minimum too; floats: how many
        float16 numbers a super-block has
    ->   float, for a super-block of 256 weights
    """
    sub_blocks = 256 // sub_block
    bits = 256 * q_bits + sub_blocks * scale_bits + 16 * floats
    if mins:
        bits += sub_blocks * scale_bits
    return bits / 256


def oracle(q_bits, scale_bits, sub_block, mins, floats):
    """Bit by bit: every weight, every sub-block, every float."""
    bits = sum(q_bits for _ in range(256))
    for _ in range(0, 256, sub_block):
        bits += scale_bits
        if mins:
            bits += scale_bits
    for _ in range(floats):
        bits += 16
    return bits / 256


def cases(random):
    """The five K-quants, one sub-block in all, no floats, a scale for each weight, then random designs."""
    real = [(4, 6, 32, True, 2), (6, 8, 16, False, 1), (5, 6, 32, True, 2), (2, 4, 16, True, 2), (3, 6, 16, False, 1)]
    real += [(4, 8, 256, True, 0), (1, 3, 256, False, 3), (4, 8, 1, True, 3)]
    drawn = [
        (
            int(random.integers(1, 9)),
            int(random.integers(3, 9)),
            int(2 ** random.integers(3, 8)),
            bool(i % 2),
            1 + i % 3,
        )
        for i in range(6)
    ]
    return [*real, *drawn]


EXERCISE = Exercise(
    goal="Count the bits that a weight of a super-block takes, its share of the scales included.",
    reference=k_bits, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up", observe=observed.values,
    hints=(
        "Count the bits of the whole super-block first. Some parts are there once for each weight, some once for each sub-block, some once in all.",
        "`256 // sub_block` is the number of sub-blocks, and a float16 has 16 bits. `mins` is a bool: an `if` asks it. Divide at the end.",
    ),
    why="a super-block spends its bits twice: on the weights, and on 6-bit scales that would cost 16 bits in Q4_0.",
    mistakes=(
        Mistake("only the integers", edit("return bits / 256", "return float(q_bits)"),
            cause="The scales take room too.",
            cure="Add the bits of the scales, of the mins and of the floats.", see="4 for Q4_K"),
        Mistake("the floats forgotten", edit(" + 16 * floats", ""),
            cause="The float16 numbers at the head of the super-block are missing.",
            cure="Add 16 bits for each of them, shared by 256 weights.", see="4.375 for Q4_K"),
        Mistake("the mins forgotten", omit("if mins"),
            cause="Where there are mins, every sub-block has one beside its scale.",
            cure="Count `scale_bits` twice if `mins` is true.", see="right for Q6_K, too few for Q4_K"),
        Mistake("float32 at the head", edit("16 * floats", "32 * floats"),
            cause="d and dmin were counted with 32 bits, and they are float16.",
            cure="Count 16 bits for each.", see="4.625 for Q4_K"),
        Mistake("one scale for the super-block", edit("sub_blocks = 256 // sub_block", "sub_blocks = 1"),
            cause="The small scale was counted once, and every sub-block has its own.",
            cure="Multiply its bits by `256 // sub_block`.", see="a little more than 4.1 for Q4_K"),
        Mistake("a scale for every weight", edit("256 // sub_block", "256"),
            cause="The scale's bits were added to every weight, and a sub-block of weights shares them.",
            cure="Divide them by `sub_block`.", see="more than 16 for Q4_K"),
        Mistake("bytes instead of bits", edit("bits / 256", "bits / 256 / 8"),
            cause="That is how many bytes a weight takes.",
            cure="Multiply by 8.", see="less than 1"),
        Mistake("bits of the whole super-block", edit("bits / 256", "float(bits)"),
            cause="That is what all 256 weights take together.",
            cure="Divide by 256.", see="1152 for Q4_K"),
    ),
)
