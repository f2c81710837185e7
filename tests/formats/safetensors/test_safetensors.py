"""safetensors: files of the official library and files by hand, read; lies of the header refused by their field."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from safetensors.numpy import load, save

import miniquant.formats.safetensors.read as reader
from conformance.safetensors_files import CORPUS, built, entry
from miniquant.core.errors import FormatError, PickleSecurityRisk
from miniquant.formats.safetensors.read import (
    INDEX,
    SINGLE,
    listed,
    open_checkpoint,
    open_safetensors,
    parse_object,
    read_object,
)
from miniquant.formats.safetensors.types import MAX_HEADER, SafetensorsType
from miniquant.formats.safetensors.write import write_safetensors

W = {
    "b": np.arange(12, dtype=np.float32).reshape(3, 4),
    "a": np.arange(4, dtype=np.float16),
    "none": np.zeros((0, 3), np.float32),
    "scalar": np.array(2.5, np.float32),
}


def test_the_official_library_s_file_is_read_value_for_value():
    with open_safetensors(save(W, {"format": "np"})) as file:
        assert file.metadata == {"format": "np"}
        assert file.tensors.keys() == W.keys()
        for name, w in W.items():
            found = file.tensor(name)
            assert found.dtype == np.float32 and found.shape == w.shape and (found == w).all()
            assert found.flags.writeable
            info = file.tensors[name]
            assert bytes(file.raw(name)) == w.tobytes()
            assert (info.dtype.name, info.n_bytes) == ({"f4": "F32", "f2": "F16"}[w.dtype.str[1:]], w.nbytes)


def test_the_official_library_reads_what_is_written_and_nothing_else_is_left(tmp_path):
    write_safetensors(tmp_path / "m.safetensors", W | {"t": W["b"].T}, {"a": "1"})
    found = load((tmp_path / "m.safetensors").read_bytes())
    assert found.keys() == {*W, "t"}
    assert all((found[name] == w).all() and found[name].dtype == w.dtype for name, w in W.items())
    assert (found["t"] == W["b"].T).all()
    assert [p.name for p in tmp_path.iterdir()] == ["m.safetensors"]
    write_safetensors(tmp_path / "m.safetensors", {}, {})
    with open_safetensors(tmp_path / "m.safetensors") as file:
        assert (file.tensors, file.metadata) == ({}, {})


def test_bfloat16_is_the_upper_half_of_a_float32():
    bits = np.array([0x3F80, 0xC040, 0x0001], "<u2")
    with open_safetensors(built(entry("BF16", (3,), (0, 6)), bits.tobytes())) as file:
        assert file.tensor("w").tolist() == [1.0, -3.0, float(np.array(0x10000, "<u4").view("<f4"))]


def test_metadata_that_is_no_object_is_left_out():
    assert open_safetensors(built({"__metadata__": 3})).metadata == {}


NO_LISTS = "its shape and data_offsets are not lists of whole numbers from 0 on"
MESSAGES = {
    "three bytes": "3",
    "a header's length past the end": "found 3; 2 bytes are left",
    "a header that is no JSON": "this is no JSON",
    "a header that is a text": "this JSON is no object in braces",
    "a header with a stray byte FF": "not valid UTF-8",
    "a name twice": "'w'",
    "a tensor that is a number": "its entry is not a dtype, a shape and data_offsets",
    "a tensor without data_offsets": "its entry is not",
    "a type of float8": "found 'F8_E4M3'; weights of F32, F16, BF16",
    "a type that is a number": "found 3; weights of",
    "data_offsets of half the size": "[2] takes 8 bytes, and it has 4",
    "a byte after the data": "the tensors take 8 bytes, the file has 9 for them",
    **dict.fromkeys(("a negative dim", "a dim that is not whole", "a dim that is a truth value"), NO_LISTS),
    **dict.fromkeys(("a dim of 2^63", "nine dims", "three data_offsets", "data_offsets that are a number"), NO_LISTS),
}


@pytest.mark.parametrize("name", CORPUS)
def test_a_header_that_lies_is_refused_with_its_field_and_what_was_found(name):
    fault = CORPUS[name]
    with pytest.raises(FormatError) as caught:
        open_safetensors(fault.data)
    assert MESSAGES.get(name, "") in str(caught.value)
    if fault.field:
        assert caught.value.field == fault.field
    if fault.offset is not None:
        assert caught.value.offset == fault.offset


def test_each_message_is_that_of_a_file_of_the_corpus():
    assert MESSAGES.keys() <= CORPUS.keys()


def test_a_name_in_escapes_of_json_is_the_name_that_they_stand_for():
    for text in (b'{"gr\\u00f6\\u00dfe \\u2713": %s}', '{"größe ✓": %s}'.encode()):
        header = text % json.dumps(entry()["w"]).encode()
        with open_safetensors(built(header, bytes(8))) as file:
            assert list(file.tensors) == ["größe ✓"]
            assert file.spans == {"größe ✓": (8, 7 + len(header))}


def test_eight_dims_of_the_largest_size_are_numbers_that_are_understood():
    with pytest.raises(FormatError, match=r"takes .* bytes, and it has 8"):
        open_safetensors(built(entry(shape=(2**63 - 1,) * 8), bytes(8)))


def test_a_header_of_the_largest_size_is_read_and_one_byte_more_is_refused(tmp_path, monkeypatch):
    assert MAX_HEADER == 100_000_000
    limit, path = 10_000, tmp_path / "m.safetensors"  # the same, and soon read
    monkeypatch.setattr(reader, "MAX_HEADER", limit)
    for length in (limit, limit + 1):
        path.write_bytes(struct.pack("<Q", length) + b"{}" + b" " * (length - 2))
        if length == limit:
            assert open_safetensors(path).data_start == limit + 8
        else:
            with pytest.raises(FormatError, match=f"found {length}; .* a header has {limit} at most"):
                open_safetensors(path)


def test_overlapping_tensors_are_refused_by_name():
    header = {"a": entry(offsets=(0, 8))["w"], "b": entry(offsets=(4, 12))["w"]}
    with pytest.raises(FormatError, match=r"'b'|'a'"):
        open_safetensors(built(header, bytes(16)))


def test_the_types_are_the_header_s_words():
    assert [(t.name, t.numpy.str, t.block, t.description, t.bytes_of((3, 2))) for t in SafetensorsType] == [
        ("F32", "<f4", 1, "the weights, float32", 24),
        ("F16", "<f2", 1, "the weights, float16", 12),
        ("BF16", "<u2", 1, "the weights, bfloat16", 12),
    ]


# ---- a folder --------------------------------------------------------------------------------------------------------


def test_a_folder_of_one_file_gives_each_tensor_its_place(tmp_path):
    (tmp_path / SINGLE).write_bytes(save(W))
    found = open_checkpoint(tmp_path)
    assert found.keys() == W.keys()
    for name, stored in found.items():
        w = W[name]
        assert (stored.shape, stored.n_bytes, stored.dtype.numpy) == (w.shape, w.nbytes, w.dtype)
        assert (stored.map() == w).all() and stored.map().dtype == w.dtype
    assert found["b"].rows(1, 3).tolist() == W["b"][1:3].tolist()
    assert found["b"].columns(1, 3).tolist() == W["b"][:, 1:3].tolist()
    (tmp_path / SINGLE).write_bytes(save(W)[:-4])
    with pytest.raises(FormatError, match=r"it was cut while it was read"):
        for stored in found.values():
            stored.rows(0, *stored.shape[:1] or (1,))


def sharded(folder, places, **files):
    (folder / INDEX).write_text(json.dumps({"weight_map": places}))
    for name, tensors in files.items():
        (folder / f"{name}.safetensors").write_bytes(save(tensors))


ONE = np.ones(2, np.float32)


def test_a_checkpoint_of_shards_is_joined_by_its_index(tmp_path):
    sharded(tmp_path, {"a": "x.safetensors", "b": "y.safetensors"}, x={"a": ONE}, y={"b": 2 * ONE})
    found = open_checkpoint(tmp_path)
    assert {name: (stored.path[-13:], stored.map().tolist()) for name, stored in found.items()} == {
        "a": ("x.safetensors", [1, 1]),
        "b": ("y.safetensors", [2, 2]),
    }


@pytest.mark.parametrize(
    ("places", "files", "message"),
    [
        (3, {}, "weight_map.*it is no object of names and files"),
        ({"a": 1}, {}, "it is no object of names and files"),
        ({"a": "x.safetensors"}, {}, "it names x.safetensors, not in this folder; download all of it"),
        ({}, {"x": {"a": ONE}}, "it knows nothing of x.safetensors; move it away if it is none"),
        ({"a": "x.safetensors", "b": "y.safetensors"}, {"x": {"a": ONE}, "y": {"a": ONE, "b": ONE}}, "'a' stands in x"),
        ({"a": "x.safetensors"}, {"x": {"a": ONE, "c": ONE}}, "it holds 'c', which .* says is nowhere"),
        ({"a": "x.safetensors", "b": "y.safetensors"}, {"x": {"a": ONE, "b": ONE}, "y": {}}, "says is to be in y"),
        ({"a": "x.safetensors", "b": "x.safetensors"}, {"x": {"a": ONE}}, "it says that 'b' is in x.safetensors, and"),
    ],
)
def test_an_index_that_disagrees_with_its_shards_is_refused(tmp_path, places, files, message):
    sharded(tmp_path, places, **files)
    with pytest.raises(FormatError, match=message):
        open_checkpoint(tmp_path)


def test_files_without_an_index_pickles_and_nothing_at_all_are_told_apart(tmp_path):
    with pytest.raises(FormatError, match=f"no {SINGLE} and no {INDEX} in it"):
        open_checkpoint(tmp_path)
    (tmp_path / "m.PT").write_bytes(b"")
    with pytest.raises(PickleSecurityRisk, match=r"m\.PT is a pickle"):
        open_checkpoint(tmp_path)
    (tmp_path / "x.safetensors").write_bytes(save({}))
    with pytest.raises(FormatError, match=f"found x.safetensors; without {INDEX} there is one file"):
        open_checkpoint(tmp_path)


def test_json_is_refused_with_its_byte_its_depth_or_its_duplicate(tmp_path):
    for text, message in (
        ('{"é": x}', "this is no JSON"),
        ("[" * 100_000, "this JSON cannot be read"),
        ('{"n": ' + "1" * 5000 + "}", "this JSON cannot be read"),
        ("[]", "this JSON is no object in braces"),
        ('{"a": {"b": 1, "b": 2}}', "'b'"),
    ):
        with pytest.raises(FormatError, match=message) as caught:
            parse_object(text, "file", "field", 100)
        assert caught.value.field == "field" and str(caught.value.path) == "file"
        if "no JSON" in message:
            assert caught.value.offset == 100 + len('{"é": '.encode())
    (tmp_path / "c.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(FormatError, match="not valid UTF-8") as caught:
        read_object(tmp_path / "c.json")
    assert caught.value.offset == 7
    assert parse_object('{"a": 1}', None) == {"a": 1}


def test_long_lists_of_names_are_cut_and_a_name_stays_on_its_line():
    assert listed(["b", "a"]) == "a, b"
    assert listed(f"{i}" for i in range(3)) == "0, 1, 2"
    assert listed(["x\ny", "z" * 81]) == "'x\\ny', " + repr("z" * 80)
