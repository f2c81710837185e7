"""Nibbles, and the fields of K-quants, in bytes."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from miniquant import QuantizationError, pack_nibbles, unpack_nibbles
from miniquant.quantization.packing import (
    pack_runs,
    pack_scales,
    pack_scales_and_mins,
    unpack_runs,
    unpack_scales,
    unpack_scales_and_mins,
)

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


# ---- K-quants --------------------------------------------------------------------------------------------------------

six_bits = st.integers(0, 63)
layouts = pytest.mark.parametrize(("width", "run"), [(4, 32), (4, 64), (2, 32), (1, 32), (4, 8), (2, 4)])


def bits(byte):
    return f"{byte:08b}"


def test_twelve_bytes_hold_eight_scales_and_eight_mins_by_hand():
    scales = [0b000001, 0b000010, 0b000100, 0b001000, 0b110001, 0b010010, 0b100100, 0b001111]
    mins = [0b111111, 0b101010, 0b010101, 0b000000, 0b001000, 0b111000, 0b000111, 0b110110]
    packed = pack_scales_and_mins(np.array(scales, np.uint8), np.array(mins, np.uint8))
    assert [bits(byte) for byte in packed] == [
        "11" "000001",  # the upper 2 bits of scale 4, scale 0
        "01" "000010",  # scale 5, scale 1
        "10" "000100",  # scale 6, scale 2
        "00" "001000",  # scale 7, scale 3
        "00" "111111",  # the upper 2 bits of minimum 4, minimum 0
        "11" "101010",  # minimum 5, minimum 1
        "00" "010101",  # minimum 6, minimum 2
        "11" "000000",  # minimum 7, minimum 3
        "1000" "0001",  # the lower 4 bits of minimum 4 and of scale 4
        "1000" "0010",  # of 5
        "0111" "0100",  # of 6
        "0110" "1111",  # of 7
    ]  # fmt: skip
    back = unpack_scales_and_mins(packed)
    assert [found.tolist() for found in back] == [scales, mins]


def test_twelve_bytes_hold_sixteen_scales_by_hand():
    scales = [0b000001, 2, 3, 4, 0b110101, 6, 7, 8, 0b101001, 10, 11, 12, 0b011101, 14, 15, 0b111111]
    packed = pack_scales(np.array(scales, np.uint8))
    assert bits(packed[0]) == "10010001"  # the lower 4 bits of scales 8 and 0
    assert bits(packed[4]) == "11010101"  # of 12 and 4
    assert bits(packed[7]) == "11111000"  # of 15 and 7
    assert bits(packed[8]) == "01101100"  # the upper 2 of 12, 8, 4, 0
    assert bits(packed[11]) == "11000000"  # of 15, 11, 7, 3
    assert unpack_scales(packed).tolist() == scales


@given(hnp.arrays(np.uint8, hnp.array_shapes(max_dims=2, max_side=4).map(lambda s: (*s, 16)), elements=six_bits))
def test_any_six_bits_survive_packing(values):
    scales, mins = values[..., :8], values[..., 8:]
    packed = pack_scales_and_mins(scales, mins)
    assert packed.shape == (*values.shape[:-1], 12)
    assert all(map(np.array_equal, unpack_scales_and_mins(packed), (scales, mins)))
    assert pack_scales(values).shape == packed.shape
    assert np.array_equal(unpack_scales(pack_scales(values)), values)


@given(hnp.arrays(np.uint8, hnp.array_shapes(max_dims=2, max_side=4).map(lambda s: (*s, 12))))
def test_any_twelve_bytes_survive_unpacking(packed):
    """Twelve bytes are sixteen numbers of 6 bits exactly, so the packing has an inverse both ways."""
    assert np.array_equal(pack_scales_and_mins(*unpack_scales_and_mins(packed)), packed)
    assert np.array_equal(pack_scales(unpack_scales(packed)), packed)
    assert max(found.max() for found in unpack_scales_and_mins(packed)) <= 63


@given(hnp.arrays(np.uint8, (3, 12)))
def test_scales_unpack_as_the_official_package_unpacks_them(packed):
    scales, mins = gguf.quants.Q4_K.get_scale_min(packed)
    assert all(map(np.array_equal, unpack_scales_and_mins(packed), (scales, mins)))


@layouts
@given(data=st.data())
def test_runs_survive_packing_and_any_bytes_unpacking(width, run, data):
    fields = 8 // width
    values = data.draw(hnp.arrays(np.uint8, (2, run * fields * 2), elements=st.integers(0, 2**width - 1)))
    packed = pack_runs(values, width, run)
    assert packed.shape == (2, run * 2)
    assert np.array_equal(unpack_runs(packed, width, run), values)
    raw = data.draw(hnp.arrays(np.uint8, (2, run * 2)))
    assert np.array_equal(pack_runs(unpack_runs(raw, width, run), width, run), raw)


@layouts
def test_runs_are_where_a_plain_loop_finds_them(width, run):
    raw, fields = np.random.default_rng(0).integers(0, 256, 3 * run).astype(np.uint8), 8 // width
    values = unpack_runs(raw, width, run)
    for i, value in enumerate(values.tolist()):
        start, rest = divmod(i, run * fields)
        field, byte = divmod(rest, run)
        assert value == int(raw[start * run + byte]) >> (width * field) & (2**width - 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pack_scales_and_mins(np.full(8, 64, np.uint8), np.zeros(8, np.uint8)), "6 bits hold 0 to 63"),
        (lambda: pack_scales_and_mins(np.zeros(8, np.uint8), np.zeros(8, np.int8)), "found int8"),
        (lambda: pack_scales_and_mins(np.zeros(7, np.uint8), np.zeros(8, np.uint8)), "expected 8 numbers"),
        (lambda: pack_scales(np.zeros(8, np.uint8)), r"expected 16 numbers of uint8, found uint8 of shape \(8,\)"),
        (lambda: pack_scales(np.full(16, 64, np.uint8)), "found 64"),
        (lambda: unpack_scales(np.zeros(11, np.uint8)), "expected 12 bytes"),
        (lambda: unpack_scales_and_mins(np.zeros(12, np.int8)), "found int8"),
        (lambda: unpack_scales_and_mins(np.uint8(1)), "expected 12 bytes"),
        (lambda: pack_runs(np.zeros(6, np.uint8), 4, 4), "do not fill runs of 4 bytes, 2 each"),
        (lambda: pack_runs(np.full(8, 4, np.uint8), 2, 2), "2 bits hold 0 to 3; found 4"),
        (lambda: pack_runs(np.zeros(8), 4, 4), "float64"),
        (lambda: unpack_runs(np.zeros(5, np.uint8), 4, 4), "expected runs of 4 bytes"),
        (lambda: unpack_runs(np.zeros(4, np.int16), 4, 4), "int16"),
    ],
)
def test_what_the_fields_cannot_hold_is_refused(call, message):
    with pytest.raises(QuantizationError, match=message):
        call()
