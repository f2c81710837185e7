"""Grading a large class: several processes, parts of the class, workers of Dask; and the forms of other systems."""

from __future__ import annotations

import csv
import importlib
import io
import json
import multiprocessing
import os
import signal
import sys
import time

import pytest
from click.testing import CliRunner

from miniquant.cli import main
from miniquant.core.errors import MiniquantError
from miniquant.lab.grading import farm, outputs
from miniquant.lab.grading import grade as grading
from miniquant.lab.grading.inside import walls
from miniquant.lab.grading.results import Result

pytestmark = pytest.mark.skipif(bool(walls.missing()), reason=f"no walls: {walls.missing()}")

START = "import os, sys, time\nimport numpy as np\nfrom miniquant.lab import exercise"
ANSWER = (
    '@exercise("pack_int4")\ndef pack_int4(values):\n    n = values.astype(np.uint8) & 15\n'
    "    return n[..., LOW::2] | (n[..., HIGH::2] << 4)\n"
)
KINDS = {
    "right": ANSWER.replace("LOW", "0").replace("HIGH", "1"),
    "wrong": ANSWER.replace("LOW", "1").replace("HIGH", "0"),
    "crash": '@exercise("pack_int4")\ndef pack_int4(values):\n    os._exit(1)',
    "stub": '@exercise("pack_int4")\ndef pack_int4(values):\n    raise NotImplementedError',
}
STATES = {"right": "passed", "wrong": "failed", "crash": "crashed", "stub": "not attempted"}


def write(path, *cells):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]}))


def make_class(folder, n):
    """``n`` students, whose names say what they handed in."""
    for number in range(n):
        kind = list(KINDS)[number % len(KINDS)]
        write(folder / f"{kind}-{number:02}" / "09-writer.ipynb", START, KINDS[kind])
    return folder


def right(results):
    """Whether every student is there once, with the state that the name says."""
    names = [result.student for result in results]
    assert len(names) == len(set(names))
    return all(result.status("pack_int4") == STATES[result.student.split("-")[0]] for result in results)


def test_two_processes_grade_a_class_and_rows_come_one_by_one(tmp_path):
    came = []
    results = grading.grade(make_class(tmp_path, 8), jobs=2, seed=3, keep=came.append)
    assert len(results) == 8
    assert right(results)
    assert sorted(came, key=lambda result: result.student) == results
    assert farm._all == []


def test_a_grader_that_dies_is_replaced_and_its_student_is_graded(tmp_path, monkeypatch):
    first = farm.Grader.grade
    killed = []

    def grade(self, task):
        if not killed:
            killed.append(self.process.pid)
            os.kill(self.process.pid, signal.SIGKILL)
        return first(self, task)

    monkeypatch.setattr(farm.Grader, "grade", grade)
    results = grading.grade(make_class(tmp_path, 3), jobs=2, seed=3)
    assert killed
    assert len(results) == 3
    assert right(results)


def test_a_student_whose_grader_dies_each_time_has_a_row_that_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(farm.Grader, "grade", lambda self, task: None)
    (result,) = grading.grade(make_class(tmp_path, 1), jobs=2, seed=3)
    assert result.problems == ["the grader's process ended 2 times"]


def run(*arguments):
    return CliRunner().invoke(main, ["grade", *map(str, arguments)])


@pytest.fixture
def fake(monkeypatch):
    """Grading without any process: the state that a student's name says."""
    graded = []

    def passes(path, result, *_):
        graded.append(result.student)
        result.add("pack_int4", STATES[result.student.split("-")[0]])

    monkeypatch.setattr(grading, "grade_notebook", passes)
    return graded


def test_parts_of_a_class_are_graded_apart_and_merged(tmp_path, fake):
    folder = make_class(tmp_path / "class", 7)
    for part in (1, 2, 3):
        done = run(folder, "--shard", f"{part}/3", "--seed", "5", "--out", tmp_path / f"part{part}")
        assert done.exit_code == 0, done.output
    assert len(fake) == len(set(fake)) == 7
    parts = [tmp_path / f"part{part}.jsonl" for part in (1, 2, 3)]
    merged = run("--merge", *parts, "--out", tmp_path / "all")
    assert merged.exit_code == 0, merged.output
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["student"] for row in rows] == sorted(fake)
    assert all(row["pack_int4"] == STATES[row["student"].split("-")[0]] for row in rows)


def test_parts_with_other_seeds_and_a_student_with_two_results_are_refused(tmp_path):
    files = []
    for name, result in {
        "a": Result("ann", seed=1), "b": Result("bob", seed=2), "c": Result("ann", problems=["x"], seed=1),
    }.items():  # fmt: skip
        rows = grading.RowsOnDisk(tmp_path / f"{name}.jsonl")
        rows.add(result)
        rows.close()
        files.append(tmp_path / f"{name}.jsonl")
    with pytest.raises(MiniquantError, match="different seeds"):
        grading.merge(files[:2])
    with pytest.raises(MiniquantError, match="graded twice"):
        grading.merge([files[0], files[2]])
    assert grading.merge([files[0], files[0]]) == [Result("ann", seed=1)]


