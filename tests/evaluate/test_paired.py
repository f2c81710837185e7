"""Intervals of figures that compare two models on the same windows."""

import numpy as np
import pytest

from miniquant.evaluate.paired import CONFIDENCE, RESAMPLES, Bootstrap, Interval, gap_closed


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    random, covered = np.random.default_rng(0), 0
    bootstrap = Bootstrap(60)
    for _ in range(200):
        a = random.exponential(2, 60)
        covered += bootstrap.ratio(a, a * random.normal(0.5, 0.05, 60)).holds(2)
    assert CONFIDENCE - 0.1 <= covered / 200 <= 0.99


def test_models_are_compared_in_pairs():
    """What two rows share takes no part in their difference, however much it varies."""
    shared = np.random.default_rng(1).normal(0, 100, 50)
    assert Bootstrap(50).difference(shared + 1, shared) == pytest.approx((1, 1, 1), abs=1e-9)
    assert Bootstrap(50).ratio(3 * shared, shared) == pytest.approx((3, 3, 3))


def test_the_interval_of_a_mean_is_as_wide_as_its_standard_error_says():
    sample = np.random.default_rng(2).normal(5, 2, 400)
    found, error = Bootstrap(400).mean(sample), sample.std(ddof=1) / 20
    assert found.value == sample.mean()
    assert (found.high - found.low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.05)


def test_the_draws_are_the_same_each_time_and_every_window_is_drawn_as_often_as_any_other():
    one, two = Bootstrap(7), Bootstrap(7)
    assert np.array_equal(one.weights, two.weights) and one.weights.shape == (RESAMPLES, 7)
    assert one.weights.sum(axis=1) == pytest.approx(1)
    assert one.weights.mean(axis=0) == pytest.approx(1 / 7, rel=0.03)


def test_a_statistic_may_be_any_function_of_the_means():
    found = Bootstrap(3).interval(lambda a, b: np.exp(a) - b, np.zeros(3), np.full(3, 0.25))
    assert found == Interval(0.75, 0.75, 0.75)


def test_the_gap_is_closed_by_as_much_of_the_perplexity_as_has_come_back():
    base, plain = np.log(20), np.log(25)
    assert [gap_closed(np.log(p), plain, base) for p in (25, 22, 20, 26)] == pytest.approx([0, 0.6, 1, -0.2])
