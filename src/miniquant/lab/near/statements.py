"""Small changes of statements, loops and names: one left out, in the wrong place, or exchanged with another."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .arrays import ARRAY_STEPS
from .expressions import _condition
from .places import CONDITION, NAME, SPECIFIC, STATEMENT, STEP, UNKNOWN, Change, Place, Speaker
from .wraps import ITEMS, PREFIX, WRAPS

UNKNOWN_NAMES = "takes another value in place of one"
BLOCKS = ("body", "orelse", "finalbody")


def of_statement(place: Place, say: Speaker) -> Iterator[Change]:
    """All small changes of one statement."""
    node = place.node
    if place.field not in BLOCKS or not isinstance(node, ast.stmt):
        return

    def change(new: ast.AST, phrase: str, rank: float) -> Change:
        return Change(phrase, rank, ((place, new),))

    if isinstance(node, ast.If):
        subject = _condition(node.test, say)
        refuses = any(isinstance(part, ast.Raise) for part in node.body)
        test = Place(node, "test", None, node.test)
        if refuses:
            yield change(ast.Pass(), f"leaves out a check: {subject}", CONDITION)
        elif node.orelse:
            never, always = ast.Constant(False), ast.Constant(True)
            yield Change(f"always goes the second way, whatever {subject} says", CONDITION, ((test, never),))
            yield Change(f"always goes the first way, whatever {subject} says", CONDITION, ((test, always),))
        else:
            yield Change(f"leaves out a special case: {subject}", CONDITION, ((test, ast.Constant(False)),))
            yield Change(f"leaves out {subject} and does what follows always", CONDITION, ((test, ast.Constant(True)),))
        turned = ast.UnaryOp(ast.Not(), node.test)
        yield Change(f"turns around {subject}", CONDITION, ((test, turned),))
    elif isinstance(node, ast.AugAssign):
        yield change(ast.Pass(), f"leaves out a step that changes {_target(node.target, say)}", STATEMENT)
        plain = ast.Assign([node.target], node.value)
        if isinstance(node.target, ast.Name | ast.Subscript):
            yield change(plain, "replaces a value where the right one adds to it or changes it", STEP)
    elif isinstance(node, ast.For):
        last = Place(node, "iter", None, node.iter)
        yield from _of_items(last, node.iter, say)
    elif isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name | ast.Tuple):
        yield change(ast.Pass(), f"leaves out an assignment to {_target(node.targets[0], say)}", STATEMENT)
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        if isinstance(place.parent, ast.For | ast.While):
            yield change(ast.Pass(), f"does not update {_target(node.targets[0], say)}", STATEMENT)
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        yield from _of_pair(node, say)
        if isinstance(place.parent, ast.For | ast.While):
            yield change(ast.Pass(), "leaves out a step of a loop", STATEMENT)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield change(ast.Pass(), "leaves out a step", STATEMENT)


def _of_pair(node: ast.Assign, say: Speaker) -> Iterator[Change]:
    """``a, b = f(a), g(b)``: one of them keeps its old value."""
    targets = node.targets[0]
    assert isinstance(targets, ast.Tuple)
    if isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(targets.elts):
        for index, target in enumerate(targets.elts):
            if isinstance(target, ast.Name) and any(
                isinstance(n, ast.Name) and n.id == target.id for n in ast.walk(node.value)
            ):
                same = Place(node.value, "elts", index, node.value.elts[index])
                old = ast.Name(target.id, ast.Load())
                yield Change(f"never changes {_target(target, say)}", STEP, ((same, old),))
    if len(targets.elts) == 2:
        turned = ast.Tuple(targets.elts[::-1], ast.Store())
        yield Change("exchanges two values that come together", STEP, ((Place(node, "targets", 0, targets), turned),))


def _target(node: ast.AST, say: Speaker) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return say(node)


def _of_items(place: Place, node: ast.expr, say: Speaker) -> Iterator[Change]:
    """A loop over other items."""
    words = {node.id} if isinstance(node, ast.Name) else set()
    what = say.name(words.pop()) if words else "the items"
    what = "the items" if what == "one value" else what
    for name, (_, phrase) in ITEMS.items():
        call = ast.Call(ast.Name(PREFIX + name, ast.Load()), [node], [])
        yield Change(phrase.format(what), STEP, ((place, call),))


def of_comprehension(place: Place, say: Speaker) -> Iterator[Change]:
    """A comprehension over other items."""
    if isinstance(place.node, ast.comprehension):
        yield from _of_items(Place(place.node, "iter", None, place.node.iter), place.node.iter, say)


def of_block(node: ast.AST, say: Speaker) -> Iterator[Change]:
    """A loop that begins or ends in the wrong place: a start value inside it, the ``return`` inside it."""
    body: list[ast.stmt] = getattr(node, "body", [])
    if not isinstance(body, list):
        return
    for at, statement in enumerate(body):
        if not isinstance(statement, ast.For | ast.While):
            continue
        end = Place(statement, "body", len(statement.body) - 1, statement.body[-1])
        returns = [s for s in body[at + 1 :] if isinstance(s, ast.Return)]
        for found in returns:
            both = ast.If(ast.Constant(True), [statement.body[-1], found], [])
            yield Change("returns inside the loop", SPECIFIC, ((end, both),))
        begin = Place(statement, "body", 0, statement.body[0])
        for before in body[:at]:
            if isinstance(before, ast.Assign) and not isinstance(before.targets[0], ast.Subscript):
                names = {n.id for n in ast.walk(before.targets[0]) if isinstance(n, ast.Name)}
                stored = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
                if names & stored:
                    both = ast.If(ast.Constant(True), [before, statement.body[0]], [])
                    what = _target(before.targets[0], say) if isinstance(before.targets[0], ast.Name) else "values"
                    yield Change(f"begins anew with {what} in every round of a loop", STEP, ((begin, both),))


def of_wraps(place: Place, say: Speaker) -> Iterator[Change]:
    """A step too many: a value that is rounded, made positive, or kept in few bits."""
    node, parent = place.node, place.parent
    if not isinstance(node, ast.expr) or isinstance(node, ast.Constant | ast.Tuple | ast.Dict | ast.List | ast.Starred):
        return
    assigned = isinstance(parent, ast.Assign | ast.AugAssign) and place.field == "value"
    given = isinstance(parent, ast.Call) and place.field == "args" and isinstance(node, ast.BinOp | ast.Name)
    operand = isinstance(parent, ast.BinOp) and isinstance(node, ast.Name | ast.Call)
    passed = isinstance(parent, ast.Call) and place.field == "args"
    inner = isinstance(node, ast.Call) and (passed or _has_method(place))
    if not (assigned or given or operand or inner or isinstance(parent, ast.Return)):
        return
    what = "a returned value" if isinstance(parent, ast.Return) else say(node)  # it may be that of a helper
    array = "an array on the way" if what == UNKNOWN else what
    steps = [(name, phrase.format(what), 0.0) for name, (_, phrase) in WRAPS.items()] if not inner else []
    steps += [(name, phrase.format(array), far) for name, (_, phrase, far) in ARRAY_STEPS.items()]
    for name, words, far in steps:
        call = ast.Call(ast.Name(PREFIX + name, ast.Load()), [node], [])
        yield Change(words, STEP + far + 0.5 * (not assigned), ((place, call),))


def _has_method(place: Place) -> bool:
    """Whether a method of this value is called."""
    return isinstance(place.parent, ast.Attribute) and place.field == "value"


def of_names(place: Place, names: list[str], say: Speaker) -> Iterator[Change]:
    """Another name in place of one."""
    node = place.node
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id not in names:
        return
    for other in names:
        if other != node.id:
            mine, right = say.name(other), say.name(node.id)
            words = UNKNOWN_NAMES if mine == right else f"takes {mine} in place of {right}"
            if mine == "one value":
                words = f"takes another value in place of {right}"
            elif right == "one value":
                words = f"takes {mine} in place of another value"
            yield Change(words, NAME - 1.5 * (mine != right), ((place, ast.Name(other, ast.Load())),))
