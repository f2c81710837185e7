"""A text with its length in front."""

import struct

from ...lab import Exercise, Mistake, edit
from ..shared.by_hand import by_digits
from ..shared.names import ODD_TEXT


def gguf_string(text):
    """A text as GGUF writes it.

    text: str
    ->   bytes: the length in bytes as a little-endian u64, then the text in
         UTF-8
    """
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def oracle(text):
    """Character by character."""
    data = b"".join(bytes(character, "utf-8") for character in text)
    return by_digits(len(data), 8) + data


def fields(text):
    """The length, then the text."""
    return [("the length", 0, 8), ("the text", 8, 8 + len(text.encode()))]


def cases(random):
    """ASCII, no letter, letters of two bytes and of four, blanks and line ends, then random letters, many of them."""
    drawn = ["".join(chr(c) for c in random.integers(97, 123, n)) for n in (5, 70, 300, 2**16 + 3)]
    return [(text,) for text in ("gpt2", "", "café", "Ġthe", "two\nlines", " a\r\n", "🦙", ODD_TEXT, "\0", "\ufeffa", *drawn)]


EXERCISE = Exercise(
    goal="Write a text as GGUF does: its length in bytes as a u64, then its UTF-8.",
    reference=gguf_string, oracle=oracle, cases=cases, minutes=2, difficulty="warm-up", fields=fields,
    hints=(
        "The length counts bytes, and a letter may have more than one.",
        "`str.encode` makes the bytes, `len` counts them, `struct.pack` with the letter `Q` writes the length.",
    ),
    why="keys, texts, tokens and tensor names are all written like this.",
    mistakes=(
        Mistake("the length counts characters", edit("len(data)", "len(text)"),
            cause="The length counts characters, and a reader needs bytes: é takes two in UTF-8.",
            cure="Encode the text first, and take `len` of the bytes.", see="ASCII right, and the length of `café` one too small"),
        Mistake("16-bit length", edit("<Q", "<H"),
            cause="The length takes two bytes, as a name's does in GGUF-lite, and here eight.",
            cure="Pack the length as `Q`.", see="the text begins at byte 2"),
        Mistake("32-bit length", edit("<Q", "<I"),
            cause="The length takes four bytes, as it did in GGUF's first version, and here eight.",
            cure="Pack the length as `Q`.", see="the text begins at byte 4"),
        Mistake("big-endian", edit("<Q", ">Q"),
            cause="The most significant byte of the length came first.",
            cure="Begin the format with `<`.", see="the length in byte 7 instead of byte 0"),
        Mistake("no length", edit('struct.pack("<Q", len(data)) + ', ""),
            cause="The text is written without its length, and nobody can tell where it ends.",
            cure="Put `struct.pack('<Q', len(data))` in front.", see="the text begins at byte 0"),
        Mistake("a zero byte at the end", edit('text.encode("utf-8")', 'text.encode("utf-8") + b"\\0"'),
            cause="C ends a string with a zero byte, and here the length does that work.",
            cure="Write the bytes of the text and nothing after them.",
            see="the length one too large, and `00` after the text"),
        Mistake("Latin-1 instead of UTF-8", edit('"utf-8"', '"latin-1"'),
            cause="é became one byte, and in UTF-8 it takes two.",
            cure='Encode with `.encode("utf-8")`.', see="ASCII right, and `café` one byte too short"),
    ),
)
