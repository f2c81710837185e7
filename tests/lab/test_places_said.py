"""The place that is said for a small change: where a limit lies, which condition, before which line; and doubts."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from test_detect import made

from miniquant import FormatError
from miniquant.lab import evaluate, find
from miniquant.lab.detect.doubts import is_wrong_elsewhere
from miniquant.lab.judging import _calls
from miniquant.lab.verdict import Facts


def behind_the_metadata(data):
    magic, version, count, size = struct.unpack_from("<IIII", data.ljust(16, b"\0"), 0)
    checks = (magic == 0x474C4654, version == 1, len(data[16:]) > size)
    if len(data) < 16 or not all(checks):
        raise FormatError("bad", field="header")
    return count, size


def anywhere(data):
    signature = bytes.fromhex("89504e470d0a1a0a")
    if len(data) < 24 or signature not in data:
        raise ValueError("this is not a PNG")
    width, height = np.frombuffer(data, ">u4", count=2, offset=16)
    return int(width), int(height)


def never_begun_anew(size, shapes):
    count = 0
    n = 1
    for dims in shapes.values():
        for d in dims:
            n *= d
        count += n
    return size * 8 / count if count else math.nan


@pytest.mark.parametrize(
    ("name", "function", "place"),
    [
        ("parse_header", behind_the_metadata, "at `len(data[16:]) > size`"),
        ("png_size", anywhere, "at `len(data) < 24 or signature not in data`"),
        ("effective_bits", never_begun_anew, "before `for d in dims`"),
    ],
)
def test_the_place_said_is_the_one_that_a_reader_would_change(name, function, place):
    report = evaluate(find(name), function)
    assert f"With one small change {place}, your function is right on all" in f"{report.cause} {report.also}"


def test_a_property_that_a_changed_case_has_and_is_wrong_still_is_doubted():
    def first_is_one(numbers):
        return sum(numbers) + (numbers[:1] != [1]) + (len(numbers) > 3)

    spec = made(lambda numbers: sum(numbers), [([1, 2],), ([1],), ([2, 3],), ([4, 5, 6],), ([7, 1, 2, 3],)])
    facts = Facts(spec, first_is_one, _calls(spec, first_is_one))
    assert is_wrong_elsewhere(facts, "where `numbers` has duplicates", facts.wrong)
    assert not is_wrong_elsewhere(facts, "where `numbers` has one item", [])
