"""The second part of a file: the metadata."""

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, edit, omit


def parse_metadata(block):
    """Read the metadata block.

    block: bytes   ->   dict of text, in the order of the lines; an empty block gives {}

    Raises FormatError for bytes that are not UTF-8, a line without "=", an empty key, and a key that stands twice.
    """
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"not valid UTF-8 ({error.reason})", field="metadata", offset=16 + error.start) from None
    metadata = {}
    for line in text.removesuffix("\n").split("\n") if text else []:
        key, equals, value = line.partition("=")
        if not key or not equals:
            raise FormatError(f"the line {line!r} is not key=value", field="metadata")
        if key in metadata:
            raise FormatError(f"the key {key!r} stands twice", field="metadata")
        metadata[key] = value
    return metadata


def oracle(block):
    """One byte at a time: a key until the first =, a value until the newline."""
    metadata, key, piece = {}, None, bytearray()
    for byte in block if not block or block[-1] == 0x0A else block + b"\n":
        if byte == 0x3D and key is None:
            key, piece = _as_text(piece), bytearray()
        elif byte == 0x0A:
            if key is None:
                raise FormatError(f"no = in the line {bytes(piece)!r}")
            if key == "":
                raise FormatError(f"nothing in front of the = in the line {b'=' + bytes(piece)!r}")
            if key in metadata:
                raise FormatError(f"the key {key!r} stands twice")
            metadata[key], key, piece = _as_text(piece), None, bytearray()
        else:
            piece.append(byte)
    return metadata


def _as_text(piece):
    try:
        return str(bytes(piece), "utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"{bytes(piece).hex(' ')} is no UTF-8") from None


def cases(random):
    """Legal blocks with something to trip over, then malformed ones, then a random one."""
    good = [
        b"a=b",
        b"dims_order=out,in\ngroup_size=64",
        b"",
        b"a=b\nc=d\n",
        b"rule=w=q*s\nx=",
        b"note= indented \nrate=0.50",
        "name=café\nold line=one\u2028two".encode(),
    ]
    bad = [b"a=b\nrubbish", b"=b", b"a=b\na=c", b"a=b\n\nc=d", b"name=\xff\xfe", b"a=caf\xe9"]
    words = ["".join(chr(c) for c in random.integers(97, 123, 6)) for _ in range(8)]
    return [(block,) for block in [*good, *bad, "\n".join(f"{w}={w[::-1]}=" for w in words).encode()]]


EXERCISE = Exercise(
    goal="Turn the metadata's bytes back into a dict of strings, and raise FormatError for what is not key=value.",
    reference=parse_metadata, oracle=oracle, cases=cases, minutes=4, difficulty="core",
    hints=(
        'Decode the block, drop one final newline with `removesuffix("\\n")`, and split at `"\\n"`. An empty block is an empty dict.',
        '`key, equals, value = line.partition("=")` splits at the first `=`; raise FormatError if `key` or `equals` is empty, if the key stands twice, and where decoding fails.',
    ),
    why="a value may hold anything but a newline, and it comes back as it was written, to the last space.",
    mistakes=(
        Mistake("split at every =", edit(
                'key, equals, value = line.partition("=")',
                'key, equals, value = (line + "=").split("=")[0], "=" in line, line.split("=")[-1:][0]',
            ),
            cause='`split("=")` cuts a value that holds `=`, and what follows its first piece is lost.',
            cure='Split at the first `=` only: `line.partition("=")`.', see="`w` where `w=q*s` is expected"),
        Mistake("a second = refused",
            edit('key, equals, value = line.partition("=")', 'equals, (key, value) = "=", line.split("=")'),
            cause='`key, value = line.split("=")` fails on a value that holds `=`, and such a value is legal.',
            cure='Split at the first `=` only: `line.partition("=")`.',
            see="`ValueError: too many values to unpack` for the line `rule=w=q*s`"),
        Mistake("split at the last =", edit("line.partition", "line.rpartition"),
            cause="The line was cut at its last `=`, so a part of the value went to the key.",
            cure='Split at the first `=`: `line.partition("=")`, not `rpartition`.', see="the key `rule=w`"),
        Mistake("final newline not tolerated", edit('.removesuffix("\\n")', ""),
            cause="A newline at the very end leaves an empty last line, and writers of other tools do end that way.",
            cure='Drop one final newline first: `text.removesuffix("\\n")`.',
            see="an error for `a=b`, newline, `c=d`, newline"),
        Mistake("empty block refused", edit(" if text else []", ""),
            cause='`"".split("\\n")` is a list with one empty string, and that is no line.',
            cure="Return an empty dict for an empty block.", see="an error where `{}` is expected"),
        Mistake("rubbish skipped",
            edit("""raise FormatError(f"the line {line!r} is not key=value", field="metadata")""", "continue"),
            cause="A line without key and `=` was passed over, and the damage that it shows stays hidden.",
            cure="Raise FormatError for such a line.", see="a line `rubbish` accepted"),
        Mistake("the later key wins", omit("if key in metadata"),
            cause="A key stands twice, and the second value replaced the first without a word.",
            cure="Raise FormatError if the key is in the dict already.", see="`a=b`, `a=c` accepted"),
        Mistake("bad UTF-8 not refused as such",
            edit("except UnicodeDecodeError as error", "except ZeroDivisionError as error"),
            cause="decode raises UnicodeDecodeError, which says nothing about the file, and callers expect FormatError.",
            cure="Catch UnicodeDecodeError and raise FormatError.",
            see="UnicodeDecodeError where FormatError is expected"),
        Mistake("Latin-1 instead of UTF-8", edit('"utf-8"', '"latin-1"'),
            cause="Each byte became a character of its own, and é in UTF-8 is two bytes.",
            cure='Decode with `.decode("utf-8")`.', see="`cafÃ©` where `café` is expected"),
        Mistake("split at every kind of line end", edit('.split("\\n")', ".splitlines()"),
            cause="`splitlines()` also splits at a dozen other characters, such as U+2028, which may stand in a value.",
            cure='Split at the newline alone: `split("\\n")`.', see="an error for a value with U+2028 in it"),
        Mistake("values converted to numbers", edit(
                "metadata[key] = value", "metadata[key] = float(value) if value.replace('.', '').isdigit() else value"
            ),
            cause="The format has strings only, and who reads 0.50 as a number cannot give 0.50 back.",
            cure="Leave the values as they are; the caller knows which of them are numbers.",
            see="`64` where `'64'` is expected"),
        Mistake("spaces stripped", edit("metadata[key] = value", "metadata[key.strip()] = value.strip()"),
            cause="`strip()` removes spaces that belong to the value.",
            cure="Leave the values as they are.", see="`'indented'` where `' indented '` is expected"),
    ),
)
