"""The parts joined: a path in, the tensors out."""

from __future__ import annotations

import math
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

    path: a pathlib.Path of a file that exists
    ->   name -> float32 array of the tensor's dims, in the order of the
         descriptors

    An F32 or F16 tensor may have a dim of 0. It has no bytes: you may give
    it to check_bounds or leave it out, both are right. In the files of the
    check, no quantized tensor has a dim of 0, and no tensor with a dim of 0
    has an offset beyond the data.

    Raises FormatError for every malformed file:
      what your other functions refuse;
      metadata with a dims_order whose text is not "out,in", or a group_size
      whose text is not "64"; a file may lack these lines;
      an empty name (" " is a name), and two tensors of one name;
      dims that a dtype cannot have: Q8 has two dims; Q4 has two, and the
      second is a multiple of 64.
    """
    data = Path(path).read_bytes()
    n_tensors, metadata_len = parse_header(data)
    metadata = parse_metadata(data[16 : 16 + metadata_len])
    for key, known in (("dims_order", "out,in"), ("group_size", "64")):
        if metadata.get(key, known) != known:
            raise FormatError(f"found {key}={metadata[key]}, this reader knows {key}={known} only", field="metadata")
    position, descriptors = 16 + metadata_len, {}
    for _ in range(n_tensors):
        (name, dims, dtype, offset), position = parse_descriptor(data, position)
        if not name or name in descriptors:
            raise FormatError(f"the name {name!r} is empty or a duplicate", field="descriptor: name")
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
    """The float32 weights of one tensor, by its dtype code. Raises FormatError for more dims than an array can have."""
    if dtype == 2:
        return dequantize_q8(raw, dims)
    if dtype == 3:
        return dequantize_q4(raw, dims)
    try:
        return np.frombuffer(raw, "<f4" if dtype == 0 else "<f2").reshape(dims).astype(np.float32)
    except ValueError as error:
        raise FormatError(f"no array has these {len(dims)} dims: {error}", field="descriptor: dims") from None


def oracle(path):
    """From the oracles of the other exercises, tensor by tensor."""
    with open(path, "rb") as file:
        data = file.read()
    count, metadata_len = header.oracle(data)
    said = metadata.oracle(data[16 : 16 + metadata_len])
    if said.get("dims_order") not in (None, "out,in") or said.get("group_size") not in (None, "64"):
        raise FormatError(f"a layout that nobody here can read: {said}")
    at, found = 16 + metadata_len, []
    for _ in range(count):
        one, at = descriptor.oracle(data, at)
        found.append(one)
    for name, dims, dtype, _ in found:
        if name == "":
            raise FormatError("a tensor without a name")
        if len(dims) > 64:
            raise FormatError(f"{name!r} has {len(dims)} dims")
        if (dtype == 2 and len(dims) != 2) or (dtype == 3 and (len(dims) != 2 or dims[1] % 64 != 0)):
            raise FormatError(f"{name!r} cannot have the dims {dims}")
    names = [name for name, *_ in found]
    if len(set(names)) < len(names):
        raise FormatError(f"a duplicate among the names {names}")
    places = {name: (offset, _size(dims, dtype)) for name, dims, dtype, offset in found}
    bounds.oracle({name: place for name, place in places.items() if place[1]}, len(data) - at)
    if any(offset > len(data) - at for offset, _ in places.values()):
        raise FormatError("an offset outside the data section")
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
    """The bytes of a small file, and what is special about it."""

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
    """A file of each dtype, other orders, padding, metadata; then malformed files, one thing wrong in each."""
    w = ((2, 3), 0, struct.pack("<6f", *range(6)))
    half = ((3,), 1, struct.pack("<3e", 0.5, 1.5, -2.5))
    q8 = ((2, 4), 2, struct.pack("<2e8b", 1, 0.5, *range(-4, 4)))
    ramp = np.tile(np.arange(-8, 8, dtype=np.int8), 4)
    q4 = ((2, 64), 3, struct.pack("<2e", 1, 0.25) + pack_oracle(np.stack([ramp, ramp])).tobytes())
    scalar = ((), 0, struct.pack("<f", 0.5))
    empty = ((0, 3), 0, b"")
    five = ((3, 1, 2, 1, 1), 1, struct.pack("<6e", *range(6)))
    every = {"w": w, "half": half, "none": empty, "q8": q8, "q4": q4, "scalar": scalar, "five": five}
    drawn_q4 = struct.pack("<6e", *np.abs(random.normal(0, 0.02, 6))) + random.bytes(192)
    drawn = {"q4": ((2, 192), 3, drawn_q4), "f32": ((5,), 0, struct.pack("<5f", *random.normal(size=5)))}
    plain = toy_file("one F32 tensor w (2, 3)", {"w": w})
    data, end = plain.data, len(plain.data)
    said = {name: (name + "=").encode() for name in ("dims_order", "group_size")}

    def one(dims, dtype, name="w", size=600):  # more bytes than any reading of the dims asks for
        return header_oracle(1, 0) + descriptor_oracle(name, dims, dtype, 0) + bytes(size)

    def between(dims, dtype, name="w"):  # the bad tensor is neither the first one nor the last
        first, last = descriptor_oracle("first", (1,), 0, 592), descriptor_oracle("last", (1,), 0, 596)
        return header_oracle(3, 0) + first + descriptor_oracle(name, dims, dtype, 0) + last + bytes(600)

    bad = {
        "a file cut in the data of its only tensor": data[: end - 1],
        "a name that is not UTF-8": data.replace(b"\x01\x00w", b"\x01\x00\xff"),
        "metadata with a byte that is not UTF-8": toy_file("", {"w": w}, b"a=\xff").data,
        "metadata with an empty key": toy_file("", {"w": w}, b"a=b\n=c").data,
        "metadata with fewer bytes than announced, and no tensors": header_oracle(0, 9) + b"a=b",
        "a file whose offset is too large": data.replace(bytes(8), bytes([9]) + bytes(7), 1),
        "a file cut in a descriptor": data[:28],
        "a file cut in the data of a Q8 tensor": toy_file("", {"w": w, "q8": q8}).data[:-1],
        "a file cut in the data of a Q4 tensor": toy_file("", {"w": w, "q4": q4}).data[:-2],
        "an empty file": b"",
        "version 2": data[:4] + b"\x02" + data[5:],
        "a dtype 4": one((2, 64), 4),
        "metadata that is not key=value": toy_file("", {"w": w}, b"dims_order=out,in\nrubbish").data,
        "metadata with a duplicate key": toy_file("", {"w": w}, b"a=1\na=2").data,
        "metadata dims_order=in,out": toy_file("", {"w": w}, said["dims_order"] + b"in,out").data,
        "metadata dims_order= (empty)": toy_file("", {"q8": q8}, said["dims_order"] + b"\na=b").data,
        "metadata dims_order=in,out, and no tensors": header_oracle(0, 17) + said["dims_order"] + b"in,out",
        "metadata group_size=32": toy_file("", {"w": w}, b"a=b\n" + said["group_size"] + b"32").data,
        "metadata group_size= (empty)": toy_file("", {"q4": q4}, said["group_size"]).data,
        "metadata group_size=64 with a space after it": toy_file("", {"w": w}, said["group_size"] + b"64 ").data,
        "Q8 with one dim": one((8,), 2),
        "Q8 with no dims": one((), 2),
        "Q8 with three dims": between((2, 2, 2), 2),
        "Q4 (2, 65)": between((2, 65), 3),
        "Q4 (2, 32), one group in all": one((2, 32), 3),
        "Q4 with one dim": one((64,), 3),
        "Q4 (2, 2, 64)": between((2, 2, 64), 3),
        "Q8 (4294967295, 4294967295), more bytes than 64 bits can count": one((2**32 - 1, 2**32 - 1), 2),
        "metadata dims_order=out,in with a space after it": toy_file("", {"w": w}, said["dims_order"] + b"out,in ").data,
        "metadata group_size=064": toy_file("", {"w": w}, said["group_size"] + b"064").data,
        "an empty name": between((2, 3), 0, ""),
        "70 dims of 1, more than numpy can hold": one((1,) * 70, 0),
        "metadata dims_order=out, in, with a space": toy_file("", {"w": w}, said["dims_order"] + b"out, in").data,
        "two descriptors announced, one there": header_oracle(2, 0) + descriptor_oracle("w", (1,), 0, 0) + bytes(4),
        "two tensors of one name, another one between them": toy_file("", {"0": w, "a": w, "b": half, "c": w, "d": w}).data.replace(
            b"\x01\x00c", b"\x01\x00a"
        ),
        "two tensors that overlap": header_oracle(2, 0)
        + descriptor_oracle("a", (2,), 0, 0)
        + descriptor_oracle("b", (2,), 0, 4)
        + bytes(20),
        "a file with the magic of real GGUF": b"GGUF" + data[4:],
    }
    good = [
        plain,
        toy_file("one Q8 tensor (2, 4)", {"q8": q8}, b""),
        toy_file("one Q4 tensor (2, 64)", {"q4": q4}),
        toy_file("a tensor of each dtype, a scalar, and one of five dims", every, "name=café 🥐 A".encode()),
        toy_file("w (2, 3), then q8 (2, 4); their data in the other order", {"w": w, "q8": q8}, data_order=["q8", "w"]),
        toy_file(
            "w (2, 3), q8 (2, 4), half (3,); 5 bytes of padding before each", {"w": w, "q8": q8, "half": half}, gap=5
        ),
        ToyFile("a tensor w (2, 3) and 40 bytes of padding after it", data + b"\xee" * 40),
        toy_file("no tensors", {}),
        toy_file(
            "a Q4 tensor, with dims_order=out,in and group_size=64",
            {"q4": q4},
            said["dims_order"] + b"out,in\n" + said["group_size"] + b"64\n",
        ),
        toy_file("a tensor with infinity and NaN", {"odd": ((3,), 0, struct.pack("<3f", math.inf, math.nan, -math.inf))}),
        toy_file("a tensor z (3, 0) in F16 and no data", {"z": ((3, 0), 1, b"")}),
        toy_file("an F32 tensor (5000,)", {"large": ((5000,), 0, struct.pack("<5000f", *range(5000)))}),
        toy_file("names with spaces and accents", {" w ": w, "gröss": half, "W": scalar, "w": half, " ": scalar}),
        toy_file("a Q4 tensor q4 (2, 192) and an F32 tensor f32 (5,), random", drawn),
    ]
    return [*((file,) for file in good), *((ToyFile(title, broken),) for title, broken in bad.items())]


def traits(path):
    """What the file is; where many are wrong, what they have in common."""
    title = path.title
    bad_dims = title.startswith(("Q8 with", "Q4 with", "Q4 (2, 65)", "Q4 (2, 32)", "Q4 (2, 2, 64)"))
    legal = b"GGUF" not in path.data and any(title.startswith(word) for word in ("one ", "a tensor", "w (", "no ", "names"))
    legal = legal or title.startswith(("a Q4 tensor,", "a Q4 tensor q4", "an F32"))
    return {
        f"the file is “{title}”": True,
        "a tensor has dims that its dtype cannot have": bad_dims,
        "a Q8 tensor has dims that it cannot have": bad_dims and "Q8" in title,
        "a Q4 tensor has dims that it cannot have": bad_dims and "Q4" in title,
        "a quantized tensor does not have two dims": bad_dims and "(2, 65)" not in title and "(2, 32)" not in title,
        "a quantized tensor has fewer than two dims": bad_dims and title.endswith(("one dim", "no dims")),
        "a quantized tensor has three dims": bad_dims and title.endswith(("three dims", "(2, 2, 64)")),
        "a Q4 tensor has a width that is no multiple of 64": bad_dims and ("(2, 65)" in title or "(2, 32)" in title),
        "the metadata says another dims_order": title.startswith("metadata dims_order"),
        "the metadata says another group_size": title.startswith("metadata group_size"),
        "the metadata says another layout": title.startswith(("metadata dims_order", "metadata group_size")),
        "the metadata says dims_order or group_size with nothing after the =": title.startswith("metadata") and "(empty)" in title,
        "the metadata is malformed or not all there": title.startswith(("metadata that", "metadata with")),
        "two tensors have one name": title.startswith("two tensors of one name"),
        "the file is cut in its data": "cut in the data" in title,
        "a tensor does not lie inside the data section": "cut in the data" in title
        or title.endswith("offset is too large")
        or "more bytes than 64 bits" in title,
        "the file is good, and has no tensors": title == "no tensors",
        "a weight is no finite number": "infinity" in title,
        "a tensor has a dim of 0": "(3, 0) in" in title or title.startswith("a tensor of each dtype"),
        "the file is good, and has more than one tensor": legal and title.startswith(("a tensor of each", "w (", "names", "a Q4 tensor q4")),
        "the file is good, and its data does not lie in the order of the descriptors, back to back": legal and title.startswith("w ("),
        "the file is good, and a tensor is quantized": legal and ("Q8" in title or "q8" in title or "Q4" in title or "each dtype" in title),
        "the file is good, and a tensor is not 2-D": legal and ("scalar" in title or "half" in title or "(5" in title or "names" in title or "infinity" in title),
        "the file is good, and its metadata has other lines than dims_order and group_size": legal and "dims_order" not in title and "Q8" not in title,
        "the file is good, and its metadata names a layout": legal and "dims_order" in title,
        "the file is good, and its metadata is empty": legal and title.startswith("one Q8"),
    }


EXERCISE = Exercise(
    traits=traits,
    ordered=True,
    goal="Join your functions into the whole reader: a path in, a dict of float32 arrays out, or FormatError.",
    reference=read_file, oracle=oracle, cases=cases, minutes=9, difficulty="stretch", observe=_observe,
    hints=(
        "Read everything that describes the tensors first, and check it. Only then turn bytes into weights. The data section begins after the last descriptor.",
        "`read_bytes` of a Path gives the whole file, and a slice gives a part of it. `get` of a dict takes a default for a line that the metadata lacks. `decode_tensor` turns the bytes of one tensor into its weights.",
    ),
    why="from now on a file that you cannot trust ends in weights or in one clear error, and no code of it is run.",
    mistakes=(
        Mistake("offsets from the start of the file", edit("start = position + offset  #", "start = offset  #"),
            cause="The offsets were counted from byte 0, and they count from the start of the data section.",
            cure="Add the position after the last descriptor to each offset.",
            see="weights made of the magic and the metadata"),
        Mistake("offsets ignored", edit("    tensors = {}\n", "    tensors, start = {}, position\n")
            .edit("start = position + offset  # offsets count from the start of the data section", "pass")
            .edit("dtype, dims)\n    return", "dtype, dims)\n        start += size\n    return"),
            cause="The tensors were read one after the other, and the data may be in another order, or with padding.",
            cure="Begin each tensor at start + offset.",
            see="right for files of this writer, wrong for other legal files"),
        Mistake("data section aligned",
            edit("    tensors = {}\n", "    tensors, position = {}, -(-position // 32) * 32\n"),
            cause="Real GGUF aligns its data, to 32 bytes by default; here it begins directly after the last descriptor.",
            cure="Use the position that the last `parse_descriptor` returned.",
            see="everything shifted by up to 31 bytes, or arrays that do not fit their shape"),
        Mistake("bounds not checked", omit("check_bounds("),
            cause="Offsets and sizes that do not fit the file were believed.",
            cure="Call `check_bounds` before you read any tensor.",
            see="ValueError from a reshape, or wrong weights, where FormatError is expected"),
        Mistake("names not compared", edit("if not name or name in descriptors", "if not name"),
            cause="The file has two tensors of one name, and the second replaced the first without an error.",
            cure="Raise FormatError for a name that is in your dict already.",
            see="a file with a duplicate name accepted"),
        Mistake("empty name accepted", edit("if not name or name in descriptors", "if name in descriptors"),
            cause="A tensor without a name was accepted; a name has at least one byte.",
            cure="Raise FormatError for an empty name.", see="a file with an empty name accepted"),
        Mistake("another layout accepted", omit("for key, known in"),
            cause="Files that say another dims_order, and files that say another group_size, were accepted.",
            cure="Refuse another `dims_order` than `out,in`, and another `group_size` than `64`.",
            see="a file with `dims_order=in,out` accepted"),
        Mistake("dims_order not checked", edit('("dims_order", "out,in"), ("group_size", "64")', '("group_size", "64"),'),
            cause="A file that says that its dims are in another order was accepted.",
            cure="Refuse a `dims_order` other than `out,in`.", see="a file with `dims_order=in,out` accepted"),
        Mistake("group_size not checked", edit(', ("group_size", "64")', ","),
            cause="A file that says that its groups have another size was accepted.",
            cure="Refuse a `group_size` other than `64`.", see="a file with `group_size=32` accepted"),
        Mistake("the metadata must say everything", edit("metadata.get(key, known)", "metadata.get(key)").edit("metadata[key]", "metadata.get(key)"),
            cause="A file that lacks `dims_order` or `group_size` was refused, and it may lack both.",
            cure="Check these lines only where they are there.", see="FormatError for a file without these lines"),
        Mistake("metadata skipped", edit("parse_metadata(data[16 : 16 + metadata_len])", "{}"),
            cause="The lines of the metadata are not looked at: neither damage in them is noticed nor another layout.",
            cure="Call `parse_metadata`; it refuses what is not key=value.", see="a line `rubbish` accepted"),
        Mistake("dims not checked", omit("if dtype >= 2 and"),
            cause="Q8 and Q4 are for matrices, and dims that they cannot have end in an error of Python or numpy.",
            cure="Raise FormatError for Q8 and Q4 unless there are two dims, and for Q4 unless 64 divides the second.",
            see="IndexError or ValueError where FormatError is expected"),
        Mistake("only the width checked", edit("len(dims) != 2 or (dtype == 3 and dims[1] % 64)", "dtype == 3 and dims[-1] % 64"),
            cause="A quantized tensor has two dims, and another number of them ends in an error of Python's own.",
            cure="Refuse any other number of dims first.", see="Q4 with one dim or three accepted"),
        Mistake("only Q4 checked", edit("if dtype >= 2 and (len(dims)", "if dtype == 3 and (len(dims)"),
            cause='Q8 is for matrices, too.',
            cure='Refuse Q8 unless there are two dims.', see='Q8 with one dim accepted, or an error of numpy'),
        Mistake("the first dim checked", edit("dims[1] % 64", "dims[0] % 64"),
            cause='Groups run along a row, so 64 must divide the second dim.',
            cure='Test `dims[1] % 64`.', see='a good Q4 tensor refused'),
        Mistake("width not checked", edit("len(dims) != 2 or (dtype == 3 and dims[1] % 64)", "len(dims) != 2"),
            cause='64 must divide the width of a Q4 tensor.',
            cure='Refuse Q4 unless `dims[1] % 64` is 0.', see='Q4 (2, 65) ends in an error of numpy'),
        Mistake("fewer than two dims refused only", edit("len(dims) != 2 or", "len(dims) < 2 or"),
            cause="A quantized tensor has exactly two dims; more of them were not refused, and end in an error of Python's own.",
            cure='Refuse unless there are exactly two.', see='Q8 with three dims ends in an error of Python'),
        Mistake("bounds of the whole file", edit("len(data) - position)", "len(data))"),
            cause='The offsets count from the start of the data section, so it is its size that limits them.',
            cure='Pass `len(data) - position`.', see='a file that was cut in its data ends in an error of numpy'),
        Mistake("data in one piece", edit("start : start + size", "position : position + size"),
            cause='Every tensor was read from the start of the data section.',
            cure='Begin each tensor at its own offset.', see='the first tensor right, the others wrong'),
        Mistake("the last tensor left out", edit("range(n_tensors)", "range(n_tensors - 1)"),
            cause="Of the tensors the last one is missing, and its descriptor was taken for the beginning of the data.",
            cure='Loop `range(n_tensors)`.', see='a name missing'),
        Mistake("everything as float32", edit("decode_tensor(data[start : start + size], dtype, dims)", "np.frombuffer(data[start : start + size], \"<f4\").reshape(dims)"),
            cause='Only F32 holds float32 numbers; each dtype has its decoder.',
            cure='Call `decode_tensor`.', see='right for F32, an error for the others'),
        Mistake("a list", edit("return tensors", "return list(tensors.values())"),
            cause='The result is a list, and the docstring promises a dict.',
            cure='Return name -> array.', see='a list where a dict is expected'),
        Mistake("dims reversed",
            edit("dtype, dims)\n    return", "dtype, dims[::-1] if dtype < 2 else dims)\n    return"),
            cause="The shape of F32 and F16 tensors was reversed, and the dims are in PyTorch's order already: out, then in.",
            cure="Reshape to `dims` as they are.", see="(3, 2) where (2, 3) is expected"),
        Mistake("F16 left as float16", edit(
                "dtype, dims)\n    return", "dtype, dims).astype(np.float16 if dtype == 1 else np.float32)\n    return"
            ),
            cause="An F16 tensor was returned as it is stored, and the reader promises float32 for all.",
            cure="End with `.astype(np.float32)`.", see="float16 where float32 is expected"),
        Mistake("descriptors taken for data",
            edit("start = position + offset  #", "start = 16 + metadata_len + offset  #"),
            cause="The data section was taken to begin after the metadata, and the descriptors are there.",
            cure="Use the position that the last `parse_descriptor` returned.",
            see="a weight made of the first name"),
    ),
)
