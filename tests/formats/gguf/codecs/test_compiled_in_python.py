"""The loops that numba compiles, run by Python: on a few blocks they give the bytes and values of the numpy form.

``conftest`` compares the two forms with everything compiled. Here nothing is: in place of registers the loops find
arrays of numpy, in the operations of ``REGISTERS``. So a fault in a loop shows at once, and which line it is on.
"""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from miniquant.formats.gguf import compiled
from miniquant.formats.gguf.codecs import CODECS, rows
from miniquant.formats.gguf.types import GGMLType

N = 16  # lanes


def filled(value, dtype):
    """Every lane has the number."""
    lanes = np.empty(N, dtype)
    lanes.fill(value)
    return lanes


def get(array, row):
    assert array.dtype in (np.float32, np.int32), array.dtype
    return array[row].copy()


def put(array, row, value):
    assert array.dtype == value.dtype, (array.dtype, value.dtype)
    array[row] = value


def read(array, at):
    assert array.dtype in (np.float32, np.int32, np.uint16, np.uint8) and 0 <= at <= len(array) - N, array.dtype
    return array[at : at + N].copy()


def write(array, at, value):
    assert array.dtype == value.dtype and 0 <= at <= len(array) - N, (array.dtype, value.dtype)
    array[at : at + N] = value


REGISTERS = {
    "N": N,
    "inner": lambda function: function,
    "load": get,
    "store": put,
    "where": np.where,
    "every": lambda value: filled(value, np.float32),
    "anywhere": np.any,
    "negative": np.negative,
    "rint": np.rint,
    "magnitude": np.abs,
    "root": np.sqrt,
    "to_floats": lambda v: v.astype(np.float32),
    "to_ints": lambda v: np.where(np.isfinite(v), v, 0).astype(np.int32),
    "bits_of": lambda v: v.view(np.int32),
    "floats_of": lambda v: v.view(np.float32),
    "read": read,
    "write": write,
    "write_past": write,
    "every_int": lambda value: filled(value, np.int32),
    "unsigned": lambda v: v.astype(np.int32),
    "signed": lambda v: v.view(np.int8).astype(np.int32),
    "bytes_of": lambda v: v.astype(np.uint8),
    "condition": lambda bits: (int(bits) >> np.arange(N) & 1).astype(bool),
    "bits_where": lambda condition: np.packbits(condition, bitorder="little").view(np.uint16)[0],
    "in_lanes": lambda words: np.array(words, words[0].dtype).view(np.uint8),
    "looked_up": lambda table, at: table[at],
    "has_halves": lambda: True,
    "halves": lambda v: v.astype(np.float16).view(np.uint16),
}


def loaded() -> dict:
    """The compiled forms, of modules imported anew with these registers; everything is put back afterwards."""
    package = compiled.__name__
    before = {name: module for name, module in sys.modules.items() if name.startswith(f"{package}.")}
    held, forms = {name: value for name, value in vars(compiled).items() if isinstance(value, ModuleType)}, {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "FORMS", forms)
        patch.setenv(compiled.SWITCH, "1")  # what cannot be imported is an error
        for name in before:
            del sys.modules[name]
        vectors = sys.modules[f"{package}.vectors"] = ModuleType(f"{package}.vectors")
        vars(vectors).update(REGISTERS)
        try:
            compiled._forms.__wrapped__()
        finally:
            for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
                del sys.modules[name]
            sys.modules.update(before)
            for name, value in [*vars(compiled).items()]:
                if isinstance(value, ModuleType) and name not in held:
                    delattr(compiled, name)
            vars(compiled).update(held)
    return forms


FORMS = loaded()
of_what = {what: [dtype for dtype, w in FORMS if w == what] for what in (compiled.ENCODE, compiled.DECODE)}
of_what[compiled.ENCODE_WEIGHTED] = [dtype for dtype, w in FORMS if w == compiled.ENCODE_WEIGHTED]
decoded = pytest.mark.parametrize("dtype", of_what[compiled.DECODE], ids=lambda dtype: dtype.name)


@pytest.fixture
def both(monkeypatch):
    """What a function gives in numpy, and in the loops."""
    kernels = {key: compiled.Kernel(form.function, form.more, form.importance) for key, form in FORMS.items()}
    monkeypatch.setattr(compiled, "_compiled", lambda dtype, what: kernels.get((dtype, what)))
    monkeypatch.setattr(compiled, "_kept", lambda dtype, what: None)
    monkeypatch.setattr(compiled, "_has_numba", lambda: True)

    def twice(function, *given):
        with np.errstate(all="ignore"):
            monkeypatch.setenv(compiled.SWITCH, "0")
            first = function(*given)
            monkeypatch.setenv(compiled.SWITCH, "1")
            return first, function(*given)

    return twice


