"""Try a reader on the files of a folder: one process a file, with a time limit."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .compare import compared, difference
from .suite import EITHER, READ

SECONDS = 10.0
NOT_MINE = 3  # the exit code of a reader that has nothing to do with this kind of file
RIGHT_VALUES, RIGHT_REFUSAL = "right values", "right refusal"
WRONG_VALUES, WRONG_REFUSAL, WRONG_ACCEPTANCE = "wrong values", "wrong refusal", "wrong acceptance"
CRASH, TOO_SLOW, NOT_APPLICABLE = "crash", "too slow", "not applicable"
OUTCOMES = (RIGHT_VALUES, RIGHT_REFUSAL, WRONG_VALUES, WRONG_REFUSAL, WRONG_ACCEPTANCE, CRASH, TOO_SLOW, NOT_APPLICABLE)
GOOD = {RIGHT_VALUES, RIGHT_REFUSAL, NOT_APPLICABLE}


class Said(NamedTuple):
    """The exit code of a reader, or ``None`` if it was stopped; what it printed; its last line on stderr."""

    code: int | None
    output: bytes = b""
    complaint: str = ""


class Outcome(NamedTuple):
    """One of ``OUTCOMES``, a detail in words, and which parts of a valid file were compared."""

    outcome: str
    detail: str = ""
    parts: tuple[str, ...] = ()


def ask(command: Sequence[str], path: Path, seconds: float = SECONDS) -> Said:
    """Run a reader on a file. It is stopped, with every process that it started, when its time is over."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        own = {"start_new_session": True} if os.name == "posix" else {}
        process = subprocess.Popen([*command, str(path)], stdout=output, stderr=errors, stdin=subprocess.DEVNULL, **own)
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
        output.seek(0)
        errors.seek(0)
        lines = errors.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        complaint = lines[-1].replace(str(path), path.name) if lines else ""
        return Said(code, output.read(1 << 26), complaint[:200])


def judge(entry: dict[str, Any], said: Said) -> Outcome:
    """What became of one file."""
    if said.code is None:
        return Outcome(TOO_SLOW, "it was stopped")
    if said.code == NOT_MINE:
        return Outcome(NOT_APPLICABLE, said.complaint)
    if said.code < 0 or said.code >= 128:  # a signal, or the shell's number for one, or a code of Windows
        return Outcome(CRASH, f"exit code {said.code}")
    if said.code:
        return Outcome(WRONG_REFUSAL if entry["verdict"] == READ else RIGHT_REFUSAL, said.complaint)
    if entry["verdict"] == EITHER:
        return Outcome(RIGHT_VALUES, "a file that may be read and may be refused")
    if entry["verdict"] != READ:
        return Outcome(WRONG_ACCEPTANCE)
    try:
        printed = json.loads(said.output)
    except ValueError:
        printed = None
    if wrong := difference(entry["format"], entry["expected"], printed):
        return Outcome(WRONG_VALUES, wrong)
    return Outcome(RIGHT_VALUES, "", tuple(compared(printed)))


def try_all(
    entries: Iterable[dict[str, Any]], reader: Callable[[str], Said], show: Callable[[str], None] = lambda _: None
) -> dict[str, Outcome]:
    """Path -> outcome; ``reader`` gets the path in the folder."""
    found = {}
    for entry in entries:
        found[entry["path"]] = judge(entry, reader(entry["path"]))
        show(entry["path"])
    return found


def command_of(text: str) -> list[str]:
    """The words of a command, as a shell would split them."""
    return shlex.split(text, posix=os.name == "posix")


def report(entries: list[dict[str, Any]], found: dict[str, Outcome]) -> list[str]:
    """Lines to print: what was not right, file by file, and the counts of each format."""
    lines = [
        f"{outcome.outcome}: {path}{': ' if outcome.detail else ''}{outcome.detail}"
        for path, outcome in found.items()
        if outcome.outcome not in GOOD
    ]
    for kind in dict.fromkeys(entry["format"] for entry in entries):
        counts = Counter(found[entry["path"]].outcome for entry in entries if entry["format"] == kind)
        lines.append(f"{kind}: " + ", ".join(f"{counts[each]} {each}" for each in OUTCOMES if counts[each]))
    return lines
