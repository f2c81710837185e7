"""GGUF-lite, the assignment's container."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...core.reading import Source
from ..registry import Format

if TYPE_CHECKING:
    from ...core.slices import Bytes
    from ..field import Field
    from ..file import Beside
    from .read import GGUFLite


def _open(source: Source, beside: Beside) -> GGUFLite:
    from .read import open_gguf_lite

    return open_gguf_lite(source)


def _fields(data: Bytes, source: Source, beside: Beside) -> Iterator[Field]:
    from .fields import gguf_lite_fields

    return gguf_lite_fields(data)


def _check(source: Source, beside: Beside) -> None:
    from .fields import check_gguf_lite

    check_gguf_lite(source)


FORMAT = Format(
    name="gguf-lite",
    title="GGUF-lite",
    extensions=(".gguf-lite",),
    version=1,
    begins="b'TFLG'",
    matches=lambda head: head.startswith(b"TFLG"),
    open=_open,
    fields=_fields,
    check=_check,
)
