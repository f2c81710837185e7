"""What a report says about a wrong function is true: each count, place and relation is computed again."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest
from sentences import condition, facts_of, mistakes_of, relation
from test_detect import made

from miniquant.lab import evaluate, exercises

SAMPLE = sorted(name for name, spec in exercises().items() if spec.keeps_to_memory and not spec.observe)[::12]


@pytest.mark.parametrize("name", SAMPLE)
def test_every_sentence_about_a_known_mistake_holds_on_the_cases(name):
    spec = exercises()[name]
    names = list(inspect.signature(spec.reference).parameters)
    for mistake in spec.mistakes[:3]:
        report = evaluate(_nameless(spec), mistake.wrong, search=False)
        assert not list(mistakes_of(report, facts_of(spec, mistake.wrong, names))), mistake.name


def _nameless(spec):
    """The exercise without its known mistakes: then a report says what the results show."""
    return dataclasses.replace(spec, mistakes=())


def double(values, times):
    """Numbers, multiplied. -> float64"""
    return values * times


DOUBLE = made(
    double,
    [(np.array([1.0, -2.0, 3.5]), 2), (np.array([0.5, 7.0]), 3), (np.array([-4.0]), 1), (np.array([9.0, 1.0]), -2)]
    + [(np.array([1.0, 2.0, 5.0, n]), n) for n in (4, 5, 6)],
)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda values, times: values * times * 2,
        lambda values, times: values * times + 5,
        lambda values, times: -(values * times),
        lambda values, times: np.abs(values * times),
        lambda values, times: np.float32(values * times),
        lambda values, times: list(values * times),
        lambda values, times: values * times if times < 5 else values * 0,
        lambda values, times: values * times if times > 1 else values - 8,
        lambda values, times: (values * times)[:, None],
        lambda values, times: np.r_[values[:-1] * times, 0],
    ],
)
def test_every_sentence_about_a_made_up_mistake_holds_on_the_cases(wrong):
    assert not list(mistakes_of(evaluate(DOUBLE, wrong, search=False), facts_of(DOUBLE, wrong, ["values", "times"])))


def said(what, sentence):
    """What the check of sentences finds in a report of one sentence on a function that adds 5 where times >= 4."""

    def wrong(values, times):
        return values * times + 5 * (times >= 4)

    report = type("Said", (), {"what": what, "cause": sentence, "also": ""})
    return list(mistakes_of(report, facts_of(DOUBLE, wrong, ["values", "times"])))


FIRST = "wrong on 3 of 7 cases: the value differs"


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("Every value is too large by 5, on 3 of 7 cases.", "Every value is too large by 6, on 3 of 7 cases."),
        ("Anything at all, on 3 of 7 cases.", "Anything at all, on 3 of 8 cases."),
        (
            "Anything at all, on at least 2 of the 3 wrong cases.",
            "Anything at all, on at least 2 of the 4 wrong cases.",
        ),
        (
            "Something, on 3 of 7 cases; of the inputs tried, exactly those where `times` is 4 or more are wrong.",
            "Something, on 3 of 7 cases; of the inputs tried, exactly those where `times` is 3 or more are wrong.",
        ),
        (
            "Of the inputs tried, nearly all of those where `times` is 2 or more are wrong, and no others.",
            "Of the inputs tried, nearly all of those where `times` is 5 or more are wrong, and no others.",
        ),
    ],
)
def test_the_check_of_sentences_finds_what_is_not_true(true, false):
    assert said(FIRST, true) == []
    assert len(said(FIRST, false)) == 1


def test_the_check_of_sentences_counts_the_wrong_cases_again():
    assert len(said("wrong on 4 of 7 cases: the value differs", "")) == 1


def test_the_check_of_sentences_knows_what_reports_say_most_often():
    known = [
        "every value is 3 times too large",
        "the result is a list; a tuple is asked for",
        "only the last value is wrong",
    ]
    assert all(relation(claim) for claim in known)
    assert relation("the moon is full") is None
    assert condition("the moon is full", facts_of(DOUBLE, double, ["values", "times"])) is None
