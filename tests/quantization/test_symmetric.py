"""Symmetric quantization, against hand-worked cases and an oracle of plain Python numbers."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from miniquant import (
    QuantizationError,
    Quantized,
    dequantize,
    fake_quantize,
    quantize_per_channel,
    quantize_per_group,
    quantize_per_tensor,
)
from miniquant.quantization.symmetric import absmax_scales, cast_checked, dequantize_rows, quantize_rows

# ---- the toy case, worked by hand ------------------------------------------------------------------------------------
#
# Four rows of eight weights, groups of four, four bits: scale = float16(absmax / 7), q = round_half_even(w / scale).
#
# row 0  absmax 7 and 14     scale 1 and 2     the second group: -14/2 = -7, 7/2 = 3.5 -> 4, 5/2 = 2.5 -> 2, 1/2 -> 0
# row 1  absmax 0 and 3.5    scale 0 and 0.5   a group of zeros has scale 0 and integers 0
# row 2  absmax 0.1          0.1/7 = 0.0142857...; float16 has steps of 2^-17 there: 1872.46 steps -> 1872
#        0.1/scale = 7.0017 -> 7;  0.05/scale = 3.5009 -> 4;  -0.07/scale = -4.9012 -> -5;  0.01/scale = 0.70017 -> 1
#        absmax 1e-9         1.4e-10 is nearer to 0 than to float16's smallest number, 2^-24: scale 0
# row 3  absmax 2^-20        2^-20/7 = 2.2857 steps of 2^-24 -> 2 steps, scale 2^-23; 2^-20/2^-23 = 8 -> clipped to 7
#        absmax 70           scale 10: 35/10 = 3.5 -> 4, -25/10 = -2.5 -> -2, -70/10 = -7, 15/10 = 1.5 -> 2

TOY = [
    [1.0, -7.0, 2.5, 3.5, -14.0, 7.0, 5.0, 1.0],
    [0.0, 0.0, -0.0, 0.0, 3.5, -3.5, 0.25, 0.75],
    [0.1, 0.05, -0.07, 0.01, 1e-9, -1e-9, 0.0, 1e-9],
    [2.0**-20, -(2.0**-20), 2.0**-23, 0.0, 35.0, -25.0, -70.0, 15.0],
]
TOY_SCALES = [[1.0, 2.0], [0.0, 0.5], [1872 * 2.0**-17, 0.0], [2.0**-23, 10.0]]
TOY_INTEGERS = [
    [1, -7, 2, 4, -7, 4, 2, 0],
    [0, 0, 0, 0, 7, -7, 0, 2],
    [7, 4, -5, 1, 0, 0, 0, 0],
    [7, -7, 1, 0, 4, -2, -7, 2],
]
TOY_RESTORED = [
    [1.0, -7.0, 2.0, 4.0, -14.0, 8.0, 4.0, 0.0],
    [0.0, 0.0, 0.0, 0.0, 3.5, -3.5, 0.0, 1.0],
    [7 * 1872 * 2.0**-17, 4 * 1872 * 2.0**-17, -5 * 1872 * 2.0**-17, 1872 * 2.0**-17, 0.0, 0.0, 0.0, 0.0],
    [7 * 2.0**-23, -7 * 2.0**-23, 2.0**-23, 0.0, 40.0, -20.0, -70.0, 20.0],
]


@pytest.mark.parametrize("make", [lambda w: np.array(w, np.float32), torch.tensor], ids=["numpy", "torch"])
def test_the_toy_case_in_groups_of_four_equals_the_hand_calculation(make):
    quantized = quantize_per_group(make(TOY), bits=4, group_size=4)
    assert quantized.scale.tolist() == TOY_SCALES
    assert quantized.values.tolist() == TOY_INTEGERS
    assert dequantize(quantized).tolist() == TOY_RESTORED
    assert fake_quantize(make(TOY), 4, per="group", group_size=4).tolist() == TOY_RESTORED


def test_the_toy_case_in_one_group_a_row_equals_quantizing_per_channel():
    w = np.array(TOY, np.float32)
    rows, groups = quantize_per_channel(w, bits=4), quantize_per_group(w, bits=4, group_size=8)
    assert rows.scale.tolist() == groups.scale[:, 0].tolist() == [2.0, 0.5, 1872 * 2.0**-17, 10.0]
    assert np.array_equal(rows.values, groups.values)
    assert rows.values[0].tolist() == [0, -4, 1, 2, -7, 4, 2, 0]  # 1/2 -> 0, 2.5/2 -> 1, 3.5/2 = 1.75 -> 2, 5/2 -> 2


def test_eight_bits_per_tensor_by_hand():
    quantized = quantize_per_tensor(np.array([[127.0, -127.0], [0.5, 1.5]], np.float32))
    assert quantized.scale.shape == ()
    assert float(quantized.scale) == 1.0
    assert quantized.values.tolist() == [[127, -127], [0, 2]]  # ties go to the even neighbour


def test_the_scale_is_rounded_before_the_division():
    # 3/7 = 0.42857...; float16 has steps of 2^-12 there: 1755.43 steps -> 1755. 1.5 / (1755 * 2^-12) = 3.50085 -> 4;
    # by the exact scale it is 3.5 to within a rounding, and would go either way.
    quantized = quantize_per_channel(np.array([[3.0, 1.5, -1.5]]), bits=4)
    assert quantized.scale.tolist() == [1755 * 2.0**-12]
    assert quantized.values.tolist() == [[7, 4, -4]]
    # 5.01/7 -> 1466 * 2^-11 = 0.7158203; 0.35790 is 0.49999 of that (-> 0) and 0.50006 of the exact scale (-> 1)
    quantized = quantize_per_channel(np.array([[5.01, 0.35790]]), bits=4)
    assert quantized.scale.tolist() == [1466 * 2.0**-11]
    assert quantized.values.tolist() == [[7, 0]]


# ---- an oracle without numpy -----------------------------------------------------------------------------------------


def as_float32(x: float) -> float:
    return struct.unpack("<f", struct.pack("<f", x))[0]


def as_float16(x: float) -> float:
    return struct.unpack("<e", struct.pack("<e", x))[0]


def oracle(group: list[float], bits: int) -> tuple[float, list[int], list[float]]:
    """Scale, integers and restored weights of one group, in Python's own numbers."""
    limit = 2 ** (bits - 1) - 1
    scale = as_float16(as_float32(max((abs(w) for w in group), default=0.0) / limit))
    integers = [max(-limit, min(limit, round(as_float32(w / scale)))) if scale else 0 for w in group]
    return scale, integers, [as_float32(q * scale) for q in integers]


