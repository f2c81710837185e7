"""Which inputs a function is wrong on, by the properties that a lesson names: what is said holds for every case."""

import numpy as np
import pytest
from test_detect import made

from miniquant.lab import evaluate, exercises, find
from miniquant.lab.attempt import cases_of


def total(numbers):
    """The sum of some numbers. -> int"""
    return sum(numbers)


def traits(numbers):
    return {
        "a number is negative": any(n < 0 for n in numbers),
        "there are more than two numbers": len(numbers) > 2,
        "the first number is 9": numbers[:1] == [9],
    }


CASES = [([1, 2],), ([-1, 5],), ([3],), ([9],), ([-4],), ([1, 2, 3],), ([4, -5, 6, 7],), ([9, 2, 4],), ([2, 2, 1, 8],)]
TOTAL = made(total, CASES, traits=traits)


def report(function):
    def total(numbers):
        return function(numbers)

    return repr(evaluate(TOTAL, total))


def test_a_property_of_exactly_the_wrong_cases_is_said():
    assert "of the inputs tried, exactly those where a number is negative are wrong (" in report(
        lambda numbers: sum(map(abs, numbers)) + 0
    )


def test_two_properties_that_together_have_exactly_the_wrong_cases_are_said():
    text = report(lambda n: sum(n) + (7 * len(n) if len(n) > 2 or n[:1] == [9] else 0))
    assert "exactly those where there are more than two numbers, or the first number is 9 are wrong (" in text


def test_a_property_of_all_wrong_cases_and_of_some_right_ones_is_not_said():
    text = report(lambda n: sum(n) * (3 if len(n) > 2 and n[0] < 9 else 1))
    assert "there are more than two numbers" not in text


def test_no_property_is_said_where_none_fits():
    assert "where" not in report(lambda n: -5 if n in ([1, 2], [-1, 5], [9, 2, 4]) else sum(n)).split("results show")[1]


@pytest.mark.parametrize("name", sorted(name for name in exercises() if find(name).traits))
def test_nearly_every_property_of_a_lesson_holds_for_some_of_its_cases(name):
    spec = find(name)
    tables = [spec.traits(*case) for case in cases_of(spec)]
    assert all(isinstance(holds, bool) for table in tables for holds in table.values())
    words = dict.fromkeys(word for table in tables for word in table)
    never = [w for w in words if not any(table.get(w) for table in tables) and not w.startswith("the pickle has")]
    assert 4 * len(never) <= len(words), never


def test_which_inputs_are_wrong_is_not_said_of_some_while_others_fail_in_another_way():
    def answer(numbers):
        if numbers in ([1, 2], [3]):
            raise KeyError(numbers[0])
        return -77 if len(numbers) > 2 else sum(numbers)

    text = report(answer)
    assert "exactly those where there are more than two numbers have a wrong result" in text
    assert "are wrong" not in text
    assert "inputs are right" not in text


def test_a_function_that_is_right_only_where_a_property_holds_is_told_so():
    assert "of the inputs tried, all but those where the first number is 9 are wrong (" in report(
        lambda n: sum(n) if n[:1] == [9] else sum(n) ** 2 + 77
    )


@pytest.mark.parametrize(("box", "words"), [(list, "inside a list of one"), (tuple, "inside a tuple of one; a comma")])
def test_the_right_result_in_brackets_is_named(box, words):
    assert words in report(lambda n: box([sum(n)]))


def test_results_of_several_wrong_types_are_not_said_to_have_the_right_type():
    text = report(lambda n: {1: "a", 2: {3}, 3: 5j, 4: b"x"}[len(n)])
    assert "the type of the results is right" not in text.lower()


@pytest.mark.parametrize(
    ("name", "case", "words", "true"),
    [
        ("parse_metadata", (b"a=\xff\nrubbish",), "a line has no =", True),
        ("parse_metadata", (b"a=1\na=1\na=2",), "a key is there twice, with another value", True),
        ("parse_metadata", (b"a=b\r",), "a key or a value has white space at an end", True),
        ("check_bounds", ({"a": (4, 6), "b": (4, 8)}, 20), "a tensor lies inside another one", True),
        ("check_bounds", ({"a": (4, 6), "b": (4, 2)}, 20), "the tensors are not in the order of their offsets", False),
        (
            "parse_descriptor",
            (bytes([1, 0, 0xF7, 0, 0, *bytes(8)]), 0),
            "the descriptor is all there, and its name is not UTF-8",
            True,
        ),
        ("encode_q8", (np.zeros((2, 3), np.float32),), "a negative weight is as far from 0 as any in its row", False),
        ("choose_dtypes", ({"b": np.zeros(2)}, {"b": "q5"}), "a quantized tensor is not 2-D", False),
        (
            "tensor_errors",
            ({"a": np.array([np.inf])}, {"a": np.array([np.inf])}),
            "two tensors of one name and shape have a difference of NaN",
            True,
        ),
    ],
)
def test_the_words_of_a_condition_hold_for_bad_and_strange_inputs_too(name, case, words, true):
    assert find(name).traits(*case)[words] is true


@pytest.mark.parametrize(
    ("name", "case"),
    [("parse_header", (b"GGUF\1\0\0\0\0\0\0\0\x09\0\0\0",)), ("encode_q4", (np.zeros((1, 32), np.float32),))],
)
def test_a_condition_on_good_input_says_that_the_input_is_good(name, case):
    true = [words for words, holds in find(name).traits(*case).items() if holds]
    false = [words for words, holds in find(name).traits(*case).items() if not holds]
    assert not any(" right, and" in words or "is a multiple of 64, and " in words for words in true)
    assert not any(
        words.startswith(("the metadata ends", "bytes follow", "a group", "a scale", "n_tensors")) for words in false
    )


def test_what_is_counted_of_the_arguments_is_known_of_a_refused_call_too():
    spec = find("write_file")
    refused = ("old", {"w": np.zeros((1, 2), np.float32)}, {}, {"": "no key", "a": "b"})
    assert spec.quantities(*refused)["the number of metadata entries"] == 2
    assert "the size of the file" not in spec.quantities(*refused)
