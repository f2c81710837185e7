"""The first part of a file: the header."""

import struct

from ...lab import Exercise, Mistake, edit
from ..shared.gguf_lite_by_hand import header_oracle


def header_bytes(n_tensors, metadata_len):
    """The header of a GGUF-lite file: four u32, little-endian.

    n_tensors, metadata_len: integers from 0 to 2**32 - 1
    ->   16 bytes: the magic 0x474C4654, the version 1, n_tensors,
         metadata_len
    """
    return struct.pack("<4I", 0x474C4654, 1, n_tensors, metadata_len)


def fields(n_tensors, metadata_len):
    """Four numbers of four bytes."""
    names = ("magic", "version", "n_tensors", "metadata_len")
    return [(f"header.{name}", 4 * i, 4 * i + 4) for i, name in enumerate(names)]


def cases(random):
    """Small counts, counts whose four bytes differ, the largest, then random ones."""
    made = [(2, 5), (0, 0), (2, 258), (2**16, 3 * 2**16 + 7), (0x01020304, 0x05060708), (2**31, 2**32 - 1)]
    return [*made, *map(tuple, random.integers(0, 2**32, (3, 2)).tolist())]


EXERCISE = Exercise(
    goal="Write the first 16 bytes of a file: magic, version, number of tensors, length of the metadata.",
    reference=header_bytes, oracle=header_oracle, cases=cases, minutes=3, difficulty="warm-up", fields=fields,
    hints=(
        "Two of the four numbers are always the same, and two come from the caller. All four have the same size and the same byte order.",
        "One call of `struct.pack` packs several numbers. Take the letter of a u32 from the table above, and put the sign for little-endian first.",
    ),
    why="a reader that sees these 16 bytes knows which format this is, and where the metadata ends.",
    mistakes=(
        Mistake("big-endian", edit("<4I", ">4I"),
            cause="The most significant byte came first, and this format stores the least significant byte first.",
            cure="Begin the format with `<`.",
            see="the bytes of every number in reverse: `47 4c 46 54` where `54 46 4c 47` is expected"),
        Mistake("the magic as letters", edit('struct.pack("<4I", 0x474C4654,', 'b"GLFT" + struct.pack("<3I",'),
            cause='The magic is a number. Little-endian, its last byte comes first on disk: "TFLG".',
            cure="Pack 0x474C4654 as an `I` like the other three numbers.",
            see="`47 4c 46 54` at the start, and the other numbers right"),
        Mistake("the magic of real GGUF", edit("0x474C4654", "0x46554747"),
            cause="The letters GGUF announce llama.cpp's format, and its readers would take this file for theirs.",
            cure="Use this format's own number, 0x474C4654.", see="`47 47 55 46` at the start"),
        Mistake("counts swapped", edit("n_tensors, metadata_len", "metadata_len, n_tensors"),
            cause="The length of the metadata is where the number of tensors belongs.",
            cure="Write n_tensors third and metadata_len last.", see="bytes 8 to 11 and 12 to 15 exchanged"),
        Mistake("signed numbers", edit("<4I", "<4i"),
            cause='`i` is a signed number, and the largest u32 do not fit into it.',
            cure='Use `I`, the letter of an unsigned u32.', see='`format requires -2147483648 <= number <= 2147483647`'),
        Mistake("version after n_tensors", edit("1, n_tensors", "n_tensors, 1"),
            cause='The version and the number of tensors are exchanged.',
            cure='Write the version second and n_tensors third.', see='the number of tensors in header.version'),
        Mistake("version 0", edit("0x474C4654, 1", "0x474C4654, 0"),
            cause="The version is 1, and 0 stands there.",
            cure='Write the number 1 after the magic.', see='`00` where `01` is expected in header.version'),
        Mistake("the header counted as metadata", edit("metadata_len)", "metadata_len + 16)"),
            cause="metadata_len counts the bytes of the metadata alone, and here it is 16 larger, as if the header were counted.",
            cure='Write metadata_len as it is.', see='header.metadata_len 16 too large'),
        Mistake("64-bit counts", edit("<4I", "<2I2Q"),
            cause="Real GGUF counts with 64 bits, and this format with 32.",
            cure="Use `I` for all four numbers, so that the header has 16 bytes.",
            see="24 bytes where 16 are expected"),
        Mistake("no version", edit('"<4I", 0x474C4654, 1,', '"<3I", 0x474C4654,'),
            cause="The version is missing, so every later number comes four bytes too early.",
            cure="Write the number 1 between the magic and n_tensors.", see="12 bytes where 16 are expected"),
    ),
)
