"""The grader's side of a student's process: started, spoken to within limits of time, ended without a trace."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...core.errors import MiniquantError
from .inside.wire import WireError, read, write

PACKAGE = Path(__file__).resolve().parents[2]
INSIDE = Path(__file__).parent / "inside"
KEPT = 1 << 12  # bytes of a child's output that are kept: its end
MESSAGE = 1 << 24  # bytes of the longest message
DISK = 512 << 20  # bytes that a notebook may keep in its folder
FILES = 10_000  # that it may keep there
PIECE = 1 << 16
START = 120.0  # seconds in which Python and its libraries are loaded
BARE, LIBRARY = "bare", "library"
LARGE = ("torch", "matplotlib", "safetensors", "hypothesis", "gguf")  # packages, loaded once if they are named
SYSTEM = ("/usr/lib", "/lib", "/lib64", "/usr/local/lib", "/usr/share", "/etc/ld.so.cache", "/etc/localtime",
          "/etc/fonts", "/dev/urandom", "/dev/random", "/dev/zero", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
          "/sys/devices/system/cpu")  # fmt: skip
# modules of the lessons that notebooks import; a test holds that none has a solution or an oracle in it
FREE = (
    "__init__", "claims/__init__", "claims/bugs", "claims/falsify", "claims/pipeline", "hostile_files/__init__",
    "hostile_files/build", "hostile_files/fuzz", "hostile_files/given", "hostile_files/limited",
    "hostile_files/machine", "hostile_files/naive", "hostile_files/plot", "pickle/__init__", "pickle/bystander",
    "pickle/stage", "pickle/toys", "safetensors/__init__", "safetensors/items", "verify/__init__",
    "verify/mystery", "verify/stage", "verify/toys", "claims/stage",
)  # fmt: skip


class Gone(BaseException):
    """The process of the student ended, or was ended: ``why`` in a few words; ``late`` if for want of time.

    Not an ``Exception``: no observation of an exercise may take it for an error of the student's function.
    """

    def __init__(self, why: str, *, late: bool = False) -> None:
        super().__init__(why)
        self.why, self.late = why, late


def readable(how: str) -> list[str]:
    """What a student's process may read: Python, its packages, and of this one no lesson; ``BARE``: nothing of it."""
    found = list(SYSTEM)
    paths = sysconfig.get_paths()
    homes = {Path(paths[key]).resolve() for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    homes |= {Path(sys.base_prefix).resolve() / "lib", Path(sys.prefix) / "pyvenv.cfg"}
    for home in homes:
        found += _without(home, PACKAGE)
    if how == LIBRARY:
        found += [str(path) for path in PACKAGE.iterdir() if path.name != "lessons"]
        found += [str(PACKAGE / "lessons" / f"{name}.py") for name in FREE]
        for extra in _data_packages():
            found.append(extra)
    return sorted(set(found))


def _without(home: Path, package: Path) -> list[str]:
    """A folder, or what is in it but for a package that lies somewhere below."""
    if home == package:
        return []
    if home not in package.parents:
        return [str(home)]
    return [path for child in home.iterdir() for path in _without(child, package)]


def _data_packages() -> list[str]:
    """Where the package of the trained models lies, if it is installed elsewhere."""
    import importlib.util

    spec = importlib.util.find_spec("miniquant_models")
    return list(spec.submodule_search_locations or []) if spec else []


class Nursery:
    """The process that forks a child for each notebook; started when it is first needed, and again if it is lost."""

    def __init__(self, how: str, *, walls: bool = True) -> None:
        self.how, self.walls = how, walls
        self.process: subprocess.Popen[bytes] | None = None
        self.control: socket.socket
        self.home = ""
        self.missing = ""
        self.read = readable(how)

    def start(self) -> None:
        """Start the process, unless it runs. Raises ``MiniquantError`` if it cannot be started."""
        if self.process and self.process.poll() is None:
            return
        self.close()
        self.home = tempfile.mkdtemp(prefix="miniquant-grade-")
        self.control, theirs = socket.socketpair()
        command = [sys.executable, "-B", "-s", str(INSIDE / "nursery.py"), str(theirs.fileno()), str(PACKAGE), self.how]
        self.process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=environment(self.home), cwd=self.home,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self.control.settimeout(START)
        try:
            self.missing = self.hear()["ready"]
        except (OSError, ValueError, KeyError, Gone):
            self.process.kill()
            said = self.process.communicate()[1].decode("utf-8", "replace").strip().splitlines()[-1:]
            raise MiniquantError(f"the process for notebooks cannot be started: {' '.join(said)[:300]}") from None
        threading.Thread(target=drain, args=(self.process.stderr,), daemon=True).start()

    def hear(self) -> dict[str, Any]:
        """A line of the process."""
        data = b""
        while not data.endswith(b"\n"):
            piece = self.control.recv(1)
            if not piece:
                raise Gone("the process for notebooks ended")
            data += piece
        found: dict[str, Any] = json.loads(data)
        return found

    @contextlib.contextmanager
    def room(self, text: bytes, megabytes: int, seconds: float) -> Iterator[Room]:
        """A child for one notebook, whose ``text`` says what to load before; at the end nothing of it is left."""
        self.start()
        scratch = tempfile.mkdtemp(prefix="work-", dir=self.home)
        ours, theirs = socket.socketpair()
        ends = [_End(), _End()]
        needs = [name for name in LARGE if name.encode() in text]
        modules = _modules_in(text) if self.how == LIBRARY else []
        look = [str(PACKAGE), str(PACKAGE / "lessons")] if self.how == LIBRARY else []
        order = {"needs": needs, "modules": modules, "scratch": scratch, "read": self.read, "look": look}
        data = json.dumps({**order, "megabytes": megabytes, "seconds": seconds, "walls": self.walls}).encode()
        room = None
        try:
            socket.send_fds(self.control, [data], [theirs.fileno(), ends[0].write, ends[1].write])
            theirs.close()
            for end in ends:
                end.close()
            room = Room(self, ours, ends, Path(scratch), self.hear()["pid"])
            yield room
        finally:
            if room:
                room.end()
            ours.close()
            remove(scratch)

    def close(self) -> None:
        """End the process and remove its folder."""
        if self.process:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.control.close()
            self.process = None
        if self.home:
            remove(self.home)
            self.home = ""


class Room:
    """One child: messages to it and from it, what it printed, and how it ended."""

    def __init__(self, nursery: Nursery, line: socket.socket, ends: list[_End], scratch: Path, pid: int) -> None:
        self.nursery, self.line, self.ends, self.scratch, self.pid = nursery, line, ends, scratch, pid
        self.rest = b""
        self.until = float("inf")  # when the whole notebook must be over
        self.over = ""
        self.late = False
        self.status: int | None = None
        self._looked = 0.0
        self.line.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.line, selectors.EVENT_READ)

    def say(self, **message: Any) -> None:
        """Send a message. Raises ``Gone``."""
        data = memoryview(write(message))
        while data:
            try:
                data = data[self.line.send(data) :]
            except BlockingIOError:
                if time.monotonic() > self.until:
                    self.end(late=True)
                    raise Gone("timed out", late=True) from None
                time.sleep(0.001)
            except OSError:
                raise self._gone() from None

    def hear(self, until: float) -> dict[str, Any]:
        """The next message, before ``until`` and the end of the notebook's time. Raises ``Gone``."""
        until = min(until, self.until)
        if time.monotonic() > until:
            self.end(late=True)
            raise Gone("timed out", late=True)
        pieces = [self.rest]
        size = len(self.rest)
        while b"\n" not in pieces[-1]:
            now = time.monotonic()
            if now > until or self._fills_the_disk(now):
                self.end(late=True)
                raise Gone(self.over or "timed out", late=True)
            if not self._selector.select(min(until - now, 0.5)):
                continue
            try:
                piece = self.line.recv(PIECE)
            except BlockingIOError:
                continue
            except OSError:
                piece = b""
            if not piece:
                raise self._gone()
            pieces.append(piece)
            size += len(piece)
            if size > MESSAGE:
                self.over = f"sent more than {MESSAGE >> 20} MB in one answer"
                self.end()
                raise Gone(self.over)
        line, _, self.rest = b"".join(pieces).partition(b"\n")
        try:
            return read(line)
        except WireError as error:
            self.over = str(error)
            self.end()
            raise Gone(self.over) from None

    def _gone(self) -> Gone:
        self.end()
        return Gone(self.over or f"ended with code {self.status} {self.last_words()}".strip())

    def _fills_the_disk(self, now: float) -> bool:
        """Whether the child keeps too much in its folder; asked twice a second."""
        if now - self._looked < 0.5:
            return False
        self._looked, size, count = now, 0, 0
        waiting = [str(self.scratch)]
        while waiting and count <= FILES:
            with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        with contextlib.suppress(OSError):
                            size += entry.stat(follow_symlinks=False).st_blocks * 512
        if size > DISK or count > FILES:
            self.over = f"kept more than {DISK >> 20} MB or {FILES} files in its folder"
            return True
        return False

    @property
    def printed(self) -> int:
        """How many bytes the child printed."""
        return sum(end.count for end in self.ends)

    def last_words(self) -> str:
        """The end of what it wrote to its errors."""
        last = self.ends[1].kept.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
        return last[0][:200]

    def end(self, *, late: bool = False) -> None:
        """End the child and wait until it is gone; it can have started no other process."""
        if self.status is not None:
            return
        self.late = late
        with contextlib.suppress(OSError):
            self.line.shutdown(socket.SHUT_WR)  # it ends by itself if it can
        self.nursery.control.settimeout(0.0 if late else 0.2)
        try:
            self.status = self.nursery.hear()["status"]
        except (OSError, Gone, ValueError):
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)  # the nursery has not waited for it, so the number is still its own
            self.nursery.control.settimeout(START)
            try:
                self.status = self.nursery.hear()["status"]
            except (OSError, Gone, ValueError):
                self.status = -1
                self.nursery.close()
        if not self.nursery.walls:  # then it can have started others
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
        self.nursery.control.settimeout(START)
        for end in self.ends:
            end.thread.join(1.0)
        self._selector.close()


