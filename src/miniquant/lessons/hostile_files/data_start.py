"""Where the data begin."""

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, edit, omit


def data_start(position, alignment, file_size):
    """Where the data begin.

    position: the first byte after the tensor infos; alignment: what the file says; file_size: in bytes
    ->   the next multiple of alignment, position itself included; or FormatError if alignment is no power of two, or
    the data would begin after the end of the file
    """
    if alignment == 0 or alignment & (alignment - 1):
        raise FormatError(f"the alignment is {alignment}, and it must be a power of two")
    start = -(-position // alignment) * alignment
    if start > file_size:
        raise FormatError(f"the data would begin at {start}, and the file has {file_size} bytes")
    return start


def oracle(position, alignment, file_size):
    """Powers are found by doubling, the start by walking."""
    power = 1
    while power < alignment:
        power += power
    if power != alignment:
        raise FormatError("no power of two")
    for start in range(position, file_size + 1):
        if start % alignment == 0:
            return start
    raise FormatError("after the end")


def cases(random):
    """Positions before and on a multiple, alignments that are none, starts beyond the end, then random ones."""
    good = [(33, 32, 100), (64, 32, 100), (5, 1, 5), (24, 8, 24), (97, 32, 128), (40, 64, 64)]
    bad = [(64, 0, 100), (33, 24, 100), (10, 3, 100), (97, 32, 127), (33, 2**31, 100), (40, 48, 1000), (101, 1, 100)]
    drawn = [(int(p), 2 ** int(a), int(p) + 300) for p, a in random.integers(1, 9, (4, 2)) * (37, 1)]
    return [*good, *bad, *drawn]


EXERCISE = Exercise(
    goal="Find where the data begin: the next multiple of the alignment, if that is a power of two and in the file.",
    reference=data_start, oracle=oracle, cases=cases, minutes=6, difficulty="core",
    hints=(
        "The alignment is a number of the file like any other: it may be 0. A power of two has a single bit set, and the number before it has all the bits below.",
        "`&` of the two is then 0. `//` rounds down, and of a negative number it rounds away from zero: so it can find the next multiple. It may be the file's size, not more.",
    ),
    why="a division by a number from a file is a question that the file may answer with 0.",
    mistakes=(
        Mistake("every file taken for honest", omit("if alignment").omit("if start >"),
            cause="This rounds up, and believes everything: an alignment of 0 or 24, and data after the end.",
            cure="Refuse what is no power of two, then a start that is more than `file_size`.",
            see="ZeroDivisionError, and 48 for an alignment of 24"),
        Mistake("divided by zero", edit("alignment == 0 or alignment", "alignment"),
            cause="An alignment of 0 got as far as the division.",
            cure="Refuse 0 first.", see="ZeroDivisionError"),
        Mistake("any alignment", edit(" or alignment & (alignment - 1)", ""),
            cause="Only 0 was refused, and a reader that rounds with bits goes astray with 24.",
            cure="Refuse what is no power of two: `alignment & (alignment - 1)`.", see="an alignment of 24 accepted"),
        Mistake("multiples of 8", edit("alignment & (alignment - 1)", "alignment % 8"),
            cause="The specification says a multiple of 8, and llama.cpp's loader wants a power of two, as you do here.",
            cure="Refuse what is no power of two: `alignment & (alignment - 1)`.",
            see="an alignment of 24 accepted, one of 1 refused"),
        Mistake("1 refused", edit("alignment == 0", "alignment < 2"),
            cause="1 is a power of two: the data then begin at once.",
            cure="Refuse 0 and what has more than one bit set.", see="FormatError for an alignment of 1"),
        Mistake("one step too far",
            edit("-(-position // alignment) * alignment", "(position // alignment + 1) * alignment"),
            cause="A position that is a multiple already was moved to the next one.",
            cure="Round up: `-(-position // alignment) * alignment`.", see="96 where 64 is expected"),
        Mistake("rounded down", edit("-(-position // alignment) * alignment", "position // alignment * alignment"),
            cause="The data would begin inside the tensor infos.",
            cure="Round up: `-(-position // alignment) * alignment`.", see="32 where 64 is expected"),
        Mistake("the end not checked", omit("if start >"),
            cause="The data may begin after the end of the file, and what is left for tensors is then negative.",
            cure="Refuse a start that is more than `file_size`.", see="a start of 2**31 in 100 bytes accepted"),
        Mistake("the position checked", edit("if start > file_size", "if position > file_size"),
            cause="You compared the position with the file's size, and it is the start after rounding that may lie outside.",
            cure="Round first, compare then.", see="a start of 128 in 127 bytes accepted"),
        Mistake("off by one at the end", edit("start > file_size", "start >= file_size"),
            cause="A file without tensors may end where its data would begin.",
            cure="Refuse only `start > file_size`.", see="FormatError for a start at the end of the file"),
    ),
)
