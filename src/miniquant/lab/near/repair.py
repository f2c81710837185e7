"""A place in a student's function at which a small change makes it right on every case, or two places: that is said
as what it is. Whether the fault is there, nobody knows.

The change is not said, only its place, in the student's own words. Functions that write files are left alone.
"""

from __future__ import annotations

import ast
import inspect
import re
import time
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from ..attempt import attempt, cases_of, is_own
from ..compare import equal
from ..fresh_cases import fresh_cases
from ..limit import TooSlow
from ..more_cases import further, more_cases, tried
from ..pair_cases import pair_cases
from ..spec import Exercise, Function
from ..verdict import Call, Facts, problem, size_of
from .accidents import by_accident
from .arrays import ARRAY_STEPS
from .fixes import FAR, ORDER, fixes
from .fixes import LIKELY as KEYED
from .named_places import NamedPlaces
from .places import Change, Place, Speaker
from .tables import DTYPES
from .variants import WRITES, changes, code_of, compiled, cost, is_dangerous, names_in, parsed
from .wraps import PREFIX

MOST = 4000  # changes that are tried
LINES = 50_000  # so many lines, counted as the solution runs them, are tried in all
CALL = 12  # lines that a call counts at least
ARRAYS = 30  # and one with arrays, whose lines take longer
SECONDS = 0.3  # for one call
HUNG = 2  # after so many changes that do not end, no more are tried
BETTER = 6  # of the changes that make some results right and none wrong, so many are tried with a second one
LONG = 20  # seconds of the processor: only a machine that is many times slower than ours stops here
FORGETS = "all_|_all|only_|zero|one_|ones|_mean|_largest|_smallest|_sum$"  # names of such steps
FIRST = 300  # only so many changes are looked at in this way
BESIDE = 0.25  # of changes that fix it, those whose ranks differ by no more are compared
LIMITS = {(ast.Lt, ast.LtE), (ast.LtE, ast.Lt), (ast.Gt, ast.GtE), (ast.GtE, ast.Gt)}


@dataclass
class _Budget:
    """What is left of the lines that may run."""

    spec: Exercise
    lines: int = LINES
    hung: int = 0
    costs: dict[int, int] = field(default_factory=dict)
    start: float = field(default_factory=time.process_time)

    def result(self, function: Function, call: Call) -> bool:
        """Whether a changed function is right on a case."""
        self.lines -= self.costs[call.number]
        outcome = attempt(self.spec, function, call.case, SECONDS)
        self.hung += isinstance(outcome.error, TooSlow)
        return problem(self.spec, call.case, outcome, call.expected) is None

    def share(self, function: Function, call: Call) -> float:
        """How much of a result is right: its parts are counted."""
        self.lines -= self.costs[call.number]
        outcome = attempt(self.spec, function, call.case, SECONDS)
        self.hung += isinstance(outcome.error, TooSlow)
        if problem(self.spec, call.case, outcome, call.expected) is None:
            return 1.0
        return _share(call.expected.result, outcome.result, self.spec.tolerance) if not outcome.error else 0.0

    @property
    def spent(self) -> bool:
        """Whether no more changes are tried."""
        return self.lines <= 0 or self.hung >= HUNG or time.process_time() - self.start > LONG


def _asks_a_range(tree: ast.AST) -> bool:
    """Whether something is looked for in a ``range``: for a float that is a loop which no time limit can stop."""
    return any(
        isinstance(node, ast.Compare)
        and any(isinstance(side, ast.Call) and ast.unparse(side.func) == "range" for side in node.comparators)
        for node in ast.walk(tree)
    )


