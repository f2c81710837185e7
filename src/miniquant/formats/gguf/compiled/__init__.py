"""Codecs in machine code: which form of a codec runs is decided here, and nowhere else.

Every codec is written in numpy, in ``codecs``. Some have a second form here, plain loops that numba compiles; both give
the same bytes. Without numba (it comes with the ``run`` extra) the first one runs. With it, a process begins in numpy
too, since loading numba takes half a second and compiling takes several. When numpy has taken ``LOAD_AFTER`` seconds in
this process, what an earlier process compiled is loaded, and when it has taken ``COMPILE_AFTER``, the rest is compiled.

``MINIQUANT_COMPILED=0`` keeps to numpy. ``MINIQUANT_COMPILED=1`` compiles at once; it is an error if numba is missing.
"""

from __future__ import annotations

import os
import pkgutil
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module, util
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from ....core.errors import QuantizationError
from ....core.kernel_cache import compiled, is_kept
from ..types import GGMLType

SWITCH = "MINIQUANT_COMPILED"
LOAD_AFTER, COMPILE_AFTER = 0.5, 10.0  # seconds: about what each of them takes
ENCODE, ENCODE_WEIGHTED, DECODE = "encode", "encode with an importance", "decode"

Work = Callable[[np.ndarray, np.ndarray, np.ndarray], None]  # source, target, scratch
ChosenWork = Callable[[np.ndarray, np.ndarray, np.ndarray, int], int]


class Form(NamedTuple):
    """A function for numba, and what it is called with after source, importance, target, and ``past`` in decoding.

    Source and target are blocks, (blocks, weights) float32 and (blocks, bytes) uint8. The importance is that of a row,
    as blocks; functions that encode and know of one get (0, weights) where there is none.
    """

    function: Callable[..., None]
    more: tuple[Any, ...] = ()
    importance: bool = False


FORMS: dict[tuple[GGMLType, str], Form] = {}  # filled by the modules of this folder
_spent = [0.0]  # seconds that this process has computed in numpy what has another form
_lock = Lock()


def chosen(
    dtype: GGMLType, what: str, in_numpy: Work, importance: np.ndarray | None = None, past: bool = False
) -> ChosenWork:
    """The work of a codec in the form that runs now; it is decided anew each time.

    It takes a source, a target, a scratch, and how many rows of them numpy handles at once, and says how many it did:
    those in numpy, all of them in the compiled form, which needs no scratch.

    what: ``ENCODE``, ``ENCODE_WEIGHTED`` or ``DECODE``; importance: (columns,) float32, of a row; past: whether decoded
    weights go past the caches to memory, which pays where there are many, in memory that has been used before

    Raises ``QuantizationError`` where ``MINIQUANT_COMPILED`` is 1 and numba is missing.
    """

    def work(source: np.ndarray, target: np.ndarray, scratch: np.ndarray, step: int) -> int:
        form = _form(dtype, what) if source.flags.aligned and len(source) else None
        if form is None:
            start = time.perf_counter()
            in_numpy(source[:step], target[:step], scratch)
            _spent[0] += time.perf_counter() - start
            return step
        sizes = (dtype.n_bytes, dtype.block) if what == DECODE else (dtype.block, dtype.n_bytes)
        given, found = _read_only(source.reshape(-1, sizes[0])), target.reshape(-1, sizes[1])
        columns = np.empty((0, dtype.block), np.float32) if importance is None else importance
        between = (_read_only(columns.reshape(-1, dtype.block)),) if form.importance else ()
        after = (past,) if what == DECODE else ()
        _compiled(form.function)(given, *between, found, *after, *form.more)
        return len(source)

    return work


def _form(dtype: GGMLType, what: str) -> Form | None:
    """The compiled form, if there is one and it is to run."""
    switch = os.environ.get(SWITCH, "")
    if switch == "0":
        return None
    if not _has_numba():
        if switch == "1":
            raise QuantizationError(f"{SWITCH}=1 asks for compiled codecs, and numba is not installed")
        return None
    if switch != "1" and _spent[0] < LOAD_AFTER:
        return None
    form = _forms().get((dtype, what))
    if form is None or switch == "1" or _spent[0] >= COMPILE_AFTER or _is_kept(form.function):
        return form
    return None


@cache
def _forms() -> dict[tuple[GGMLType, str], Form]:
    with _lock:
        try:
            for module in pkgutil.iter_modules(__path__):
                import_module(f"{__name__}.{module.name}")
        except (ImportError, OSError):  # numba is damaged, or there is no memory for it
            if os.environ.get(SWITCH) == "1":
                raise
            return {}
    return FORMS


@cache
def _has_numba() -> bool:
    """Whether numba is installed; to ask takes as long as a small chunk's work."""
    return util.find_spec("numba") is not None


@cache
def _is_kept(function: Callable[..., None]) -> bool:
    return is_kept(function, Path(__file__).parent)


@cache
def _dispatcher(function: Callable[..., None]) -> Any:
    return compiled(function, Path(__file__).parent, error_model="numpy")


def _compiled(function: Callable[..., None]) -> Any:
    with _lock:  # of two threads, one makes it
        return _dispatcher(function)


def _read_only(array: np.ndarray) -> np.ndarray:
    """A view that nobody may write to: for numba, the same array with and without that are two types to compile."""
    found = array.view()
    found.flags.writeable = False
    return found
