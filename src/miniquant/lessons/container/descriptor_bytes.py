"""The third part of a file: the descriptors."""

import struct

from ...lab import Exercise, Mistake, body, edit
from ...lab.compare import one_after_another
from ..shared.gguf_lite_by_hand import descriptor_oracle


def descriptor_bytes(name, dims, dtype, offset):
    """The descriptor of one tensor, little-endian, without padding.

    name: text that fits name_len; dims: tuple of up to 255 integers, each
        from 0 to 2**32 - 1, out first, () for a single number; dtype: code,
        0 to 3; offset: 0 to 2**64 - 1
    ->   bytes: name_len u16, how many bytes the name takes; the name in
         UTF-8; n_dims u8; each dim u32; dtype u8; offset u64
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
    """Matrices, a bias, a scalar, names that need care, lengths and offsets with the top bit set, then random ones."""
    made = [
        ("w", (2, 3), 1, 8),
        ("b", (3,), 2, 9),
        ("", (), 0, 16),
        ("gröss", (2, 64), 3, 258),
        ("Preis €", (0, 3), 3, 0),  # € takes three bytes
        ("layers.0.mlp.fc1.weight", (1024, 256), 2, 0x0102030405),
        ("n" * 65_534 + "\0", (1, 2, 3, 4), 0, 7),  # the zero byte is part of the name
        ("last", (2**32 - 1,), 0, 2**64 - 2),
        ("far", (7,), 1, 2**53 + 1),  # no float holds it
        (" cafe\N{COMBINING ACUTE ACCENT}\n\t🥐\0 ", (1,) * 200, 1, 2**32),
    ]
    drawn = random.integers(1, 2**20, (3, 3)).tolist()
    return [*made, *((f"layers.{i}.weight", (a, b), i % 4, c * 17) for i, (a, b, c) in enumerate(drawn))]


EXERCISE = Exercise(
    goal="Describe one tensor: the length of its name, the name, how many dims, the dims, the dtype, the offset.",
    reference=descriptor_bytes, oracle=descriptor_oracle, cases=cases, minutes=6, difficulty="core", fields=fields,
    hints=(
        "Six fields, one after the other. Two of them have a length that changes: the name and the dims. Each of these two has its length before it.",
        "Encode the name before you count it. A format may hold a count, as `3I` does, so an f-string can build the format for the dims; `*dims` passes each dim as an argument of its own.",
    ),
    why="these few bytes are all that a reader knows about a tensor: where it begins, its shape, its dtype.",
    mistakes=(
        Mistake("dims reversed", edit("*dims)", "*dims[::-1])"),
            cause="The width came first, as in real GGUF, and this format keeps PyTorch's order: out, then in.",
            cure="Write the dims in the order of `tensor.shape`.",
            see="dims[0] and dims[1] exchanged, and a model whose matrices come back with the wrong shape"),
        Mistake("64-bit dims", edit("}I", "}Q"),
            cause="Each dim takes eight bytes, as in real GGUF, and here four.",
            cure="Pack the dims as `I`.", see="four bytes too many for each dim"),
        Mistake("three bytes more before the dims", edit("<B{", "<I{"),
            cause="There are four bytes between the name and the first dim, as in real GGUF, and here one.",
            cure="Pack n_dims as `B`.", see="three zero bytes before the first dim"),
        Mistake("name_len counts characters", edit("len(encoded)", "len(name)"),
            cause="The length counts the characters of the name, and a reader needs its bytes: ö takes two in UTF-8.",
            cure="Encode the name first, and take `len` of the bytes.",
            see="ASCII names right, and a name with an accent one too short"),
        Mistake("name_len in one byte", edit("<H", "<B"),
            cause="The length of the name takes one byte, and the format gives it two.",
            cure="Pack it as `H`.", see="the name begins at byte 1 instead of byte 2"),
        Mistake("two bytes more before the name", edit("<H", "<I"),
            cause="There are four bytes before the name, and the format has two: the length of the name.",
            cure="Pack it as `H`.", see="two zero bytes before the name"),
        Mistake("n_dims missing", edit("<B{len(dims)}I\", len(dims), *dims", "<{len(dims)}I\", *dims"),
            cause='The number of dims is missing, so a reader cannot know how many follow.',
            cure='Write n_dims, one byte, before the dims.', see='one byte too few, and the dims one byte too early'),
        Mistake("the name before its length", edit("struct.pack(\"<H\", len(encoded)) + encoded", "encoded + struct.pack(\"<H\", len(encoded))"),
            cause='The name came first, and a reader needs its length before it.',
            cure='Write name_len first, then the name.', see='the first letter of the name in byte 0'),
        Mistake("signed numbers", edit("}I", "}i").edit("<BQ", "<Bq"),
            cause='`i` and `q` are signed, and the largest u32 and u64 do not fit into them.',
            cure='Use `I` and `Q`.', see='`format requires` and two limits, of which one is negative'),
        Mistake("spaces stripped", edit("name.encode", "name.strip().encode"),
            cause="Spaces at the ends of the name are missing, and they belong to it.",
            cure='Encode the name as it is.', see='a name with spaces too short'),
        Mistake("ASCII only", edit("name.encode(\"utf-8\")", "name.encode(\"ascii\", \"ignore\")"),
            cause="Characters that ASCII does not have were left out.",
            cure='Encode with `.encode("utf-8")`.', see='a name with an accent too short'),
        Mistake("a zero byte after the name", edit("name.encode", r'(name + "\0").encode'),
            cause="C ends a string with a zero byte. Here the length before the name says where it ends.",
            cure="Write the bytes of the name and nothing after them.",
            see="name_len one too large, and `00` after the name"),
        Mistake("big-endian", edit("<H", ">H").edit("<B{", ">B{").edit("<BQ", ">BQ"),
            cause="The most significant byte came first.",
            cure="Begin every format with `<`.", see="`00 01` where `01 00` is expected"),
        Mistake("padding slipped in", edit("<BQ", "BQ"),
            cause='There are seven bytes between dtype and offset, as `struct.pack("BQ", …)` puts them there.',
            cure="Begin every format with `<`, which also switches padding off.",
            see="seven zero bytes too many after the dtype"),
        Mistake("padding between the numbers", body("""
                text = name.encode("utf-8")
                form = f"H{len(text)}sB{len(dims)}IBQ"
                return struct.pack(form, len(text), text, len(dims), *dims, dtype, offset)
            """),
            cause="There is padding: each number begins at a multiple of its size, as `struct` does it for a format without `<`, `>`, `=` or `!`.",
            cure="Begin the format with `<`, which also switches padding off.",
            see="zero bytes before the dims and before the offset"),
        Mistake("three bytes more before the offset", edit("<BQ", "<IQ"),
            cause="There are four bytes between the dims and the offset, as in real GGUF, and here one.",
            cure="Pack the dtype as `B`.", see="three bytes too many before the offset"),
        Mistake("32-bit offset", edit("<BQ", "<BI"),
            cause="The offset takes four bytes, and a file may be larger than four gigabytes.",
            cure="Pack the offset as `Q`.", see="four bytes too few at the end"),
        Mistake("offset before dtype", edit('"<BQ", dtype, offset', '"<QB", offset, dtype'),
            cause="The last two fields are exchanged.",
            cure="Write the dtype first and the offset last.", see="the dtype in the last byte"),
    ),
)
