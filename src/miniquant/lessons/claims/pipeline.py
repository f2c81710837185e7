"""What the claims of lab 16 are about, the referee that reads the files, and a second exporter to plant bugs in."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from ...formats.gguf import Typed, ValueType
from ...formats.gguf.metadata import encode_metadata, encode_string
from ...formats.gguf.read import padded
from ...models.export import (
    Exporter,
    ExportFormat,
    GGUFQuantization,
    ModelMetadata,
    ModelWeights,
    export_metadata,
    export_types,
    quantize_to_gguf_bytes,
)

Shapes = dict[str, tuple[int, ...]]
NAMES = ["a", "b", "w.a", "w.Z", "blk.2.attn.weight", "blk.10.attn.weight", "blk.1.bias", "output", "caf\u00e9"]
SPECIAL = [0, 1, 0x80000000, 0x7FC00000, 0x7FC00001, 0x7F800001, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7F7FFFFF]

quantizations = st.sampled_from(list(GGUFQuantization))
vectors = st.tuples(st.integers(1, 40))
matrices = st.tuples(st.integers(1, 3), st.sampled_from([1, 7, 32, 33, 64]))
whole_rows = st.tuples(st.integers(1, 16), st.integers(1, 16).map(lambda blocks: 32 * blocks))
named = st.tuples(st.sampled_from(NAMES), vectors | matrices)
shapes = st.lists(named, max_size=5, unique_by=lambda pair: pair[0]).map(dict)  # name -> shape
words = st.sampled_from(SPECIAL) | st.integers(0, 2**32 - 1)  # the bits of a float32, of any float32


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
    random = {name: np.random.default_rng(sum(name.encode())) for name in shapes}
    tensors = {name: random[name].normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return ModelWeights(tensors, about or ModelMetadata())


def folder() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder, in memory where the machine has one: a thousand files are written in a moment."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None)


class Pipeline:
    """What the claims are about: the exporter of the course, and its block encoder."""

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


class InMemory(Pipeline):
    """A second exporter, in thirty lines: the same bytes, and a method for each decision, so that one can go wrong."""

    def order(self, names: Iterable[str]) -> list[str]:
        """The order in which tensors are written."""
        return sorted(names)

    def dims(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The dims as they stand in the file."""
        return shape[::-1]

    def room(self, n_bytes: int) -> int:
        """How far after a tensor of ``n_bytes`` the next one begins."""
        return padded(n_bytes, 32)

    def key_count(self, n_keys: int) -> int:
        """The number of keys that the header states."""
        return n_keys

    def gguf(
        self, model: ModelWeights, quantization: GGUFQuantization = GGUFQuantization.NONE, include: bool = True
    ) -> bytes:
        """The bytes of a file, put together in memory."""
        kinds = export_types(model.shapes, quantization)
        pairs: dict[str, Any] = export_metadata(model, quantization) if include else {}
        if any(kind.name != "F32" for kind in kinds.values()):
            pairs["general.quantization_version"] = Typed(2, ValueType.UINT32)
        infos, data, offset = b"", b"", 0
        for name in self.order(model.tensors):
            w, kind = model.tensors[name], kinds[name]
            blocks, dims = self.encode(w, GGUFQuantization(kind.name)), self.dims(w.shape)
            infos += encode_string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
            offset += self.room(len(blocks))
            data += blocks + bytes(padded(len(blocks), 32) - len(blocks))
        head = struct.pack("<4sIQQ", b"GGUF", 3, len(model.tensors), self.key_count(len(pairs)))
        head += encode_metadata(pairs) + infos
        return head + bytes(padded(len(head), 32) - len(head)) + data


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
