"""The figures of products say what they show."""

import numpy as np

from miniquant.plots.integer_products import along_a_model, differences


def test_each_way_has_its_histogram_on_one_axis():
    near, far = np.array([0, 1e-6, -2e-6, 1e-6]), np.array([[0.1, -0.3], [0.2, 0.25]])
    figure = differences({"near": near, "far": far}, what="a logit")
    assert "near: half of them below 1e-06, all below 2e-06; far: half of them below 0.2, all below 0.3" in figure.alt
    assert [round(sum(bar.get_height() for bar in ax.patches)) for ax in figure.axes] == [4, 4]
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim() and figure.axes[0].get_xscale() == "log"
    assert figure.axes[-1].get_xlabel() == "size of the difference of a logit"


def test_differences_along_a_model_have_a_line_each_and_their_steps_below():
    series = {"fed": (np.arange(3), np.array([1e-7, 2e-7, 0])), "own": (np.array([1, 2]), np.array([1e-5, 0.03]))}
    figure = along_a_model(series, {1: "layer 0", 2: "layer 1"})
    assert "fed: 1e-07 at first, 1e-10 at the end; own: 1e-05 at first, 0.03 at the end" in figure.alt
    (ax,) = figure.axes
    assert [label.get_text() for label in ax.get_xticklabels()] == ["layer 0", "layer 1"]
    assert [len(line.get_xdata()) for line in ax.lines] == [3, 2] and ax.get_yscale() == "log"
    assert len({line.get_linestyle() for line in ax.lines}) == 2
