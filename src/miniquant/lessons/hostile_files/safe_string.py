"""A string that says its own length."""

import struct

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, body, edit, omit


def safe_string(data, at):
    """The string at byte `at` of a GGUF file.

    data: the whole file, bytes; at: where the string's length (u64) begins
    ->   (text, the place after it); or FormatError if the length or the text is not there, or is no UTF-8
    """
    if at + 8 > len(data):
        raise FormatError("the length of a string is not there", offset=at)
    (length,) = struct.unpack_from("<Q", data, at)
    if length > len(data) - at - 8:
        raise FormatError(f"a string of {length} bytes, and {len(data) - at - 8} are left", offset=at)
    end = at + 8 + length
    try:
        return data[at + 8 : end].decode("utf-8"), end
    except UnicodeDecodeError:
        raise FormatError("a string that is no UTF-8", offset=at + 8) from None


def oracle(data, at):
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


def _said(length, text=b""):
    return struct.pack("<Q", length) + text


def cases(random):
    """Strings that are there, strings that are not, bytes that are no text, then random ones."""
    good = [(_said(4, b"gpt2"), 0), (b"xx" + _said(3, "aé".encode()), 2), (_said(0), 0), (_said(2, b"abcd"), 0)]
    bad = [(b"", 0), (bytes(7), 0), (_said(3, b"ab"), 0), (_said(8, b"ab"), 0), (b"xx" + _said(3, b"ab"), 2)]
    bad += [(_said(2**64 - 1, b"abcd"), 0), (_said(2**63 + 4, b"abcd"), 0), (_said(2, b"a\xff"), 0)]
    bad += [(_said(1, "é".encode()), 0), (_said(2**32, b"abcd"), 0)]
    texts = [bytes(random.integers(97, 123, n).tolist()) for n in (5, 40)]
    return [*good, *bad, *((_said(len(text), text) + b"after", 0) for text in texts)]


EXERCISE = Exercise(
    goal="Read a string of a GGUF file, and refuse one that is not there or is no text.",
    reference=safe_string, oracle=oracle, cases=cases, minutes=7, difficulty="core",
    hints=(
        "Three things may be wrong: fewer than 8 bytes for the length, a length that reaches beyond the file, bytes that are no UTF-8. Each is a `FormatError`.",
        "Count the bytes that are left after the length, and compare before you slice: a slice that reaches too far raises nothing. `decode` raises `UnicodeDecodeError`.",
    ),
    why="every name, key and token of a GGUF file comes through this function.",
    mistakes=(
        Mistake("every file taken for honest", body("""
                (length,) = struct.unpack_from("<Q", data, at)
                end = at + 8 + length
                return data[at + 8 : end].decode("utf-8"), end
            """),
            cause="This reads every honest file, and believes the others: what is not there is `struct`'s error or a slice that is too short, what is no text is `UnicodeDecodeError`.",
            cure="Ask for the eight bytes, then for the length, then catch the decoder's error; each is a `FormatError`.",
            see="struct.error, UnicodeDecodeError, and texts that are too short"),
        Mistake("the slice forgives", omit("if length >"),
            cause="A slice that reaches beyond the end gives what there is and no error, so a lie about the length is taken.",
            cure="Compare the length with `len(data) - at - 8` before you slice.",
            see="a shorter string where an error is expected"),
        Mistake("its own eight bytes forgotten", edit("if length > len(data) - at - 8", "if length > len(data) - at"),
            cause="The length was held against all bytes from `at` on, and eight of them are the length itself.",
            cure="`len(data) - at - 8` bytes are left.", see="a length up to eight too large accepted"),
        Mistake("the place forgotten", edit("if length > len(data) - at - 8", "if length > len(data) - 8"),
            cause="The length was held against the whole file, as if the string stood at its beginning.",
            cure="`len(data) - at - 8` bytes are left.", see="right at 0, too trusting further on"),
        Mistake("one more wraps around",
            edit("if length > len(data) - at - 8", "if length + 1 & (2**64 - 1) > len(data) - at - 7"),
            cause="C wants room for a zero at the end, and the largest length plus one is 0.",
            cure="Compare the length itself, before anything is added to it.", see="a length of 2**64 - 1 accepted"),
        Mistake("a negative length accepted",
            edit("<Q", "<q").edit("data[at + 8 : end]", "data[at + 8 : max(0, end)]"),
            cause="The length was read as a signed number, and a negative one is less than what is left.",
            cure="Read it as `<Q`.", see="an empty string, and a place after it that lies before it"),
        Mistake("off by one at the end", edit("if length > len(data) - at - 8", "if length >= len(data) - at - 8"),
            cause="You compared with `>=`, and a string may end with the file.",
            cure="Compare with `>`.", see="FormatError for a string at the end of the file"),
        Mistake("the length not there", omit("if at + 8"),
            cause="`struct` raises an error of its own if the eight bytes of the length are not there.",
            cure="Ask whether `at + 8 > len(data)` first, and raise `FormatError`.",
            see="struct.error for a file that ends in a length"),
        Mistake("bad text replaced", edit('decode("utf-8")', 'decode("utf-8", "replace")'),
            cause="Bytes that are no UTF-8 were replaced, and two different names may become the same.",
            cure="Decode strictly, and turn the error into a `FormatError`.", see="a string with � in it"),
        Mistake("the wrong error", edit("except UnicodeDecodeError", "except ZeroDivisionError"),
            cause="Python's own `UnicodeDecodeError` came out; who calls you has to expect one error, not a list of them.",
            cure="Catch `UnicodeDecodeError` and raise `FormatError`.", see="UnicodeDecodeError"),
        Mistake("the place after it",
            edit('data[at + 8 : end].decode("utf-8"), end', 'data[at + 8 : end].decode("utf-8"), end - 8'),
            cause="The place after the string lacks the eight bytes of the length.",
            cure="Return `at + 8 + length`.", see="the right text, and a place eight bytes early"),
    ),
)
