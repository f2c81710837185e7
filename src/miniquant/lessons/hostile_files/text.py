"""The exercises of lab 17 on text: a string that says its own length, and a name that becomes a file."""

from __future__ import annotations

import re
import struct
from functools import partial
from typing import Any

import numpy as np

from ...core.errors import FormatError
from ...lab.spec import Case, Exercise, Mistake
from .machine import U64
from .numbers import signed

# ---- safe_string -----------------------------------------------------------------------------------------------------


def safe_string(data: bytes, at: int) -> tuple[str, int]:
    """The reference: a file and a place in it -> the string there, and the place behind it."""
    if at + 8 > len(data):
        raise FormatError("a string's length takes 8 bytes; the file is truncated", offset=at)
    (length,) = struct.unpack_from("<Q", data, at)
    if length > len(data) - at - 8:
        raise FormatError(f"found a length of {length}, {len(data) - at - 8} bytes are left", offset=at)
    try:
        return data[at + 8 : at + 8 + length].decode("utf-8"), at + 8 + length
    except UnicodeDecodeError:
        raise FormatError("not valid UTF-8", offset=at + 8) from None


def safe_string_oracle(data: bytes, at: int) -> tuple[str, int]:
    """One byte after the other, from the front."""
    rest = list(data[at:])
    if len(rest) < 8:
        raise FormatError("no length")
    length = sum(rest.pop(0) << 8 * place for place in range(8))
    text = bytearray()
    while len(text) < length:
        if not rest:
            raise FormatError("too short")
        text.append(rest.pop(0))
    try:
        return str(bytes(text), "utf-8", "strict"), at + 8 + length
    except UnicodeError:
        raise FormatError("no text") from None


def _said(length: int, text: bytes = b"") -> bytes:
    return struct.pack("<Q", length) + text


def _string_cases(random: np.random.Generator) -> list[Case]:
    good = [(_said(4, b"gpt2"), 0), (b"xx" + _said(3, "aé".encode()), 2), (_said(0), 0), (_said(2, b"abcd"), 0)]
    bad = [(b"", 0), (bytes(7), 0), (_said(3, b"ab"), 0), (_said(8, b"ab"), 0), (b"xx" + _said(3, b"ab"), 2)]
    bad += [(_said(2**64 - 1, b"abcd"), 0), (_said(2**63 + 4, b"abcd"), 0), (_said(2, b"a\xff"), 0)]
    bad += [(_said(1, "é".encode()), 0), (_said(2**32, b"abcd"), 0)]
    texts = [bytes(random.integers(97, 123, n).tolist()) for n in (5, 40)]
    return [*good, *bad, *((_said(len(text), text) + b"after", 0) for text in texts)]


def _string(
    data: bytes,
    at: int,
    outside: Any = lambda data, at, length: length > len(data) - at - 8,
    *,
    unpack_first: bool = False,
    errors: str = "strict",
    leak: bool = False,
    sign: bool = False,
    after: int = 8,
) -> tuple[str, int]:
    """Right unless told otherwise; each switch is a mistake."""
    if at + 8 > len(data) and not unpack_first:
        raise FormatError("refused")
    (number,) = struct.unpack_from("<Q", data, at)
    length = signed(number) if sign else number
    if outside(data, at, length):
        raise FormatError("refused")
    try:
        return data[at + 8 : max(0, at + 8 + length)].decode("utf-8", errors), at + after + length
    except UnicodeDecodeError as error:
        raise (error if leak else FormatError("refused")) from None


