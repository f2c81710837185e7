"""How many products fit into an accumulator."""

from ...lab import Exercise, Mistake, edit


def widest_sum(bits, largest_x, largest_w):
    """How many products of two integers a signed integer can add up,
    whatever the integers are.

    bits: of the signed integer that holds the sum, its sign included;
        largest_x, largest_w: how large the absolute values of the integers
        can be, at least 1
    ->   int: the largest number of products whose sum is never larger than
         the largest integer of `bits`; 0 if one product can be larger
    """
    return (2 ** (bits - 1) - 1) // (largest_x * largest_w)


def oracle(bits, largest_x, largest_w):
    """Halve the interval in which the number must be."""
    top = sum(1 << place for place in range(bits - 1))
    low, high = 0, top + 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle * largest_x * largest_w <= top:
            low = middle
        else:
            high = middle
    return low


def cases(random):
    """Small integers that one can count, those of the lab, more bits than a processor has for huge integers, then random ones."""
    made = [(4, 1, 1), (8, 8, 2), (8, 7, 7), (16, 7, 7), (16, 127, 127), (32, 127, 127), (8, 127, 127), (64, 127, 7)]
    made += [(64, 3, 3), (100, 2**40 + 1, 2**31)]
    drawn = [(int(random.integers(8, 40)), *map(int, random.integers(1, 200, 2))) for _ in range(4)]
    return made + drawn


EXERCISE = Exercise(
    goal="Find how many products of two integers an accumulator can always add up.",
    reference=widest_sum, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up",
    hints=(
        "The worst case: every product is as large as it can be, and all have the same sign.",
        "A signed integer of b bits ends at 2 to the power of b - 1, less 1. `//` divides and drops the fraction.",
    ),
    why="32 bits are enough for every row of this model; 16 bits are not, and nothing would complain.",
    mistakes=(
        Mistake("as if unsigned", edit("2 ** (bits - 1) - 1", "2**bits - 1"),
            cause="The numbers are right for an accumulator without a sign.",
            cure="One bit is for the sign.", see="about twice what is expected"),
        Mistake("one more than the largest integer", edit("(2 ** (bits - 1) - 1)", "(2 ** (bits - 1))"),
            cause="The sum may reach 2 to the power of bits - 1, which is one more than the largest integer.",
            cure="Take off 1 before you divide.", see="right unless the last product fits exactly"),
        Mistake("the sum of the two sizes", edit("largest_x * largest_w", "largest_x + largest_w"),
            cause="The two sizes were added; a product is what is added up.",
            cure="Multiply them.", see="numbers that are too large"),
        Mistake("one product more", edit("(largest_x * largest_w)", "(largest_x * largest_w) + 1"),
            cause="With one product more the sum can be too large.",
            cure="Drop the fraction and add nothing.", see="one too many"),
        Mistake("with its fraction", edit("//", "/"),
            cause="The result is not a whole number of products.",
            cure="Drop the fraction.", see="a float"),
        Mistake("only the size of x", edit("(largest_x * largest_w)", "largest_x"),
            cause="The weights were left out.",
            cure="A product is at most the one size times the other.", see="right where largest_w is 1"),
    ),
)
