"""Functions that numba compiles; what it compiled is kept, as ``core.kernel_cache`` says."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit

from ..core.kernel_cache import folder_for, keep


@cache
def compiled(function: Callable[..., None]) -> Any:
    """The same function, compiled when it is first called with these arguments, or found on the disk."""
    found = njit(nogil=True)(function)
    folder = _folder()
    if folder is not None:
        keep(found, folder)
    return found


@cache
def _folder() -> Path | None:
    """Where compiled functions of these sources are kept; ``None`` if nothing can be written there."""
    return folder_for(sorted(Path(__file__).parent.glob("*.py")))
