"""Python programs in a folder, one after the other, each in a copy of one process that has the large libraries.

An import of torch takes longer than most scripts. On Linux a notebook, which has torch, is that process itself: its
copy forgets the notebook's streams and the modules that the folder has. Without ``os.fork`` (Windows), each program has
a process of its own.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

LIBRARIES = ("torch", "pytest", "miniquant", "miniquant.models.corpus", "miniquant.models.pretrained")
SECONDS = 300  # for one program
TOO_LONG = f"no answer after {SECONDS} seconds"
START = 60  # seconds more for the process that has the libraries
QUIET = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "--color=no"}
SAID = ".copy.err"  # in the folder: what a copy of this process printed


class Done(NamedTuple):
    """What a program did: its exit code, and what it printed."""

    returncode: int
    stdout: str = ""
    stderr: str = ""


def run(folder: Path, commands: Sequence[Sequence[str]], libraries: Sequence[str] = LIBRARIES) -> list[Done]:
    """What the programs do in ``folder``; each is a file or ``-m module``, with arguments.

    One that does not end in time has failed. ``libraries`` are imported before. What the programs print is kept in
    ``folder``, in files such as ``.0.out``.
    """
    if not hasattr(os, "fork"):
        return [_alone(folder, command) for command in commands]
    for path in folder.glob(".*.code"):
        path.unlink()
    seconds = START + SECONDS * len(commands)
    if _is_like_new(libraries):
        started = _in_a_copy(folder, commands, libraries, seconds)
    else:
        started = _alone(folder, ["-m", __name__, json.dumps([commands, libraries])], seconds)
    found = []
    for number in range(len(commands)):
        texts = [_text(folder / f".{number}.{kind}") for kind in ("code", "out", "err")]
        found.append(Done(int(texts[0]), *texts[1:]) if texts[0] else Done(1, "", started.stderr or TOO_LONG))
    return found


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.exists() else ""


def _environment() -> dict[str, str]:
    """What a program finds in its environment beside what is in ours."""
    return {**QUIET, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part), "PYTHONIOENCODING": "utf-8"}


def _alone(folder: Path, command: Sequence[str], seconds: int = SECONDS) -> Done:
    """A program in a process of its own."""
    environment = {**os.environ, **_environment()}
    call = [sys.executable, *command]
    try:
        done = subprocess.run(
            call, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return Done(1, "", TOO_LONG)
    return Done(done.returncode, done.stdout, done.stderr)


def _is_like_new(libraries: Sequence[str]) -> bool:
    """Whether a copy of this process can be the one that has the libraries.

    On a Mac a copy may not use the system's libraries; a process that runs tests has them in many places.
    """
    return sys.platform == "linux" and {"torch"} <= set(libraries) & sys.modules.keys() and "pytest" not in sys.modules


def _in_a_copy(folder: Path, commands: Sequence[Sequence[str]], libraries: Sequence[str], seconds: int) -> Done:
    """``_main`` in a copy of this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a notebook has threads, and the copy needs none of them
        pid = os.fork()
    if not pid:
        _as_if_new(folder, commands, libraries)
    code = _waited(pid, seconds)
    return Done(1, "", TOO_LONG) if code is None else Done(code, "", _text(folder / SAID))


def _as_if_new(folder: Path, commands: Sequence[Sequence[str]], libraries: Sequence[str]) -> None:
    """In the copy: ``_main``, with streams, modules and threads as a new process has them; no return."""
    code = 1
    try:
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        said = os.open(SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(said, stream)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 they stay open to the end
        sys.stdout, sys.stderr = (open(stream, "w", encoding="utf-8", closefd=False) for stream in (1, 2))  # noqa: SIM115
        os.environ.update(_environment())
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(folder))
        for path in folder.glob("*.py"):
            sys.modules.pop(path.stem, None)
        sys.modules["torch"].set_num_threads(1)  # the threads of a pool are not copied
        _main(commands, libraries)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _waited(pid: int, seconds: float) -> int | None:
    """The exit code of a copy, or ``None`` for one that did not end in time and was ended."""
    end = time.monotonic() + seconds
    try:
        while not (state := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > end:
                raise TimeoutError
            time.sleep(0.02)
    except BaseException as error:  # also of a student who waits no longer
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        if isinstance(error, TimeoutError):
            return None
        raise
    return os.waitstatus_to_exitcode(state[1])


def _main(commands: Sequence[Sequence[str]], libraries: Sequence[str]) -> None:
    """In the process that has the libraries: a copy for each program."""
    for name in libraries:
        import_module(name)
    for number, command in enumerate(commands):
        sys.stdout.flush()
        if not (pid := os.fork()):
            _become(number, command)
        if (code := _waited(pid, SECONDS)) is None:
            Path(f".{number}.err").write_text(TOO_LONG, "utf-8")
            code = -9
        Path(f".{number}.code").write_text(str(code), "utf-8")


def _become(number: int, command: Sequence[str]) -> None:
    """In the copy: the streams and arguments of the program, and then the program; no return."""
    for stream, kind in ((1, "out"), (2, "err")):
        file = os.open(f".{number}.{kind}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream)
        os.close(file)
    code = 0
    try:
        if command[0] == "-m":
            sys.argv = list(command[1:])
            runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(command)
            runpy.run_path(command[0], run_name="__main__")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _main(*json.loads(sys.argv[1]))
