"""A corpus of malformed GGUF-lite files, each with a name, the field at fault and the byte at which that field begins.

Built with ``struct`` alone. Most are one valid file with one thing wrong:

byte  0  header          54 46 4C 47, version 1, 1 tensor, 7 bytes of metadata
     16  metadata        a=1 LF b=2
     23  name_len        1
     25  name            w
     26  n_dims          2
     27  dims            2, 64
     35  dtype           0 (F32)
     36  offset          0
     44  data            512 bytes
    556  the end
"""

from __future__ import annotations

import struct
from typing import NamedTuple

MAGIC = b"TFLG"
METADATA = b"a=1\nb=2"
F32, F16, Q8, Q4 = 0, 1, 2, 3
SIZE = 512  # of the one tensor's data


class Malformation(NamedTuple):
    """``field`` stands in the error's field; ``offset`` is where it begins, ``None`` where that would be arbitrary."""

    data: bytes
    field: str
    offset: int | None


def header(n_tensors: int, metadata_len: int, magic: bytes = MAGIC, version: int = 1) -> bytes:
    """Part 1."""
    return magic + struct.pack("<3I", version, n_tensors, metadata_len)


def descriptor(
    name: bytes = b"w",
    dims: tuple[int, ...] = (2, 64),
    dtype: int = F32,
    offset: int = 0,
    *,
    name_len: int | None = None,
    n_dims: int | None = None,
) -> bytes:
    """One entry of part 3; ``name_len`` and ``n_dims`` may lie."""
    name_len = len(name) if name_len is None else name_len
    n_dims = len(dims) if n_dims is None else n_dims
    shape = struct.pack(f"<B{len(dims)}I", n_dims, *dims)
    return struct.pack("<H", name_len) + name + shape + struct.pack("<BQ", dtype, offset)


def assemble(
    descriptors: list[bytes],
    data: bytes = b"",
    metadata: bytes = METADATA,
    *,
    n_tensors: int | None = None,
    metadata_len: int | None = None,
    magic: bytes = MAGIC,
    version: int = 1,
) -> bytes:
    """A whole file; the counts may lie."""
    n_tensors = len(descriptors) if n_tensors is None else n_tensors
    metadata_len = len(metadata) if metadata_len is None else metadata_len
    return header(n_tensors, metadata_len, magic, version) + metadata + b"".join(descriptors) + data


def one(data: bytes | None = None, **changes) -> bytes:
    """The valid file above, with changes to its descriptor."""
    return assemble([descriptor(**changes)], bytes(SIZE) if data is None else data)


VALID = one()
assert len(VALID) == 556

ZIP = b"PK\x03\x04\x00\x00\x08\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"  # what torch.save begins with
PICKLE = b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01w\x94K\x01s."
SAFETENSORS = struct.pack("<Q", 24) + b'{"__metadata__":{"a":"b"}}'
GGUF = b"GGUF" + struct.pack("<IQQ", 3, 0, 0)


