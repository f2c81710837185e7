"""What the page of the inspector shows of a file, as plain values that JSON can hold.

The fields, their values and the errors are those of ``formats``. Nothing is read but what is asked for, so a file may
be of any length; ``Slices`` bring it from a browser, and hold the bytes that somebody has typed over.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from typing import Any

import numpy as np

from ..core.errors import FormatError, MiniquantError
from ..core.slices import Slices, as_slices
from ..formats.describe import plain
from ..formats.field import Array, Field, places_text
from ..formats.fields import parse
from ..formats.file import Beside, TensorFile
from ..formats.gguf.codecs import CODECS
from ..formats.gguf.codecs.common import NIBBLES
from ..formats.gguf.fields import block_fields
from ..formats.gguf.types import GGMLType
from ..formats.pickle.scan import off_list, scan_file
from ..formats.registry import HEAD, Format, format_of, format_of_bytes
from ..formats.tensor import TensorInfo
from .markup import CATEGORIES
from .pictures import FILLS, Block, blocks_of

MOST_BLOCKS = 1500  # of the strip; what is narrower than that share of the file is drawn together with its neighbours
MOST_NAMED = 500  # fields of a malformed file that are listed
SHOWN = 200  # characters of a value
WORDS = {str: "text", int: "whole number", float: "number", bool: "truth value"}
RUNS = 2000  # of bytes that differ, kept to jump to
Json = dict[str, Any]
Row = tuple[int, int, str, int]  # first byte, byte after the last, table, number of the row


class Inspector:
    """A file that is looked at.

    source: bytes or slices. beside: what lies beside it, by name: a bump file's ``config.json`` names its tensors.
    ``error`` is what its reader stops with, without the path; ``fields`` are in order, each byte in exactly one.
    Raises ``OSError`` if the file cannot be read.
    """

    def __init__(self, source: Slices | bytes, beside: Beside | None = None) -> None:
        self.data = as_slices(source)
        self.format: Format | None = format_of_bytes(bytes(self.data[:HEAD]))
        self.fields, self.error = parse(self.data, beside)
        self.refused = ""
        self.file: TensorFile[Any] | None = None
        try:
            self.file = format_of(self.data).open(self.data, beside or {})
        except FormatError as error:
            self.error = self.error if self.format else error
        except MiniquantError as error:
            self.refused = str(error).removeprefix("the bytes: ")
        self._starts = [field.start for field in self.fields]
        self._blocks = _coarse(blocks_of(self.fields), self.data.size)
        self._metadata, self._tensors = self._tables()
        tables = {"metadata": self._metadata, "tensors": self._tensors}
        self._rows: list[Row] = sorted(
            (*place, table, number)
            for table, rows in tables.items()
            for number, row in enumerate(rows)
            for place in row["places"]
        )

    # ---- the whole file
    def summary(self) -> Json:
        """What the file is, what is wrong with it, and its tables."""
        error, file = self.error, self.file
        return {
            "name": self.data.name,
            "format": self.format.title if self.format else "unknown",
            "version": file.version if file else None,
            "architecture": file.architecture if file else "unknown",
            "alignment": file.alignment if file else 1,
            "data_start": file.data_start if file else None,
            "n_bytes": self.data.size,
            "n_fields": len(self.fields),
            "error": {"message": str(error), "field": error.field, "offset": error.offset} if error else None,
            "refused": self.refused,
            "header": self._listed([f for f in self.fields if f.category == "header"][:MOST_NAMED]),
            "named": self._listed([f for f in self.fields if f.category != "header"][:MOST_NAMED] if error else []),
            "metadata": self._metadata,
            "tensors": self._tensors,
            "imports": self._imports(),
            "blocks": [
                {**block._asdict(), "colour": FILLS.get(block.what or block.name, "")} for block in self._blocks
            ],
            "categories": {name: [letter, what, colour] for name, (letter, what, colour) in CATEGORIES.items()},
        }

    def _listed(self, fields: list[Field]) -> list[Json]:
        return [
            {"name": f.name, "value": f.text()[:SHOWN], "what": f.explanation, "places": [[f.start, f.end]]}
            for f in fields
        ]

    def _tables(self) -> tuple[list[Json], list[Json]]:
        if self.file is None:
            return [], []
        file, types = self.file, getattr(self.file, "types", {})
        metadata = []
        for key, value in file.metadata.items():
            kind, of = types.get(key, (None, None))
            named = (f"{kind.name} of {of.name}" if of is not None else kind.name) if kind is not None else ""
            place = file.key_place(key)
            found = {"key": key, "type": named or WORDS.get(type(value), "list"), "value": _short(value)}
            metadata.append({**found, "places": [place] if place else []})
        return metadata, [self._tensor(file, info) for info in file.tensors.values()]

    @staticmethod
    def _tensor(file: TensorFile[Any], info: TensorInfo[Any]) -> Json:
        start, entry = file.data_start + info.offset, file.entry_place(info.name)
        places = [entry] if entry else []
        places += [(start, start + info.n_bytes)] if info.n_bytes else []
        found = {"name": info.name, "type": info.dtype.name, "shape": list(info.shape), "offset": info.offset}
        return {**found, "start": start, "n_bytes": info.n_bytes, "what": info.dtype.description, "places": places}

    def _imports(self) -> list[Json]:
        """What a pickle would import, where it asks for it, and whether a state dict needs it."""
        if self.format is None or self.format.name != "pickle" or self.error:
            return []
        wanted = [(entry, wants) for entry, found in scan_file(self.data).items() for wants in found]
        places: list[Any] = [[f.start, f.end] for f in self.fields if f.category == "import"]
        places = (
            places if len(places) == len(wanted) else [None] * len(wanted)
        )  # a compressed pickle has no opcodes here
        return [
            {
                "pickle": entry,
                "name": f"{wants.module}.{wants.name}",
                "listed": not off_list([wants]),
                "places": [place] if place else [],
            }
            for (entry, wants), place in zip(wanted, places)
        ]

    # ---- a stretch of bytes
    def window(self, start: int, length: int) -> Json:
        """Some bytes in hexadecimal, and the runs of them that belong to one field."""
        end = min(start + length, self.data.size)
        runs = []
        for number in range(max(0, bisect_right(self._starts, start) - 1), len(self.fields)):
            field = self.fields[number]
            if field.start >= end:
                break
            first, last = max(start, field.start), min(end, field.end)
            runs.append({"field": number, "name": field.name, "category": field.category, "start": first, "end": last})
        return {"start": start, "bytes": bytes(self.data[start:end]).hex(), "runs": runs}

    def at(self, offset: int) -> Json:
        """What a byte is: its field, what that says here, its row in a table, its place in the strip, its block.

        Raises ``IndexError`` for a byte outside the file.
        """
        if not 0 <= offset < self.data.size:
            raise IndexError(f"the file has {self.data.size} bytes; there is no byte {offset}")
        number = bisect_right(self._starts, offset) - 1
        field = self.fields[number]
        place = bisect_right(self._rows, offset, key=lambda row: row[0]) - 1
        row = self._rows[place] if place >= 0 and self._rows[place][1] > offset else None
        return {
            "offset": offset,
            "byte": bytes(self.data[offset : offset + 1])[0],
            "field": {
                "number": number,
                "name": field.name,
                "start": field.start,
                "end": field.end,
                "category": field.category,
                "what": field.explanation,
                "value": field.text(offset, offset + 1)[: 2 * SHOWN],
            },
            "row": {"table": row[2], "number": row[3]} if row else None,
            "block": bisect_right(self._blocks, offset, key=lambda block: block.start) - 1,
            "decoded": self._decoded(field, number, offset),
        }

    def _decoded(self, field: Field, number: int, offset: int) -> Json | None:
        """The block of numbers in which a byte lies: its parts, and what it stands for."""
        array = field.decoder
        if not isinstance(array, Array) or array.decode is None:
            return None
        index = (offset - field.start) // array.size
        first = field.start + index * array.size
        raw = np.asarray(field.raw[first - field.start : first - field.start + array.size])
        if len(raw) < array.size:
            return None
        kind = GGMLType[array.label] if array.piece_parts is not None else None
        parts: list[Json] = [
            {
                "name": part.name,
                "start": first + part.start,
                "end": first + part.end,
                "category": part.category,
                "what": part.explanation,
                "value": part.text(),
            }
            for part in (block_fields(raw, kind) if kind is not None else [])
        ]
        packed = NIBBLES in CODECS[kind].fields if kind is not None else array.per == 2
        inside = [part for part in parts if part["start"] <= offset < part["end"]]
        byte = int(raw[offset - first])
        return {
            "type": array.label,
            "number": index,
            "start": first,
            "end": first + array.size,
            "place": places_text(index * array.per, (index + 1) * array.per - 1, array.shape),
            "values": [f"{value:.6g}" for value in array.decode(raw).tolist()],
            "parts": parts,
            "nibbles": [byte & 15, byte >> 4] if packed and all(p["name"] == NIBBLES.name for p in inside) else None,
            "scale": self._scale(number, index * array.per),
        }

    def _scale(self, number: int, element: int) -> Json | None:
        """The scale of a quantized value, where a field of scales comes before the field of values."""
        before, field = self.fields[max(0, number - 1)], self.fields[number]
        scales, values = before.decoder, field.decoder
        if before.category != "scales" or field.category != "values" or before.end != field.start:
            return None
        if not isinstance(scales, Array) or not isinstance(values, Array):
            return None
        index = element * math.prod(scales.shape) // math.prod(values.shape)
        at = before.start + index * scales.size
        raw = np.asarray(self.data[at : at + scales.size])
        return {"value": f"{float(raw.view('<f2')[0]):.6g}", "number": index, "start": at, "end": at + scales.size}

    # ---- two files
    def differences(self, other: Inspector, start: int, length: int) -> Json:
        """Which of some bytes differ from another file's, as runs, and how many in each of the fields.

        Where one file ends, the rest of the other differs; that is said by the two lengths, and not counted.
        """
        end = min(start + length, self.data.size, other.data.size)
        counts: Counter[str] = Counter()
        runs: list[tuple[int, int]] = []
        ours, theirs = (np.asarray(file.data[start:end]) for file in (self, other))
        places = np.flatnonzero(ours != theirs)
        edges = np.flatnonzero(np.diff(places) > 1) + 1
        for run in np.split(places, edges)[:RUNS] if len(places) else []:
            runs.append((start + int(run[0]), start + int(run[-1]) + 1))
        number = max(0, bisect_right(self._starts, start) - 1)
        while number < len(self.fields) and self.fields[number].start < end:
            field = self.fields[number]
            low, high = np.searchsorted(places, [field.start - start, field.end - start])
            counts[field.name] += int(high - low)
            number += 1
        return {"end": end, "count": len(places), "runs": runs, "fields": {k: n for k, n in counts.items() if n}}


def _short(value: Any) -> str:
    """A value of the metadata as text, the beginning of a long one."""
    try:
        found = plain(value)
    except FormatError as error:  # a text in an array that is no UTF-8
        return str(error)[:SHOWN]
    text = ", ".join(map(str, found)) if isinstance(found, list) else str(found)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _coarse(blocks: list[Block], size: int) -> list[Block]:
    """At most some thousand blocks: of a file with more, neighbours that are too narrow to see become one."""
    if len(blocks) <= MOST_BLOCKS:
        return blocks
    found: list[Block] = []
    counts: list[int] = []
    for block in blocks:
        narrow = block.length < size / MOST_BLOCKS
        if found and narrow and counts[-1] and found[-1].length < size / MOST_BLOCKS:
            counts[-1] += 1
            found[-1] = Block(f"{counts[-1]} parts", "", found[-1].start, found[-1].length + block.length)
        else:
            found.append(block)
            counts.append(int(narrow))
    return found
