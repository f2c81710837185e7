"""What a function did with bad input, and what its errors on good input say in plain words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ..attempt import is_own, outcomes_of
from ..compare import short
from ..limit import TooSlow
from ..spec import Finding
from ..trace import named
from ..verdict import Call, Facts, asked_errors, smallest
from .raised import condition_of, example_of, line_of
from .seen import Seen, some

# what varies from case to case in a message
VARYING = r"'[^']*'|(?:torch\.Size)?\([^()]*\)|(?:torch\.Size\()?\[[^\[\]]*\]\)?|-?\b\d[\d,]*\b"
KINDS = 4  # of findings that are said
PLAIN: tuple[tuple[str, str, str], ...] = (  # type and message, what it means, what to do
    (
        r"NameError: name '(\w+)' is not defined",
        "the name `{0}` is not defined",
        "Run the cells above, or look for a misspelled name.",
    ),
    (
        r"UnboundLocalError: .*'(\w+)'",
        "`{0}` is used before it has a value",
        "Give it a value before the loop or the `if`.",
    ),
    (r"ZeroDivisionError: (.*cannot be raised.*)", "{0}", "Treat 0 apart."),
    (r"ZeroDivisionError", "a number is divided by 0", "Treat a divisor of 0 apart."),
    (
        r"(?:IndexError|KeyError): '?pop from (?:an )?empty (\w+)",
        "`pop` finds nothing in an empty {0}",
        "Look at what was taken away before.",
    ),
    (
        r"IndexError: (.*out\sof\s(?:range|bounds).*)",
        "an index is outside the range: {0}",
        "Compare the index with the length first.",
    ),
    (r"IndexError: (.*)", "an index does not fit: {0}", "Compare the index with the shape first."),
    (r"KeyError: '(popitem.*)'", "{0}", "Look at what was taken away before."),
    (r"KeyError: (.*)", "the key {0} is not there", "Ask with `in` or use `.get`."),
    (
        r"struct.error: unpack.* requires a buffer of at least (\d+) bytes",
        "`struct` needs {0} bytes, and there are fewer",
        "Compare the length first.",
    ),
    (
        r"struct.error: unpack.* requires a buffer of (\d+) bytes",
        "`struct` needs {0} bytes, and there are fewer or more",
        "Compare the length first, or cut the bytes.",
    ),
    (
        r"struct.error: (.*)",
        "`struct` refuses what it was given: {0}",
        "Compare the format letters with the numbers: `B` u8, `H` u16, `I` u32, `Q` u64.",
    ),
    (r"TypeError: can only concatenate (.*)", "`+` joins two things of one type only: {0}", "Convert one of them."),
    (r"TypeError: can't concat (.*)", "`+` joins two things of one type only: {0}", "Convert one of them."),
    (
        r"TypeError: a bytes-like object is required, not '(\w+)'",
        "bytes are needed, and a {0} is given",
        "Use `.encode()` for text and `.to_bytes` for a number.",
    ),
    (
        r"TypeError: sequence item \d+: expected (.*), (\w+) found",
        "`join` needs items of type {0}, and there is one of type {1}",
        "Convert each item.",
    ),
    (
        r"TypeError: .*unsupported operand type\(s\) for (.*)",
        "an operation does not fit its values: {0}",
        "Look at the type of each of them.",
    ),
    (r"TypeError: '([\w.]+)' object is not (.*)", "a value of type {0} is not {1}", "Print `type(...)` of it."),
    (r"TypeError: (.*)", "{0}", "Print the types of the values in this line."),
    (
        r"AttributeError: '?([\w.]+)'? object has no attribute '(\w+)'",
        "a value of type {0} has no `{1}`",
        "Look at the type of the value, and at the spelling.",
    ),
    (r"AttributeError: (.*)", "{0}", "Look at the spelling."),
    (
        r"ValueError: operands could not be broadcast together with shapes (.*\S) ?",
        "the shapes {0} do not fit each other",
        "Print both shapes; `[:, None]` adds an axis.",
    ),
    (
        r"ValueError: cannot reshape array of size (\d+) into shape (.*)",
        "{0} values do not fit into the shape {1}",
        "Multiply the lengths of the new shape.",
    ),
    (
        r"ValueError: not enough values to unpack (.*)",
        "too few values for the names on the left of `=`: {0}",
        "Print what stands on the right.",
    ),
    (
        r"ValueError: too many values to unpack (.*)",
        "too many values for the names on the left of `=`: {0}",
        "Print what stands on the right.",
    ),
    (
        r"ValueError: bytes must be in range\(0, 256\)",
        "one byte holds 0 to 255, and a number outside this range is given",
        "Use `.to_bytes` or `struct.pack`.",
    ),
    (
        r"ValueError: The truth value of an array",
        "a whole array stands where one True or False is needed",
        "Use `np.where`, `.any()`, `.all()` or `np.maximum`.",
    ),
    (
        r"OverflowError: (.*)",
        "a number does not fit: {0}",
        "Count how many bytes the number needs, and whether it can be negative.",
    ),
    (
        r"UnicodeDecodeError: (.*)",
        "these bytes cannot be decoded: {0}",
        "Catch it, or do not decode bytes that are no text.",
    ),
    (r"UnicodeEncodeError: (.*)", "this text does not fit the encoding: {0}", 'Use `.encode("utf-8")`.'),
    (
        r"RecursionError",
        "more calls stand inside each other than Python allows",
        "A function that calls itself must stop, and soon enough.",
    ),
    (
        r"MemoryError|.*can't allocate memory",
        "the call asks for more memory than it may have",
        "`bytes(n)` makes n zero bytes; use `to_bytes`, or check a count before you allocate.",
    ),
    (r"ModuleNotFoundError: (.*)", "{0}", "Use what the notebook imports."),
    (r"AssertionError", "an `assert` fails", "Look at what it demands."),
    (r"NotImplementedError", "`raise NotImplementedError` is still there for this input", "Write this branch as well."),
    (r"StopIteration", "`next` finds nothing more", "Give `next` a default value."),
)


def of_good_input(facts: Facts, calls: Sequence[Call]) -> tuple[Seen, list[Call]]:
    """Good input on which the function raised or did not end: what is seen, and on which of these calls."""
    error, alike = _commonest(calls)
    name = _name(error)
    if isinstance(error, TooSlow):
        cure = "Look for a `while` whose condition stays true."
        return Seen("no end", "one call had no result when its time was over", cure, plain=True), alike[:1]
    if isinstance(error, Finding):
        return _of_findings([call for call in calls if isinstance(call.outcome.error, Finding)])
    if isinstance(calls[0].expected.result, bool):
        text = f"the function raises {name}; the answer here is True or False"
        return Seen("an error in place of an answer", text, "Return False where it is not so.", plain=True), alike
    if is_own(error) and not isinstance(error, AssertionError | NotImplementedError):
        words = {short_error(call.outcome.error) for call in alike if call.outcome.error}
        text = f"the function refuses good input, with {name if len(words) > 1 else short_error(error)}"
        text += condition_of(facts.function, alike)
        return Seen("good input refused", text, "Look at the condition before this `raise`."), alike
    line = line_of(facts.function, alike)
    text = f"Python raises {name}{' ' * bool(line)}{line}: {_words(alike, error)}"
    after = example_of(facts.function, facts.names, alike)
    return Seen(f"{name} raised", text, explained(error)[1], after=after), alike


def _of_findings(calls: Sequence[Call]) -> tuple[Seen, list[Call]]:
    """What was found in place of a result, and in which calls; each kind of finding with an example and its count."""
    findings = [call.outcome.error for call in calls if isinstance(call.outcome.error, Finding)]
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(re.sub(VARYING, "…", finding.what), []).append(finding)
    if len(kinds) == 1:
        gots = list(dict.fromkeys(finding.got for finding in findings))
        found = "; ".join(gots[:3]) + ("; and others" if len(gots) > 3 else "")
        alike = len({finding.what for finding in findings}) == 1
        return Seen(findings[0].what if alike else f"for example, {findings[0].what}", f"found: {found}"), list(calls)
    counted = [
        f"on {len(found)}, {'for example, ' * (len({f.what for f in found}) > 1)}{found[0].what}"
        for found in sorted(kinds.values(), key=len, reverse=True)[:KINDS]
    ]
    rest = len(kinds) - KINDS
    more = f"; and {rest} more kinds" if rest > 1 else "; and one more kind" if rest == 1 else ""
    return Seen(f"{len(kinds)} kinds of findings", "; ".join(counted) + more), list(calls)


def explained(error: BaseException) -> tuple[str, str]:
    """An error in plain words, and what to do about it."""
    message = named(error).split("\n")[0][:200].rstrip(".")
    for pattern, words, cure in PLAIN:
        if found := re.match(pattern, message):
            return words.format(*found.groups()), cure
    return message.partition(": ")[2] or message, "Read the last line of the traceback."


def of_bad_input(facts: Facts, calls: Sequence[Call]) -> tuple[Seen, list[Call]]:
    """Bad input that was accepted, or refused with an error that nobody asked for; and which of these calls."""
    bad = sum(call.refusal for call in facts.calls)
    returned = [call for call in calls if isinstance(call.outcome.result, BaseException)]
    if returned:
        text = "you return the error object; only `raise` raises it"
        return Seen("an error returned", text, "Write `raise` in place of `return`.", plain=True), returned
    accepted = [call for call in calls if call.outcome.error is None]
    raised = [call for call in calls if call.outcome.error is not None]
    wanted = calls[0].expected.error
    assert wanted is not None
    every = [call.expected.error for call in facts.calls if call.refusal and call.expected.error]
    asked = " or ".join(dict.fromkeys(asked_errors(facts.spec, error)[-1].__name__ for error in every))
    if len(accepted) >= len(raised):
        came = _what_came(facts, accepted)
        if len(accepted) == bad and bad > 1 and not any(call.outcome.error for call in (*facts.calls, *facts.changed)):
            text = f"nothing is refused: {came} for each of the {bad} inputs that must raise {asked}"
            return Seen("nothing refused", text, f"Add `if …: raise {asked}(...)` for each of them."), accepted
        which = some(len(accepted), bad, "inputs") if bad > 1 else "on the one input"
        text = f"bad input is accepted: {came} {which} that must raise {asked}"
        text += _reasons(facts, accepted) or _values(facts, accepted) or _reason_of_one(facts, accepted)
        return Seen("bad input accepted", text, f"Add a condition that raises {asked}."), accepted
    error, alike = _commonest(raised)
    name = _name(error)
    if isinstance(error, AssertionError) and not line_of(facts.function, alike).partition("`")[2].startswith("raise "):
        text = f"an `assert` refuses bad input, and {asked} is asked for"
        cure = f"Write `if …: raise {asked}(...)`: `python -O` leaves assertions out."
        return Seen("assert in place of raise", text, cure), alike
    if isinstance(error, Finding):
        return Seen(error.what, f"{error.what}; {asked} is asked for"), alike
    if isinstance(error, TooSlow):
        text = "one call with bad input had no result when its time was over"
        cure = "Look for a `while` whose condition stays true."
        return Seen("no end", text, cure, plain=True), alike[:1]
    changed = next((call.outcome.change for call in alike if call.outcome.change), None)
    if changed and isinstance(error, asked_errors(facts.spec, wanted)):
        text = (
            f"bad input is refused, as it must be, and the function changes its argument `{facts.names[changed.index]}`"
        )
        return Seen("argument changed", text, "Work on a copy."), alike
    if is_own(error):
        text = f"bad input is refused with {name}, and {asked} is asked for"
        return Seen("another error", text, f"Raise {asked}."), alike
    line = line_of(facts.function, alike)
    text = f"on bad input an operation{f' {line}' * bool(line)} fails with {name} ({_words(alike, error)})"
    text += f"; {asked} is asked for"
    cure = f"Check first and raise {asked}, or catch {name}."
    return Seen(f"{name} in place of {asked}", text, cure, after=example_of(facts.function, facts.names, alike)), alike


def _words(alike: Sequence[Call], error: BaseException) -> str:
    """An error of these calls in plain words; an example, if others of its kind say something else."""
    words, _ = explained(error)
    others = {explained(call.outcome.error)[0] for call in alike if call.outcome.error}
    return f"for example, {words}" if len(others) > 1 else words


def _commonest(calls: Sequence[Call]) -> tuple[BaseException, list[Call]]:
    """The errors of the kind that most of these calls raised: the one of the smallest such call, and all such calls."""
    kinds = Counter(_name(call.outcome.error) for call in calls if call.outcome.error)
    ((name, _),) = kinds.most_common(1)
    alike = [call for call in calls if call.outcome.error and _name(call.outcome.error) == name]
    first = smallest(alike)
    assert first.outcome.error is not None
    return first.outcome.error, alike


def _what_came(facts: Facts, calls: Sequence[Call]) -> str:
    if facts.spec.observe:  # what was observed need not be what was returned
        return "the call ends without an error"
    results = {short(call.outcome.result, 60) for call in calls}
    text = results.pop() if len(results) == 1 else ""
    return f"the function returns {text}" if 0 < len(text) <= 60 else "the function returns a result"


def _reasons(facts: Facts, calls: Sequence[Call]) -> str:
    """What a right answer says about this bad input, if its words are few: ``; refuses them with "too short"``."""
    for said in (_of_reference, _of_oracle):
        every = {call.number: said(facts, call) for call in facts.calls if call.refusal}
        kinds = {number: re.sub(VARYING, "…", text) for number, text in every.items()}
        counts = Counter(kinds[call.number] for call in calls)
        if "" in counts or not 1 <= len(counts) <= 2 or len(set(kinds.values())) < 2:
            continue
        words = []
        for kind in counts:
            alike = [call for call in calls if kinds[call.number] == kind]
            texts = {every[call.number] for call in alike}
            words.append(f'{"for example " * (len(texts) > 1)}"{every[smallest(alike).number]}"')
        who = "the solution" if said is _of_reference else "one right answer"
        return f"; {who} refuses {'it' if len(calls) == 1 else 'them'} with {' or '.join(words)}"
    return ""


def _values(facts: Facts, accepted: Sequence[Call]) -> str:
    """How an accepted input differs from those that are refused, if only one argument does and it is short."""
    refused = [call for call in facts.calls if call.refusal and call.outcome.error and not call.problem]
    if len(accepted) > 1 or not 0 < len(refused) <= 2:
        return ""
    mine = [short(value, 60) for value in accepted[0].case]
    others = [[short(value, 60) for value in call.case] for call in refused]
    differ = [i for i, text in enumerate(mine) if any(i < len(other) and other[i] != text for other in others)]
    if len(differ) != 1 or any(len(other) != len(mine) for other in others):
        return ""
    (index,) = differ
    texts = list(dict.fromkeys(other[index] for other in others))
    if any("…" in text or len(text) > 60 for text in (mine[index], *texts)) or mine[index] in texts:
        return ""
    return f"; it accepts `{facts.names[index]}` = {mine[index]} and refuses {' and '.join(texts)}"


def _reason_of_one(facts: Facts, accepted: Sequence[Call]) -> str:
    """What a right answer says about the smallest input that is accepted."""
    first = smallest(accepted)
    for who, said in (("the solution", _of_reference), ("one right answer", _of_oracle)):
        if text := said(facts, first):
            which = "it" if len(accepted) == 1 else "one of them"
            return f'; {who} refuses {which} with "{text}"'
    return ""


def _of_reference(facts: Facts, call: Call) -> str:
    """The message of the solution on a case, if it is a short one of its own."""
    return _message(outcomes_of(facts.spec, facts.spec.reference)[call.number].error)


def _of_oracle(facts: Facts, call: Call) -> str:
    """The message of the oracle, which a report shows as what is expected."""
    return _message(call.expected.error)


def _message(error: BaseException | None) -> str:
    if error is None or not is_own(error) or isinstance(error, Finding):
        return ""
    message = str(error).split("\n")[0]
    return message if len(message) <= 80 else ""


def short_error(error: BaseException) -> str:
    """An error on one line, cut after 120 characters."""
    text = named(error).split("\n")[0]
    return text if len(text) <= 120 else text[:119] + "…"


def _name(error: BaseException) -> str:
    return named(error).split(":")[0]
