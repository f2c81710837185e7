"""How many times smaller a file is."""

from fractions import Fraction

from ...lab import Exercise, Mistake, edit
from ..shared import observed


def saving_ratio(baseline, size):
    """How many times smaller a file is than its baseline.

    baseline, size: bytes   ->   a float, not rounded; 8.0 if the file fits into the baseline eight times
    """
    return baseline / size


def oracle(baseline, size):
    """An exact fraction, rounded once."""
    return float(Fraction(baseline, size))


def cases(random):
    """Whole numbers of times, a fraction, a file that is larger, then random sizes."""
    drawn = tuple(int(n) for n in random.integers(10**6, 10**8, 2))
    return [(800, 100), (1000, 400), (100, 200), (14_000_000, 3_000_000), drawn]


EXERCISE = Exercise(
    goal="Return how many times smaller a file is than its baseline, as one number without a unit.",
    reference=saving_ratio, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up", observe=observed.values,
    tolerance=1e-9,
    hints=(
        "A file of 100 bytes is 8 times smaller than one of 800.",
        "Divide the baseline by the size, both in bytes, and round only where you print.",
    ),
    why="this is the first number that anyone asks for, and people have quoted it upside down before you.",
    mistakes=(
        Mistake("upside down", edit("baseline / size", "size / baseline"),
            cause="The size was divided by the baseline, so a better file gives a smaller number.",
            cure="Divide the baseline by the size.", see="a number below 1 where the file is smaller"),
        Mistake("the part that was saved", edit("baseline / size", "1 - size / baseline"),
            cause="This is how much of the baseline is gone, which comes close to 1 for every good file.",
            cure="Return how many times the file fits into the baseline.", see="`0.875` where `8.0` is expected"),
        Mistake("rounded", edit("baseline / size", "round(baseline / size, 1)"),
            cause="The ratio was rounded, and whoever computes with it further carries the error on.",
            cure="Return it as it is, and round only where you print.", see="`4.7` where `4.666…` is expected"),
        Mistake("percent saved", edit("baseline / size", "100 * (1 - size / baseline)"),
            cause="This is how much of the baseline is gone, in percent, where 8 times and 9 times look almost alike.",
            cure="Divide the baseline by the size.", see="`87.5` where `8.0` is expected"),
        Mistake("whole times only", edit("baseline / size", "baseline // size"),
            cause="`//` throws the fraction away, and 5.9 times becomes 5.",
            cure="Divide with `/`.", see="whole numbers only"),
        Mistake("bytes saved", edit("baseline / size", "baseline - size"),
            cause="A difference has a unit, and depends on how large the model is.",
            cure="Return a ratio.", see="`700` where `8.0` is expected"),
        Mistake("MiB against MB", edit("baseline / size", "(baseline / 2**20) / (size / 10**6)"),
            cause="One size was turned into MiB of 1,048,576 bytes and the other into MB of 1,000,000.",
            cure="Divide bytes by bytes; units belong where you print.", see="an answer that is about 5 % too small"),
        Mistake("one too few", edit("baseline / size", "baseline / size - 1"),
            cause="This is how much larger the baseline is, in parts of the file.",
            cure="Leave out the `- 1`: a file of the same size is 1 time the baseline.",
            see="`7.0` where `8.0` is expected"),
    ),
)
