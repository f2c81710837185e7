"""The exercises of lab 17 on two more parts of a GGUF file: dims, and where the data begins."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

import numpy as np

from ...core.errors import FormatError
from ...formats.gguf.read import padded
from ...lab.spec import Case, Exercise, Mistake
from .machine import U64
from .numbers import signed

# ---- read_dims -------------------------------------------------------------------------------------------------------


def read_dims(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """The reference: a file and a place in it -> the dims there, and the place behind them."""
    if at + 4 > len(data):
        raise FormatError("n_dims takes 4 bytes; the file is truncated", offset=at)
    (n_dims,) = struct.unpack_from("<I", data, at)
    if n_dims > 4:
        raise FormatError(f"found {n_dims} dims, 4 at most", offset=at)
    if at + 4 + 8 * n_dims > len(data):
        raise FormatError(f"{n_dims} dims take {8 * n_dims} bytes; the file is truncated", offset=at + 4)
    return struct.unpack_from(f"<{n_dims}Q", data, at + 4), at + 4 + 8 * n_dims


def read_dims_oracle(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """One byte after the other, from the front."""
    rest = list(data[at:])

    def take(size: int) -> int:
        if len(rest) < size:
            raise FormatError("the end")
        return sum(rest.pop(0) << 8 * place for place in range(size))

    n_dims = take(4)
    if n_dims not in (0, 1, 2, 3, 4):
        raise FormatError("too many")
    dims = tuple([take(8) for _ in range(n_dims)])
    return dims, len(data) - len(rest)


def _dims_cases(random: np.random.Generator) -> list[Case]:
    def said(n_dims: int, *dims: int) -> bytes:
        return struct.pack(f"<I{len(dims)}Q", n_dims, *dims)

    good = [(said(2, 64, 3), 0), (b"xy" + said(1, 5) + b"more", 2), (said(0), 0), (said(4, 1, 2, 3, 2**63), 0)]
    bad = [(said(5, 1, 2, 3, 4, 5), 0), (said(200, *range(200)), 0), (said(260, *range(260)), 0), (said(2**32 - 1), 0)]
    bad += [(said(2, 64), 0), (said(1, 5)[:-1], 0), (b"\x01\0", 0), (b"", 0), (b"xxxx" + said(1)[:4], 4)]
    drawn = [(said(3, *(int(d) for d in row)), 0) for row in random.integers(1, 2**40, (2, 3))]
    return [*good, *bad, *drawn]


def _dims(
    data: bytes,
    at: int,
    most: int = 4,
    *,
    leak: bool = False,
    zeros: bool = False,
    mask: int = U64,
    sign: bool = False,
    place: bool = True,
    reverse: bool = False,
) -> tuple[tuple[int, ...], int]:
    """Right unless told otherwise; each switch is a mistake."""

    def take(at: int, size: int) -> int:
        if at + size > len(data) and not zeros:
            raise struct.error("unpack requires more bytes") if leak else FormatError("refused")
        return int.from_bytes(data[at : at + size], "little")

    n_dims = take(at, 4) & mask
    if n_dims > most:
        raise FormatError("refused")
    dims = [take(at + 4 + 8 * d, 8) for d in range(n_dims)]
    dims = [signed(dim) for dim in dims] if sign else dims
    return tuple(dims[::-1] if reverse else dims), (at if place else 0) + 4 + 8 * n_dims


READ_DIMS = Exercise(
    name="read_dims",
    lab="17",
    goal="Read a tensor's dims, four at most, and refuse dims that are not there.",
    minutes=5,
    difficulty="core",
    reference=read_dims,
    oracle=read_dims_oracle,
    cases=_dims_cases,
    hints=(
        "First n_dims as a u32, if its four bytes are there; then its limit; then whether 8 bytes for each are there; "
        "then the dims.",
        '`struct.unpack_from(f"<{n_dims}Q", data, at + 4)` once everything is checked; the place behind them is '
        "`at + 4 + 8 * n_dims`.",
    ),
    why="a table with room for four dims holds four, whatever the file would like.",
    mistakes=(
        Mistake(
            "every file taken for honest",
            partial(_dims, most=2**32, leak=True),
            "This reads every honest file, and believes the others: any number of dims, and `struct.error` where they "
            "are not there.",
            "Check the four bytes, then the limit, then the bytes of the dims; each is a `FormatError`.",
            "struct.error, and more than four dims",
        ),
        Mistake(
            "no limit",
            partial(_dims, most=2**32),
            "As many dims are read as the file says; a reader that keeps them in a row of four writes over what "
            "stands behind.",
            "Refuse more than 4.",
            "five dims accepted",
        ),
        Mistake(
            "off by one",
            partial(_dims, most=3),
            "Four dims are the most that GGUF allows, and they are allowed.",
            "Refuse `n_dims > 4`.",
            "FormatError for four dims",
        ),
        Mistake(
            "the low byte alone",
            partial(_dims, mask=0xFF),
            "n_dims has four bytes, and only the first was looked at: 260 then looks like 4.",
            "Read it as `<I`.",
            "260 dims accepted as 4",
        ),
        Mistake(
            "zeros for what is not there",
            partial(_dims, zeros=True),
            "A slice at the end of the file is shorter than asked for, and `int.from_bytes` takes it for a number.",
            "Ask whether `at + 4 + 8 * n_dims > len(data)` first.",
            "dims of 0 in a truncated file",
        ),
        Mistake(
            "the wrong error",
            partial(_dims, leak=True),
            "`struct.error` came out; who calls you has to expect one error, not a list of them.",
            "Compare with `len(data)` before you unpack, and raise `FormatError`.",
            "struct.error",
        ),
        Mistake(
            "negative dims",
            partial(_dims, sign=True),
            "The dims were read as signed numbers.",
            "Read them as `Q`.",
            "-9223372036854775808 among the dims",
        ),
        Mistake(
            "the place behind them",
            partial(_dims, place=False),
            "The place behind the dims was counted from 0, and these stand at `at`.",
            "Return `at + 4 + 8 * n_dims`.",
            "right at 0, too small further behind",
        ),
        Mistake(
            "turned round",
            partial(_dims, reverse=True),
            "The dims were reversed; here they stay as the file has them.",
            "Return them in the order of the file.",
            "(3, 64) where (64, 3) is expected",
        ),
    ),
)

# ---- data_start ------------------------------------------------------------------------------------------------------


def data_start(position: int, alignment: int, file_size: int) -> int:
    """The reference: where the tensor infos end, the alignment, the file's size -> where the data begin."""
    if alignment == 0 or alignment & (alignment - 1):
        raise FormatError(f"found the alignment {alignment}, expected a power of two")
    start = padded(position, alignment)
    if start > file_size:
        raise FormatError(f"the data would begin at {start}, and the file has {file_size} bytes")
    return start


