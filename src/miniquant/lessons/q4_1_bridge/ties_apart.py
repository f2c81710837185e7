"""Where equations (4) and (5) part."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import nearest32


def ties_apart(scale, zero_point):
    """The weights in the middle between two levels at which equations (4) and (5) give different integers.

    scale: float, zero_point: int from 0 to 15   ->   (n,) float32, rising; empty where there are none
    """
    steps = np.arange(15) + 0.5 - zero_point  # (15,)
    apart = np.rint(steps) + zero_point != np.rint(steps + zero_point)
    return (steps[apart] * scale).astype(np.float32)


def oracle(scale, zero_point):
    """One midpoint at a time; Python's round is half to even as well."""
    found = []
    for k in range(15):
        step = k + 0.5 - zero_point
        if round(step) + zero_point != round(k + 0.5):
            found.append(nearest32(step * scale))
    return np.array(found, np.float32)


def cases(random):
    """Even and odd zero points, several scales."""
    return [(1.0, 0), (1.0, 1), (1.0, 4), (0.5, 7), (0.25, 8), (2.0, 15), (0.125, 3)]


EXERCISE = Exercise(
    goal="Find the weights between two levels, exactly in the middle, at which equations (4) and (5) part.",
    reference=ties_apart, oracle=oracle, cases=cases, minutes=6, difficulty="stretch",
    hints=(
        "Work in steps of the scale. The middles lie half a step above each integer but the last, and the zero point says where zero is.",
        "`np.arange(15)` are the integers that have a middle above them. Round the middles in two ways, the zero point added before `np.rint` and after it; a mask of where the two differ selects the middles that you keep.",
    ),
    why="with an odd zero point all fifteen middles part, with an even one none: parity decides.",
    mistakes=(
        Mistake("halves rounded up", edit("np.rint(steps) + zero_point", "np.floor(steps + 0.5) + zero_point").edit(
                "np.rint(steps + zero_point)", "np.floor(steps + zero_point + 0.5)"
            ),
            cause="`np.floor(x + 0.5)` does not look at parity, so the two equations agree everywhere; both are meant with half to even.",
            cure="Round with `np.rint`.", see="an empty array for every zero point"),
        Mistake("where they agree", edit("!=", "=="),
            cause="The middles were kept where the two integers are equal.",
            cure="Keep them where they differ, with `!=`.",
            see="fifteen numbers for an even zero point, none for an odd one"),
        Mistake("the zero point added twice",
            edit("np.rint(steps + zero_point)", "np.rint(steps + zero_point) + zero_point"),
            cause="One of the two equations got the zero point inside and outside of the rounding.",
            cure="Equation (4) adds it inside, (5) outside, each once.",
            see="fifteen numbers for every zero point but 0"),
        Mistake("steps instead of weights", edit("steps[apart] * scale", "steps[apart]"),
            cause="The result counts steps.",
            cure="Multiply by the scale.", see="right for a scale of 1, too large for a smaller one"),
        Mistake("integers instead of weights", edit("steps[apart] * scale", "np.arange(15)[apart]"),
            cause="The result has the integer below each middle.",
            cure="Return the weight in the middle, `steps * scale`.", see="0, 1, 2 …"),
        Mistake("zero at integer 0", edit("np.arange(15) + 0.5 - zero_point", "np.arange(15) + 0.5"),
            cause="The middles were taken between 0 and 15 steps, and the grid begins zero_point steps below zero.",
            cure="Subtract the zero point from the steps.", see="no negative weights"),
        Mistake("beyond the ends", edit("np.arange(15)", "np.arange(-1, 16)"),
            cause="Below the first level and above the last one both equations are clipped to the same integer.",
            cure="Sixteen levels have fifteen middles.", see="one number too many at either end"),
        Mistake("only the first", edit("steps[apart] * scale", "steps[apart][:1] * scale"),
            cause="The search stopped at the first difference.",
            cure="Return all of them.", see="one number where fifteen are expected"),
    ),
)
