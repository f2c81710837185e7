"""How exercises and checks behave, whatever a student writes."""

from __future__ import annotations

import copy
import functools
import json
import re
import signal
import sys
import time
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from miniquant.core.errors import MiniquantError
from miniquant.lab import (
    Exercise,
    Mistake,
    catalogue,
    check,
    exercise,
    hint,
    judging,
    more_cases,
    progress,
    record,
    session,
    verdict,
)
from miniquant.lab.attempt import Change, Outcome, attempt, is_stub
from miniquant.lab.checking import evaluate
from miniquant.lab.compare import difference
from miniquant.lab.limit import TooSlow, time_limit

BYTES = Exercise(
    name="toy_header",
    lab="99",
    goal="Write two bytes.",
    minutes=5,
    difficulty="warm-up",
    reference=lambda a, b: bytes([a, b]),
    oracle=lambda a, b: bytes.fromhex(f"{a:02x}{b:02x}"),
    cases=lambda random: [(1, 2), (200, 100), (0, 255)],
    hints=("First hint.", "Second hint."),
    why="two bytes are a start.",
    fields=lambda a, b: [("first", 0, 1), ("second", 1, 2)],
    mistakes=(
        Mistake("swapped", lambda a, b: bytes([b, a]), cause="They are swapped.", cure="Swap them.", see="`02 01`"),
    ),
)
ARRAY = Exercise(
    name="toy_double",
    lab="99",
    goal="Double an array.",
    minutes=5,
    difficulty="core",
    reference=lambda values: values * np.float32(2),
    oracle=lambda values: np.array([[float(v) + float(v) for v in row] for row in values], np.float32),
    cases=lambda random: [
        (np.arange(4, dtype=np.float32).reshape(2, 2),),
        (np.ones((1, 3), np.float32),),
        (random.normal(size=(3, 5)).astype(np.float32),),
    ],
    hints=("First hint.", "Second hint."),
    why="twice is more than once.",
)


class Toys(dict):
    """A catalogue of two."""

    def __init__(self):
        super().__init__(toy_header=BYTES, toy_double=ARRAY)

    def lab_of(self, name):
        return self[name].lab


@pytest.fixture(autouse=True)
def toys(monkeypatch, tmp_path):
    monkeypatch.setattr(catalogue, "exercises", Toys)
    session.reset()
    monkeypatch.setattr(judging, "SECONDS", 0.1)
    monkeypatch.setattr(verdict, "SECONDS", 0.1)
    monkeypatch.setattr(more_cases, "SECONDS", 0.05)
    monkeypatch.setenv("MINIQUANT_PROGRESS", str(tmp_path / "progress.json"))


def double(body):
    def toy_double(values):
        return body(values)

    return evaluate(ARRAY, toy_double)


def test_a_stub_falls_back_to_the_reference_and_is_not_attempted():
    @exercise("toy_header")
    def toy_header(a, b):
        raise NotImplementedError

    assert toy_header(3, 4) == b"\x03\x04"
    report = check(toy_header)
    assert report.status == "not attempted"
    assert "not attempted yet" in repr(report)
    assert BYTES.goal in repr(report)


def test_a_stub_is_told_without_asking_the_oracle():
    def oracle(a, b):
        raise AssertionError("nobody needs this")

    def stub(a, b):
        raise NotImplementedError

    assert evaluate(replace(BYTES, oracle=oracle), stub).status == "not attempted"


def test_a_call_that_waits_for_a_busy_machine_is_not_taken_for_an_endless_loop():
    def patient(values):
        time.sleep(2 * judging.SECONDS)  # as long as an import takes where other programs run
        return 2 * values

    assert double(patient).passed


def test_a_call_that_waits_for_ever_is_stopped_by_the_clock():
    begun = time.monotonic()
    report = double(lambda values: time.sleep(60))
    assert "no answer after" in repr(report)
    assert time.monotonic() - begun < 60


def test_a_not_implemented_error_from_deeper_down_is_not_covered_up():
    def helper():
        raise NotImplementedError("from the depths")

    @exercise("toy_header")
    def toy_header(a, b):
        return helper()

    with pytest.raises(NotImplementedError, match="from the depths"):
        toy_header(1, 2)
    assert check(toy_header).status == "failed"


def test_an_answer_is_used_in_place_of_the_reference():
    @exercise("toy_header")
    def toy_header(a, b):
        return b"mine"

    assert toy_header(1, 2) == b"mine"


