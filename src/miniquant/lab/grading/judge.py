"""Grade one notebook: its process holds the student's code, this one the cases, the oracles and the comparison.

A notebook is run without the library first: whatever passes then was written by the student. An answer that used the
library, or a name of a statement that did, is run again in a process that has it; if it passes there, its row says so.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ...core.errors import MiniquantError
from ..catalogue import exercises
from ..judging import evaluate
from ..limit import TooSlow, time_limit
from ..report import Report
from ..spec import Exercise
from .draw import drawn
from .inside.wire import encode
from .remote import GRACE, Remote, answer, stage_of
from .results import Result
from .room import BARE, FREE, LIBRARY, Gone, Nursery, Room
from .wasm import NO_TORCH, WasmNursery, WasmRoom, needs_torch, pyodide_folder

MOST_SKIPPED = 10_000
MUCH = 1 << 20  # bytes that a notebook may print before its row says so
LARGEST = 64 << 20  # bytes of a notebook
LESSONS = "miniquant.lessons."
THINKING = 20.0  # seconds that the grader may take for the diagnosis of one answer


@dataclass
class Desk:
    """What a grader keeps from notebook to notebook: the seed, and the processes that notebooks are forked from."""

    seed: int
    megabytes: int = 4096
    trust: bool = False
    wasm: str | None = None  # the folder of Pyodide, or "" for where it is looked for; None: the kernel's walls
    nurseries: dict[str, Nursery | WasmNursery] = field(default_factory=dict)

    def nursery(self, how: str) -> Nursery | WasmNursery:
        """The process for notebooks without or with the library.

        Raises ``MiniquantError`` where this system can build no walls, unless the code is trusted.
        """
        if how not in self.nurseries:
            self.nurseries[how] = Nursery(how) if self.wasm is None else WasmNursery(how, pyodide_folder(self.wasm))
        found = self.nurseries[how]
        found.start()
        if found.missing and not self.trust:
            text = f"{found.missing}, so a notebook could do whatever you can; grade in a container or with --wasm"
            raise MiniquantError(f"{text}, or say --trust if you know who wrote the notebooks")
        found.walls = not found.missing
        return found

    def close(self) -> None:
        """End the processes."""
        for each in self.nurseries.values():
            each.close()
        self.nurseries.clear()


@dataclass
class _Work:
    """One notebook while it is graded."""

    name: str
    data: bytes
    result: Result
    desk: Desk
    seconds: float
    until: float
    skip: list[str] = field(default_factory=list)  # steps and exercises that are left out of the next run
    later: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # exercises that need the library, and why
    done: set[str] = field(default_factory=set)  # exercises with a result
    lent: set[str] = field(default_factory=set)

    def add(self, name: str, status: str, *parts: str) -> None:
        """Add a result."""
        self.done.add(name)
        self.result.add(name, status, *parts)

    def note(self, problem: Any) -> None:
        """Keep a problem of this notebook."""
        self.result.note(f"{self.name}: {str(problem)[:1000]}")

    def left(self) -> float:
        """Seconds."""
        return self.until - time.monotonic()


def grade_notebook(path: Path, result: Result, desk: Desk, seconds: float = 120) -> None:
    """Add the answers of the notebook at ``path`` to ``result``; ``seconds`` is for the notebook as a whole."""
    try:
        data = read_submission(path)
    except (MiniquantError, OSError) as error:
        result.note(f"{path.name}: {error}")
        return
    grade_bytes(path.name, data, result, desk, seconds)


def grade_bytes(name: str, data: bytes, result: Result, desk: Desk, seconds: float = 120) -> None:
    """Add one notebook's answers to ``result``; ``name`` is its file's name.

    A crash or a hang costs the exercise or the statement it happened in, no other: what is left of the notebook is
    run again without it, in what is left of the time.
    """
    until = time.monotonic() + seconds
    work = _Work(name, data, result, desk, seconds, until)
    _rounds(work, BARE)
    if work.later and work.left() > 0:
        work.skip = [name for name in work.skip if name in exercises()]
        _rounds(work, LIBRARY, frozenset(work.later))
    for name in work.later.keys() - work.done:
        if work.left() > 0:
            work.add(name, "failed", *work.later[name])
        else:
            work.add(name, "timed out", f"the {seconds:g} seconds of the notebook were over before its turn came")


def read_submission(path: Path) -> bytes:
    """The bytes of a notebook. Raises ``MiniquantError`` for a link, a device, or more than 64 MB."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
            raise MiniquantError("this is no regular file of at most 64 MB")
        return file.read(about.st_size)


