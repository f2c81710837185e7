"""safetensors files, valid and malformed, built with ``struct`` and ``json`` alone."""

from __future__ import annotations

import json
import struct
from typing import NamedTuple


class SafetensorsMalformation(NamedTuple):
    """The error's ``field`` and ``offset``, where they are told; ``limit``: valid, but miniquant refuses it."""

    data: bytes
    field: str | None
    offset: int | None
    limit: bool = False


def built(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    """A file by hand; the header as JSON or as bytes; its length may lie."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: object = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    """A header of one tensor, "w"."""
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


def _one(data: bytes = bytes(8), field: str = "tensor 'w'", limit: bool = False, **changes) -> SafetensorsMalformation:
    return SafetensorsMalformation(built(entry(**changes), data), field, 8, limit)


_FIRST, _SECOND = entry(offsets=(0, 8))["w"], entry(offsets=(4, 12))["w"]
CORPUS: dict[str, SafetensorsMalformation] = {
    "three bytes": SafetensorsMalformation(b"\x08\0\0", None, None),
    "a header's length past the end": SafetensorsMalformation(built({}, length=3), "header.length", 0),
    "a header's length of all ones": SafetensorsMalformation(built({}, length=2**64 - 1), "header.length", 0),
    "a header that is no JSON": SafetensorsMalformation(built(b"{"), "header", 9),
    "a header that is a text": SafetensorsMalformation(built("text"), "header", None),
    "a header with a stray byte FF": SafetensorsMalformation(built(b'{"\xff": 1}'), "header", 10),
    "a name twice": SafetensorsMalformation(built(b'{"w": 1, "w": 2}'), "header", None),
    "a tensor that is a number": SafetensorsMalformation(built({"w": 1}), "tensor 'w'", 8),
    "a tensor without data_offsets": SafetensorsMalformation(
        built({"w": {"dtype": "F32", "shape": [1]}}), "tensor 'w'", 8
    ),
    "a type of float8": _one(field="tensor 'w': dtype", limit=True, dtype="F8_E4M3", shape=(8,)),
    "a type that is a number": _one(field="tensor 'w': dtype", dtype=3),
    "a type that nobody knows": _one(field="tensor 'w': dtype", dtype="F31"),
    "a negative dim": _one(shape=(-2,)),
    "a dim that is not whole": _one(shape=(2.0,)),
    "a dim that is a truth value": _one(shape=(True, 2)),
    "a dim of 2^63": _one(shape=(2**63,)),
    "nine dims": _one(limit=True, shape=(2, *(1,) * 8)),
    "three data_offsets": _one(offsets=(0, 8, 8)),
    "data_offsets that are a number": _one(offsets=8),
    "data_offsets backwards": _one(field="tensor 'w': data_offsets", offsets=(8, 0)),
    "data_offsets of half the size": _one(field="tensor 'w': data_offsets", offsets=(0, 4)),
    "dims that overflow 64 bits": _one(field="tensor 'w': data_offsets", shape=(2**63 - 1,) * 8),
    "a byte after the data": SafetensorsMalformation(built(entry(), bytes(9)), "data", None),
    "the data without its last byte": SafetensorsMalformation(built(entry(), bytes(7)), None, None),
    "no data at all": SafetensorsMalformation(built(entry()), None, None),
    "two tensors that overlap": SafetensorsMalformation(built({"a": _FIRST, "b": _SECOND}, bytes(16)), None, None),
}
