"""What of a page, a notebook, a lesson and the engine's sources is to be translated, and how it is put in its place.

A page or a cell of text is cut into blocks at its blank lines. Of code, the comments and those strings count that a
student reads. Of an f-string the fields are numbered: ``{0} of {1} results``.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

Change = Callable[[str], str]
BLANK = re.compile(r"(\n[ \t]*\n+)")
FENCE = re.compile(r"^(`{3,}|~{3,})(.*)$")
CODE = re.compile(r"\{code-cell\}")
ALT = re.compile(r'\balt: "([^"]*)"')
READ = {  # calls whose strings a student reads, also those of one word
    *("print", "title", "set_title", "set_xlabel", "set_ylabel", "suptitle", "text", "annotate", "predict", "legend"),
    *("suptitle", "supxlabel", "supylabel", "figtext", "Markdown", "HTML", "table", "alt"),
}
LABELS = ("label", "title", "xlabel", "ylabel", "alt", "caption", "unit")
TWO_WORDS = re.compile(r"[A-Za-z]{2,}[ ,]+\S*[A-Za-z]{2,}")
LETTERS = re.compile(r"[A-Za-z]{2,}")


# ---- text ------------------------------------------------------------------------------------------------------------


def in_text(text: str, change: Change) -> str:
    """The Markdown with ``change`` made to each of its blocks, and to the comments and strings of its cells of code."""
    done, lines = [], text.split("\n")
    at = start = 0
    while at < len(lines):
        opened = FENCE.match(lines[at])
        if opened and (not opened[2].startswith("{") or CODE.match(opened[2])):
            end = at + 1
            while end < len(lines) and not (lines[end].startswith(opened[1]) and lines[end].strip() == opened[1]):
                end += 1
            done.append(_blocks("\n".join(lines[start:at]), change))
            inside = "\n".join(lines[at + 1 : end])
            if CODE.match(opened[2]):
                options, body = _options(inside, change)
                inside = options + in_code(body, change)
            elif opened[2].strip() in ("", "text") and TWO_WORDS.search(inside):
                inside = change(inside)
            done.append("\n".join([lines[at], *([inside] if end > at + 1 else []), *lines[end : end + 1]]))
            at = start = end + 1
        else:
            at += 1
    if start < len(lines):
        done.append(_blocks("\n".join(lines[start:]), change))
    return "\n".join(done)


def _options(cell: str, change: Change) -> tuple[str, str]:
    lines = cell.split("\n")
    count = next((n for n, line in enumerate(lines) if not line.startswith(":")), len(lines))
    head = "".join(f"{line}\n" for line in lines[:count])
    return ALT.sub(lambda alt: f'alt: "{change(alt[1])}"', head), "\n".join(lines[count:])


def _blocks(text: str, change: Change) -> str:
    parts = BLANK.split(text)
    for number in range(0, len(parts), 2):
        part = parts[number]
        core = part.strip("\n")
        if LETTERS.search(_prose(core)) and not core.startswith("---\n"):
            parts[number] = part.replace(core, change(core), 1)
    return "".join(parts)


def _prose(block: str) -> str:
    """A block without code, formulas, addresses, tags and directives: is anything left to translate?"""
    text = re.sub(r"`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|<[^>]*>|\]\([^)]*\)", " ", block, flags=re.S)
    return re.sub(r"^:\w[\w-]*:.*$|^(`{3,}|:{3,})(\{[^}]*\})?|\{[\w:]+\}", " ", text, flags=re.M)


# ---- code ------------------------------------------------------------------------------------------------------------


def in_code(source: str, change: Change) -> str:
    """The Python code with ``change`` made to its comments and to the strings that a student reads.

    A cell that is no plain Python stays as it is.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    edits = []
    for node in _strings(tree):
        begin, end = place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0)
        edits.append((begin, end, _literal(source[begin:end], change)))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string[1:].strip()
        if token.type == tokenize.COMMENT and LETTERS.search(text) and not re.match("##|type:|noqa", text):
            begin = starts[token.start[0] - 1] + token.start[1]
            edits.append((begin, begin + len(token.string), f"# {change(text)}"))
    for begin, end, new in sorted(edits, reverse=True):
        source = source[:begin] + new + source[end:]
    return source


def _strings(tree: ast.Module) -> Iterator[ast.Constant | ast.JoinedStr]:
    """The literals that a student reads: with two words, or of one word in a call that shows it."""
    skip: set[int] = set()
    shown: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skip |= {id(inside) for inside in ast.walk(node) if inside is not node}
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            values = [word.value for word in node.keywords if word.arg in LABELS]
            values += node.args if name in READ else []
            for value in values:
                shown |= {id(inside) for inside in ast.walk(value)}
        elif isinstance(node, ast.IfExp):
            shown |= {id(node.body), id(node.orelse)}
    for node in ast.walk(tree):
        if id(node) in skip:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(v.value for v in node.values if isinstance(v, ast.Constant) and isinstance(v.value, str))
            if LETTERS.search(re.sub(r"`[^`]*`", "", text)):
                yield node
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and (TWO_WORDS.search(node.value) or (id(node) in shown and LETTERS.search(node.value)))
        ):
            yield node


