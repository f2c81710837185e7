"""A name that does not exist: most often a cell above was not run. A notebook then says so below the traceback."""

from __future__ import annotations

import re
import sys
from typing import Any

from ..core.language import translated
from .catalogue import exercises

FROM_THE_LAB = ("check", "exercise", "hint", "predict", "progress")


def watch() -> None:
    """Explain every ``NameError`` of this notebook; outside a notebook nothing happens."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None and NameError not in (shell.custom_exceptions or ()):
        shell.set_custom_exc((NameError,), explain)


def explain(
    shell: Any, kind: type[BaseException], error: BaseException, trace: Any, tb_offset: int | None = None
) -> None:
    """IPython's traceback, then one line of advice."""
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
    print(translated(advice(error)))


def advice(error: BaseException) -> str:
    """What to do about a name that is not defined.

    >>> advice(NameError("name 'pack_int4' is not defined"))
    'Run the cell that defines `pack_int4`, and the cells above it, first.'
    >>> advice(NameError("name 'progress' is not defined"))
    'Run the first code cell. Does it not import `progress`? Type `from miniquant.lab import progress`.'
    >>> advice(NameError("name 'wieghts' is not defined"))
    'Is `wieghts` spelled right? If so, run the cells above this one first: one of them defines it.'
    """
    found = re.search(r"name '(\w+)'", str(error))
    name = found.group(1) if found else "the name"
    if name in exercises():
        return f"Run the cell that defines `{name}`, and the cells above it, first."
    if name in FROM_THE_LAB:
        return f"Run the first code cell. Does it not import `{name}`? Type `from miniquant.lab import {name}`."
    return f"Is `{name}` spelled right? If so, run the cells above this one first: one of them defines it."
