"""The commands for instructors: ``grade``, ``key`` and ``questions``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from ..core.errors import MiniquantError
from ..core.text import visible


class _Seconds(click.FloatRange):
    """A number of seconds that a computer can wait. ``nan`` passes a plain FloatRange: no comparison is true of it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = super().convert(value, param, ctx)
        return found if found == found else self.fail(f"{value} is no number of seconds.", param, ctx)


class _Shard(click.ParamType[tuple[int, int]]):
    """A part of a whole: ``2/3``."""

    name = "I/N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        part, _, whole = str(value).partition("/")
        if part.isdecimal() and whole.isdecimal() and 1 <= int(part) <= int(whole):
            return int(part), int(whole)
        return self.fail(f"{value!r} is no part such as 2/3.", param, ctx)


SECONDS, MEGABYTES = _Seconds(1, 24 * 60 * 60), click.IntRange(256, 1 << 20)
FORM = click.Choice(["gradescope", "classroom50", "canvas"])


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="FOLDER")
@click.option("--out", type=click.Path(path_type=Path), default=Path("grades"), help="Base name of the results.")
@click.option("--seconds", type=SECONDS, default=120.0, show_default=True, help="Time for one notebook as a whole.")
@click.option("--megabytes", type=MEGABYTES, default=4096, show_default=True, help="Memory for one notebook.")
@click.option("--jobs", type=click.IntRange(1, 1024), default=1, show_default=True, help="Processes that grade.")
@click.option("--resume", is_flag=True, help="Keep the rows that OUT.jsonl has of the same notebooks.")
@click.option("--shard", type=_Shard(), default="1/1", help="Grade the I-th of N parts of the class.")
@click.option("--merge", "merging", is_flag=True, help="Join files of rows (*.jsonl) in place of grading a folder.")
@click.option("--dask", default="", metavar="ADDRESS", help="Grade on the workers of this Dask scheduler.")
@click.option("--form", "forms", multiple=True, type=FORM, help="Write the results in this form, too.")
@click.option("--labs", default="", help="Labs that give points there: 08,09; else all that are answered.")
@click.option("--gradebook", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="An export of Canvas.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Of the random cases; a new one if it is left out.")
@click.option(
    "--wasm", is_flag=False, flag_value="", metavar="[PYODIDE]", help="Run notebooks in WebAssembly, under Node."
)
@click.option("--trust", is_flag=True, help="Grade without walls where this system has none.")
def grade(
    paths: tuple[Path, ...], out: Path, merging: bool, forms: tuple[str, ...], labs: str, gradebook: Path | None,
    **options: Any,
) -> None:  # fmt: skip
    """Grade a FOLDER of submitted notebooks (FOLDER/student/09-writer.ipynb).

    The code of a notebook runs in a process that reads no solution, writes only into a folder that is removed, has no
    network and starts no program. OUT.jsonl gets a row as soon as a student is graded, so stopping with Ctrl-C loses
    none; OUT.csv and OUT.json are written at the end. With --merge, name files of rows in place of a folder.
    """
    from ..lab.grading import grade as grading
    from ..lab.grading import outputs

    table, details = grading.result_paths(out)
    base = table.with_suffix("")
    if merging:
        results = grading.merge(paths)
    elif len(paths) != 1 or not paths[0].is_dir():
        raise click.UsageError("name one folder of notebooks, or files of rows after --merge")
    else:
        results = _graded(paths[0], base, options)
    if not results:
        raise MiniquantError("nobody was graded")
    grading.write_results(results, base)
    for result in results:
        states = Counter(answer["status"] for answer in result.answers.values())
        summary = ", ".join(f"{count} {status}" for status, count in sorted(states.items())) or "no exercise found"
        click.echo(f"{visible(result.student)}: {summary}")
        for problem in [*result.problems, *(f"{name}: {flag}" for name, flag in outputs.flags_of(result).items())]:
            click.echo(f"  {visible(problem)}")
    names = outputs.counted(results, [lab.strip() for lab in labs.split(",") if lab.strip()])
    written = [table, details, *(outputs.write_form(form, results, base, names, gradebook) for form in forms)]
    click.echo(visible(f"wrote {', '.join(map(str, written))}; the seed of the cases is {results[0].seed}"))


