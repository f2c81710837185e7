"""One notebook in a process of its own, watched from outside: what it reported, how it ended, what it printed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

KEPT = 1 << 12  # bytes of a child's output that are kept: its end
REPORT = 1 << 24  # bytes of a child's report that are read
GRACE = 1.0  # seconds that a step may take beyond its own limit before the process is stopped
PIECE = 1 << 16


@dataclass
class Run:
    """How one process went: its report, how it ended, and how many bytes it printed."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    ending: str = ""
    timed_out: bool = False
    printed: int = 0


def run_notebook(path: Path, skip: list[str], seconds: float, megabytes: int) -> Run:
    """Run one notebook in a sandbox until it ends, or a step of it or the whole takes too long.

    path: the notebook; skip: the steps that are left out; seconds: for the whole process, its start included.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        work = Path(folder) / "work"
        work.mkdir()
        report.touch()
        # JSON escapes what is not ASCII, so a path that is not UTF-8 arrives unchanged
        plan = json.dumps([str(path.resolve()), str(report), megabytes, seconds, skip])
        child = subprocess.Popen(
            [sys.executable, "-m", "miniquant.lab.grading.sandbox", plan],
            cwd=work,
            env=_environment(work),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C goes to the grader, which then stops its child
        )
        ends = [_End(stream) for stream in (child.stdout, child.stderr) if stream]
        try:
            run = _watch(child, report, seconds)
        finally:
            _stop(child)
            for end in ends:
                end.thread.join(GRACE)
        run.printed = sum(end.count for end in ends)
        if not run.timed_out:
            last = ends[1].kept.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
            run.ending = f"ended with code {child.returncode} {last[0][:200]}".strip()
        return run


def _environment(work: Path) -> dict[str, str]:
    """What the child sees: no secrets of the grader, its own home, the same miniquant as here."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "SYSTEMROOT", "LANG", "VIRTUAL_ENV")}
    quiet = {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "MINIQUANT_PROGRESS": os.devnull}
    home = {"HOME": str(work), "TMPDIR": str(work), "MPLCONFIGDIR": str(work)}
    library = {"PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    return {**kept, **quiet, **home, **library}


class _End:
    """Reads a stream until it is closed, so that nobody waits for a full pipe, and keeps its last bytes only."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.kept, self.count = b"", 0
        self.thread = threading.Thread(target=self._read, args=(stream.fileno(),), daemon=True)
        self.thread.start()

    def _read(self, handle: int) -> None:
        with contextlib.suppress(OSError):
            while piece := os.read(handle, PIECE):
                self.kept = (self.kept + piece)[-KEPT:]
                self.count += len(piece)


def _watch(child: subprocess.Popen[bytes], report: Path, seconds: float) -> Run:
    run = Run()
    until = time.monotonic() + seconds
    step_until = until
    with report.open("rb") as file:
        rest = b""
        while True:
            over = child.poll() is not None  # asked before the file is read: what was written before is then there
            piece = file.read(min(PIECE, max(REPORT - file.tell(), 0)))
            new, rest = read_lines(rest + piece)
            run.lines += new
            for line in new:
                limit = line.get("seconds") if "begin" in line else None
                step_until = time.monotonic() + limit + GRACE if isinstance(limit, int | float) else until
            if over and not piece:
                return run
            if not over and time.monotonic() > min(until, step_until):
                run.timed_out, run.ending = True, "timed out"
                return run
            if not piece:
                time.sleep(0.02)


def read_lines(data: bytes) -> tuple[list[dict[str, Any]], bytes]:
    """The lines of a report that are complete, and the rest. A line that is no JSON object is left out.

    >>> read_lines(b'{"begin": "a"}\\n7\\n{"exer')
    ([{'begin': 'a'}], b'{"exer')
    """
    *whole, rest = data.split(b"\n")
    lines = []
    for line in whole:
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(line)
            if isinstance(found, dict):
                lines.append(found)
    return lines, rest


def _stop(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)  # with whatever it started
        else:
            child.kill()
    child.wait()
