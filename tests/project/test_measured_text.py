"""Outputs that depend on Python's documentation are compared where it is the text that they were made with."""

import os
import re
import subprocess
import sys

import nbformat
import pytest
from places import ROOT

from tools import measured_text

NOTEBOOKS = {  # each cell prints another output than is stored, or fails
    "calibrated": ["print(2)  # calibration_tokens", "1 / 0"],
    "measured": ["print(2)  # held_out_windows"],
    "of neither": ["print(2)"],
}


def write(folder, names=tuple(NOTEBOOKS)):
    stored = nbformat.v4.new_output("stream", name="stdout", text="1\n")
    for name in names:
        cells = [nbformat.v4.new_code_cell(source, outputs=[stored]) for source in NOTEBOOKS[name]]
        for count, cell in enumerate(cells, 1):
            cell.execution_count = count
        nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / f"{name}.ipynb")


def test_only_outputs_that_depend_on_another_text_are_not_compared(tmp_path):
    write(tmp_path, ("calibrated", "measured"))
    plugins = ("tools.without_iri", "nbval.plugin", "tools.measured_text")
    command = [sys.executable, "-m", "pytest", "-q", "-rA", *(part for plugin in plugins for part in ("-p", plugin))]
    surroundings = {measured_text.OTHER: "training", "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, "--nbval", "--nbval-current-env", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, **surroundings},
        cwd=ROOT,
        timeout=120,
    )
    rows = re.findall(r"^(PASSED|FAILED) .*?(\w+)\.ipynb::Cell (\d)", done.stdout, re.M)
    found = {(name, int(number)): result for result, name, number in rows}
    assert found == {("calibrated", 0): "PASSED", ("calibrated", 1): "FAILED", ("measured", 0): "FAILED"}
    assert "were not compared: this Python documents itself" in done.stdout


@pytest.mark.parametrize(
    "other, not_compared",
    [
        ("training", {"calibrated"}),
        ("held-out", {"measured"}),
        ("held-out training", {"calibrated", "measured"}),
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
