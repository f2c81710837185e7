"""Close looks: the two nibbles in a byte, a whole file as one strip to scale, a patch of weights before and after.

Each is a ``Picture``: HTML for a notebook, text for a terminal, the same facts in both.
"""

from __future__ import annotations

import math
import operator
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ..core.arrays import to_numpy
from ..formats.field import Array, Field
from ..formats.fields import Source, load, name_of, parse
from .markup import CHOICES, Picture, box, choice, chosen_from, lights, scroll, table, text_table

# ---- one byte --------------------------------------------------------------------------------------------------------

_BITS = """
.mq.mq.mq .mq-bits td,.mq.mq.mq .mq-bits th{text-align:center;padding:.25em .5em;min-width:1.6em}
.mq.mq.mq .mq-bits th{text-align:right;font-weight:400}
.mq.mq.mq .mq-bits td{border:1px solid currentColor}
.mq.mq.mq .mq-bits .mq-no{border-color:transparent;opacity:.8;font-size:.85em}
.mq.mq.mq .mq-high{background:rgba(86,180,233,.28)}
.mq.mq.mq .mq-low{background:rgba(230,159,0,.28);border-style:dashed!important}
"""


def nibbles(byte: int) -> Picture:
    """One packed byte opened: its 8 bits, the two nibbles, the two signed values that they hold.

    Raises ``ValueError`` for anything but an integer from 0 to 255.

    >>> nibbles(0x8F)
    the byte 0x8f, 143
              high nibble (odd index)  low nibble (even index)
    bits      1000                     1111
    unsigned  8                        15
    signed    8 - 16 = -8              15 - 16 = -1
    """
    try:
        number = operator.index(byte)
    except TypeError:
        number = -1
    if not 0 <= number <= 255:
        raise ValueError(f"expected one byte, an integer from 0 to 255, found {byte!r}")
    both = (number >> 4, number & 15)  # high, low
    signed = [f"{n} - 16 = {n - 16}" if n >= 8 else str(n) for n in both]
    title = f"the byte 0x{number:02x}, {number}"
    heads = ["high nibble (odd index)", "low nibble (even index)"]
    rows = [["bits", *(f"{n:04b}" for n in both)], ["unsigned", *map(str, both)], ["signed", *signed]]
    text = f"{title}\n{text_table(['', *heads], rows)}"

    sides = ("mq-high", "mq-low")
    numbers = "".join(f"<td class='mq-no'>{i}</td>" for i in range(7, -1, -1))
    bits = "".join(f"<td class='{sides[i // 4]}'>{bit}</td>" for i, bit in enumerate(f"{number:08b}"))
    body = f"<tr><th scope='row'>bit</th>{numbers}</tr><tr><th scope='row'>bits</th>{bits}</tr>"
    for label, cells in (("nibble", heads), ("unsigned", both), ("signed", signed)):
        row = "".join(f"<td colspan='4' class='{side}'>{cell}</td>" for side, cell in zip(sides, cells))
        body += f"<tr><th scope='row'>{label}</th>{row}</tr>"
    note = "<p>Four bits in two's complement: 8 to 15 stand for themselves less 16.</p>"
    return Picture(text, box(title, scroll(title, f"<table class='mq-bits'>{body}</table>") + note, _BITS))


# ---- a whole file ----------------------------------------------------------------------------------------------------

WIDE, TALL, LANE = 1000, 54, 22  # the strip's width and height and the lane of names above it, in its own units
FILLS = {  # the colours that the figures have for the same things
    "header": "213,94,0",
    "metadata": "190,190,190",
    "descriptors": "110,110,110",
    "scales": "240,228,66",
    "F32": "204,121,167",
    "F16": "230,159,0",
    "Q8": "0,158,115",
    "Q4": "86,180,233",
    "BF16": "230,159,0",
    "Q8_0": "0,158,115",
    "Q4_0": "86,180,233",
    "Q4_1": "0,114,178",
    "Q2_K": "204,121,167",
    "Q3_K": "213,94,0",
    "Q4_K": "86,180,233",
    "Q5_K": "0,114,178",
    "Q6_K": "0,158,115",
}
_RIBBON = (
    CHOICES
    + """
.mq.mq.mq .mq-over{display:grid;min-width:640px;max-width:1100px}
.mq.mq.mq .mq-over>*{grid-area:1/1}
.mq.mq.mq svg{display:block;width:100%;height:auto;color:inherit}
.mq.mq.mq .mq-line{display:flex;overflow:visible}
.mq.mq.mq .mq-line .mq-pick{display:block;flex:none;min-width:0}
.mq.mq.mq svg text{fill:currentColor;font-family:sans-serif;font-size:15px}
.mq.mq.mq svg :is(rect,path){stroke:currentColor;stroke-width:.6}
.mq.mq.mq svg .mq-thin{stroke:none}
"""
)