def _header_faults() -> dict[str, Malformation]:
    def magic(first: bytes) -> Malformation:
        return Malformation(first.ljust(len(VALID), b"\0"), "header.magic", 0)

    faults = {
        "empty file": Malformation(b"", "header", 0),
        "one byte": Malformation(VALID[:1], "header", 0),
        "header without its last byte": Malformation(VALID[:15], "header", 0),
        "all zeros": magic(b""),
        "magic is GLFT, big-endian": magic(b"GLFT" + VALID[4:]),
        "magic is real GGUF": magic(GGUF),
        "magic with one bit flipped": magic(b"UFLG" + VALID[4:]),
        "magic in lower case": magic(b"tflg" + VALID[4:]),
        "a zip archive, as torch.save writes": magic(ZIP),
        "a pickle": magic(PICKLE),
        "a safetensors file": magic(SAFETENSORS),
        "a text file": magic(b"magic=TFLG\nversion=1\n"),
        "one byte before the magic": magic(b"\0" + VALID),
        "byte order mark before the magic": magic(b"\xef\xbb\xbf" + VALID),
    }
    for version in (0, 2, 3, 0x01000000, 0xFFFFFFFF):
        name = {0x01000000: "1, big-endian", 0xFFFFFFFF: "all ones"}.get(version, str(version))
        faults[f"version {name}"] = Malformation(assemble([], version=version), "header.version", 4)
    for name, count in {"all ones": 0xFFFFFFFF, "2^31": 1 << 31, "1, big-endian": 0x01000000, "42": 42}.items():
        data = assemble([descriptor()], bytes(SIZE), n_tensors=count)
        faults[f"n_tensors {name}"] = Malformation(data, "header.n_tensors", 8)
    for name, length in {"all ones": 0xFFFFFFFF, "2^31": 1 << 31, "one past the end": len(VALID) - 15}.items():
        data = assemble([descriptor()], bytes(SIZE), metadata_len=length)
        faults[f"metadata_len {name}"] = Malformation(data, "header.metadata_len", 12)
    return faults | {
        # zeros follow: the second descriptor is read from the data, where its name_len is 0
        "n_tensors one too many": Malformation(
            assemble([descriptor()], bytes(SIZE), n_tensors=2), "descriptor 1: name_len", 44
        ),
        "n_tensors 1 in a file without descriptors": Malformation(assemble([], n_tensors=1), "header.n_tensors", 8),
        # the last byte of the metadata and the first of name_len make 0x0132, a name of 306 bytes; then dims of junk
        "metadata_len one too short": Malformation(
            assemble([descriptor()], b"\xff" * 64, metadata_len=6), "descriptor 0: name", 24
        ),
        # name_len is read one byte late, as 00 77: a name of 0x7700 bytes
        "metadata_len one too long": Malformation(
            assemble([descriptor()], bytes(SIZE), metadata_len=8), "descriptor 0: name", 26
        ),
        "metadata_len covers the whole file": Malformation(
            assemble([descriptor()], bytes(SIZE), metadata_len=len(VALID) - 16), "header.n_tensors", 8
        ),
    }


def _metadata_faults() -> dict[str, Malformation]:
    def metadata(text: bytes, offset: int) -> Malformation:
        return Malformation(assemble([descriptor()], bytes(SIZE), text), "metadata", offset)

    return {
        "metadata with a stray byte FF": metadata(b"a=\xff", 18),
        "metadata with half a character": metadata("a=é".encode()[:-1], 18),
        "metadata with an overlong slash": metadata(b"a=\xc0\xaf", 18),
        "metadata with a surrogate": metadata(b"a=\xed\xa0\x80", 18),
        "metadata beyond Unicode": metadata(b"k=v\na=\xf4\x90\x80\x80", 22),
        "metadata in UTF-16": metadata("a=1".encode("utf-16"), 16),
        "metadata in Latin-1": metadata("colour=grün".encode("latin-1"), 25),
        "metadata without an equals sign": metadata(b"a=1\nhello", 20),
        "metadata of one word": metadata(b"hello", 16),
        "metadata with an empty key": metadata(b"a=1\n=2", 20),
        "metadata of an equals sign alone": metadata(b"=", 16),
        "metadata of an empty line": metadata(b"\n", 16),
        "metadata with an empty line": metadata(b"a=1\n\nb=2", 20),
        "metadata with two final newlines": metadata(b"a=1\n\n", 20),
        "metadata that begins with a newline": metadata(b"\na=1", 16),
        "metadata with a key twice": metadata(b"a=1\nb=2\na=3", 24),
        "metadata with a line twice": metadata("é=1\né=1".encode(), 21),
        "metadata that is JSON": metadata(b'{"a": 1}', 16),
        "dims_order the other way round": metadata(b"a=1\ndims_order=in,out", 20),
        "dims_order with a space": metadata(b"dims_order=out, in\na=1", 16),
        "dims_order of nothing": metadata(b"dims_order=", 16),
        "group_size of 32": metadata(b"dims_order=out,in\ngroup_size=32", 34),
        "group_size in other digits": metadata(b"group_size=064", 16),
        "metadata that ends in zeros": metadata(b"a=1\n\0\0", 20),
    }


