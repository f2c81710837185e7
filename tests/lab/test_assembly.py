"""One module out of a student's notebooks: theirs where it passes, the reference elsewhere; no text is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from places import ROOT

from miniquant.cli import main
from miniquant.core.errors import MiniquantError
from miniquant.lab import exercises
from miniquant.lab.assembly import assemble, build, deliver, running
from miniquant.lab.assembly.module import run
from miniquant.lab.assembly.running import Done
from miniquant.lab.assembly.running import run as run_programs
from miniquant.lab.assembly.sources import read_source, uses

SOLUTIONS = [*sorted((ROOT / "solutions").glob("[01][0-9]-*.ipynb"))]


def notebook(folder, name, *cells):
    path = folder / name
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": [cell]} for cell in cells]}), "utf-8")
    return path


HEADER = """
import struct
from miniquant.lab import check, exercise
MAGIC = 0x474C4654
@exercise("header_bytes")
def header_bytes(n_tensors, metadata_len):
    return struct.pack("<4I", MAGIC, 1, n_tensors, metadata_len)  # mine
raise SystemExit("a cell is not run")
"""


# ---- the module ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def solved():
    return build(SOLUTIONS)


def test_a_solved_set_gives_a_module_without_the_reference(solved):
    assert solved.missing == {}
    assert len(solved.yours) >= 30
    assert "miniquant.lessons" not in solved.text
    module = run(solved.text)
    assert module["REFERENCE"] == ()
    assert all(module[name].__module__ == "gguf_io" for name in solved.yours)


def test_an_unsolved_set_lists_every_function_with_its_lab():
    found = build(sorted((ROOT / "notebooks").glob("[01][0-9]-*.ipynb")))
    assert found.yours == []
    assert set(found.missing.values()) == {"not written yet"}
    assert found.labs["pack_int4"] == "09"
    assert run(found.text)["REFERENCE"] == tuple(found.missing)


def test_a_function_keeps_its_own_text_and_the_names_that_it_uses(tmp_path):
    found = build([notebook(tmp_path, "08-container.ipynb", HEADER)])
    assert found.yours == ["header_bytes"]
    assert "# mine" in found.text
    assert "MAGIC = 0x474C4654" in found.text
    assert "@exercise" not in found.text
    assert "SystemExit" not in found.text
    assert run(found.text)["header_bytes"](2, 5) == exercises()["header_bytes"].oracle(2, 5)


def test_a_wrong_function_is_named_and_the_reference_stands_in(tmp_path):
    wrong = HEADER.replace("MAGIC, 1,", "MAGIC, 2,")
    found = build([notebook(tmp_path, "08-container.ipynb", wrong)])
    assert "wrong on" in found.missing["header_bytes"]
    assert "# mine" not in found.text
    assert "* header_bytes (lab 08): wrong on" in found.text
    assert run(found.text)["header_bytes"] is exercises()["header_bytes"].reference


@pytest.mark.parametrize(
    "cells",
    [
        ("%matplotlib inline\n" + HEADER, "struct.pack?", "!ls"),
        ("%%time\n" + HEADER,),
        (HEADER.replace("MAGIC = 0x474C4654", "T = {}\nT.update(magic=0x474C4654)").replace("MAGIC", 'T["magic"]'),),
        (HEADER.replace("MAGIC = 0x474C4654", 'T = {}\nT["magic"] = 0x474C4654').replace("MAGIC", 'T["magic"]'),),
        (HEADER.replace("MAGIC = 0x474C4654", "B = [84, 70, 76, 71]\nMAGIC = int.from_bytes(bytes(B), 'little')"),),
        (HEADER.replace("import struct", "from struct import *").replace("struct.pack", "pack"),),
        (HEADER.replace("def header_bytes", "def mine").replace('"header_bytes"', '"header_bytes"'),),
        (HEADER.replace("MAGIC, 1,", "MAGIC, 9,"), HEADER),
        ("x = (((", "y = '\ud800'", HEADER),
        (HEADER.replace("    return", "    %time\n    return"),),
    ],
    ids=[
        "magics",
        "timed",
        "update",
        "item",
        "computed",
        "star",
        "other name",
        "twice",
        "broken cells",
        "magic inside",
    ],
)
def test_weird_notebooks_lose_no_function(tmp_path, cells):
    found = build([notebook(tmp_path, "08-container.ipynb", *cells)])
    assert found.yours == ["header_bytes"], found.missing
    assert run(found.text)["header_bytes"](2, 5) == exercises()["header_bytes"].oracle(2, 5)


def test_a_name_that_no_cell_defines_is_said(tmp_path):
    path = notebook(tmp_path, "08-container.ipynb", HEADER.replace("MAGIC = 0x474C4654", ""))
    assert "it uses 'MAGIC'" in build([path]).missing["header_bytes"]


def test_a_cell_that_fails_by_itself_is_said(tmp_path):
    path = notebook(tmp_path, "08-container.ipynb", HEADER.replace("MAGIC = 0x474C4654", "MAGIC = int('x')"))
    assert "do not run by themselves: ValueError" in build([path]).missing["header_bytes"]


def test_two_labs_may_use_one_name_for_two_things(tmp_path, solved):
    other = (
        "MAGIC = 64\nfrom miniquant.lab import exercise\n"
        '@exercise("ceiling_ratio")\ndef ceiling_ratio(bits, group_size):\n'
        "    return 32 / (bits + 16 / group_size) * MAGIC / 64\n"
    )
    paths = [notebook(tmp_path, "08-container.ipynb", HEADER), notebook(tmp_path, "13-deliverable.ipynb", other)]
    found = build(paths)
    assert found.yours == ["header_bytes", "ceiling_ratio"]
    assert "MAGIC_lab13 = 64" in found.text
    module = run(found.text)
    assert module["ceiling_ratio"](4, 64) == pytest.approx(32 / 4.25)
    assert module["header_bytes"](0, 0)[:4] == b"TFLG"


def test_functions_from_another_lab_are_those_of_the_module(tmp_path):
    later = (
        "from miniquant.lab.answers import answers\nfrom miniquant.lab import exercise\nimport numpy as np\n"
        'container = answers("08-container.ipynb")\nmetadata_bytes = container.metadata_bytes\n'
        '@exercise("write_file")\ndef write_file(path, state, schemes, metadata):\n'
        "    raise ValueError(container.header_bytes(1, len(metadata_bytes(metadata))))\n"
    )
    source = read_source(notebook(tmp_path, "09-writer.ipynb", later))
    assert source.names["container"][0].kind == "answers"
    found = build([notebook(tmp_path, "08-container.ipynb", HEADER), tmp_path / "09-writer.ipynb"])
    assert "wrong on" in found.missing["write_file"]  # it ran, with both of them, and never reached for a notebook


def test_the_names_that_a_statement_uses_are_found_in_every_scope():
    assert uses("def f(x):\n    def g():\n        return x + DEEP\n    return g") == {"DEEP"}
    assert uses("class A:\n    size = WIDTH\n    def f(self):\n        return TABLE[self.size]") == {"WIDTH", "TABLE"}
    assert uses("@cache\ndef f(x: Kind = START):\n    return [n for n in x]") == {"cache", "Kind", "START"}


# ---- the folder ------------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch):
    """No script is run: what is written and kept is the question."""
    monkeypatch.setattr(deliver, "run", lambda *_: [Done(0, "| figures |\n")] * 3)
    monkeypatch.setattr(deliver, "_tests", lambda *_: {"a claim": (2, 2)})


def test_what_a_student_has_written_stays(tmp_path, quick, monkeypatch):
    folder = tmp_path / "labs"
    folder.mkdir()
    notebook(folder, "08-container.ipynb", HEADER)
    out = tmp_path / "out"
    assert assemble(folder, out).kept == {}
    readme, script, module = out / "README.md", out / "export.py", out / "gguf_io.py"
    readme.write_text(readme.read_text("utf-8").replace("*Your answer: the largest", "Mine: the largest"), "utf-8")
    script.write_text("print('mine')\n", "utf-8")
    module.write_text("# by hand\n", "utf-8")
    monkeypatch.setattr(deliver, "run", lambda *_: [Done(0, "| new figures |\n")] * 3)
    found = assemble(folder, out)
    text = readme.read_text("utf-8")
    assert "Mine: the largest" in text
    assert "| new figures |" in text
    assert "| figures |" not in text
    assert script.read_text("utf-8") == "print('mine')\n"
    assert (out / "gguf_io.1.py").read_text("utf-8") == "# by hand\n"
    assert "header_bytes" in module.read_text("utf-8")
    assert set(found.kept) == {"README.md", "export.py", "gguf_io.1.py"}
    again = assemble(folder, out)
    assert set(again.kept) == {"README.md", "export.py"}
    assert "Mine: the largest" in readme.read_text("utf-8")


@pytest.mark.parametrize("damage", [("<!-- figures: end -->", ""), ("| figures |", "| figures of my own |")])
def test_a_page_whose_figures_the_student_has_changed_stays_whole(tmp_path, quick, damage):
    notebook(tmp_path, "08-container.ipynb", HEADER)
    out = tmp_path / "out"
    assemble(tmp_path, out)
    page = out / "PHASE_26_REPORT.md"
    page.write_text(page.read_text("utf-8").replace(*damage), "utf-8")
    before = page.read_text("utf-8")
    assert "stays as it is" in assemble(tmp_path, out).kept["PHASE_26_REPORT.md"]
    assert page.read_text("utf-8") == before


def test_the_form_is_empty_and_the_answers_that_wait_are_counted(tmp_path, quick):
    notebook(tmp_path, "08-container.ipynb", HEADER)
    found = assemble(tmp_path, tmp_path / "out")
    assert found.open["README.md"] == 3
    assert "README.md: 3 places wait for your answer" in found.lines()
    assert "  lab 09, there is no notebook of lab 09: choose_dtypes, encode_q8" in repr(found)


def test_the_list_of_wrong_functions_begins_with_their_names(tmp_path, quick):
    notebook(tmp_path, "08-container.ipynb", HEADER.replace("MAGIC, 1,", "MAGIC, 2,"))
    cases = len(exercises()["header_bytes"].all_cases())
    line = f"  lab 08, header_bytes: wrong on {cases} of {cases} cases"
    assert line in repr(assemble(tmp_path, tmp_path / "out"))


def test_nothing_is_written_and_nothing_is_left_when_it_is_interrupted(tmp_path, quick, monkeypatch):
    notebook(tmp_path, "08-container.ipynb", HEADER)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(deliver, "_tests", interrupted)
    with pytest.raises(KeyboardInterrupt):
        assemble(tmp_path, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["08-container.ipynb", "out"]


def test_a_folder_without_notebooks_is_refused(tmp_path):
    with pytest.raises(MiniquantError, match="no notebook such as 09-writer"):
        assemble(tmp_path, tmp_path / "out")


BUG = "\n\nright = unpack_int4\n\n\ndef unpack_int4(packed):\n    return right(packed) & 15\n"


@pytest.fixture
def tested_with_a_bug(monkeypatch):
    """What the tests of the folder say of its module with a bug: run by the process that has torch already."""
    found = []

    def run_and_test(stage, commands):
        other = stage / "other"
        other.mkdir()
        for name in ("test_gguf_io.py", "pytest.ini"):
            shutil.copyfile(stage / name, other / name)
        (other / "gguf_io.py").write_text((stage / "gguf_io.py").read_text("utf-8") + BUG, "utf-8")
        both = "nibbles_from_8 or every_weight"
        tests = [
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--rootdir={other}",
            "other/test_gguf_io.py",
            "-k",
            both,
        ]
        *done, tested = run_programs(stage, [*commands, tests])
        found.append(tested)
        return done

    monkeypatch.setattr(deliver, "run", run_and_test)
    return found


def test_a_solved_set_is_assembled_by_the_command_and_a_wrong_function_fails_the_tests_of_the_folder(
    tmp_path, monkeypatch, tested_with_a_bug
):
    labs, out = tmp_path / "labs", tmp_path / "labs" / "workspace" / "26-gguf-export"
    labs.mkdir()
    for path in SOLUTIONS:
        shutil.copyfile(path, labs / path.name)
    monkeypatch.chdir(labs)  # as a student does
    done = CliRunner().invoke(main, ["assemble"])
    assert done.exit_code == 0, done.output
    assert "25 of 25 pass" in done.output
    assert "the reference stands in" not in done.output
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    assert manifest["reference_stands_in_for"] == []
    assert manifest["sizes"]["predicted"] == manifest["sizes"]["file"] == (out / "minigpt.gguf-lite").stat().st_size
    assert "| int8: torch.save / file | at least 3 | 3.08 | yes |" in (out / "README.md").read_text("utf-8")
    assert "| yes |" in (out / "PHASE_26_REPORT.md").read_text("utf-8")

    (tested,) = tested_with_a_bug
    assert tested.returncode == 1
    assert "test_nibbles_from_8_to_15_are_negative" in tested.stdout
    assert "test_every_weight_of_the_model_comes_back_within_a_millionth" in tested.stdout


def test_the_array_that_a_module_makes_is_numpys(solved):
    packed = run(solved.text)["pack_int4"](np.array([1, 2], np.int8))
    assert packed.tolist() == [0x21]


# ---- programs in a folder --------------------------------------------------------------------------------------------


def test_programs_run_apart_and_say_how_they_ended(tmp_path):
    (tmp_path / "own.py").write_text("STATE = []\n", "utf-8")
    (tmp_path / "a.py").write_text("import own, sys\nown.STATE.append(1)\nprint('é', sys.argv, own.STATE)\n", "utf-8")
    (tmp_path / "b.py").write_text("import own\nprint(own.STATE)\nraise ValueError('from b')\n", "utf-8")
    (tmp_path / "c.py").write_text("import sys\nsys.exit('from c')\n", "utf-8")
    (tmp_path / "d.py").write_text("import os\nos._exit(7)\n", "utf-8")
    one, two, three, four, again = run_programs(
        tmp_path, [["a.py", "--x"], ["b.py"], ["c.py"], ["d.py"], ["-m", "a", "y"]], ["json"]
    )
    assert one == (0, "é ['a.py', '--x'] [1]\n", "")
    assert (two.returncode, two.stdout) == (1, "[]\n")
    assert two.stderr.endswith("ValueError: from b\n")
    assert three == (1, "", "from c\n")
    assert four.returncode == 7
    assert again.stdout.endswith("'y'] [1]\n")


def test_a_program_without_an_end_is_stopped_and_the_next_one_runs(tmp_path):
    (tmp_path / "a.py").write_text("while True: pass\n", "utf-8")
    (tmp_path / "b.py").write_text("print(2)\n", "utf-8")
    text = Path(running.__file__).read_text("utf-8")
    (tmp_path / "short.py").write_text(text.replace("SECONDS = 300", "SECONDS = 0.5"), "utf-8")
    if not hasattr(os, "fork"):
        pytest.skip("here each program has a process of its own")
    subprocess.run([sys.executable, "short.py", json.dumps([[["a.py"], ["b.py"]], []])], cwd=tmp_path, check=True)
    assert (tmp_path / ".0.code").read_text() == "-9"
    assert "no answer" in (tmp_path / ".0.err").read_text()
    assert (tmp_path / ".1.out").read_text() == "2\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the programs have a process that imports torch")
def test_a_notebook_that_has_torch_lends_its_copy_and_the_programs_see_nothing_else_of_it(tmp_path):
    (tmp_path / "own.py").write_text("STATE = []\n", "utf-8")
    seen = "import os, sys, own\nassert sys.modules['torch'].lent\nprint('é', own.STATE, sys.argv, os.getcwd())\n"
    (tmp_path / "a.py").write_text(seen, "utf-8")
    (tmp_path / "b.py").write_text("import sys\nprint(input())\n", "utf-8")
    notebook = f"""
import io, sys, time, types
from pathlib import Path
import torch
from miniquant.lab.assembly import running
torch.lent = True
sys.modules["own"] = types.SimpleNamespace(STATE=["the notebook's"])
sys.stdout, screen = io.StringIO(), sys.stdout
folder = Path({str(tmp_path)!r})
one, two = running.run(folder, [["a.py", "x"], ["b.py"]], ["torch"])
lent = running.run(folder, [["-c"]], ["torch", "no_such_module"])[0]
print(one.stdout, two.returncode, two.stderr, lent.stderr, sep="|", file=screen)
print(Path.cwd() == folder, folder in sys.path, file=screen)
"""
    told = subprocess.run(
        [sys.executable, "-c", notebook], capture_output=True, text=True, encoding="utf-8", check=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    ).stdout  # fmt: skip
    assert told.startswith(f"é [] ['a.py', 'x'] {tmp_path}\n|1|")
    assert "EOFError" in told
    assert "No module named 'no_such_module'" in told
    assert told.endswith("False False\n")
