"""Which format a file has, by its first bytes."""

import re

from ...lab import Exercise, Mistake, edit, omit


def format_of(head):
    """The format of a file.

    head: bytes, the first bytes of the file, 16 of them, or fewer (also
        none) if the file is shorter
    ->   "GGUF", "GGUF-lite", "GGML", "bump", "zip", "safetensors", "pickle"
         or "unknown": the first row of the table that fits

    The table counts bytes from 0, and writes their values in hexadecimal.
    """
    magics = {b"GGUF": "GGUF", b"TFLG": "GGUF-lite", b"lmgg": "GGML", b"BUMPWGT3": "bump", b"PK\x03\x04": "zip"}
    for magic, name in magics.items():
        if head.startswith(magic):
            return name
    if head[5:9] == b"\0\0\0{":
        return "safetensors"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "pickle"
    return "unknown"


def oracle(head):
    """A pattern for each format, in one regular expression."""
    pattern = (
        rb"(GGUF)|(TFLG)|(lmgg)|(BUMPWGT3)|(PK\x03\x04)|([\x00-\xff]{5}\x00\x00\x00\x7b)|(\x80[\x02-\x05])|([\x00-\xff]*)"
    )
    names = ("GGUF", "GGUF-lite", "GGML", "bump", "zip", "safetensors", "pickle", "unknown")
    return names[re.match(pattern, head).lastindex - 1]


def cases(random):
    """A file of each format; safetensors whose length looks like something else; heads that are cut; random bytes."""
    length = random.integers(1, 256, 4).astype("u1").tobytes() + bytes(4)
    heads = [
        b"GGUF\x03\0\0\0\x34\0\0\0\0\0\0\0",
        b"TFLG\x01\0\0\0\x34\0\0\0\x10\x02\0\0",
        b"lmgg\0\x04\0\0\0\x01\0\0\0\x01\0\0",
        b"BUMPWGT3\x04\0\0\0\0\x01\0\0",
        b"PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0",
        b"\xd0\0\0\0\0\0\0\0" + b'{"__meta',
        b'\x80\x02}q\0X\x05\0\0\0hoursq',
        b"\x80\x04\x95B\0\0\0\0\0\0\0\x8c\x08buil",
        b"\x80\x05K\x07.",
        b"\x80\x03K\x07.",
        b"\x80\x02\0\0\0\0\0\0" + b'{"a":{"d',  # a header of 640 bytes
        b"\x80\x04\0\0\0\0\0\0{}",
        length + b'{ "a"',
        b"\x02\0\0\0\x01\0\0\0{}",
        b"{\0\0\0\0\0\0\0[]",
        b"{\0\0\0\0\0\0\0{}",  # a header of 123 bytes
        b"\x05{\0\0\0\0\0\0{}",
        b"\x02\0\0\0\0\0\0\0[]",
        b"\x02\0\0\0\0\0\x01\0{}",
        b"\0\0\0\0\0\x01\0\0{}",  # a header of 2**40 bytes
        b"\x02\0\0\0\0\0\0\x01{}",
        b"GGUF\x03\0\0\0{\0",  # two rows fit
        b"TFLG\0\0\0\0{}",
        b"PK\x03\x04\0\0\0\0{}",
        b"\0\0\0\0\0\0\0\0{",
        b"\x05\0\0\0\0\0\0\0[{}]",
        b"G",
        bytes(8),
        b"PK\x03",
        b"BUMPWGT",
        b"\x80\0K\x07.",
        b'{"a": 1}',
        b"",
        b"GG",
        b"GGU",
        b"ggml\0\x04\0\0",
        b"FUGG\x03\0\0\0",
        b"gguf\x03\0\0\0",
        b"BUMPWGT2\x04\0\0\0",
        b"BUMP",
        b"\x80GGUF\x03\0\0\0",  # a byte before the magic
        b"\xff\xfePK\x03\x04",
        b"\n\n\0\0\0\0\0\0" + b'{"a":{"d',  # a length whose bytes are newlines
        b"PK\x05\x06" + bytes(12),
        b"lmgg\0\0\0\0{}",
        b"GGUF\0\0\0\x03",  # another version
        b"GGUF",
        b"BUMPWGT3\x05\0\0\0",
        b"BUMPWGT3",
        b"\x80",
        b"\x80\x01K\x07.",
        b"\x80\x06K\x07.",
        b"\x80\x80\x02K",
        b"(lp0\nI1\na.",
        b"PKGGUF\x03\x04",
        b"a text about GGUF",
        b"PK TFLG lmgg BUMPWGT3",
        b"TFLX\x01\0\0\0",
        b"lmgf\x01\0\0\0",
        b"tflg\x01\0\0\0",
        b"LMGG\0\x04\0\0",
        b"bumpwgt3\x04\0\0\0",
        b" GGUF\x03\0\0\0",
        b"PK\x07\x08" + bytes(12),
        b"tjgg\x03\0\0\0",
        b"algg\x01\0\0\0",
        b"\x05\0\0\0\0\0\0\0 {}",
        b"\x80\x02",
        b"\x80\x04K\x07.",
        b"\x80\x12K\x07.",
        b"\x81\x02K\x07.",
        b"]q\0.",
        b"}\x03q\0.",
        random.integers(128, 256, 16).astype("u1").tobytes(),
    ]
    return [(head,) for head in heads]


MAGICS = (b"GGUF", b"TFLG", b"lmgg", b"BUMPWGT3", b"PK\x03\x04")


