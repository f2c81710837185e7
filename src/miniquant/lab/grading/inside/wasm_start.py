"""Where Python begins in WebAssembly: it forgets JavaScript, then runs the notebook as the other process does.

It is run by ``wasm_worker.mjs``. There is no clock inside: whoever takes too long is ended by the grader.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOST = ("js", "pyodide", "pyodide_js", "_pyodide", "_pyodide_core", "webbrowser")


@contextmanager
def no_limit(*_: object, **__: object) -> Iterator[None]:
    """In place of a limit that needs the kernel's alarms."""
    yield


def run(library: bool) -> None:
    """Run one notebook, until the grader is gone."""
    os.makedirs("/notebook", exist_ok=True)
    os.chdir("/notebook")
    sys.path.insert(0, "/kit/miniquant/lab/grading/inside")
    nursery = importlib.import_module("nursery")
    sys.path.pop(0)
    student = nursery.prepare(Path("/kit/miniquant"), library=library)
    for name in ("limit", "attempt", "grading.inside.student"):
        sys.modules[f"miniquant.lab.{name}"].__dict__.update(time_limit=no_limit)
    line = os.open("/dev/line", os.O_RDWR)
    os.remove("/dev/line")
    _forget()
    student.serve(line)


def _forget() -> None:
    """Take away the modules that lead to JavaScript, and what finds them."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not _of_host(type(finder).__module__)]
    for name in list(sys.modules):
        if _of_host(name):
            sys.modules[name] = None  # type: ignore[assignment]  # its import fails from now on
    gc.collect()


def _of_host(name: str) -> bool:
    return name.split(".")[0] in HOST
