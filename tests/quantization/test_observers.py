"""Observers: ranges by hand."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from miniquant.core.errors import SchemeError
from miniquant.quantization.observers import MSE, MinMax, Percentile, Range
from miniquant.quantization.spec import Dtype, QSchemeType, QuantizationSpec, ScaleType

f32 = np.float32


def ranges(observer, x):
    low, high = observer.range(f32(x), None)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def test_min_max_covers_everything_and_always_zero():
    assert ranges(MinMax(), [[-3, 1, 2], [1, 2, 3], [-3, -2, -1], [0, 0, 0]]) == [(-3, 2), (0, 3), (-3, 0), (0, 0)]


def test_a_percentile_leaves_out_its_share_at_either_end_of_every_row():
    """0 … 100: the first percentile is 1, the 99th is 99; a row of its own has a range of its own."""
    row = np.arange(101)
    assert ranges(Percentile(99), [row, -2 * row]) == [(0, 99), (-198, 0)]
    assert ranges(Percentile(75), [row - 50]) == [(-25, 25)]
    assert ranges(Percentile(100), [row - 50]) == [(-50, 50)]


def test_a_percentile_between_two_numbers_lies_between_them():
    """Of -4, 0, 0, 0, 8 the 90th percentile is 0.6 of the way from the fourth to the fifth."""
    [(low, high)] = ranges(Percentile(90), [[-4, 0, 0, 0, 8]])
    assert low == pytest.approx(-4 * 0.6)
    assert high == pytest.approx(8 * 0.6)


@pytest.mark.parametrize("percentile", [50, 100.1, 0, -1, float("nan")])
def test_a_percentile_that_leaves_nothing_or_more_than_all_is_refused(percentile):
    with pytest.raises(SchemeError, match="expected above 50"):
        Percentile(percentile)


def test_the_least_squared_error_by_hand():
    """Two bits, scale = largest / 1.5, points -2 to 1 of it. Fifteen weights of 1 and one of 3.

    The whole range has scale 2: the ones are ties and go to 0, the 3 goes to 2: error 15 + 1 = 16. Half of it has scale
    1: the ones are exact, the 3 goes to 1: error 4.
    """
    x = f32([[1.0] * 15 + [3.0]])
    spec = QuantizationSpec(Dtype.int2, scale_type=ScaleType.float32, observer_cls=partial(MSE, steps=2, smallest=0.5))
    low, high = spec.observer_cls().range(x, spec._fake_quantize)
    assert (low.tolist(), high.tolist()) == ([0], [1.5])
    errors = [float(((spec._fake_quantize(x, Range(f32([0]), f32([top]))) - x) ** 2).sum()) for top in (3, 1.5)]
    assert errors == [16, 4]


def test_squared_errors_are_added_in_float64_where_float32_would_lose_the_smaller_one():
    """4096 squared is 2^24; plus 1 it is no number of float32, and the two ranges would be equally good."""
    x = f32([[2.0, 4.0]])

    def fake_quantize(x, tried):
        return x + f32([4096, 1 if tried.high[0] == 4 else 0])

    low, high = MSE(steps=2, smallest=0.5).range(x, fake_quantize)
    assert (low.tolist(), high.tolist()) == ([0], [2])


@pytest.mark.parametrize("observer", [MSE(), MSE(steps=7, smallest=0.7), MSE(steps=1)])
@pytest.mark.parametrize("symmetric", [True, False])
def test_the_least_squared_error_is_at_most_that_of_the_whole_range_in_every_group(observer, symmetric):
    w = np.random.default_rng(0).standard_t(3, (20, 64)).astype(f32)

    def errors(seen):
        spec = QuantizationSpec(
            Dtype.uint4, symmetric, qscheme=QSchemeType.per_group, group_size=32, observer_cls=lambda: seen
        )
        rows = w.reshape(-1, 32)
        return ((spec._fake_quantize(rows, seen.range(rows, spec._fake_quantize)) - rows) ** 2).sum(axis=1)

    assert (errors(observer) <= errors(MinMax())).all()
    assert (errors(observer).sum() < errors(MinMax()).sum()) == (observer.steps > 1)


@pytest.mark.parametrize("bad", [{"steps": 0}, {"smallest": 0}, {"smallest": 1.5}])
def test_a_search_that_tries_nothing_is_refused(bad):
    with pytest.raises(SchemeError, match="tries no range"):
        MSE(**bad)
