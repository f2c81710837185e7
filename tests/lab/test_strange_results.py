"""Whatever a student's function returns, a check refuses it and says so: a detector that fails on it says nothing."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from thorough import tried

from miniquant.lab import evaluate, exercises, find

pytestmark = pytest.mark.usefixtures("few_pairs")  # a result is as strange on a few inputs

STRANGE = {
    "a huge integer": 10**400,
    "a huge negative integer in a list": [-(10**400)],
    "a complex number": 1 + 2j,
    "a complex array": np.array([1j, 2]),
    "an array of objects": np.array([None, "a"], dtype=object),
    "an array of texts": np.array(["a", "b"]),
    "a date": np.array("2020-01-01", "M8[D]"),
    "an array with fields": np.zeros(2, [("a", "i4"), ("b", "f4")]),
    "an empty array of three axes": np.zeros((0, 2, 3)),
    "a NaN": float("nan"),
    "the limits of int64": np.array([-(2**63), 2**63 - 1]),
    "uint64": np.array([2**64 - 1], np.uint64),
    "a fraction": Fraction(1, 3),
    "a decimal number": Decimal("0.1"),
    "a tensor": torch.zeros(2, 2, dtype=torch.bfloat16),
    "a tensor without axes": torch.tensor(1),
    "a dict with odd keys": {None: 1, (1, 2): {}},
    "a nested tuple": ((), [[], ()], {}),
    "a function": len,
    "a type": dict,
    "an error": ValueError("x"),
    "a set": {1, "a"},
    "a text": "a\x00é",
    "bytes": b"\xff" * 9,
    "a range": range(3),
    "not implemented": NotImplemented,
}


@functools.cache
def answer(name: str, strange: str):
    """A function with the parameters of an exercise, and always the same result."""
    parameters = ", ".join(inspect.signature(find(name).reference).parameters)
    return eval(f"lambda {parameters}: RESULT", {"RESULT": STRANGE[strange]})


@functools.cache
def with_one_mistake(name: str):
    """An exercise with a single mistake in its catalogue: a result is compared in the same way with each of them."""
    spec = find(name)
    return dataclasses.replace(spec, mistakes=spec.mistakes[:1])


def now_and_then(name: str, strange: str):
    """The same, but each third call is right: so results are no constant, and every detector looks at them."""
    count = itertools.count(1)
    reference = find(name).reference
    parameters = ", ".join(inspect.signature(reference).parameters)

    def body(*arguments):
        return STRANGE[strange] if next(count) % 3 else reference(*arguments)

    return eval(f"lambda {parameters}: BODY({parameters})", {"BODY": body})


LOOKS = [name for name, spec in exercises().items() if spec.observe or spec.parts or spec.places]  # at results itself
OTHERS = [name for name in exercises() if name not in LOOKS][:: tried(5, 1)]
OF_A_TYPE = ["read_magic", "gptq_matrix", "group_reshape", "unpack_k_scales", "fit_scale_and_minimum"]  # no other's
NAMES = [name for name in exercises() if name in {*LOOKS, *OTHERS, *OF_A_TYPE}]
STEP = tried(26, 5)  # an exercise meets every so many of the results
TURN = tried(2, 1)  # in everyday runs each exercise is in one of the two tests below


@pytest.mark.parametrize("number", range(0, len(NAMES), TURN), ids=NAMES[::TURN])
def test_no_result_is_too_strange_for_a_report(number):
    name = NAMES[number]
    for strange in list(STRANGE)[number // TURN % STEP :: STEP]:  # neighbours meet the others
        report = evaluate(with_one_mistake(name), answer(name, strange), search=False)
        assert report.status == "failed"
        assert repr(report)
        assert report._repr_html_()


@pytest.mark.parametrize("number", range(TURN - 1, len(NAMES), TURN), ids=NAMES[TURN - 1 :: TURN])
def test_no_result_among_right_ones_is_too_strange_for_a_detector(number):
    name = NAMES[number]
    for strange in list(STRANGE)[(number // TURN + STEP // 2) % STEP :: STEP]:
        assert repr(evaluate(with_one_mistake(name), now_and_then(name, strange), search=False))


@pytest.mark.parametrize("name", ["byte_order", "rmse", "quantize_per_tensor", "tensor_errors", "header_bytes"])
def test_the_search_for_near_solutions_stands_it_too(name):
    for strange in ("a huge integer", "an array of objects", "a tensor", "a dict with odd keys", "uint64"):
        assert evaluate(find(name), answer(name, strange)).status == "failed"
