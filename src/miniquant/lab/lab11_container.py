"""The exercises of lab 11 on the first two parts of a file: the header, strings, typed key-values."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

import numpy as np

from ..gguf import metadata as gguf_metadata
from ..gguf import read
from .compare import Fields
from .engine import Case, Exercise, Mistake
from .lab06_container import by_digits

# ---- gguf_header -----------------------------------------------------------------------------------------------------


def gguf_header(n_tensors: int, n_kv: int) -> bytes:
    """The reference: two counts -> the 24 bytes of the header."""
    return read.HEADER.pack(read.MAGIC, read.VERSION, n_tensors, n_kv)


def header_oracle(n_tensors: int, n_kv: int) -> bytes:
    """The letters and the version are typed in, the counts are taken apart digit by digit."""
    return bytes.fromhex("47 47 55 46  03 00 00 00") + by_digits(n_tensors, 8) + by_digits(n_kv, 8)


def header_fields(n_tensors: int, n_kv: int) -> Fields:
    """Two parts of four bytes, two of eight."""
    return [
        ("header.magic", 0, 4),
        ("header.version", 4, 8),
        ("header.n_tensors", 8, 16),
        ("header.n_kv", 16, 24),
    ]


def _header_cases(random: np.random.Generator) -> list[Case]:
    made = [(2, 5), (0, 0), (1, 258), (0x0102030405060708, 3)]
    return [*made, *((int(a), int(b)) for a, b in random.integers(0, 2**40, (3, 2)))]


def _header(n_tensors: int, n_kv: int, magic: bytes = b"GGUF", form: str = "<IQQ", version: int = 3) -> bytes:
    return magic + struct.pack(form, version, n_tensors, n_kv)


GGUF_HEADER = Exercise(
    name="gguf_header",
    lab="11",
    goal="Write the first 24 bytes of a GGUF file: magic, version 3, number of tensors, number of key-values.",
    minutes=3,
    difficulty="warm-up",
    reference=gguf_header,
    oracle=header_oracle,
    cases=_header_cases,
    fields=header_fields,
    hints=(
        'The magic is four letters in reading order, `b"GGUF"`; the rest is one u32 and two u64.',
        '`b"GGUF" + struct.pack("<IQQ", 3, n_tensors, n_kv)`; the `<` also keeps `struct` from padding.',
    ),
    why="llama.cpp decides by these 24 bytes whether to read on.",
    mistakes=(
        Mistake(
            "the magic as a number",
            partial(_header, magic=b"FUGG"),
            'The letters were packed as the number 0x47475546, and a little-endian number lies backwards: "FUGG".',
            'Write the bytes `b"GGUF"` themselves.',
            "`46 55 47 47` at the start",
        ),
        Mistake(
            "the magic of GGUF-lite",
            partial(_header, magic=b"TFLG"),
            "The magic is still that of this course's own format.",
            'Begin with `b"GGUF"`.',
            "`54 46 4c 47` at the start",
        ),
        Mistake(
            "the version of GGUF-lite",
            partial(_header, version=1),
            "GGUF-lite is at version 1, and GGUF at version 3; llama.cpp refuses version 1.",
            "Write 3.",
            "`01` in byte 4",
        ),
        Mistake(
            "32-bit counts",
            lambda n_tensors, n_kv: _header(n_tensors % 2**32, n_kv % 2**32, form="<III"),
            "The counts take four bytes, as in GGUF-lite, and here eight.",
            "Pack both counts as `Q`.",
            "16 bytes where 24 are expected",
        ),
        Mistake(
            "counts swapped",
            lambda n_tensors, n_kv: _header(n_kv, n_tensors),
            "The number of key-values stands where the number of tensors belongs.",
            "Write n_tensors first, although the tensors come last.",
            "bytes 8 to 15 and 16 to 23 exchanged",
        ),
        Mistake(
            "big-endian",
            partial(_header, form=">IQQ"),
            "The most significant byte came first; such files exist, and this one says nowhere that it is one.",
            "Begin the format with `<`.",
            "`00 00 00 03` in bytes 4 to 7",
        ),
        Mistake(
            "padding slipped in",
            partial(_header, form="<IxxxxQQ"),
            "Without `<`, struct pads as a C compiler does, and puts four bytes between the version and the counts.",
            "Begin the format with `<`, which also switches padding off.",
            "28 bytes where 24 are expected",
        ),
    ),
)

# ---- gguf_string -----------------------------------------------------------------------------------------------------


def gguf_string(text: str) -> bytes:
    """The reference: text -> u64 length in bytes, then UTF-8."""
    return gguf_metadata.encode_string(text)


def string_oracle(text: str) -> bytes:
    """Character by character."""
    data = b"".join(bytes(character, "utf-8") for character in text)
    return by_digits(len(data), 8) + data


def string_fields(text: str) -> Fields:
    """The length, then the text."""
    return [("the length", 0, 8), ("the text", 8, 8 + len(text.encode()))]


def _string_cases(random: np.random.Generator) -> list[Case]:
    drawn = ["".join(chr(c) for c in random.integers(97, 123, n)) for n in (5, 70, 300)]
    return [(text,) for text in ("gpt2", "", "café", "Ġthe", "two\nlines", *drawn)]


def _string(text: str, form: str = "<Q", end: bytes = b"", code: str = "utf-8") -> bytes:
    data = text.encode(code, "replace") + end
    return struct.pack(form, len(data)) + data


GGUF_STRING = Exercise(
    name="gguf_string",
    lab="11",
    goal="Write a text as GGUF does: its length in bytes as a u64, then its UTF-8.",
    minutes=2,
    difficulty="warm-up",
    reference=gguf_string,
    oracle=string_oracle,
    cases=_string_cases,
    fields=string_fields,
    hints=(
        "Encode first, then count: the length is that of the bytes.",
        '`data = text.encode("utf-8")`, and `struct.pack("<Q", len(data)) + data`.',
    ),
    why="keys, texts, tokens and tensor names are all written like this.",
    mistakes=(
        Mistake(
            "the length counts characters",
            lambda text: struct.pack("<Q", len(text)) + text.encode(),
            "The length counts characters, and a reader needs bytes: é takes two in UTF-8.",
            "Encode the text first, and take `len` of the bytes.",
            "ASCII right, and `café` one too short",
        ),
        Mistake(
            "16-bit length",
            partial(_string, form="<H"),
            "The length takes two bytes, as a name's does in GGUF-lite, and here eight.",
            "Pack the length as `Q`.",
            "the text begins at byte 2",
        ),
        Mistake(
            "32-bit length",
            partial(_string, form="<I"),
            "The length takes four bytes, as it did in GGUF's first version, and here eight.",
            "Pack the length as `Q`.",
            "the text begins at byte 4",
        ),
        Mistake(
            "big-endian",
            partial(_string, form=">Q"),
            "The most significant byte of the length came first.",
            "Begin the format with `<`.",
            "the length in byte 7 instead of byte 0",
        ),
        Mistake(
            "no length",
            lambda text: text.encode(),
            "The text stands there without its length, and nobody can tell where it ends.",
            "Put `struct.pack('<Q', len(data))` in front.",
            "the text begins at byte 0",
        ),
        Mistake(
            "a zero byte at the end",
            partial(_string, end=b"\0"),
            "C ends a string with a zero byte, and here the length does that work.",
            "Write the bytes of the text and nothing after them.",
            "the length one too large, and `00` after the text",
        ),
        Mistake(
            "Latin-1 instead of UTF-8",
            partial(_string, code="latin-1"),
            "é became one byte, and in UTF-8 it takes two.",
            'Encode with `.encode("utf-8")`.',
            "ASCII right, and `café` one byte too short",
        ),
    ),
)

# ---- key_value -------------------------------------------------------------------------------------------------------


def key_value(key: str, value: Any) -> bytes:
    """The reference: a key and a value -> key, u32 type, value."""
    return gguf_metadata.encode_metadata({key: value})


def key_value_oracle(key: str, value: Any) -> bytes:
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


def key_value_fields(key: str, value: Any) -> Fields:
    """The parts of one pair, in order."""
    sizes = [("the key's length", 8), ("the key", len(key.encode())), ("the type", 4)]
    if isinstance(value, list):
        sizes += [("the type of the elements", 4), ("the number of elements", 8), ("the elements", 1 << 20)]
    elif isinstance(value, str):
        sizes += [("the value's length", 8), ("the value", 1 << 20)]
    else:
        sizes += [("the value", 1 << 20)]
    fields, at = [], 0
    for name, size in sizes:
        fields.append((name, at, at + size))
        at += size
    return fields


def _key_value_cases(random: np.random.Generator) -> list[Case]:
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
    ]
    drawn = random.integers(0, 2**31, 3).tolist()
    return [*made, ("count", 2**32 - 1), *((f"n{i}", n) for i, n in enumerate(drawn)), ("numbers", drawn)]


def _pair(
    key: str,
    value: Any,
    *,
    kind: str = "<I",
    count: str = "<Q",
    of: bool = True,
    bool_first: bool = True,
    bool_form: str = "<?",
    float_form: str = "<f",
    text: Any = string_oracle,
    head: Any = string_oracle,
    each_typed: bool = False,
    signed: bool = False,
    sizes: bool = False,
) -> bytes:
    out = head(key)
    if isinstance(value, bool) and bool_first:
        return out + struct.pack(kind, 7) + struct.pack(bool_form, value)
    if isinstance(value, str):
        return out + struct.pack(kind, 8) + text(value)
    if isinstance(value, int):
        number = value - 2**32 * (value >= 2**31) if signed else int(value)
        return out + struct.pack(kind, 5 if signed else 4) + struct.pack("<i" if signed else "<I", number)
    if isinstance(value, float):
        return out + struct.pack(kind, 6) + struct.pack(float_form, value)
    code = 8 if isinstance(value[0], str) else 5
    items = [string_oracle(item) if code == 8 else struct.pack("<i", item) for item in value]
    items = [struct.pack("<I", code) + item for item in items] if each_typed else items
    length = len(b"".join(items)) if sizes else len(value)
    return b"".join(
        [out, struct.pack(kind, 9), struct.pack(kind, code) if of else b"", struct.pack(count, length), *items]
    )


KEY_VALUE = Exercise(
    name="key_value",
    lab="11",
    goal="Write one key with its value: the key as a string, the type as a u32, then the value in that type.",
    minutes=8,
    difficulty="core",
    reference=key_value,
    oracle=key_value_oracle,
    cases=_key_value_cases,
    fields=key_value_fields,
    hints=(
        "Begin with `gguf_string(key)`, then decide by `isinstance`. In Python a bool is an int as well, so ask for "
        "bool first.",
        "An array is type 9, then the type of its elements as a u32, then how many there are as a u64, then the "
        "elements without types of their own: 8 and strings, or 5 and i32.",
    ),
    why="a typed value needs no guessing: a reader can skip a key that it does not know.",
    mistakes=(
        Mistake(
            "a bool taken for an int",
            partial(_pair, bool_first=False),
            "In Python True is an int too, and it was written as a u32.",
            "Ask for `bool` before you ask for `int`.",
            "`04` where the type `07` is expected",
        ),
        Mistake(
            "a bool in four bytes",
            partial(_pair, bool_form="<I"),
            "A truth value takes one byte, 0 or 1.",
            'Pack it as `"<?"` or `"<B"`.',
            "three zero bytes too many after a truth value",
        ),
        Mistake(
            "a float in eight bytes",
            partial(_pair, float_form="<d"),
            "The type 6 says float32, and the value was packed as a float64.",
            "Pack it as `f`.",
            "eight bytes of a float where four are expected",
        ),
        Mistake(
            "the type in one byte",
            partial(_pair, kind="<B"),
            "The type takes one byte, as the dtype does in GGUF-lite, and here four.",
            "Pack every type as `I`.",
            "the value begins three bytes early",
        ),
        Mistake(
            "a text without its length",
            partial(_pair, text=lambda text: text.encode()),
            "The text stands there without its length.",
            "Write it with `gguf_string`.",
            "keys and numbers right, texts too short by eight bytes",
        ),
        Mistake(
            "a key without its length",
            partial(_pair, head=lambda key: key.encode()),
            "The key stands there without its length.",
            "Write it with `gguf_string`.",
            "the key begins at byte 0",
        ),
        Mistake(
            "no type for the elements",
            partial(_pair, of=False),
            "Behind the 9 that says array, the type of the elements is missing.",
            "Write two types for an array: 9, then 8 or 5.",
            "arrays too short by four bytes",
        ),
        Mistake(
            "32-bit number of elements",
            partial(_pair, count="<I"),
            "The number of elements takes four bytes, and here eight.",
            "Pack it as `Q`.",
            "arrays too short by four bytes, their type right",
        ),
        Mistake(
            "bytes counted instead of elements",
            partial(_pair, sizes=True),
            "The length of an array counts its elements, and you wrote how many bytes they take.",
            "Write `len(value)`.",
            "a number of elements that is too large",
        ),
        Mistake(
            "every element with a type",
            partial(_pair, each_typed=True),
            "The type of the elements stands once, in front of them.",
            "Write the elements bare.",
            "four bytes too many for each element",
        ),
        Mistake(
            "signed integers",
            partial(_pair, signed=True),
            "An integer was written as i32, type 5; llama.cpp expects its counts as u32 and refuses the file.",
            "Use type 4 and `I` for a single integer.",
            "`05` where the type `04` is expected",
        ),
        Mistake(
            "text instead of types",
            lambda key, value: f"{key}={value}\n".encode(),
            "That is a line of GGUF-lite, and GGUF has no lines.",
            "Write the key as a string, then its type, then its value.",
            "`=` behind the key",
        ),
    ),
)
