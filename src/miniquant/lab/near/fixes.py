"""Small changes of a student's own function that may make it right: more than the solution itself is varied by."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from .places import Change, Place, called, places
from .wraps import OF_NUMPY, PREFIX

LIKELY, POSSIBLE, FAR = 7, 8, 9  # ranks: after all changes that a solution is varied by
FIRST = 0  # what is hardly ever meant is tried before them
ORDER = "another order of statements"
SIZE = 8  # so many nodes a piece of the solution may have to be put in place of the student's
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
COMPARE = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
WRAPPED = ("abs", "int", "float", "round", "len", "sum", "max", "min", "list", "tuple", "sorted")


def fixes(tree: ast.FunctionDef, solution: ast.FunctionDef | None, names: Iterable[str]) -> Iterator[Change]:
    """All these changes of one function; ``names`` are its parameters."""
    everywhere = places(tree)
    stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    known = list(dict.fromkeys([*names, *stored]))
    constants = _constants(solution) if solution else []
    pieces = _pieces(solution, set(known)) if solution else []
    for place in everywhere:
        node = place.node
        yield from _of_node(place, constants)
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            yield from _of_value(place, node, known)
            yield from _of_pieces(place, node, pieces)
    for node in [tree, *(place.node for place in everywhere)]:
        yield from _of_order(node)


def _change(place: Place, new: ast.AST, rank: float) -> Change:
    return Change("", rank, ((place, new),))


def _of_node(place: Place, constants: list[int | float | str | bytes]) -> Iterator[Change]:
    """Another operator, comparison or constant; a step less that leaves a loop."""
    node = place.node
    if isinstance(node, ast.BinOp):
        yield from _of_operation(place, node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and _is_power(node.operand):
        power = node.operand  # -1 ** n becomes (-1) ** n
        yield _change(place, ast.BinOp(ast.UnaryOp(ast.USub(), power.left), power.op, power.right), FIRST)
    elif isinstance(node, ast.AugAssign):
        for other in (*ARITHMETIC, ast.LShift, ast.RShift, ast.BitOr):
            if not isinstance(node.op, other):
                yield _change(place, ast.AugAssign(node.target, other(), node.value), LIKELY)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for comparison in COMPARE:
            if not isinstance(node.ops[0], comparison) and isinstance(node.ops[0], COMPARE):
                yield _change(place, ast.Compare(node.left, [comparison()], node.comparators), LIKELY)
    elif isinstance(node, ast.Slice):
        yield from _of_slice(place, node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        for step in (1, -1, 2, -2, 4, -4, 8, -8):
            new = ast.Constant(node.value + step)
            yield Change(f"{type(node.value).__name__} {step:+}", LIKELY, ((place, new),))
        for value in constants:
            if isinstance(value, int | float) and value != node.value:
                yield _change(place, ast.Constant(value), LIKELY)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        for value in constants:
            if type(value) is type(node.value) and value != node.value:
                yield _change(place, ast.Constant(value), LIKELY)
    elif _leaves(place):
        yield _change(place, ast.Pass(), LIKELY)


def _is_power(node: ast.expr) -> TypeGuard[ast.BinOp]:
    """Whether a number to some power is computed."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(node.left, ast.Constant)


def _leaves(place: Place) -> bool:
    """Whether a statement leaves a loop or starts its next round."""
    if isinstance(place.node, ast.Break | ast.Continue):
        return True
    return isinstance(place.node, ast.Return) and isinstance(place.parent, ast.For | ast.While)


def _of_slice(place: Place, node: ast.Slice) -> Iterator[Change]:
    """A slice that begins and ends some places earlier or later."""
    constants = [part.value for part in (node.lower, node.upper) if isinstance(part, ast.Constant)]
    ends = [end for end in constants if isinstance(end, int)]
    if len(ends) == 2:
        for step in (1, -1, 2, -2, 4, -4, 8, -8):
            if min(ends) + step >= 0:
                lower, upper = (ast.Constant(end + step) for end in ends)
                yield Change(f"slice {step:+}", LIKELY, ((place, ast.Slice(lower, upper, node.step)),))


