"""Every byte of a few small files keeps its name, its explanation and its text: ``fields.txt`` lists them.

``python tests/formats/test_fields_unchanged.py > tests/formats/fields.txt`` writes the list anew; read the difference.
"""

from __future__ import annotations

import struct
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import numpy as np
import pytest
import written_files

from conformance.gguf_lite_files import VALID
from miniquant.formats.describe import describe
from miniquant.formats.fields import parse
from miniquant.formats.gguf import GGMLType, RawTensor, write_gguf
from miniquant.formats.gguf.codecs import CODECS
from miniquant.formats.gguf_lite.types import DType
from miniquant.formats.registry import formats

HEADER = b'{"__metadata__":{"a":"\xc3\xa9"},"w":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}'
SAFETENSORS = struct.pack("<Q", len(HEADER)) + HEADER + struct.pack("<4H", 0x3F80, 0xBF80, 0, 0x4000)
PICKLE = b"\x80\x02}q\x00X\x01\x00\x00\x00wq\x01K\x01s."  # {"w": 1}
STORED = Path(__file__).with_name("fields.txt")


def typed(kind: GGMLType, folder: Path) -> bytes:
    """A GGUF file with one row of one type."""
    w, raw = np.linspace(-1, 1, 256, dtype=np.float32)[None], np.arange(kind.bytes_of((256,))).astype(np.uint8)
    tensor = (w, kind) if CODECS[kind].encodes else RawTensor(raw, kind, (1, 256))
    write_gguf(folder / "m.gguf", {"w": tensor}, {})
    return (folder / "m.gguf").read_bytes()


def samples() -> Iterator[tuple[str, bytes, dict[str, bytes]]]:
    """Files by name: their bytes, and what lies beside them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield "gguf-lite", VALID, {}
        yield "gguf-lite, cut", VALID[:-3], {}
        yield "gguf, metadata", written_files.gguf_metadata(folder), {}
        tensors = written_files.gguf_tensors(32, folder)
        yield "gguf, tensors", tensors, {}
        yield "gguf, cut in a tensor", tensors[:-40], {}
        for kind in CODECS:
            yield f"gguf, {kind.name}", typed(kind, folder), {}
        for change in ("", "biases", "head"):
            pair = written_files.bump_pair(partial(written_files.llama_gguf, kind="Q4_K", change=change))
            yield f"bump, llama {change}".strip(), pair["weights.bump"], {"config.json": pair["config.json"]}
        yield "bump without its config", pair["weights.bump"], {}
        yield "bump, cut", pair["weights.bump"][:-100], {"config.json": pair["config.json"]}
        yield "legacy ggml", written_files.legacy(1, (), folder), {}
        yield "safetensors", SAFETENSORS, {}
        yield "safetensors, cut", SAFETENSORS[:-1], {}
        yield "pickle", PICKLE, {}
        yield "pickle, cut", PICKLE[:-4], {}
        yield "pages of no format", b"no format at all", {}


def types() -> Iterator[str]:
    """What every type says of itself: its description, what its encoder can do, and the parts of a block."""
    for dtype in DType:
        yield f"gguf-lite {dtype.name}: {dtype.description}"
    for dtype, codec in CODECS.items():
        yield f"gguf {dtype.name}: {codec.description}"
        flags = (codec.identity, codec.super_block, codec.searches, codec.has_min)
        yield f"  {codec.file_type} {codec.head} {flags} {codec.levels}"
        for part in codec.fields:
            yield f"  {tuple(part)}"


def listing() -> Iterator[str]:
    """A line for each field: where it lies, its category, name, explanation, text and the parts of its last bytes."""
    yield from types()
    for name, data, beside in samples():
        yield f"== {name}"
        found, error = parse(data, beside)
        for field in found:
            parts = field.parts(max(field.start, field.end - 5), field.end)
            line = f"{field.start}:{field.end} {field.category} | {field.name} | {field.explanation} | {field.text()}"
            yield f"{line} | {field.text(field.start + 1, field.start + 9)} | {parts}".replace("\n", "\\n")
        yield f"error: {error}"
        if error is None and not name.startswith("pickle"):  # which no reader opens
            about = describe(data, beside)
            told = (about.format, about.version, about.architecture, about.alignment, about.overhead, about.by_type())
            yield " ".join(map(str, told))


def test_every_byte_keeps_its_name_its_explanation_and_its_text():
    assert "\n".join(listing()).splitlines() == STORED.read_text("utf-8").splitlines()


@pytest.mark.parametrize("name", formats())
def test_every_format_with_named_fields_is_in_the_list(name):
    if formats()[name].fields is not None:
        assert f"== {name}" in STORED.read_text("utf-8")


if __name__ == "__main__":
    print("\n".join(listing()))
