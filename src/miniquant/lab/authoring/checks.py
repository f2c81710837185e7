"""The claims that every exercise must keep, one function a claim: each gives the problems that it finds, as sentences.

``miniquant lab check SUBJECT`` prints them for one lab; the tests assert that no exercise of the course has any.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ..attempt import SECONDS, Outcome, attempts, cases_of, expected_of, outcomes_of
from ..compare import Difference, equal
from ..diagnose import diagnose
from ..judging import evaluate, facts_of
from ..limit import TooSlow
from ..spec import Altered, Exercise, Function, LessonError, Mistake
from ..verdict import problem, problem_on_case, size_of, smallest

Claim = Callable[[Exercise], Iterator[str]]
DIFFICULTIES = ("warm-up", "core", "stretch")
MINUTES = range(2, 21)


def renamed(spec: Exercise, function: Function) -> Function:
    """``function`` with the exercise's own signature, as a student would write it."""
    names = ", ".join(inspect.signature(spec.reference).parameters)
    scope: dict[str, Any] = {"function": function}
    exec(compile(f"def {spec.name}({names}):\n    return function({names})", "student", "exec"), scope)
    student: Function = scope[spec.name]
    return student


def the_reference_passes(spec: Exercise) -> Iterator[str]:
    """The solution is right on every case."""
    report = evaluate(spec, spec.reference, search=False)
    if not report.passed:
        yield f"the reference does not pass: {report}"


def a_starter_is_not_attempted(spec: Exercise) -> Iterator[str]:
    """The stub that a student gets is not called wrong."""
    names = ", ".join(inspect.signature(spec.reference).parameters)
    scope: dict[str, Any] = {}
    exec(f"def {spec.name}({names}):\n    raise NotImplementedError", scope)
    status = evaluate(spec, scope[spec.name], search=False).status
    if status != "not attempted":
        yield f"the starter is {status!r}, expected 'not attempted'"


def texts_are_whole(spec: Exercise) -> Iterator[str]:
    """Goal, hints, causes and cures are sentences; there are at least five mistakes, each with its own name."""
    if len(spec.mistakes) < 5:
        yield f"it has {len(spec.mistakes)} mistakes; write at least 5"
    if len({m.name for m in spec.mistakes}) < len(spec.mistakes):
        yield "two mistakes have the same name"
    for text in (spec.goal, *spec.hints, *(t for m in spec.mistakes for t in (m.cause, m.cure))):
        if not re.fullmatch(r"\S.*[.]", text, re.S):
            yield f"not a sentence: {text!r}"
    if spec.minutes not in MINUTES:
        yield f"it takes {spec.minutes} minutes; an exercise takes {MINUTES[0]} to {MINUTES[-1]}"
    if spec.difficulty not in DIFFICULTIES:
        yield f"its difficulty is {spec.difficulty!r}; expected one of {', '.join(DIFFICULTIES)}"


def a_mistake_is_named(spec: Exercise, mistake: Mistake) -> Iterator[str]:
    """The check refuses the mistake and says its name.

    A mistake that the diagnosis finds alone is in the report by its name, whatever else its results show; the whole
    report is made for the others only.
    """
    assert callable(mistake.wrong)
    if isinstance(mistake.wrong, Altered):
        try:
            mistake.wrong.function  # noqa: B018 (compiled here, since an error in a call counts as the student's)
        except (LessonError, SyntaxError) as error:
            yield f"{mistake.name!r}: {error}"
            return
    student, outcomes = renamed(spec, mistake.wrong), outcomes_of(spec, mistake.wrong)
    facts = facts_of(spec, student, outcomes)
    match = diagnose(facts) if facts.wrong else None
    if match and [found.name for found in match.mistakes] == [mistake.name]:
        return
    report = evaluate(spec, student, search=False, outcomes=outcomes)
    if report.status != "failed":
        yield f"{mistake.name!r} is {report.status}: the cases do not show it"
    elif mistake.name not in (report.mistake, report.perhaps) and not _only_refuses(spec, mistake):
        yield f"{mistake.name!r} is diagnosed as {report.mistake!r}: {report}"


def _only_refuses(spec: Exercise, mistake: Mistake) -> bool:
    """Whether a mistake shows in errors alone: it refuses every good input, and so do other mistakes."""
    assert callable(mistake.wrong)
    calls = zip(outcomes_of(spec, mistake.wrong), expected_of(spec))
    return all(outcome.error for outcome, expected in calls if not expected.error)


def every_mistake_is_named(spec: Exercise) -> Iterator[str]:
    """``a_mistake_is_named`` for all."""
    for mistake in spec.mistakes:
        yield from a_mistake_is_named(spec, mistake)


def mistakes_can_be_told_apart(spec: Exercise) -> Iterator[str]:
    """No two mistakes give the same on every case."""
    for a, b in combinations(spec.mistakes, 2):
        assert callable(a.wrong) and callable(b.wrong)
        if all(x.same_as(y) for x, y in zip(outcomes_of(spec, a.wrong), outcomes_of(spec, b.wrong))):
            yield f"{a.name!r} and {b.name!r} look the same to the checks; add a case that tells them apart"


def two_mistakes_at_once_are_refused(spec: Exercise) -> Iterator[str]:
    """Neighbours in the catalogue, each on every second case: refused, with an expected that is not the got.

    Only what is wrong on the smallest case is looked at; the whole report is long to make.
    """
    for a, b in zip(spec.mistakes, spec.mistakes[1:]):
        turns = [_outcomes_in_turns(spec, a, b), _outcomes_in_turns(spec, b, a)]
        smallest = [_smallest_difference(spec, outcomes) for outcomes in turns]
        found = [(wrong.what, wrong.expected, wrong.got) for wrong in smallest if wrong]
        if not found:  # one may be harmless on its half of the cases
            yield f"{a.name!r} and {b.name!r} in turns pass"
        yield from _same_texts(a, b, found)


