"""safetensors: one file or a folder of several, opened without loading a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.reading import Source
from ..registry import Format

if TYPE_CHECKING:
    from ..file import Beside
    from .read import SafetensorsFile


def _open(source: Source, beside: Beside) -> SafetensorsFile:
    from .read import open_safetensors

    return open_safetensors(source)


FORMAT = Format(
    name="safetensors",
    title="safetensors",
    extensions=(".safetensors",),
    version=None,
    begins="8 bytes of length and b'{'",
    matches=lambda head: head[5:9] == b"\0\0\0{",
    open=_open,
)
