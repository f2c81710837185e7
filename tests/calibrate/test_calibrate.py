"""What AWQ, SmoothQuant and planted outliers share: folds that change nothing, and layers that get no worse."""

import copy

import numpy as np
import pytest
import torch
from calibration import walk_linear_layers
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from miniquant.calibrate import awq, calibration_tokens, plant_outliers, round_to_nearest, smoothquant, w8a8
from miniquant.calibrate.awq import channel_scale, search_scale
from miniquant.calibrate.blocks import blocks_of
from miniquant.calibrate.folding import fold_into_norm, fold_into_rows
from miniquant.calibrate.inputs import get_weight, output_error
from miniquant.calibrate.rounding import RATIOS, clip_weights, fake_quantize_nearest, rows_made_worse
from miniquant.calibrate.smoothquant import smooth_scale
from miniquant.core.errors import QuantizationError
from miniquant.models import corpus
from miniquant.models.minigpt import random_model
from miniquant.quantization.grids import GRID_RULES

GROUPED = ("Q4_1", "Q4_0", "int3_g64", "int4_g64")


@pytest.fixture(scope="module")
def text():
    return calibration_tokens(6, 64)


@torch.no_grad()
def apart(model, other, tokens):
    ids = torch.from_numpy(tokens[:2])
    return float((model(ids) - other(ids)).abs().max())


# ---- what is seen ----------------------------------------------------------------------------------------------------


def test_the_inputs_are_those_that_hooks_on_a_whole_forward_pass_see():
    model, tokens = random_model(), np.random.default_rng(0).integers(0, 64, (11, 32))  # not a multiple of the batch
    seen = {}
    handles = [
        module.register_forward_pre_hook(lambda _, x, name=name: seen.update({name: x[0].reshape(-1, x[0].shape[-1])}))
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
    ]
    with torch.no_grad():
        model(torch.from_numpy(tokens))
    for handle in handles:
        handle.remove()
    found = list(walk_linear_layers(model, tokens))
    assert [name for name, _, _ in found] == list(seen)
    for name, layer, inputs in found:
        x = seen[name].double().numpy()
        assert layer is model.get_submodule(name)
        assert np.allclose(inputs.hessian, x.T @ x / len(x), rtol=1e-4, atol=1e-5)
        assert np.allclose(inputs.mean, np.abs(x).mean(0), rtol=1e-5)
        assert np.allclose(inputs.largest, np.abs(x).max(0), rtol=1e-5)


def test_the_hessian_gives_the_mean_square_error_of_the_output():
    random = np.random.default_rng(1)
    x, change = random.normal(size=(50, 8)), random.normal(size=(3, 8)).astype(np.float32)
    assert np.allclose(output_error(change, x.T @ x / 50), ((x @ change.T) ** 2).mean(axis=0))


def test_calibration_text_is_training_text_of_the_kind_that_is_measured():
    tokens, tokenizer = calibration_tokens(), corpus.load_tokenizer()
    assert tokens.shape == (128, 256) and tokens.dtype == np.int64
    text = "\n".join(corpus.training_documents("topics"))
    held_out = {p for doc in corpus.held_out_documents("topics") for p in corpus.paragraphs(doc) if len(p) > 200}
    for row in tokens[::16]:
        piece = max(tokenizer.decode(row.tolist(), skip_special_tokens=True).split("\n"), key=len).strip()
        assert piece in text
        assert not any(piece in paragraph for paragraph in held_out if len(piece) > 60)


def test_more_windows_than_the_text_has_are_refused():
    with pytest.raises(QuantizationError, match="tokens, which is not 1000000 windows of 256"):
        calibration_tokens(1_000_000)


def test_a_model_with_weights_that_are_not_finite_is_refused_by_the_layer():
    model = random_model()
    with torch.no_grad():
        model.layers[1].ln2.weight[3] = torch.nan
    with pytest.raises(QuantizationError, match=r"what reaches layers\.1\.mlp\.fc1 is not finite"):
        awq(model, np.zeros((1, 8), np.int64), "Q4_1")


