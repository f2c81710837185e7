"""All exercises: each lab's module has a list ``EXERCISES``; deleting a lab is deleting its module and its notebook."""

from __future__ import annotations

import importlib
import pkgutil
import re

from .engine import Exercise


def load() -> dict[str, Exercise]:
    """The exercises of every module ``labNN`` in this package, by name, in the order of the labs."""
    package = importlib.import_module(__package__)
    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__) if re.fullmatch(r"lab\d\d", m.name))
    found: dict[str, Exercise] = {}
    for name in names:
        for spec in importlib.import_module(f"{__package__}.{name}").EXERCISES:
            if spec.name in found:
                raise ValueError(f"two exercises are called {spec.name!r}")
            found[spec.name] = spec
    return found