class _End:
    """Reads a pipe until it is closed, so that nobody waits for a full pipe, and keeps its last bytes only."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        self.kept, self.count = b"", 0
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Close the side that the child writes to."""
        os.close(self.write)

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while piece := os.read(self.read, PIECE):
                self.kept = (self.kept + piece)[-KEPT:]
                self.count += len(piece)
        os.close(self.read)


def _modules_in(text: bytes) -> list[str]:
    """The library's modules that a notebook names, but for those that a student's process may not have."""
    found = sorted(set(re.findall(rb"from (miniquant(?:\.[a-z_0-9]+)+) import", text)))[:100]
    names = [name.decode() for name in found]
    return [name for name in names if name.split(".")[1] not in ("lab", "lessons", "cli") and "__" not in name]


def drain(stream: Any) -> None:
    """Read a stream to its end and keep nothing, so that its writer never waits."""
    with contextlib.suppress(OSError, ValueError):
        while stream.read(PIECE):
            pass


def remove(folder: str) -> None:
    """Remove a folder whatever its modes are."""

    def again(remove: Any, path: str, _: Any) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            remove(path)

    shutil.rmtree(folder, onerror=again)


def environment(home: str) -> dict[str, str]:
    """What the process sees: no secrets of the grader, a home of its own."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "VIRTUAL_ENV", "OPENBLAS_CORETYPE")}
    quiet = {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    quiet |= {"MINIQUANT_PROGRESS": os.devnull, "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}
    return {**kept, **quiet, "HOME": home, "TMPDIR": home, "MPLCONFIGDIR": home}
