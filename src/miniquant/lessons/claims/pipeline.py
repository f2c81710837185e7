"""What the claims of lab 16 are about, the referee that reads the files, and a second exporter to plant bugs in."""

from __future__ import annotations

import copy
import functools
import json
import math
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from ...formats.gguf import GGMLType, Typed, ValueType
from ...formats.gguf.metadata import encode_metadata, encode_string
from ...formats.gguf.read import padded
from ...formats.gguf_lite.sizes import human
from ...models.export import (
    Exporter,
    ExportFormat,
    GGUFQuantization,
    ModelMetadata,
    ModelWeights,
    export_metadata,
    export_types,
    quantize_and_export,
    quantize_to_gguf_bytes,
)

Shapes = dict[str, tuple[int, ...]]
NAMES = ["a", "b", "w.a", "w.Z", "blk.2.attn.weight", "blk.10.attn.weight", "blk.1.bias", "output", "caf\u00e9"]
SPECIAL = [0, 1, 0x80000000, 0x7FC00000, 0x7FC00001, 0x7F800001, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7F7FFFFF]

quantizations = st.sampled_from(list(GGUFQuantization))
whole_rows = st.tuples(st.integers(1, 16), st.integers(1, 16).map(lambda blocks: 32 * blocks))
words = st.sampled_from(SPECIAL) | st.integers(0, 2**32 - 1)  # the bits of a float32, of any float32


@functools.cache  # one strategy, so that what it draws is known to be the same
@st.composite
def abouts(draw: st.DrawFn) -> ModelMetadata:
    """Every combination of known and unknown fields; sizes only where the architecture is known."""
    sizes = st.none() | st.integers(0, 2**31)
    architecture = draw(st.none() | st.sampled_from(["gpt2", "llama"]))
    known = [draw(sizes) if architecture else None for _ in range(3)]
    name = draw(st.none() | st.sampled_from(["", "tiny", "caf\u00e9"]))
    return ModelMetadata(architecture, name, draw(st.none() | st.integers(1, 2**40)), *known)


def weights(shapes: Mapping[str, tuple[int, ...]], about: ModelMetadata | None = None) -> ModelWeights:
    """A model of these shapes, the same each time; no two tensors hold the same numbers.

    >>> weights({"a": (2, 32)}).tensors["a"].dtype
    dtype('float32')
    """
    tensors = {name: _numbers(name, math.prod(shape)).reshape(shape) for name, shape in shapes.items()}
    return ModelWeights(tensors, about or ModelMetadata())


def _numbers(name: str, count: int) -> np.ndarray:
    """The first ``count`` random numbers of a name, as a copy: (count,) float32."""
    return _random(sum(name.encode()), max(4096, 1 << count.bit_length()))[:count].astype(np.float32)


@functools.lru_cache(64)
def _random(seed: int, count: int) -> np.ndarray:
    """Random numbers as they come from a generator that begins with ``seed``: (count,) float64."""
    return np.random.default_rng(seed).normal(size=count)


