"""The parts joined: a path in, the tensors out."""

from __future__ import annotations

import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...core.errors import FormatError
from ...formats.gguf_lite.types import DType
from ...lab import Exercise, Mistake, edit, omit
from ..shared.gguf_lite_by_hand import descriptor_oracle, header_oracle, pack_oracle
from . import check_bounds as bounds
from . import dequantize_q4 as q4_tensor
from . import dequantize_q8 as q8_tensor
from . import parse_descriptor as descriptor
from . import parse_header as header
from . import parse_metadata as metadata
from .check_bounds import check_bounds
from .dequantize_q4 import dequantize_q4
from .dequantize_q8 import dequantize_q8
from .parse_descriptor import parse_descriptor
from .parse_header import parse_header
from .parse_metadata import parse_metadata


def read_file(path):
    """Read a GGUF-lite file.

    path: where   ->   name -> float32 array of the tensor's dims, in the order of the descriptors

    Raises FormatError for a malformed file: what the parts refuse, two tensors of one name, and dims that a dtype cannot
    have (Q8 has two; Q4 has two, of which the second is a multiple of 64).
    """
    data = Path(path).read_bytes()
    n_tensors, metadata_len = parse_header(data)
    parse_metadata(data[16 : 16 + metadata_len])
    position, descriptors = 16 + metadata_len, {}
    for _ in range(n_tensors):
        (name, dims, dtype, offset), position = parse_descriptor(data, position)
        if name in descriptors:
            raise FormatError(f"the name {name!r} stands twice", field="descriptor: name")
        if dtype >= 2 and (len(dims) != 2 or (dtype == 3 and dims[1] % 64)):
            raise FormatError(f"{name!r} has dims {dims}, which dtype {dtype} cannot have", field="descriptor: dims")
        descriptors[name] = (dims, dtype, offset, DType(dtype).bytes_of(dims))
    check_bounds({name: (offset, size) for name, (_, _, offset, size) in descriptors.items()}, len(data) - position)
    tensors = {}
    for name, (dims, dtype, offset, size) in descriptors.items():
        start = position + offset  # offsets count from the start of the data section
        tensors[name] = decode_tensor(data[start : start + size], dtype, dims)
    return tensors


def decode_tensor(raw, dtype, dims):
    """The float32 weights of one tensor: its decoder, chosen by its dtype code."""
    if dtype in (DType.F32, DType.F16):
        return np.frombuffer(raw, "<f4" if dtype == DType.F32 else "<f2").reshape(dims).astype(np.float32)
    return (dequantize_q8 if dtype == DType.Q8_PER_CHANNEL else dequantize_q4)(raw, dims)


def oracle(path):
    """From the oracles of the other exercises, tensor by tensor."""
    with open(path, "rb") as file:
        data = file.read()
    count, metadata_len = header.oracle(data)
    metadata.oracle(data[16 : 16 + metadata_len])
    at, found = 16 + metadata_len, []
    for _ in range(count):
        one, at = descriptor.oracle(data, at)
        found.append(one)
    for name, dims, dtype, _ in found:
        if (dtype == 2 and len(dims) != 2) or (dtype == 3 and (len(dims) != 2 or dims[1] % 64 != 0)):
            raise FormatError(f"{name!r} cannot have the dims {dims}")
    names = [name for name, *_ in found]
    if len(set(names)) < len(names):
        raise FormatError(f"a name stands twice among {names}")
    places = {name: (offset, _size(dims, dtype)) for name, dims, dtype, offset in found}
    bounds.oracle(places, len(data) - at)
    tensors = {}
    for name, dims, dtype, offset in found:
        raw = data[at + offset : at + offset + places[name][1]]
        if dtype >= 2:
            tensors[name] = (q8_tensor.oracle, q4_tensor.oracle)[dtype - 2](raw, dims)
        else:
            form, width = [("<f", 4), ("<e", 2)][dtype]
            flat = [struct.unpack(form, raw[i : i + width])[0] for i in range(0, len(raw), width)]
            tensors[name] = np.array(flat, np.float32).reshape(dims)
    return tensors


