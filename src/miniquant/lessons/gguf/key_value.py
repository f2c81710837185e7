"""A key with its typed value."""

import struct

import numpy as np

from ...lab import Exercise, Mistake, body, edit, omit
from ...lab.compare import one_after_another
from ..shared.by_hand import by_digits
from ..shared.names import ODD_TEXT
from .gguf_string import gguf_string
from .gguf_string import oracle as string_oracle


def key_value(key, value):
    """One key with its value.

    key: str; value: bool, int from 0 to 2**32 - 1, float that is not too
        large for float32, str, or a list of str or of int (no bool), not
        empty, the ints from -2**31 to 2**31 - 1
    ->   bytes: the key as a string, the type as a u32, the value as the
         table says; every number little-endian
    """
    head = gguf_string(key)
    if isinstance(value, bool):  # before int: a bool is an int, too
        return head + struct.pack("<I?", 7, value)
    if isinstance(value, str):
        return head + struct.pack("<I", 8) + gguf_string(value)
    if isinstance(value, int):
        return head + struct.pack("<II", 4, value)
    if isinstance(value, float):
        return head + struct.pack("<If", 6, value)
    if isinstance(value[0], str):
        return head + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(gguf_string(text) for text in value)
    return head + struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)


def oracle(key, value):
    """One kind of value after the other; the types are typed in."""
    head = string_oracle(key)
    if value is True or value is False:
        return head + by_digits(7, 4) + (b"\1" if value else b"\0")
    if isinstance(value, str):
        return head + by_digits(8, 4) + string_oracle(value)
    if isinstance(value, int):
        return head + by_digits(4, 4) + by_digits(value, 4)
    if isinstance(value, float):
        return head + by_digits(6, 4) + struct.pack("<f", value)
    head += by_digits(9, 4)
    if isinstance(value[0], str):
        return head + by_digits(8, 4) + by_digits(len(value), 8) + b"".join(string_oracle(text) for text in value)
    return head + by_digits(5, 4) + by_digits(len(value), 8) + b"".join(by_digits(n % 2**32, 4) for n in value)


def fields(key, value):
    """The parts of one pair, in order."""
    sizes = [("the key's length", 8), ("the key", len(key.encode())), ("the type", 4)]
    if isinstance(value, list):
        sizes += [("the type of the elements", 4), ("the number of elements", 8), ("the elements", 1 << 20)]
    elif isinstance(value, str):
        sizes += [("the value's length", 8), ("the value", 1 << 20)]
    else:
        sizes += [("the value", 1 << 20)]
    return one_after_another(sizes)


def cases(random):
    """A value of each type, values that are empty or at an end of their range, then random numbers."""
    made = [
        ("gpt2.block_count", 4),
        ("general.architecture", "gpt2"),
        ("epsilon", 1e-5),
        ("tokenizer.ggml.add_bos_token", False),
        ("yes", True),
        ("general.name", "café"),
        ("tokenizer.ggml.tokens", ["a", "Ġthe"]),
        ("tokenizer.ggml.token_type", [1, 1, 3]),
        ("negative", [-1, 7]),
        ("none", 0),
        ("empty", ""),
        ("half", -0.5),
        ("ends", [2**31 - 1, -(2**31)]),
        ("one number", [7]),
        ("one token", ["7"]),
        ("rope.freq_base", 10000.0),
        ("one", 1.0),
        ("zero", 0.0),
        ("minus two", -2.0),
        ("unused tokens", ["a", "", "b", ""]),
        ("an unused token first", ["", "a"]),
        ("only an empty token", [""]),
        ("Blanks\n", " a\r\n"),
        ("tokens with blanks", [" a", "b\n", "\t"]),
        (ODD_TEXT, "12"),
        ("a long text", ODD_TEXT * 20),
        ("tokens that are digits", ["1", "0", "true", ODD_TEXT]),
        ("zeros", [0, 0]),
        ("ones", [1, 0, 1]),
        ("minus zero", -0.0),
        ("tiny", 1.5e-30),
        ("large", float(np.finfo(np.float32).max)),
        ("", 1),
        ("many tokens", [f"t{i}" for i in range(300)]),
        ("größe", [0, 1, 0, 300]),
        ("many" * 70, list(range(300))),
    ]
    drawn = random.integers(0, 2**31, 3).tolist()
    return [*made, ("count", 2**32 - 1), *((f"n{i}", n) for i, n in enumerate(drawn)), ("numbers", drawn)]


def traits(key, value):
    """The kind of a value, and what is special about it."""
    array = isinstance(value, list)
    texts = array and isinstance(value[0], str)
    return {
        "the value is a bool": isinstance(value, bool),
        "the value is an int": isinstance(value, int) and not isinstance(value, bool),
        "the value is a float": isinstance(value, float),
        "the value is a str": isinstance(value, str),
        "the value is a list of str": texts,
        "the value is a list of int": array and not texts,
        "an element is negative": array and not texts and min(value) < 0,
        "the value is an empty text": value == "",
        "a text has letters of more than one byte": not "".join([key, *([value] if isinstance(value, str) else value if texts else [])]).isascii(),
        "the value is 2**31 or more": isinstance(value, int) and value >= 2**31,
    }