def folder() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder, in memory where the machine has one: a thousand files are written in a moment."""
    try:
        return tempfile.TemporaryDirectory(dir="/dev/shm")
    except OSError:
        return tempfile.TemporaryDirectory()


class Pipeline:
    """What the claims are about: the exporter of the course, its block encoder and its model card."""

    exporter: type[Exporter] = Exporter

    def gguf(
        self, model: ModelWeights, quantization: GGUFQuantization = GGUFQuantization.NONE, include: bool = True
    ) -> bytes:
        """The bytes of the GGUF file that is exported; ``include`` its metadata."""
        with folder() as place:
            exporter = self.exporter(place, quantization, include_metadata=include)
            return exporter.export(model, ExportFormat.GGUF, "model.gguf").path.read_bytes()

    def encode(self, data: np.ndarray, quantization: GGUFQuantization) -> bytes:
        """A flat array as blocks."""
        return quantize_to_gguf_bytes(data, quantization)[0]

    def card(self, model: ModelWeights, quantization: GGUFQuantization) -> tuple[str, bytes]:
        """The README.md that lies beside the exported file, and the bytes of that file."""
        with folder() as place:
            path = quantize_and_export(model, quantization, place, "model.gguf").export.path
            return (path.parent / "README.md").read_text("utf-8"), path.read_bytes()

    def __repr__(self) -> str:
        return type(self).__name__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))


class InMemory(Pipeline):
    """A second exporter, in memory: the same bytes and the same card, with a method for each decision to go wrong."""

    alignment = 32

    def order(self, names: Iterable[str]) -> list[str]:
        """The order in which tensors are written."""
        return sorted(names)

    def dims(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The dims as they are in the file."""
        return shape[::-1]

    def types(self, shapes: Shapes, quantization: GGUFQuantization) -> dict[str, GGMLType]:
        """The type of every tensor."""
        return export_types(shapes, quantization)

    def pairs(self, model: ModelWeights, quantization: GGUFQuantization, include: bool, quantized: bool) -> Any:
        """The metadata: a dict, key -> value."""
        pairs = export_metadata(model, quantization) if include else {}
        return pairs | ({"general.quantization_version": Typed(2, ValueType.UINT32)} if quantized else {})

    def room(self, n_bytes: int) -> int:
        """How far after a tensor of ``n_bytes`` the next one begins."""
        return padded(n_bytes, self.alignment)

    def key_count(self, n_keys: int) -> int:
        """The number of keys that the header states."""
        return n_keys

    def tagged(self, quantized: bool) -> bool:
        """Whether the card has the tag "quantized"."""
        return quantized

    def stated_size(self, file: bytes, data: int) -> int:
        """The size of the file that the card states; ``data``: the bytes of all tensors."""
        return len(file)

    def encode(self, data: np.ndarray, quantization: GGUFQuantization) -> bytes:
        """A flat array as blocks; float32 as it is."""
        if quantization == GGUFQuantization.NONE:
            return data.astype("<f4").tobytes()
        return super().encode(data, quantization)

    def gguf(
        self, model: ModelWeights, quantization: GGUFQuantization = GGUFQuantization.NONE, include: bool = True
    ) -> bytes:
        """The bytes of a file, put together in memory."""
        types = self.types(model.shapes, quantization)
        pairs = self.pairs(model, quantization, include, any(kind.quantized for kind in types.values()))
        infos, data, offset = b"", b"", 0
        for name in self.order(model.tensors):
            w, kind = model.tensors[name], types[name]
            blocks, dims = self.encode(w, GGUFQuantization(kind.name)), self.dims(w.shape)
            infos += encode_string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
            offset += self.room(len(blocks))
            data += blocks + bytes(padded(len(blocks), self.alignment) - len(blocks))
        head = struct.pack("<4sIQQ", b"GGUF", 3, len(model.tensors), self.key_count(len(pairs)))
        head += encode_metadata(pairs) + infos
        return head + bytes(padded(len(head), self.alignment) - len(head)) + data

    def card(self, model: ModelWeights, quantization: GGUFQuantization) -> tuple[str, bytes]:
        """The card, line by line, and the bytes of the file."""
        file, about = self.gguf(model, quantization), model.metadata
        types, counts, sizes = self.types(model.shapes, quantization), Counter[str](), Counter[str]()
        for name, kind in types.items():
            counts[kind.name] += 1
            sizes[kind.name] += len(self.encode(model.tensors[name], GGUFQuantization(kind.name)))
        quantized, title = any(kind.quantized for kind in types.values()), about.model_name or "model"
        fits = quantized or quantization == GGUFQuantization.NONE
        lines = ["---", "tags:", "- miniquant", "- gguf", *(["- quantized"] if self.tagged(quantized) else [])]
        lines += [f"model_name: {json.dumps(title)}", "---", f"# {title}", ""]
        lines += [f"- Architecture: {about.architecture or 'not stated'}"]
        lines += [f"- Quantization: {quantization.value}{'' if fits else ' (no tensor fits)'}"]
        lines += [f"- File: `model.gguf`, {human(self.stated_size(file, sizes.total()))}"]
        lines += [f"- Tensors: {len(types)}", f"- Parameters: {model.num_params:,}", ""]
        lines += ["| type | tensors | size |", "| --- | --- | --- |"]
        lines += [f"| {kind} | {counts[kind]} | {human(sizes[kind])} |" for kind in sorted(counts)]
        return "\n".join(lines) + "\n", file


