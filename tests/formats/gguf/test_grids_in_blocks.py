"""Integers that were chosen elsewhere, written into blocks: every byte, and what a block cannot hold."""

from __future__ import annotations

import numpy as np
import pytest
from gguf.quants import dequantize

from miniquant.core.errors import QuantizationError
from miniquant.formats.gguf.grids import encode_grid
from miniquant.quantization.grids import Grid

Q = (np.arange(192).reshape(3, 64) % 16).astype(np.int64)
SCALE = np.array([[1, 2], [0.5, 0.25], [3, 4]], np.float32)
MINS = np.array([[0, -1], [-2, -3], [-4, 5]], np.float32)


def test_blocks_of_q4_1_hold_the_scales_the_mins_and_the_integers_of_their_rows():
    out = encode_grid(Q, Grid(SCALE, MINS, 0, 15), "Q4_1")
    assert out.shape == (3, 40) and out.dtype == np.uint8
    expected = Q * np.repeat(SCALE, 32, axis=1) + np.repeat(MINS, 32, axis=1)
    assert dequantize(out, 3).tolist() == expected.tolist()


def test_a_type_without_levels_is_refused_and_the_known_ones_are_named():
    with pytest.raises(QuantizationError, match=r"no blocks of type Q4_K are made from a grid; there are .*Q4_0.*Q4_1"):
        encode_grid(Q, Grid(SCALE, MINS, 0, 15), "Q4_K")


@pytest.mark.parametrize(
    ("what", "value", "shown"),
    [("scale", 0.1, "0.100000001"), ("scale", 1e6, "1000000"), ("minimum", np.inf, "inf")],
)  # fmt: skip
def test_a_number_that_float16_would_change_is_refused_and_shown(what, value, shown):
    scale, mins = SCALE.copy(), MINS.copy()
    (scale if what == "scale" else mins)[1, 1] = value
    with pytest.raises(QuantizationError, match=f"a {what} is {shown}, and float16, which a block of Q4_1 stores"):
        encode_grid(Q, Grid(scale, mins, 0, 15), "Q4_1")


def test_a_minimum_is_refused_where_a_block_has_none():
    with pytest.raises(QuantizationError, match="Q4_0 holds signed integers and no minimum"):
        encode_grid(Q - 8, Grid(SCALE, MINS, -8, 7), "Q4_0")
