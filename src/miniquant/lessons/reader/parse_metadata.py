"""The second part of a file: the metadata."""

import itertools

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, edit, omit
from ..shared.names import LINE_ENDS


def parse_metadata(block):
    """Read the metadata block.

    block: bytes, UTF-8: lines key=value with "\\n" between them; one "\\n"
        after the last line is accepted too
    ->   dict of text, in the order of the lines; an empty block gives {}

    A line is split at its first "=". Keys and values come back as they are,
    spaces and "\\r" included; a value may be empty, and may hold "=".

    Raises FormatError for bytes that are not UTF-8, a line without "=", an
    empty key, and a duplicate key. An empty line has no "=", and b"\\n" is
    an empty line.
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
            raise FormatError(f"duplicate key {key!r}", field="metadata")
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
                raise FormatError(f"nothing before the = in the line {b'=' + bytes(piece)!r}")
            if key in metadata:
                raise FormatError(f"two lines have the key {key!r}")
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
        b"a=b\nb=a\n",
        b"rule=w=q*s\nx=",
        b"note= indented \\n \nrate=0.50",  # a backslash stays one
        "name=café\nold line=one\u2028two".encode(),
        b"a=b\r\nc=d\x0be\x0cf\r\n",
        b" a =b\n =x\nA=\na= ",
        "name=cafe\N{COMBINING ACUTE ACCENT}\nx===\nlast=one 🥐 ".encode(),
        b"\xef\xbb\xbfa=b",
        b'A=1\na=2\n#b="3"',
        b"a=1\n a =2",
        b"a=1\nA=1",
        b"a=x\0y\0\n\0=\0",
        "cafe\N{COMBINING ACUTE ACCENT}=4\ncafé=5".encode(),  # two keys
    ]
    bad = [b"a=b\nrubbish", b"=b", b"a=b\na=c", b"a=b\n\nc=d", b"name=\xff\xfe", b"a=b\ncaf\xe9=a"]
    bad += [b"a=b\n\n", b"\na=b", b"a=b\n \nc=d", b"a=b\nc=d\na=b", b"a=\xc3", b"a=b\n=", b" ", b"x=1\na=\na=b\ny=2", b"\n", b"a=b\n=c=d\ne=f", b"a=b\n==\n"]
    words = ["".join(chr(c) for c in random.integers(97, 123, 6)) for _ in range(8)]
    return [(block,) for block in [*good, *bad, "\n".join(f"{w}={w[::-1]}=" for w in words).encode()]]


def traits(block):
    """What is wrong with a block, or special about it."""
    text = block.decode("utf-8", "surrogateescape")  # bytes that are not UTF-8 count as they are
    valid = not any("\ud800" <= character <= "\udfff" for character in text)
    lines = text.removesuffix("\n").split("\n") if block else []
    pairs = [tuple(line.split("=", 1)) for line in lines if "=" in line]
    keys, values = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    doubled = len(set(keys)) < len(keys)
    key_of = [line.split("=", 1)[0] if "=" in line else None for line in lines]
    return {
        "the block is empty": not block,
        "the block is not UTF-8": not valid,
        "a line has no =": any("=" not in line for line in lines),
        "a line has no =, and is not empty": any(line and "=" not in line for line in lines),
        "a line has no =, and holds only white space": any(line and not line.strip() for line in lines),
        "there is an empty line": any(not line for line in lines),
        "the last line has no =": bool(lines) and "=" not in lines[-1],
        "the first line has no =": bool(lines) and "=" not in lines[0],
        "there are two newlines at the end": text.endswith("\n\n"),
        "the block begins with a newline": text.startswith("\n"),
        "the block is one newline": block == b"\n",
        "a key is empty": "" in keys,
        "a key is there twice": doubled,
        "a key is there twice, with the same value": len(set(pairs)) < len(pairs),
        "a key is there twice, with another value": len(set(pairs)) > len(set(keys)),
        "a key is there twice, and never in two lines that follow each other": doubled
        and not any(a == b is not None for a, b in itertools.pairwise(key_of)),
        "the block ends with a newline": text.endswith("\n"),
        "a value holds an =": any("=" in value for value in values),
        "a value is empty": "" in values,
        "a value ends with an =": any(value.endswith("=") for value in values),
        "a carriage return is in the block": "\r" in text,
        "a key has white space at an end": any(key != key.strip() for key in keys),
        "a key is one space": " " in keys,
        "a value has white space at an end": any(value != value.strip() for value in values),
        "a key or a value has white space at an end": any(part != part.strip() for pair in pairs for part in pair),
        "a line end other than \\n is in the block": any(end in text for end in LINE_ENDS),
        "the block is UTF-8, and has characters outside ASCII": valid and not text.isascii(),
        "a key has capital letters": any(key != key.lower() for key in keys),
        "a key has one character": any(len(key) == 1 for key in keys),
        "a value has digits only": any(value.isdigit() for value in values),
        "a zero byte is in the block": "\0" in text,
        "there is more than one line": len(lines) > 1,
        "the block is not empty": bool(block),
    }


EXERCISE = Exercise(
    traits=traits,
    ordered=True,
    goal="Turn the metadata's bytes back into a dict of strings, and raise FormatError for what is not key=value.",
    reference=parse_metadata, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "Decode the whole block first. Then there are two special cases before you split it into lines: an empty block, and one newline at the very end.",
        "`removesuffix` of a text removes an ending once, if it is there. `partition` splits a text at the first place where it finds a separator, and gives three parts. `decode` raises UnicodeDecodeError, which `try` and `except` can turn into a FormatError.",
    ),
    why="a value may hold any character but a newline, and it comes back as it was written, spaces included.",
    mistakes=(
        Mistake("split at every =", edit(
                'key, equals, value = line.partition("=")',
                'key, equals, value = (line + "=").split("=")[0], "=" in line, (line + "=").split("=")[1]',
            ),
            cause='A value that holds `=` is cut there, and what follows is lost.',
            cure='Split at the first `=` only: `line.partition("=")`.', see="`w` where `w=q*s` is expected"),
        Mistake("a second = refused",
            edit('key, equals, value = line.partition("=")', 'equals, (key, value) = "=", line.split("=")'),
            cause="A line that has not exactly one `=` ends in an error of Python's own, and a value may hold `=`.",
            cure='Split at the first `=` only: `line.partition("=")`.',
            see="`ValueError: too many values to unpack` for the line `rule=w=q*s`"),
        Mistake("split at the last =", edit("line.partition", "line.rpartition"),
            cause="The line is cut at its last `=`, so a part of the value went to the key.",
            cure='Split at the first `=`: `line.partition("=")`, not `rpartition`.', see="the key `rule=w`"),
        Mistake("final newline not tolerated", edit('.removesuffix("\\n")', ""),
            cause="A newline at the very end leaves an empty last line, and writers of other tools do end that way.",
            cure='Drop one final newline first: `text.removesuffix("\\n")`.',
            see="an error for `a=b`, newline, `c=d`, newline"),
        Mistake("empty block refused", edit(" if text else []", ""),
            cause="An empty block was refused, and it is legal: it gives {}.",
            cure="Return an empty dict for an empty block.", see="an error where `{}` is expected"),
        Mistake("rubbish skipped",
            edit("""raise FormatError(f"the line {line!r} is not key=value", field="metadata")""", "continue"),
            cause="A line that is not key=value was skipped, and the damage stays hidden.",
            cure="Raise FormatError for such a line.", see="a line `rubbish` accepted"),
        Mistake("the later key wins", omit("if key in metadata"),
            cause="Of a duplicate key the second value replaced the first, without an error.",
            cure="Raise FormatError if the key is in the dict already.", see="`a=b`, `a=c` accepted"),
        Mistake("bad UTF-8 not refused as such",
            edit("except UnicodeDecodeError as error", "except ZeroDivisionError as error"),
            cause="Bytes that are not UTF-8 end in UnicodeDecodeError, and callers expect FormatError.",
            cure="Catch UnicodeDecodeError and raise FormatError.",
            see="UnicodeDecodeError where FormatError is expected"),
        Mistake("Latin-1 instead of UTF-8", edit('"utf-8"', '"latin-1"'),
            cause="Each byte became a character of its own, and é in UTF-8 is two bytes.",
            cure='Decode with `.decode("utf-8")`.', see="`cafÃ©` where `café` is expected"),
        Mistake("split at every kind of line end", edit('.split("\\n")', ".splitlines()"),
            cause="The text was also split at other characters than the newline, such as U+2028, which a value may hold.",
            cure='Split at the newline alone: `split("\\n")`.', see="an error for a value with U+2028 in it"),
        Mistake("values converted to numbers", edit(
                "metadata[key] = value", "metadata[key] = float(value) if value.replace('.', '').isdigit() else value"
            ),
            cause="Metadata is text only, and the text 0.50 read as a number is 0.5.",
            cure="Leave the values as they are; the caller converts those that it needs as numbers.",
            see="`64` where `'64'` is expected"),
        Mistake("every final newline dropped", edit('.removesuffix("\\n")', '.rstrip("\\n")'),
            cause="More than one newline after the last line was accepted, and a second one leaves an empty line.",
            cure='Drop one: `text.removesuffix("\\n")`.', see="a block that ends with two newlines accepted"),
        Mistake("empty lines skipped", edit("        key, equals, value", "        if not line:\n            continue\n        key, equals, value"),
            cause="An empty line is not key=value.",
            cure="Raise FormatError for it, as for every other line without `=`.", see="a block with an empty line accepted"),
        Mistake("the key not checked", edit("if not key or not equals", "if not equals"),
            cause="A line that begins with `=` has an empty key, and a writer cannot have meant that.",
            cure="Raise FormatError if nothing is before the `=`.", see="`=b` accepted"),
        Mistake("nothing refused", edit("if not key or not equals", "if False").edit("if key in metadata", "if False").edit(
                "except UnicodeDecodeError as error", "except ZeroDivisionError as error"
            ),
            cause="No bad block is refused; bytes that are not UTF-8 end in an error of Python's own.",
            cure="Raise FormatError for each thing that the docstring lists.", see="this input must be refused"),
        Mistake("the byte order mark removed", edit('"utf-8"', '"utf-8-sig"'),
            cause='The bytes `ef bb bf` at the start are lost, as with "utf-8-sig"; here they belong to the first key.',
            cure='Decode with `.decode("utf-8")`.', see="the first key one character too short"),
        Mistake("two pieces expected", edit('key, equals, value = line.partition("=")', 'equals = "=" in line\n        key, value = line.split("=") if equals else ("", "")'),
            cause='A value that holds `=` ends in an error, and such a value is legal.',
            cure='Split at the first `=` only: `line.partition("=")`.', see='`ValueError: too many values to unpack` for the line `rule=w=q*s`'),
        Mistake("lines without = skipped", edit("        if not key or not equals", "        if not equals:\n            continue\n        if not key"),
            cause='A line without `=` is damage, and it was skipped.',
            cure='Raise FormatError for it.', see='a line `rubbish` accepted'),
        Mistake("blank keys refused", edit("if not key or", "if not key.strip() or"),
            cause='A key of spaces is not empty: it has at least one character.',
            cure='Refuse only the empty key.', see="FormatError for the key `' '`"),
        Mistake("empty values refused", edit("if not key or", "if not key or not value or"),
            cause='A value may be empty.',
            cure='Refuse only an empty key, and a line without `=`.', see='FormatError for the line `x=`'),
        Mistake("the whole text stripped", edit('text.removesuffix("\\n")', 'text.strip()'),
            cause="White space at both ends of the text is lost: spaces there belong to a key or a value, and newlines make empty lines.",
            cure='Drop one newline at the end: `text.removesuffix("\\n")`.', see='a space missing in the first key or in the last value'),
        Mistake("bad bytes replaced", edit("block.decode(\"utf-8\")", "block.decode(\"utf-8\", \"replace\")"),
            cause="Bytes that are not UTF-8 became U+FFFD, the replacement character, and the damage stays hidden.",
            cure='Let `decode` raise its error, and turn that into FormatError.', see='a value with replacement characters accepted'),
        Mistake("bad bytes left out", edit("block.decode(\"utf-8\")", "block.decode(\"utf-8\", \"ignore\")"),
            cause='Bytes that are not UTF-8 were left out, and the damage stays hidden.',
            cure='Let `decode` raise its error, and turn that into FormatError.', see='a value with letters missing accepted'),
        Mistake("carriage returns removed", edit("metadata[key] = value", 'metadata[key.replace("\\r", "")] = value.replace("\\r", "")'),
            cause="A carriage return belongs to the key or the value; only the newline ends a line.",
            cure='Leave the values as they are.', see="`'b'` where `'b\\r'` is expected"),
        Mistake("keys in lower case", edit("if key in metadata", "key = key.lower()\n        if key in metadata"),
            cause='A and a are two keys.',
            cure='Leave the keys as they are.', see='FormatError for two keys that differ in upper case only'),
        Mistake("only the first line", edit("        metadata[key] = value", "        metadata[key] = value\n        return metadata"),
            cause="The result has the first line only; the lines after it are not split and not checked.",
            cure='Return after the loop.', see='one key where several are expected'),
        Mistake("whole numbers converted", edit("metadata[key] = value", "metadata[key] = int(value) if value.isdigit() else value"),
            cause='Metadata is text only: 64 comes back as the text "64".',
            cure='Leave the values as they are; the caller converts those that it needs as numbers.', see="`64` where `'64'` is expected"),
        Mistake("spaces stripped", edit("metadata[key] = value", "metadata[key.strip()] = value.strip()"),
            cause="White space is lost that belongs to a key or a value.",
            cure="Leave the values as they are.", see="`'indented'` where `' indented '` is expected"),
    ),
)
