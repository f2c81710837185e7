"""The data of the lab: four days of sunshine, and days drawn at random."""

import numpy as np

HOURS, JARS = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 4.0, 6.0, 8.0])
START = (-0.6216, 0.7633)  # the weight and bias with which the essay's own run begins


def days(random, n):
    """Some days drawn around a line: hours and jars, each (n,)."""
    hours = random.uniform(0, 12, n).round(2)
    return hours, (1.8 * hours + 0.5 + random.normal(0, 1, n)).round(2)
