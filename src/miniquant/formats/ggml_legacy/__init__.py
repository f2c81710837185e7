"""Legacy GGML, the format that GGUF replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.reading import Source
from ..registry import Format

if TYPE_CHECKING:
    from ..file import Beside
    from .read import LegacyFile


def _open(source: Source, beside: Beside) -> LegacyFile:
    from .read import open_ggml

    return open_ggml(source)


FORMAT = Format(
    name="ggml",
    title="legacy GGML",
    extensions=(".ggml",),
    version=None,
    begins="b'lmgg'",
    matches=lambda head: head.startswith(b"lmgg"),
    open=_open,
)
