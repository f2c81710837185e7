"""Functions that numba compiles; what it compiled is kept, as ``core.kernel_cache`` says."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ..core import kernel_cache


@cache
def compiled(function: Callable[..., None]) -> Any:
    """The same function, compiled when it is first called with these arguments, or found on the disk."""
    return kernel_cache.compiled(function, Path(__file__).parent)
