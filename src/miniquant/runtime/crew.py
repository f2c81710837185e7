"""Threads that compute one product after another together, without asking Python in between.

Waking a thread takes as long as a small product, and a thread that comes from Python or goes back to it needs Python's
lock, which may take as long as a token. So helpers that were called stay: they look at the desk, a few numbers in
memory, until the next product lies there. They go home when they are dismissed, or when no product came for a while.
A crew of one has no helpers.
"""

from __future__ import annotations

import ctypes
import os
import struct
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from . import products
from .compiled import compiled

LINE = 64  # bytes of a cache line
JOB = struct.Struct("=10q")  # a product, as it lies on the desk


class Crew:
    """``threads`` of them, for products whose rows have at most ``width`` weights. Helpers stay inside ``with``."""

    def __init__(self, threads: int, width: int) -> None:
        self.threads = threads
        self._desk = _aligned(products.JOB + JOB.size)
        self._shift = self._desk[products.SHIFT :].view(np.int64)[:1]
        self._tiles = [_aligned(products.TILE * products.tile_bytes(width)) for _ in range(threads)]
        self._helpers: list[Future[None] | None] = [None] * (threads - 1)
        self._at, self._own = self._desk.ctypes.data, self._tiles[0].ctypes.data
        self._work, self._rest = compiled(products.work), _rest()

    def call(self) -> None:
        """Have helpers come: those who never came, or have gone home."""
        for i, tile in enumerate(self._tiles[1:]):
            helper = self._helpers[i]
            if helper is None or helper.done():
                self._helpers[i] = _pool(self.threads).submit(self._help, tile, int(self._shift[0]))

    def dismiss(self) -> None:
        """Let the helpers go home at once."""
        self._shift[0] += 1
        self._helpers = [None] * len(self._helpers)

    def __enter__(self) -> Crew:
        self.call()
        return self

    def __exit__(self, *_: object) -> None:
        self.dismiss()

    def multiply(self, *job: int) -> None:
        """A product: kind, w, its stride, rows, n, x, its stride, vectors, out, its stride. See ``take_part``."""
        JOB.pack_into(self._desk.data, products.JOB, *job)
        self._work(self._at, self._own, self.threads > 1 and job[3] > products.TILE, -1, self._rest)

    def _help(self, tile: np.ndarray, shift: int) -> None:
        self._work(self._at, tile.ctypes.data, True, shift, self._rest)


def _aligned(size: int) -> np.ndarray:
    """Zeros that begin with a cache line: (size,) uint8."""
    found = np.zeros(size + LINE, np.uint8)
    start = -found.ctypes.data % LINE
    return found[start : start + size]


@cache
def _rest() -> int:
    """The address of the system's function that lets others run, if any wait for this core. Sleeping takes too long."""
    if os.name == "nt":
        function: Any = ctypes.WinDLL("kernel32").SwitchToThread  # type: ignore[attr-defined]
    else:
        function = ctypes.CDLL(None).sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads - 1, "bump")
