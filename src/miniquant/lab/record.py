"""What a student has done so far: one small JSON file in the folder of the notebooks."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

NAME = ".miniquant-progress.json"


def path() -> Path:
    """The record's place: ``MINIQUANT_PROGRESS`` if it is set, else the working folder, or its ``notebooks``."""
    if os.environ.get("MINIQUANT_PROGRESS"):
        return Path(os.environ["MINIQUANT_PROGRESS"])
    here = Path.cwd()
    return here / "notebooks" / NAME if (here / "notebooks").is_dir() else here / NAME


def read() -> dict[str, dict[str, object]]:
    """Exercise name -> {"status", "checks"}; empty if there is no record, or it cannot be read."""
    try:
        found = json.loads(path().read_text("utf-8"))
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def write(exercise: str, status: str) -> None:
    """Add one check. An exercise once passed stays passed. A folder that cannot be written to is no error."""
    if status == "not attempted":
        return
    done = read()
    entry = done.setdefault(exercise, {"status": "failed", "checks": 0})
    entry["checks"] = int(entry.get("checks", 0)) + 1
    entry["status"] = "passed" if "passed" in (entry.get("status"), status) else status
    with contextlib.suppress(OSError):
        path().write_text(json.dumps(done, indent=1, sort_keys=True) + "\n", "utf-8")
