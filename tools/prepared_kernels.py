"""A pytest plugin: the kernels of nbval begin with the large libraries already imported.

``-p tools.prepared_kernels`` starts one process for all workers. It imports what takes long: torch, matplotlib,
IPython, and modules of miniquant (no lesson: a kernel imports those whose exercises its notebook asks for). It has the
docstrings of the standard library, too, which are the same for everyone: pytest reads them, and leaves them for it.
Each notebook's kernel is then a copy of that process: ``os.fork`` takes a few milliseconds, where an import of torch
takes seconds. No kernel has seen the cells of another notebook; what slow functions of the library gave them is shared,
as ``tools/remembered.py`` says.

llama.cpp, which has a process of its own, has a copy of the kernel there: Python, numpy and the library are in it.

A figure of this library is drawn as SVG only. A notebook stores it as PNG, too, but nbval compares no PNG, and
``tools/notebooks.py`` draws both. With ``MINIQUANT_THOROUGH=1`` the tests do so, too, and start llama.cpp as usual.

A notebook that asks what is imported (``sys.modules``) gets a kernel of the usual kind. Where there is no ``os.fork``
(Windows), all of them do.
"""

from __future__ import annotations

import gc
import importlib
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jupyter_client import launcher
from jupyter_client.provisioning import local_provisioner

BACKEND = "module://matplotlib_inline.backend_inline"  # what ipykernel chooses if nobody else does
# to the C library: the memory of an array is for the next one, and not given back to the system, which would clear it
KEEP = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "2000000000"}  # bytes
LIBRARIES = (
    "torch",
    "matplotlib.pyplot",
    "ipykernel.kernelapp",
    "safetensors.torch",
    "gguf",
    "hypothesis.strategies",
    "numba",
    "xllamacpp",
    "miniquant.evaluate.llamacpp",
    "miniquant.evaluate.llamacpp_process",
    "miniquant.evaluate.quality",
    "miniquant.evaluate.speech",
    "miniquant.inspect.hexview",
    "miniquant.inspect.markup",
    "miniquant.lab",
    "miniquant.models.to_gguf",
    "miniquant.plots",
    "miniquant.models.corpus:training_documents",  # what stands behind a colon is called, for what it keeps
    "miniquant.models.corpus:held_out_windows",
    "miniquant.calibrate:calibration_tokens",
    "miniquant.models.pretrained:load_pretrained",
    "miniquant.models.minillama:load_minillama",  # imports transformers
)


class Prepared:
    """The process that holds the libraries; whoever wants the first kernel starts it. It listens in a folder."""

    def __init__(self, libraries: Sequence[str] = LIBRARIES, folder: Path | None = None) -> None:
        self.libraries = libraries
        self._folder = folder
        self.process: subprocess.Popen[bytes] | None = None  # if it was started from here

    @property
    def address(self) -> Path:
        """Its socket."""
        return (self._folder or Path(os.environ[REMEMBERED])) / "prepared"

    def launch(self, cmd: list[str], env: dict[str, str], cwd: str | None = None, **others: Any) -> Any:
        """What ``jupyter_client.launcher.launch_kernel`` does: a kernel for the connection file in ``cmd``."""
        if _asks_what_is_imported():
            return launcher.launch_kernel(cmd, env=env, cwd=cwd, **others)
        return _Kernel(self, self.ask(start=cmd[cmd.index("-f") :], env=env, cwd=cwd or os.getcwd()))

    def ask(self, **question: Any) -> Any:
        """One question as a line of JSON, and the answer to it."""
        import fcntl

        with self.address.with_suffix(".lock").open("w") as lock:  # of several workers one starts it
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.address.exists():
                for_whom = os.environ.get(RUN, str(os.getpid()))
                command = [sys.executable, __file__, str(self.address), for_whom, *self.libraries]
                nothing = subprocess.DEVNULL
                self.process = subprocess.Popen(command, env=os.environ | KEEP, stdin=nothing, stdout=nothing)
                while not self.address.exists() and self.process.poll() is None:  # if it ended, connecting fails
                    time.sleep(0.01)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.address))
            with connection.makefile("rw") as stream:
                stream.write(json.dumps(question) + "\n")
                stream.flush()
                return json.loads(stream.readline())

    def end(self) -> None:
        """End the process; kernels that are left end with it."""
        if self.address.exists():
            self.ask(end=True)