def _descriptor_faults() -> dict[str, Malformation]:
    def names(*names: bytes) -> bytes:
        return assemble([descriptor(name, dims=()) for name in names], bytes(4 * len(names)))

    long = b"layers.0.attn.qkv.weight"  # 24 bytes: its descriptor is long enough for n_tensors to be believed
    first = len(assemble([descriptor(long)]))  # where the second descriptor begins: 16 + 7 + 44
    two = assemble([descriptor(long), descriptor()])
    faults = {
        f"truncated in {what}": Malformation(two[: first + kept], field, first + begins)
        for what, kept, field, begins in [
            ("name_len", 1, "descriptor 1: name_len", 0),
            ("the name", 2, "descriptor 1: name", 2),
            ("n_dims", 3, "tensor 'w': n_dims", 3),
            ("the first dim", 5, "tensor 'w': dims", 4),
            ("the last dim", 11, "tensor 'w': dims", 4),
            ("the dtype", 12, "tensor 'w': dtype", 12),
            ("the offset, empty", 13, "tensor 'w': offset", 13),
            ("the offset, 7 of 8 bytes", 20, "tensor 'w': offset", 13),
        ]
    }
    return faults | {
        "name_len 0": Malformation(one(name=b""), "descriptor 0: name_len", 23),
        "name_len all ones": Malformation(one(name_len=0xFFFF), "descriptor 0: name", 25),
        "name_len 1, big-endian": Malformation(one(bytes(100), name_len=256), "descriptor 0: name", 25),
        # two bytes too long: the name swallows n_dims and the first byte of dims
        "name_len two too long": Malformation(one(name_len=3), "tensor 'w\\x02\\x02'", None),
        "name with a stray byte FF": Malformation(one(name=b"w\xff"), "descriptor 0: name", 26),
        "name with half a character": Malformation(one(name="wé".encode()[:-1]), "descriptor 0: name", 26),
        "name with an overlong zero": Malformation(one(name=b"\xc0\x80"), "descriptor 0: name", 25),
        "name with a surrogate": Malformation(one(name=b"\xed\xb0\x80"), "descriptor 0: name", 25),
        "the same name twice": Malformation(names(b"a", b"a"), "descriptor 1: name", 38),
        "the same name first and third": Malformation(names(b"a", b"b", b"a"), "descriptor 2: name", 51),
        "n_dims 255 and the file ends": Malformation(one(n_dims=255), "tensor 'w': n_dims", 26),
        "n_dims 255 with all its dims": Malformation(one(bytes(4), dims=(1,) * 255), "tensor 'w': n_dims", 26),
        "n_dims 65": Malformation(one(bytes(4), dims=(1,) * 65), "tensor 'w': n_dims", 26),
        "n_dims 64 and the file ends": Malformation(one(bytes(99), n_dims=64), "tensor 'w': dims", 27),
        # one dim too few: the second dim is read as dtype 64
        "n_dims one too few": Malformation(one(n_dims=1), "tensor 'w': dtype", 31),
        "dtype 4": Malformation(one(dtype=4), "tensor 'w': dtype", 35),
        "dtype 12, real GGUF's Q4_K": Malformation(one(dtype=12), "tensor 'w': dtype", 35),
        "dtype 255": Malformation(one(dtype=255), "tensor 'w': dtype", 35),
    }


def _dims_faults() -> dict[str, Malformation]:
    most = 0xFFFFFFFF

    def dims(dims: tuple[int, ...], dtype: int = F32, field: str = "dims") -> Malformation:
        at = {"n_dims": 26, "dims": 27, "offset": 28 + 4 * len(dims)}[field]
        return Malformation(one(dims=dims, dtype=dtype), f"tensor 'w': {field}", at)

    return {
        "dims that overflow 64 bits": dims((most, most, most)),
        "dims that wrap around to 0": dims((1 << 16,) * 4),
        "dims that wrap around to 128, the right number": dims((128 * 9 * 571, 174_763, 160_465_489)),  # 2^64 + 128
        "dims of 2^62 weights, whose bytes wrap around": dims((1 << 31, 1 << 31)),
        "64 dims, all ones": dims((most,) * 64),
        "one dim is zero, the others huge": dims((0, most, most)),
        "huge dims and a zero at the end": dims((most, most, most, 0)),
        "dims larger than the file": dims((2, 65), field="offset"),
        "dims of 16 GB": dims((most,), field="offset"),
        "dims of 8 EB": dims((1 << 30, 1 << 29), field="offset"),
        "F16 dims larger than the file": dims((2, 129), F16, "offset"),
        "Q8 with a thousand million rows of nothing": dims((1_000_000_000, 0), Q8, "offset"),
        "Q8 rows without room for their scales": dims((8, 64), Q8, "offset"),
        "Q4 dims larger than the file": dims((16, 64), Q4, "offset"),
        "Q8 scalar": dims((), Q8, "n_dims"),
        "Q8 of one dim": dims((128,), Q8, "n_dims"),
        "Q8 of three dims": dims((1, 2, 64), Q8, "n_dims"),
        "Q4 scalar": dims((), Q4, "n_dims"),
        "Q4 of one dim": dims((128,), Q4, "n_dims"),
        "Q4 of four dims": dims((1, 1, 2, 64), Q4, "n_dims"),
        "Q4 with rows of 63": dims((2, 63), Q4),
        "Q4 with rows of 65": dims((2, 65), Q4),
        "Q4 with rows of 32": dims((4, 32), Q4),
        "Q4 with dims reversed": dims((64, 2), Q4),
    }


