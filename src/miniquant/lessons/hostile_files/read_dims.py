"""Four dims at most."""

import struct

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, body, edit, omit


def read_dims(data, at):
    """The dims at byte `at` of a GGUF file.

    data: the whole file, bytes; at: where n_dims (u32) begins, then n_dims dims (u64 each)
    ->   (the dims as a tuple, the place after them); or FormatError if there are more than four, or not all are there
    """
    if at + 4 > len(data):
        raise FormatError("n_dims is not there", offset=at)
    (n_dims,) = struct.unpack_from("<I", data, at)
    if n_dims > 4:
        raise FormatError(f"{n_dims} dims, 4 at most", offset=at)
    end = at + 4 + 8 * n_dims
    if end > len(data):
        raise FormatError("not all dims are there", offset=at + 4)
    return struct.unpack_from(f"<{n_dims}Q", data, at + 4), end


def oracle(data, at):
    """One byte after the other, from the front."""
    rest = list(data[at:])

    def take(size):
        if len(rest) < size:
            raise FormatError("the end")
        return sum(rest.pop(0) << 8 * place for place in range(size))

    n_dims = take(4)
    if n_dims not in (0, 1, 2, 3, 4):
        raise FormatError("too many")
    dims = tuple([take(8) for _ in range(n_dims)])
    return dims, len(data) - len(rest)


def cases(random):
    """Dims that are there, too many, dims that are not there, then random ones."""

    def said(n_dims, *dims):
        return struct.pack(f"<I{len(dims)}Q", n_dims, *dims)

    good = [(said(2, 64, 3), 0), (b"xy" + said(1, 5) + b"more", 2), (said(0), 0), (said(4, 1, 2, 3, 2**63), 0)]
    bad = [(said(5, 1, 2, 3, 4, 5), 0), (said(200, *range(200)), 0), (said(260, *range(260)), 0), (said(2**32 - 1), 0)]
    bad += [(said(2, 64), 0), (said(1, 5)[:-1], 0), (b"\x01\0", 0), (b"", 0), (b"xxxx" + said(1)[:4], 4)]
    drawn = [(said(3, *(int(d) for d in row)), 0) for row in random.integers(1, 2**40, (2, 3))]
    return [*good, *bad, *drawn]


EXERCISE = Exercise(
    goal="Read a tensor's dims, four at most, and refuse dims that are not there.",
    reference=read_dims, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "First n_dims as a u32, if its four bytes are there; then its limit; then whether 8 bytes for each are there; then the dims.",
        "An f-string gives `struct.unpack_from` a format with as many `Q` as there are dims. The place after them is 4 bytes and 8 for each dim further on.",
    ),
    why="a table with room for four dims holds four, whatever the file would like.",
    mistakes=(
        Mistake("every file taken for honest", omit("if at + 4").omit("if n_dims > 4").omit("if end >"),
            cause="This reads every honest file, and believes the others: any number of dims, and `struct.error` where they are not there.",
            cure="Check the four bytes, then the limit, then the bytes of the dims; each is a `FormatError`.",
            see="struct.error, and more than four dims"),
        Mistake("no limit", omit("if n_dims > 4"),
            cause="As many dims are read as the file says; a reader that keeps them in a row of four writes over what comes after the row.",
            cure="Refuse more than 4.", see="five dims accepted"),
        Mistake("off by one", edit("n_dims > 4", "n_dims > 3"),
            cause="Four dims are the most that GGUF allows, and they are allowed.",
            cure="Refuse `n_dims > 4`.", see="FormatError for four dims"),
        Mistake("the low byte alone", edit("    if n_dims > 4", "    n_dims &= 0xFF\n    if n_dims > 4"),
            cause="n_dims has four bytes, and only the first was looked at: 260 then looks like 4.",
            cure="Read it as `<I`.", see="260 dims accepted as 4"),
        Mistake("zeros for what is not there", body("""
                n_dims = int.from_bytes(data[at : at + 4], "little")
                if n_dims > 4:
                    raise FormatError(f"{n_dims} dims, 4 at most", offset=at)
                places = range(at + 4, at + 4 + 8 * n_dims, 8)
                return tuple(int.from_bytes(data[place : place + 8], "little") for place in places), at + 4 + 8 * n_dims
            """),
            cause="A slice at the end of the file is shorter than asked for, and `int.from_bytes` takes it for a number.",
            cure="Ask whether `at + 4 + 8 * n_dims > len(data)` first.", see="dims of 0 in a truncated file"),
        Mistake("the wrong error", omit("if at + 4").omit("if end >"),
            cause="`struct.error` came out; who calls you has to expect one error, not a list of them.",
            cure="Compare with `len(data)` before you unpack, and raise `FormatError`.", see="struct.error"),
        Mistake("negative dims", edit("}Q", "}q"),
            cause="The dims were read as signed numbers.",
            cure="Read them as `Q`.", see="-9223372036854775808 among the dims"),
        Mistake("the place after them", edit("at + 4), end", "at + 4), end - at"),
            cause="The place after the dims was counted from 0, and these stand at `at`.",
            cure="Return `at + 4 + 8 * n_dims`.", see="right at 0, too small further on"),
        Mistake("reversed", edit("data, at + 4), end", "data, at + 4)[::-1], end"),
            cause="The dims were reversed; here they stay as the file has them.",
            cure="Return them in the order of the file.", see="(3, 64) where (64, 3) is expected"),
    ),
)
