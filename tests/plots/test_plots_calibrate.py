"""The figures on better four bits say what they show."""

import numpy as np

from miniquant.plots.calibrate import channel_sizes, error_over_alpha, intervals


def test_channels_are_ranked_and_the_text_says_how_far_the_largest_stands_out():
    figure = channel_sizes({"flat": np.ones(8), "steep": np.array([1.0, 32, 1, 1])})
    assert "flat: the largest is 1 times the median" in figure.alt and "steep: the largest is 32 times" in figure.alt
    lines = [line.get_ydata() for line in figure.axes[0].lines if len(line.get_ydata()) > 1]
    assert [list(line[:2]) for line in lines] == [[1, 1], [32, 1]]
    assert len({line.get_linestyle() for line in figure.axes[0].lines}) >= 2, "not by colour alone"


def test_errors_are_relative_to_plain_rounding():
    figure = error_over_alpha([0, 0.5, 1], {"a": [4.0, 1.0, 2.0]})
    assert "a: at best 0.25 of it, at alpha 0.5" in figure.alt
    assert list(figure.axes[0].lines[0].get_ydata()) == [1, 0.25, 0.5]


def test_an_interval_across_the_line_has_another_marker():
    figure = intervals({"real": (0.5, 0.4, 0.6), "chance": (0.9, 0.7, 1.1)}, what="ratio", nothing=1)
    markers = [bars.lines[0].get_marker() for bars in figure.axes[0].containers]
    assert markers == ["o", "D"] and "chance 0.9 (0.7 to 1.1)" in figure.alt
