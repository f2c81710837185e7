"""The annotated bytes and the first difference of two files, in text and in HTML."""

import os
import struct
import tracemalloc
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from toy_file import NAMES, TOY

from miniquant import write_gguf_lite as write
from miniquant.formats.field import Decoder, Field, Line, Text
from miniquant.formats.gguf.fields import gguf_fields
from miniquant.inspect.hexview import diff, hexview


@pytest.fixture
def toy(tmp_path):
    path = tmp_path / "toy.gguf-lite"
    path.write_bytes(TOY)
    return path


# ---- hexview ---------------------------------------------------------------------------------------------------------


def test_the_text_of_the_toy_file_spelled_out(toy):
    w, b = "tensor 'w'", "tensor 'b'"
    lines = [
        "toy.gguf-lite, 100 bytes: bytes 0 to 99",
        "00000000  54 46 4c 47 01 00 00 00 02 00 00 00 04 00 00 00  TFLG............  "
        "header.magic, header.version, header.n_tensors, header.metadata_len",
        "00000010  61 3d 62 63 01 00 77 02 01 00 00 00 40 00 00 00  a=bc..w.....@...  "
        f"metadata 'a', descriptor 0: name_len, {w}: name, {w}: n_dims, {w}: dims",
        "00000020  03 00 00 00 00 00 00 00 00 01 00 62 01 02 00 00  ...........b....  "
        f"{w}: dtype, {w}: offset, descriptor 1: name_len, {b}: name, {b}: n_dims, {b}: dims",
        '00000030  00 00 22 00 00 00 00 00 00 00 00 38 21 8f 00 00  .."........8!...  '
        f"… {b}: dims, {b}: dtype, {b}: offset, {w}: scales, {w}: values",
        f"00000040  {'00 ' * 16} ................  … {w}: values",
        f"00000050  00 00 00 00 00 00 00 00 00 00 00 00 00 00 80 3f  ...............?  … {w}: values, {b}: values",
        f"00000060  00 00 00 c0{' ' * 37} ....{' ' * 12}  … {b}: values",
    ]
    assert repr(hexview(toy)) == "\n".join(lines)


def test_a_stretch_keeps_its_bytes_under_the_columns_of_the_whole():
    whole, part = repr(hexview(TOY)).split("\n"), repr(hexview(TOY, 21, 14)).split("\n")
    assert part[0] == "bytes, 100 bytes: bytes 21 to 34"
    assert part[1][25:58] == whole[2][25:58]
    assert part[1][:25] == "00000010  " + " " * 15
    assert repr(hexview(TOY, -8)).split("\n")[0].endswith("bytes 92 to 99")
    assert repr(hexview(TOY, "tensor 'b': values")) == repr(hexview(TOY, 92))
    assert "nothing to show from byte 500 on" in repr(hexview(TOY, 500))
    with pytest.raises(KeyError, match="no field 'weights'"):
        hexview(TOY, "weights")


def test_each_run_of_bytes_says_where_it_is_what_it_is_and_what_it_holds():
    labels = [e.get("aria-label") for e in ET.fromstring(hexview(TOY).html).iter("input")]
    assert labels[0].startswith("bytes 0 to 3, header.magic = 0x474C4654 (")
    for expected in (
        "byte 32, tensor 'w': dtype = 3 (Q4_PER_GROUP_64) (",
        "bytes 60 to 63, tensor 'w': values = [0, 0] to [0, 7]: 1, 2, -1, -8, 0, 0, 0, 0 (",
        "bytes 64 to 79, tensor 'w': values = [0, 8] to [0, 39]: 0, ",
        "bytes 92 to 95, tensor 'b': values = [0]: 1 (",
        "bytes 96 to 99, tensor 'b': values = [1]: -2 (",
    ):
        assert any(label.startswith(expected) for label in labels), expected


# ---- diff ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "start", "end", "_value"), NAMES)
def test_a_byte_changed_in_any_field_is_found_and_its_field_named(name, start, end, _value):
    for at in {start, end - 1}:
        mine = bytearray(TOY)
        mine[at] ^= 0x55
        found = diff(bytes(mine), TOY)
        assert (found.equal, found.offset, found.field) == (False, at, name)
        assert repr(found).startswith(f"mine differs from the reference at byte {at}, in {name}\n")
        assert f"byte: {TOY[at]:02x} expected, {mine[at]:02x} found" in repr(found)
        marked = [e.text for e in ET.fromstring(found.html).iter("mark")]
        assert marked == [f"{TOY[at]:02x}", f"{mine[at]:02x}"]


