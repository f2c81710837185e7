"""Results as they come: a line of JSON for each student, so that a grading can stop, go on and be split."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from ...core.errors import MiniquantError, WriteError
from .results import Result


def read_rows(path: Path) -> dict[str, Result]:
    """Student -> result. A last line that was cut, as by a crash, is left out.

    Raises ``MiniquantError`` for a file that holds anything else.
    """
    found: dict[str, Result] = {}
    *lines, _ = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            result = Result.of_row(json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise MiniquantError(f"{path}: line {number} is no result of a grading ({error})") from None
        found[result.student] = result
    return found


def merge(paths: Iterable[Path]) -> list[Result]:
    """The results of several files, by the names of the students.

    Raises ``MiniquantError`` if two files have different results of one student, or were graded with different seeds.
    """
    found: dict[str, Result] = {}
    for path in paths:
        for student, result in read_rows(path).items():
            if found.setdefault(student, result) != result:
                raise MiniquantError(f"{path}: {student} was graded twice, with different results")
    if len(seeds := {result.seed for result in found.values()}) > 1:
        raise MiniquantError(f"the files were graded with different seeds ({seeds}); use one --seed for all parts")
    return [found[student] for student in sorted(found)]


class RowsOnDisk:
    """A file of rows that is being written; each is on the disk before the next notebook is graded."""

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self.path = path
        self.done = read_rows(path) if resume and path.exists() else {}
        try:
            self.file: BinaryIO = path.open("wb")
        except OSError as error:
            raise WriteError(f"cannot write {path}: {error.strerror}; give another name") from None
        for result in self.done.values():
            self.add(result)

    def add(self, result: Result) -> None:
        """Write one row."""
        self.file.write(json.dumps(result.row()).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def close(self) -> None:
        """Close the file."""
        self.file.close()
