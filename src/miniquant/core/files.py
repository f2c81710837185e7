"""Atomic writing: after a crash, the path holds the old file or the new one, never a part of either.

On Linux the new bytes have no name before they are complete (``O_TMPFILE``), so a killed process leaves nothing behind.
Only where a file is replaced do they need a second name, since no system call puts a file without a name in the place
of another one: ``link`` gives it, and the next call, ``rename``, takes it away. Elsewhere they have a temporary name
from the start. Whatever a killed process has left under such a name, the next writer into that folder removes.
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from .errors import WriteError

try:
    import fcntl
except ImportError:  # Windows: no locks, so nothing is removed
    fcntl = None  # type: ignore[assignment]

_HOST = hashlib.sha256(platform.node().encode("utf-8", "replace")).hexdigest()[:8]
_LEFT = re.compile(rf"\..{{1,40}}\.{_HOST}\.[0-9a-f]{{16}}\.miniquant\.tmp", re.DOTALL)
_ours: set[str] = set()  # the temporary names that this process writes under now


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open ``path`` for writing; it changes only when the block ends without an error.

    The bytes go to a new file in the same folder (a rename is atomic within one file system only), are flushed to the
    disk, and take the place of ``path`` in one step. A symbolic link is followed, an existing file's permissions are
    kept. What killed writers have left in the folder is removed.

    Raises ``WriteError`` if the folder is missing, not writable or full, or if ``path`` is read-only or no regular
    file; what stood there is then unchanged. An error of the block itself, such as a source that cannot be read, stays
    what it is.
    """
    target = _target(path)
    _remove_abandoned(os.path.dirname(target))
    try:
        draft = _Draft(target)
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror}; choose a folder that you may write to") from error
    try:
        yield draft.file
        try:
            draft.publish()
        except OSError as error:
            raise _unchanged(target, error) from error
    finally:
        draft.close()
    _sync_folder(os.path.dirname(target))


def _unchanged(target: str, error: OSError) -> WriteError:
    if isinstance(error, WriteError):
        return error
    reason = error.strerror or str(error)
    return WriteError(f"cannot write {target}: {reason}; whatever was there before is unchanged")


class _Raw(io.FileIO):
    """A file whose own errors are told from those of the block that fills it."""

    def __init__(self, descriptor: int, target: str) -> None:
        super().__init__(descriptor, "w+b")
        self.target = target

    def write(self, data: Any, /) -> int | None:  # type: ignore[override]  # typing.IO never writes a part alone
        """Write some of the bytes. Raises ``WriteError``."""
        try:
            return super().write(data)
        except OSError as error:
            raise _unchanged(self.target, error) from error


def _target(path: str | os.PathLike[str]) -> str:
    """The file that a path stands for, links followed. Raises ``WriteError`` if it cannot be replaced."""
    name = os.fsdecode(path)
    if "\0" in name:
        raise WriteError(f"cannot write {name!r}: a file name holds no zero character")
    try:
        target = os.path.realpath(name)
    except UnicodeEncodeError:  # half of a pair of surrogates
        raise WriteError(f"cannot write {name!r}: this is no text that a file can be called") from None
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise WriteError(f"{target} is a folder; give the name of a file in it")
    if not os.path.isdir(folder):
        raise WriteError(f"cannot write {target}: the folder {folder} does not exist; create it first")
    if os.path.exists(target) and not os.path.isfile(target):  # renaming a file over /dev/null would destroy it
        raise WriteError(f"cannot write {target}: it is not a regular file; give another name")
    if os.path.exists(target) and not os.access(target, os.W_OK):  # a rename would not ask
        raise WriteError(f"cannot write {target}: the file is read-only; make it writable or give another name")
    return target