EXERCISE = Exercise(
    goal="Write one key with its value: the key as a string, the type as a u32, then the value in that type.",
    reference=key_value, oracle=oracle, cases=cases, minutes=8, difficulty="core", fields=fields, traits=traits,
    hints=(
        "Every pair begins in the same way, and then the value decides. In Python a bool is an int as well, so the order of your questions matters.",
        "`isinstance` asks for a type. `gguf_string` writes keys and texts, `struct.pack` everything else; `*value` hands it a whole list. The elements of an array have no types of their own.",
    ),
    why="a typed value needs no guessing: a reader can skip a key that it does not know.",
    mistakes=(
        Mistake("a bool taken for an int", omit("if isinstance(value, bool)"),
            cause="In Python True is an int too, and it was written as a u32.",
            cure="Ask for `bool` before you ask for `int`.", see="`04` where the type `07` is expected"),
        Mistake("a bool in four bytes", edit("<I?", "<II"),
            cause="A truth value takes one byte, 0 or 1.",
            cure='Pack it as `"<?"` or `"<B"`.', see="three zero bytes too many after a truth value"),
        Mistake("a float in eight bytes", edit("<If", "<Id"),
            cause="The type 6 says float32, and the value was packed as a float64.",
            cure="Pack it as `f`.", see="eight bytes of a float where four are expected"),
        Mistake("the type in one byte", edit("<I?", "<B?")
            .edit('"<I"', '"<B"')
            .edit('"<II"', '"<BI"')
            .edit("<If", "<Bf")
            .edit('"<IIQ"', '"<BBQ"')
            .edit("<IIQ{", "<BBQ{"),
            cause="The type takes one byte, as the dtype does in GGUF-lite, and here four.",
            cure="Pack every type as `I`.", see="the value begins three bytes early"),
        Mistake("a text without its length", edit("gguf_string(value)", "value.encode()"),
            cause="The text is written without its length.",
            cure="Write it with `gguf_string`.", see="keys and numbers right, texts too short by eight bytes"),
        Mistake("a key without its length", edit("gguf_string(key)", "key.encode()"),
            cause="The key is written without its length.",
            cure="Write it with `gguf_string`.", see="the key begins at byte 0"),
        Mistake("no type for the elements",
            edit('"<IIQ", 9, 8', '"<IQ", 9').edit("<IIQ{", "<IQ{").edit("9, 5, ", "9, "),
            cause="After the 9 that says array, the type of the elements is missing.",
            cure="Write two types for an array: 9, then 8 or 5.", see="arrays too short by four bytes"),
        Mistake("32-bit number of elements", edit('"<IIQ"', '"<III"').edit("<IIQ{", "<III{"),
            cause="The number of elements takes four bytes, and here eight.",
            cure="Pack it as `Q`.", see="arrays too short by four bytes, their type right"),
        Mistake("bytes counted instead of elements", edit("9, 8, len(value)", "9, 8, sum(len(gguf_string(text)) for text in value)").edit(
                "9, 5, len(value)", "9, 5, 4 * len(value)"
            ),
            cause="The length of an array counts its elements, and you wrote how many bytes they take.",
            cure="Write `len(value)`.", see="a number of elements that is too large"),
        Mistake("every element with a type", edit("(gguf_string(text)", '(struct.pack("<I", 8) + gguf_string(text)').edit(
                'struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)',
                'struct.pack("<IIQ", 9, 5, len(value)) + b"".join(struct.pack("<Ii", 5, n) for n in value)',
            ),
            cause="The type of the elements is written once, before them.",
            cure="Write the elements bare.", see="four bytes too many for each element"),
        Mistake("signed integers", edit('"<II", 4', '"<Ii", 5'),
            cause="An integer was written as i32, type 5; llama.cpp expects its counts as u32 and refuses the file.",
            cure="Use type 4 and `I` for a single integer.", see="`05` where the type `04` is expected"),
        Mistake("a whole float taken for an int", edit("    if isinstance(value, int):", "    if isinstance(value, int | float) and value >= 0 and value == int(value):").edit('"<II", 4, value', '"<II", 4, int(value)'),
            cause="A float with a whole value, such as 10000.0, was written as a u32. The Python type decides, and not the value.",
            cure="Ask for `int` with `isinstance`, and write each float as type 6.", see="`04` where the type `06` is expected, for 1.0 and 10000.0"),
        Mistake("empty texts left out", edit("for text in value)", "for text in value if text)"),
            cause="The empty texts of a list were left out, and the number of elements counts them.",
            cure="Write each text, an empty one as its length 0.", see="eight bytes too few for each empty text of a list"),
        Mistake("text instead of types", body('return f"{key}={value}\\n".encode()'),
            cause="That is a line of GGUF-lite, and GGUF has no lines.",
            cure="Write the key as a string, then its type, then its value.", see="`=` after the key"),
    ),
)
