"""The base of the readers: where tensors may lie, texts, and what stays valid when a file is closed."""

from __future__ import annotations

import errno
import os
from collections import Counter, namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from miniquant.core.errors import FormatError
from miniquant.core.reading import (
    TEXT_PIECE,
    MappedFile,
    as_bytes,
    decode_text,
    label_of,
    open_regular,
    path_of,
    read_bounded,
)

Entry = namedtuple("Entry", "offset n_bytes")


class Pairs(MappedFile):
    """The smallest of formats: <B count, then that many <BB offset and length, then the data."""

    def __init__(self, path):
        super().__init__(path, 1)
        (count,), at = self._take("<B", 0, "count")
        self.tensors, places = {}, []
        for name in map(str, range(count)):
            entry, after = self._take("<BB", at, f"entry {name}")
            self.tensors[name] = Entry(*entry)
            places.append((name, *entry, at))
            at = after
        self.data_start = at
        self._check_places(places)


def pairs(entries: list[tuple[int, int]], size: int) -> bytes:
    return bytes([len(entries), *sum(entries, ())]) + bytes(range(size))


@given(entries=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8)), max_size=5), size=st.integers(0, 24))
@example(entries=[(3, 2), (0, 4)], size=8)
@example(entries=[(3, 0), (0, 8)], size=8)
@example(entries=[(9, 0)], size=8)
def test_tensors_are_taken_only_inside_the_file_and_with_each_byte_used_once(entries, size, tmp_path):
    """Against a list of every byte and how often it is used."""
    path = tmp_path / "pairs"
    path.write_bytes(pairs(entries, size))
    used = Counter(byte for offset, n in entries for byte in range(offset, offset + n))
    inside = all(offset + n <= size for offset, n in entries)
    if inside and max(used.values(), default=0) <= 1:
        with Pairs(path) as file:
            for name, (offset, n) in enumerate(entries):
                assert file.raw(str(name)).tolist() == list(range(offset, offset + n))
    else:
        with pytest.raises(FormatError, match=r"end outside the data section|lies inside") as caught:
            Pairs(path)
        assert caught.value.field.endswith(": offset")
        assert 1 <= caught.value.offset < 1 + 2 * len(entries)


def test_a_file_that_ends_early_is_refused_with_the_field_and_the_byte(tmp_path):
    path = tmp_path / "pairs"
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="header at byte 0: the file has 0 bytes, a header takes 1"):
        Pairs(path)
    path.write_bytes(pairs([(0, 1), (1, 1)], 2)[:4])
    with pytest.raises(FormatError, match="entry 1 at byte 3: needs 2 bytes, the file ends after 1; it is truncated"):
        Pairs(path)


def test_bytes_of_a_tensor_are_read_only_and_outlive_the_file(tmp_path):
    path = tmp_path / "pairs"
    path.write_bytes(pairs([(1, 3)], 4))
    with Pairs(path) as file:
        raw = file.raw("0")
    assert raw.tolist() == [1, 2, 3]
    assert not raw.flags.writeable
    with pytest.raises(ValueError, match="is closed; read inside the with block"):
        file.raw("0")