class _Draft:
    """The new bytes before they are the file ``target``: without a name, or under the temporary ``name``."""

    def __init__(self, target: str) -> None:
        self.target, self.name = target, ""
        descriptor = _open_without_name(os.path.dirname(target))
        self.file = self._open_named() if descriptor is None else self._wrap(descriptor)

    def publish(self) -> None:
        """Flush the bytes to the disk and give them the target's name."""
        self.file.flush()
        os.fsync(self.file.fileno())
        if not self.name and self._publish_without_name():
            return
        if fcntl is None:
            self.file.close()  # Windows renames no open file; elsewhere the lock stays until the file is closed
        os.chmod(self.name, _permissions(self.target))
        os.replace(self.name, self.target)
        self._forget()

    def close(self) -> None:
        """Let go of the bytes; those that were not published are lost."""
        if self.name:
            with suppress(OSError):
                os.unlink(self.name)
            self._forget()
        with suppress(OSError):  # what could not be flushed is reported already, or not wanted
            self.file.close()

    def _publish_without_name(self) -> bool:
        """Link the bytes to the target; where that exists, or links are forbidden, only to a temporary name."""
        try:
            os.chmod(self.file.fileno(), _permissions(self.target))
            self._link(self.target)
            return True
        except FileExistsError:
            _lock(self.file)  # before it has a name: what has one and no lock is abandoned
            try:
                self._link(self._new_name())
                return False
            except OSError:
                self._forget()
        except OSError:
            pass
        with self.file as source:  # a system that forbids links
            self.file = self._open_named()
            source.seek(0)
            shutil.copyfileobj(source, self.file)
        self.file.flush()
        os.fsync(self.file.fileno())
        return False

    def _link(self, name: str) -> None:
        """Give the open file a name; Python follows the link in /proc only beside a folder's descriptor."""
        folder = os.open(os.path.dirname(name), os.O_RDONLY)
        try:
            os.link(f"/proc/self/fd/{self.file.fileno()}", name, dst_dir_fd=folder, follow_symlinks=True)
        finally:
            os.close(folder)

    def _open_named(self) -> BinaryIO:
        """A new file under a temporary name, locked."""
        while True:
            name = self._new_name()
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
                file = self._wrap(os.open(name, flags, 0o600))
            except OSError:
                self._forget()
                raise
            _lock(file)
            if fcntl is None or _is_at(file.fileno(), name):  # else another writer was faster than the lock
                return file
            file.close()
            self._forget()

    def _wrap(self, descriptor: int) -> BinaryIO:
        return io.BufferedRandom(_Raw(descriptor, self.target))

    def _new_name(self) -> str:
        folder, name = os.path.split(self.target)
        self.name = os.path.join(folder, f".{name[:40]}.{_HOST}.{os.urandom(8).hex()}.miniquant.tmp")
        _ours.add(self.name)
        return self.name

    def _forget(self) -> None:
        _ours.discard(self.name)
        self.name = ""


def _open_without_name(folder: str) -> int | None:
    """A descriptor of a new file in the folder that has no name; ``None`` where the system has no such thing."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, flag | os.O_RDWR, 0o600)
    except OSError:  # a file system without; or a folder that takes no file, which the next attempt will say
        return None


# ---- what killed writers leave ---------------------------------------------------------------------------------------


def _lock(file: BinaryIO) -> None:
    """Lock a file as long as it is open: the system lets go of it when the process dies."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks: nobody else can lock the file either
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)


def _remove_abandoned(folder: str) -> None:
    """Remove the temporary files of this machine's dead writers: those that nobody holds a lock on."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _LEFT.fullmatch(entry.name) and entry.path not in _ours and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_unlocked(entry.path)


def _remove_unlocked(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(descriptor, path):  # else it was published between the two calls
            os.unlink(path)
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: str) -> bool:
    """Whether the open file is the one with this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _permissions(target: str) -> int:
    """The mode of the file being replaced, else what a plain ``open`` would give."""
    try:
        return stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync_folder(folder: str) -> None:
    """Flush the rename itself; a platform that cannot open a folder (Windows) does without."""
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):  # a folder may refuse both; the data itself is on the disk already
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
