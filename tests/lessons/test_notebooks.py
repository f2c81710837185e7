"""The labs as files: derived, executed, complete, and without a solution in a student's copy."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import nbformat
import pytest
from places import ROOT

import notebooks as tool
from miniquant.lab import exercises
from miniquant.lab.authoring.cells import things

SOLVED = sorted((ROOT / "solutions").glob("[0-9]*.ipynb"))
STUDENT = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
every_lab = pytest.mark.parametrize("path", SOLVED + STUDENT, ids=lambda p: f"{p.parent.name}/{p.stem}")
every_student_lab = pytest.mark.parametrize("path", STUDENT, ids=lambda p: p.stem)
STUB_LINE = re.compile(r"^\s*(raise NotImplementedError|return|pass|else:|try:|\W*)\s*$")


@functools.cache
def read(path: Path) -> nbformat.NotebookNode:
    """A notebook, read once for all tests: not to be changed where it is not a copy of one test's own."""
    return nbformat.read(path, as_version=4)


def solution_lines(source: str) -> list[str]:
    """The lines between the marks that are particular enough to be recognised elsewhere."""
    regions = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", source, re.S)
    lines = [line.strip() for region in regions for line in region.splitlines()]
    return [line for line in lines if len(line) > 12 and not STUB_LINE.match(line) and not line.startswith("#")]


def test_every_stored_notebook_is_what_its_source_gives():
    assert tool.differences() == []


@pytest.fixture
def one_lab(tmp_path, monkeypatch):
    """A checkout with lab 00 alone, and the tool at work there."""
    for folder in ("solutions", "notebooks"):
        (tmp_path / folder).mkdir()
        name = SOLVED[0].name
        (tmp_path / folder / name).write_bytes((ROOT / folder / name).read_bytes())
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "SOLUTIONS", tmp_path / "solutions")
    monkeypatch.setattr(tool, "NOTEBOOKS", tmp_path / "notebooks")
    assert tool.differences() == []
    return tmp_path


@pytest.mark.parametrize("folder", ["notebooks", "solutions"])
@pytest.mark.parametrize("cell", [0, -1])
def test_a_changed_cell_is_noticed(one_lab, folder, cell):
    path = one_lab / folder / SOLVED[0].name
    changed = read(path)
    changed.cells[cell].source += " # changed"
    nbformat.write(changed, path)
    assert tool.differences() == [
        f"notebooks/{path.name} differs from its regeneration; edit solutions/ and run make notebooks"
    ]


def test_a_changed_exercise_cell_of_a_solved_notebook_is_noticed(one_lab):
    path = one_lab / "solutions" / SOLVED[0].name
    changed = read(path)
    next(c for c in changed.cells if c.metadata.get("miniquant", {}).get("part") == "stub").source += "\n    pass"
    nbformat.write(changed, path)
    assert f"solutions/{path.name} differs" in tool.differences()[0]


def test_a_student_notebook_that_is_missing_or_has_no_source_is_noticed(one_lab):
    path = one_lab / "notebooks" / SOLVED[0].name
    path.rename(path.with_name("99-other.ipynb"))
    missing, extra = tool.differences()
    assert missing == f"notebooks/{path.name} is missing; run make notebooks"
    assert extra == "notebooks/99-other.ipynb has no source in solutions/"


@every_student_lab
def test_no_solution_line_leaks_into_a_student_notebook(path):
    """A line of a solution may stand in a student's copy only if the lab itself shows it outside every solution."""
    solved_cells = read(ROOT / "solutions" / path.name).cells
    shown = "\n".join(
        re.sub(r"### BEGIN SOLUTION\n.*?### END SOLUTION", "", c.source, flags=re.S) for c in solved_cells
    )
    shown_lines = {line.strip() for line in shown.splitlines()}
    student = read(path)
    code = {line.strip() for c in student.cells if c.cell_type == "code" for line in c.source.splitlines()}
    for cell in solved_cells:
        for line in solution_lines(cell.source):
            assert line not in code - shown_lines, f"{path.name} shows the solution line {line!r}"
    assert "BEGIN SOLUTION" not in "\n".join(c.source for c in student.cells)


