"""A safetensors file, and the checkpoint of a Hugging Face folder, one file or many, of which only headers are read.

A checkpoint of several files, its shards, comes with ``model.safetensors.index.json``, which says where each tensor is.
The header may lie, so every size is checked against the file's before anything is allocated. ``types`` has the layout.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import bfloat16_to_float32
from ...core.errors import FormatError, PickleSecurityRisk
from ...core.reading import Source, read_bounded
from ..file import TensorFile
from ..json_places import byte_members
from ..tensor import TensorInfo
from .types import MAX_HEADER, SafetensorsType

METADATA = "__metadata__"  # a key that is no tensor
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
MAX_TEXT = 2**27  # bytes of a JSON file: the largest tokenizers have a quarter of that
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


class Stored(NamedTuple):
    """A tensor of a checkpoint: the file that it is in, its info there, and its first byte in that file."""

    path: str
    info: TensorInfo[SafetensorsType]
    start: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return self.info.shape

    @property
    def dtype(self) -> SafetensorsType:
        """The tensor's type."""
        return self.info.dtype

    @property
    def n_bytes(self) -> int:
        """The length of the data."""
        return self.info.n_bytes

    def map(self) -> np.ndarray:
        """The tensor, mapped and not read: ``shape``, float32, float16, or bfloat16's bits as uint16.

        The mapping ends with the last array that uses it: what was read no longer counts as memory then.
        """
        if not self.n_bytes:
            return np.empty(self.shape, self.dtype.numpy)
        return np.memmap(self.path, self.dtype.numpy, "r", self.start, self.shape).view(np.ndarray)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Some rows as ``map`` has them, read and not mapped: a file that is cut meanwhile is an error, no crash.

        Raises ``FormatError`` if the file has become shorter than its header says, ``OSError`` if it has gone.
        """
        width = math.prod(self.shape[1:])
        out = np.empty((stop - start, *self.shape[1:]), self.dtype.numpy)
        with open(self.path, "rb", buffering=0) as file:
            self._fill(file, start * width, out)
        return out

    def columns(self, start: int, stop: int) -> np.ndarray:
        """Some columns of a matrix, read row by row: (rows, stop - start). Raises what ``rows`` raises."""
        out = np.empty((self.shape[0], stop - start), self.dtype.numpy)
        with open(self.path, "rb", buffering=0) as file:
            for index, row in enumerate(out):
                self._fill(file, index * self.shape[1] + start, row)
        return out

    def _fill(self, file: FileIO, first: int, out: np.ndarray) -> None:
        """Read as many elements as fit into ``out``, from element ``first`` on."""
        at, left = self.start + first * out.itemsize, out.reshape(-1).view(np.uint8).data
        file.seek(at)
        while len(left):
            got = file.readinto(left)
            if not got:
                raise FormatError(f"ends before byte {at + out.nbytes}: it was cut while it was read", path=self.path)
            left = left[got:]


def open_safetensors(source: Source) -> SafetensorsFile:
    """Open a safetensors file, by its path or as bytes, and read its header. Errors as in ``SafetensorsFile``."""
    return SafetensorsFile(source)


class SafetensorsFile(TensorFile[SafetensorsType]):
    """An open safetensors file; ``metadata`` is the header's ``__metadata__``, ``spans`` has each entry's first byte
    in the file and the one after its last.

    Raises ``FormatError`` for a malformed file, ``OSError`` for one that cannot be opened.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source, 8)
        (length,), _ = self._take("<Q", 0, "header.length")
        if length > min(self.n_bytes - 8, MAX_HEADER):
            raise self._error(
                f"found {length}; {self.n_bytes - 8} bytes are left, and a header has {MAX_HEADER} at most",
                "header.length",
                0,
            )
        self.data_start = 8 + length
        text = self._text(8, self.data_start, "header")
        entries = parse_object(text, self.path, "header", 8)
        self.spans, self._keys = _spans(text.encode())
        about = entries.pop(METADATA, {})  # free text, such as {"format": "pt"}
        self.metadata = about if isinstance(about, dict) else {}
        self.tensors = {name: self._entry(name, entry) for name, entry in entries.items()}
        self._check_places((t.name[:80], t.offset, t.n_bytes, self.spans[t.name][0]) for t in self.tensors.values())
        used, there = sum(info.n_bytes for info in self.tensors.values()), self.n_bytes - self.data_start
        if used != there:
            raise self._error(f"the tensors take {used} bytes, the file has {there} for them", "data", self.data_start)

    def entry_place(self, name: str) -> tuple[int, int] | None:
        """A tensor's entry in the header."""
        return self.spans[name]

    def key_place(self, key: str) -> tuple[int, int] | None:
        """A key of ``__metadata__`` with its text."""
        return self._keys[key]

    def tensor(self, name: str) -> np.ndarray:
        """A tensor in its shape, float32, a fresh array."""
        info = self._info(name)
        w = self.raw(name).view(info.dtype.numpy).reshape(info.shape)
        return bfloat16_to_float32(w) if info.dtype == SafetensorsType.BF16 else w.astype(np.float32)

    def _entry(self, name: str, entry: Any) -> TensorInfo[SafetensorsType]:
        field, at = f"tensor {name[:80]!r}", self.spans[name][0]
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise self._error("its entry is not a dtype, a shape and data_offsets", field, at)
        known = SafetensorsType.__members__
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in known:
            raise self._error(
                f"found {dtype!r:.40}; weights of {', '.join(known)} can be converted: save the checkpoint as one",
                f"{field}: dtype",
                at,
            )
        if not _counts(shape) or not _counts(offsets) or len(offsets) != 2:
            raise self._error("its shape and data_offsets are not lists of whole numbers from 0 on", field, at)
        info = TensorInfo(name, tuple(shape), SafetensorsType[dtype], offsets[0])
        if info.n_bytes != offsets[1] - offsets[0]:
            raise self._error(
                f"{dtype} of shape {shape} takes {info.n_bytes:.10g} bytes, and it has {offsets[1] - offsets[0]}",
                f"{field}: data_offsets",
                at,
            )
        return info


