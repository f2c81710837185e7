"""The library as it is while answers are judged: it can be imported, and nothing of it works.

So an answer that needs the library cannot pass unnoticed, however it reaches for it. What a notebook imports is there
by name; whoever calls, compares or indexes it meets ``NeedsLibrary``, and that is counted.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

met = [0]  # how often something absent was used


class NeedsLibrary(RuntimeError):
    """The library is not here now."""


def _refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
    met[0] += 1
    raise NeedsLibrary(f"{object.__getattribute__(self, 'path')} is used, and the library is not here now")


class Absent:
    """Something of the library, by its name alone; so is each of its attributes."""

    def __init__(self, path: str) -> None:
        object.__setattr__(self, "path", path)

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.path}.{name}")

    def __repr__(self) -> str:
        met[0] += 1  # a result of a function, say
        return f"<{self.path}, which is not here now>"

    def __deepcopy__(self, memo: object) -> Absent:
        met[0] += 1
        return self


USES = """
call setattr delattr getitem setitem delitem contains iter next len bool index int float hash enter exit
eq ne lt le gt ge add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow lshift rlshift
rshift rrshift and rand or ror xor rxor matmul rmatmul neg pos abs invert mro_entries instancecheck subclasscheck
array buffer bytes str format round fspath
"""
for _name in USES.split():
    setattr(Absent, f"__{_name}__", _refuse)


class _Module(ModuleType):
    """A module of the library: every name is in it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        errors = sys.modules.get("miniquant.core.errors")
        if errors is not None and isinstance(getattr(errors, name, None), type):
            return getattr(errors, name)  # the library's errors are no answers
        return Absent(f"{self.__name__}.{name}")


class AbsentLibrary(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module of the package that is not among ``there``, as an empty one."""

    def __init__(self, package: str, there: Sequence[str]) -> None:
        self.package, self.there = package, frozenset(there)

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """A module of this finder's, or None for all others."""
        if name.split(".")[0] != self.package or name in self.there:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """A module in which every name is."""
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run."""
