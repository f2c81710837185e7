"""The logits of a reference are kept for the next evaluation, and never those of a model that was changed."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from miniquant.evaluate import kept
from miniquant.evaluate.quality import evaluate
from miniquant.models.minigpt import MiniGPT, random_model

WINDOWS = np.random.default_rng(0).integers(0, 64, (5, 9))


@pytest.fixture
def runs(monkeypatch):
    """How many batches went through a model, by the model."""
    counts = []
    forward = MiniGPT.forward
    monkeypatch.setattr(MiniGPT, "forward", lambda self, tokens: counts.append(self) or forward(self, tokens))
    kept._last.clear()
    return counts


def measured(model, reference, windows=WINDOWS, batch=2):
    return evaluate(model, windows, reference, batch)


def test_a_reference_is_run_once_for_several_models_and_the_figures_are_those_of_a_second_run(runs):
    reference, models = random_model(0), [random_model(1), random_model(2)]
    assert sum(weight.nbytes for weight in reference.parameters()) > 2**15 > WINDOWS.size * 64 * 4
    found = [measured(model, reference) for model in models]
    assert sum(model is reference for model in runs) == 3  # three batches
    for model, quality in zip(models, found, strict=True):
        kept._last.clear()
        assert (measured(model, reference).kl == quality.kl).all()


CHANGES = {
    "a weight": lambda model: model.layers[0].mlp.fc1.weight.data.mul_(1.5),
    "a weight by way of numpy": lambda model: model.ln_f.bias.detach().numpy().__setitem__(0, 3.0),
    "the heads": lambda model: setattr(model.layers[0].attn, "n_heads", 1),
    "an epsilon": lambda model: setattr(model.ln_f, "eps", 1.0),
    "a hook": lambda model: model.ln_f.register_forward_hook(lambda part, given, out: out * 2),
    "a function": lambda model: setattr(model.ln_f, "forward", lambda x: x),
    "a part of another class": lambda model: setattr(model, "ln_f", torch.nn.Identity()),
}


@pytest.mark.parametrize("largest", [kept.LARGEST, 2**15], ids=["known by weights", "known by hashes"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_reference_that_was_changed_is_run_again(change, largest, monkeypatch):
    monkeypatch.setattr(kept, "LARGEST", largest)
    model, reference = random_model(1), random_model(0)
    before = measured(model, reference).kl
    with torch.no_grad():
        change(reference)
    after = measured(model, reference).kl
    assert (after != before).all()
    kept._last.clear()
    assert (measured(model, reference).kl == after).all()


def test_other_windows_or_another_batch_are_run_again(runs):
    model, reference = random_model(1), random_model(0)
    ways = ((WINDOWS, 2), (WINDOWS[::-1].copy(), 2), (WINDOWS, 5), (WINDOWS[:, :5], 5))
    found = [measured(model, reference, *way).kl for way in ways]
    assert sum(each is reference for each in runs) == 3 + 3 + 1 + 1
    for way, kl in zip(ways, found, strict=True):
        kept._last.clear()
        assert (measured(model, reference, *way).kl == kl).all()


def test_an_equal_copy_of_the_reference_is_the_same_model(runs):
    model, reference = random_model(1), random_model(0)
    measured(model, reference)
    twin = copy.deepcopy(reference)
    measured(model, twin)
    assert not any(each is twin for each in runs)


def test_an_evaluation_that_was_interrupted_leaves_no_gap():
    model, reference = random_model(1), random_model(0)
    calls = iter([model, model])
    with pytest.raises(StopIteration):
        evaluate(lambda tokens: next(calls)(tokens), WINDOWS, reference, 2)
    found = measured(model, reference).kl
    kept._last.clear()
    assert (measured(model, reference).kl == found).all()


def test_logits_that_are_too_many_are_not_kept(runs, monkeypatch):
    monkeypatch.setattr(kept, "LARGEST", 5 * 8 * 64 * 4 - 1)
    model, reference = random_model(1), random_model(0)
    measured(model, reference), measured(model, reference)
    assert sum(each is reference for each in runs) == 6 and not kept._last


def test_a_model_of_transformers_is_kept_too_and_run_again_once_it_was_changed(minillama_model, monkeypatch):
    forward, counts = type(minillama_model).forward, []
    monkeypatch.setattr(
        type(minillama_model), "forward", lambda self, *a, **b: counts.append(self) or forward(self, *a, **b)
    )
    kept._last.clear()
    reference, model = copy.deepcopy(minillama_model), copy.deepcopy(minillama_model)
    with torch.no_grad():
        model.lm_head.weight *= 1.1
    found = [measured(model, reference).kl for _ in range(2)]
    assert sum(each is reference for each in counts) == 3  # three batches
    assert (found[0] == found[1]).all()
    with torch.no_grad():
        reference.lm_head.weight *= 1.1
    assert (measured(model, reference).kl < 1e-9).all()
    assert sum(each is reference for each in counts) == 6
