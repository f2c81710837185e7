"""The inspector says of a file what the library says, byte for byte, and reads no more than it shows."""

from __future__ import annotations

import functools
import json
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from test_fields_unchanged import SAFETENSORS, samples
from thorough import tried

from conformance import gguf_files, gguf_lite_files
from miniquant.core.errors import MiniquantError, PickleSecurityRisk
from miniquant.core.slices import PAGE, Slices, as_slices
from miniquant.formats.fields import parse
from miniquant.formats.gguf import read_gguf, write_gguf
from miniquant.formats.registry import formats, open_any
from miniquant.formats.safetensors.write import write_safetensors
from miniquant.inspect.inspector import MOST_BLOCKS, Inspector


@functools.cache
def files() -> dict[str, tuple[bytes, dict[str, bytes]]]:
    """Valid files and malformed ones, with what lies beside them."""
    found = {name: (data, beside) for name, data, beside in samples()}
    found |= {f"gguf: {name}": (bad.data, {}) for name, bad in gguf_files.CORPUS.items()}
    found |= {f"gguf-lite: {name}": (bad.data, {}) for name, bad in gguf_lite_files.CORPUS.items()}
    found["safetensors, no JSON"] = (SAFETENSORS[:30], {})
    found["safetensors, a lie"] = (SAFETENSORS.replace(b"[2,2]", b"[2,3]"), {})
    found["pickle that imports"] = (b"\x80\x02cos\nsystem\n.", {})
    return found


@functools.cache
def seen(name: str) -> Inspector:
    data, beside = files()[name]
    return Inspector(as_slices(data), beside)


@pytest.fixture(params=["gguf: ", "gguf-lite: ", ""])
def names(request) -> list[str]:
    """The malformed files of a corpus, or all others."""
    corpora = ("gguf: ", "gguf-lite: ")
    return [n for n in files() if (n.startswith(request.param) if request.param else not n.startswith(corpora))]


def test_the_fields_and_the_error_by_slices_are_those_of_the_file_on_disk(names, tmp_path):
    for number, name in enumerate(names):
        (tmp_path / str(number)).mkdir()
        compare(name, tmp_path / str(number))


def compare(name: str, folder: Path) -> None:
    data, beside = files()[name]
    path = folder / "model"
    path.write_bytes(data)
    for other, text in beside.items():
        (folder / other).write_bytes(text)
    fields, error = parse(path)
    ours = seen(name)
    assert ours.fields == fields
    assert [f.text() for f in ours.fields] == [f.text() for f in fields]
    shown = json.loads(json.dumps(ours.summary(), allow_nan=False))["error"]
    assert (shown is None) == (error is None)
    try:
        open_any(path if name != "bump without its config" else data, beside).close()
    except PickleSecurityRisk as refusal:
        assert str(refusal) == f"{path}: {ours.refused}"
    except MiniquantError as refusal:
        assert shown["message"].endswith(str(refusal).removeprefix(f"{path}: ")), "the library's own words"
    else:
        assert error is None or shown["message"] == str(error)


def test_every_byte_belongs_to_one_field_and_to_the_row_and_the_part_of_the_strip_that_are_lit(names):
    for name in names:
        look_at_bytes(name)


