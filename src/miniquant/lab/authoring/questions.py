"""Questions from the catalogue of mistakes: a wrong function, and four causes of which one is true.

The three others are causes of other mistakes of the same exercise. A question is faulty if one of them is true of the
function that is shown, too. What the two functions give on the cases of the exercise decides: each must be right on a
case on which the other is wrong (``neither_explains``). So the fault that a wrong choice names is not in the function,
since the case that it would spoil is right. Neither does it explain what the check found, since the function is wrong
where that fault does nothing. The order of the choices is drawn from the names, so it never changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from ..attempt import cases_of, expected_of, outcomes_of
from ..catalogue import exercises
from ..spec import Altered, Exercise, Mistake
from ..verdict import problem

CHOICES = 4
LETTERS = "ABCD"
PROMPT = "A student wrote this function, and its check refuses it. What does the function do wrong?"


@dataclass(frozen=True)
class Question:
    """One question. ``choices`` are mistakes as a check prints them, ``right`` is the index of the one in ``code``."""

    lab: str
    exercise: str
    mistake: str
    code: str
    choices: tuple[str, ...]
    right: int
    cure: str

    @property
    def identifier(self) -> str:
        """A name of letters, digits and underscores that no other question has; it does not tell the answer."""
        return f"lab{self.lab}_{self.exercise}_{_number(self.exercise, self.mistake) % 16**8:08x}"


def wrong_on(spec: Exercise, mistake: Mistake) -> tuple[bool, ...]:
    """For each case, in order, whether the mistake's function is wrong on it."""
    assert callable(mistake.wrong)
    calls = zip(cases_of(spec), outcomes_of(spec, mistake.wrong), expected_of(spec))
    return tuple(bool(problem(spec, case, outcome, expected)) for case, outcome, expected in calls)


def neither_explains(one: Iterable[bool], other: Iterable[bool]) -> bool:
    """Whether each of two functions is right on a case on which the other is wrong.

    >>> neither_explains([True, True, False], [False, True, True]), neither_explains([True, True], [False, True])
    (True, False)
    """
    pairs = list(zip(one, other))
    return (True, False) in pairs and (False, True) in pairs


def questions_of(spec: Exercise, at_most: int = 0) -> list[Question]:
    """The questions of an exercise in the order of its mistakes; ``at_most`` so many, 0 for all.

    A mistake without three others that it can be told from in this way gives no question.
    """
    wrong = {mistake.name: wrong_on(spec, mistake) for mistake in spec.mistakes}
    found: list[Question] = []
    for mistake in spec.mistakes:
        if at_most and len(found) == at_most:
            break
        if not isinstance(mistake.wrong, Altered):
            continue
        others = [
            said(other)
            for other in spec.mistakes
            if other.cause != mistake.cause and neither_explains(wrong[mistake.name], wrong[other.name])
        ]
        if len(others) < CHOICES - 1:
            continue

        drawn = _shuffled(others, spec.name, mistake.name)[: CHOICES - 1]
        choices = _shuffled([said(mistake), *drawn], mistake.name)
        right = choices.index(said(mistake))
        code = mistake.wrong.source.rstrip()
        found.append(Question(spec.lab, spec.name, mistake.name, code, tuple(choices), right, mistake.cure))
    return found


def said(mistake: Mistake) -> str:
    """A mistake as a check prints it: its name and its cause."""
    return f"{mistake.name}: {mistake.cause}"


def bank(labs: Iterable[str] = (), at_most: int = 0) -> list[Question]:
    """The questions of some labs, by their numbers, or of all."""
    known, chosen = exercises(), set(labs)
    names = [name for name in known if not chosen or known.lab_of(name) in chosen]
    return [question for name in names for question in questions_of(known[name], at_most)]


def as_markdown(questions: list[Question]) -> str:
    """The questions, and after them the answers, so that one can be cut from the other."""
    lines = ["# Questions", ""]
    for number, question in enumerate(questions, 1):
        lines += [f"## {number}. Lab {question.lab}, `{question.exercise}`", "", PROMPT, ""]
        lines += ["```python", question.code, "```", ""]
        lines += [f"* **{letter}** {choice}" for letter, choice in zip(LETTERS, question.choices)] + [""]
    lines += ["# Answers", ""]
    for number, question in enumerate(questions, 1):
        lines.append(f"{number}. **{LETTERS[question.right]}**. {question.cure}")
    return "\n".join(lines) + "\n"


def _shuffled(texts: list[str], *names: str) -> list[str]:
    """The texts in an order that depends on the names alone, and on nothing that says which one is right."""
    return sorted(texts, key=lambda text: _number(*names, text))


def _number(*words: str) -> int:
    """A number that looks drawn, and is always the same for the same words."""
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:8])