@given(
    length=st.integers(TEXT_PIECE - 6, TEXT_PIECE + 6),
    text=st.text(min_size=1, max_size=4),
    wrong=st.sampled_from([b"\x80", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf0\x9f\x98"]),
)
def test_a_text_in_pieces_is_python_s_own_and_its_error_names_the_same_byte(length, text, wrong):
    data = b"." * length + text.encode()
    assert decode_text(memoryview(b"--" + data), 2, len(data), "a", "b") == data.decode()
    data += wrong + b"."
    with pytest.raises(UnicodeDecodeError) as expected:
        data.decode()
    with pytest.raises(FormatError) as caught:
        decode_text(memoryview(b"--" + data), 2, len(data), "a", "b")
    assert caught.value.offset == 2 + expected.value.start


# ---- bytes and paths -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_are_read_as_a_file_is_and_their_errors_name_no_path(kind):
    source = kind(pairs([(1, 3)], 4))
    with Pairs(source) as file:
        assert file.source is source
        assert (file.path, file.label, file.n_bytes) == (None, "the bytes", 7)
        assert file.raw("0").tolist() == [1, 2, 3]
        assert file.read(1, 4) == b"\1\3\0"
    with pytest.raises(ValueError, match="the bytes is closed"):
        file.raw("0")
    with pytest.raises(FormatError) as caught:
        Pairs(kind(b""))
    assert caught.value.path is None
    assert str(caught.value) == "header at byte 0: the file has 0 bytes, a header takes 1"


def test_a_path_is_the_label_and_stands_in_every_error(tmp_path):
    path = tmp_path / "pairs"
    path.write_bytes(pairs([(1, 3)], 4))
    with Pairs(path) as file:
        assert (file.source, file.path, file.label) == (path, str(path), str(path))
        with pytest.raises(KeyError, match=f"no tensor 'x' in {path}; the names are in .tensors"):
            file.raw("x")
    with pytest.raises(ValueError, match=f"{path} is closed"):
        file.raw("0")
    path.write_bytes(b"")
    with pytest.raises(FormatError) as caught:
        Pairs(path)
    assert caught.value.path == str(path)
    path.write_bytes(pairs([(1, 4)], 4))
    with pytest.raises(FormatError) as caught:
        Pairs(path)
    assert (caught.value.path, caught.value.field, caught.value.offset) == (str(path), "tensor '0': offset", 1)


def test_overlapping_tensors_name_the_one_that_was_there_first():
    with pytest.raises(FormatError) as caught:
        Pairs(pairs([(4, 2), (0, 3), (2, 1)], 8))
    assert str(caught.value) == "tensor '2': offset at byte 5: offset 2 lies inside '1', which ends at 3"
    with pytest.raises(
        FormatError, match=r"its 5 bytes from offset 4 end outside the data section of 8 bytes; the file"
    ):
        Pairs(pairs([(4, 5)], 8))


class Early(MappedFile):
    """A format whose data is said to begin after the file's end."""

    def __init__(self, source):
        super().__init__(source, 2)
        self.data_start = self.n_bytes + 5


def test_where_the_data_begins_after_the_file_there_is_room_for_nothing():
    file = Early(b"abcd")
    file._check_places([("a", 0, 0, 1)])
    with pytest.raises(FormatError, match="end outside the data section of 0 bytes"):
        file._check_places([("a", 0, 1, 1)])
    with pytest.raises(FormatError, match="needs 4 bytes, the file ends after 0") as caught:
        file._take("<I", 9, "late")
    assert (caught.value.field, caught.value.offset) == ("late", 9)
    assert file._take("<HB", 1, "x") == ((0x6362, ord("d")), 4)


def test_a_reader_s_text_is_taken_between_two_bytes_and_its_error_has_path_field_and_byte(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("añb".encode() + b"\xff")
    with Early(path) as file:
        assert file._text(1, 3, "name") == "ñ"
        with pytest.raises(FormatError) as caught:
            file._text(3, 5, "name")
    assert str(caught.value) == f"{path}: name at byte 4: not valid UTF-8 (invalid start byte)"


@pytest.mark.parametrize("length", [TEXT_PIECE - 1, TEXT_PIECE, TEXT_PIECE + 1, 2 * TEXT_PIECE, 2 * TEXT_PIECE + 1])
def test_a_long_text_may_end_at_any_byte_of_a_piece(length):
    data = memoryview(b"-" + b"x" * length + b"\xff")
    assert decode_text(data, 1, length, "a", None) == "x" * length


def test_the_piece_that_a_text_is_looked_through_in_has_64_kib():
    assert TEXT_PIECE == 65536


def test_a_label_is_the_file_s_name_without_its_folder():
    assert path_of("a/b.gguf") == path_of(Path("a/b.gguf")) == "a/b.gguf"
    assert label_of("a/b.gguf") == "b.gguf"
    assert path_of(b"") is path_of(bytearray()) is path_of(memoryview(b"")) is None
    assert label_of(b"") == "bytes"
    assert label_of(b"", "what was sent") == "what was sent"


def test_bytes_that_could_change_are_copied_and_others_are_not():
    fixed, changing = np.frombuffer(b"abcdef", np.uint8), bytearray(b"abcdef")
    assert np.shares_memory(np.asarray(as_bytes(memoryview(fixed))), fixed)
    view = as_bytes(changing)
    changing[0] = 0
    assert bytes(view) == b"abcdef" and view.readonly
    wide = as_bytes(memoryview(np.frombuffer(b"abcdef", np.uint16)))
    assert (len(wide), wide[1]) == (6, ord("b"))
    assert bytes(as_bytes(memoryview(b"abcdef")[::2])) == b"ace"


# ---- what may be opened ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a\0b", "a\udcffb\ud800"])
def test_a_name_that_no_file_can_have_is_a_file_that_is_not_found(name):
    with pytest.raises(FileNotFoundError) as caught:
        open_regular(name)
    assert (caught.value.errno, caught.value.strerror) == (errno.ENOENT, "no file can have this name")
    assert caught.value.filename == repr(name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_a_pipe_is_refused_at_once_and_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="this is a pipe or a device") as caught:
        open_regular(tmp_path / "pipe")
    assert caught.value.path == str(tmp_path / "pipe")


def test_a_bounded_file_may_have_just_as_many_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert read_bounded(tmp_path / "a", 4) == read_bounded(tmp_path / "a", 3) == b"abc"
    with pytest.raises(FormatError, match="the file is longer than 2 bytes") as caught:
        read_bounded(tmp_path / "a", 2)
    assert caught.value.path == str(tmp_path / "a")
