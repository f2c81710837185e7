"""What is tried on a damaged file: open it, read every value of its metadata and every tensor in every way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from miniquant import open_gguf_lite
from miniquant.core.errors import QuantizationError
from miniquant.formats.fields import fields
from miniquant.formats.gguf import read_gguf
from miniquant.formats.gguf.codecs import CODECS
from miniquant.formats.gguf.read import INTEGERS

from . import bump, seeds
from .mutate import INJURIES, Repair


class Reader(NamedTuple):
    """``read`` takes a path and may raise ``FormatError``, nothing else. ``entries`` are the modules that it calls."""

    read: Callable[[str], None]
    seeds: Callable[[], list[seeds.Seed]]
    entries: tuple[str, ...]
    repair: Repair | None = None
    injuries: tuple[Callable[..., None], ...] = ()  # instead of the usual ones


def read_gguf_lite(path: str) -> None:
    """Everything in a GGUF-lite file."""
    with open_gguf_lite(path) as file:
        for name, info in file.tensors.items():
            assert len(file.raw(name)) == info.n_bytes
            assert file.tensor(name).shape == info.shape
            if info.dtype.scheme.startswith("q"):
                assert file.quantized(name).values.shape == info.shape


def read_gguf_file(path: str) -> None:
    """Everything in a GGUF file."""
    with read_gguf(path) as file:
        assert file.typed().keys() == file.metadata.keys()
        for value in file.metadata.values():
            if not isinstance(value, str | int | float):
                assert len(list(value)) == len(value)
        for name, info in file.tensors.items():
            assert len(file.raw(name)) == info.n_bytes
            try:
                assert file.tensor(name).shape == info.shape
            except QuantizationError:  # a good file, of a type that has no codec here
                assert info.dtype not in CODECS and info.dtype not in INTEGERS


def read_fields(path: str) -> None:
    """The byte viewer: every byte named once, for a malformed file too; with a bump file its config.json."""
    data, _, config = Path(path).read_bytes().partition(bump.BETWEEN)
    at = 0
    for field in fields(data, {"config.json": config}) if config else fields(path):
        assert field.start == at and field.end > at
        at = field.end
        field.text()


READERS = {
    "gguf-lite": Reader(read_gguf_lite, seeds.gguf_lite_seeds, ("formats.gguf_lite.read",)),
    "gguf": Reader(read_gguf_file, seeds.gguf_seeds, ("formats.gguf.read",)),
    "bump": Reader(bump.read_bump, bump.bump_seeds, ("formats.bump.read",), bump.mend, tuple(bump.BUMP_INJURIES)),
    "viewer": Reader(
        read_fields,
        lambda: seeds.gguf_lite_seeds() + seeds.gguf_seeds() + bump.bump_seeds(),
        ("formats.fields",),
        bump.mend_if_bump,
        (*INJURIES, bump.lie_twice),
    ),
}
