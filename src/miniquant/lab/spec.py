"""What an exercise is: its solution, an oracle that shares no code with it, cases, and the mistakes that students make.

A mistake is an edit of the solution that a student could have typed: ``edit("np.int8", "np.uint8")``. The text of the
solution therefore stands once, in its lesson: the notebook's cell, the reference and the mistakes are made from it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from ..core.errors import MiniquantError
from .compare import Fields

Case = tuple[Any, ...]
Function = Callable[..., Any]


class LessonError(MiniquantError):
    """A lesson is wrong: an edit that does not match its solution, a mistake without a text."""


@dataclass(frozen=True)
class Edit:
    """Changes to the text of a solution's body, one after another.

    Each is ``(old, new)``, or ``(start, None)``, which leaves out a whole statement; each text must occur exactly once.
    """

    changes: tuple[tuple[str, str | None], ...]

    def edit(self, old: str, new: str) -> Edit:
        """The same changes and one more replacement."""
        return Edit((*self.changes, (old, new)))

    def omit(self, start: str) -> Edit:
        """The same changes and one more statement left out."""
        return Edit((*self.changes, (start, None)))

    def apply(self, body: str) -> str:
        """The edited body. Raises ``LessonError`` if a text does not occur exactly once."""
        for old, new in self.changes:
            if (count := body.count(old)) != 1:
                raise LessonError(f"{old!r} occurs {count} times in the solution; an edit must match exactly once")
            body = _without(body, old) if new is None else body.replace(old, new)
        return body


def _without(body: str, start: str) -> str:
    """The body without the statement whose first line contains ``start``, its block included."""
    lines = body.split("\n")
    first = next(i for i, line in enumerate(lines) if start in line)
    depth = len(lines[first]) - len(lines[first].lstrip())
    last = first + 1
    while last < len(lines) and (not lines[last].strip() or len(lines[last]) - len(lines[last].lstrip()) > depth):
        last += 1
    return "\n".join([*lines[:first], " " * depth + "pass", *lines[last:]])


@dataclass(frozen=True)
class Body:
    """Another body for the solution's function, where no small edit makes the mistake."""

    text: str

    def apply(self, body: str) -> str:
        """The other body, at the indentation of a function."""
        return textwrap.indent(inspect.cleandoc(self.text), "    ")


def edit(old: str, new: str) -> Edit:
    """A mistake as an edit of the solution.

    >>> edit("<4I", ">4I").edit("16", "12").apply("    data[:16] == '<4I'")
    "    data[:12] == '>4I'"
    """
    return Edit(((old, new),))


def omit(start: str) -> Edit:
    """A mistake that leaves out a statement: the one whose first line contains ``start``, with its block.

    >>> print(omit("if n < 0").apply("    if n < 0:\\n        n = 0\\n    return n"))
        pass
        return n
    """
    return Edit(((start, None),))


def body(text: str) -> Body:
    """A mistake as another body of the solution's function; the parameters and the module's names are there."""
    return Body(text)


@dataclass(frozen=True)
class Mistake:
    """A wrong implementation that students write: what it is called, what it does, where it comes from, the cure.

    ``wrong`` is an ``edit`` of the solution, a ``body``, or a function. Inside an ``Exercise`` it is always a function.
    """

    name: str
    wrong: Edit | Body | Function
    _: KW_ONLY
    cause: str  # one sentence
    cure: str  # one sentence
    see: str  # what the student sees; it completes "I see …"


@dataclass(frozen=True, kw_only=True)
class Contest:
    """What an open exercise measures: its check only says what is allowed, and of two right answers one is better.

    ``measure`` takes a function that passed its check and gives its figure. ``rivals`` gives the figures of other
    answers by their names, measured in the same way. ``steady=False`` is for a figure that differs from run to run,
    such as a time: a check does not print it.
    """

    what: str  # what is measured, as a phrase: "error of 256 unseen blocks"
    unit: str
    measure: Callable[[Function], float]
    rivals: Callable[[], Mapping[str, float]]
    lower_is_better: bool = True
    digits: int = 3  # significant ones
    steady: bool = True

    def better(self, a: float, b: float) -> bool:
        """Whether ``a`` is a better figure than ``b``."""
        return a < b if self.lower_is_better else a > b


