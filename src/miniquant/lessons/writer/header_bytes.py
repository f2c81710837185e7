"""The first part of a file: the header."""

import struct

from ...lab import Exercise, Mistake, edit
from ..shared.gguf_lite_by_hand import header_oracle


def header_bytes(n_tensors, metadata_len):
    """The header of a GGUF-lite file.

    n_tensors, metadata_len: integers   ->   16 bytes: magic 0x474C4654, version 1, n_tensors, metadata_len, each a u32
    """
    return struct.pack("<4I", 0x474C4654, 1, n_tensors, metadata_len)


def fields(n_tensors, metadata_len):
    """Four numbers of four bytes."""
    names = ("magic", "version", "n_tensors", "metadata_len")
    return [(f"header.{name}", 4 * i, 4 * i + 4) for i, name in enumerate(names)]


def cases(random):
    """Small counts, counts whose four bytes differ, then random ones."""
    made = [(2, 5), (0, 0), (1, 258), (0x01020304, 0x05060708)]
    return [*made, *map(tuple, random.integers(0, 2**32, (3, 2)).tolist())]


EXERCISE = Exercise(
    goal="Write the first 16 bytes of a file: magic, version, number of tensors, length of the metadata.",
    reference=header_bytes, oracle=header_oracle, cases=cases, minutes=3, difficulty="warm-up", fields=fields,
    hints=(
        "`struct.pack` takes a format and the numbers: `I` is an unsigned integer of four bytes, and a leading `<` means little-endian.",
        "The format is `<4I`, and the numbers are 0x474C4654, 1 and the two arguments, in that order.",
    ),
    why="a reader that sees these 16 bytes knows whose file it holds and how far the next part reaches.",
    mistakes=(
        Mistake("big-endian", edit("<4I", ">4I"),
            cause="The most significant byte came first, and this format stores the least significant byte first.",
            cure="Begin the format with `<`.",
            see="every number backwards: `47 4c 46 54` where `54 46 4c 47` is expected"),
        Mistake("the magic as letters", edit('struct.pack("<4I", 0x474C4654,', 'b"GLFT" + struct.pack("<3I",'),
            cause='The magic is a number, and a little-endian number lies backwards on disk: "TFLG".',
            cure="Pack 0x474C4654 as an `I` like the other three numbers.",
            see="`47 4c 46 54` at the start, and the other numbers right"),
        Mistake("the magic of real GGUF", edit("0x474C4654", "0x46554747"),
            cause="The letters GGUF announce llama.cpp's format, and its readers would take this file for theirs.",
            cure="Use this format's own number, 0x474C4654.", see="`47 47 55 46` at the start"),
        Mistake("counts swapped", edit("n_tensors, metadata_len", "metadata_len, n_tensors"),
            cause="The length of the metadata is where the number of tensors belongs.",
            cure="Write n_tensors third and metadata_len last.", see="bytes 8 to 11 and 12 to 15 exchanged"),
        Mistake("64-bit counts", edit("<4I", "<2I2Q"),
            cause="Real GGUF counts with 64 bits, and this format with 32.",
            cure="Use `I` for all four numbers, so that the header has 16 bytes.",
            see="24 bytes where 16 are expected"),
        Mistake("no version", edit('"<4I", 0x474C4654, 1,', '"<3I", 0x474C4654,'),
            cause="The version is missing, so every later number comes four bytes too early.",
            cure="Write the number 1 between the magic and n_tensors.", see="12 bytes where 16 are expected"),
    ),
)
