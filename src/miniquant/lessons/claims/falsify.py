"""Lab 16's board: claims are attacked with hypothesis, what happened is counted, and a table says the verdict."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st

from ...models.export import ModelMetadata

CASES = 100
WRITTEN = "as written"
Claim = Callable[..., bool]
Strategy = st.SearchStrategy[Any]


class Verdict(Enum):
    """What an attack on a claim as its document wrote it says about the claim."""

    SURVIVES = "survives as written"
    FALSE_OF_DOCUMENTS = "false of the document's exporter"
    CANNOT_HOLD = "cannot hold for a correct GGUF exporter"
    OPEN = "falls, and no rule says why: the claim or the program is wrong"


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


def searching(cases: int, *phases: Phase) -> settings:
    """Settings of hypothesis: the same cases each time, nothing remembered between runs, no limit of time."""
    return settings(
        max_examples=cases,
        deadline=None,
        derandomize=True,
        database=None,
        phases=list(phases),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        print_blob=False,
    )


def draws(strategy: Strategy, count: int = CASES) -> list[Any]:
    """Up to ``count`` values that a strategy draws, the same each time; a strategy with few values gives fewer.

    >>> sorted(draws(st.sampled_from("ab")))
    ['a', 'b']
    """
    found: list[Any] = []

    def keep(value: Any) -> None:
        found.append(value)

    searching(count, Phase.generate)(given(strategy)(keep))()
    return found


def attack(claim: Claim, *strategies: Strategy, cases: int = CASES) -> Attempt:
    """Call ``claim`` with ``cases`` drawn cases; anything but ``True``, an error included, falsifies it.

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
        if problem := _problem(claim, drawn):
            smallest, reason = dict(zip(names, drawn)), problem
            raise AssertionError(problem)

    try:
        searching(cases, Phase.generate, Phase.shrink)(given(st.tuples(*strategies))(one_case))()
    except Exception:  # the last failing call was that with the smallest case
        if smallest is None:
            raise
    return Attempt(tried, smallest, reason, () if smallest else tuple(kept))


def attack_each(claim: Claim, cases: Iterable[tuple[Any, ...]]) -> Attempt:
    """Call ``claim`` with each of these cases, in order; the first that is not ``True`` falsifies it.

    >>> attack_each(lambda n: n < 10, [(n,) for n in range(12)])
    Attempt(cases=11, smallest={'n': 10}, reason='the claim does not hold')
    """
    names, tried = list(inspect.signature(claim).parameters), []
    for case in cases:
        tried.append(case)
        if problem := _problem(claim, _copied(case)):
            return Attempt(len(tried), dict(zip(names, case)), problem)
    return Attempt(len(tried), drawn=tuple(tried))


def _problem(claim: Claim, case: tuple[Any, ...]) -> str:
    """What a case shows against a claim; empty if it shows nothing."""
    try:
        answer = claim(*case)
    except Exception as error:
        return f"raises {type(error).__name__}"
    if isinstance(answer, bool) or type(answer).__name__ in ("bool_", "bool"):
        return "" if answer else "the claim does not hold"
    return f"the claim is neither True nor False, but {answer!r}"


def _copied(case: tuple[Any, ...]) -> tuple[Any, ...]:
    """A copy, since a claim may change what it is given; what nobody can copy, as it is."""
    try:
        return copy.deepcopy(case)
    except Exception:
        return case


def shown(value: Any) -> str:
    """A drawn value, short: of metadata, what is known; of a quantization, its name.

    >>> shown(ModelMetadata("gpt2")), shown({"a": (1, 32)})
    ("(architecture='gpt2')", "{'a': (1, 32)}")
    """
    if isinstance(value, ModelMetadata):
        known = {k: v for k, v in vars(value).items() if v not in (None, {})}
        return f"({', '.join(f'{k}={v!r}' for k, v in known.items())})" if known else "(nothing known)"
    return value.name if isinstance(value, Enum) else repr(value)


@dataclass(frozen=True)
class Entry:
    """What happened to one form of a claim. ``documents`` is there for the form of the document alone."""

    form: str
    text: str
    ours: Attempt
    documents: Attempt | None = None
    rule: str = ""  # of GGUF, which the form breaks

    @property
    def verdicts(self) -> list[Verdict]:
        """What the attempts say. A fall of our exporter counts against the claim only if a rule of GGUF asks for it."""
        found = []
        if self.documents and not self.documents.survived:
            found.append(Verdict.FALSE_OF_DOCUMENTS)
        if not self.ours.survived:
            found.append(Verdict.CANNOT_HOLD if self.rule else Verdict.OPEN)
        return found or [Verdict.SURVIVES]