SAFE_STRING = Exercise(
    name="safe_string",
    lab="17",
    goal="Read a string of a GGUF file, and refuse one that is not there or is no text.",
    minutes=7,
    difficulty="core",
    reference=safe_string,
    oracle=safe_string_oracle,
    cases=_string_cases,
    hints=(
        "Three things may be wrong: fewer than 8 bytes for the length, a length that reaches beyond the file, bytes "
        "that are no UTF-8. Each is a `FormatError`.",
        "`len(data) - at - 8` bytes are left for the text. Compare the length with that before you slice: a slice "
        "that reaches too far raises nothing.",
    ),
    why="every name, key and token of a GGUF file comes through this function.",
    mistakes=(
        Mistake(
            "every file taken for honest",
            partial(_string, outside=lambda data, at, length: False, unpack_first=True, leak=True),
            "This reads every honest file, and believes the others: what is not there is `struct`'s error or a slice "
            "that is too short, what is no text is `UnicodeDecodeError`.",
            "Ask for the eight bytes, then for the length, then catch the decoder's error; each is a `FormatError`.",
            "struct.error, UnicodeDecodeError, and texts that are too short",
        ),
        Mistake(
            "the slice forgives",
            partial(_string, outside=lambda data, at, length: False),
            "A slice that reaches beyond the end gives what there is and no error, so a lie about the length is taken.",
            "Compare the length with `len(data) - at - 8` before you slice.",
            "a shorter string where an error is expected",
        ),
        Mistake(
            "its own eight bytes forgotten",
            partial(_string, outside=lambda data, at, length: length > len(data) - at),
            "The length was held against all bytes from `at` on, and eight of them are the length itself.",
            "`len(data) - at - 8` bytes are left.",
            "a length up to eight too large accepted",
        ),
        Mistake(
            "the place forgotten",
            partial(_string, outside=lambda data, at, length: length > len(data) - 8),
            "The length was held against the whole file, as if the string stood at its beginning.",
            "`len(data) - at - 8` bytes are left.",
            "right at 0, too trusting further behind",
        ),
        Mistake(
            "one more wraps around",
            partial(_string, outside=lambda data, at, length: length + 1 & U64 > len(data) - at - 7),
            "C wants room for a zero at the end, and the largest length plus one is 0.",
            "Compare the length itself, before anything is added to it.",
            "a length of 2**64 - 1 accepted",
        ),
        Mistake(
            "a negative length accepted",
            partial(_string, sign=True),
            "The length was read as a signed number, and a negative one is less than what is left.",
            "Read it as `<Q`.",
            "an empty string, and a place behind it that lies in front of it",
        ),
        Mistake(
            "off by one at the end",
            partial(_string, outside=lambda data, at, length: length >= len(data) - at - 8),
            "You compared with `>=`, and a string may end with the file.",
            "Compare with `>`.",
            "FormatError for a string at the end of the file",
        ),
        Mistake(
            "the length not there",
            partial(_string, unpack_first=True),
            "`struct` raises an error of its own if the eight bytes of the length are not there.",
            "Ask whether `at + 8 > len(data)` first, and raise `FormatError`.",
            "struct.error for a file that ends in a length",
        ),
        Mistake(
            "bad text replaced",
            partial(_string, errors="replace"),
            "Bytes that are no UTF-8 were replaced, and two different names may become the same.",
            "Decode strictly, and turn the error into a `FormatError`.",
            "a string with � in it",
        ),
        Mistake(
            "the wrong error",
            partial(_string, leak=True),
            "Python's own `UnicodeDecodeError` came out; who calls you has to expect one error, not a list of them.",
            "Catch `UnicodeDecodeError` and raise `FormatError`.",
            "UnicodeDecodeError",
        ),
        Mistake(
            "the place behind it",
            partial(_string, after=0),
            "The place behind the string lacks the eight bytes of the length.",
            "Return `at + 8 + length`.",
            "the right text, and a place eight bytes early",
        ),
    ),
)

# ---- tensor_file -----------------------------------------------------------------------------------------------------

SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


def tensor_file(name: str, taken: set[str]) -> str:
    """The reference: a tensor's name, and the files that exist already -> the name of the file for it."""
    if not re.fullmatch(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}", name):
        raise FormatError(f"the name {name[:80]!r} cannot be a file's")
    file = name + ".bin"
    if file.lower() in {other.lower() for other in taken}:
        raise FormatError(f"two tensors would be written to {file!r}")
    return file


def tensor_file_oracle(name: str, taken: set[str]) -> str:
    """Letter by letter."""
    if len(name) not in range(1, 65) or name[0] == "." or any(letter not in SAFE for letter in name):
        raise FormatError("not a name for a file")
    for other in taken:
        if len(other) == len(name) + 4 and all(a.upper() == b.upper() for a, b in zip(other, name)):
            raise FormatError("taken")
    return f"{name}.bin"


def _file_cases(random: np.random.Generator) -> list[Case]:
    good = [
        ("w", set()),
        ("blk.0.attn_q.weight", {"w.bin"}),
        ("a-b_c.9", {"a.bin"}),
        ("n" * 64, set()),
        ("a..b", set()),
    ]
    bad = ["", "../../.profile", "/etc/passwd", "..\\..\\x", "a/../../x", "....//x", ".", "..", ".hidden", "a/b", "C:x"]
    bad += ["w\n", "a\0b", "\x1b[2J", "größe", "n" * 65, "a b", "layer/../../../x"]
    again = [("w", {"w.bin"}), ("W", {"w.bin"}), ("w", {"W.bin", "b.bin"})]
    drawn = ["".join(SAFE[i] for i in random.integers(0, 52, 12)) for _ in range(3)]
    return [*good, *((name, set()) for name in bad), *again, *((name, {"w.bin"}) for name in drawn)]


