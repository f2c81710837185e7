"""MiniGPT, against GPT-2's arithmetic written out in numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from miniquant.models.minigpt import MiniGPT, MiniGPTConfig, parameter_shapes, random_model, with_weights

SMALL = MiniGPTConfig(vocab_size=11, context=7, d_model=12, n_layers=2, n_heads=3, d_mlp=20)


def gpt2(state: dict[str, np.ndarray], config: MiniGPTConfig, tokens: list[int]) -> np.ndarray:
    """Logits (time, vocab) in float64, one head and one position at a time."""

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        return centred / np.sqrt(variance + config.layer_norm_epsilon) * state[f"{name}.weight"] + state[f"{name}.bias"]

    def linear(x, name):
        return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    x = np.stack([state["tok_emb.weight"][t] + state["pos_emb.weight"][i] for i, t in enumerate(tokens)])
    width = config.d_model // config.n_heads
    for n in range(config.n_layers):
        q, k, v = np.split(linear(norm(x, f"layers.{n}.ln1"), f"layers.{n}.attn.qkv"), 3, axis=1)
        attended = np.zeros_like(x)
        for h in range(config.n_heads):
            columns = slice(h * width, (h + 1) * width)
            for i in range(len(tokens)):
                scores = np.array([q[i, columns] @ k[j, columns] for j in range(i + 1)]) / math.sqrt(width)
                weights = np.exp(scores - scores.max())
                attended[i, columns] = (weights / weights.sum()) @ v[: i + 1, columns]
        x = x + linear(attended, f"layers.{n}.attn.proj")
        hidden = gelu(linear(norm(x, f"layers.{n}.ln2"), f"layers.{n}.mlp.fc1"))
        x = x + linear(hidden, f"layers.{n}.mlp.fc2")
    return norm(x, "ln_f") @ state["tok_emb.weight"].T


def as_float64(model: MiniGPT) -> dict[str, np.ndarray]:
    return {name: w.double().numpy() for name, w in model.state_dict().items()}


@pytest.mark.parametrize("config", [SMALL, MiniGPTConfig(64, 32, 64, 2, 2, 128), MiniGPTConfig(5, 3, 4, 1, 1, 2, 0.1)])
def test_the_logits_equal_gpt2s_arithmetic_written_out_in_numpy(config):
    model = random_model(1, config)
    tokens = torch.randint(config.vocab_size, (2, config.context), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits = model(tokens).numpy()
    for row, expected in zip(tokens.tolist(), logits, strict=True):
        assert np.abs(gpt2(as_float64(model), config, row) - expected).max() < 1e-4


def test_the_trained_models_logits_equal_the_same_arithmetic(trained):
    tokens = [0, 17, 256, 1023, 5, 5]
    with torch.no_grad():
        logits = trained(torch.tensor([tokens])).numpy()[0]
    assert np.abs(gpt2(as_float64(trained), trained.config, tokens) - logits).max() < 1e-3


def test_a_later_token_does_not_change_earlier_logits():
    model = random_model(2, SMALL)
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    with torch.no_grad():
        before = model(tokens)
        for at in range(1, 7):
            changed = tokens.clone()
            changed[0, at] = 9
            after = model(changed)
            assert torch.equal(before[0, :at], after[0, :at])
            assert not torch.equal(before[0, at:], after[0, at:])


def test_a_shorter_input_gives_the_first_rows_of_a_longer_one():
    model = random_model(2, SMALL)
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    with torch.no_grad():
        whole = model(tokens)
        for time in range(1, 8):
            assert torch.allclose(model(tokens[:, :time]), whole[:, :time], atol=1e-5)


def test_the_rows_of_a_batch_do_not_see_each_other():
    model = random_model(2, SMALL)
    tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])
    with torch.no_grad():
        assert torch.allclose(model(tokens)[1], model(tokens[1:])[0], atol=1e-6)


def test_the_names_and_shapes_are_the_courses_own():
    d, m = 12, 20
    expected = {"tok_emb.weight": (11, d), "pos_emb.weight": (7, d)}
    for n in range(2):
        for name, shape in {
            "ln1.weight": (d,),
            "ln1.bias": (d,),
            "attn.qkv.weight": (3 * d, d),
            "attn.qkv.bias": (3 * d,),
            "attn.proj.weight": (d, d),
            "attn.proj.bias": (d,),
            "ln2.weight": (d,),
            "ln2.bias": (d,),
            "mlp.fc1.weight": (m, d),
            "mlp.fc1.bias": (m,),
            "mlp.fc2.weight": (d, m),
            "mlp.fc2.bias": (d,),
        }.items():
            expected[f"layers.{n}.{name}"] = shape
    expected |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
    assert [(name, tuple(w.shape)) for name, w in MiniGPT(SMALL).state_dict().items()] == list(expected.items())
    assert list(parameter_shapes(SMALL).items()) == list(expected.items())


def test_a_model_is_made_with_given_weights_of_its_own_and_no_random_number_is_drawn():
    weights = random_model(3, SMALL).state_dict()
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, second = (with_weights(SMALL, weights) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert not first.training
    with torch.no_grad():
        first.tok_emb.weight.zero_()
    for name, w in second.state_dict().items():
        assert torch.equal(w, weights[name])
    assert all(w.requires_grad for w in second.parameters())
    del weights["ln_f.bias"]
    with pytest.raises(RuntimeError, match=r"ln_f\.bias"):
        with_weights(SMALL, weights)


def test_the_head_is_the_token_embedding_and_is_not_stored_twice():
    model = random_model(0, SMALL)
    assert not any("head" in name for name in model.state_dict())
    tokens = torch.tensor([[1, 2]])
    with torch.no_grad():
        before = model(tokens)
        model.tok_emb.weight[10] *= 2  # a token that is not in the input: only its logit changes
        after = model(tokens)
    assert torch.allclose(after[..., 10], 2 * before[..., 10])
    assert torch.equal(after[..., :10], before[..., :10])


def test_the_default_is_three_and_a_half_million_parameters_in_rows_of_256():
    config = MiniGPTConfig()
    model = MiniGPT(config)
    d, m, layers = 256, 1024, 4
    by_hand = 1024 * d + 256 * d + layers * (4 * d + 3 * d * d + 3 * d + d * d + d + m * d + m + d * m + d) + 2 * d
    assert sum(p.numel() for p in model.parameters()) == by_hand == 3_487_232
    assert all(p.shape[1] % 256 == 0 for p in model.parameters() if p.ndim == 2)


def test_weights_start_as_gpt2s_do():
    torch.manual_seed(0)
    state = MiniGPT().state_dict()
    for name, w in state.items():
        if name.endswith("bias"):
            assert not w.any()
        elif w.ndim == 1:
            assert (w == 1).all()
        else:
            residual = name.endswith(("attn.proj.weight", "mlp.fc2.weight"))
            expected = 0.02 / math.sqrt(8) if residual else 0.02
            assert abs(w.std().item() / expected - 1) < 0.02


def test_a_random_model_is_the_same_for_the_same_seed_and_has_no_part_at_its_default():
    a, b, c = random_model(1), random_model(1), random_model(2)
    assert not a.training
    for name, w in a.state_dict().items():
        assert torch.equal(w, b.state_dict()[name])
        assert not torch.equal(w, c.state_dict()[name])
        assert w.std() > 0.01


def test_greedy_continues_with_the_likeliest_tokens_and_slides_over_a_full_context():
    model = random_model(3, SMALL)
    tokens = [1, 2, 3, 4, 5]
    continued = model.greedy(tokens, 6)
    assert len(continued) == 6
    everything = list(tokens)
    for token in continued:
        with torch.no_grad():
            assert token == int(model(torch.tensor([everything[-7:]]))[0, -1].argmax())
        everything.append(token)
    assert tokens == [1, 2, 3, 4, 5]
    assert model.greedy(tokens, 0) == []


def test_too_many_tokens_and_heads_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="8 tokens do not fit the context of 7"):
        random_model(0, SMALL)(torch.zeros(1, 8, dtype=torch.long))
    with pytest.raises(ValueError, match="d_model 10 must be a multiple of n_heads 3"):
        MiniGPTConfig(d_model=10, n_heads=3)


def test_a_config_survives_its_own_dict():
    assert MiniGPTConfig(**SMALL.to_dict()) == SMALL
