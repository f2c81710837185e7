"""All small variants of a solution and of the functions that it calls, compiled; the most telling ones first."""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import inspect
import sys
import textwrap
import types
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from typing import Any

import numpy as np

from ..attempt import Outcome, attempt, cases_of
from ..catalogue import exercises
from ..spec import Case, Edit, Exercise, Function, LessonError, Mistake, text_of
from .arrays import ARRAY_STEPS, noting
from .expressions import of_expression
from .given import Given, of_arguments
from .inputs import of_inputs
from .places import Change, Speaker, called, places
from .statements import of_block, of_comprehension, of_names, of_statement, of_wraps
from .wraps import PREFIX, SCOPE

OF_THE_SOLUTION = 1000  # variants of one solution, the most telling ones
OF_A_HELPER = 60  # variants of one function that the solution calls
WITH_FILES = 4  # times fewer where each call writes or reads a file
HELPERS = 2  # so many of the functions that the solution calls are varied
SECONDS = 0.3  # for one call of a variant
TWO_MISTAKES = 3.6  # the rank of two known mistakes at once
BANNED = {
    "chdir",
    "environ",
    "fork",
    "shutil",
    "socket",
    "subprocess",
    "urlopen",
    "__import__",
    "compile",
    "eval",
    "exec",
    "getattr",
    "import_module",
    "kill",
    "Pickler",
    "popen",
    "Popen",
    "remove",
    "rename",
    "rmtree",
    "setattr",
    "system",
    "Unpickler",
    "unlink",
}
ANOTHER = {"takes", "place"}  # words of a change that puts one thing in place of another
WRITES = {"open", "write", "write_bytes", "write_text", "replace", "mkdir", "touch", "save", "tofile"}
PATHS = {"path", "folder", "file", "directory", "target", "filename", "out"}


@dataclass(eq=False)
class Variant:
    """A variant of a solution: what it does in words, and what it made of the cases that were tried."""

    phrase: str
    rank: float
    function: Function
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()  # the known mistakes that it makes

    def outcome(self, spec: Exercise, number: int) -> Outcome:
        """What it makes of a case; computed once."""
        if number not in self.outcomes:
            self.outcomes[number] = attempt(spec, self.function, cases_of(spec)[number], SECONDS)
        return self.outcomes[number]


