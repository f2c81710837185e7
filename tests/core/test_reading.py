"""The base of the readers: where tensors may lie, texts, and what stays valid when a file is closed."""

from __future__ import annotations

from collections import Counter, namedtuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from miniquant.core.errors import FormatError
from miniquant.core.reading import TEXT_PIECE, MappedFile, decode_text

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
