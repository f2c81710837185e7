"""The header's bytes."""

import json
import struct

from ...lab import Exercise, Mistake, body, edit, omit
from ..shared.by_hand import by_digits


def safetensors_head(text):
    """Length and header.

    text: str, the JSON, which is not to be changed, its white space neither
    ->   bytes: the length as a little-endian u64, then the JSON in UTF-8,
         then as few spaces as possible, so that JSON and spaces together
         are a multiple of 8 bytes; no space if the JSON alone is. The
         length counts JSON and spaces.
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
    """Texts that need padding and one that does not, letters beyond ASCII, spaces in the JSON, then random names."""
    long = json.dumps({"w" * 70_000: 1})
    drawn = [json.dumps({"".join(map(chr, random.integers(97, 123, n))): n}) for n in (3, 9, 70, 300)]
    sizes = ('{"é":1}', '{"é":12}', '{"a":123}', '{"\\u00e9":1e2}', '{"abcdef":1234}', '{"ü":"abcdefgh"}')
    spaced = (' {"a":1}', '{"a":1}  ', '{"A":\t1}\r\n', '{ "a": 1 } ', '{\n"a":1}\n\n')
    return [(text,) for text in ('{"a":1}', '{"ab":1}', "{}", '{"é":"ü","ö":"ß"}', '{"日本":1}', '{"e\u0301🥐":1}', *sizes, *spaced, *drawn, long)]


def traits(text):
    """What is special about a header."""
    size = len(text.encode())
    return {
        "the JSON has characters outside ASCII": not text.isascii(),
        "the JSON is a multiple of 8 bytes": size % 8 == 0,
        "the JSON is no multiple of 8 bytes": size % 8 > 0,
        "the JSON has a multiple of 8 characters": len(text) % 8 == 0,
        "the JSON ends in white space": text != text.rstrip(),
        "the JSON has white space between other characters": len(text.split()) > 1,
        "the JSON has a backslash in it": "\\" in text,
        "the JSON has 65,536 bytes or more": size > 65535,
        "the JSON begins with white space": text != text.lstrip(),
        "the JSON has 256 bytes or more": size > 255,
        "JSON and spaces are no multiple of 16 bytes": (size + -size % 8) % 16 > 0,
        "JSON and spaces are a multiple of 16 bytes": (size + -size % 8) % 16 == 0,
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Turn the header's JSON into bytes: its length as a u64, then UTF-8, padded with spaces to a multiple of eight.",
    reference=safetensors_head, oracle=oracle, cases=cases, minutes=6, difficulty="warm-up", fields=fields,
    hints=(
        "Encode first, pad second, count last: the length is the number of bytes, padding included.",
        "In Python `-n % 8` says how much is missing to the next multiple of 8; `struct.pack` writes the length.",
    ),
    why="JSON allows spaces at its end, so the padding needs no rule of its own.",
    mistakes=(
        Mistake("the length counts characters", body("""
                text += " " * (-len(text) % 8)
                return struct.pack("<Q", len(text)) + text.encode("utf-8")
            """),
            cause="The length counts characters. In UTF-8, é is one character and two bytes.",
            cure="Encode first, and take `len` of the bytes.", see="plain letters right, and `é` one too short"),
        Mistake("the padding not counted",
            edit("    data += b", "    length = len(data)\n    data += b").edit('"<Q", len(data)', '"<Q", length'),
            cause="The length leaves out the spaces, so a reader takes them for data, and every tensor is shifted.",
            cure="Pad before you count.", see="7 where 8 is expected"),
        Mistake("no padding", omit("data += b"),
            cause="There is no padding. The specification makes it optional, and this exercise asks for it: it aligns the data.",
            cure='Add `b" " * (-len(data) % 8)`.', see="too few bytes for most headers"),
        Mistake("eight spaces too many", edit("(-len(data) % 8)", "(8 - len(data) % 8)"),
            cause="A header that is a multiple of eight already gets eight spaces: for it 8 - n % 8 is 8, and 0 is asked for.",
            cure="Use `-len(data) % 8`, which goes from 0 to 7.", see="most headers right, and 16 where 8 is expected"),
        Mistake("the JSON changed", edit('text.encode("utf-8")', 'text.strip().encode("utf-8")'),
            cause="White space before and after the JSON was taken off. It is part of the text that you were given.",
            cure="Encode the text as it is.", see="a shorter header where the JSON ends in spaces"),
        Mistake("padded with zeros", edit('b" "', 'b"\\0"'),
            cause="A zero byte is no white space in JSON, so a parser stops at the first one.",
            cure="Pad with spaces, 0x20.", see="`00` where `20` is expected"),
        Mistake("32-bit length", edit("<Q", "<I"),
            cause="The length was written in four bytes; it takes eight.",
            cure="Pack it as `Q`.", see="the JSON begins at byte 4"),
        Mistake("big-endian", edit("<Q", ">Q"),
            cause="The most significant byte came first: where you mean 8, a reader sees 2**59.",
            cure="Begin the format with `<`.", see="the length in byte 7 instead of byte 0"),
        Mistake("the length counts itself", edit('"<Q", len(data)', '"<Q", 8 + len(data)'),
            cause="The eight bytes of the length itself were counted as well.",
            cure="Count the header alone.", see="16 where 8 is expected"),
        Mistake("a multiple of sixteen", edit("% 8", "% 16"),
            cause="The header was padded to a multiple of 16.",
            cure="Pad to a multiple of eight.", see="16 where 8 is expected"),
        Mistake("a multiple of four", edit("% 8", "% 4"),
            cause="The header was padded to a multiple of 4.",
            cure="Pad to a multiple of eight.", see="4 where 8 is expected"),
        Mistake("padded in front", edit('data += b" " * (-len(data) % 8)', 'data = b" " * (-len(data) % 8) + data'),
            cause="The spaces come before the JSON. A header must begin with a brace.",
            cure="Add the spaces at the end.", see="a space where `{` is expected"),
        Mistake("padded with newlines", edit('b" "', 'b"\\n"'),
            cause="The padding is made of newlines.",
            cure="Pad with spaces, 0x20.", see="`0a` where `20` is expected"),
        Mistake("the JSON written anew", edit('text.encode("utf-8")', 'json.dumps(json.loads(text)).encode("utf-8")'),
            cause="The JSON differs from the text that you were given, in spaces, escapes or numbers, as if it had been read and written anew.",
            cure="Encode the text that you were given.", see="a space after a colon that was not there"),
        Mistake("a byte order mark", edit('"utf-8"', '"utf-8-sig"'),
            cause="Three bytes, a byte order mark, come before the text, and a header must begin with a brace.",
            cure="Encode as UTF-8.", see="`ef` where `7b` is expected"),
        Mistake("Latin-1", edit('text.encode("utf-8")', 'text.encode("latin-1", "replace")'),
            cause="The text was encoded as Latin-1, which has no Japanese letters, and in which é is one byte and not two.",
            cure="Encode as UTF-8.", see="plain letters right, all others wrong"),
        Mistake("four bytes too many counted for the padding", edit("(-len(data) % 8)", "(-(len(data) + 4) % 8)"),
            cause="The padding was computed for another length than that of the JSON.",
            cure="JSON and spaces together are a multiple of eight.", see="12 where 8 or 16 is expected"),
    ),
)
