"""A grader as a process of its own: a student's notebooks come as a line of JSON, and the row goes back as one.

    python -m miniquant.lab.grading.worker

It ends when its input does.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import sys
from typing import Any

from .judge import Desk, grade_bytes
from .results import Result

FOLDER = "miniquant-grader-"
Task = dict[str, Any]


def grade_task(task: Task, desk: Desk) -> Result:
    """The result of one student. The task has the names and the bytes of the notebooks, or why they cannot be read."""
    result = Result(task["student"], seed=desk.seed)
    for notebook in task["notebooks"]:
        if "problem" in notebook:
            result.note(notebook["problem"])
            continue
        data = base64.b64decode(notebook["data"])
        result.notebooks[notebook["path"]] = hashlib.sha256(data).hexdigest()
        grade_bytes(notebook["path"].rpartition("/")[2], data, result, desk, task["seconds"])
    return result


def main() -> None:
    """The command line; see the module's text."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a lesson prints is no answer
    desk: Desk | None = None
    try:
        for line in sys.stdin.buffer:
            task = json.loads(line)
            desk = desk or Desk(task["seed"], task["megabytes"], task["trust"], task["wasm"])
            answers.write(json.dumps(grade_task(task, desk).row()).encode() + b"\n")
            answers.flush()
    finally:
        if desk:
            desk.close()
        folder = os.environ.get("TMPDIR", "")
        if os.path.basename(folder).startswith(FOLDER):  # its own; whoever started it may have been killed
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
