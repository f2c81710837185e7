"""The second part of a file: the metadata."""

import math

from ...lab import Exercise, Mistake, edit, omit
from ...lab.compare import one_after_another
from ..shared.names import LINE_ENDS


def metadata_bytes(metadata):
    """The metadata block of a file.

    metadata: dict, key: text, value: text or a number (int or float)
    ->   bytes: one line key=value for each item, in the order of the dict,
         joined by newlines ("\\n" between the lines, none after the last),
         in UTF-8; an empty dict gives b"".
    A number is written as str(number). Keys and values are written as they
    are, spaces and "\\r" included.

    Raises ValueError for an empty key, an "=" in a key, and a newline "\\n"
    in a key or a value.
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
    sizes = [(f"the line of {key!r}", len(f"{key}={value}".encode()) + 1) for key, value in metadata.items()]
    if sizes:
        sizes[-1] = (sizes[-1][0], sizes[-1][1] - 1)  # no newline after the last line
    return one_after_another(sizes)


def cases(random):
    """Plain lines, lines with letters that need care, what must be refused, random text."""
    good = [
        {"a": "b"},
        {"dims_order": "out,in", "group_size": 64},
        {},
        {"name": "café"},
        {"rule": "w=q*s"},
        {"title": "a tiny model", "layers": 4, "rate": 0.5},
        {"empty": ""},
        {"Model": "MiniGPT", "Layers": 4},
        {"größe": "groß"},
        {"\ta": "\tb\t", "c  d": "e  f"},
        {"path": "a\\nb", "quote": '"yes"', "list": "[1, 2]"},
        {"large": 10**20, "exact": 3.0, "far": 1e16, "percent": "100 %"},
        {" spaces ": "  stay  "},
        {"x": "="},
        {"separator": "one\u2028two"},
        {"return": "a\rb"},
        {"re\rturn\r": "a\r\r", "tab\t": "b", "7-c": "d"},
        {"empty": "", " ": " ", " spaces ": "  stay  ", "return": "a\rb", "name": "cafe\N{COMBINING ACUTE ACCENT}"},
        {"zero": 0, "seed": 2**53 + 1, "sum": 0.1 + 0.2, "epsilon": 1e-05, "minus": -0.0, "less": -3},
        {"x": "=", "X": "=", "x ": "=", "sepa\u2028rator": "one\u2028two", "tab": "\t", "layers.0": "007", "last": "space 🥐 "},
        {"nul\0": "a\0b\0", "largest": float("inf"), "none": float("nan")},
    ]
    bad = [
        {"w=q": "s"},
        {"": "x"},
        {"note": "two\nlines"},
        {"two\nlines": "note"},
        {"first": "good", "=": "x", "last": 1},  # a bad one between good ones
        {"x": "\n"},
        {"\nx": 1},
        {"first": 1, "middle": "newline\n", "last": 1},
        {"first": "good", "middle\n": 1, "last": ""},
        {"first": "good", "": "", "last": "good"},
    ]
    drawn = {f"key{i}": "".join(chr(c) for c in random.integers(97, 123, 6)) for i in range(5)}
    return [(case,) for case in [*good, *bad, drawn]]


def traits(metadata):
    """What is special about the keys and values."""
    keys, values = [str(key) for key in metadata], [str(value) for value in metadata.values()]
    bad = [not key or "=" in key or "\n" in f"{key}{value}" for key, value in metadata.items()]
    return {
        "a key is empty": "" in keys,
        "a key has an `=`": any("=" in key for key in keys),
        "a key has a newline": any("\n" in key for key in keys),
        "a value has a newline": any("\n" in value for value in values),
        "a value has a newline at its end": any(value.endswith("\n") for value in values),
        "a key or a value begins or ends with a newline": any(text != text.strip("\n") for text in [*keys, *values]),
        "the first item is good, and a later one bad": any(bad) and not bad[0],
        "the first item is bad": bool(bad) and bad[0],
        "a value has an `=`": any("=" in value for value in values),
        "a value is empty": "" in values,
        "a value is a number": any(not isinstance(value, str) for value in metadata.values()),
        "a value is a float": any(isinstance(value, float) for value in metadata.values()),
        "a value is NaN or infinite": any(isinstance(v, float) and not math.isfinite(v) for v in metadata.values()),
        "a key or a value has a zero byte": any("\0" in text for text in [*keys, *values]),
        "a value is the number 0": any(value == 0 for value in metadata.values()),
        "there is more than one item": len(metadata) > 1,
        "there is no item": not metadata,
        "a key or a value has characters outside ASCII": any(not text.isascii() for text in [*keys, *values]),
        "a key or a value has a space at an end": any(text != text.strip(" ") for text in [*keys, *values]),
        "a key has capital letters": any(key != key.lower() for key in keys),
        "a value has capital letters": any(value != value.lower() for value in values),
        "the keys are not in sorted order": keys != sorted(keys),
        "a key or a value has a line end other than \\n": any(end in text for text in [*keys, *values] for end in LINE_ENDS),
    }


EXERCISE = Exercise(
    goal="Turn a dict into key=value lines joined by newlines, as UTF-8 bytes, and refuse what could not be read back.",
    reference=metadata_bytes, oracle=oracle, cases=cases, minutes=5, difficulty="core", fields=fields,
    traits=traits,
    hints=(
        "A reader cuts the block at every newline, and each line at its first `=`. Ask of each key and each value: would it come back? If not, refuse it.",
        "Collect the lines in a list. The `join` of a string puts something between the items of a list and nothing after the last one; `encode` turns text into bytes.",
    ),
    why="from these lines a reader learns the config of the model, and no second file is needed for that.",
    mistakes=(
        Mistake("values not checked", edit('f"{key}{value}"', 'key'),
            cause='A value may hold a newline, too, and a reader would cut it there.',
            cure='Look for a newline in the key and in the value.', see='a value with a newline accepted'),
        Mistake("empty key accepted", edit("not key or ", ""),
            cause='A line that begins with `=` has no key.',
            cure='Raise ValueError for an empty key.', see='an empty key accepted'),
        Mistake("= accepted in keys", edit('"=" in key or ', ''),
            cause='A reader splits at the first `=`, so a key with `=` loses its end.',
            cure='Raise ValueError for a key that holds `=`.', see='the key `w=q` accepted'),
        Mistake("refused lines left out", edit('raise ValueError(f"a reader could not split {key!r}={value!r} again")', 'continue'),
            cause='A line that cannot be read back was left out, and nobody learns of it.',
            cure='Raise ValueError instead.', see="b'' where a ValueError is expected"),
        Mistake("spaces stripped", edit('f"{key}={value}")', 'f"{key.strip()}={str(value).strip()}")'),
            cause="White space at the ends of a key or a value is missing, and it belongs to it.",
            cure='Write keys and values as they are.', see='a space missing at the end of a line'),
        Mistake("blank keys refused", edit("not key or", "not key.strip() or"),
            cause='A key of spaces is not empty: it has at least one character.',
            cure='Refuse only the empty key.', see="a ValueError for the key `' '`"),
        Mistake("every kind of line end refused", edit('"\\n" in f"{key}{value}"', 'len(f"{key}{value}.".splitlines()) > 1'),
            cause="Other line ends are refused, too, as `splitlines` knows them. Only a newline ends a line here.",
            cure='Look for "\\n" alone.', see='a ValueError for a value with U+2028 or a carriage return'),
        Mistake("empty values refused", edit("if not key or", "if not key or not value or"),
            cause='An empty value and the number 0 can be written and read back.',
            cure='Refuse an empty key only.', see="a ValueError for `{'empty': ''}`"),
        Mistake("sorted", edit("in metadata.items()", "in sorted(metadata.items())"),
            cause="The lines come in the sorted order of their keys, and the order of the dict is asked for.",
            cure='Loop over `metadata.items()` as it is.', see='the lines in alphabetical order'),
        Mistake("a newline after the last line", edit(r'"\n".join(lines)', r'"".join(line + "\n" for line in lines)'),
            cause="Newlines go between the lines here, and the last line ends with one, too.",
            cure='Join the lines: `"\\n".join(lines)`.', see="one byte `0a` too many at the end"),
        Mistake("nothing refused", omit("if not key"),
            cause="A key with `=` in it, or a newline anywhere, is written as if it could be read back.",
            cure="Look at each key and value first; raise ValueError for what a reader would split in the wrong place.",
            see="this input must be refused"),
        Mistake("text instead of bytes", edit('.encode("utf-8")', ""),
            cause="The lines are right, and they are still text; bytes in UTF-8 are asked for.",
            cure='End with `.encode("utf-8")`.', see="`str` where bytes are expected"),
        Mistake("AssertionError instead of ValueError", omit("if not key").edit(
                "lines.append(",
                'assert key and "=" not in key and "\\n" not in f"{key}{value}"\n        lines.append(',
            ),
            cause="Bad input ends in an AssertionError, as an `assert` raises it, and the docstring asks for ValueError.",
            cure="Write `if …: raise ValueError(…)`.", see="AssertionError where ValueError is expected"),
        Mistake("JSON", edit(r'return "\n".join(lines)', "import json\n    return json.dumps(metadata)"),
            cause="JSON is another text format, with braces, quotes and commas that a reader of lines does not expect.",
            cure="Write plain lines, `key=value`.", see="`7b`, an opening brace, in the first byte"),
        Mistake("= refused in values", edit('"=" in key', '"=" in f"{key}{value}"'),
            cause="A value that holds `=` is refused; a reader that splits at the first `=` can read it.",
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
