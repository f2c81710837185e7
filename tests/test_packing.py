"""Nibbles and bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from miniquant import QuantizationError, pack_nibbles, unpack_nibbles

nibble_rows = hnp.arrays(
    np.int8,
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6).map(lambda s: (*s[:-1], 2 * s[-1])),
    elements=st.integers(-8, 7),
)


def test_the_sixteen_nibbles_by_hand():
    # value   -8   -7   -6   -5   -4   -3   -2   -1    0 ...  7
    # nibble  1000 1001 1010 1011 1100 1101 1110 1111  0000 ... 0111
    values = np.array([-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7])
    assert pack_nibbles(values).tobytes() == bytes.fromhex("98 ba dc fe 10 32 54 76")
    assert unpack_nibbles(np.frombuffer(bytes.fromhex("98badcfe10325476"), np.uint8)).tolist() == values.tolist()


def test_the_even_index_is_in_the_low_nibble():
    assert pack_nibbles(np.array([1, 2])).tolist() == [0x21]
    assert pack_nibbles(np.array([0, -1])).tolist() == [0xF0]


def test_every_byte_survives_unpacking_and_packing():
    every = np.arange(256, dtype=np.uint8)
    assert np.array_equal(pack_nibbles(unpack_nibbles(every)), every)


def test_every_byte_unpacks_as_the_assignment_says():
    for byte in range(256):
        low, high = byte & 15, byte >> 4
        expected = [low - 16 if low >= 8 else low, high - 16 if high >= 8 else high]
        assert unpack_nibbles(np.array([byte], np.uint8)).tolist() == expected


@given(nibble_rows)
def test_unpacking_undoes_packing(values):
    packed = pack_nibbles(values)
    assert packed.dtype == np.uint8
    assert packed.shape == (*values.shape[:-1], values.shape[-1] // 2)
    back = unpack_nibbles(packed)
    assert back.dtype == np.int8
    assert back.shape == values.shape
    assert np.array_equal(back, values)


@given(nibble_rows, st.sampled_from([np.int8, np.int16, np.int32, np.int64]))
def test_packing_equals_a_plain_loop_for_every_integer_type(values, dtype):
    flat = values.reshape(-1).tolist()
    loop = bytes((even % 16) + 16 * (odd % 16) for even, odd in zip(flat[::2], flat[1::2], strict=True))
    assert pack_nibbles(values.astype(dtype)).tobytes() == loop


def test_transposed_strided_and_read_only_arrays_pack_as_their_copies_do():
    grid = (np.arange(96).reshape(8, 12) % 16 - 8).astype(np.int8)
    for view in (grid.T, grid[::-1, ::-1], grid[:, ::3], np.broadcast_to(grid[0], (3, 12))):
        view.flags.writeable = False
        assert np.array_equal(pack_nibbles(view), pack_nibbles(view.copy()))
        assert np.array_equal(unpack_nibbles(pack_nibbles(view)), view)
    packed = pack_nibbles(grid)
    for view in (packed.T, packed[::2], packed[:, ::2]):
        assert np.array_equal(unpack_nibbles(view), unpack_nibbles(view.copy()))


def test_arguments_are_not_changed():
    values, packed = np.array([[3, -3]], np.int8), np.array([[0x4D]], np.uint8)
    pack_nibbles(values)
    unpack_nibbles(packed)
    assert values.tolist() == [[3, -3]]
    assert packed.tolist() == [[0x4D]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1, 2, 3]), "even"),
        (np.array(3), "even"),
        (np.array([8, 0]), "found 0 to 8"),
        (np.array([0, -9]), "found -9 to 0"),
        (np.array([255, 0], np.uint8), "-8 to 7"),
        (np.array([2**63, 0], np.uint64), "-8 to 7"),
        (np.array([1.0, 2.0]), "float64"),
        (np.array([True, False]), "bool"),
        (np.array(["1", "2"]), "integers first"),
    ],
)
def test_what_four_bits_cannot_hold_is_refused(values, message):
    with pytest.raises(QuantizationError, match=message):
        pack_nibbles(values)


@pytest.mark.parametrize("packed", [np.array([1], np.int8), np.array([1.0]), np.array(1, np.uint8), np.array([1, 2])])
def test_unpacking_anything_but_bytes_is_refused(packed):
    with pytest.raises(QuantizationError, match="uint8"):
        unpack_nibbles(packed)
