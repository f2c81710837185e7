"""Every byte of a safetensors file has a name, its parts say what json and the safetensors library read there."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from safetensors.numpy import save

from miniquant.core.errors import FormatError
from miniquant.formats.fields import parse
from miniquant.formats.json_places import byte_members
from miniquant.formats.safetensors.read import open_safetensors

W = {
    "größe": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([1.5], np.float16),
    "none": np.zeros(0, np.float32),
}
DATA = save(W, {"made": "by ‘hand’", "b": "2"})


def test_the_parts_of_each_entry_are_what_json_reads_there():
    parts, error = parse(DATA)
    assert error is None
    by_name = {part.name: part for part in parts}
    (length,) = struct.unpack("<Q", DATA[:8])
    header = json.loads(DATA[8 : 8 + length])
    assert by_name["header.length"].value == length
    for name, w in W.items():
        for key in ("dtype", "shape", "data_offsets"):
            assert by_name[f"tensor {name!r}: {key}"].value == header[name][key]
            assert json.dumps(key).encode() in bytes(by_name[f"tensor {name!r}: {key}"].raw)
        assert json.dumps(name, ensure_ascii=False) in by_name[f"tensor {name!r}: name"].value
        if w.size:
            np.testing.assert_array_equal(by_name[f"tensor {name!r}: data"].value, w)
    for key, text in header["__metadata__"].items():
        assert by_name[f"metadata {key!r}"].value == text
        assert by_name[f"metadata {key!r}"].text() == repr(text)
    assert bytes(by_name["header: end"].raw).strip() == b"}"
    assert by_name["header: end"].end == 8 + length


def test_the_fields_are_in_order_and_hold_every_byte_once():
    for data in (DATA, DATA[:-1], DATA[: len(DATA) // 2], DATA.replace(b'"F32"', b'"F99"'), save({}, {}), DATA[:11]):
        parts, _ = parse(data)
        ends = [0, *(part.end for part in parts)]
        assert ends[-1] == len(data)
        assert [part.start for part in parts] == ends[:-1]


def test_an_entry_and_a_key_stand_where_their_text_is():
    with open_safetensors(DATA) as file:
        for name in W:
            start, end = file.entry_place(name)
            assert DATA[start:end].decode().lstrip("{,").startswith(json.dumps(name, ensure_ascii=False) + ":{")
            assert DATA[start:end].endswith(b"}")
        assert DATA[slice(*file.key_place("b"))].lstrip(b"{,") == b'"b":"2"'


def test_an_error_in_the_second_entry_names_the_byte_at_which_that_entry_begins():
    entries = {
        "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "é": {"dtype": "F32", "shape": [2], "data_offsets": [4, 8]},
    }
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    data = struct.pack("<Q", len(text)) + text + bytes(8)
    with pytest.raises(FormatError) as caught:
        open_safetensors(data)
    assert caught.value.offset == data.index(',"é"'.encode())
    assert caught.value.field == "tensor 'é': data_offsets"


def test_bfloat16_values_are_decoded_as_floats():
    text = b'{"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    parts, _ = parse(struct.pack("<Q", len(text)) + text + struct.pack("<2H", 0x3FC0, 0xC000))
    assert parts[-1].value.tolist() == [1.5, -2.0]
    assert parts[-1].text() == "[0] to [1]: 1.5, -2"


def test_metadata_without_a_word_are_one_field():
    header = b'{"__metadata__":{},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    parts, error = parse(struct.pack("<Q", len(header)) + header + bytes(4))
    assert error is None
    (found,) = [part for part in parts if part.name == "metadata: entry"]
    assert (found.text(), found.explanation, len(found)) == ("'{}'", "the entry", 2)


def test_the_places_of_the_members_of_a_header_count_bytes():
    assert [(m.key, m.at, m.start, m.end) for m in byte_members('{"é": 1, "b": 2}'.encode())] == [
        ("é", 1, 7, 8),
        ("b", 10, 15, 16),
    ]