def two_mistakes_at_once_have_a_report(spec: Exercise) -> Iterator[str]:
    """The whole report on the first two mistakes, each on every second case, has an expected that is not the got."""
    for a, b in list(zip(spec.mistakes, spec.mistakes[1:]))[:1]:
        turns = _outcomes_in_turns(spec, b, a)
        report = evaluate(spec, renamed(spec, _alternating(a, b)), search=False, outcomes=turns)
        found = [] if report.passed else [(report.what, report.shown.expected, report.shown.got)]
        yield from _same_texts(a, b, found)


def _same_texts(a: Mistake, b: Mistake, found: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """A sentence for each (what, expected, got) that shows no difference."""
    for what, expected, got in found:
        if not what or expected == got:
            yield f"{a.name!r} and {b.name!r} in turns: expected and got are the same: {what}: {got}"


def _smallest_difference(spec: Exercise, outcomes: Sequence[Outcome]) -> Difference | None:
    """What is wrong with outcomes on the smallest case, good input first; nobody looks for the cause."""
    wrong: list[tuple[bool, tuple[int, float], int, Difference]] = []
    for number, (case, outcome, expected) in enumerate(zip(cases_of(spec), outcomes, expected_of(spec))):
        if found := problem_on_case(spec, case, outcome, expected):
            wrong.append((bool(expected.error), size_of(case), number, found))
        if isinstance(outcome.error, TooSlow):
            break
    return min(wrong, key=lambda each: each[:3])[3] if wrong else None


def _is_wrong(spec: Exercise, function: Function) -> bool:
    """Whether a function is wrong on any case; after the first such case, no other one is tried."""
    calls = zip(cases_of(spec), attempts(spec, function, cases_of(spec), SECONDS), expected_of(spec))
    return any(problem(spec, case, outcome, expected) for case, outcome, expected in calls)


def _outcomes_in_turns(spec: Exercise, a: Mistake, b: Mistake) -> list[Outcome]:
    """What one mistake does on every second case, and the other on the rest; each was run on all of them before."""
    assert callable(a.wrong) and callable(b.wrong)
    pairs = zip(outcomes_of(spec, a.wrong), outcomes_of(spec, b.wrong))
    return [pair[number % 2] for number, pair in enumerate(pairs)]


def _alternating(a: Mistake, b: Mistake) -> Function:
    calls = [0]

    def both(*arguments: Any) -> Any:
        calls[0] += 1
        wrong = (a, b)[calls[0] % 2].wrong
        assert callable(wrong)
        return wrong(*arguments)

    return both


def blank(value: Any) -> Any:
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


def lazy_answers_do_not_pass(spec: Exercise) -> Iterator[str]:
    """Zeros of the right shape, an argument as it came, and a string that nobody expects are refused."""
    answers: list[tuple[str, Function]] = [("zeros of the right shape", lambda *a: blank(spec.oracle(*a)))]
    for index, name in enumerate(inspect.signature(spec.reference).parameters):
        answers.append((f"its argument {name}", lambda *a, index=index: a[index]))
    for what, answer in answers:
        if not _is_wrong(spec, renamed(spec, answer)):
            yield f"a function that returns {what} passes"
    student = renamed(spec, lambda *_: "a string that nobody expects")
    facts = facts_of(spec, student, attempts(spec, student, cases_of(spec), SECONDS))
    if not facts.wrong:
        yield "a string that nobody expects passes"
    elif match := diagnose(facts):
        yield f"a string that nobody expects is called {', '.join(mistake.name for mistake in match.mistakes)}"
    elif (shown := smallest(facts.wrong).problem) and "nobody expects" not in shown.got and "str" not in shown.got:
        yield f"a string that nobody expects is not shown: {shown}"


def cases_are_the_same_every_time(spec: Exercise) -> Iterator[str]:
    """At least three, and no chance in them but the seeded one."""
    first, second = spec.all_cases(), spec.all_cases()
    if not len(first) == len(second) >= 3:
        yield f"{len(first)} cases, then {len(second)}; expected the same number twice, at least 3"
    plain = [(a, b) for a, b in zip(first, second) if "object at" not in repr(a)]
    if not all(equal(a, b) for a, b in plain):
        yield "the cases differ from one call to the next; draw only from the generator that `cases` is given"


def the_oracle_is_not_the_reference(spec: Exercise) -> Iterator[str]:
    """The oracle is another function, and it never calls the reference."""
    called: list[str] = []
    code = spec.reference.__code__

    def watch(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code is code:
            called.append(frame.f_code.co_name)

    before, known = sys.getprofile(), expected_of.cache_info().hits
    sys.setprofile(watch)
    try:
        expected_of(spec)
        if expected_of.cache_info().hits > known:  # they were computed before, and nobody watched
            expected_of.__wrapped__(spec)
    finally:
        sys.setprofile(before)
    if called or spec.oracle is spec.reference:
        yield "the oracle calls the reference; it must compute the answer in another way"


CLAIMS: tuple[Claim, ...] = (
    the_oracle_is_not_the_reference,  # first: what it computes is kept for the others
    the_reference_passes,
    a_starter_is_not_attempted,
    texts_are_whole,
    cases_are_the_same_every_time,
    every_mistake_is_named,
    mistakes_can_be_told_apart,
    two_mistakes_at_once_are_refused,
    two_mistakes_at_once_have_a_report,
    lazy_answers_do_not_pass,
)


def problems(spec: Exercise) -> list[str]:
    """Everything that is wrong with an exercise, one sentence each."""
    cases_of.cache_clear()
    return [f"{spec.name}: {problem}" for claim in CLAIMS for problem in claim(spec)]