def data_start_oracle(position: int, alignment: int, file_size: int) -> int:
    """Powers are found by doubling, the start by walking."""
    power = 1
    while power < alignment:
        power += power
    if power != alignment:
        raise FormatError("no power of two")
    for start in range(position, file_size + 1):
        if start % alignment == 0:
            return start
    raise FormatError("behind the end")


def _start_cases(random: np.random.Generator) -> list[Case]:
    good = [(33, 32, 100), (64, 32, 100), (5, 1, 5), (24, 8, 24), (97, 32, 128), (40, 64, 64)]
    bad = [(64, 0, 100), (33, 24, 100), (10, 3, 100), (97, 32, 127), (33, 2**31, 100), (40, 48, 1000), (101, 1, 100)]
    drawn = [(int(p), 2 ** int(a), int(p) + 300) for p, a in random.integers(1, 9, (4, 2)) * (37, 1)]
    return [*good, *bad, *drawn]


def _start(
    position: int,
    alignment: int,
    file_size: int,
    bad: Any = lambda a: a == 0 or a & (a - 1),
    *,
    start: Any = padded,
    outside: Any = lambda start, size: start > size,
) -> int:
    """Right unless told otherwise; each switch is a mistake."""
    if bad(alignment):
        raise FormatError("refused")
    found = start(position, alignment)
    if outside(found, file_size):
        raise FormatError("refused")
    return found


