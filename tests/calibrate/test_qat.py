"""Training with rounded weights: the gradient passes, the result is on its grid, and a run that stops goes on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

from miniquant.calibrate import calibration_tokens, round_to_nearest
from miniquant.calibrate.qat import RECIPE, Ternary, Training, qat, straight_through
from miniquant.core.errors import QuantizationError
from miniquant.evaluate.quality import evaluate
from miniquant.models import minillama
from miniquant.models.minigpt import MiniGPTConfig, random_model
from miniquant.models.quantizer import frozen_layers
from miniquant.quantization.grids import GRID_RULES

SMALL = MiniGPTConfig(vocab_size=64, context=16, d_model=64, n_layers=1, n_heads=2, d_mlp=128)
SHORT = replace(RECIPE, steps=6, batch=2, warm_up=2)
IDS = np.random.default_rng(0).integers(0, 64, 200)


def test_the_estimator_gives_rounded_weights_and_the_gradient_of_the_float_ones():
    w = torch.randn(4, 128, generator=torch.Generator().manual_seed(0)).requires_grad_()
    factors = torch.arange(512.0).reshape(4, 128)
    rounded = straight_through(w, GRID_RULES["int2_g64"])
    (rounded * factors).sum().backward()
    scale = w.detach().reshape(4, 2, 64).abs().amax(dim=2) / 2
    levels = rounded.detach().reshape(4, 2, 64) / scale.half().float()[..., None]
    assert torch.allclose(levels, levels.round(), atol=1e-5) and levels.min() >= -2.001 and levels.max() <= 1.001
    assert torch.equal(w.grad, factors)


def test_the_result_is_on_the_grid_and_only_the_blocks_have_changed():
    model = random_model(config=SMALL)
    made = qat(model, IDS, "int3_g64", SHORT, progress=False)
    assert set(frozen_layers(made)) == {f"layers.0.{part}" for part in ("attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")}
    assert {layer.grid.low for layer in frozen_layers(made).values()} == {-4}
    assert {made.get_submodule(name).rule for name in frozen_layers(made)} == {GRID_RULES["int3_g64"]}
    before, after = model.state_dict(), made.state_dict()
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {"tok_emb.weight", "pos_emb.weight"}
    assert not torch.equal(
        round_to_nearest(model, "int3_g64").layers[0].mlp.fc1.weight, after["layers.0.mlp.fc1.weight"]
    )


@pytest.mark.parametrize("progress", [True, False])
def test_a_bar_is_shown_where_it_is_asked_for(progress, capsys):
    qat(random_model(config=SMALL), IDS, "int3_g64", SHORT, progress=progress)
    assert ("training" in capsys.readouterr().err) is progress


def test_a_run_that_was_stopped_ends_as_one_that_was_not():
    model = random_model(config=SMALL)
    whole, first, second = (Training(model, IDS, "int2_g64", SHORT) for _ in range(3))
    losses = whole.advance(99)
    assert len(losses) == whole.step == 6
    begun = first.advance(2)
    second.load_state_dict(first.state_dict())
    assert begun + second.advance(99) == losses
    for name, w in whole.student.state_dict().items():
        assert torch.equal(w, second.student.state_dict()[name])


def test_ternary_weights_are_what_tq1_0_and_tq2_0_store_without_any_change():
    w = np.random.default_rng(1).normal(0, 0.05, (8, 512)).astype(np.float32)
    w[0, :256] = 0
    rounded = straight_through(torch.from_numpy(w), Ternary()).numpy()
    for kind in (GGMLQuantizationType.TQ1_0, GGMLQuantizationType.TQ2_0):
        assert np.array_equal(dequantize(quantize(rounded, kind), kind), rounded)
    scale = np.abs(w).reshape(8, 2, 256).mean(axis=2)
    assert np.allclose(np.abs(rounded).reshape(8, 2, 256).max(axis=2), scale, rtol=1e-3)
    with pytest.raises(QuantizationError, match="256"):
        Ternary().fit(np.ones((1, 64), np.float32))


def test_a_few_steps_bring_trained_weights_nearer_with_three_levels(shallow):
    tokens, held_out = calibration_tokens(4).ravel(), calibration_tokens(8, 129)[1::4]
    made = qat(shallow, tokens, Ternary(), replace(SHORT, steps=8, batch=1, learning_rate=1e-3), progress=False)
    plain, better = (evaluate(m, held_out, shallow).kl.mean() for m in (round_to_nearest(shallow, Ternary()), made))
    assert better < 0.9 * plain


def test_a_llama_trains_too_and_its_head_stays(minillama_model):
    ids = calibration_tokens(2, 150, minillama.load_tokenizer()).ravel()
    made = qat(minillama_model, ids, Ternary(), replace(SHORT, steps=1, batch=1), progress=False)
    assert len(frozen_layers(made)) == 28
    assert not torch.equal(made.model.layers[0].mlp.up_proj.weight, minillama_model.model.layers[0].mlp.up_proj.weight)


def test_what_cannot_be_trained_is_refused(minillama_model):
    with pytest.raises(QuantizationError, match="has 17 tokens"):
        Training(random_model(config=SMALL), IDS[:17], "int3_g64")
    with pytest.raises(QuantizationError, match="no grid rule 'int1'"):
        Training(random_model(config=SMALL), IDS, "int1")
    with pytest.raises(QuantizationError, match="has no default; pass ids"):
        qat(minillama_model)