def test_success_says_why_it_matters():
    report = double(lambda v: v * np.float32(2))
    assert report.passed
    assert ARRAY.why in repr(report)


def test_an_unknown_exercise_is_refused_with_the_nearest_name():
    with pytest.raises(MiniquantError, match="did you mean 'toy_header'"):
        exercise("toy_headr")


def test_a_failing_byte_is_named_by_its_field_and_a_known_mistake_by_its_name():
    def toy_header(a, b):
        return bytes([b, a])

    report = evaluate(BYTES, toy_header)
    assert "byte 0 differs, in first" in report.what
    assert (report.mistake, report.cause, report.cure) == ("swapped", "They are swapped.", "Swap them.")
    assert report.shown.case == "a = 1, b = 2"
    assert (report.shown.expected, report.shown.got) == ("01 02", "02 01")


def test_the_parts_of_a_report_come_in_the_order_in_which_they_are_read():
    def toy_header(a, b):
        return {}["no such key"]

    answer = exercise("toy_header")(toy_header)
    check(answer)
    text = repr(check(answer))
    labels = re.findall(r"^  ([a-z0-9 ]+):", text, re.M)
    assert labels == ["smallest case", "expected", "got", "what your results show", "hint 1", "next", "traceback"]
    assert "KeyError" in text.splitlines()[-1]
    assert "no such key" in text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (lambda v: None, "returned nothing; is a return missing"),
        (lambda v: print("answer"), "prints and returns None; it must return its answer"),
        (lambda v: (v * 2).tolist(), "the type differs"),
        (lambda v: v.astype(float) * 2, "the dtype differs"),
        (lambda v: (v * 2).ravel(), "the shape differs"),
        (lambda v: np.full_like(v, np.nan), "is not a number (NaN)"),
        (lambda v: v.__imul__(2), "changes its argument in place"),
        (lambda v: v[::-1], "element [0, 0] differs"),
        (lambda v: 1 / 0, "raised an error"),
        (lambda v: exit(), "raised an error"),
        (lambda v: [None for _ in iter(int, 1)], "no answer after 0.1 seconds"),
    ],
    ids=["none", "prints", "list", "dtype", "shape", "nan", "in place", "wrong", "raises", "exits", "endless"],
)
def test_every_way_to_go_wrong_has_its_own_message(body, says):
    report = double(body)
    assert report.status == "failed"
    assert says in report.what, report


def test_a_right_result_that_is_a_view_of_the_argument_is_refused():
    view = Exercise(
        **{**ARRAY.__dict__, "reference": lambda values: values.copy(), "oracle": lambda values: values + 0}
    )

    def toy_double(values):
        return values[:]

    assert "shares memory" in evaluate(view, toy_double).what


@pytest.mark.parametrize("given", [np.zeros(2, np.float32), {"a": 1}, [1, 2]], ids=["array", "dict", "list"])
def test_one_of_several_results_that_is_an_argument_itself_is_refused(given):
    parts = {"reference": lambda values: (1, copy.copy(values)), "oracle": lambda values: (1, copy.copy(values))}
    several = Exercise(**{**ARRAY.__dict__, **parts, "cases": lambda random: [(given,)]})

    def toy_itself(values):
        return 1, values

    assert "shares memory" in evaluate(several, toy_itself).what
    assert evaluate(several, parts["reference"]).status == "passed"


def kept_toy(oracle):
    """Three calls, each with a number, of which ``oracle`` makes something that could be changed later."""
    return Exercise(
        name="toy_kept",
        lab="99",
        goal="Make something of a number.",
        minutes=5,
        difficulty="core",
        reference=lambda n: oracle(n),
        oracle=oracle,
        cases=lambda random: [(1,), (2,), (3,)],
        hints=("First hint.", "Second hint."),
        why="a call is over when it returns.",
    )


@pytest.mark.parametrize(
    ("oracle", "fill"),
    [
        (lambda n: np.full(4, n), lambda kept, n: kept.__setitem__(slice(None), n)),
        (lambda n: np.full(4, n)[:3], lambda kept, n: kept.__setitem__(slice(None), n)),
        (lambda n: [n], lambda kept, n: kept.__setitem__(0, n)),
        (lambda n: {"a": n}, lambda kept, n: kept.__setitem__("a", n)),
        (lambda n: (n, [n, n]), lambda kept, n: kept[1].__setitem__(slice(None), [n, n])),
        (lambda n: {"a": np.full(2, n)}, lambda kept, n: kept["a"].__setitem__(slice(None), n)),
    ],
)
def test_a_right_result_in_the_memory_of_an_earlier_one_is_refused(oracle, fill):
    spec, kept = kept_toy(oracle), oracle(0)

    def toy_kept(n):
        fill(kept, n)
        return (n, kept[1]) if isinstance(kept, tuple) else kept

    report = evaluate(spec, toy_kept)
    assert report.status == "failed"
    assert report.what.startswith("wrong on 2 of 3 cases: the result is in the memory of an earlier call's result")
    assert report.mistake == "memory used again"
    toy_kept = lambda n: oracle(n)  # noqa: E731
    assert evaluate(spec, toy_kept).passed


