"""GPTQ: by hand on two columns, never worse than rounding to nearest, and honest about what it cannot do."""

import importlib

import numpy as np
import pytest
import torch
from calibration import walk_linear_layers
from hypothesis import given
from hypothesis import strategies as st
from thorough import THOROUGH

from miniquant.calibrate import calibration_tokens, gptq, round_to_nearest
from miniquant.calibrate.gptq import _never_worse, cholesky_of_inverse, damped, gptq_layer
from miniquant.calibrate.inputs import get_weight, output_error
from miniquant.core.errors import QuantizationError
from miniquant.evaluate.quality import evaluate
from miniquant.models.corpus import held_out_windows
from miniquant.models.minigpt import random_model
from miniquant.quantization.grids import GRID_RULES, Grid, QuantizedMatrix, dequantize

GROUPED = ("Q4_1", "Q4_0", "Q8_0", "int3_g64", "int4_g64", "int8")


class Whole:
    """Whole numbers from -8 to 7, whatever the weights are: a grid that one can round to in one's head."""

    name, group_size = "whole", 1

    def fit(self, w):
        return Grid(np.ones(w.shape, np.float32), np.zeros(w.shape, np.float32), -8, 7)


def correlated(width, rows=512, seed=0, mix=0.9):
    """XᵀX / n of inputs that resemble each other."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, width)) + mix * random.normal(size=(rows, 1)) * 3
    return x.T @ x / rows


def error(found, w, hessian):
    return output_error(dequantize(*found) - w, hessian)


def test_two_columns_by_hand():
    """w = [0.4, 0.4], H = [[1, 0.5], [0.5, 1]].

    H⁻¹ = [[4/3, -2/3], [-2/3, 4/3]] and U = [[√(4/3), -1/√3], [0, 1]], so U01 / U00 = -1/2. Column 0 goes to 0, 0.4 too
    low; column 1 takes up half of it, 0.4 + 0.2 = 0.6, and goes to 1. Rounding to nearest gives [0, 0].
    """
    w, hessian = np.float32([[0.4, 0.4]]), np.array([[1, 0.5], [0.5, 1]])
    u = cholesky_of_inverse(hessian)
    assert np.allclose(u, [[np.sqrt(4 / 3), -1 / np.sqrt(3)], [0, 1]], atol=1e-12)
    found = gptq_layer(w, hessian, Whole(), damping=0)
    assert found.q.tolist() == [[0, 1]]
    # errors: [-0.4, 0.6] gives 0.16 + 0.36 - 0.24 = 0.28; [-0.4, -0.4] gives 0.16 + 0.16 + 0.16 = 0.48
    assert np.allclose(error(found, w, hessian), 0.28)


def test_the_grid_of_each_later_group_is_fitted_to_what_the_columns_before_it_left():
    """Column 31 goes from 3.4375 to 3. H couples it to column 32 by 0.9, so that 30 becomes 30 + 0.9 × 0.4375."""
    w, hessian = np.zeros((1, 96), np.float32), np.eye(96)
    w[0, [0, 31, 32, 64]] = 15, 3.4375, 30, 45
    hessian[31, 32] = hessian[32, 31] = 0.9
    found = gptq_layer(w, hessian, GRID_RULES["Q4_1"], damping=0, act_order=False)
    assert found.grid.scale.tolist() == [[1, np.float16(30.39375 / 15), 3]]
    assert found.q[0, [0, 31, 32, 64]].tolist() == [15, 3, 15, 15]
    plain = gptq_layer(w, np.eye(96), GRID_RULES["Q4_1"], damping=0, act_order=False)
    assert plain.grid.scale.tolist() == [[1, 2, 3]]


def test_of_two_roundings_that_are_as_good_gptq_s_is_kept():
    w, grid = np.float32([[0.5], [0.25]]), Grid(np.ones((2, 1), np.float32), np.zeros((2, 1), np.float32), 0, 1)
    found, plain = (QuantizedMatrix(np.array(q), grid) for q in ([[1], [1]], [[0], [0]]))
    assert _never_worse(found, plain, w, np.eye(1)).q.tolist() == [[1], [0]]


def test_three_columns_by_hand_with_damping():
    """Damping of 0.5 × 2 makes U01 / U00 = -1/3 out of [[2, 1], [1, 2]], so 0.45 becomes 0.6; column 2 is alone."""
    w, hessian = np.float32([[0.45, 0.45, 1.4], [1.0, 0.49, -0.6]]), np.array([[2.0, 1, 0], [1, 2, 0], [0, 0, 2]])
    assert damped(hessian, 0.5).tolist() == [[3, 1, 0], [1, 3, 0], [0, 0, 3]]
    found = gptq_layer(w, hessian, Whole(), damping=0.5)
    assert found.q.tolist() == [[0, 1, 1], [1, 0, -1]]


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_the_factor_is_upper_triangular_and_squares_to_the_inverse(size):
    hessian = correlated(size) + 0.1 * np.eye(size)
    u = cholesky_of_inverse(hessian)
    assert np.array_equal(u, np.triu(u))
    assert np.allclose(u.T @ u @ hessian, np.eye(size), atol=1e-8)


@pytest.mark.parametrize("act_order", [False, True])
@pytest.mark.parametrize("rule", GROUPED)
def test_it_halves_the_error_of_correlated_inputs(rule, act_order):
    w = np.random.default_rng(1).normal(0, 0.02, (48, 256)).astype(np.float32)
    hessian = correlated(256)
    found = gptq_layer(w, hessian, GRID_RULES[rule], act_order=act_order)
    grid = GRID_RULES[rule].fit(w)
    plain = gptq_layer(w, np.eye(256), GRID_RULES[rule])  # independent inputs: nothing to make up for
    assert error(found, w, hessian).sum() < 0.5 * error(plain, w, hessian).sum()
    assert found.grid.scale.shape == grid.scale.shape and found.grid[2:] == grid[2:]
    assert found.grid.low <= found.q.min() and found.q.max() <= found.grid.high


@given(st.integers(0, 2**32 - 1), st.sampled_from(GROUPED), st.booleans(), st.booleans(), st.floats(0, 3))
def test_no_row_is_ever_worse_than_rounded_to_nearest(seed, rule, act_order, clip, mix):
    random = np.random.default_rng(seed)
    w = (random.normal(0, 0.02, (6, 64)) * random.choice([1, 30], 64)).astype(np.float32)
    hessian = correlated(64, random.integers(3, 200), seed, mix)
    rule = GRID_RULES[rule]
    found = gptq_layer(w, hessian, rule, act_order=act_order, clip=clip)
    plain = dequantize(gptq_layer(w, np.eye(64), rule).q, rule.fit(w))
    assert (error(found, w, hessian) <= output_error(plain - w, hessian) * (1 + 1e-12)).all()
    scales = np.stack([found.grid.scale, found.grid.minimum])
    assert np.array_equal(scales.astype(np.float16).astype(np.float32), scales), "a file stores float16"


def test_columns_with_large_inputs_are_rounded_first_and_lose_least():
    w = np.random.default_rng(2).normal(0, 0.02, (64, 128)).astype(np.float32)
    size = np.ones(128)
    size[-4:] = 20  # the last to be rounded without act-order: nothing is left to make up for them
    hessian = correlated(128) * np.outer(size, size)
    one, other = (error(gptq_layer(w, hessian, GRID_RULES["Q4_1"], act_order=how), w, hessian) for how in (True, False))
    assert one.sum() < 0.7 * other.sum()


def test_act_order_moves_no_column_to_another_group():
    """With inputs that are independent every order gives the same, if each column keeps its place and its group."""
    w = np.random.default_rng(3).normal(0, np.linspace(0.001, 1, 128), (16, 128)).astype(np.float32)
    hessian = np.diag(np.random.default_rng(4).uniform(1, 9, 128))
    a, b = (gptq_layer(w, hessian, GRID_RULES["Q4_1"], act_order=how) for how in (True, False))
    assert np.array_equal(a.q, b.q) and np.array_equal(a.grid.scale, b.grid.scale)


def test_a_block_of_columns_at_a_time_gives_what_one_column_at_a_time_gives(monkeypatch):
    w = np.random.default_rng(5).normal(0, 0.02, (16, 192)).astype(np.float32)
    hessian = correlated(192)
    whole = gptq_layer(w, hessian, GRID_RULES["int4_g64"])
    for block in (1, 64, 1000):
        monkeypatch.setattr(importlib.import_module("miniquant.calibrate.gptq"), "BLOCK", block)
        assert np.array_equal(gptq_layer(w, hessian, GRID_RULES["int4_g64"]).q, whole.q)


def test_a_dead_column_is_rounded_to_nearest_and_moves_nothing():
    w = np.random.default_rng(6).normal(0, 0.02, (16, 64)).astype(np.float32)
    hessian = correlated(64)
    hessian[5], hessian[:, 5] = 0, 0
    found = gptq_layer(w, hessian, GRID_RULES["Q4_1"], damping=0.01)
    plain = gptq_layer(w, np.eye(64), GRID_RULES["Q4_1"])
    assert np.array_equal(found.q[:, 5], plain.q[:, 5])
    dead = gptq_layer(w, np.zeros((64, 64)), GRID_RULES["Q4_1"])
    assert np.array_equal(dead.q, plain.q), "no column is alive: nothing but rounding is left"


def test_a_hessian_that_is_not_positive_definite_teaches_instead_of_giving_nan():
    w = np.ones((2, 64), np.float32)
    flat = np.ones((64, 64))  # all columns always equal: rank 1
    with pytest.raises(QuantizationError, match=r"64 columns is not positive definite .*more damping .* or more text"):
        gptq_layer(w, flat, GRID_RULES["Q4_1"], damping=0)
    assert np.isfinite(dequantize(*gptq_layer(w, flat, GRID_RULES["Q4_1"]))).all()
    with pytest.raises(QuantizationError, match="not positive definite"):
        cholesky_of_inverse(np.full((2, 2), np.nan))


def test_the_error_names_the_layer():
    with pytest.raises(QuantizationError, match=r"layers\.0\.attn\.qkv: the Hessian of 64 columns"):
        gptq(random_model(), np.ones((1, 4), np.int64), damping=0)


def test_each_layer_sees_the_layers_that_were_rounded_before_it():
    """The Hessian of every layer, taken from the finished model, is the one that its integers were chosen with."""
    model, tokens = random_model(), np.random.default_rng(7).integers(0, 64, (16, 32))
    finished = gptq(model, tokens)
    for name, layer, seen in walk_linear_layers(finished, tokens):
        again = gptq_layer(get_weight(model.get_submodule(name)), seen.hessian, GRID_RULES["Q4_1"])
        assert np.array_equal(again.q, layer.frozen.q), name


@pytest.fixture(scope="module")
def of_words(trained, shallow):
    """The trained model, whose first layer is enough on ordinary days."""
    return trained if THOROUGH else shallow


@pytest.fixture(scope="module")
def both(of_words):
    """The model by GPTQ and rounded to nearest, and the Hessian that each layer was rounded with."""
    before = {name: p.clone() for name, p in of_words.state_dict().items()}
    module, hessians = importlib.import_module("miniquant.calibrate.gptq"), []

    def remembered(w, hessian, *more, **options):
        hessians.append(hessian)
        return gptq_layer(w, hessian, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "gptq_layer", remembered)
        finished, plain = gptq(of_words, calibration_tokens(16)), round_to_nearest(of_words)
    assert all(torch.equal(p, before[name]) for name, p in of_words.state_dict().items()), "the model was touched"
    names = [name for name, layer in finished.named_modules() if hasattr(layer, "frozen")]
    return finished, plain, dict(zip(names, hessians, strict=True))


def test_it_halves_the_divergence_of_rounding_to_nearest_on_held_out_text(of_words, both):
    finished, plain, _ = both
    better, worse = (evaluate(model, held_out_windows()[::16], of_words).kl.mean() for model in (finished, plain))
    assert better <= 0.5 * worse


def test_no_layer_of_the_trained_model_is_worse_and_most_are_much_better(of_words, both):
    """With what reaches a layer, which a test above says of the Hessian."""
    finished, plain, hessians = both
    ratios = []
    for name, hessian in hessians.items():
        w = get_weight(of_words.get_submodule(name))
        errors = [output_error(get_weight(model.get_submodule(name)) - w, hessian) for model in (finished, plain)]
        assert (errors[0] <= errors[1]).all(), name
        ratios.append(errors[0].sum() / errors[1].sum())
    assert np.median(ratios) < 0.6 and max(ratios) < 0.9, ratios


def test_a_rule_that_does_not_exist_and_tokens_that_are_no_windows_are_refused():
    model = random_model()
    with pytest.raises(QuantizationError, match=r"no grid rule 'Q9'; there are Q8_0, Q4_0"):
        gptq(model, np.zeros((1, 8), np.int64), "Q9")
    for tokens in (np.zeros(8, np.int64), np.zeros((2, 8)), np.zeros((0, 8), np.int64)):
        with pytest.raises(QuantizationError, match="windows of token ids"):
            gptq(model, tokens)
    for tokens in (np.zeros((1, 33), np.int64), np.full((1, 8), 64), np.full((1, 8), -1)):
        with pytest.raises(QuantizationError, match="at most, from 0 to 63"):
            gptq(model, tokens)


def test_a_progress_bar_counts_the_layers_where_somebody_looks(capsys):
    tokens = np.zeros((1, 8), np.int64)
    gptq(random_model(), tokens)
    assert capsys.readouterr().err == "", "in a file or a notebook there is nobody to look"
    gptq(random_model(), tokens, progress=True)
    assert "GPTQ: 100%" in (shown := capsys.readouterr().err) and "8/8" in shown


def test_a_model_is_rounded_with_the_grids_that_clipping_chooses():
    model, tokens = random_model(), np.random.default_rng(0).integers(0, 64, (4, 32))
    clipped, whole = (gptq(model, tokens, "Q4_1", clip=clip) for clip in (True, False))
    name = "layers.0.mlp.fc1"
    first = {}
    for place, linear, seen in walk_linear_layers(model, tokens):
        if place == name:
            first = {
                clip: gptq_layer(get_weight(linear), seen.hessian, GRID_RULES["Q4_1"], clip=clip)
                for clip in (True, False)
            }
    assert not np.array_equal(dequantize(*first[True]), dequantize(*first[False]))
    assert not torch.equal(clipped.get_submodule(name).weight, whole.get_submodule(name).weight)