class Block(NamedTuple):
    """Neighbouring bytes that are drawn as one: ``what`` is a dtype or "scales" for a tensor's, else empty."""

    name: str
    what: str
    start: int
    length: int


def ribbon(source: Source) -> Picture:
    """A whole file, GGUF-lite or GGUF, as one strip to scale: scales short, values tall; magnified what is thin.

    source: a path, an open file or bytes; of a malformed file, what can be named. ``OSError`` if it cannot be opened.
    """
    size = len(load(source))
    parts, error = parse(source)
    blocks = blocks_of(parts)
    rows = [[b.name, b.what, b.length, f"{100 * b.length / size:.2f} %"] for b in blocks]
    rows.append(["the file", "", size, "100.00 %" if size else ""])
    heads = ["part", "what", "bytes", "share"]
    title = f"{name_of(source)}, {size} bytes, to scale"
    stop = f"A reader stops here: {error}" if error else ""
    text = "\n".join(filter(None, [title, stop, text_table(heads, rows, (2, 3))]))
    listed = table("", heads, rows, (2, 3), [*range(len(blocks)), None])
    body = f"<p>{escape(stop)}</p>" * bool(stop)
    if blocks:
        said = [_about(block) for block in blocks]
        body += chosen_from(title, f"<div class='mq-over'>{_strip(blocks, size, title)}</div>", said)
    if any(b.what for b in blocks):
        scales = "Tall blocks are values, short ones the scales of the next. " * any(b.what == "scales" for b in blocks)
        body += f"<p>{scales}Point at a block, or choose one with the arrow keys, for its name and size.</p>"
    body += f"<details><summary>Bytes and shares in a table</summary>{scroll('bytes and shares', listed)}</details>"
    return Picture(text, box(title, body, _RIBBON + lights(len(blocks))))


def blocks_of(parts: list[Field]) -> list[Block]:
    """The header, the metadata and the descriptors in one block each; the scales and the values of every tensor."""
    blocks: list[Block] = []
    for field in parts:
        if field.category in ("scales", "values"):
            what = field.decoder.label if isinstance(field.decoder, Array) else ""
            blocks.append(Block(field.name.rpartition(": ")[0], what, field.start, field.end - field.start))
            continue
        name = field.category if field.category in ("header", "metadata", "padding", "unread") else "descriptors"
        if blocks and blocks[-1].name == name:
            blocks[-1] = blocks[-1]._replace(length=field.end - blocks[-1].start)
        else:
            blocks.append(Block(name, "", field.start, field.end - field.start))
    return blocks


def _strip(blocks: list[Block], size: int, title: str) -> str:
    """The SVG, with the choices over it: a lane of names, the strip, and a magnifier for a head too thin to see."""
    scale, wide = WIDE / size, 460.0
    drawn, height = _lane(blocks, scale), LANE + TALL
    drawn += "".join(_block(b, b.start * scale, b.length * scale, LANE) for b in blocks)
    head = [i for i, b in enumerate(blocks) if b.name in ("header", "metadata", "descriptors")]
    length = sum(blocks[i].length for i in head)
    thin = 0 < length * scale < 90
    places = [(i, b.start * scale, b.length * scale) for i, b in enumerate(blocks) if not (thin and i in head)]
    choices = _choices(blocks, places, LANE)
    if thin:
        top, x, places = LANE + TALL + 20, 0.0, []
        corners = f"M0 {height}L0 {top}M{wide:g} {top}L{length * scale:.2f} {height}"
        drawn += f"<path d='{corners}' fill='none'/>"
        for i in head:
            places.append((i, x, wide * blocks[i].length / length))
            drawn += _block(blocks[i], *places[-1][1:], top)
            x += places[-1][2]
        note = ", ".join(f"{blocks[i].name} {blocks[i].length}" for i in head)
        drawn += f"<text x='{wide + 12:g}' y='{top + 20}'>the first {length} bytes, magnified:</text>"
        drawn += f"<text x='{wide + 12:g}' y='{top + 38}'>{note}</text>"
        choices += _choices(blocks, places, top - height)
        height = top + TALL
    largest = max(blocks, key=lambda b: b.length)
    label = f"{title}; the largest part is {largest.name} {largest.what}".strip() + f", {largest.length} bytes"
    svg = f"<svg viewBox='0 0 {WIDE} {height}' role='img' aria-label='{escape(label)}'>{drawn}</svg>"
    return f"{svg}<div>{choices}</div>"


