"""The commands of the course: progress, board and assemble for students, lab for authors."""

from __future__ import annotations

import sys
from pathlib import Path

import click


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
