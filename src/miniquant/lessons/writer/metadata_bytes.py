"""The second part of a file: the metadata."""

from ...lab import Exercise, Mistake, edit, omit
from ...lab.compare import one_after_another


def metadata_bytes(metadata):
    """The metadata block of a file.

    metadata: dict of text and numbers   ->   bytes: key=value lines joined by newlines, UTF-8; an empty dict gives b""

    Raises ValueError for an empty key, an "=" in a key, and a newline in a key or a value.
    """
    lines = []
    for key, value in metadata.items():
        if not key or "=" in key or "\n" in f"{key}{value}":
            raise ValueError(f"a reader could not split {key!r}={value!r} again")
        lines.append(f"{key}={value}")
    return "\n".join(lines).encode("utf-8")


def oracle(metadata):
    """Byte by byte: a newline before every line but the first."""
    out = bytearray()
    for key, value in metadata.items():
        if key == "":
            raise ValueError("a key must have at least one character")
        if "=" in key:
            raise ValueError("a key that holds '=' cannot be told from its value")
        if "\n" in key or "\n" in str(value):
            raise ValueError("a newline would end the line in the middle")
        if out:
            out.append(0x0A)
        for character in [*key, "=", *str(value)]:
            out.extend(bytes(character, "utf-8"))
    return bytes(out)


def fields(metadata):
    """A line each, the newline that separates it from the next included."""
    lines = metadata.items()
    return one_after_another((f"the line of {key!r}", len(f"{key}={value}".encode()) + 1) for key, value in lines)


def cases(random):
    """Plain lines, lines with letters that need care, what must be refused, random text."""
    good = [
        {"a": "b"},
        {"dims_order": "out,in", "group_size": 64},
        {},
        {"name": "café"},
        {"rule": "w=q*s"},
        {"title": "a tiny model", "layers": 4, "rate": 0.5},
        {"empty": "", " ": " ", " spaces ": "  stay  ", "return": "a\rb", "name": "cafe\N{COMBINING ACUTE ACCENT}"},
    ]
    bad = [{"w=q": "s"}, {"": "x"}, {"note": "two\nlines"}, {"two\nlines": "note"}]
    drawn = {f"key{i}": "".join(chr(c) for c in random.integers(97, 123, 6)) for i in range(5)}
    return [(case,) for case in [*good, *bad, drawn]]


EXERCISE = Exercise(
    goal="Turn a dict into key=value lines joined by newlines, as UTF-8 bytes, and refuse what could not be read back.",
    reference=metadata_bytes, oracle=oracle, cases=cases, minutes=4, difficulty="core", fields=fields,
    hints=(
        'Build one line for each item with `f"{key}={value}"`, join the lines with `"\\n"`, and encode the text once, at the end.',
        "A reader splits a line at its first `=`. Raise ValueError for an empty key, a key with `=` in it, and a newline in a key or in a value; an `=` in a value is fine.",
    ),
    why="these lines are what lets a reader rebuild the model from the file alone, with nothing sent beside it.",
    mistakes=(
        Mistake("a newline after the last line", edit(r'"\n".join(lines)', r'"".join(line + "\n" for line in lines)'),
            cause="Newlines go between the lines here, and you ended each line with one.",
            cure='Join the lines: `"\\n".join(lines)`.', see="one byte `0a` too many at the end"),
        Mistake("nothing refused", omit("if not key"),
            cause="A key with `=` in it, or a newline anywhere, is written as if it could be read back.",
            cure="Look at each key and value first; raise ValueError for what a reader would split in the wrong place.",
            see="this input must be refused"),
        Mistake("text instead of bytes", edit('.encode("utf-8")', ""),
            cause="The lines are right, and they are still text, whose length is not the number of bytes.",
            cure='End with `.encode("utf-8")`.', see="`str` where bytes are expected"),
        Mistake("assert instead of raise", omit("if not key").edit(
                "lines.append(",
                'assert key and "=" not in key and "\\n" not in f"{key}{value}"\n        lines.append(',
            ),
            cause="`python -O` removes an `assert`, and callers of a writer expect ValueError.",
            cure="Write `if …: raise ValueError(…)`.", see="AssertionError where ValueError is expected"),
        Mistake("JSON", edit(r'return "\n".join(lines)', "import json\n    return json.dumps(metadata)"),
            cause="JSON is another text format, with braces, quotes and commas that a reader of lines does not expect.",
            cure="Write plain lines, `key=value`.", see="`7b`, an opening brace, in the first byte"),
        Mistake("= refused in values", edit('"=" in key', '"=" in f"{key}{value}"'),
            cause="You refuse a value that holds `=`; a reader that splits at the first `=` can read it.",
            cure="Refuse `=` in keys only.", see="a ValueError for `w=q*s`"),
        Mistake("quoted values", edit('f"{key}={value}"', 'f"{key}={value!r}"'),
            cause="Text was written with quotation marks around it, as JSON or `repr` do.",
            cure="Use the text itself, `str(value)`.", see="bytes `22` or `27` around the text"),
        Mistake("a colon instead of =", edit('f"{key}={value}"', 'f"{key}: {value}"'),
            cause="Key and value are separated by a colon and a space.",
            cure="Put a single `=` between them, with no spaces.", see="`3a 20` where `3d` is expected"),
        Mistake("Windows line ends", edit(r'"\n".join', r'"\r\n".join'),
            cause="The lines are joined by two characters, carriage return and newline.",
            cure='Join with `"\\n"`, and build bytes yourself rather than through a text file.',
            see="`0d` before `0a`"),
        Mistake("Latin-1 instead of UTF-8", edit("utf-8", "latin-1"),
            cause="é became the single byte `e9`, and in UTF-8 it takes two, `c3 a9`.",
            cure='Encode with `.encode("utf-8")`.', see="ASCII right, and `café` one byte too short"),
    ),
)
