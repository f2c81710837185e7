"""MiniGPT in numpy: PyTorch's logits, and a cache that is laid open."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from held_out import kl, ours, windows

from miniquant.models.minigpt import MiniGPTConfig, random_model
from miniquant.models.numpy_gpt import NumpyGPT, gelu, plant_key_outliers, softmax


def state_of(model):
    return {name: w.detach().numpy() for name, w in model.state_dict().items()}


@pytest.fixture(scope="module")
def gpt(trained):
    return NumpyGPT(state_of(trained))


@pytest.fixture(scope="module")
def tokens():
    return windows(1)[0][:80]


class Plain:
    """A cache that keeps every key and value as it is."""

    def __init__(self, layers):
        self.keys, self.values = [[] for _ in range(layers)], [[] for _ in range(layers)]

    def __call__(self, layer, q, k, v):
        self.keys[layer].append(k)
        self.values[layer].append(v)
        keys, values = np.array(self.keys[layer]), np.array(self.values[layer])  # (tokens, heads, dims)
        parts = np.exp((keys * q).sum(axis=2) / math.sqrt(q.shape[1]))
        return ((parts / parts.sum(axis=0))[:, :, None] * values).sum(axis=0)


def test_the_logits_are_pytorch_s(trained, gpt, tokens):
    assert np.abs(gpt.logits(tokens) - ours(trained, tokens)).max() < 2e-4


def test_another_shape_gives_pytorch_s_logits_too():
    model = random_model(1, MiniGPTConfig(vocab_size=64, context=40, d_model=96, n_layers=3, n_heads=3, d_mlp=160))
    tokens = np.random.default_rng(0).integers(0, 64, 40)
    assert np.abs(NumpyGPT(state_of(model), n_heads=3).logits(tokens) - ours(model, tokens)).max() < 1e-5


def test_token_by_token_with_a_cache_of_your_own_gives_the_same_logits(gpt, tokens):
    cache, whole = Plain(gpt.n_layers), gpt.logits(tokens[:12])
    steps = [gpt.step(token, position, cache) for position, token in enumerate(tokens[:12])]
    assert np.abs(np.array(steps) - whole).max() < 1e-4


def test_what_a_cache_gives_back_is_what_tokens_attend_to(gpt, tokens):
    """Keys of zeros: every token attends to all tokens so far alike. Values of zeros: attention adds nothing."""
    seen = []
    gpt.logits(tokens, keep_k=lambda k: seen.append(k.shape) or k)
    assert seen == [(4, 80, 64)] * 4
    alike = gpt.logits(tokens, keep_k=np.zeros_like)
    assert np.abs(alike[0] - gpt.logits(tokens)[0]).max() < 1e-4  # the first token has nothing to choose from
    assert kl(gpt.logits(tokens), alike) > 0.1
    nothing = gpt.logits(tokens, keep_v=np.zeros_like)
    assert np.abs(nothing - gpt.logits(tokens, np.zeros_like, np.zeros_like)).max() < 1e-5


def coarse(x):
    """What a bad cache gives back."""
    return np.rint(2 * x) / 2


@pytest.mark.parametrize("groups", [(1, 1), (8, 8), (32, 1), (1, 32)])
def test_a_token_meets_only_full_groups_as_the_cache_gives_them_back(groups, gpt, tokens):
    """The same token by token, where each one looks at what has become full by then."""
    kept = Plain(gpt.n_layers)

    def attend(layer, q, k, v):
        kept(layer, q, k, v)
        keys, values = (
            np.array([coarse(x) if i < len(part[layer]) // group * group else x for i, x in enumerate(part[layer])])
            for part, group in zip((kept.keys, kept.values), groups, strict=True)
        )
        parts = softmax((keys * q).sum(axis=2).T / math.sqrt(q.shape[1]))  # (heads, tokens)
        return np.einsum("ht,thd->hd", parts, values)

    steps = [gpt.step(token, position, attend) for position, token in enumerate(tokens[:40])]
    assert np.abs(np.array(steps) - gpt.logits(tokens[:40], coarse, coarse, *groups)).max() < 2e-4


def test_a_larger_group_leaves_more_as_it_is(gpt, tokens):
    exact = gpt.logits(tokens)
    moved = [kl(exact, gpt.logits(tokens, coarse, coarse, group, group)) for group in (1, 8, 32, 81)]
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] < 1e-9


def test_planted_outliers_change_keys_and_no_logit(gpt, tokens):
    planted = NumpyGPT(plant_key_outliers(gpt.state))
    assert np.array_equal(planted.logits(tokens), gpt.logits(tokens))
    sizes = []
    for model in (gpt, planted):
        keys = []
        model.logits(tokens, keep_k=lambda k, keys=keys: keys.append(k) or k)
        sizes.append(np.sqrt(np.square(keys).mean(axis=2)))  # (layers, heads, dims)
    assert set((sizes[1] / sizes[0]).ravel().round(4).tolist()) == {1.0, 16.0}
    assert ((sizes[1] / sizes[0]) > 2).sum(axis=2).tolist() == [[2] * 4] * 4
    shared = [name for name, w in planted.state.items() if w is gpt.state[name]]
    assert len(shared) == len(gpt.state) - 2 * gpt.n_layers


def test_softmax_and_gelu_are_pytorch_s():
    x = np.random.default_rng(0).normal(0, 3, (4, 9)).astype(np.float32)
    assert np.abs(softmax(x) - torch.softmax(torch.from_numpy(x), -1).numpy()).max() < 1e-6
    expected = torch.nn.functional.gelu(torch.from_numpy(x), approximate="tanh").numpy()
    assert np.abs(gelu(x) - expected).max() < 1e-6


def test_what_does_not_fit_the_context_is_refused(gpt):
    with pytest.raises(ValueError, match="257 tokens do not fit the context of 256"):
        gpt.logits([1] * 257)
    with pytest.raises(ValueError, match="position 256 is not in the context of 256"):
        gpt.step(1, 256, Plain(4))