@pytest.mark.parametrize(
    ("place", "weights"),
    [
        ("layers.1.attn.qkv", "ln1.weight"),
        ("layers.1.attn.proj", "attn.qkv.bias"),
        ("layers.1.mlp.fc2", "mlp.fc1.bias"),
    ],
)
def test_each_place_of_a_block_has_its_own_name_in_the_error(place, weights):
    model = random_model()
    with torch.no_grad():
        model.layers[1].get_parameter(weights).fill_(torch.nan)
    with pytest.raises(QuantizationError, match=f"what reaches {place} is not finite"):
        awq(model, np.zeros((1, 8), np.int64), "Q4_1")


def test_the_default_text_for_calibration_is_as_long_as_the_documentation_says():
    assert calibration_tokens().shape == (128, 256)


# ---- folds -----------------------------------------------------------------------------------------------------------


def test_a_fold_into_a_norm_by_hand():
    norm, linear = nn.LayerNorm(2), nn.Linear(2, 1)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([3.0, 1.0]))
        norm.bias.copy_(torch.tensor([1.0, 2.0]))
        linear.weight.copy_(torch.tensor([[5.0, 7.0]]))
        linear.bias.fill_(0.5)
    fold_into_norm(norm, [linear], np.array([2.0, 0.25]))
    assert norm.weight.tolist() == [1.5, 4.0] and norm.bias.tolist() == [0.5, 8.0]
    assert linear.weight.tolist() == [[10.0, 1.75]] and linear.bias.tolist() == [0.5]


def test_a_fold_into_v_touches_the_last_third_of_the_rows_and_their_bias():
    model = random_model()
    attention, scale = model.layers[0].attn, np.linspace(0.5, 2, 64).astype(np.float32)
    before = {name: p.detach().clone() for name, p in attention.named_parameters()}
    fold_into_rows(blocks_of(model).halves[0].rows, attention.proj, scale)
    assert torch.equal(attention.qkv.weight[:128], before["qkv.weight"][:128])
    assert torch.allclose(attention.qkv.weight[128:], before["qkv.weight"][128:] / torch.from_numpy(scale)[:, None])
    assert torch.allclose(attention.qkv.bias[128:], before["qkv.bias"][128:] / torch.from_numpy(scale))
    assert torch.allclose(attention.proj.weight, before["proj.weight"] * torch.from_numpy(scale))
    assert torch.equal(attention.proj.bias, before["proj.bias"])


@given(st.integers(0, 2**32 - 1))
def test_any_positive_scale_may_be_folded(seed):
    model, tokens = random_model(), np.arange(32)[None]
    twin, random = random_model(), np.random.default_rng(seed)
    for half in blocks_of(twin).halves:
        fold_into_norm(half.norm, half.entering.values(), np.exp(random.normal(size=64)))
        if half.rows:
            fold_into_rows(half.rows, half.leaving[1], np.exp(random.normal(size=64)))
    assert apart(model, twin, tokens) < 1e-4


def test_a_fold_of_fc1_into_fc2_would_be_wrong_under_gelu(shallow, text, folded):
    twin = copy.deepcopy(folded("SmoothQuant", False)[1])
    with torch.no_grad():
        for block in twin.layers:
            scale = torch.linspace(0.5, 2, 1024)
            block.mlp.fc1.weight /= scale[:, None]
            block.mlp.fc1.bias /= scale
            block.mlp.fc2.weight *= scale
    assert apart(shallow, twin, text) > 1


@pytest.mark.parametrize("scale", [np.zeros(64), -np.ones(64), np.ones(63), np.full(64, np.nan), np.full(64, np.inf)])
def test_a_scale_that_cannot_be_divided_by_is_refused(scale):
    block = random_model().layers[0]
    with pytest.raises(QuantizationError, match="positive number for each of 64 input channels"):
        fold_into_norm(block.ln1, [block.attn.qkv], scale)


