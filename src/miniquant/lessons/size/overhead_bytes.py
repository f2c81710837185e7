"""The bytes that are not data: header, metadata, descriptors."""

import json
import math
import struct

from ...lab import Exercise, Mistake, edit
from ..shared.names import ODD_NAMES


def overhead_bytes(shapes, metadata):
    """The bytes of header, metadata and descriptors.

    shapes: dict, name -> dims, of all tensors; metadata: dict, key ->
        value, both strings
    ->   int

    An empty dict of metadata takes 0 bytes. A letter that is not
    ASCII takes more than one byte.
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
        ({"empty": (0, 4)}, {}),
        ({}, {"k": "v"}),
        ({}, {"dims_order": "out,in", "group_size": "64"}),
        ({"größe": (2, 2)}, {}),
        ({}, {"author": "Zoë and Noël"}),
        ({}, {"größe": "1", "empty": ""}),
        ({"conv 🙂": (2, 3, 4, 5)}, {"a": "b=c"}),
        ({name: (int(random.integers(1, 9)), 300) for name in (*names, *ODD_NAMES)}, dict.fromkeys(ODD_NAMES, "1") | {"c": "3"}),
        ({"a": (2, 3), "b": (3,)}, {}),
        ({"w": (2, 3), "s": (), "cube": (2, 3, 4)}, {"author": "me "}),
        ({"é": ()}, {"k": "v", "é": "€"}),
        ({"tok": (7, 2), "pos": (5, 2), "ln": (2,)}, {"x": "12", "y": ""}),
        ({" cafe\N{COMBINING ACUTE ACCENT} ": (1, 2, 1, 2, 1, 2)}, {" k": " v "}),
    ]


def quantities(shapes, metadata):
    """What the bytes are counted from."""
    lines = [f"{key}={value}" for key, value in metadata.items()]
    name_bytes = sum(len(name.encode()) for name in shapes)
    meta_bytes = len("\n".join(lines).encode())
    return {
        "the number of tensors": len(shapes),
        "the number of dims": sum(map(len, shapes.values())),
        "the number of items of metadata": len(lines),
        "the bytes of the names": name_bytes,
        "the bytes of the metadata": meta_bytes,
        "the bytes that characters of the names take beyond one each": name_bytes - sum(map(len, shapes)),
        "the bytes that characters of the metadata take beyond one each": meta_bytes - len("\n".join(lines)),
        "the bytes of the keys of the metadata": sum(len(key.encode()) for key in metadata),
        "the bytes of the values of the metadata": sum(len(value.encode()) for value in metadata.values()),
        "the bytes of the metadata as Python shows the dict": len(str(metadata).encode()),
        "the bytes of the metadata as JSON, 0 if there is none": len(json.dumps(metadata).encode()) if metadata else 0,
        "the number of values": sum(map(math.prod, shapes.values())),
        "the sum of all dims": sum(map(sum, shapes.values())),
        "there is no metadata": not metadata,
        "there is more than one item of metadata": len(lines) > 1,
        "there is no tensor": not shapes,
        "there is a tensor": bool(shapes),
        "there is more than one tensor": len(shapes) > 1,
    }


EXERCISE = Exercise(
    goal="Return the bytes of header, metadata and descriptors together, from the names, the dims and the metadata.",
    reference=overhead_bytes, oracle=oracle, cases=cases, minutes=12, difficulty="core",
    quantities=quantities,
    hints=(
        "Go through the table of fields from top to bottom and add the width of each; only three of them depend on the tensors and the metadata.",
        'The length of `text.encode("utf-8")` is a number of bytes; `"\\n".join(...)` puts newlines between lines, and none after the last.',
    ),
    why="everything before the data is bookkeeping, and you can now say what it costs: next to nothing.",
    mistakes=(
        Mistake("a header of 12 bytes", edit("4 + 4 + 4 + 4", "4 + 4 + 4"),
            cause="Four bytes are missing in every file, as if the header had three numbers and not four.",
            cure="Count magic, version, n_tensors and metadata_len: four times four bytes.",
            see="`12` where nothing but a header is expected to take 16"),
        Mistake("counts of 8 bytes", edit("4 + 4 + 4 + 4", "4 + 4 + 8 + 8"),
            cause="Eight bytes too many are in every file: 24 in place of 16, as in real GGUF, whose two counts are u64; this format has four u32.",
            cure="Count four times four bytes.", see="`24` where nothing but a header is expected to take 16"),
        Mistake("a newline after every line", edit('"\\n".join(f"{key}={value}"', '"".join(f"{key}={value}\\n"'),
            cause="The lines of the metadata are joined by newlines, so there is none after the last line.",
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
            cause="Letters outside ASCII count one byte each, in names and metadata; one letter may take several bytes of UTF-8.",
            cure='Take the length after `.encode("utf-8")`, for both.',
            see="too few bytes wherever a letter is not ASCII"),
        Mistake("a scalar has one dim", edit("4 * len(dims)", "4 * max(1, len(dims))"),
            cause="A scalar has no dims, so no dims of it are stored.",
            cure="Count four bytes for each dim that the tensor has; it may have none.", see="four bytes too many for a scalar"),
        Mistake("values in bytes, keys in characters", edit('len(text.encode("utf-8"))', 'sum(len(str(v).encode("utf-8")) + len(k) + 1 for k, v in metadata.items()) + max(0, len(metadata) - 1)'),
            cause="Letters outside ASCII count one byte each in the keys of the metadata, and a key may have letters of two bytes.",
            cure="Encode the whole text, and take its length.", see="too few bytes for the key called `größe`"),
        Mistake("name_len forgotten", edit("2 + len(name", "len(name"),
            cause="Two bytes are missing for each tensor, as many as the length before its name takes.",
            cure="Add 2 for each tensor.", see="two bytes too few for each tensor"),
        Mistake("one byte short for each tensor", edit("+ 1 + 8", "+ 8"),
            cause="One byte is missing for each tensor: n_dims and dtype take one byte each, and name_len two.",
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
            cause="Eight bytes are missing for each tensor, as many as the offset at the end of a descriptor takes.",
            cure="Add 8 for each tensor.", see="eight bytes too few for each tensor"),
        Mistake("offset of 4 bytes", edit("+ 1 + 8", "+ 1 + 4"),
            cause="Four bytes are missing for each tensor. The offset, for one, is a u64: with a u32, no tensor could begin beyond 4 GiB.",
            cure="Count 8 bytes for it.", see="four bytes too few for each tensor"),
        Mistake("dtype or n_dims of 4 bytes", edit("+ 1 + 8", "+ 4 + 8"),
            cause="Three bytes too many are there for each tensor, as if dtype or n_dims took four, as in real GGUF; here each takes one.",
            cure="Count 1 byte for n_dims and 1 for dtype.", see="three bytes too many for each tensor"),
        Mistake("dims of 8 bytes", edit("4 * len(dims)", "8 * len(dims)"),
            cause="Each dim takes four bytes too many: eight, as in real GGUF; here each takes four.",
            cure="Count `4 * len(dims)`.", see="four bytes too many for each dim"),
        Mistake("always two dims", edit("4 * len(dims)", "4 * 2"),
            cause="A bias has one dim and a scalar has none.",
            cure="Count four bytes for each dim that the tensor has.", see="four bytes too many for a bias"),
    ),
)