finite = st.one_of(
    st.floats(-65504, 65504, width=32),
    st.floats(-(2.0**-20), 2.0**-20, width=32),  # scales that are subnormal in float16, or vanish
    st.sampled_from([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 3.5, 7.0, -7.0, 127.0, 2.0**-24, 2.0**-25, 2.0**-140, 65504.0]),
)
matrices = hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=8), elements=finite)


@given(matrices, st.sampled_from([2, 3, 4, 5, 8]))
@example(np.array([[2.0**-24 * 7, 2.0**-25 * 7]], np.float32), 4)
@example(np.array([[-0.0, -0.0]], np.float32), 8)
def test_quantizing_per_channel_equals_the_oracle(w, bits):
    quantized = quantize_per_channel(w, bits)
    restored = dequantize(quantized)
    for i, row in enumerate(w.tolist()):
        scale, integers, weights = oracle(row, bits)
        assert float(quantized.scale[i]) == scale
        assert quantized.values[i].tolist() == integers
        assert restored[i].tolist() == weights


@given(st.data(), st.sampled_from([1, 2, 3, 4, 8]), st.sampled_from([2, 4, 8]))
def test_quantizing_per_group_equals_the_oracle_for_every_group_size(data, group_size, bits):
    out, groups = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    w = data.draw(hnp.arrays(np.float32, (out, groups * group_size), elements=finite))
    quantized = quantize_per_group(w, bits, group_size)
    assert quantized.scale.shape == (out, groups)
    restored = dequantize(quantized)
    for i in range(out):
        for g in range(groups):
            columns = slice(g * group_size, (g + 1) * group_size)
            scale, integers, weights = oracle(w[i, columns].tolist(), bits)
            assert float(quantized.scale[i, g]) == scale
            assert quantized.values[i, columns].tolist() == integers
            assert restored[i, columns].tolist() == weights


