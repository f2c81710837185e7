"""Outputs that depend on Python's documentation are compared where it is the text that they were made with."""

import os
import re
import subprocess
import sys

import nbformat
import pytest
from places import ROOT

from tools import measured_text

NOTEBOOKS = {  # each prints another output than is stored, or fails
    "calibrated": "print(2)  # calibration_tokens",
    "measured": "print(2)  # held_out_windows",
    "of neither": "print(2)",
    "failing": "1 / 0  # calibration_tokens",
}


def write(folder):
    for name, source in NOTEBOOKS.items():
        cell = nbformat.v4.new_code_cell(source, outputs=[nbformat.v4.new_output("stream", name="stdout", text="1\n")])
        cell.execution_count = 1
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / f"{name}.ipynb")


def test_only_outputs_that_depend_on_another_text_are_not_compared(tmp_path):
    write(tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "tools.measured_text", "--nbval"]
    done = subprocess.run(
        [*command, "--nbval-current-env", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, measured_text.OTHER: "training", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        timeout=120,
    )
    found = {name: result for result, name in re.findall(r"^(PASSED|FAILED) .*?([a-z ]+)\.ipynb", done.stdout, re.M)}
    assert found == {"calibrated": "PASSED", "measured": "FAILED", "of neither": "FAILED", "failing": "FAILED"}
    assert "were not compared: this Python documents itself" in done.stdout


@pytest.mark.parametrize(
    "other, not_compared",
    [
        ("training", {"calibrated", "failing"}),
        ("held-out", {"measured"}),
        ("held-out training", {"calibrated", "failing", "measured"}),
        ("", set()),
    ],
)
def test_a_lab_depends_on_the_texts_that_it_names(tmp_path, monkeypatch, other, not_compared):
    write(tmp_path)
    monkeypatch.setenv(measured_text.OTHER, other)
    assert {path.stem for path in tmp_path.glob("*.ipynb") if measured_text.depends(path)} == not_compared


def test_nothing_is_said_where_both_texts_are_those_of_the_outputs(monkeypatch):
    monkeypatch.setenv(measured_text.OTHER, "")
    measured_text.pytest_terminal_summary(None)  # a line would be an error
