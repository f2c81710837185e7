"""What a report says of wrong answers is so on inputs that the report was not made with."""

from __future__ import annotations

import dataclasses

import pytest
from thorough import tried
from unseen import WRONG, failures, unseen
from wrong_answers import answers

from miniquant.lab import evaluate, exercises, find

NAMES = sorted(name for name, spec in exercises().items() if spec.keeps_to_memory)[:: tried(24, 1)]
SEED, ANSWERS = 26, tried(1, 6)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_of_the_inputs_tried_is_so_of_unseen_ones(name):
    spec = dataclasses.replace(find(name), mistakes=())
    inputs = list(unseen(spec))
    found = []
    for word, function in answers(spec, SEED, ANSWERS):
        report = evaluate(spec, function, search=False)
        if report.status == "failed":
            found += [(word, *failure) for failure in failures(spec, function, report, inputs)]
    assert found == []


def test_a_condition_that_is_not_so_of_unseen_inputs_is_found():
    spec = find("absmax_scale")
    inputs = list(unseen(spec))

    def absmax_scale(w):
        return spec.reference(w) * 2

    said = "Anything, on 3 of 9 cases; of the inputs tried, exactly those where `w` is all zeros are wrong ("
    report = type("Said", (), {"cause": f"{said}3 of 9, cases and further inputs).", "also": ""})
    assert len(inputs) > WRONG
    assert [why for _, why in failures(spec, absmax_scale, report, inputs)]
