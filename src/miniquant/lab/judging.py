"""``evaluate``: run a student's function on every case, compare it with the oracle, and say what is wrong and why."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import session
from .attempt import SECONDS, Outcome, attempts, cases_of, changeable_parts, expected_of, is_stub
from .catalogue import find
from .compare import Difference, short
from .detect import Seen, see
from .detect.calls import of_calls
from .detect.contrast import without_contrast
from .detect.kept import of_kept
from .detect.lines import of_lines
from .detect.probes import of_probes
from .detect.seen import LITTLE
from .detect.trials import NOT_TWICE
from .diagnose import Match, diagnose
from .guard import guarded
from .limit import TooSlow
from .near import near
from .near.repair import place_of_repair
from .report import LIKELY, SAME, SEEN, Report, Shown
from .source import speaks_of_other_code
from .spec import Exercise, Finding, Function
from .trace import trace_of
from .verdict import Call, Facts, problem, problem_on_case, shown_first, size_of

NO_WAY = "has no second way"  # a solution without one of its two branches
REPAIR = "right with a small change"
TELLING = 12  # what results show is telling up to this rank; beyond, a near solution is looked for


def evaluate(
    spec: Exercise, function: Function, *, search: bool = True, outcomes: Iterable[Outcome] | None = None
) -> Report:
    """``check`` without the decorator, the record and the hints: what a grader calls.

    ``search=False`` looks for no near solution and no place of repair; so the authors' own checks stay fast.
    ``outcomes`` is what the function gave on the cases, if that is known.
    """
    if wrong := _signature_problem(spec, function):
        cure = "Restore the line that begins with `def`."
        title = "other parameters"
        return Report("failed", spec.name, what=wrong, certainty=SEEN, mistake=title, cause=f"{wrong}.", cure=cure)
    tried = _tried(spec, function, outcomes)
    if all(is_stub(outcome.error, function) for outcome in tried):  # nothing to compare: the oracle is not asked
        return Report("not attempted", spec.name, what="your function still raises NotImplementedError", hint=spec.goal)
    calls = _compared(spec, tried)
    facts = Facts(spec, function, calls)
    if not facts.wrong and (gives_again := _given_again(spec, function, calls)):
        facts = Facts(spec, function, gives_again)
    if not facts.wrong:
        outcomes = [call.outcome for call in calls]
        note = f"it also prints, which nobody asked for: {short(outcomes[0].printed)}" if outcomes[0].printed else ""
        warned = next((o.warned for o in outcomes if o.warned), "")
        note = note or (f"right, but numpy or Python warns: {warned}" if warned else "")
        return Report("passed", spec.name, what=f"right on all {len(calls)} cases", why=spec.why, note=note)
    return _failure(facts, search)


def facts_of(spec: Exercise, function: Function, outcomes: Iterable[Outcome]) -> Facts:
    """What a check sees of a function whose outcomes on the cases are known."""
    return Facts(spec, function, _compared(spec, _tried(spec, function, outcomes), problem_on_case))


def _tried(spec: Exercise, function: Function, outcomes: Iterable[Outcome] | None = None) -> list[Outcome]:
    """What the function gives on the cases, in order."""
    tried = []
    with session.checking():
        for outcome in outcomes or attempts(spec, function, cases_of(spec), SECONDS):
            tried.append(outcome)
            if isinstance(outcome.error, TooSlow):
                break  # one call that never ends is enough
    return tried


def _given_again(spec: Exercise, function: Function, calls: Sequence[Call]) -> tuple[Call, ...]:
    """Calls made again with the same inputs, if each gives the same memory again, as with a cache; otherwise none."""
    again = {}
    with session.checking():
        for call in calls:
            if earlier := changeable_parts(call.outcome.own):
                *_, again[call.number] = attempts(spec, function, [call.case] * 2, SECONDS, earlier)
                if not again[call.number].kept:
                    return ()
    return _compared(spec, [again.get(call.number, call.outcome) for call in calls]) if again else ()


def _calls(spec: Exercise, function: Function) -> tuple[Call, ...]:
    """The function on every case, in order, beside the oracle."""
    return _compared(spec, _tried(spec, function))


def _compared(
    spec: Exercise, tried: Sequence[Outcome], found: Callable[..., Difference | None] = problem
) -> tuple[Call, ...]:
    """These outcomes on the cases, each beside the oracle's."""
    with session.checking():
        together = enumerate(zip(cases_of(spec), expected_of(spec), tried))
        return tuple(Call(n, case, right, got, found(spec, case, got, right)) for n, (case, right, got) in together)


def _is_wrong(name: str, function: Any) -> bool:
    """Whether a student's function for another exercise is wrong, and is used all the same.

    After a check that failed it is not used: the reference stands in for it.
    """
    student = getattr(function, "student", function)
    if getattr(function, "failed", False) or _signature_problem(find(name), student):
        return False
    calls = _calls(find(name), student)
    return any(call.problem for call in calls) and not any(is_stub(call.outcome.error, student) for call in calls)


def _failure(facts: Facts, search: bool) -> Report:
    """The report on a function that is wrong: the smallest good input first, then what must be refused.

    What is said first about the cause is true of the case that is shown.
    """
    spec = facts.spec
    cause: dict[str, str] = {}
    covers: frozenset[int] = frozenset()
    with guarded(), warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a variant of a solution may be odd code; nobody wrote it
        cause, covers = _cause(facts, search)
    shown = shown_first([call for call in facts.wrong if call.number in covers] or facts.wrong)
    assert shown.problem is not None
    alike = all(call.problem and call.problem.what == shown.problem.what for call in facts.wrong)
    error = shown.outcome.error
    return Report(
        "failed",
        spec.name,
        what=f"{_count(facts)}{':' if alike else '; in the case shown:'} {shown.problem.what}",
        case=dict(zip(facts.names, copy.deepcopy(shown.case))),
        expected=shown.expected.error or shown.expected.result,
        got=shown.outcome.error or shown.outcome.result,
        shown=_shown(facts, shown, any(size_of(call.case) < size_of(shown.case) for call in facts.wrong)),
        note=_note(shown.outcome),
        trace=trace_of(error, facts.function) if error and not isinstance(error, Finding | TooSlow) else "",
        **cause,
    )


