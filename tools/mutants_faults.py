"""The mutants of a source: one small fault each, made by the operators of mutmut."""

from __future__ import annotations

import ast
import functools
import hashlib
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

ERROR_CALLS = {"_error", "error", "_refuse"}  # what makes an error, beside the names that end in Error
NO_ARGUMENT = {"len", "isinstance", "issubclass", "hasattr", "super", "range"}  # f(None) is only a TypeError there
GENERIC = {"Callable", "Iterable", "Mapping", "Sequence", "Union", "dict", "list", "set", "tuple", "type"}
KINDS = ("wording of an error message", "annotation, decorator or import", "upper and lower case of a string",
         "a builtin without its argument", "does not compile", "same as the source or as another mutant")  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One fault. ``key`` is the fingerprint of ``source``, the whole module with the fault in it."""

    key: str
    line: int
    last: int  # the last line of the statement
    original: str
    mutated: str
    source: str
    function: tuple[int, int] | None  # first and last line of the outermost function without a decorator


@functools.cache
def fingerprint(source: str) -> str:
    """A hash of what a source does: comments, layout and docstrings do not count, nor does Python's version."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                del node.body[0]
    return hashlib.sha256(_plain(tree).encode()).hexdigest()[:16]


def _plain(node: Any) -> str:
    """A syntax tree as text, without what is empty: newer Pythons have more fields, all of them empty here."""
    if isinstance(node, list):
        return "[" + ",".join(map(_plain, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, value) for name, value in ast.iter_fields(node) if name not in ("kind", "ctx")]
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.JoinedStr):  # 3.12 has empty strings in it
        return f"JoinedStr({','.join(_plain(v) for v in node.values if getattr(v, 'value', None) != '')})"
    kept = [f"{name}={_plain(value)}" for name, value in fields if value is not None and value != []]
    return f"{type(node).__name__}({','.join(kept)})"


def mutants(code: str) -> tuple[list[Mutant], Counter[str]]:
    """Every mutant of a source, and how many were left out, by ``KINDS``.

    The wording of an error message is left out, but not that there is a message, nor the error's other arguments
    (its path, field and offset). A string becomes "XX...XX" only.
    """
    import libcst as cst
    from libcst.metadata import MetadataWrapper, PositionProvider

    wrapper = MetadataWrapper(cst.parse_module(code))
    finder = _finder(code, wrapper.resolve(PositionProvider))
    wrapper.visit(finder)
    return finder.found, finder.left_out


