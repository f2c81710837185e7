"""What students write instead in lab 12 when they judge headers, keys and names, and what the checks then say."""

from __future__ import annotations

import re
import struct
from itertools import pairwise

from ...lab.spec import Mistake
from ...models.export import ModelMetadata

# ---- magic_and_version -----------------------------------------------------------------------------------------------


def _asserts(data: bytes) -> bool:
    assert data[:8] == b"GGUF\3\0\0\0"
    return True


MAGIC_AND_VERSION = (
    Mistake(
        "the magic alone",
        lambda data: data[:4] == b"GGUF",
        "Only the four letters are compared, so a file of version 2 passes.",
        "Compare bytes 4 to 7 with version 3 as well.",
        "`True` for a file of another version",
    ),
    Mistake(
        "the version alone",
        lambda data: data[4:8] == b"\3\0\0\0",
        "Only the version is compared, so any file with a 3 in byte 4 passes.",
        'Compare the first four bytes with `b"GGUF"` as well.',
        "`True` for a file with another magic",
    ),
    Mistake(
        "the lowest byte of the version",
        lambda data: data[:4] == b"GGUF" and data[4:5] == b"\3",
        "The version is a number of four bytes, and only the first of them is compared.",
        "Compare all of `data[4:8]`.",
        "`True` for version 259, whose lowest byte is 3",
    ),
    Mistake(
        "big-endian",
        lambda data: data[:8] == b"GGUF\0\0\0\3",
        "The version was looked for with its highest byte first.",
        "Numbers in GGUF are little-endian: 3 is `03 00 00 00`.",
        "`False` for a good file",
    ),
    Mistake(
        "any newer version too",
        lambda data: len(data) >= 8 and data[:4] == b"GGUF" and struct.unpack("<I", data[4:8])[0] >= 3,
        "Versions above 3 pass, and nobody knows yet what they look like.",
        "Compare with `== 3`.",
        "`True` for version 4",
    ),
    Mistake(
        "somewhere in the file",
        lambda data: b"GGUF\3\0\0\0" in data,
        "`in` finds the eight bytes anywhere, and a file has to begin with them.",
        "Compare the slice `data[:8]`, or use `startswith`.",
        "`True` for a file with something in front of the magic",
    ),
    Mistake(
        "an error for a short file",
        lambda data: data[:4] == b"GGUF" and struct.unpack_from("<I", data, 4)[0] == 3,
        "`struct.unpack_from` raises an error where fewer than eight bytes are left, and a predicate must answer.",
        "Compare slices, which never raise, or look at `len(data)` first.",
        "`struct.error` for a file of four bytes",
    ),
    Mistake(
        "small letters too",
        lambda data: data[:4].upper() == b"GGUF" and data[4:8] == b"\3\0\0\0",
        "The letters were made large before they were compared, so `gguf` passes.",
        "Compare the bytes as they are.",
        "`True` for `gguf`",
    ),
    Mistake(
        "an assertion",
        _asserts,
        "`assert` raises an error for a bad file, and a predicate says False.",
        "Return the comparison itself.",
        "`AssertionError` for a bad file",
    ),
)

# ---- expected_keys ---------------------------------------------------------------------------------------------------


def _given(about: ModelMetadata, *more: str, leave_out: str = "") -> int:
    fields = ("architecture", "model_name", "hidden_size", "num_layers", "vocab_size", *more)
    return sum(getattr(about, field) is not None for field in fields if field != leave_out)