def _choices(blocks: list[Block], places: list[tuple[int, float, float]], above: float) -> str:
    """One line of choices over blocks of the drawing, each (number of the block, x, width), with room ``above``."""
    out, end = "", 0.0
    for number, x, width in places:
        style = f"margin-left:{(x - end) / WIDE:.4%};width:{width / WIDE:.4%}"
        out += choice(number, _about(blocks[number]), "", style=style, chosen=number == 0)
        end = x + width
    return f"<div class='mq-line' style='margin-top:{above / WIDE:.2%};aspect-ratio:{WIDE}/{TALL}'>{out}</div>"


def _lane(blocks: list[Block], scale: float) -> str:
    """What belongs together, by the first parts of its name, where there is room to say so."""
    ends: dict[str, tuple[float, float]] = {}
    for b in (b for b in blocks if b.what):
        path = b.name.partition("'")[2].split(".")
        owner = ".".join(path[: 2 if path[1:] and path[1].isdigit() else 1]).strip("'")
        x = b.start * scale
        ends[owner] = (ends.get(owner, (x, 0))[0], x + b.length * scale)
    out = ""
    for owner, (x, end) in ends.items():
        if end - x > 7.8 * len(owner) + 6:
            out += f"<path d='M{x + 1.5:.2f} {LANE - 4}L{end - 1.5:.2f} {LANE - 4}'/>"
            out += f"<text x='{(x + end) / 2:.2f}' y='{LANE - 9}' text-anchor='middle'>{escape(owner)}</text>"
    return out


def _about(block: Block) -> str:
    what = f", {block.what}" if block.what else ""
    return f"{block.name}{what}: bytes {block.start} to {block.start + block.length - 1}, {block.length} in all"


def _block(block: Block, x: float, width: float, top: float) -> str:
    name, what = block.name, block.what
    tall = TALL / 2 if what == "scales" else TALL
    thin = " class='mq-thin'" if width < 2 else ""
    out = f"<rect x='{x:.2f}' y='{top:g}' width='{max(width, 0.3):.2f}' height='{tall:g}'"
    out += f"{thin} fill='rgba({FILLS.get(what or name, '128,128,128')},.5)'/>"
    short = what or name
    if width > 8.4 * len(short) + 6:
        out += f"<text x='{x + width / 2:.2f}' y='{top + tall / 2 + 5:g}' text-anchor='middle'>{escape(short)}</text>"
    return out


# ---- a patch of weights ----------------------------------------------------------------------------------------------

_PATCH = """
.mq.mq.mq .mq-patches{display:flex;flex-wrap:wrap;gap:.8em 1.6em}
.mq.mq.mq .mq-patch td{text-align:right;padding:.15em .45em;border:1px solid rgba(128,128,128,.4)}
.mq.mq.mq .mq-patch th{text-align:right;font-weight:400;padding:.15em .45em}
.mq.mq.mq .mq-patch .mq-edge{border-left:3px double currentColor}
"""


