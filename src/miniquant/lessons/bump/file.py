"""The exercises of lab 16 on the parts of a bump file: the header and the table of types."""

from __future__ import annotations

import struct
from functools import partial

import numpy as np

from ...formats.bump.types import BUMP_TYPES as CODES
from ...formats.bump.types import COUNT, OFFSETS, SIZES, BumpConfig, Header
from ...formats.gguf.read import padded
from ...formats.gguf.types import GGMLType
from ...lab.compare import Fields
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import by_digits

# ---- bump_header -----------------------------------------------------------------------------------------------------


def bump_header(layers: int, vocab: int, embed: int, context: int, heads: int, checksum: bytes) -> bytes:
    """The reference: a gpt2's sizes and its checksum -> the 128 bytes."""
    config = BumpConfig("gpt2", layers, vocab, embed, context, heads, embed // heads, heads, 1, 1e-5, 0.0, True)
    return config.header(checksum)


def header_oracle(layers: int, vocab: int, embed: int, context: int, heads: int, checksum: bytes) -> bytes:
    """The letters typed in, the numbers taken apart digit by digit, the floats of a line counted."""
    out = bytes.fromhex("42 55 4d 50 57 47 54 33")
    for number in (3, 2, layers, vocab, embed, context, heads, embed // heads):
        out += by_digits(number, 4)
    for number in (embed, embed // heads, context):
        while number % 16:
            number += 1
        out += by_digits(number, 8)
    return out + checksum + bytes(32)


def header_fields(*_: object) -> Fields:
    """The document's table."""
    return [(f"header.{name}", OFFSETS[name], OFFSETS[name] + SIZES[name]) for name in Header._fields]


def _header_cases(random: np.random.Generator) -> list[Case]:
    made = [(4, 1024, 256, 256, 4, bytes(range(32))), (1, 3, 20, 5, 2, b"\xaa" * 32), (2, 7, 96, 100, 6, bytes(32))]
    for _ in range(4):
        heads, width = (int(n) for n in random.integers(1, 20, 2))
        layers, vocab, context = (int(n) for n in random.integers(1, 2**17, 3))
        made.append((layers, vocab, heads * width, context, heads, random.bytes(32)))
    return made


def _header(
    layers: int,
    vocab: int,
    embed: int,
    context: int,
    heads: int,
    checksum: bytes,
    *,
    form: str = "<8s8I3Q32s32s",
    magic: bytes = b"BUMPWGT3",
    version: int = 3,
    kind: int = 2,
    line: int = 16,
    times: int = 1,
    swap: bool = False,
    reserved: int = 32,
    hexed: bool = False,
    order: tuple[int, ...] = (0, 1, 2, 3),
) -> bytes:
    each = heads and embed // heads
    sizes = [(layers, vocab, embed, context)[i] for i in order]
    numbers = (version, kind, *sizes, *((each, heads) if swap else (heads, each)))
    dims = [times * padded(dim, line) for dim in (embed, each, context)]
    digest = checksum.hex().encode()[:32] if hexed else checksum
    data = struct.pack(form, magic, *numbers, *dims, digest, bytes(32))
    return data[: len(data) - 32 + reserved]


BUMP_HEADER = Exercise(
    name="bump_header",
    lab="16",
    goal="Write the 128 bytes at the start of a bump file of model_type 2, as the table on this page lays them out.",
    minutes=7,
    difficulty="core",
    reference=bump_header,
    oracle=header_oracle,
    cases=_header_cases,
    fields=header_fields,
    hints=(
        "Eight letters, eight u32, three u64, the checksum as it is, 32 zeros: `<8s8I3Q32s32s`. The head's width is "
        "`embed // heads`.",
        "An aligned dim is a number of floats whose bytes are a multiple of 64: `-(-dim // 16) * 16`. There is one for "
        "embed, one for the head's width, one for context.",
    ),
    why="a runtime knows from these bytes how much to allocate before it has read anything else.",
    mistakes=(
        Mistake(
            "letters and version confused",
            partial(_header, version=0x33545747, magic=b"BUMPWGT\0"),
            "The 3 of the magic went into the version.",
            "The magic has eight letters, the last one is 3, and the version is a number of its own.",
            "`00` in byte 7",
        ),
        Mistake(
            "version 1",
            partial(_header, version=1),
            "The version is that of GGUF-lite; here it is 3, like the letter in the magic.",
            "Write 3.",
            "`01` in byte 8",
        ),
        Mistake(
            "the model_type of a llama",
            partial(_header, kind=1),
            "model_type 1 is the document's llama; a gpt2, with its biases and positions, is 2.",
            "Write 2.",
            "`01` in byte 12",
        ),
        Mistake(
            "dims not rounded",
            partial(_header, line=1),
            "The aligned dims are the dims themselves; that is right only where they are multiples of 16 already.",
            "Round each up to a multiple of 16.",
            "right for the trained model, wrong for a width of 20",
        ),
        Mistake(
            "rounded to 64 floats",
            partial(_header, line=64),
            "64 is the number of bytes, and the dims count floats of four bytes.",
            "Round up to a multiple of 16.",
            "64 where 32 is expected",
        ),
        Mistake(
            "bytes instead of floats",
            partial(_header, times=4),
            "The aligned dims are in bytes, and the field counts elements.",
            "Do not multiply by 4.",
            "every aligned dim four times too large",
        ),
        Mistake(
            "32-bit aligned dims",
            partial(_header, form="<8s8I3I32s32s"),
            "The aligned dims take four bytes each, and the table gives them eight.",
            "Pack them as `Q`.",
            "the checksum begins at byte 52",
        ),
        Mistake(
            "heads and their width swapped",
            partial(_header, swap=True),
            "The width of a head stands in the place of the number of heads.",
            "num_heads comes first, at byte 32.",
            "bytes 32 to 35 and 36 to 39 exchanged",
        ),
        Mistake(
            "embed before vocab",
            partial(_header, order=(0, 2, 1, 3)),
            "embed_dim and vocab_size changed places.",
            "vocab_size stands at byte 20, embed_dim at byte 24.",
            "bytes 20 to 23 and 24 to 27 exchanged",
        ),
        Mistake(
            "nothing reserved",
            partial(_header, reserved=0),
            "The header ends behind the checksum, at 96 bytes; the last 32 are reserved.",
            "Append 32 zeros.",
            "96 bytes where 128 are expected",
        ),
        Mistake(
            "big-endian",
            partial(_header, form=">8s8I3Q32s32s"),
            "The most significant byte came first.",
            "Begin the format with `<`.",
            "`00 00 00 03` in bytes 8 to 11",
        ),
        Mistake(
            "hexadecimal digits",
            partial(_header, hexed=True),
            "The checksum was written as digits, two for a byte, and only half of them fit.",
            "Store the 32 bytes themselves: `digest()`, not `hexdigest()`.",
            "letters in bytes 64 to 95",
        ),
    ),
)

# ---- bump_types ------------------------------------------------------------------------------------------------------


def bump_types(kinds: list[int]) -> bytes:
    """The reference: ggml's codes -> a u32 count, and bump's codes, a byte each."""
    if any(kind not in CODES for kind in kinds):
        raise ValueError("bump has no code for one of these types")
    return COUNT.pack(len(kinds)) + bytes(CODES[GGMLType(kind)] for kind in kinds)


_BY_NUMBER = {0: 0, 30: 1, 1: 2, 2: 5, 12: 6, 14: 7, 8: 8, 15: 9}  # ggml's code -> bump's


def types_oracle(kinds: list[int]) -> bytes:
    """By a table of numbers alone."""
    out = by_digits(len(kinds), 4)
    for kind in kinds:
        if kind not in _BY_NUMBER:
            raise ValueError(f"bump has no number for ggml's type {kind}")
        out += by_digits(_BY_NUMBER[kind], 1)
    return out


def types_fields(kinds: list[int]) -> Fields:
    """The count, then a byte for each."""
    return [("the count", 0, 4), *((f"the type of tensor {i}", 4 + i, 5 + i) for i in range(len(kinds)))]


def _types_cases(random: np.random.Generator) -> list[Case]:
    made = [[12, 14, 0], [8, 0, 0, 8], [], [0], [2, 1, 30, 15], [3], [12, 10, 0], [8, 13]]
    drawn = [random.choice(list(_BY_NUMBER), n).tolist() for n in (5, 300)]
    return [(kinds,) for kinds in [*made, *drawn]]


def _types(kinds: list[int], form: str = "<I", code: str = "B", less: dict[int, int] | None = None) -> bytes:
    codes = _BY_NUMBER | (less or {})
    if any(kind not in codes for kind in kinds):
        raise ValueError("no code")
    return struct.pack(form, len(kinds)) + b"".join(struct.pack("<" + code, codes[kind]) for kind in kinds)


BUMP_TYPES = Exercise(
    name="bump_types",
    lab="16",
    goal="Write the table of types: a u32 count, then bump's code of each tensor; refuse a type that has none.",
    minutes=5,
    difficulty="core",
    reference=bump_types,
    oracle=types_oracle,
    cases=_types_cases,
    fields=types_fields,
    hints=(
        "Make a dict from ggml's numbers to bump's, by the two columns on this page.",
        '`struct.pack("<I", len(kinds)) + bytes(CODES[kind] for kind in kinds)`; a KeyError is no ValueError, so look '
        "before.",
    ),
    why="two formats may call the same blocks by different numbers, and only a table can tell.",
    mistakes=(
        Mistake(
            "ggml's codes",
            partial(_types, less={kind: kind for kind in _BY_NUMBER}),
            "ggml's numbers were written as they are, so Q4_K is 12, and a bump reader knows no type 12.",
            "Translate each code by the table: Q4_K is 6.",
            "`0c` where `06` is expected",
        ),
        Mistake(
            "half floats exchanged",
            partial(_types, less={1: 1, 30: 2}),
            "F16 became 1 and BF16 became 2, and in bump it is the other way round.",
            "BF16 is 1, FP16 is 2.",
            "`01` where `02` is expected",
        ),
        Mistake(
            "Q8_0 and Q8_K exchanged",
            partial(_types, less={8: 9, 15: 8}),
            "Q8_0 became 9, which is Q8_K.",
            "Q8_0 is 8 in both formats.",
            "`09` where `08` is expected",
        ),
        Mistake(
            "an unknown type as FP32",
            lambda kinds: _types([kind if kind in _BY_NUMBER else 0 for kind in kinds]),
            "A type without a code became FP32, and a reader will take its blocks for floats.",
            "Raise ValueError if a code is not in your dict.",
            "no error for Q4_1",
        ),
        Mistake(
            "a KeyError",
            lambda kinds: struct.pack("<I", len(kinds)) + bytes([_BY_NUMBER[kind] for kind in kinds]),
            "A dict refuses what is not in it by itself, with a KeyError, and a caller waits for a ValueError.",
            "Look whether all kinds are in your dict first, and raise ValueError if not.",
            "KeyError for Q4_1",
        ),
        Mistake(
            "an unknown type left out",
            lambda kinds: _types([kind for kind in kinds if kind in _BY_NUMBER]),
            "A type without a code was skipped, so every type behind it belongs to the tensor before.",
            "Raise ValueError if a code is not in your dict.",
            "no error for Q4_1, and a count that is one too small",
        ),
        Mistake(
            "no count",
            lambda kinds: _types(kinds)[4:],
            "The codes begin at once, and a reader does not know how many there are.",
            "Put the count in front, as a u32.",
            "a file that is four bytes too short",
        ),
        Mistake(
            "64-bit count",
            partial(_types, form="<Q"),
            "The count takes eight bytes, as in GGUF, and here four.",
            "Pack the count as `I`.",
            "`00 00 00 00` in bytes 4 to 7",
        ),
        Mistake(
            "four bytes for a type",
            partial(_types, code="I"),
            "Each code takes four bytes, as in GGUF, and here one.",
            "Write one byte for each.",
            "three zeros behind each code",
        ),
        Mistake(
            "the count counts bytes",
            lambda kinds: struct.pack("<I", len(kinds) + 4) + _types(kinds)[4:],
            "The count includes its own four bytes; it counts tensors.",
            "Write `len(kinds)`.",
            "a count that is four too large",
        ),
    ),
)
