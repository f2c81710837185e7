"""How a wrong text differs from the right one in its letters: capitals, white space, one sign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .seen import Seen


def is_subsequence(a: list[str], b: list[str]) -> bool:
    """Whether a list is the other one without some of its items."""
    rest = iter(b)
    return all(x in rest for x in a)


def of_spaces(e: str, g: str) -> Iterator[Seen]:
    """White space that is missing, and nothing else: at the two ends, at the ends of lines, or anywhere."""
    if len(g) >= len(e):
        return
    lines = (("at the end", str.rstrip), ("at the beginning", str.lstrip), ("at the ends", str.strip))
    for rank, (words, strip) in enumerate(lines):
        if strip(e) == g:
            text = f"white space {words} of the result is missing, and nothing else differs"
            yield Seen("white space missing", text, "Keep every character.", 7 + rank / 100)
        if [strip(line) for line in e.split("\n")] == g.split("\n"):
            text = f"white space {words} of lines is missing, and nothing else differs"
            yield Seen("white space missing", text, "Keep every character.", 7.2 + rank / 100)
    if is_subsequence(list(g), list(e)) and not "".join((Counter(e) - Counter(g)).elements()).strip():
        text = "white space is missing, and nothing else differs"
        yield Seen("white space missing", text, "Keep every character.", 7.5)


def of_letters(e: str, g: str) -> Iterator[Seen]:
    """Two texts that differ in capitals, white space, quotes, or in one sign only."""
    if e.casefold() == g.casefold():
        yield Seen("capitals", "capital and small letters differ, and nothing else", "Keep the letters as they are.", 7)
    elif e.split() == g.split():
        yield Seen("white space", "spaces or line ends differ, and nothing else", "Compare both texts with `repr`.", 8)
    elif g == repr(e) or e == repr(g):
        yield Seen(
            "quotes",
            "the text is there with quotes, or without them",
            "Use `str`, not `repr`, or the other way round.",
            8,
        )
    elif e.strip(".,;:") == g.strip(".,;:"):
        yield Seen("punctuation", "the punctuation at an end differs, and nothing else", "", 9)
    yield from of_spaces(e, g)
    for word, longer, shorter in (("missing", e, g), ("too many", g, e)):
        if len(shorter) < len(longer) and is_subsequence(list(shorter), list(longer)):
            lost = Counter(longer) - Counter(shorter)
            if len(lost) == 1:
                (letter,) = lost
                text = f"the character {letter!r} is {word}" if word == "missing" else f"there are {word} {letter!r}"
                yield Seen(f"{letter!r} {word}", f"{text}, and nothing else differs", "", 9.5)
    pairs = {(a, b) for a, b in zip(e, g) if a != b}
    if len(e) == len(g) and len(pairs) == 1 and not all(x.isdigit() for pair in pairs for x in pair):
        ((a, b),) = pairs
        yield Seen("another character", f"{b!r} stands where {a!r} is expected, and nothing else differs", "", 9.5)
