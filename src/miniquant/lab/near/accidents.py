"""Whether a change makes a function right by accident: another step of it, which had an effect, has none any more."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Sequence

from ..attempt import attempt
from ..spec import Exercise, Function
from ..verdict import Call
from .places import Change, Place, places
from .variants import compiled

SECONDS = 0.3  # for one call
MOST = 60  # steps that are looked at


def by_accident(
    tree: ast.FunctionDef,
    function: types.FunctionType,
    spec: Exercise,
    chosen: Sequence[Change],
    is_right: Callable[[Function], bool],
    calls: Sequence[Call],
) -> bool:
    """Whether a step elsewhere, or around a change, can be left out once these changes are made, and not before.

    Then the changed place computes anew what that step is for, as where nobody reads its result any more. A change that
    leaves something out is no such change.
    """
    edits = [edit for change in chosen for edit in change.edits]
    if any(any(new is part for part in ast.walk(place.node)) or isinstance(new, ast.Pass) for place, new in edits):
        return False
    if _unread(tree, edits):
        return True
    for step in list(_steps_elsewhere(tree, [place for place, _ in edits]))[:MOST]:
        with step.made():
            without = compiled(tree, function)
        if without is None or _does_the_same(spec, without, calls):
            continue
        both = _with_all(tree, function, [*chosen, step])
        if both is not None and is_right(both):
            return True
    return False


def _unread(tree: ast.FunctionDef, edits: Sequence[tuple[Place, ast.AST]]) -> set[str]:
    """The function's own names that are read at these places, nowhere else, and not after the changes."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    old = {part for place, _ in edits for part in ast.walk(place.node) if isinstance(part, ast.Name)}
    after = {name.id for name in names if name not in old and isinstance(name.ctx, ast.Load)}
    after |= {part.id for _, new in edits for part in ast.walk(new) if isinstance(part, ast.Name)}
    return ({name.id for name in old} & own) - after


def _with_all(tree: ast.FunctionDef, function: types.FunctionType, changes: Sequence[Change]) -> Function | None:
    """The function with several changes."""
    if not changes:
        return compiled(tree, function)
    with changes[0].made():
        return _with_all(tree, function, changes[1:])


def _does_the_same(spec: Exercise, function: Function, calls: Sequence[Call]) -> bool:
    """Whether another function gives what the student's function gave."""
    return all(attempt(spec, function, call.case, SECONDS).same_as(call.outcome) for call in calls)


def _steps_elsewhere(tree: ast.FunctionDef, edited: Sequence[Place]) -> Iterator[Change]:
    """For each operation and call in other statements, and around the edited places, what it is applied to."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    changed = {part for place in edited for part in ast.walk(_statement(place.parent, parents))}
    around = {node for place in edited for node in _applied_to(place, parents)}
    for place in places(tree):
        node = place.node
        if (node in changed and node not in around) or isinstance(_statement(node, parents), ast.Raise | ast.Assert):
            continue
        if isinstance(node, ast.BinOp):
            yield Change("", 0, ((place, node.left),))
        elif isinstance(node, ast.Call) and node.args and not isinstance(node.args[0], ast.Starred):
            yield Change("", 0, ((place, node.args[0]),))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield Change("", 0, ((place, node.func.value),))


def _applied_to(place: Place, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """The operations and calls whose first operand or argument holds a place."""
    inner: ast.AST = place.node
    while not isinstance(outer := parents.get(inner, ast.Pass()), ast.stmt):
        match outer:
            case ast.BinOp(left=first) | ast.Call(args=[first, *_]) if first is inner:
                yield outer
        inner = outer


def _statement(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST:
    """The statement that a node is in: a whole loop or condition, if it is in its head."""
    while not isinstance(node, ast.stmt) and node in parents:
        node = parents[node]
    return node