def _size(dims, dtype):
    count = 1
    for dim in dims:
        count *= dim
    return [4 * count, 2 * count, 2 * dims[0] + count if dims else 0, count // 64 * 34][dtype]


@dataclass(frozen=True)
class ToyFile:
    """The bytes of a small file, and what is remarkable about it."""

    title: str
    data: bytes

    def __repr__(self) -> str:
        return f"<{self.title}; {len(self.data)} bytes>"


def toy_file(title, tensors, metadata=b"a=b", gap=0, data_order=None):
    """A file made by hand: ``tensors`` maps a name to (dims, dtype, raw bytes).

    The data lies in ``data_order`` (the descriptors' order by default), ``gap`` bytes of ``ee`` before each tensor.
    """
    offsets, data = {}, b""
    for name in data_order or tensors:
        data += b"\xee" * gap
        offsets[name] = len(data)
        data += tensors[name][2]
    descriptors = [descriptor_oracle(name, dims, dtype, offsets[name]) for name, (dims, dtype, _) in tensors.items()]
    return ToyFile(title, header_oracle(len(tensors), len(metadata)) + metadata + b"".join(descriptors) + data)


def _observe(function, case):
    """Call the function with the path of a real file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toy.gguf-lite"
        path.write_bytes(case[0].data)
        return function(path)


def cases(random):
    """A file of each dtype, other orders, padding, then malformed files."""
    w = ((2, 3), 0, struct.pack("<6f", *range(6)))
    half = ((3,), 1, struct.pack("<3e", 0.5, 1.5, -2.5))
    q8 = ((2, 4), 2, struct.pack("<2e8b", 1, 0.5, *range(-4, 4)))
    ramp = np.tile(np.arange(-8, 8, dtype=np.int8), 4)
    q4 = ((2, 64), 3, struct.pack("<2e", 1, 0.25) + pack_oracle(np.stack([ramp, ramp])).tobytes())
    scalar = ((), 0, struct.pack("<f", 0.5))
    every = {"w": w, "half": half, "q8": q8, "q4": q4, "scalar": scalar}
    drawn_q4 = struct.pack("<6e", *np.abs(random.normal(0, 0.02, 6))) + random.bytes(192)
    drawn = {"q4": ((2, 192), 3, drawn_q4), "f32": ((5,), 0, struct.pack("<5f", *random.normal(size=5)))}
    plain = toy_file("one F32 tensor w (2, 3)", {"w": w})
    data, end = plain.data, len(plain.data)
    bad = {
        "a file cut in the data of its only tensor": data[: end - 1],
        "a file whose offset points behind its end": data.replace(bytes(8), bytes([9]) + bytes(7), 1),
        "a file cut in a descriptor": data[:28],
        "two tensors of one name": toy_file("", {"a": w, "b": w}).data.replace(b"\x01\x00b", b"\x01\x00a"),
        "two tensors over each other": header_oracle(2, 0)
        + descriptor_oracle("a", (2,), 0, 0)
        + descriptor_oracle("b", (2,), 0, 4)
        + bytes(12),
        "a file with the magic of real GGUF": b"GGUF" + data[4:],
    }
    good = [
        plain,
        toy_file("one Q8 tensor (2, 4)", {"q8": q8}, b""),
        toy_file("one Q4 tensor (2, 64)", {"q4": q4}),
        toy_file("a tensor of each dtype, and a scalar", every, "name=café".encode()),
        toy_file("w (2, 3), then q8 (2, 4); their data in the other order", {"w": w, "q8": q8}, data_order=["q8", "w"]),
        toy_file(
            "w (2, 3), q8 (2, 4), half (3,); 5 bytes of padding before each", {"w": w, "q8": q8, "half": half}, gap=5
        ),
        ToyFile("a tensor w (2, 3) and 40 bytes of padding behind it", data + b"\xee" * 40),
        toy_file("no tensors", {}),
        toy_file("a Q4 tensor q4 (2, 192) and an F32 tensor f32 (5,), random", drawn),
    ]
    return [*((file,) for file in good), *((ToyFile(title, broken),) for title, broken in bad.items())]


EXERCISE = Exercise(
    goal="Join your functions into the whole reader: a path in, a dict of float32 arrays out, or FormatError.",
    reference=read_file, oracle=oracle, cases=cases, minutes=7, difficulty="stretch", observe=_observe,
    hints=(
        "Read all bytes, parse the header and the metadata, then call `parse_descriptor` n_tensors times; the position behind the last descriptor is where the data section begins.",
        "Before you touch any data, refuse a name that stands twice and call `check_bounds`. Then a tensor's bytes are `data[start + offset : start + offset + size]`, and `decode_tensor` does the rest.",
    ),
    why="from here on the file is all you need: no pickle, no Python class, no trust.",
    mistakes=(
        Mistake("offsets from the start of the file", edit("start = position + offset  #", "start = offset  #"),
            cause="The offsets count from the start of the data section, and you used them from byte 0.",
            cure="Add the position behind the last descriptor to each offset.",
            see="the magic and the metadata turned into weights"),
        Mistake("offsets ignored", edit("    tensors = {}\n", "    tensors, start = {}, position\n")
            .edit("start = position + offset  # offsets count from the start of the data section", "pass")
            .edit("dtype, dims)\n    return", "dtype, dims)\n        start += size\n    return"),
            cause="You read one tensor after the other, and the data may lie in another order, or with padding in between.",
            cure="Begin each tensor at start + offset.",
            see="right for files of this writer, wrong for others that are just as legal"),
        Mistake("data section aligned",
            edit("    tensors = {}\n", "    tensors, position = {}, -(-position // 32) * 32\n"),
            cause="Real GGUF begins its data at a multiple of 32 bytes, and here it begins right behind the last descriptor.",
            cure="Use the position that the last `parse_descriptor` returned.",
            see="everything shifted by up to 31 bytes, or arrays that do not fit their shape"),
        Mistake("bounds not checked", omit("check_bounds("),
            cause="The offsets and sizes were believed, and a slice past the end is silently short.",
            cure="Call `check_bounds` before you read any tensor.",
            see="ValueError from a reshape, or wrong weights, where FormatError is expected"),
        Mistake("names not compared", omit("if name in descriptors"),
            cause="Two tensors of one name came in, and the second replaced the first without a word.",
            cure="Raise FormatError if the name has been seen before.",
            see="a file with a name that stands twice accepted"),
        Mistake("dims reversed",
            edit("dtype, dims)\n    return", "dtype, dims[::-1] if dtype < 2 else dims)\n    return"),
            cause="The shape was turned around, and the dims are in PyTorch's order already: out, then in.",
            cure="Reshape to `dims` as they are.", see="(3, 2) where (2, 3) is expected"),
        Mistake("F16 left as float16", edit(
                "dtype, dims)\n    return", "dtype, dims).astype(np.float16 if dtype == 1 else np.float32)\n    return"
            ),
            cause="An F16 tensor was returned as it is stored, and the reader promises float32 for all.",
            cure="End with `.astype(np.float32)`.", see="float16 where float32 is expected"),
        Mistake("descriptors taken for data",
            edit("start = position + offset  #", "start = 16 + metadata_len + offset  #"),
            cause="The data section was taken to begin behind the metadata, and the descriptors stand there.",
            cure="Use the position that the last `parse_descriptor` returned.",
            see="the first name turned into a weight"),
    ),
)
