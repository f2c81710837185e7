"""The files that take longest are handed out first; the others stay in their order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from types import SimpleNamespace

from longest_first import LONGEST, TOGETHER, pytest_collection_modifyitems, scope_of
from places import ROOT


def test_every_file_that_goes_first_exists_and_is_named_once():
    assert [file for file in LONGEST if not (ROOT / file).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)


def test_the_longest_files_go_first_and_the_others_keep_their_order():
    names = ["tests/b.py::two", f"{LONGEST[1]}::x", "tests/a.py::one", f"{LONGEST[0]}::z", f"{LONGEST[0]}::y"]
    items = [SimpleNamespace(nodeid=name) for name in names]
    pytest_collection_modifyitems(items)
    first = [f"{LONGEST[0]}::z", f"{LONGEST[0]}::y", f"{LONGEST[1]}::x"]
    assert [item.nodeid for item in items] == [*first, "tests/b.py::two", "tests/a.py::one"]


def test_the_student_labs_come_after_the_solved_ones():
    names = [
        "notebooks/16-claims.ipynb::Cell 0",
        "notebooks/01-bytes.ipynb::Cell 0",
        "solutions/01-bytes.ipynb::Cell 0",
    ]
    items = [SimpleNamespace(nodeid=name) for name in names]
    pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == [names[2], names[0], names[1]]


def test_files_that_share_what_a_process_computes_once_are_one_unit():
    assert len({scope_of(f"{file}::test_x[a-b::c]") for file in TOGETHER}) == 1
    assert scope_of("tests/a.py::test_x[b::c]") == "tests/a.py"


def test_pytest_xdist_hands_such_files_to_one_worker(tmp_path):
    for number, file in enumerate((*TOGETHER, "tests/other.py")):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        names = "\n".join(f"def test_{number}_{n}(worker_id): print('at', worker_id, {number})" for n in range(3))
        path.write_text(f"{names}\n", "utf-8")
    command = ["-m", "pytest", "-rP", "-p", "xdist", "-n", "2", "--dist", "loadfile", "-p", "tools.longest_first"]
    files = [*TOGETHER, "tests/other.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, *command, f"--rootdir={tmp_path}", *files],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    workers = {number: set(re.findall(rf"at (gw\d) {number}\n", done.stdout)) for number in range(4)}
    assert len(workers[0]) == 1
    assert workers[0] == workers[1] == workers[2] != workers[3]
