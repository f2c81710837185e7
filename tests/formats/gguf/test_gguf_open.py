"""An open file of real GGUF: what it costs, what outlives it, and what it says where it cannot answer."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from thorough import in_turns

from miniquant.core.errors import FormatError, QuantizationError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.describe import describe
from miniquant.formats.fields import fields
from miniquant.formats.gguf import Typed, ValueType, compiled, read_gguf, write_gguf
from miniquant.formats.gguf.codecs import CODECS, rows

GOOD = np.ones((2, 64), np.float32)


@pytest.fixture
def path(no_leftovers) -> Path:
    return no_leftovers / "model.gguf"


def peak_of(work: Any) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


KINDS = [kind.name for kind in CODECS if kind.block <= 32]


@pytest.mark.parametrize(("kind", "dtype"), in_turns(KINDS, ["float32", "float16", "float64", ">f4"]))
def test_writing_takes_at_most_three_times_the_largest_tensor(kind, dtype, path, monkeypatch):
    monkeypatch.setenv(compiled.SWITCH, "0")  # numba's own memory would count, if it were loaded just then
    w = np.ones((600, 3200), dtype)
    write_gguf(path, {"small": (w[:1], kind)}, {})  # the imports and buffers of a first call
    assert peak_of(lambda: write_gguf(path, {"a": (w, kind), "b": (w, kind)}, {})) < 3 * w.nbytes


def test_opening_costs_the_header_and_reading_costs_the_tensor(path):
    w = np.ones((1000, 3200), np.float32)
    write_gguf(path, {str(i): (w, "Q8_0") for i in range(3)}, {"a": 1})
    files = []
    assert peak_of(lambda: files.append(read_gguf(path))) < 50_000
    assert peak_of(lambda: files[0].raw("1")) < 50_000
    scratch = rows.THREADS * 2 * 4 * rows.CHUNK  # two rows of float32 a thread, whatever the tensor's size
    assert peak_of(lambda: files[0].tensor("1")) < w.nbytes + scratch + 2_000_000  # two copies would be 12.8 MB more


def test_a_file_of_a_terabyte_opens_at_once(path):
    """Its data is a hole: nothing but the header takes room on the disk."""
    dims = (2**20, 2**18)
    info = struct.pack("<Q", 1) + b"w" + struct.pack("<I2QIQ", 2, *dims, 0, 0)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + info)
    try:
        os.truncate(path, 96 + 4 * dims[0] * dims[1])
    except OSError:  # a file system that has no files of this size
        dims = (2**20, 2**8)
        path.write_bytes(path.read_bytes().replace(struct.pack("<Q", 2**18), struct.pack("<Q", 2**8)))
        os.truncate(path, 96 + 4 * dims[0] * dims[1])
    files = []
    assert peak_of(lambda: files.append(read_gguf(path))) < 50_000
    assert files[0].raw("w")[-4:].tolist() == [0, 0, 0, 0]


def test_strings_of_an_array_are_decoded_only_when_asked_for(path):
    tokens = [f"token {i}" for i in range(20_000)]
    write_gguf(path, {}, {"tokens": Typed(tokens, ValueType.ARRAY, ValueType.STRING)})
    files = []
    assert peak_of(lambda: files.append(read_gguf(path))) < 150_000  # 4 bytes for where each begins
    found = files[0].metadata["tokens"]
    assert len(found) == 20_000
    assert (found[7], found[-1], found[3:5]) == ("token 7", "token 19999", ["token 3", "token 4"])
    assert list(found) == tokens == found
    assert found != tokens[1:]
    assert repr(found) == "<20000 strings: 'token 0', 'token 1', 'token 2', 'token 3', …>"
    with pytest.raises(IndexError):
        found[20_000]


def test_an_array_of_four_strings_shows_all_of_them(path):
    write_gguf(path, {}, {"tokens": ["a", "b", "c", "d"]})
    assert repr(read_gguf(path).metadata["tokens"]) == "<4 strings: 'a', 'b', 'c', 'd'>"


def test_numeric_arrays_are_views_of_the_file_that_cannot_change_it(path):
    write_gguf(path, {"w": GOOD}, {"a": np.arange(1_000_000)})
    files = []
    assert peak_of(lambda: files.append(read_gguf(path))) < 50_000
    for view in (files[0].metadata["a"], files[0].raw("w")):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1


def test_what_was_read_outlives_the_file_and_its_replacement(path):
    write_gguf(path, {"w": GOOD}, {"a": np.arange(5), "b": ["x", "y"]})
    with read_gguf(path) as file:
        w, raw, numbers, texts = file.tensor("w"), file.raw("w"), file.metadata["a"], file.metadata["b"]
        write_gguf(path, {"w": GOOD * 2}, {})
        assert np.array_equal(file.tensor("w"), GOOD)
    assert np.array_equal(w, GOOD)
    assert raw.tobytes() == GOOD.tobytes()
    assert numbers.tolist() == [0, 1, 2, 3, 4]
    assert list(texts) == ["x", "y"]
    w[0, 0] = 5  # a fresh array
    with pytest.raises(ValueError, match="closed; read inside the with block"):
        file.tensor("w")


def test_an_unknown_tensor_says_where_the_names_are(path):
    write_gguf(path, {"w": GOOD}, {})
    with read_gguf(path) as file, pytest.raises(KeyError, match=r"no tensor 'v' in .*; the names are in \.tensors"):
        file.tensor("v")


def test_a_missing_file_and_a_folder_are_os_errors(tmp_path):
    for place in (tmp_path / "none.gguf", tmp_path):
        with pytest.raises(OSError) as caught:
            read_gguf(place)
        assert not isinstance(caught.value, FormatError)


def test_a_path_may_be_text_or_a_path(path):
    for form in (path, str(path)):
        write_gguf(form, {"w": GOOD}, {})
        assert np.array_equal(read_gguf(form).tensor("w"), GOOD)


def test_reading_and_writing_do_not_import_torch(tmp_path):
    program = """
