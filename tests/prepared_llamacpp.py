"""llama.cpp's processes in the tests: copies of one that has the imports, as ``multiprocessing`` makes them.

A process of its own for every file stays; what hundreds of tests need not repeat is the start of Python and numpy.
``tests/evaluate/test_llamacpp.py`` starts one in the usual way. In the notebooks that are tested it is a copy of the
kernel (``tools/prepared_kernels.py``).
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from multiprocessing.reduction import DupFd
from types import SimpleNamespace
from typing import Any

from miniquant.evaluate import llamacpp_process

MODULE = llamacpp_process.__name__


class Copied:
    """As much of ``subprocess.Popen`` as ``LlamaCpp`` and its tests need."""

    def __init__(self, command: list[str], *, stdin: int, stdout: int, stderr: Any, env: dict[str, str]) -> None:
        assert command == [sys.executable, "-m", MODULE] and stdin == stdout == subprocess.PIPE
        (its_input, requests), (answers, its_output) = os.pipe(), os.pipe()
        streams = (its_input, its_output, stderr.fileno())
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([MODULE, "xllamacpp"])  # the library that the copies open
        self.process = context.Process(target=_Start(streams, env), daemon=True)
        self.process.start()
        os.close(its_input)
        os.close(its_output)
        self.stdin, self.stdout = os.fdopen(requests, "wb"), os.fdopen(answers, "rb")
        self.pid = self.process.pid

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self) -> int | None:
        self.process.join()
        return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()


class _Start:
    """What the copy does: its three streams, folder and environment become those of the process that asked for it."""

    def __init__(self, streams: tuple[int, int, int], env: dict[str, str]) -> None:
        self.streams, self.env, self.folder = streams, env, os.getcwd()

    def __getstate__(self) -> dict[str, Any]:  # while the process is started, descriptors may be handed over
        return {**vars(self), "streams": [DupFd(stream) for stream in self.streams]}

    def __call__(self) -> None:
        for number, stream in enumerate(self.streams):
            os.dup2(stream.detach(), number)
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.env)
        sys.stdin = os.fdopen(0)
        llamacpp_process._serve()


def prepared() -> Any:
    """What stands in for the module ``subprocess`` in ``miniquant.evaluate.llamacpp``."""
    available = "forkserver" in multiprocessing.get_all_start_methods()
    return SimpleNamespace(PIPE=subprocess.PIPE, Popen=Copied if available else subprocess.Popen)
