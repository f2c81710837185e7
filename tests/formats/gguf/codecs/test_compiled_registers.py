"""The registers that compiled codecs are made of: each function gives what numpy gives for sixteen numbers."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from miniquant.formats.gguf.compiled import vectors
from miniquant.formats.gguf.compiled.vectors import (
    INTS,
    N,
    anywhere,
    every,
    inner,
    load,
    store,
    where,
)

f32 = np.float32
RANDOM = np.random.default_rng(4)
X = np.array([0.5, 1.5, -2.5, 2.5, 0.0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1e-30, 3, 7.49, -7.51, 100.5, 101.5], f32)
SMALL = np.where(np.isfinite(X) & (np.abs(X) < 1e9), X, 1).astype(f32)


def computed(function, x: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Row 1 of ``out`` after the function has filled it from row 2 of a tile; the other rows stay."""
    tile, found = np.stack([x[::-1], x[::-1], x, x[::-1]]), np.stack([out, out, out])
    inner(function)(tile, found)
    assert np.array_equal(found[0], out) and np.array_equal(found[2], out)
    return found[1]


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Bit for bit, but for the bits of a NaN."""
    assert found.dtype == expected.dtype
    odd = np.isnan(expected)
    return np.array_equal(np.isnan(found), odd) and found[~odd].tobytes() == expected[~odd].tobytes()


@pytest.mark.parametrize(("name", "x", "right"), [
    ("rint", X, np.rint(X)),
    ("magnitude", X, np.abs(X)),
    ("negative", X, -X),
    ("root", np.abs(X), np.sqrt(np.abs(X))),
    ("bits_of", X, X.view(np.int32)),
    ("to_ints", SMALL, np.trunc(SMALL).astype(np.int32)),
    ("to_floats", SMALL.astype(np.int32), np.trunc(SMALL)),
])  # fmt: skip
def test_a_function_of_one_register_is_numpy_s(name, x, right):
    function = getattr(vectors, name)

    def loop(tile, out):
        store(out, 1, function(load(tile, 2)))

    found = computed(loop, x, np.full(N, 77, right.dtype))
    assert same(found + right.dtype.type(0), right + right.dtype.type(0)) if name == "to_floats" else same(found, right)
    assert function.__doc__


def test_a_condition_chooses_lane_by_lane_and_holds_anywhere_if_it_holds_in_one_lane():
    def loop(tile, out):
        v = load(tile, 2)
        store(out, 1, where(v > f32(2), v, every(f32(-5))))

    assert same(computed(loop, X, np.zeros(N, f32)), np.where(X > 2, X, f32(-5)))

    def asked(tile, out):
        v = load(tile, 0)
        out[0] = anywhere(v == f32(3))
        out[1] = anywhere(v != v)
        out[2] = anywhere(where(v == f32(3), every(f32(0)), v) == f32(3))

    for lane in (0, 7, 15):
        tile, out = np.zeros((1, N), f32), np.zeros(3, np.bool_)
        tile[0, lane] = 3
        inner(asked)(tile, out)
        assert out.tolist() == [True, False, False]
    tile[0, 2] = np.nan
    inner(asked)(tile, out)
    assert out.tolist() == [True, True, False]


def test_rows_of_integers_are_read_and_written_as_integers():
    def loop(tile, out):
        store(out, 1, load(tile, 2) + np.int32(2**31 - 1))

    x = np.arange(-8, 8, dtype=np.int32) * np.int32(2**27 + 1)
    with np.errstate(over="ignore"):
        right = x + np.int32(2**31 - 1)
    assert same(computed(loop, x, np.zeros(N, np.int32)), right)
    assert vectors.Lanes("i32", 16) == INTS and vectors.Lanes("f32", 16) == vectors.FLOATS and N == 16


def test_a_row_need_lie_at_no_more_than_a_multiple_of_four_bytes():
    room, out = np.zeros(4 * N + 1, f32), np.zeros((1, N), f32)
    tile = room[1:].reshape(4, N)
    tile[3] = X

    def loop(tile, out):
        store(out, 0, load(tile, 3))
        store(tile, 1, load(tile, 3))

    inner(loop)(tile, out)
    assert same(out[0], X) and same(tile[1], X) and not tile[0].any() and not tile[2].any()


def test_compiled_functions_let_other_threads_go_on_and_divide_as_numpy_does():
    found = inner(lambda x: f32(1) / x)
    assert found.targetoptions["nogil"] is True and found.targetoptions["error_model"] == "numpy"
    assert np.isinf(found(f32(0)))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint16, np.uint8])
@pytest.mark.parametrize("name", ["write", "write_past"])
def test_sixteen_numbers_are_read_and_written_from_any_item_on(dtype, name):
    put = getattr(vectors, name)
    given, room = RANDOM.integers(0, 256, 40).astype(dtype), np.zeros(256, np.uint8)
    out = room[-room.ctypes.data % 64 :][: 40 * given.itemsize].view(dtype)
    at = 16 if name == "write_past" else 5  # what goes past the caches lies at a multiple of 16

    def loop(given, out):
        put(out, at, vectors.read(given, 3))

    inner(loop)(given, out)
    right = np.zeros(40, dtype)
    right[at : at + 16] = given[3:19]
    assert np.array_equal(out, right)
    assert put.__doc__ and vectors.read.__doc__


def test_only_what_is_written_past_the_caches_says_so():
    for name in ("write", "write_past"):
        put = getattr(vectors, name)
        loop = inner(lambda given, out, put=put: put(out, 0, vectors.read(given, 0)))
        loop(*np.zeros((2, 16), f32))
        found = "".join(loop.inspect_llvm().values())
        past = name == "write_past"
        assert ("!nontemporal" in found) == past == bool(re.search(r"= !{ ?i32 1 ?}", found))  # LLVM asks for a 1


def test_bits_of_an_integer_are_a_condition_and_a_condition_is_bits():
    def loop(bits, out, back):
        chosen = vectors.condition(bits[0])
        store(out, 0, where(chosen, every(f32(1)), every(f32(-1))))
        back[0] = vectors.bits_where(chosen)

    for number in (0, 1, 0x8000, 0xFFFF, 0x12345, 0xA5F1, -2):
        out, back = np.zeros((1, N), f32), np.zeros(1, np.uint16)
        inner(loop)(np.array([number]), out, back)
        assert out[0].tolist() == [1 if number >> lane & 1 else -1 for lane in range(N)]
        assert back[0] == number & 0xFFFF


@pytest.mark.parametrize(("dtype", "n"), [(np.uint64, 2), (np.uint32, 4)])
def test_a_few_words_are_sixteen_bytes(dtype, n):
    words = RANDOM.integers(0, 256, 16).astype(np.uint8).view(dtype)

    def two(words, out):
        vectors.write(out, 0, vectors.in_lanes((words[0], words[1])))

    def four(words, out):
        vectors.write(out, 0, vectors.in_lanes((words[0], words[1], words[2], words[3])))

    out = np.zeros(16, np.uint8)
    inner(two if n == 2 else four)(words, out)
    assert np.array_equal(out, words.view(np.uint8))


def looked_up(table, at, out):
    vectors.write(out, 0, vectors.looked_up(vectors.read(table, 0), vectors.read(at, 0)))


def test_lanes_name_lanes_of_a_table():
    at = np.array([3, 0, 15, 15, 1, 2, 7, 8, 9, 14, 13, 4, 5, 6, 10, 11], np.int32)
    table, out = RANDOM.normal(size=16).astype(f32), np.zeros(16, f32)
    inner(looked_up)(table, at, out)
    assert np.array_equal(out, table[at])


def test_a_processor_without_an_instruction_for_a_table_of_sixteen_gives_the_same():
    code = """
