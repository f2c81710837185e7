"""Curves, fitted lines, roles and events: closed, labelled, described by what the data say, readable without colour."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from miniquant import plots
from miniquant.plots.style import mark_guess

EVENTS = [("pickle's protocol 2", 2003.5, "standard library"), ("one", 2020.0, "torch"), ("two", 2023.6, "torch")]


@pytest.fixture(scope="module")
def figures():
    before = dict(matplotlib.rcParams), plt.get_fignums()
    x = np.arange(5)
    drawn = {
        "curves": plots.curves(
            {"down": (x, 5.0 - x), "up": (x, x + 1.0)}, x_label="step", y_label="RMSE (jars)", log_y=True, title="t"
        ),
        "fitted_lines": plots.fitted_lines(
            x, 2.0 * x, {"first": (1.0, -1.0), "last": (2.0, 0.0)}, x_label="hours", y_label="jars", reach=9.0
        ),
        "role_bars": plots.role_bars({"norm": 10, "weight": 980, "bias": 10}),
        "timeline": plots.timeline(EVENTS),
    }
    return drawn, before, (dict(matplotlib.rcParams), plt.get_fignums())


def test_the_caller_keeps_its_settings_and_has_no_figure_open(figures):
    _, before, after = figures
    assert before == after


def test_every_axis_has_a_label_and_every_figure_a_sentence(figures):
    for name, fig in figures[0].items():
        ax = fig.axes[0]
        assert ax.get_xlabel(), name
        assert ax.get_ylabel() or name == "timeline"
        assert fig.alt.endswith(".") and len(fig.alt) > 40, name


def test_whole_steps_have_whole_ticks():
    steps = np.arange(1, 21)
    fig = plots.curves({"loss": (steps, 1 / steps)}, x_label="step", y_label="loss")
    assert all(float(tick).is_integer() for tick in fig.axes[0].get_xticks())


def test_curves_differ_by_more_than_colour(figures):
    for name in ("curves", "fitted_lines"):
        lines = [line for line in figures[0][name].axes[0].lines if line.get_linestyle() != "None"]
        looks = {(line.get_linestyle(), line.get_marker()) for line in lines}
        assert len(looks) == len(lines) == 2, name


def test_the_alt_text_says_what_the_data_say(figures):
    drawn = figures[0]
    assert "down from 5 to 1, lowest 1 at 4" in drawn["curves"].alt
    assert "last has slope 2.00" in drawn["fitted_lines"].alt
    assert drawn["role_bars"].alt == "1,000 parameters by role: weight 980, norm 10, bias 10."
    assert "2003.5: pickle's protocol 2" in drawn["timeline"].alt


def test_lines_reach_as_far_as_they_are_asked_to(figures):
    line = figures[0]["fitted_lines"].axes[0].lines[-1]
    assert line.get_xdata().max() == 9.0 and line.get_ydata().max() == 18.0


def test_the_largest_role_is_on_top_and_bars_are_to_scale(figures):
    bars = figures[0]["role_bars"].axes[0].patches
    assert [bar.get_width() for bar in bars] == [980, 10, 10]
    assert bars[0].get_y() < bars[1].get_y() and figures[0]["role_bars"].axes[0].yaxis_inverted()


def test_every_event_stands_at_its_year_and_a_kind_is_in_the_legend_once(figures):
    fig = figures[0]["timeline"]
    years = [line.get_xdata()[0] for line in fig.axes[0].lines if len(line.get_xdata()) == 1]
    assert years == [year for _, year, _ in EVENTS]
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["standard library", "torch"]


@pytest.mark.parametrize("points", [([1.0], [1.0, 2.0]), ([], []), ([1.0], [np.nan])])
def test_a_curve_that_cannot_be_drawn_is_refused_by_name(points):
    with pytest.raises(ValueError, match="'broken'"):
        plots.curves({"broken": points}, x_label="x", y_label="y")


@pytest.mark.parametrize(("along", "expected"), [("x", ([3, 3], [0, 1])), ("y", ([0, 1], [3, 3]))])
def test_a_guess_is_a_line_across_the_figure_with_a_name(along, expected):
    figure, axes = plt.subplots()
    mark_guess(axes, np.float32(3), along)
    (line,) = axes.lines
    assert ([*line.get_xdata()], [*line.get_ydata()]) == expected
    assert line.get_label() == axes.get_legend().texts[0].get_text() == "your guess"
    plt.close(figure)


@pytest.mark.parametrize("guess", [None, float("nan"), float("inf")])
def test_no_guess_draws_nothing(guess):
    figure, axes = plt.subplots()
    mark_guess(axes, guess)
    assert not axes.lines and axes.get_legend() is None
    plt.close(figure)


def test_a_guess_is_a_point_at_the_right_end_of_fitted_lines_and_no_guess_is_none():
    def points(guess):
        fig = plots.fitted_lines(
            [0.0, 1.0], [0.0, 2.0], {"a": (2.0, 0.0)}, x_label="h", y_label="j", reach=5.0, guess=guess
        )
        return fig, [line for line in fig.axes[0].lines if line.get_label() == "your guess"]

    fig, (star,) = points(7.5)
    assert star.get_xydata().tolist() == [[5.0, 7.5]] and "The guess is 7.50 at 5." in fig.alt
    for nothing in (None, float("nan")):
        fig, stars = points(nothing)
        assert not stars and "guess" not in fig.alt