def test_resuming_grades_what_is_new_or_changed_and_a_cut_line_again(tmp_path, fake):
    folder = make_class(tmp_path / "class", 4)
    out = tmp_path / "grades"
    assert run(folder, "--out", out).exit_code == 0
    lines = (tmp_path / "grades.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "grades.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:20])
    write(folder / "right-00" / "09-writer.ipynb", START, "# changed", KINDS["right"])
    fake.clear()
    result = run(folder, "--out", out, "--resume")
    assert result.exit_code == 0, result.output
    cut = json.loads(lines[3])["student"]
    assert sorted(fake) == sorted({"right-00", cut})
    assert len(grading.read_rows(tmp_path / "grades.jsonl")) == 4


@pytest.mark.parametrize("shard", ["0/3", "4/3", "1", "a/b", "1/0", ""])
def test_a_part_that_is_none_is_a_wrong_call(tmp_path, shard):
    assert run(tmp_path, "--shard", shard).exit_code == 2


def test_rows_that_are_none_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"student": "ann"}\n')
    with pytest.raises(MiniquantError, match="line 1 is no result"):
        grading.read_rows(tmp_path / "a.jsonl")


# ---- Dask ------------------------------------------------------------------------------------------------------------


def serve(program, arguments):
    """In a process of its own: a program of Dask's command line, which says nothing here."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    importlib.import_module(f"distributed.cli.{program}").main(arguments)


def begin(program, *arguments):
    """Start one; on Linux it is a copy of this process, which has imported what it needs."""
    importlib.import_module(f"distributed.cli.{program}")
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    process = context.Process(target=serve, args=(program, arguments))
    process.start()
    return process


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers on the loopback address, each a process of its own."""
    pytest.importorskip("distributed")
    where = tmp_path / "scheduler.json"
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    started = [begin("dask_scheduler", *local, "--port", "0", "--scheduler-file", str(where))]
    end = time.monotonic() + 60
    while not where.exists() and time.monotonic() < end:
        time.sleep(0.1)
    address = json.loads(where.read_text())["address"]
    one = ["--nthreads", "1", "--nworkers", "1", "--no-nanny", "--local-directory", str(tmp_path)]
    started += [begin("dask_worker", address, *local, *one) for _ in range(2)]
    yield address, started[1:]
    for process in started:
        process.kill()
        process.join()


