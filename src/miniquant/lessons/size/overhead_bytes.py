"""The bytes that are not data: header, metadata, descriptors."""

import struct

from ...lab import Exercise, Mistake, edit


def overhead_bytes(shapes, metadata):
    """The bytes of header, metadata and descriptors.

    shapes: dict, name -> dims; metadata: dict, key -> value, both strings   ->   int
    """
    text = "\n".join(f"{key}={value}" for key, value in metadata.items())
    header = 4 + 4 + 4 + 4
    total = header + len(text.encode("utf-8"))
    for name, dims in shapes.items():
        total += 2 + len(name.encode("utf-8")) + 1 + 4 * len(dims) + 1 + 8
    return total


def oracle(shapes, metadata):
    """Builds the bytes, and measures their length."""
    text = b""
    for key, value in metadata.items():
        text += b"\n" if text else b""
        text += key.encode() + b"=" + value.encode()
    data = struct.pack("<IIII", 0x474C4654, 1, len(shapes), len(text)) + text
    for name, dims in shapes.items():
        data += struct.pack("<H", len(name.encode())) + name.encode() + bytes([len(dims)])
        for dim in dims:
            data += struct.pack("<I", dim)
        data += struct.pack("<BQ", 0, 0)
    return len(data)


def cases(random):
    """Nothing, one tensor, one line of metadata, letters that take two bytes, then many tensors."""
    names = [f"layers.{i}.mlp.fc{int(n)}.weight" for i, n in enumerate(random.integers(1, 200, 12))]
    return [
        ({}, {}),
        ({"w": (2, 3)}, {}),
        ({"bias": (5,)}, {}),
        ({"scalar": ()}, {}),
        ({}, {"k": "v"}),
        ({}, {"dims_order": "out,in", "group_size": "64"}),
        ({"größe": (2, 2)}, {}),
        ({}, {"author": "Zoë and Noël"}),
        ({name: (int(random.integers(1, 9)), 64) for name in names}, {"a": "1", "b": "2", "c": "3"}),
    ]


EXERCISE = Exercise(
    goal="Return the bytes of header, metadata and descriptors together, from the names, the dims and the metadata.",
    reference=overhead_bytes, oracle=oracle, cases=cases, minutes=12, difficulty="core",
    hints=(
        "The header is four u32; the metadata is `key=value` lines *joined* by newlines; count bytes of UTF-8, not characters.",
        'A descriptor is `2 + len(name.encode("utf-8")) + 1 + 4 * len(dims) + 1 + 8` bytes: name_len, name, n_dims, dims, dtype, offset.',
    ),
    why="everything before the data is bookkeeping, and you can now say what it costs: next to nothing.",
    mistakes=(
        Mistake("a header of 12 bytes", edit("4 + 4 + 4 + 4", "4 + 4 + 4"),
            cause="One of the four numbers of the header is missing, often metadata_len.",
            cure="Count magic, version, n_tensors and metadata_len: four times four bytes.",
            see="`12` where nothing but a header is expected to take 16"),
        Mistake("counts of 8 bytes", edit("4 + 4 + 4 + 4", "4 + 4 + 8 + 8"),
            cause="Real GGUF stores its two counts as u64, and its header has 24 bytes; this format has four u32.",
            cure="Count four times four bytes.", see="`24` where nothing but a header is expected to take 16"),
        Mistake("a newline after every line", edit('"\\n".join(f"{key}={value}"', '"".join(f"{key}={value}\\n"'),
            cause="The lines of the metadata are joined by newlines, so the last one has none behind it.",
            cure="Count one newline fewer than lines, and none if there are no lines.",
            see="one byte too many as soon as there is metadata"),
        Mistake("no newlines", edit('"\\n".join', '"".join'),
            cause="The newlines between the lines of the metadata are bytes of the file too.",
            cure="Count the bytes of the joined text.", see="one byte too few for each line after the first"),
        Mistake("characters of a name instead of bytes", edit('len(name.encode("utf-8"))', "len(name)"),
            cause="A letter such as `ö` is one character and two bytes of UTF-8.",
            cure='Count `len(name.encode("utf-8"))`.', see="too few bytes for the tensor called `größe`"),
        Mistake("characters of the metadata instead of bytes", edit('len(text.encode("utf-8"))', "len(text)"),
            cause="metadata_len counts bytes, and a letter such as `ë` takes two.",
            cure="Encode the text before you take its length.", see="one byte too few for the author called `Noël`"),
        Mistake("characters instead of bytes",
            edit('len(name.encode("utf-8"))', "len(name)").edit('len(text.encode("utf-8"))', "len(text)"),
            cause="Names and metadata were counted in characters, but one letter may take several bytes of UTF-8.",
            cure='Take the length after `.encode("utf-8")`, for both.',
            see="too few bytes wherever a letter is not ASCII"),
        Mistake("name_len forgotten", edit("2 + len(name", "len(name"),
            cause="In front of every name stand two bytes that say how long it is.",
            cure="Add 2 for each tensor.", see="two bytes too few for each tensor"),
        Mistake("one byte short for each tensor", edit("+ 1 + 8", "+ 8"),
            cause="One of the two fields of one byte is missing, n_dims or dtype, or name_len was counted as one byte.",
            cure="Count 2 for name_len, 1 for n_dims and 1 for dtype.", see="one byte too few for each tensor"),
        Mistake("dims forgotten", edit(" + 4 * len(dims)", ""),
            cause="The dims of a tensor are stored in its descriptor, four bytes each.",
            cure="Add `4 * len(dims)`.",
            see="the right answer for a scalar, and four bytes too few for each dim of the others"),
        Mistake("four bytes for each value", edit("4 * len(dims)", "4 * math.prod(dims)"),
            cause="The product of the dims counts the tensor's values, and those are stored in the data section.",
            cure="Count the dims themselves: `4 * len(dims)`.", see="an answer that grows with the size of the tensor"),
        Mistake("the = signs forgotten", edit("{key}={value}", "{key}{value}"),
            cause="Between key and value stands a `=`, and it is a byte of the file.",
            cure='Count the bytes of `f"{key}={value}"`.', see="one byte too few for each line of metadata"),
        Mistake("offset forgotten", edit("+ 1 + 8", "+ 1"),
            cause="Every descriptor ends with an offset of eight bytes.",
            cure="Add 8 for each tensor.", see="eight bytes too few for each tensor"),
        Mistake("offset of 4 bytes", edit("+ 1 + 8", "+ 1 + 4"),
            cause="The offset is a u64: with a u32, no file could be longer than 4 GiB.",
            cure="Count 8 bytes for it.", see="four bytes too few for each tensor"),
        Mistake("dtype of 4 bytes", edit("+ 1 + 8", "+ 4 + 8"),
            cause="Real GGUF stores the type as u32; here it is one byte.",
            cure="Count 1 byte for it.", see="three bytes too many for each tensor"),
        Mistake("dims of 8 bytes", edit("4 * len(dims)", "8 * len(dims)"),
            cause="Real GGUF stores dims as u64; here each takes four bytes.",
            cure="Count `4 * len(dims)`.", see="four bytes too many for each dim"),
        Mistake("always two dims", edit("4 * len(dims)", "4 * 2"),
            cause="A bias has one dim and a scalar has none.",
            cure="Count four bytes for each dim that the tensor has.", see="four bytes too many for a bias"),
    ),
)
