"""Small changes of expressions: another number, operator, comparison, function, type, or one of these left out."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator

from .places import CONDITION, NUMBER, SPECIFIC, STEP, UNKNOWN, Change, Place, Speaker, called
from .tables import (
    BUILTIN,
    CODES,
    COMPARISONS,
    DTYPES,
    FUNCTIONS,
    LEFT_OUT,
    LETTERS,
    METHODS_ONLY,
    OPERATORS,
    SIGNS,
    STRUCT,
    TAKES_DTYPE,
    VERBS,
)
from .wraps import PREFIX, ROUNDINGS

UNSWAPPED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift, ast.MatMult)
NEITHER_WAY = {
    ast.Sub: "a subtraction",
    ast.Div: "a division",
    ast.FloorDiv: "a division",
    ast.Mod: "a remainder",
    ast.LShift: "a shift",
    ast.RShift: "a shift",
    ast.MatMult: "a matrix product",
}


def of_expression(place: Place, callers: dict[ast.AST, ast.Call], say: Speaker) -> Iterator[Change]:
    """All small changes of one node."""
    node = place.node

    def change(new: ast.AST, phrase: str, rank: float) -> Change:
        return Change(phrase, rank, ((place, new),))

    if isinstance(node, ast.Constant):
        for new, phrase, rank in _of_constant(node, place, callers.get(node)):
            yield change(new, phrase, rank)
    elif isinstance(node, ast.Attribute) and node.attr in DTYPES:
        for other in DTYPES[node.attr]:
            new = ast.Attribute(node.value, other, ast.Load())
            yield change(new, f"takes {other} in place of {node.attr}", SPECIFIC)
    elif isinstance(node, ast.BinOp):
        yield from _of_operation(place, node, say)
    elif isinstance(node, ast.UnaryOp):
        words = {ast.USub: "drops a minus sign", ast.Not: "turns a condition around", ast.Invert: "leaves out `~`"}
        if type(node.op) in words and not isinstance(node.operand, ast.Constant):
            yield change(node.operand, words[type(node.op)], SPECIFIC)
    elif isinstance(node, ast.Compare):
        yield from _of_comparison(place, node, say)
    elif isinstance(node, ast.BoolOp):
        for index in range(len(node.values)):
            rest = [value for i, value in enumerate(node.values) if i != index]
            new = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            yield change(new, f"leaves out {_condition(node.values[index], say)}", CONDITION)
        signs = ("`or`", "`and`") if isinstance(node.op, ast.And) else ("`and`", "`or`")
        joined = ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        yield change(joined, f"joins two conditions with {signs[0]} where the right one takes {signs[1]}", CONDITION)
    elif isinstance(node, ast.IfExp):
        subject = _condition(node.test, say)
        yield change(node.body, f"has no second way for {subject}", CONDITION)
        yield change(node.orelse, f"has no special case for {subject}", CONDITION)
        yield change(ast.IfExp(node.test, node.orelse, node.body), "exchanges the two ways of a condition", CONDITION)
    elif isinstance(node, ast.Call):
        yield from _of_call(place, node, say)
    elif isinstance(node, ast.Subscript):
        yield from _of_subscript(place, node, say)
    elif isinstance(node, ast.comprehension):
        for index in range(len(node.ifs)):
            inner = Place(node, "ifs", index, node.ifs[index])
            words_left = f"leaves out {_condition(node.ifs[index], say)} in a comprehension"
            yield Change(words_left, CONDITION, ((inner, ast.Constant(True)),))


def _condition(node: ast.AST, say: Speaker) -> str:
    """``the condition on `data` ``, if it is about a parameter."""
    names = sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & say.known)
    return f"the condition on {' and '.join(f'`{name}`' for name in names)}" if names else "a condition"


def _of_constant(node: ast.Constant, place: Place, call: ast.Call | None) -> Iterator[tuple[ast.AST, str, float]]:
    value = node.value
    if isinstance(value, bool):
        if isinstance(place.parent, ast.keyword) and place.parent.arg:
            word = f"takes `{place.parent.arg}={not value}`"
            yield ast.Constant(not value), word, NUMBER
        return
    if isinstance(value, int):
        ways = [value + 1, value - 1, 2 * value, value // 2, 2 * value + 1, 0, 1, -value]
        if isinstance(place.parent, ast.keyword) and place.parent.arg in ("axis", "dim"):
            yield ast.Constant(None), f"computes over all values where the right one takes axis {value}", SPECIFIC
            for other in {0, 1, 2, -1} - {value}:
                yield ast.Constant(other), f"uses axis {other} in place of axis {value}", SPECIFIC
            return
        slicing = isinstance(place.parent, ast.Slice)
        for rank, new in enumerate(dict.fromkeys(way for way in ways if way != value and abs(way) < 2**40)):
            text = _slice_words(place, value, new) if slicing else ""
            if isinstance(place.parent, ast.Subscript) and value in (0, -1) and new == -1 - value:
                words = ("first", "last") if new == 0 else ("last", "first")
                text = f"takes the {words[0]} item in place of the {words[1]}"
            minus = isinstance(place.parent, ast.UnaryOp) and isinstance(place.parent.op, ast.USub)
            mine, right = (-new, -value) if minus else (new, value)
            yield ast.Constant(new), text or f"takes {mine} where the right one takes {right}", NUMBER + rank / 10
    elif isinstance(value, float):
        for new_float in dict.fromkeys((2 * value, value / 2, value + 1, value - 1, 0.0, 1.0, -value)):
            if new_float != value:
                yield ast.Constant(new_float), f"takes {new_float:g} where the right one takes {value:g}", NUMBER
    elif isinstance(value, str):
        yield from _of_text(value, place, call)


def _slice_words(place: Place, value: int, new: int) -> str:
    if place.field == "step" or abs(new - value) != 1 or value < 0:
        return ""
    verb = "begins" if place.field == "lower" else "ends"
    return f"{verb} a slice one {'later' if new > value else 'earlier'}"


def _of_text(value: str, place: Place, call: ast.Call | None) -> Iterator[tuple[ast.AST, str, float]]:
    if value in ("little", "big"):
        other = "big" if value == "little" else "little"
        yield ast.Constant(other), f'takes the byte order "{other}" in place of "{value}"', SPECIFIC
        return
    if value in DTYPES:
        for name in DTYPES[value]:
            yield ast.Constant(name), f"takes {name} in place of {value}", SPECIFIC
        return
    if value.lower() in ("utf-8", "utf8"):
        for name in ("ascii", "latin-1", "utf-16"):
            yield ast.Constant(name), f"takes {name} in place of UTF-8", SPECIFIC
        return
    name = called(call) if call else ""
    formatted = isinstance(place.parent, ast.JoinedStr)
    if (name in STRUCT and re.fullmatch(r"[<>=!]?(\d*[bBhHiIqQefdsxc?])*", value)) or (formatted and name in STRUCT):
        yield from _of_struct(value)
    elif name in TAKES_DTYPE and re.fullmatch(r"[<>]?[iuf][1248]", value):
        order, code = value[:-2], value[-2:]
        for new_order in {"<": ">", ">": "<"}.get(order, ""):
            words = "big-endian" if new_order == ">" else "little-endian"
            yield ast.Constant(new_order + code), f"takes {words} numbers ({CODES[code]})", SPECIFIC
        for dtype in DTYPES[CODES[code]]:
            new = next(c for c, d in CODES.items() if d == dtype)
            yield ast.Constant(order + new), f"takes {dtype} in place of {CODES[code]}", SPECIFIC


def _of_struct(value: str) -> Iterator[tuple[ast.AST, str, float]]:
    if value[:1] in ("<", ">"):
        other, words = (">", "big-endian") if value[0] == "<" else ("<", "little-endian")
        yield ast.Constant(other + value[1:]), f"takes {words} numbers", SPECIFIC
    by_type = {dtype: letter for letter, dtype in LETTERS.items()}
    for at, letter in enumerate(value):
        for dtype in DTYPES.get(LETTERS.get(letter, ""), ()):
            new = value[:at] + by_type[dtype] + value[at + 1 :]
            yield ast.Constant(new), f"takes {dtype} in place of {LETTERS[letter]}", SPECIFIC


def _of_operation(place: Place, node: ast.BinOp, say: Speaker) -> Iterator[Change]:
    kind = type(node.op)
    left, right = node.left, node.right

    def change(new: ast.AST, phrase: str, rank: float) -> Change:
        return Change(phrase, rank, ((place, new),))

    for other in OPERATORS.get(kind, ()):
        new = ast.BinOp(left, other(), right)
        by = f" ({say(right)})" if say(right)[0] in "`0123456789" else ""
        yield change(new, f"{VERBS[other]} where the right one {VERBS[kind]}{by}", NUMBER)
    if kind in UNSWAPPED:
        words = f"exchanges the two sides of {NEITHER_WAY[kind]}"
        if kind is ast.Sub and all(re.fullmatch(r"`.*`|-?[\d.]+", say(side)) for side in (left, right)):
            one, two = (say(side).strip("`") for side in (left, right))
            words = f"takes `{two} - {one}` where the right one takes `{one} - {two}`"  # an answer may have others
        yield change(ast.BinOp(right, node.op, left), words, NUMBER)
    if kind is ast.RShift and isinstance(right, ast.Constant) and isinstance(right.value, int):
        mask = ast.Constant((2**right.value - 1) << right.value)
        yield change(ast.BinOp(left, ast.BitAnd(), mask), "masks bits where the right one shifts them down", NUMBER)
    if kind in LEFT_OUT and not isinstance(left, ast.List | ast.Tuple):
        words = LEFT_OUT[kind].format(say(right))
        if say(right) == UNKNOWN != say(left) and kind in (ast.Sub, ast.Add):
            words = f"leaves out what is {'subtracted from' if kind is ast.Sub else 'added to'} {say(left)}"
        yield change(left, words, NUMBER + 0.5 * (kind not in (ast.LShift, ast.RShift)))
        both = kind in (ast.Mult, ast.Add, ast.BitAnd, ast.BitOr)
        words = LEFT_OUT[kind].format(say(left)) if both else f"leaves out {say(left)} in {_noun(kind)}"
        if kind is ast.Sub and UNKNOWN not in (say(left), say(right)):
            words = f"takes {say(right)} where the right one takes {say(left)} - {say(right)}".replace("` - `", " - ")
        yield change(right, words, STEP)


def _noun(kind: type[ast.operator]) -> str:
    return NEITHER_WAY.get(kind, "an operation")


def _of_comparison(place: Place, node: ast.Compare, say: Speaker) -> Iterator[Change]:
    for index, op in enumerate(node.ops):
        second = node.comparators[index]
        text = isinstance(second, ast.Constant) and isinstance(second.value, str)
        for other in COMPARISONS.get(type(op), ()):
            if text and other not in (ast.Eq, ast.NotEq, ast.In, ast.NotIn):
                continue  # nobody asks which of two words is the greater one
            ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
            right = say(node.comparators[index])
            rest = "" if right == "one value" else f" {right}"
            words = f"compares with `{SIGNS[other]}`{rest} where the right one compares with `{SIGNS[type(op)]}`"
            yield Change(words, NUMBER + 0.2, ((place, ast.Compare(node.left, ops, node.comparators)),))


def _of_call(place: Place, node: ast.Call, say: Speaker) -> Iterator[Change]:
    name = called(node)

    def change(new: ast.AST, phrase: str, rank: float) -> Change:
        return Change(phrase, rank, ((place, new),))

    if name in ("rint", "round", "around") and node.args and len(node.args) == 1:
        for way, (_, phrase) in ROUNDINGS.items():
            func = ast.Name(PREFIX + way, ast.Load())
            yield change(ast.Call(func, node.args, node.keywords), phrase, SPECIFIC)
    for other in FUNCTIONS.get(name, ()):
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if other == "median" and not (isinstance(owner, ast.Name) and owner.id == "np"):
                continue
            new_func: ast.expr = ast.Attribute(owner, other, ast.Load())
        elif other in BUILTIN and name not in METHODS_ONLY:
            new_func = ast.Name(other, ast.Load())
        else:
            new_func = ast.Attribute(ast.Name("_near_np", ast.Load()), other, ast.Load())
        words = f"takes `{other}` where the right one takes `{name}`"
        yield change(ast.Call(new_func, node.args, node.keywords), words, SPECIFIC)
    plain = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
    if isinstance(node.func, ast.Attribute) and not (isinstance(node.func.value, ast.Name) and not _is_value(node)):
        yield change(node.func.value, f"leaves out `.{name}(…)`", NUMBER + 0.5)
    elif plain and name and name != "len":
        words = "does not round" if name in ("rint", "round", "around") else f"leaves out `{name}(…)`"
        yield change(plain[0], words, NUMBER + 0.5)
    for at, keyword in enumerate(node.keywords):
        if keyword.arg and name not in ("open",):
            rest = [k for i, k in enumerate(node.keywords) if i != at]
            yield change(ast.Call(node.func, node.args, rest), f"leaves out `{keyword.arg}=`", NUMBER + 0.5)
    for at in range(len(plain) - 1):
        if len(plain) == len(node.args) <= 4:
            swapped = [*plain[:at], plain[at + 1], plain[at], *plain[at + 2 :]]
            words = f"exchanges two arguments of `{name}`" if name else "exchanges two arguments"
            yield change(ast.Call(node.func, swapped, node.keywords), words, STEP)
    if name == "range" and len(plain) == 1 and isinstance(place.parent, ast.For | ast.comprehension):
        n = plain[0]
        one: ast.expr = ast.Constant(1)
        yield change(ast.Call(node.func, [one, n], []), "leaves out the first round of a loop", NUMBER)
        more = ast.BinOp(n, ast.Add(), one)
        yield change(ast.Call(node.func, [more], []), "does one round of a loop too many", NUMBER)
        fewer = ast.BinOp(n, ast.Sub(), one)
        yield change(ast.Call(node.func, [fewer], []), "leaves out the last round of a loop", NUMBER)


def _is_value(node: ast.Call) -> bool:
    """Whether ``x.method()`` is called on a value: ``x`` is no module."""
    assert isinstance(node.func, ast.Attribute)
    owner = node.func.value
    modules = ("np", "torch", "struct", "math", "json", "os", "re", "itertools", "pickle", "io", "zlib", "hashlib")
    return not (isinstance(owner, ast.Name) and owner.id in modules)


def _of_subscript(place: Place, node: ast.Subscript, say: Speaker) -> Iterator[Change]:
    part = node.slice

    def change(new: ast.expr, phrase: str, rank: float) -> Change:
        return Change(phrase, rank, ((place, ast.Subscript(node.value, new, node.ctx)),))

    def cut(lower: ast.expr | None, upper: ast.expr | None, step: ast.expr | None) -> ast.Slice:
        return ast.Slice(lower, upper, step)

    if isinstance(part, ast.Slice):
        turned = isinstance(part.step, ast.UnaryOp)
        if turned and not part.lower and not part.upper:
            if isinstance(node.ctx, ast.Load):
                yield Change("does not turn an order around", SPECIFIC, ((place, node.value),))
            return
        one = ast.Constant(1)
        if part.lower is not None:
            yield change(cut(None, part.upper, part.step), "begins a slice at the beginning", NUMBER + 0.5)
            if not isinstance(part.lower, ast.Constant):
                lower = ast.BinOp(part.lower, ast.Add(), one)
                yield change(cut(lower, part.upper, part.step), "begins a slice one later", NUMBER)
                lower = ast.BinOp(part.lower, ast.Sub(), one)
                yield change(cut(lower, part.upper, part.step), "begins a slice one earlier", NUMBER)
        if part.upper is not None:
            yield change(cut(part.lower, None, part.step), "takes a slice to the end", NUMBER + 0.5)
            if not isinstance(part.upper, ast.Constant):
                upper = ast.BinOp(part.upper, ast.Sub(), one)
                yield change(cut(part.lower, upper, part.step), "ends a slice one earlier", NUMBER)
                upper = ast.BinOp(part.upper, ast.Add(), one)
                yield change(cut(part.lower, upper, part.step), "ends a slice one later", NUMBER)
        if part.step is not None:
            yield change(cut(part.lower, part.upper, None), "leaves out the step of a slice", NUMBER + 0.5)
    elif isinstance(part, ast.Tuple) and len(part.elts) == 2:
        yield change(ast.Tuple(part.elts[::-1], ast.Load()), "exchanges two indices", NUMBER)
    if isinstance(node.ctx, ast.Load):
        words = "takes the whole where the right one takes a part"
        if not isinstance(part, ast.Slice) and isinstance(node.value, ast.Name):
            words += f" of {say.name(node.value.id)}" if node.value.id in say.known else ""
        yield Change(words, STEP, ((place, copy.copy(node.value)),))
