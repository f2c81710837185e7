"""Texts that come from files and from people, made safe to print."""

from __future__ import annotations

import json


def visible(text: str) -> str:
    r"""A text from a file, safe to print: what cannot be printed is escaped as in JSON.

    So a name cannot command the terminal, begin a line of its own, or turn the direction of writing.

    >>> print(visible("größe \x1b[2J"))
    größe \u001b[2J
    """
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