def plain(dtype: GGMLType) -> np.ndarray:
    """Nine rows of two blocks, or of 40 numbers that are none: one register and a part of one."""
    n = 2 * dtype.block if dtype.block > 1 else 40
    return np.random.default_rng(5).standard_t(4, (9, n)).astype(np.float32)


def awkward(dtype: GGMLType) -> np.ndarray:
    """Rows of one block: nothing, next to nothing, all alike, of one sign, of whole and of half numbers, of outliers,
    of numbers near the ends of float32, of zeros of both signs."""
    n = dtype.block if dtype.block > 1 else 32
    bell = np.random.default_rng(6).normal(size=(16, n)).astype(np.float32)
    bell[0], bell[1], bell[2] = 0, bell[1] * np.float32(1e-20), 0.7
    bell[3], bell[4] = np.abs(bell[3]), -np.abs(bell[4])
    bell[5], bell[6] = np.rint(4 * bell[5]), np.rint(8 * bell[6]) / 2
    bell[7, n // 3], bell[8, n // 2 :] = 90, 0
    bell[9, ::2], bell[10, : n // 2] = 0, bell[10, : n // 2] * np.float32(1e-3)
    bell[11] = np.where(np.arange(n) % 2, -0.0, 0.0)
    bell[11, -1] = -3
    bell[12], bell[13] = np.where(np.arange(n) % 2, -3e38, 3e38), bell[13] * np.float32(1e-39)
    bell[14], bell[15] = np.abs(bell[14]), np.abs(bell[15])
    bell[14, 1::7], bell[15, 1::7] = 0.0, -0.0  # the smallest are zeros, and the last of them has another sign
    bell[14, n - 1], bell[15, n - 1] = -0.0, 0.0
    return bell


def mixed(dtype: GGMLType) -> np.ndarray:
    """Both, in nine rows of two blocks; what would spoil the other block of its row stands beside a plain one."""
    ones, (bell, *_) = awkward(dtype), np.split(plain(dtype)[0], 2)
    last = plain(dtype)[1, : dtype.block]
    return np.concatenate([*ones[:13], bell, ones[13], last, *ones[14:]]).reshape(9, -1)


def weights_of(dtypes: list[GGMLType]) -> list[tuple]:
    return [(dtype, how) for dtype in dtypes for how in ((mixed,) if dtype.block > 1 else (plain, awkward))]


@pytest.mark.parametrize(("dtype", "weights"), weights_of(of_what[compiled.ENCODE]))
def test_a_loop_encodes_to_the_bytes_of_numpy(dtype, weights, both):
    expected, found = both(rows.encode, weights(dtype), dtype)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(("dtype", "weights"), weights_of(of_what[compiled.ENCODE_WEIGHTED]))
def test_a_loop_encodes_with_an_importance_to_the_bytes_of_numpy(dtype, weights, both):
    w = weights(dtype)
    importance = np.random.default_rng(7).uniform(0.1, 3, w.shape[1]).astype(np.float32)
    importance[:: max(5, w.shape[1] // 20)] = 0
    expected, found = both(rows.encode, w, dtype, importance)
    assert np.array_equal(found, expected)


def blocks(dtype: GGMLType) -> np.ndarray:
    """Random bytes, and blocks of ones and of zeros: (rows, two blocks)."""
    raw = np.random.default_rng(8).integers(0, 256, (4, 2 * dtype.n_bytes), np.uint8)
    if dtype.block > 1:
        raw[2, : dtype.n_bytes], raw[3] = 0xFF, 0
        return raw
    every = np.arange(0, 2**16, 61, dtype="<u2")
    ends = np.array([0, 1, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x7FFF, 0x8000, 0xFC00, 0x8001], "<u2")
    return np.concatenate([every, ends]).view(np.uint8)[None]


def bits(array: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(array), 0, array.view(np.uint32))


@decoded
def test_a_loop_decodes_to_the_values_of_numpy(dtype, both):
    expected, found = both(rows.decode, blocks(dtype), dtype)
    assert np.array_equal(bits(found), bits(expected))


@pytest.mark.parametrize("dtype", [d for d in of_what[compiled.ENCODE] if d.block == 1], ids=lambda dtype: dtype.name)
def test_a_loop_rounds_floats_of_every_size_as_numpy_does(dtype, both):
    """Halves of a step, the smallest and the largest numbers, infinities; a NaN stays one."""
    random = np.random.default_rng(9)
    ends = [0, 0x80000000, 1, 0x33000000, 0x33000001, 0x387FC000, 0x387FE000, 0x387FFFFF, 0x38800000, 0x477FE000,
            0x477FEFFF, 0x477FF000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x3F801000, 0x3F803000, 0x3F808000, 0x3F818000,
            0x33800000, 0x34400000, 0x7F7F8000, 0x7F7F7FFF]  # fmt: skip
    some = random.integers(0, 2**32, 300, np.uint32)
    halves = random.integers(0x3300, 0x4780, 300).astype(np.uint32) << 16 | 0x1000
    w = np.concatenate([np.array(ends, np.uint32), some, halves]).view(np.float32)[None]
    with np.errstate(over="ignore"):
        expected, found = both(rows.encode, np.where(np.isnan(w), 1, w).astype(np.float32), dtype)
    assert np.array_equal(found, expected)
    expected, found = both(rows.encode, np.array([[0x7F800001, 0x7FC01234, 0xFFFFFFFF]], np.uint32).view("f4"), dtype)
    assert np.array_equal(found, expected)


def test_there_is_a_loop_for_every_form_that_is_registered():
    assert FORMS.keys() == compiled._forms().keys() and {dtype for dtype, _ in FORMS} <= set(CODECS)
    for key, form in compiled._forms().items():
        assert form.importance == FORMS[key].importance
        assert form.function.__name__ == FORMS[key].function.__name__


def test_of_nans_the_parts_of_the_searches_keep_what_they_say():
    parts = FORMS[GGMLType.Q4_K, compiled.ENCODE].function.__globals__
    nan = np.nan
    tile = np.array([[1, nan, 2, -3], [-2, 5, nan, 3], [nan, nan, -4, 2]], np.float32).repeat(N // 4, axis=1)
    largest, highest = (parts[name](tile)[:: N // 4] for name in ("largest", "highest"))
    assert np.array_equal(largest, [nan, nan, nan, -3], equal_nan=True)
    assert np.array_equal(highest, [nan, nan, nan, 3], equal_nan=True)
    v, two = np.array([nan, 1, 2, 3], np.float32).repeat(N // 4), np.float32(2)
    assert parts["at_least"](v, two)[:: N // 4].tolist() == [2, 2, 2, 3]
    assert parts["at_most"](v, two)[:: N // 4].tolist() == [2, 1, 2, 2]
    between = parts["scale_alone"].__globals__["between"](v, np.float32(1.5), np.float32(2.5))[:: N // 4]
    assert np.array_equal(between, [nan, 1.5, 2, 2.5], equal_nan=True)


def test_numbers_of_every_size_become_float16_and_back_as_numpy_has_it_and_a_nan_stays_one():
    parts = FORMS[GGMLType.Q4_K, compiled.ENCODE].function.__globals__
    bits32 = np.random.default_rng(3).integers(0x33000000, 0x47800000, 400).astype(np.uint32)
    bits32[1::4] = bits32[1::4] & np.uint32(0xFFFFE000) | np.uint32(0x1000)  # halves of a step
    ends = [0, 1, 0x32FFFFFF, 0x33000000, 0x33000001, 0x387FDFFF, 0x387FE000, 0x38800000, 0x477FEFFF, 0x477FF000]
    bits32 = np.concatenate([bits32, np.array([*ends, 0x7F7FFFFF, 0x7F800000], np.uint32)])
    bits32[::2] |= np.uint32(0x80000000)
    halves = [0, 1, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0x8000, 0x8001, 0xFBFF, 0xFC00, *range(0, 0x7C00, 97)]
    with np.errstate(all="ignore"):
        right = bits32.view(np.float32).astype(np.float16).view(np.uint16)
        assert [parts["to_half"](x) for x in bits32.view(np.float32)] == right.tolist()
        for number, found in ((0x7F800001, 0x7E00), (0xFFC02000, 0xFE01), (0x7FFFFFFF, 0x7FFF)):
            assert parts["to_half"](np.array(number, np.uint32).view(np.float32)[()]) == found
        back = np.array([parts["from_half"](np.uint16(half)) for half in halves])
        assert np.isnan(parts["from_half"](np.uint16(0x7C01))) and np.isnan(parts["from_half"](np.uint16(0xFE00)))
    assert bits(back).tolist() == bits(np.array(halves, np.uint16).view(np.float16).astype(np.float32)).tolist()
