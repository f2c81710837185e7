"""The exercises of lab 12: five predicates, each the heart of a claim about exported files."""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np

from ...lab.spec import Case, Exercise
from ...models.export import GGUFQuantization, ModelMetadata, ModelWeights, export_metadata
from . import bits_mistakes as lab12_bits_mistakes
from . import mistakes as lab12_mistakes

# ---- magic_and_version -----------------------------------------------------------------------------------------------


def magic_and_version(data: bytes) -> bool:
    """The reference: do the bytes of a file begin with the magic and version 3?"""
    return data[:8] == struct.pack("<4sI", b"GGUF", 3)


def _magic_cases(random: np.random.Generator) -> list[Case]:
    counts = bytes(16)
    starts = ["GGUF\3\0\0\0", "GGUF\2\0\0\0", "GGUF\4\0\0\0", "GGUF\0\0\0\3", "TFLG\3\0\0\0", "gguf\3\0\0\0"]
    starts += ["FUGG\3\0\0\0", "GGUF\3\1\0\0", "GGUF\3\0\0\1", "GGUF\3\0\1\0", " GGUF\3\0\0\0", "GGML\3\0\0\0"]
    made = [(start.encode() + counts,) for start in starts]
    short = [(b"GGUF\3\0\0\0",), (b"GGUF\3\0\0",), (b"GGUF",), (b"GG",), (b"",)]
    drawn = [(b"GGUF\3\0\0\0" + random.bytes(20),), (b"GGUF" + random.bytes(24),), (random.bytes(28),)]
    return [*made, *short, *drawn]


MAGIC_AND_VERSION = Exercise(
    name="magic_and_version",
    lab="12",
    goal="Say whether the bytes of a file begin with the magic `GGUF` and version 3 as a little-endian u32.",
    minutes=5,
    difficulty="warm-up",
    reference=magic_and_version,
    oracle=lambda data: list(data[:8]) == [0x47, 0x47, 0x55, 0x46, 3, 0, 0, 0],
    cases=_magic_cases,
    hints=(
        "A predicate returns `True` or `False`, for bad files too: a file of two bytes is no reason to raise an error.",
        "Compare `data[:4]` with the magic and `data[4:8]` with version 3 as four bytes; a slice never raises.",
    ),
    why="it says False to a bad file as surely as True to a good one, and only such a test can falsify anything.",
    mistakes=lab12_mistakes.MAGIC_AND_VERSION,
)

# ---- expected_keys ---------------------------------------------------------------------------------------------------


def expected_keys(about: ModelMetadata, quantized: bool, include: bool) -> int:
    """The reference: how many keys an exported file has, from the keys that the exporter writes."""
    if not include:
        return int(quantized)
    return len(export_metadata(ModelWeights({}, about), GGUFQuantization.NONE))


def _keys_oracle(about: ModelMetadata, quantized: bool, include: bool) -> int:
    count = 0
    if include:
        count += 2
        for field in ("architecture", "model_name", "hidden_size", "num_layers", "vocab_size"):
            if getattr(about, field) is not None:
                count += 1
    elif quantized:
        count = 1
    return count


def _keys_cases(random: np.random.Generator) -> list[Case]:
    nothing = ModelMetadata()
    named = ModelMetadata("gpt2", "tiny")
    whole = ModelMetadata("gpt2", "tiny", 1000, 64, 2, 256)
    odd = ModelMetadata("gpt2", "", None, 0, 0, 0)
    trained = ModelMetadata("llama", None, 7, 32, None, None, {"epochs": 3})
    made = [(about, q, i) for about in (nothing, named, whole, odd, trained) for i in (True, False) for q in (0, 1)]
    drawn = [
        (ModelMetadata("gpt2", *(int(n) if keep else None for n, keep in zip(values, kept))), bool(kept[0]), True)
        for values, kept in zip(random.integers(1, 99, (4, 4)), random.integers(0, 2, (4, 4)))
    ]
    drawn = [(ModelMetadata("gpt2", None, *(about.num_params, about.hidden_size)), q, i) for about, q, i in drawn]
    return [(about, bool(q), i) for about, q, i in (*made, *drawn)]


EXPECTED_KEYS = Exercise(
    name="expected_keys",
    lab="12",
    goal="Return how many keys an exported file must have, given what is known about the model.",
    minutes=10,
    difficulty="core",
    reference=expected_keys,
    oracle=_keys_oracle,
    cases=_keys_cases,
    hints=(
        "Two keys stand in every file with metadata; five more stand there if their field is not `None`.",
        "Return `int(quantized)` without metadata; otherwise 2 and one for each of `architecture`, `model_name`, "
        "`hidden_size`, `num_layers` and `vocab_size` that `is not None`.",
    ),
    why="the document's own formula fails here, and yours says what is true of every file.",
    mistakes=lab12_mistakes.EXPECTED_KEYS,
)

# ---- names_in_order --------------------------------------------------------------------------------------------------


def names_in_order(names: list[str]) -> bool:
    """The reference: does each name stand before the next?"""
    return all(a < b for a, b in pairwise(names))


def _order_oracle(names: list[str]) -> bool:
    codes = [[ord(letter) for letter in name] for name in names]
    return not any(codes[at] <= codes[at - 1] for at in range(1, len(codes)))


def _order_cases(random: np.random.Generator) -> list[Case]:
    made = [
        ["a", "b", "c"],
        ["b", "a"],
        [],
        ["a"],
        ["a", "c", "b"],
        ["a", "c", "b", "d"],
        ["b", "a", "c"],
        ["a", "b", "b", "c"],
        ["blk.1", "blk.10", "blk.2"],
        ["blk.1", "blk.2", "blk.10"],
        ["Z", "a"],
        ["a", "Z"],
        ["aa", "b"],
        ["b", "aa"],
        ["a", "ab", "b"],
        ["z", "é"],
    ]
    drawn = [["".join(chr(c) for c in random.integers(97, 123, 3)) for _ in range(4)] for _ in range(4)]
    return [(names,) for names in (*made, *drawn, *(sorted(names) for names in drawn))]


