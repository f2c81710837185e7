"""Labs 08 to 10: files as results, functions taken from another notebook, and how their checks speak."""

from __future__ import annotations

import inspect
import json
import re
import struct

import numpy as np
import pytest
from places import ROOT

from miniquant import read_gguf_lite
from miniquant.core.errors import FormatError
from miniquant.lab import exercises, find
from miniquant.lab.answers import answers
from miniquant.lab.attempt import outcomes_of
from miniquant.lab.checking import evaluate
from miniquant.lessons.shared.gguf_lite_by_hand import descriptor_oracle, header_oracle
from miniquant.lessons.writer.write_file import oracle as file_oracle

LABS = [spec for subject in ("container", "writer", "reader") for spec in exercises().of_lab(subject)]
HONEST = (ValueError, struct.error, KeyError, IndexError, AssertionError, RuntimeError)  # FormatError is a ValueError


@pytest.mark.parametrize("spec", LABS, ids=lambda spec: spec.name)
def test_no_catalogued_mistake_fails_for_another_reason_than_its_own(spec):
    for mistake in spec.mistakes:
        if mistake.name == "a text file":  # a TypeError is what this one is about
            continue
        for outcome in outcomes_of(spec, mistake.wrong):
            error = outcome.error
            assert error is None or isinstance(error, HONEST) or type(error).__name__ == "Finding", mistake.name


@pytest.mark.parametrize("spec", LABS, ids=lambda spec: spec.name)
def test_every_mistake_says_what_a_student_sees(spec):
    for mistake in spec.mistakes:
        assert mistake.see
        assert not mistake.see.endswith("."), "it completes: Help: I see …"


def test_a_writer_that_writes_nothing_hears_that_no_file_is_there():
    spec = exercises()["write_file"]

    def write_file(path, state, schemes, metadata):
        file_oracle(path, state, schemes, metadata)

    report = evaluate(spec, write_file, search=False)
    assert "there is no file at the path" in report.what
    assert "NoneType" in report.shown.got


def test_a_writer_that_is_refused_must_leave_the_old_file_alone():
    spec = exercises()["write_file"]

    def write_file(path, state, schemes, metadata):
        with open(path, "wb") as file:
            file.write(file_oracle(path, state, schemes, metadata))

    report = evaluate(spec, write_file, search=False)
    assert "refuses the call, and changes the old file" in report.what
    assert report.mistake == "opened before the plan was made"


def test_a_writer_that_is_refused_must_not_remove_the_old_file():
    def write_file(path, state, schemes, metadata):
        path.unlink(missing_ok=True)
        path.write_bytes(file_oracle(path, state, schemes, metadata))

    report = evaluate(find("write_file"), write_file, search=False)
    assert "wrong on 3 of 11 cases" in report.what
    assert "changes the old file" in report.what
    assert report.shown.got == "a refusal, and no file"


def test_a_writer_that_is_refused_must_leave_no_other_file():
    def write_file(path, state, schemes, metadata):
        draft = path.with_suffix(".tmp")
        draft.touch()
        data = file_oracle(path, state, schemes, metadata)
        draft.unlink()
        path.write_bytes(data)

    assert "leaves another file in the folder" in evaluate(find("write_file"), write_file, search=False).what


def test_the_offsets_of_a_tensor_of_three_dims_count_all_of_them():
    def tensor_offsets(shapes, dtypes):
        first_two = {name: dims[:2] for name, dims in shapes.items()}
        return find("tensor_offsets").reference(first_two, dtypes)

    assert evaluate(find("tensor_offsets"), tensor_offsets, search=False).status == "failed"


@pytest.mark.parametrize("name", ["encode_q8", "encode_q4"])
def test_an_encoder_that_does_not_clip_is_refused(name):
    """The scale of a row of tiny numbers is rounded far down, so the largest quotient lies beyond the grid."""
    reference = find(name).reference
    text = inspect.getsource(reference)
    changed = re.sub(r"[.]clip[(]-\d+, \d+[)]", "", text)
    assert changed != text
    scope = dict(reference.__globals__)
    exec(changed, scope)
    assert evaluate(find(name), scope[name], search=False).status == "failed"


