"""A class from end to end: from a folder of generated notebooks to grades in every form; the page shows the same."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
import sys

import pytest
from places import ROOT

from miniquant.lab.grading.inside import walls
from tools import example_class

pytestmark = pytest.mark.skipif(bool(walls.missing()), reason=f"no walls: {walls.missing()}")

IMPORTS = "import numpy as np\nfrom miniquant.lab import exercise\nfrom miniquant.lab.answers import answers"


@pytest.fixture(scope="module")
def example():
    return example_class.graded()


@pytest.fixture
def submitted(tmp_path):
    """One student's notebook alone in a folder, as Gradescope and Classroom 50 have it; right answers need no cause.

    Of its cells those that answer, and what these need: with the others the grader would load torch.
    """
    example_class.make(tmp_path / "class")
    folder = tmp_path / "class" / "submitted" / "ann"
    (path,) = folder.iterdir()
    notebook = json.loads(path.read_text("utf-8"))
    texts = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    answers = [text for text in texts if re.match(r"@exercise|def |DTYPES|container", text)]
    notebook["cells"] = [{"cell_type": "code", "source": text} for text in (IMPORTS, *answers)]
    path.write_text(json.dumps(notebook), "utf-8")
    return folder


def score_of_ann():
    """What the page shows of her."""
    head, *rows = json.loads(example_class.STORED.read_text("utf-8"))["grades.csv"]
    (found,) = [row[head.index("passed")] for row in rows if row[0] == "ann"]
    return int(found)


def test_a_class_is_graded_from_the_folder_to_every_form(example):
    head, *rows = example["grades.csv"]
    states = {row[0]: dict(zip(head, row)) for row in rows}
    names = head[2:-2]
    assert list(states) == list(example_class.STUDENTS)
    assert [states["ann"][name] for name in names] == ["passed"] * 5
    assert [states["eve"][name] for name in names] == ["not attempted"] * 5
    assert "failed" in states["bob"].values() and "crashed" in states["cleo"].values()
    assert "failed" in states["dan"].values() and "passed" in states["dan"].values()
    passed = {name: row["passed"] for name, row in states.items()}
    _, possible, *canvas = csv.reader(io.StringIO(example["grades-canvas.csv"]))
    assert {row[0]: row[-1] for row in canvas} == passed
    assert possible[-1] == str(len(names))
    assert example[example_class.GRADESCOPE]["score"] == example[example_class.CLASSROOM]["score"] == int(passed["bob"])
    for folder, file in (("gradescope", "results.json"), ("classroom50", "result.json")):
        assert {f"grades-{folder}/{name}/{file}" for name in states} <= set(example["files"])


def test_the_page_shows_what_the_grader_prints_and_writes(example):
    stored = json.loads(example_class.STORED.read_text("utf-8"))
    assert example == stored, "run tools/example_class.py"
    page = (ROOT / "book/example-class.md").read_text("utf-8")
    shown = set(re.findall(r'example\["([^"]+)"\]', page))
    assert shown == set(stored) - {"files"}


def script(language, number):
    """A script of the page about other systems."""
    page = (ROOT / "book/class-tools.md").read_text("utf-8")
    blocks = re.findall(rf"^ +```{language}\n(.*?)^ +```$", page, re.M | re.S)
    return "\n".join(line[3:] for line in blocks[number].split("\n"))


def test_the_script_for_gradescope_writes_the_students_results(tmp_path, submitted):
    text = next(block for number in range(9) if "/autograder/submission" in (block := script("sh", number)))
    home = tmp_path / "autograder"
    (home / "results").mkdir(parents=True)
    submitted.rename(home / "submission")
    text = text.replace("/autograder/venv/bin/miniquant", f"{shlex.quote(sys.executable)} -m miniquant.cli")
    text = text.replace("/tmp/", f"{tmp_path}/scratch/").replace(" /autograder/", f" {home}/")
    subprocess.run(["bash", "-e", "-c", text], check=True, capture_output=True)
    result = json.loads((home / "results" / "results.json").read_text("utf-8"))
    assert result["score"] == score_of_ann() == 5


def test_the_script_for_classroom_50_writes_the_students_result(tmp_path, submitted):
    text = next(block for number in range(9) if "copytree" in (block := script("python", number)))
    text = "\n".join(line for line in text.split("\n") if '"pip"' not in line).replace("/tmp/", f"{tmp_path}/scratch/")
    (tmp_path / "autograder.py").write_text(text)
    subprocess.run([sys.executable, tmp_path / "autograder.py"], cwd=submitted, check=True, capture_output=True)
    result = json.loads((submitted / "result.json").read_text("utf-8"))
    assert result["score"] == score_of_ann() == 5
