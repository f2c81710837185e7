"""Which format is this file? One registry: a format is a folder here, and its ``__init__`` holds its ``FORMAT``.

The folders are listed, not named, so a new format needs no line elsewhere. A ``FORMAT`` is a few words and functions
that import their readers when they are called: to open a file of one format loads no other format's reader.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ..core.errors import FormatError
from ..core.reading import Source, as_bytes, open_regular, path_of
from ..core.slices import Bytes, Slices

if TYPE_CHECKING:
    from .field import Field
    from .file import Beside, TensorFile

HEAD = 16  # the bytes of a file that its format is found out by


@dataclass(frozen=True)
class Format:
    """A format of files.

    ``matches`` says whether a file that begins with these bytes (up to 16) is of this format, ``begins`` says the same
    for people. ``version`` is the newest that is read here. ``open`` gets a file and what lies beside it. ``fields``
    names the bytes of a file, ``check`` raises ``FormatError`` for what is wrong with one; both are ``None`` if nobody
    has named this format's bytes yet.
    """

    name: str
    title: str
    extensions: tuple[str, ...]
    version: int | None
    begins: str
    matches: Callable[[bytes], bool]
    open: Callable[[Source, Beside], TensorFile[Any]]
    fields: Callable[[Bytes, Source, Beside], Iterator[Field]] | None = None
    check: Callable[[Source, Beside], None] | None = None


@cache
def formats() -> Mapping[str, Format]:
    """Every format by its name, in the order of the folders.

    >>> formats()["gguf"].extensions
    ('.gguf',)
    """
    package = importlib.import_module(__package__)
    found = {}
    for module in pkgutil.iter_modules(package.__path__, f"{__package__}."):
        if module.ispkg:
            format = importlib.import_module(module.name).FORMAT
            found[format.name] = format
    return found


def format_of_bytes(head: bytes) -> Format | None:
    """The format of a file that begins with these bytes, if it is a known one."""
    return next((format for format in formats().values() if format.matches(head[:HEAD])), None)


def format_of_name(path: str | PurePath) -> Format | None:
    """The format that a file's name asks for, by its extension.

    >>> format_of_name("a/model.GGUF").name, format_of_name("model.apr.json").name, format_of_name("model.txt")
    ('gguf', 'apr', None)
    """
    name = PurePath(path).name.lower()
    return next((format for format in formats().values() if name.endswith(format.extensions)), None)


def format_of(source: Source) -> Format:
    """The format of a file (a path or bytes), by its first bytes.

    Raises ``FormatError`` if it is none of the known ones, ``OSError`` if it cannot be opened.
    """
    head = head_of(source)
    if (found := format_of_bytes(head)) is not None:
        return found
    known = ", ".join(f"{format.title} files begin with {format.begins}" for format in formats().values())
    raise FormatError(f"found {head[:4]!r}; {known}", path=path_of(source), field="header.magic", offset=0)


def head_of(source: Source) -> bytes:
    """The first bytes of a file, 16 at most."""
    if isinstance(source, bytes | bytearray | memoryview | Slices):
        return bytes(as_bytes(source[:HEAD]))
    with open_regular(source) as file:
        return file.read(HEAD)


def open_any(source: Source, beside: Beside | None = None) -> TensorFile[Any]:
    """Open a file of any format, found out by its first bytes; use it in a ``with`` block.

    source: a path, or the file's bytes. beside: for bytes, what lies beside the file, by name: a bump file needs its
    ``config.json``.

    Raises ``FormatError`` for a malformed file or an unknown format, ``PickleSecurityRisk`` for a pickle, ``OSError``
    for a file that cannot be opened.
    """
    return format_of(source).open(source, beside or {})