EXPECTED_KEYS = (
    Mistake(
        "the document's formula",
        lambda about, quantized, include: 1 + _given(about, leave_out="vocab_size") if include else 0,
        "This is the formula of the document, which knows neither `general.quantization_version` nor the vocabulary.",
        "Count 2 keys for every file with metadata, and `vocab_size` among the fields.",
        "one key too few for a file with metadata",
    ),
    Mistake(
        "nothing without metadata",
        lambda about, quantized, include: 2 + _given(about) if include else 0,
        "A quantized file needs its version key, whatever else is left out.",
        "Return `int(quantized)` where `include` is False.",
        "`0` for a quantized file without metadata",
    ),
    Mistake(
        "a version key for quantized files only",
        lambda about, quantized, include: 1 + quantized + _given(about) if include else int(quantized),
        "With metadata, this exporter writes `general.quantization_version` into every file, F32 included.",
        "Add 2 where `include` is True, whether quantized or not.",
        "one key too few for F32 with metadata",
    ),
    Mistake(
        "the version key everywhere",
        lambda about, quantized, include: 2 + _given(about) if include else 1,
        "A file without metadata has the version key only if it has quantized tensors.",
        "Return `int(quantized)` where `include` is False.",
        "`1` for F32 without metadata",
    ),
    Mistake(
        "zero counts as unknown",
        lambda about, quantized, include: (
            2
            + sum(map(bool, (about.architecture, about.model_name)))
            + sum(map(bool, (about.hidden_size, about.num_layers, about.vocab_size)))
            if include
            else int(quantized)
        ),
        "`if value` drops 0 and the empty text, and both are known values that are written.",
        "Ask `is not None`.",
        "fewer keys where a size is 0 or a name is empty",
    ),
    Mistake(
        "the parameter count only if it is stated",
        lambda about, quantized, include: 1 + _given(about, "num_params") if include else int(quantized),
        "`general.parameter_count` is always written, because the exporter counts the weights where nobody says.",
        "Leave `num_params` out of the fields, and add 2.",
        "one key too few where `num_params` is `None`",
    ),
    Mistake(
        "the parameter count twice",
        lambda about, quantized, include: 2 + _given(about, "num_params") if include else int(quantized),
        "`num_params` was counted among the fields, and again among the two keys that are always there.",
        "Leave `num_params` out of the fields.",
        "one key too many where `num_params` is known",
    ),
    Mistake(
        "every field that is not None",
        lambda about, quantized, include: 2 + _given(about, "training") if include else int(quantized),
        "`training` is for people: it is an empty dict, not `None`, and GGUF has no key for it.",
        "Name the five fields that have a key.",
        "one key too many for every file with metadata",
    ),
    Mistake(
        "no vocabulary",
        lambda about, quantized, include: 2 + _given(about, leave_out="vocab_size") if include else int(quantized),
        "`vocab_size` has a key of its own, and the document's list does not have it.",
        "Add `vocab_size` to the fields.",
        "one key too few where `vocab_size` is known",
    ),
    Mistake(
        "the quantized key added again",
        lambda about, quantized, include: int(quantized) + (2 + _given(about) if include else 0),
        "With metadata, the version key is one of the two that are always there, and it was added once more.",
        "Add `int(quantized)` only where `include` is False.",
        "one key too many for quantized files with metadata",
    ),
)

# ---- names_in_order --------------------------------------------------------------------------------------------------


def _first_pair(names: list[str]) -> bool:
    for a, b in pairwise(names):
        return a < b
    return True


def _any_pair(names: list[str]) -> bool:
    return any(a < b for a, b in pairwise(names)) or len(names) < 2


def _natural(name: str) -> list[tuple[int, int | str]]:
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part]


def _sorted_in_place(names: list[str]) -> bool:
    before = list(names)
    names.sort()
    return before == names and len(set(names)) == len(names)


def _against_itself(names: list[str]) -> bool:
    ordered = names
    ordered.sort()
    return names == ordered


NAMES_IN_ORDER = (
    Mistake(
        "a name may stand twice",
        lambda names: names == sorted(names),
        "Sorting keeps doubles, so a list with a name twice equals its sorted self.",
        "Compare neighbours with `<`, which a double fails.",
        "`True` for a list with a name twice",
    ),
    Mistake(
        "large and small letters alike",
        lambda names: all(a.lower() < b.lower() for a, b in pairwise(names)),
        "Upper case was ignored, and the order of the file is that of the characters' numbers: `Z` before `a`.",
        "Compare the names as they are.",
        '`False` for `["Z", "a"]`',
    ),
    Mistake(
        "numbers as numbers",
        lambda names: all(_natural(a) < _natural(b) for a, b in pairwise(names)),
        "`blk.2` was taken to stand before `blk.10`, as people count; character by character it is the other way.",
        "Compare the names as text.",
        '`False` for `["blk.1", "blk.10", "blk.2"]`',
    ),
    Mistake(
        "first and last only",
        lambda names: len(names) < 2 or names[0] < names[-1],
        "Only the two ends are compared, and what is wrong in the middle stays unseen.",
        "Compare each pair of neighbours.",
        '`True` for `["a", "c", "b", "d"]`',
    ),
    Mistake(
        "a return inside the loop",
        _first_pair,
        "The loop returns in its first round, so only the first pair is ever compared.",
        "Return False inside the loop for a bad pair, and True behind the loop.",
        '`True` for `["a", "c", "b"]`',
    ),
    Mistake(
        "any instead of all",
        _any_pair,
        "One good pair is enough for `any`, and one bad pair must be enough to fail.",
        "Use `all`.",
        "`True` as soon as two neighbours are in order",
    ),
    Mistake(
        "by length",
        lambda names: all((len(a), a) < (len(b), b) for a, b in pairwise(names)),
        "Short names were put before long ones.",
        "Compare the names themselves, character by character.",
        '`False` for `["aa", "b"]`',
    ),
    Mistake(
        "falling",
        lambda names: all(a > b for a, b in pairwise(names)),
        "The comparison is the wrong way round.",
        "Each name is smaller than the next: `a < b`.",
        '`False` for `["a", "b", "c"]`',
    ),
    Mistake(
        "the list is sorted in place",
        _sorted_in_place,
        "`names.sort()` changes the caller's list, and a test must not repair what it tests.",
        "Use `sorted(names)`, which makes a new list, or compare neighbours.",
        "a note that the argument was changed",
    ),
    Mistake(
        "a list compared with itself",
        _against_itself,
        "`ordered = names` gives the same list a second name, so sorting one sorts both, and they are always equal.",
        "Compare neighbours, and sort nothing.",
        "`True` for every list",
    ),
)
