"""The info of one tensor."""

import struct

from ...lab import Exercise, Mistake, edit
from ...lab.compare import one_after_another
from ..shared.by_hand import by_digits
from ..shared.names import ODD_TEXT
from .gguf_string import gguf_string


def tensor_info(name, shape, type_code, offset):
    """The info of one tensor.

    name: text, shape: tuple in PyTorch's order, () or up to four ints of 1
        or more, type_code: ggml's number, 0 to 2**32 - 1, offset: integer
        from 0 to 2**64 - 1
    ->   bytes: the name as a string, n_dims u32, the dims as u64 in
         reversed order (the last number of shape first), type u32, offset
         u64; every number little-endian
    """
    dims = shape[::-1]
    out = gguf_string(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
    return out + struct.pack("<IQ", type_code, offset)


def oracle(name, shape, type_code, offset):
    """Each number taken apart digit by digit, the dims from the last to the first."""
    text = bytes(name, "utf-8")
    parts = [by_digits(len(text), 8), text, by_digits(len(shape), 4)]
    for index in range(len(shape) - 1, -1, -1):
        parts.append(by_digits(shape[index], 8))
    return b"".join([*parts, by_digits(type_code, 4), by_digits(offset, 8)])


def fields(name, shape, type_code, offset):
    """The fields of one info, in order."""
    sizes = [("the name's length", 8), ("the name", len(name.encode())), ("n_dims", 4)]
    sizes += [(f"dims[{i}]", 8) for i in range(len(shape))] + [("the type", 4), ("the offset", 8)]
    return one_after_another(sizes)


def cases(random):
    """Two dims, one, none and three, a name of more bytes than letters, a large offset, then random ones."""
    made = [
        ("w", (2, 3), 0, 32),
        ("b", (3,), 0, 0),
        ("größe", (2, 64), 8, 96),
        ("blk.0.ffn_up.weight", (1024, 256), 2, 0x0102030420),
        ("s", (), 0, 64),
        ("", (2, 3, 5), 1, 128),
        ("row", (1, 64), 0, 0),
        ("column\n", (64, 1), 1, 32),
        (ODD_TEXT, (1,), 0, 32),
        ("kernel", (1, 1, 3, 5), 0, 64),
        ("long", (2**32 + 2, 2**33 + 32), 30, 2**40),
        ("Wte", (64, 2), 258, 2**64 - 32),
        ("blk.0." + "x" * 270, (2**64 - 1,), 0, 5),
        ("far", (8, 4), 0, 2**63 + 32),
        ("new", (8, 4), 2**32 - 1, 32),
    ]
    drawn = random.integers(1, 2**20, (3, 3)).tolist()
    return [*made, *((f"blk.{i}.weight", (a, b), (0, 2, 8)[i % 3], c * 32) for i, (a, b, c) in enumerate(drawn))]


def traits(name, shape, type_code, offset):
    """What is special about a tensor."""
    return {
        "the tensor has no dims": not shape,
        "the tensor has one dim": len(shape) == 1,
        "the tensor has two dims": len(shape) == 2,
        "the tensor has more than two dims": len(shape) > 2,
        "the dims read differently in reverse order": shape != shape[::-1],
        "the dims are in increasing order": len(shape) > 1 and list(shape) == sorted(shape),
        "the name has letters of more than one byte": not name.isascii(),
        "the offset does not fit four bytes": offset >= 2**32,
        "the offset is 2**63 or more": offset >= 2**63,
        "the type is 2**31 or more": type_code >= 2**31,
        "the type is 0": type_code == 0,
    }


EXERCISE = Exercise(
    goal="Describe one tensor as GGUF does: its name, its dims with the width first, its type, its offset.",
    reference=tensor_info, oracle=oracle, cases=cases, minutes=5, difficulty="core", fields=fields, traits=traits,
    hints=(
        "Five fields, one after another. The dims are as many as n_dims says, and they begin with the last number of the shape.",
        "`gguf_string` writes the name. A slice with step -1 reverses a tuple. An f-string gives `struct.pack` a format with as many `Q` as there are dims, and a `*` hands it a whole tuple.",
    ),
    why="ggml counts dims from the inside out, and a file that does not is read as another matrix.",
    mistakes=(
        Mistake("dims not reversed", edit("shape[::-1]", "shape"),
            cause="The dims are in PyTorch's order, out first, and ggml wants the width of a row first.",
            cure="Write `shape[::-1]`.", see="dims[0] and dims[1] exchanged"),
        Mistake("a descriptor of GGUF-lite", edit("shape[::-1]", "shape")
            .edit("gguf_string(name)", 'struct.pack("<H", len(name.encode())) + name.encode()')
            .edit("<I{len(dims)}Q", "<B{len(dims)}I")
            .edit("<IQ", "<BQ"),
            cause="Every field has the size that it has in GGUF-lite.",
            cure="Go through the table row by row: u64 length, u32 n_dims, u64 dims reversed, u32 type, u64 offset.",
            see="the name begins at byte 2"),
        Mistake("32-bit dims", edit("<I{len(dims)}Q", "<I{len(dims)}I"),
            cause="Each dim takes four bytes, as in GGUF-lite, and here eight.",
            cure="Pack the dims as `Q`.", see="four bytes too few for each dim"),
        Mistake("n_dims in one byte", edit("<I{", "<B{"),
            cause="The number of dims takes one byte, as in GGUF-lite, and here four.",
            cure="Pack n_dims as `I`.", see="the first dim three bytes early"),
        Mistake("n_dims in eight bytes", edit("<I{", "<Q{"),
            cause="The number of dims takes eight bytes, as the dims do, and here four.",
            cure="Pack n_dims as `I`.", see="the first dim four bytes late"),
        Mistake("the type in one byte", edit("<IQ", "<BQ"),
            cause="The type takes one byte, as in GGUF-lite, and here four.",
            cure="Pack the type as `I`.", see="three bytes too few before the offset"),
        Mistake("four dims always", edit("shape[::-1]", "(*shape[::-1], 1, 1, 1, 1)[:4]"),
            cause="The dims were filled up with ones to four, as ggml does in memory, and a file holds as many as there are.",
            cure="Write the dims of the tensor and no more.", see="n_dims 4, and ones after the dims"),
        Mistake("the length counts characters",
            edit("gguf_string(name)", 'struct.pack("<Q", len(name)) + name.encode()'),
            cause="The length counts the characters of the name, and a reader needs its bytes.",
            cure="Write the name with `gguf_string`.", see="ASCII names right, and a name with an accent too short"),
        Mistake("dims of 1 left out", edit("shape[::-1]", "[dim for dim in shape[::-1] if dim != 1]"),
            cause="Dims of 1 were left out, and a matrix of one row was described as a vector.",
            cure="Write each dim of the shape.", see="n_dims 1 for the shape (1, 64)"),
        Mistake("offset before type", edit('"<IQ", type_code, offset', '"<QI", offset, type_code'),
            cause="The last two fields are exchanged.",
            cure="Write the type first and the offset last.", see="the type in the last bytes"),
        Mistake("32-bit offset", edit("<IQ", "<II"),
            cause="The offset was packed as `I`, and a file may be larger than four gigabytes.",
            cure="Pack the offset as `Q`.", see="four bytes too few at the end"),
        Mistake("a signed offset", edit("<IQ", "<Iq"),
            cause="The offset was packed as a signed number, which ends at 2**63 - 1, and a u64 has no sign.",
            cure="Pack the offset as `Q`.", see="`struct.error` for an offset of 2**63 or more"),
        Mistake("big-endian", edit("gguf_string(name)", 'struct.pack(">Q", len(name.encode())) + name.encode()')
            .edit("<I{", ">I{")
            .edit("<IQ", ">IQ"),
            cause="The most significant byte came first.",
            cure="Begin every format with `<`.", see="zeros before every number"),
    ),
)
