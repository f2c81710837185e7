"""Lab 16's board: claims are attacked with hypothesis, what happened is counted, and a table says the verdict."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st

from ...models.export import ModelMetadata

CASES = 100
Claim = Callable[..., bool]


@dataclass(frozen=True)
class Attempt:
    """One attempt to falsify a claim: the cases that were tried, and the smallest that falsifies it, if one does."""

    cases: int
    smallest: dict[str, Any] | None = None
    reason: str = ""  # what the smallest case did
    drawn: tuple[tuple[Any, ...], ...] = field(default=(), repr=False, compare=False)  # all cases, if none falsifies

    @property
    def survived(self) -> bool:
        """Whether no case falsified the claim."""
        return self.smallest is None

    @property
    def case(self) -> str:
        """The smallest case as text."""
        return ", ".join(f"{name} = {shown(value)}" for name, value in (self.smallest or {}).items())


def attack(claim: Claim, *strategies: st.SearchStrategy[Any], cases: int = CASES) -> Attempt:
    """Call ``claim`` with ``cases`` drawn cases; anything but ``True``, an error included, falsifies it.

    The same cases each time: nothing is remembered between runs, and no case has a time limit.

    >>> attack(lambda n: n < 10, st.integers(0, 99)).smallest
    {'n': 10}
    >>> attack(lambda n: n < 100, st.integers(0, 99), cases=50).cases
    50
    """
    names = list(inspect.signature(claim).parameters)
    tried = 0
    smallest: dict[str, Any] | None = None
    reason = ""
    kept: list[tuple[Any, ...]] = []

    def one_case(drawn: tuple[Any, ...]) -> None:
        nonlocal tried, smallest, reason
        tried += smallest is None  # what comes after the first failure makes it smaller, and is no new case
        kept.append(_copied(drawn))
        try:
            answer = claim(*drawn)
        except Exception as error:
            smallest, reason = dict(zip(names, drawn)), f"raises {type(error).__name__}"
            raise
        if _is_bool(answer):
            if answer:
                return
            smallest, reason = dict(zip(names, drawn)), "the claim does not hold"
        else:
            smallest, reason = dict(zip(names, drawn)), f"the claim is neither True nor False, but {answer!r}"
        raise AssertionError(reason)

    search = settings(
        max_examples=cases,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        print_blob=False,
    )
    try:
        search(given(st.tuples(*strategies))(one_case))()
    except Exception:  # the last failing call was that with the smallest case
        if smallest is None:
            raise
    return Attempt(tried, smallest, reason, () if smallest else tuple(kept))


def _is_bool(answer: Any) -> bool:
    return isinstance(answer, bool) or type(answer).__name__ in ("bool_", "bool")


def _copied(case: tuple[Any, ...]) -> tuple[Any, ...]:
    """A copy, since a claim may change what it is given; what nobody can copy, as it is."""
    try:
        return copy.deepcopy(case)
    except Exception:
        return case


def survives(claim: Claim, cases: Sequence[tuple[Any, ...]]) -> bool:
    """Whether a claim answers ``True`` for every case; nothing is drawn, which takes most of the time.

    >>> survives(lambda n: n < 10, [(3,), (4,)]), survives(lambda n: n < 10, [(3,), (11,)])
    (True, False)
    """
    try:
        return all(_is_bool(answer) and answer for answer in (claim(*_copied(case)) for case in cases))
    except Exception:
        return False


def shown(value: Any) -> str:
    """A drawn value, short: of metadata, what is known; of a quantization, its name.

    >>> shown(ModelMetadata("gpt2")), shown({"a": (1, 32)})
    ("(architecture='gpt2')", "{'a': (1, 32)}")
    """
    if isinstance(value, ModelMetadata):
        known = {k: v for k, v in vars(value).items() if v not in (None, {})}
        return f"({', '.join(f'{k}={v!r}' for k, v in known.items())})" if known else "(nothing known)"
    return value.name if isinstance(value, Enum) else repr(value)


@dataclass
class Board:
    """What was attacked, in order; ``cases`` for each attempt.

    ``under_test`` is handed to every claim as its first argument: the pipeline that the claims are about.
    """

    under_test: Any
    cases: int = CASES
    attempts: dict[str, list[tuple[str, str, Attempt]]] = field(default_factory=dict)
    claims: dict[str, tuple[Claim, tuple[st.SearchStrategy[Any], ...]]] = field(default_factory=dict)

    def attack(
        self, number: str, text: str, claim: Claim, *strategies: st.SearchStrategy[Any], form: str = "as written"
    ) -> None:
        """Attack a claim in one ``form`` ("as written", "corrected", …), remember what happened, and print it.

        The last form of a claim is the one that ``hunt`` uses.
        """
        attempt = attack(claim, st.just(self.under_test), *strategies, cases=self.cases)
        earlier = [entry for entry in self.attempts.get(number, []) if entry[0] != form]  # a cell may be run twice
        self.attempts[number] = [*earlier, (form, text, attempt)]
        self.claims[number] = (claim, strategies)
        if attempt.survived:
            print(f"{number} {form}: survived {attempt.cases} cases")
        else:
            print(f"{number} {form}: FALSIFIED, {attempt.reason}\n  smallest case: {_without_first(attempt).case}")

    def hunt(self, flawed: Any, *numbers: str) -> dict[str, Attempt]:
        """Attack these claims, or all, with ``flawed`` in place of the pipeline: number -> what happened."""
        return {number: self._hunt(flawed, number) for number in numbers or sorted(self.claims)}

    def _hunt(self, flawed: Any, number: str) -> Attempt:
        """The cases that the claim's own attack drew; if one falsifies it, a new attack finds the smallest."""
        claim, strategies = self.claims[number]
        *_, (_, _, own) = self.attempts[number]
        if own.drawn and survives(lambda *case: claim(flawed, *case), [case[1:] for case in own.drawn]):
            return Attempt(own.cases)
        return _without_first(attack(claim, st.just(flawed), *strategies, cases=self.cases))

    def rows(self) -> list[tuple[str, str, int, str]]:
        """One row a claim: number, text of its last form, cases that this form was tried with, verdict."""
        rows = []
        for number, tried in sorted(self.attempts.items()):
            *before, (form, text, last) = tried
            fallen = [name for name, _, attempt in before if not attempt.survived]
            verdict = f"survived {form}" if last.survived else f"FALSIFIED {form}"
            if fallen:
                verdict = f"falsified {' and '.join(fallen)}; {verdict}"
            rows.append((number, text, last.cases, verdict))
        return rows

    def text(self) -> str:
        """The table for a terminal."""
        rows = [("claim", "what it says", "cases", "verdict"), *((a, b, str(c), d) for a, b, c, d in self.rows())]
        wide = [max(len(row[column]) for row in rows) for column in range(4)]
        return "\n".join(f"{a:{wide[0]}}  {b:{wide[1]}}  {c:>{wide[2]}}  {d}" for a, b, c, d in rows)

    def markdown(self) -> str:
        """The table for a README."""
        rows = [f"| {a} | {b} | {c} | {d} |" for a, b, c, d in self.rows()]
        return "\n".join(["| claim | what it says | cases tried | verdict |", "| --- | --- | --: | --- |", *rows])


def _without_first(attempt: Attempt) -> Attempt:
    """Without the pipeline under test, which stands before every case."""
    case = attempt.smallest
    return attempt if case is None else Attempt(attempt.cases, dict(list(case.items())[1:]), attempt.reason)
