"""A bump allocator: one block of memory, and one number that only ever moves forward.

Everything is reserved before anything is allocated, so the size is known and asked for once. Nothing is given back:
whoever runs a model needs the same buffers for the next token.
"""

from __future__ import annotations

import math
import mmap

import numpy as np

from ..formats.bump.types import ALIGNMENT
from ..formats.gguf.read import padded


class BumpAllocator:
    """Reserve float32 buffers by name, each at a multiple of 64 bytes; then allocate them all at once.

    ``spans`` maps names to (first byte, byte after the last), ``size`` is where the next one would begin.

    >>> plan = BumpAllocator()
    >>> plan.reserve("x", 3), plan.reserve("y", 2, 16)
    (0, 64)
    >>> plan.size, plan.spans["y"]
    (192, (64, 192))
    >>> plan.allocate()["y"].shape
    (2, 16)
    """

    def __init__(self) -> None:
        self.spans: dict[str, tuple[int, int]] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.size = 0

    def reserve(self, name: str, *shape: int) -> int:
        """Room for an array of this shape; returns the byte at which it begins."""
        if name in self.spans:
            raise ValueError(f"{name!r} is reserved already")
        start = self.size
        end = start + 4 * math.prod(shape)
        self.spans[name], self.shapes[name] = (start, end), shape
        self.size = padded(end, ALIGNMENT)
        return start

    def allocate(self) -> dict[str, np.ndarray]:
        """One block of zeros, and every reserved array in it; the system hands it over page by page, on use."""
        block = memoryview(mmap.mmap(-1, max(1, self.size)))  # begins with a page, so with a multiple of 64
        return {
            name: np.frombuffer(block[start:end], np.float32).reshape(self.shapes[name])
            for name, (start, end) in self.spans.items()
        }
