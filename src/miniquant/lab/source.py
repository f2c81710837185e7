"""What the text of a student's function proves: that it does not use what a cause speaks of."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import types

from .spec import Function


def speaks_of_other_code(cause: str, function: Function) -> bool:
    """Whether a cause names a function or an operator that the student's code does not contain.

    Two different lines may give the same results: `//` and `int()`. Where the code cannot be read, nothing is proven.
    """
    try:
        source = inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):
        return False
    body = source.split('"""')[-1] if source.count('"""') == 2 else source  # without the docstring
    names = [name for fragment in re.findall(r"`([^`]+)`", cause) for name in _used(fragment)]
    if re.search(r"\bnumpy\b", cause, re.I):
        names.append("np.")
    return any(name not in body for name in names)


NEEDED = {  # what a phrase says, and what code must contain one of, to do it
    "shifts to the right": (">>", "//", "/", "_shift("),
    "shifts to the left": ("<<", "*", "_shift("),
    "masks ": ("&", "%", "and"),
    "clips ": ("clip", "min", "max"),
    "takes the absolute value": ("abs",),
    "rounds ": ("round", "rint", "int", "floor", "ceil", "//", "trunc", "float", "half", ".format", "{"),
    "sorts ": ("sort",),
    "turns values into": ("int", "float", "str", "astype", "torch", "np."),
}
DTYPES = re.compile(r"takes (u?int\d+|float\d+) in place of")
BY_LETTERS = ("struct", '"<', '">', "'<", "'>", "_bytes")  # code that names its types in another way
NUMBERS = re.compile(r"takes (-?\d+(?:\.\d+)?(?:e-?\d+)?) where the right one takes")


def does_otherwise(phrase: str, function: Function, solution: Function | None = None) -> bool:
    """Whether a phrase on what a solution does speaks of a number or a step that the student's code does not contain.

    Such a solution gives the same results, and sends the reader to a place that is not there.
    """
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError):
        return False
    body = source.split('"""')[-1] if source.count('"""') == 2 else source
    if any(words in phrase and not any(part in body for part in parts) for words, parts in NEEDED.items()):
        return True
    dtype = DTYPES.search(phrase)
    if dtype and dtype[1] not in body and not any(part in body for part in BY_LETTERS):
        return True
    done = phrase.split(" where the right one")[0]
    fragments = re.findall(r"`([^`]+)`", done)
    if "leaves out" in done:  # whoever leaves out a function of another exercise has written it in another way
        fragments = [f"{name}(…)" for name in _beside(solution) if f"{name}(…)" in fragments]
    if any(name not in body for fragment in fragments for name in _named(fragment, function)):
        return True
    wanted = NUMBERS.search(phrase)
    if wanted is None:
        return False
    number = float(wanted[1])
    if number < 0 and not re.search(rf"-\s*{abs(number):g}\b", body):
        return True
    mine, right = _count(tree, abs(number)), 0
    if solution is not None:  # a number of the solution must be there once more
        right = _count(ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(solution)))), abs(number))
    return mine <= right


def _beside(function: Function | None) -> set[str]:
    """The names of the functions that stand beside a function in its module."""
    known = getattr(inspect.unwrap(function), "__globals__", {}) if function else {}
    return {name for name, value in known.items() if isinstance(value, types.FunctionType)}


def _count(tree: ast.AST, number: float) -> int:
    """How often a number stands in code."""
    found = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) in (int, float)]
    return found.count(number)


def _named(fragment: str, function: Function) -> list[str]:
    """The functions and operators that a fragment of a phrase names; parameters are none."""
    parameters = inspect.signature(function).parameters
    if re.fullmatch(r"[A-Za-z_]\w*(\(…\))?", fragment):
        name = fragment.removesuffix("(…)")
        return [] if name in parameters or name.startswith("len") else [name]
    return [fragment] if re.fullmatch(r"//|\*\*|<<|>>|%", fragment) else []


def _used(fragment: str) -> list[str]:
    """The functions and operators in a piece of code."""
    called = re.findall(r"(\w+)\(", fragment)
    operators = re.findall(r"//|\*\*|<<|>>|%|==|keepdims=True", fragment)
    return called + [operator for operator in operators if not re.search(r"[\"']", fragment)]