def _rounds(work: _Work, how: str, only: frozenset[str] | None = None) -> None:
    """Run the notebook until a run goes to its end or the time is over."""
    waiting: list[str] = []  # exercises that the notebook answers and that have no result yet
    while True:
        step = [""]  # what the process is doing
        start = time.monotonic()
        nursery = work.desk.nursery(how)
        with nursery.room(work.data, work.desk.megabytes, max(work.left(), 1.0)) as room:
            work.until += time.monotonic() - start  # what is loaded before is not the notebook's time
            room.until = work.until
            try:
                found = _cells(work, room, how, step)
                _evaluate(work, room, how, _wanted(work, found, how, only), waiting, step)
                gone = None
            except Gone as error:
                gone = error
        if room.printed > MUCH:
            work.note(f"its cells print {room.printed >> 20} MB or more, which nobody kept")
        if gone is None:
            break
        work.skip.append(step[0])
        if step[0] in waiting:
            waiting.remove(step[0])
            work.add(step[0], "timed out" if gone.late else "crashed", gone.why)
        else:
            work.note(": ".join(part for part in (step[0], gone.why) if part))
        if not step[0] or work.left() <= 0:
            break
    for name in waiting:
        text = f"the {work.seconds:g} seconds of the notebook were over before its turn came"
        work.add(name, "timed out", text)


def _cells(work: _Work, room: Room | WasmRoom, how: str, step: list[str]) -> dict[str, Any]:
    """Have the cells run; return the message that lists the answers."""
    known = exercises()
    labs = {name: known.lab_of(name) for name in known}
    start = {"notebook": encode(work.data), "name": work.name, "skip": work.skip, "labs": labs}
    room.say(**start, seconds=max(work.left() / 2, 0.0), sliced=how == LIBRARY)
    until = work.until
    asked: dict[str, int] = {}
    while True:
        line = room.hear(until)
        match line:
            case {"begin": str(begun), "seconds": int(limit) | float(limit)}:  # "" after the last statement
                step[0], until = begun[:100], time.monotonic() + min(limit, 20.0) + GRACE
            case {"found": list(), "lost": list()}:
                step[0] = ""
                return line
            case {"ask": str()}:
                room.say(**answer(line, [], work.lent, "", asked))
        if "problem" in line:
            work.note(line["problem"])
        if isinstance(line.get("slow"), str) and len(work.skip) < MOST_SKIPPED:
            work.skip.append(line["slow"][:100])


def _wanted(work: _Work, line: dict[str, Any], how: str, only: frozenset[str] | None) -> dict[str, dict[str, Any]]:
    """Exercise -> what the process says about its answer, for those that are evaluated now.

    A notebook whose name begins with the number of a lab counts for that lab alone, if it answers any of its exercises.
    A function that was imported, or lost its mark, is a failed answer.
    """
    known, number = exercises(), work.name[:2]
    said = [each for each in line["found"] if isinstance(each, dict) and each.get("name") in known]
    marked = {each["name"]: each for each in said if each.get("how") != "unmarked"}
    labs = {known.lab_of(name) for name in marked}
    labs = {number} if number in labs else labs
    wanted = {}
    for name, each in marked.items():
        if name in work.skip or (name in work.later if only is None else name not in only):
            continue
        if known.lab_of(name) not in labs:
            work.note(f"{name} belongs to lab {known.lab_of(name)} and does not count in this notebook")
        elif each.get("how") == "marked":
            wanted[name] = each
        else:
            work.add(name, "failed", f"{name} is imported; define it in the notebook")
    for each in said:
        name = each["name"]
        if (
            each.get("how") == "unmarked"
            and name not in marked
            and known.lab_of(name) in ({number} if not labs else labs | {number})
        ):
            work.add(name, "failed", f'{name} is not marked as an exercise; put @exercise("{name}") back above it')
    if how == BARE:
        lost = {name for name in line["lost"] if isinstance(name, str) and name in known and name not in marked}
        text = "a statement that defines it failed"
        work.later |= {name: (text, "", "") for name in lost if not labs or known.lab_of(name) in labs | {number}}
    return wanted


