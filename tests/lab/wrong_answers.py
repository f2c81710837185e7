"""Wrong answers made by a machine: small faults in a solution, and faults in what a right function returns.

Each is a function with a text of its own, as a student's function has one; nothing of the lab's engine makes them.
"""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
import linecache
import random
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np

from miniquant.lab.spec import Exercise, Function

# what is done with a right result, and to which kinds of results it may be done; {n} is a small number
RETURNED = {
    "rounded": "np.round(result, {n}) if hasattr(result, 'dtype') else round(result, {n})",
    "negated": "-result",
    "scaled": "result * {k}",
    "halved": "result / 2",
    "moved": "result + {n}",
    "float16": "np.asarray(result, np.float16)",
    "float32": "np.float32(result)",
    "absolute": "abs(result)",
    "a list": "list(result)",
    "a tuple": "tuple(result)",
    "text": "str(result)",
    "shorter": "result[:-1]",
    "from the second on": "result[1:]",
    "reversed": "result[::-1]",
    "twice": "result + result",
    "sorted": "sorted(result)",
    "the first": "result[0]",
    "flat": "result.reshape(-1)",
    "turned": "result.T",
    "clipped": "np.clip(result, -{n}, {n})",
    "capitals": "result.upper()",
    "stripped": "result.strip()",
    "keys": "list(result)",
    "without the last key": "dict(list(result.items())[:-1])",
    "values exchanged": "dict(zip(result, list(result.values())[::-1]))",
    "one value changed": "{{key: value if i != {n} else value * 2 for i, (key, value) in enumerate(result.items())}}",
    "parts exchanged": "result[::-1] if isinstance(result, tuple) else None",
    "second part": "(result[0], result[1] * {k}, *result[2:])",
    "first part": "(result[0] * {k}, *result[1:])",
    "last part negated": "(*result[:-1], -result[-1])",
    "not": "not result",
    "nothing": "None",
    "int": "int(result)",
    "float": "float(result)",
    "array": "np.array(result)",
    "a zero": "result * 0",
    "one byte more": "result + b'\\0'",
    "little for big": "bytes(x for i in range(0, len(result), 2) for x in result[i : i + 2][::-1])",
}
WHEN = (  # a property of a call that a wrong function may depend on
    "",
    "",
    "",
    "if len(repr(({arguments},))) % 3 == 0:",
    "if len(repr(({arguments},))) % 2:",
)
ODD_BODIES = (
    "return None",
    "raise ValueError('not like this')",
    "return 1 / 0",
    "return {first}",
    "return {first}[0]",
)
COMPARED = [ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq]
OPERATORS = [ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr]
numbers = itertools.count()


def answers(spec: Exercise, seed: int, most: int) -> Iterator[tuple[str, Function]]:
    """So many wrong answers, each with a word for its fault: half from the text of the solution; the same each time."""
    draw = random.Random(f"{spec.name} {seed}")
    made = [*faults(spec, draw), *returned(spec, draw)]
    half = (most + 1) // 2
    of_text = [pair for pair in made if pair[0].startswith("fault")]
    of_results = [pair for pair in made if not pair[0].startswith("fault")]
    chosen = draw.sample(of_text, min(half, len(of_text)))
    chosen += draw.sample(of_results, min(most - len(chosen), len(of_results)))
    for word, text in chosen:
        yield word, function_of(spec, text, {} if word.startswith("fault") else {"right": spec.reference})


def function_of(spec: Exercise, text: str, names: dict[str, Any]) -> Function:
    """The function of a text; its lines can be read, as those of a notebook's cell can."""
    file = f"<wrong answer {next(numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {**inspect.unwrap(spec.reference).__globals__, "np": np, "copy": copy, **names}
    exec(compile(text, file, "exec", dont_inherit=True), scope)
    return scope[spec.reference.__name__]


