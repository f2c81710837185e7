"""Several graders at once: processes of this machine, or workers of Dask on many."""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from ...core.errors import MiniquantError
from .judge import read_submission
from .results import Result
from .room import remove
from .worker import FOLDER, Task

TRIES = 2  # so often a student is graded whose grader dies; a worker of Dask has one more
WAITING = 3  # tasks for each worker that are with the scheduler

Work = list[tuple[str, list[tuple[str, Path]]]]  # student, and the notebooks: path in the folder, path
_local = threading.local()
_all: list[Grader] = []


def task_of(student: str, notebooks: list[tuple[str, Path]], options: dict[str, Any]) -> Task:
    """What a grader needs of one student: the bytes of the notebooks, so that no folder need be shared."""
    found: list[dict[str, str]] = []
    for name, path in notebooks:
        try:
            found.append({"path": name, "data": base64.b64encode(read_submission(path)).decode()})
        except (MiniquantError, OSError) as error:
            found.append({"problem": f"{path.name}: {error}"})
    return {"student": student, "notebooks": found, **options}


class Grader:
    """A worker process that this thread speaks to."""

    def __init__(self) -> None:
        library = str(Path(__file__).resolve().parents[3])
        path = os.pathsep.join(part for part in (library, os.environ.get("PYTHONPATH", "")) if part)
        self.folder = tempfile.mkdtemp(prefix=FOLDER)
        own = {"TMPDIR": self.folder}  # of all that it lays down, also if it is killed
        self.process = subprocess.Popen(
            [sys.executable, "-m", "miniquant.lab.grading.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True, env={**os.environ, "PYTHONPATH": path, **own},
        )  # fmt: skip
        self.busy = False
        _all.append(self)

    def grade(self, task: Task) -> Result | None:
        """The result of a task; None if the process died."""
        assert self.process.stdin and self.process.stdout
        self.busy = True
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(json.dumps(task).encode() + b"\n")
            self.process.stdin.flush()
            if line := self.process.stdout.readline():
                self.busy = False
                return Result.of_row(json.loads(line))
        return None

    def close(self) -> None:
        """End the process; what it started ends with it, and what it laid down is removed."""
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if stream:
                    stream.close()
        try:
            self.process.wait(0.5 if self.busy else 10)  # it ends by itself when its input does
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        remove(self.folder)


def grade_here(task: Task) -> Result:
    """Grade one student with the grader of this thread, which stays for the next one."""
    for _ in range(TRIES):
        grader = getattr(_local, "grader", None)
        if grader is None or grader.process.poll() is not None:
            grader = _local.grader = Grader()
        if (result := grader.grade(task)) is not None:
            return result
        grader.close()
        _local.grader = None
    return _lost(task["student"], task["seed"], f"the grader's process ended {TRIES} times")


def grade_row(task: Task) -> dict[str, Any]:
    """The same as an object of JSON: what a worker of Dask runs."""
    return grade_here(task).row()


def _lost(student: str, seed: int, why: str) -> Result:
    return Result(student, problems=[why], seed=seed)


def on_this_machine(work: Work, options: dict[str, Any], jobs: int) -> Iterator[Result]:
    """The results of all students as they come, graded by so many processes."""
    pool = ThreadPoolExecutor(jobs)
    try:
        futures: list[Future[Result]] = [pool.submit(_grade, *each, options) for each in work]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        close_all()


@atexit.register
def close_all() -> None:
    """End all graders that were started here."""
    while _all:
        _all.pop().close()


def _grade(student: str, notebooks: list[tuple[str, Path]], options: dict[str, Any]) -> Result:
    return grade_here(task_of(student, notebooks, options))


def on_dask(work: Work, options: dict[str, Any], address: str) -> Iterator[Result]:
    """The results of all students as they come, graded by the workers of a Dask scheduler; each needs miniquant.

    A task whose worker dies goes to another one. Raises ``MiniquantError`` if Dask is missing or nobody answers.
    """
    try:
        import distributed as found
    except ImportError:
        raise MiniquantError("--dask needs Dask: pip install 'miniquant[grade]'") from None
    distributed: Any = found  # its functions have no types
    try:
        client = distributed.Client(address, timeout=30, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise MiniquantError(f"no Dask scheduler answers at {address} ({error})") from None
    try:
        yield from _spread(client, iter(work), options, distributed.as_completed)
    finally:
        client.close()


def _spread(
    client: Any, work: Iterator[Any], options: dict[str, Any], completed: Callable[..., Any]
) -> Iterator[Result]:
    queue, names = completed(loop=client.loop), {}

    def add() -> None:
        for student, notebooks in work:
            task = task_of(student, notebooks, options)
            future = client.submit(grade_row, task, pure=False, retries=TRIES)
            names[future.key] = student
            queue.add(future)
            return

    for _ in range(max(WAITING * len(client.scheduler_info()["workers"]), WAITING)):
        add()
    for future in queue:
        student = names.pop(future.key)
        add()
        try:
            yield Result.of_row(future.result())
        except Exception as error:  # of Dask's, when worker after worker died
            yield _lost(student, options["seed"], f"not graded: {type(error).__name__}")