def _evaluate(
    work: _Work, room: Room | WasmRoom, how: str, wanted: dict[str, dict[str, Any]], waiting: list[str], step: list[str]
) -> None:
    """Evaluate the answers. Each may take an equal share of the time that is left when its turn comes."""
    if work.desk.wasm is not None:
        for name in [name for name in wanted if needs_torch(name)]:
            del wanted[name]
            work.add(name, "missing", NO_TORCH)
            work.note(f"{name} is not graded: {NO_TORCH}")
    if how == BARE:
        staged = {name for name in wanted if stage_of(exercises()[name])}
        work.later |= {name: ("it needs the library, and did not run", "", "") for name in staged}
        wanted = {name: each for name, each in wanted.items() if name not in staged}
    waiting[:] = list(wanted)
    for place, (name, about) in enumerate(wanted.items()):
        step[0] = name
        share = max(work.left() / (len(wanted) - place), 0.01)
        start = time.monotonic()
        remote = Remote(room, drawn(name, work.desk.seed), about.get("parameters", []), work.lent)
        remote.until = start + share + GRACE
        report = _report(remote)
        waiting.remove(name)
        step[0] = ""
        took = time.monotonic() - start
        needs = remote.met or about.get("needs") is True
        if how == BARE and needs and report is not None and not report.passed and took < share:
            work.later[name] = report.what, report.shown.got, report.mistake
        else:
            _keep(work, name, how, report, took, share)
            work.skip.append(name)


def _report(remote: Remote) -> Report | None:
    """The report on an answer; None if the grader itself had to be stopped."""
    try:
        with time_limit(max(remote.until - time.monotonic(), 0.01) + THINKING):
            return evaluate(remote.spec, remote, search=False)
    except TooSlow:
        return None
    except Exception as error:  # a result that the grader cannot speak about: a right one is not among these
        text = f"wrong, and the grader cannot say how ({type(error).__name__}: {str(error)[:200]})"
        return Report("failed", remote.spec.name, what=text)


def _keep(work: _Work, name: str, how: str, report: Report | None, took: float, share: float) -> None:
    if work.desk.wasm is not None and report is not None and "No module named 'torch'" in report.shown.got:
        work.add(name, "missing", NO_TORCH)
    elif report is None or (not report.passed and took >= share):
        text = f"no result after {share:.2g} seconds, its share of the notebook's time"
        work.add(name, "timed out", text)
    elif report.passed and name in work.lent:
        text = f"the notebook calls {name} while it is a stub, and so has the results of the solution"
        work.add(name, "failed", text)
    else:
        flag = "passes only with the library" if report.passed and how == LIBRARY and not needs_library(name) else ""
        work.add(name, report.status, report.what, report.shown.got, report.mistake, flag)


def needs_library(name: str) -> bool:
    """Whether the solution of an exercise itself uses the library, or its check does."""
    spec = exercises()[name]
    return bool(stage_of(spec) or library_names(spec))


def library_names(spec: Exercise) -> set[str]:
    """What a solution uses of the library, its errors and the lessons left out."""
    found, seen, waiting = set(), set(), [(spec.reference.__code__, spec.reference.__globals__)]
    while waiting:
        code, scope = waiting.pop()
        waiting += [(part, scope) for part in code.co_consts if isinstance(part, CodeType)]
        for name in set(code.co_names) & scope.keys():
            value = scope[name]
            module = str(getattr(value, "__module__", None) or getattr(type(value), "__module__", ""))
            if not module.startswith("miniquant."):
                module = _home_of(name, value)
            if not module.startswith("miniquant.") or id(value) in seen or module == "miniquant.core.errors":
                continue
            seen.add(id(value))
            if not module.startswith(LESSONS) or module.removeprefix(LESSONS).replace(".", "/") in FREE:
                found.add(f"{module}.{name}")
            elif hasattr(value, "__code__"):
                waiting.append((value.__code__, value.__globals__))
    return found


def _home_of(name: str, value: Any) -> str:
    """The module of the library that has a value, which does not say it itself, under the same name."""
    if isinstance(value, ModuleType) or value is None or isinstance(value, bool | int | float | str):
        return ""
    homes = [each for each, module in list(sys.modules.items()) if getattr(module, "__dict__", {}).get(name) is value]
    return next((each for each in homes if each.startswith("miniquant.") and ".lab" not in each), "")