import sys
import numpy as np
from miniquant.formats.gguf import read_gguf, write_gguf
write_gguf(sys.argv[1], {"w": (np.ones((4, 64), np.float32), "Q4_1")}, {"a": 1})
assert read_gguf(sys.argv[1]).tensor("w").sum() == 256
assert "torch" not in sys.modules, "torch was imported"
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "w.gguf")], check=True)


def test_version_2_is_read_as_ggml_and_the_official_package_read_it(path):
    """Its layout is that of version 3, which only allows big-endian files besides."""
    write_gguf(path, {"w": (GOOD, "Q8_0"), "v": GOOD[0]}, {"general.architecture": "x", "n": [1, 2]})
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + struct.pack("<I", 2) + whole[8:])
    official = {t.name: t.data.tobytes() for t in gguf.GGUFReader(path).tensors}
    with LlamaCpp(None) as llama:
        llama.check(path)
    with read_gguf(path) as file:
        assert file.version == 2
        assert {name: file.raw(name).tobytes() for name in file.tensors} == official
        assert file.metadata["general.architecture"] == "x"
    assert describe(path).version == 2
    assert {field.name for field in fields(path)} == {field.name for field in fields(whole)}
    path.write_bytes(whole[:4] + struct.pack("<I", 1) + whole[8:])
    with pytest.raises(FormatError, match="found version 1, this reader knows 2 and 3; version 1 is obsolete"):
        read_gguf(path)


def test_strings_beyond_the_first_4_gigabytes_are_where_they_are(path):
    """The array before them is a hole of 4 GiB."""
    hole = 2**32
    start = b"GGUF" + struct.pack("<IQQ", 3, 0, 2)
    start += struct.pack("<Q1sIIQ", 1, b"a", ValueType.ARRAY, ValueType.UINT8, hole)
    with open(path, "wb") as file:
        file.write(start)
        file.seek(len(start) + hole)
        file.write(struct.pack("<Q1sIIQ", 1, b"s", ValueType.ARRAY, ValueType.STRING, 2))
        file.write(struct.pack("<Q3sQ2s", 3, b"one", 2, b"no") + bytes(64))
    with read_gguf(path) as file:
        assert list(file.metadata["s"]) == ["one", "no"]
        assert len(file.metadata["a"]) == hole


@pytest.mark.parametrize("offset", [32, 64, 2**40])
def test_an_empty_tensor_may_point_anywhere_since_it_has_no_byte(offset, path):
    infos = struct.pack("<Q1sI2QIQ", 1, b"e", 2, 0, 5, 0, offset)
    infos += struct.pack("<Q1sIQIQ", 1, b"w", 1, 4, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 2, 0) + infos
    path.write_bytes(head + bytes(-len(head) % 32) + np.arange(4, dtype="<f4").tobytes() + bytes(16))
    with read_gguf(path) as file:
        assert file.tensor("e").shape == (5, 0)
        assert file.tensor("w").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["F16", "Q8_0", "Q4_0"])
def test_a_wrong_weight_in_a_later_piece_is_named_with_its_row_of_the_whole(kind, path):
    w = np.zeros((3000, 1024), np.float32)
    w[2999, 7] = 1e30
    with pytest.raises(QuantizationError, match=r"'w': the weight at row 2999, column 7 is 1e.30"):
        write_gguf(path, {"w": (w, kind)}, {})
