"""Bytes read by slices: the same bytes, only what is looked at, edits laid over them, also beyond 4 GB."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miniquant.core import slices as module
from miniquant.core.reading import MappedFile
from miniquant.core.slices import PAGE, SliceFile, Slices, ahead, as_slices, stretch

DATA = np.random.default_rng(0).integers(0, 256, 3 * PAGE + 77, np.uint8).tobytes()
INDEX = st.one_of(st.none(), st.integers(-len(DATA) - 5, len(DATA) + 5))


def recorded(data: bytes = DATA, **more) -> tuple[Slices, list[tuple[int, int]]]:
    asked: list[tuple[int, int]] = []

    def read(start: int, end: int) -> bytes:
        asked.append((start, end))
        return data[start:end]

    return Slices(read, len(data), **more), asked


@given(INDEX, INDEX, INDEX, INDEX)
def test_a_slice_of_a_slice_is_what_bytes_give(a, b, c, d):
    part = as_slices(DATA)[a:b]
    assert part.size == len(DATA[a:b])
    assert bytes(part[c:d]) == DATA[a:b][c:d]
    assert np.array_equal(np.asarray(part[c:d]), np.frombuffer(DATA[a:b][c:d], np.uint8))


def test_nothing_is_read_before_it_is_asked_for_and_a_page_only_once():
    slices, asked = recorded()
    part = slices[PAGE + 5 : PAGE + 9]
    assert asked == []
    assert bytes(part) == bytes(part) == DATA[PAGE + 5 : PAGE + 9]
    assert asked == [(PAGE, 2 * PAGE)]
    assert bytes(slices[2 * PAGE - 1 : 2 * PAGE + 1]) == DATA[2 * PAGE - 1 : 2 * PAGE + 1]
    assert asked[1:] == [(2 * PAGE, 3 * PAGE)]


def test_pages_that_were_not_looked_at_for_long_are_given_up(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 2)
    slices, asked = recorded()
    for page in (0, 1, 0, 2, 0, 1):
        bytes(slices[page * PAGE : page * PAGE + 1])
    assert [start // PAGE for start, _ in asked] == [0, 1, 2, 1]


def test_a_long_piece_is_read_at_once_and_keeps_no_page(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 4)
    slices, asked = recorded()
    assert bytes(slices) == DATA
    assert asked == [(0, len(DATA))]
    assert not slices._pages._kept


def test_edits_lie_over_pages_and_over_long_pieces_and_not_in_the_file(monkeypatch):
    edits = {0: 1, PAGE - 1: 2, PAGE: 3, len(DATA) - 1: 4}
    expected = bytearray(DATA)
    for at, byte in edits.items():
        expected[at] = byte
    slices, _ = recorded(edits=edits)
    pages = b"".join(bytes(slices[at : at + 100]) for at in range(0, len(DATA), 100))
    assert pages == bytes(expected)
    monkeypatch.setattr(module, "KEPT", 2)
    assert bytes(slices) == bytes(expected)
    assert bytes(recorded()[0]) == DATA


def test_a_file_that_gives_too_little_is_an_error():
    short = Slices(lambda start, end: DATA[start : end - 1], len(DATA))
    with pytest.raises(OSError, match=f"asked for the bytes 0 to {PAGE - 1}, {PAGE - 1} came"):
        bytes(short[:4])


def test_what_lies_ahead_is_all_of_what_is_in_memory_and_two_pages_of_slices():
    for data in (memoryview(DATA), np.frombuffer(DATA, np.uint8)):
        assert bytes(ahead(data, 5)) == DATA[5:]
        assert bytes(stretch(data, 5, 9)) == DATA[5:9]
    assert bytes(ahead(as_slices(DATA), 5)) == DATA[5 : 5 + 2 * PAGE]
    assert bytes(ahead(as_slices(DATA), len(DATA) - 3)) == DATA[-3:]


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.integers(0, 300)), max_size=8))
def test_slices_as_an_open_file_read_and_seek_like_one_in_memory(steps):
    ours, theirs = io.BufferedReader(SliceFile(as_slices(DATA[:200]))), io.BytesIO(DATA[:200])
    for whence, n in steps:
        if whence == 0:
            assert ours.seek(n) == theirs.seek(n)
        elif whence == 2:
            assert ours.seek(-min(n, 200), 2) == theirs.seek(-min(n, 200), 2)
        assert ours.read(n) == theirs.read(n)
        assert ours.tell() == theirs.tell()


class OneNumber(MappedFile):
    """<Q where a number stands, and there the number."""

    def __init__(self, source):
        super().__init__(source, 8)
        (at,), _ = self._take("<Q", 0, "place")
        (self.number,), _ = self._take("<I", at, "number")


def test_a_file_beyond_the_indices_of_a_small_machine_is_read_at_any_byte():
    size = 2**40
    places = {range(0, 8): struct.pack("<Q", size - 4), range(size - 4, size): struct.pack("<I", 77)}

    def read(start: int, end: int) -> bytes:
        out = bytearray(end - start)
        for place, data in places.items():
            for at, byte in zip(place, data):
                if start <= at < end:
                    out[at - start] = byte
        return bytes(out)

    with OneNumber(Slices(read, size)) as file:
        assert (file.number, file.n_bytes, file.path) == (77, size, None)
    assert Slices(read, size)[size - 4 :].size == 4
