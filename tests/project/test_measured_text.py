"""Outputs that depend on Python's documentation are compared where it is the text that they were made with."""

import os
import subprocess
import sys

import nbformat
import pytest
from places import ROOT


def run(folder, source, other):
    """The run of a notebook whose stored output is another one than it prints."""
    cell = nbformat.v4.new_code_cell(source, outputs=[nbformat.v4.new_output("stream", name="stdout", text="1\n")])
    cell.execution_count = 1
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "lab.ipynb")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.measured_text", "--nbval", "--nbval-current-env"]
    variables = {**os.environ, "MINIQUANT_OTHER_TEXTS": other, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", "--rootdir", folder, folder / "lab.ipynb"],
        capture_output=True,
        text=True,
        env=variables,
        cwd=ROOT,
        timeout=120,
    )


@pytest.mark.parametrize(
    "source, other, passes",
    [
        ("print(2)  # calibration_tokens", "training", True),
        ("print(2)  # calibration_tokens", "held-out", False),
        ("print(2)  # calibration_tokens", "", False),
        ("print(2)  # held_out_windows", "held-out training", True),
        ("print(2)", "held-out training", False),
        ("1 / 0  # calibration_tokens", "training", False),
    ],
)
def test_only_outputs_that_depend_on_another_text_are_not_compared(tmp_path, source, other, passes):
    done = run(tmp_path, source, other)
    assert (done.returncode == 0) == passes, done.stdout
    assert ("were not compared: this Python documents itself" in done.stdout) == bool(other)
