"""Arrays and tensors alike: rows in chunks, what becomes float32, bfloat16's upper half, and the way back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from miniquant import QuantizationError
from miniquant.core.arrays import CHUNK, bfloat16_to_float32, is_torch, like, row_chunks, to_numpy


@pytest.mark.parametrize("rows, width, size, starts", [
    (5, 4, 8, [0, 2, 4]),  # two rows are just full
    (5, 4, 9, [0, 2, 4]),
    (5, 4, 11, [0, 2, 4]),
    (3, 4, 1, [0, 1, 2]),  # a row is more than a chunk
    (3, 4, 4, [0, 1, 2]),
    (3, 4, 12, [0]),
    (1, 1, 1, [0]),
    (7, 0, 8, [0]),
    (0, 4, 8, []),
])  # fmt: skip
def test_chunks_are_whole_rows_and_cover_each_row_once(rows, width, size, starts):
    chunks = row_chunks((rows, width), size)
    assert [chunk.start for chunk in chunks] == starts
    assert [row for chunk in chunks for row in range(chunk.start, chunk.stop)] == list(range(rows))


def test_a_chunk_has_a_quarter_of_a_million_weights_unless_told():
    assert CHUNK == 262144
    assert row_chunks((3, 262144)) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert row_chunks((4, 131072)) == [slice(0, 2), slice(2, 4)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_a_tensor_of_any_float_becomes_float32_with_its_values(dtype):
    w = torch.tensor([[1.5, -2.0], [0.25, 3.0]], dtype=dtype, requires_grad=True)
    found = to_numpy(w)
    assert type(found) is np.ndarray
    assert found.dtype == np.float32
    assert found.tolist() == [[1.5, -2.0], [0.25, 3.0]]


def test_a_transposed_tensor_keeps_its_order():
    assert to_numpy(torch.arange(6.0).reshape(2, 3).T).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_what_is_float32_already_is_not_copied():
    array, tensor = np.ones(3, np.float32), torch.ones(3)
    assert to_numpy(array) is array
    assert np.shares_memory(to_numpy(tensor), tensor.numpy())


def test_a_tensor_of_float64_is_asked_for_by_its_own_values_and_not_rounded_first():
    w = torch.tensor([1e300, 0.1], dtype=torch.float64)
    assert to_numpy(w, np.float64).tolist() == [1e300, 0.1]


def test_a_tensor_of_small_integers_stays_whole():
    assert to_numpy(torch.tensor([1, -7], dtype=torch.int8), np.int8).dtype == np.int8


@pytest.mark.parametrize("w", [[1, 2], np.array([1, 2], np.int8), torch.tensor([1, 2]), np.array([True])])
def test_weights_that_are_no_floats_are_refused(w):
    with pytest.raises(QuantizationError, match="expected floating-point weights, found"):
        to_numpy(w)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_weight_beyond_float32_is_named(place):
    w = np.array([np.inf, np.nan, 0.5, 2.0])
    w = np.insert(w, place, -1e39)
    with pytest.raises(QuantizationError, match=r"the weight -1e\+39 is beyond float32"), np.errstate(all="raise"):
        to_numpy(w)


def test_infinity_and_nan_pass_and_no_warning_is_given():
    with np.errstate(all="raise"):
        found = to_numpy(np.array([np.inf, -np.inf, np.nan, 3e38]))
    assert found[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(found[2])
    assert found[3] == np.float32(3e38)


@pytest.mark.parametrize("w, dtype", [
    (np.array([300]), np.int8),
    (np.array([1.5]), np.int8),
    (np.array([70000.0]), np.float16),
    (np.array([np.nan]), np.int8),
])  # fmt: skip
def test_a_type_that_would_change_a_number_is_refused(w, dtype):
    with (
        pytest.raises(QuantizationError, match=f"expected numbers that {np.dtype(dtype)} holds"),
        np.errstate(all="raise"),
    ):
        to_numpy(w, dtype)


def test_a_type_that_changes_no_number_is_taken_nan_included():
    assert to_numpy(np.array([3.0, -128.0]), np.int8).tolist() == [3, -128]
    found = to_numpy(np.array([np.nan, 0.5]), np.float16)
    assert found.dtype == np.float16
    assert np.isnan(found[0]) and found[1] == 0.5
    same = np.array([np.nan], np.float16)
    assert to_numpy(same, np.float16) is same


def test_bfloat16_is_the_upper_half_of_float32_also_in_an_array_that_is_given():
    bits = np.array([[0x3F80, 0xC000, 0x0001], [0x7F80, 0x8000, 0xFFFF]], np.uint16)
    expected = bits.astype(np.uint32) * 65536
    found = bfloat16_to_float32(bits)
    assert found.dtype == np.float32 and found.shape == (2, 3)
    assert found.view(np.uint32).tolist() == expected.tolist()
    room = np.zeros((2, 3), np.float32)
    assert bfloat16_to_float32(bits, room) is room
    assert room.view(np.uint32).tolist() == expected.tolist()


def test_only_a_tensor_is_a_torch_tensor():
    assert is_torch(torch.ones(1))
    for other in (np.ones(1), torch.nn.Linear(1, 1), torch.float32, torch.Size([1]), [1.0]):
        assert not is_torch(other)

    class Detachable:
        def detach(self):
            return self

    assert not is_torch(Detachable())


def test_an_array_comes_back_as_what_was_given():
    array = np.array([1.0, 2.0], np.float32)
    assert like(array, np.zeros(1)) is array
    tensor = like(array, torch.zeros(1))
    assert isinstance(tensor, torch.Tensor)
    assert tensor.tolist() == [1.0, 2.0]
    assert not np.shares_memory(tensor.numpy(), array)
    assert like(array, torch.zeros(1, device="meta")).device.type == "meta"
