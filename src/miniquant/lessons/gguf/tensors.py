"""The exercises of lab 11 on the third part of a file: tensor infos and aligned offsets."""

from __future__ import annotations

import itertools
import struct
from functools import partial

import numpy as np

from ...formats.gguf import read, write
from ...formats.gguf.types import GGMLType
from ...formats.tensor import TensorInfo
from ...lab.compare import Fields
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import by_digits

# ---- tensor_info -----------------------------------------------------------------------------------------------------


def tensor_info(name: str, shape: tuple, type_code: int, offset: int) -> bytes:
    """The reference: name, shape in PyTorch's order, type and offset -> the tensor's info."""
    return write.encode_info(TensorInfo(name, tuple(shape), GGMLType(type_code), offset))


def info_oracle(name: str, shape: tuple, type_code: int, offset: int) -> bytes:
    """Each number taken apart digit by digit, the dims from the last to the first."""
    text = bytes(name, "utf-8")
    parts = [by_digits(len(text), 8), text, by_digits(len(shape), 4)]
    for index in range(len(shape) - 1, -1, -1):
        parts.append(by_digits(shape[index], 8))
    return b"".join([*parts, by_digits(type_code, 4), by_digits(offset, 8)])


def info_fields(name: str, shape: tuple, type_code: int, offset: int) -> Fields:
    """The fields of one info, in order."""
    sizes = [("the name's length", 8), ("the name", len(name.encode())), ("n_dims", 4)]
    sizes += [(f"dims[{i}]", 8) for i in range(len(shape))] + [("the type", 4), ("the offset", 8)]
    ends = list(itertools.accumulate(size for _, size in sizes))
    return [(field, end - size, end) for (field, size), end in zip(sizes, ends)]


def _info_cases(random: np.random.Generator) -> list[Case]:
    made = [
        ("w", (2, 3), 0, 32),
        ("b", (3,), 0, 0),
        ("größe", (2, 64), 8, 96),
        ("blk.0.ffn_up.weight", (1024, 256), 2, 0x0102030420),
        ("s", (), 0, 64),
        ("cube", (2, 3, 5), 1, 128),
    ]
    drawn = random.integers(1, 2**20, (3, 3)).tolist()
    return [*made, *((f"blk.{i}.weight", (a, b), (0, 2, 8)[i % 3], c * 32) for i, (a, b, c) in enumerate(drawn))]


def _info(
    name: str,
    shape: tuple,
    type_code: int,
    offset: int,
    *,
    step: int = -1,
    length: str = "Q",
    n_dims: str = "I",
    dim: str = "Q",
    code: str = "I",
    at: str = "Q",
    order: str = "<",
    to: int = 0,
) -> bytes:
    text, dims = name.encode(), [*shape[::step], *[1] * (to - len(shape))]
    parts = [struct.pack(order + length, len(text)), text, struct.pack(order + n_dims, len(dims))]
    parts += [struct.pack(order + dim, size) for size in dims]
    number = offset % 2**32 if at == "I" else offset
    return b"".join([*parts, struct.pack(order + code, type_code), struct.pack(order + at, number)])


def _of_lite(name: str, shape: tuple, type_code: int, offset: int) -> bytes:
    return _info(name, shape, type_code, offset, step=1, length="H", n_dims="B", dim="I", code="B")


def _characters(name: str, shape: tuple, type_code: int, offset: int) -> bytes:
    return struct.pack("<Q", len(name)) + _info(name, shape, type_code, offset)[8:]


def _offset_first(name: str, shape: tuple, type_code: int, offset: int) -> bytes:
    return _info(name, shape, type_code, offset)[:-12] + struct.pack("<QI", offset, type_code)


TENSOR_INFO = Exercise(
    name="tensor_info",
    lab="11",
    goal="Describe one tensor as GGUF does: its name, its dims with the width first, its type, its offset.",
    minutes=5,
    difficulty="core",
    reference=tensor_info,
    oracle=info_oracle,
    cases=_info_cases,
    fields=info_fields,
    hints=(
        "Begin with `gguf_string(name)`. The other numbers are u32 for n_dims and the type, u64 for the dims and the "
        "offset.",
        '`dims = shape[::-1]`, then `struct.pack(f"<I{len(dims)}Q", len(dims), *dims)`, then '
        '`struct.pack("<IQ", type_code, offset)`.',
    ),
    why="ggml counts dims from the inside out, and a file that does not is read as another matrix.",
    mistakes=(
        Mistake(
            "dims not reversed",
            partial(_info, step=1),
            "The dims stand in PyTorch's order, out first, and ggml wants the width of a row first.",
            "Write `shape[::-1]`.",
            "dims[0] and dims[1] exchanged",
        ),
        Mistake(
            "a descriptor of GGUF-lite",
            _of_lite,
            "Every field has the size that it has in GGUF-lite.",
            "Go through the table row by row: u64 length, u32 n_dims, u64 dims reversed, u32 type, u64 offset.",
            "the name begins at byte 2",
        ),
        Mistake(
            "32-bit dims",
            partial(_info, dim="I"),
            "Each dim takes four bytes, as in GGUF-lite, and here eight.",
            "Pack the dims as `Q`.",
            "four bytes too few for each dim",
        ),
        Mistake(
            "n_dims in one byte",
            partial(_info, n_dims="B"),
            "The number of dims takes one byte, as in GGUF-lite, and here four.",
            "Pack n_dims as `I`.",
            "the first dim three bytes early",
        ),
        Mistake(
            "n_dims in eight bytes",
            partial(_info, n_dims="Q"),
            "The number of dims takes eight bytes, as the dims do, and here four.",
            "Pack n_dims as `I`.",
            "the first dim four bytes late",
        ),
        Mistake(
            "the type in one byte",
            partial(_info, code="B"),
            "The type takes one byte, as in GGUF-lite, and here four.",
            "Pack the type as `I`.",
            "three bytes too few in front of the offset",
        ),
        Mistake(
            "four dims always",
            partial(_info, to=4),
            "The dims were filled up with ones to four, as ggml does in memory, and a file holds as many as there are.",
            "Write the dims of the tensor and no more.",
            "n_dims 4, and ones behind the dims",
        ),
        Mistake(
            "the length counts characters",
            _characters,
            "The length counts the characters of the name, and a reader needs its bytes.",
            "Write the name with `gguf_string`.",
            "ASCII names right, and a name with an accent too short",
        ),
        Mistake(
            "offset before type",
            _offset_first,
            "The last two fields are exchanged.",
            "Write the type first and the offset last.",
            "the type in the last bytes",
        ),
        Mistake(
            "32-bit offset",
            partial(_info, at="I"),
            "The offset was packed as `I`, and a file may be larger than four gigabytes.",
            "Pack the offset as `Q`.",
            "four bytes too few at the end",
        ),
        Mistake(
            "big-endian",
            partial(_info, order=">"),
            "The most significant byte came first.",
            "Begin every format with `<`.",
            "zeros in front of every number",
        ),
    ),
)

