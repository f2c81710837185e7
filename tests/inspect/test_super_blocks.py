"""The pictures of K-quants: every bit under its number, every reading with its correlation."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import gguf
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from miniquant.evaluate.quality import Estimate
from miniquant.inspect.super_blocks import scale_bits
from miniquant.plots.k_quants import layout_and_search, readings, tries


@given(packed=hnp.arrays(np.uint8, 12))
def test_the_bits_under_each_number_put_together_are_the_official_package_s(packed):
    text = repr(scale_bits(packed)).splitlines()
    fields = {}
    for line in text[1:13]:
        for part in line[15:].split(")")[:-1]:
            bits, _, name = part.strip().partition(" (")
            fields[name] = bits
    both = gguf.quants.Q4_K.get_scale_min(packed[None])
    for what, names, values in zip(("scale", "minimum"), ("scales", "mins"), both, strict=True):
        for j, value in enumerate(values[0].tolist()):
            bits = fields[f"{what} {j}"] if j < 4 else fields[f"{what} {j}, upper 2"] + fields[f"{what} {j}, lower 4"]
            assert int(bits, 2) == value
        assert text[13 if what == "scale" else 14] == f"{names}: {' '.join(map(str, values[0]))}"


def test_the_html_says_the_same_and_tells_scales_from_mins_without_colour():
    shown = scale_bits(np.arange(12, dtype=np.uint8))
    ET.fromstring(shown.html)
    for what in ("scale", "minimum"):
        assert all(f"<small>{what} {j}" in shown.html for j in range(8))
    assert "dashed" in shown.html


@pytest.mark.parametrize("packed", [np.zeros(11, np.uint8), np.zeros(12), np.zeros((1, 12), np.uint8)])
def test_anything_but_twelve_bytes_is_refused(packed):
    with pytest.raises(ValueError, match="expected the 12 bytes of scales"):
        scale_bits(packed)


def test_each_reading_has_a_panel_with_its_correlation():
    w = np.random.default_rng(0).standard_normal((40, 64))
    figure = readings(w, {"right": w, "negated": -w, "noise": np.random.default_rng(1).standard_normal(w.shape)})
    titles = [ax.get_title(loc="left") for ax in figure.axes if ax.get_visible()]
    assert titles[:2] == ["right:\ncorrelation 1.00", "negated:\ncorrelation -1.00"]
    assert len(titles) == 3
    assert "right 1.00, negated -1.00" in figure.alt
    assert not plt.get_fignums()


def test_layout_and_search_has_a_line_for_each_way_and_a_label_for_each_cell():
    bits = {"Q4_1": 5, "Q4_K": 4.5}
    lost = {"plain": {"Q4_1": 7.94, "Q4_K": 7.95}, "search": {"Q4_1": 7.09, "Q4_K": 7.24}}
    figure = layout_and_search(bits, lost, beside={"Q4_0": (4.5, 8.75)}, guess=8.5)
    (ax,) = figure.axes
    lines = [line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_label() != "your guess"]
    assert [(*line.get_xdata(), *line.get_ydata()) for line in lines] == [(5, 4.5, 7.94, 7.95), (5, 4.5, 7.09, 7.24)]
    points = {(*line.get_xdata(), *line.get_ydata()) for line in ax.lines if len(line.get_xdata()) == 1}
    assert points == {(5, 7.94), (4.5, 7.95), (5, 7.09), (4.5, 7.24), (4.5, 8.75)}
    shown = {text.get_text() for text in ax.texts}
    assert shown == {
        "plain",
        "search",
        *(f"{n}  {v} %" for way in lost.values() for n, v in way.items()),
        "Q4_0  8.75 %",
    }
    assert sum(line.get_label() == "your guess" for line in ax.lines) == 1
    assert "does not begin at 0" in ax.get_ylabel()
    assert "Q4_K, search 7.24 %" in figure.alt and "Q4_0 8.75 %" in figure.alt
    unguessed = layout_and_search(bits, lost, guess=float("nan")).axes[0]
    assert not [line for line in unguessed.lines if line.get_label() == "your guess"]


def test_an_estimate_has_two_standard_errors_to_either_side():
    lost = {"plain": {"Q4_1": Estimate(0.02, 0.001), "Q4_K": Estimate(0.03, 0.002)}}
    (ax,) = layout_and_search({"Q4_1": 5, "Q4_K": 4.5}, lost, form="{:.3f}", what="KL").axes
    bars = [segment[:, 1].tolist() for bars in ax.collections for segment in bars.get_segments()]
    assert bars == [pytest.approx([0.018, 0.022]), pytest.approx([0.026, 0.034])]
    assert "Q4_K  0.030" in {text.get_text() for text in ax.texts}


def test_tries_puts_a_marker_at_the_best_try_of_each_block():
    steps, errors = np.array([14, 15, 16]), {"a": np.array([1.2, 1, 0.7]), "b": np.array([0.9, 1, 1.1])}
    figure = tries(steps, errors)
    markers = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    assert [(*line.get_xdata(), *line.get_ydata()) for line in markers] == [(16, 0.7), (14, 0.9)]
    assert "a: 0.70 at 16 steps; b: 0.90 at 14 steps" in figure.alt
