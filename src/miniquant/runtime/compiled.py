"""Functions that numba compiles, and where what it compiled is kept.

Compiling the kernels takes some seconds. So the machine code is kept in the user's folder for caches, under a name
made from the sources, and a second process finds it. ``MINIQUANT_CACHE`` names another folder; if it is empty, nothing
is kept. A folder that cannot be written is no error: then every process compiles for itself.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import config as _config


@cache
def compiled(function: Callable[..., None]) -> Any:
    """The same function, compiled when it is first called with these arguments, or found on the disk."""
    found = njit(nogil=True)(function)
    folder = _folder()
    if folder is not None:
        before = _config.CACHE_DIR  # type: ignore[attr-defined]  # numba fills it in
        _config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
        try:
            found.enable_caching()
        finally:
            _config.CACHE_DIR = before  # type: ignore[attr-defined]
    return found


@cache
def _folder() -> Path | None:
    """Where compiled functions of these sources are kept; ``None`` if nothing can be written there."""
    base = _base()
    if base is None:
        return None
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())  # numba itself looks at the file of the outermost function alone
    folder = base / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


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
