"""Specifications: scales and zero points as PyTorch's own observers have them, and refusals that say what to change."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import tried
from torch.ao.quantization.observer import MinMaxObserver, PerChannelMinMaxObserver

from miniquant.core.errors import QuantizationError, SchemeError
from miniquant.quantization.grids import dequantize, quantize
from miniquant.quantization.observers import MSE, MinMax
from miniquant.quantization.spec import (
    Dtype,
    QSchemeType,
    QuantizationSpec,
    RoundType,
    ScaleType,
    differences,
    round_half_away,
)

f32 = np.float32
every_dtype = pytest.mark.parametrize("dtype", Dtype, ids=lambda dtype: dtype.name)
both = pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "asymmetric"])
UINT4 = QuantizationSpec(Dtype.uint4, False, ScaleType.float32, qscheme=QSchemeType.per_group, group_size=32)


def weights(seed, rows=6, columns=64, spread=1.0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((rows, columns)) * spread + rng.standard_normal((rows, 1))).astype(f32)


def theirs(dtype, symmetric, w, per_tensor):
    """The scale and zero point of torch.ao, for a matrix of which each row is a channel."""
    signed = not dtype.name.startswith("u")
    kind = MinMaxObserver if per_tensor else PerChannelMinMaxObserver
    scheme = f"per_{'tensor' if per_tensor else 'channel'}_{'symmetric' if symmetric else 'affine'}"
    observer = kind(
        dtype=torch.qint8 if signed else torch.quint8,
        qscheme=getattr(torch, scheme),
        quant_min=dtype.low,
        quant_max=dtype.high,
        eps=1e-30,
    )
    observer(torch.from_numpy(w))
    return [x.numpy() for x in observer.calculate_qparams()]


@pytest.mark.parametrize("kind", [Dtype, ScaleType, RoundType, QSchemeType])
def test_a_choice_is_found_by_its_name(kind):
    assert [kind(choice.name) for choice in kind] == list(kind)


def test_the_ranges_of_the_integers():
    assert {d.name: (d.bits, d.low, d.high) for d in Dtype} == {
        "int2": (2, -2, 1), "int3": (3, -4, 3), "int4": (4, -8, 7), "int8": (8, -128, 127),
        "uint4": (4, 0, 15), "uint8": (8, 0, 255),
    }  # fmt: skip


@every_dtype
@both
@pytest.mark.parametrize("scheme", QSchemeType, ids=lambda scheme: scheme.name)
@settings(max_examples=tried(7, 100))
@given(seed=st.integers(0, 2**32 - 1))
def test_scale_and_zero_point_are_those_of_pytorch_s_observers(dtype, symmetric, scheme, seed):
    w = weights(seed)
    group = 16 if scheme == QSchemeType.per_group else None
    spec = QuantizationSpec(dtype, symmetric, ScaleType.float32, qscheme=scheme, group_size=group)
    scale, zero_point = spec.affine(w)
    rows = w.reshape(-1, group) if group else w
    expected_scale, expected_zero = theirs(dtype, symmetric, rows, scheme == QSchemeType.per_tensor)
    assert np.allclose(scale.ravel(), expected_scale, rtol=3e-7, atol=0)
    if symmetric and dtype.low == 0:  # PyTorch takes 7 of 0 … 15; we take 8, as ggml does
        assert (zero_point == (dtype.high + 1) // 2).all()
    else:
        assert np.array_equal(zero_point.ravel(), expected_zero)


@every_dtype
@both
@settings(max_examples=tried(7, 100))
@given(seed=st.integers(0, 2**32 - 1))
def test_fake_quantization_is_pytorch_s_but_for_ties(dtype, symmetric, seed):
    w = weights(seed)
    spec = QuantizationSpec(dtype, symmetric, ScaleType.float32)
    scale, zero_point = spec.affine(w)
    grid = spec.fit(w)
    ours = dequantize(spec.quantize(w, grid), grid)
    expected = torch.fake_quantize_per_channel_affine(
        torch.from_numpy(w), *(torch.from_numpy(x[:, 0]) for x in (scale, zero_point)), 0, dtype.low, dtype.high
    ).numpy()
    tie = np.abs(np.abs(w / scale) % 1 - 0.5) < 1e-4
    assert np.allclose(ours, expected, rtol=0, atol=1e-5) or np.allclose(ours[~tie], expected[~tie], rtol=0, atol=1e-5)


@both
def test_one_scale_per_tensor_channel_or_group(symmetric):
    w = weights(1)
    shapes = {}
    for scheme, group in ((QSchemeType.per_tensor, None), (QSchemeType.per_channel, None), (QSchemeType.per_group, 16)):
        spec = QuantizationSpec(Dtype.int8, symmetric, qscheme=scheme, group_size=group)
        shapes[scheme.name] = (spec.affine(w).scale.shape, spec.fit(w).scale.shape)
    assert shapes == {"per_tensor": ((1, 1), (6, 1)), "per_channel": ((6, 1), (6, 1)), "per_group": ((6, 4), (6, 4))}


def test_by_hand():
    """-1 … 2 in 15 steps: scale 0.2, zero point 5; -1 is 0, 0 is 5, 2 is 15, and 0.31 is the 7th point, 0.4."""
    spec = QuantizationSpec(Dtype.uint4, symmetric=False, scale_type=ScaleType.float32)
    w = f32([[-1, 0, 2, 0.31]])
    assert spec.affine(w).scale.tolist() == [[pytest.approx(0.2)]]
    assert spec.affine(w).zero_point.tolist() == [[5]]
    assert spec.quantize(w, spec.fit(w)).tolist() == [[0, 5, 15, 7]]
    assert dequantize(spec.quantize(w, spec.fit(w)), spec.fit(w))[0].tolist() == pytest.approx([-1, 0, 2, 0.4])


@given(seed=st.integers(0, 2**32 - 1))
def test_float32_scales_keep_zero_exact_and_float16_minima_need_not(seed):
    w = weights(seed)
    w[:, ::32] = 0
    grid = UINT4.fit(w)
    assert not dequantize(UINT4.quantize(w, grid), grid)[:, ::32].any()
    stored = QuantizationSpec(Dtype.uint4, False, ScaleType.float16, qscheme=QSchemeType.per_group, group_size=32)
    grid = stored.fit(w)
    off = np.abs(dequantize(stored.quantize(w, grid), grid)[:, ::32])
    assert (off <= np.abs(grid.minimum) * 2.0**-11).all()
    assert all(np.array_equal(x, x.astype(np.float16)) for x in (grid.scale, grid.minimum))


def test_float16_minima_do_move_zero_somewhere():
    w = weights(0)
    w[:, ::32] = 0
    spec = QuantizationSpec(Dtype.uint4, False, ScaleType.float16, qscheme=QSchemeType.per_group, group_size=32)
    assert dequantize(spec.quantize(w, spec.fit(w)), spec.fit(w))[:, ::32].any()


@every_dtype
@both
def test_zeros_come_back_as_zeros(dtype, symmetric):
    w = np.zeros((2, 32), f32)
    spec = QuantizationSpec(dtype, symmetric)
    assert not dequantize(spec.quantize(w, spec.fit(w)), spec.fit(w)).any()


def test_halves_go_where_the_round_method_says():
    w = f32([[0.5, 1.5, 2.5, -0.5, -2.5, 127, -127]])
    expected = {RoundType.half_even: [0, 2, 2, 0, -2, 127, -127], RoundType.half_away: [1, 2, 3, -1, -3, 127, -127]}
    for method, integers in expected.items():
        spec = QuantizationSpec(Dtype.int8, round_method=method, scale_type=ScaleType.float32)
        grid = spec.fit(w)._replace(scale=np.ones((1, 1), f32))
        assert spec.quantize(w, grid).tolist() == [integers]


@given(st.floats(-1000, 1000, width=32))
def test_half_away_is_what_decimal_s_half_up_does(x):
    from decimal import ROUND_HALF_UP, Decimal

    assert round_half_away(f32([x]))[0] == int(Decimal(x).quantize(Decimal(1), ROUND_HALF_UP))


def test_a_specification_is_a_target():
    """Whatever takes a rule (GPTQ, AWQ) takes one; a part of the columns has the grid of those columns."""
    w = weights(2)
    part = UINT4.fit(w[:, 32:])
    assert np.array_equal(part.scale[:, 0], UINT4.fit(w).scale[:, 1])
    assert np.array_equal(quantize(w, UINT4.fit(w)), UINT4.quantize(w, UINT4.fit(w)))
    assert UINT4.group_size == 32
    assert UINT4.name == "uint4 asymmetric per_group 32, float32 scales"


def test_a_smaller_range_clips_and_is_chosen_by_the_observer():
    w = np.zeros((1, 64), f32)
    w[0, 0], w[0, 1:] = 4, 1
    whole, searched = (QuantizationSpec(Dtype.int2, observer_cls=o).fit(w).scale[0, 0] for o in (MinMax, MSE))
    assert searched < whole


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "int4"}, "dtype='int4' is no Dtype; choose one of Dtype.int2, .*Dtype.uint8"),
        ({"scale_type": float}, "scale_type=.*choose one of ScaleType.float32, ScaleType.float16"),
        (
            {"qscheme": "per_group"},
            "choose one of QSchemeType.per_tensor, QSchemeType.per_channel, QSchemeType.per_group",
        ),
        ({"round_method": None}, "choose one of RoundType.half_even, RoundType.half_away"),
        (
            {"observer_cls": MinMax()},
            r"observer_cls=MinMax\(\) makes no observer; pass a class, such as PerChannelMinMax",
        ),
        ({"observer_cls": None}, "observer_cls=None makes no observer"),
        ({"observer_cls": dict}, "observer_cls=<class 'dict'> makes no observer"),
        ({"group_size": None}, "per_group with group_size=None; say how many weights share a scale"),
        ({"group_size": 0}, "per_group with group_size=0"),
        ({"qscheme": QSchemeType.per_channel}, "per_channel with group_size=32: only per_group has groups"),
        ({"qscheme": QSchemeType.per_tensor, "group_size": None, "ch_axis": 0}, "per_tensor with ch_axis=0"),
        ({"ch_axis": 1}, "ch_axis=1: a scale for each input column cannot be taken out of the sum.*use ch_axis=0"),
    ],
)
def test_combinations_that_make_no_sense_are_refused_and_say_what_to_change(change, message):
    given = {"dtype": Dtype.uint4, "qscheme": QSchemeType.per_group, "group_size": 32} | change
    with pytest.raises(SchemeError, match=message):
        QuantizationSpec(**given)


def test_rows_that_do_not_divide_and_scales_beyond_float16_are_refused():
    with pytest.raises(QuantizationError, match="rows of 63 weights do not divide into groups of 32"):
        UINT4.fit(weights(0, columns=63))
    with pytest.raises(QuantizationError, match=r"a scale would be .* float16 ends at 65504"):
        QuantizationSpec(Dtype.int4).fit(weights(0, spread=1e7))
    assert UINT4.fit(weights(0, spread=1e7)).scale.max() > 65504


def test_quark_s_float_is_the_float_that_a_block_stores():
    assert ScaleType.float is ScaleType.float16
    assert [kind.name for kind in ScaleType] == ["float32", "float16"]


def test_differences_name_the_fields():
    other = QuantizationSpec(Dtype.int4, False, ScaleType.float32, qscheme=QSchemeType.per_group, group_size=64)
    assert differences(UINT4, other) == {"dtype": (Dtype.uint4, Dtype.int4), "group_size": (32, 64)}


def test_a_group_may_have_one_weight():
    assert QuantizationSpec(Dtype.uint4, qscheme=QSchemeType.per_group, group_size=1).group_size == 1