@dataclass
class Board:
    """What was attacked, in order; ``cases`` for each attempt.

    ``ours`` and ``documents`` are pipelines, which a claim gets as its first argument: an exporter of correct GGUF
    files, and the one that the document describes. A claim as the document wrote it is attacked with both.
    """

    ours: Any
    documents: Any
    cases: int = CASES
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    claims: dict[str, tuple[Claim, tuple[Strategy, ...], Sequence[Any]]] = field(default_factory=dict)
    drawn: dict[tuple[Strategy, ...], tuple[tuple[Any, ...], ...]] = field(default_factory=dict, repr=False)

    def attack(
        self,
        number: str,
        text: str,
        claim: Claim,
        *strategies: Strategy,
        form: str = WRITTEN,
        rule: str = "",
        every: Sequence[Any] = (),
    ) -> None:
        """Attack a claim in one ``form`` ("as written", "as corrected", …), remember what happened, and print it.

        ``rule`` is the rule of GGUF that makes a correct exporter break the claim; ``every`` lists the cases where
        none are drawn. The last form of a claim is the one that ``hunt`` uses.
        """
        self.claims[number] = (claim, strategies, every)
        documents = self._attempt(number, self.documents) if form == WRITTEN else None
        entry = Entry(form, text, self._attempt(number, self.ours), documents, rule)
        earlier = [other for other in self.entries.get(number, []) if other.form != form]  # a cell may be run twice
        self.entries[number] = [*earlier, entry]
        print(f"{number} {_told(entry)}")

    def hunt(self, flawed: Any, *numbers: str) -> dict[str, Attempt]:
        """Attack these claims, or all, with ``flawed`` in place of the pipeline: number -> what happened."""
        return {number: self._hunt(flawed, number) for number in numbers or sorted(self.claims)}

    def _attempt(self, number: str, pipeline: Any) -> Attempt:
        """The cases that these strategies draw; if one falsifies the claim, hypothesis looks for the smallest."""
        claim, strategies, every = self.claims[number]
        if every:
            return _without_first(attack_each(claim, [(pipeline, case) for case in every]))
        found = attack_each(claim, [(pipeline, *case) for case in self._cases(strategies)])
        if found.survived:
            return found
        return _without_first(attack(claim, st.just(pipeline), *strategies, cases=self.cases))

    def _cases(self, strategies: tuple[Strategy, ...]) -> tuple[tuple[Any, ...], ...]:
        """What these strategies draw in an attack: the same each time, so that they are drawn once."""
        if strategies not in self.drawn:
            whole = attack(lambda *_: True, st.none(), *strategies, cases=self.cases)
            self.drawn[strategies] = tuple(case[1:] for case in whole.drawn)
        return self.drawn[strategies]

    def _hunt(self, flawed: Any, number: str) -> Attempt:
        """As any attack; of listed cases, the first ``cases``."""
        claim, _, every = self.claims[number]
        if every:
            return _without_first(attack_each(claim, [(flawed, case) for case in every[: self.cases]]))
        return self._attempt(number, flawed)

    def verdicts(self) -> dict[str, list[Verdict]]:
        """For each claim that was attacked as written, in their order: the verdicts on it."""
        written = {number: entry for number, tried in sorted(self.entries.items()) for entry in tried[:1]}
        return {number: entry.verdicts for number, entry in written.items() if entry.form == WRITTEN}

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """One row a claim: number, text of its last form, verdict as written, cases of the last form, what it did."""
        verdicts, rows = self.verdicts(), []
        for number, tried in sorted(self.entries.items()):
            written = "; ".join(verdict.value for verdict in verdicts.get(number, [])) or "not in the document"
            last = tried[-1]
            now = f"{'survives' if last.ours.survived else 'FALLS'} {last.form}"
            rows.append((number, last.text, written, f"{last.ours.cases:,}", now))
        return rows

    def text(self) -> str:
        """The table for a terminal."""
        rows = [("claim", "what it says now", "verdict on the document's claim", "cases", "now"), *self.rows()]
        wide = [max(len(row[column]) for row in rows) for column in range(4)]
        return "\n".join(f"{a:{wide[0]}}  {b:{wide[1]}}  {c:{wide[2]}}  {d:>{wide[3]}}  {e}" for a, b, c, d, e in rows)

    def markdown(self) -> str:
        """The table for a README."""
        head = ["| claim | what it says now | verdict on the document's claim | cases | now |", "| --- | --- | --- | --: | --- |"]
        return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in self.rows())])


def _told(entry: Entry) -> str:
    """What an attack prints."""
    both = [("our exporter", entry.ours)]
    if entry.documents:
        both.insert(0, ("the document's exporter", entry.documents))
    if all(attempt.survived for _, attempt in both):
        return f"{entry.form}: survives {entry.ours.cases:,} cases{' with either exporter' if entry.documents else ''}"
    lines = [f"{entry.form}"]
    for name, attempt in both:
        if attempt.survived:
            lines.append(f"  {name}: survives {attempt.cases:,} cases")
        else:
            lines += [f"  {name}: FALLS, {attempt.reason}", f"    smallest case: {attempt.case}"]
    if entry.documents:
        lines += [f"  verdict: {verdict.value}" for verdict in entry.verdicts]
        lines += [f"    because {entry.rule}"] if Verdict.CANNOT_HOLD in entry.verdicts else []
    return "\n".join(lines)


def _without_first(attempt: Attempt) -> Attempt:
    """Without the pipeline in the smallest case, where it stands first."""
    case = attempt.smallest
    return attempt if case is None else Attempt(attempt.cases, dict(list(case.items())[1:]), attempt.reason)
