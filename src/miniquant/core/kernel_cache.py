"""Where the machine code of compiled functions is kept, so that a second process need not compile again.

It lies in the user's folder for caches, under a name made from what the sources say, wherever they lie: another copy of
the same sources need not compile again either. ``MINIQUANT_CACHE`` names another folder; if it is empty, nothing is
kept. A folder that cannot be written is no error: then every process compiles for itself.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def compiled(function: Callable[..., Any], sources: Path, **options: Any) -> Any:
    """The same function, compiled by numba when it is first called with such arguments, or found on the disk.

    sources: the folder of the modules that it is made of; options: of ``numba.njit``
    """
    from numba import njit

    found = njit(nogil=True, **options)(function)
    folder = folder_for(sources)
    if folder is not None:
        _keep(found, folder)
    return found


def folder_for(*sources: Path) -> Path | None:
    """Where functions made of the modules in some folders are kept; ``None`` if nothing can be written there."""
    base = _base()
    if base is None:
        return None
    digest = hashlib.sha256()
    ours = (Path(__file__).with_name(name) for name in ("machine_code.py", "registers.py"))
    for source in (*(module for folder in sources for module in sorted(folder.glob("*.py"))), *ours):
        text = source.read_bytes()  # numba itself looks at the file of the outermost function alone
        digest.update(f"{source.name} {len(text)} ".encode() + text)
    folder = base / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _keep(dispatcher: Any, folder: Path) -> None:
    """Let numba look for a function in the folder before it compiles, and put there what it compiled."""
    from numba.core import caching

    class Place(caching._CacheLocator):
        """The folder, whose name says all of the sources: numba would add their path, and some versions their time."""

        def __init__(self, function: Callable[..., Any], file: str) -> None:
            self._py_file, self._line = file, function.__code__.co_firstlineno

        def get_cache_path(self) -> str:
            return str(folder)

        def get_source_stamp(self) -> str:
            return folder.name

        def get_disambiguator(self) -> str:
            return str(self._line)

        @classmethod
        def from_function(cls, function: Callable[..., Any], file: str) -> Place:
            return cls(function, file)

    class Kept(caching.CompileResultCacheImpl):
        _locator_classes: Any = (Place,)

    class Functions(caching.FunctionCache):
        _impl_class = Kept

    functions: Any = Functions
    dispatcher._cache = functions(dispatcher.py_func)  # as its enable_caching() does with numba's own


def _base() -> Path | None:
    """The user's folder for caches, as each system has it."""
    if (named := os.environ.get("MINIQUANT_CACHE")) is not None:
        return Path(named).absolute() if named else None
    places = {"win32": ("LOCALAPPDATA", "~/AppData/Local"), "darwin": ("", "~/Library/Caches")}
    variable, otherwise = places.get(sys.platform, ("XDG_CACHE_HOME", "~/.cache"))
    try:
        return Path(os.environ.get(variable) or os.path.expanduser(otherwise)) / "miniquant"
    except RuntimeError:  # a user without a home
        return None
