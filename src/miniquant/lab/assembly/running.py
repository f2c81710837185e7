"""Python programs in a folder, one after the other, each in a copy of one process that has the large libraries.

An import of torch takes longer than most scripts. Without ``os.fork`` (Windows), each has a process of its own.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

LIBRARIES = ("torch", "pytest", "miniquant", "miniquant.models.corpus", "miniquant.models.pretrained")
SECONDS = 300  # for one program
TOO_LONG = f"no answer after {SECONDS} seconds"
START = 60  # seconds more for the process that has the libraries


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
    started = _alone(folder, ["-m", __name__, json.dumps([commands, libraries])], START + SECONDS * len(commands))
    found = []
    for number in range(len(commands)):
        texts = [_text(folder / f".{number}.{kind}") for kind in ("code", "out", "err")]
        found.append(Done(int(texts[0]), *texts[1:]) if texts[0] else Done(1, "", started.stderr or TOO_LONG))
    return found


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.exists() else ""


def _alone(folder: Path, command: Sequence[str], seconds: int = SECONDS) -> Done:
    """A program in a process of its own."""
    quiet = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "--color=no"}
    found = os.pathsep.join(part for part in sys.path if part)
    environment = {**os.environ, **quiet, "PYTHONPATH": found, "PYTHONIOENCODING": "utf-8"}
    call = [sys.executable, *command]
    try:
        done = subprocess.run(
            call, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return Done(1, "", TOO_LONG)
    return Done(done.returncode, done.stdout, done.stderr)


def _main(commands: list[list[str]], libraries: list[str]) -> None:
    """In the process that has the libraries: a copy for each program."""
    for name in libraries:
        import_module(name)
    for number, command in enumerate(commands):
        sys.stdout.flush()
        if not (pid := os.fork()):
            _become(number, command)
        end = time.monotonic() + SECONDS
        while not (state := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.kill(pid, 9)
                state = os.waitpid(pid, 0)
                Path(f".{number}.err").write_text(TOO_LONG, "utf-8")
                break
            time.sleep(0.02)
        Path(f".{number}.code").write_text(str(os.waitstatus_to_exitcode(state[1])), "utf-8")


def _become(number: int, command: list[str]) -> None:
    """In the copy: the streams and arguments of the program, and then the program; no return."""
    for stream, kind in ((1, "out"), (2, "err")):
        file = os.open(f".{number}.{kind}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream)
        os.close(file)
    code = 0
    try:
        if command[0] == "-m":
            sys.argv = command[1:]
            runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = command
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
