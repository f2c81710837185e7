"""Look at a model file's bytes: each one named, coloured by what it is, explained where one points or goes by keyboard.

``hexview`` shows a stretch of a file, ``diff`` the first byte in which two files differ; ``nibbles``, ``ribbon`` and
``microscope`` (from ``pictures``) open one byte, a whole file and a patch of weights. Everything has a text form, works
on malformed files, and needs numpy alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from ..formats.field import Field
from ..formats.fields import Source, fields, load, name_of, parse
from ..formats.file import Beside
from ..formats.gguf.codecs import CODECS
from ..formats.gguf.fields import block_fields
from ..formats.gguf.types import GGMLType
from .markup import CATEGORIES, CHOICES, Picture, box, choice, chosen_from, lights, scroll, table
from .pictures import microscope, nibbles, ribbon

__all__ = ["Field", "diff", "fields", "hexview", "microscope", "nibbles", "ribbon", "super_block"]

ROW = 16  # bytes in a row
HALF = 8  # bytes in a line where there is no room for a row
STYLE = (
    CHOICES
    + """
.mq.mq.mq .mq-row{display:flex;white-space:pre;line-height:1.9}
.mq.mq.mq .mq-ascii{padding-left:1.5em;opacity:.8}
.mq.mq.mq .mq-at{opacity:.8;padding-right:.8em}
.mq.mq.mq .mq-cells{flex:none;width:48ch}
.mq.mq.mq .mq-at i{display:none;font-style:normal}
.mq.mq.mq .mq-run{border:1px solid currentColor;border-radius:3px;padding:.15em 0;margin:0 -1px}
.mq.mq.mq .mq-on{border-left-style:dashed}
.mq.mq.mq .mq-k{display:inline-block;font-size:.7em;width:1.43ch;vertical-align:.35em;text-align:center}
.mq.mq.mq .mq-key{display:inline-block;border:1px solid currentColor;border-radius:3px;padding:0 .4em;margin:.15em}
.mq.mq.mq .mq-facts td{overflow-wrap:anywhere;white-space:normal}
.mq.mq.mq mark{padding:0;background:transparent;color:inherit;outline:3px double currentColor;font-weight:700}
@container (max-width:620px){
.mq.mq.mq .mq-mono{font-size:12px}
.mq.mq.mq .mq-cut::before{content:'\\A'}
.mq.mq.mq .mq-cells{width:24ch}
.mq.mq.mq .mq-at i{display:block}
.mq.mq.mq .mq-at .mq-z{display:none}
.mq.mq.mq .mq-at{padding-right:.5em}
.mq.mq.mq .mq-ascii{padding-left:.8em}
}
"""
)
CUT = "<i class='mq-cut'></i>"  # where a row of 16 bytes breaks into two lines of 8


def hexview(source: Source, start: int | str = 0, length: int = 256, beside: Beside | None = None) -> Picture:
    """The bytes of a model file from ``start``, annotated field by field.

    source: a path, an open file or bytes; a malformed file is shown as far as it can be, with the reader's error.
    start: a byte from the start of the file (negative: from its end), or the name of a field; length: in bytes
    beside: for bytes, what lies beside the file, by name: a bump file's ``config.json`` names its tensors

    Raises ``KeyError`` for a field that the file does not have, ``OSError`` if the file cannot be opened.
    """
    data = load(source)
    parts, error = parse(source, beside)
    if isinstance(start, str):
        named = [field.start for field in parts if field.name == start]
        if not named:
            raise KeyError(f"no field {start!r}; the names are in [field.name for field in fields(path)]")
        start = named[0]
    begin = max(0, start + len(data) if start < 0 else start)
    end = min(len(data), begin + max(0, length))
    shown = [field for field in parts if field.start < end and field.end > begin]
    title = f"{name_of(source)}, {len(data)} bytes"
    title += f": bytes {begin} to {end - 1}" if end > begin else f": nothing to show from byte {begin} on"
    stop = f"A reader stops here: {error}" if error else ""
    rows = _rows(shown, begin, end)
    text = "\n".join(filter(None, [title, stop, *(_text_row(data, at, runs) for at, runs in rows)]))
    return Picture(text, _html(data, title, stop, rows, shown))


def super_block(raw: np.ndarray, kind: GGMLType) -> Picture:
    """One super-block of a K-quant, its parts coloured and named: d, dmin, scales, qs, and what else it has.

    raw: (bytes of a block,) uint8. Raises ``ValueError`` for another number of bytes.
    """
    raw = np.asarray(raw, np.uint8)
    if kind not in CODECS or not CODECS[kind].super_block or raw.shape != (kind.n_bytes,):
        raise ValueError(f"a super-block of {kind.name} has {kind.n_bytes} bytes, found an array of shape {raw.shape}")
    shown = block_fields(raw, kind)
    title = f"one super-block of {kind.name}: {kind.n_bytes} bytes, {kind.block} weights"
    rows = _rows(shown, 0, len(raw))
    return Picture("\n".join([title, *(_text_row(raw, *row) for row in rows)]), _html(raw, title, "", rows, shown))


Run = tuple[Field, int, int]  # a field, and the bytes of it that stand in one row


def _rows(shown: list[Field], begin: int, end: int) -> list[tuple[int, list[Run]]]:
    """Cut into rows of 16 bytes: (offset of the row, its runs)."""
    rows = []
    for at in range(begin - begin % ROW, end, ROW):
        low, high = max(at, begin), min(at + ROW, end)
        runs = [(f, max(low, f.start), min(high, f.end)) for f in shown if f.start < high and f.end > low]
        rows.append((at, runs))
    return rows


def _ascii(data: np.ndarray, start: int, end: int) -> str:
    return "".join(chr(b) if 32 <= b < 127 else "." for b in data[start:end].tolist())


def _text_row(data: np.ndarray, at: int, runs: list[Run]) -> str:
    low, high = runs[0][1], runs[-1][2]
    cells = "   " * (low - at) + bytes(data[low:high]).hex(" ")
    names = ", ".join(_name(*run) for run in runs)
    return f"{at:08x}  {cells:<{3 * ROW}} {' ' * (low - at) + _ascii(data, low, high):<{ROW}}  {names}"


def _name(field: Field, start: int, end: int) -> str:
    inside = field.parts(start, end)
    return "… " * (start > field.start) + field.name + f" ({inside})" * bool(inside)


def _html(data: np.ndarray, title: str, stop: str, rows: list[tuple[int, list[Run]]], shown: list[Field]) -> str:
    categories = list(dict.fromkeys(field.category for field in shown))
    key = "".join(f"<span class='mq-key mq-{k}'>{CATEGORIES[k][0]} {CATEGORIES[k][1]}</span>" for k in categories)
    numbers = {id(field): i for i, field in enumerate(shown)}
    runs = [run for _, row in rows for run in row]
    short = bool(rows) and rows[-1][0] + HALF < 1 << 16
    lines = []
    for at, row in rows:
        low, high = row[0][1] - at, row[-1][2] - at
        cells = "".join(_run(data, run, at, numbers[id(run[0])], run is runs[0]) for run in row)
        letters = " " * low + _ascii(data, at + low, at + high)
        lines.append(
            f"<div class='mq-row'>{_place(at, short, high > HALF)}<span class='mq-cells'>{_gap(low)}{cells}</span>"
            f"<span class='mq-ascii' aria-hidden='true'>{_cut(letters)}</span></div>"
        )
    listed = [[f.start, len(f), f.name, f.text(), f.explanation] for f in shown]
    details = table("", ["byte", "length", "field", "value", "what it is"], listed, (0, 1), range(len(shown)))
    body = f"<p>{escape(stop)}</p>" * bool(stop) + f"<p>{key}</p>"
    if lines:
        said = [_said(*run) for run in runs]
        body += chosen_from(f"the bytes of {title}", f"<div class='mq-mono'>{''.join(lines)}</div>", said)
    body += f"<details><summary>The fields in a table</summary>{scroll('the fields in a table', details)}</details>"
    return box(title, body, STYLE + _colours(categories) + lights(len(shown)))


def _colours(categories: list[str]) -> str:
    """The backgrounds of these categories of fields, and of no others: so a new category changes no stored picture."""
    used = {name: rgb for name, (_, _, rgb) in CATEGORIES.items() if name in categories}
    return "".join(f".mq.mq.mq .mq-{name}{{background:rgba({rgb},.28)}}\n" for name, rgb in used.items())


def _place(at: int, short: bool, second: bool) -> str:
    """The offset of a row, and of its second half; ``short``: four digits are enough where there is little room."""
    digits = f"{at:08x}"
    first = f"<span class='mq-z'>{digits[:4]}</span>{digits[4:]}" if short else digits
    below = f"<i>{f'{at + HALF:08x}'[4 * short :]}</i>" * second
    return f"<span class='mq-at'>{first}{below}</span>"


def _gap(low: int) -> str:
    """Room for the first ``low`` bytes of a row, which are not shown."""
    return " " * 3 * min(low, HALF) + (CUT + " " * 3 * (low - HALF)) * (low > HALF)


def _cut(letters: str) -> str:
    """The letters of a row, to be broken in the middle if there is a second half."""
    return escape(letters[:HALF]) + (CUT + escape(letters[HALF:])) * (len(letters) > HALF)


def _said(field: Field, start: int, end: int) -> str:
    where = f"byte {start}" if end == start + 1 else f"bytes {start} to {end - 1}"
    return f"{where}, {field.name} = {field.text(start, end)} ({field.explanation})"


def _run(data: np.ndarray, run: Run, row: int, number: int, first: bool, mark: int | None = None) -> str:
    """One run of bytes in the row at ``row``, to choose, with what it is as its name."""
    field, start, end = run
    cells = [f"{byte:02x}" for byte in data[start:end].tolist()]
    if mark is not None and start <= mark < end:
        cells[mark - start] = f"<mark>{cells[mark - start]}</mark>"
    middle = row + HALF - start  # how many of the cells lie in the first half
    content = f"<span class='mq-k'>{CATEGORIES[field.category][0]}</span>" + " ".join(cells)
    if 0 < middle < len(cells):
        content = f"<span class='mq-k'>{CATEGORIES[field.category][0]}</span>{' '.join(cells[:middle])}{CUT} "
        content += " ".join(cells[middle:])
    kind = f"mq-run mq-{field.category}{' mq-on' * (start > field.start)}"
    return CUT * (middle == 0) + choice(number, _said(field, start, end), content, kind, chosen=first)


# ---- two files -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison(Picture):
    """Two files side by side. ``offset`` is the first byte that differs, ``field`` its name; ``None`` if none does."""

    equal: bool
    offset: int | None
    field: str | None

    __repr__ = Picture.__repr__


def diff(mine: Source, reference: Source) -> Comparison:
    """Mark the first byte in which ``mine`` differs from ``reference``, and name its field.

    Each is a path, an open file or bytes. The names come from the reference; ``mine`` may be as broken as it likes.
    Raises ``OSError`` if a file cannot be opened.
    """
    ours, theirs = load(mine), load(reference)
    names = name_of(mine, "mine"), name_of(reference, "the reference")
    names = ("mine", "the reference") if names[0] == names[1] else names
    at = _first_difference(ours, theirs)
    if at is None:
        digest = hashlib.sha256(theirs.data).hexdigest()[:16]
        text = f"{names[0]} and {names[1]} are byte for byte equal: {len(ours)} bytes, SHA-256 {digest}…"
        return Comparison(text, box(text, ""), True, None, None)
    parts, problem = parse(reference)
    problems = [(names[0], parse(mine)[1]), (names[1], problem)]
    errors = [f"a reader of {name} stops: {error}" for name, error in problems if error]
    return _difference(ours, theirs, at, parts, errors, names)


def _first_difference(ours: np.ndarray, theirs: np.ndarray, chunk: int = 1 << 20) -> int | None:
    common = min(len(ours), len(theirs))
    for start in range(0, common, chunk):
        different = ours[start : min(start + chunk, common)] != theirs[start : min(start + chunk, common)]
        if different.any():
            return start + int(different.argmax())
    return None if len(ours) == len(theirs) else common


def _difference(
    ours: np.ndarray, theirs: np.ndarray, at: int, parts: list[Field], errors: list[str], names: tuple[str, str]
) -> Comparison:
    """The report on two files whose first ``at`` bytes agree; ``parts`` are the fields of the reference."""
    field = next((f for f in parts if f.start <= at < f.end), None)
    found = [replace(f, raw=ours[f.start : f.end]) for f in parts]  # our bytes under the reference's names
    if len(ours) > len(theirs):
        end = len(theirs)
        found.append(Field("after the end", end, len(ours), "unread", "nothing belongs here", ours[end:]))
    if field is None:
        title = f"{names[0]} goes on after byte {at}, where {names[1]} ends"
        facts = [("not expected", found[-1].text())]
    elif at == len(ours):
        title = f"{names[0]} ends at byte {at}, in {field.name}"
        facts = [("field", _about(field)), ("missing", f"{len(theirs) - at} bytes")]
    else:
        title = f"{names[0]} differs from {names[1]} at byte {at}, in {field.name}"
        facts = [
            ("field", _about(field)),
            ("byte", f"{theirs[at]:02x} expected, {ours[at]:02x} found"),
            ("expected", field.text(at, at + 1)),
            ("found", found[parts.index(field)].text(at, at + 1)),
        ]
    facts.append(("lengths", f"{len(theirs)} bytes expected, {len(ours)} found"))
    changed = [f.name for f in parts if f.end <= len(ours) and (ours[f.start : f.end] != theirs[f.start : f.end]).any()]
    if len(changed) > 1:
        facts.append(("fields that differ", ", ".join(changed[:8]) + (f", … ({len(changed)})" if changed[8:] else "")))
    facts += [("note", error) for error in errors]
    text, rows = _side_by_side(at, ("expected", theirs, parts), ("found", ours, found))
    lines = [title, *(f"  {label}: {fact}" for label, fact in facts), *text]
    listed = "".join(f"<tr><th scope='row'>{escape(label)}</th><td>{escape(fact)}</td></tr>" for label, fact in facts)
    body = f"<table class='mq-facts'>{listed}</table>{rows}"
    return Comparison("\n".join(lines), box(title, body, STYLE), False, at, field.name if field else None)


def _side_by_side(at: int, *both: tuple[str, np.ndarray, list[Field]]) -> tuple[list[str], str]:
    """The rows around byte ``at`` of (label, bytes, fields), in turn: lines of text, and HTML."""
    text, html = [], ""
    said: list[str] = []
    numbers: dict[str, int] = {}
    begin = max(0, at - at % ROW - ROW)
    for row in range(begin, begin + 3 * ROW, ROW):
        for label, data, named in both:
            low, high = row, min(row + ROW, len(data))
            if low >= high:
                continue
            text.append(f"  {label:<8}  {row:08x}  {bytes(data[low:high]).hex(' ')}")
            runs = [(f, max(low, f.start), min(high, f.end)) for f in named if f.start < high and f.end > low]
            cells = ""
            for run in runs:
                number = numbers.setdefault(run[0].name, len(numbers))
                cells += _run(data, run, row, number, first=not said, mark=at)
                said.append(_said(*run))
            place = _place(row, row + HALF < 1 << 16, high > row + HALF)
            html += f"<div class='mq-row'><span class='mq-who'>{label:<9}</span>{place}"
            html += f"<span class='mq-cells'>{cells}</span></div>"
        if row <= at < row + ROW:
            text.append(" " * (22 + 3 * (at - row)) + "^^")
    bytes_around = chosen_from("the bytes around the difference", f"<div class='mq-mono'>{html}</div>", said)
    style = _colours([field.category for _, _, named in both for field in named]) + lights(len(numbers))
    return text, f"<style>{style}</style>{bytes_around}"


def _about(field: Field) -> str:
    where = f"byte {field.start}" if len(field) == 1 else f"bytes {field.start} to {field.end - 1}"
    return f"{field.name}, {where}: {field.explanation}"