@given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4), elements=finite))
def test_quantizing_per_tensor_takes_any_shape(w):
    quantized = quantize_per_tensor(w, 8)
    scale, integers, weights = oracle(w.reshape(-1).tolist(), 8)
    assert quantized.values.shape == w.shape
    assert quantized.scale.shape == ()
    assert float(quantized.scale) == scale
    assert quantized.values.reshape(-1).tolist() == integers
    assert dequantize(quantized).shape == w.shape
    assert dequantize(quantized).reshape(-1).tolist() == weights


# ---- properties ------------------------------------------------------------------------------------------------------


def bits_of(x) -> bytes:
    """The bytes of an array or tensor: -0.0 and 0.0 differ, and so do two NaNs."""
    return np.ascontiguousarray(x.numpy() if isinstance(x, torch.Tensor) else x).tobytes()


@given(matrices, st.sampled_from(["tensor", "channel", "group"]), st.sampled_from([4, 8]))
def test_numpy_and_torch_agree_to_the_bit(w, per, bits):
    quantize = {
        "tensor": quantize_per_tensor,
        "channel": quantize_per_channel,
        "group": lambda x, b: quantize_per_group(x, b, max(1, w.shape[1])),
    }[per]
    a, b = quantize(w, bits), quantize(torch.from_numpy(w.copy()), bits)
    assert isinstance(b.values, torch.Tensor)
    assert isinstance(b.scale, torch.Tensor)
    assert (b.values.dtype, b.scale.dtype) == (torch.int8, torch.float16)
    assert (a.values.dtype, a.scale.dtype) == (np.int8, np.float16)
    assert bits_of(a.values) == bits_of(b.values)
    assert bits_of(a.scale) == bits_of(b.scale)
    restored = dequantize(b)
    assert restored.dtype == torch.float32
    assert bits_of(dequantize(a)) == bits_of(restored)


@given(matrices, st.sampled_from([2, 3, 4, 8]))
def test_the_most_negative_integer_is_never_used(w, bits):
    values = quantize_per_channel(w, bits).values
    assert not (values == -(2 ** (bits - 1))).any()


@given(matrices)
def test_quantizing_the_negative_weights_negates_the_integers(w):
    plus, minus = quantize_per_channel(w, 4), quantize_per_channel(-w, 4)
    assert np.array_equal(plus.values, -minus.values)
    assert bits_of(plus.scale) == bits_of(minus.scale)


@given(matrices)
def test_fake_quantizing_twice_with_the_same_scale_changes_nothing_more(w):
    quantized = quantize_per_channel(w, 8)
    restored = dequantize(quantized)
    again = np.rint(restored / np.where(quantized.scale == 0, 1, quantized.scale.astype(np.float32))[:, None])
    assert np.array_equal(again, quantized.values)


@given(matrices)
def test_the_error_is_at_most_half_a_step_where_the_scale_is_a_normal_number(w):
    quantized = quantize_per_channel(w, 8)
    scale = quantized.scale.astype(np.float64)[:, None]
    normal = scale[:, 0] >= 2.0**-14
    # half a step, plus what clipping takes when the scale was rounded down (127 * 2^-11 of a step)
    bound = scale * (0.5 + 127 * 2.0**-11)
    assert (np.abs(dequantize(quantized) - w)[normal] <= bound[normal]).all()


