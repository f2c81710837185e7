"""Does what a report says hold on inputs that nobody has seen? Conditions and relations are tried on new ones.

They are drawn anew, and mixed, by other means than those of the engine: nothing of a report was found on them.
Run as a program, it prints every sentence that fails: ``python tests/lab/unseen.py [answers] [part] [parts]``.
"""

from __future__ import annotations

import copy
import inspect
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from sentences import COUNTS, One, _is_so, relation, sentences

from miniquant.lab.attempt import attempt
from miniquant.lab.compare import equal
from miniquant.lab.detect import properties
from miniquant.lab.detect.formulas import quantities_of
from miniquant.lab.more_cases import is_known, like_the_cases
from miniquant.lab.verdict import problem

SEEDS = range(701, 713)
MOST = 150  # inputs
WRONG = 3  # so many unseen results must be wrong, before anything is judged
SHARE = 0.9  # of them, so many must show what is said of all wrong results
PLACE = re.compile(r"(exactly those|all but those|nearly all of those) (where .+?) are wrong")


def unseen(spec) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """New good inputs with their right outcomes: other random cases, and those with an argument of another one."""
    is_like, known = like_the_cases(spec), spec.all_cases()
    drawn = []
    for seed in SEEDS:
        new = spec.cases(np.random.default_rng(seed))
        drawn += [case for case in new if not any(equal(case, old) for old in known)]
    order = np.random.default_rng(700).permutation(len(drawn)) if drawn else []
    mixed = [
        (*drawn[a][:i], drawn[b][i], *drawn[a][i + 1 :])
        for a, b in pairwise(order)
        for i in range(min(len(drawn[a]), len(drawn[b])))
    ]
    n = 0
    for case in [*drawn[: MOST // 2], *mixed]:
        if n == MOST or not is_like(case):
            continue
        right, mine = attempt(spec, spec.oracle, case, 1.0), attempt(spec, spec.reference, case, 1.0)
        if right.error or mine.error or not equal(right.result, mine.result, spec.tolerance):
            continue
        if is_known(spec, case, right):
            n += 1
            yield case, right


def words_of(spec, case, right) -> dict[str, bool]:
    """Every property of an input that a report can name."""
    found = {
        f"where {words}": holds for words, holds in (spec.traits(*copy.deepcopy(case)) if spec.traits else {}).items()
    }
    found |= dict(properties._of_quantities(quantities_of(spec, case)))
    for name, value in zip(inspect.signature(spec.reference).parameters, case):
        found |= dict(properties._of_value(f"`{name}`", value))
    found |= dict(properties._of_expected(right))
    return {words: bool(holds) for words, holds in found.items()}


def holds(words: str, table: dict[str, bool]) -> bool | None:
    """Whether an input has a property, or one of several; ``None`` if the words are not known here."""
    parts = [part if part.startswith("where ") else f"where {part}" for part in words.split(", or ")]
    if all(part in table or re.match(r"where (a value of )?`\w+` is ", part) for part in parts):
        return any(table.get(part, False) for part in parts)
    return None


def failures(spec, function, report, inputs) -> Iterator[tuple[str, str]]:
    """The sentences of a report that are not so on these inputs, each with why."""
    names = list(inspect.signature(spec.reference).parameters)
    calls = []
    for number, (case, right) in enumerate(inputs):
        mine = attempt(spec, function, case, 1.0)
        wrong = problem(spec, case, mine, right) is not None
        one = One(
            number, dict(zip(names, case)), right.result, mine.result, mine.error, False, wrong, {}, spec.tolerance
        )
        calls.append((one, words_of(spec, case, right.result)))
    wrong = [(one, table) for one, table in calls if one.wrong]
    if len(wrong) < WRONG:
        return
    for sentence in sentences(f"{report.cause} {report.also}"):
        if "bad input" in sentence or "raise" in sentence or "for which" in sentence:
            continue
        if found := PLACE.search(sentence):
            kind, words = found.groups()
            judged = [(one, holds(words, table)) for one, table in calls]
            if any(inside is None for _, inside in judged):
                continue
            inside = [one for one, has in judged if has]
            outside = [one for one, has in judged if not has]
            if kind == "all but those":
                inside, outside = outside, inside
            if any(one.wrong for one in outside):
                yield sentence, f"{sum(one.wrong for one in outside)} of {len(outside)} others are wrong"
            elif sum(not one.wrong for one in inside) > (1 - SHARE) * len(inside) * (kind[0] == "n"):
                yield sentence, f"{sum(not one.wrong for one in inside)} of {len(inside)} such are right"
        if ", on at least " in sentence or sentence.startswith(("Perhaps", "With ")) or not COUNTS.search(sentence):
            continue
        test = relation(COUNTS.split(sentence)[0])
        results = [one for one, _ in wrong if one.error is None]
        if test is None or len(results) < WRONG or "off by up to" in sentence or "what is in them" in sentence:
            continue
        shown = sum(_is_so(test, one) for one in results)
        if shown < SHARE * len(results):
            yield sentence, f"{shown} of {len(results)} unseen wrong results show it"


def main(answers: int = 2, part: int = 0, parts: int = 1) -> None:
    """Print the sentences that fail, and the counts."""
    from wrong_answers import answers as made

    from miniquant.lab import evaluate, exercises

    reports = said = failed = 0
    for name, spec in sorted(exercises().items())[part::parts]:
        if not spec.keeps_to_memory:
            continue
        inputs = list(unseen(spec))
        known = [(mistake.name, mistake.wrong) for mistake in spec.mistakes[:answers]]
        nameless = type(spec)(**{k: getattr(spec, k) for k in spec.__dataclass_fields__} | {"mistakes": ()})
        for word, function in [*made(spec, 77, answers), *known]:
            report = evaluate(nameless, function, search=False)
            if report.status != "failed":
                continue
            reports += 1
            found = list(failures(spec, function, report, inputs))
            said += len(sentences(f"{report.cause} {report.also}"))
            failed += len(found)
            for sentence, why in found:
                print(f"{name} · {word}: {sentence}\n    {why}", flush=True)
    print(f"{reports} reports, {said} sentences, {failed} fail")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
