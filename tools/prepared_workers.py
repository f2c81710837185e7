"""A pytest plugin: the workers of pytest-xdist begin with the large libraries already imported.

``-p tools.prepared_workers`` starts one process that imports what most files of tests need: torch, transformers,
matplotlib, numba. Each worker is a copy of it: ``os.fork`` takes a few milliseconds, and the imports take seconds of
every worker's time. What is collected and run in a worker stays as it was. Where there is no ``os.fork`` (Windows), and
for a worker that takes the place of a crashed one, workers start as pytest-xdist starts them.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

# none that pytest rewrites, such as hypothesis: of one that is there before it warns (of anyio, too: pyproject.toml)
LIBRARIES = (
    "torch",
    "matplotlib.pyplot",
    "numba",
    "gguf",
    "safetensors.torch",
    "tokenizers",
    "transformers:AutoModelForCausalLM",  # what stands behind a colon is asked for: it is imported when it is
    "transformers:GPT2LMHeadModel",
    "transformers:LlamaForCausalLM",
    "transformers:Qwen2ForCausalLM",
    "transformers:PreTrainedTokenizerFast",
)
SOURCES = Path(__file__).parents[1] / "src"
FIRST = "from tools.prepared_workers import copies; copies({pairs}, {libraries})"
THEN = "import sys;exec(eval(sys.stdin.readline()))"  # what execnet has a worker begin with

_ends: list[tuple[int, int]] = []  # of workers that wait: where to write to, where to read from
_prepared: list[subprocess.Popen[str]] = []


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: list[Any]) -> None:
    """As many copies as there are workers; execnet takes them when it would start a process."""
    if not hasattr(os, "fork"):
        return
    from execnet import gateway_io

    requests, answers = ([os.pipe() for _ in specs] for _ in range(2))
    pairs = [(requests[i][0], answers[i][1]) for i in range(len(specs))]
    command = [sys.executable, "-u", "-c", f"{FIRST.format(pairs=pairs, libraries=LIBRARIES)}\n{THEN}"]
    given = [end for pair in pairs for end in pair]
    nothing = subprocess.DEVNULL
    _prepared.append(subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, pass_fds=given, text=True))
    for end in given:
        os.close(end)
    _ends.extend((requests[i][1], answers[i][0]) for i in range(len(specs)))
    gateway_io.Popen2IOMaster = _worker_of(gateway_io.Popen2IOMaster)  # type: ignore[misc]


def _worker_of(usual: Any) -> Any:
    """The class of execnet that starts a process, and takes one that is prepared where there is one."""

    class Worker(usual):  # type: ignore[misc]
        def __init__(self, args: list[str], execmodel: Any) -> None:
            if not _ends:
                super().__init__(args, execmodel)
                return
            write, read = _ends.pop(0)
            self.popen = _Copy(len(_ends))
            super(usual, self).__init__(os.fdopen(write, "wb", 0), os.fdopen(read, "rb"), execmodel=execmodel)

    return Worker


class _Copy:
    """As much of ``subprocess.Popen`` as execnet needs."""

    def __init__(self, left: int) -> None:
        self.left = left  # how many came after it

    def wait(self) -> int:
        return _prepared[0].wait()  # it ends when all its copies have

    def kill(self) -> None:
        global _pids
        _pids = _pids or [int(pid) for pid in _prepared[0].stdout.readline().split()]  # type: ignore[union-attr]
        os.kill(_pids[-1 - self.left], signal.SIGKILL)


_pids: list[int] = []


def copies(pairs: list[tuple[int, int]], libraries: tuple[str, ...]) -> None:
    """In the process that is prepared: import, and be copied. The copies return; the process itself waits for them."""
    sys.path.insert(1, str(SOURCES))
    with warnings.catch_warnings(action="ignore"):
        for library in libraries:
            module, _, name = library.partition(":")
            found = importlib.import_module(module)
            if name:
                getattr(found, name)
    sys.path.remove(str(SOURCES))
    gc.freeze()
    pids = []
    for pair in pairs:
        if (pid := os.fork()) == 0:
            for number, end in enumerate(pair):
                os.dup2(end, number)
            for end in {end for pair in pairs for end in pair}:
                os.close(end)
            sys.modules.pop(__name__, None)  # the worker is given this plugin, too
            return
        pids.append(pid)
    for end in {end for pair in pairs for end in pair}:
        os.close(end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(*pids, flush=True)
    for pid in pids:
        os.waitpid(pid, 0)
    os._exit(0)