# ---- the referee -----------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """A tensor as the official reader finds it; ``dims`` as they stand in the file."""

    name: str
    kind: str
    dims: tuple[int, ...]
    data: np.ndarray  # float32 if the kind is F32, otherwise bytes
    weights: np.ndarray  # what its own decoder makes of the data


def official(data: bytes) -> tuple[dict[str, tuple[str, Any]], list[Found]]:
    """A file as the official ``gguf`` package reads it: key -> (type, value), and the tensors in order."""
    return copy.deepcopy(_official(data))


@functools.lru_cache(2048)
def _official(data: bytes) -> tuple[dict[str, tuple[str, Any]], list[Found]]:
    """The same, kept: most of the planted bugs leave most files as they were."""
    import gguf

    with folder() as place, np.errstate(invalid="ignore"):  # a flawed file may hold any scale
        path = Path(place) / "model.gguf"
        path.write_bytes(data)
        reader = gguf.GGUFReader(path)
        keys = {k: (f.types[0].name, f.contents()) for k, f in reader.fields.items() if not k.startswith("GGUF.")}
        found = [
            Found(
                t.name,
                t.tensor_type.name,
                tuple(map(int, t.shape)),
                np.array(t.data),
                gguf.quants.dequantize(np.array(t.data), t.tensor_type),
            )
            for t in reader.tensors
        ]
        del reader  # lets go of the file, which Windows wants before the folder goes
        return keys, found


def names_on_disk(data: bytes) -> list[str]:
    """The names of the tensors in the order of the file, by ``struct`` alone; for a file without metadata.

    The official reader takes milliseconds a file, too many for a thousand files of twenty tensors.
    """
    found, at = [], 24
    for _ in range(*struct.unpack_from("<Q", data, 8)):
        (length,) = struct.unpack_from("<Q", data, at)
        found.append(data[at + 8 : at + 8 + length].decode())
        (n_dims,) = struct.unpack_from("<I", data, at + 8 + length)
        at += 8 + length + 4 + 8 * n_dims + 4 + 8
    return found


def entries(data: bytes) -> tuple[dict[str, str], list[str]]:
    """What the header of a file lists, as the official package parses it: key -> type, and the names of the tensors.

    Their data are not looked at, so that a file with wrong data has entries, too.
    """
    return copy.deepcopy(_entries(data))


@functools.lru_cache(2048)
def _entries(data: bytes) -> tuple[dict[str, str], list[str]]:
    """The same, kept."""
    import gguf

    class Header(gguf.GGUFReader):
        names: tuple[str, ...] = ()

        def _build_tensors(self, start_offs: int, fields: Any) -> None:
            self.names = tuple(field.name for field in fields)

    with folder() as place:
        path = Path(place) / "model.gguf"
        path.write_bytes(data)
        reader = Header(path)
        keys = {k: f.types[0].name for k, f in reader.fields.items() if not k.startswith("GGUF.")}
        names = list(reader.names)
        del reader  # lets go of the file, which Windows wants before the folder goes
        return keys, names


def read_card(card: str) -> dict[str, Any]:
    """What a model card says, as texts: its tags, its title twice, its lines, and a (tensors, size) for each type.

    >>> read_card("---\\ntags:\\n- gguf\\n---\\n# a\\n\\n- Tensors: 2\\n\\n| F32 | 2 | 8 B |")["Tensors"]
    '2'
    """
    front, _, rest = card.removeprefix("---\n").partition("---\n")
    said: dict[str, Any] = {"tags": [line[2:] for line in front.splitlines() if line.startswith("- ")], "types": {}}
    for line in [*front.splitlines(), *rest.splitlines()]:
        if line.startswith("model_name: "):
            said["model_name"] = json.loads(line.removeprefix("model_name: "))
        elif line.startswith("# "):
            said["title"] = line.removeprefix("# ")
        elif line.startswith("- ") and ": " in line:
            name, _, value = line.removeprefix("- ").partition(": ")
            said[name] = value
        elif line.startswith("| ") and not line.startswith(("| type", "| ---")):
            kind, count, size = line.strip("| ").split(" | ")
            said["types"][kind] = (count, size)
    return said
