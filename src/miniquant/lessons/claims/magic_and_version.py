"""Whether a file begins as GGUF version 3 does."""

import struct  # noqa: F401 (for a mistake)

from ...lab import Exercise, Mistake, edit


def magic_and_version(data):
    """Whether a file begins with the magic and version 3, a little-endian
    u32.

    data: bytes of a file, of any length   ->   True or False
    """
    return data.startswith(b"GGUF" + (3).to_bytes(4, "little"))


def oracle(data):
    """The eight bytes typed in, one by one."""
    return list(data[:8]) == [0x47, 0x47, 0x55, 0x46, 3, 0, 0, 0]


def cases(random):
    """Starts that differ in one thing, short files, then random bytes."""
    counts = bytes(16)
    starts = ["GGUF\3\0\0\0", "GGUF\2\0\0\0", "GGUF\4\0\0\0", "GGUF\0\0\0\3", "TFLG\3\0\0\0", "gguf\3\0\0\0"]
    starts += ["FUGG\3\0\0\0", "GGUF\3\1\0\0", "GGUF\3\0\0\1", "GGUF\3\0\1\0", "\nGGUF\3\0\0\0", "GGML\3\0\0\0GGUF"]
    made = [(start.encode() + counts,) for start in starts]
    short = [(b"GGUF\3\0\0\0",), (b"GGUF\3\0\0",), (b"GGUF",), (b"G\xffUF\3\0\0\0",), (b"",)]
    drawn = [(b"GGUF\3\0\0\0" + random.bytes(20),), (b"GGUF" + random.bytes(24),), (b"\xffGGUF\3\0\0\0" + random.bytes(19),)]
    return [*made, *short, *drawn]


def traits(data):
    """What is special about a file."""
    return {
        "the file has fewer than 8 bytes": len(data) < 8,
        "the file has exactly 8 bytes": len(data) == 8,
        "the file does not begin with GGUF": data[:4] != b"GGUF",
        "GGUF is followed by another version": data[:4] == b"GGUF" and len(data) >= 8 and data[4:8] != b"\3\0\0\0",
        "byte 4 is 3, and a byte from 5 to 7 is not 0": data[4:5] == b"\3" and any(data[5:8]),
        "GGUF is followed by another version, and one of its bytes is 3": data[:4] == b"GGUF" and len(data) >= 8
        and 3 in data[4:8] and data[4:8] != b"\3\0\0\0",
    }


EXERCISE = Exercise(
    goal="Say whether the bytes of a file begin with the magic `GGUF` and version 3 as a little-endian u32.",
    reference=magic_and_version, oracle=oracle, cases=cases, minutes=3, difficulty="warm-up", traits=traits,
    hints=(
        "A predicate returns `True` or `False`, for bad files too: a file of two bytes is no reason to raise an error.",
        "Compare `data[:4]` with the magic and `data[4:8]` with version 3 as four bytes; a slice never raises.",
    ),
    why="it says False to a bad file as surely as True to a good one, and only such a test can falsify anything.",
    mistakes=(
        Mistake("the magic alone", edit(' + (3).to_bytes(4, "little")', ""),
            cause="Only the four letters are compared, so a file of version 2 passes.",
            cure="Compare bytes 4 to 7 with version 3 as well.", see="`True` for a file of another version"),
        Mistake("the version alone",
            edit('data.startswith(b"GGUF" + (3).to_bytes(4, "little"))', 'data[4:8] == (3).to_bytes(4, "little")'),
            cause="Only the version is compared, so any file with a 3 in byte 4 passes.",
            cure='Compare the first four bytes with `b"GGUF"` as well.', see="`True` for a file with another magic"),
        Mistake("the lowest byte of the version", edit("to_bytes(4", "to_bytes(1"),
            cause="The version is a number of four bytes, and only the first of them is compared.",
            cure="Compare all of `data[4:8]`.", see="`True` for version 259, whose lowest byte is 3"),
        Mistake("big-endian", edit("little", "big"),
            cause="The version was looked for with its highest byte first.",
            cure="Numbers in GGUF are little-endian: 3 is `03 00 00 00`.", see="`False` for a good file"),
        Mistake("any newer version too", edit(
                'data.startswith(b"GGUF" + (3).to_bytes(4, "little"))',
                'data.startswith(b"GGUF") and int.from_bytes(data[4:8], "little") >= 3',
            ),
            cause="Versions above 3 pass, and nobody knows yet what they look like.",
            cure="Compare with `== 3`.", see="`True` for version 4"),
        Mistake("somewhere in the file",
            edit('data.startswith(b"GGUF" + (3).to_bytes(4, "little"))', 'b"GGUF" + (3).to_bytes(4, "little") in data'),
            cause="`in` finds the eight bytes anywhere, and a file has to begin with them.",
            cure="Compare the slice `data[:8]`, or use `startswith`.",
            see="`True` for a file with something before the magic"),
        Mistake("an error for a short file", edit(
                'data.startswith(b"GGUF" + (3).to_bytes(4, "little"))',
                'data.startswith(b"GGUF") and struct.unpack_from("<I", data, 4)[0] == 3',
            ),
            cause="`struct.unpack_from` raises an error where fewer than eight bytes are left, and a predicate must answer.",
            cure="Compare slices, which never raise, or look at `len(data)` first.",
            see="`struct.error` for a file of four bytes"),
        Mistake("small letters too", edit("data.starts", "data.upper().starts"),
            cause="The letters were made large before they were compared, so `gguf` passes.",
            cure="Compare the bytes as they are.", see="`True` for `gguf`"),
        Mistake("an assertion", edit("return ", "assert ").edit('"little"))', '"little"))\n    return True'),
            cause="`assert` raises an error for a bad file, and a predicate says False.",
            cure="Return the comparison itself.", see="`AssertionError` for a bad file"),
    ),
)
