"""The commands of the course: progress, board and assemble for students, grade for instructors, lab for authors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..core.text import visible


class _Seconds(click.FloatRange):
    """A number of seconds that a computer can wait. ``nan`` passes a plain FloatRange: no comparison is true of it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = super().convert(value, param, ctx)
        return found if found == found else self.fail(f"{value} is no number of seconds.", param, ctx)


SECONDS, MEGABYTES = _Seconds(1, 24 * 60 * 60), click.IntRange(256, 1 << 20)


@click.command()
def progress() -> None:
    """Show which exercises are done."""
    from ..lab import progress as read

    click.echo(repr(read()))


@click.command()
@click.argument("exercise", required=False)
def board(exercise: str | None) -> None:
    """Show your best figures in the open exercises, beside the reference's and llama.cpp's; of one EXERCISE, or of all.

    The figures of the others are measured now: that takes some seconds for each exercise.
    """
    from ..lab import board as shown
    from ..lab.contest import open_exercises

    for number, name in enumerate([exercise] if exercise else open_exercises()):
        click.echo(("\n" if number else "") + repr(shown(name)))


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("grades"), help="Base name of the CSV and JSON.")
@click.option("--seconds", type=SECONDS, default=120.0, show_default=True, help="Time for one notebook as a whole.")
@click.option("--megabytes", type=MEGABYTES, default=4096, show_default=True, help="Memory for one notebook.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Of the random cases; a new one if it is left out.")
@click.option("--trust", is_flag=True, help="Grade without walls where this system has none.")
def grade(folder: Path, out: Path, seconds: float, megabytes: int, seed: int | None, trust: bool) -> None:
    """Grade a FOLDER of submitted notebooks (FOLDER/student/09-writer.ipynb).

    The code of a notebook runs in a process that reads no solution, writes only into a folder that is removed, has no
    network and starts no program. The results are written after each notebook, so stopping with Ctrl-C loses none.
    """
    from collections import Counter

    from rich.console import Console
    from rich.progress import track

    from ..lab.grading import grade as grading

    seed = grading.new_seed() if seed is None else seed
    console = Console(stderr=True)
    table, details = grading.result_paths(out)
    kept: list[grading.Result] = []

    def bar(items: Any, count: int) -> Any:
        return track(items, "grading", total=count, console=console)

    def keep(results: list[grading.Result]) -> None:
        kept[:] = results
        grading.write_results(results, out, seed)

    try:
        grading.grade(folder, seconds, megabytes, bar, keep, seed=seed, trust=trust)
    except KeyboardInterrupt:
        graded = f"{table} and {details} hold the {len(kept)} students graded so far" if kept else "nothing is graded"
        click.echo(f"stopped; {visible(graded)}", err=True)
        raise
    for result in kept:
        states = Counter(answer["status"] for answer in result.answers.values())
        summary = ", ".join(f"{count} {status}" for status, count in sorted(states.items())) or "no exercise found"
        click.echo(f"{visible(result.student)}: {summary}")
        for problem in result.problems:
            click.echo(f"  {visible(problem)}")
    click.echo(visible(f"wrote {table} and {details}; the seed of the cases is {seed}"))


@click.command()
@click.argument("notebooks", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="The folder to write.")
def assemble(notebooks: Path, out: Path | None) -> None:
    """Put your functions of labs 08 to 13 into a folder that runs, and test them there.

    NOTEBOOKS is the folder with your notebooks, by default this one. What is written is
    workspace/26-gguf-export beside the notebooks. It gets gguf_io.py, export.py, load.py, verify.py, the
    assignment's tests, manifest.json, README.md and the form of PHASE_26_REPORT.md. What you have changed in it stays.
    Exit code 1: a test fails.
    """
    from ..lab.assembly import assemble as put_together

    found = put_together(notebooks, out or notebooks / "workspace" / "26-gguf-export")
    click.echo(repr(found))
    sys.exit(not found.passed)


@click.group()
def lab() -> None:
    """For authors of labs: add an exercise, check the exercises of a lab."""


@lab.command(name="new")
@click.argument("subject")
@click.argument("name")
@click.option(
    "--root", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", help="The checkout."
)
def new_exercise(subject: str, name: str, root: Path) -> None:
    """Add an exercise NAME that runs to the lab SUBJECT; a SUBJECT that is new becomes the last lab."""
    from ..lab.authoring.new import new_exercise as write

    for path in write(subject, name, root):
        click.echo(f"wrote {path}")
    click.echo(f"next: miniquant lab check {subject} {name}, then make notebooks")


@lab.command(name="check")
@click.argument("subject")
@click.argument("names", nargs=-1)
def check_lab(subject: str, names: tuple[str, ...]) -> None:
    """Check starters, solutions and mistakes of the lab SUBJECT; exit with 1 if something is wrong."""
    from ..lab import exercises
    from ..lab.authoring.checks import problems

    found = 0
    for spec in exercises().of_lab(subject):
        if names and spec.name not in names:
            continue
        wrong = problems(spec)
        found += len(wrong)
        click.echo(
            f"{spec.name}: {len(spec.mistakes)} mistakes, " + ("right" if not wrong else f"{len(wrong)} problems")
        )
        for problem in wrong:
            click.echo(f"  {problem}")
    sys.exit(bool(found))


@lab.command(name="api")
@click.argument("subject", required=False)
@click.option("--missing", is_flag=True, help="Only what nothing introduces before the stub.")
@click.option(
    "--root", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", help="The checkout."
)
def api_of_lab(subject: str | None, missing: bool, root: Path) -> None:
    """Show the API that each solution uses, and where the course introduced it: the lab and its cell.

    Without SUBJECT all labs. Exit code 1 if something is introduced nowhere before its stub.
    """
    from ..lab import exercises
    from ..lab.authoring import api

    names = [spec.name for spec in exercises().of_lab(subject)] if subject else list(exercises())
    found = [use for use in api.taught(root) if use.exercise in names]
    for number, name, line in api.table([use for use in found if not (missing and use.place)]):
        click.echo(f"{number} {name}: {line}")
    sys.exit(any(use.place is None for use in found))
