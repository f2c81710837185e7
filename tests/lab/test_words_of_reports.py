"""The words of a report say no more than is so: of counts, labels, texts, answers, and what is kept."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_detect import made, seen

from miniquant.lab import Mistake, evaluate, find
from miniquant.lab.attempt import Outcome
from miniquant.lab.detect.regions import of_regions
from miniquant.lab.detect.texts import of_texts
from miniquant.lab.limit import TooSlow
from miniquant.lab.report import CASE, OF_ITS_KIND


def said(expected, got):
    return [found.text for found in of_texts(expected, got, {})]


def positive(n):
    """The root of n. -> int; raises ValueError for a negative n"""
    if n < 0:
        raise ValueError("negative")
    return n * n + 3


def test_a_case_beside_a_smaller_one_that_must_be_refused_is_not_called_the_smallest():
    spec = made(positive, [(-1,), (1000,), (2000,), (3000,)])
    assert evaluate(spec, lambda n: n).lines()[0][0] == OF_ITS_KIND
    assert evaluate(spec, lambda n: n if n >= 0 else positive(n)).lines()[0][0] == CASE


def test_a_case_beside_a_smaller_empty_one_is_not_called_the_smallest():
    spec = made(lambda x: x + 1.5, [(np.arange(n) / 2,) for n in (0, 3, 4, 5)])

    def toy(x):
        return x / x.size if x.size else None

    report = evaluate(spec, toy)
    assert report.case["x"].size == 3 and report.lines()[0][0] == OF_ITS_KIND


def test_where_all_fail_alike_the_case_shown_is_not_the_empty_one():
    spec = made(lambda x: x + 1.5, [(np.arange(n) / 2,) for n in (0, 1, 4, 5)])
    report = evaluate(spec, lambda x: x.tolist())
    assert report.case["x"].size == 1 and report.lines()[0][0] == OF_ITS_KIND


def test_after_a_call_that_never_ends_only_the_cases_tried_are_counted():
    spec = made(lambda n: n, [(1,), (2,), (3,)])
    outcomes = [Outcome(result=1), Outcome(error=TooSlow())]
    assert evaluate(spec, lambda n: n, outcomes=outcomes).what.startswith("wrong on 1 of 2 cases tried:")


def test_a_constant_that_each_call_returns_has_not_changed():
    table = np.arange(4)
    text = repr(evaluate(made(lambda n: np.arange(4), [(1,), (2,), (3,)]), lambda n: table))
    assert "memory of an earlier call's result" in text
    assert "has changed" not in text and "changed that one" not in text


def test_a_second_call_is_said_to_be_tried_in_one_case_only():
    kept: list[int] = []
    spec = made(lambda n: n * n, [(3,), (4,), (5,), (6,)])
    text = seen(spec, lambda n: kept.append(n) or (len(kept) if n == 3 else -n))
    assert "as tried in one case" in text and "on all 4 cases" not in text


def test_what_is_printed_on_the_way_is_not_called_the_answer():
    text = repr(evaluate(made(lambda n: n * n, [(3,), (4,), (5,)]), lambda n: print("n is", n)))
    assert "prints and returns None" in text and "prints its answer" not in text


@pytest.mark.parametrize(
    ("expected", "got", "words"),
    [
        ("version 08 of it", "version 8 of it", "number 1 is written in another way"),
        ("there are 5 tensors", "there are 6 tensors", "number 1 is too large by 1"),
        ("there are 10 tensors", "there are 81 tensors", "number 1 is a different number"),
        ("a scale of 0.25 here", "a scale of 2.5 here", "number 1 is 10 times too large"),
        ("total: kilo, mega, giga", "total: giga, kilo", None),
        ("the first\nthe second", "the first\nthe second\n", "the number of newlines is 2, and 1 is right"),
        ("none of them at all", "17 of them at all", "something is wrong at the beginning"),
    ],
)
def test_what_is_said_of_a_text_is_so(expected, got, words):
    found = said(expected, got)
    assert words in found if words else not any("the others are right" in text for text in found)


def test_an_answer_given_beyond_the_cases_is_not_said_never_to_be_given():
    spec = made(lambda n: n % 7 == 3, [(n,) for n in (3, 17, 24, 31, 5, 6, 1, 2)])
    text = seen(spec, lambda n: n in (4, 10))
    assert "is never the answer" not in text and "for each of" not in text


def test_of_two_narrow_types_of_one_argument_none_is_called_the_one_that_overflows():
    spec = made(
        lambda q: int((q.astype(int) ** 2).sum()), [(np.full(9, 90 + n, t),) for n in (1, 2) for t in ("i1", "u1")]
    )
    text = seen(spec, lambda q: int((q * q).sum(dtype=q.dtype)))
    assert "(-128 to 127)" not in text and "(0 to 255)" not in text


def test_a_result_that_bad_input_gets_too_is_not_said_of_every_input():
    spec = made(positive, [(-5,), (-7,), (10,), (20,), (30,)])
    text = seen(spec, lambda n: n if n >= 0 else 77)
    assert "unchanged, for each of " in text


def test_a_known_mistake_is_not_named_where_inputs_that_are_tried_later_tell_it_apart():
    mistake = Mistake("not squared", lambda x: x + 1.5, cause="C.", cure="D.", see="E")
    spec = made(lambda x: x * x + 1.5, [(np.arange(2.0, n),) for n in range(4, 9)], mistakes=(mistake,))
    assert evaluate(spec, lambda x: x + 1.5).mistake == "not squared"
    assert evaluate(spec, lambda x: x + 1.5 if x.size > 1 else -x).mistake != "not squared"


def test_of_two_arrays_the_one_with_fewer_values_is_the_smallest_case():
    spec = made(lambda x: x + 1.5, [(np.array(x),) for x in ([1.0, 2, 3], [8.319008e06, -3.25e-06], [1.0, 2, 3, 4])])
    assert evaluate(spec, lambda x: x + 1.25).case["x"].size == 2


def test_one_number_that_is_a_statistic_divided_by_any_number_is_not_said_to_be_that_statistic():
    x = np.array([0.5, -0.3, 2.0, -1.0, 0.7])
    said = [found.text for found in of_regions(("x",), (x,), float(x.max() / 7.12), float(x.sum() / 8))]
    assert not any("the right one takes" in text for text in said)


def test_a_change_is_said_to_be_right_on_the_cases_tried_where_one_never_ends():
    spec = made(lambda n: n + 2, [(1,), (2,), (3,), (4,), (5,)])

    def toy(n):
        return n - 2

    outcomes = [Outcome(result=-1), Outcome(result=0), Outcome(error=TooSlow())]
    toy.__name__ = "toy"
    text = repr(evaluate(spec, toy, outcomes=outcomes))
    assert "all 3 cases tried" in text and "all 3 cases and" not in text


def test_what_all_wrong_results_are_is_not_said_of_cases_that_raise():
    spec = made(lambda n: n * n, [(n,) for n in (3, 5, 7, 9, 11, 2, 4, 6)])
    text = seen(spec, lambda n: n * n if n % 2 == 0 else 77 if n < 10 else {}[n])
    assert "in every wrong case" not in text and "each wrong result is 77" in text


def test_of_two_wrong_lines_none_is_said_to_have_only_one_wrong_number():
    right, alone = "sizes 4 and 9\nscales 3", "in line 1, only number 2 is wrong"
    assert alone in said(right, "sizes 4 and 30\nscales 3")
    both = said(right, "sizes 4 and 30\nscales 8")
    assert alone not in both and "in line 1, number 2 is wrong" in both


def test_what_a_result_has_where_none_is_asked_for_is_not_said_to_come_after_a_right_one():
    spec = made(lambda n: list(range(n % 3)), [(n,) for n in (0, 1, 3, 4)])
    text = seen(spec, lambda n: [7] if n % 3 == 0 else list(range(n % 3)))
    assert "there are items, and none are asked for" in text and "then comes" not in text


def test_parts_that_are_all_the_last_one_are_said_to_be_the_same():
    spec = made(lambda n: {i: {"at": i} for i in range(n)}, [(n,) for n in (1, 2, 3, 4)])
    text = seen(spec, lambda n: {key: {"at": n - 1} for key in range(n)})
    assert "all parts of the result are the same, and each is what the last one must be, on 3 of 4 cases" in text


def test_of_parts_with_another_type_it_is_not_said_that_so_many_have_it():
    def tensor_entries(tensors):
        right = find("tensor_entries").reference(dict(sorted(tensors.items())))
        return {name: {**entry, "shape": tuple(entry["shape"])} for name, entry in right.items()}

    text = repr(evaluate(find("tensor_entries"), tensor_entries, search=False))
    assert re.search(r"the type of a part differs: \(1,\) .* on at least \d of them", text)


def test_the_line_of_a_name_without_a_value_is_the_one_that_reads_it():
    def toy(n):
        for i in range(n):
            last = i
        return [
            n,
            last,
        ]

    spec = made(lambda n: [n, n - 1], [(n,) for n in (*range(1, 60), 0)])
    report = evaluate(spec, toy)
    line = toy.__code__.co_firstlineno + 5
    assert f"in line {line}, `last,`" in report.cause + report.also and f"line {line} in toy: last," in report.trace


def test_a_rounding_that_moves_numbers_beside_a_half_is_not_said_to_be_one_of_halves():
    def encode_q4(w):
        right = find("encode_q4").reference(w)
        scales = np.frombuffer(right, "<f2", w.size // 64).astype(np.float32)
        x = w.reshape(-1, 64) / np.where(scales == 0, np.float32(1), scales)[:, None]
        q = (np.sign(x) * np.floor(np.abs(x) + np.float32(0.5))).clip(-7, 7).astype(np.int8).reshape(-1) & 15
        return right[: w.size // 32] + (q[0::2] | q[1::2] << 4).astype(np.uint8).tobytes()

    text = repr(evaluate(find("encode_q4"), encode_q4, search=False))
    assert "rounded as `np.sign(x) * np.floor(np.abs(x) + 0.5)` does in float32" in text


def test_of_parts_whose_keys_stand_in_another_order_this_is_said_too():
    def tensor_entries(tensors):
        return find("tensor_entries").reference(dict(sorted(tensors.items(), key=lambda item: item[1][0])))

    text = repr(evaluate(find("tensor_entries"), tensor_entries, search=False))
    assert "only the value of 'data_offsets' is wrong; the keys are in another order, too" in text
