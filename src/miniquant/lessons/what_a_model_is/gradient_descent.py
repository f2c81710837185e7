"""Training one neuron: the way down."""

import math

import numpy as np

from ...lab import Exercise, Mistake, body, edit, omit
from .gradients import gradients
from .toys import HOURS, JARS, START, days


def gradient_descent(weight, bias, hours, jars, learning_rate, steps):
    """Training, all of it: steps down the slope of the mean squared error.

    weight, bias: where to begin; hours, jars: (n,) float64; learning_rate: a float; steps: an integer, 0 or more
    ->   (weight, bias) after so many steps
    """
    for _ in range(steps):
        by_weight, by_bias = gradients(weight, bias, hours, jars)
        weight, bias = weight - learning_rate * by_weight, bias - learning_rate * by_bias
    return weight, bias


def oracle(weight, bias, hours, jars, learning_rate, steps):
    """A step is an affine map of (weight, bias); the map is applied as a matrix, steps times."""
    n, h, j = len(hours), [float(x) for x in hours], [float(x) for x in jars]
    hh, h1 = math.fsum(x * x for x in h) / n, math.fsum(h) / n
    hj, j1 = math.fsum(x * y for x, y in zip(h, j)) / n, math.fsum(j) / n
    r = 2 * learning_rate
    for _ in range(steps):
        down = (1 - r) * bias - r * h1 * weight + r * j1
        weight, bias = (1 - r * hh) * weight - r * h1 * bias + r * hj, down
    return weight, bias


def cases(random):
    """One step, none, a few, many, then random lines."""
    made = [
        (1.0, 0.0, np.array([3.0]), np.array([5.0]), 0.01, 1),
        (*START, HOURS, JARS, 0.01, 0),
        (*START, HOURS, JARS, 0.01, 2),
        (*START, HOURS, JARS, 0.05, 3),
        (*START, HOURS, JARS, 0.01, 30),
    ]
    drawn = random.normal(0, 2, (2, 2)).tolist()
    return [*made, *((weight, bias, *days(random, 6), 0.005, 5) for weight, bias in drawn)]


EXERCISE = Exercise(
    goal="Train the neuron: take a number of steps down the slope, and return the weight and the bias.",
    reference=gradient_descent, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-6,
    hints=(
        "In each step: compute both slopes where you stand, then move weight and bias against them, by slope times the learning rate.",
        "`by_weight, by_bias = gradients(weight, bias, hours, jars)`, then `weight -= learning_rate * by_weight`, and the same for the bias.",
    ),
    why="this loop is what `optimizer.step()` does, and all that plain SGD does.",
    mistakes=(
        Mistake("uphill", edit("weight - ", "weight + ").edit("bias - ", "bias + "),
            cause="The slope is added, so every step goes up and the error grows.",
            cure="Subtract learning_rate times the slope.", see="a weight that moves away from 2"),
        Mistake("the learning rate forgotten",
            edit("learning_rate * by_weight", "by_weight").edit("learning_rate * ", ""),
            cause="The whole slope is subtracted, the step is far too long, and the next one still longer.",
            cure="Multiply each slope by `learning_rate`.", see="13 where 1.12 is expected, and huge numbers later"),
        Mistake("the slope computed once", omit("by_weight, by_bias = ").edit(
                "for _ in", "by_weight, by_bias = gradients(weight, bias, hours, jars)\n    for _ in"
            ),
            cause="All steps use the slope of the starting point, though it changes with every step.",
            cure="Move the call of `gradients` into the loop.", see="one step right, and more steps too far"),
        Mistake("the bias looks at the new weight", edit(
                "weight, bias = weight - learning_rate * by_weight, ",
                "weight = weight - learning_rate * by_weight\n        bias = ",
            ).edit("* by_bias", "* gradients(weight, bias, hours, jars)[1]"),
            cause="The slope in the bias was computed after the weight had moved; both belong to the same place.",
            cure="Call `gradients` once in a step, before you change anything.",
            see="the weight right after one step, and the bias wrong"),
        Mistake("slopes that pile up", body("""
                sums = np.zeros(2)
                for _ in range(steps):
                    sums += gradients(weight, bias, hours, jars)
                    weight, bias = weight - learning_rate * sums[0], bias - learning_rate * sums[1]
                return weight, bias
            """),
            cause="The slopes of all former steps are still in the sum: in PyTorch this is a forgotten `zero_grad()`.",
            cure="Start each step with fresh slopes.", see="one step right, and then too fast"),
        Mistake("one step too few", edit("(steps)", "(steps - 1)"),
            cause="The loop ends one step early.",
            cure="Use `for _ in range(steps)`.", see="the start returned where one step is asked for"),
        Mistake("one step too many", edit("(steps)", "(steps + 1)"),
            cause="The loop takes one step more than it is asked to.",
            cure="Use `for _ in range(steps)`; for 0 steps nothing moves.", see="a changed weight for 0 steps"),
    ),
)
