"""``make notebooks``: run the solved labs, and derive the labs that students get from them.

``solutions/NN-name.ipynb`` is the only source. In it,
  * ``### BEGIN SOLUTION`` / ``### END SOLUTION`` mark what a student writes;
  * a cell with the metadata ``{"miniquant": {"exercise": NAME, "part": "goal" | "stub" | "check" | "help"}}`` is filled
    in from the exercise's lesson, so its solution, hints and diagnoses stand in one place;
  * the paragraph **Time.** of the first cell is computed from the words and the exercises.
``notebooks/NN-name.ipynb`` is the same without the solutions. Both are executed and their outputs stored.

    python tools/notebooks.py [--check | --keep-outputs] [LAB ...]

With ``--check`` nothing is executed or written: it fails if a stored notebook differs from what would be derived.
With ``--keep-outputs`` nothing is executed: the stored outputs stay, for changes that cannot alter them.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from miniquant.lab import exercises, find
from miniquant.lab.authoring.cells import exercise_of, grading_metadata, source_of
from miniquant.lab.authoring.reading import time_of, with_time

sys.modules.setdefault("rfc3987_syntax", None)  # tools/without_iri.py says why

import nbformat  # noqa: E402
from nbclient import NotebookClient  # noqa: E402
from nbformat import NotebookNode  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS, NOTEBOOKS = ROOT / "solutions", ROOT / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def solved(path: Path) -> NotebookNode:
    """The solved lab with its exercise blocks filled in, solution cells folded, and metadata in one form."""
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata.pop("lines_to_next_cell", None)  # an editor's note
        cell.metadata.pop("nbgrader", None)
        if cell.cell_type == "code" and (belongs := exercise_of(cell.source)):
            cell.metadata["miniquant"] = dict(zip(("exercise", "part"), belongs))
        if place := cell.metadata.get("miniquant"):
            spec, part = find(place["exercise"]), place["part"]
            cell.source = source_of(part, spec, path.name)
            if cell.cell_type == "code":
                cell.metadata["nbgrader"] = grading_metadata(spec.name, part)
        if cell.cell_type == "code":
            tags = set(cell.metadata.get("tags", [])) - {"hide-input"}
            if "### BEGIN SOLUTION" in cell.source:
                tags.add("hide-input")
            _set_tags(cell, tags)
    minutes = {name: exercises()[name].minutes for name in exercises() if exercises().lab_of(name) == path.name[:2]}
    first = notebook.cells[0]
    first.source = with_time(first.source, time_of(notebook.cells, minutes))
    return notebook


def student(source: NotebookNode) -> NotebookNode:
    """The same lab with every solution replaced by ``raise NotImplementedError``, and no outputs."""
    from nbgrader.preprocessors import ClearSolutions

    notebook = copy.deepcopy(source)
    clear = ClearSolutions(enforce_metadata=False, code_stub={"python": "raise NotImplementedError"})
    notebook, _ = clear.preprocess(notebook, {})
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            _set_tags(cell, set(cell.metadata.get("tags", [])) - {"hide-input"})
    return notebook


def execute(notebook: NotebookNode, target: Path) -> NotebookNode:
    """Run every cell in the folder of ``target``, as a student and nbval would; an error stops with its cell."""
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(target.parent)}},
    )
    client.execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    return notebook


def with_stored_outputs(notebook: NotebookNode, target: Path) -> NotebookNode:
    """The notebook with the outputs that the cells of ``target`` have now, by their ids."""
    stored = {cell.id: cell for cell in nbformat.read(target, as_version=4).cells if cell.cell_type == "code"}
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.id in stored:
            cell.outputs, cell.execution_count = stored[cell.id].outputs, stored[cell.id].execution_count
    return notebook


def skeleton(notebook: NotebookNode) -> list[tuple[str, str, str, str]]:
    """What must be equal between a stored notebook and its regeneration: everything except outputs."""
    return [(c.id, c.cell_type, c.source, json.dumps(c.metadata, sort_keys=True)) for c in notebook.cells]


def chosen(labs: Sequence[str] = ()) -> list[Path]:
    """The solved notebooks whose names begin with one of the numbers; all of them if none is given."""
    return [p for p in sorted(SOLUTIONS.glob("[0-9]*.ipynb")) if not labs or p.name.startswith(tuple(labs))]


def differences(labs: Sequence[str] = ()) -> list[str]:
    """The stored notebooks that are not what the sources give, one line each."""
    wrong = []
    for path in chosen(labs):
        fresh = solved(path)
        for target, expected in ((path, fresh), (NOTEBOOKS / path.name, student(fresh))):
            name = target.relative_to(ROOT)
            if not target.exists():
                wrong.append(f"{name} is missing; run make notebooks")
            elif skeleton(nbformat.read(target, as_version=4)) != skeleton(expected):
                wrong.append(f"{name} differs from its regeneration; edit solutions/ and run make notebooks")
    known = {p.name for p in SOLUTIONS.glob("*.ipynb")}
    wrong += [
        f"notebooks/{p.name} has no source in solutions/" for p in NOTEBOOKS.glob("*.ipynb") if p.name not in known
    ]
    return wrong


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only; write nothing")
    parser.add_argument("--keep-outputs", action="store_true", help="execute nothing; keep the stored outputs")
    parser.add_argument("labs", nargs="*", help="numbers such as 06; all by default")
    options = parser.parse_args()
    if options.check:
        wrong = differences(options.labs)
        print("\n".join(wrong) or "every notebook is what its source gives")
        return bool(wrong)
    os.environ["MINIQUANT_PROGRESS"] = os.devnull
    os.environ.pop("MPLBACKEND", None)  # the kernel draws by itself; another backend would store no image
    bar = tqdm(chosen(options.labs), desc="notebooks", unit="lab")
    for path in bar:
        bar.set_postfix_str(path.stem)
        fresh = solved(path)
        derived = student(fresh)
        for notebook, folder in ((fresh, SOLUTIONS), (derived, NOTEBOOKS)):
            run = with_stored_outputs if options.keep_outputs else execute
            nbformat.write(run(notebook, folder / path.name), folder / path.name)
    return 0


def _set_tags(cell: NotebookNode, tags: set[str]) -> None:
    if tags:
        cell.metadata["tags"] = sorted(tags)
    else:
        cell.metadata.pop("tags", None)


if __name__ == "__main__":
    sys.exit(main())
