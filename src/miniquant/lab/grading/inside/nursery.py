"""A process that has Python and its large libraries loaded, and forks a child within walls for each notebook.

    python nursery.py CONTROL PACKAGE bare|library

It is run as a file, so that nothing of the package is imported but what is named here. ``bare``: no module of the
library is in its memory, and none can be read; ``library``: all but the lessons. One child lives at a time. The grader
sends a line of JSON and three descriptors over the socket CONTROL: the line to the child, and its two outputs.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import shutil
import signal
import socket
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

KIT = "lab.grading.inside"  # the modules that run here
ERRORS = "miniquant.core.errors"
KNOWN = ("core", "core.errors", "core.arrays", "core.language", "lab", "lab.limit", "lab.notebook", "lab.attempt",
         "lab.changes", "lab.compare", "lab.spec", "lab.trace", "lab.figures", "lab.prediction", "lab.report",
         "lab.grading", "lab.answers", KIT, *(f"{KIT}.{name}" for name in
         ("wire", "student", "walls", "landlock", "seccomp", "absent", "slices", "line")))  # fmt: skip
children: list[int] = []  # one, while a notebook runs
LARGE = ("torch", "matplotlib.pyplot", "matplotlib.font_manager", "safetensors.torch", "hypothesis", "gguf")


def main() -> None:
    """The command line; see the module's text."""
    control, package, how = socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
    signal.signal(signal.SIGTERM, _clean_up)
    _end_with_parent(signal.SIGTERM)
    sys.path[:] = [path for path in sys.path if path and Path(path) != Path(__file__).parent]
    student = prepare(package, library=how == "library")
    walls = importlib.import_module(f"miniquant.{KIT}.walls")
    control.sendall(json.dumps({"ready": walls.missing()}).encode() + b"\n")
    while True:
        data, handles, _, _ = socket.recv_fds(control, 1 << 16, 3)
        if not data:
            return
        _child(control, json.loads(data), handles, student, walls)


def prepare(package: Path, *, library: bool) -> Any:
    """Import what a student's process needs, with the library or without; return the module that runs a notebook."""
    if library:
        sys.path.insert(0, str(package.parent))
        importlib.import_module("miniquant")
        _house("miniquant.lab", package / "lab")
    else:
        for name in ("", ".core", ".lab", ".lab.grading"):
            _house(f"miniquant{name}", package.joinpath(*name.split(".")[1:]))
    importlib.import_module(ERRORS)
    importlib.import_module("IPython.core.inputtransformer2")
    student = importlib.import_module(f"miniquant.{KIT}.student")
    importlib.import_module("miniquant.lab.prediction")
    if not library:
        _take_away()
    return student


def _house(name: str, folder: Path) -> None:
    """A package whose own file is not run, so that it brings no other modules with it."""
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module
    if "." in name:
        parent, _, own = name.rpartition(".")
        setattr(sys.modules[parent], own, module)


def _take_away() -> None:
    absent = importlib.import_module(f"miniquant.{KIT}.absent")
    there = [f"miniquant.{name}" for name in KNOWN]
    sys.meta_path.insert(0, absent.AbsentLibrary("miniquant", ["miniquant", *there]))
    for name in ("miniquant", "miniquant.lab", "miniquant.core"):
        sys.modules[name].__class__ = absent._Module


def _child(control: socket.socket, order: dict[str, Any], handles: list[int], student: Any, walls: Any) -> None:
    for name in LARGE:
        if name.split(".")[0] in order["needs"] and name not in sys.modules:
            with suppress(ImportError):
                importlib.import_module(name)
    for name in order["modules"]:  # of the library, so that not each child imports them
        with suppress(Exception):
            importlib.import_module(name)
    pid = os.fork()
    if pid:
        children.append(pid)
        for handle in handles:
            os.close(handle)
        control.sendall(json.dumps({"pid": pid}).encode() + b"\n")
        _, status = os.waitpid(pid, 0)
        children.clear()
        control.sendall(json.dumps({"status": os.waitstatus_to_exitcode(status)}).encode() + b"\n")
        return
    try:
        control.close()
        _become(order, handles, walls)
        student.serve(3)
    except BaseException as error:
        with suppress(BaseException):
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
        os._exit(0 if isinstance(error, EOFError) else 1)
    os._exit(0)


def _become(order: dict[str, Any], handles: list[int], walls: Any) -> None:
    """Make this process the child: its descriptors, its folder, its limits, its walls."""
    os.setsid()
    _end_with_parent(signal.SIGKILL)
    null = os.open(os.devnull, os.O_RDONLY)
    high = [os.dup(handle) for handle in (null, handles[1], handles[2], handles[0])]
    while min(high) < 4:  # out of the way of 0 to 3
        high = [os.dup(handle) for handle in high]
    for number, handle in enumerate(high):
        os.dup2(handle, number, inheritable=number < 3)
    os.closerange(4, 4096)
    sys.stdin = open(0)  # noqa: SIM115 open until the process ends
    sys.stdout, sys.stderr = open(1, "w", buffering=1), open(2, "w", buffering=1)  # noqa: SIM115
    os.chdir(order["scratch"])
    for name in ("HOME", "TMPDIR", "MPLCONFIGDIR"):
        os.environ[name] = order["scratch"]
    import tempfile

    tempfile.tempdir = None
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
    warnings.simplefilter("default")
    if order["walls"]:
        walls.build(order["read"], order["look"], order["scratch"], order["megabytes"], order["seconds"])
    else:
        walls.limits(order["megabytes"], order["seconds"])


def _end_with_parent(number: signal.Signals) -> None:
    """Have the kernel send a signal when the process that started this one ends, killed or not."""
    with suppress(Exception):
        ctypes.CDLL(None).prctl(1, number, 0, 0, 0)


def _clean_up(*_: object) -> None:
    """The grader is gone: end the child, and remove the folder in which all folders of notebooks are."""
    for pid in children:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    shutil.rmtree(os.environ["HOME"], ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main()
