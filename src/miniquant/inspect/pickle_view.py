"""A pickle, opcode by opcode: its bytes, what it does, and the stack after it; imports and calls stand out.

Nothing is unpickled. The opcodes and the stack come from ``pickle_scan``.
"""

from __future__ import annotations

from html import escape

from ..core.errors import FormatError
from ..formats.pickle.opcodes import MEANINGS, kind_of
from ..formats.pickle.scan import Step, steps
from .markup import Picture, box, scroll, text_table

KINDS = {  # kind -> (letter, what it is, its colour as red, green, blue)
    "import": ("I", "imports a name", "213,94,0"),
    "call": ("C", "calls something", "204,121,167"),
    "data": ("D", "pushes or gathers data", "86,180,233"),
    "memo": ("M", "remembers or recalls", "0,158,115"),
    "frame": ("F", "says something about the pickle", "190,190,190"),
}
_STYLE = """
.mq.mq.mq .mq-pickle td{border-top:1px solid rgba(128,128,128,.35)}
.mq.mq.mq .mq-pickle .mq-number{text-align:right}
.mq.mq.mq .mq-pickle .mq-cell{display:inline-block;border:1px solid currentColor;border-radius:3px;padding:0 .35em;
margin:.1em .2em .1em 0;white-space:nowrap}
.mq.mq.mq .mq-pickle .mq-mark{border-style:dashed}
.mq.mq.mq .mq-pickle .mq-op{white-space:nowrap}
.mq.mq.mq .mq-key{display:inline-block;border:1px solid currentColor;border-radius:3px;padding:0 .4em;margin:.15em}
""" + "".join(f".mq.mq.mq .mq-p{letter}{{background:rgba({rgb},.28)}}\n" for letter, _, rgb in KINDS.values())


def pickleview(data: bytes, first: int = 0, count: int = 40) -> Picture:
    """The opcodes of a pickle as a table: byte, bytes, opcode, argument, what it does, the stack after it.

    data: a pickle; first: the number of the opcode to begin with; count: how many to show. Malformed data is shown as
    far as it goes, with what is wrong.
    """
    shown, problem, total = [], "", 0
    try:
        for total, step in enumerate(steps(data), start=1):
            if first < total <= first + count:
                shown.append(step)
    except FormatError as error:
        problem = f"A reader stops here: {error}"
    title = f"a pickle of {len(data)} bytes, {total} opcodes"
    if len(shown) < total:
        title += f"; number {first} to {first + len(shown) - 1}" if shown else f"; none from number {first} on"
    rows = [_row(data, step) for step in shown]
    head = ["byte", "bytes", "", "opcode", "argument", "what it does", "the stack after it, top on the right"]
    listed = [[*row[:-1], " | ".join(row[-1])] for row in rows]
    text = "\n".join(filter(None, [title, text_table(head, listed, (0,)) if rows else "", problem]))
    return Picture(text, _html(title, head, rows, problem))


_Row = tuple[str, str, str, str, str, str, list[str]]  # the last is the stack


def _row(data: bytes, step: Step) -> _Row:
    raw = data[step.offset : step.end]
    in_hex = raw[:6].hex(" ") + (" …" if len(raw) > 6 else "")
    kind = kind_of(step.opcode)
    argument = "" if step.argument is None else _short(repr(step.argument), 34)
    if step.opcode in ("GLOBAL", "INST") and step.wants is not None:
        argument = _short(f"{step.wants.module} {step.wants.name}", 44)
    stack = [_short(value.shown, 34) for value in step.stack]
    stack = ["…", *stack[-4:]] if len(stack) > 5 else stack
    meaning = MEANINGS.get(step.opcode, "pushes its argument")
    return str(step.offset), in_hex, KINDS[kind][0], step.opcode, argument, meaning, stack


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _html(title: str, head: list[str], rows: list[_Row], problem: str) -> str:
    letters = dict.fromkeys(row[2] for row in rows)
    used = [kind for kind in KINDS.values() if kind[0] in letters]
    key = "".join(f"<span class='mq-key mq-p{letter}'>{letter} {what}</span>" for letter, what, _ in used)
    top = "".join(f"<th scope='col'>{escape(h)}</th>" for h in (*head[:2], "opcode, and what it does", head[-1]))
    body = ""
    for offset, in_hex, letter, opcode, argument, meaning, stack in rows:
        cells = "".join(
            f"<span class='mq-cell{' mq-mark' if cell == 'MARK' else ''}'>{escape(cell)}</span>" for cell in stack
        )
        name = f"<strong>{escape(opcode)}</strong>" if letter in "IC" else escape(opcode)
        body += (
            f"<tr><td class='mq-number'>{offset}</td><td class='mq-op'>{in_hex}</td>"
            f"<td class='mq-p{letter}'>{letter} {name} {escape(argument)}<br><em>{escape(meaning)}</em></td>"
            f"<td>{cells or 'empty'}</td></tr>"
        )
    listed = f"<table class='mq-pickle mq-mono'><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    stop = f"<p>{escape(problem)}</p>" if problem else ""
    return box(title, f"<p>{key}</p>{scroll('the opcodes of the pickle', listed)}{stop}" if rows else stop, _STYLE)