def test_a_reader_that_refuses_nothing_yet_hears_of_its_other_mistake_first():
    spec = exercises()["parse_header"]

    def parse_header(data):
        _, _, n_tensors, metadata_len = struct.unpack_from("<4I", data)
        return metadata_len, n_tensors

    report = evaluate(spec, parse_header)
    assert report.mistake in ("counts swapped", "exchanged")  # both say what is there
    assert "n_tensors" in report.what


def test_a_reader_that_refuses_a_good_file_hears_exactly_that():
    def parse_header(data):
        raise FormatError("I trust nobody")

    report = evaluate(exercises()["parse_header"], parse_header)
    assert "refuses good input" in report.what
    assert "I trust nobody" in report.shown.got


def test_packed_bytes_are_shown_in_hexadecimal():
    report = evaluate(exercises()["pack_int4"], lambda values: np.zeros(values.shape[-1] // 2, np.uint8))
    assert (report.shown.expected, report.shown.got) == ("0x21", "0x00")


# ---- functions from another notebook ---------------------------------------------------------------------------------


def notebook(folder, *cells, name="08-container.ipynb"):
    path = folder / name
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": [cell]} for cell in cells]}), "utf-8")
    return path


HEADER = """
import struct
from miniquant.lab import check, exercise
MAGIC = 0x474C4654
@exercise("header_bytes")
def header_bytes(n_tensors, metadata_len):
    return struct.pack("<4I", MAGIC, 1, n_tensors, metadata_len)
raise SystemExit("a cell is not run")
"""
WRONG = """
@exercise("metadata_bytes")
def metadata_bytes(metadata):
    return b""
"""


def test_functions_that_pass_are_taken_from_the_notebook_and_the_reference_stands_in_for_the_others(tmp_path):
    lab = answers(notebook(tmp_path, "%matplotlib inline", HEADER, WRONG, "def broken(:"))
    assert lab.yours == ["header_bytes"]
    assert lab.header_bytes(2, 5) == exercises()["header_bytes"].reference(2, 5)
    assert lab.metadata_bytes is exercises()["metadata_bytes"].reference


def test_a_magic_in_the_cell_of_a_function_does_not_lose_the_function(tmp_path):
    lab = answers(notebook(tmp_path, "%matplotlib inline" + HEADER + "struct.pack?", "x = '\ud800'"))
    assert lab.yours == ["header_bytes"]


def test_a_constant_that_is_filled_step_by_step_is_whole(tmp_path):
    filled = HEADER.replace("MAGIC = 0x474C4654", "T = {}\nT.update(magic=0x474C4654)").replace("MAGIC", 'T["magic"]')
    assert answers(notebook(tmp_path, filled)).yours == ["header_bytes"]


def test_a_writer_from_a_notebook_uses_the_functions_beside_it(tmp_path):
    solved = answers(ROOT / "solutions" / "08-container.ipynb", ROOT / "solutions" / "09-writer.ipynb")
    assert solved.yours == [spec.name for spec in LABS if spec.subject != "reader"]
    path = tmp_path / "toy.gguf-lite"
    arguments = ({"w": np.ones((2, 64), np.float32)}, {"w": "q4_per_group_64"}, {"name": "café"})
    solved.write_file(path, *arguments)
    assert path.read_bytes() == file_oracle(path, *arguments)


WRITER = """
@exercise("write_file")
def write_file(path, state, schemes, metadata):
    offsets = tensor_offsets({name: w.shape for name, w in state.items()}, choose_dtypes(state, schemes))
    block = metadata_bytes(metadata)
    data = header_bytes(len(state), len(block)) + block
    for name, w in state.items():
        data += descriptor_bytes(name, w.shape, choose_dtypes(state, schemes)[name], offsets[name])
    for name, w in state.items():
        scheme = schemes.get(name, "f32")
        simple = {"f32": "<f4", "f16": "<f2"}
        if scheme in simple:
            data += w.astype(simple[scheme]).tobytes()
        else:
            data += (encode_q8 if scheme == "q8_per_channel" else encode_q4)(w)
    with open(path, "wb") as file:
        file.write(data)
"""


def test_a_function_finds_those_of_an_earlier_lab_in_its_notebook(tmp_path):
    """They belong to lab 08; where its notebook is not asked for, the references stand in."""
    spoiled = HEADER.replace("1, n_tensors", "n_tensors, 1")
    first = notebook(tmp_path, spoiled)
    second = notebook(tmp_path, "from miniquant.lab import exercise", WRITER, name="09-writer.ipynb")
    assert answers(second).yours == ["write_file"]
    assert answers(first, second).yours == ["write_file"], "the reference stands in for the wrong header_bytes"
    notebook(tmp_path, HEADER)
    both = answers(first, second)
    assert both.yours == ["header_bytes", "write_file"]
    assert both.write_file.student.__globals__["header_bytes"] is both.header_bytes


def test_a_student_notebook_gives_references_only():
    assert answers(ROOT / "notebooks" / "08-container.ipynb").yours == []
    assert answers(ROOT / "notebooks" / "09-writer.ipynb").yours == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 3}', '{"cells": [{"cell_type": "code"}]}'])
def test_a_notebook_that_nobody_can_read_gives_references_only(tmp_path, text):
    path = tmp_path / "08-container.ipynb"
    path.write_text(text, "utf-8")
    assert answers(path).yours == []


def test_a_writer_that_leaves_a_temporary_file_is_refused():
    def write_file(path, state, schemes, metadata):
        data = file_oracle(path, state, schemes, metadata)
        path.with_suffix(".tmp").write_bytes(data)
        path.write_bytes(data)

    report = evaluate(find("write_file"), write_file, search=False)
    assert "leaves another file" in report.what
    assert ".tmp" in str(report)


DIMS = [
    *(((), 2), ((8,), 2), ((2, 3, 4), 2), ((), 3), ((2, 32), 3), ((64,), 3), ((2, 65), 3), ((2, 2, 64), 3)),
    *(((1,) * 65, 0), ((1,) * 255, 1)),
]


@pytest.mark.parametrize(("dims", "dtype"), DIMS)
def test_read_file_raises_format_error_for_dims_that_a_dtype_cannot_have(tmp_path, dims, dtype):
    refused(tmp_path, header_oracle(1, 0) + descriptor_oracle("w", dims, dtype, 0) + bytes(600))


@pytest.mark.parametrize("line", ["dims_order=in,out", "dims_order=", "group_size=32", "group_size=064", "rubbish"])
def test_read_file_believes_the_metadata(tmp_path, line):
    data = descriptor_oracle("w", (2, 3), 0, 0) + bytes(24)
    refused(tmp_path, header_oracle(1, len(line)) + line.encode() + data)
    line = {"dims_order": "dims_order=out,in", "group_size": "group_size=64"}.get(line.partition("=")[0], "a=b")
    path = tmp_path / "good.gguf-lite"
    path.write_bytes(header_oracle(1, len(line)) + line.encode() + data)
    for read in (find("read_file").reference, find("read_file").oracle, read_gguf_lite):
        assert np.abs(np.asarray(read(path)["w"])).max() == 0


def test_read_file_refuses_every_malformed_file_of_its_cases_and_so_does_the_library(tmp_path):
    broken = [case for case in find("read_file").all_cases() if case[0].title in BROKEN]
    assert len(broken) == len(BROKEN)
    for (file,) in broken:
        refused(tmp_path, file.data)


BROKEN = {
    *("Q4 (2, 65)", "Q8 with one dim", "Q4 (2, 2, 64)", "Q8 with no dims", "an empty name"),
    *("metadata dims_order=in,out", "metadata group_size=32", "metadata with a duplicate key", "an empty file"),
}


def refused(tmp_path, data):
    path = tmp_path / "bad.gguf-lite"
    path.write_bytes(data)
    for read in (find("read_file").reference, find("read_file").oracle, read_gguf_lite):
        with pytest.raises(FormatError):
            read(path)