def _literal(literal: str, change: Change) -> str:
    """A literal as it is written in the source, translated between its quotes."""
    match = re.fullmatch(r"([rRbBfFuU]*)('''|\"\"\"|'|\")(.*)\2", literal, re.S)
    pieces = re.findall(r"""[rRfFuU]*(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""", literal)
    if len(pieces) > 1 and match and "\n" in literal and match[2] not in ("'''", '"""'):
        quoted = [re.fullmatch(r"([rRfFuU]*)(['\"])(.*)\2", piece, re.S) for piece in pieces]
        if all(quoted) and {piece[2] for piece in quoted if piece} == {'"'}:
            prefix = "f" if any("f" in piece[1] for piece in quoted if piece) else ""
            whole = "".join(piece[3] for piece in quoted if piece)
            new = change(whole)
            return literal if new == whole else f'{prefix}"{new}"'
    if not match or "b" in match[1].lower():
        return literal
    if match[2] in ("'''", '"""'):
        return f"{match[1]}{match[2]}{_blocks(match[3], change)}{match[2]}"
    new = change(match[3])
    return f"{match[1]}{match[2]}{new}{match[2]}"


# ---- the engine's sentences ------------------------------------------------------------------------------------------


def messages(path: Path) -> Iterator[tuple[str, str]]:
    """The messages of a module, f-strings with numbered fields, each with what its fields hold."""
    tree = ast.parse(path.read_text("utf-8"))
    documented: set[int] = set()
    pieces: set[int] = set()
    within: set[int] = set()
    nodes = [*ast.walk(tree)]
    for node in nodes:
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                documented.add(id(first.value))
        elif isinstance(node, ast.JoinedStr):
            pieces |= {id(value) for value in node.values if isinstance(value, ast.Constant)}
            for value in node.values:
                if isinstance(value, ast.FormattedValue):
                    within |= {id(inside) for inside in ast.walk(value.value)}
                    if value.format_spec:
                        pieces |= {id(inside) for inside in ast.walk(value.format_spec)}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documented.add(id(node.value))
    for node in nodes:
        if id(node) in pieces or id(node) in documented:
            continue
        if isinstance(node, ast.JoinedStr):
            text, fields = _numbered(node)
            if LETTERS.search(re.sub(r"\{\d+\}|`[^`]*`", "", text)):
                yield text, ", ".join(f"{{{n}}} {field}" for n, field in enumerate(fields))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and (TWO_WORDS.search(node.value) or (id(node) in within and re.search("[a-z]{2,}", node.value)))
        ):
            yield node.value, ""


def _numbered(node: ast.JoinedStr) -> tuple[str, list[str]]:
    text, fields = "", []
    for value in node.values:
        if isinstance(value, ast.Constant):
            text += str(value.value)
        else:
            text += f"{{{len(fields)}}}"
            fields.append(ast.unparse(value.value) if isinstance(value, ast.FormattedValue) else "")
    return text, fields


# ---- the words of the site -------------------------------------------------------------------------------------------

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
SHOWN = re.compile(r"^[A-ZÁ-Ú¿][a-z]+$")  # a button of one word


def of_script(path: Path) -> Iterator[str]:
    """What a script of the site may show: its texts, with ``${…}`` as numbered fields."""
    source = re.sub(r"^\s*//.*$|\s//\s.*$", "", path.read_text("utf-8"), flags=re.M)
    for plain, template in LITERAL.findall(source):
        text = plain
        if template:
            parts = re.split(r"\$\{((?:[^{}]|\{[^{}]*\})*)\}", template)
            text = "".join(part if at % 2 == 0 else f"{{{at // 2}}}" for at, part in enumerate(parts))
        for piece in _without_tags(text):
            if _is_shown(piece):
                yield piece


def of_page_maker(path: Path) -> Iterator[str]:
    """What a module that makes pages writes into them, between tags and as labels."""
    for text, _ in messages(path):
        yield from (piece for piece in _without_tags(text) if _is_shown(piece))


def _without_tags(text: str) -> list[str]:
    labels = re.findall(r'(?:aria-label|title|content|placeholder|alt)="([^"]*)"', text)
    pieces = [piece.strip() for piece in re.split(r"<[^>]*>?", text)]
    return [_renumbered(piece) for piece in (*pieces, *labels) if piece]


def _renumbered(text: str) -> str:
    """Fields numbered from 0, as a piece of a longer message has only some of them."""
    numbers = iter(range(99))
    return re.sub(r"\{\d+\}", lambda _: f"{{{next(numbers)}}}", text)


def _is_shown(text: str) -> bool:
    code = re.search(r"[;=<>{}\[\]#/\\]|::|\.(js|py|html|css)|^[.:]|mq-|--|\d:", re.sub(r"\{\d+\}", "", text))
    return not code and bool(TWO_WORDS.search(text) or SHOWN.match(text))
