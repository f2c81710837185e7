"""The stored runs of training with rounded weights: whose they are, what they show, and the weights themselves."""

import json
import platform
import re

import numpy as np
import pytest
import qat_table as script
import torch
from places import ROOT

from miniquant.evaluate.quality import evaluate
from miniquant.formats.gguf import GGMLType, read_gguf
from miniquant.models import corpus
from miniquant.models.to_gguf import gguf_name

FOLDER = ROOT / "experiments" / "30-quantization-aware-training"


@pytest.fixture(scope="module")
def table():
    return json.loads((FOLDER / "results.json").read_text("utf-8"))


def test_it_comes_from_these_weights_and_from_the_sources_as_they_are(table):
    assert table["weights_sha256"] == script.sha256(script.WEIGHTS)
    assert table["sources_sha256"] == script.sha256(*script.SOURCES)
    assert list(table["grids"]) == list(script.GRIDS)
    assert not re.search(r"/(home|root|work|tmp)\b", json.dumps(table))


def test_it_was_trained_on_training_text_and_measured_on_held_out_text(table):
    if table["versions"]["python"] != platform.python_version():
        pytest.skip("another Python has other documentation")
    assert table["held_out"]["text_hash"] == corpus.text_hash(corpus.held_out_documents("topics"))
    assert table["training_text"] == corpus.text_hash(corpus.training_documents())


def test_the_fewer_levels_there_are_the_more_training_gains(table):
    kl = {
        (grid, method): row["pytorch"]["kl"]
        for grid, found in table["grids"].items()
        for method, row in found["rows"].items()
    }
    assert kl["int3_g64", "GPTQ"]["high"] < kl["int3_g64", "QAT"]["low"] < 0.5 * kl["int3_g64", "plain"]["low"]
    assert kl["int2_g64", "QAT"]["high"] < kl["int2_g64", "GPTQ"]["low"]
    assert kl["ternary_g256", "QAT"]["high"] < 0.25 * kl["ternary_g256", "plain"]["low"]
    assert kl["ternary_g256", "plain"]["high"] < kl["ternary_g256", "GPTQ"]["low"]
    for grid in table["grids"].values():
        perplexity = {method: row["pytorch"]["perplexity"]["value"] for method, row in grid["rows"].items()}
        assert min(perplexity, key=perplexity.get) == "QAT"
        assert perplexity["QAT"] > table["float"]["perplexity"]["value"]


def test_both_ternary_files_are_one_model_to_llama_cpp_and_nearly_that_of_pytorch(table):
    row = table["grids"]["ternary_g256"]["rows"]["QAT"]
    one, other = (row["files"][kind] for kind in script.FILES)
    assert one["kl"] == other["kl"] and one["bytes"] > other["bytes"]
    assert one["kl"]["value"] == pytest.approx(row["pytorch"]["kl"]["value"], rel=0.01)


def test_the_stored_weights_are_ternary_and_have_the_kl_that_is_stored(table, trained):
    with read_gguf(FOLDER / "ternary.gguf") as file:
        kinds = {name: info.dtype for name, info in file.tensors.items()}
        stored = {name: file.tensor(name) for name in file.tensors}
    assert sorted(stored) == sorted(gguf_name(name) for name in trained.state_dict() if "emb" not in name)
    for name, w in stored.items():
        assert kinds[name] == (GGMLType.TQ1_0 if w.ndim == 2 else GGMLType.F32)
        if w.ndim == 2:
            sizes = np.abs(w).reshape(-1, 256)
            assert ((sizes == 0) | (sizes == sizes.max(axis=1, keepdims=True))).all()
    model = script.MiniGPT(trained.config)
    state = {n: torch.from_numpy(stored.get(gguf_name(n), w.numpy())) for n, w in trained.state_dict().items()}
    model.load_state_dict(state)
    found = evaluate(model, corpus.held_out_windows(limit=4), trained).kl.mean()
    assert found == pytest.approx(table["grids"]["ternary_g256"]["rows"]["QAT"]["pytorch"]["kl"]["value"], rel=0.25)
    assert (FOLDER / "ternary.gguf").stat().st_size < 1_000_000


def test_a_run_that_was_stopped_goes_on_from_its_stored_state(tmp_path, trained, monkeypatch):
    monkeypatch.setattr(script, "EVERY", 1)
    recipe = script.replace(script.RECIPE, steps=2, batch=1, warm_up=1)
    ids = np.arange(600) % trained.config.vocab_size

    def run(steps):
        return script.Training(trained, ids, "int3_g64", script.replace(recipe, steps=steps))

    script.trained(run(2), tmp_path / "whole.pt", "whole")
    first = run(2)
    losses = first.advance(1)
    torch.save(first.state_dict() | {"losses": losses, "seconds": 1.0}, tmp_path / "part.pt")
    found = script.trained(run(2), tmp_path / "part.pt", "part")
    whole, part = (torch.load(tmp_path / f"{name}.pt", weights_only=True) for name in ("whole", "part"))
    assert whole["losses"] == part["losses"] and found["cpu_seconds"] >= 1
    assert all(torch.equal(w, part["student"][name]) for name, w in whole["student"].items())