ALGORITHMS = {"AWQ": lambda m, t: awq(m, t, clip=False), "SmoothQuant": smoothquant}


@pytest.fixture(scope="module")
def folded(shallow, text):
    """A model as trained or with planted outliers, and its twin by an algorithm, made once; neither may be changed."""
    made = {}

    def get(algorithm, planted):
        if (algorithm, planted) not in made:
            model = plant_outliers(shallow) if planted else shallow
            before = {name: p.clone() for name, p in model.state_dict().items()}
            twin = ALGORITHMS[algorithm](model, text)
            assert all(torch.equal(p, before[name]) for name, p in model.state_dict().items()), "the model was touched"
            made[algorithm, planted] = model, twin
        return made[algorithm, planted]

    return get


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("planted", [False, True], ids=["as trained", "planted"])
def test_before_rounding_the_model_computes_the_same(folded, text, algorithm, planted):
    model, twin = folded(algorithm, planted)
    before = model.state_dict()
    assert apart(model, twin, text) < 1e-4
    assert {n: p.shape for n, p in twin.state_dict().items()} == {n: p.shape for n, p in before.items()}
    moved = {n for n, p in twin.state_dict().items() if not torch.equal(p, before[n])}
    assert moved and not any("fc2" in name or "emb" in name or "ln_f" in name for name in moved)


# ---- AWQ -------------------------------------------------------------------------------------------------------------


def test_the_scale_of_a_silent_channel_is_small_and_positive():
    assert channel_scale(np.zeros(4), 0.7).tolist() == [1, 1, 1, 1]
    scale = channel_scale(np.array([0.0, 1.0, 100.0]), 0.5)
    assert (scale > 0).all() and np.isclose(scale.max() * scale.min(), 1)


@given(st.integers(0, 2**32 - 1), st.sampled_from(GROUPED))
def test_neither_the_scale_nor_clipping_ever_makes_a_layer_worse(seed, name):
    random, rule = np.random.default_rng(seed), GRID_RULES[name]
    x = random.normal(size=(100, 64)) * random.choice([0.1, 1, 20], 64)
    w = random.standard_t(3, (5, 64)).astype(np.float32)
    hessian, mean = x.T @ x / 100, np.abs(x).mean(axis=0)
    plain = output_error(fake_quantize_nearest(w, rule) - w, hessian)
    s = search_scale(w, mean, hessian, rule)
    assert output_error(fake_quantize_nearest(w * s, rule) / s - w, hessian).sum() <= plain.sum()
    clipped = clip_weights(w, hessian, rule)
    assert (output_error(fake_quantize_nearest(clipped, rule) - w, hessian) <= plain).all()  # row by row
    assert (np.abs(clipped) <= np.abs(w)).all()


def test_clipping_gives_up_a_weight_that_hardly_matters():
    """One weight of 8 among weights up to 1, with next to no input: of all parts of the range, the best is taken."""
    w = np.append(np.linspace(-1, 1, 31), 8).astype(np.float32)[None]
    hessian = np.diag(np.append(np.ones(31), 1e-4))
    clipped = clip_weights(w, hessian, GRID_RULES["Q4_1"])
    tried = [w.clip(-part, 8 * part) for part in np.float32(RATIOS)]
    *errors, found = (
        output_error(fake_quantize_nearest(v, GRID_RULES["Q4_1"]) - w, hessian)[0] for v in (*tried, clipped)
    )
    assert clipped[0, -1] < 8 and found == min(errors) < 0.9 * errors[0]


