"""The third part of a file: the descriptors."""

import struct

from ...lab import Exercise, Mistake, body, edit
from ...lab.compare import one_after_another
from ..shared.gguf_lite_by_hand import descriptor_oracle


def descriptor_bytes(name, dims, dtype, offset):
    """The descriptor of one tensor.

    name: text, dims: tuple of integers, dtype: code, offset: integer   ->   bytes: name_len u16, name in UTF-8, n_dims
    u8, each dim u32, dtype u8, offset u64
    """
    encoded = name.encode("utf-8")
    data = struct.pack("<H", len(encoded)) + encoded
    data += struct.pack(f"<B{len(dims)}I", len(dims), *dims)
    return data + struct.pack("<BQ", dtype, offset)


def fields(name, dims, dtype, offset):
    """The fields of one descriptor, in order."""
    sizes = [("name_len", 2), ("name", len(name.encode())), ("n_dims", 1)]
    sizes += [(f"dims[{i}]", 4) for i in range(len(dims))] + [("dtype", 1), ("offset", 8)]
    return one_after_another(sizes)


def cases(random):
    """Matrices, a bias, a scalar, names that need care, lengths and offsets that need the last bit, then random ones."""
    made = [
        ("w", (2, 3), 1, 8),
        ("b", (3,), 0, 0),
        ("s", (), 0, 16),
        ("gröss", (2, 64), 3, 258),
        ("layers.0.mlp.fc1.weight", (1024, 256), 2, 0x0102030405),
        ("n" * 40_000, (1, 2, 3, 4), 0, 7),
        ("last", (2**32 - 1,), 0, 2**63 + 1),
    ]
    drawn = random.integers(1, 2**20, (3, 3)).tolist()
    return [*made, *((f"layers.{i}.weight", (a, b), i % 4, c * 17) for i, (a, b, c) in enumerate(drawn))]


EXERCISE = Exercise(
    goal="Describe one tensor: the length of its name, the name, how many dims, the dims, the dtype, the offset.",
    reference=descriptor_bytes, oracle=descriptor_oracle, cases=cases, minutes=5, difficulty="core", fields=fields,
    hints=(
        "Encode the name first, so that you can count its bytes; then join the packed parts in the order of the table. The letters of `struct` are `B` u8, `H` u16, `I` u32, `Q` u64.",
        '`struct.pack(f"<B{len(dims)}I", len(dims), *dims)` writes the number of dims and all of them; `struct.pack("<BQ", dtype, offset)` ends the descriptor.',
    ),
    why="a reader finds, shapes and decodes every weight by these few bytes, and by nothing else.",
    mistakes=(
        Mistake("dims reversed", edit("*dims)", "*dims[::-1])"),
            cause="The width came first, as in real GGUF, and this format keeps PyTorch's order: out, then in.",
            cure="Write the dims in the order of `tensor.shape`.",
            see="dims[0] and dims[1] exchanged, and a model whose matrices come back on their side"),
        Mistake("64-bit dims", edit("}I", "}Q"),
            cause="Each dim takes eight bytes, as in real GGUF, and here four.",
            cure="Pack the dims as `I`.", see="four bytes too many for each dim"),
        Mistake("32-bit n_dims", edit("<B{", "<I{"),
            cause="The number of dims takes four bytes, as in real GGUF, and here one.",
            cure="Pack n_dims as `B`.", see="three zero bytes in front of the first dim"),
        Mistake("name_len counts characters", edit("len(encoded)", "len(name)"),
            cause="The length counts the characters of the name, and a reader needs its bytes: ö takes two in UTF-8.",
            cure="Encode the name first, and take `len` of the bytes.",
            see="ASCII names right, and a name with an accent one too short"),
        Mistake("name_len in one byte", edit("<H", "<B"),
            cause="The length of the name was packed as `B`, and the format gives it two bytes.",
            cure="Pack it as `H`.", see="the name begins at byte 1 instead of byte 2"),
        Mistake("name_len in four bytes", edit("<H", "<I"),
            cause="The length of the name was packed as `I`, and the format gives it two bytes.",
            cure="Pack it as `H`.", see="two zero bytes in front of the name"),
        Mistake("a zero byte after the name", edit("name.encode", r'(name + "\0").encode'),
            cause="C ends a string with a zero byte, and here the length in front of the name does that work.",
            cure="Write the bytes of the name and nothing after them.",
            see="name_len one too large, and `00` after the name"),
        Mistake("big-endian", edit("<H", ">H").edit("<B{", ">B{").edit("<BQ", ">BQ"),
            cause="The most significant byte came first.",
            cure="Begin every format with `<`.", see="`00 01` where `01 00` is expected"),
        Mistake("padding slipped in", edit("<BQ", "BQ"),
            cause="Without `<`, struct pads as a C compiler does, and puts seven bytes between dtype and offset.",
            cure="Begin every format with `<`, which also switches padding off.",
            see="seven zero bytes too many after the dtype"),
        Mistake("padding everywhere", body("""
                text = name.encode("utf-8")
                form = f"H{len(text)}sB{len(dims)}IBQ"
                return struct.pack(form, len(text), text, len(dims), *dims, dtype, offset)
            """),
            cause="Without `<`, struct pads as a C compiler does: each number begins at a multiple of its size.",
            cure="Begin the format with `<`, which also switches padding off.",
            see="zero bytes in front of the dims and of the offset"),
        Mistake("32-bit dtype", edit("<BQ", "<IQ"),
            cause="The dtype takes four bytes, as in real GGUF, and here one.",
            cure="Pack the dtype as `B`.", see="three bytes too many before the offset"),
        Mistake("32-bit offset", edit("<BQ", "<BI"),
            cause="The offset was packed as `I`, and a file may be larger than four gigabytes.",
            cure="Pack the offset as `Q`.", see="four bytes too few at the end"),
        Mistake("offset before dtype", edit('"<BQ", dtype, offset', '"<QB", offset, dtype'),
            cause="The last two fields are exchanged.",
            cure="Write the dtype first and the offset last.", see="the dtype in the last byte"),
    ),
)
