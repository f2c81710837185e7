"""What was taught where: which API a solution uses, and what counts as introduced."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from places import ROOT

from miniquant.cli import main
from miniquant.lab import Exercise, exercises
from miniquant.lab.authoring.api import Place, Seen, missing, taught, uses


def solution(data, width, *more):
    """Doc."""
    import struct

    import numpy as np

    count = struct.unpack_from(f"<{width}I", data, 4)[0] >> 4
    rows = np.frombuffer(data, "<f2", offset=8).reshape(-1, 2)[:, None]
    parts = [len(part) for part in data.split(b"=")]
    return sorted(parts, key=lambda part: divmod(part, 2)), rows[..., ::2], ~count, more


def exercise(reference):
    return Exercise(
        goal="Go.",
        minutes=3,
        difficulty="core",
        reference=reference,
        oracle=reference,
        cases=lambda random: [],
        hints=("Use `divmod`.", "Go."),
        why="it is.",
    )


def test_functions_methods_keywords_operators_indices_and_format_letters_are_found():
    found = {use.name for use in uses(exercise(solution))}
    api = {".unpack_from", ".frombuffer", ".reshape", "offset=", "divmod", ">>", "~", "[:, None]", "[..., ]", "[a::b]"}
    assert api | {"struct 'I'", "<f2"} == found - {"struct", "np"}


def of(name):
    return next(use for use in uses(exercise(solution)) if use.name == name)


@pytest.mark.parametrize(
    ("name", "code", "shown"),
    [
        (".reshape", "x.reshape(2)", True),
        (".reshape", "reshape = 3", False),
        (".reshape", "`reshape` cuts", True),
        (">>", "x >> 4", True),
        (">>", "x > 4", False),
        ("~", "~x", True),
        ("offset=", "f(offset=3)", True),
        ("[:, None]", "x[:, None]", True),
        ("[:, None]", "x = None", False),
        ("[a::b]", "x[0::2]", True),
        ("[a::b]", "x[0:2]", False),
        ("struct 'I'", "struct.pack('<4I', 1)", True),
        ("struct 'I'", "struct.pack('<4B', 1)", False),
        ("<f2", "x.view('<f2')", True),
    ],
)
def test_code_introduces_what_it_shows(name, code, shown):
    text = code if code.startswith("`") else ""
    assert Seen(Place("00", 1), code, text, "").shows(of(name)) == shown


@pytest.fixture
def checkout(tmp_path):
    """Lab 00 alone, with cells before and after the stub of its first exercise."""

    def cell(kind, source, **mark):
        return {"cell_type": kind, "source": source, "metadata": {"miniquant": mark} if mark else {}}

    def write(before):
        stub = cell("code", '@exercise("byte_order")\ndef byte_order(data):\n    """Says it."""', part="stub")
        stub["metadata"]["miniquant"]["exercise"] = "byte_order"
        cells = [before, stub, cell("code", "int.from_bytes(data, 'big')"), cell("markdown", "`from_bytes`")]
        (tmp_path / "notebooks").mkdir(exist_ok=True)
        (tmp_path / "notebooks/00-five-minutes.ipynb").write_text(json.dumps({"cells": cells}), "utf-8")
        return {use.use: use.place for use in taught(tmp_path)}[".from_bytes"]

    return cell, write


def test_only_what_a_student_sees_before_the_stub_introduces(checkout):
    cell, write = checkout
    assert write(cell("markdown", "`int.from_bytes` makes an integer.")) == Place("00", 0)
    assert write(cell("code", "print(int.from_bytes(b'', 'big'))")) == Place("00", 0)
    assert write(cell("markdown", "The method from_bytes, not as code.")) is None
    assert write(cell("markdown", "<details>\n<summary>x</summary>\n\n`int.from_bytes`\n\n</details>")) is None
    assert write(cell("markdown", "`int.from_bytes`", exercise="byte_order", part="help")) is None


def test_the_command_prints_where_a_lab_s_api_was_introduced():
    done = CliRunner().invoke(main, ["lab", "api", "int8", "--root", str(ROOT)])
    lines = done.output.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"06 {spec.name}" for spec in exercises().of_lab("int8")]
    assert done.exit_code == int("nowhere" in done.output or "only in a hint" in done.output)
    assert any(".rint 06[" in line for line in lines)


def test_the_command_prints_only_what_is_missing_if_it_is_asked_to(tmp_path):
    """On one lab whose text is gone: on the course as it is, nothing is missing."""
    (tmp_path / "notebooks").mkdir()
    lab = json.loads((ROOT / "notebooks" / "06-int8.ipynb").read_text("utf-8"))
    lab["cells"] = [cell for cell in lab["cells"] if cell["metadata"].get("miniquant", {}).get("part") == "stub"]
    (tmp_path / "notebooks" / "06-int8.ipynb").write_text(json.dumps(lab), "utf-8")
    done = CliRunner().invoke(main, ["lab", "api", "--missing", "--root", str(tmp_path)])
    names = {line.split()[1].rstrip(":") for line in done.output.splitlines()}
    assert names == {use.exercise for use in missing(tmp_path)} != set()
    assert "nowhere" in done.output and done.exit_code == 1
