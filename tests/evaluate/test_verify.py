"""Verification: nothing is lost between the fake-quantized and the reloaded model, and a loss would be seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from miniquant import (
    PRESETS,
    MiniquantError,
    fake_quantize_model,
    fake_quantize_state,
    preset,
    read_gguf_lite,
    write_gguf_lite,
)
from miniquant.evaluate.verify import (
    ACTIVATION_LIMIT,
    WEIGHT_LIMIT,
    late_rounding,
    layer_errors,
    layer_outputs,
    over_limit,
    tensor_errors,
)
from miniquant.models.minigpt import MiniGPT, random_model
from miniquant.models.pretrained import load_gguf_lite

QUANTIZED = [name for name, roles in PRESETS.items() if any(s.startswith("q") for s in roles.values())]


def tokens_for(model: MiniGPT, time: int = 64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(model.config.vocab_size, (1, min(time, model.config.context)), generator=generator)


@pytest.mark.parametrize("name", PRESETS)
def test_weights_and_activations_of_the_reloaded_trained_model_are_exactly_the_fake_quantized_ones(
    name, trained, tmp_path
):
    schemes = preset(name, trained)
    write_gguf_lite(tmp_path / "m", trained, schemes)
    fake, reloaded = fake_quantize_model(trained, schemes), load_gguf_lite(tmp_path / "m")
    errors = tensor_errors(fake.state_dict(), reloaded.state_dict())
    assert set(errors.values()) == {0.0}
    assert list(errors) == list(trained.state_dict())
    tokens = tokens_for(trained)
    errors = layer_errors(fake, reloaded, tokens)
    assert set(errors.values()) == {0.0}
    for a, b in zip(layer_outputs(fake, tokens).values(), layer_outputs(reloaded, tokens).values(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", QUANTIZED)
def test_the_quantized_model_does_differ_from_the_float_one(name, trained):
    """Otherwise the test above would prove nothing."""
    fake = fake_quantize_model(trained, preset(name, trained))
    assert max(tensor_errors(trained.state_dict(), fake.state_dict()).values()) > 1e-4
    assert max(layer_errors(trained, fake, tokens_for(trained)).values()) > 1e-2


@pytest.fixture(scope="module")
def late_losses(trained):
    """preset -> the largest error of a weight and of an activation when memory keeps the exact scale."""
    losses, tokens = {}, tokens_for(trained)
    for name in QUANTIZED:
        computed, stored = late_rounding(trained, preset(name, trained))
        models = []
        for state in (computed, stored):
            model = MiniGPT(trained.config).eval()
            model.load_state_dict(state)
            models.append(model)
        weights, activations = tensor_errors(computed, stored), layer_errors(*models, tokens)
        losses[name] = max(weights.values()), max(activations.values())
    return losses


@pytest.mark.parametrize("name", QUANTIZED)
def test_an_exact_scale_in_memory_breaks_the_limit_for_weights(name, late_losses):
    assert WEIGHT_LIMIT == 1e-6
    assert 10 * WEIGHT_LIMIT < late_losses[name][0] < 1e-3


def test_an_exact_scale_in_memory_breaks_the_limit_for_activations(late_losses):
    assert ACTIVATION_LIMIT == 1e-3
    assert max(activation for _, activation in late_losses.values()) > ACTIVATION_LIMIT
    assert min(activation for _, activation in late_losses.values()) > 0


def test_an_exact_scale_in_memory_is_off_by_at_most_a_2048th_of_each_weight(trained):
    computed, stored = late_rounding(trained, preset("int4-everything", trained))
    for name, w in computed.items():
        assert ((w - stored[name]).abs() <= w.abs() * 2.0**-11 * (1 + 1e-6)).all()


def test_the_trap_leaves_unquantized_tensors_alone():
    model = random_model()
    computed, stored = late_rounding(model, preset("int4", model))
    for name, w in fake_quantize_state(model, {}).items():
        assert torch.equal(computed[name], w) == (name not in preset("int4", model))
        if name not in preset("int4", model):
            assert torch.equal(stored[name], w)


# ---- the instruments -------------------------------------------------------------------------------------------------


def test_tensor_errors_are_the_largest_differences_by_name():
    a = {"x": np.array([1.0, 2.0], np.float32), "y": torch.zeros(2, 2), "none": np.zeros((0, 3), np.float32)}
    b = {"none": np.zeros((0, 3), np.float32), "y": torch.tensor([[0, 0.25], [-0.5, 0]]), "x": np.array([1.0, 2.0])}
    assert tensor_errors(a, b) == {"x": 0.0, "y": 0.5, "none": 0.0}
    assert list(tensor_errors(a, b)) == ["x", "y", "none"]


def test_a_nan_or_an_infinity_is_beyond_every_limit():
    for bad in (math.nan, math.inf, -math.inf):
        for a, b in ((bad, 1.0), (1.0, bad), (bad, bad)):
            with np.errstate(invalid="ignore"):
                errors = tensor_errors({"w": np.array([a, 0.0])}, {"w": np.array([b, 0.0])})
            assert over_limit(errors, 1e30) == ["w"]
    assert over_limit({"a": 1e-3, "b": 1.1e-3}, 1e-3) == ["b"]


def test_missing_unexpected_and_misshapen_tensors_are_named():
    w = np.zeros((2, 3), np.float32)
    with pytest.raises(MiniquantError, match="'b' is missing from what was found"):
        tensor_errors({"a": w, "b": w}, {"a": w})
    with pytest.raises(MiniquantError, match="'c' is not expected"):
        tensor_errors({"a": w}, {"a": w, "c": w})
    with pytest.raises(MiniquantError, match=r"'a': expected shape \(2, 3\), found \(3, 2\)"):
        tensor_errors({"a": w}, {"a": w.T})


def test_every_module_is_observed_in_the_order_of_computation_and_the_logits_last():
    model = random_model()
    tokens = tokens_for(model)
    outputs = layer_outputs(model, tokens)
    block = ["ln1", "attn.qkv", "attn.proj", "attn", "ln2", "mlp.fc1", "mlp.fc2", "mlp"]
    expected = ["tok_emb"]  # the positions are a slice of a weight: no module computes them
    for n in range(2):
        expected += [*(f"layers.{n}.{name}" for name in block), f"layers.{n}"]
    assert list(outputs) == [*expected, "ln_f", "logits"]
    with torch.no_grad():
        assert torch.equal(outputs["logits"], model(tokens))
        assert torch.equal(outputs["tok_emb"], model.tok_emb(tokens))
    assert not any(x.requires_grad for x in outputs.values())


def hooks_of(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


def test_the_hooks_are_removed_even_when_the_model_fails():
    model = random_model()
    layer_outputs(model, tokens_for(model))
    assert hooks_of(model) == 0
    with pytest.raises(IndexError):
        layer_outputs(model, torch.tensor([[9999]]))
    assert hooks_of(model) == 0
    with pytest.raises(ValueError, match="do not fit the context"):
        layer_outputs(model, torch.zeros(1, 99, dtype=torch.long))
    assert hooks_of(model) == 0


def test_outputs_are_copies_that_later_passes_and_in_place_changes_do_not_touch():
    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(x).mul_(0)

    torch.manual_seed(0)
    model = InPlace()
    x = torch.ones(1, 2)
    with torch.no_grad():
        assert torch.equal(layer_outputs(model, x)["linear"], model.linear(x))
    assert layer_outputs(model, x)["linear"].abs().sum() > 0


def test_an_error_in_one_layer_shows_in_it_and_after_it_and_not_before():
    model, other = random_model(), random_model()
    with torch.no_grad():
        other.layers[1].attn.qkv.bias += 0.1
    errors = layer_errors(model, other, tokens_for(model))
    first = list(errors).index("layers.1.attn.qkv")
    assert not any(list(errors.values())[:first])
    assert errors["layers.1.attn.qkv"] == pytest.approx(0.1, rel=1e-4)
    assert errors["logits"] > 0


def test_a_single_flipped_bit_in_the_file_is_seen(tmp_path):
    model = random_model()
    schemes = preset("int4", model)
    write_gguf_lite(tmp_path / "m", model, schemes)
    data = bytearray((tmp_path / "m").read_bytes())
    data[-200] ^= 1  # among the last weights
    (tmp_path / "m").write_bytes(data)
    errors = tensor_errors(fake_quantize_state(model, schemes), read_gguf_lite(tmp_path / "m"))
    assert len([name for name, error in errors.items() if error]) == 1
