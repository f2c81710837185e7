"""Where each tensor begins."""

from ...lab import Exercise, Mistake, edit


def aligned_offsets(sizes, alignment):
    """Where each tensor begins, in bytes from the start of the data.

    sizes: list of integers from 0 to 2**40, the bytes of each tensor, at
        most 1,000 of them; alignment: an integer from 1 to 65,536
    ->   list of offsets, one for each tensor, [] if there is none; the
         first is 0, each is a multiple of alignment, each tensor as soon as
         possible after the one before it; the tensor after one of 0 bytes
         has the same offset as that one
    """
    offsets, at = [], 0
    for size in sizes:
        offsets.append(at)
        at += size + -size % alignment
    return offsets


def oracle(sizes, alignment):
    """Byte by byte: step on until a tensor may begin."""
    found, at = [], 0
    for size in sizes:
        while at % alignment:
            at += 1
        found.append(at)
        at += size
    return found


def cases(random):
    """Sizes that need padding and sizes that need none, other alignments, then random sizes."""
    made = [
        ([12, 18, 34], 32),
        ([32, 64, 32], 32),
        ([], 32),
        ([0], 32),
        ([1, 1, 1, 1], 32),
        ([100, 100, 100], 64),
        ([40, 8, 40], 8),
        ([0, 5, 0, 20, 48, 1], 24),
        ([3, 0, 1, 0], 1),
        ([50, 3, 90], 48),
        ([9, 9, 9, 30], 10),
        ([3, 4, 1], 2),
        ([2**31 - 5, 2**32, 2**32 + 1, 2**40 - 3, 2**40, 7], 32),
        ([2**20 + 1, 2**28 + 1, 2**33 + 1, 4], 65_536),
    ]
    return [*made, *((random.integers(1, 500, n).tolist(), alignment) for n, alignment in ((6, 32), (6, 16), (1000, 128)))]


def traits(sizes, alignment):
    """What is special about the sizes."""
    before = sizes[:-1]  # the last size moves nothing
    return {
        "the alignment is not 32": alignment != 32,
        "the alignment is no power of two": alignment & (alignment - 1) != 0,
        "there are no tensors": not sizes,
        "there is only one tensor": len(sizes) == 1,
        "a size before the last is a multiple of the alignment": any(size % alignment == 0 for size in before),
        "a size before the last is not a multiple of the alignment": any(size % alignment for size in before),
        "a size before the last is larger than the alignment": any(size > alignment for size in before),
        "a size is 0": 0 in sizes,
        "the sizes are not in increasing order": sizes != sorted(sizes),
    }


EXERCISE = Exercise(
    goal="Give every tensor a place: one after another, each at a multiple of the alignment.",
    reference=aligned_offsets, oracle=oracle, cases=cases, minutes=4, difficulty="core", traits=traits,
    hints=(
        "Keep a position. Note it for the tensor, add the tensor's size, and move on to the next multiple of the alignment.",
        "`%` gives the rest of a division. In Python `-12 % 32` is 20 and `-32 % 32` is 0: how far it is to the next multiple.",
    ),
    why="llama.cpp maps the file into memory and computes from it, so a tensor's place in the file is its place in memory.",
    mistakes=(
        Mistake("back to back", edit(" + -size % alignment", ""),
            cause="The tensors lie back to back, as in GGUF-lite, and llama.cpp refuses an offset that is not aligned.",
            cure="Pad the size of each tensor up to a multiple of the alignment.",
            see="an offset that is no multiple of the alignment"),
        Mistake("padding where none is needed", edit("-size % alignment", "alignment - size % alignment"),
            cause="A size that is a multiple already was padded by a whole alignment more.",
            cure="Use `-size % alignment`, which is 0 for a multiple, rather than `alignment - size % alignment`.",
            see="right for odd sizes, a gap after sizes that are multiples"),
        Mistake("rounded down", edit("size + -size % alignment", "size // alignment * alignment"),
            cause="Each size was rounded down, so a tensor begins before the one before it ends.",
            cure="Round up.", see="several tensors with the same offset"),
        Mistake("32 whatever the alignment", edit("% alignment", "% 32"),
            cause="The alignment was taken for 32, and a file may say another one.",
            cure="Use the argument.", see="right for 32 and wrong for 64"),
        Mistake("padding forgotten on the way",
            edit("append(at)", "append(at + -at % alignment)").edit("size + -size % alignment", "size"),
            cause="Each offset was rounded up by itself, but the position after it goes on without the padding.",
            cure="Add the padding to the position, not only to the offset.",
            see="the first two offsets right, later ones too small"),
        Mistake("ends instead of beginnings", edit(
                "offsets.append(at)\n        at += size + -size % alignment",
                "at += size + -size % alignment\n        offsets.append(at)",
            ),
            cause="The list holds where each tensor ends, and an offset says where it begins.",
            cure="Note the position before you add the size.", see="no 0 at the start, and every offset one tensor late"),
        Mistake("counted in multiples", edit("append(at)", "append(at // alignment)"),
            cause="The offsets are counted in units of the alignment, and the format counts bytes.",
            cure="Multiply by the alignment.", see="0, 1, 2 where 0, 32, 64 are expected"),
    ),
)
