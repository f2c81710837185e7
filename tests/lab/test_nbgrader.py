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
    folder = tmp_path_factory.mktemp("course")
    (folder / "source" / LAB).mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / f"{LAB}.ipynb", folder / "source" / LAB)
    run(folder, "generate_assignment", LAB)
    release = folder / "release" / LAB / f"{LAB}.ipynb"
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
    run(folder, "autograde", LAB, MINIQUANT_STRICT="1")
    return folder


NBGRADER = "import runpy, without_iri; runpy.run_module('nbgrader', run_name='__main__', alter_sys=True)"


def run(folder, *arguments, **environment):
    command = [sys.executable, "-c", NBGRADER, *arguments, f"--CourseDirectory.root={folder}"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # nbgrader calls alembic
    python = os.pathsep.join([str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")])
    quiet = {"MINIQUANT_PROGRESS": os.devnull, "HOME": str(folder), "PATH": path, "PYTHONPATH": python}
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **quiet, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


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
