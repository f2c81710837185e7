"""What the command line prints on: streams, JSON, tables, a progress bar."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from ..core.text import visible


def open_streams() -> None:
    """A closed stream swallows what is printed; a letter that a terminal's encoding lacks is escaped."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # each takes the lowest free number, its own
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 open as long as the program runs
        elif mode == "w" and hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="backslashreplace")


def print_json(value: Any) -> None:
    """A value as JSON; the numbers that JSON lacks are the texts "NaN", "Infinity" and "-Infinity"."""
    plain = "utf" not in (getattr(sys.stdout, "encoding", None) or "utf").lower()
    text = json.dumps(_as_json(value), indent=1, ensure_ascii=plain, allow_nan=False)
    click.echo("\n".join(map(visible, text.split("\n"))))


def _as_json(value: Any) -> Any:
    """A value with texts in the place of the numbers that JSON lacks."""
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    return value


def print_table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """A rich table on a terminal; plain aligned columns where the output goes to a file or another program."""
    rows = [tuple(map(visible, row)) for row in rows]
    if sys.stdout.isatty():
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*columns, box=box.SIMPLE_HEAD)
        for row in rows:
            table.add_row(*map(Text, row))  # a name in brackets is no markup
        return Console().print(table)
    widths = [max(map(len, cells)) for cells in zip(columns, *rows)]
    for row in (columns, *rows):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


@contextmanager
def late_bar(what: str, unit: str) -> Iterator[Callable[..., None]]:
    """A progress bar on stderr once a second has gone by, if stderr is a terminal.

    Gives a function ``advance(done, total, part="")``. The bar shows ``what``, the part that it is at, and how many
    millions of ``unit`` are done in a second.
    """
    from time import monotonic

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    console, begun = Console(stderr=True), monotonic()
    bars: list[Progress] = []
    with ExitStack() as stack:

        def advance(done: int, total: int, part: str = "") -> None:
            if not bars and console.is_terminal and monotonic() - begun > 1:
                shown, speed = TextColumn("{task.description}"), TextColumn("{task.fields[rate]}")
                columns = (shown, BarColumn(), TaskProgressColumn(), speed, TimeRemainingColumn())
                bars.append(stack.enter_context(Progress(*columns, console=console, transient=True)))
                bars[0].add_task(what, total=total, rate="")
            if bars:
                rate = done / max(monotonic() - begun, 1e-9)
                text = f"{rate / 1e6:.1f} million {unit}/s" if rate >= 1e5 else f"{rate:.3g} {unit}/s"
                name = Text(f"{what} {visible(part)}".strip()).markup
                bars[0].update(bars[0].task_ids[0], completed=done, description=name, rate=text)

        yield advance


def binary_size(size: float) -> str:
    """A size in units of 1024, as C-Kernel-Engine's tool prints it."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} B" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"
