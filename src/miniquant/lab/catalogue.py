"""The exercises of the course, found by name; a lesson is imported only when one of its exercises is asked for.

The lessons are the package ``miniquant.lessons``: ``COURSE`` is the order of the labs, each lab is a folder whose
``EXERCISES`` names its exercises in order, each exercise is a module of that name with an ``EXERCISE``. Deleting a lab
is deleting its folder, its line in ``COURSE`` and its notebook.
"""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..core.errors import MiniquantError
from .spec import Exercise, LessonError

LESSONS = "miniquant.lessons"


class Catalogue(Mapping[str, Exercise]):
    """The exercises by name, in the order of the course. Names are known without importing a lesson."""

    def __init__(self, lessons: str = LESSONS) -> None:
        self._lessons = lessons
        self._labs: dict[str, tuple[str, str]] = {}  # exercise -> (number of the lab, subject)
        self._found: dict[str, Exercise] = {}
        for number, subject in enumerate(course(lessons)):
            for name in importlib.import_module(f"{lessons}.{subject}").EXERCISES:
                if name in self._labs:
                    raise LessonError(f"two exercises are called {name!r}, in {self._labs[name][1]} and {subject}")
                self._labs[name] = (f"{number:02}", subject)

    def __getitem__(self, name: str) -> Exercise:
        if name not in self._found:
            number, subject = self._labs[name]
            spec = importlib.import_module(f"{self._lessons}.{subject}.{name}").EXERCISE
            self._found[name] = replace(spec, lab=number, subject=subject)
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._labs

    def __iter__(self) -> Iterator[str]:
        return iter(self._labs)

    def __len__(self) -> int:
        return len(self._labs)

    def of_lab(self, subject: str) -> list[Exercise]:
        """The exercises of one lab, in order. Raises ``MiniquantError`` for a subject that the course does not have."""
        subjects = course(self._lessons)
        if subject not in subjects:
            raise MiniquantError(f"no lab has the subject {subject!r}; there are {', '.join(subjects)}")
        return [self[name] for name, (_, other) in self._labs.items() if other == subject]

    def lab_of(self, name: str) -> str:
        """The number of the lab that an exercise belongs to, without importing its lesson."""
        return self._labs[name][0]


def course(lessons: str = LESSONS) -> tuple[str, ...]:
    """The subjects of the labs, in their order."""
    found: tuple[str, ...] = importlib.import_module(lessons).COURSE
    return found


@functools.cache
def exercises() -> Catalogue:
    """Every exercise by name, in the order of the course; a lesson is imported when it is needed."""
    return Catalogue()


def find(name: str) -> Exercise:
    """The exercise of this name. Raises ``MiniquantError`` naming the nearest if there is none."""
    if name not in exercises():
        close = difflib.get_close_matches(name, exercises(), n=1)
        raise MiniquantError(f"no exercise is called {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
    return exercises()[name]
