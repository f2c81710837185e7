"""What an author of labs uses: a new exercise that runs, checks that find what is wrong with one."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from places import ROOT

from miniquant import MiniquantError
from miniquant.lab import Exercise, Mistake, body, edit, omit
from miniquant.lab.authoring.checks import problems
from miniquant.lab.authoring.new import new_exercise
from miniquant.lab.spec import LessonError, text_of


def halve(values):
    """Half of every value."""
    result = []
    for value in values:
        result.append(value // 2)
    return result


def exercise(*mistakes, **changed):
    parts = {
        "goal": "Halve every value.",
        "minutes": 3,
        "difficulty": "warm-up",
        "reference": halve,
        "oracle": lambda values: [value >> 1 for value in values],
        "cases": lambda random: [([4, 6],), ([8],), ([-2, 10, 12],)],
        "hints": ("Begin.", "Go on."),
        "why": "halves are useful.",
        "mistakes": mistakes,
    }
    return Exercise(**parts | changed)


def mistake(name, wrong):
    return Mistake(name, wrong, cause="It is wrong.", cure="Make it right.", see="`1`")


FIVE = (
    mistake("doubled", edit("// 2", "* 2")),
    mistake("quartered", edit("// 2", "// 4")),
    mistake("nothing appended", omit("result.append")),
    mistake("reversed", edit("return result", "return result[::-1]")),
    mistake("the first alone", body("return values[:1]")),
)


def test_an_exercise_with_five_edits_of_its_solution_has_no_problem():
    assert problems(exercise(*FIVE)) == []


def test_an_edit_that_matches_twice_or_never_is_reported():
    for old in ("value", "nowhere"):
        found = problems(exercise(*FIVE[:4], mistake("bad edit", edit(old, "x"))))
        assert any("must match exactly once" in problem for problem in found), found


def test_an_edit_is_not_applied_to_the_docstring():
    with pytest.raises(LessonError, match="occurs 0 times"):
        edit("Half of every", "x").apply(text_of(halve).body)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (exercise(*FIVE[:4]), "it has 4 mistakes"),
        (exercise(*FIVE, oracle=lambda values: [value / 2 + 1 for value in values]), "the reference does not pass"),
        (exercise(*FIVE, oracle=lambda values: halve(values)), "the oracle calls the reference"),
        (exercise(*FIVE, goal="no sentence"), "not a sentence"),
        (exercise(*FIVE, cases=lambda random: [([0],), ([0, 0],), ([],)]), "zeros of the right shape passes"),
        (exercise(*FIVE, mistake("harmless", edit("result = []", "result = list()"))), "is passed"),
        (exercise(*FIVE, mistake("twice", edit("// 2", "+ value"))), "'doubled' and 'twice' look the same"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_with_an_exercise_is_reported(spec, said):
    assert any(said in problem for problem in problems(spec)), problems(spec)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkout")
    left_out = shutil.ignore_patterns("*.safetensors", "workspace", "*.pyc.*")  # large, or in the making
    for part in ("src", "tools"):
        shutil.copytree(ROOT / part, folder / part, ignore=left_out)
    for part in ("solutions", "notebooks", "book"):  # a lab without a notebook is no lab, and its lessons wait
        (folder / part).mkdir()
    shutil.copy(ROOT / "book/course.toml", folder / "book")
    return folder


IN_THE_CHECKOUT = """
import runpy
import sys
from pathlib import Path

from miniquant.cli import main
from miniquant.lab.authoring.course import read_course

def notebooks(*arguments):
    sys.argv = ["tools/notebooks.py", *arguments]
    runpy.run_path(sys.argv[0], run_name="__main__")


number = sys.argv[1]
for run, *arguments in [(main, ["lab", "check", "a_new_lab"]), (notebooks, number), (notebooks, "--check", number)]:
    try:
        run(*arguments)
    except SystemExit as end:
        if end.code:
            raise
lab = read_course(Path.cwd())[-1].labs[-1]
print(lab.number, lab.title, lab.time.practice)
"""


def test_a_new_exercise_of_a_new_lab_passes_its_checks_and_its_notebook_is_derived(checkout):
    written = new_exercise("a_new_lab", "double_them", checkout)
    names = {path.relative_to(checkout).as_posix() for path in written}
    assert "src/miniquant/lessons/a_new_lab/double_them.py" in names
    (notebook,) = (name for name in names if name.endswith(".ipynb"))

    number = notebook.split("/")[1][:2]
    environment = {"PYTHONPATH": str(checkout / "src"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", IN_THE_CHECKOUT, number], cwd=checkout, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "double_them: 5 mistakes, right" in done.stdout
    assert "raise NotImplementedError" in (checkout / notebook.replace("solutions", "notebooks")).read_text("utf-8")
    assert done.stdout.splitlines()[-1] == f"{number} a new lab 3"


@pytest.mark.parametrize(
    ("subject", "name", "said"),
    [("reader", "parse_header", "already, in lab"), ("reader", "Parse", "is no name"), ("a b", "x", "is no name")],
)
def test_a_name_that_is_taken_or_is_no_name_is_refused(checkout, subject, name, said):
    with pytest.raises(MiniquantError, match=said):
        new_exercise(subject, name, checkout)


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(MiniquantError, match="run this in a checkout"):
        new_exercise("reader", "brand_new", tmp_path)