def returned(spec: Exercise, draw: random.Random) -> Iterator[tuple[str, str]]:
    """Texts: the solution, and then something that is wrong with what it returns, always or for some inputs."""
    names = list(inspect.signature(spec.reference).parameters)
    arguments = ", ".join(names)
    for word, expression in RETURNED.items():
        done = expression.format(n=draw.choice([0, 1, 2, 3]), k=draw.choice([2, 3, -1, 0.5, 256, 1.001]))
        when = draw.choice(WHEN).format(arguments=arguments)
        lines = [f"def {spec.reference.__name__}({arguments}):", f"    result = right({arguments})"]
        lines += [f"    {when}", f"        result = {done}"] if when else [f"    result = {done}"]
        text = "\n".join([*lines, "    return result"])
        yield f"{word}{' sometimes' * bool(when)}", text
    for body in ODD_BODIES:
        line = body.format(first=names[0])
        when = draw.choice(WHEN[2:]).format(arguments=arguments)
        lines = [f"def {spec.reference.__name__}({arguments}):"]
        lines += [f"    {when}", f"        {line}", f"    return right({arguments})"] if when else [f"    {line}"]
        yield body, "\n".join(lines)


def faults(spec: Exercise, draw: random.Random) -> Iterator[tuple[str, str]]:
    """Texts of the solution with one or two faults."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(spec.reference)))
    except (OSError, TypeError):
        return
    function = tree.body[0]
    function.decorator_list = []
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    if isinstance(function.body[0], ast.Expr) and isinstance(function.body[0].value, ast.Constant):
        del function.body[0]
    right = ast.unparse(tree)
    n = sum(1 for _ in edits(tree))
    seen = {right}
    for i in range(n):
        for pair in ((i,), (i, draw.randrange(n))) if i % 4 == 0 else ((i,),):
            changed = ast.parse(right)  # takes a tenth of the time of a copy
            try:
                for number in pair:
                    next(itertools.islice(edits(changed), number, None))()
                text = ast.unparse(changed)
                compile(text, "a fault", "exec", dont_inherit=True)  # a fault that is no Python is none of these
                if text not in seen:
                    seen.add(text)
                    yield f"fault {pair}", text
            except (StopIteration, SyntaxError, ValueError, TypeError, AttributeError, IndexError):
                continue


def edits(tree: ast.AST) -> Iterator[Any]:
    """Each small fault as a function that makes it in this tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for other in COMPARED:
                if type(node.ops[0]) in COMPARED and other is not type(node.ops[0]):
                    yield lambda node=node, other=other: node.ops.__setitem__(0, other())
        elif isinstance(node, ast.BinOp):
            for other in OPERATORS:
                if other is not type(node.op):
                    yield lambda node=node, other=other: setattr(node, "op", other())
            yield lambda node=node: node.__dict__.update(left=node.right, right=node.left)
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            for other in (node.value + 1, node.value - 1, 2 * node.value + 3, 0):
                yield lambda node=node, other=other: setattr(node, "value", other)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 20:
            swaps = str.maketrans("<>IQHB", "><QIBH")
            for other in (node.value.translate(swaps), node.value + "x", node.value[1:]):
                yield lambda node=node, other=other: setattr(node, "value", other)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            yield lambda node=node: node.args.pop()
        if isinstance(node, ast.Call) and node.keywords:
            yield lambda node=node: node.keywords.pop()
        if isinstance(node, ast.Call) and len(node.args) > 1:
            yield lambda node=node: node.args.reverse()
        if isinstance(node, ast.BoolOp):
            yield lambda node=node: setattr(node, "op", ast.And() if isinstance(node.op, ast.Or) else ast.Or())
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield lambda node=node: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
        if isinstance(node, ast.UnaryOp):
            yield lambda node=node: setattr(node, "op", ast.UAdd() if isinstance(node.op, ast.USub) else ast.USub())
        for field in ("value", "elt", "iter"):
            inner = getattr(node, field, None)
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                yield lambda node=node, field=field, inner=inner: setattr(node, field, inner.func.value)
            if isinstance(inner, ast.Call) and inner.args:
                yield lambda node=node, field=field, inner=inner: setattr(node, field, inner.args[0])
        for block in ("body", "orelse"):
            lines = getattr(node, block, None)
            if isinstance(lines, list):
                for i, line in enumerate(lines):
                    yield lambda lines=lines, i=i: lines.__setitem__(i, ast.Pass())
                    if isinstance(line, ast.Return) and isinstance(node, ast.FunctionDef):
                        yield lambda lines=lines, i=i, line=line: lines.__setitem__(i, ast.Expr(line.value))
                    if i and isinstance(node, ast.For):
                        yield lambda lines=lines: lines.append(ast.Break())
