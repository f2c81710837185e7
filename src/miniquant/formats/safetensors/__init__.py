"""safetensors: one file or a folder of several, opened without loading a tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...core.reading import Source
from ..registry import Format

if TYPE_CHECKING:
    from ...core.slices import Bytes
    from ..field import Field
    from ..file import Beside
    from .read import SafetensorsFile


def _open(source: Source, beside: Beside) -> SafetensorsFile:
    from .read import open_safetensors

    return open_safetensors(source)


def _fields(data: Bytes, source: Source, beside: Beside) -> Iterator[Field]:
    from .fields import safetensors_fields

    return safetensors_fields(data)


def _check(source: Source, beside: Beside) -> None:
    from .fields import check_safetensors

    check_safetensors(source)


FORMAT = Format(
    name="safetensors",
    title="safetensors",
    extensions=(".safetensors",),
    version=None,
    begins="8 bytes of length and b'{'",
    matches=lambda head: head[5:9] == b"\0\0\0{",
    open=_open,
    fields=_fields,
    check=_check,
)
