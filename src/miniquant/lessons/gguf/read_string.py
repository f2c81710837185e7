"""A text, read from its bytes."""

import struct

from ...lab import Exercise, Mistake, body, edit
from ..shared.by_hand import number
from ..shared.names import ODD_TEXT
from .gguf_string import oracle as string_oracle


def read_string(data, position):
    """Read the text that begins at a position.

    data: bytes; position: integer, where the text's length begins, a
        little-endian u64
    ->   (text, next): a str, and the position of the first byte after the
         text
    """
    (n,) = struct.unpack_from("<Q", data, position)
    start = position + 8
    return data[start : start + n].decode("utf-8"), start + n


def oracle(data, position):
    """The length digit by digit, then byte after byte."""
    left = number(data[position : position + 8])
    found, at = bytearray(), position + 8
    while left:
        found.append(data[at])
        at, left = at + 1, left - 1
    return str(found, "utf-8"), at


def cases(random):
    """One text, texts with bytes before and after, no letter, letters of two bytes and of four, then random letters."""
    texts = ["gpt2", "", "café", "Ġthe", "two\nlines", " a\r\n", "🦙", "n" * 300, "a\0b\0", ODD_TEXT, "\ufeffa", "n" * 65_540]
    made = [(string_oracle("gpt2"), 0), (b"\xee" * 5 + string_oracle("gpt2") + b"\xff" * 9, 5)]
    made += [(b"\xee" * 400 + string_oracle("gpt2\0"), 400)]
    made += [(b" \0\0" + string_oracle(text) + string_oracle("next"), 3) for text in texts]
    drawn = ["".join(chr(c) for c in random.integers(97, 123, n)) for n in (5, 70, 300)]
    return [*made, *((string_oracle("before") + string_oracle(text) + b"\xee", 14) for text in drawn)]


def traits(data, position):
    """What is special about a text."""
    n = number(data[position : position + 8])
    text = data[position + 8 : position + 8 + n]
    return {
        "the position is not 0": position > 0,
        "bytes follow the text": position + 8 + n < len(data),
        "the text is empty": n == 0,
        "the text has letters of more than one byte": any(byte > 127 for byte in text),
        "the text is longer than 255 bytes": n > 255,
        "the text begins or ends with white space": text.strip() != text,
    }


def quantities(data, position):
    """What students take for the position after the text."""
    n = number(data[position : position + 8])
    return {
        "the length of the text": n,
        "the position where the text begins": position + 8,
        "the length of the text and its length field": n + 8,
        "the position plus the length of the text": position + n,
        "the length of data": len(data),
    }


EXERCISE = Exercise(
    goal="Read one text from a position, and say where the next thing begins.",
    reference=read_string, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up", traits=traits,
    quantities=quantities,
    hints=(
        "First the length, which has a fixed size, then as many bytes as it says. Both ends of the text count from `position`.",
        "`struct.unpack_from` reads a number from a position and gives a tuple. A slice takes the bytes of the text, `bytes.decode` makes letters of them.",
    ),
    why="a reader that knows where each text ends needs no separator, so a text may hold any character.",
    mistakes=(
        Mistake("the position left out", edit('"<Q", data, position', '"<Q", data, 0').edit("position + 8", "8"),
            cause="The text was read from the first byte of the data, whatever the position.",
            cure="Read the length at `position`, and count the text from there.",
            see="right where the position is 0, another text elsewhere"),
        Mistake("the length read as text", edit("start = position + 8", "start = position"),
            cause="The text begins 8 bytes early: its first bytes are the length.",
            cure="Begin 8 bytes after the position.", see="`\\x04` and zeros before the letters"),
        Mistake("the next position without the length field", body("""
                (n,) = struct.unpack_from("<Q", data, position)
                start = position + 8
                return data[start : start + n].decode("utf-8"), position + n
            """),
            cause="The next position is 8 too small: the length field takes 8 bytes as well.",
            cure="Add the 8 bytes of the length.", see="the text right, and the position 8 too small"),
        Mistake("the length instead of the next position", edit('.decode("utf-8"), start + n', '.decode("utf-8"), n'),
            cause="The second result is the length of the text, and a position was asked for.",
            cure="Add the position where the text begins.", see="the length of the text where a position is expected"),
        Mistake("the rest of the data", edit("data[start : start + n]", "data[start:]"),
            cause="The text goes on to the end of the data.",
            cure="Stop after as many bytes as the length says.", see="a text that is too long, or a UnicodeDecodeError"),
        Mistake("32-bit length", edit('"<Q"', '"<I"').edit("position + 8", "position + 4"),
            cause="The length was read as four bytes, and it has eight: four zeros begin the text.",
            cure="Read it as `Q`.", see="four `\\x00` before the letters"),
        Mistake("big-endian", edit('"<Q"', '">Q"'),
            cause="The most significant byte of the length was taken to come first, so the length is huge.",
            cure="Begin the format with `<`.", see="a next position beyond every file"),
        Mistake("bytes returned", edit('.decode("utf-8")', ""),
            cause="The text is still bytes.",
            cure='Decode it with `.decode("utf-8")`.', see="`b'gpt2'` where `'gpt2'` is expected"),
        Mistake("Latin-1 instead of UTF-8", edit('"utf-8"', '"latin-1"'),
            cause="Each byte became a letter, and é has two bytes in UTF-8.",
            cure='Decode with `"utf-8"`.', see="ASCII right, and `cafÃ©` where `café` is expected"),
        Mistake("the end of the text as count of letters", body("""
                (n,) = struct.unpack_from("<Q", data, position)
                start = position + 8
                text = data[start : start + n].decode("utf-8")
                return text, start + len(text)
            """),
            cause="The next position counts letters, and the length counts bytes.",
            cure="Add the length that you read.", see="ASCII right, and the position too small after `café`"),
    ),
)