# ---- aligned_offsets -------------------------------------------------------------------------------------------------


def aligned_offsets(sizes: list, alignment: int) -> list:
    """The reference: the bytes of each tensor -> where each begins."""
    ends = itertools.accumulate((read.padded(size, alignment) for size in sizes), initial=0)
    return list(ends)[: len(sizes)]


def offsets_oracle(sizes: list, alignment: int) -> list:
    """Byte by byte: step on until a tensor may begin."""
    found, at = [], 0
    for size in sizes:
        while at % alignment:
            at += 1
        found.append(at)
        at += size
    return found


def _offset_cases(random: np.random.Generator) -> list[Case]:
    made = [
        ([12, 18, 34], 32),
        ([32, 64, 32], 32),
        ([], 32),
        ([7], 32),
        ([1, 1, 1, 1], 32),
        ([100, 100, 100], 64),
        ([40, 8, 40], 8),
    ]
    return [*made, *((random.integers(1, 500, 6).tolist(), alignment) for alignment in (32, 16, 128))]


def _offsets(sizes: list, alignment: int, room=lambda size, alignment: -(-size // alignment) * alignment) -> list:
    return list(itertools.accumulate((room(size, alignment) for size in sizes), initial=0))[: len(sizes)]


def _after_each(sizes: list, alignment: int) -> list:
    starts = itertools.accumulate(sizes, initial=0)
    return [-(-start // alignment) * alignment for start in starts][: len(sizes)]


ALIGNED_OFFSETS = Exercise(
    name="aligned_offsets",
    lab="11",
    goal="Give every tensor a place: one behind the other, each at a multiple of the alignment.",
    minutes=4,
    difficulty="core",
    reference=aligned_offsets,
    oracle=offsets_oracle,
    cases=_offset_cases,
    hints=(
        "Keep a position. Note it for the tensor, add the tensor's size, and move on to the next multiple of the "
        "alignment.",
        "`size + (-size % alignment)` is `size` with its padding: in Python `-12 % 32` is 20, and `-32 % 32` is 0.",
    ),
    why="llama.cpp maps the file into memory, and the instructions that read blocks fast want them aligned.",
    mistakes=(
        Mistake(
            "back to back",
            partial(_offsets, room=lambda size, alignment: size),
            "The tensors lie back to back, as in GGUF-lite, and llama.cpp refuses an offset that is not aligned.",
            "Pad the size of each tensor up to a multiple of the alignment.",
            "an offset that is no multiple of the alignment",
        ),
        Mistake(
            "padding where none is needed",
            partial(_offsets, room=lambda size, alignment: (size // alignment + 1) * alignment),
            "A size that is a multiple already was padded by a whole alignment more.",
            "Use `-size % alignment`, which is 0 for a multiple, rather than `alignment - size % alignment`.",
            "right for odd sizes, a gap behind sizes that are multiples",
        ),
        Mistake(
            "rounded down",
            partial(_offsets, room=lambda size, alignment: size // alignment * alignment),
            "Each size was rounded down, so a tensor begins before the one in front of it ends.",
            "Round up.",
            "several tensors with the same offset",
        ),
        Mistake(
            "32 whatever the alignment",
            lambda sizes, alignment: _offsets(sizes, 32),
            "The alignment was taken for 32, and a file may say another one.",
            "Use the argument.",
            "right for 32 and wrong for 64",
        ),
        Mistake(
            "padding forgotten on the way",
            _after_each,
            "Each offset was rounded up by itself, but the position behind it goes on without the padding.",
            "Add the padding to the position, not only to the offset.",
            "the first two offsets right, later ones too small",
        ),
        Mistake(
            "ends instead of beginnings",
            lambda sizes, alignment: list(itertools.accumulate(-(-s // alignment) * alignment for s in sizes)),
            "The list holds where each tensor ends, and an offset says where it begins.",
            "Note the position before you add the size.",
            "no 0 in front, and every offset one tensor late",
        ),
        Mistake(
            "counted in multiples",
            lambda sizes, alignment: [at // alignment for at in _offsets(sizes, alignment)],
            "The offsets are counted in units of the alignment, and the format counts bytes.",
            "Multiply by the alignment.",
            "0, 1, 2 where 0, 32, 64 are expected",
        ),
    ),
)