def test_results_that_cannot_change_may_be_the_same_object():
    fixed = np.arange(3)
    fixed.flags.writeable = False
    for constant in (b"abc", "abc", (1, 2), fixed):
        spec = kept_toy(lambda n, constant=constant: constant)
        assert evaluate(spec, lambda n, constant=constant: constant).passed


def test_an_endless_loop_that_swallows_exceptions_ends_too():
    def toy_double(values):
        while True:
            try:
                sum(range(1000))
            except Exception:
                continue

    assert "no answer" in evaluate(ARRAY, toy_double).what


def test_a_right_answer_that_prints_passes_with_a_note():
    def toy_double(values):
        print("debugging")
        return values * np.float32(2)

    report = evaluate(ARRAY, toy_double)
    assert report.passed
    assert "it also prints" in report.note


def test_an_edited_signature_has_its_own_message():
    def toy_double(array):
        return array * np.float32(2)

    report = evaluate(ARRAY, toy_double)
    assert report.status == "failed"
    assert "the parameters are (array); the exercise needs (values)" in report.what


def test_a_function_without_the_decorator_has_its_own_message():
    def toy_double(values):
        return values

    assert 'put @exercise("toy_double") back' in repr(check(toy_double))


def test_an_input_that_must_be_refused_is_expected_to_be_refused():
    def oracle(values):
        raise ValueError("bad")

    strict = Exercise(**{**ARRAY.__dict__, "oracle": oracle, "reference": oracle})

    def toy_double(values):
        return values

    def refuses(values):
        raise ValueError("my own words")

    assert "must be refused" in evaluate(strict, toy_double).what
    assert evaluate(strict, refuses).passed


def test_the_smallest_failing_case_is_shown():
    def toy_double(values):
        return values * np.float32(2) if values.shape == (2, 2) else values * np.float32(3)

    assert "shape (1, 3)" in evaluate(ARRAY, toy_double).shown.case


def test_html_escapes_what_the_student_made_and_is_well_formed():
    def toy_header(a, b):
        raise ValueError("<script>alert(1)</script>")

    html = evaluate(BYTES, toy_header)._repr_html_()
    assert "<script" not in html
    stack = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attrs):
            stack.append(tag)

        def handle_endtag(self, tag):
            assert stack.pop() == tag

    Parser().feed(html)
    assert stack == []


def test_the_record_keeps_a_pass_and_survives_garbage(tmp_path):
    @exercise("toy_header")
    def toy_header(a, b):
        return bytes([a, b])

    check(toy_header)
    record.write("toy_header", "failed")
    assert record.read() == {"toy_header": {"status": "passed", "checks": 2}}
    record.path().write_text("{ not json")
    assert record.read() == {}
    record.write("toy_header", "failed")
    assert json.loads(record.path().read_text())["toy_header"]["checks"] == 1


def test_hints_go_one_step_further_with_every_call_and_the_last_one_stays():
    @exercise("toy_header")
    def toy_header(a, b):
        raise NotImplementedError

    titles = [hint(toy_header).title for _ in range(5)]
    assert titles[0].endswith("hint 1 of 2")
    assert titles[1].endswith("hint 2 of 2")
    assert titles[2].endswith("I see …")
    assert titles[3] == titles[4] == "toy_header, the solution"


def test_progress_shows_every_lab_in_text_and_html(monkeypatch):
    monkeypatch.setattr("miniquant.lab.guide.exercises", Toys)
    record.write("toy_header", "passed")
    record.write("toy_double", "failed")
    assert repr(progress()).splitlines()[0] == "lab 99  ■◪  1 of 2"
    assert "toy_double: failed" in progress()._repr_html_()