@functools.lru_cache(maxsize=512)
def cost(spec: Exercise, number: int, most: int = 20_000) -> int:
    """How many lines of Python the solution runs in a case, those of numpy included: at least 1, at most 20,000.

    >>> from miniquant.lab import find
    >>> cost(find("pack_int4"), 0) < 20
    True
    """
    lines, case = 0, copy.deepcopy(cases_of(spec)[number])

    def count(frame: types.FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count if lines < most else None

    before = sys.gettrace()
    sys.settrace(count)
    try:
        spec.run(spec.reference, case)
    except Exception:
        lines += 1
    finally:
        sys.settrace(before)
    return max(lines, 1)


@functools.lru_cache(maxsize=4)
def variants(spec: Exercise) -> tuple[Variant, ...]:
    """The variants of an exercise's solution; none if running a changed one may do harm."""
    tree = parsed(spec.reference) if spec.reference.__qualname__.isidentifier() else None  # at the top of a module
    if tree is None or is_dangerous(tree):
        return ()
    share = 1 if spec.keeps_to_memory else WITH_FILES
    names = tuple(inspect.signature(spec.reference).parameters)
    say = Speaker(names, spec.reference.__doc__ or "")
    found = [*_of_function(spec.reference, tree, say, OF_THE_SOLUTION // share), *_of_two_mistakes(spec)]
    if not names_in(tree) & WRITES - {"replace", "write"}:
        found += [Variant(*parts) for parts in of_arguments(spec.reference, names, _example(spec, len(names)))]
    for helper in islice(_helpers(spec.reference, tree), HELPERS):
        inner = parsed(helper)
        if inner is not None and not is_dangerous(inner):
            own = Speaker((), "")
            place = f", in `{helper.__name__}`" if helper.__name__ in exercises() else ""
            for variant in _of_function(helper, inner, own, OF_A_HELPER // share):
                outer = with_names(spec.reference, {helper.__name__: variant.function})
                found.append(Variant(variant.phrase + place, variant.rank + 0.9, outer))
    if not spec.observe:
        found += [Variant(phrase, rank, function) for phrase, rank, function in of_inputs(spec)]
    return tuple(sorted(found, key=lambda variant: variant.rank))


def axes_of(spec: Exercise, function: Function, case: Case) -> set[int]:
    """How many axes the arrays have to which a variant applies a step in a case; empty if there are none."""
    axes: set[int] = set()
    attempt(spec, _noting(function, axes), case, SECONDS)
    return axes


def _noting(function: Function, axes: set[int]) -> Function:
    """A variant whose steps, and those of the varied function that it calls, put down the axes of what they change."""
    if isinstance(function, Given):
        return replace(function, step=noting(function.step, axes)) if function.kind is np.ndarray else function
    if not _has_steps(function):
        return function
    steps = {PREFIX + name: noting(step, axes) for name, (step, _, _) in ARRAY_STEPS.items()}
    varied = {name: _noting(inner, axes) for name, inner in function.__globals__.items() if _has_steps(inner)}
    return with_names(function, {**steps, **varied})


def _has_steps(function: Any) -> bool:
    """Whether a function was compiled with the names of the steps."""
    return isinstance(function, types.FunctionType) and "_near_np" in function.__globals__


def _example(spec: Exercise, length: int) -> tuple[Any, ...]:
    """Arguments that show the types: for each parameter the array with the most axes, if there is one in any case."""
    columns = list(zip(*(case for case in cases_of(spec) if len(case) == length)))
    return tuple(max(column, key=lambda x: x.ndim if isinstance(x, np.ndarray) else -1) for column in columns)


def code_of(function: Function) -> str:
    """The text of a function without the indentation of its first line; raises ``OSError`` if nobody has it."""
    return textwrap.dedent(inspect.getsource(function))


def parsed(function: Function) -> ast.FunctionDef | None:
    """The tree of a function's text, if there is one."""
    try:
        tree = ast.parse(code_of(function)).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef):
        return None
    tree.decorator_list = []
    return tree


def is_dangerous(tree: ast.AST) -> bool:
    """Whether a function names something that a changed function must not do."""
    return bool(names_in(tree) & BANNED)


def names_in(tree: ast.AST) -> set[str]:
    """All names in a tree: variables, attributes, what is imported."""
    names: set[str] = set()
    attributes: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            attributes.add(node.attr)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.name.split(".")[-1] for alias in node.names}
    if "pickle" in names:
        names.add("Unpickler")
    return names | attributes


def changes(tree: ast.FunctionDef, say: Speaker) -> list[Change]:
    """All small changes of a function, without those of statements that write files."""
    found: list[Change] = []
    everywhere = places(tree)
    callers = _callers(tree)
    kept = _kept(tree)
    arguments = [a.arg for a in tree.args.args]
    stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    names = list(dict.fromkeys([*arguments, *stored]))
    uses = Counter(_word(node) for node in ast.walk(tree))
    for node in [tree, *(place.node for place in everywhere)]:
        found += of_block(node, say)
    for place in everywhere:
        if id(place.node) in kept:
            continue
        found += _in_one_place(of_expression(place, callers, say), place.node, uses)
        found += of_comprehension(place, say)
        found += of_statement(place, say)
        found += _in_one_place(of_wraps(place, say), place.node, uses)
        found += _in_one_place(of_names(place, names, say), place.node, uses)
    return found


def _word(node: ast.AST) -> str:
    """The name or text that a node reads, or the name of what it calls; "" for others."""
    if isinstance(node, ast.Call):
        return f"{called(node)}(…)"
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Load) else ""
    if isinstance(node, ast.AugAssign):
        return node.target.id if isinstance(node.target, ast.Name) else ""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _in_one_place(found: Iterable[Change], node: ast.AST, uses: Counter[str]) -> Iterator[Change]:
    """The changes of one node; each says that it is in one place, if what it replaces stands elsewhere, too."""
    for change in found:
        words = change.phrase
        another = isinstance(node, ast.Name) or {*words.split()} >= ANOTHER or "(…)` gives" in words
        if another and uses[_word(node)] > 1 and not words.endswith("least"):
            change = replace(change, phrase=f"{words}, in one place at least")
        yield change


def _callers(tree: ast.AST) -> dict[ast.AST, ast.Call]:
    """For each node inside the arguments of a call, the nearest call."""
    found: dict[ast.AST, ast.Call] = {}

    def visit(node: ast.AST, call: ast.Call | None) -> None:
        if call:
            found[node] = call
        if isinstance(node, ast.Call):
            call = node
        for child in ast.iter_child_nodes(node):
            visit(child, call)

    visit(tree, None)
    return found


def _kept(tree: ast.FunctionDef) -> set[int]:
    """The nodes of statements that write a file or make its path: they stay as they are."""
    if not names_in(tree) & WRITES - {"replace", "open"} and "open" not in names_in(tree):
        return set()
    tainted = {a.arg for a in tree.args.args} & PATHS
    kept: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and names_in(node.value) & tainted:
            tainted |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            for item in node.items:
                kept |= {id(part) for part in ast.walk(item)}
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.For | ast.If | ast.Try):
            own = names_in(node)
            if own & tainted or own & (WRITES - {"write"}) - {"replace"}:
                kept |= {id(part) for part in ast.walk(node)}
    return kept