def test_each_group_is_clipped_by_its_own_ends():
    w = np.append(np.linspace(-1, 1, 31), 8).astype(np.float32)[None]
    h = np.diag(np.append(np.ones(31), 1e-4))
    both = clip_weights(np.hstack([w, 128 * w]), np.kron(np.eye(2), h), GRID_RULES["Q4_1"])
    alone = clip_weights(w, h, GRID_RULES["Q4_1"])
    assert np.array_equal(both, np.hstack([alone, 128 * alone]))


def test_a_row_whose_error_stays_the_same_is_not_worse():
    w = np.random.default_rng(0).normal(size=(3, 32)).astype(np.float32)
    far, rule = np.where(np.arange(3)[:, None] == 1, 2 * w, w), GRID_RULES["Q4_1"]
    assert rows_made_worse(far, w, w, np.eye(32), rule).tolist() == [False, True, False]
    assert rows_made_worse(w, far, w, np.eye(32), rule).tolist() == [False, False, False]


def test_a_clipped_model_still_computes_nearly_the_same(shallow, text):
    with torch.no_grad():
        ids = torch.from_numpy(text[:2])
        logits = [model(ids) for model in (shallow, awq(shallow, text, "int3_g64"))]
    assert (logits[0].argmax(-1) == logits[1].argmax(-1)).float().mean() > 0.9
    assert 1e-3 < (logits[0] - logits[1]).norm() / logits[0].norm() < 0.1


def test_clipping_knows_that_the_activations_were_divided():
    """In the first layer, whose inputs nothing has changed: no row gets worse by clipping after the fold."""
    model, tokens = plant_outliers(random_model()), np.random.default_rng(8).integers(0, 64, (16, 32))
    name, layer, seen = next(walk_linear_layers(model, tokens))
    errors = []
    for twin in (awq(model, tokens, "int3_g64"), awq(model, tokens, "int3_g64", clip=False)):
        s = (model.layers[0].ln1.weight / twin.layers[0].ln1.weight).detach().numpy()
        change = fake_quantize_nearest(get_weight(twin.get_submodule(name)), GRID_RULES["int3_g64"]) / s - get_weight(
            layer
        )
        errors.append(output_error(change[:128], seen.hessian))  # q and k: v is scaled once more, for proj
    assert s.max() > 2, "there is a scale to know about"
    assert (errors[0] <= errors[1] * (1 + 1e-6)).all() and errors[0].sum() < 0.99 * errors[1].sum()


def test_awq_saves_a_model_with_planted_outliers_and_hardly_helps_one_without(folded, text):
    for planted, least, most in ((True, 0, 0.1), (False, 0.8, 1)):
        model, twin = folded("AWQ", planted)
        plain = round_to_nearest(model)
        errors = np.zeros(2)
        for name, layer, seen in walk_linear_layers(model, text):
            if name.endswith(("qkv", "fc1")):
                # the twin's weights stand for weights times the scale that its norm was divided by
                norm = name.replace("attn.qkv", "ln1").replace("mlp.fc1", "ln2")
                gains = [m.get_submodule(norm).weight.detach().numpy() for m in (model, twin)]
                w, s = get_weight(layer), gains[0] / gains[1]
                mine = fake_quantize_nearest(get_weight(twin.get_submodule(name)), GRID_RULES["Q4_1"]) / s
                rows = slice(0, 512) if name.endswith("qkv") else slice(None)  # v is scaled once more, for proj
                both = mine, get_weight(plain.get_submodule(name))
                errors += [output_error((v - w)[rows], seen.hessian).sum() for v in both]
        assert least <= errors[0] / errors[1] <= most


# ---- planted outliers ------------------------------------------------------------------------------------------------


def test_planted_outliers_change_no_bit_of_the_logits_and_are_there(shallow, text):
    twin = plant_outliers(shallow)
    assert apart(shallow, twin, text) == 0
    for (name, _, seen), (_, _, before) in zip(walk_linear_layers(twin, text), walk_linear_layers(shallow, text)):
        ratio = seen.largest / before.largest
        planted = 5 if name.endswith(("qkv", "fc1")) else 0
        assert (ratio == 32).sum() == planted and (ratio == 1).sum() == len(ratio) - planted


