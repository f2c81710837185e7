"""The figures of the KV cache say what they show."""

import numpy as np

from miniquant.plots.kv_cache import cache_growth, stripes


def test_a_marker_stands_where_the_cache_is_as_large_as_the_weights():
    figure = cache_growth({"a": (4_000_000_000, 100_000), "b": (8_000_000_000, 1000)}, guess=1000)
    assert "a: cache and weights are equal at 40,000 tokens; b: the cache stays smaller" in figure.alt
    (marked,) = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert (marked.get_xdata()[0], marked.get_ydata()[0]) == (40_000, 4)
    assert "your guess" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_without_a_guess_none_is_drawn():
    figure = cache_growth({"a": (4_000_000_000, 100_000)})
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a: cache"]


def test_stripes_are_drawn_for_each_panel_in_the_same_grey():
    even, striped = np.ones((5, 4)), np.tile([1.0, 1, 1, 6], (5, 1))
    figure = stripes({"even": even, "striped": striped, "third": even})
    assert "even: the largest channel is 1.0 times the median; striped: the largest channel is 6.0 times" in figure.alt
    images = [ax.images[0] for ax in figure.axes[:3]]
    assert [image.get_clim() for image in images] == [(0, 3)] * 3
    assert np.allclose(images[0].get_array(), 1)
