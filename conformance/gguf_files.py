"""A corpus of malformed GGUF files, each with a name, the field at fault and the byte at which that field begins.

Built with ``struct`` alone. Most are one valid file with one thing wrong:

byte  0  header    "GGUF", version 3, 1 tensor, 3 key-values
     24  pair 0    key "n"; type 4 (UINT32) at 33; 7 at 37
     41  pair 1    key "s"; type 8 (STRING) at 50; length 3 at 54, "xyz" at 62
     65  pair 2    key "a"; type 9 (ARRAY) at 74, of 3 (INT16) at 78; length 4 at 82, -2 -1 0 1 at 90
     98  info      name "w"; n_dims 2 at 107; dims 64, 2 at 111; type 0 (F32) at 127; offset 0 at 131
    139  padding   21 zeros
    160  data      512 bytes
    672  the end
"""

from __future__ import annotations

import struct
from typing import NamedTuple

(UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64) = range(13)
F32, F16, Q4_0, Q8_0, Q4_K = 0, 1, 2, 8, 12
MOST = 2**64 - 1


class Malformation(NamedTuple):
    """``field`` is the error's field and ``offset`` where it begins; ``ggml``: does ggml's own reader refuse it too."""

    data: bytes
    field: str
    offset: int
    ggml: bool = True


def string(text: bytes, length: int | None = None) -> bytes:
    """A length, which may lie, and the text."""
    return struct.pack("<Q", len(text) if length is None else length) + text


def pair(key: bytes, kind: int, value: bytes, key_len: int | None = None) -> bytes:
    """A key, the number of a type, and whatever bytes follow it."""
    return string(key, key_len) + struct.pack("<I", kind) + value


def array(of: int, count: int, items: bytes) -> bytes:
    """The value of an array; the count may lie."""
    return struct.pack("<IQ", of, count) + items


def info(
    name: bytes = b"w",
    dims: tuple[int, ...] = (64, 2),
    kind: int = F32,
    offset: int = 0,
    *,
    name_len: int | None = None,
    n_dims: int | None = None,
) -> bytes:
    """A tensor's entry; ``name_len`` and ``n_dims`` may lie."""
    n_dims = len(dims) if n_dims is None else n_dims
    return string(name, name_len) + struct.pack(f"<I{len(dims)}QIQ", n_dims, *dims, kind, offset)


NUMBER = pair(b"n", UINT32, struct.pack("<I", 7))
TEXT = pair(b"s", STRING, string(b"xyz"))
INTEGERS = pair(b"a", ARRAY, array(INT16, 4, struct.pack("<4h", -2, -1, 0, 1)))
PAIRS = [NUMBER, TEXT, INTEGERS]
SIZE = 512  # of the one tensor's data


def assemble(
    pairs: list[bytes],
    infos: list[bytes],
    data: bytes = b"",
    *,
    n_tensors: int | None = None,
    n_pairs: int | None = None,
    magic: bytes = b"GGUF",
    version: int = 3,
    alignment: int = 32,
) -> bytes:
    """A whole file; the counts may lie."""
    n_tensors = len(infos) if n_tensors is None else n_tensors
    n_pairs = len(pairs) if n_pairs is None else n_pairs
    head = magic + struct.pack("<IQQ", version, n_tensors, n_pairs) + b"".join(pairs) + b"".join(infos)
    return head + bytes(-len(head) % alignment) + data


def one(data: bytes | None = None, **changes) -> bytes:
    """The valid file above, with changes to its tensor's entry."""
    return assemble(PAIRS, [info(**changes)], bytes(SIZE) if data is None else data)


VALID = one()
assert len(VALID) == 672


