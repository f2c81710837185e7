"""The walls around a student's code: Landlock for files, seccomp for system calls, and the kernel's limits."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable

from . import landlock, seccomp

FILE = 256 << 20  # bytes of the largest file that may be written
FILES = 256  # that may be open


def missing() -> str:
    """What this system lacks for the walls; empty if they can be built."""
    if not sys.platform.startswith("linux"):
        return "this system is not Linux"
    if (have := landlock.version()) < landlock.LEAST:
        return f"this kernel has Landlock version {have}, and version {landlock.LEAST} is needed (Linux 6.2)"
    if not seccomp.available():
        return "this kernel or processor has no seccomp filter that is known here"
    return ""


def build(read: Iterable[str], look: Iterable[str], scratch: str, megabytes: int, seconds: float) -> None:
    """From here on: reading below ``read``, writing below ``scratch``, no network, no program, no other process.

    ``look`` are folders in which the names of files may be seen.

    Raises ``OSError`` if the kernel refuses; then nothing of a student's may run.
    """
    limits(megabytes, seconds)
    own = f"/proc/{os.getpid()}"
    landlock.restrict([*read, own, scratch], look, [scratch])
    _give_up_powers()
    seccomp.restrict()


def limits(megabytes: int, seconds: float) -> None:
    """The kernel's limits on memory, processor time, files and their size."""
    import resource

    for what, most in (
        (resource.RLIMIT_AS, megabytes << 20),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, FILE),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_CPU, int(2 * seconds) + 10),  # for two threads; the grader's own clock ends it before
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def _give_up_powers() -> None:
    """Drop the capabilities of a superuser."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = ctypes.create_string_buffer(struct.pack("<Ii", 0x20080522, 0), 8)
    if libc.capset(header, ctypes.create_string_buffer(bytes(24), 24)):
        error = ctypes.get_errno()
        raise OSError(error, f"capset: {os.strerror(error)}")