def _labs(text: str) -> list[str]:
    """The numbers of labs in ``08,09``. Raises ``MiniquantError`` for one that the course does not have."""
    from ..lab import exercises

    found = [lab.strip().zfill(2) for lab in text.split(",") if lab.strip()]
    known = {exercises().lab_of(name) for name in exercises()}
    if unknown := [lab for lab in found if lab not in known]:
        raise MiniquantError(f"no lab has the number {visible(unknown[0])}; name labs as 08,09")
    return found


@click.command()
@click.argument("labs", default="")
@click.option("--mistakes", type=click.IntRange(0), default=0, help="So many for each exercise; all if left out.")
@click.option(
    "--root", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", help="The checkout."
)
def key(labs: str, mistakes: int, root: Path) -> None:
    """Print the answer key of LABS (08,09), or of all: where each solution is, why it matters, the known mistakes."""
    from ..lab import exercises
    from ..lab.authoring.answer_key import key_of_lab
    from ..lab.authoring.course import all_labs, read_course

    chosen = _labs(labs)
    for lab in all_labs(read_course(root)):
        if not chosen or lab.number in chosen:
            lines = key_of_lab(lab, exercises().of_lab(lab.subject), ".", mistakes)
            click.echo("\n".join([f"# Lab {lab.number}: {lab.title}", "", *lines]))


@click.command()
@click.argument("labs", default="")
@click.option("--each", type=click.IntRange(0), default=0, help="So many for each exercise; all if left out.")
@click.option("--form", type=click.Choice(["markdown", "qti"]), default="markdown", show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file; else questions.md or .zip.")
def questions(labs: str, each: int, form: str, out: Path | None) -> None:
    """Write a bank of questions on LABS (08,09), or on all: a wrong function, and four causes of which one is true.

    The form qti is a package of QTI 2.1. The same labs always give the same file.
    """
    from ..core.files import atomic_write
    from ..lab.authoring.qti import package
    from ..lab.authoring.questions import as_markdown, bank

    found = bank(_labs(labs), each)
    if not found:
        raise MiniquantError("these labs give no question")
    path = out or Path("questions.zip" if form == "qti" else "questions.md")
    with atomic_write(path) as file:
        file.write(package(found) if form == "qti" else as_markdown(found).encode())
    click.echo(visible(f"wrote {path}: {len(found)} questions on {len({q.exercise for q in found})} exercises"))


def _graded(folder: Path, base: Path, options: dict[str, Any]) -> list[Any]:
    """Grade a folder; a row goes to ``base.jsonl`` as soon as it is there."""
    from rich.console import Console
    from rich.progress import Progress

    from ..lab.grading import grade as grading

    part, whole = options["shard"]
    students = len(list(grading.submissions(folder))[part - 1 :: whole])
    rows = grading.RowsOnDisk(base.with_name(f"{base.name}.jsonl"), resume=options.pop("resume"))
    if options["seed"] is None and rows.done:
        options["seed"] = next(iter(rows.done.values())).seed
    done = 0
    try:
        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task("grading", total=students)

            def keep(result: Any) -> None:
                nonlocal done
                rows.add(result)
                done += 1
                bar.update(task, advance=1)

            return grading.grade(folder, keep=keep, done=rows.done, **options)
    except KeyboardInterrupt:
        graded = (
            f"{rows.path} holds the {done} students graded so far; --resume goes on" if done else "nobody is graded"
        )
        click.echo(f"stopped; {visible(graded)}", err=True)
        raise
    finally:
        rows.close()
