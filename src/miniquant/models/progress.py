"""How far a conversion is, while several threads read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from threading import Lock

Advance = Callable[[int, int, str], object]  # done and total, in weights, and the name of a tensor


def nobody(done: int, total: int, tensor: str) -> None:
    """Hears how far a conversion is, and does nothing."""


def counter(shapes: Iterable[tuple[int, ...]], advance: Advance) -> Callable[[int, str], None]:
    """A function that is told of some weights more, and of which tensor; it calls ``advance(done, total, tensor)``.

    Any thread may call it.

    shapes: of all tensors that are counted
    """
    total = sum(map(prod, shapes))
    done, one = 0, Lock()

    def count(weights: int, tensor: str) -> None:
        nonlocal done
        with one:
            done += weights
            advance(done, total, tensor)

    return count
