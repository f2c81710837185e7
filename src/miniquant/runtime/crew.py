"""Threads that compute one product after another together, without asking Python in between.

Waking a thread takes as long as a small product. So the helpers of a crew stay awake while it is at work, from one
``with`` block's start to its end: they look at the desk, a few numbers in memory, until the next product lies there.
A crew of one has no helpers.
"""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from . import products
from .compiled import compiled

LINE = 64  # bytes of a cache line


class Crew:
    """``threads`` of them, for products whose rows have at most ``width`` weights. At work inside ``with``."""

    def __init__(self, threads: int, width: int) -> None:
        self.threads = threads
        self._desk = _aligned(products.JOB + 8 * 10)
        self._job = self._desk[products.JOB :].view(np.int64)
        self._shift = self._desk[products.SHIFT :].view(np.int64)[:1]
        self._tiles = [_aligned(products.TILE * products.tile_bytes(width)) for _ in range(threads)]
        self._at, self._own = self._desk.ctypes.data, self._tiles[0].ctypes.data
        self._work, self._rest = compiled(products.work), _rest()

    def __enter__(self) -> Crew:
        for tile in self._tiles[1 : self.threads]:
            _pool(self.threads).submit(self._help, tile, int(self._shift[0]))
        return self

    def __exit__(self, *_: object) -> None:
        self._shift[0] += 1

    def multiply(self, *job: int) -> None:
        """A product: kind, w, its stride, rows, n, x, its stride, vectors, out, its stride. See ``take_part``."""
        self._job[:] = job
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
    """The address of the system's function that sleeps for some microseconds, or lets others run at least."""
    if os.name == "nt":
        function: Any = ctypes.WinDLL("kernel32").SwitchToThread  # type: ignore[attr-defined]
    else:
        function = ctypes.CDLL(None).usleep
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads - 1, "bump")