@pytest.mark.parametrize("zeros", [np.zeros((2, 4), np.float32), -np.zeros((2, 4), np.float32)], ids=["plus", "minus"])
def test_a_zero_channel_group_or_tensor_has_scale_plus_zero_and_restores_plus_zero(zeros):
    for quantized in (quantize_per_tensor(zeros), quantize_per_channel(zeros), quantize_per_group(zeros, 4, 2)):
        assert not quantized.scale.any()
        assert not np.signbit(quantized.scale).any()
        assert not quantized.values.any()
        assert not np.signbit(dequantize(quantized)).any()


def test_weights_below_half_of_the_smallest_float16_times_qmax_become_zero():
    smallest = 2.0**-24
    assert quantize_per_channel(np.array([[7 * smallest]]), 4).scale.tolist() == [smallest]
    assert quantize_per_channel(np.array([[3.6 * smallest]]), 4).scale.tolist() == [smallest]  # above a half: up
    assert quantize_per_channel(np.array([[3.5 * smallest]]), 4).scale.tolist() == [0.0]  # a tie goes to the even 0
    assert quantize_per_channel(np.array([[3.4 * smallest, 1e-45]]), 4).values.tolist() == [[0, 0]]


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0), (1, 1), (3, 5), (5, 3)])
def test_empty_and_odd_shapes_keep_their_shape(shape):
    w = np.ones(shape, np.float32)
    per_channel = quantize_per_channel(w)
    assert (per_channel.values.shape, per_channel.scale.shape) == (shape, (shape[0],))
    assert dequantize(per_channel).shape == shape
    per_group = quantize_per_group(w, 4, max(1, shape[1]))
    assert per_group.scale.shape == (shape[0], min(1, shape[1]))
    assert dequantize(per_group).shape == shape
    assert dequantize(quantize_per_tensor(w)).shape == shape
    assert dequantize(quantize_per_channel(torch.ones(shape))).shape == shape


def test_views_quantize_as_their_copies_do():
    base = np.random.default_rng(0).normal(size=(12, 16)).astype(np.float32)
    t = torch.from_numpy(base)
    views = [(base.T, t.T), (base[::-1], t.flip(0)), (base[:, ::2], t[:, ::2]), (base[3:9, 4:8], t[3:9, 4:8])]
    for array, tensor in [*views, (np.broadcast_to(base[0], (3, 16)), t[0].expand(3, 16))]:
        for quantize in (quantize_per_tensor, quantize_per_channel, lambda w: quantize_per_group(w, 4, 2)):
            expected = quantize(array.copy())
            for found in (quantize(array), quantize(tensor)):
                assert bits_of(found.values) == bits_of(expected.values)
                assert bits_of(found.scale) == bits_of(expected.scale)


def test_big_matrices_are_handled_in_chunks_with_the_same_result():
    w = np.random.default_rng(1).normal(size=(1500, 256)).astype(np.float32)  # more than one chunk
    whole = quantize_per_group(w, 4, 64)
    for start in range(0, 1500, 100):
        part = quantize_per_group(w[start : start + 100], 4, 64)
        assert np.array_equal(whole.values[start : start + 100], part.values)
        assert np.array_equal(whole.scale[start : start + 100], part.scale)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floating_types_quantize_as_their_float32_values_do(dtype):
    w = torch.randn(6, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    for per in ("tensor", "channel", "group"):
        assert torch.equal(fake_quantize(w, 4, per=per), fake_quantize(w.float(), 4, per=per))
        assert fake_quantize(w, 4, per=per).dtype == torch.float32


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.longdouble, ">f4", ">f8"])
def test_other_numpy_floating_types_quantize_as_their_float32_values_do(dtype):
    w = np.random.default_rng(0).normal(size=(6, 64)).astype(dtype)
    assert np.array_equal(fake_quantize(w, 4, per="group"), fake_quantize(w.astype(np.float32), 4, per="group"))


