"""The teaching claims, for every exercise of the catalogue."""

from __future__ import annotations

import inspect
import re
from itertools import combinations

import numpy as np
import pytest

from miniquant.lab import exercises
from miniquant.lab.compare import equal
from miniquant.lab.engine import attempt, evaluate

ALL = exercises()
MISTAKES = [(spec, mistake) for spec in ALL.values() for mistake in spec.mistakes]
every_exercise = pytest.mark.parametrize("spec", ALL.values(), ids=ALL.keys())


def renamed(spec, body):
    """``body`` behind the exercise's own signature, as a student would write it."""
    names = ", ".join(inspect.signature(spec.reference).parameters)
    scope = {"body": body}
    exec(compile(f"def {spec.name}({names}):\n    return body({names})", "student", "exec"), scope)
    return scope[spec.name]


@every_exercise
def test_the_reference_passes(spec):
    report = evaluate(spec, spec.reference)
    assert report.passed, report


@every_exercise
def test_a_starter_is_not_attempted(spec):
    names = ", ".join(inspect.signature(spec.reference).parameters)
    scope = {}
    exec(f"def {spec.name}({names}):\n    raise NotImplementedError", scope)
    assert evaluate(spec, scope[spec.name]).status == "not attempted"


@every_exercise
def test_the_oracle_shares_no_code_with_the_reference(spec):
    assert spec.oracle is not spec.reference
    for line in inspect.getsource(spec.oracle).splitlines():
        assert f"{spec.name}(" not in line, "the oracle calls the reference"


@every_exercise
def test_it_has_at_least_three_mistakes_two_hints_and_whole_texts(spec):
    assert len(spec.mistakes) >= 3
    assert len({m.name for m in spec.mistakes}) == len(spec.mistakes)
    for text in (spec.goal, *spec.hints, *(t for m in spec.mistakes for t in (m.cause, m.cure))):
        assert re.fullmatch(r"\S.*[.]", text, re.S), f"not a sentence: {text!r}"
    assert spec.minutes in range(2, 21)
    assert spec.difficulty in ("warm-up", "core", "stretch")


@pytest.mark.parametrize(("spec", "mistake"), MISTAKES, ids=[f"{s.name}-{m.name}" for s, m in MISTAKES])
def test_a_catalogued_mistake_is_refused_and_named(spec, mistake):
    report = evaluate(spec, renamed(spec, mistake.wrong))
    assert report.status == "failed", "the checks accept it"
    assert report.mistake == mistake.name, report


@every_exercise
def test_two_mistakes_of_one_exercise_can_be_told_apart(spec):
    cases = spec.all_cases()
    for a, b in combinations(spec.mistakes, 2):
        same = all(attempt(spec, a.wrong, case).same_as(attempt(spec, b.wrong, case)) for case in cases)
        assert not same, f"{a.name!r} and {b.name!r} look the same to the checks"


@pytest.mark.parametrize(
    ("spec", "a", "b"),
    [(s, a, b) for s in ALL.values() for a, b in zip(s.mistakes, s.mistakes[1:])],
    ids=[f"{s.name}-{a.name}-{b.name}" for s in ALL.values() for a, b in zip(s.mistakes, s.mistakes[1:])],
)
def test_two_mistakes_at_once_are_refused_with_a_truthful_expected_and_got(spec, a, b):
    """A student who makes one mistake on every second input and the other on the rest, in either order."""
    reports = []
    for parity in (0, 1):
        calls = []

        def both(*arguments, parity=parity, calls=calls):
            calls.append(arguments)
            return (a, b)[(len(calls) + parity) % 2].wrong(*arguments)

        reports.append(evaluate(spec, renamed(spec, both)))
    failed = [report for report in reports if not report.passed]  # a mistake may be harmless on its half of the cases
    assert failed
    for report in failed:
        assert report.what
        assert report.expected != report.got, report


def blank(value):
    """What ``value`` would be if nobody had computed anything: zeros of its shape, or its type's empty value."""
    if isinstance(value, np.ndarray):
        return np.zeros_like(value)
    if isinstance(value, bytes):
        return bytes(len(value))
    if isinstance(value, tuple):
        return type(value)(*map(blank, value)) if hasattr(value, "_fields") else tuple(map(blank, value))
    if isinstance(value, list):
        return [blank(v) for v in value]
    if isinstance(value, dict):
        return {k: blank(v) for k, v in value.items()}
    if hasattr(value, "detach"):
        return value * 0
    return type(value)() if value is not None else None


@every_exercise
def test_zeros_of_the_right_shape_do_not_pass(spec):
    def zeros(*arguments):
        return blank(spec.oracle(*arguments))

    assert evaluate(spec, renamed(spec, zeros)).status == "failed"


@every_exercise
def test_returning_an_argument_does_not_pass(spec):
    for index in range(len(inspect.signature(spec.reference).parameters)):
        assert evaluate(spec, renamed(spec, lambda *a, index=index: a[index])).status == "failed"


@every_exercise
def test_a_mistake_that_is_in_no_catalogue_gets_a_truthful_expected_and_got(spec):
    report = evaluate(spec, renamed(spec, lambda *_: "a string that nobody expects"))
    assert report.status == "failed"
    assert report.mistake == ""
    assert "a string that nobody expects" in report.got or "str" in report.got


@every_exercise
def test_the_cases_are_the_same_every_time(spec):
    first, second = spec.all_cases(), spec.all_cases()
    assert len(first) == len(second) >= 3
    plain = [(a, b) for a, b in zip(first, second) if "object at" not in repr(a)]
    assert all(equal(a, b) for a, b in plain)
