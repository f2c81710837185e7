"""Atomic writing: after a crash, the path holds the old file or the new one, never a part of either."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from .errors import WriteError


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open ``path`` for writing; it changes only when the block ends without an error.

    The bytes go to a temporary file in the same folder (a rename is atomic within one file system only), are flushed
    to the disk, and take the place of ``path`` in one step. A symbolic link is followed, an existing file's
    permissions are kept.

    Raises ``WriteError`` if the folder is missing, not writable or full, or if ``path`` is read-only or no regular
    file; what stood there is then unchanged.
    """
    name = os.fsdecode(path)
    if "\0" in name:
        raise WriteError(f"cannot write {name!r}: a file name holds no zero character")
    target = os.path.realpath(name)
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise WriteError(f"{target} is a folder; give the name of a file in it")
    if not os.path.isdir(folder):
        raise WriteError(f"cannot write {target}: the folder {folder} does not exist; create it first")
    if os.path.exists(target) and not os.path.isfile(target):  # renaming a file over /dev/null would destroy it
        raise WriteError(f"cannot write {target}: it is not a regular file; give another name")
    if os.path.exists(target) and not os.access(target, os.W_OK):  # a rename would not ask
        raise WriteError(f"cannot write {target}: the file is read-only; make it writable or give another name")
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(target)[:40]}.", suffix=".tmp", dir=folder)
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror}; choose a folder that you may write to") from error
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _permissions(target))
        os.replace(temporary, target)
    except BaseException as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError) and not isinstance(error, WriteError):
            reason = error.strerror or str(error)
            raise WriteError(f"cannot write {target}: {reason}; whatever was there before is unchanged") from error
        raise
    _sync_folder(folder)


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
