"""Functions that numba compiled, as machine code that runs without numba.

To load numba takes longer than most of what is computed here. What it makes of a function is an object file, as a C
compiler writes one. llvmlite, the part of numba that talks to LLVM, loads such a file in a few milliseconds.

A function takes arrays in C order, integers and booleans, and returns nothing. Its code is for one kind of processor
and one version of numba: ``machine()`` names both.
"""

# mypy: disable-error-code="import-untyped,no-untyped-call,call-overload"
from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import machinery, util
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

_FROM_C = {  # numba's modules in C whose functions compiled ones call, and what their names begin with there
    "_helperlib": "numba_",
    "core/runtime/_nrt_python": "NRT_",
}
_OF_THE_SYSTEM = {"memcpy", "memmove", "memset"}
_NUMBERS = {"bool": ctypes.c_bool, "int": ctypes.c_ssize_t}


class MachineCode(NamedTuple):
    """An object file, the name of the function in it, and what that takes, as ``kind_of`` says."""

    symbol: str
    kinds: tuple[str, ...]
    data: bytes


def kind_of(argument: Any) -> str:
    """What kind of argument it is.

    >>> kind_of(True), kind_of(3), kind_of(np.zeros((2, 5), np.uint8))
    ('bool', 'int', 'uint8 2')
    """
    if isinstance(argument, np.ndarray):
        return f"{argument.dtype} {argument.ndim}"
    return type(argument).__name__


def compile_function(function: Callable[..., None], kinds: tuple[str, ...], **options: Any) -> MachineCode:
    """Compile a function with numba.   options: of ``numba.njit``

    Raises ``ImportError`` where the code needs something that only numba itself brings.
    """
    from numba import from_dtype, njit, types

    def of_numba(kind: str) -> Any:
        if kind in _NUMBERS:
            return types.boolean if kind == "bool" else types.intp
        dtype, dimensions = kind.split()
        return types.Array(from_dtype(np.dtype(dtype)), int(dimensions), "C")

    given = tuple(map(of_numba, kinds))
    dispatcher = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)
    dispatcher.compile(given)
    found = dispatcher.overloads[given]
    functions = found.library._final_module.functions
    called = {each.name for each in functions if each.is_declaration and not each.name.startswith("llvm.")}
    if unknown := called - _helpers():
        raise ImportError(f"compiled code calls {', '.join(sorted(unknown))}, which numba's modules in C do not have")
    return MachineCode(found.fndesc.llvm_func_name, kinds, found.library._get_compiled_object())


def load_function(code: MachineCode) -> Callable[..., None]:
    """The function of an object file, as ``compile_function`` made it: LLVM does not check the bytes.

    What it returns raises ``TypeError`` for arguments of other kinds or arrays in another order, and ``MemoryError``
    where there is no room for what it needs.
    """
    from llvmlite import binding

    _helpers()
    target = binding.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target)
    engine.add_object_file(binding.ObjectFileRef.from_data(code.data))
    engine.finalize_object()
    taken = [kind for each in code.kinds for kind in _in_c(each)]
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *taken)(
        engine.get_function_address(code.symbol)
    )

    def run(*arguments: Any) -> None:
        nothing, error = ctypes.c_void_p(), ctypes.c_void_p()
        given = [value for kind, each in zip(code.kinds, arguments, strict=True) for value in _flat(kind, each)]
        if call(ctypes.addressof(nothing), ctypes.addressof(error), *given):
            raise MemoryError(f"{code.symbol} stopped: there is no memory for its registers")

    vars(run)["engine"] = engine  # the code lives as long as this does
    return run


@cache
def machine() -> str:
    """A name for the processor, its features and the version of numba: code runs where it is the same."""
    from llvmlite import __version__, binding

    features = binding.get_host_cpu_features().flatten()
    chosen = [os.environ.get(f"NUMBA_CPU_{name}", "") for name in ("NAME", "FEATURES")]
    parts = [__version__, sys.platform, binding.get_host_cpu_name(), features, *chosen]
    version = _numba() / "_version.py"
    return hashlib.sha256("\n".join(parts).encode() + version.read_bytes()).hexdigest()[:16]


def _numba() -> Path:
    found = util.find_spec("numba")
    if found is None or found.origin is None:
        raise ImportError("numba is not installed")
    return Path(found.origin).parent


@cache
def _helpers() -> frozenset[str]:
    """The functions in C that compiled ones call; LLVM knows afterwards where they are. numba is not loaded for it."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    found = set(_OF_THE_SYSTEM)
    for name, prefix in _FROM_C.items():
        for each, address in _module(name).c_helpers.items():
            binding.add_symbol(prefix + each, address)
            found.add(prefix + each)
    return frozenset(found)


def _module(name: str) -> ModuleType:
    for suffix in machinery.EXTENSION_SUFFIXES:
        path = _numba() / f"{name}{suffix}"
        spec = util.spec_from_file_location(name.rpartition("/")[2], path) if path.exists() else None
        if spec is not None and spec.loader is not None:
            module = util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise ImportError(f"numba has no module {name}")


def _in_c(kind: str) -> list[Any]:
    """The numbers that an argument is, as numba passes it."""
    if kind in _NUMBERS:
        return [_NUMBERS[kind]]
    pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
    return [pointer, pointer, size, size, pointer, *2 * int(kind.split()[1]) * [size]]


def _flat(kind: str, argument: Any) -> tuple[Any, ...]:
    """An argument as these numbers: an array is two owners, which stay here, size, item size, data, shape, strides."""
    if kind in _NUMBERS:
        return (argument,)
    if kind_of(argument) != kind or not argument.flags.c_contiguous:
        raise TypeError(f"this code takes an array of {kind} dimensions in C order, found {kind_of(argument)}")
    return (None, None, argument.size, argument.itemsize, argument.ctypes.data, *argument.shape, *argument.strides)
