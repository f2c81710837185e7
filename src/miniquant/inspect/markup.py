"""What the pictures of bytes share: text and HTML in one object, a colour and a letter for each category of field.

The HTML follows the page's theme (text in its colour, translucent backgrounds), needs no script, loads nothing, holds
no ids and is the same on every machine. Wide parts scroll inside their own box, which the keyboard can reach.

What can be pointed at is a group of radio buttons: one stop of the Tab key, and the arrow keys choose. The explanation
of the part that is pointed at, or else chosen, stands on a line below, and what belongs to it is outlined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

CATEGORIES = {  # of a field -> (letter, what it is, its colour as red, green, blue); the letter is for grey
    "header": ("H", "header", "213,94,0"),
    "metadata": ("M", "metadata", "0,158,115"),
    "name": ("N", "name", "128,128,128"),
    "shape": ("D", "dims", "204,121,167"),
    "dtype": ("T", "dtype", "230,159,0"),
    "offset": ("O", "offset", "0,114,178"),
    "scales": ("S", "scales", "240,228,66"),
    "values": ("V", "values", "86,180,233"),
    "padding": ("P", "padding", "190,190,190"),
    "import": ("I", "imports a name", "213,94,0"),
    "call": ("C", "calls something", "204,121,167"),
    "memo": ("R", "remembers or recalls", "0,158,115"),
    "unread": ("?", "unread", "213,94,0"),
}

# Notebook and book themes stripe and align every table of an output: ".mq.mq.mq" outweighs their selectors.
_BASE = """
.mq.mq.mq{position:relative;margin:.6em 0;color:inherit;font-size:14px;line-height:1.5}
.mq.mq.mq p{margin:.3em 0}
.mq.mq.mq .mq-scroll{overflow-x:auto;padding:3px}
.mq.mq.mq table{border-collapse:collapse;border:0;margin:0;font-size:inherit;table-layout:auto;width:auto}
.mq.mq.mq caption{caption-side:top;text-align:left;color:inherit;padding:.2em 0;font-style:normal;font-weight:600}
.mq.mq.mq tr:nth-child(n),.mq.mq.mq tr:nth-child(n):hover{background:transparent}
.mq.mq.mq :is(th,td){text-align:left;color:inherit;padding:.1em .6em;vertical-align:top;border:0;max-width:none}
.mq.mq.mq th{font-weight:600}
.mq.mq.mq :is(code,.mq-mono){font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;font-size:13px}
.mq.mq.mq code{background:transparent;color:inherit;padding:0;border:0}
.mq.mq.mq :is([tabindex],summary):focus{outline:2px solid currentColor;outline-offset:1px}
.mq.mq.mq summary{cursor:pointer}
"""
CHOICES = """
.mq.mq.mq .mq-view{position:relative;margin:0;padding:0 0 calc(var(--lines)*1.5em + 1.1em);container-type:inline-size}
.mq.mq.mq .mq-pick{cursor:pointer;margin:0;font:inherit}
.mq.mq.mq .mq-pick input{appearance:none;display:inline-block;width:0;height:0;margin:0;padding:0;border:0;outline:0;
position:static;opacity:1;background:none}
.mq.mq.mq :is(.mq-pick:hover input,.mq-view:not(:has(.mq-pick:hover)) input:checked)::after{content:attr(aria-label);
display:block;box-sizing:border-box;position:absolute;left:3px;right:3px;bottom:0;top:auto;width:auto;
height:calc(var(--lines)*1.5em + .9em);padding:.3em .7em;border:0;border-left:3px solid currentColor;border-radius:0;
background:rgba(127,127,127,.12);color:inherit;font:14px/1.5 sans-serif;white-space:normal;
overflow:hidden auto;overflow-wrap:anywhere;transform:none;box-shadow:none;clip-path:none}
@media (max-width:640px){.mq.mq.mq .mq-view{--lines:var(--narrow)}}
.mq.mq.mq .mq-view.mq-quiet .mq-pick input:is(:checked,:not(:checked))::after{content:none}
.mq.mq.mq .mq-lit{outline:2px solid currentColor;outline-offset:-1px}
.mq.mq.mq .mq-pick:focus-within{box-shadow:0 0 0 4px rgba(86,180,233,.55)}
"""


@dataclass(frozen=True)
class Picture:
    """What a notebook shows as HTML and a terminal as text; both say the same."""

    text: str
    html: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


def box(title: str, body: str, style: str = "") -> str:
    """One picture: its style, its title, its body (HTML)."""
    return f"<div class='mq'><style>{_BASE}{style}</style><p><strong>{escape(title)}</strong></p>{body}</div>"


def scroll(label: str, body: str) -> str:
    """A part that may be wider than the page: it scrolls by itself, with the keyboard too."""
    return f"<div class='mq-scroll' role='group' tabindex='0' aria-label='{escape(label)}'>{body}</div>"


def chosen_from(label: str, body: str, said: Sequence[str]) -> str:
    """A group of choices (``choice``) with room below for the longest explanation in ``said``, on a phone too."""
    longest = max((len(text) for text in said), default=0)
    room = f"--lines:{longest // 84 + 1};--narrow:{longest // 34 + 1}"
    return (
        f"<form class='mq-view' autocomplete='off' data-lm-suppress-shortcuts='true' style='{room}'>"
        f"<div class='mq-scroll' role='radiogroup' aria-label='{escape(label, quote=True)}'>{body}</div></form>"
    )


def choice(number: int, said: str, content: str, kind: str = "", style: str = "", chosen: bool = False) -> str:
    """One thing to choose: ``said`` explains it, ``content`` is its HTML; what has the same number is lit with it."""
    place = f" style='{style}'" * bool(style)
    return (
        f"<label class='mq-pick mq-f{number}{' ' * bool(kind)}{kind}'{place}>{content}"
        f"<input type='radio' name='mq'{' checked=' + repr('checked') if chosen else ''} "
        f"aria-label='{escape(said, quote=True)}'/></label>"
    )


def lights(count: int) -> str:
    """The rules of style that outline, of numbers 0 to ``count`` - 1, all that has the number of what is chosen."""
    rules = ",".join(f".mq:has(.mq-f{i}:hover,.mq-f{i} :checked) .mq-f{i}" for i in range(count))
    return f"{rules}{{outline:2px solid currentColor;outline-offset:-1px}}\n" if count else ""


def table(
    caption: str,
    head: list[str],
    rows: list[list[object]],
    numbers: tuple[int, ...] = (),
    lit: Sequence[int | None] = (),
) -> str:
    """A plain table of escaped text; the columns in ``numbers`` are aligned to the right; ``lit``: see ``choice``."""
    right = [" style='text-align:right'" if i in numbers else "" for i in range(len(head))]
    top = "".join(f"<th scope='col'{r}>{escape(h)}</th>" for h, r in zip(head, right))
    marks = ["" if i is None else f" class='mq-f{i}'" for i in lit] or [""] * len(rows)
    body = "".join(
        f"<tr{mark}>" + "".join(f"<td{r}>{escape(str(cell))}</td>" for cell, r in zip(row, right)) + "</tr>"
        for row, mark in zip(rows, marks)
    )
    caption = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{caption}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def text_table(head: Sequence[str], rows: Sequence[Sequence[object]], numbers: tuple[int, ...] = ()) -> str:
    """The same in columns of plain text.

    >>> print(text_table(["part", "bytes"], [["header", 16], ["data", 252]], numbers=(1,)))
    part    bytes
    header     16
    data      252
    """
    lines = [head, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(c.rjust(w) if i in numbers else c.ljust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    )