def microscope(w: Any, quantized: Any, row: int = 0, col: int = 0, size: int = 5) -> Picture:
    """A small patch of a matrix four times: the weights, their levels, the weights restored, what was lost.

    w: (out, in) floating point, numpy or torch
    quantized: ``Quantized``, or integers (out, in) and scales in a pair, either first; scales are one number,
    (out,), (out, 1) or (out, groups)
    row, col: the patch's corner; size: its side

    Raises ``ValueError`` if the shapes do not fit or the corner lies outside of the matrix.
    """
    w = to_numpy(w)
    levels, scale = _levels_and_scale(quantized)
    if w.ndim != 2 or levels.shape != w.shape:
        raise ValueError(f"expected a matrix and integers of its shape, found {w.shape} and {levels.shape}")
    if not (0 <= row < w.shape[0] and 0 <= col < w.shape[1] and size >= 1):
        raise ValueError(f"no patch of {size} at row {row}, column {col}: the matrix has shape {w.shape}")
    columns = np.atleast_2d(scale.astype(np.float32)) if scale.ndim != 1 else scale.astype(np.float32)[:, None]
    if scale.ndim > 2 or columns.shape[0] not in (1, len(w)) or not columns.shape[1] or w.shape[1] % columns.shape[1]:
        raise ValueError(f"scales of shape {scale.shape} do not fit a matrix of shape {w.shape}")
    group = w.shape[1] // columns.shape[1]
    rows, cols = (np.arange(at, min(at + size, n)) for at, n in zip((row, col), w.shape))
    steps = np.broadcast_to(columns, (len(w), columns.shape[1]))[np.ix_(rows, cols // group)]  # each weight's scale
    patch = w[np.ix_(rows, cols)]
    level = levels[np.ix_(rows, cols)].astype(np.int64)
    restored = level.astype(np.float32) * steps
    return _patches(patch, level, restored, rows, cols, group, steps)


def _levels_and_scale(quantized: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        a, b = (np.asarray(x.detach().cpu() if hasattr(x, "detach") else x) for x in quantized)
    except (TypeError, ValueError):
        raise ValueError(f"expected integers and scales in a pair, found {type(quantized).__name__}") from None
    if np.issubdtype(a.dtype, np.integer) and np.issubdtype(b.dtype, np.floating):
        return a, b
    if np.issubdtype(b.dtype, np.integer) and np.issubdtype(a.dtype, np.floating):
        return b, a
    raise ValueError(f"expected integers and floating-point scales, found {a.dtype} and {b.dtype}")


def _patches(
    patch: np.ndarray,
    level: np.ndarray,
    restored: np.ndarray,
    rows: np.ndarray,
    cols: np.ndarray,
    group: int,
    steps: np.ndarray,
) -> Picture:
    """The text and the HTML of one patch; all arrays have its shape."""
    lost = patch - restored
    digits = max(_decimals(float(np.abs(patch).max()), 3), _decimals(float(steps.min()), 2))
    tables = [
        ("original", patch, digits),
        ("levels", level, None),
        ("restored = level × scale", restored, digits),
        ("residual = original - restored", lost, digits),
    ]
    title = f"rows {rows[0]} to {rows[-1]}, columns {cols[0]} to {cols[-1]}"
    worst, at = float(np.abs(lost).max()), np.unravel_index(int(np.abs(lost).argmax()), lost.shape)
    summary = (
        f"the largest residual is {worst:.{digits}f}, in row {rows[at[0]]}, column {cols[at[1]]}; "
        f"half a step is {steps[at] / 2:.{digits}f} there"
    )
    text, html = [title], ""
    for name, values, places in tables:
        cells = [[_number(v, places) for v in line] for line in values]
        head = ["", *map(str, cols)]
        listed = [[str(r), *line] for r, line in zip(rows, cells)]
        text += [f"{name}:", text_table(head, listed, tuple(range(len(head))))]
        html += _patch_table(name, values, cells, rows, cols, group)
    body = f"<div class='mq-patches'>{html}</div><p>{escape(summary)}</p>"
    return Picture("\n".join([*text, summary]), box(title, body, _PATCH))


def _decimals(size: float, significant: int) -> int:
    """How many decimals show a number of this size to so many significant digits, within reason."""
    return min(12, max(1, significant - 1 - math.floor(math.log10(size)))) if 0 < size < math.inf else 1


def _number(value: Any, places: int | None) -> str:
    """A value with fixed decimals; a zero has no sign."""
    if places is None:
        return str(int(value))
    text = f"{float(value):.{places}f}"
    return text.lstrip("-") if float(text) == 0 else text


def _patch_table(
    name: str, values: np.ndarray, cells: list[list[str]], rows: np.ndarray, cols: np.ndarray, group: int
) -> str:
    """One of the four tables: blue is positive, orange negative, deeper is larger; a double line parts groups."""
    largest = float(np.abs(values).max()) or 1.0
    edges = [" class='mq-edge'" if i and c % group == 0 else "" for i, c in enumerate(cols)]
    top = "".join(f"<th scope='col'>{c}</th>" for c in cols)
    body = ""
    for r, line, texts in zip(rows, values, cells):
        body += f"<tr><th scope='row'>{r}</th>"
        for value, cell, edge in zip(line, texts, edges):
            colour, depth = "0,114,178" if value > 0 else "213,94,0", 0.45 * abs(float(value)) / largest
            body += f"<td{edge} style='background:rgba({colour},{depth:.2f})'>{cell}</td>"
        body += "</tr>"
    listed = f"<table class='mq-patch mq-mono'><caption>{escape(name)}</caption><tr><th></th>{top}</tr>{body}</table>"
    return scroll(name, listed)
