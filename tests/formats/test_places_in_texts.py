"""Where the members of a JSON object and the strings of a row stand: against the objects and rows that were written."""

from __future__ import annotations

import json
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miniquant.core.slices import PAGE, as_slices
from miniquant.formats.json_places import byte_members, members
from miniquant.formats.strings import walk_strings

VALUES = st.recursive(
    st.none() | st.integers() | st.text('aé"}],{: ', max_size=5), lambda inner: st.lists(inner, max_size=3)
)
OBJECTS = st.dictionaries(
    st.text('kö\\"{,', max_size=4), VALUES | st.dictionaries(st.text("ab", max_size=2), VALUES, max_size=2), max_size=4
)


@given(OBJECTS, st.sampled_from([None, 1, 3]), st.text(" \n\t", max_size=3), st.booleans())
def test_the_members_of_an_object_stand_where_their_text_is_read_as_the_value(found, indent, space, escaped):
    text = space + json.dumps(found, indent=indent, ensure_ascii=escaped) + space
    raw = text.encode()
    for listed, whole in ((list(members(text, 0)), text), (list(byte_members(raw)), raw)):
        assert [member.key for member in listed] == list(found)
        for member in listed:
            assert json.loads(whole[member.start : member.end]) == found[member.key]
            key, end = whole[member.at : member.start], member.start
            assert json.loads(key.rstrip().removesuffix(b":" if isinstance(key, bytes) else ":")) == member.key
            assert member.at < end <= member.end


@pytest.mark.parametrize("text", ['{"a": 1', '{"a" 1', "{", '{"a": }'])
def test_what_is_no_json_raises_an_error_of_its_kind(text):
    with pytest.raises((ValueError, IndexError, TypeError)):
        list(members(text, 0))


def test_a_key_that_is_not_utf_8_keeps_its_place_and_shows_that_a_byte_is_wrong():
    assert [tuple(member) for member in byte_members(b'{"a\xff": 1, "b": 2}')] == [
        ("a\ufffd", 1, 7, 8),
        ("b", 10, 15, 16),
    ]


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(0, 30), st.integers(0, 5))
def test_strings_in_a_row_are_found_one_after_another_and_none_that_is_cut(strings, cut, before):
    data = bytes(before) + b"".join(struct.pack("<Q", len(text)) + text for text in strings)
    starts = [before + sum(8 + len(text) for text in strings[:i]) for i in range(len(strings) + 1)]
    end = max(before, len(data) - cut)
    whole = [start for start, after in pairwise(starts) if after <= end]
    for form in (memoryview(data), as_slices(data)):
        found, after = walk_strings(form, before, len(strings), end)
        assert list(found) == whole
        assert after == starts[len(whole)]


def test_strings_that_lie_across_the_pages_of_slices_are_found():
    lengths = [PAGE - 3, 2 * PAGE, 5, 0, 3 * PAGE + 1]
    data = b"".join(struct.pack("<Q", n) + bytes(n) for n in lengths)
    expected = [sum(8 + n for n in lengths[:i]) for i in range(len(lengths))]
    found, after = walk_strings(as_slices(data), 0, len(lengths), len(data))
    assert (list(found), after) == (expected, len(data))
    assert found.typecode == "I"