import numpy as np
from miniquant.formats.gguf.compiled import vectors
def loop(table, at, out):
    vectors.write(out, 0, vectors.looked_up(vectors.read(table, 0), vectors.read(at, 0)))
at = np.array([3, 0, 15, 15, 1, 2, 7, 8, 9, 14, 13, 4, 5, 6, 10, 11], np.int32)
table, out = np.arange(16, dtype=np.float32) / 7, np.zeros(16, np.float32)
vectors.inner(loop)(table, at, out)
assert np.array_equal(out, table[at]), out
"""
    plain = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=plain)
    assert done.returncode == 0, done.stderr


def test_integers_become_wider_with_and_without_a_sign_and_floats_are_made_of_bits():
    def loop(data, words, floats, out, more):
        store(out, 0, vectors.unsigned(vectors.read(data, 0)))
        store(out, 1, vectors.signed(vectors.read(data, 0)))
        store(out, 2, vectors.unsigned(vectors.read(words, 0)))
        store(out, 3, vectors.bits_of(vectors.floats_of(vectors.bits_of(vectors.read(floats, 0)))))
        store(out, 4, vectors.every_int(np.int32(-70000)))
        vectors.write(more, 0, vectors.bytes_of(vectors.unsigned(vectors.read(words, 0))))

    data = np.array([0, 1, 127, 128, 255, *range(11)], np.uint8)
    words = np.array([0, 1, 255, 256, 65535, 32768, *range(10)], np.uint16)
    out, more = np.zeros((5, N), np.int32), np.zeros(N, np.uint8)
    inner(loop)(data, words, X, out, more)
    right = [data, data.view(np.int8), words, X.view(np.int32), np.full(N, -70000)]
    assert np.array_equal(out, np.array([row.astype(np.int32) for row in right]))
    assert np.array_equal(more, words.astype(np.uint8))
    for name in ("bits_where", "every_int", "floats_of", "unsigned", "signed", "bytes_of", "anywhere"):
        assert getattr(vectors, name).__doc__, name
