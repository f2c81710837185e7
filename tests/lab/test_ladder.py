"""The ladder of help: what the first check shows, what the second, what hint gives, and what stands in meanwhile."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from miniquant.core.errors import MiniquantError
from miniquant.lab import Exercise, Mistake, catalogue, check, evaluate, exercise, hint, session
from miniquant.lab.limit import memory_limit


def toy_sum(values, start):
    """Sum. -> int"""
    return sum(values) + start


SUM = Exercise(
    lab="99",
    goal="Sum.",
    minutes=5,
    difficulty="warm-up",
    reference=toy_sum,
    oracle=lambda values, start: start + sum(reversed(values)),
    cases=lambda random: [([1, 2], 5), (list(range(200)), 7), ([9, 9, 9], 1)],
    hints=("First hint.", "Second hint."),
    why="sums.",
    mistakes=(
        Mistake(
            "start left out", lambda values, start: sum(values), cause="It is not added.", cure="Add it.", see="less"
        ),
    ),
)


class Toys(dict):
    """A catalogue of one."""

    def lab_of(self, name):
        return self[name].lab


@pytest.fixture(autouse=True)
def toys(monkeypatch, tmp_path):
    session.reset()
    monkeypatch.setattr(catalogue, "exercises", lambda: Toys(toy_sum=SUM))
    monkeypatch.setenv("MINIQUANT_PROGRESS", str(tmp_path / "progress.json"))


def wrong():
    @exercise("toy_sum")
    def toy_sum(values, start):
        return sum(values)

    return toy_sum


def right():
    @exercise("toy_sum")
    def toy_sum(values, start):
        return sum(values) + start

    return toy_sum


def test_the_first_failure_shows_the_cause_and_no_hint_and_the_second_adds_hint_1():
    answer = wrong()
    first, second = repr(check(answer)), repr(check(answer))
    assert "as far as tried, same results as the known mistake: start left out: It is not added." in first
    assert "First hint." not in first
    assert "`hint(toy_sum)` shows Hint 1" in first
    assert "hint 1: First hint." in second
    assert "`hint(toy_sum)` shows Hint 2" in second


def test_no_check_prints_the_cure_and_the_third_rung_does():
    answer = wrong()
    assert "Add it." not in "".join(repr(check(answer)) for _ in range(4))
    rungs = [hint(answer) for _ in range(3)]
    assert [r.text for r in rungs[:1]] == ["Second hint."]
    assert "What to do: Add it." in rungs[1].text
    assert rungs[2].title == "toy_sum, the solution"


def test_the_next_rung_that_a_check_announces_is_the_one_that_hint_shows():
    answer = wrong()
    for words in (
        "hint 1 of 2",
        "hint 2 of 2",
        "as far as tried, same results as the known mistake",
        "the solution",
    ):
        session.state("toy_sum").failed = 0
        announced = check(answer).next
        assert words in hint(answer).title
        assert {
            "hint 1 of 2": "Hint 1",
            "hint 2 of 2": "Hint 2",
            "as far as tried, same results as the known mistake": "what to do",
            "the solution": "where",
        }[words] in announced


def test_two_fresh_sessions_report_the_same():
    first = repr(check(wrong()))
    session.reset()
    assert repr(check(wrong())) == first


def test_a_report_has_the_whole_case_where_the_text_is_cut():
    @exercise("toy_sum")
    def toy_sum(values, start):
        return 3 if len(values) == 200 else sum(values) + start

    report = check(toy_sum)
    assert report.case == {"values": list(range(200)), "start": 7}
    assert (report.expected, report.got) == (19907, 3)
    assert "…" in report.shown.case
    assert "`r = check(toy_sum)`" in repr(report)
    assert "`r.case`" in repr(report)
    assert "to see all" not in repr(check(wrong()))


def test_the_case_of_a_report_is_a_copy():
    first = evaluate(SUM, wrong().student)
    shown = first.shown.case
    first.case["values"].clear()
    second = evaluate(SUM, wrong().student)
    assert second.shown.case == shown
    assert second.case["values"]


def test_a_function_whose_check_failed_is_replaced_by_the_reference_and_one_line_says_so(capsys):
    answer = wrong()
    assert answer([1], 1) == 1
    check(answer)
    assert capsys.readouterr().out == ""
    assert (answer([1], 1), answer([1], 1)) == (2, 2)
    assert capsys.readouterr().out == "this cell uses the reference for `toy_sum`: yours is not right yet\n"


def test_a_new_function_is_used_as_soon_as_it_is_written(capsys):
    check(wrong())
    assert right()([1], 1) == 2
    answer = right()
    assert check(answer).passed
    assert answer([1], 1) == 2
    assert capsys.readouterr().out == ""


def test_another_subclass_of_the_error_that_is_asked_for_is_right_and_another_error_is_not():
    def strict(values):
        """Raises ValueError for everything."""
        raise UnicodeError("subclass of ValueError")

    spec = dataclasses.replace(
        SUM, name="strict", reference=strict, oracle=strict, cases=lambda r: [(1,), (2,)], mistakes=()
    )

    def refuses(error):
        def strict(values):
            raise error("no")

        return evaluate(spec, strict)

    assert refuses(ValueError).passed
    assert refuses(MiniquantError).passed
    assert not refuses(TypeError).passed


def test_the_order_of_keys_counts_only_where_the_exercise_says_so():
    def keys(names):
        """-> dict"""
        return {name: 1 for name in names}

    spec = dataclasses.replace(
        SUM,
        name="keys",
        reference=keys,
        oracle=lambda n: dict.fromkeys(n, 1),
        cases=lambda r: [("ab",), ("ba",)],
        mistakes=(),
    )
    assert evaluate(spec, lambda names: {name: 1 for name in sorted(names)}).passed
    assert not evaluate(dataclasses.replace(spec, ordered=True), lambda names: {n: 1 for n in sorted(names)}).passed


def test_numbers_of_numpy_are_numbers_and_a_list_is_no_tuple():
    assert evaluate(SUM, lambda values, start: np.int64(sum(values) + start)).passed
    assert not evaluate(SUM, lambda values, start: float(sum(values) + start)).passed
    assert not evaluate(SUM, lambda values, start: (sum(values) + start,)).passed


def test_more_parameters_with_defaults_do_no_harm_and_others_do():
    assert evaluate(SUM, lambda values, start, extra=0: sum(values) + start).passed
    assert "the parameters are" in evaluate(SUM, lambda values, start, extra: 0).what
    assert "the parameters are" in evaluate(SUM, lambda values: 0).what


def test_a_call_that_asks_for_gigabytes_is_stopped_and_the_limit_is_lifted():
    report = evaluate(SUM, lambda values, start: bytes(4 << 30))
    assert "MemoryError" in report.cause
    with pytest.raises(MemoryError), memory_limit():
        bytes(2 << 30)
    assert len(bytes(1 << 31)) == 1 << 31


def test_the_memory_limit_leaves_numpy_and_torch_room():
    import torch

    with memory_limit():
        assert torch.ones(2000, 2000).sum() == 4_000_000
        assert np.ones((2000, 2000)).sum() == 4_000_000


def test_a_recursion_without_end_is_shown_with_three_lines_and_a_count():
    def toy_sum(values, start):
        return toy_sum(values, start)

    trace = evaluate(SUM, toy_sum).trace
    assert len(trace.splitlines()) == 5
    assert "more lines like these" in trace


def test_check_of_a_result_and_exercise_without_a_name_say_what_is_wanted():
    assert "not a function; write the name alone" in repr(check(wrong()([1], 2)))
    with pytest.raises(MiniquantError, match="name of the exercise in quotes"):
        exercise(lambda values: values)


def test_a_function_that_calls_another_exercise_hears_of_it_only_if_that_is_wrong():
    from miniquant.lab.detect.calls import of_calls
    from miniquant.lab.verdict import Facts

    scope = {}
    exec("def magic_bytes(magic, version):\n    return b''\ndef caller(x):\n    return magic_bytes(1, 2)", scope)
    facts = Facts(SUM, scope["caller"], ())
    unmarked = "a function that a lab gives may have the name of another lab's exercise"
    assert of_calls(facts, lambda name, function: True) is None, unmarked
    scope["magic_bytes"] = SimpleNamespace(student=scope["magic_bytes"])
    assert "calls `magic_bytes`" in of_calls(facts, lambda name, function: True).text
    assert of_calls(facts, lambda name, function: False) is None
