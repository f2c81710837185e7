"""All exercises: each lab's module has a list ``EXERCISES``; deleting a lab is deleting its module and its notebook."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from .engine import Exercise


class Catalogue(Mapping[str, Exercise]):
    """The exercises of every module ``labNN`` in this package, by name, in the order of the labs.

    Labs are loaded one after another, no further than to the exercise that is asked for: lab 00 needs numpy alone,
    though later labs import torch.
    """

    def __init__(self) -> None:
        self._waiting = list(importlib.import_module("miniquant.lessons").COURSE)
        self._found: dict[str, Exercise] = {}

    def _load_next(self) -> None:
        for spec in importlib.import_module(f"miniquant.lessons.{self._waiting[0]}.exercises").EXERCISES:
            if spec.name in self._found:
                raise ValueError(f"two exercises are called {spec.name!r}")
            self._found[spec.name] = spec
        del self._waiting[0]

    def __getitem__(self, name: str) -> Exercise:
        while name not in self._found and self._waiting:
            self._load_next()
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        while self._waiting:
            self._load_next()
        return iter(self._found)

    def __len__(self) -> int:
        return len(list(iter(self)))
