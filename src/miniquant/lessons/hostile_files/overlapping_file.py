"""A test file with two tensors in the same bytes."""

from ...lab import Exercise, Mistake, edit
from ...lab.spec import Finding
from ..shared.by_hand import by_digits
from .build import gguf_file, info
from .limited import ran


def overlapping_file(shared):
    """A file with two F32 tensors, "a" and "b", that have some bytes of the
    data in common. Each has 16 numbers, in any dims.

    shared: how many bytes they have in common, a multiple of 4 from 4 to 64
    ->   bytes: a GGUF file; "a" has offset 0, "b" begins inside of "a" or
         with it, and all bytes of both are inside the file
    """
    offset = 64 - shared
    return gguf_file(info(b"a", (16,)), info(b"b", (16,), offset), data=bytes(offset + 64))


def oracle(shared):
    """Byte after byte."""
    out = b"GGUF" + by_digits(3, 4) + by_digits(2, 8) + bytes(8)
    for name, offset in ((b"a", 0), (b"b", 16 * 4 - shared)):
        out += by_digits(1, 8) + name + by_digits(1, 4) + by_digits(16, 8) + bytes(4) + by_digits(offset, 8)
    while len(out) % 32:
        out += b"\0"
    return out + b"\x11" * 128


def _what_it_does(function, case):
    """The tensors that were read with their sizes and offsets, and the bytes that they share; other harm is a finding."""
    found = ran(function, case)
    if found and found.harm not in ("", "shared bytes"):
        raise Finding("the reader does not accept both tensors", str(found))
    return found and {
        "bytes in both": found.shared,
        "size": {name: found.asked[name] for name in found.tensors},
        "offset": found.offsets,
    }


def cases(random):
    """Some, the fewest, all, then random ones."""
    return [(n,) for n in (16, 4, 64, 60, *(4 * int(n) for n in random.integers(2, 15, 2)))]


EXERCISE = Exercise(
    goal="Make a file with two tensors that have a given number of bytes in common.",
    reference=overlapping_file, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up", observe=_what_it_does,
    hints=(
        "An offset says where a tensor begins in the data. Nothing in the format ties the offset of `b` to the end of `a`.",
        "`info(name, dims, offset)`: 16 numbers of F32 are 64 bytes. Let `b` begin so many bytes before the end of `a`, and give the file data up to the end of `b`.",
    ),
    why="whoever changes one of the two tensors changes the other, and no field of the file says so.",
    mistakes=(
        Mistake("one after the other", edit("64 - shared", "64"),
            cause="`b` begins where `a` ends, so they have nothing in common.",
            cure="Let `b` begin `shared` bytes before the end of `a`.", see="0 bytes in both"),
        Mistake("the offset taken for what is shared", edit("64 - shared", "shared"),
            cause="`b` begins after `shared` bytes; they have the other bytes of `a` in common.",
            cure="The offset is 64 less `shared`.", see="48 bytes in both where 16 are expected"),
        Mistake("counted in numbers", edit("64 - shared", "16 - shared // 4"),
            cause="The offset counts numbers, and an offset in a file counts bytes.",
            cure="16 numbers are 64 bytes.", see="52 bytes in both where 16 are expected"),
        Mistake("both at the beginning", edit("offset = 64 - shared", "offset = 0"),
            cause="Both tensors are in the same 64 bytes, whatever was asked for.",
            cure="Let `b` begin 64 - `shared` bytes later.", see="64 bytes in both for every case"),
        Mistake("outside the file", edit("bytes(offset + 64)", "bytes(64)"),
            cause="The data end with `a`, and `b` ends later.",
            cure="The data reach to the end of `b`.", see="read past the file"),
        Mistake("from the start of the file", edit("offset)", "offset + 96)"),
            cause="The offset was counted from another place than the start of the data.",
            cure="An offset is counted from the start of the data.", see="0 bytes in both, and read past the file"),
        Mistake("one name for both", edit('b"b"', 'b"a"'),
            cause="Both tensors are called a, so the file of one is written over the other's.",
            cure="Call the second one b.", see="lost tensor"),
        Mistake("names exchanged", edit('b"a", (16,)', 'b"b", (16,)').edit('info(b"b", (16,), offset)', 'info(b"a", (16,), offset)'),
            cause="`b` has offset 0, and `a` begins later.",
            cure="Give `a` the offset 0.", see="the two offsets exchanged"),
        Mistake("both later", edit('b"a", (16,)', 'b"a", (16,), 32').edit("(16,), offset)", "(16,), offset + 32)").edit("bytes(offset + 64)", "bytes(offset + 96)"),
            cause="`a` begins 32 bytes after the start of the data.",
            cure="Give `a` the offset 0.", see="32 where an offset of 0 is expected"),
        Mistake("rows of 16 bytes", edit('b"a", (16,)', 'b"a", (4,)').edit('b"b", (16,)', 'b"b", (4,)'),
            cause="The tensors have 4 numbers each, 16 bytes.",
            cure="Give both the dims (16,).", see="16 bytes asked for where 64 are expected"),
    ),
)
