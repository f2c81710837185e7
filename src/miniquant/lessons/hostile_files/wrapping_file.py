"""A test file whose size wraps around."""

from ...lab import Exercise, Mistake, edit
from ...lab.spec import Finding
from ..shared.by_hand import by_digits
from .build import gguf_file, info
from .limited import ran


def wrapping_file(n_bytes):
    """A file with one F32 tensor, "w", that makes the naive reader ask for
    too little memory and write past it.

    n_bytes: a multiple of 4, from 4 to 4096
    ->   bytes: a GGUF file. The reader computes the size of "w" in 64 bits;
         the result is n_bytes, and it asks for so many. It copies row after
         row (dims[0] numbers are a row) as long as whole rows are in the
         file, and one of these rows ends after the n_bytes
    """
    rows = 2**62 + n_bytes // 4  # times 4 bytes: 2**64 + n_bytes
    return gguf_file(info(b"w", (1, rows)), data=bytes(n_bytes + 4))


def oracle(n_bytes):
    """Byte after byte, three dims, and rows of two numbers where they fit."""
    row = 2 if n_bytes % 8 == 0 else 1
    rows = 2 ** (62 if row == 1 else 61) + n_bytes // (4 * row)
    out = b"GGUF" + by_digits(3, 4) + by_digits(1, 8) + bytes(8) + by_digits(1, 8) + b"w" + by_digits(3, 4)
    for dim in (row, rows, 1):
        out += by_digits(dim, 8)
    out += bytes(4 + 8)
    while len(out) % 32:
        out += b"\0"
    return out + bytes(n_bytes + 4 * row)


def _what_it_does(function, case):
    """The memory that was asked for; anything but a write past it is a finding."""
    found = ran(function, case)
    if found and found.asked.keys() - {"w"}:
        raise Finding("the file has another tensor than w", str(found))
    if found and found.harm != "write past a buffer":
        asked = f"{found.asked['w']:,} bytes asked for w" if "w" in found.asked else "nothing asked for w"
        raise Finding("the reader does not write past what it asked for", f"{found} ({asked})")
    return found and {"bytes asked for w": found.asked.get("w", 0)}


def cases(random):
    """Small sizes, the smallest and the largest, then random ones."""
    sizes = [16, 4, 64, 4096, *(4 * int(n) for n in random.integers(2, 900, 3))]
    return [(size,) for size in sizes]


EXERCISE = Exercise(
    goal="Make a file for which the reader computes a size that wraps around, and writes past what it asked for.",
    reference=wrapping_file, oracle=oracle, cases=cases, minutes=7, difficulty="core", observe=_what_it_does,
    hints=(
        "The reader multiplies all dims and then 4 bytes, and keeps 64 bits of it. It copies row by row, by the dims. So you need dims whose true size is 2**64 bytes more than `n_bytes`, in rows that are short.",
        "The first dim is the length of a row. With `info` you can give a row of one number, and any number of rows below 2**64. Data for one row more than `n_bytes` is enough.",
    ),
    why="the size that was asked for and the size that is copied are two different numbers: that is the whole vulnerability.",
    mistakes=(
        Mistake("an honest size", edit("2**62 + n_bytes // 4", "n_bytes // 4"),
            cause="The dims multiply to the size itself; nothing wraps around, and the reader asks for what it needs.",
            cure="Add 2**62 rows of 4 bytes: 2**64 bytes, of which 64 bits keep nothing.",
            see="no harm, and the right number of bytes asked for"),
        Mistake("32 bits", edit("2**62", "2**30"),
            cause="The size wraps around in 32 bits; this reader computes with 64, and asks for all of it.",
            cure="The true size must be 2**64 bytes more than `n_bytes`.",
            see="a huge allocation of a little more than 4,294,967,296 bytes"),
        Mistake("numbers taken for bytes", edit("n_bytes // 4", "n_bytes"),
            cause="The rows were counted in bytes, and each of them has 4.",
            cure="`n_bytes` bytes are `n_bytes // 4` numbers.",
            see="four times the bytes asked for"),
        Mistake("one long row", edit("(1, rows)", "(rows, 1)"),
            cause="The first dim is the length of a row in ggml: there is one row, longer than any file, and copying it leaves the file first.",
            cure="Give the row of one number first: `(1, rows)`.",
            see="read past the file where write past a buffer is expected"),
        Mistake("wrapped to nothing", edit("2**62 + n_bytes // 4", "2**62"),
            cause="The size wraps around to exactly 0.",
            cure="Add the rows that are to remain: `n_bytes // 4`.",
            see="0 bytes asked for"),
        Mistake("no data to write", edit("bytes(n_bytes + 4)", "bytes(n_bytes)"),
            cause="The data end where the buffer ends, so the next row is read past the file before anything is written past the buffer.",
            cure="Add the data of one more row, 4 bytes.",
            see="right bytes asked for, and read past the file"),
        Mistake("wrapped in numbers", edit("2**62 + n_bytes // 4", "2**64 - 1"),
            cause="2**64 - 1 rows of 4 bytes keep 2**64 - 4 of their bytes: nearly everything.",
            cure="Choose the rows so that 4 times them is 2**64 + n_bytes.",
            see="a huge allocation of 18,446,744,073,709,551,612 bytes"),
    ),
)
