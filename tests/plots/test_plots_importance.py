"""The figures of importance matrices say what they show."""

import numpy as np

from miniquant.plots.importance import scales_tried, shares


def test_shares_are_those_of_the_most_important_columns_and_half_is_marked():
    figure = shares({"even": np.ones(4), "uneven": np.array([1.0, 6, 1, 2])})
    assert "even: half of it in 2 of 4 columns; uneven: half of it in 1 of 4 columns" in figure.alt
    curves = [line.get_ydata() for line in figure.axes[0].lines if len(line.get_ydata()) == 5]
    assert [list(map(round, curve)) for curve in curves] == [[0, 25, 50, 75, 100], [0, 60, 80, 90, 100]]
    assert len({line.get_linestyle() for line in figure.axes[0].lines if len(line.get_ydata()) == 5}) == 2


def test_the_best_try_of_each_way_to_measure_is_marked():
    figure = scales_tried(np.array([7.0, 8, 9]), {"a": np.array([2.0, 4, 8]), "b": np.array([9.0, 6, 3])})
    assert "a: the best at 7 steps, 4 times as large at worst; b: the best at 9 steps, 3 times" in figure.alt
    marked = [float(line.get_xdata()[0]) for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    assert marked == [7, 9]
