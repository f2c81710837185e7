"""A class that uses nbgrader can use the same notebooks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from places import ROOT

from miniquant.lab.grading import grade as grading
from miniquant.lab.grading.inside import walls

LAB = "00-five-minutes"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course with one released lab, a student who did one exercise, and another who did none."""
    folder = tmp_path_factory.mktemp("c")  # short: a socket in it may have no long name
    (folder / "source" / LAB).mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / f"{LAB}.ipynb", folder / "source" / LAB)
    process = nbgrader(folder)
    process.stdout.readline()  # it is released
    release = folder / "release" / LAB / f"{LAB}.ipynb"
    if release.exists():
        hand_in(folder, release)
    _, said = process.communicate("\n")
    assert process.returncode == 0, said[-3000:]
    return folder


def hand_in(folder, release):
    solved = nbformat.read(ROOT / "solutions" / f"{LAB}.ipynb", 4)
    for student in ("ann", "bob"):
        target = folder / "submitted" / student / LAB / f"{LAB}.ipynb"
        target.parent.mkdir(parents=True)
        notebook = nbformat.read(release, 4)
        if student == "ann":
            for mine, answer in zip(notebook.cells, solved.cells):
                if mine.metadata.get("nbgrader", {}).get("grade_id") == "byte_order":
                    mine.source = answer.source
        nbformat.write(notebook, target)


NBGRADER = """
import os
import sys
import without_iri
from contextlib import suppress
from pathlib import Path
from jupyter_client.provisioning import local_provisioner
from jupyter_core.application import NoStart
from nbgrader import api
from nbgrader.apps import NbGraderApp
from prepared_kernels import Prepared

kernels = Prepared(("ipykernel.kernelapp", "numpy"), Path.cwd())  # both kernels are copies of one process
if hasattr(os, "fork"):
    local_provisioner.launch_kernel = kernels.launch
api.get_alembic_version = lambda: "new"  # it starts a process; only an old gradebook is looked at for it

def run(*arguments):
    NbGraderApp.clear_instance()
    app = NbGraderApp.instance()
    app.initialize([*arguments, *sys.argv[1:]])
    with suppress(NoStart):  # the command has run, and the program that it belongs to does not start
        app.start()

run("generate_assignment")
print("released", flush=True)
sys.stdin.readline()
run("autograde")
kernels.end()
"""


def nbgrader(folder):
    """nbgrader releases the lab, waits for a line, and grades what was handed in: its import takes long."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # nbgrader calls alembic
    python = os.pathsep.join([str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")])
    own = {"MINIQUANT_PROGRESS": os.devnull, "HOME": str(folder), "PATH": path, "PYTHONPATH": python}
    return subprocess.Popen(
        [sys.executable, "-c", NBGRADER, LAB, f"--CourseDirectory.root={folder}"],
        cwd=folder,
        env={**os.environ, **own, "MINIQUANT_STRICT": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_release_holds_no_solution(course):
    released = (course / "release" / LAB / f"{LAB}.ipynb").read_text()
    assert "BEGIN SOLUTION" not in released
    assert "NotImplementedError" in released


def test_a_strict_check_gives_points_to_a_solved_exercise_only(course):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        scores = {s.student.id: s for s in book.assignment_submissions(LAB)}
        assert scores["bob"].score == 0
        assert scores["ann"].score == 1
        assert scores["ann"].max_score == 3


@pytest.mark.skipif(bool(walls.missing()), reason=f"no walls: {walls.missing()}")
def test_the_grader_reads_the_folder_that_nbgrader_collects_and_finds_the_same(course):
    results = {result.student: result for result in grading.grade(course / "submitted", seed=1)}
    passed = {name: [e for e in result.answers if result.status(e) == "passed"] for name, result in results.items()}
    assert passed == {"ann": ["byte_order"], "bob": []}