NAMES_IN_ORDER = Exercise(
    name="names_in_order",
    lab="12",
    goal="Say whether the names of a file's tensors stand in ascending order, none of them twice.",
    minutes=5,
    difficulty="core",
    reference=names_in_order,
    oracle=_order_oracle,
    cases=_order_cases,
    hints=(
        "Compare each name with its neighbour: Python's `<` on strings is the order that is meant.",
        "`all(a < b for a, b in pairwise(names))`, with `pairwise` from `itertools`; an empty list is in order.",
    ),
    why="it looks at every pair of neighbours, and one pair in the wrong order is enough to falsify the claim.",
    mistakes=lab12_mistakes.NAMES_IN_ORDER,
)

# ---- sizes_fall ------------------------------------------------------------------------------------------------------


def sizes_fall(sizes: dict[str, int]) -> bool:
    """The reference: is Q4_0 smaller than Q8_0, and Q8_0 smaller than F32?"""
    return sizes["Q4_0"] < sizes["Q8_0"] < sizes["F32"]


def _sizes_cases(random: np.random.Generator) -> list[Case]:
    made = [(18, 34, 128), (64, 64, 128), (32, 64, 64), (96, 96, 96), (128, 34, 18), (34, 18, 128), (18, 128, 34)]
    made += [(20, 60, 10), (1, 2, 3), (40, 30, 35), (30, 35, 33)]
    drawn = [sorted(map(int, row)) for row in random.integers(1, 10**6, (3, 3))]
    named = [dict(zip(("Q4_0", "Q8_0", "F32"), row)) for row in (*made, *drawn)]
    return [(sizes,) for sizes in named] + [({name: named[0][name] for name in ("F32", "Q4_0", "Q8_0")},)]


SIZES_FALL = Exercise(
    name="sizes_fall",
    lab="12",
    goal="Say whether the file with Q4_0 is smaller than that with Q8_0, and that one smaller than the one with F32.",
    minutes=3,
    difficulty="warm-up",
    reference=sizes_fall,
    oracle=lambda sizes: sizes["Q8_0"] - sizes["Q4_0"] > 0 and sizes["F32"] - sizes["Q8_0"] > 0,
    cases=_sizes_cases,
    hints=(
        "Smaller means smaller: two files of one size falsify the claim.",
        'Python chains comparisons: `a < b < c`; look each size up by its name, such as `sizes["Q4_0"]`.',
    ),
    why="equal sizes count as a counter-example, and they are the ones that falsify the claim in a moment.",
    mistakes=lab12_bits_mistakes.SIZES_FALL,
)

# ---- bits_survive ----------------------------------------------------------------------------------------------------


def bits_survive(before: np.ndarray, after: np.ndarray) -> bool:
    """The reference: the same type, the same shape, and the same bits in each number."""
    return before.dtype == after.dtype and before.shape == after.shape and before.tobytes() == after.tobytes()


def _bits_oracle(before: np.ndarray, after: np.ndarray) -> bool:
    if (before.dtype, before.shape) != (after.dtype, after.shape):
        return False
    for a, b in zip(before.flat, after.flat):
        if struct.pack("<I", int(a.view(np.uint32))) != struct.pack("<I", int(b.view(np.uint32))):
            return False
    return True


def _bits_cases(random: np.random.Generator) -> list[Case]:
    def bits(*words: int) -> np.ndarray:
        return np.array(words, np.uint32).view(np.float32)

    def floats(*values: float) -> np.ndarray:
        return np.array(values, np.float32)

    one, ramp = floats(1, 2, 3), np.arange(6, dtype=np.float32)
    drawn = random.normal(size=(3, 4)).astype(np.float32)
    flipped = drawn.view(np.uint32).copy()
    flipped[1, 2] ^= 1
    return [
        (one, one.copy()),
        (one, floats(1, 2, 4)),
        (floats(0.0), floats(-0.0)),
        (bits(0x7FC00000), bits(0x7FC00000)),
        (bits(0x7FC00000), bits(0x7FC00001)),
        (floats(np.inf, -np.inf), floats(np.inf, -np.inf)),
        (floats(1), bits(0x3F800001)),
        (ramp.reshape(2, 3), ramp.reshape(3, 2)),
        (ramp.reshape(2, 3), ramp.reshape(2, 3).copy()),
        (floats(1, 1, 1), floats(1)),
        (one, one[::-1].copy()),
        (one, one.astype(np.float64)),
        (floats(), floats()),
        (drawn, drawn.copy()),
        (drawn, flipped.view(np.float32)),
    ]


BITS_SURVIVE = Exercise(
    name="bits_survive",
    lab="12",
    goal="Say whether an array came back with the same type, the same shape and the same bits, NaN and -0.0 included.",
    minutes=8,
    difficulty="core",
    reference=bits_survive,
    oracle=_bits_oracle,
    cases=_bits_cases,
    hints=(
        "`==` compares values: NaN equals nothing, itself included, and -0.0 equals 0.0.",
        "Compare the two `dtype`s, the two `shape`s, and what `tobytes()` gives for each array.",
    ),
    why="bits have no exceptions, so your claim covers NaN, which the document leaves out.",
    mistakes=lab12_bits_mistakes.BITS_SURVIVE,
)

EXERCISES = [MAGIC_AND_VERSION, EXPECTED_KEYS, NAMES_IN_ORDER, SIZES_FALL, BITS_SURVIVE]