def place_of_repair(facts: Facts) -> str:
    """Where one small change, or two, make all cases right, as a sentence; "" if none is known."""
    function = inspect.unwrap(facts.function)
    if not isinstance(function, types.FunctionType) or function.__closure__:
        return ""
    tree = parsed(function)
    if tree is None or is_dangerous(tree) or _asks_a_range(tree) or names_in(tree) & (WRITES - {"replace"}):
        return ""
    if any(call.refusal and call.outcome.error and is_own(call.outcome.error) for call in facts.wrong):
        return ""  # another error is raised: another condition is right only where something else raises the right one
    costs = {
        call.number: max(ARRAYS if _has_arrays(call) else CALL, cost(facts.spec, call.number)) for call in facts.calls
    }
    budget = _Budget(facts.spec, costs=costs)
    calls = sorted(
        facts.calls, key=lambda call: (call.problem is None, budget.costs[call.number], size_of(call.case), call.number)
    )
    every = _every(tree, facts)
    say = NamedPlaces(tree, function.__code__.co_firstlineno, code_of(function), _of_helpers(function))
    n, more = len(facts.calls), len(more_cases(facts.spec))
    right = f"your function is right on all {n} cases{f' and on {more} further inputs' if more else ''}"
    if n < len(cases_of(facts.spec)):  # none is tried after one that never ends
        right = f"your function is right on all {n} cases tried{f' and on {more} further inputs' if more else ''}"

    def accident(chosen: Sequence[Change]) -> bool:
        return by_accident(tree, function, facts.spec, chosen, lambda made: _all_right(budget, made, calls), calls)

    found: list[tuple[float, Change]] = []
    for change in _together(every):
        if (found and change.rank > found[0][0] + BESIDE) or budget.spent:
            break
        changed = _made(tree, function, change)
        if changed and _all_right(budget, changed, calls) and not accident([change]):
            found.append((change.rank, change))
    found.sort(key=lambda pair: (not _moves_a_limit(pair[1]), pair[0]))
    for rank, change in found:
        change = say.around(change, [other for other_rank, other in found if other_rank == rank])
        if where := say(change):
            n_places = len(change.edits)
            if n_places > 1 and where.startswith("in line ") and change.phrase != ORDER:
                return f"With the same small change in {n_places} places {where}, {right}."
            several = n_places > 1 and " and " in where
            same = "a change of order" if change.phrase == ORDER else "the same small change"
            return f"With {same if several else 'one small change'} {where}, {right}."
    if found:
        return ""
    pair = _pair(tree, function, every, calls, budget)
    if pair is None or accident(pair):
        return ""
    singly = [made for change in pair if (made := _made(tree, function, change))]
    if any(_all_right(budget, made, calls) for made in singly):
        return ""  # the other one does nothing, and this one was found to be right by accident
    one, two = map(say, sorted(pair, key=lambda change: say.line(change.edits[0][0].node)))
    where = f"{one} and {two}" if one != two else f"both {one}"
    return f"With two small changes, {where}, {right}." if one and two else ""


def _of_helpers(function: types.FunctionType) -> str:
    """The text of the functions of the same file that a function names."""
    file = function.__code__.co_filename
    named = [function.__globals__.get(name) for name in function.__code__.co_names]
    ours = [x for x in named if isinstance(x, types.FunctionType) and x.__code__.co_filename == file]
    return "\n".join(code_of(x) for x in ours if x is not function)


def _every(tree: ast.FunctionDef, facts: Facts) -> list[Change]:
    """All small changes, the most likely ones first, each once."""
    solution = parsed(facts.spec.reference)
    arrays = any(map(_has_arrays, facts.calls))
    own = [change for change in changes(tree, Speaker((), "")) if not _is_type_of_a_constant(change)]
    plain = [change for change in own if not _is_step_of_arrays(change)]
    steps = [change for change in own if arrays and _is_step_of_arrays(change) and not _forgets(change)]
    known = [*plain, *fixes(tree, solution, facts.names), *(replace(c, rank=c.rank + FAR) for c in steps)]
    seen: set[tuple[tuple[int, str, str], ...]] = set()
    found = []
    for change in sorted(known, key=lambda change: change.rank):
        key = tuple((id(place.parent), f"{place.field} {place.index}", ast.dump(new)) for place, new in change.edits)
        if key not in seen:
            seen.add(key)
            found.append(change)
    return found[:MOST]


def _has_arrays(call: Call) -> bool:
    """Whether a case holds an array."""
    return any(isinstance(value, np.ndarray) for value in call.case)


def _is_type_of_a_constant(change: Change) -> bool:
    """Whether ``np.float32(1e-12)`` becomes ``np.float16(1e-12)``: that is 0 by accident; the type is not at fault."""
    place, call = change.edits[0][0], change.edits[0][0].parent
    if place.field != "func" or not isinstance(call, ast.Call) or not isinstance(place.node, ast.Attribute):
        return False
    names = {node.id for arg in call.args for node in ast.walk(arg) if isinstance(node, ast.Name)}
    plain = not any(isinstance(node, ast.BinOp) for arg in call.args for node in ast.walk(arg))
    return place.node.attr in DTYPES and plain and names <= {"np", "math"}


def _is_step_of_arrays(change: Change) -> bool:
    """Whether a change puts one of the steps of arrays into the code: there are very many of them."""
    new = change.edits[0][1]
    function = new.func if isinstance(new, ast.Call) else None
    return isinstance(function, ast.Name) and function.id.removeprefix(PREFIX) in ARRAY_STEPS


def _forgets(change: Change) -> bool:
    """Whether all values of an array become one, or most 0 or 1: what follows may be right by accident."""
    function = change.edits[0][1].func if isinstance(change.edits[0][1], ast.Call) else None
    return isinstance(function, ast.Name) and bool(re.search(FORGETS, function.id))