def test_what_cannot_be_planted_is_refused():
    every = plant_outliers(random_model(), 64, 2).layers[0].ln1.weight / random_model().layers[0].ln1.weight
    assert every.tolist() == [2] * 64
    assert torch.equal(plant_outliers(random_model(), 0).layers[0].ln1.weight, random_model().layers[0].ln1.weight)
    first, again = (plant_outliers(random_model(), **seed).layers[0].ln1.weight for seed in ({}, {"seed": 0}))
    assert torch.equal(first, again)
    for channels, factor in ((65, 32), (-1, 32), (5, 0), (5, np.inf)):
        with pytest.raises(QuantizationError, match="nothing to plant"):
            plant_outliers(random_model(), channels, factor)


# ---- SmoothQuant -----------------------------------------------------------------------------------------------------


def test_smooth_scales_by_hand():
    w = np.float32([[4, -1, 0], [-2, 0.25, 0]])  # largest of the columns: 4, 1, 0
    assert smooth_scale(np.array([16.0, 9.0, 5.0]), w, 0.5).tolist() == [2, 3, 1]
    assert smooth_scale(np.array([16.0, 9.0, 5.0]), w, 1).tolist() == [16, 9, 1]
    assert smooth_scale(np.array([16.0, 0.0, 5.0]), w, 0).tolist() == [0.25, 1, 1]


def test_half_of_the_difficulty_leaves_activations_and_weights_alike_in_range(folded, text):
    _, twin = folded("SmoothQuant", True)
    for name, layer, seen in walk_linear_layers(twin, text):
        if name.endswith(("proj", "fc1")):  # v's rows are scaled once more, after qkv's columns were
            assert np.allclose(seen.largest, np.abs(get_weight(layer)).max(axis=0), rtol=1e-3), name


def test_eight_bits_for_both_need_smoothing_where_outliers_are_planted(shallow, folded, text):
    errors = [apart(shallow, w8a8(m), text) for m in (shallow, *folded("SmoothQuant", True))]
    assert errors[1] > 3 * errors[0] and errors[2] < 1.5 * errors[0]


def test_the_scale_of_a_token_is_float32_so_small_activations_keep_their_eight_bits():
    """A scale of 1e-9 would be 0 in float16."""
    model = random_model()
    layer, rounded = (m.layers[0].mlp.fc1 for m in (model, w8a8(model)))
    x = 1e-7 * torch.randn(4, layer.in_features, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected, found = x @ layer.weight.T, rounded(x) - rounded(0 * x)
    assert 0 < (found - expected).norm() < 0.05 * expected.norm()


def test_the_ends_of_the_strength_are_allowed_and_each_strength_gives_its_own_weights():
    tokens = np.random.default_rng(0).integers(0, 64, (2, 16))
    weights = [smoothquant(random_model(), tokens, strength).layers[0].attn.qkv.weight for strength in (0, 0.5, 1)]
    assert not any(torch.allclose(a, b) for a, b in ((weights[0], weights[1]), (weights[1], weights[2])))


def test_the_progress_bar_has_the_name_of_the_algorithm_and_is_shown_when_asked_for(capsys):
    smoothquant(random_model(), np.zeros((1, 8), np.int64))
    assert capsys.readouterr().err == ""
    smoothquant(random_model(), np.zeros((1, 8), np.int64), progress=True)
    assert "SmoothQuant: 100%" in (shown := capsys.readouterr().err) and "8/8" in shown


@pytest.mark.parametrize("strength", [-0.1, 1.1, np.nan])
def test_a_strength_beyond_the_ends_is_refused(strength):
    with pytest.raises(QuantizationError, match="from 0 to 1"):
        smoothquant(random_model(), np.zeros((1, 8), np.int64), strength)
