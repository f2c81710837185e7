"""What a student has done so far: one small JSON file in the folder of the notebooks.

Several notebooks may write at once. A writer holds a lock from reading the file to replacing it, so that no entry is
lost, and replaces the file as a whole, so that a reader never sees half of one.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NotRequired, TypedDict

from ..core.files import atomic_write

NAME = ".miniquant-progress.json"
STATES = ("passed", "failed")
PATIENCE = 30.0  # seconds to wait for other notebooks; after that the write goes ahead without the lock


class Entry(TypedDict):
    """One exercise: ``status`` is "passed" or "failed", ``checks`` counts how often it was checked.

    ``best`` is the best figure so far, of an open exercise.
    """

    status: str
    checks: int
    best: NotRequired[float]


def path() -> Path:
    """The record's place: ``MINIQUANT_PROGRESS`` if it is set, else the working folder, or its ``notebooks``."""
    if os.environ.get("MINIQUANT_PROGRESS"):
        return Path(os.environ["MINIQUANT_PROGRESS"])
    here = Path.cwd()
    return here / "notebooks" / NAME if (here / "notebooks").is_dir() else here / NAME


def read() -> dict[str, Entry]:
    """Exercise name -> entry; empty if there is no record, or it cannot be read. An entry that is none is left out."""
    try:
        found = json.loads(path().read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    entries = {name: _entry(value) for name, value in found.items()}
    return {name: entry for name, entry in entries.items() if entry}


def _entry(value: object) -> Entry | None:
    if not isinstance(value, dict):
        return None
    status, checks, best = value.get("status"), value.get("checks"), value.get("best")
    if status not in STATES or type(checks) is not int:
        return None
    entry = Entry(status=status, checks=checks)
    if isinstance(best, float | int) and math.isfinite(best):
        entry["best"] = float(best)
    return entry


def write(exercise: str, status: str, figure: float | None = None, *, lower_is_better: bool = True) -> None:
    """Add one check. An exercise once passed stays passed, and of an open one the best figure is kept.

    A folder that cannot be written to is no error.
    """
    place = path()
    if status not in STATES or (place.exists() and not place.is_file()):  # MINIQUANT_PROGRESS=/dev/null: no record
        return
    with contextlib.suppress(OSError), _lock(place):
        done = read()
        entry = done.setdefault(exercise, Entry(status=status, checks=0))
        entry["checks"] += 1
        entry["status"] = "passed" if "passed" in (entry["status"], status) else status
        if figure is not None and math.isfinite(figure):
            choose = min if lower_is_better else max
            entry["best"] = choose(entry.get("best", figure), figure)
        text = json.dumps(done, indent=1, sort_keys=True) + "\n"
        with atomic_write(place) as file:
            file.write(text.encode("utf-8"))


@contextlib.contextmanager
def _lock(place: Path) -> Iterator[None]:
    """Keep other writers out. The operating system takes the lock back from a process that dies.

    Raises ``OSError`` if the folder cannot be written to.
    """
    with open(place.with_name(place.name + ".lock"), "a+b") as file:
        until = time.monotonic() + PATIENCE
        take = _how_to_lock()
        while time.monotonic() < until:
            try:
                take(file.fileno())
                break
            except BlockingIOError:
                time.sleep(0.005)
            except OSError:  # a file system without locks
                break
        yield


def _how_to_lock() -> Callable[[int], None]:
    """Lock an open file without waiting; ``BlockingIOError`` if another process holds the lock."""
    try:
        import fcntl
    except ImportError:
        return _lock_on_windows
    return lambda handle: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_on_windows(handle: int) -> None:
    import msvcrt

    try:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except PermissionError as error:
        raise BlockingIOError from error
