"""What a report says of calls, lines of code and errors, found out again from the calls and with a tracer."""

from __future__ import annotations

import ast
import copy
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from miniquant.lab.attempt import attempt
from miniquant.lab.compare import short
from miniquant.lab.spec import Exercise, Function
from miniquant.lab.verdict import problem

FEW = 3  # calls that are traced; a line of code is the same in all


def errors_named(facts: Sequence[Any], name: str) -> list[Any]:
    """The calls on good input that raised an error of this name."""
    last = name.split(".")[-1]
    return [one for one in facts if one.error is not None and type(one.error).__name__ == last]


def typed_line(function: Function, number: int) -> str:
    """A line of a function's text, by the number that a traceback gives it."""
    lines, first = inspect.getsourcelines(function)
    return lines[number - max(first, 1)].split("  #")[0].strip().rstrip(":")


def seen_at(spec: Exercise, function: Function, case: Sequence[Any], number: int) -> list[tuple[dict[str, Any], Any]]:
    """The local names each time that a line is about to run, and the frame: by a tracer, not by a traceback."""
    found: list[tuple[dict[str, Any], Any]] = []
    file = function.__code__.co_filename

    def watch(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != file:
            return None
        if event == "line" and frame.f_lineno == number:
            found.append((dict(frame.f_locals), frame))
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        attempt(spec, function, tuple(case))
    finally:
        sys.settrace(before)
    return found


def runs(spec: Exercise, function: Function, one: Any, number: int) -> bool:
    """Whether a call runs a line."""
    return bool(seen_at(spec, function, list(one.case.values()), number))


def of_code(sentence: str, facts: Sequence[Any], spec: Exercise, function: Function) -> bool | None:
    """Whether a sentence on the function's code or errors is true; ``None`` if it is none of those known here."""
    for pattern, check in PATTERNS:
        if found := re.match(pattern, sentence, re.DOTALL):
            return bool(check(found, facts, spec, function))
    return None


def _raised(found: Any, facts: Any, spec: Any, function: Any) -> bool:
    alike = errors_named([one for one in facts if not one.refused and one.wrong], found["name"])
    counts = re.findall(r", on (?:all |at least |)(\d+)", found.string)
    if len(alike) < int(counts[-1] if counts else 1):
        return False
    return found["line"] is None or _at_line(found, alike, spec, function)


def _at_line(found: Any, alike: Any, spec: Any, function: Any) -> bool:
    number = int(found["line"])
    if found["text"] and typed_line(function, number) != found["text"]:
        return False
    return all(runs(spec, function, one, number) for one in alike[:FEW])


def _bad_raised(found: Any, facts: Any, spec: Any, function: Any) -> bool:
    alike = errors_named([one for one in facts if one.refused and one.wrong], found["name"])
    return bool(alike) and (found["line"] is None or _at_line(found, alike, spec, function))


def _refused(found: Any, facts: Any, spec: Any, function: Any) -> bool:
    alike = errors_named([one for one in facts if not one.refused and one.wrong], found["name"])
    test = re.search(r": `([^`]+)` in line (\d+) (is|is not) true there, on", found.string)
    if not test or not alike:
        return bool(alike)
    for one in alike[:FEW]:
        states = seen_at(spec, function, list(one.case.values()), int(test[2]))
        if not states:
            return False
        if "next(" not in test[1] and "pop(" not in test[1]:
            names = {**states[-1][1].f_globals, **states[-1][0]}  # the test itself ran with these
            truth = bool(eval(test[1], names))
            if truth != (test[3] == "is"):
                return False
    return True


def _no_boolean(found: Any, facts: Any, spec: Any, function: Any) -> bool:
    return bool(errors_named([one for one in facts if isinstance(one.right, bool)], found[1]))


def _one_change(found: Any, facts: Any, spec: Any, function: Any) -> bool:
    text = inspect.getsource(function)
    quoted = re.findall(r"`([^`]+)`", found.string)
    total = int(re.search(r"right on all (\d+) cases", found.string)[1])
    return total == len(facts) and all(part in text for part in quoted)


def _line_runs(found: Any, facts: Any, spec: Any, function: Any) -> bool:
    good = [one for one in facts if not one.refused]
    wrong, right = [o for o in good if o.wrong], [o for o in good if not o.wrong]
    number = int(found[1])
    counts = [sum(runs(spec, function, one, number) for one in group) for group in (wrong, right)]
    said = []
    for words, group in zip((found[2], found[3]), (wrong, right)):
        k = re.search(r"on (?:(none|\d+) of the (\d+)|all (\d+)|(both)|the one)", words)
        n = len(group)
        said.append(
            n if k is None or k[3] or k[4] or words.startswith("on the one") else int(k[1]) if k[1] != "none" else 0
        )
        said[-1] = 0 if words.startswith("not on") else said[-1]
    return counts == said


def _accepted(found: Any, facts: Any, spec: Any, function: Any) -> bool:
    bad = [one for one in facts if one.refused]
    came = [one for one in bad if one.error is None]
    n, of = re.search(r"on (?:(?:all )?(\d+) of |all |the one of the )?(\d+)? ?inputs that must", found.string).groups()
    return len(came) >= int(n or of or 1) and (of is None or int(of) == len(bad))


def _nothing_refused(found: Any, facts: Any, spec: Any, function: Any) -> bool:
    bad = [one for one in facts if one.refused]
    return len(bad) == int(found[1]) and all(one.error is None for one in bad)


def _for_every_input(found: Any, facts: Any, spec: Any, function: Any) -> bool:
    results = [one.mine for one in facts if not one.refused and one.error is None]
    if "unchanged" in found.string:
        name = re.search(r"`(\w+)`", found.string)[1]
        every = [one for one in facts if not one.refused and one.error is None]
        return all(repr(one.mine) == repr(one.case[name]) for one in every)
    return len({repr(result) for result in results}) == 1


def _values(found: Any, facts: Any, spec: Any, function: Any) -> bool:
    number = int(re.search(r"in line (\d+)\.$", found.string)[1])
    names = re.findall(r"(?:, | and )`(\w+)` is ", found.string.split("in line")[0])
    failed = sorted((one for one in facts if one.error is not None), key=lambda one: len(repr(one.case)))
    exact = [one for one in failed if all(f"`{k}` = {short(value)}" in found.string for k, value in one.case.items())]
    return any(
        all(
            any(name in local for local, _ in seen_at(spec, function, list(one.case.values()), number))
            for name in names
        )
        for one in exact or failed
    )


def _right_with(found: Any, facts: Any, spec: Any, function: Any) -> bool:
    """Make the change that is named, and call the function and the oracle; of changes of another form, nothing."""
    named = re.search(
        r"right with `(\w+)((?:\[[^`]*\])?)` = (.+?)(?: in place of (.+)| and wrong with (.+))\.$", found.string
    )
    if not named:
        return True
    name, place, *texts = named.groups()
    values = [ast.literal_eval(text) for text in texts if text]
    wrong = [one for one in facts if one.wrong and not one.refused and one.error is None and name in one.case]

    def holds(one: Any) -> bool:
        results = []
        for value in values:
            case = copy.deepcopy(list(one.case.values()))
            index = list(one.case).index(name)
            if not place:
                case[index] = value
            else:
                inner = case[index] if isinstance(case[index], list | dict | np.ndarray) else list(case[index])
                inner[ast.literal_eval(f"({place[1:-1]})")] = value
                case[index] = type(case[index])(inner) if isinstance(case[index], tuple) else inner
            right = attempt(spec, spec.oracle, tuple(case), 5.0)
            mine = attempt(spec, function, tuple(case), 5.0)
            results.append(problem(spec, tuple(case), mine, right) is None)
        return results == [True, False]

    return any(holds(one) for one in wrong)


LINE = r"(?: in line (?P<line>\d+)(?:, `(?P<text>[^`]+)`)?)?"
Check = Callable[[Any, Sequence[Any], Exercise, Function], bool]
PATTERNS: tuple[tuple[str, Check], ...] = (
    (rf"Python raises (?P<name>[\w.]+){LINE}: ", _raised),
    (rf"On bad input an operation{LINE} fails with (?P<name>[\w.]+)", _bad_raised),
    (r"The function refuses good input, with (?P<name>[\w.]+)", _refused),
    (r"The function raises ([\w.]+); the answer here is True or False", _no_boolean),
    (r"(?:One small change|The same small change|Two small changes|A change of order)\b", _one_change),
    (r"Lines? (\d+),? .*\bruns? ((?:not )?on .*) and ((?:not )?on [^`]*)\.$", _line_runs),
    (r"Bad input is accepted: ", _accepted),
    (r"Nothing is refused: .* for each of the (\d+) inputs", _nothing_refused),
    (r"The result is .*,? for each of \d+ inputs tried", _for_every_input),
    (r"In (?:this case|the smallest of these cases), the result is right ", _right_with),
    (r"(?:With `|In the smallest of these cases, )", _values),
)
