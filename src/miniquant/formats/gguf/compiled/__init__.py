"""Codecs in machine code: which form of a codec runs is decided here, and nowhere else.

Every codec is written in numpy, in ``codecs``. Some have a second form here, plain loops that numba compiles; both give
the same bytes. Without numba (it comes with the ``run`` extra) the first one runs. With it, a process begins in numpy
too, since loading machine code takes some time and compiling takes several seconds. When numpy has taken ``LOAD_AFTER``
seconds in this process, what an earlier process compiled is loaded, without numba itself; when it has taken
``COMPILE_AFTER``, the rest is compiled.

``MINIQUANT_COMPILED=0`` keeps to numpy. ``MINIQUANT_COMPILED=1`` compiles at once; it is an error if numba is missing.
"""

from __future__ import annotations

import os
import pkgutil
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module, util
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from ....core.errors import QuantizationError, WriteError
from ....core.files import atomic_write
from ....core.kernel_cache import folder_for
from ....core.machine_code import MachineCode, compile_function, kind_of, load_function, machine
from ..types import GGMLType

SWITCH = "MINIQUANT_COMPILED"
LOAD_AFTER, COMPILE_AFTER = 0.05, 10.0  # seconds: about what each of them takes
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


class Kernel(NamedTuple):
    """A form in machine code."""

    run: Callable[..., None]
    more: tuple[Any, ...]
    importance: bool


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
        kernel = _kernel(dtype, what) if source.flags.aligned and len(source) else None
        if kernel is None:
            start = time.perf_counter()
            in_numpy(source[:step], target[:step], scratch)
            _spent[0] += time.perf_counter() - start
            return step
        sizes = (dtype.n_bytes, dtype.block) if what == DECODE else (dtype.block, dtype.n_bytes)
        columns = np.empty((0, dtype.block), np.float32) if importance is None else importance
        between = (columns.reshape(-1, dtype.block),) if kernel.importance else ()
        after = (past,) if what == DECODE else ()
        kernel.run(source.reshape(-1, sizes[0]), *between, target.reshape(-1, sizes[1]), *after, *kernel.more)
        return len(source)

    return work


def _kernel(dtype: GGMLType, what: str) -> Kernel | None:
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
    found = _kept(dtype, what)
    return _compiled(dtype, what) if found is None and (switch == "1" or _spent[0] >= COMPILE_AFTER) else found


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
def _kept(dtype: GGMLType, what: str) -> Kernel | None:
    """What an earlier process compiled."""
    try:
        path = _file_of(dtype, what)
        return None if path is None or not path.exists() else _read(path)
    except (ImportError, OSError, EOFError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile):
        return None  # a file of another kind, or damaged: compiling writes it anew


@cache
def _compiled(dtype: GGMLType, what: str) -> Kernel | None:
    """The form compiled now, and kept for the next process where that is possible."""
    form = _forms().get((dtype, what))
    if form is None:
        return None
    given = {ENCODE: ("float32 2",), ENCODE_WEIGHTED: ("float32 2",), DECODE: ("uint8 2",)}[what]
    between = ("float32 2",) if form.importance else ()
    found = ("float32 2", "bool") if what == DECODE else ("uint8 2",)
    try:
        with _lock:  # of two threads, one makes it
            code, run = _code(form.function, (*given, *between, *found, *map(kind_of, form.more)))
    except (ImportError, OSError):
        if os.environ.get(SWITCH) == "1":
            raise
        return None
    kernel = Kernel(run, form.more, form.importance)
    path = _file_of(dtype, what)
    if path is not None:
        with suppress(WriteError):
            _write(path, code, kernel)
    return kernel


@cache
def _code(function: Callable[..., None], kinds: tuple[str, ...]) -> tuple[MachineCode, Callable[..., None]]:
    """Several types share a function."""
    code = compile_function(function, kinds, nogil=True, error_model="numpy")
    return code, load_function(code)


def _file_of(dtype: GGMLType, what: str) -> Path | None:
    """Where a form is kept, under a name made from its sources and tables, and the machine."""
    folder = _folder()
    try:
        return None if folder is None else folder / f"{dtype.name}-{what.replace(' ', '-')}-{machine()}.npz"
    except RuntimeError:  # LLVM does not know this processor
        return None


@cache
def _folder() -> Path | None:
    here = Path(__file__).parent
    return folder_for(here, here.with_name("codecs"))


def _write(path: Path, code: MachineCode, kernel: Kernel) -> None:
    more: dict[str, Any] = {f"more{number}": value for number, value in enumerate(kernel.more)}
    data = np.frombuffer(code.data, np.uint8)
    with atomic_write(path) as file:
        np.savez(file, symbol=code.symbol, kinds=code.kinds, data=data, importance=kernel.importance, **more)


def _read(path: Path) -> Kernel:
    with np.load(path, allow_pickle=False) as kept:
        kinds = tuple(map(str, kept["kinds"]))
        run = load_function(MachineCode(str(kept["symbol"]), kinds, kept["data"].tobytes()))
        more = [kept[name] for name in kept.files if name.startswith("more")]
        return Kernel(run, tuple(each if each.ndim else int(each) for each in more), bool(kept["importance"]))