def _of_operation(place: Place, node: ast.BinOp) -> Iterator[Change]:
    """Another operator, the other order, or one side alone."""
    for other in dict.fromkeys((*ARITHMETIC, *BITS)):
        if not isinstance(node.op, other):
            yield _change(place, ast.BinOp(node.left, other(), node.right), LIKELY)
    yield _change(place, ast.BinOp(node.right, node.op, node.left), LIKELY)
    yield _change(place, node.left, LIKELY)
    yield _change(place, node.right, LIKELY)
    if isinstance(node.left, ast.BinOp):  # a * b + c becomes a * (b + c)
        inner = node.left
        yield _change(place, ast.BinOp(inner.left, inner.op, ast.BinOp(inner.right, node.op, node.right)), LIKELY)
    if isinstance(node.right, ast.BinOp):
        inner = node.right
        yield _change(place, ast.BinOp(ast.BinOp(node.left, node.op, inner.left), inner.op, inner.right), LIKELY)


def _of_value(place: Place, node: ast.expr, known: list[str]) -> Iterator[Change]:
    """A value with one more step, or one step less."""
    parent = place.parent
    if isinstance(parent, ast.Call) and place.field == "func":
        return
    if isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.Dict | ast.Slice | ast.Starred | ast.JoinedStr):
        return
    whole = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.BinOp | ast.GeneratorExp)
    if not whole or isinstance(parent, ast.keyword):
        return
    one = ast.Constant(1)
    yield _change(place, ast.BinOp(node, ast.Add(), one), POSSIBLE)
    yield _change(place, ast.BinOp(node, ast.Sub(), one), POSSIBLE)
    yield _change(place, ast.BinOp(ast.Constant(2), ast.Mult(), node), POSSIBLE)
    yield _change(place, ast.BinOp(node, ast.Div(), ast.Constant(2)), POSSIBLE)
    yield _change(place, ast.BinOp(node, ast.Pow(), ast.Constant(2)), POSSIBLE)
    yield _change(place, ast.UnaryOp(ast.USub(), node), POSSIBLE)
    yield _change(place, ast.Subscript(node, ast.Slice(None, None, ast.Constant(-1)), ast.Load()), POSSIBLE)
    for constant in (15, 255, 65535):
        yield _change(place, ast.BinOp(node, ast.BitAnd(), ast.Constant(constant)), FAR)
    for name in WRAPPED:
        yield _change(place, ast.Call(ast.Name(name, ast.Load()), [node], []), POSSIBLE)
    for name in OF_NUMPY:
        function = ast.Name(PREFIX + "np_" + name, ast.Load())
        yield _change(place, ast.Call(function, [node], []), POSSIBLE)
    for name in known:
        other = ast.Name(name, ast.Load())
        for operator in (ast.Add, ast.Sub, ast.Mult, ast.Div):
            yield _change(place, ast.BinOp(node, operator(), other), FAR)
        length = ast.Call(ast.Name("len", ast.Load()), [other], [])
        yield _change(place, ast.BinOp(node, ast.Div(), length), FAR)
        yield _change(place, ast.BinOp(node, ast.Mult(), length), FAR)
        parts = [part.id if isinstance(part, ast.Name) else "" for part in ast.walk(node)]
        if not isinstance(node, ast.Name) and (name in parts or len(parts) <= SIZE):  # else all of it is left out
            yield _change(place, other, FAR)
    if isinstance(node, ast.Call) and node.args and not isinstance(node.args[0], ast.Starred):
        yield _change(place, node.args[0], LIKELY)
        if isinstance(node.func, ast.Attribute):
            yield _change(place, node.func.value, LIKELY)


