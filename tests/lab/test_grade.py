"""Grading a folder of submissions, each in a process of its own: accidents cost only what they happen in."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import socket
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from click.testing import CliRunner
from places import ROOT
from systems import posix
from thorough import tried

from miniquant.cli import main
from miniquant.core.errors import MiniquantError
from miniquant.lab import exercises
from miniquant.lab.grading import grade as grading
from miniquant.lab.grading.inside.wire import encode
from miniquant.lab.grading.judge import Desk
from miniquant.lab.grading.room import BARE, KEPT

IMPORTS = "import os, struct\nimport numpy as np\nfrom miniquant.lab import exercise, check"
RIGHT = {
    "header_bytes": "(n_tensors, metadata_len):\n    FIRST\n"
    '    return struct.pack("<4I", 0x474C4654, 1, n_tensors, metadata_len)\n',
    "metadata_bytes": "(metadata):\n    FIRST\n"
    "    for key, value in metadata.items():\n"
    '        if not key or "=" in key or "\\n" in f"{key}{value}":\n            raise ValueError(key)\n'
    '    return "\\n".join(f"{key}={value}" for key, value in metadata.items()).encode()\n',
    "descriptor_bytes": "(name, dims, dtype, offset):\n    FIRST\n"
    '    data = struct.pack("<H", len(name.encode())) + name.encode()\n'
    '    data += struct.pack(f"<B{len(dims)}I", len(dims), *dims)\n'
    '    return data + struct.pack("<BQ", dtype, offset)\n',
    "encode_q8": "(w):\n    FIRST\n"
    '    scale = (np.abs(w).max(axis=1, keepdims=True) / np.float32(127)).astype("<f2")\n'
    "    divisor = np.where(scale == 0, 1, scale).astype(np.float32)\n"
    "    return scale.tobytes() + np.rint(w / divisor).clip(-127, 127).astype(np.int8).tobytes()\n",
    "pack_int4": "(values):\n    FIRST\n"
    "    nibbles = values.astype(np.uint8) & 15\n    return nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)\n",
}


def answer(name, first="pass", mark=True):
    """A right answer to an exercise, which does something else first."""
    head = f'@exercise("{name}")\n' if mark else ""
    return f"{head}def {name}{RIGHT[name].replace('FIRST', first)}"


def stub(name):
    return answer(name, "raise NotImplementedError")


def write(path, *cells):
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {"cells": [{"cell_type": "code", "source": cell} for cell in cells]}
    path.write_text(json.dumps(found), "utf-8")
    return path


SWAPPED = answer("pack_int4").replace("0::2", "X").replace("1::2", "0::2").replace("X", "1::2")
IMPORTED = 'from miniquant.lab import find\npack_int4 = exercise("pack_int4")(find("pack_int4").reference)'
HANGS = "while True: __import__('time').sleep(0.01)"  # endless, and it leaves the processor to others
CLASS = {
    "right/09-writer.ipynb": [IMPORTS, answer("pack_int4"), "check(pack_int4)"],
    "named_by_its_file.ipynb": [IMPORTS, answer("pack_int4")],
    "unmarked/09-writer.ipynb": [IMPORTS, answer("pack_int4", mark=False)],
    "imported/09-writer.ipynb": [IMPORTS, IMPORTED],
    "elsewhere/09-writer.ipynb": [
        IMPORTS,
        answer("pack_int4"),
        '@exercise("unpack_int4")\ndef unpack_int4(packed):\n    return 0',
    ],
    "swapped/deep/09-writer.ipynb": [IMPORTS, SWAPPED],
    "stub/09-writer.ipynb": [IMPORTS, stub("pack_int4")],
    "stub/.ipynb_checkpoints/09-writer-checkpoint.ipynb": [IMPORTS, answer("pack_int4")],
    "twice/06-first.ipynb": [IMPORTS, answer("pack_int4"), stub("header_bytes")],
    "twice/06-second.ipynb": [IMPORTS, stub("pack_int4"), answer("header_bytes")],
    "walls/writer.ipynb": [
        IMPORTS,
        answer("header_bytes", "import socket; socket.socket().connect(('127.0.0.1', PORT))"),
        answer("metadata_bytes", "import subprocess; subprocess.run(['touch', STOLEN])"),
        answer("descriptor_bytes", "os.remove(PRECIOUS)"),
        answer("encode_q8", "import mmap; mmap.mmap(-1, 5 << 30)"),
        answer("pack_int4", "open(STOLEN, 'w').write('x')"),
    ],
    "crashes/writer.ipynb": [
        IMPORTS,
        answer("header_bytes", "os._exit(7)"),
        answer("metadata_bytes", "raise SystemExit"),
        answer("descriptor_bytes", "raise KeyboardInterrupt"),
        answer("encode_q8", "raise ValueError('\\udc80\\x1b[2J')"),
        answer("pack_int4"),
    ],
    "cells/09-writer.ipynb": [
        "%matplotlib inline\n" + IMPORTS,
        "def broken(:",
        "x = '\ud800'",
        "-" * 100_000 + "1",
        "raise SystemExit",
        "os._exit(3)",
        "1 / 0",
        "T = {}\nT.update(m=15)\nMASKS = list()\nMASKS.append(15)\nnp.zeros?\nfiles = %who_ls\nshift = (32\n% 28)",
        answer("pack_int4").replace("& 15", "& T['m'] & MASKS[0]").replace("<< 4", "<< shift"),
        "display(check(pack_int4))\nif check(pack_int4) is not None: os._exit(9)",
    ],
    "broken/09-writer.ipynb": None,
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    (folder / "precious").write_text("the only copy")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        words = {"STOLEN": str(folder / "stolen"), "PRECIOUS": str(folder / "precious")}
        for name, cells in CLASS.items():
            if cells is None:
                (folder / name).parent.mkdir()
                (folder / name).write_text("this is not a notebook")
                continue
            cells = [cell.replace("PORT", str(server.getsockname()[1])) for cell in cells]
            for word, value in words.items():
                cells = [cell.replace(word, repr(value)) for cell in cells]
            write(folder / name, *cells)
        result = CliRunner().invoke(main, ["grade", str(folder), "--out", str(folder / "grades")])
        with pytest.raises(BlockingIOError):
            server.accept()  # nobody connected
    assert result.exit_code == 0, result.output
    assert all(line.isprintable() for line in result.stdout.split("\n"))
    with open(folder / "grades.csv", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    details = {row["student"]: row for row in json.loads((folder / "grades.json").read_text())}
    return folder, rows, details


@pytest.mark.parametrize(
    ("student", "status"),
    [
        ("right", "passed"),
        ("named_by_its_file", "passed"),
        ("unmarked", "failed"),
        ("imported", "failed"),
        ("elsewhere", "passed"),
        ("swapped", "failed"),
        ("stub", "not attempted"),
        ("twice", "passed"),
        ("crashes", "passed"),
        ("cells", "passed"),
        ("broken", "missing"),
    ],
)
def test_every_kind_of_submission_has_its_own_status(graded, student, status):
    _, rows, details = graded
    assert rows[student]["pack_int4"] == status
    assert details[student]["exercises"]["pack_int4"]["status"] == status
    assert int(rows[student]["passed"]) == details[student]["passed"]


def test_there_is_a_row_for_every_student_and_a_column_for_every_exercise(graded):
    _, rows, details = graded
    assert set(rows) == set(details) == {name.split("/")[0].removesuffix(".ipynb") for name in CLASS}
    for row in rows.values():
        assert set(exercises()) <= set(row)


def test_a_diagnosis_is_kept_in_the_json(graded):
    assert graded[2]["swapped"]["exercises"]["pack_int4"]["mistake"] == "nibbles swapped"


def test_of_several_notebooks_the_better_answer_counts(graded):
    row = graded[1]["twice"]
    assert (row["pack_int4"], row["header_bytes"], row["passed"]) == ("passed", "passed", "2")


def test_a_function_without_its_mark_or_from_elsewhere_is_told_apart_from_a_wrong_one(graded):
    answers = {student: graded[2][student]["exercises"]["pack_int4"] for student in ("unmarked", "imported")}
    assert 'put @exercise("pack_int4") back above it' in answers["unmarked"]["what"]
    assert "imported" in answers["imported"]["what"]


def test_an_exercise_of_another_lab_does_not_count_and_the_row_says_so(graded):
    _, rows, _ = graded
    assert rows["elsewhere"]["unpack_int4"] == "missing"
    assert "unpack_int4 belongs to lab 10" in rows["elsewhere"]["problems"]


def test_a_crash_costs_one_exercise_and_no_other(graded):
    answers = graded[2]["crashes"]["exercises"]
    assert {name: answers[name]["status"] for name in RIGHT} == {
        "header_bytes": "crashed",
        "metadata_bytes": "failed",
        "descriptor_bytes": "crashed",
        "encode_q8": "failed",
        "pack_int4": "passed",
    }
    assert "code 7" in answers["header_bytes"]["what"]
    assert "SystemExit" in answers["metadata_bytes"]["got"]
    assert "ValueError: \udc80\x1b[2J" in answers["encode_q8"]["got"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("header_bytes", "PermissionError: [Errno 1] Operation not permitted"),
        ("metadata_bytes", "PermissionError: [Errno 1] Operation not permitted"),
        ("descriptor_bytes", "PermissionError: [Errno 13] Permission denied"),
        ("encode_q8", "Cannot allocate memory"),
        ("pack_int4", "PermissionError: [Errno 13] Permission denied"),
    ],
)
def test_the_walls_hold_and_say_which_one_it_was(graded, name, reason):
    folder, _, details = graded
    found = details["walls"]["exercises"][name]
    assert found["status"] == "failed"
    assert "your function raised an error" in found["what"]
    assert reason in found["got"]
    assert not (folder / "stolen").exists()
    assert (folder / "precious").read_text() == "the only copy"


def test_a_cell_that_fails_costs_only_itself_and_is_named(graded):
    problems = graded[2]["cells"]["problems"]
    for part in ("code cell 2 is left out: SyntaxError", "code cell 3 is left out", "code cell 4 is left out"):
        assert any(part in problem for problem in problems), problems
    assert any("code cell 6, line 1: ended with code 3" in problem for problem in problems), problems
    assert not any("ended with code 9" in problem for problem in problems), "a check was run"
    assert not any("code cell 5" in problem for problem in problems), "SystemExit ended the process"


def test_a_notebook_that_cannot_be_read_is_a_problem_of_its_own_row(graded):
    assert "09-writer.ipynb is no notebook" in graded[1]["broken"]["problems"]


@pytest.fixture(scope="module")
def desk():
    found = Desk(seed=1)
    yield found
    found.close()


def statuses(desk, path, seconds=120):
    """What one notebook gets: exercise -> status, and its problems."""
    result = grading.Result(path.stem)
    grading.grade_notebook(path, result, desk, seconds)
    return {name: answer["status"] for name, answer in result.answers.items()}, result.problems


HANDOUTS = sorted((ROOT / "notebooks").glob("*.ipynb"))[tried(1, 0) :: tried(8, 1)]


@pytest.mark.parametrize("path", HANDOUTS, ids=lambda path: path.stem)
def test_an_untouched_handout_earns_no_mark(desk, path):
    found, _ = statuses(desk, path, seconds=30)
    known = exercises()
    assert found == dict.fromkeys((name for name in known if known.lab_of(name) == path.name[:2]), "not attempted")


SOLVED = [
    "03",
    "04",
    "05",
    "06",
    "07",
    "08",
    "09",
    "11",
    "12",
    "14",
    "15",
    "17",
    "18",
    "19",
    "20",
    "22",
    "25",
    "27",
    "28",
    "30",
][:: tried(4, 1)]


@pytest.mark.parametrize("number", SOLVED)
def test_a_solved_lab_passes_without_a_flag(desk, number):
    (path,) = (ROOT / "solutions").glob(f"{number}-*.ipynb")
    result = grading.Result(path.stem)
    grading.grade_notebook(path, result, desk)
    known = exercises()
    assert set(result.answers) == {name for name in known if known.lab_of(name) == number}
    assert {(answer["status"], answer.get("flag")) for answer in result.answers.values()} == {("passed", None)}


# ---- time ------------------------------------------------------------------------------------------------------------


DEAF = "while True:\n    import signal, time; signal.signal(signal.SIGALRM, signal.SIG_IGN); time.sleep(0.01)"
DEAF_INSIDE = DEAF.replace("\n", "\n    ")
HANGING = [answer(name, HANGS) for name in RIGHT if name != "pack_int4"]
SLOW = {  # notebooks that use up their time: the seconds that each gets, and its cells
    "hangs": (12, [IMPORTS, HANGS, *HANGING, answer("pack_int4")]),
    "deaf": (28, [IMPORTS, DEAF, answer("header_bytes", DEAF_INSIDE), answer("pack_int4")]),
    "late": (5, [IMPORTS, *(answer(name, DEAF_INSIDE) for name in RIGHT)]),
}


def timed(folder, seconds, to=None):
    """The result of the only student in a folder, and the seconds that it took; sent to another process if asked."""
    start = time.monotonic()
    (result,) = grading.grade(folder, seconds=seconds)
    found = result, time.monotonic() - start
    if to is not None:
        to.send(found)
    return found


@pytest.fixture(autouse=True, scope="module")
def slow(tmp_path_factory):
    """How a slow notebook is graded. All begin before the first test: while they wait, the other tests run."""
    folders, waiting = {}, {}
    for name, (seconds, cells) in SLOW.items():
        folders[name] = tmp_path_factory.mktemp("slow")
        write(folders[name] / "ann" / "writer.ipynb", *cells)
        if sys.platform == "linux":
            here, there = multiprocessing.Pipe(duplex=False)
            process = multiprocessing.get_context("fork").Process(target=timed, args=(folders[name], seconds, there))
            process.start()
            there.close()
            waiting[name] = process, here
    yield lambda name: waiting[name][1].recv() if name in waiting else timed(folders[name], SLOW[name][0])
    for process, _ in waiting.values():
        process.join(60)
        process.kill()


def test_the_time_is_for_a_notebook_as_a_whole_and_a_right_answer_gets_its_share(slow):
    result, took = slow("hangs")
    assert took < 12 + 5
    assert {name: result.status(name) for name in RIGHT} == {
        **dict.fromkeys(RIGHT, "timed out"),
        "pack_int4": "passed",
    }
    assert "share of the notebook's time" in result.answers["encode_q8"]["what"]
    assert any("code cell 2, line 1 was stopped after" in problem for problem in result.problems)


def limits_of(desk, path, seconds):
    """The limit of each statement, as the process tells it."""
    with desk.nursery(BARE).room(b"", 4096, seconds) as room:
        room.say(notebook=encode(path.read_bytes()), name=path.name, skip=[], labs={}, seconds=seconds, sliced=False)
        found = {}
        while "found" not in (line := room.hear(time.monotonic() + 60)):
            found[line["begin"]] = line["seconds"]
    return found


def test_a_statement_gets_twenty_seconds_at_most_and_half_of_what_is_left_for_cells(desk, tmp_path):
    path = write(tmp_path / "09-writer.ipynb", "import os", "x = len(os.sep)")
    assert limits_of(desk, path, 500)["code cell 2, line 1"] == 20
    assert 9 < limits_of(desk, path, 20)["code cell 2, line 1"] < 10


@posix
def test_loops_that_no_alarm_ends_are_stopped_from_outside(slow):
    result, _ = slow("deaf")
    assert {name: result.status(name) for name in ("header_bytes", "pack_int4")} == {
        "header_bytes": "timed out",
        "pack_int4": "passed",
    }
    assert any("code cell 2, line 1: timed out" in problem for problem in result.problems)


def test_exercises_whose_turn_never_came_say_so(slow):
    result, _ = slow("late")
    assert {result.status(name) for name in RIGHT} == {"timed out"}
    assert "before its turn came" in result.answers["pack_int4"]["what"]


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "1e300", "0", "-1", "soon"])
def test_a_time_that_is_none_is_a_wrong_call(tmp_path, seconds):
    result = CliRunner().invoke(main, ["grade", str(tmp_path), "--seconds", seconds])
    assert result.exit_code == 2, result.output
    assert "--seconds" in result.output


@pytest.mark.parametrize("megabytes", ["0", "-5", "1e3", str(1 << 70)])
def test_a_memory_that_is_none_is_a_wrong_call(tmp_path, megabytes):
    result = CliRunner().invoke(main, ["grade", str(tmp_path), "--megabytes", megabytes])
    assert result.exit_code == 2, result.output


# ---- output ----------------------------------------------------------------------------------------------------------


FLOOD = "import time\nwhile True:\n    print('x' * 1_000_000, flush=True); time.sleep(0.01)"


def test_an_endless_print_does_not_fill_the_graders_memory_and_the_row_says_so(desk, tmp_path):
    path = write(tmp_path / "flood.ipynb", IMPORTS, FLOOD, answer("pack_int4"))
    desk.nursery(BARE)
    tracemalloc.start()
    found, problems = statuses(desk, path, seconds=8)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20  # the oracle and the lesson among it
    assert found == {"pack_int4": "passed"}
    assert any("MB or more, which nobody kept" in problem for problem in problems)


def test_the_end_of_what_is_printed_is_kept_for_a_crash(desk, tmp_path):
    path = write(
        tmp_path / "09-writer.ipynb", "import sys, os\nsys.stderr.write('y' * 9000 + '\\nlast words')\nos._exit(5)"
    )
    _, problems = statuses(desk, path)
    assert problems == ["09-writer.ipynb: code cell 1, line 3: ended with code 5 last words"]
    assert KEPT < 9000


# ---- results ---------------------------------------------------------------------------------------------------------


def passes(path, result, *_):
    """A notebook that nobody runs."""
    result.add("pack_int4", "passed")


@pytest.fixture
def three(tmp_path):
    for name in ("ann/09-writer.ipynb", "ann/10-reader.ipynb", "bob/09-writer.ipynb"):
        write(tmp_path / "class" / name)
    return tmp_path


def invoke(folder, out="grades", more=()):
    return CliRunner().invoke(main, ["grade", str(folder / "class"), "--out", str(folder / out), *more])


def stored(folder):
    return json.loads((folder / "grades.json").read_text()), list(csv.DictReader((folder / "grades.csv").open()))


def test_a_row_is_on_the_disk_after_every_student_and_ctrl_c_loses_none(monkeypatch, three):
    seen = []

    def run(path, result, *_):
        seen.append(f"{path.parent.name}/{path.name}")
        if len(seen) == 3:  # the first student is kept while the second is graded
            (kept,) = grading.read_rows(three / "grades.jsonl").values()
            assert (kept.student, kept.status("pack_int4")) == ("ann", "passed")
            raise KeyboardInterrupt
        passes(path, result)

    monkeypatch.setattr(grading, "grade_notebook", run)
    result = invoke(three)
    assert result.exit_code == 1
    assert "holds the 1 students graded so far" in result.output
    monkeypatch.setattr(grading, "grade_notebook", lambda path, *_: seen.append(path.parent.name))
    assert invoke(three, more=["--resume"]).exit_code == 0
    assert seen[3:] == ["bob"]
    details, rows = stored(three)
    assert [row["pack_int4"] for row in rows] == ["passed", "missing"]
    assert details[0]["seed"] == details[1]["seed"]


def test_a_file_of_results_is_replaced_as_a_whole(monkeypatch, three):
    (three / "grades.json").write_text("[]\n")
    held = (three / "grades.json").open()
    monkeypatch.setattr(grading, "grade_notebook", passes)
    assert invoke(three).exit_code == 0
    assert held.read() == "[]\n"
    assert len(stored(three)[0]) == 2


@pytest.mark.parametrize("out", ["missing/grades", "folder.csv/..", "taken"])
def test_results_that_cannot_be_written_are_refused_before_any_work(monkeypatch, three, out):
    (three / "folder.csv").mkdir()
    (three / "taken.json").mkdir()
    monkeypatch.setattr(grading, "grade_notebook", lambda *_: pytest.fail("a notebook was graded"))
    result = invoke(three, out)
    assert isinstance(result.exception, MiniquantError), result.output


@pytest.mark.parametrize("out", ["grades", "grades.csv", "grades.json", "grades.2026"])
def test_the_base_name_keeps_its_dots(tmp_path, out):
    base = "grades.2026" if out == "grades.2026" else "grades"
    assert grading.result_paths(tmp_path / out) == (tmp_path / f"{base}.csv", tmp_path / f"{base}.json")


@pytest.mark.skipif(os.name != "posix", reason="names of other bytes exist on POSIX only")
def test_names_that_are_not_utf8_and_texts_that_command_a_terminal_are_escaped(monkeypatch, tmp_path):
    names = [b"\xff\xfe", b"\x1b]0;owned\x07", b"a\nb", "größe".encode()]
    for name in names:
        write(Path(os.fsdecode(os.fsencode(tmp_path / "class") + b"/" + name)) / "09-writer.ipynb")
    text = "\x1b[2J \ud800 \u202e"

    def run(path, result, *_):
        result.add("pack_int4", "failed", text)
        result.note(text)

    monkeypatch.setattr(grading, "grade_notebook", run)
    result = invoke(tmp_path)
    assert result.exit_code == 0, result.output
    assert all(line.isprintable() for line in result.stdout.split("\n"))
    details, rows = stored(tmp_path)
    assert {row["student"] for row in rows} == {"\\udcff\\udcfe", "\\u001b]0;owned\\u0007", "a\\nb", "größe"}
    assert {row["student"] for row in details} == {os.fsdecode(name) for name in names}
    assert details[0]["exercises"]["pack_int4"]["what"] == text


def test_an_empty_folder_is_a_clear_error(tmp_path):
    with pytest.raises(MiniquantError, match="no notebook"):
        grading.submissions(tmp_path)