def test_workers_of_dask_grade_a_class_and_nothing_is_lost_when_one_is_killed(tmp_path, cluster):
    import distributed

    address, workers = cluster
    with distributed.Client(address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
    folder = make_class(tmp_path / "class", 12)
    came = []

    def keep(result):
        came.append(result.student)
        if len(came) == 3:
            os.kill(workers[0].pid, signal.SIGKILL)

    results = grading.grade(folder, dask=address, seed=3, keep=keep)
    workers[0].join(10)
    assert workers[0].exitcode == -signal.SIGKILL
    assert sorted(came) == [result.student for result in results]
    assert len(results) == 12
    assert right(results)


def test_a_scheduler_that_is_not_there_is_a_clear_error(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")

    def client(*_, **__):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", client)
    with pytest.raises(MiniquantError, match="no Dask scheduler answers"):
        grading.grade(make_class(tmp_path, 1), dask="tcp://127.0.0.1:1")


# ---- forms -----------------------------------------------------------------------------------------------------------

FLAGGED = {"status": "passed", "what": "right", "flag": "passes only with the library"}
ANN = Result("ann", {"pack_int4": FLAGGED}, seed=7)
BOB = Result("=bob", {"header_bytes": {"status": "failed", "what": "wrong \x1b[2J"}}, ["09.ipynb: a problem"], seed=7)
TEXT, NUMBER = str, int | float
GRADESCOPE = {  # field -> type; what the page of the form lists, and nothing else may be there
    "score": NUMBER, "execution_time": NUMBER, "output": TEXT, "output_format": TEXT, "test_output_format": TEXT,
    "test_name_format": TEXT, "visibility": TEXT, "stdout_visibility": TEXT, "extra_data": dict, "tests": list,
    "leaderboard": list,
}  # fmt: skip
GRADESCOPE_TEST = {
    "score": NUMBER, "max_score": NUMBER, "status": TEXT, "name": TEXT, "name_format": TEXT, "number": TEXT,
    "output": TEXT, "output_format": TEXT, "tags": list, "visibility": TEXT, "extra_data": dict,
}  # fmt: skip
CLASSROOM = {
    "schema": TEXT, "classroom": TEXT, "assignment": TEXT, "assignment_type": TEXT, "owner": TEXT, "submission": TEXT,
    "commit": TEXT, "release": TEXT, "review": TEXT, "datetime": TEXT, "graded_at": TEXT, "score": int,
    "max-score": int, "tests": list,
}  # fmt: skip


def fits(value, fields):
    assert set(value) <= set(fields)
    return all(isinstance(value[name], fields[name]) and not isinstance(value[name], bool) for name in value)


@pytest.fixture
def names():
    return outputs.counted([ANN, BOB])


def test_labs_that_somebody_answers_give_points_or_those_that_are_named(names):
    assert {"pack_int4", "header_bytes", "encode_q8"} <= set(names)
    assert "parse_header" not in names
    assert outputs.counted([ANN, BOB], ["09"]) == [name for name in names if name not in outputs.counted([], ["08"])]


def test_gradescopes_results_have_its_fields_and_the_sum_of_the_scores(names):
    for result in (ANN, BOB):
        found = outputs.gradescope(result, names)
        assert fits(found, GRADESCOPE)
        assert all(fits(test, GRADESCOPE_TEST) for test in found["tests"])
        assert {test["status"] for test in found["tests"]} <= {"passed", "failed"}
        assert found["stdout_visibility"] in ("visible", "hidden", "after_due_date", "after_published")
        assert found["score"] == sum(test["score"] for test in found["tests"]) == (result is ANN)
        assert len(found["tests"]) == len(names)
    assert found["extra_data"]["seed"] == 7
    assert "\x1b" not in json.dumps(found, ensure_ascii=False)


def test_classroom_50s_result_has_its_fields_and_takes_the_runners_words(names):
    import re

    words = {
        "CLASSROOM": "cs", "ASSIGNMENT": "labs", "USERNAME": "ann", "SUBMISSION_TAG": "submit/2026-01-01T00-00-00Z-a1",
        "COMMIT_URL": "https://example.org/c", "RELEASE_URL": "https://example.org/r", "REVIEW_URL": "",
    }  # fmt: skip
    for result, given in ((ANN, words), (BOB, {})):
        found = outputs.classroom50(result, names, given)
        assert fits(found, CLASSROOM)
        assert set(CLASSROOM) - {"graded_at"} <= set(found)
        assert found["schema"] == "classroom50/result/v1"
        assert found["submission"].startswith("submit/")
        assert found["assignment_type"] in ("individual", "group")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["datetime"])
        assert all(found[name] for name in ("classroom", "assignment", "owner", "commit", "release", "review"))
        assert 0 <= found["score"] <= found["max-score"] == len(names)
        for test in found["tests"]:
            assert isinstance(test["passed"], bool)
            assert 0 <= test["score"] <= test["max-score"]
    assert outputs.classroom50(ANN, names, words)["review"] == "https://example.org/c"
    group = outputs.classroom50(ANN, names, {**words, "OWNER": "team", "ASSIGNMENT_TYPE": "group"})
    assert (group["owner"], group["assignment_type"]) == ("team", "group")


def test_canvas_gets_a_table_with_its_columns_the_points_possible_and_no_formulas(names):
    header, possible, *rows = csv.reader(io.StringIO(outputs.canvas([ANN, BOB], names)))
    assert header == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "miniquant lab 08", "miniquant lab 09"]
    assert possible[0].strip() == "Points Possible"
    assert possible[5:] == ["4", "5"]
    assert [row[5:] for row in rows] == [["0", "1"], ["0", "0"]]
    assert not any(cell.startswith("=") for row in rows for cell in row)


def test_canvas_own_export_gives_the_columns_of_identity(tmp_path, names):
    path = tmp_path / "export.csv"
    path.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,Essay (77)\n    Points Possible,,,,,10\n"
        '"Lee, Ann",1234,u9,ann,A,7\n"Poe, Carl",77,u8,carl,A,3\n'
    )
    _, _, *rows = csv.reader(io.StringIO(outputs.canvas([ANN, BOB], names, path)))
    assert rows == [["Lee, Ann", "1234", "u9", "ann", "A", "0", "1"]]
    path.write_text("a,b\n1,2\n")
    with pytest.raises(MiniquantError, match="no gradebook of Canvas"):
        outputs.canvas([ANN], names, path)


def test_the_command_writes_all_forms(tmp_path, fake):
    folder = make_class(tmp_path / "class", 2)
    forms = [part for form in ("gradescope", "classroom50", "canvas") for part in ("--form", form)]
    result = run(folder, "--out", tmp_path / "g", *forms)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "g-gradescope" / "right-00" / "results.json").read_text())["score"] == 1
    assert json.loads((tmp_path / "g-classroom50" / "wrong-01" / "result.json").read_text())["score"] == 0
    assert len((tmp_path / "g-canvas.csv").read_text().splitlines()) == 4
