"""Notebooks in WebAssembly, for systems whose kernel builds no walls: Pyodide under Node, with no file of the host.

It is slower, and has no PyTorch. A folder of Pyodide's files is needed; ``pyodide_folder`` says where it is looked for.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import importlib.util
import io
import json
import os
import selectors
import shutil
import socket
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...core.errors import MiniquantError
from ..attempt import cases_of, expected_of
from ..catalogue import exercises
from .inside.nursery import KNOWN
from .inside.wire import WireError, encode, read, write
from .room import FREE, INSIDE, KEPT, LIBRARY, MESSAGE, PACKAGE, PIECE, START, Gone, drain, environment

NEEDED = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
IPYTHON = ("IPython/core/inputtransformer2.py", "IPython/utils/tokenutil.py")  # what translates magics
SMALL = 100_000  # bytes; a larger file of the library, a trained model, stays outside
MOST = 2048  # MB of memory, which is what Pyodide can address
NODE = 1024  # MB that Node takes itself
OLDEST = 20  # of Node
NO_TORCH = "it needs PyTorch, which --wasm does not have"


@functools.cache
def needs_torch(name: str) -> bool:
    """Whether a case of an exercise, what is expected, or the solution has to do with PyTorch."""
    spec = exercises()[name]
    if "torch" in spec.reference.__code__.co_names:
        return True
    values = [*cases_of(spec), *(outcome.result for outcome in expected_of(spec))]
    return any(_has_tensor(encode(value)) for value in values)


def _has_tensor(data: Any) -> bool:
    return isinstance(data, list) and (data[:1] == ["R"] or any(_has_tensor(part) for part in data))


def pyodide_folder(given: str) -> Path:
    """The folder of Pyodide's files: the one given, else that of ``PYODIDE_DIST``, else ``_build/live_files/pyodide``.

    Raises ``MiniquantError`` if it holds no Pyodide with numpy.
    """
    folder = Path(given or os.environ.get("PYODIDE_DIST") or Path("_build", "live_files", "pyodide")).resolve()
    lacking = [name for name in NEEDED if not (folder / name).is_file()]
    if not lacking and not list(folder.glob("numpy-*.whl")):
        lacking = ["numpy-*.whl"]
    if lacking:
        raise MiniquantError(
            f"{folder} has no {', '.join(lacking)}; expected a release of Pyodide with numpy. "
            "Name its folder: --wasm FOLDER, or make the live site first: make live"
        )
    return folder


def node_command(pyodide: Path) -> list[str]:
    """Node, allowed to read Pyodide and its own two scripts, and nothing else.

    Raises ``MiniquantError`` if there is no Node of version 20 or later.
    """
    node = shutil.which("node")
    said = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip() if node else ""
    version = said.lstrip("v").split(".")[0]
    if not node or not version.isdecimal() or int(version) < OLDEST:
        raise MiniquantError(f"--wasm needs Node {OLDEST} or later; found {said or 'none'}")
    permission = "--permission" if int(version) >= 24 else "--experimental-permission"
    reads = [f"--allow-fs-read={path}" for path in (f"{pyodide}/*", *INSIDE.glob("wasm*.mjs"))]
    flags = [permission, *reads, "--allow-worker", "--disallow-code-generation-from-strings", "--no-warnings"]
    return [node, *flags, str(INSIDE / "wasm.mjs"), str(pyodide)]


class WasmNursery:
    """The Node process that starts a worker for each notebook; started when it is first needed."""

    missing = ""
    walls = True

    def __init__(self, how: str, pyodide: Path) -> None:
        self.how, self.pyodide = how, pyodide
        self.process: subprocess.Popen[bytes] | None = None
        self.line: socket.socket

    def start(self, megabytes: int = MOST) -> None:
        """Start the process, unless it runs. Raises ``MiniquantError`` if it cannot be started."""
        if self.process and self.process.poll() is None:
            return
        self.close()
        self.line, theirs = socket.socketpair()
        command = [*node_command(self.pyodide), str(theirs.fileno())]
        self.process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=environment("/nowhere"), cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        _limit(self.process.pid, megabytes)
        self.rest = b""
        try:
            self.hear(time.monotonic() + START)["ready"]
            self.say(kit=base64.b64encode(pack(self.how)).decode())
        except (Gone, KeyError, OSError):
            self.process.kill()
            said = self.process.communicate()[1].decode("utf-8", "replace").strip().splitlines()
            raise MiniquantError(f"Node cannot be started: {' '.join(said)[:300]}") from None
        threading.Thread(target=drain, args=(self.process.stderr,), daemon=True).start()

    def say(self, **message: Any) -> None:
        """Send a line. Raises ``OSError`` if the process is gone."""
        self.line.settimeout(START)
        self.line.sendall(json.dumps(message).encode() + b"\n")

    def hear(self, until: float) -> dict[str, Any]:
        """The next line. Raises ``Gone``."""
        pieces, size = [self.rest], len(self.rest)
        with selectors.DefaultSelector() as selector:
            selector.register(self.line, selectors.EVENT_READ)
            while b"\n" not in pieces[-1]:
                left = until - time.monotonic()
                if left <= 0 or not selector.select(left):
                    self.rest = b"".join(pieces)
                    raise Gone("timed out", late=True)
                piece = self.line.recv(PIECE)
                size += len(piece)
                if not piece or size > 2 * MESSAGE:
                    raise Gone(
                        "the process for notebooks ended" if not piece else f"sent {size >> 20} MB in one answer"
                    )
                pieces.append(piece)
        line, _, self.rest = b"".join(pieces).partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    @contextlib.contextmanager
    def room(self, text: bytes, megabytes: int, seconds: float) -> Iterator[WasmRoom]:
        """A worker for one notebook; at the end nothing of it is left."""
        self.start(megabytes)
        self.say(start={"library": self.how == LIBRARY, "megabytes": min(megabytes, MOST)})
        room = WasmRoom(self)
        try:
            yield room
        finally:
            room.end()

    def close(self) -> None:
        """End the process."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.line.close()
            self.process = None