def _of_pieces(place: Place, node: ast.expr, pieces: list[ast.expr]) -> Iterator[Change]:
    """A small piece of the solution in place of the student's."""
    if isinstance(node, ast.Constant | ast.Starred) or (isinstance(place.parent, ast.Call) and place.field == "func"):
        return
    if sum(1 for _ in ast.walk(node)) > 2 * SIZE:
        return
    text = ast.dump(node)
    size = sum(1 for _ in ast.walk(node))
    for piece in pieces:
        alike = type(piece) is type(node) or isinstance(node, ast.Name | ast.Attribute)
        if isinstance(piece, ast.Call) and isinstance(node, ast.Call) and not _akin(piece, node):
            continue  # another computation, and no small change of this one
        if alike and ast.dump(piece) != text and abs(sum(1 for _ in ast.walk(piece)) - size) <= SIZE:
            yield _change(place, piece, FAR)


def _akin(one: ast.Call, other: ast.Call) -> bool:
    """Whether two calls are of one function, or share an argument."""
    given = [{ast.dump(part) for part in (*call.args, *(k.value for k in call.keywords))} for call in (one, other)]
    return ast.dump(one.func) == ast.dump(other.func) or bool(given[0] & given[1])


def _constants(solution: ast.FunctionDef) -> list[int | float | str | bytes]:
    found = [n.value for place in places(solution) for n in [place.node] if isinstance(n, ast.Constant)]
    return list(dict.fromkeys(value for value in found if type(value) in (int, float, str, bytes)))  # type: ignore[misc]


def _pieces(solution: ast.FunctionDef, known: set[str]) -> list[ast.expr]:
    """The small expressions of the solution that name nothing but parameters and what Python has."""
    found: dict[str, ast.expr] = {}
    local = {n.id for n in ast.walk(solution) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for place in places(solution):
        node = place.node
        if not isinstance(node, ast.BinOp | ast.Call | ast.Subscript | ast.Compare):
            continue
        if isinstance(getattr(node, "ctx", None), ast.Store) or sum(1 for _ in ast.walk(node)) > SIZE + 6:
            continue
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if isinstance(place.parent, ast.Return) or names & local - known:
            continue
        if not isinstance(node, ast.Call) or called(node) not in ("open", "print"):
            found.setdefault(ast.dump(node), node)
    return list(found.values())


def _of_order(node: ast.AST) -> Iterator[Change]:
    """Two statements exchanged, one left out, one moved out of a loop or into it."""
    for field in ("body", "orelse"):
        block = getattr(node, field, None)
        if not isinstance(block, list) or not block or not isinstance(block[0], ast.stmt):
            continue
        for at in range(len(block) - 1):
            first, second = block[at], block[at + 1]
            here, there = Place(node, field, at, first), Place(node, field, at + 1, second)
            if not isinstance(second, ast.Return | ast.Raise | ast.Break | ast.Continue):  # else the first is left out
                yield Change(ORDER, LIKELY, ((here, second), (there, first)))
            if isinstance(first, ast.For | ast.While) and isinstance(second, ast.AugAssign | ast.Assign | ast.Expr):
                end = Place(first, "body", len(first.body) - 1, first.body[-1])
                both = ast.If(ast.Constant(True), [first.body[-1], second], [])
                yield Change(ORDER, LIKELY, ((there, ast.Pass()), (end, both)))
        for at, statement in enumerate(block):
            if isinstance(statement, ast.For | ast.While) and len(statement.body) > 1:
                last = Place(statement, "body", len(statement.body) - 1, statement.body[-1])
                here = Place(node, field, at, statement)
                after = ast.If(ast.Constant(True), [statement, statement.body[-1]], [])
                yield Change(ORDER, LIKELY, ((last, ast.Pass()), (here, after)))
                first_line = Place(statement, "body", 0, statement.body[0])
                before = ast.If(ast.Constant(True), [statement.body[0], statement], [])
                yield Change(ORDER, LIKELY, ((first_line, ast.Pass()), (here, before)))
            if isinstance(statement, ast.If) and statement.orelse and len(statement.body) == 1:
                here = Place(node, field, at, statement)
                yield Change("", LIKELY, ((here, ast.If(statement.test, statement.orelse, statement.body)),))
