"""The naive reader in a process of its own, with limits: what a test file makes it do is seen, and stays in a folder.

The process has ``SECONDS`` and ``MEMORY`` for each file. It works in a new temporary folder with four folders in it, one
inside the other; the innermost is ``export``, where the reader puts its files. A name with `..` in it is followed as far
as the temporary folder reaches, and no further. Memory is still that of a ``Machine``, which only keeps a list.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import posixpath
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...core.errors import FormatError
from ...lab.compare import kind
from ...lab.limit import TooSlow, memory_limit, time_limit
from ...lab.spec import Finding
from .machine import DRIVE, Harm, Machine
from .naive import read_naive_gguf

EXPORT = "home/you/models/export"  # inside the temporary folder: a name can climb three levels and stay in it
SECONDS, MEMORY, FILE = 5.0, 1 << 28, 1 << 20
WEIGHTS = "the weights of "


@dataclass(frozen=True)
class Ran:
    """What one file made the naive reader do. ``harm`` names the kind, ``sentence`` says it; both empty if there is none.

    ``refused`` is the reader's reason if it refused the file. ``asked`` maps a tensor to the bytes that were asked for
    its weights, ``offsets`` to its first byte in the data, ``shared`` counts the bytes that two tensors have in common, ``files`` are the files that exist now.
    """

    harm: str = ""
    sentence: str = ""
    refused: str = ""
    tensors: list[str] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    shared: int = 0
    offsets: dict[str, int] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        if self.refused:
            return f"refused: {self.refused}"
        return self.sentence or f"no harm: {len(self.tensors)} tensors read"


@dataclass
class Sandbox(Machine):
    """A machine that does write files, below ``root`` and nowhere else, and lets tensors share bytes."""

    root: Path = Path()

    def claim(self, at: int, size: int, name: str) -> None:
        """Note whose bytes these are."""
        self.places.append((at, size, name))

    def create(self, name: str, content: bytes = b"") -> None:
        """Write the file, wherever in ``root`` its name leads."""
        anywhere = posixpath.normpath(posixpath.join(EXPORT, name.replace("\\", "/")))  # Windows' separators as well
        if anywhere.startswith(("/", "../")) or anywhere == ".." or DRIVE.match(name):
            raise Harm("file outside the sandbox", f"{name!r} leaves the temporary folder, so nothing was written")
        path = posixpath.normpath(posixpath.join(EXPORT, name.replace(os.sep, "/")))  # as this system takes it
        self.note_file(name, path)
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def read_in_sandbox(data: bytes) -> Ran:
    """Read a file with the naive reader, here and now, in a new temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / EXPORT).mkdir(parents=True)
        machine, tensors, refused, harm, sentence = Sandbox(root=root), [], "", "", ""
        try:
            with time_limit(SECONDS), memory_limit(MEMORY):
                tensors = list(read_naive_gguf(data, machine))
        except FormatError as error:
            refused = str(error)
        except Harm as done:
            harm, sentence = done.kind, str(done)
        except (Exception, TooSlow) as error:
            why = error.strerror if isinstance(error, OSError) else error  # without the folder's name
            harm, sentence = "crash", f"crash: {type(error).__name__}: {why}"
        files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    shared = _shared(machine.places)
    offsets = {name: place - machine.start for place, _, name in machine.places}
    outside = [path for path in files if posixpath.dirname(path) != EXPORT and not path.startswith(f"{EXPORT}/")]
    if not harm and not refused and outside:
        harm = "file outside the folder"
        sentence = f"{harm}: {outside[0]} was written, and the reader's folder is {EXPORT}"
    elif not harm and not refused and shared:
        harm = "shared bytes"
        sentence = f"{harm}: {shared} bytes of the file are in two tensors, and the reader accepted both"
    asked = {
        purpose.removeprefix(WEIGHTS).strip("'\""): size
        for size, purpose in machine.requests
        if purpose.startswith(WEIGHTS)
    }
    return Ran(harm, sentence, refused, tensors, asked, shared, offsets, files)


def _shared(places: list[tuple[int, int, str]]) -> int:
    """How many bytes of the file two tensors have in common, the most of all pairs."""
    pairs = [(a, b) for i, a in enumerate(places) for b in places[:i]]
    return max((max(0, min(a[0] + a[1], b[0] + b[1]) - max(a[0], b[0])) for a, b in pairs), default=0)


class _Process:
    """The process: started with the first file, started again if it ended."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[str] | None = None
        self.lock = threading.Lock()
        atexit.register(self.close)

    def read(self, data: bytes) -> Ran:
        with self.lock:
            child = self._started()
            assert child.stdin is not None and child.stdout is not None
            late = threading.Timer(2 * SECONDS, child.kill)  # it stops itself before that, if it can
            late.start()
            try:
                child.stdin.write(data.hex() + "\n")
                child.stdin.flush()
                answer = child.stdout.readline()
            except OSError:
                answer = ""
            except BaseException:  # the time was up: the answer that comes late must not be taken for the next one
                self.close()
                raise
            finally:
                late.cancel()
            if not answer:
                self.close()
                return Ran("crash", "crash: the reader's process ended")
            return Ran(**json.loads(answer))

    def _started(self) -> subprocess.Popen[str]:
        if self.child is None or self.child.poll() is not None:
            self.close()
            command = [sys.executable, "-m", __name__]
            pipe = subprocess.PIPE
            self.child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        return self.child

    def close(self) -> None:
        """End the process."""
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            for pipe in (self.child.stdin, self.child.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()
            self.child = None


_process = _Process()


def run_limited(data: bytes) -> Ran:
    """What the naive reader does with a file, in a process with limits of time, memory and place.

    A browser has no processes; there the page's own worker, whose files are not yours, takes its place.
    """
    return read_in_sandbox(data) if sys.platform == "emscripten" else _process.read(data)


def ran(function: Callable[..., Any], case: tuple[Any, ...]) -> Ran | None:
    """What the naive reader does with the file that a student's function makes; ``None`` for ``None``.

    Raises ``Finding`` for a result that is no bytes, and for a file that even the naive reader refuses.
    """
    data = function(*case)
    if data is None:
        return None
    if isinstance(data, bytearray):
        raise Finding("the type differs; wrap it in bytes(...)", kind(data))
    if not isinstance(data, bytes):
        raise Finding("your function returned no file: bytes are expected", kind(data))
    found = run_limited(data)
    if found.refused:
        raise Finding("even the naive reader refuses this file", found.refused)
    return found


def _serve() -> None:
    """A file a line, as hexadecimal digits; what came of it as a line of JSON."""
    with contextlib.suppress(ImportError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        answer: dict[str, Any] = asdict(read_in_sandbox(bytes.fromhex(line)))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