def look_at_bytes(name: str) -> None:
    data, _ = files()[name]
    ours = seen(name)
    summary = ours.summary()
    step = max(1, len(data) // tried(60, 200))
    for offset in [*range(0, len(data), step), *([len(data) - 1] if data else [])]:
        found = json.loads(json.dumps(ours.at(offset), allow_nan=False))
        assert found["byte"] == data[offset]
        assert found["field"]["start"] <= offset < found["field"]["end"]
        assert found["field"]["name"] == ours.fields[found["field"]["number"]].name
        block = summary["blocks"][found["block"]]
        assert block["start"] <= offset < block["start"] + block["length"]
        rows = [
            (table, number)
            for table in ("metadata", "tensors")
            for number, row in enumerate(summary[table])
            if any(start <= offset < end for start, end in row["places"])
        ]
        lit = found["row"]
        assert rows == ([(lit["table"], lit["number"])] if lit else [])
    with pytest.raises(IndexError, match="there is no byte"):
        ours.at(len(data))


def test_a_window_has_the_file_s_bytes_and_a_run_for_each_of_them(names):
    places = [(name, len(files()[name][0])) for name in names]
    stretches = [(n, *part) for n, size in places for part in ((0, 64), (max(0, size - 40), 64), (size // 2, 17))]
    for name, start, length in stretches:
        data, _ = files()[name]
        found = seen(name).window(start, length)
        assert found["bytes"] == data[start : start + length].hex()
        ends = [start, *(run["end"] for run in found["runs"])]
        assert [run["start"] for run in found["runs"]] == ends[:-1]
        assert ends[-1] == min(start + length, len(data))


def test_a_decoded_block_has_the_numbers_of_the_tensor_that_the_reader_gives():
    whole = [name for name in files() if seen(name).error is None and seen(name).file is not None]
    assert {seen(name).format.name for name in whole} >= {"gguf", "gguf-lite", "bump", "safetensors"}
    for name in whole:
        look_at_last_blocks(name)


def look_at_last_blocks(name: str) -> None:
    data, beside = files()[name]
    ours = seen(name)
    decoded = 0
    with open_any(data, beside) as file:
        for row in ours.summary()["tensors"]:
            if not row["n_bytes"] or file.tensors[row["name"]].length is not None:
                continue
            last = ours.at(row["start"] + row["n_bytes"] - 1)["decoded"]
            if last is None:  # a type that has no codec here, or no names
                continue
            whole = file.tensor(row["name"]).reshape(-1)
            values = np.array([float(value) for value in last["values"]])
            if last["scale"]:
                values = values * float(last["scale"]["value"])
            assert values == pytest.approx(whole[-len(values) :].astype(np.float64), rel=1e-5, nan_ok=True)
            assert [p["end"] for p in last["parts"][:-1]] == [p["start"] for p in last["parts"][1:]]
            decoded += 1
    assert decoded or not formats()[ours.format.name].fields or not ours.summary()["tensors"]


def test_the_two_nibbles_of_a_byte_are_shown_where_it_holds_two_weights_and_only_there():
    ours = seen("gguf, Q4_0")
    start = ours.summary()["tensors"][0]["start"]
    byte = ours.at(start + 2)["byte"]
    assert ours.at(start + 2)["decoded"]["nibbles"] == [byte & 15, byte >> 4]
    assert ours.at(start)["decoded"]["nibbles"] is None  # the scale
    eight = seen("gguf, Q8_0")
    assert eight.at(eight.summary()["tensors"][0]["start"] + 2)["decoded"]["nibbles"] is None


def test_bytes_that_were_typed_over_are_read_again_as_if_the_file_had_them():
    data, _ = files()["gguf, Q4_0"]
    edited = bytearray(data)
    edited[8] = 200
    ours = Inspector(Slices(lambda start, end: data[start:end], len(data), edits={8: 200}))
    assert ours.summary() == Inspector(bytes(edited)).summary()
    assert ours.error.field == "header.n_tensors" and ours.error.offset == 8


def test_the_differences_of_two_files_are_counted_and_named():
    data, _ = files()["gguf, Q4_0"]
    changed = bytearray(data)
    for at in (8, 9, 30, len(data) - 1):
        changed[at] ^= 1
    one, two = Inspector(data), Inspector(bytes(changed[:-1]) + bytes([changed[-1]]) + b"more")
    found = one.differences(two, 0, 10**9)
    assert (found["count"], found["end"]) == (4, len(data))
    assert found["runs"] == [(8, 10), (30, 31), (len(data) - 1, len(data))]
    named = {one.at(at)["field"]["name"] for at in (8, 30, len(data) - 1)}
    assert set(found["fields"]) == named and sum(found["fields"].values()) == 4
    parts = [one.differences(two, start, 16) for start in range(0, len(data), 16)]
    assert sum(part["count"] for part in parts) == 4


def test_a_file_of_a_terabyte_opens_from_its_head_and_shows_its_last_block(tmp_path):
    path = tmp_path / "m.gguf"
    write_gguf(path, {"w": (np.ones((1, 32), np.float32), "Q4_0")}, {"general.architecture": "llama"})
    with read_gguf(path) as file:
        start, place = file.data_start, file.spans["tensor:w"]
    head = bytearray(path.read_bytes()[:start])
    width = 2**41  # weights in Q4_0: 1.2 terabytes
    head[place[1] - 28 : place[1] - 20] = struct.pack("<Q", width)
    size = start + width // 32 * 18
    block = struct.pack("<e", 0.5) + bytes(range(16))
    read = []

    def part(begin: int, end: int) -> bytes:
        read.append(end - begin)
        out = bytearray(end - begin)
        for at in range(begin, end):
            if at < start:
                out[at - begin] = head[at]
            elif at >= size - 18:
                out[at - begin] = block[at - size + 18]
        return bytes(out)

    ours = Inspector(Slices(part, size, "large.gguf"))
    assert ours.summary()["tensors"][0]["n_bytes"] == width // 32 * 18
    last = ours.at(size - 1)
    assert last["decoded"]["number"] == width // 32 - 1
    assert last["decoded"]["values"][0] == f"{0.5 * (0 - 8):.6g}"
    assert sum(read) <= 4 * PAGE


def test_a_file_of_very_many_parts_has_a_strip_of_at_most_a_few_thousand(tmp_path):
    path = tmp_path / "m.safetensors"
    write_safetensors(path, {f"t{i}": np.zeros(1 + i % 3, np.float32) for i in range(3 * MOST_BLOCKS)}, {})
    blocks = Inspector(path.read_bytes()).summary()["blocks"]
    assert len(blocks) <= 2 * MOST_BLOCKS
    ends = [block["start"] + block["length"] for block in blocks]
    assert [block["start"] for block in blocks] == [0, *ends[:-1]] and ends[-1] == path.stat().st_size


def test_a_pickle_shows_what_it_would_import_and_is_not_loaded():
    class Loud:
        def __reduce__(self):
            return print, ("loaded",)

    ours = Inspector(pickle.dumps(Loud(), 2))
    assert [(row["name"], row["listed"]) for row in ours.summary()["imports"]] == [("__builtin__.print", False)]
    (start, _), *_ = ours.summary()["imports"][0]["places"]
    assert ours.at(start)["field"]["category"] == "import"
    assert "this is a pickle" in ours.refused and not ours.refused.startswith("the bytes")
    assert {"import", "call"} <= {field.category for field in ours.fields}
