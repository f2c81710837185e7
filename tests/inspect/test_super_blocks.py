"""The pictures of K-quants: every bit under its number, every reading with its correlation."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import gguf
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from miniquant.inspect.super_blocks import scale_bits
from miniquant.plots.k_quants import perplexity_bars, readings


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
    assert titles[:2] == ["right: correlation 1.00", "negated: correlation -1.00"]
    assert len(titles) == 3
    assert "right 1.00, negated -1.00" in figure.alt
    assert not plt.get_fignums()


def test_every_type_has_a_bar_with_its_perplexity_and_its_change():
    figure = perplexity_bars(20.0, {"Q6_K": (6.5625, 20.1), "Q2_K": (2.625, 25.0)})
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.texts] == [" 20.10, +0.5 %", " 25.00, +25.0 %"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Q6_K, 6.562 bits", "Q2_K, 2.625 bits"]
    assert "the float model at 20.00" in figure.alt
