"""Tests run in copies of the process that collected them, and what they report is what pytest says elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from longest_first import TOGETHER
from places import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="without os.fork all tests run in one process")

KINDS = """
import os, warnings
import pytest

@pytest.fixture(scope="session")
def once():
    yield
    with open("ended.txt", "a") as file:
        file.write("once ")

def test_passes(once): os.system("echo from a child")
def test_fails(once): print("printed before"); assert [1, 2] == [1, 3]
def test_is_skipped(): pytest.skip("not today")
def test_warns(): warnings.warn("mind the gap")
@pytest.mark.xfail
def test_is_expected_to_fail(): assert 0
def test_what_a_child_prints_is_caught(capfd): os.system("echo child"); assert capfd.readouterr().out == "child\\n"
@pytest.fixture
def broken(): raise ValueError("no fixture")
def test_has_an_error(broken): pass
"""


def run(folder, files, *options):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = ["-m", "pytest", "-p", "tools.longest_first", "-p", "tools.in_copies", *options, *files]
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


def said(done):
    """What a run prints, without times and addresses, line by line; which test ends first is not always the same."""
    lines = re.sub(r"in [\d.]+s|0x[0-9a-f]+", "", done.stdout).splitlines()
    return sorted(line for line in lines if line and not line.startswith(("test_", "tests/")))


def test_all_that_tests_report_is_said_as_in_one_process(tmp_path):
    files = {"test_kinds.py": KINDS, "test_more.py": "def test_one(): pass\ndef test_two(): assert 0\n"}
    alone, copies = run(tmp_path, files, "-rA"), run(tmp_path, files, "-rA", "--copies", "2")
    assert said(copies) == said(alone)
    assert copies.returncode == alone.returncode == 1
    assert "2 failed, 4 passed, 1 skipped, 1 xfailed, 1 warning, 1 error" in copies.stdout
    assert (tmp_path / "ended.txt").read_text() == "once once "  # one for each of the two runs


def test_garbage_is_sought_where_tests_run_and_never_in_what_was_collected(tmp_path):
    text = "import gc\nCOLLECTING = gc.isenabled()\n"
    text += "def test_a(): assert (COLLECTING, gc.isenabled()) == (False, True) and gc.get_freeze_count() > 10_000\n"
    assert "1 passed" in run(tmp_path, {"test_garbage.py": text}, "--copies", "1").stdout
    text = text.replace("(False, True) and", "(True, True) or")
    assert "1 passed" in run(tmp_path, {"test_garbage.py": text}).stdout


def test_a_copy_that_dies_fails_its_test_and_others_run_what_it_has_left(tmp_path):
    dies = "import os\ndef test_a(): pass\ndef test_dies(): os._exit(7)\ndef test_b(): pass\n"
    done = run(tmp_path, {"test_dies.py": dies, "test_more.py": "def test_c(): pass\n"}, "-q", "--copies", "1")
    assert "1 failed, 3 passed" in done.stdout
    assert "the process that ran this test ended with exit code 7" in done.stdout
    assert done.returncode == 1


def test_what_tests_wrote_is_in_one_folder_and_the_next_runs_remove_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(tmp_path))
    writes = "def test_{}(tmp_path): (tmp_path / 'large').write_text('data')\n"
    files = {f"test_{name}.py": writes.format(name) for name in "abc"}
    for _ in range(5):
        assert run(tmp_path, files, "-q", "--copies", "3").returncode == 0
    (folder,) = tmp_path.glob("pytest-of-*")
    kept = [path for path in folder.iterdir() if not path.is_symlink()]
    assert len(kept) == 3 and not [path for path in folder.rglob(".lock")]
    assert all(len(list(path.rglob("large"))) == 3 for path in kept)


def test_an_error_of_a_plugin_is_shown_and_the_run_ends_as_pytest_does_then(tmp_path):
    fails = "def pytest_runtest_protocol(item):\n    if item.name == 'test_b': raise ValueError('of a plugin')\n"
    files = {"test_two.py": "def test_a(): pass\ndef test_b(): pass\ndef test_c(): pass\n"}
    (tmp_path / "conftest.py").write_text(fails, "utf-8")
    done = run(tmp_path, files, "-q", "--copies", "1")
    assert "ValueError: of a plugin" in done.stderr
    assert done.returncode == pytest.ExitCode.INTERNAL_ERROR


def test_after_as_many_failures_as_are_allowed_nothing_more_is_run(tmp_path):
    slow = "import time\ndef test_a(): assert 0\ndef test_b(): time.sleep(50)\n"
    done = run(tmp_path, {"test_slow.py": slow}, "-x", "--copies", "1")
    assert "stopping after 1 failures" in done.stdout
    assert "1 failed" in done.stdout
    assert done.returncode == 1


def test_what_cannot_be_collected_is_an_error_and_nothing_runs(tmp_path):
    done = run(tmp_path, {"test_wrong.py": "import nowhere\n", "test_a.py": "def test_a(): pass\n"}, "--copies", "2")
    assert "1 error" in done.stdout
    assert "passed" not in done.stdout
    assert done.returncode == 2


def test_a_file_stays_in_one_copy_and_so_do_files_that_share_what_a_process_computes_once(tmp_path):
    files = (*TOGETHER, "tests/other.py", "tests/another.py")
    tests = "import os\n" + "".join(f"def test_{n}(): print('at', __file__, os.getpid())\n" for n in range(3))
    done = run(tmp_path, dict.fromkeys(files, tests), "-rP", "--copies", "5")
    found = re.findall(r"at (\S+) (\d+)\n", done.stdout)
    assert len(found) == 15
    processes = {name: {pid for path, pid in found if path.endswith(name)} for name in files}
    assert {len(pids) for pids in processes.values()} == {1}
    assert len(set.union(*(processes[name] for name in TOGETHER))) == 1
