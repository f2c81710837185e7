"""Where in a student's code an error was raised, and what was there: read from the error's traceback."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import textwrap
import traceback
import types
from collections.abc import Sequence
from typing import Any

from ..compare import kind, short
from ..spec import Function
from ..trace import lines_of, named
from ..verdict import Call, smallest

LONGEST = 60  # characters of a line of code, or of a value
NAMES = 3  # whose values are said
NEVER_SET = re.compile(r"\b(\w+) = [\w.]*empty(?:_like)?\(")


def line_of(function: Function, calls: Sequence[Call]) -> str:
    """``in line 3, `x = data[at]` ``, if all of these calls raised there; "" if not, or if nobody has the code.

    Where another function of the student's was called there, its line comes, too, if it is the same for all.
    """
    (place, *others) = {_place(function, call.outcome.error) for call in calls}
    if others or place is None:
        return ""
    (deeper, *others) = {_deeper(function, call.outcome.error) for call in calls}
    number, text = str(place[0]), place[1]
    if deeper and not others:
        number = f"{number} and there in line {deeper[0]} of `{deeper[1]}`"
    return f"in line {number}, `{text}`" if text else f"in line {number}"


def example_of(function: Function, names: Sequence[str], calls: Sequence[Call]) -> str:
    """What the names in that line are in the smallest of these calls, as a sentence; "" if none is known."""
    first = smallest(calls)
    frame = _frame(function, first.outcome.error)
    place = _place(function, first.outcome.error)
    if frame is None or place is None or _is_recursive(frame, first.outcome.error):
        return ""
    given = {name: repr(value) for name, value in zip(names, first.case)}
    values = [(name, value) for name, value in _values(place[1], frame) if given.get(name) != repr(value)]
    there = [f"`{name}` is {_value(value)}" for name, value in values]
    if not there:
        return ""
    case = ", ".join(f"`{name}` = {short(value)}" for name, value in zip(names, first.case))
    where = f"With {case}" if len(case) <= 2 * LONGEST and "…" not in case else "In the smallest of these cases"
    return f"{where}, {_listed(there[:NAMES])} in line {place[0]}."


def _is_recursive(frame: types.FrameType, error: BaseException | None) -> bool:
    """Whether the call in which an error was raised stands inside another one of the same function."""
    frames = traceback.walk_tb(error.__traceback__ if error else None)
    return sum(each.f_code is frame.f_code for each, _ in frames) > 1


def condition_of(function: Function, calls: Sequence[Call]) -> str:
    """``: `not code` in line 3 is true there``, if all of these calls raised under one ``if``; "" otherwise."""
    found = {_condition(function, call.outcome.error) for call in calls}
    (condition, *others) = found
    return "" if others or condition is None else f": {condition} there"


def _frame(function: Function, error: BaseException | None) -> types.FrameType | None:
    """The frame of the student's own code in which an error was raised, or which called what raised it."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or error is None:
        return None
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [frame for frame in frames if frame.f_code.co_filename == code.co_filename]
    inside = [frame for frame in own if frame.f_code in _codes(code)]
    return inside[-1] if inside else None


def _codes(code: types.CodeType) -> list[types.CodeType]:
    """A function's code, and that of all functions and classes inside it."""
    return [
        code,
        *(deeper for inner in code.co_consts if isinstance(inner, types.CodeType) for deeper in _codes(inner)),
    ]


def _place(function: Function, error: BaseException | None) -> tuple[int, str] | None:
    """The number and the text of that line; "" if it is too long to be shown."""
    frame = _frame(function, error)
    if frame is None or error is None:
        return None
    number = next(n for f, n in lines_of(error) if f is frame)
    text = linecache.getline(frame.f_code.co_filename, number).split("  #")[0].strip().rstrip(":")
    return number, text if len(text) <= LONGEST and "`" not in text else ""


def _deeper(function: Function, error: BaseException | None) -> tuple[int, str] | None:
    """The last line that ran below it in another function of the student's: its number, and the function's name."""
    frame = _frame(function, error)
    if frame is None or error is None or _is_recursive(frame, error):
        return None
    frames = list(lines_of(error))
    at = max(i for i, (each, _) in enumerate(frames) if each is frame)
    below = [(n, each.f_code.co_name) for each, n in frames[at + 1 :] if each.f_globals is frame.f_globals]
    return below[-1] if below and below[-1][1].isidentifier() else None


def _values(line: str, frame: types.FrameType) -> list[tuple[str, Any]]:
    """The local names that a line of code reads, and what they were when the error was raised; no files or modules."""
    read = re.sub(r"^\w+(, \w+)* = ", "", re.sub(r"\"[^\"]*\"|'[^']*'", "", line))
    names = dict.fromkeys(re.findall(r"(?<![.\w])[A-Za-z_]\w*", read))
    found = [(name, frame.f_locals[name]) for name in names if name in frame.f_locals]
    found = [(name, value) for name, value in found if not _is_chance(name, frame)]
    return [(name, value) for name, value in found if not callable(value) and not repr(value).startswith("<")]


def _is_chance(name: str, frame: types.FrameType) -> bool:
    """Whether a name is an array of ``np.empty``: what is in it is another thing in each run."""
    code = "".join(linecache.getlines(frame.f_code.co_filename)[frame.f_code.co_firstlineno - 1 : frame.f_lineno])
    return name in NEVER_SET.findall(code)


def _value(value: Any) -> str:
    text = short(value)
    if len(text) <= LONGEST and "object at 0x" not in text and "`" not in text:
        return text
    text = kind(value)
    return text if isinstance(value, bytes) else f"a{'n' * (text[0] in 'aeio')} {text}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _condition(function: Function, error: BaseException | None) -> str | None:
    """The innermost condition under which a ``raise`` stands, and whether it is true there."""
    frame, place = _frame(function, error), _place(function, error)
    if frame is None or place is None or error is None:
        return None
    if isinstance(error.__context__, Exception) and error.__context__ is not error:
        before = _place(function, error.__context__)
        return f"{_short(named(error.__context__))} was raised in line {before[0]}" if before else None
    try:
        lines, first = inspect.getsourcelines(frame.f_code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return None
    at, found = place[0] - first + 1, ""
    *_, (last, _) = traceback.walk_tb(error.__traceback__)
    for node in ast.walk(tree):  # outer statements come first
        if not isinstance(node, ast.If):
            continue
        test = ast.get_source_segment(textwrap.dedent("".join(lines)), node.test) or ""
        for block, said in ((node.body, "is true"), (node.orelse, "is not true")):
            if not block or (last is not frame and at <= (node.test.end_lineno or 0)):
                continue  # what raised may be called in the condition itself
            if block[0].lineno <= at <= (block[-1].end_lineno or 0) and not _changes(block, node.test):
                short_enough = test and "\n" not in test and len(test) <= LONGEST and "`" not in test
                found = f"`{test}` in line {node.lineno + first - 1} {said}" if short_enough else ""
    return found or None


def _changes(block: Sequence[ast.stmt], test: ast.expr) -> bool:
    """Whether a statement gives a name of a condition another value."""
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names
        for statement in block
        for node in ast.walk(statement)
    )


def _short(text: str) -> str:
    text = text.split("\n")[0]
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