DATA_START = Exercise(
    name="data_start",
    lab="17",
    goal="Find where the data begin: the next multiple of the alignment, if that is a power of two and in the file.",
    minutes=6,
    difficulty="core",
    reference=data_start,
    oracle=data_start_oracle,
    cases=_start_cases,
    hints=(
        "The alignment is a number of the file like any other: it may be 0. A power of two has a single bit set: "
        "`alignment & (alignment - 1)` is then 0.",
        "`-(-position // alignment) * alignment` is the next multiple; `position` itself if it is one. It may be the "
        "file's size, not more.",
    ),
    why="a division by a number from a file is a question that the file may answer with 0.",
    mistakes=(
        Mistake(
            "every file taken for honest",
            partial(_start, bad=lambda a: False, outside=lambda start, size: False),
            "This rounds up, and believes everything: an alignment of 0 or 24, and data behind the end.",
            "Refuse what is no power of two, then a start that is more than `file_size`.",
            "ZeroDivisionError, and 48 for an alignment of 24",
        ),
        Mistake(
            "divided by zero",
            partial(_start, bad=lambda a: a & (a - 1) if a else 0),
            "An alignment of 0 got as far as the division.",
            "Refuse 0 first.",
            "ZeroDivisionError",
        ),
        Mistake(
            "any alignment",
            partial(_start, bad=lambda a: a == 0),
            "Only 0 was refused, and a reader that rounds with bits goes astray with 24.",
            "Refuse what is no power of two: `alignment & (alignment - 1)`.",
            "an alignment of 24 accepted",
        ),
        Mistake(
            "multiples of 8",
            partial(_start, bad=lambda a: a == 0 or a % 8),
            "The specification says a multiple of 8, and llama.cpp's loader wants a power of two, as you do here.",
            "Refuse what is no power of two: `alignment & (alignment - 1)`.",
            "an alignment of 24 accepted, one of 1 refused",
        ),
        Mistake(
            "1 refused",
            partial(_start, bad=lambda a: a < 2 or a & (a - 1)),
            "1 is a power of two: the data then begin at once.",
            "Refuse 0 and what has more than one bit set.",
            "FormatError for an alignment of 1",
        ),
        Mistake(
            "one step too far",
            partial(_start, start=lambda p, a: (p // a + 1) * a),
            "A position that is a multiple already was moved to the next one.",
            "Round up: `-(-position // alignment) * alignment`.",
            "96 where 64 is expected",
        ),
        Mistake(
            "rounded down",
            partial(_start, start=lambda p, a: p // a * a),
            "The data would begin inside the tensor infos.",
            "Round up: `-(-position // alignment) * alignment`.",
            "32 where 64 is expected",
        ),
        Mistake(
            "the end not checked",
            partial(_start, outside=lambda start, size: False),
            "The data may begin behind the end of the file, and what is left for tensors is then negative.",
            "Refuse a start that is more than `file_size`.",
            "a start of 2**31 in 100 bytes accepted",
        ),
        Mistake(
            "the position checked",
            lambda position, alignment, file_size: _start(
                position, alignment, max(file_size, (position <= file_size) << 40)
            ),
            "You compared the position with the file's size, and it is the start after rounding that may lie outside.",
            "Round first, compare then.",
            "a start of 128 in 127 bytes accepted",
        ),
        Mistake(
            "off by one at the end",
            partial(_start, outside=lambda start, size: start >= size),
            "A file without tensors may end where its data would begin.",
            "Refuse only `start > file_size`.",
            "FormatError for a start at the end of the file",
        ),
    ),
)
