"""The figure of the course's table says what it shows, in every facet, and nothing in it touches anything else."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.text import Text
from places import ROOT

from miniquant.evaluate.measured import read_table
from miniquant.plots.calibrate import Measured, pareto
from miniquant.plots.table import FORMS, STEP, files_of, kl_by_file, same_size

METHODS = ("plain", "imatrix", "AWQ", "GPTQ", "AWQ + GPTQ")


def made(seed):
    """Files of twenty targets, some with several methods whose KL are nearly the same."""
    random, files = np.random.default_rng(seed), []
    for i in range(14):
        for j, method in enumerate(METHODS[: 1 + i % 5]):
            value = 0.5 ** (i / 2) * (1 + random.normal(0, 0.02))
            files.append(Measured(f"Q{i}_K", method, 10**6 + 10**5 * i + 200 * j, (value, 0.9 * value, 1.1 * value)))
    return files


FACETS = {"one": made(0), "two": made(1)[::-1], "three": made(2)[:30]}


@pytest.fixture(scope="module")
def figure():
    found = kl_by_file(FACETS, title="A title")
    found.draw_without_rendering()
    return found


def drawn(ax, files):
    """What stands on the axes: (target, method, value, low, high)."""
    ticks = {label.get_text().split("  ")[0]: at for at, label in zip(ax.get_yticks(), ax.get_yticklabels())}
    height = {target: 1 + STEP * (sum(p.target == target for p in files) - 1) for target in ticks}
    for bars in ax.containers:
        form = (bars.lines[0].get_marker(), bars.lines[0].get_markerfacecolor())
        (x,), (y,) = bars.lines[0].get_data()
        (segment,) = bars.lines[2][0].get_segments()
        (target,) = [name for name in ticks if abs(ticks[name] - y) < height[name] / 2]
        yield target, METHODS[FORMS.index(form)], x, *segment[:, 0]


def test_every_file_is_a_point_on_the_line_of_its_target_with_its_interval(figure):
    for ax, files in zip(figure.axes, FACETS.values(), strict=True):
        found = {(target, method, *np.round(kl, 9)) for target, method, *kl in drawn(ax, files)}
        assert found == {(p.target, p.method, *np.round(p.kl, 9)) for p in files}


def test_the_files_stand_by_size_the_largest_at_the_top_with_the_size_beside_the_name(figure):
    for ax, files in zip(figure.axes, FACETS.values(), strict=True):
        labels = [label.get_text().split("  ") for label in ax.get_yticklabels()]
        assert ax.yaxis_inverted()
        assert [float(size) for _, size in labels] == sorted([float(size) for _, size in labels], reverse=True)
        assert {name for name, _ in labels} == {p.target for p in files}


def test_the_line_is_at_each_size_the_least_kl_of_a_file_that_is_not_larger(figure):
    for ax, files in zip(figure.axes, FACETS.values(), strict=True):
        (line,) = [line for line in ax.lines if line.get_label() == "Pareto line"]
        x, y = line.get_data()
        sizes = {p.target: p.n_bytes for p in same_size(files)}
        for at, label in zip(ax.get_yticks(), ax.get_yticklabels()):
            target = label.get_text().split("  ")[0]
            i = next(i for i in range(0, len(y), 2) if y[i] <= at <= y[i + 1])
            assert x[i] == x[i + 1] == min(p.kl[0] for p in files if sizes[p.target] <= sizes[target])


@pytest.fixture(scope="module")
def stored():
    """As the book draws the stored results."""
    table = read_table(ROOT / "experiments/27-better-four-bits/results.json")
    found = kl_by_file({label: files_of(model) for label, model in table.items()})
    found.draw_without_rendering()
    return found


@pytest.mark.parametrize("drawn_from", ["figure", "stored"])
def test_no_two_points_and_no_two_texts_touch_and_none_is_cut_off(drawn_from, request):
    figure = request.getfixturevalue(drawn_from)
    for ax in figure.axes:
        points = [ax.transData.transform(at) for bars in ax.containers for at in zip(*bars.lines[0].get_data())]
        assert min(np.hypot(*(a - b)) for a, b in combinations(points, 2)) > 5.0 / 72 * figure.dpi
    hidden = [label for ax in figure.axes for label in ax.get_xticklabels(which="both")]  # some are beyond the axis
    shown = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible() and text not in hidden]
    assert len(shown) > 50
    width = figure.get_figwidth() * figure.dpi
    assert all(text.get_window_extent().x0 >= 0 and text.get_window_extent().x1 <= width for text in shown)
    for a, b in combinations([text.get_window_extent() for text in shown], 2):
        assert a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 or b.y1 <= a.y0


def test_it_is_narrow_enough_for_a_phone_and_tells_methods_apart_without_colour(figure):
    smallest = min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text() and text.get_visible())
    assert smallest / 72 / figure.get_figwidth() * 343 > 7, "pixels, in the 343 that a phone has room for"
    assert len({marker for marker, _ in FORMS}) == len(FORMS)


def test_the_text_names_every_file_of_every_line(figure):
    for label, files in FACETS.items():
        for point in pareto(same_size(files)):
            assert f"{point.target} {point.method} {point.kl[0]:.2g}".replace("  ", " ") in figure.alt
        assert f"{label}: " in figure.alt


def test_every_quantized_file_of_the_table_is_drawn_once(stored):
    table = read_table(ROOT / "experiments/27-better-four-bits/results.json")
    for ax, model in zip(stored.axes, table.values(), strict=True):
        files = [row for row in model.rows.values() if row.n_bytes and row.bits < 16]
        assert len(ax.containers) == len(files) == len(files_of(model)) > 50


def test_the_legend_names_each_method_once_and_the_line(figure):
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [*METHODS, "Pareto line"]