def _together(every: Sequence[Change]) -> Iterator[Change]:
    """Each change alone; and where the same code stands more than once, the same change at all these places."""
    alike: dict[tuple[str, str], list[Change]] = {}
    for change in every:
        if len(change.edits) == 1 and change.rank < FAR:
            place, new = change.edits[0]
            alike.setdefault((_context(place), ast.dump(new)), []).append(change)
            if change.phrase and change.rank >= KEYED:
                alike.setdefault(("", change.phrase), []).append(change)
    more = [
        Change("", max(c.rank for c in group) + 0.05, tuple(edit for c in group for edit in c.edits))
        for group in alike.values()
        if 1 < len(group) <= 6 and not _overlap(group)
    ]
    yield from sorted([*every, *more], key=lambda change: change.rank)


def _context(place: Place) -> str:
    """What a place holds and what it stands in: so alike places are found."""
    return f"{type(place.parent).__name__} {place.field} {ast.dump(place.node)}"


def _overlap(group: Sequence[Change]) -> bool:
    """Whether one of these places lies inside another."""
    nodes = [change.edits[0][0].node for change in group]
    return any(a is not b and any(part is b for part in ast.walk(a)) for a in nodes for b in nodes)


def _moves_a_limit(change: Change) -> bool:
    """Whether ``<`` becomes ``<=``, say: where another change fixes a limit as well, this one is meant."""
    (place, new), *more = change.edits
    if more or not isinstance(place.node, ast.Compare) or not isinstance(new, ast.Compare):
        return False
    return {(type(a), type(b)) for a, b in zip(place.node.ops, new.ops) if type(a) is not type(b)} <= LIMITS


def _made(tree: ast.FunctionDef, function: types.FunctionType, *made: Change) -> Function | None:
    """The function with some changes."""
    if len(made) == 2:
        one, two = made
        with one.made(), two.made():
            return compiled(tree, function)
    with made[0].made():
        return compiled(tree, function)


def _all_right(budget: _Budget, changed: Function, calls: Sequence[Call]) -> bool:
    """On all cases; if so, on the inputs beyond them as well, and on those by which nothing is found."""
    spec = budget.spec
    if not all(budget.result(changed, call) for call in calls):
        return False
    pairs = [(pair.case, pair.right) for pair in pair_cases(spec)]
    beyond = chain(further(spec, changed), tried(spec, changed, fresh_cases(spec)), tried(spec, changed, pairs))
    return all(problem(spec, case, mine, right) is None for case, right, mine in beyond)


def _pair(
    tree: ast.FunctionDef,
    function: types.FunctionType,
    every: Sequence[Change],
    calls: Sequence[Call],
    budget: _Budget,
) -> tuple[Change, Change] | None:
    """Two changes: the first makes some results better and none worse, and the second all of them right."""
    budget.lines += LINES
    before = {call.number: budget.share(function, call) for call in calls}
    better: list[tuple[float, Change]] = []
    for change in every[:FIRST]:
        if budget.lines <= LINES // 2 or budget.spent:
            break
        changed = _made(tree, function, change)
        if changed is None:
            continue
        gain = 0.0
        for call in calls:
            share = budget.share(changed, call)
            if share < before[call.number]:
                gain = 0.0
                break
            gain += share - before[call.number]
        if gain > 0:
            better.append((gain, change))
    better.sort(key=lambda found: -found[0])
    for _, one in better[:BETTER]:
        inside = {id(part) for place, _ in one.edits for part in ast.walk(place.node)}
        for two in every:
            if budget.spent:
                return None
            if any(
                id(part) in inside or part is one.edits[0][0].node for place, _ in two.edits for part in [place.node]
            ):
                continue
            if any(one.edits[0][0].node is part for place, _ in two.edits for part in ast.walk(place.node)):
                continue
            if (changed := _made(tree, function, one, two)) and _all_right(budget, changed, calls):
                return one, two
    return None


def _share(expected: object, got: object, tolerance: float) -> float:
    """The share of the parts of a result that are right, always less than 1."""
    if isinstance(expected, tuple | list | bytes) and isinstance(got, tuple | list | bytes) and expected:
        if len(expected) != len(got):
            return 0.0
        if isinstance(expected, bytes) and isinstance(got, bytes):
            return 0.99 * float(np.mean(np.frombuffer(expected, np.uint8) == np.frombuffer(got, np.uint8)))
        return 0.99 * sum(equal(a, b, tolerance) for a, b in zip(expected, got)) / len(expected)
    return 0.0