ALLOWED = r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}"


def _file(
    name: str,
    taken: set[str],
    bad: Any = lambda name: not re.fullmatch(ALLOWED, name),
    *,
    same: Any = str.lower,
    change: Any = lambda name: name,
) -> str:
    """Right unless told otherwise; each switch is a mistake."""
    file = change(name) + ".bin"
    if bad(name) or (same and same(file) in map(same, taken)):
        raise FormatError("refused")
    return file


TENSOR_FILE = Exercise(
    name="tensor_file",
    lab="17",
    goal="Turn a tensor's name into the name of a file, and refuse every name that is not plainly harmless.",
    minutes=7,
    difficulty="core",
    reference=tensor_file,
    oracle=tensor_file_oracle,
    cases=_file_cases,
    hints=(
        "Do not list what is forbidden; list what is allowed: 1 to 64 ASCII letters, digits, `.`, `_` and `-`, and no "
        "`.` in front. `re.fullmatch` looks at the whole name.",
        r'`re.fullmatch(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}", name)`; then compare `(name + ".bin").lower()` with the '
        "files in `taken`, in lower case too: to some systems W and w are the same.",
    ),
    why="a list of what is allowed also stops the trick that nobody has thought of yet.",
    mistakes=(
        Mistake(
            "nothing checked",
            partial(_file, bad=lambda name: False),
            "The name goes into the path as it is, and `../` in it leaves the folder.",
            "Allow only letters, digits, `.`, `_` and `-`, and no `.` in front.",
            "`../../.profile.bin` returned",
        ),
        Mistake(
            "only at the beginning",
            partial(_file, bad=lambda name: not name or name.startswith(("../", "..\\", "/"))),
            "You looked for `../` at the beginning, and `a/../../x` climbs as well.",
            "List what is allowed; then no slash gets through anywhere.",
            "`a/../../x.bin` returned",
        ),
        Mistake(
            "cut out",
            lambda name, taken: _file(name, taken, lambda name: False, change=lambda name: name.replace("../", "")),
            "`../` was cut out, and what remains of `....//x` is `../x`.",
            "Refuse; do not repair.",
            "`../x.bin` returned for `....//x`",
        ),
        Mistake(
            "only slashes",
            partial(_file, bad=lambda name: not name or "/" in name or name.startswith(".")),
            "You refused `/`, and on Windows `\\` separates folders and `C:` names a disk.",
            "List what is allowed instead of what is not.",
            "`..\\..\\x` or control characters accepted",
        ),
        Mistake(
            "only separators",
            partial(_file, bad=lambda name: not name or name.startswith(".") or re.search(r"[/\\:]", name)),
            "Slashes are gone, and control characters are still there: a terminal obeys them when it lists the folder.",
            "List what is allowed instead of what is not.",
            "a name with `\\x1b` or `\\n` accepted",
        ),
        Mistake(
            "letters of every alphabet",
            partial(_file, bad=lambda name: not re.fullmatch(r"[\w-][\w.-]{0,63}", name)),
            r"`\w` means the letters of every alphabet, and systems do not agree on how a file's name writes them.",
            "Spell the class out: `[0-9A-Za-z_-]`.",
            "`größe.bin` returned",
        ),
        Mistake(
            "a newline at the end",
            partial(_file, bad=lambda name: not re.match(ALLOWED + "$", name)),
            "`$` also matches in front of a newline at the very end.",
            "Use `re.fullmatch`.",
            "a name that ends in a newline accepted",
        ),
        Mistake(
            "a dot in front",
            partial(_file, bad=lambda name: not re.fullmatch(r"[0-9A-Za-z._-]{1,64}", name)),
            "A name may begin with a dot here: such a file is hidden, and `..` is the folder above.",
            "Leave the dot out of the class for the first letter.",
            "`.hidden.bin` returned",
        ),
        Mistake(
            "no limit to its length",
            partial(_file, bad=lambda name: not re.fullmatch(r"[0-9A-Za-z_-][0-9A-Za-z._-]*", name)),
            "A name may be as long as it likes, and file systems end at about 255 bytes.",
            "Allow 64 characters at most.",
            "a name of 65 characters accepted",
        ),
        Mistake(
            "equal names forgotten",
            partial(_file, same=None),
            "Two tensors of one name are written to one file, and the first of them is gone.",
            "Refuse a file that is in `taken`.",
            "`w.bin` returned twice",
        ),
        Mistake(
            "capitals forgotten",
            partial(_file, same=str),
            "`W.bin` and `w.bin` are one file on Windows and on most Macs.",
            "Compare in lower case.",
            "`W.bin` returned beside `w.bin`",
        ),
    ),
)
