"""Schemes, roles and presets."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from miniquant import (
    PRESETS,
    SCHEMES,
    QuantizationError,
    SchemeError,
    fake_quantize,
    fake_quantize_model,
    fake_quantize_state,
    preset,
)
from miniquant.formats.gguf_lite.types import DType
from miniquant.models.minigpt import random_model
from miniquant.quantization.schemes import role_of


def test_the_index_of_a_scheme_is_its_dtype_code():
    assert SCHEMES == ("f32", "f16", "q8_per_channel", "q4_per_group_64")
    assert [d.value for d in DType] == [0, 1, 2, 3]
    assert [d.scheme for d in DType] == list(SCHEMES)


def test_every_parameter_of_a_minigpt_has_its_role():
    roles = {name: role_of(name) for name in random_model().state_dict()}
    assert roles["tok_emb.weight"] == "token embedding"
    assert roles["pos_emb.weight"] == "position embedding"
    for name, role in roles.items():
        if "ln" in name:
            assert role == "norm"
        elif "attn" in name or "mlp" in name:
            assert role == name.rsplit(".", 1)[1]


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("transformer.wte.weight", "token embedding"),
        ("transformer.wpe.weight", "position embedding"),
        ("model.embed_tokens.weight", "token embedding"),
        ("position_embeddings.weight", "position embedding"),
        ("model.layers.0.input_layernorm.weight", "norm"),
        ("norm.weight", "norm"),
        ("h.0.ln_1.bias", "norm"),
        ("h.0.attn.c_attn.bias", "bias"),
        ("lm_head.weight", "weight"),
        ("weight", "weight"),
        ("bias", "bias"),
        ("", "weight"),
    ],
)
def test_names_of_other_models_have_their_roles(name, role):
    assert role_of(name) == role


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_names_matrices_only_and_leaves_norms_and_biases_alone(name):
    model = random_model()
    schemes = preset(name, model)
    for key, scheme in schemes.items():
        assert scheme in SCHEMES
        assert model.state_dict()[key].ndim == 2
        assert role_of(key) not in ("norm", "bias")
    assert preset(name, model.state_dict()) == schemes
    assert len(schemes) == (0 if name == "f32" else 7 + len(PRESETS[name]))


def test_the_recommended_preset_by_hand():
    schemes = preset("int4-small-embeddings", random_model())
    assert schemes["tok_emb.weight"] == "q8_per_channel"
    assert schemes["pos_emb.weight"] == "f16"
    assert {s for n, s in schemes.items() if n.startswith("layers.")} == {"q4_per_group_64"}


def test_an_unknown_preset_names_the_nearest_and_all_others():
    with pytest.raises(SchemeError) as caught:
        preset("int-4", random_model())
    assert "did you mean 'int4'" in str(caught.value)
    assert all(name in str(caught.value) for name in PRESETS)


def test_what_no_scheme_names_is_given_back_as_float32():
    state = {"a": np.array([1.0, 2.0], np.float16), "b": torch.tensor([0.1], dtype=torch.bfloat16)}
    fake = fake_quantize_state(state, {})
    assert fake["a"].dtype == np.float32
    assert fake["a"].tolist() == [1.0, 2.0]
    assert fake["b"].dtype == torch.float32
    assert torch.equal(fake["b"], state["b"].float())


def test_fake_quantize_state_does_per_tensor_what_fake_quantize_does():
    w = torch.randn(4, 128, generator=torch.Generator().manual_seed(0))
    state = {s: w for s in SCHEMES}
    fake = fake_quantize_state(state, {s: s for s in SCHEMES})
    assert torch.equal(fake["f32"], w)
    assert torch.equal(fake["f16"], w.half().float())
    assert torch.equal(fake["q8_per_channel"], fake_quantize(w, 8, per="channel"))
    assert torch.equal(fake["q4_per_group_64"], fake_quantize(w, 4, per="group", group_size=64))


def test_fake_quantize_state_shares_no_memory_with_the_model():
    for w in (torch.ones(2, 64), np.ones((2, 64), np.float32)):
        for scheme in SCHEMES:
            fake_quantize_state({"w": w}, {"w": scheme})["w"][...] = 9
            assert w[0, 0] == 1


def test_fake_quantize_model_is_a_copy_in_evaluation_mode():
    model = random_model().train()
    before = {name: w.clone() for name, w in model.state_dict().items()}
    schemes = preset("int4", model)
    twin = fake_quantize_model(model, schemes)
    assert not twin.training
    assert model.training
    assert type(twin) is type(model)
    expected = fake_quantize_state(model, schemes)
    for name, w in twin.state_dict().items():
        assert torch.equal(w, expected[name])
        assert torch.equal(model.state_dict()[name], before[name])
    assert not torch.equal(twin.state_dict()["layers.0.mlp.fc1.weight"], before["layers.0.mlp.fc1.weight"])


@pytest.mark.parametrize(
    ("weight", "scheme", "message"),
    [(1e6, "f16", "65504"), (float("nan"), "f32", "is nan"), (float("inf"), "f16", "is inf"), (1e9, "f16", "f32")],
)
def test_fake_quantize_state_refuses_what_the_writer_refuses_and_names_the_tensor(weight, scheme, message):
    for w in (np.array([0.0, weight], np.float32), torch.tensor([0.0, weight])):
        with pytest.raises(QuantizationError, match=message) as caught:
            fake_quantize_state({"some.weight": w}, {"some.weight": scheme})
        assert str(caught.value).startswith("'some.weight': the weight at flat index 1 is ")
