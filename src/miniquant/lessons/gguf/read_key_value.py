"""A key with its typed value, read from its bytes."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, edit, omit
from ..shared.by_hand import number
from ..shared.names import ODD_TEXT
from ..shared.observed import where_a_float_is_asked
from .gguf_string import oracle as string_oracle
from .key_value import oracle as pair_oracle
from .read_string import oracle as read_string_oracle
from .read_string import read_string


def read_key_value(data, position):
    """Read the key with its value that begins at a position.

    data: bytes; position: integer
    ->   (key, value, next): a str; a value of the Python type that the
         table at the beginning of Part 2 says, no type of numpy; the
         position of the first byte after the value. An array may be empty:
         its value is then an empty list.

    Numbers are little-endian. Raises ValueError for a type that is not in
    that table (5 is only the type of an array's elements), and for an
    array, even an empty one, whose elements are of a type other than 5
    and 8.
    """
    key, position = read_string(data, position)
    (kind,) = struct.unpack_from("<I", data, position)
    position += 4
    if kind == 8:
        value, position = read_string(data, position)
        return key, value, position
    if kind in NUMBERS:
        (value,) = struct.unpack_from(NUMBERS[kind], data, position)
        return key, value, position + struct.calcsize(NUMBERS[kind])
    if kind != 9:
        raise ValueError(f"{key!r} has a value of type {kind}")
    of, n = struct.unpack_from("<IQ", data, position)
    position += 12
    if of == 5:
        return key, list(struct.unpack_from(f"<{n}i", data, position)), position + 4 * n
    if of != 8:
        raise ValueError(f"{key!r} is an array with elements of type {of}")
    values = []
    for _ in range(n):
        value, position = read_string(data, position)
        values.append(value)
    return key, values, position


NUMBERS = {4: "<I", 6: "<f", 7: "<?"}  # type: its format


def oracle(data, position):
    """Byte by byte, the numbers from their digits."""
    key, at = read_string_oracle(data, position)
    kind = number(data[at : at + 4])
    at += 4
    if kind == 8:
        return key, *read_string_oracle(data, at)
    if kind == 4:
        return key, number(data[at : at + 4]), at + 4
    if kind == 6:
        return key, float(np.frombuffer(data[at : at + 4], "<f4")[0]), at + 4
    if kind == 7:
        return key, data[at] != 0, at + 1
    of, left = number(data[at : at + 4]), number(data[at + 4 : at + 12])
    if kind != 9 or of not in (5, 8):
        raise ValueError(f"type {kind}, elements {of}")
    at, values = at + 12, []
    while len(values) < left:
        if of == 8:
            value, at = read_string_oracle(data, at)
        else:
            digits = number(data[at : at + 4])
            value, at = digits - (digits >= 2**31) * 2**32, at + 4
        values.append(value)
    return key, values, at


def cases(random):
    """A value of each type at several positions, empty arrays and texts, then types that are not in the table."""
    pairs = [
        ("general.name", "gpt2"),
        ("gpt2.block_count", 4),
        ("tokenizer.ggml.add_bos_token", False),
        ("yes", True),
        ("half", -0.5),
        ("tokenizer.ggml.tokens", ["a", "Ġthe"]),
        ("tokenizer.ggml.token_type", [1, 1, 3]),
        ("general.author", "café"),
        ("negative", [-1, 7]),
        ("nothing", ""),
        ("count", 2**32 - 1),
        ("ends", [-(2**31), 2**31 - 1]),
        ("größe", ["", "x" * 300, "é"]),
        ("epsilon", 1e-5),
        ("rope.freq_base", 10000.0),
        ("large", 3e38),
        ("one token", ["x"]),
        (ODD_TEXT + "\n", [7]),
        ("zero", 0),
        ("many", list(range(300))),
        ("many tokens", ["t"] * 257),
    ]
    good = [(pair_oracle(key, value), 0) for key, value in pairs[:2]]
    good += [(b"\xee" * 7 + pair_oracle(key, value) + pair_oracle("next", 1), 7) for key, value in pairs]
    head = string_oracle("k")
    good += [(head + struct.pack("<IIQ", 9, of, 0) + b"\xee", 0) for of in (8, 5)]  # empty arrays
    bad = [(head + struct.pack("<IQ", kind, 3), 0) for kind in (10, 12, 13, 0, 5, 1, 2, 3, 11)]
    bad += [(head + struct.pack("<IQ", kind, 0) + bytes(8), 0) for kind in (0x0104, 0x040006, 0x07000007, 0x0108, 0x80000009)]
    bad += [(head + struct.pack("<IIQ", 0x0109, of, 0), 0) for of in (5, 8)]
    bad += [(head + struct.pack("<IIQ", 9, of, 2) + bytes(16), 0) for of in (4, 6, 7, 9, 10)]
    bad += [(head + struct.pack("<IIQ", 9, of, 0), 0) for of in (4, 0, 9, 1, 3, 7, 11, 12, 0x0105, 0x08000008)]  # empty, and of an unknown element type
    drawn = [int(n) for n in random.integers(0, 2**31, 4)]
    return [*good, *bad, (pair_oracle("drawn", drawn), 0), (pair_oracle("", drawn[0]), 0)]


def traits(data, position):
    """The kind of a value, and what is special about it."""
    key, at = read_string_oracle(data, position)
    kind = number(data[at : at + 4])
    of, items = number(data[at + 4 : at + 8]), number(data[at + 8 : at + 16])
    array = kind == 9
    return {
        "the value is a text": kind == 8,
        "the value is a whole number": kind == 4,
        "the value is a float": kind == 6,
        "the value is a bool": kind == 7,
        "the value is an array of texts": array and of == 8,
        "the value is an array of integers": array and of == 5,
        "the array is empty": array and items == 0,
        "the type is not in the table": kind not in (4, 6, 7, 8, 9),
        "the element type is not in the table": array and of not in (5, 8),
        "the position is not 0": position > 0,
        "an element is negative": array and of == 5 and any(byte & 128 for byte in data[at + 19 : at + 16 + 4 * items : 4]),
        "the key has letters of more than one byte": not key.isascii(),
    }


EXERCISE = Exercise(
    goal="Read one key with its value, and say where the next pair begins.",
    reference=read_key_value, oracle=oracle, cases=cases, minutes=9, difficulty="core", traits=traits,
    observe=where_a_float_is_asked(lambda data, position: traits(data, position)["the value is a float"]),
    hints=(
        "The type decides how many bytes come next. Move the position on after every part, so that each part begins where the one before it ended.",
        "`read_string` gives the next position with the text. `struct.calcsize` says how many bytes a format takes; a `?` gives True or False; `raise ValueError` with a text refuses.",
    ),
    why="llama.cpp prints every pair of a file when it loads it, and now you can print them, too.",
    mistakes=(
        Mistake("the type in one byte", edit('struct.unpack_from("<I", data, position)', "data[position : position + 1]"),
            cause="Only the first byte of the type was read, so a type such as 260, which the table does not have, was taken for 4.",
            cure="Read the type as a u32.", see="a result where a type must be refused"),
        Mistake("the element type in one byte", edit("    position += 12", "    of %= 256\n    position += 12"),
            cause="Only the first byte of the element type was read, so 261, which the table does not have, was taken for 5.",
            cure="Read the element type as a u32.", see="an empty list where an element type must be refused"),
        Mistake("the position before the value", edit("data, position)\n        return key, value, position + struct.calcsize(NUMBERS[kind])", "data, position)\n        return key, value, position"),
            cause="After a number, the next position is where the number begins.",
            cure="Add the bytes that the number takes.", see="texts right, and after a number a next position that is too small"),
        Mistake("a bool of four bytes", edit("position + struct.calcsize(NUMBERS[kind])", "position + 4"),
            cause="Every number was taken to have four bytes, and a bool has one.",
            cure="Move on by what the type takes.", see="after a bool, a next position that is 3 too large"),
        Mistake("the type as text", omit("if kind == 8:"),
            cause="Type 8, a text, was refused.",
            cure="Read a text with `read_string`.", see="ValueError for a text"),
        Mistake("no array of texts", edit("if of != 8:", "if of != 5:"),
            cause="An array of texts was refused, and it is in the table.",
            cure="Refuse an element type only if it is neither 5 nor 8.", see="ValueError for tokens"),
        Mistake("unsigned elements", edit('f"<{n}i"', 'f"<{n}I"'),
            cause="Type 5 is INT32, which has a sign, and the elements were read without it.",
            cure="Read them as `i`.", see="4294967295 where -1 is expected"),
        Mistake("a tuple for an array", edit('list(struct.unpack_from(f"<{n}i", data, position))', 'struct.unpack_from(f"<{n}i", data, position)'),
            cause="`struct` gives a tuple, and the table says list.",
            cure="Make a list of it.", see="`(1, 1, 3)` where `[1, 1, 3]` is expected"),
        Mistake("bytes instead of elements", edit("position + 4 * n", "position + n"),
            cause="After an array of integers the position moved on by one byte for each element, and each takes four.",
            cure="Add four bytes for each.", see="integers right, and the next position too small"),
        Mistake("32-bit number of elements", edit('"<IQ"', '"<II"').edit("position += 12", "position += 8"),
            cause="The number of elements was read as four bytes, and it has eight.",
            cure="Read the element type as `I` and the number as `Q`.", see="arrays whose first elements are zeros or empty texts"),
        Mistake("the element type not read", edit('of, n = struct.unpack_from("<IQ", data, position)\n    position += 12', '(n,) = struct.unpack_from("<Q", data, position)\n    of, position = 8, position + 8'),
            cause="After the 9 come the type of the elements and then their number; the type was left out.",
            cure="Read a `I` before the `Q`.", see="arrays of integers read as texts, or an error of `struct`"),
        Mistake("one type for all numbers", edit("struct.unpack_from(NUMBERS[kind], data, position)", 'struct.unpack_from("<I", data + bytes(4), position)'),
            cause="Every number was read as a u32, whatever its type says.",
            cure="Choose the format by the type.", see="3204448256 where -0.5 is expected"),
        Mistake("a whole float made an int", edit("        return key, value, position + struct.calcsize", "        value = int(value) if kind == 6 and value == int(value) else value\n        return key, value, position + struct.calcsize"),
            cause="A float with a whole value, such as 10000.0, became an int. The type 6 says float, whatever the value.",
            cure="Return the number as `struct` gives it.", see="an int where the type is 6"),
        Mistake("unknown types ignored", edit('raise ValueError(f"{key!r} has a value of type {kind}")', "return key, None, position"),
            cause="A type that is not in the table gave None, and nobody knows how long its value is.",
            cure="Raise a ValueError.", see="None where a ValueError is expected"),
        Mistake("unknown element types read as texts", omit("if of != 8:"),
            cause="An array with elements of another type was read as an array of texts.",
            cure="Raise a ValueError for an element type that is neither 5 nor 8.", see="a list, or another error, where a ValueError is expected"),
        Mistake("an empty array of any type", edit("if of != 8:", "if of != 8 and n:"),
            cause="An empty array was accepted before its element type was looked at.",
            cure="Look at the element type first, also where the array is empty.",
            see="an empty list where a ValueError is expected"),
        Mistake("an empty array refused", edit("position += 12\n", 'position += 12\n    if not n:\n        raise ValueError("an empty array")\n'),
            cause="An array without elements was refused, and a reader may find one.",
            cure="Return an empty list.", see="ValueError for an array of 0 elements"),
    ),
)