def _limit(pid: int, megabytes: int) -> None:
    """Linux: no more than the memory of a notebook and Node's own; files that a notebook writes are memory, too."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import resource

        most = megabytes + NODE << 20
        resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))


class WasmRoom:
    """One worker: messages to it and from it, and what it printed. As ``Room``."""

    def __init__(self, nursery: WasmNursery) -> None:
        self.nursery = nursery
        self.until = float("inf")
        self.rest = b""
        self.printed = 0
        self.kept = ""
        self.ended = False
        self.scratch = Path("/notebook")  # a folder in the worker's memory

    def say(self, **message: Any) -> None:
        """Send a message. Raises ``Gone``."""
        try:
            self.nursery.say(data=write(message).decode("latin1"))
        except OSError:
            raise self._gone("") from None

    def hear(self, until: float) -> dict[str, Any]:
        """The next message, before ``until`` and the end of the notebook's time. Raises ``Gone``."""
        until = min(until, self.until)
        pieces, size = [self.rest], len(self.rest)
        while b"\n" not in pieces[-1]:
            try:
                found = self.nursery.hear(until)
            except Gone as error:
                self.end()
                raise error from None
            match found:
                case {"data": str(data)}:
                    pieces.append(data.encode("latin1"))
                    size += len(data)
                case {"printed": str(text)}:
                    self.printed += len(text)
                    self.kept = (self.kept + text + "\n")[-KEPT:]
                case {"ended": str(why)}:
                    raise self._gone(why)
            if size > MESSAGE:
                raise self._gone(f"sent more than {MESSAGE >> 20} MB in one answer")
        line, _, self.rest = b"".join(pieces).partition(b"\n")
        try:
            return read(line)
        except WireError as error:
            raise self._gone(str(error)) from None

    def _gone(self, why: str) -> Gone:
        self.end()
        return Gone(f"ended: {why or self.last_words()}"[:300])

    def last_words(self) -> str:
        """The end of what it printed."""
        return (self.kept.strip().splitlines()[-1:] or ["it said nothing"])[0][:200]

    def end(self, *, late: bool = False) -> None:
        """End the worker and wait until it is gone."""
        if self.ended:
            return
        self.ended = True
        try:
            self.nursery.say(end=True)
            until = time.monotonic() + 5
            while "over" not in self.nursery.hear(until):
                pass
        except (OSError, Gone, ValueError):
            self.nursery.close()


def pack(how: str) -> bytes:
    """An archive of what Python needs: the modules of a student's process, or the library without lessons."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as out:
        for name in IPYTHON:
            out.writestr(name, _source(name))
            for folder in ("IPython", os.path.dirname(name)):
                if f"{folder}/__init__.py" not in out.namelist():
                    out.writestr(f"{folder}/__init__.py", "")
        out.write(INSIDE / "wasm_start.py", "wasm_start.py")
        for inside in sorted(_files(how)):
            out.write(PACKAGE / inside, f"miniquant/{inside}")
    return archive.getvalue()


def _source(name: str) -> bytes:
    spec = importlib.util.find_spec("IPython")
    if spec is None or not spec.origin:
        raise MiniquantError("--wasm needs IPython, which translates the magics of a notebook")
    return (Path(spec.origin).parents[1] / name).read_bytes()


def _files(how: str) -> Iterator[str]:
    if how != LIBRARY:
        for name in (*KNOWN, "lab.grading.inside.nursery"):
            place = name.replace(".", "/")
            yield f"{place}.py" if (PACKAGE / f"{place}.py").exists() else f"{place}/__init__.py"
        return
    for path in PACKAGE.rglob("*"):
        inside = path.relative_to(PACKAGE).as_posix()
        lesson = inside.startswith("lessons/") and inside.removeprefix("lessons/").removesuffix(".py") not in FREE
        if path.is_file() and "__pycache__" not in inside and not lesson and path.stat().st_size <= SMALL:
            yield inside
