"""The header's bytes."""

import json
import struct

from ...lab import Exercise, Mistake, body, edit, omit
from ..shared.by_hand import by_digits


def safetensors_head(text):
    """Length and header.

    text: str, the JSON   ->   bytes: the length as a little-endian u64, the JSON in UTF-8, spaces until the header's
    length is a multiple of 8; the length counts the spaces, too
    """
    data = text.encode("utf-8")
    data += b" " * (-len(data) % 8)
    return struct.pack("<Q", len(data)) + data


def oracle(text):
    """Character by character, space by space."""
    data = b"".join(bytes(character, "utf-8") for character in text)
    while len(data) % 8:
        data = data + b" "
    return by_digits(len(data), 8) + data


def fields(text):
    """The length, the text, the padding."""
    end = 8 + len(text.encode())
    return [("the length", 0, 8), ("the JSON", 8, end), ("the padding", end, end + 8)]


def cases(random):
    """Texts that need padding and one that does not, letters beyond ASCII, then random names."""
    drawn = [json.dumps({"".join(map(chr, random.integers(97, 123, n))): n}) for n in (3, 9, 70, 300)]
    return [(text,) for text in ('{"a":1}', '{"ab":1}', "{}", '{"é":"ü","ö":"ß"}', '{"日本":1}', *drawn)]


EXERCISE = Exercise(
    goal="Turn the header's JSON into bytes: its length as a u64, then UTF-8, padded with spaces to a multiple of eight.",
    reference=safetensors_head, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up", fields=fields,
    hints=(
        "Encode first, pad second, count last: the length is that of the bytes, padding included.",
        '`data += b" " * (-len(data) % 8)`, then `struct.pack("<Q", len(data)) + data`.',
    ),
    why="JSON allows spaces at its end, so the padding needs no rule of its own.",
    mistakes=(
        Mistake("the length counts characters", body("""
                text += " " * (-len(text) % 8)
                return struct.pack("<Q", len(text)) + text.encode("utf-8")
            """),
            cause="The length counts characters, and é takes two bytes in UTF-8.",
            cure="Encode first, and take `len` of the bytes.", see="plain letters right, and `é` one too short"),
        Mistake("the padding not counted",
            edit("    data += b", "    length = len(data)\n    data += b").edit('"<Q", len(data)', '"<Q", length'),
            cause="The length stops at the end of the JSON, so a reader takes the spaces for data, and every tensor is shifted.",
            cure="Pad before you count.", see="7 where 8 is expected"),
        Mistake("no padding", omit("data += b"),
            cause="The specification makes padding optional, and this exercise asks for it: the data after it is aligned.",
            cure='Add `b" " * (-len(data) % 8)`.', see="too few bytes for most headers"),
        Mistake("eight spaces too many", edit("(-len(data) % 8)", "(8 - len(data) % 8)"),
            cause="`8 - len(data) % 8` is 8, not 0, where the header is a multiple of eight already.",
            cure="Use `-len(data) % 8`, which goes from 0 to 7.", see="most headers right, and 16 where 8 is expected"),
        Mistake("padded with zeros", edit('b" "', 'b"\\0"'),
            cause="Zero bytes are no white space in JSON, and the parser stops at the first.",
            cure="Pad with spaces, 0x20.", see="`00` where `20` is expected"),
        Mistake("32-bit length", edit("<Q", "<I"),
            cause="The length takes four bytes, and here eight.",
            cure="Pack it as `Q`.", see="the JSON begins at byte 4"),
        Mistake("big-endian", edit("<Q", ">Q"),
            cause="The most significant byte came first: a reader sees a header of many terabytes.",
            cure="Begin the format with `<`.", see="the length in byte 7 instead of byte 0"),
        Mistake("the length counts itself", edit('"<Q", len(data)', '"<Q", 8 + len(data)'),
            cause="The eight bytes of the length were counted, too.",
            cure="Count the header alone.", see="16 where 8 is expected"),
    ),
)
