"""The exercise of lab 11 on the second part of a file: a key with its typed value."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

import numpy as np

from ...formats.gguf import metadata as gguf_metadata
from ...lab.compare import Fields, one_after_another
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import by_digits
from .container import string_oracle


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
    return one_after_another(sizes)


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

EXERCISE = KEY_VALUE