def _header() -> dict[str, Malformation]:
    def magic(first: bytes) -> Malformation:
        return Malformation(first.ljust(len(VALID), b"\0"), "header.magic", 0)

    def version(number: int) -> Malformation:
        return Malformation(assemble(PAIRS, [info()], bytes(SIZE), version=number), "header.version", 4)

    big = b"GGUF" + struct.pack(">IQQ", 3, 0, 1) + struct.pack(">Q1sII", 1, b"n", UINT32, 7)
    faults = {
        "an empty file": Malformation(b"", "header", 0),
        "one byte": Malformation(VALID[:1], "header", 0),
        "the magic alone": Malformation(VALID[:4], "header", 0),
        "a header without its last byte": Malformation(VALID[:23], "header", 0),
        "all zeros": magic(b""),
        "magic in lower case": magic(b"gguf" + VALID[4:]),
        "magic backwards": magic(b"FUGG" + VALID[4:]),
        "magic of GGML": magic(b"lmgg" + VALID[4:]),
        "magic of GGUF-lite": magic(b"TFLG" + struct.pack("<3I", 1, 0, 0)),
        "a pickle": magic(b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01w\x94K\x01s."),
        "a zip archive": magic(b"PK\x03\x04\x00\x00\x08\x08"),
        "one byte before the magic": magic(b"\0" + VALID),
        "big-endian": Malformation(big, "header.version", 4),
        "version 0": version(0),
        "version 1": version(1),
        "version 4": version(4),
        "version all ones": version(2**32 - 1),
    }
    for name, count in {"-1": MOST, "2^63": 2**63, "2^32": 2**32, "a thousand": 1000}.items():
        tensors = assemble(PAIRS, [info()], bytes(SIZE), n_tensors=count)
        pairs = assemble(PAIRS, [info()], bytes(SIZE), n_pairs=count)
        faults[f"n_tensors {name}"] = Malformation(tensors, "header.n_tensors", 8)
        faults[f"n_kv {name}"] = Malformation(pairs, "header.n_kv", 16)
    return faults | {
        # zeros follow, 24 of them are an entry: no name, no dims, F32, offset 0; and again
        "n_tensors two too many": Malformation(
            assemble(PAIRS, [info()], bytes(SIZE), n_tensors=3), "tensor 2: name", 163
        ),
        # the tensor's entry is read as a fourth pair: its key is "w", its n_dims of 2 is the type UINT16
        "n_kv one too many": Malformation(
            assemble(PAIRS, [info()], bytes(SIZE), n_pairs=4), "tensor 0: name: length", 113
        ),
        # the third pair is read as a tensor: its name is "a", its type 9 is n_dims
        "n_kv one too few": Malformation(assemble(PAIRS, [info()], bytes(SIZE), n_pairs=2), "tensor 'a': n_dims", 74),
        "n_tensors 1 in a file without any": Malformation(
            assemble(PAIRS, [], n_tensors=1)[:98], "tensor 0: name: length", 98
        ),
    }


def _truncated() -> dict[str, Malformation]:
    """Cut in each part, after a pair of 64 bytes that makes the file large enough for its counts to be believed."""
    first, faults = pair(b"first", STRING, string(b"." * 39)), {}
    for what, length, field, offset in [
        ("a key's length", 30, "key 1: length", 24),
        ("a key", 32, "key 1: length", 24),
        ("a type", 36, "metadata 'n': type", 33),
        ("a number", 40, "metadata 'n'", 37),
        ("a string's length", 61, "metadata 's': length", 54),
        ("a string", 64, "metadata 's': length", 54),
        ("an array's element type", 81, "metadata 'a': element type", 78),
        ("an array's length", 89, "metadata 'a': length", 82),
        ("an array", 97, "metadata 'a': length", 82),
        ("a name's length", 105, "tensor 0: name: length", 98),
        ("a name", 106, "tensor 0: name: length", 98),
        ("n_dims", 110, "tensor 'w': n_dims", 107),
        ("the first dim", 118, "tensor 'w': dims", 111),
        ("the last dim", 126, "tensor 'w': dims", 111),
        ("a tensor's type", 130, "tensor 'w': type", 127),
        ("an offset", 138, "tensor 'w': offset", 131),
        ("the padding", 150, "tensor 'w': offset", 131),
        ("the data, nothing left", 160, "tensor 'w': offset", 131),
        ("the data, half of it left", 160 + SIZE // 2, "tensor 'w': offset", 131),
        ("the data, one byte missing", len(VALID) - 1, "tensor 'w': offset", 131),
    ]:
        data = VALID[:16] + struct.pack("<Q", 4) + first + VALID[24:length]
        faults[f"truncated in {what}"] = Malformation(data, field, offset + len(first))
    return faults


def _keys() -> dict[str, Malformation]:
    def first(key: bytes, field: str, offset: int, key_len: int | None = None, ggml: bool = True) -> Malformation:
        changed = pair(key, UINT32, struct.pack("<I", 7), key_len)
        return Malformation(assemble([changed, TEXT], [info()], bytes(SIZE)), field, offset, ggml)

    long = pair(b"k" * 65_536, UINT32, bytes(4))
    return {
        "an empty key": first(b"", "key 0: length", 24),
        "a key's length -1": first(b"n", "key 0: length", 24, MOST),
        "a key's length 2^63": first(b"n", "key 0: length", 24, 2**63),
        "a key's length of a gigabyte": first(b"n", "key 0: length", 24, 2**30),
        "a key's length one past the end": first(b"n", "key 0: length", 24, 609),
        "a key of 65,536 bytes": Malformation(assemble([long], [info()], bytes(SIZE)), "key 0: length", 24, False),
        "a key with a stray byte FF": first(b"n\xff", "key 0", 33, ggml=False),
        "a key with half a character": first("né".encode()[:-1], "key 0", 33, ggml=False),
        "a key twice": Malformation(assemble([NUMBER, TEXT, NUMBER], [info()], bytes(SIZE)), "key 2", 65),
    }


def _values() -> dict[str, Malformation]:
    def value(kind: int, value: bytes, field: str, offset: int, ggml: bool = True) -> Malformation:
        """A pair whose key is "v", so that its type stands at 33 and its value at 37."""
        data = assemble([pair(b"v", kind, value), TEXT], [info()], bytes(SIZE))
        return Malformation(data, "metadata 'v'" + field, offset, ggml)

    faults = {}
    for name, count in {"-1": MOST, "2^63": 2**63, "2^61, whose bytes wrap around": 2**61, "2^30": 2**30}.items():
        for of in (UINT8, UINT64, STRING, BOOL):
            kind = {UINT8: "UINT8", UINT64: "UINT64", STRING: "STRING", BOOL: "BOOL"}[of]
            faults[f"an array of {kind} of length {name}"] = value(ARRAY, array(of, count, bytes(8)), ": length", 41)
        faults[f"a string's length {name}"] = value(STRING, string(b"xyz", count), ": length", 37)
    strings = string(b"x") + string(b"xyz", MOST)
    return faults | {
        "type 13": value(13, bytes(8), ": type", 33),
        "type 255": value(255, bytes(8), ": type", 33),
        "type -1": value(2**32 - 1, bytes(8), ": type", 33),
        "element type 13": value(ARRAY, array(13, 1, bytes(8)), ": element type", 37),
        "element type -1": value(ARRAY, array(2**32 - 1, 1, bytes(8)), ": element type", 37),
        "an array of arrays": value(ARRAY, array(ARRAY, 1, array(UINT8, 1, b"\1")), ": element type", 37),
        "an empty array of arrays": value(ARRAY, array(ARRAY, 0, b""), ": element type", 37),
        "a truth value of 2": value(BOOL, b"\2", "", 37, False),
        "a truth value of 255": value(BOOL, b"\xff", "", 37, False),
        "a truth value of 2 in an array": value(ARRAY, array(BOOL, 4, b"\0\1\2\1"), "", 51, False),
        "a string in an array that is too long": value(ARRAY, array(STRING, 2, strings), "", 58),
        "a string with a stray byte FF": value(STRING, string(b"ab\xff"), "", 47, False),
        "a string with a surrogate": value(STRING, string(b"\xed\xa0\x80"), "", 45, False),
        "a string in Latin-1": value(STRING, string("grün".encode("latin-1")), "", 47, False),
        "a string of an array with a stray byte FF": value(
            ARRAY, array(STRING, 2, string(b"ok") + string(b"a\xff")), "", 68, False
        ),
    }


def _alignment() -> dict[str, Malformation]:
    def alignment(kind: int, value: bytes, field: str, offset: int) -> Malformation:
        pairs = [pair(b"general.alignment", kind, value)]
        return Malformation(assemble(pairs, [info()], bytes(SIZE)), "metadata 'general.alignment'" + field, offset)

    faults = {
        f"alignment {number}": alignment(UINT32, struct.pack("<I", number), "", 53)
        for number in (0, 3, 24, 33, 48, 2**32 - 1)
    }
    return faults | {
        "alignment of type UINT64": alignment(UINT64, struct.pack("<Q", 32), ": type", 49),
        "alignment of type INT32": alignment(INT32, struct.pack("<i", 32), ": type", 49),
        "alignment of type UINT16": alignment(UINT16, struct.pack("<H", 32), ": type", 49),
        "alignment of type FLOAT32": alignment(FLOAT32, struct.pack("<f", 32), ": type", 49),
        "alignment of type STRING": alignment(STRING, string(b"32"), ": type", 49),
        "alignment of type ARRAY": alignment(ARRAY, array(UINT32, 1, struct.pack("<I", 32)), ": type", 49),
    }


def _names() -> dict[str, Malformation]:
    def names(*names: bytes) -> bytes:
        infos = [info(name, (8,), F32, 32 * i) for i, name in enumerate(names)]
        return assemble([], infos, bytes(32 * len(names)))

    return {
        "a name's length -1": Malformation(one(name_len=MOST), "tensor 0: name: length", 98),
        "a name's length 2^63": Malformation(one(name_len=2**63), "tensor 0: name: length", 98),
        "a name's length one past the end": Malformation(one(name_len=567), "tensor 0: name: length", 98),
        "a name's length that fits the file": Malformation(one(name_len=500), "tensor 0: name: length", 98),
        "a name of 65 bytes": Malformation(one(name=b"w" * 65), "tensor 0: name: length", 98),
        "a name with a stray byte FF": Malformation(one(name=b"w\xff"), "tensor 0: name", 107, False),
        "a name with half a character": Malformation(one(name="wé".encode()[:-1]), "tensor 0: name", 107, False),
        "a name twice": Malformation(names(b"a", b"b", b"a"), "tensor 2: name", 24 + 2 * 33),
    }


def _dims() -> dict[str, Malformation]:
    def dims(*dims: int, kind: int = F32, field: str = "dims", ggml: bool = True, size: int = SIZE) -> Malformation:
        at = {"n_dims": 107, "dims": 111, "type": 111 + 8 * len(dims), "offset": 115 + 8 * len(dims)}[field]
        return Malformation(one(bytes(size), dims=dims, kind=kind), f"tensor 'w': {field}", at, ggml)

    return {
        "five dims": dims(8, 1, 1, 1, 1, field="n_dims"),
        "n_dims -1": Malformation(one(n_dims=2**32 - 1), "tensor 'w': n_dims", 107),
        "n_dims 2^31": Malformation(one(n_dims=2**31), "tensor 'w': n_dims", 107),
        "a negative dim": dims(64, MOST),
        "a negative first dim": dims(2**64 - 64, 2),
        "a dim of 2^63": dims(2**63, 1),
        "dims that overflow 64 bits": dims(2**32, 2**32),
        "dims that wrap around to 128, the right number": dims(2**62, 4, 1, 1),
        "four dims that overflow 64 bits": dims(2**16, 2**16, 2**16, 2**16),
        "dims whose bytes overflow 64 bits": dims(2**31, 2**30),
        "negative dims that multiply to a positive number": dims(MOST, MOST),
        "dims larger than the file": dims(64, 3, field="offset"),
        "dims of an exabyte": dims(2**30, 2**28, field="offset"),
        "dims of the file's whole size": dims(len(VALID) // 4, 1, field="offset"),
        "rows of 33 in Q8_0": dims(33, 2, kind=Q8_0),
        "rows of 16 in Q4_0": dims(16, 8, kind=Q4_0),
        "rows of 128 in Q4_K": dims(128, 2, kind=Q4_K),
        "dims the other way round in Q8_0": dims(2, 64, kind=Q8_0),
        "a scalar in Q8_0": dims(kind=Q8_0, field="n_dims"),
        "type 4, which ggml gave up": dims(64, 2, kind=4, field="type"),
        "type 31, which ggml gave up": dims(64, 2, kind=31, field="type"),
        "type 99": dims(64, 2, kind=99, field="type"),
        "type -1 of a tensor": dims(64, 2, kind=2**32 - 1, field="type"),
    }


def _offsets() -> dict[str, Malformation]:
    def offset(offset: int, data: int = SIZE) -> Malformation:
        return Malformation(one(bytes(data), offset=offset), "tensor 'w': offset", 131)

    def several(fault: str, *tensors: tuple[bytes, int, int]) -> Malformation:
        """Tensors of names of one byte, with a number of weights and an offset; one of them is at fault."""
        infos = [info(name, (n,), F32, at) for name, n, at in tensors]
        index = [name for name, _, _ in tensors].index(fault.encode())
        return Malformation(assemble([], infos, bytes(256)), f"tensor '{fault}': offset", 24 + 33 * (index + 1) - 8)

    aligned = pair(b"general.alignment", UINT32, struct.pack("<I", 64))
    by_32 = assemble([aligned], [info(b"a", (8,)), info(b"b", (8,), offset=32)], bytes(128), alignment=64)
    return {
        "an offset of 1": offset(1),
        "an offset of 16": offset(16),
        "an offset of 32 where the alignment is 64": Malformation(by_32, "tensor 'b': offset", 57 + 33 + 25),
        "an offset counted from the start of the file": offset(160),
        "an offset at the end": offset(SIZE),
        "an offset beyond the end": offset(2**20),
        "an offset of 2^63": offset(2**63),
        "an offset that wraps around": offset(2**64 - 32),
        "an offset that wraps around to the data": offset(2**64 - SIZE),
        "two tensors at one offset": several("b", (b"a", 8, 0), (b"b", 8, 0)),
        "two tensors that overlap": several("b", (b"a", 16, 0), (b"b", 8, 32)),
        "a tensor inside another": several("b", (b"a", 32, 0), (b"b", 2, 64)),
        "the first of three over the last": several("c", (b"a", 8, 64), (b"b", 8, 0), (b"c", 16, 32))._replace(
            field="tensor 'a': offset", offset=24 + 33 - 8
        ),
    }


CORPUS: dict[str, Malformation] = (
    _header() | _truncated() | _keys() | _values() | _alignment() | _names() | _dims() | _offsets()
)

# What the specification allows and llama.cpp's loader does not; and we read.
LENIENT: dict[str, bytes] = {
    "a name of 64 bytes": one(name=b"w" * 64),
    "tensors in another order": assemble([], [info(b"a", (8,), offset=32), info(b"b", (8,))], bytes(64)),
    "a gap between tensors": assemble([], [info(b"a", (8,)), info(b"b", (8,), offset=64)], bytes(96)),
    "a gap before the first tensor": assemble([], [info(b"a", (8,), offset=32)], bytes(64)),
    "no padding behind the last tensor": assemble([], [info(b"a", (7,))], bytes(28)),
    "a scalar that ends the file": assemble([], [info(b"a", ())], bytes(4)),
}
