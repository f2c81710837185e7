"""The registers that compiled codecs are made of: each function gives what numpy gives for sixteen numbers."""

from __future__ import annotations

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
