"""How much is tried: little in everyday runs, more with ``MINIQUANT_THOROUGH=1``, say before a release."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import product
from typing import TypeVar

T, U = TypeVar("T"), TypeVar("U")
THOROUGH = os.environ.get("MINIQUANT_THOROUGH") == "1"


def tried(usual: int, thorough: int) -> int:
    """The number that a test should take for one that is drawn or taken in turns."""
    return thorough if THOROUGH else usual


def in_turns(ones: Iterable[T], others: Iterable[U]) -> list[tuple[T, U]]:
    """Every pair in thorough runs; in everyday runs as few as hold each of the ones, and each of the others.

    For claims of two things that have nothing to do with each other, so that a fault is one of the one or of the other.
    """
    ones, others = list(ones), list(others)
    if THOROUGH:
        return list(product(ones, others))
    return [(ones[i % len(ones)], others[i % len(others)]) for i in range(max(len(ones), len(others)))]
