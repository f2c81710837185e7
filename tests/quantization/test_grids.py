"""Grids: nearest points, ggml's own scales, and blocks that decode to what the grid says, to the bit."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from miniquant.core.errors import QuantizationError
from miniquant.formats.gguf import GGMLType, decode, encode
from miniquant.formats.gguf.grids import encode_grid
from miniquant.quantization.grids import GRID_RULES, Grid, dequantize, quantize
from miniquant.quantization.symmetric import quantize_per_channel, quantize_per_group

f32 = np.float32
STORED = {"Q8_0": (-128, 127), "Q4_0": (-8, 7), "Q4_1": (0, 15)}
OFFICIAL = {name: gguf.GGMLQuantizationType[name] for name in STORED}
every_rule = pytest.mark.parametrize("rule", GRID_RULES.values(), ids=GRID_RULES)
every_stored = pytest.mark.parametrize("kind", STORED)


def bits(x):
    return np.ascontiguousarray(x, f32).view(np.uint32)


def weights(seed, rows=3, columns=128, spread=1.0):
    return (np.random.default_rng(seed).standard_normal((rows, columns)) * spread).astype(f32)


# ---- quantize and dequantize -----------------------------------------------------------------------------------------


def test_snap_is_the_nearest_point_of_the_grid_and_a_tie_is_even():
    """By hand: points -1, -0.5, 0, 0.5 … 6.5; halfway between q = 3 and 4 lies 0.75, between 4 and 5 lies 1.25."""
    grid = Grid(f32([[0.5]]), f32([[-1.0]]), 0, 15)
    w = f32([[-9, -1, -0.76, -0.74, 0.75, 1.25, 6.5, 9]])
    assert quantize(w, grid).tolist() == [[0, 0, 0, 1, 4, 4, 15, 15]]
    assert dequantize(quantize(w, grid), grid).tolist() == [[-1, -1, -1, -0.5, 1, 1, 6.5, 6.5]]


def test_each_group_of_each_row_has_its_own_scale_and_minimum():
    grid = Grid(f32([[1, 2], [4, 8]]), f32([[0, 10], [20, 30]]), 0, 15)
    q = np.ones((2, 4), np.int16)
    assert dequantize(q, grid).tolist() == [[1, 1, 12, 12], [24, 24, 38, 38]]
    assert np.array_equal(quantize(dequantize(q, grid), grid), q)


def test_some_rows_of_a_grid_are_the_grid_of_those_rows():
    scale, minimum = np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([[-1, -2], [-3, -4], [-5, -6]])
    for rows in (slice(1, 3), np.array([2, 0])):
        grid = Grid(scale, minimum, -3, 7).rows(rows)
        assert np.array_equal(grid.scale, scale[rows]) and np.array_equal(grid.minimum, minimum[rows])
        assert (grid.low, grid.high) == (-3, 7)


@pytest.mark.parametrize(("low", "high", "nearest"), [(-8, 7, 0), (0, 15, 0), (3, 9, 3), (-9, -2, -2)])
def test_where_the_scale_is_zero_the_integer_is_the_one_nearest_to_zero(low, high, nearest):
    grid = Grid(f32([[0]]), f32([[-2]]), low, high)
    assert quantize(f32([[-5, 0, 7, -2]]), grid).tolist() == [[nearest] * 4]
    assert dequantize(quantize(f32([[5]]), grid), grid).tolist() == [[-2]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@every_rule
def test_a_weight_that_is_not_finite_is_refused_where_it_stands(bad, rule):
    w = weights(0)
    grid = rule.fit(w)
    w[2, 5] = bad
    for call in (lambda: quantize(w, grid), lambda: rule.fit(w)):
        with pytest.raises(QuantizationError, match=r"weight at \[2, 5\] is (nan|-?inf)"):
            call()


def test_weights_far_beyond_the_grid_are_clipped_without_a_warning():
    grid = Grid(f32([[1e-40, 6e-8]]), f32([[-3e38, 0]]), 0, 15)
    assert quantize(f32([[3e38, -3e38, 3e38, -3e38]]), grid).tolist() == [[15, 0, 15, 0]]


@pytest.mark.parametrize(
    ("shape", "groups"), [((2, 4), (2, 3)), ((2, 4), (1, 2)), ((4,), (2, 2)), ((2, 4), (2, 0)), ((2, 4), (2,))]
)
def test_rows_and_groups_that_do_not_fit_are_refused(shape, groups):
    grid = Grid(np.ones(groups, f32), np.zeros(groups, f32), 0, 15)
    for call in (lambda: quantize(np.zeros(shape, f32), grid), lambda: dequantize(np.zeros(shape, np.int16), grid)):
        with pytest.raises(QuantizationError, match=r"do not (fit|divide)"):
            call()


# ---- the rules -------------------------------------------------------------------------------------------------------


@every_stored
@given(seed=st.integers(0, 2**32 - 1), power=st.integers(-20, 12))
def test_scales_and_minima_are_those_that_the_official_package_writes(kind, seed, power):
    w = weights(seed, spread=2.0**power)
    grid = GRID_RULES[kind].fit(w)
    raw = gguf.quants.quantize(w, OFFICIAL[kind]).reshape(-1, GGMLType[kind].n_bytes)
    assert np.array_equal(bits(grid.scale.ravel()), bits(raw.view("<f2")[:, 0]))
    expected = raw.view("<f2")[:, 1] if kind == "Q4_1" else np.zeros(len(raw))
    assert np.array_equal(grid.minimum.ravel(), expected.astype(f32))


def test_of_two_extremes_with_both_signs_q4_0_takes_the_first_as_ggml_does():
    w = np.zeros((2, 32), f32)
    w[0, [3, 9]], w[1, [3, 9]] = (1, -1), (-1, 1)
    grid = GRID_RULES["Q4_0"].fit(w)
    assert grid.scale.tolist() == [[-0.125], [0.125]]
    assert np.array_equal(encode_grid(quantize(w, grid), grid, "Q4_0"), encode(w, GGMLType.Q4_0))


@every_stored
@given(seed=st.integers(0, 2**32 - 1))
def test_with_the_same_scales_snap_is_never_further_from_a_weight_than_ggml_s_own_rounding(kind, seed):
    w = weights(seed)
    grid = GRID_RULES[kind].fit(w)
    ours = np.abs(dequantize(quantize(w, grid), grid) - w)
    theirs = np.abs(decode(encode(w, GGMLType[kind]), GGMLType[kind]) - w)
    assert (ours <= theirs + 1e-6).all()


def test_int8_and_int4_are_the_grids_of_the_earlier_labs():
    w = weights(3)
    for rule, (q, scale) in {
        "int8": quantize_per_channel(w),
        "int4_g64": quantize_per_group(w),
    }.items():
        grid = GRID_RULES[rule].fit(w)
        assert np.array_equal(grid.scale, scale.reshape(grid.scale.shape).astype(f32))
        assert np.array_equal(quantize(w, grid), q)


def test_three_and_two_bits_divide_by_half_of_their_steps_and_cut_the_largest_weight():
    w = np.zeros((1, 64), f32)
    w[0, :3] = 4, -4, 1.4
    for name, points in {"int3_g64": [3, -4, 1], "int2_g64": [2, -4, 2]}.items():
        grid = GRID_RULES[name].fit(w)
        assert dequantize(quantize(w, grid), grid)[0, :3].tolist() == points


def test_at_three_and_two_bits_that_loses_less_of_the_trained_weights_than_an_exact_largest_weight(trained):
    w = trained.state_dict()["layers.1.mlp.fc1.weight"].numpy()

    def lost(grid):
        return float(((dequantize(quantize(w, grid), grid) - w) ** 2).sum())

    for name, limit in {"int3_g64": 3, "int2_g64": 1}.items():
        grid = GRID_RULES[name].fit(w)
        exact = grid._replace(scale=(grid.scale * -grid.low / limit).astype(np.float16).astype(f32))
        assert lost(grid) < lost(exact._replace(low=-limit, high=limit))


@every_rule
def test_a_grid_can_be_fitted_to_some_columns_alone(rule):
    """As GPTQ does, when it reaches a group."""
    w = weights(4, columns=256)
    size = rule.group_size or 256
    whole = rule.fit(w)
    for group in range(256 // size):
        part = rule.fit(w[:, group * size : (group + 1) * size])
        assert np.array_equal(part.scale[:, 0], whole.scale[:, group])
        assert np.array_equal(part.minimum[:, 0], whole.minimum[:, group])


@every_rule
def test_a_matrix_of_zeros_comes_back_as_zeros(rule):
    w = np.zeros((2, 64), f32)
    assert not dequantize(quantize(w, rule.fit(w)), rule.fit(w)).any()


@every_rule
def test_every_scale_and_minimum_is_a_number_of_float16(rule):
    grid = rule.fit(weights(5))
    for x in (grid.scale, grid.minimum):
        assert x.dtype == f32
        assert np.array_equal(x, x.astype(np.float16).astype(f32))


@every_rule
def test_a_scale_beyond_float16_is_refused(rule):
    with pytest.raises(QuantizationError, match="float16 ends at 65504; store this tensor as f32"):
        rule.fit(weights(6, spread=1e9))


@every_rule
def test_an_odd_row_or_a_vector_is_refused_with_what_to_do(rule):
    if rule.group_size:
        with pytest.raises(QuantizationError, match="do not divide into groups"):
            rule.fit(weights(7, columns=rule.group_size + 1))
    with pytest.raises(QuantizationError, match="1-D tensors stay f32"):
        rule.fit(weights(7)[0])


def test_targets_go_by_their_own_names():
    assert all(rule.name == name for name, rule in GRID_RULES.items())


# ---- blocks ----------------------------------------------------------------------------------------------------------


@st.composite
def grids(draw, kind):
    """Any grid that the type can hold, with any integers: far more than a rule would choose."""
    low, high = STORED[kind]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, groups = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    finite = rng.integers(0, 0x7C00, (2, rows, groups)) | rng.choice([0, 0x8000], (2, rows, groups))
    scale, minimum = finite.astype(np.uint16).view(np.float16).astype(f32)
    keep = kind == "Q4_1" and draw(st.booleans())
    q = rng.integers(low, high + 1, (rows, groups * 32)).astype(np.int16)
    return q, Grid(scale, minimum if keep else np.zeros_like(minimum), low, high)


@every_stored
@given(data=st.data())
def test_blocks_decode_to_what_the_grid_says_to_the_bit_here_and_in_the_official_package(kind, data):
    q, grid = data.draw(grids(kind))
    raw = encode_grid(q, grid, kind)
    assert np.array_equal(bits(decode(raw, GGMLType[kind])), bits(dequantize(q, grid)))
    assert np.array_equal(bits(gguf.quants.dequantize(raw, OFFICIAL[kind])), bits(dequantize(q, grid)))


@every_stored
@given(seed=st.integers(0, 2**32 - 1), power=st.integers(-12, 9))
def test_a_fitted_matrix_can_always_be_stored(kind, seed, power):
    w = weights(seed, spread=2.0**power)
    grid = GRID_RULES[kind].fit(w)
    q = quantize(w, grid)
    assert np.array_equal(bits(decode(encode_grid(q, grid, kind), GGMLType[kind])), bits(dequantize(q, grid)))


def test_a_block_of_q4_1_by_hand():
    """d = 0.5 is 38 00, m = -1 is bc 00; weight 0 in the low nibble of byte 0, weight 16 in the high one."""
    q = np.zeros((1, 32), np.int16)
    q[0, 0], q[0, 16], q[0, 31] = 3, 10, 15
    raw = encode_grid(q, Grid(f32([[0.5]]), f32([[-1]]), 0, 15), GGMLType.Q4_1)
    assert raw.tobytes().hex(" ") == "00 38 00 bc a3" + " 00" * 14 + " f0"


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (
            "Q4_1",
            {"scale": 0.1},
            r"a scale is 0\.1000000[0-9]*, and float16, which a block of Q4_1 stores",
        ),
        ("Q4_1", {"minimum": -0.1}, r"a minimum is -0.1000000[0-9]*, and float16"),
        ("Q8_0", {"scale": 1e6}, "a scale is 1000000, and float16"),
        ("Q8_0", {"scale": np.nan}, "a scale is nan"),
        ("Q4_0", {"minimum": -1.0}, "holds signed integers and no minimum.*use Q4_1"),
        ("Q8_0", {"low": 0, "high": 15}, "holds signed integers and no minimum.*use Q4_1"),
        ("Q4_1", {"low": -8, "high": 7}, "holds integers from 0 to 15, found some from -8 to 7"),
        ("Q4_0", {"low": -127, "high": 127}, "holds integers from -8 to 7, found some from -127 to 127"),
        ("Q4_0", {"q": 8}, "holds integers from -8 to 7, found some from -8 to 8"),
        ("Q4_1", {"size": 64}, "has a scale for 32 weights, the grid one for 64"),
        ("Q4_1", {"dtype": f32}, "q holds float32; expected integers"),
        ("Q4_K", {}, "no blocks of type Q4_K are made from a grid; there are Q4_0, Q4_1, Q5_0, Q5_1, Q8_0$"),
        ("F16", {}, "no blocks of type F16"),
    ],
)
def test_a_grid_that_a_type_cannot_hold_is_refused_and_says_why(kind, change, message):
    low, high = STORED.get(kind, (0, 15))
    size = change.get("size", 32)
    grid = Grid(
        np.full((2, 1), change.get("scale", 0.5), f32),
        np.full((2, 1), change.get("minimum", 0), f32),
        change.get("low", low),
        change.get("high", high),
    )
    q = np.full((2, size), change.get("q", 1), change.get("dtype", np.int16))
    with pytest.raises(QuantizationError, match=message):
        encode_grid(q, grid, kind)


@given(step=st.floats(-1, 1), seed=st.integers(0, 99))
def test_a_minimum_that_is_minus_scale_times_zero_point_need_not_fit_float16(step, seed):
    """11 bits of scale times 4 bits of zero point are up to 15 bits: what the bridge from Quark has to round."""
    scale = f32(np.float16(0.1 + step / 20))
    exact = f32(-scale * 7)
    assume(f32(np.float16(exact)) != exact)
    grid = Grid(np.full((1, 1), scale), np.full((1, 1), exact), 0, 15)
    with pytest.raises(QuantizationError, match="a minimum is"):
        encode_grid(np.zeros((1, 32), np.int16), grid, "Q4_1")


@pytest.mark.parametrize(("name", "high"), [("int8", 127), ("Q8_0", 127), ("int4_g64", 7)])
def test_a_scale_that_float16_rounds_down_far_makes_no_integer_beyond_the_grid(name, high):
    """absmax / high is 1.5 of float16's smallest steps less a little: the scale is one step, the quotient too large."""
    w = np.zeros((2, 64), np.float32)
    w[:, 0] = np.float32(1.45 * high * 2.0**-24) * np.float32([1, -1])
    grid = GRID_RULES[name].fit(w)
    assert float(grid.scale.max()) == 2.0**-24
    assert quantize(w, grid)[:, 0].tolist() == [high, -high]
