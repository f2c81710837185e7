"""Labs 00 and 01 need numpy alone: no torch, no tokenizer, no plot."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from PIL import Image
from places import ROOT
from safetensors.numpy import load_file

from miniquant.lessons import COURSE
from miniquant.lessons.bytes.png_size import png_size

ASSETS = ROOT / "src" / "miniquant" / "assets"

BLOCKED = "import sys; sys.modules.update(dict.fromkeys(['torch', 'tokenizers', 'safetensors', 'matplotlib']))\n"


def run(code: str, folder: Path) -> str:
    """What a fresh interpreter prints in which the heavy packages cannot be imported."""
    done = subprocess.run([sys.executable, "-c", BLOCKED + code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("subject", ["five_minutes", "bytes"])
def test_the_checks_of_the_first_labs_run_where_torch_cannot_be_imported(subject, tmp_path):
    code = (
        "from miniquant.lab import evaluate, exercises\n"
        f"for spec in exercises().of_lab({subject!r}):\n"
        "    print(evaluate(spec, spec.reference).status)\n"
    )
    statuses = run(code, tmp_path).split()
    assert len(statuses) >= 3 and set(statuses) == {"passed"}


@pytest.mark.parametrize("folder", ["solutions", "notebooks"])
@pytest.mark.parametrize("lab", ["00-five-minutes", "01-bytes"])
def test_the_first_labs_run_solved_and_unsolved_where_torch_cannot_be_imported(lab, folder, tmp_path):
    notebook = nbformat.read(ROOT / folder / f"{lab}.ipynb", as_version=4)
    run("\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code"), tmp_path)
    if lab == "00-five-minutes":
        assert (tmp_path / "workspace/00-first.bin").read_bytes() == bytes.fromhex("54464c4701000000")
        return
    tensors = load_file(ASSETS / "minigpt.safetensors")
    with Image.open(tmp_path / "workspace/01-positions.png") as picture:  # a program that others wrote reads it
        pixels = np.asarray(picture)
    grey = 128 + 1500 * tensors["pos_emb.weight"].astype(np.float16).astype(np.float32)
    assert np.array_equal(pixels, np.clip(grey, 0, 255).astype(np.uint8))


def test_png_size_agrees_with_another_reader_of_pictures(tmp_path):
    for width, height in ((1, 1), (300, 2), (7, 70_000)):
        Image.new("L", (width, height)).save(tmp_path / "picture.png")
        assert png_size((tmp_path / "picture.png").read_bytes()) == (width, height)


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


NEEDS = {
    "writer": {"shared", "container"},  # a whole file is written by the functions of both labs
    "smoothquant": {"shared", "awq"},  # a scale is folded into a norm as in AWQ
}


@pytest.mark.parametrize("subject", COURSE)
def test_a_lab_s_lessons_import_no_other_lab_that_they_do_not_need(subject):
    folder = ROOT / "src" / "miniquant" / "lessons" / subject
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                found = (node.module or "").split(".")[0]
                assert found in NEEDS.get(subject, {"shared"}), f"{path.name} imports {node.module}"
