"""The valid files that are damaged, made on the spot by the writers; and where in them each number stands."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gguf as official
import numpy as np

from miniquant import write_gguf_lite
from miniquant.formats.field import Dims, Strings
from miniquant.formats.fields import fields
from miniquant.formats.gguf import GGMLType, RawTensor, Typed, ValueType, write_gguf
from miniquant.formats.gguf.codecs import CODECS
from miniquant.formats.gguf.metadata import NUMPY


class Seed(NamedTuple):
    """A valid file: where its numbers stand (first byte, width), and its entries, which can be repeated.

    ``entries`` maps the place of a count (first byte, width) to the (start, end) of each entry that it counts.
    """

    data: bytes
    numbers: list[tuple[int, int]]
    entries: dict[tuple[int, int], list[tuple[int, int]]]


def written(write: Callable[[Path], Any]) -> bytes:
    """What a writer puts into a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed"
        write(path)
        return path.read_bytes()


def numbers_of(data: bytes) -> list[tuple[int, int]]:
    """Every count, length, type, dim, offset and scalar of a valid file; the first elements of its arrays too."""
    found = []
    for field in fields(data):
        width = field.decoder.width if isinstance(field.decoder, Dims) else len(field)
        width = 8 if isinstance(field.decoder, Strings) else width
        if field.category not in ("values", "padding") and width in (1, 2, 4, 8):
            found += [(at, width) for at in range(field.start, field.end - width + 1, width)][:8]
        elif field.category == "scales":
            found += [(at, 2) for at in range(field.start, field.end, 2)][:4]
    return found


# ---- GGUF-lite -------------------------------------------------------------------------------------------------------


def gguf_lite_seeds() -> list[Seed]:
    """Every dtype, scalars, empty tensors, names beyond ASCII; one tensor; no tensor."""
    w = np.random.default_rng(0).standard_normal((4, 128)).astype(np.float32)
    rich = {
        "layers.0.attn.qkv.weight": w,
        "layers.0.attn.out.weight": w[:3, :64],
        "größe": w[:2, :7],
        "norm": w[0, :5],
        "scalar": np.float32(2.5).reshape(()),
        "none": w[:0, :3],
        "half": w[:2, :3],
        "deep": w[:2, :6].reshape(2, 1, 3, 2),
        "deep and empty": w[:0].reshape(3, 0, 2, 2),
    }
    schemes = {
        "layers.0.attn.qkv.weight": "q4_per_group_64",
        "layers.0.attn.out.weight": "q8_per_channel",
        "half": "f16",
    }
    files = [
        written(lambda path: write_gguf_lite(path, rich, schemes, {"title": "für Mäuse", "empty": ""})),
        written(lambda path: write_gguf_lite(path, {"w": w[:2, :64]}, {"w": "q4_per_group_64"})),
        written(lambda path: write_gguf_lite(path, {"w": w[:2, :3], "b": w[0, :2]}, {})),
        written(lambda path: write_gguf_lite(path, {}, {})),
    ]
    return [Seed(data, numbers_of(data), {(8, 4): list(_lite_entries(data))}) for data in files]


def _lite_entries(data: bytes) -> Iterator[tuple[int, int]]:
    found = fields(data)
    starts = [field.start for field in found if field.name.endswith(": name_len")]
    ends = [field.end for field in found if field.name.endswith(": offset")]
    yield from zip(starts, ends)


# ---- GGUF ------------------------------------------------------------------------------------------------------------


def gguf_seeds() -> list[Seed]:
    """Every type of value and of tensor; a large alignment; files of the official package."""
    w = np.random.default_rng(0).standard_normal((2, 256)).astype(np.float32)
    rich = {
        **{"general.architecture": "toy", "text": "some text", "empty": "", "truth": True},
        **{kind.name.lower(): Typed(1, kind) for kind in NUMPY if kind != ValueType.BOOL},
        **{"texts": ["one", "", "drei ü"], "truths": [True, False, True], "floats": [0.5, 1.5], "ints": [-1, 2]},
        "none": Typed([], ValueType.ARRAY, ValueType.STRING),
        "shorts": np.arange(5, dtype=np.uint16),
    }
    typed = {kind.name: (w[:, : kind.block], kind.name) for kind, codec in CODECS.items() if codec.encodes}
    plain = {"ints": np.arange(6, dtype=np.int16).reshape(2, 3), "scalar": np.float64(2), "none": w[:0, :3]}
    plain |= {"deep": w[:2, :6].reshape(2, 1, 3, 2), "deep and empty": w[:0].reshape(3, 0, 2)}
    foreign = {"iq1": RawTensor(np.zeros(50, np.uint8), GGMLType.IQ1_S, (1, 256))}  # readable, not decodable
    foreign |= {k.name: RawTensor(np.ones(k.n_bytes, np.uint8), k, (1, 256)) for k in CODECS if not CODECS[k].encodes}
    files = [
        written(lambda path: write_gguf(path, typed | plain | foreign, rich)),
        written(lambda path: write_gguf(path, {"w": w[:, :32], "b": w[0, :3]}, {"a": [1, 2, 3]}, alignment=64)),
        written(lambda path: write_gguf(path, {"w": (w[:, :32], "Q4_0")}, {})),
        written(lambda path: write_gguf(path, {}, {})),
        written(_official),
    ]
    return [_gguf_seed(data) for data in files]


def _official(path: Path) -> None:
    writer = official.GGUFWriter(path, "toy")
    writer.add_block_count(2)
    writer.add_array("toy.words", ["a", "bc"])
    writer.add_tensor("w", np.arange(12, dtype=np.float32).reshape(3, 4))
    writer.add_tensor("v", np.arange(4, dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_seed(data: bytes) -> Seed:
    found = fields(data)
    keys = [field.start for field in found if field.name.startswith("key ")]
    infos = [field.start for field in found if field.name.startswith("tensor ") and field.name.endswith("name: length")]
    end = max([field.end for field in found if field.name.endswith(": offset")], default=24)
    after = infos[0] if infos else max([field.end for field in found if field.category == "metadata"], default=24)
    pairs = list(zip(keys, [*keys[1:], after]))
    return Seed(data, numbers_of(data), {(16, 8): pairs, (8, 8): list(zip(infos, [*infos[1:], end]))})
