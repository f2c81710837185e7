"""The table of types."""

import struct

from ...lab import Exercise, Mistake, edit, omit
from ..shared.by_hand import by_digits


def bump_types(kinds):
    """The table of types.

    kinds: list of int, ggml's numbers
    ->  bytes: how many as a little-endian u32, then bump's number of each,
        a byte

    Raises ValueError for a type that has no number in bump.
    """
    codes = {0: 0, 30: 1, 1: 2, 2: 5, 12: 6, 14: 7, 8: 8, 15: 9}
    unknown = [kind for kind in kinds if kind not in codes]
    if unknown:
        raise ValueError(f"bump has no number for the types {unknown}")
    return struct.pack("<I", len(kinds)) + bytes(codes[kind] for kind in kinds)


_BY_NUMBER = {0: 0, 30: 1, 1: 2, 2: 5, 12: 6, 14: 7, 8: 8, 15: 9}  # ggml's code -> bump's


def oracle(kinds):
    """By a table of numbers alone."""
    out = by_digits(len(kinds), 4)
    for kind in kinds:
        if kind not in _BY_NUMBER:
            raise ValueError(f"bump has no number for ggml's type {kind}")
        out += by_digits(_BY_NUMBER[kind], 1)
    return out


def fields(kinds):
    """The count, then a byte for each."""
    return [("the count", 0, 4), *((f"the type of tensor {i}", 4 + i, 5 + i) for i in range(len(kinds)))]


def cases(random):
    """Types that bump has, none, types that it does not have, then random ones."""
    made = [[12, 14, 0], [8, 0, 0, 8], [], [0], [2, 1, 30, 15], [3], [12, 10, 0], [8, 13]]
    made += [[kind] for kind in (*range(3, 12), *range(16, 30), *range(31, 42), 99, 256, 1000, -1) if kind != 8]
    made.append([0, 12 + 256])
    drawn = [random.choice(list(_BY_NUMBER), n).tolist() for n in (5, 300)]
    return [(kinds,) for kinds in [*made, *drawn]]


EXERCISE = Exercise(
    goal="Write the table of types: a u32 count, then bump's code of each tensor; refuse a type that has none.",
    reference=bump_types, oracle=oracle, cases=cases, minutes=5, difficulty="core", fields=fields,
    hints=(
        "Make a dict from ggml's numbers to bump's, by the two columns on this page.",
        '`struct.pack` makes the count, and `bytes` of a list of small integers makes a byte of each. A dict raises KeyError for what is not in it, so ask with `in` first.',
    ),
    why="two formats may call the same blocks by different numbers, and only a table can tell.",
    mistakes=(
        Mistake("ggml's codes", edit("codes[kind] for kind in kinds", "kinds"),
            cause="ggml's numbers were written as they are, so Q4_K is 12, and a bump reader knows no type 12.",
            cure="Translate each code by the table: Q4_K is 6.", see="`0c` where `06` is expected"),
        Mistake("half floats exchanged", edit("30: 1, 1: 2", "30: 2, 1: 1"),
            cause="F16 became 1 and BF16 became 2, and in bump it is the other way round.",
            cure="BF16 is 1, FP16 is 2.", see="`01` where `02` is expected"),
        Mistake("Q8_0 and Q8_K exchanged", edit("8: 8, 15: 9", "8: 9, 15: 8"),
            cause="Q8_0 became 9, which is Q8_K.",
            cure="Q8_0 is 8 in both formats.", see="`09` where `08` is expected"),
        Mistake("an unknown type as FP32", omit("if unknown").edit("codes[kind]", "codes.get(kind, 0)"),
            cause="A type without a code became FP32, and a reader will take its blocks for floats.",
            cure="Raise ValueError if a code is not in your dict.", see="no error for Q4_1"),
        Mistake("Q5_0 taken for Q4_0", edit("15: 9}", "15: 9, 6: 5}"),
            cause="Q5_0 got the number of Q4_0, and its blocks are others.",
            cure="Raise ValueError for each type that the table does not have.", see="5 for the type 6"),
        Mistake("a KeyError", omit("if unknown"),
            cause="A dict refuses what is not in it by itself, with a KeyError, and a caller waits for a ValueError.",
            cure="Look whether all kinds are in your dict first, and raise ValueError if not.",
            see="KeyError for Q4_1"),
        Mistake("an unknown type left out", edit(
                'raise ValueError(f"bump has no number for the types {unknown}")',
                "kinds = [kind for kind in kinds if kind in codes]",
            ),
            cause="A type without a code was skipped, so every type after it belongs to the tensor before.",
            cure="Raise ValueError if a code is not in your dict.",
            see="no error for Q4_1, and a count that is one too small"),
        Mistake("no count", edit('struct.pack("<I", len(kinds)) + ', ""),
            cause="The codes begin at once, and a reader does not know how many there are.",
            cure="Put the count in front, as a u32.", see="a file that is four bytes too short"),
        Mistake("64-bit count", edit("<I", "<Q"),
            cause="The count takes eight bytes, as in GGUF, and here four.",
            cure="Pack the count as `I`.", see="`00 00 00 00` in bytes 4 to 7"),
        Mistake("four bytes for a type",
            edit("bytes(codes[kind] for kind in kinds)", 'b"".join(struct.pack("<I", codes[kind]) for kind in kinds)'),
            cause="Each code takes four bytes, as in GGUF, and here one.",
            cure="Write one byte for each.", see="three zeros after each code"),
        Mistake("the count counts bytes", edit("len(kinds)", "len(kinds) + 4"),
            cause="The count includes its own four bytes; it counts tensors.",
            cure="Write `len(kinds)`.", see="a count that is four too large"),
    ),
)
