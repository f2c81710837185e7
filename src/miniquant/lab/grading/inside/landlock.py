"""Landlock: a process gives up, for good, all files but those named, TCP, and signals to processes outside.

The structures and numbers are those of ``linux/landlock.h``; https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every processor
READ_FILE, READ_DIR, WRITE_FILE, TRUNCATE = 1 << 2, 1 << 3, 1 << 1, 1 << 14
RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # version -> how many rights over files it knows
DEVICES = (1 << 6) | (1 << 11)  # the rights to make devices
LEAST = 3  # the first version that stops truncate


def version() -> int:
    """Landlock's version in this kernel; 0 where there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    found = ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return max(int(found), 0)


def restrict(
    read: Iterable[str | Path], look: Iterable[str | Path], write: Iterable[str | Path], null: str = os.devnull
) -> None:
    """From here on this process reads below ``read``, writes below ``write``, and sees names of files below ``look``.

    It does nothing to other files, runs no program, binds and connects no TCP socket, and, from version 6 on, signals
    no process outside. Raises ``OSError`` if the kernel refuses.
    """
    have = version()
    files = (1 << RIGHTS.get(have, 16)) - 1
    network = 3 if have >= 4 else 0  # bind and connect
    scope = 3 if have >= 6 else 0  # abstract sockets and signals
    attributes = struct.pack("<QQQ", files, network, scope)[: 8 if have < 4 else 16 if have < 6 else 24]
    ruleset = _call(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    try:
        for path in read:
            _allow(ruleset, path, READ_FILE | READ_DIR)
        for path in look:
            _allow(ruleset, path, READ_DIR)
        for path in write:
            _allow(ruleset, path, files & ~(DEVICES | 1))  # 1: to run a program
        _allow(ruleset, null, READ_FILE | WRITE_FILE | (TRUNCATE if have >= 3 else 0))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0):  # PR_SET_NO_NEW_PRIVS
            raise OSError(ctypes.get_errno(), "no_new_privs")
        _call(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str | Path, rights: int) -> None:
    try:
        handle = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
    except OSError:
        return  # what is not there cannot be read
    try:
        if not os.path.isdir(path):
            rights &= READ_FILE | WRITE_FILE | TRUNCATE
        rule = ctypes.create_string_buffer(struct.pack("<Qi", rights, handle), 12)
        _call(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0))
    finally:
        os.close(handle)


def _call(number: int, *arguments: object) -> int:
    result = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock: {os.strerror(error)}")
    return int(result)
