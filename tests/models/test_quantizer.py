"""Quantized layers: replaced in place, rounded as their specification says, frozen in place."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
import torch
from torch import nn

from miniquant.core.errors import MiniquantError, QuantizationError, SchemeError
from miniquant.models.minigpt import random_model
from miniquant.models.quantizer import QuantizedLinear, freeze, frozen_layers, quantize_linear_layers, quantized_layers
from miniquant.quantization.config import Config, QuantizationConfig
from miniquant.quantization.grids import GRID_RULES, QuantizedMatrix, dequantize
from miniquant.quantization.observers import Percentile
from miniquant.quantization.spec import Dtype, QSchemeType, QuantizationSpec, ScaleType

INT8 = QuantizationSpec(Dtype.int8)
UINT4 = QuantizationSpec(Dtype.uint4, False, qscheme=QSchemeType.per_group, group_size=32)
TOKENS = torch.arange(32)[None]


def quantize(model, weight=UINT4, calibration=None, input=None, output=None, layers=(), exclude=()):
    layers = {name: QuantizationConfig(rule) for name, rule in dict(layers).items()}
    return quantize_linear_layers(
        model, Config(QuantizationConfig(weight, input, output), layers, exclude), calibration
    )


@pytest.fixture
def model():
    return random_model()


def fake(model, spec):
    """The model with its linear layers rounded, made without the quantizer."""
    twin = copy.deepcopy(model)
    for layer in twin.layers:
        for linear in (layer.attn.qkv, layer.attn.proj, layer.mlp.fc1, layer.mlp.fc2):
            w = linear.weight.detach().numpy()
            grid = spec.fit(w)
            linear.weight.data = torch.from_numpy(dequantize(spec.quantize(w, grid), grid))
    return twin


@pytest.mark.parametrize("dtype", Dtype, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("scheme", QSchemeType, ids=lambda scheme: scheme.name)
@torch.no_grad()
def test_the_forward_pass_computes_with_rounded_weights_before_and_after_freezing(model, dtype, scheme):
    spec = QuantizationSpec(dtype, qscheme=scheme, group_size=32 if scheme == QSchemeType.per_group else None)
    expected = fake(model, spec)(TOKENS)
    assert not torch.equal(expected, model(TOKENS))
    quantized = quantize(model, spec)
    assert quantized is model
    assert torch.equal(quantized(TOKENS), expected)
    assert torch.equal(freeze(quantized)(TOKENS), expected)


def test_names_shapes_and_values_of_the_state_dict_stay_until_freezing(model):
    before = {name: w.clone() for name, w in model.state_dict().items()}
    quantize(model)
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], w) for name, w in before.items())


def test_freezing_leaves_integers_and_what_they_stand_for_in_the_model_itself(model):
    names = list(model.state_dict())
    quantize(model).train()
    assert all(layer.frozen is None for layer in quantized_layers(model).values())
    frozen = freeze(model)
    assert frozen is model and not model.training
    assert list(frozen.state_dict()) == names
    for layer in quantized_layers(frozen).values():
        q, grid = layer.frozen
        assert q.min() >= 0 and q.max() <= 15
        assert np.array_equal(dequantize(q, grid), layer.weight.numpy())
        scale, zero_point = (x[..., None] for x in layer.affine)
        by_zero_point = (q.reshape(len(q), -1, 32) - zero_point) * scale
        assert np.allclose(by_zero_point.reshape(q.shape), layer.weight.numpy(), atol=1e-4)


def test_freezing_twice_changes_nothing(model):
    once = copy.deepcopy(freeze(quantize(model)))
    twice = freeze(model)
    assert all(torch.equal(w, twice.state_dict()[name]) for name, w in once.state_dict().items())
    assert all(np.array_equal(a.frozen.q, b.frozen.q) for a, b in zip(
        quantized_layers(once).values(), quantized_layers(twice).values(), strict=True))  # fmt: skip


def test_a_minigpt_has_sixteen_quantized_layers_and_a_float_embedding(trained):
    frozen = freeze(quantize(copy.deepcopy(trained)))
    assert len(quantized_layers(frozen)) == 16
    changed = {name for name, w in frozen.state_dict().items() if not torch.equal(w, trained.state_dict()[name])}
    assert changed == {f"{name}.weight" for name in quantized_layers(frozen)}


def test_excluded_layers_stay_and_others_may_have_a_rule_of_their_own(model):
    quantize(model, exclude=["*.fc2"], layers={"layers.1.*": INT8, "layers.0.attn.proj": GRID_RULES["Q4_0"]})
    layers = quantized_layers(model)
    assert {name: layer.rule.name.split()[0] for name, layer in layers.items()} == {
        "layers.0.attn.qkv": "uint4", "layers.0.attn.proj": "Q4_0", "layers.0.mlp.fc1": "uint4",
        "layers.1.attn.qkv": "int8", "layers.1.attn.proj": "int8", "layers.1.mlp.fc1": "int8",
    }  # fmt: skip
    assert type(model.layers[0].mlp.fc2) is nn.Linear


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
@torch.no_grad()
def test_rounded_weights_are_float32_in_a_model_of_any_dtype_and_outputs_keep_the_input_s(dtype):
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(64, 4)).to(dtype), torch.randn(5, 64).to(dtype)
    bias = model[0].bias.clone()
    quantized = quantize(model)
    layer = (frozen := freeze(quantized))[0]
    assert layer.weight.dtype == torch.float32
    assert np.array_equal(layer.weight.numpy(), dequantize(*layer.frozen))
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    expected = (x.to(wide) @ layer.weight.T.to(wide) + bias.to(wide)).to(dtype)
    found = frozen(x)
    assert found.dtype == dtype
    assert torch.allclose(found, expected, rtol=1e-2 if dtype == torch.bfloat16 else 2e-3, atol=1e-3)
    assert torch.equal(quantized(x), found)
    if dtype in (torch.bfloat16, torch.float16):  # what the dtype of the model would have made of them
        assert not torch.equal(layer.weight.to(dtype).float(), layer.weight)


def test_a_frozen_layer_that_was_cast_or_changed_is_refused_and_one_that_thawed_is_too(model):
    thawed = quantize(model)
    frozen = freeze(copy.deepcopy(thawed))
    assert {n: (q.shape, grid) for n, (q, grid) in frozen_layers(frozen).items()} == {
        n: (layer.frozen.q.shape, layer.frozen.grid) for n, layer in quantized_layers(frozen).items()
    }
    with pytest.raises(SchemeError, match=r"'layers\.0\.attn\.qkv' still rounds float weights .* freeze it first"):
        frozen_layers(thawed)
    with pytest.raises(SchemeError, match=r"other weights than when it was frozen \(they are bfloat16 now\); freeze"):
        frozen_layers(copy.deepcopy(frozen).to(torch.bfloat16))
    with pytest.raises(SchemeError, match=r"'layers\.0\.attn\.qkv' has other weights .*\(they are float32 now\)"):
        frozen_layers(copy.deepcopy(frozen).to(torch.bfloat16).float())
    (changed := copy.deepcopy(frozen)).layers[1].mlp.fc2.weight.data[0, 0] += 1
    with pytest.raises(SchemeError, match=r"'layers\.1\.mlp\.fc2' has other weights than when it was frozen"):
        frozen_layers(changed)


# ---- inputs ----------------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_dynamic_inputs_are_rounded_anew_in_every_call_like_llama_cpp_s_q8_1():
    """By hand: each group of 32 inputs has its own scale, max / 127.5 in float16."""
    model = nn.Sequential(nn.Linear(64, 3, bias=False))
    w = model[0].weight.detach().clone()
    by_32 = QuantizationSpec(Dtype.int8, qscheme=QSchemeType.per_group, group_size=32, is_dynamic=True)
    quantize(model, GRID_RULES["Q8_0"], input=by_32)
    rounded = model[0].weight.numpy()
    rounded = dequantize(model[0].integers(), model[0].grid)
    for spread in (1, 100):
        x = torch.randn(2, 5, 64, generator=torch.Generator().manual_seed(0)) * spread
        groups = x.reshape(10, 2, 32)
        scale = (groups.abs().amax(2, keepdim=True) / 127.5).half().float()
        on_grid = ((groups / scale).round().clamp(-128, 127) * scale).reshape(2, 5, 64)
        assert torch.allclose(model(x), on_grid @ torch.from_numpy(rounded).T, rtol=1e-5, atol=1e-5 * spread)
        assert not torch.allclose(model(x), x @ torch.from_numpy(rounded).T, rtol=1e-5, atol=1e-5 * spread)
    assert torch.equal(model[0].weight, w)


@torch.no_grad()
def test_static_inputs_keep_the_range_of_the_calibration_and_clip_what_lies_beyond():
    model = nn.Sequential(nn.Linear(2, 1, bias=False))
    model[0].weight.data = torch.tensor([[127.0, 127.0]])
    spec = QuantizationSpec(Dtype.int8, qscheme=QSchemeType.per_tensor, scale_type=ScaleType.float32)
    quantize(
        model, GRID_RULES["int8"], input=spec, calibration=[torch.tensor([[0.5, -1.0]]), torch.tensor([[127.5, 0]])]
    )
    assert model[0].input_affine.scale.tolist() == [[1.0]]
    assert model(torch.tensor([[3.4, 0.0], [1e6, 0.0], [-1e6, 2.6]])).tolist() == [[3 * 127], [127 * 127], [-125 * 127]]


@torch.no_grad()
def test_outputs_are_rounded_to_a_range_of_their_own():
    """Static: the range is that of the outputs on the calibration. Dynamic: that of each call."""
    made = {}
    for dynamic in (False, True):
        model = nn.Sequential(nn.Linear(2, 2, bias=False))
        model[0].weight.data = torch.tensor([[127.0, 0.0], [0.0, 127.0]])
        spec = QuantizationSpec(
            Dtype.int8, qscheme=QSchemeType.per_tensor, scale_type=ScaleType.float32, is_dynamic=dynamic
        )
        quantize(model, GRID_RULES["int8"], output=spec, calibration=[torch.tensor([[1.0, 255 / 254]])])
        made[dynamic] = model
    assert made[False][0].output_affine.scale.tolist() == [[1.0]] and made[False][0].input_affine is None
    x = torch.tensor([[0.004, 2.0]])  # 0.508 and 254
    assert made[False](x).tolist() == [[1.0, 127.0]]
    scale = 2 * 254 / 255
    assert made[True](x).tolist() == [[0.0, pytest.approx(127 * scale)]]
    assert made[True][0].output_affine is None


def test_the_observer_of_inputs_decides_their_range():
    model = nn.Sequential(nn.Linear(1, 1))
    spec = QuantizationSpec(Dtype.int8, qscheme=QSchemeType.per_tensor, observer_cls=functools.partial(Percentile, 90))
    quantize(model, INT8, input=spec, calibration=[torch.arange(-100.0, 101.0)[:, None]])
    assert model[0].input_affine.scale[0, 0] == pytest.approx(80 / 127.5, rel=1e-3)


@pytest.mark.parametrize(("calibration", "message"), [(None, "need calibration"), ([], "calibration reached")])
def test_static_inputs_need_calibration_and_without_it_the_model_stays_as_it_was(model, calibration, message):
    spec = QuantizationSpec(Dtype.int8, qscheme=QSchemeType.per_tensor)
    with pytest.raises(MiniquantError, match=message):
        quantize(model, input=spec, calibration=calibration)
    assert not quantized_layers(model)
    assert not any(module._forward_pre_hooks for module in model.modules())


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_a_model_that_is_quantized_already_or_has_nothing_to_quantize_is_refused(model):
    quantize(model)
    with pytest.raises(SchemeError, match="quantized already"):
        quantize(model)
    with pytest.raises(SchemeError, match=r"Sequential has no nn\.Linear inside"):
        quantize(nn.Sequential(nn.ReLU()))
    with pytest.raises(SchemeError, match="nothing to freeze; call quantize_model"):
        freeze(random_model())


def test_a_layer_that_does_not_fit_is_named_and_the_model_stays_as_it_was():
    model = nn.Sequential(nn.Linear(32, 33), nn.Linear(33, 2))
    with pytest.raises(QuantizationError, match="layer '1': rows of 33 weights do not divide into groups of 32"):
        quantize(model)
    assert not quantized_layers(model)


def test_weights_that_another_module_uses_too_are_refused_until_excluded():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.fc, self.head = nn.Embedding(8, 32), nn.Linear(32, 32), nn.Linear(32, 8, bias=False)
            self.head.weight = self.emb.weight

    with pytest.raises(SchemeError, match=r"the weights of 'head' are those of 'emb' too.*exclude it"):
        quantize(Tied())
    assert list(quantized_layers(quantize(Tied(), exclude=["head"]))) == ["fc"]


def test_a_layer_says_what_it_is():
    layer = QuantizedLinear(nn.Linear(32, 4), UINT4, None)
    assert repr(layer) == "QuantizedLinear(32 -> 4, uint4 asymmetric per_group 32, float16 scales)"
    layer.freeze()
    assert repr(layer).endswith("frozen)")


def test_a_layer_made_from_given_integers_is_frozen_and_fits_no_grid():
    class Unfit:
        name, group_size = "unfit", 32

        def fit(self, w):
            raise AssertionError("a grid was fitted")

    q = np.arange(-64, 64, dtype=np.int16).reshape(4, 32)
    grid = GRID_RULES["Q8_0"].fit(np.random.default_rng(0).standard_normal((4, 32)).astype(np.float32))
    linear = nn.Linear(32, 4)
    layer = QuantizedLinear(linear, Unfit(), quantized=QuantizedMatrix(q, grid))
    assert layer.frozen == (q, grid) and layer.grid is grid
    assert np.array_equal(layer.weight.numpy(), dequantize(q, grid))
    assert not layer.weight.requires_grad and layer.bias is linear.bias
