"""Where buffers begin in one block of memory."""

from ...lab import Exercise, Mistake, edit


def bump_offsets(sizes):
    """Where buffers begin in one block of memory.

    sizes: list of int from 0 on, in bytes; it may be empty
    ->  list of int: the offset of each buffer, then the size of the block.
        The first buffer is at 0. Each later one is at the end of the buffer
        before it, rounded up to a multiple of 64. The size is the end of
        the last buffer, rounded up in the same way; 0 without buffers
    """
    at, offsets = 0, []
    for size in sizes:
        offsets.append(at)
        at = -(-(at + size) // 64) * 64
    return [*offsets, at]


def oracle(sizes):
    """Counted in cache lines."""
    lines, found = 0, []
    for size in sizes:
        found.append(64 * lines)
        whole, rest = divmod(size, 64)
        lines += whole + (rest > 0)
    return [*found, 64 * lines]


def cases(random):
    """Sizes that need padding and sizes that need none, no buffer, an empty one, then random sizes."""
    made = [[100, 20, 64, 4], [64], [], [1, 1, 1], [128, 64, 192], [65, 63, 0, 7], [1024, 3072, 40]]
    made += [[2**24 + 1, 3], [3 * 2**30, 2**31 + 1, 100], [2**57 + 1, 5], [2**63, 2**63, 2**64 + 1, 7]]  # as large as a model, and larger
    made += [[0], [0, 0, 5], [0, 64, 0, 0, 1, 0]]
    return [(sizes,) for sizes in [*made, *(random.integers(1, 5000, n).tolist() for n in (3, 8, 20))]]


EXERCISE = Exercise(
    goal="Place buffers one after another, each at the next multiple of 64 bytes; the last number is the whole size.",
    reference=bump_offsets, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up",
    hints=(
        "Keep one number, where the next buffer begins. For each size: note it, add the size, round up to 64.",
        "`//` rounds down; of a negative number it rounds away from zero. So two minus signs round up, and a multiple of 64 stays as it is.",
    ),
    why="this is a whole allocator: one number that moves forward.",
    mistakes=(
        Mistake("not aligned", edit("-(-(at + size) // 64) * 64", "at + size"),
            cause="The buffers lie back to back, so most of them begin in the middle of a cache line.",
            cure="Round up to a multiple of 64 before the next one begins.", see="100 where 128 is expected"),
        Mistake("rounded down", edit("-(-(at + size) // 64) * 64", "(at + size) // 64 * 64"),
            cause="`n // 64 * 64` rounds down, and the next buffer then lies over the end of this one.",
            cure="Round up: `-(-n // 64) * 64`.", see="64 where 128 is expected"),
        Mistake("a line too many", edit("-(-(at + size) // 64) * 64", "((at + size) // 64 + 1) * 64"),
            cause="`(n // 64 + 1) * 64` moves on even if n is a multiple of 64 already.",
            cure="Use `-(-n // 64) * 64`, or add 63 before you divide.",
            see="right for 100, and 128 where 64 is expected"),
        Mistake("aligned as GGUF is", edit("// 64) * 64", "// 32) * 32"),
            cause="The multiple is 32, GGUF's; a cache line has 64 bytes.",
            cure="Round up to 64.", see="160 where 192 is expected"),
        Mistake("added up in 32 bits", edit("        offsets.append(at)", "        at &= 0xFFFFFFFF\n        offsets.append(at)"),
            cause="The offsets wrap around at 2**32, and a model may be larger than four gigabytes.",
            cure="Let Python's integers grow.", see="right for small buffers, 0 or less than before after large ones"),
        Mistake("in floating point", edit("-(-(at + size) // 64) * 64", "int(-(-(at + size) / 64 // 1)) * 64"),
            cause="The division made floats, which have 53 bits: huge sizes lose their last bytes.",
            cure="Round up with `//`.", see="right for all but huge sizes"),
        Mistake("counted in floats", edit("// 64) * 64", "// 16) * 16"),
            cause="The multiple is 16: that many floats fill a cache line, and these sizes are in bytes.",
            cure="Round up to 64.", see="112 where 128 is expected"),
        Mistake("the end not rounded", edit("[*offsets, at]", "[*offsets, offsets[-1] + sizes[-1] if sizes else 0]"),
            cause="The last number is where the last buffer ends, and the block has to end with a whole line.",
            cure="Round the last number up like the others.", see="everything right but the last number"),
        Mistake("no total", edit("[*offsets, at]", "offsets"),
            cause="The list says where each buffer begins, and not how much to allocate.",
            cure="Append where the next buffer would begin.", see="one number too few"),
        Mistake("the ends instead of the beginnings", edit(
                "offsets.append(at)\n        at = -(-(at + size) // 64) * 64",
                "at = -(-(at + size) // 64) * 64\n        offsets.append(at)",
            ),
            cause="Each number was noted after the size was added.",
            cure="Note where a buffer begins first, then move on.", see="the first number is not 0"),
        Mistake("each size rounded alone", edit("-(-(at + size) //", "-(-size //"),
            cause="These are the rounded sizes; an offset is the sum of all rounded sizes before it.",
            cure="Add each rounded size to a running total.",
            see="right for the first two, too small from the third on"),
    ),
)
