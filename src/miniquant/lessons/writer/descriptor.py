"""The exercise of lab 06 on the third part of a file: the descriptors."""

from __future__ import annotations

import struct
from functools import partial

import numpy as np

from ...formats.gguf_lite import file as gguf_io
from ...formats.tensor import TensorInfo
from ...lab.compare import Fields, one_after_another
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import by_digits
from ..shared.gguf_lite_by_hand import descriptor_oracle

# ---- descriptor_bytes ------------------------------------------------------------------------------------------------


def descriptor_bytes(name: str, dims: tuple, dtype: int, offset: int) -> bytes:
    """The reference: one tensor's name, shape, dtype code and offset -> its descriptor."""
    return gguf_io.encode_descriptor(TensorInfo(name, tuple(dims), gguf_io.DType(dtype), offset))


def descriptor_fields(name: str, dims: tuple, dtype: int, offset: int) -> Fields:
    """The fields of one descriptor, in order."""
    sizes = [("name_len", 2), ("name", len(name.encode())), ("n_dims", 1)]
    sizes += [(f"dims[{i}]", 4) for i in range(len(dims))] + [("dtype", 1), ("offset", 8)]
    return one_after_another(sizes)


def _descriptor_cases(random: np.random.Generator) -> list[Case]:
    made = [
        ("w", (2, 3), 1, 8),
        ("b", (3,), 0, 0),
        ("s", (), 0, 16),
        ("gröss", (2, 64), 3, 258),
        ("layers.0.mlp.fc1.weight", (1024, 256), 2, 0x0102030405),
        ("n" * 300, (1, 2, 3, 4), 0, 7),
    ]
    drawn = random.integers(1, 2**20, (3, 3)).tolist()
    return [*made, *((f"layers.{i}.weight", (a, b), i % 4, c * 17) for i, (a, b, c) in enumerate(drawn))]


def _descriptor(
    name: str, dims: tuple, dtype: int, offset: int, *, order="<", name_len="H", n_dims="B", dim="I", code="B", at="Q"
) -> bytes:
    text = name.encode()
    parts = [struct.pack(order + name_len, len(text)), text, struct.pack(order + n_dims, len(dims))]
    parts += [struct.pack(order + dim, size) for size in dims]
    return b"".join([*parts, struct.pack(order + code, dtype), struct.pack(order + at, offset)])


def _reversed_dims(name: str, dims: tuple, dtype: int, offset: int) -> bytes:
    return _descriptor(name, dims[::-1], dtype, offset)


def _characters(name: str, dims: tuple, dtype: int, offset: int) -> bytes:
    return struct.pack("<H", len(name)) + _descriptor(name, dims, dtype, offset)[2:]


def _zero_terminated(name: str, dims: tuple, dtype: int, offset: int) -> bytes:
    return _descriptor(name + "\0", dims, dtype, offset)


def _offset_first(name: str, dims: tuple, dtype: int, offset: int) -> bytes:
    return _descriptor(name, dims, dtype, offset)[:-9] + struct.pack("<QB", offset, dtype)


def _one_native_format(name: str, dims: tuple, dtype: int, offset: int) -> bytes:
    """What one format without ``<`` gives on 64-bit machines, spelled out; numbers start at multiples of their size."""
    text = name.encode()
    data = by_digits(len(text), 2) + text + by_digits(len(dims), 1)
    data += bytes(-len(data) % 4)
    data += b"".join(by_digits(dim, 4) for dim in dims) + by_digits(dtype, 1)
    return data + bytes(-len(data) % 8) + by_digits(offset, 8)


def _aligned(name: str, dims: tuple, dtype: int, offset: int) -> bytes:
    """What ``struct.pack("BQ", …)`` gives on a 64-bit machine, spelled out."""
    return _descriptor(name, dims, dtype, offset)[:-8] + bytes(7) + struct.pack("<Q", offset)