def traits(head):
    """What is special about a beginning."""
    return {
        "`head` is empty or is made of the first letters of `GGUF`": b"GGUF".startswith(head),
        "`head` is cut before a magic ends": any(head and len(head) < len(m) and m.startswith(head) for m in MAGICS),
        "`head` has fewer than 2 bytes": len(head) < 2,
        "`head` has fewer than 9 bytes": len(head) < 9,
        "`head` begins with the byte 80": head[:1] == b"\x80",
        "`head` is the byte 80 alone": head == b"\x80",
        "two rows of the table fit": head[5:9] == b"\0\0\0{" and (head.startswith(MAGICS) or (head[:1] == b"\x80" and 2 <= head[1] <= 5)),
        "byte 8 is a brace": head[8:9] == b"{",
        "byte 8 is a brace, and not all of bytes 5 to 7 are 0": head[8:9] == b"{" and head[5:8] != bytes(3),
        "bytes 5 to 7 are 0, and byte 8 is no brace or is missing": head[5:8] == bytes(3) and head[8:9] != b"{",
        "byte 4 is not 0, and the answer is safetensors": oracle(head) == "safetensors" and head[4] > 0,
        "`GGUF`, `TFLG` or `lmgg` is in `head`, in small or capital letters, and `head` begins with none of them": not head.startswith((b"GGUF", b"TFLG", b"lmgg")) and any(
            m in head.upper() for m in (b"GGUF", b"TFLG", b"LMGG")
        ),
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Say which format a file has, from its first bytes.",
    reference=format_of, oracle=oracle, cases=cases, minutes=7, difficulty="warm-up",
    hints=(
        "Go through the table row by row, and stop at the first row that fits. A file may be shorter than you think.",
        "`bytes.startswith` compares a beginning; a slice of bytes is bytes again, and it is never an error, even beyond the end.",
    ),
    why="a loader that trusts the name of a file can be made to run a pickle called model.safetensors.",
    mistakes=(
        Mistake("the magic anywhere", edit("head.startswith(magic)", "magic in head"),
            cause="You looked for the magic in all of the bytes. It must be at the very beginning.",
            cure="Compare the beginning.", see="`GGUF` for a text that mentions GGUF"),
        Mistake("pickle before safetensors",
            edit('if head[5:9] == b"\\0\\0\\0{"', 'if head[:1] == b"\\x80" and 2 <= (*head, 0, 0)[1] <= 5:\n        return "pickle"\n    if head[5:9] == b"\\0\\0\\0{"'),
            cause="The length of a safetensors header may begin with the bytes 80 02. The row of safetensors comes first.",
            cure="Keep to the order of the table.", see="`pickle` where `safetensors` is expected"),
        Mistake("only the brace", edit('head[5:9] == b"\\0\\0\\0{"', 'head[8:9] == b"{"'),
            cause="A file with a brace in byte 8 counts as safetensors even if bytes 5 to 7 are not all 0. Its header would have more than a trillion bytes.",
            cure="Look at bytes 5 to 8.", see="`safetensors` where `unknown` is expected"),
        Mistake("any protocol", omit("if head[:1]").edit('return "unknown"', 'return "pickle" if head[:1] == b"\\x80" else "unknown"'),
            cause="The byte after 80 is the protocol, and it must be 2, 3, 4 or 5.",
            cure="Look at the second byte as well.", see="`pickle` where `unknown` is expected"),
        Mistake("GGML's letters in reading order", edit('b"lmgg"', 'b"ggml"'),
            cause="GGML's magic is a little-endian number, so its letters are reversed in the file.",
            cure="The first four bytes are `lmgg`.", see="`unknown` where `GGML` is expected"),
        Mistake("four letters of bump", edit('b"BUMPWGT3"', 'b"BUMP"'),
            cause="The magic of bump has eight letters, and the last one is its version.",
            cure="Compare all eight.", see="`bump` where `unknown` is expected"),
        Mistake("bytes 4 to 7", edit('head[5:9] == b"\\0\\0\\0{"', 'head[4:9] == b"\\0\\0\\0\\0{"'),
            cause="Byte 4 may be more than 0; only bytes 5, 6 and 7 must be 0.",
            cure="Look at bytes 5 to 8.", see="`unknown` for a very long header"),
        Mistake("a brace anywhere", edit('head[5:9] == b"\\0\\0\\0{"', 'head[5:8] == bytes(3) and b"{" in head'),
            cause="The brace must be byte 8, and you looked for it everywhere.",
            cure="Compare byte 8.", see="`safetensors` where `unknown` is expected"),
        Mistake("protocol 5 missed", edit('b"\\x03", b"\\x04", b"\\x05"', 'b"\\x03", b"\\x04"'),
            cause="There are four protocols with this beginning, 2 to 5.",
            cure="Accept 05 as well.", see="`unknown` where `pickle` is expected"),
        Mistake("protocol 1 accepted", edit('(b"\\x02", b"\\x03"', '(b"\\x01", b"\\x02", b"\\x03"'),
            cause="The protocol is one of 2, 3, 4, 5. The older ones do not begin with 80.",
            cure="Refuse 01.", see="`pickle` where `unknown` is expected"),
        Mistake("two letters of zip", edit('b"PK\\x03\\x04"', 'b"PK"'),
            cause="An archive begins with four bytes, and you compared two.",
            cure="Compare all four.", see="`zip` where `unknown` is expected"),
        Mistake("capitals ignored", edit("head.startswith(magic)", "head.upper().startswith(magic.upper())"),
            cause="Small and capital letters were treated alike. They are different bytes.",
            cure="Compare the bytes as they are.", see="`GGUF` for a file that begins with gguf"),
        Mistake("nothing for an unknown file", omit('return "unknown"'),
            cause="A file of none of the seven formats gives None.",
            cure='Return `"unknown"` at the end.', see="None where `unknown` is expected"),
    ),
)
