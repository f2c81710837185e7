"""Which form of a codec runs: numpy, or with numba a compiled one once it pays; ``conftest`` sees that both agree."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from miniquant.core.errors import QuantizationError
from miniquant.formats.gguf import compiled
from miniquant.formats.gguf.codecs import CODECS, rows
from miniquant.formats.gguf.types import GGMLType

W = np.random.default_rng(0).standard_normal((4, 512)).astype(np.float32)


def sevens(source, *given):
    """What a form in machine code is called like."""
    given[-1].fill(7)


SEVENS = compiled.Kernel(sevens, (), False)


@pytest.fixture
def ran(monkeypatch):
    """The forms that were compiled, instead of compiling them; each fills its target with sevens."""
    found = []

    def fake(dtype, what):
        if dtype != GGMLType.Q4_K:
            return None
        found.append(what)
        return SEVENS

    monkeypatch.setattr(compiled, "_compiled", fake)
    monkeypatch.setattr(compiled, "_kept", lambda dtype, what: None)
    monkeypatch.setattr(compiled, "_spent", [0.0])
    monkeypatch.delenv(compiled.SWITCH, raising=False)
    return found


@pytest.mark.parametrize("spent, kept, runs, compiles", [
    (0.0, True, False, False),
    (compiled.LOAD_AFTER, True, True, False),
    (compiled.LOAD_AFTER, False, False, False),
    (compiled.COMPILE_AFTER, False, True, True),
    (compiled.COMPILE_AFTER, True, True, False),
])  # fmt: skip
def test_a_process_begins_in_numpy_loads_what_is_kept_and_compiles_last(spent, kept, runs, compiles, ran, monkeypatch):
    monkeypatch.setattr(compiled, "_spent", [spent])
    monkeypatch.setattr(compiled, "_kept", lambda dtype, what: SEVENS if kept else None)
    raw = rows.encode(W, "Q4_K")
    assert (raw == 7).all() == runs and ran == [compiled.ENCODE] * compiles
    assert (compiled._spent[0] == spent) == runs  # the time in numpy is counted


@pytest.mark.parametrize("switch, runs", [("0", False), ("1", True)])
def test_the_switch_goes_before_that(switch, runs, ran, monkeypatch):
    monkeypatch.setattr(compiled, "_spent", [1e9 if switch == "0" else 0.0])
    monkeypatch.setenv(compiled.SWITCH, switch)
    for importance in (None, np.ones(512)):
        assert (rows.encode(W, "Q4_K", importance) == 7).all() == runs
    assert not (rows.encode(W, "Q5_K") == 7).all()  # a type without a compiled form
    assert rows.encode(W[:0], "Q4_K").shape == (0, 288)


def test_without_numba_numpy_runs_and_only_an_explicit_wish_is_an_error(ran, monkeypatch):
    monkeypatch.setattr(compiled, "_spent", [1e9])
    monkeypatch.setattr(compiled, "_has_numba", lambda: False)
    assert not (rows.encode(W, "Q4_K") == 7).all() and ran == []
    monkeypatch.setenv(compiled.SWITCH, "1")
    with pytest.raises(QuantizationError, match="MINIQUANT_COMPILED=1 asks for compiled codecs, and numba is not"):
        rows.encode(W, "Q4_K")


def test_whether_numba_is_installed_is_asked_once(monkeypatch):
    asked = []
    monkeypatch.setattr(compiled.util, "find_spec", lambda name: asked.append(name))
    compiled._has_numba.cache_clear()
    assert not compiled._has_numba() and not compiled._has_numba() and asked == ["numba"]
    compiled._has_numba.cache_clear()


def test_numba_is_not_loaded_for_a_little_work_and_where_it_cannot_be_imported_every_type_works():
    code = (
        "import sys, numpy as np\n"
        "from miniquant.formats.gguf import compiled, encode, decode\n"
        "from miniquant.formats.gguf.codecs import CODECS\n"
        "w = np.ones((1, 256), np.float32)\n"
        "encode(w, 'Q4_K')\n"
        "assert 'numba' not in sys.modules and 'llvmlite' not in sys.modules\n"
        "sys.modules['numba'] = None  # an import of it fails\n"
        "compiled._has_numba = lambda: True\n"
        "compiled._spent[0] = 1e9\n"
        "for dtype, codec in CODECS.items():\n"
        "    raw = encode(w, dtype) if codec.encodes else np.zeros((1, dtype.n_bytes), np.uint8)\n"
        "    assert decode(raw, dtype).shape == (1, 256)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != compiled.SWITCH}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=120)


def test_weights_that_lie_askew_or_may_not_be_written_to_are_encoded_all_the_same(monkeypatch):
    monkeypatch.setenv(compiled.SWITCH, "1")
    expected = rows.encode(W, "Q4_K")
    askew = np.empty(W.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(W.shape)
    askew[...] = W
    locked = W.copy()
    locked.flags.writeable = False
    for w in (askew, locked, np.asfortranarray(W), W[::-1][::-1]):
        assert np.array_equal(rows.encode(w, "Q4_K"), expected)


def test_compiled_forms_are_of_types_that_have_a_codec():
    forms = compiled._forms()
    assert {dtype for dtype, _ in forms} <= set(CODECS)
    for dtype, what in forms:
        assert what == compiled.DECODE or CODECS[dtype].encodes
        assert what != compiled.ENCODE_WEIGHTED or CODECS[dtype].weighs


# ---- memory that is given


@pytest.mark.parametrize("switch", ["0", "1"])
@pytest.mark.parametrize("dtype", CODECS, ids=lambda dtype: dtype.name)
def test_weights_decoded_into_given_memory_are_the_same(dtype, switch, monkeypatch):
    monkeypatch.setenv(compiled.SWITCH, switch)
    raw = np.random.default_rng(1).integers(0, 256, (3, 5 * 256 // dtype.block * dtype.n_bytes), dtype=np.uint8)
    room = np.empty(3 * 5 * 256 + 32, np.float32)
    expected = rows.decode(raw, dtype)
    for past_min in (0, rows.PAST_MIN):
        monkeypatch.setattr(rows, "PAST_MIN", past_min)
        for first in (0, 1):  # a multiple of 16 bytes, or four more
            first += -room.ctypes.data % 64 // 4
            out = room[first : first + 3 * 5 * 256].reshape(3, 5 * 256)
            out.fill(7)
            assert rows.decode(raw, dtype, out=out) is out
            assert ((out.view(np.uint32) == expected.view(np.uint32)) | np.isnan(out) & np.isnan(expected)).all()


@pytest.mark.parametrize("switch", ["0", "1"])
@pytest.mark.parametrize("dtype", [d for d in CODECS if CODECS[d].encodes], ids=lambda dtype: dtype.name)
def test_weights_encoded_into_given_memory_give_the_same_bytes(dtype, switch, monkeypatch):
    monkeypatch.setenv(compiled.SWITCH, switch)
    for importance in (None, np.ones(512, np.float32)):
        expected = rows.encode(W, dtype, importance)
        out = np.full_like(expected, 255)
        assert rows.encode(W, dtype, importance, out) is out
        assert np.array_equal(out, expected)


def test_given_memory_for_blocks_of_another_form_is_refused():
    for wrong in (np.empty((4, 543), np.uint8), np.empty((4, 544), np.int8), np.empty((4, 1088), np.uint8)[:, ::2]):
        with pytest.raises(QuantizationError, match=r"out must be contiguous uint8 of shape \(4, 544\), found"):
            rows.encode(W, "Q8_0", out=wrong)


@pytest.mark.parametrize("wrong", [
    np.empty((4, 511), np.float32),
    np.empty((2, 1024), np.float32),
    np.empty((4, 512), np.float64),
    np.empty((4, 1024), np.float32)[:, ::2],
])  # fmt: skip
def test_given_memory_of_another_form_is_refused(wrong):
    with pytest.raises(QuantizationError, match=r"out must be contiguous float32 of shape \(4, 512\), found float"):
        rows.decode(rows.encode(W, "Q8_0"), "Q8_0", out=wrong)


def test_decoded_weights_begin_with_a_line_of_the_caches():
    for n in range(1, 5):
        assert rows.decode(rows.encode(W[:n], "Q8_0"), "Q8_0").ctypes.data % 64 == 0


def test_the_compiled_form_is_called_once_for_many_chunks_and_numpy_once_for_each(monkeypatch):
    monkeypatch.setattr(rows, "CHUNK", 256)
    calls = []
    kernel = compiled.Kernel(lambda *given: calls.append(len(given[0])), (), False)
    monkeypatch.setattr(compiled, "_kept", lambda dtype, what: kernel)
    monkeypatch.setattr(CODECS[GGMLType.Q4_K], "encode", lambda w, out, scratch: calls.append(len(w)), raising=False)
    for switch, expected in (("1", [8]), ("0", [1] * 8)):
        monkeypatch.setenv(compiled.SWITCH, switch)
        rows.encode(W, "Q4_K")
        assert calls == expected
        calls.clear()


def test_every_type_is_decoded_in_a_compiled_form():
    assert {dtype for dtype, what in compiled._forms() if what == compiled.DECODE} == {
        dtype for dtype, codec in CODECS.items() if not codec.identity
    }


def test_weights_of_another_float_become_float32_first():
    for dtype in (np.float64, np.float16):
        w = W.astype(dtype)
        assert np.array_equal(rows.encode(w, "Q4_0"), rows.encode(w.astype(np.float32), "Q4_0"))
        assert np.array_equal(rows.encode(w, "F32").view(np.float32), w.astype(np.float32))


# ---- what is kept


def in_another_process(code, **more):
    environment = {name: value for name, value in os.environ.items() if name != compiled.SWITCH} | more
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=120)


@pytest.fixture
def kept_apart(tmp_path, monkeypatch):
    """An empty folder for what is compiled, and a process that has found nothing yet."""
    monkeypatch.setenv("MINIQUANT_CACHE", str(tmp_path))
    monkeypatch.setenv(compiled.SWITCH, "1")
    parts = (compiled._folder, compiled._kept, compiled._compiled, compiled._code)
    for part in parts:
        part.cache_clear()
    yield tmp_path
    for part in parts:
        part.cache_clear()


def looked_up(source, importance, target, table):
    """A form that is compiled soon: with an importance, and a table of its own."""
    for i in range(len(source)):
        for j in range(target.shape[1]):
            target[i, j] = table[int(importance[i % len(importance), j]) + (source[i, j] < 0)]


def test_a_second_process_runs_what_was_compiled_without_numba(kept_apart, monkeypatch):
    form = compiled.Form(looked_up, (np.array([3, 5, 7], np.uint8),), importance=True)
    monkeypatch.setitem(compiled._forms(), (GGMLType.IQ4_NL, compiled.ENCODE_WEIGHTED), form)
    expected = rows.encode(W, "Q8_0"), rows.encode(W, "IQ4_NL", np.arange(512) % 2), rows.encode(W, "TQ2_0")
    assert set(expected[1].reshape(-1)) == {3, 5, 7}
    assert {path.name.rpartition("-")[0] for path in kept_apart.rglob("*.npz")} == {
        *("Q8_0-encode", "IQ4_NL-encode-with-an-importance", "TQ2_0-encode")
    }
    np.save(kept_apart / "expected.npy", np.concatenate(expected, axis=1))
    code = (
        "import sys, numpy as np\n"
        "from miniquant.formats.gguf import compiled, encode\n"
        "w = np.random.default_rng(0).standard_normal((4, 512)).astype(np.float32)\n"
        "compiled._spent[0] = compiled.LOAD_AFTER\n"
        "found = encode(w, 'Q8_0'), encode(w, 'IQ4_NL', np.arange(512) % 2), encode(w, 'TQ2_0')\n"
        "assert compiled._spent[0] == compiled.LOAD_AFTER and 'numba' not in sys.modules\n"
        f"assert np.array_equal(np.concatenate(found, axis=1), np.load({str(kept_apart / 'expected.npy')!r}))\n"
    )
    in_another_process(code)


def test_a_damaged_file_is_compiled_anew(kept_apart):
    expected = rows.encode(W, "Q8_0")
    (path,) = kept_apart.rglob("*.npz")
    whole = path.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for damaged in (b"", b"not an archive", whole[:middle], flipped):
        path.write_bytes(damaged)
        for part in (compiled._kept, compiled._compiled):
            part.cache_clear()
        assert compiled._kept(GGMLType.Q8_0, compiled.ENCODE) is None
        assert np.array_equal(rows.encode(W, "Q8_0"), expected)
        assert path.read_bytes() == whole


def test_where_nothing_may_be_written_a_process_compiles_for_itself(kept_apart, monkeypatch):
    monkeypatch.setenv("MINIQUANT_CACHE", "")
    compiled._folder.cache_clear()
    monkeypatch.setenv(compiled.SWITCH, "0")
    expected = rows.encode(W, "Q8_0")
    monkeypatch.setenv(compiled.SWITCH, "1")
    assert np.array_equal(rows.encode(W, "Q8_0"), expected)


def test_on_a_processor_that_llvm_does_not_know_nothing_is_kept(kept_apart, monkeypatch):
    def unknown():
        raise RuntimeError("no features")

    monkeypatch.setattr(compiled, "machine", unknown)
    assert rows.encode(W, "Q8_0").shape == (4, 544) and not list(kept_apart.rglob("*.npz"))


def test_code_that_calls_what_only_numba_has_is_left_to_numpy(kept_apart, monkeypatch):
    def refuse(function, kinds, **options):
        raise ImportError("compiled code calls NRT_other")

    monkeypatch.setattr(compiled, "compile_function", refuse)
    with pytest.raises(ImportError, match="NRT_other"):
        rows.encode(W, "Q8_0")
    compiled._compiled.cache_clear()
    monkeypatch.delenv(compiled.SWITCH)
    monkeypatch.setattr(compiled, "_spent", [1e9])
    assert rows.encode(W, "Q8_0").shape == (4, 544) and compiled._spent[0] > 1e9
