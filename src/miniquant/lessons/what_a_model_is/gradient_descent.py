"""Training one neuron: the way down."""

import math

import numpy as np

from ...lab import Exercise, Mistake, body, edit, omit
from .gradients import gradients
from .toys import HOURS, JARS, START, days


def gradient_descent(weight, bias, hours, jars, learning_rate, steps):
    """Train the neuron: move its weight and its bias against the slopes of
    the mean squared error.

    weight, bias: floats, where to begin; hours, jars: (n,) float64, n at
        least 1; learning_rate: a float, 0 or more; steps: an integer, 0 or
        more
    ->   (weight, bias) after so many steps, a tuple of two floats

    In one step, compute both slopes at the same weight and bias;
    ``gradients`` does this for you. Then subtract from each of the two
    numbers its slope times the learning rate. Do not round: a difference of
    up to 1e-9 is allowed. In the check, no result is beyond 100.
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
        (1.0, 0.0, np.array([-4.0]), np.array([-9.0]), 0.01, 1),  # the same numbers, other days
        (*START, HOURS, JARS, 0.01, 0),
        (*START, HOURS, JARS, 0.01, 2),
        (*START, HOURS, JARS, 0.05, 3),
        (*START, HOURS, JARS, 0.01, 30),
        (*START, HOURS, JARS, 0.2, 3),  # the steps are too long: each one makes the error larger
        (*START, HOURS, JARS, 0.01, 1500),
        (*START, HOURS, JARS, 0.05, 300),  # near the goal, where the slopes are small
        (2.0, 1e-5, HOURS, JARS, 0.05, 4),  # nearer
        (2.0, 1e-7, HOURS, JARS, 0.05, 4),
        (*START, HOURS, JARS, 0.0, 3),
        (0.0, 5.0, HOURS, JARS, 0.01, 2),  # the errors cancel: at first the slope in the bias is 0
        (1.0, 0.0, np.array([300.0]), np.array([5.0]), 1e-6, 2),  # where they are large
    ]
    made.append((1.0, -2.0, np.zeros(2), np.zeros(2), 0.01, 2))  # no sun, no jars, and a slope all the same
    weight, bias = random.normal(0, 2, 2).tolist()
    return [*made, (weight, bias, *days(random, 6), 0.005, 5)]


def quantities(weight, bias, hours, jars, learning_rate, steps):
    """Which cases are simple."""
    return {
        "there is more than one day": len(hours) > 1,
        "there is more than one step": steps > 1,
        "there is a step": steps > 0,
        "`learning_rate` is 0": learning_rate == 0,
        "`weight` is 0": weight == 0,
    }


EXERCISE = Exercise(
    goal="Train the neuron: take a number of steps down the slope, and return the weight and the bias.",
    reference=gradient_descent, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-9, quantities=quantities,
    hints=(
        "The slopes change with every step. Compute both, and only then move the weight and the bias.",
        "A `for` loop over `range(steps)`; in it, one call of `gradients`, whose tuple you take apart into two names.",
    ),
    why="plain SGD, the simplest optimizer, does exactly this in `optimizer.step()`.",
    mistakes=(
        Mistake("uphill", edit("weight - ", "weight + ").edit("bias - ", "bias + "),
            cause="Every step goes the wrong way: weight and bias move with their slopes, not against them.",
            cure="Subtract learning_rate times the slope.", see="a weight that moves away from 2"),
        Mistake("the learning rate forgotten",
            edit("learning_rate * by_weight", "by_weight").edit("learning_rate * ", ""),
            cause="These are the results for a learning rate of 1, whatever the argument says; with most data each step is then larger than the one before.",
            cure="Multiply each slope by `learning_rate`.", see="13 where 1.12 is expected, and huge numbers later"),
        Mistake("the slope computed once", omit("by_weight, by_bias = ").edit(
                "for _ in", "by_weight, by_bias = gradients(weight, bias, hours, jars)\n    for _ in"
            ),
            cause="All steps are as long as the first: they use the slopes at the start, and the slopes change when weight or bias do.",
            cure="Move the call of `gradients` into the loop.", see="one step right, and more steps too far"),
        Mistake("the bias looks at the new weight", edit(
                "weight, bias = weight - learning_rate * by_weight, ",
                "weight = weight - learning_rate * by_weight\n        bias = ",
            ).edit("* by_bias", "* gradients(weight, bias, hours, jars)[1]"),
            cause="The bias moves by its slope at the new weight; both slopes must be taken at the same weight and bias.",
            cure="Call `gradients` once in a step, before you change anything.",
            see="the weight right after one step, and the bias wrong"),
        Mistake("slopes that pile up", body("""
                sums = np.zeros(2)
                for _ in range(steps):
                    sums += gradients(weight, bias, hours, jars)
                    weight, bias = weight - learning_rate * sums[0], bias - learning_rate * sums[1]
                return weight, bias
            """),
            cause="Each step moves by the slopes of all steps so far, added up: in PyTorch this is a forgotten `zero_grad()`.",
            cure="Start each step with fresh slopes.", see="one step right, and then too fast"),
        Mistake("one step too few", edit("(steps)", "(steps - 1)"),
            cause="Where there are steps, these are the results after one step less.",
            cure="Use `for _ in range(steps)`.", see="the start returned where one step is asked for"),
        Mistake("one step too many", edit("(steps)", "(steps + 1)"),
            cause="These are the results after one step more.",
            cure="Use `for _ in range(steps)`; for 0 steps nothing moves.", see="a changed weight for 0 steps"),
        Mistake("one step at most", body("""
                for _ in range(steps):
                    by_weight, by_bias = gradients(weight, bias, hours, jars)
                    weight, bias = weight - learning_rate * by_weight, bias - learning_rate * by_bias
                    return weight, bias
                return weight, bias
            """),
            cause="There is one step at most, however many are asked for.",
            cure='Move it to the left, after the loop.', see='one step right, and for more steps the result of one'),
        Mistake("only the weight moves", body("""
                for _ in range(steps):
                    by_weight, by_bias = gradients(weight, bias, hours, jars)
                    weight = weight - learning_rate * by_weight
                return weight, bias
            """),
            cause='The bias keeps its value.',
            cure='Move the bias by its own slope, too.', see='the weight right after one step, and the bias as it was'),
        Mistake("divided by the days", body("""
                for _ in range(steps):
                    by_weight, by_bias = gradients(weight, bias, hours, jars)
                    weight, bias = weight - learning_rate * by_weight / len(hours), bias - learning_rate * by_bias / len(hours)
                return weight, bias
            """),
            cause="Each step is as many times too short as there are days; the slopes are means already.",
            cure='Use the slopes as `gradients` returns them.', see='one day right, and four days too slow'),
        Mistake("the slopes exchanged", body("""
                for _ in range(steps):
                    by_bias, by_weight = gradients(weight, bias, hours, jars)
                    weight, bias = weight - learning_rate * by_weight, bias - learning_rate * by_bias
                return weight, bias
            """),
            cause="The weight moves by the slope in the bias, and the bias by the slope in the weight.",
            cure='Take the tuple apart as `by_weight, by_bias = ...`.', see='the weight moved by the slope of the bias'),
        Mistake("only the direction", body("""
                for _ in range(steps):
                    by_weight, by_bias = gradients(weight, bias, hours, jars)
                    weight, bias = weight - learning_rate * float(np.sign(by_weight)), bias - learning_rate * float(np.sign(by_bias))
                return weight, bias
            """),
            cause="Every step has the size of the learning rate, unless the slope is 0; it must be the slope times the learning rate.",
            cure='Multiply the slope itself.', see='a step of 0.01 where 0.12 is expected'),
        Mistake("the slope at zero", body("""
                for _ in range(steps):
                    by_weight, by_bias = gradients(0.0, 0.0, hours, jars)
                    weight, bias = weight - learning_rate * by_weight, bias - learning_rate * by_bias
                return weight, bias
            """),
            cause="All steps use the slopes at weight 0 and bias 0, not at the present ones.",
            cure='Call `gradients` with `weight` and `bias`.', see='a step that is too large or too small'),
    ),
)