def _spans(header: bytes) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
    """Where each entry is in the file, and each key of the metadata; with the comma or brace before it."""
    entries, keys, at = {}, {}, 8
    for member in byte_members(header):
        entries[member.key] = (at, 8 + member.end)
        at = 8 + member.end
        if member.key == METADATA and header[member.start : member.start + 1] == b"{":
            before = 8 + member.start
            for part in byte_members(header, member.start):
                keys[part.key] = (before, 8 + part.end)
                before = 8 + part.end
    return entries, keys


def _counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(n) is int and 0 <= n < 2**63 for n in values) and len(values) <= 8


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object. Raises ``FormatError`` for anything else, ``OSError`` if it cannot be read."""
    return parse_object(read_text(path), os.fspath(path))


def read_text(path: Path) -> str:
    """A text file of a folder. Raises ``FormatError`` if it is not UTF-8, not regular, or longer than ``MAX_TEXT``."""
    try:
        return read_bounded(path, MAX_TEXT).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"not valid UTF-8 ({error.reason})", path=path, offset=error.start) from None


def parse_object(text: str, path: str | None, field: str | None = None, offset: int = 0) -> dict[str, Any]:
    """A JSON object without duplicate keys; ``offset`` is where the text begins in the file."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise FormatError(f"the name {key[:80]!r} stands twice; names are unique", path=path, field=field)
            found[key] = value
        return found

    try:
        found = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        at = offset + len(text[: error.pos].encode())
        raise FormatError(f"this is no JSON: {error.msg}", path=path, field=field, offset=at) from None
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:  # a number of too many digits; brackets in brackets in brackets
        raise FormatError(f"this JSON cannot be read: {error}", path=path, field=field) from None
    if not isinstance(found, dict):
        raise FormatError("this JSON is no object in braces", path=path, field=field)
    return found


def open_checkpoint(folder: Path) -> dict[str, Stored]:
    """Every tensor of the checkpoint in a folder, by its name there.

    Raises ``PickleSecurityRisk`` if there are only pickles, ``FormatError`` if a file is missing, malformed, or not
    part of the checkpoint, and if index and shards disagree.
    """
    files = {path.name for path in folder.glob("*.safetensors")}
    if (folder / INDEX).exists():
        return _open_shards(folder, files)
    if SINGLE in files and len(files) == 1:
        return _stored(folder / SINGLE)
    if files:
        raise FormatError(
            f"found {listed(files)}; without {INDEX} there is one file, {SINGLE}: download the index, or move the "
            "others away",
            path=folder,
        )
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in PICKLES)
    if pickles:
        raise PickleSecurityRisk(
            f"{folder}: {listed(pickles)} is a pickle, and loading one runs whatever code it holds; "
            f"take the {SINGLE} of the same model, or let its owner save one with save_pretrained"
        )
    raise FormatError(f"no {SINGLE} and no {INDEX} in it: there are no weights to convert", path=folder)


def _stored(path: Path) -> dict[str, Stored]:
    """The tensors of one file, which is closed again."""
    with open_safetensors(path) as file:
        place = os.fspath(path)
        return {name: Stored(place, info, file.data_start + info.offset) for name, info in file.tensors.items()}


def _open_shards(folder: Path, files: set[str]) -> dict[str, Stored]:
    index = read_object(folder / INDEX)
    places = index.get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(shard, str) for shard in places.values()):
        raise FormatError("it is no object of names and files", path=folder / INDEX, field="weight_map")
    shards = set(places.values())
    if missing := shards - files:  # a path such as ../x is no name of a file in the folder either
        raise FormatError(f"it names {listed(missing)}, not in this folder; download all of it", path=folder / INDEX)
    if extra := files - shards:
        raise FormatError(f"it knows nothing of {listed(extra)}; move it away if it is none", path=folder / INDEX)
    found: dict[str, Stored] = {}
    for shard in sorted(shards):
        for name, stored in _stored(folder / shard).items():
            if name in found:
                raise FormatError(f"{name[:80]!r} stands in {Path(found[name].path).name} too", path=stored.path)
            if places.get(name) != shard:
                where = f"to be in {shown(places[name])}" if name in places else "nowhere"
                raise FormatError(f"it holds {name[:80]!r}, which {INDEX} says is {where}", path=stored.path)
            found[name] = stored
    if lost := places.keys() - found.keys():
        name = min(lost)
        raise FormatError(f"it says that {name[:80]!r} is in {shown(places[name])}, and it is not", path=folder / INDEX)
    return found


def shown(name: str) -> str:
    """A name as an error message has it: on one line, and not without end."""
    return name if name.isprintable() and len(name) <= 80 else repr(name[:80])


def listed(names: Iterable[str], show: Callable[[str], str] = shown) -> str:
    """The first few of some names, and how many more there are.

    >>> listed({"b", "a", "d", "c"})
    'a, b, c and 1 more'
    """
    names = sorted(names)
    return ", ".join(map(show, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