DESCRIPTOR_BYTES = Exercise(
    name="descriptor_bytes",
    lab="06",
    goal="Describe one tensor: the length of its name, the name, how many dims, the dims, the dtype, the offset.",
    minutes=5,
    difficulty="core",
    reference=descriptor_bytes,
    oracle=descriptor_oracle,
    cases=_descriptor_cases,
    fields=descriptor_fields,
    hints=(
        "Encode the name first, so that you can count its bytes; then join the packed parts in the order of the table. "
        "The letters of `struct` are `B` u8, `H` u16, `I` u32, `Q` u64.",
        '`struct.pack(f"<B{len(dims)}I", len(dims), *dims)` writes the number of dims and all of them; '
        '`struct.pack("<BQ", dtype, offset)` ends the descriptor.',
    ),
    why="a reader finds, shapes and decodes every weight by these few bytes, and by nothing else.",
    mistakes=(
        Mistake(
            "dims reversed",
            _reversed_dims,
            "The width came first, as in real GGUF, and this format keeps PyTorch's order: out, then in.",
            "Write the dims in the order of `tensor.shape`.",
            "dims[0] and dims[1] exchanged, and a model whose matrices come back on their side",
        ),
        Mistake(
            "64-bit dims",
            partial(_descriptor, dim="Q"),
            "Each dim takes eight bytes, as in real GGUF, and here four.",
            "Pack the dims as `I`.",
            "four bytes too many for each dim",
        ),
        Mistake(
            "32-bit n_dims",
            partial(_descriptor, n_dims="I"),
            "The number of dims takes four bytes, as in real GGUF, and here one.",
            "Pack n_dims as `B`.",
            "three zero bytes in front of the first dim",
        ),
        Mistake(
            "name_len counts characters",
            _characters,
            "The length counts the characters of the name, and a reader needs its bytes: ö takes two in UTF-8.",
            "Encode the name first, and take `len` of the bytes.",
            "ASCII names right, and a name with an accent one too short",
        ),
        Mistake(
            "name_len in one byte",
            lambda name, *rest: _descriptor(name, *rest, name_len="B"),
            "The length of the name was packed as `B`, and the format gives it two bytes.",
            "Pack it as `H`.",
            "the name begins at byte 1 instead of byte 2",
        ),
        Mistake(
            "name_len in four bytes",
            lambda name, *rest: _descriptor(name, *rest, name_len="I"),
            "The length of the name was packed as `I`, and the format gives it two bytes.",
            "Pack it as `H`.",
            "two zero bytes in front of the name",
        ),
        Mistake(
            "a zero byte after the name",
            _zero_terminated,
            "C ends a string with a zero byte, and here the length in front of the name does that work.",
            "Write the bytes of the name and nothing after them.",
            "name_len one too large, and `00` after the name",
        ),
        Mistake(
            "big-endian",
            partial(_descriptor, order=">"),
            "The most significant byte came first.",
            "Begin every format with `<`.",
            "`00 01` where `01 00` is expected",
        ),
        Mistake(
            "padding slipped in",
            _aligned,
            "Without `<`, struct pads as a C compiler does, and puts seven bytes between dtype and offset.",
            "Begin every format with `<`, which also switches padding off.",
            "seven zero bytes too many after the dtype",
        ),
        Mistake(
            "padding everywhere",
            _one_native_format,
            "Without `<`, struct pads as a C compiler does, so that each number begins at a multiple of its own size.",
            "Begin the format with `<`, which also switches padding off.",
            "zero bytes in front of the dims and of the offset",
        ),
        Mistake(
            "32-bit dtype",
            partial(_descriptor, code="I"),
            "The dtype takes four bytes, as in real GGUF, and here one.",
            "Pack the dtype as `B`.",
            "three bytes too many before the offset",
        ),
        Mistake(
            "32-bit offset",
            lambda name, dims, dtype, offset: _descriptor(name, dims, dtype, offset)[:-8] + by_digits(offset, 4),
            "The offset was packed as `I`, and a file may be larger than four gigabytes.",
            "Pack the offset as `Q`.",
            "four bytes too few at the end",
        ),
        Mistake(
            "offset before dtype",
            _offset_first,
            "The last two fields are exchanged.",
            "Write the dtype first and the offset last.",
            "the dtype in the last byte",
        ),
    ),
)
