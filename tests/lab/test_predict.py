"""A prediction before an experiment: it shows itself, compares itself, and never stops a notebook."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from miniquant.lab import at_least, at_most, predict
from miniquant.lab.figures import figure

QUESTION = "By what factor does the file get smaller?"


def test_an_unanswered_prediction_says_what_to_write_and_counts_as_nan():
    prediction = predict(QUESTION, "times", None)
    assert repr(prediction) == f"{QUESTION}\n  no guess yet; write your number in place of None"
    assert math.isnan(float(prediction))
    assert repr(prediction.beside(3.08)) == "no guess · measured: 3.08 times"


@pytest.mark.parametrize("guess", [4, 4.0, np.int8(4), np.float32(4), Fraction(8, 2)])
def test_every_kind_of_number_is_a_guess(guess):
    prediction = predict(QUESTION, "times", guess)
    assert float(prediction) == 4.0
    assert repr(prediction) == f"{QUESTION}\n  your guess: 4 times"


@pytest.mark.parametrize(
    ("guess", "said"),
    [
        ("4", "'4' is text; write a number without quotes"),
        ("four <b>", "'four <b>' is text"),
        (True, "type bool"),
        ([4], "type list"),
        (4j, "type complex"),
        (..., "type ellipsis"),
        (math.nan, "not finite"),
        (-math.inf, "not finite"),
        (10**400, "not finite"),
    ],
    ids=str,
)
def test_what_is_no_finite_number_is_explained_and_stops_nothing(guess, said):
    prediction = predict(QUESTION, "times", guess)
    assert said in repr(prediction)
    assert math.isnan(float(prediction))
    assert repr(prediction.beside(3.08)) == "no guess · measured: 3.08 times"
    assert "<b>" not in prediction._repr_html_().replace("<strong>", "")


@pytest.mark.parametrize(
    ("guess", "measured", "unit", "said"),
    [
        (4, 3.08, "times", "off by 30 %"),
        (2, 3.08, "times", "off by 35 %"),
        (3.08, 3.08, "times", "exactly right"),
        (1000, 1001, "bytes", "off by less than 1 %"),
        (80, 2, "times", "off by a factor of 40"),
        (2, 80, "times", "off by a factor of 40"),
        (-1, 2, "nats", "off by 150 %"),
        (0, 2, "nats", "off by 100 %"),
        (5, 0, "bytes", "off by 5 bytes"),
        (30, 12, "%", "off by 18 percentage points"),
        (4, math.nan, "times", "no difference can be computed"),
    ],
)
def test_the_distance_is_told_in_the_form_that_fits(guess, measured, unit, said):
    assert repr(predict("How much?", unit, guess).beside(measured)).split(" · ")[-1] == said


@pytest.mark.parametrize("value", [3.0831, 0.999999, 99.96, 12345.678, -0.0456, 1e-7, 7e20])
def test_a_figure_is_the_number_within_its_digits(value):
    assert float(figure(value).replace(",", "")) == pytest.approx(value, rel=5e-3)


def test_a_measurement_may_be_a_scalar_of_numpy_or_an_array_with_one_element():
    assert repr(predict(QUESTION, "times").beside(np.float32(3.0831))) == "no guess · measured: 3.08 times"
    assert repr(predict(QUESTION, "times").beside(np.array(3.0831))) == "no guess · measured: 3.08 times"


def test_the_html_holds_what_the_text_says():
    prediction = predict("Is 2 < 3 `true`?", "times", 4)
    assert "Is 2 &lt; 3" in prediction._repr_html_() and "your guess: 4 times" in prediction._repr_html_()
    line = prediction.beside(3.08)
    assert all(part in line._repr_html_() for part in repr(line).split(" · "))


@pytest.mark.parametrize("value", [0.0031, 3.4e-8, 0.5, 1.0, 47, 99.999, 123456, 1e-300])
def test_a_bound_holds_and_is_at_most_two_and_a_half_times_away(value):
    above, below = (float(said(value).split()[-1]) for said in (at_most, at_least))
    assert below <= value <= above
    assert above <= 2.5 * value * (1 + 1e-12) and below * 2.5 >= value * (1 - 1e-12)


def test_a_bound_of_a_negative_number_is_refused():
    with pytest.raises(ValueError, match="pass its size"):
        at_most(-1)