def test_the_text_of_a_difference_spelled_out(toy):
    mine = TOY[:24] + struct.pack("<2I", 64, 1) + TOY[32:]
    assert repr(diff(mine, toy)) == "\n".join(
        [
            "mine differs from toy.gguf-lite at byte 24, in tensor 'w': dims",
            "  field: tensor 'w': dims, bytes 24 to 31: the shape, out first, as PyTorch has it",
            "  byte: 01 expected, 40 found",
            "  expected: 1 × 64",
            "  found: 64 × 1",
            "  lengths: 100 bytes expected, 100 found",
            "  note: a reader of mine stops: tensor 'w': dims at byte 24: Q4_PER_GROUP_64 needs rows of "
            "a multiple of 64, found (64, 1)",
            "  expected  00000000  54 46 4c 47 01 00 00 00 02 00 00 00 04 00 00 00",
            "  found     00000000  54 46 4c 47 01 00 00 00 02 00 00 00 04 00 00 00",
            "  expected  00000010  61 3d 62 63 01 00 77 02 01 00 00 00 40 00 00 00",
            "  found     00000010  61 3d 62 63 01 00 77 02 40 00 00 00 01 00 00 00",
            " " * 46 + "^^",
            "  expected  00000020  03 00 00 00 00 00 00 00 00 01 00 62 01 02 00 00",
            "  found     00000020  03 00 00 00 00 00 00 00 00 01 00 62 01 02 00 00",
        ]
    )


def test_equal_files_are_called_equal_with_their_length_and_hash(toy):
    found = diff(TOY, toy)
    assert (found.equal, found.offset, found.field) == (True, None, None)
    assert repr(found) == "mine and toy.gguf-lite are byte for byte equal: 100 bytes, SHA-256 2978601c2cddb871…"


def test_a_short_file_and_a_long_one_are_told_apart():
    short, long = diff(TOY[:70], TOY), diff(TOY + b"zz", TOY)
    assert (short.offset, short.field) == (70, "tensor 'w': values")
    assert repr(short).startswith("mine ends at byte 70, in tensor 'w': values\n")
    assert "missing: 30 bytes" in repr(short)
    assert (long.offset, long.field) == (100, None)
    assert repr(long).startswith("mine goes on after byte 100, where the reference ends\n  not expected: 7a 7a\n")


def test_files_of_one_name_are_called_mine_and_the_reference(toy, tmp_path):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / toy.name
    other.write_bytes(TOY[:-1] + b"?")
    assert repr(diff(other, toy)).startswith("mine differs from the reference at byte 99")


def test_a_difference_deep_in_a_large_file_is_found(tmp_path):
    write(tmp_path / "large", {"w": np.zeros((700, 1024), np.float32)}, {})
    mine = bytearray((tmp_path / "large").read_bytes())
    mine[2_500_000] = 1
    found = diff(bytes(mine), tmp_path / "large")
    assert (found.offset, found.field) == (2_500_000, "tensor 'w': values")
    assert len(found.html) < 60_000


def test_all_fields_that_differ_are_listed():
    mine = bytearray(TOY)
    mine[22] = ord("v")
    mine[95] = 0
    assert "fields that differ: tensor 'w': name, tensor 'b': values" in repr(diff(bytes(mine), TOY))


# ---- large files -----------------------------------------------------------------------------------------------------


def peak_of(work) -> int:
    work()  # imports and buffers of a first call
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("head", [b"", b"GGUF", b"TFLG", b"BUMPWGT3"])
def test_a_file_of_a_hundred_gigabytes_costs_what_is_shown_of_it(head, tmp_path):
    """Its data is a hole: nothing but the first bytes take room on the disk."""
    path = tmp_path / "large"
    path.write_bytes(head)
    os.truncate(path, 10**11)
    assert peak_of(lambda: hexview(path, 10**9, 256)) < 1_000_000
    assert "bytes 1000000000 to 1000000255" in repr(hexview(path, 10**9, 256))


@pytest.mark.parametrize("decoder", [Decoder(), Text(), Line()])
def test_a_field_of_gigabytes_shows_its_beginning_and_reads_no_more(decoder):
    large = np.broadcast_to(np.uint8(ord("x")), 2**33)
    if isinstance(decoder, Line):
        large = np.concatenate([np.frombuffer(b"key=", np.uint8), large[: 2**22]])
    field = Field("f", 0, len(large), "metadata", "", large, decoder)
    assert peak_of(lambda: field.text(5, 10)) < 1_000_000
    assert field.text() == ("78 " * 16 + "…" if type(decoder) is Decoder else repr("x" * 79 + "…"))


@pytest.mark.parametrize("letter", ["x", "é", "語", "🙂"])
def test_a_text_is_cut_at_80_letters_whatever_their_length(letter):
    for n in (0, 1, 79, 80, 81, 99, 100, 101, 400, 1000):
        shown = letter * n if n <= 80 else letter * 79 + "…"
        for decoder, key in ((Text(), ""), (Line(), "k" * 70_000 + "="), (Line(), "k=")):
            raw = np.frombuffer((key + letter * n).encode(), np.uint8)
            assert Field("f", 0, len(raw), "metadata", "", raw, decoder).text() == repr(shown)


def test_a_key_or_name_as_long_as_the_file_is_named_by_its_beginning(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 10**9) + "é".encode() * 200)
    os.truncate(path, 10**9 + 100)
    assert peak_of(lambda: list(gguf_fields(np.memmap(path, np.uint8, "r")))) < 1_000_000
    assert f"metadata {'é' * 60!r}: key" in [f.name for f in gguf_fields(np.memmap(path, np.uint8, "r"))]
