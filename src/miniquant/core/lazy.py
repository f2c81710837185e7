"""Names of a package that are imported when somebody asks for them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazily(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for a package's ``__init__``: each of its names comes from the module that ``modules`` says.

    >>> lazily("miniquant.core", {"FormatError": "errors"})("FormatError").__name__
    'FormatError'
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return get