def _finder(code: str, places: Any) -> Any:
    """The visitor that collects the mutants; made here, so that the fingerprint needs no libcst."""
    import libcst as cst
    from mutmut.mutation.mutators import mutation_operators

    text = cst.SimpleString | cst.ConcatenatedString | cst.FormattedString
    skipped = cst.Annotation | cst.Decorator | cst.Import | cst.ImportFrom
    lines = code.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    class Finder(cst.CSTVisitor):
        def __init__(self) -> None:
            super().__init__()
            self.found: list[Mutant] = []
            self.left_out: Counter[str] = Counter()
            self.seen = {fingerprint(code)}
            self.functions: list[tuple[cst.CSTNode, bool]] = []
            self.statements: list[cst.CSTNode] = []
            self.errors: list[cst.Call] = []
            self.messages = 0

        def on_visit(self, node: cst.CSTNode) -> bool:
            if isinstance(node, skipped) or _is_alias(node):
                self.left_out[KINDS[1]] += _count(node)
                return False
            if isinstance(node, cst.If) and getattr(node.test, "value", "") == "TYPE_CHECKING":
                return False
            if isinstance(node, cst.Assign) and getattr(node.targets[0].target, "value", "") == "__all__":
                return False
            if isinstance(node, cst.FunctionDef):
                self.functions.append((node, bool(node.decorators)))
            if isinstance(node, cst.SimpleStatementLine):
                self.statements.append(node)
            if _makes_error(node):
                self.errors.append(node)
            self.messages += self._is_message(node)
            self._mutate(node)
            return True

        def on_leave(self, node: cst.CSTNode) -> None:
            self.messages -= self._is_message(node)
            for stack in (self.errors, self.statements):
                if stack and stack[-1] is node:
                    stack.pop()
            if self.functions and self.functions[-1][0] is node:
                self.functions.pop()

        def _is_message(self, node: cst.CSTNode) -> bool:
            args = self.errors[-1].args if self.errors and isinstance(node, text) else ()
            return bool(args) and args[0].keyword is None and args[0].value is node

        def _mutate(self, node: cst.CSTNode) -> None:
            for kind, make in mutation_operators:
                if isinstance(node, kind) and not (isinstance(node, cst.AnnAssign) and node.value is None):
                    for number, new in enumerate(make(node)):
                        if self.messages:
                            self.left_out[KINDS[0]] += 1
                        elif make.__name__ == "operator_string" and number:
                            self.left_out[KINDS[2]] += 1
                        elif make.__name__ == "operator_arg_removal" and _name(node) in NO_ARGUMENT:
                            self.left_out[KINDS[3]] += 1
                        else:
                            self._add(node, cst.Module([]).code_for_node(new))

        def _add(self, node: cst.CSTNode, new: str) -> None:
            place = places[node]
            begin = starts[place.start.line - 1] + place.start.column
            end = starts[place.end.line - 1] + place.end.column
            new = new if code[begin] == " " else new.strip()  # a comparison begins with the space before its sign
            source = code[:begin] + new + code[end:]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    compile(source, "mutant", "exec")
                key = fingerprint(source)
            except (SyntaxError, ValueError):
                self.left_out[KINDS[4]] += 1
                return
            if key in self.seen:
                self.left_out[KINDS[5]] += 1
                return
            self.seen.add(key)
            last = places[self.statements[-1]].end.line if self.statements else place.end.line
            first = places[self.statements[-1]].start.line if self.statements else place.start.line
            bare = bool(self.functions) and not any(decorated for _, decorated in self.functions)
            outer = places[self.functions[0][0]] if bare else None
            texts = _texts(lines[place.start.line - 1].strip(), code[begin:end], new)
            function = (outer.start.line, outer.end.line) if outer else None
            self.found.append(Mutant(key, first, last, *texts, source, function))

    def _count(node: cst.CSTNode) -> int:
        own = sum(1 for kind, make in mutation_operators if isinstance(node, kind) for _ in make(node))
        return own + sum(_count(child) for child in node.children)

    return Finder()


def _name(node: Any) -> str:
    """The last name of what a call calls."""
    value = getattr(getattr(node.func, "attr", node.func), "value", "")
    return value if isinstance(value, str) else ""


def _is_alias(node: Any) -> bool:
    """``Source = str | bytes``: only annotations use it, and nobody evaluates those."""
    import libcst as cst

    if not isinstance(node, cst.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0].target, cst.Name):
        return False
    name, value = node.targets[0].target.value, node.value
    if not (name.istitle() or any(c.islower() for c in name)) or not name[0].isupper():
        return False
    generic = isinstance(value, cst.Subscript) and isinstance(value.value, cst.Name) and value.value.value in GENERIC
    union = isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.BitOr)
    return generic or union or (isinstance(value, cst.Name) and value.value == "Any")


def _makes_error(node: Any) -> bool:
    import libcst as cst

    return isinstance(node, cst.Call) and (_name(node).endswith(("Error", "Risk")) or _name(node) in ERROR_CALLS)


def _texts(line: str, old: str, new: str) -> tuple[str, str]:
    """A fault as two texts: the whole line where that is clear, else the two expressions."""
    if "\n" in old:
        return " ".join(old.split()), " ".join(new.split())
    if line.count(old) == 1:
        return line, line.replace(old, new)
    return f"{old}   in   {line}", new