@dataclass(frozen=True, eq=False, kw_only=True)
class Exercise:
    """One exercise of a lab.

    ``reference`` is the solution: a function at the top level of its module, whose text the notebook shows.
    ``cases`` gives the arguments of every call: small and recognisable first, then random ones from the generator it
    is handed (always the same seed). ``oracle`` computes what is expected; it shares no code with ``reference``.
    ``observe`` turns a call into what is compared, for functions that work by side effect. ``fields`` names the parts
    of a result that is bytes. ``quantities`` names what the right result is made of, and what students take in its
    place: numbers and arrays of a case by the words for them, or dicts of these by the keys of a result that is a
    dict; a wrong result is compared with them. ``traits`` gives properties of a case, each by the words that follow
    "where", so that a report can say which inputs are wrong. ``parts`` takes a right or wrong result and the case,
    and names the kinds of numbers in it (scales, values); ``factors`` names the two arrays whose product is the right
    result; ``places`` says where a number is in the bytes of a case, from its first byte to the one after its
    last. ``may_view`` allows a result that shares memory with an argument; ``ordered`` says that the order of a
    dict's keys counts, which the docstring must ask for. ``contest`` says by what figure the answers to an open
    exercise are compared. ``lab`` and ``subject`` are filled in by the catalogue: the number of the lab, and the folder
    of its lessons.
    """

    name: str = ""  # the name of the reference
    lab: str = ""
    subject: str = ""
    goal: str  # one sentence
    minutes: int
    difficulty: str  # "warm-up", "core" or "stretch"
    reference: Function
    oracle: Function
    cases: Callable[[np.random.Generator], Iterable[Case]]
    hints: tuple[str, str]
    why: str  # one line, printed on success
    mistakes: tuple[Mistake, ...] = ()
    tolerance: float = 0.0
    fields: Callable[..., Fields] | None = None
    quantities: Callable[..., dict[str, Any]] | None = None
    traits: Callable[..., Mapping[str, bool]] | None = None
    parts: Callable[..., Mapping[str, Any]] | None = None
    factors: Callable[..., Mapping[str, Any]] | None = None
    places: Callable[..., Mapping[str, tuple[int, int]]] | None = None
    observe: Callable[[Function, Case], Any] | None = None
    may_view: bool = False
    ordered: bool = False
    contest: Contest | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.reference.__name__)
        object.__setattr__(self, "mistakes", tuple(_bound(mistake, self.reference) for mistake in self.mistakes))

    def all_cases(self) -> list[Case]:
        """Every case, the random ones included; the same each time."""
        return list(self.cases(np.random.default_rng(sum(self.name.encode()))))

    @property
    def keeps_to_memory(self) -> bool:
        """Whether a call reads and writes no files: ``observe`` only looks at what the function returned."""
        return self.observe is None or self.observe.__module__.endswith((".observed", ".scalars"))

    def run(self, function: Function, case: Case) -> Any:
        """What ``function`` makes of a copy of the case."""
        return self.observe(function, case) if self.observe else function(*case)


class Same:
    """A value as a key of a cache: equal to nothing but the same object, which nobody may change."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value


class Finding(Exception):
    """What an ``observe`` found instead of a result: ``Finding("no file stands at the path", "None was returned")``.

    ``expected``: what is right, as a function returns it, where an observed result shows something else.
    """

    def __init__(self, what: str, got: str, expected: str = "") -> None:
        super().__init__(what, got, expected)
        self.what, self.got, self.expected = what, got, expected


# ---- the text of a solution ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """The text of a function: ``head`` ends with the docstring, ``body`` is what a student writes, indented."""

    head: str
    body: str


@functools.cache
def text_of(function: Function) -> Text:
    """The text of a function at the top level of a module.

    Raises ``LessonError`` for a function without a docstring: it says what the student is asked for.
    """
    lines = inspect.getsource(function).rstrip().split("\n")
    definition = ast.parse("\n".join(lines)).body[0]
    if not isinstance(definition, ast.FunctionDef) or ast.get_docstring(definition) is None:
        raise LessonError(f"{function.__name__} has no docstring; a student reads there what the function is given")
    end = definition.body[0].end_lineno
    assert end is not None
    return Text("\n".join(lines[definition.lineno - 1 : end]), "\n".join(lines[end:]))


class Altered:
    """A solution with another body; compiled when it is called for the first time."""

    def __init__(self, reference: Function, change: Edit | Body) -> None:
        self.reference, self.change = reference, change

    @functools.cached_property
    def source(self) -> str:
        """The text of the function, as a student would have typed it."""
        text = text_of(self.reference)
        changed = self.change.apply(text.body)
        if changed == text.body:
            raise LessonError(f"{self.change} leaves {self.reference.__name__} as it is")
        return f"{text.head}\n{changed}\n"

    @functools.cached_property
    def function(self) -> Function:
        """The compiled function; it sees the names of the solution's module."""
        scope = dict(self.reference.__globals__)
        exec(compile("from __future__ import annotations\n" + self.source, "a mistake", "exec"), scope)
        function: Function = scope[self.reference.__name__]
        return function

    def __call__(self, *arguments: Any) -> Any:
        """What the wrong function gives."""
        return self.function(*arguments)


def _bound(mistake: Mistake, reference: Function) -> Mistake:
    """The mistake with a function for its edit."""
    if isinstance(mistake.wrong, Edit | Body):
        return replace(mistake, wrong=Altered(reference, mistake.wrong))
    return mistake
