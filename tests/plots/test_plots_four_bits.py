"""The figures of four-bit levels say what is in them."""

from __future__ import annotations

import numpy as np
import pytest

from miniquant.plots.four_bits import error_by_place, levels_below_weights


def test_levels_and_weights_within_half_of_the_extreme_are_counted():
    weights = np.array([-1, -0.25, 0.1, 0.75])
    fig = levels_below_weights(weights, {"even": np.arange(-8, 8) / 8, "two": np.array([-1, 0.5])})
    assert "4 weights, 50 % of them" in fig.alt
    assert "even has 7 of 16 within half of the extreme; two has 0 of 2" in fig.alt


def test_the_error_of_a_bin_is_that_of_its_blocks_together():
    place = np.array([4.5, 5.5, 6.5, 7.5, 8.0])
    fig = error_by_place(place, {"MXFP4": np.array([1, 4, 9, 4, 12])}, np.array([100, 100, 100, 50, 50]), bins=4)
    assert "MXFP4 from 10.0 to 40.0 %" in fig.alt


def test_a_bin_without_blocks_is_refused():
    with pytest.raises(ValueError, match="no block lies in bin 1"):
        error_by_place(np.array([4.5]), {"MXFP4": np.ones(1)}, np.ones(1), bins=2)