def _of_function(function: Function, tree: ast.FunctionDef, say: Speaker, most: int) -> list[Variant]:
    found = []
    for change in sorted(changes(tree, say), key=lambda change: change.rank)[:most]:
        with change.made():
            changed = compiled(tree, function)
        if changed:
            found.append(Variant(change.phrase, change.rank, changed))
    return found


def compiled(tree: ast.FunctionDef, function: Function) -> Function | None:
    """The function as the tree has it now, with the names of its module; every node has a place in the text."""
    try:
        code = compile(
            ast.Module([tree], []), "a variant", "exec", __future__.annotations.compiler_flag, dont_inherit=True
        )
    except (SyntaxError, ValueError, TypeError):
        return None
    inner = next(part for part in code.co_consts if isinstance(part, types.CodeType) and part.co_name == tree.name)
    return with_names(function, {}, inner)


def with_names(function: Function, names: dict[str, Any], code: types.CodeType | None = None) -> Function:
    """The function with other values for some names of its module, and perhaps other code."""
    assert isinstance(function, types.FunctionType)
    scope = {**function.__globals__, **SCOPE, "_near_np": np, **names}
    return types.FunctionType(code or function.__code__, scope, function.__name__, function.__defaults__)


def _helpers(function: Function, tree: ast.FunctionDef) -> Iterator[Function]:
    """Functions of lessons that the solution calls."""
    scope = getattr(function, "__globals__", {})
    called = (n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
    for name in dict.fromkeys(called):
        found = scope.get(name)
        if isinstance(found, types.FunctionType) and ".lessons." in str(found.__module__) and found is not function:
            yield found


def _of_two_mistakes(spec: Exercise) -> Iterator[Variant]:
    """Two mistakes of the catalogue at once, where both edits match."""
    text = text_of(spec.reference)
    for one, two in combinations(spec.mistakes, 2):
        first, second = (getattr(mistake.wrong, "change", None) for mistake in (one, two))
        if not isinstance(first, Edit) or not isinstance(second, Edit):
            continue
        try:
            body = second.apply(first.apply(text.body))
            tree = ast.parse(f"{text.head}\n{body}\n").body[0]
        except (LessonError, SyntaxError):
            continue
        assert isinstance(tree, ast.FunctionDef)
        if not is_dangerous(tree) and (changed := compiled(tree, spec.reference)):
            phrase = f"makes two known mistakes: {one.name}, and {two.name}"
            yield Variant(phrase, TWO_MISTAKES, changed, mistakes=(one, two))
