"""Real GGUF v3, from scratch on numpy: the container, its typed metadata, its block formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...core.lazy import lazily
from ...core.reading import Source
from ..registry import Format

if TYPE_CHECKING:
    from ...core.slices import Bytes
    from ..field import Field
    from ..file import Beside
    from .codecs import decode, encode
    from .metadata import Typed, ValueType
    from .read import GGUFFile, read_gguf
    from .types import GGMLType
    from .write import LazyTensor, RawTensor, write_gguf

__all__ = [
    "GGMLType",
    "GGUFFile",
    "LazyTensor",
    "RawTensor",
    "Typed",
    "ValueType",
    "decode",
    "encode",
    "read_gguf",
    "write_gguf",
]
__getattr__ = lazily(
    __name__,
    {"GGMLType": "types"}
    | dict.fromkeys(("decode", "encode"), "codecs")
    | dict.fromkeys(("Typed", "ValueType"), "metadata")
    | dict.fromkeys(("GGUFFile", "read_gguf"), "read")
    | dict.fromkeys(("LazyTensor", "RawTensor", "write_gguf"), "write"),
)


def _open(source: Source, beside: Beside) -> GGUFFile:
    from .read import read_gguf

    return read_gguf(source)


def _fields(data: Bytes, source: Source, beside: Beside) -> Iterator[Field]:
    from .fields import gguf_fields

    return gguf_fields(data)


def _check(source: Source, beside: Beside) -> None:
    from .fields import check_gguf

    check_gguf(source)


FORMAT = Format(
    name="gguf",
    title="GGUF",
    extensions=(".gguf",),
    version=3,
    begins="b'GGUF'",
    matches=lambda head: head.startswith(b"GGUF"),
    open=_open,
    fields=_fields,
    check=_check,
)
