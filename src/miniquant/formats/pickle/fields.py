"""Every byte of a pickle has a name: opcode by opcode; of an archive by torch.save, entry by entry. Nothing is run."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...core.errors import FormatError
from ...core.reading import Source
from ...core.slices import Bytes, SliceFile, as_slices
from ..field import Decoder, Field, show
from .opcodes import MEANINGS, kind_of
from .scan import LEGACY_TORCH, ZIP, scan_file, steps

CATEGORY = {"import": "import", "call": "call", "data": "values", "memo": "memo", "frame": "header"}
LOCAL = struct.Struct("<26x2H")  # what comes before an entry's name: 26 bytes, then the lengths of name and extra field
ROW = 5  # pickles in a row in torch's older format


@dataclass(frozen=True)
class Known(Decoder):
    """A value that was found when the bytes were read."""

    known: Any

    def value(self, raw: Bytes) -> Any:
        """The value."""
        return self.known

    def text(self, raw: Bytes, start: int | None = None, end: int | None = None) -> str:
        """The value as short text."""
        return show(self.known)


def pickle_fields(data: Bytes) -> Iterator[Field]:
    """The fields of a pickle, of several in a row, or of the archive that torch.save writes."""
    if bytes(data[: len(ZIP)]) == ZIP:
        yield from _archive(data)
        return
    whole = bytes(data)
    legacy, start = whole.startswith(LEGACY_TORCH), 0
    for number in range(ROW if legacy else 1):
        last = None
        for last in _opcodes(data, whole, 0, start, f"pickle {number}: " if legacy else ""):
            yield last
        if last is None or not last.name.endswith("STOP"):
            return
        start = last.end
    if legacy and start < len(whole):
        what = "the numbers of the storages, one after another"
        yield Field("storages", start, len(whole), "values", what, data[start:])


def _opcodes(data: Bytes, whole: bytes, shift: int, start: int, prefix: str = "") -> Iterator[Field]:
    """The opcodes of the pickle at byte ``start`` of ``whole``, which begins at byte ``shift`` of the file."""
    try:
        for number, step in enumerate(steps(whole, start)):
            first, last = shift + step.offset, shift + step.end
            what = MEANINGS.get(step.opcode, "pushes its argument")
            value = f"{step.wants.module} {step.wants.name}" if step.wants else step.argument
            name = f"{prefix}opcode {number}: {step.opcode}"
            decoder = Known("no argument" if value is None else value)
            yield Field(name, first, last, CATEGORY[kind_of(step.opcode)], what, data[first:last], decoder)
    except FormatError:
        return


def _archive(data: Bytes) -> Iterator[Field]:
    """The entries in the order of the file, and the directory after them."""
    try:
        with zipfile.ZipFile(io.BufferedReader(SliceFile(as_slices(data)))) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
            directory = archive.start_dir
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        return
    at = 0
    for entry in entries:
        begin, name = entry.header_offset, f"entry {entry.filename[:60]!r}"
        head = bytes(data[begin : begin + LOCAL.size])
        if begin < at or len(head) < LOCAL.size:
            return
        start = begin + LOCAL.size + sum(LOCAL.unpack(head))
        at = start + entry.compress_size
        if at > data.size:
            return
        what = "what the archive says about this entry: its name, its length, its check sum"
        yield Field(f"{name}: header", begin, start, "header", what, data[begin:start])
        if entry.filename.endswith(".pkl") and entry.compress_type == zipfile.ZIP_STORED:
            yield from _opcodes(data, bytes(data[start:at]), start, 0, f"{name}: ")
        elif at > start:
            packed = "; compressed" * (entry.compress_type != zipfile.ZIP_STORED)
            what = f"the bytes of a file in the archive; numbers of a tensor, if it is in data/{packed}"
            yield Field(f"{name}: data", start, at, "values", what, data[start:at])
    if directory >= at:
        what = "the archive's directory: every entry once more, with its place"
        yield Field("directory", directory, data.size, "header", what, data[directory:])


def check_pickle(source: Source) -> None:
    """Raise ``FormatError`` where the scanner stops; what the pickle would import is no error here."""
    scan_file(source)