def test_a_time_limit_is_lifted_afterwards():
    with pytest.raises(TooSlow), time_limit(0.05):
        while True:
            pass
    with time_limit(5):
        assert sum(range(10)) == 45


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers of signals here")
def test_an_alarm_while_a_limit_is_being_lifted_leaves_no_timer_behind(monkeypatch):
    real = signal.setitimer

    def late(timer, seconds, *again):
        if timer == signal.ITIMER_PROF and not seconds:
            signal.raise_signal(signal.SIGPROF)  # as on a busy machine, where the next alarm is there already
        return real(timer, seconds, *again)

    before = signal.getsignal(signal.SIGPROF)
    monkeypatch.setattr(signal, "setitimer", late)
    try:
        with time_limit(5, processor=True):
            done = sum(range(10))
        assert done == 45
        assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
        assert signal.getsignal(signal.SIGPROF) == before
    finally:
        real(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def test_a_limit_inside_another_does_not_lift_it():
    reached = []
    with pytest.raises(TooSlow), time_limit(0.2):
        with pytest.raises(TooSlow), time_limit(0.05):
            while True:
                pass
        with time_limit(None):
            pass
        reached.append("after the inner limit")
        end = time.monotonic() + 10
        while time.monotonic() < end:
            pass
    assert reached


def test_an_inner_limit_is_no_longer_than_the_outer_one():
    start = time.monotonic()
    with pytest.raises(TooSlow), time_limit(0.05), time_limit(10):
        while time.monotonic() < start + 5:
            pass
    assert time.monotonic() < start + 5


def test_a_limit_of_processor_time_does_not_count_sleep():
    with time_limit(0.2, processor=True):
        time.sleep(0.5)
    with pytest.raises(TooSlow, match=r"no end after 0.05 s"), time_limit(0.05, processor=True):
        while True:
            pass


def test_the_time_limit_works_outside_the_main_thread():
    import threading

    caught = []

    def work():
        try:
            with time_limit(0.05):
                while True:
                    pass
        except TooSlow:
            caught.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert caught == [True]


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (1, True),
        (1, 1.0),
        (1.0, "1.0"),
        (b"a", bytearray(b"a")),
        ((1, 2), [1, 2]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.float32([0]), np.float64([0])),
        (np.int8([1]), [1]),
    ],
)
def test_values_that_look_alike_but_are_not_are_told_apart(expected, got):
    assert difference(expected, got) is not None


def test_nan_equals_nan_only_where_it_is_expected():
    nan = np.float32([np.nan])
    assert difference(nan, nan.copy()) is None
    assert difference(np.float32([0]), nan) is not None
    assert difference(float("nan"), float("nan")) is None


def test_two_calls_of_which_one_changed_its_argument_are_not_the_same():
    assert Outcome(result=1).same_as(Outcome(result=1))
    assert not Outcome(result=1, change=Change(0, 1, 2)).same_as(Outcome(result=1))
    assert not Outcome(result=1).same_as(Outcome(result=1, change=Change(0, 1, 2)))


def test_a_stub_behind_a_decorator_of_its_own_is_a_stub():
    @functools.lru_cache
    def toy_double(values):
        raise NotImplementedError

    class Callable:
        def __call__(self, values):
            raise NotImplementedError

    for function, expected in ((toy_double, True), (Callable(), False)):
        try:
            function(1)
        except NotImplementedError as error:
            assert is_stub(error, function) is expected


def test_a_students_function_cannot_change_a_table_of_the_course():
    from miniquant.lessons.hostile_files.naive import SCALARS
    from miniquant.lessons.safetensors.items import ITEM

    for table in (ITEM, SCALARS):
        with pytest.raises(TypeError):
            table[next(iter(table))] = 0


def test_an_alarm_does_not_come_while_the_standard_output_is_restored(monkeypatch):
    class Slow(redirect_stdout):
        def __exit__(self, *arguments):
            end = time.process_time() + 0.2
            while time.process_time() < end:
                pass
            return super().__exit__(*arguments)

    monkeypatch.setattr("miniquant.lab.attempt.redirect_stdout", Slow)
    monkeypatch.setattr(sys, "stdout", before := sys.stdout)
    spec = SimpleNamespace(observe=None, oracle=None, may_view=False, run=lambda function, case: function(*case))
    assert attempt(spec, lambda n: n, (1,), 0.05).result == 1
    assert sys.stdout is before


def test_an_alarm_while_a_block_ends_raises_nothing_since_the_timer_would_stay_on():
    class Ending:
        f_code = contextmanager.__code__

    with time_limit(60):
        alarm = signal.getsignal(signal.SIGALRM)
        alarm(signal.SIGALRM, Ending())
        with pytest.raises(TooSlow):
            alarm(signal.SIGALRM, sys._getframe())