def test_the_argument_is_not_changed_and_nothing_shares_its_memory():
    w = np.random.default_rng(2).normal(size=(4, 64)).astype(np.float32)
    t = torch.from_numpy(w.copy()).requires_grad_()
    before = w.copy()
    for x in (w, t):
        for per in ("tensor", "channel", "group"):
            restored = fake_quantize(x, per=per)
            restored[...] = 99
    assert np.array_equal(w, before)
    assert np.array_equal(t.detach().numpy(), before)


# ---- what is refused -------------------------------------------------------------------------------------------------

QUANTIZERS = {
    "tensor": quantize_per_tensor,
    "channel": quantize_per_channel,
    "group": lambda w, bits=4: quantize_per_group(w, bits, 2),
}


@pytest.mark.parametrize("quantize", QUANTIZERS.values(), ids=QUANTIZERS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf], ids=str)
@pytest.mark.parametrize("place", [(0, 0), (1, 3), (2, 1)], ids=str)
def test_a_weight_that_is_not_finite_is_refused_and_named(quantize, bad, place):
    w = np.ones((3, 4), np.float32)
    w[place] = bad
    at = f"[{place[0]}, {place[1]}]" if quantize is not quantize_per_tensor else f"[0, {4 * place[0] + place[1]}]"
    for argument in (w, torch.from_numpy(w)):
        with pytest.raises(QuantizationError) as caught:
            quantize(argument)
        assert f"{at} is {bad}" in str(caught.value)


def test_a_bad_weight_far_down_a_big_matrix_is_named_by_its_own_row():
    w = np.zeros((3000, 256), np.float32)
    w[2900, 7] = np.nan
    with pytest.raises(QuantizationError, match=r"\[2900, 7\] is nan"):
        quantize_per_channel(w)


def test_a_scale_beyond_float16_is_refused():
    most = np.float32(65519.996)  # float16 rounds 65520 and more up to infinity
    assert quantize_per_channel(np.array([[most * 7]], np.float32), 4).scale.tolist() == [65504.0]
    for w in (np.array([[65520.0 * 7]]), np.array([[-3e38]]), torch.tensor([[65520.0 * 7]])):
        with pytest.raises(QuantizationError, match="65504; store this tensor as f32"):
            quantize_per_channel(w, 4)


def test_a_float64_weight_beyond_float32_is_refused_by_its_own_value():
    for w in (np.array([[1.0, 1e300]]), torch.tensor([[1.0, 1e300]], dtype=torch.float64)):
        with pytest.raises(QuantizationError, match=r"1e\+300 is beyond float32"):
            quantize_per_channel(w)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.bool_, np.complex64])
def test_weights_that_are_not_floating_point_are_refused(dtype):
    w = np.ones((2, 2), dtype)
    for argument in (w, torch.from_numpy(w)):
        for quantize in (quantize_per_tensor, quantize_per_channel):
            with pytest.raises(QuantizationError, match="floating-point"):
                quantize(argument)


@pytest.mark.parametrize("shape", [(), (4,), (2, 2, 4)])
def test_channels_and_groups_need_a_matrix(shape):
    for quantize in (quantize_per_channel, lambda w: quantize_per_group(w, 4, 4)):
        with pytest.raises(QuantizationError, match="expected a matrix"):
            quantize(np.ones(shape, np.float32))


@pytest.mark.parametrize("group_size", [3, 5, 16, 0, -4])
def test_rows_that_do_not_divide_into_groups_are_refused(group_size):
    with pytest.raises(QuantizationError, match=f"do not divide into groups of {group_size}"):
        quantize_per_group(np.ones((2, 8), np.float32), 4, group_size)


@pytest.mark.parametrize("bits", [-1, 0, 1, 9, 16])
def test_bits_outside_two_to_eight_are_refused(bits):
    for quantize in QUANTIZERS.values():
        with pytest.raises(QuantizationError, match="from 2 to 8"):
            quantize(np.ones((2, 4), np.float32), bits)


def test_fake_quantize_refuses_an_unknown_granularity():
    with pytest.raises(QuantizationError, match="'tensor', 'channel' or 'group'"):
        fake_quantize(np.ones((2, 4), np.float32), per="row")


