"""Values deep inside dicts and lists: which ones are wrong, and what they have in common."""

import pytest

from miniquant.lab.detect.leaves import of_leaves

PLAN = {
    "a": {"kind": "f.4", "place": [0, 24]},
    "b": {"kind": "i.8", "place": [24, 40]},
    "c": {"kind": "é.1", "place": [40, 47]},
}


def changed(change):
    """The plan with another value at each end of a path: change(key, path, value)."""

    def walk(value, path):
        if isinstance(value, dict):
            return {key: walk(part, (*path, key)) for key, part in value.items()}
        if isinstance(value, list):
            return [walk(part, (*path, place)) for place, part in enumerate(value)]
        return change(path, value)

    return walk(PLAN, ())


def best(got, expected=PLAN):
    return min(of_leaves(expected, got), key=lambda seen: seen.rank).text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, v: v + 8 if p[-1] == 0 else v, "every wrong value is item 0 of 'place': each is too large by 8"),
        (
            lambda p, v: 3 * v if p[-1] == 1 else v,
            "every wrong value is item 1 of 'place': each is 3 times the right value",
        ),
        (lambda p, v: v % 8 if p[-1] == 1 else v, "every wrong value is item 1 of 'place'"),
        (
            lambda p, v: str(v) if p[-2] == "place" else v,
            "every wrong value is item 0 of 'place' or item 1 of 'place': each",
        ),
        (lambda p, v: v.upper() if p[-1] == "kind" else v, "every wrong value is 'kind': each has other capitals"),
        (
            lambda p, v: v.split(".")[0] if p[-1] == "kind" else v,
            "every wrong value is 'kind': each ends at the first `.`",
        ),
        (lambda p, v: f"x{v}" if p[-1] == "kind" else v, "every wrong value is 'kind': each has 'x' too much"),
        (lambda p, v: v[1:] if p == ("b", "kind") else v, "every value that is wrong lacks 'i'"),
        (lambda p, v: None if p[-1] == "kind" else v, "every wrong value is 'kind': each is None"),
        (lambda p, v: 7 if p[-1] == 0 else v, "every wrong value is item 0 of 'place': each is 7 in each place"),
    ],
)
def test_wrong_values_are_named_by_the_end_of_their_path_and_by_what_they_have_in_common(change, words):
    texts = [seen.text for seen in of_leaves(PLAN, changed(change))]
    assert any(text.startswith(words) for text in texts), texts


def test_a_value_that_stands_beside_the_right_one_is_named():
    got = changed(lambda p, v: PLAN[p[0]]["place"][1] if p[-1] == 0 else v)
    assert best(got) == "every wrong value is item 0 of 'place': each has the right value of item 1"


def test_a_value_of_the_part_before_is_named():
    got = changed(lambda p, v: {"b": "f.4", "c": "i.8"}.get(p[0], v) if p[-1] == "kind" else v)
    assert "every wrong value is 'kind': each has the right value of the part before" in [
        s.text for s in of_leaves(PLAN, got)
    ]


def test_a_difference_that_adds_up_is_named():
    got = changed(lambda p, v: v + "abc".index(p[0]) + 1 if p[-1] == 0 else v)
    assert best(got).endswith("each is too large by 1, 2, 3 and so on: a difference that adds up")


def test_numbers_cut_to_some_bits_are_named():
    text = best({"a": 65535, "b": 4, "c": 6}, {"a": -1, "b": 65540, "c": 65542})
    assert text == "every value that is wrong is the remainder of the right value and 2**16"


def test_values_under_the_key_of_another_one_are_named():
    right = {"a": 1, "b": 2, "c": 3, "d": 4}
    texts = [seen.text for seen in of_leaves(right, {"a": 1, "b": 3, "c": 4, "d": 2})]
    assert "values stand under other keys: 'b' has that of 'c', 'c' has that of 'd', 'd' has that of 'b'" in texts


def test_tensors_in_another_shape_or_type_are_named():
    import torch

    right = {"a": torch.ones(1, 3), "b": torch.zeros(2, 2)}
    assert "another shape: axes of length 1 are lost" in best({**right, "a": torch.ones(3)}, right)
    assert "has the dtype float64" in best({**right, "b": torch.zeros(2, 2).double()}, right)


def test_right_results_and_results_of_another_structure_give_nothing():
    assert list(of_leaves(PLAN, PLAN)) == []
    assert list(of_leaves(PLAN, [1])) == []
