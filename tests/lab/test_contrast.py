"""A small change with which a wrong result is right: it is made again, and it is told in a few words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_detect import made, seen

from miniquant.lab import evaluate, find
from miniquant.lab.detect.contrast import _change, contrast, without_contrast
from miniquant.lab.detect.seen import Seen
from miniquant.lab.judging import _calls
from miniquant.lab.verdict import Facts


def of(name, function):
    """What the contrast says of a wrong answer."""
    facts = Facts(find(name), function, _calls(find(name), function))
    return contrast(facts, [call for call in facts.wrong if call.comparable])


def test_of_an_integer_the_two_neighbours_are_named_between_which_right_and_wrong_part():
    def magic_bytes(magic, version):
        return bytes(n // 255**i % 255 for n in (magic, version) for i in range(4))

    assert of("magic_bytes", magic_bytes).endswith("is right with `magic` = 254 and wrong with 255.")
    text = repr(evaluate(find("magic_bytes"), magic_bytes, search=False))
    assert "is right with `magic` = 254 and wrong with 255." in text


def test_of_an_array_one_value_is_named():
    def q8_q8_dot(a, b):
        total = 0.0
        for left, right in zip(a, b):
            q, p = left[2:].view(np.int8), right[2:].view(np.int8)
            signed = np.where(q < 0, -p, p).astype(np.int64)
            whole = int(np.abs(q).astype(np.int64) @ signed)  # -128 has no opposite in int8
            total += whole * float(left[:2].view("<f2")[0]) * float(right[:2].view("<f2")[0])
        return total

    assert of("q8_q8_dot", q8_q8_dot) == "In this case, the result is right with `a[0, 3]` = 129 in place of 128."


def test_an_array_keeps_its_order_in_memory_when_one_value_of_it_is_changed():
    def group_reshape(w, group_size):
        return np.ravel(w, "K").reshape(len(w), -1, group_size)

    assert "right with" not in of("group_reshape", group_reshape)


def test_no_change_is_named_beside_a_sentence_on_every_input_tried():
    def round_scale(scale):
        half = scale.astype(np.float16)
        return np.where(half < np.finfo(np.float16).tiny, 1, half).astype(np.float32)

    text = repr(evaluate(find("round_scale"), round_scale, search=False))
    assert "for each of" in text and "the result is right with" not in text


def test_of_a_dict_a_key_or_the_order_is_named():
    def beyond_limit(errors, limit):
        return [name for name, error in errors.items() if not np.isfinite(error) or error > limit]

    def parameter_shapes(config):
        first, *_ = config
        shapes = find("parameter_shapes").reference(config)
        return shapes if first == "vocab_size" else dict(list(shapes.items())[1:])

    assert of("beyond_limit", beyond_limit) == "In this case, the result is right without `errors['a']`."
    assert of("parameter_shapes", parameter_shapes).endswith("is right with the keys of `config` in another order.")


def test_nothing_is_said_of_a_function_that_is_right_when_it_is_called_again():
    calls = []

    def toy(n):
        calls.append(n)
        return n * n + (len(calls) < 5)

    spec = made(lambda n: n * n, [(n,) for n in (2, 3, 5, 8, 9, 11, 14)])
    facts = Facts(spec, toy, _calls(spec, toy))
    assert len(facts.wrong) == 4 and contrast(facts, facts.wrong) == ""


def test_nothing_is_said_of_a_function_with_a_default_argument_that_is_filled():
    def toy(n, known={}):  # noqa: B006
        return known.setdefault(n % 4, n * n)

    spec = made(lambda n: n * n, [(n,) for n in (2, 3, 5, 8, 9, 11, 14)])
    facts = Facts(spec, toy, _calls(spec, toy))
    assert facts.wrong and contrast(facts, facts.wrong) == ""


def test_nothing_is_said_of_inputs_for_which_the_result_is_nothing():
    spec = made(lambda w: w * 3, [(np.array([1.0, 2.0]) * n,) for n in (1, 2, 3, 5, 7)])
    assert "right with" not in seen(spec, lambda w: w * np.sin(w))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (5, 6, "with `x` = 6 in place of 5"),
        (5, -1, ""),
        ("a b", "ab", "with `x` = 'ab' in place of 'a b'"),
        (set(), {1}, "with `x` = {1} in place of set()"),
        ([1, 2, 3], [1, 3], "without `x[1]`"),
        ([1, 2], [1, 3], "with `x[1]` = 3 in place of 2"),
        ((1, (2, 3)), (1, (2, 4)), "with `x[1][1]` = 4 in place of 3"),
        ({"a": 1, "b": 2}, {"b": 2}, "without `x['a']`"),
        ({"b": 1, "B": 2}, {"B": 1}, "with `x` = {'B': 1} in place of {'b': 1, 'B': 2}"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "with the keys of `x` in another order"),
        ({"a": 1, "b": [2]}, {"a": 1, "b": [3]}, "with `x['b'][0]` = 3 in place of 2"),
        (bytes(12), bytes(11) + b"\7", "with 07 in place of 00 at byte 11 of `x`"),
        (b"ab", b"ac", "with `x` = b'ac' in place of b'ab'"),
        (np.float32([[1, 2]]), np.float32([[1, 0.1]]), "with `x[0, 1]` = 0.1 in place of 2.0"),
        (np.float32([1, 2]), np.float32([3, 4]), ""),
        (np.float32([1, 2]), np.float32([1]), ""),
        (1, 1.0, ""),
        ("a" * 70, "b", ""),
    ],
)
def test_a_change_is_told_in_a_few_words(before, after, words):
    assert _change(["x", "y"], (before, 1), (after, 1))[0] == words
    assert _change(["x", "y"], (before, 1), (after, 2))[0] == ""


def test_near_changes_come_before_far_ones():
    ranks = [_change(["x"], (4.0,), (x,))[1] for x in (4.5, 8.0, -4.5, 0.0, 2.0**30)]
    assert ranks == sorted(ranks) and len(set(ranks)) == 5


def test_the_case_of_a_contrast_is_the_one_that_is_shown():
    def doubled(numbers, limit):
        """Twice each number. -> list[int]"""
        return [2 * n for n in numbers]

    spec = made(doubled, [([], 7), ([1, 2], 50), ([3, 4], 51), ([5, 6], 52), ([1], 3), ([2], 4), ([9, 8], 2)])

    def wrong(numbers, limit):
        return 0 if not numbers else [n + n for n in numbers] if limit < 10 else [n for n in numbers]

    facts = Facts(spec, wrong, _calls(spec, wrong))
    shown = evaluate(spec, wrong, search=False).case
    assert shown == {"numbers": [1, 2], "limit": 50}
    said = contrast(facts, facts.wrong)
    assert said == "In the case shown, the result is right with `limit` = 9 and wrong with 10."


def test_a_sentence_that_is_not_the_first_has_no_contrast():
    first = Seen("a", "It is so.", after="")
    after = "In this case, the result is right with `n` = 1 and wrong with 2."
    second = Seen("b", f"It is so, on 1 of 9 cases. {after}", after=after)
    assert without_contrast(first) == first
    assert without_contrast(second).text == "It is so, on 1 of 9 cases."


def test_two_values_that_read_alike_are_no_contrast():
    old, new = ({"a": np.zeros(9), "b": value} for value in (np.zeros(9), np.ones(9)))
    assert _change(["tensors"], ([old],), ([new],)) == ("", 0)


def test_no_input_is_said_to_be_right_whose_result_is_within_the_tolerance_of_0():
    def effective_bits(size, shapes):
        weights = [math.prod(dims) for name, dims in shapes.items() if name.endswith("weight")]
        return 8 * size / sum(weights) if weights else 8.0 * size

    report = repr(evaluate(find("effective_bits"), effective_bits, search=False))
    assert "(131072, 32768), 's': ()}" not in report, report


def test_a_change_that_makes_another_answer_right_comes_last_and_names_that_answer():
    def format_of(head):
        right = find("format_of").reference(head)
        return "unknown" if right == "safetensors" and head[:2] == b"\n\n" else right

    facts = Facts(find("format_of"), format_of, _calls(find("format_of"), format_of))
    (call,) = facts.wrong
    zeros = call.case[0].replace(b"\n\n", b"\0\0")
    text = contrast(facts, [call])
    assert "at byte 8" not in text and "where" not in text
    assert find("format_of").oracle(zeros) == format_of(zeros) == "safetensors"

    def knows_no_other(head):
        return "unknown" if head[5:9] == b"\0\0\0{" else find("format_of").reference(head)

    assert of("format_of", knows_no_other).endswith("at byte 8 of `head`, where 'unknown' is right.")