def _asks_what_is_imported() -> bool:
    """Whether the notebook whose first cell pytest is about to run speaks of ``sys.modules``."""
    notebook = Path(os.environ.get("PYTEST_CURRENT_TEST", "").split("::")[0])
    return notebook.suffix == ".ipynb" and "sys.modules" in notebook.read_text("utf-8")


PREPARED = Prepared()
REMEMBERED, RUN = "MINIQUANT_REMEMBERED", "MINIQUANT_RUN"  # a folder of this run, and the process that began it
_folders: list[tempfile.TemporaryDirectory[str]] = []  # of this run


def pytest_configure(config: Any) -> None:
    """From now on ``jupyter_client`` asks the prepared process for a kernel."""
    if hasattr(os, "fork"):
        local_provisioner.launch_kernel = PREPARED.launch
        _folders.append(tempfile.TemporaryDirectory(prefix="miniquant-"))
        os.environ[REMEMBERED], os.environ[RUN] = _folders[-1].name, str(os.getpid())
        _quiet()
        if "miniquant.models.corpus" in sys.modules:  # tools/measured_text.py reads the text: kernels need not
            from . import remembered

            corpus = sys.modules["miniquant.models.corpus"]
            corpus._docstrings = remembered.remembering(corpus._docstrings)  # type: ignore[attr-defined]


def _quiet() -> None:
    """nbval lays out every message for its log, a tenth of its time; from now on only if the log takes it."""
    from nbval import kernel

    laid_out = kernel.pformat
    kernel.pformat = lambda message: laid_out(message) if kernel.logger.isEnabledFor(logging.DEBUG) else ""


def pytest_unconfigure() -> None:
    """All notebooks have run, if this is the process that began the run."""
    while _folders:
        PREPARED.end()
        os.environ.pop(REMEMBERED, None)
        os.environ.pop(RUN, None)
        _folders.pop().cleanup()


class _Kernel:
    """As much of ``subprocess.Popen`` as ``jupyter_client`` needs."""

    stdin = stdout = stderr = None

    def __init__(self, prepared: Prepared, pid: int) -> None:
        self.prepared, self.pid = prepared, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self.prepared.ask(poll=self.pid)
        return self.returncode

    def wait(self) -> int:
        while (code := self.poll()) is None:
            time.sleep(0.02)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(15)

    def kill(self) -> None:
        self.send_signal(9)


def _serve() -> None:
    """Import the libraries, then start kernels until somebody ends it, or the run has ended without a word."""
    address, run, *libraries = sys.argv[1:]
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{address}.new")
    listening.listen()
    listening.settimeout(2)
    os.rename(f"{address}.new", address)  # who finds it there can connect, and waits
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # no threads here, which a copy would lack
    os.environ.setdefault("MPLBACKEND", BACKEND)  # matplotlib looks at it once, when it is imported
    sys.modules["debugpy"] = None  # type: ignore[assignment]  # nobody debugs here, and each kernel would import it
    gc.disable()  # what is imported stays
    modules = [importlib.import_module(name.partition(":")[0]) for name in libraries]
    if os.environ.get(REMEMBERED):
        import remembered

        if remembered.is_on():
            remembered.install()
    for module, name in zip(modules, libraries, strict=True):
        if function := name.partition(":")[2]:
            getattr(module, function)()
    if "matplotlib.pyplot" in libraries:
        _draw()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)  # 700, 10, 10 by default
    gc.freeze()  # what is here stays: no kernel need search it for garbage, and so copy its memory
    while _is_alive(int(run)):
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            continue
        with connection, connection.makefile("rw") as stream:
            question = json.loads(stream.readline())
            if "end" in question:
                os.unlink(address)
                stream.write("null\n")
                return
            if "poll" in question:
                pid, status = os.waitpid(question["poll"], os.WNOHANG)
                answer = os.waitstatus_to_exitcode(status) if pid else None
            elif answer := os.fork():
                os.setpgid(answer, answer)  # a signal to the kernel's group reaches its own processes, and no other
            else:
                os.close(connection.detach())
                os.close(listening.detach())
                _become_kernel(**question)
            stream.write(json.dumps(answer) + "\n")


