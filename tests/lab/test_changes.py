"""A check refuses a function that changes what it is given, however deep that lies, and says which part it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import torch

from miniquant.lab import Exercise, find
from miniquant.lab.changes import Change, Watched, change_of
from miniquant.lab.checking import evaluate


class Pair(NamedTuple):
    data: object
    n: int


@dataclass(frozen=True)
class Value:
    items: list


@dataclass
class Machine:
    requests: list


def toy(cases, *, observe=None, refuses=False):
    """An exercise that counts what it is given, or refuses it."""

    def oracle(given):
        if refuses:
            raise ValueError("no")
        return len(given)

    def toy_count(given):
        return oracle(given)

    return Exercise(
        name="toy_count", lab="99", goal="Count.", minutes=1, difficulty="core", reference=toy_count, oracle=oracle,
        cases=lambda random: [(case,) for case in cases], hints=("a", "b"), why="it counts.", observe=observe,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "change", "place"),
    [
        ([1, 2], lambda g: g.append(3), ""),
        ([1, 2], lambda g: g.__setitem__(0, 9), ""),
        ([1, 2], lambda g: g.__setitem__(0, 1.0), ""),
        ({"a": 1, "b": 2}, lambda g: g.update(a="Q8_0"), ""),
        ({"a": 1, "b": 2}, lambda g: g.update(a=g.pop("a")), ""),
        ({"a": [1]}, lambda g: g["a"].append(2), "['a']"),
        ([np.zeros(2, np.float32)], lambda g: g[0].__iadd__(1), "[0]"),
        ((np.zeros(2), 3), lambda g: g[0].__iadd__(1), "[0]"),
        ((1, ({"w": [[5]]},)), lambda g: g[1][0]["w"][0].append(6), "[1][0]['w'][0]"),
        (Pair([1], 2), lambda g: g.data.clear(), ".data"),
        ({"t": torch.zeros(2)}, lambda g: g["t"].add_(1), "['t']"),
        (bytearray(b"ab"), lambda g: g.reverse(), ""),
        ({1, 2}, lambda g: g.add(3), ""),
        ([{1}], lambda g: g[0].discard(1), "[0]"),
        ([Value([1])], lambda g: g[0].items.append(1), "[0].items"),
    ],
)
@pytest.mark.parametrize("observe", [None, lambda function, case: function(*case)], ids=["plain", "observed"])
def test_a_right_result_whose_argument_changed_is_refused_and_the_place_is_named(given, change, place, observe):
    def toy_count(given):
        n = len(given)
        change(given)
        return n

    spec = toy([given], observe=observe)
    assert evaluate(spec, spec.reference, search=False).passed
    report = evaluate(spec, toy_count, search=False)
    assert report.what == (
        f"wrong on 1 of 1 cases: your function changes its argument in place: given{place}; work on a copy"
    )
    assert f"the function changes its argument `given{place}`" in repr(report)


def test_an_argument_that_is_handed_over_as_a_copy_is_watched_too():
    def toy_count(given):
        return len([given.pop(key) for key in list(given)])

    spec = toy([{"a": 1}], observe=lambda function, case: function(dict(case[0])))
    assert "changes its argument in place: given;" in evaluate(spec, toy_count, search=False).what


def test_a_refusal_that_changes_the_argument_is_refused():
    def toy_count(given):
        given.clear()
        raise ValueError("no")

    spec = toy([[1]], refuses=True)
    assert evaluate(spec, spec.reference, search=False).passed
    assert "changes its argument in place: given;" in evaluate(spec, toy_count, search=False).what


def test_the_first_change_of_several_calls_is_kept():
    watched = Watched(lambda n, items: items.append(n))
    watched(1, [])
    watched(2, [7])
    assert watched.change == Change(1, [], [1])


def test_an_object_that_notes_its_calls_may_change_and_equal_values_are_no_change():
    nan = np.array([np.nan])
    assert change_of((Machine([]), [nan], (1, None)), (Machine([1]), [nan.copy()], (1, None))) is None


def test_types_written_into_the_numbers_of_weights_are_refused():
    def choose_types(weights, budget):
        left = budget - sum(n // 32 * 18 for n in weights.values())
        for name, n in list(weights.items()):
            more = n // 32 * 16
            weights[name] = "Q8_0" if more <= left else "Q4_0"
            left -= more if more <= left else 0
        return weights

    assert "changes its argument in place: weights;" in evaluate(find("choose_types"), choose_types, search=False).what


def test_a_dict_that_every_call_fills_again_is_refused_where_its_order_does_not_matter_too():
    spec, same = find("ggml_hparams"), {}

    def ggml_hparams(data):
        same.update(spec.reference(data))
        return same

    assert "in the memory of an earlier call's result" in repr(evaluate(spec, ggml_hparams))


def test_an_argument_that_cannot_be_shown_after_the_call_is_no_fault_of_the_check():
    def toy_count(about, quantized, include):
        del vars(about)["num_params"]
        return 2

    report = evaluate(find("expected_keys"), toy_count)
    assert report.status == "failed"