@pytest.mark.parametrize(
    ("values", "scale", "message"),
    [
        (np.zeros((2, 4), np.int8), np.ones(3, np.float16), r"\(3,\) do not fit"),
        (np.zeros((2, 4), np.int8), np.ones((2, 3), np.float16), "do not fit"),
        (np.zeros((2, 4), np.int8), np.ones((2, 0), np.float16), "do not fit"),
        (np.zeros((2, 4), np.int8), np.ones((2, 1, 1), np.float16), "do not fit"),
        (np.zeros(4, np.int8), np.ones(4, np.float16), "do not fit"),
        (np.array([[300]]), np.ones(1, np.float16), "int8"),
        (np.array([[1.5]]), np.ones(1, np.float16), "int8"),
        (np.array([[1]]), np.array([0.1]), "float16"),
        (np.array([[1]]), np.array([1e6]), "float16"),
    ],
)
def test_dequantize_refuses_what_does_not_fit_together_and_what_it_would_have_to_change(values, scale, message):
    with pytest.raises(QuantizationError, match=message):
        dequantize(Quantized(values, scale))


def test_dequantize_takes_any_type_that_holds_the_same_numbers():
    expected = [[-4.0, 3.5], [0.0, 127.0]]
    for integers in (np.int8, np.int64, np.float32):
        for floats in (np.float16, np.float32, np.float64):
            quantized = Quantized(np.array([[-8, 7], [0, 127]], integers), np.array([0.5, 1.0], floats))
            assert dequantize(quantized).tolist() == expected


# ---- the arithmetic for writers and readers --------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_scales_and_integers_by_rows_are_those_of_groups_and_come_back_into_what_is_given(groups):
    w = np.array(TOY, np.float32)
    expected = quantize_per_group(w, bits=4, group_size=8 // groups)
    scale = absmax_scales(w, groups, 4)
    values = quantize_rows(w, scale, 4)
    assert (scale.dtype, values.dtype) == (np.float16, np.int8)
    assert np.array_equal(scale, expected.scale) and np.array_equal(values, expected.values)
    out = np.full(w.shape, np.nan, np.float32)
    assert dequantize_rows(values, scale, out) is out
    assert np.array_equal(out, dequantize(expected)) and np.array_equal(dequantize_rows(values, scale), out)


def test_a_matrix_without_columns_has_no_groups_and_no_scales():
    for groups in (0, 1):
        assert absmax_scales(np.zeros((3, 0), np.float32), groups, 4).shape == (3, groups)
    assert dequantize(Quantized(np.zeros((3, 0), np.int8), np.zeros((3, 0), np.float16))).shape == (3, 0)


def test_a_scale_that_was_not_fitted_clips_symmetrically():
    w = np.array([[-100.0, 100.0, 1.0]], np.float32)
    assert quantize_rows(w, np.ones((1, 1), np.float16), 4).tolist() == [[-7, 7, 1]]
    assert quantize_rows(w, np.zeros((1, 1), np.float16), 4).tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("dtype, kind", [(np.float16, "<f2"), (np.float32, "<f4")])
def test_weights_that_are_stored_as_floats_are_little_endian_and_refused_where_they_would_be_infinite(dtype, kind):
    w = np.array([65519.0, -1.5, 0.0], np.float32)
    found = cast_checked(w, dtype)
    assert found.dtype == np.dtype(kind)
    assert found.tolist() == w.astype(dtype).tolist()
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(QuantizationError, match=rf"flat index 12 is {bad:g}; a file holds finite weights only"):
            cast_checked(np.array([1.0, 2.0, bad, bad], np.float32), dtype, start=10)
    for beyond in (65520.0, -65520.0):
        if dtype == np.float16:
            with pytest.raises(QuantizationError, match=r"flat index 1 is -?65520, and float16 ends at 65504"):
                cast_checked(np.array([1.0, beyond], np.float32), dtype)
        else:
            assert cast_checked(np.array([beyond], np.float32), dtype).tolist() == [beyond]
