"""The exercises of lab 01 on training one neuron: which way is down, and the way down."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ...lab.spec import Case, Exercise, Mistake
from .neuron import HOURS, JARS, START, days

# ---- gradients -------------------------------------------------------------------------------------------------------


def gradients(weight: float, bias: float, hours: np.ndarray, jars: np.ndarray) -> tuple[float, float]:
    """The reference: the derivatives of the mean squared error by the weight and by the bias."""
    error = weight * hours + bias - jars  # (n,)
    return float(np.mean(2 * error * hours)), float(np.mean(2 * error))


def gradients_oracle(weight: float, bias: float, hours: np.ndarray, jars: np.ndarray) -> tuple[float, float]:
    """By the difference quotient: exact for a parabola, whatever the step, so the step may be 1."""

    def loss(w: float, b: float) -> float:
        return math.fsum((w * float(h) + b - float(j)) ** 2 for h, j in zip(hours, jars)) / len(jars)

    by_weight = (loss(weight + 1, bias) - loss(weight - 1, bias)) / 2
    return by_weight, (loss(weight, bias + 1) - loss(weight, bias - 1)) / 2


def _gradient_cases(random: np.random.Generator) -> list[Case]:
    made = [
        (1.0, 0.0, np.array([3.0]), np.array([5.0])),
        (*START, HOURS, JARS),
        (2.0, 0.0, HOURS, JARS),
        (0.0, 0.0, HOURS, JARS),
    ]
    return [*made, *((float(w), float(b), *days(random, 6)) for w, b in random.normal(0, 2, (3, 2)))]


def _gradients(
    weight: float,
    bias: float,
    hours: np.ndarray,
    jars: np.ndarray,
    *,
    factor: float = 2.0,
    gather: Callable[[np.ndarray], float] = np.mean,
    weight_sees: bool = True,
    bias_sees: bool = False,
    swap: bool = False,
    rooted: bool = False,
) -> tuple[float, float]:
    error = weight * hours + bias - jars
    factor = factor / (2 * np.sqrt(np.mean(error**2))) if rooted else factor
    by_weight = float(gather(factor * error * hours if weight_sees else factor * error))
    by_bias = float(gather(factor * error * hours if bias_sees else factor * error))
    return (by_bias, by_weight) if swap else (by_weight, by_bias)


GRADIENTS = Exercise(
    name="gradients",
    lab="01",
    goal="Compute the slope of the mean squared error in the weight, and its slope in the bias.",
    minutes=8,
    difficulty="core",
    reference=gradients,
    oracle=gradients_oracle,
    cases=_gradient_cases,
    tolerance=1e-6,
    hints=(
        "One day's error is e = weight · hours + bias - jars. The derivative of e² is 2e times that of e, "
        "which is `hours` for the weight and 1 for the bias.",
        "`np.mean(2 * e * hours)` and `np.mean(2 * e)`, with e the prediction minus the jars.",
    ),
    why="`loss.backward()` computes exactly this, for millions of weights.",
    mistakes=(
        Mistake(
            "the sign reversed",
            partial(_gradients, factor=-2.0),
            "The error was taken as actual minus predicted, so both slopes point the wrong way.",
            "Take the prediction minus the jars.",
            "12 where -12 is expected",
        ),
        Mistake(
            "the 2 forgotten",
            partial(_gradients, factor=1.0),
            "The derivative of e² is 2e, and the 2 is missing.",
            "Multiply by 2, or your steps are half as long as PyTorch's.",
            "both slopes half as large",
        ),
        Mistake(
            "a sum instead of the mean",
            partial(_gradients, gather=np.sum),
            "The slopes of all days are added up, and the loss is their mean.",
            "Use `np.mean`.",
            "one day right, and four days four times too large",
        ),
        Mistake(
            "the hours forgotten",
            partial(_gradients, weight_sees=False),
            "The slope in the weight lacks the factor `hours`: a day without sunshine says nothing about the weight.",
            "Multiply by `hours` in the first of the two.",
            "two equal slopes",
        ),
        Mistake(
            "the hours in the bias too",
            partial(_gradients, bias_sees=True),
            "The slope in the bias was multiplied by the hours, but the bias is multiplied by nothing.",
            "Leave `hours` out of the second slope.",
            "two equal slopes, the first right",
        ),
        Mistake(
            "in the wrong order",
            partial(_gradients, swap=True),
            "The slope in the bias was returned first.",
            "Return (slope in the weight, slope in the bias).",
            "the two numbers exchanged",
        ),
        Mistake(
            "the slope of the RMSE",
            partial(_gradients, rooted=True),
            "This is the slope of the root: it is the slope of the MSE divided by twice the root, "
            "and it has no value where the fit is perfect.",
            "Leave the root out; what is asked for is the slope of the mean squared error.",
            "slopes of the right direction and the wrong size, and NaN for a perfect fit",
        ),
    ),
)

# ---- gradient_descent ------------------------------------------------------------------------------------------------


def gradient_descent(
    weight: float, bias: float, hours: np.ndarray, jars: np.ndarray, learning_rate: float, steps: int
) -> tuple[float, float]:
    """The reference: so many steps down the slope of the mean squared error -> (weight, bias)."""
    for _ in range(steps):
        by_weight, by_bias = gradients(weight, bias, hours, jars)
        weight, bias = weight - learning_rate * by_weight, bias - learning_rate * by_bias
    return weight, bias


def descent_oracle(
    weight: float, bias: float, hours: np.ndarray, jars: np.ndarray, learning_rate: float, steps: int
) -> tuple[float, float]:
    """A step is an affine map of (weight, bias); the map is applied as a matrix, steps times."""
    n, h, j = len(hours), [float(x) for x in hours], [float(x) for x in jars]
    hh, h1 = math.fsum(x * x for x in h) / n, math.fsum(h) / n
    hj, j1 = math.fsum(x * y for x, y in zip(h, j)) / n, math.fsum(j) / n
    r = 2 * learning_rate
    for _ in range(steps):
        weight, bias = (
            (1 - r * hh) * weight - r * h1 * bias + r * hj,
            (1 - r) * bias - r * h1 * weight + r * j1,
        )
    return weight, bias


def _descent_cases(random: np.random.Generator) -> list[Case]:
    made = [
        (1.0, 0.0, np.array([3.0]), np.array([5.0]), 0.01, 1),
        (*START, HOURS, JARS, 0.01, 0),
        (*START, HOURS, JARS, 0.01, 2),
        (*START, HOURS, JARS, 0.05, 3),
        (*START, HOURS, JARS, 0.01, 30),
    ]
    drawn = random.normal(0, 2, (2, 2))
    return [*made, *((float(w), float(b), *days(random, 6), 0.005, 5) for w, b in drawn)]


def _descent(
    weight: float,
    bias: float,
    hours: np.ndarray,
    jars: np.ndarray,
    learning_rate: float,
    steps: int,
    *,
    sign: float = -1.0,
    rate: float | None = None,
    more: int = 0,
    stale: bool = False,
    in_turn: bool = False,
    kept: bool = False,
) -> tuple[float, float]:
    rate = learning_rate if rate is None else rate
    sums = [0.0, 0.0]
    slope = gradients(weight, bias, hours, jars)
    for _ in range(max(0, steps + more)):
        slope = slope if stale else gradients(weight, bias, hours, jars)
        sums = [a + b for a, b in zip(sums, slope)] if kept else list(slope)
        weight += sign * rate * sums[0]
        bias += sign * rate * (gradients(weight, bias, hours, jars)[1] if in_turn else sums[1])
    return weight, bias


GRADIENT_DESCENT = Exercise(
    name="gradient_descent",
    lab="01",
    goal="Train the neuron: take a number of steps down the slope, and return the weight and the bias.",
    minutes=8,
    difficulty="core",
    reference=gradient_descent,
    oracle=descent_oracle,
    cases=_descent_cases,
    tolerance=1e-6,
    hints=(
        "In each step: compute both slopes where you stand, then move weight and bias against them, by slope times "
        "the learning rate.",
        "`by_weight, by_bias = gradients(weight, bias, hours, jars)`, then `weight -= learning_rate * by_weight`, and "
        "the same for the bias.",
    ),
    why="this loop is what `optimizer.step()` does, and all that plain SGD does.",
    mistakes=(
        Mistake(
            "uphill",
            partial(_descent, sign=1.0),
            "The slope is added, so every step goes up and the error grows.",
            "Subtract learning_rate times the slope.",
            "a weight that moves away from 2",
        ),
        Mistake(
            "the learning rate forgotten",
            partial(_descent, rate=1.0),
            "The whole slope is subtracted, the step is far too long, and the next one still longer.",
            "Multiply each slope by `learning_rate`.",
            "13 where 1.12 is expected, and huge numbers later",
        ),
        Mistake(
            "the slope computed once",
            partial(_descent, stale=True),
            "All steps use the slope of the starting point, though it changes with every step.",
            "Move the call of `gradients` into the loop.",
            "one step right, and more steps too far",
        ),
        Mistake(
            "the bias looks at the new weight",
            partial(_descent, in_turn=True),
            "The slope in the bias was computed after the weight had moved; both belong to one and the same place.",
            "Call `gradients` once in a step, before you change anything.",
            "the weight right after one step, and the bias wrong",
        ),
        Mistake(
            "slopes that pile up",
            partial(_descent, kept=True),
            "The slopes of all former steps are still in the sum: in PyTorch this is a forgotten `zero_grad()`.",
            "Start each step with fresh slopes.",
            "one step right, and then too fast",
        ),
        Mistake(
            "one step too few",
            partial(_descent, more=-1),
            "The loop ends one step early.",
            "Use `for _ in range(steps)`.",
            "the start returned where one step is asked for",
        ),
        Mistake(
            "one step too many",
            partial(_descent, more=1),
            "The loop takes one step more than it is asked to.",
            "Use `for _ in range(steps)`; for 0 steps nothing moves.",
            "a changed weight for 0 steps",
        ),
    ),
)
