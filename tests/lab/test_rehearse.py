"""A lab runs to its end with an unusual answer that its check takes; a cell that raises is named."""

from __future__ import annotations

import os

import pytest
from jupyter_client.provisioning import local_provisioner
from places import ROOT

from miniquant.core.errors import MiniquantError
from miniquant.lab.authoring.rehearse import runs_with
from tools.prepared_kernels import Prepared

FIRST = ROOT / "notebooks" / "00-five-minutes.ipynb"
UNUSUAL = {  # right, and not what the solution does
    "magic_bytes": """
def magic_bytes(magic, version):
    return bytes(number >> shift & 255 for number in (magic, version) for shift in (0, 8, 16, 24))
""",
    "byte_order": """
def byte_order(data, magic):
    little = sum(byte << 8 * at for at, byte in enumerate(data))
    big = sum(byte << 8 * at for at, byte in enumerate(data[::-1]))
    return "little" if little == magic else "big" if big == magic else "neither"
""",
}


@pytest.fixture(autouse=True, scope="module")
def prepared(tmp_path_factory):
    """The kernels are copies of one process, which has imported what a kernel takes longest to import."""
    if not hasattr(os, "fork"):
        yield
        return
    process = Prepared(("ipykernel.kernelapp", "numpy"), tmp_path_factory.mktemp("p"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_provisioner, "launch_kernel", process.launch)
        yield
        process.end()


def test_lab_00_runs_to_its_end_with_right_answers_in_another_style():
    assert runs_with(FIRST, UNUSUAL) == []


def test_a_cell_that_uses_an_accepted_answer_and_raises_is_named():
    accepted = """
def read_magic(data):
    if data == b"GGUF" + bytes([3, 0, 0, 0]):
        raise ZeroDivisionError("none of the cases has these bytes")
    if len(data) < 8:
        raise ValueError("too short")
    return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
"""
    (broken,) = runs_with(FIRST, {"read_magic": accepted})
    assert broken.error == "ZeroDivisionError: none of the cases has these bytes"
    assert "GGUF" in broken.line


def test_a_refused_answer_stops_no_cell_because_the_reference_stands_in():
    assert runs_with(FIRST, {"read_magic": "def read_magic(data):\n    return 1 // 0"}) == []


def test_an_exercise_that_the_notebook_lacks_is_an_error():
    with pytest.raises(MiniquantError, match="has no exercise 'pack_int4'; it has magic_bytes"):
        runs_with(FIRST, {"pack_int4": "def pack_int4(values):\n    return values"})
