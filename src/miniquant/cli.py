"""The command line: ``miniquant progress`` for students, ``miniquant grade FOLDER`` for instructors."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click

from . import __version__
from .errors import MiniquantError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="miniquant")
def main() -> None:
    """Tools of the miniquant lab."""


@main.command()
def progress() -> None:
    """Show which exercises are done."""
    from .lab import progress as read

    click.echo(repr(read()))


@main.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("grades"), help="base name of the CSV and JSON.")
@click.option("--seconds", default=120.0, show_default=True, help="time for one notebook.")
@click.option("--megabytes", default=4096, show_default=True, help="memory for one notebook.")
def grade(folder: Path, out: Path, seconds: float, megabytes: int) -> None:
    """Grade a FOLDER of submitted notebooks (FOLDER/student/06-writer.ipynb)."""
    from rich.console import Console
    from rich.progress import track

    from .lab.grade import grade as run
    from .lab.grade import write_results

    console = Console(stderr=True)

    def bar(items, count):
        return track(items, "grading", total=count, console=console)

    results = run(folder, seconds, megabytes, bar)
    table, details = write_results(results, out)
    for result in results:
        states = Counter(answer["status"] for answer in result.answers.values())
        summary = ", ".join(f"{count} {status}" for status, count in sorted(states.items())) or "no exercise found"
        click.echo(f"{result.student}: {summary}" + "".join(f"\n  {problem}" for problem in result.problems))
    click.echo(f"wrote {table} and {details}")


def run() -> None:
    """The entry point: a known error is one line and exit code 1, never a traceback."""
    try:
        main(standalone_mode=True)
    except (MiniquantError, OSError) as error:
        click.echo(f"miniquant: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    run()