def _offset_faults() -> dict[str, Malformation]:
    def offset(offset: int) -> Malformation:
        return Malformation(one(offset=offset), "tensor 'w': offset", 36)

    def several(fault: str, *tensors: tuple[bytes, tuple[int, ...], int]) -> Malformation:
        """Tensors of names of one byte; the one at fault is the only one of its name."""
        parts = [descriptor(name, dims, F32, at) for name, dims, at in tensors]
        index = [name for name, _, _ in tensors].index(fault.encode())
        where = 23 + sum(map(len, parts[: index + 1])) - 8
        return Malformation(assemble(parts, bytes(64)), f"tensor '{fault}': offset", where)

    return {
        "offset at the end": offset(SIZE),
        "offset one byte too far": offset(1),
        "offset counted from the start of the file": offset(44),
        "offset beyond the end": offset(10_000),
        "offset 2^63": offset(1 << 63),
        "offset all ones": offset((1 << 64) - 1),
        "offset that wraps around to 0": offset((1 << 64) - SIZE),
        "offset that wraps around to the data": offset((1 << 64) - 44),
        "two tensors at one offset": several("b", (b"a", (4,), 0), (b"b", (8,), 0)),
        "two tensors overlap by one byte": several("b", (b"a", (4,), 0), (b"b", (4,), 15)),
        "one tensor inside another": several("b", (b"a", (16,), 0), (b"b", (2,), 24)),
        "the first of three overlaps the last": several("a", (b"a", (4,), 40), (b"b", (4,), 0), (b"c", (4,), 32)),
        "a scalar in the middle of a tensor": several("b", (b"a", (16,), 0), (b"b", (), 60)),
        "an overlap behind an empty tensor": several("c", (b"a", (4,), 0), (b"b", (0,), 5), (b"c", (), 8)),
        "an empty tensor beyond the end": several("a", (b"a", (0,), 65)),
    }


def _data_faults() -> dict[str, Malformation]:
    def scale(value: float, dtype: int, index: int) -> Malformation:
        groups = 2 if dtype == Q8 else 4  # dims (2, 128): 2 rows, or 2 × 2 groups
        scales = [1.0] * groups
        scales[index] = value
        values = bytes(256 if dtype == Q8 else 128)
        data = struct.pack(f"<{groups}e", *scales) + values
        return Malformation(one(data, dims=(2, 128), dtype=dtype), "tensor 'w': scales", 44 + 2 * index)

    return {
        "data without its last byte": Malformation(one(bytes(SIZE - 1)), "tensor 'w': offset", 36),
        "no data at all": Malformation(one(b""), "tensor 'w': offset", 36),
        "half of the data": Malformation(one(bytes(SIZE // 2)), "tensor 'w': offset", 36),
        "Q8 scale NaN": scale(float("nan"), Q8, 0),
        "Q8 scale infinite": scale(float("inf"), Q8, 1),
        "Q4 scale NaN": scale(float("nan"), Q4, 3),
        "Q4 scale minus infinity": scale(float("-inf"), Q4, 2),
    }


CORPUS: dict[str, Malformation] = (
    _header_faults() | _metadata_faults() | _descriptor_faults() | _dims_faults() | _offset_faults() | _data_faults()
)

# What the C reader leaves unchecked, as it says itself: UTF-8, unique names and keys, key=value lines, overlaps. And it
# takes up to 255 dims, where an array of numpy has 64.
BELIEVED = {name for name in CORPUS if name.startswith(("dims_order", "group_size"))}  # what every reader must refuse
NOT_SEEN_BY_C = {name for name, fault in CORPUS.items() if fault.field == "metadata" and name not in BELIEVED} | {
    "name with a stray byte FF",
    "name with half a character",
    "name with an overlong zero",
    "name with a surrogate",
    "the same name twice",
    "the same name first and third",
    "n_dims 255 with all its dims",
    "n_dims 65",
    "two tensors at one offset",
    "two tensors overlap by one byte",
    "one tensor inside another",
    "the first of three overlaps the last",
    "a scalar in the middle of a tensor",
    "an overlap behind an empty tensor",
}