@every_lab
def test_every_code_cell_was_executed_without_an_error(path):
    """nbval never compares a cell that was not executed."""
    for cell in read(path).cells:
        if cell.cell_type == "code" and cell.source.strip():
            assert cell.execution_count is not None, cell.source
            assert not [o for o in cell.outputs if o.output_type == "error"], cell.source


@every_lab
def test_every_exercise_block_has_all_its_parts_in_order(path):
    cells = read(path).cells
    marks = [tuple(cell.metadata["miniquant"].values()) for cell in cells if "miniquant" in cell.metadata]
    names = [name for name, part in marks if part == "stub"]
    assert marks == [(name, part) for name in names for part in ("goal", "stub", "check", "help")]
    assert names == [name for name in exercises() if exercises().lab_of(name) == path.name[:2]]


@every_lab
def test_the_help_of_an_exercise_is_one_row_of_four_folds_without_a_cure(path):
    for cell in read(path).cells:
        place = cell.metadata.get("miniquant", {})
        if place.get("part") != "help":
            continue
        spec = exercises()[place["exercise"]]
        assert cell.source.startswith('<div class="mq-help"') and cell.source.endswith("\n\n</div>")
        titles = re.findall(r"<summary>(.*)</summary>\n\n", cell.source)  # the blank line lets Markdown read the text
        assert titles == ["Hint 1", "Hint 2", things(len(spec.mistakes)), "Solution"]
        seen = cell.source.split("you may see")[1]
        for mistake in spec.mistakes:
            assert f"* {mistake.see}: *{mistake.name}*\n" in seen
            assert mistake.cure not in seen


@every_lab
def test_no_line_of_code_is_longer_than_a_page_is_wide(path):
    """A page shows 76 letters. A solution has the layout of its lesson; it is folded, and wraps."""
    code = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "code")
    shown = re.sub(r"### BEGIN SOLUTION\n.*?### END SOLUTION", "", code, flags=re.S)
    assert [line for line in shown.splitlines() if len(line) > 76] == []


@every_lab
def test_every_picture_has_alternative_text(path):
    for cell in read(path).cells:
        if cell.cell_type == "code" and any(
            {"image/png", "image/svg+xml"} & o.get("data", {}).keys() for o in cell.outputs
        ):
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            assert len(alt) > 20, f"no alt text for the picture of: {cell.source[:80]}"


@every_lab
def test_a_lab_begins_with_its_title_and_ends_with_what_was_learned(path):
    prose = [c.source for c in read(path).cells if c.cell_type == "markdown"]
    assert prose[0].startswith(f"# Lab {path.name[:2]}")
    assert any("What you learned" in source for source in prose[-3:])


def test_few_cells_are_exempt_from_comparison():
    """Figures are exempt by nature (PNG is not compared); a cell that opts out needs a reason."""
    tags = {"nbval-ignore-output", "nbval-skip", "raises-exception"}
    exempt = [
        f"{path.parent.name}/{path.stem}: {cell.source[:60]!r}"
        for path in SOLVED + STUDENT
        for cell in read(path).cells
        if tags & set(cell.metadata.get("tags", [])) or "NBVAL_" in cell.source
    ]
    print(f"{len(exempt)} cells are exempt from comparison", *exempt, sep="\n")
    assert len(exempt) <= 4


def test_solved_labs_pass_and_student_labs_are_not_attempted():
    for path in SOLVED + STUDENT:
        wanted = "✓ passed" if path.parent.name == "solutions" else "○ not attempted yet"
        for cell in read(path).cells:
            if re.match(r"check\(\w+\)$", cell.source.strip()):
                text = cell.outputs[0]["data"]["text/plain"]
                assert text.startswith(wanted), f"{path.name}: {text}"


@every_lab
def test_every_figure_is_stored_with_its_image(path):
    for cell in read(path).cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if data.get("text/plain", "").startswith("<Figure size"):
                assert "image/png" in data, f"{cell.id} shows only the text of a figure"
