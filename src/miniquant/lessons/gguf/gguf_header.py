"""The first part of a file: the header."""

import struct

from ...lab import Exercise, Mistake, edit
from ...lab.compare import one_after_another
from ..shared.by_hand import by_digits


def gguf_header(n_tensors, n_kv):
    """The header of a GGUF file.

    n_tensors, n_kv: integers from 0 to 2**64 - 1
    ->   24 bytes: the letters GGUF, version 3 as a u32, then each count as
         a u64; every number little-endian
    """
    return b"GGUF" + struct.pack("<IQQ", 3, n_tensors, n_kv)


def oracle(n_tensors, n_kv):
    """The letters and the version are typed in, the counts are taken apart digit by digit."""
    return bytes.fromhex("47 47 55 46  03 00 00 00") + by_digits(n_tensors, 8) + by_digits(n_kv, 8)


def fields(n_tensors, n_kv):
    """Two parts of four bytes, two of eight."""
    return one_after_another([("header.magic", 4), ("header.version", 4), ("header.n_tensors", 8), ("header.n_kv", 8)])


def cases(random):
    """Counts that can be read by eye, none, one of eight bytes, the largest, one large beside a small one, then random ones."""
    made = [(2, 5), (0, 0), (1, 258), (0x0102030405060708, 3), (2**64 - 1, 2**63), (2, 2**63 + 1), (2**63 + 1, 2)]
    return [*made, *((int(a), int(b)) for a, b in random.integers(0, 2**40, (3, 2)))]


EXERCISE = Exercise(
    goal="Write the first 24 bytes of a GGUF file: magic, version 3, number of tensors, number of key-values.",
    reference=gguf_header, oracle=oracle, cases=cases, minutes=3, difficulty="warm-up", fields=fields,
    hints=(
        "The magic is four letters, and letters are bytes already; the other three fields are numbers.",
        "A bytes literal holds letters. `struct.pack` writes all three numbers at once; a `<` at the front of its format also keeps it from padding.",
    ),
    why="llama.cpp decides by these 24 bytes whether to read on.",
    mistakes=(
        Mistake("the magic as a number", edit('b"GGUF"', 'struct.pack("<I", 0x47475546)'),
            cause='The letters were packed as the number 0x47475546, and a little-endian number lies backwards: "FUGG".',
            cure='Write the bytes `b"GGUF"` themselves.', see="`46 55 47 47` at the start"),
        Mistake("the magic of GGUF-lite", edit('b"GGUF"', 'struct.pack("<I", 0x474C4654)'),
            cause="The magic is still that of this course's own format.",
            cure='Begin with `b"GGUF"`.', see="`54 46 4c 47` at the start"),
        Mistake("the version of GGUF-lite", edit("3,", "1,"),
            cause="GGUF-lite is at version 1, and GGUF at version 3; llama.cpp refuses version 1.",
            cure="Write 3.", see="`01` in byte 4"),
        Mistake("32-bit counts", edit("<IQQ", "<III"),
            cause="The counts take four bytes, as in GGUF-lite, and here eight.",
            cure="Pack both counts as `Q`.", see="16 bytes where 24 are expected"),
        Mistake("signed counts", edit("<IQQ", "<Iqq"),
            cause="The counts were packed as signed numbers, which end at 2**63 - 1, and a u64 has no sign.",
            cure="Pack both counts as `Q`.", see="`struct.error` for a count of 2**63 or more"),
        Mistake("counts swapped", edit("n_tensors, n_kv", "n_kv, n_tensors"),
            cause="The number of key-values is where the number of tensors belongs.",
            cure="Write n_tensors first, although the tensors come last.", see="bytes 8 to 15 and 16 to 23 exchanged"),
        Mistake("big-endian", edit("<IQQ", ">IQQ"),
            cause="The most significant byte came first; such files exist, and this one says nowhere that it is one.",
            cure="Begin the format with `<`.", see="`00 00 00 03` in bytes 4 to 7"),
        Mistake("padding slipped in", edit("<IQQ", "IQQ"),
            cause="Without `<`, struct pads as a C compiler does, and puts four bytes between the version and the counts.",
            cure="Begin the format with `<`, which also switches padding off.", see="28 bytes where 24 are expected"),
    ),
)