def _count(facts: Facts) -> str:
    """On how many cases the function is wrong; after a call that never ends, of those that were tried."""
    n, of = len(facts.wrong), len(facts.calls)
    return f"wrong on {n} of {of} cases" if of == len(cases_of(facts.spec)) else f"wrong on {n} of {of} cases tried"


def _cause(facts: Facts, search: bool) -> tuple[dict[str, str], frozenset[int]]:
    """What the report says about the cause, and the numbers of the calls of which it is true; empty: of all.

    First a mistake of the catalogue whose results are those of the student on every case and beyond chance, unless it
    speaks of code that the student did not write. Then what the results themselves show. The title of a mistake that is
    not sure is kept in ``perhaps``, and is not said.
    """
    match, seen = diagnose(facts), see(facts)
    if other := of_calls(facts, _is_wrong):
        return {"certainty": SEEN, **_of_seen([other, *seen])}, frozenset()
    if kept := of_kept(facts):
        others = [without_contrast(other) for other in seen[:1] if other.title != NOT_TWICE]  # earlier calls count
        return {"certainty": SEEN, **_of_seen([kept, *others])}, frozenset()
    plain = bool(seen) and seen[0].plain
    if match and not plain and not _of_other_code(match, facts) and match.sure:
        return {"certainty": LIKELY, **_of_match(match)}, frozenset()
    if match and plain and match.explains < len(facts.wrong):
        match = None  # what the results show says it all
    known = {"perhaps": _of_match(match)["mistake"]} if match else {}
    search = search and bool(seen) and seen[0].rank > TELLING and not plain
    same = near(facts) if search else None
    if same and NO_WAY in same.text and (place := place_of_repair(facts)):  # the student's code may have another fault
        found = Seen(REPAIR, place, "Look at this place.")
        return {"certainty": SEEN, **_of_seen([found, seen[0]]), **known}, frozenset()
    if same:
        text = {"mistake": same.text, "cause": f"The two agree {same.cases}.", "also": _also(seen[0])}
        return {"certainty": SAME, **text, **known}, same.covers
    if not seen:
        return {}, frozenset()
    whole = _with_place(facts, seen) if search else seen
    return {"certainty": SEEN, **_of_seen(whole), **known}, whole[0].covers


def _of_other_code(match: Match, facts: Facts) -> bool:
    """Whether a mistake is about code that the student's function does not contain."""
    parts = _of_match(match)
    return speaks_of_other_code(f"{parts['mistake']}: {parts['cause']}", facts.function)


def _with_place(facts: Facts, seen: list[Seen]) -> list[Seen]:
    """What results show, and the place in the code that is wrong, if it is known; it comes before vague words."""
    if text := place_of_repair(facts):
        place: Seen | None = Seen(REPAIR, text, "Look at this place.", rank=30)
    else:
        place = of_lines(facts)
    more = [found for found in (of_probes(facts), place) if found]
    return [*more, *seen] if seen[0].rank >= LITTLE else [*seen, *more]


def _of_match(match: Match) -> dict[str, str]:
    if len(match.mistakes) == 1:
        (mistake,) = match.mistakes
        return {"mistake": mistake.name, "cause": mistake.cause, "cure": mistake.cure}
    titles = " or ".join(m.name for m in match.mistakes)
    return {"mistake": titles, "cause": "the cases do not tell these apart.", "cure": match.mistakes[0].cure}


def _of_seen(seen: list[Seen]) -> dict[str, str]:
    first, *rest = seen
    title = f"perhaps {first.title}" if first.only else first.title
    return {"mistake": title, "cause": first.text, "cure": first.cure, "also": " ".join(_also(s) for s in rest)}


def _also(seen: Seen) -> str:
    """A sentence that follows the first one; what not all wrong results show is said so."""
    return f"Perhaps: {seen.text[0].lower()}{seen.text[1:]}" if seen.only else seen.text


def _signature_problem(spec: Exercise, function: Function) -> str:
    """An edited list of parameters; more of them do no harm if they have defaults."""
    wanted = list(inspect.signature(spec.reference).parameters)
    parameters = list(inspect.signature(function).parameters.values())
    found = [p.name for p in parameters]
    more = parameters[len(wanted) :]
    optional = all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in more)
    if found[: len(wanted)] == wanted and optional:
        return ""
    return f"the parameters are ({', '.join(found)}); the exercise needs ({', '.join(wanted)})"


def _shown(facts: Facts, call: Call, of_its_kind: bool) -> Shown:
    assert call.problem is not None
    texts = [f"{name} = {short(value)}" for name, value in zip(facts.names, call.case)]
    case, expected, got = ", ".join(texts), call.problem.expected, call.problem.got
    cut = any("…" in text or " beginning " in text or " array of shape " in text for text in (case, expected, got))
    return Shown(case, expected, got, cut, of_its_kind)


def _note(outcome: Outcome) -> str:
    if outcome.printed:
        return f"it printed {short(outcome.printed)}"
    return f"numpy or Python warns: {outcome.warned}" if outcome.warned else ""
