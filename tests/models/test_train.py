"""The recipe: its schedule, its optimizer, and three steps of the real command."""

from __future__ import annotations

import json
import runpy
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM

from miniquant.models import corpus, minillama
from miniquant.models.minigpt import MiniGPT, MiniGPTConfig
from miniquant.models.train import RECIPES, Recipe, learning_rate, main, make_optimizer, train, train_tokenizer

SMALL = MiniGPTConfig(vocab_size=16, context=8, d_model=16, n_layers=1, n_heads=2, d_mlp=32)


def test_the_learning_rate_warms_up_in_a_line_and_goes_down_in_one_cosine():
    recipe = Recipe(steps=300, warm_up=100, learning_rate=1.0, final_rate=0.02)
    rates = [learning_rate(step, recipe) for step in range(300)]
    assert rates[:100] == pytest.approx([(step + 1) / 100 for step in range(100)])
    assert rates[100] == pytest.approx(1.0)
    assert rates[150] == pytest.approx(0.02 + 0.98 * (1 + 0.5**0.5) / 2)  # a quarter of the way: cos 45°
    assert rates[200] == pytest.approx(0.51)  # half of the way: halfway between 1 and 0.02
    assert rates[299] == pytest.approx(0.02, abs=1e-3)
    assert all(a > b for a, b in pairwise(rates[100:]))


def test_the_schedule_works_without_a_warm_up_and_when_it_is_all_warm_up():
    assert learning_rate(0, Recipe(steps=10, warm_up=0, learning_rate=1.0)) == 1.0
    assert learning_rate(2, Recipe(steps=3, warm_up=100, learning_rate=1.0)) == 0.03


def test_matrices_decay_and_norms_and_biases_do_not():
    model = MiniGPT(SMALL)
    decaying, free = make_optimizer(model, Recipe()).param_groups
    assert (decaying["weight_decay"], free["weight_decay"]) == (0.1, 0.0)
    assert {p.ndim for p in decaying["params"]} == {2}
    assert {p.ndim for p in free["params"]} == {1}
    assert len(decaying["params"]) + len(free["params"]) == len(list(model.parameters()))
    assert decaying["betas"] == (0.9, 0.95)


def trained_on_a_loop(steps: int) -> MiniGPT:
    torch.manual_seed(0)
    model = MiniGPT(SMALL)
    ids = np.tile(np.arange(16), 40)  # each token has one successor
    train(model, ids, Recipe(steps=steps, batch=8, warm_up=5, learning_rate=1e-2))
    return model


def test_training_learns_what_follows_what():
    model = trained_on_a_loop(80)
    assert not model.training
    assert model.greedy([3], 6) == [4, 5, 6, 7, 8, 9]


def test_training_with_the_same_seed_gives_the_same_weights():
    a, b = trained_on_a_loop(5), trained_on_a_loop(5)
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_a_tokenizer_knows_every_byte_whatever_it_was_trained_on():
    tokenizer = train_tokenizer(["ab ab ab ab"], vocab_size=300)
    assert tokenizer.token_to_id(corpus.END_OF_TEXT) == 0
    for text in ("é 漢字 🙂 \0\x7f", "ab ab"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert len(tokenizer.encode(" ab").ids) == 1  # the pair that it saw most


def contents(folder):
    """What a run wrote, without the minutes that it took."""
    with safe_open(folder / "minigpt.safetensors", framework="pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        made = json.loads(file.metadata()["made"])
        config = json.loads(file.metadata()["config"])
    assert made.pop("minutes") >= 0
    others = [(folder / name).read_bytes() for name in ("tokenizer.json", "trained_on.bin")]
    return weights, made, config, others


@pytest.fixture
def short_text(monkeypatch):
    """A small part of the training text, so that three steps take seconds."""
    documents = corpus.training_documents("topics")[:40]
    monkeypatch.setattr(corpus, "training_documents", lambda: documents)
    return documents


def test_three_steps_of_the_command_write_the_files_and_can_be_repeated(tmp_path, short_text, capsys):
    options = ["--steps", "3", "--batch", "1", "--warm-up", "2", "--seed", "7"]
    assert torch.get_num_threads() == 1
    folder = tmp_path / "a" / "b"
    main(["--out", str(folder), *options])
    out, err = capsys.readouterr()
    assert "training: 100%" in err  # the progress bar
    assert "loss=" in err
    assert "wrote" in out
    assert sorted(p.name for p in folder.iterdir()) == ["minigpt.safetensors", "tokenizer.json", "trained_on.bin"]

    main(["--out", str(tmp_path / "again"), *options])
    (weights, made, config, others), again = contents(folder), contents(tmp_path / "again")
    assert all(torch.equal(w, again[0][name]) for name, w in weights.items())
    assert (made, config, others) == again[1:]

    assert made["recipe"] == {**vars(Recipe()), "steps": 3, "batch": 1, "warm_up": 2, "seed": 7}
    assert made["threads"] == 1
    assert config == MiniGPTConfig().to_dict()
    assert list(weights) == sorted(MiniGPT().state_dict())
    assert made["training_text"] == corpus.text_hash(short_text)
    hashes = np.frombuffer(others[1], "<u8")
    assert (np.diff(hashes.astype(object)) > 0).all()  # sorted, each once
    long = {corpus.paragraph_hash(p) for d in short_text for p in corpus.paragraphs(d) if len(p) >= 40}
    assert set(hashes.tolist()) == long


def test_two_steps_of_the_command_write_a_llama_s_folder_that_can_be_repeated(tmp_path, short_text, monkeypatch):
    shape = minillama.SHAPE | {"vocab_size": 400, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1}
    monkeypatch.setattr(minillama, "SHAPE", shape)
    for name in ("one", "two"):
        main(["llama", "--steps", "2", "--batch", "1", "--warm-up", "1", "--out", str(tmp_path / name)])
    files = {path.name: path.read_bytes() for path in sorted((tmp_path / "one").iterdir())}
    assert list(files) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer.model",
        "tokenizer_config.json",
    ]
    again = {name: (tmp_path / "two" / name).read_bytes() for name in files}
    assert {name for name in files if files[name] != again[name]} <= {"model.safetensors"}  # it holds the minutes
    stored = []
    for name in ("one", "two"):
        with safe_open(tmp_path / name / "model.safetensors", framework="pt") as file:
            stored.append({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
            made = json.loads(file.metadata()["made"])
    assert all(torch.equal(w, stored[1][name]) and w.dtype == torch.float16 for name, w in stored[0].items())
    assert made["recipe"] == {**vars(RECIPES["llama"]), "steps": 2, "batch": 1, "warm_up": 1}
    assert made["training_text"] == corpus.text_hash(short_text)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "one")
    assert {key: getattr(model.config, key) for key in shape} == shape
    assert model.dtype == torch.float32


def test_the_committed_minillama_was_made_by_the_defaults_of_the_command():
    with safe_open(minillama.folder() / "model.safetensors", framework="pt") as file:
        assert json.loads(file.metadata()["made"])["recipe"] == vars(RECIPES["llama"])


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_the_command_runs_as_a_module(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train", "--help"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("miniquant.models.train", run_name="__main__")
    assert stopped.value.code == 0
    assert "--warm-up" in capsys.readouterr().out
