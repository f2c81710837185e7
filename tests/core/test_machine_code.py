"""What numba compiled runs without numba, and refuses what it was not made for."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from miniquant.core import machine_code
from miniquant.core.machine_code import compile_function, kind_of, load_function

NOGIL = {"nogil": True, "error_model": "numpy"}


def weighted_sum(x, add, factor, out):
    """Calls what lies in numba's modules in C: a reshape, and memory."""
    flat, room = x.reshape(-1), np.empty(len(x), np.float32)
    for i in range(len(x)):
        room[i] = flat[i * x.shape[1]] * factor
    for i in range(len(x)):
        out[i] = room[i] + 1 if add else room[i]


KINDS = ("float32 2", "bool", "int", "float32 1")
X = np.arange(6, dtype=np.float32).reshape(3, 2)


@functools.cache
def code():
    """Not when the tests are collected, which every worker does."""
    return compile_function(weighted_sum, KINDS, **NOGIL)


def test_a_function_is_called_with_arrays_integers_and_booleans():
    run, out = load_function(code()), np.empty(3, np.float32)
    run(X, False, 5, out)
    assert out.tolist() == [0, 10, 20]
    run(X[:2], True, -2, out[1:])
    assert out.tolist() == [0, 1, -3]
    assert code().kinds == tuple(map(kind_of, (X, True, 5, out)))


def test_the_name_of_the_code_says_what_it_takes():
    found = compile_function(weighted_sum, KINDS, **NOGIL)
    assert "alignedEbx5Array" in found.symbol  # between the arrays a boolean, b, and an integer of 64 bits, x


def test_a_process_without_numba_runs_it_and_may_load_numba_afterwards(tmp_path):
    (tmp_path / "code").write_bytes(code().data)
    np.save(tmp_path / "x.npy", X)
    lines = (
        "import sys, numpy as np\n"
        "from miniquant.core.machine_code import MachineCode, load_function, machine\n"
        f"run = load_function(MachineCode({code().symbol!r}, {code().kinds!r}, open('code', 'rb').read()))\n"
        "x, out = np.load('x.npy'), np.empty(3, np.float32)\n"
        "run(x, True, 2, out)\n"
        "assert out.tolist() == [1, 5, 9] and 'numba' not in sys.modules\n"
        "from numba import njit\n"
        "total = njit(lambda x: x.copy()[2, 1])\n"
        "assert total(x) == 5\n"
        "run(x, False, 2, out)\n"
        "assert out.tolist() == [0, 4, 8] and total(x) == 5\n"
        f"assert machine() == {machine_code.machine()!r}\n"
    )
    subprocess.run([sys.executable, "-c", lines], check=True, cwd=tmp_path, timeout=120)


@pytest.mark.parametrize("wrong", [X.astype(np.float64), X.reshape(-1), np.asfortranarray(X), X[:, ::2], None])
def test_arrays_of_another_kind_or_order_are_refused(wrong):
    out = np.full(3, 7, np.float32)
    with pytest.raises(TypeError, match="this code takes an array of float32 2 dimensions in C order, found"):
        load_function(code())(wrong, False, 1, out)
    with pytest.raises(ValueError, match="shorter"):
        load_function(code())(X, False, 1)
    assert (out == 7).all()


def large(n, out):
    room = np.empty((n, n), np.float32)
    room[0, 0] = 1
    out[0] = room[0, 0]


def test_a_function_for_which_there_is_no_memory_says_so():
    run, out = load_function(compile_function(large, ("int", "float32 1"), **NOGIL)), np.zeros(1, np.float32)
    run(2, out)
    assert out[0] == 1
    with pytest.raises(MemoryError, match=r"large.* there is no memory"):
        run(2**30, out)


def endless(stop, out):
    while stop[0] == 0:
        out[0] += 1
        if out[0] > 1e30:
            out[1] += 1


def test_other_threads_run_while_it_does():
    run = load_function(compile_function(endless, ("uint8 1", "float32 1"), **NOGIL))
    stop, out = np.zeros(1, np.uint8), np.zeros(2, np.float32)
    thread = threading.Thread(target=run, args=(stop, out), daemon=True)
    thread.start()
    time.sleep(0.05)
    assert thread.is_alive()
    stop[0] = 1


def test_code_that_calls_an_unknown_function_is_refused(monkeypatch):
    monkeypatch.setattr(machine_code, "_helpers", lambda: frozenset({"memset"}))
    with pytest.raises(ImportError, match="compiled code calls NRT_MemInfo_alloc_aligned, NRT_MemInfo_call"):
        compile_function(weighted_sum, KINDS, **NOGIL)


def test_the_name_of_the_machine_depends_on_what_numba_is_told_of_it():
    def named(**variables):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            return machine_code.machine.__wrapped__()  # another process asks anew, as the one above does

    names = [named(), named(NUMBA_CPU_NAME="generic"), named(NUMBA_CPU_FEATURES="+sse2")]
    assert len(set(names)) == 3 and names[0] == machine_code.machine() and all(len(name) == 16 for name in names)


def test_without_numba_there_is_no_machine_code(monkeypatch):
    monkeypatch.setattr(machine_code.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="numba is not installed"):
        machine_code._numba()
    monkeypatch.undo()
    with pytest.raises(ImportError, match="numba has no module _other"):
        machine_code._module("_other")
