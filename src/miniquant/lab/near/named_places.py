"""Where a change is made, in the student's own words: the code of the place, or its line."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from .fixes import LIKELY as KEYED
from .fixes import ORDER
from .places import Change, Place, places

LONGEST = 60  # characters of code that are shown
BESIDE = {"at": ("at ", " and at "), "before": ("before ", " and before "), "after": ("after ", " and after ")}
ORDINALS = ("first", "second", "third", "fourth")


def _beside(place: Place, new: ast.AST) -> str:
    """``before`` or ``after`` where a statement is put beside another one, else ``at``."""
    if not isinstance(new, ast.If) or not isinstance(new.test, ast.Constant) or place.node not in new.body:
        return "at"
    return "after" if new.body[0] is place.node else "before"


class NamedPlaces:
    """Says where a change is made, in the student's own words: ``at `range(n)` ``, or ``in line 3``."""

    def __init__(self, tree: ast.FunctionDef, first: int, text: str, others: str = "") -> None:
        self.first, self.text, self.others = first, text, others  # others: the functions that it calls
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.places = places(tree)

    def __call__(self, change: Change) -> str:
        """The places of a change; "" if they cannot be said in a few words."""
        nodes = [place.node for place, _ in change.edits]
        texts = list(dict.fromkeys(self._shown(place) for place, _ in change.edits))
        if "" in texts or len(texts) > 2:
            return self._lines(nodes)
        if len(change.edits) > 1 and len(texts) == 1:
            alike = {id(self._around(place)) for place in self.places if self._shown(place) == texts[0]}
            every = alike == {id(self._around(place)) for place, _ in change.edits}
            return f"at each `{texts[0]}`" if every else self._lines(nodes)
        known = dict.fromkeys(self._placed(place) for place, _ in change.edits)
        beside = {_beside(place, new) for place, new in change.edits}
        first, more = BESIDE[beside.pop() if len(beside) == 1 and change.phrase != ORDER else "at"]
        return first + more.join(known) if "" not in known else self._lines(nodes)

    def around(self, change: Change, others: Sequence[Change]) -> Change:
        """The change; of the whole condition, if one part of an ``and`` or ``or`` may be as good a place as another."""
        ((place, new), *more) = change.edits
        parts = {id(other.edits[0][0].node) for other in others if other.edits[0][0].parent is place.parent}
        if more or not isinstance(place.parent, ast.BoolOp) or (len(parts) < 2 and change.rank < KEYED):
            return change
        return replace(change, edits=((Place(self.parents[place.parent], "", None, place.parent), new),))

    def _placed(self, place: Place) -> str:
        """The code of a place; with its line, and its number there, if the same code stands elsewhere as well, also in
        a function that is called.
        """
        node, shown = self._around(place), self._shown(place)
        edge = r"(?<![\w.])" if re.match(r"\w", shown) else ""
        same = re.compile(f"{edge}{re.escape(shown)}(?!\\w)" if re.search(r"\w$", shown) else edge + re.escape(shown))
        if len(same.findall(f"{self.text}\n{self.others}")) < 2:
            return f"`{shown}`"
        number = getattr(node, "lineno", 1)
        text = self.text.split("\n")[number - 1]
        before = len(text.encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore"))
        starts = [found.start() for found in same.finditer(text)]
        line = f"in line {number + self.first - 1}"
        if len(starts) < 2:
            return f"`{shown}` {line}"
        return f"the {ORDINALS[starts.index(before)]} `{shown}` {line}" if before in starts[: len(ORDINALS)] else ""

    def line(self, node: ast.AST) -> tuple[int, int]:
        """The line and the column of a node."""
        while not hasattr(node, "lineno") and node in self.parents:
            node = self.parents[node]
        return getattr(node, "lineno", 1) + self.first - 1, getattr(node, "col_offset", 0)

    def _lines(self, nodes: Sequence[ast.AST]) -> str:
        numbers = {self.line(node)[0] for node in nodes}
        last = max((getattr(node, "end_lineno", 1) + self.first - 1 for node in nodes), default=0)
        if numbers and last > max(numbers):  # an expression of several lines
            return f"in lines {min(numbers)} to {last}"
        lines = [str(line) for line in sorted(numbers)]
        if not lines or len(lines) > 4:
            return ""
        return f"in line {lines[0]}" if len(lines) == 1 else f"in lines {', '.join(lines[:-1])} and {lines[-1]}"

    def _shown(self, place: Place) -> str:
        """The code of a place as it is typed, if it is one short line; of a number or a name, what it stands in."""
        node = self._around(place)
        text = ast.get_source_segment(self.text, node) or ""
        if isinstance(node, ast.stmt):
            text = text.split("\n")[0].rstrip(":")
        short = "\n" not in text and len(text) <= LONGEST and "`" not in text
        return text if short and not text.lstrip("-").isdigit() else ""

    def _around(self, place: Place) -> ast.AST:
        """The node that is shown for a place."""
        node: ast.AST = place.node
        if isinstance(node, ast.Constant | ast.Name) and isinstance(place.parent, ast.expr | ast.Slice):
            node = node if isinstance(place.parent, ast.UnaryOp) else place.parent
        if isinstance(node, ast.Slice):
            node = self.parents.get(node, node)
        around = node
        while around in self.parents:  # the parts of an f-string have no places of their own in every Python
            around = self.parents[around]
            node = around if isinstance(around, ast.JoinedStr) else node
        return node
