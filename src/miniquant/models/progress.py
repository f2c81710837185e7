"""How far a conversion is, while several threads read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from threading import Lock


def counter(shapes: Iterable[tuple[int, ...]], advance: Callable[[int, int], None]) -> Callable[[int], None]:
    """A function that is told of some weights more, and calls ``advance(done, total)``; any thread may call it.

    shapes: of all tensors that are counted
    """
    total = sum(map(prod, shapes))
    done, one = 0, Lock()

    def count(weights: int) -> None:
        nonlocal done
        with one:
            done += weights
            advance(done, total)

    return count