def _draw() -> None:
    """One figure: all kernels know fonts and the grammar of labels then. No backend, which would look for IPython."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    figure.subplots().loglog([1e-2, 1e2], [1e-2, 1e2], label="label")
    figure.suptitle("title")
    figure.legend()
    figure.savefig(os.devnull, format="svg", bbox_inches="tight")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _draw_once() -> None:
    """From now on IPython makes no PNG of a figure that says itself what it is as SVG."""
    from IPython.core import pylabtools

    drawn = pylabtools.print_figure

    def print_figure(fig: Any, *args: Any, **named: Any) -> Any:
        return None if hasattr(fig, "_repr_svg_") else drawn(fig, *args, **named)

    pylabtools.print_figure = print_figure


class _Llama:
    """As much of ``subprocess.Popen`` as ``LlamaCpp`` needs: a copy of the kernel, which has numpy and the library."""

    def __init__(self, command: list[str], *, stdin: int, stdout: int, stderr: Any, env: dict[str, str]) -> None:
        (its_input, requests), (answers, its_output) = os.pipe(), os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a kernel has threads, and the copy needs none of them
            self.pid = os.fork()
        if not self.pid:
            _become_llama((its_input, its_output, stderr.fileno()), env)
        os.close(its_input)
        os.close(its_output)
        self.stdin, self.stdout = os.fdopen(requests, "wb"), os.fdopen(answers, "rb")
        self.returncode: int | None = None

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, 9)


def _become_llama(streams: tuple[int, int, int], env: dict[str, str]) -> None:
    """In the copy: the streams and the environment that it should have, and then its requests; no return."""
    from miniquant.evaluate import llamacpp_process

    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # whoever waits for the end of a pipe waits for no other copy
        sys.stdin, sys.stderr = open(0, encoding="utf-8"), open(2, "w", encoding="utf-8")  # noqa: SIM115
        os.environ.clear()
        os.environ.update(env)
        llamacpp_process._serve()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _become_kernel(start: list[str], env: dict[str, str], cwd: str) -> None:
    """In the copy: the folder and the environment that the kernel should have, and then the kernel; no return."""
    from ipykernel.kernelapp import IPKernelApp

    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env, JPY_PARENT_PID=str(os.getppid()))  # if that process ends, so does the kernel
    del sys.path[0]  # the folder of this file
    if os.environ.get("MINIQUANT_THOROUGH") != "1":
        _draw_once()
        if sys.platform == "linux" and (llamacpp := sys.modules.get("miniquant.evaluate.llamacpp")):
            llamacpp.subprocess = SimpleNamespace(Popen=_Llama, PIPE=subprocess.PIPE)  # type: ignore[attr-defined]
    start = [*start, "--HistoryManager.enabled=False"]  # no database of what was typed
    sys.argv = ["ipykernel_launcher", *start]
    try:
        app = IPKernelApp.instance()
        app.initialize(start)
        if "miniquant.lab" in sys.modules:  # it looked for a notebook when it was imported
            sys.modules["miniquant.lab"].watch()
        app.start()
    finally:
        os._exit(0)


if __name__ == "__main__":
    _serve()
