"""The exercises of lab 16: a model file that is one allocation."""

from __future__ import annotations

from .dot import Q8_DOT
from .file import BUMP_HEADER, BUMP_TYPES
from .layout import BUMP_OFFSETS, BUMP_ORDER
from .seal import BUMP_SEAL

EXERCISES = [
    BUMP_OFFSETS,
    BUMP_HEADER,
    BUMP_TYPES,
    BUMP_ORDER,
    BUMP_SEAL,
    Q8_DOT,
]
