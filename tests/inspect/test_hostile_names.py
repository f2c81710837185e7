"""Names and values of a file cannot command the terminal of whoever looks at it."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
import pytest
from click.testing import CliRunner

from conformance.gguf_files import STRING, assemble, info, pair, string
from miniquant import write_gguf_lite
from miniquant.cli import main, run
from miniquant.core.text import visible
from miniquant.formats.gguf import read_gguf
from miniquant.inspect.hexview import hexview
from miniquant.inspect.output import print_table

TITLE = "\x1b]0;owned\x07"  # sets the title of a terminal's window
NAMES = [TITLE, "\x1b[2J", "a\nb: F32", "\x9b2J", "\u202egpj", "\x7f", "\0", "a\rb"]


def harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.fixture(params=["gguf-lite", "gguf"])
def hostile(request, tmp_path):
    """A file whose names, keys and values are all hostile; how many tensors it has."""
    path = tmp_path / "hostile"
    if request.param == "gguf-lite":
        metadata = {
            f"k{i}{name}".replace("\n", "").replace("=", ""): name.replace("\n", "") for i, name in enumerate(NAMES)
        }
        write_gguf_lite(path, {name: np.zeros(2, np.float32) for name in NAMES}, {}, metadata)
    else:
        pairs = [pair(f"k{i}{name}".encode(), STRING, string(name.encode())) for i, name in enumerate(NAMES)]
        pairs.append(pair(b"general.architecture", STRING, string(TITLE.encode())))
        infos = [info(name.encode(), (2,), offset=32 * i) for i, name in enumerate(NAMES)]
        path.write_bytes(assemble(pairs, infos, bytes(32 * len(NAMES))))
        with read_gguf(path) as file:
            assert list(file.tensors) == NAMES
    return path


@pytest.mark.parametrize("command", [["inspect"], ["list"], ["hexdump"], ["inspect", "--json"], ["list", "--json"]])
def test_what_the_command_line_prints_of_a_hostile_file_is_harmless(command, hostile):
    name, *options = command
    done = CliRunner().invoke(main, [name, str(hostile), *options], color=True)
    assert done.exit_code == 0, done.output
    assert harmless(done.output)


def test_a_newline_in_a_name_begins_no_line_of_its_own(hostile):
    lines = CliRunner().invoke(main, ["list", str(hostile)]).output.splitlines()
    assert len(lines) == 1 + len(NAMES)


def test_json_of_a_hostile_file_still_says_the_names_exactly(hostile):
    rows = json.loads(CliRunner().invoke(main, ["list", str(hostile), "--json"]).output)
    assert [row["name"] for row in rows] == NAMES


def test_a_name_in_brackets_is_no_markup_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdout", Terminal())
    print_table(("name", "type"), [("[/]", "F32"), ("[red]w[/red]", "F32"), (TITLE, "F32")])
    import sys

    shown = sys.stdout.getvalue()
    assert "[/]" in shown
    assert "[red]w[/red]" in shown
    assert TITLE not in shown


def test_an_error_about_a_hostile_file_is_one_harmless_line(tmp_path, monkeypatch, capsys):
    path = tmp_path / "f"
    name = TITLE.encode()
    entry = struct.pack("<H", len(name)) + name + struct.pack("<BIBQ", 1, 2, 0, 99)
    path.write_bytes(b"TFLG" + struct.pack("<3I", 1, 1, 0) + entry + bytes(8))
    monkeypatch.setattr("sys.argv", ["miniquant", "inspect", str(path)])
    with pytest.raises(SystemExit) as caught:
        run()
    error = capsys.readouterr().err
    assert caught.value.code == 1
    assert harmless(error)
    assert error.count("\n") == 1


def test_the_picture_of_a_hostile_file_is_harmless(hostile):
    picture = hexview(hostile)
    assert harmless(repr(picture))
    assert "\x1b" not in picture.html


def test_what_one_sees_stays_as_it_is():
    for text in ("blk.0.attn_q.weight", "größe", "Ġthe", "日本", "a b", "[x] <y> &"):
        assert visible(text) == text
