"""Lab 00 needs numpy alone: no torch, no tokenizer, no plot."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from places import ROOT

from miniquant.lessons import COURSE

BLOCKED = "import sys; sys.modules.update(dict.fromkeys(['torch', 'tokenizers', 'safetensors', 'matplotlib']))\n"


def run(code: str, folder: Path) -> str:
    """What a fresh interpreter prints in which the heavy packages cannot be imported."""
    done = subprocess.run([sys.executable, "-c", BLOCKED + code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_checks_of_lab_00_run_where_torch_cannot_be_imported(tmp_path):
    code = (
        "from miniquant.lab import evaluate, find\n"
        "for name in ('magic_bytes', 'read_magic', 'byte_order'):\n"
        "    print(evaluate(find(name), find(name).reference).status)\n"
    )
    assert run(code, tmp_path).split() == ["passed"] * 3


def test_lab_00_runs_solved_and_unsolved_where_torch_cannot_be_imported(tmp_path):
    for folder in ("solutions", "notebooks"):
        notebook = nbformat.read(ROOT / folder / "00-five-minutes.ipynb", as_version=4)
        code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
        run(code, tmp_path)
        assert (tmp_path / "workspace/00-first.bin").read_bytes() == bytes.fromhex("54464c4701000000")


def test_an_exercise_is_found_without_loading_the_labs_behind_it(tmp_path):
    code = (
        "from miniquant.lab import find\n"
        "find('magic_bytes')\n"
        "found = {name.split('.')[2] for name in sys.modules if name.count('.') == 3 and '.lessons.' in name}\n"
        "print(found - {'shared'})\n"
    )
    assert run(code, tmp_path).strip() == "{'five_minutes'}"


TORCH = {"kept_bytes"}  # exercises whose solution itself works on tensors of torch


def test_only_lessons_whose_solution_works_on_torch_s_tensors_need_torch_to_be_imported(tmp_path):
    """Elsewhere torch is imported when a case needs it. It is not there in a reader's browser."""
    code = (
        "from miniquant.lab import exercises\n"
        "for name in exercises():\n"
        "    try:\n"
        "        exercises()[name]\n"
        "    except ModuleNotFoundError:\n"
        "        print(name)\n"
    )
    assert set(run(code, tmp_path).split()) == TORCH


@pytest.mark.parametrize("subject", COURSE)
def test_a_lab_s_lessons_import_no_other_lab(subject):
    folder = ROOT / "src" / "miniquant" / "lessons" / subject
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                assert (node.module or "").split(".")[0] == "shared", f"{path.name} imports {node.module}"
