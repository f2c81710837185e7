"""The figures on better four bits say what they show."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.text import Text
from places import ROOT

from miniquant.evaluate.measured import read_table
from miniquant.plots.calibrate import channel_sizes, error_over_alpha, intervals, kl_by_size, pareto
from miniquant.plots.table import files_of

STORED = read_table(ROOT / "experiments/27-better-four-bits/results.json")


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


def stored(model):
    """What lab 20 draws of the stored results."""
    kinds = ("Q4_0", "Q4_1", "Q4_K", "Q6_K", "Q8_0")
    return [file for file in files_of(model) if file.target in kinds and file.method != "imatrix"]


FACETS = {label: stored(model) for label, model in STORED.items() if label != "MiniLlama"}


@pytest.fixture(scope="module")
def sizes():
    return kl_by_size(FACETS)


@pytest.mark.parametrize("label", FACETS)
def test_the_pareto_line_holds_a_file_exactly_if_no_file_as_small_is_as_good(label):
    files = FACETS[label]

    def beaten(p):
        return any(o.n_bytes <= p.n_bytes and o.kl[0] <= p.kl[0] and o != p for o in files)

    assert set(pareto(files)) == {p for p in files if not beaten(p)}


def test_every_file_is_a_point_of_its_facet_with_its_interval_in_the_column_of_its_target(sizes):
    columns = [label.get_text().splitlines()[0] for label in sizes.axes[-1].get_xticklabels()]
    assert len(columns) == len({p.target for p in FACETS["MiniGPT"]})
    assert [label.get_text().splitlines()[1] for label in sizes.axes[-1].get_xticklabels()] == sorted(
        f"{n / 1e6:.2f}" for n in {p.n_bytes for p in FACETS["MiniGPT"]}
    )
    for ax, files in zip(sizes.axes, FACETS.values(), strict=True):
        drawn = set()
        for bars in ax.containers:
            ends = bars.lines[2][0].get_segments()
            for x, value, segment in zip(*bars.lines[0].get_data(), ends, strict=True):
                low, high = segment[:, 1]
                drawn.add((columns[round(x)], bars.get_label(), *np.round([value, low, high], 9)))
        assert drawn == {(p.target, p.method, *np.round(p.kl, 9)) for p in files}


def test_no_two_points_of_a_column_and_no_two_texts_of_the_figure_touch(sizes):
    sizes.draw_without_rendering()
    for ax in sizes.axes:
        points = [ax.transData.transform(at) for bars in ax.containers for at in zip(*bars.lines[0].get_data())]
        assert min(np.hypot(*(a - b)) for a, b in combinations(points, 2)) > 5.5 / 72 * sizes.dpi
    ticks = [label for ax in sizes.axes for label in ax.get_yticklabels(which="both")]  # some are beyond the axis
    shown = [text for text in sizes.findobj(Text) if text.get_text() and text.get_visible() and text not in ticks]
    assert len(shown) > 15
    for a, b in combinations([text.get_window_extent() for text in shown], 2):
        assert a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 or b.y1 <= a.y0


def test_the_figure_is_narrow_enough_for_a_phone_and_tells_methods_apart_without_colour(sizes):
    smallest = min(text.get_fontsize() for text in sizes.findobj(Text) if text.get_text() and text.get_visible())
    assert smallest / 72 / sizes.get_figwidth() * 343 > 7, "pixels, in the 343 that a phone has room for"
    markers = [bars.lines[0].get_marker() for bars in sizes.axes[0].containers]
    assert len(set(markers)) == len(markers) == 5
    assert sizes.alt.count("Q8_0 plain") == 2 and sizes.alt.endswith(".")
