"""The second of two weights makes up for the first."""

from fractions import Fraction

import numpy as np

from ...lab import Exercise, Mistake, edit


def second_weight(h, first):
    """How the second of two weights should change once the change of the
    first is fixed, and the error that is left.

    h: (2, 2) float64, symmetric and positive definite; first: float, the
        change of the first weight
    ->   (second, error): two floats; second is the change of the second
         weight for which d @ h @ d, with d = [first, second], is smallest,
         and error is that smallest number; both right to 1e-9
    """
    second = -h[0, 1] / h[1, 1] * first
    error = (h[0, 0] - h[0, 1] ** 2 / h[1, 1]) * first**2
    return second, error


def oracle(h, first):
    """The vertex of a parabola through three points, in exact fractions."""
    (p, q), (_, r) = [[Fraction(x) for x in row] for row in h.tolist()]
    a = Fraction(first)

    def error(b):
        return p * a * a + 2 * q * a * b + r * b * b

    low, mid, high = error(Fraction(-1)), error(Fraction(0)), error(Fraction(1))
    second = (low - high) / (2 * (low - 2 * mid + high))
    return np.float64(second), np.float64(error(second))


def cases(random):
    """Numbers that can be worked by hand, weights that have nothing to do with each other, no change, then random ones."""
    made = [
        ([[2.0, 1.0], [1.0, 2.0]], 1.0),
        ([[3.0, 1.0], [1.0, 4.0]], 2.0),
        ([[5.0, -2.0], [-2.0, 1.0]], 3.0),
        ([[2.0, 0.0], [0.0, 3.0]], -0.5),
        ([[3.0, 2.0], [2.0, 4.0]], -2.0),
        ([[2.0, 1.0], [1.0, 2.0]], 0.0),  # nothing to make up for
    ]
    for _ in range(3):
        x = random.normal(0, [1, 3], (9, 2))
        made.append(((x.T @ x / 9).tolist(), float(random.normal())))
    return [(np.array(h), first) for h, first in made]


EXERCISE = Exercise(
    goal="Complete the square: find the change of the second weight that leaves the smallest error, and that error.",
    reference=second_weight, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-9,
    hints=(
        "Only b can still be chosen. Write the error as h11 (b + …)² and a rest without b: the square is never below 0, so the best b makes it 0.",
        "`h[0, 1]` is the entry in row 0 and column 1. Half of the factor of b, divided by the factor of b², goes into the brackets; its square times h11 is what the rest loses.",
    ),
    why="that is GPTQ for two weights: the second makes up for the first as well as it can.",
    mistakes=(
        Mistake("the same direction", edit("-h[0, 1] / h[1, 1] * first", "h[0, 1] / h[1, 1] * first"),
            cause="The second weight moves by the right amount the wrong way, which adds to the error of the first.",
            cure="The bracket is 0 where b is minus what stands beside it.", see="the error right, second with the wrong sign"),
        Mistake("twice as far", edit("-h[0, 1] / h[1, 1] * first", "-2 * h[0, 1] / h[1, 1] * first"),
            cause="The second weight moves twice as far as is best.",
            cure="Only half of the factor of b goes into the brackets.", see="the error right, second too large by a factor of 2"),
        Mistake("half as far", edit("-h[0, 1] / h[1, 1] * first", "-h[0, 1] / (2 * h[1, 1]) * first"),
            cause="The second weight moves half as far as is best.",
            cure="h01 is in the matrix twice, so the factor of b is 2 × h01 × a.", see="the error right, second too small by a factor of 2"),
        Mistake("divided by the first weight's entry", edit("-h[0, 1] / h[1, 1] * first", "-h[0, 1] / h[0, 0] * first"),
            cause="The change was divided by h00, which belongs to the first weight.",
            cure="Divide by the factor of b².", see="right where both entries of the diagonal are equal"),
        Mistake("the error of the first weight alone", edit("(h[0, 0] - h[0, 1] ** 2 / h[1, 1])", "h[0, 0]"),
            cause="This is the error if the second weight stays where it is.",
            cure="Take off what the square needs.", see="second right, error too large"),
        Mistake("the error as it would be with a plus", edit("(h[0, 0] - h[0, 1]", "(h[0, 0] + h[0, 1]"),
            cause="The error is larger than that of the first weight alone, although the second makes up for some of it.",
            cure="What the square adds must be taken off the rest.", see="second right, error too large"),
        Mistake("the error for a change of 1", edit(" * first**2", ""),
            cause="The error does not depend on how far the first weight moved.",
            cure="Multiply by the square of its change.", see="right where first is 1"),
        Mistake("the error in proportion to the change", edit("first**2", "first"),
            cause="The error was multiplied by the change once; it grows with the square of it.",
            cure="Square the change.", see="right where first is 1"),
    ),
)
