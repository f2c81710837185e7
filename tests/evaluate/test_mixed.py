"""A type for every matrix: the choice is the best one, and in no more bytes it is better than llama.cpp's mix."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
from measured_text import differs

from miniquant.calibrate import calibration_tokens
from miniquant.core.errors import QuantizationError, SchemeError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.evaluate.mixed import (
    Cost,
    best_types,
    costs_from_json,
    costs_to_json,
    known_costs,
    sensitivities,
    with_types,
)
from miniquant.evaluate.quality import evaluate
from miniquant.formats.gguf import GGMLType, encode, read_gguf
from miniquant.models import corpus, minillama
from miniquant.models.file_types import PRESETS
from miniquant.models.load import load_any
from miniquant.models.minigpt import MiniGPTConfig, random_model
from miniquant.models.pretrained import load_pretrained
from miniquant.models.quantize_gguf import quantize_gguf
from miniquant.models.to_gguf import write_minigpt

SMALL = MiniGPTConfig(vocab_size=64, context=32, d_model=32, n_layers=1, n_heads=2, d_mlp=64)
TYPES = [GGMLType.Q3_K, GGMLType.IQ4_XS, GGMLType.Q5_K, GGMLType.Q6_K, GGMLType.Q8_0]


@pytest.fixture(scope="module")
def measured():
    """The trained model's matrices, each in four types, on little text."""
    return sensitivities(load_pretrained(), ["Q3_K", "IQ4_XS", "Q5_K", "Q6_K"], calibration_tokens(2, 65))


@pytest.mark.parametrize("seed", range(20))
def test_no_other_choice_within_the_bytes_has_a_smaller_sum(seed):
    random = np.random.default_rng(seed)
    costs = {
        f"w{i}": {t: Cost(int(random.integers(1, 9)) * 18, float(random.random())) for t in TYPES[: 1 + i]}
        for i in range(5)
    }
    least = sum(min(cost.n_bytes for cost in of.values()) for of in costs.values())
    budget = least + int(random.integers(0, 300))
    every = [
        (sum(costs[name][t].kl for name, t in zip(costs, types, strict=True)), types)
        for types in itertools.product(*costs.values())
        if sum(costs[name][t].n_bytes for name, t in zip(costs, types, strict=True)) <= budget
    ]
    chosen = best_types(costs, budget)
    assert list(chosen) == list(costs)
    assert sum(costs[name][t].n_bytes for name, t in chosen.items()) <= budget
    assert sum(costs[name][t].kl for name, t in chosen.items()) == pytest.approx(min(every)[0], abs=1e-12)


def test_too_few_bytes_for_the_smallest_types_are_refused():
    costs = {"w": {GGMLType.Q4_0: Cost(18, 0.1), GGMLType.Q8_0: Cost(34, 0.01)}}
    with pytest.raises(QuantizationError, match="the smallest types take 18 bytes together, and 17 are allowed"):
        best_types(costs, 17)
    assert best_types({}, 0) == {}


def test_a_sensitivity_is_the_divergence_of_the_model_with_one_matrix_rounded(measured):
    model, windows = load_pretrained(), calibration_tokens(2, 65)
    name, parameter = "blk.1.ffn_down.weight", "layers.1.mlp.fc2.weight"
    w = model.state_dict()[parameter]
    blocks = encode(w.numpy(), "Q6_K")
    changed = load_pretrained()
    changed.state_dict()[parameter].copy_(torch.from_numpy(dequantize(blocks, GGMLQuantizationType.Q6_K)))
    expected = evaluate(changed, windows, model).kl_divergence.mean
    assert measured[name][GGMLType.Q6_K] == Cost(blocks.nbytes, pytest.approx(expected, rel=1e-12))
    assert all(of[GGMLType.Q6_K].kl < of[GGMLType.Q3_K].kl for of in measured.values())


def test_the_model_is_as_before_and_a_row_that_is_no_whole_block_is_refused(measured):
    model = random_model(config=SMALL)
    before = {name: w.clone() for name, w in model.state_dict().items()}
    sensitivities(model, ["Q4_0"], np.zeros((1, 9), np.int64))
    assert all(torch.equal(w, before[name]) for name, w in model.state_dict().items())
    with pytest.raises(QuantizationError, match="256"):
        sensitivities(model, ["Q4_K"], np.zeros((1, 9), np.int64))
    with pytest.raises(SchemeError, match="Q4_K_M"):
        sensitivities(model, ["Q4_K_M"], np.zeros((1, 9), np.int64))


def test_columns_are_weighed_where_an_importance_is_given():
    model = random_model(config=SMALL)
    windows, name = np.arange(18).reshape(2, 9), "blk.0.ffn_up.weight"
    heavy = np.where(np.arange(32) < 4, 100, 1).astype(np.float32)
    plain = sensitivities(model, ["Q4_0"], windows)
    weighed = sensitivities(model, ["Q4_0"], windows, {name: heavy})
    assert [n for n in plain if plain[n] != weighed[n]] == [name]


def test_the_matrices_of_a_llama_have_llama_cpp_s_names():
    model = minillama.load_minillama()
    windows = calibration_tokens(1, 9, minillama.load_tokenizer())
    found = sensitivities(model, ["Q8_0"], windows, tokenizer=minillama.load_tokenizer())
    layer = {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}
    expected = {f"blk.{i}.{part}.weight" for i in range(4) for part in layer}
    assert set(found) == expected | {"token_embd.weight", "output.weight"}


def test_on_held_out_text_the_choice_is_far_better_than_q4_k_m_in_no_more_bytes(measured, tmp_path):
    model = load_pretrained()
    write_minigpt(tmp_path / "f32.gguf", model, corpus.load_tokenizer(), "F32")
    quantize_gguf(tmp_path / "f32.gguf", tmp_path / "mix.gguf", "Q4_K_M")
    with read_gguf(tmp_path / "mix.gguf") as file:
        allowed = sum(file.raw(name).nbytes for name in measured)
    types = best_types(measured, allowed)
    quantize_gguf(tmp_path / "f32.gguf", tmp_path / "ours.gguf", PRESETS["Q4_K_M"].choosing(types))
    with read_gguf(tmp_path / "ours.gguf") as file:
        assert {name: file.tensors[name].dtype for name in types} == types
        assert sum(file.raw(name).nbytes for name in measured) <= allowed
    assert (tmp_path / "ours.gguf").stat().st_size <= (tmp_path / "mix.gguf").stat().st_size
    held_out = corpus.held_out_windows(limit=6)
    kl = {n: evaluate(load_any(tmp_path / f"{n}.gguf"), held_out, model).kl_divergence for n in ("ours", "mix")}
    assert kl["ours"].mean + 3 * kl["ours"].error < kl["mix"].mean - 3 * kl["mix"].error
    with LlamaCpp(tmp_path / "ours.gguf") as llama:
        assert llama.logits([1, 2, 3]).shape == (3, model.config.vocab_size)


def test_a_model_with_types_has_what_a_file_with_these_types_gives_back(trained, tmp_path):
    types = {"blk.0.ffn_up.weight": "Q3_K", "token_embd.weight": GGMLType.Q6_K, "blk.3.attn_qkv.weight": "IQ4_XS"}
    made = with_types(trained, types).state_dict()
    write_minigpt(tmp_path / "f32.gguf", trained, corpus.load_tokenizer(), "F32")
    quantize_gguf(tmp_path / "f32.gguf", tmp_path / "made.gguf", PRESETS["Q4_K_M"].choosing(types))
    before, stored = trained.state_dict(), load_any(tmp_path / "made.gguf").state_dict()
    changed = {"layers.0.mlp.fc1.weight", "tok_emb.weight", "layers.3.attn.qkv.weight"}
    assert {name for name in made if not torch.equal(made[name], before[name])} == changed
    assert all(torch.equal(made[name], stored[name]) for name in changed)
    with pytest.raises(SchemeError, match=r"'blk.9.x' is no matrix of this model; there are token_embd.weight"):
        with_types(trained, {"blk.9.x": "Q4_0"})


def test_known_costs_are_those_of_the_models_and_come_back_from_json():
    for model, matrices in (("MiniGPT", 17), ("MiniLlama", 30)):
        costs = known_costs(model)
        assert len(costs) == matrices and {len(of) for of in costs.values()} == {10}
        assert costs_from_json(costs_to_json(costs)) == costs
    with pytest.raises(KeyError):
        known_costs("another")


def test_a_known_cost_is_about_what_is_measured_anew(measured):
    known, near = known_costs("MiniGPT"), 0.6
    if any(
        abs(known[name][t].kl - cost.kl) > near * cost.kl for name, of in measured.items() for t, cost in of.items()
    ):
        near = 1 if differs("training") else near
    for name, of in measured.items():
        for dtype, cost in of.items():
            assert known[name][dtype].n_bytes == cost.n_bytes
            assert known[name][dtype].kl == pytest.approx(cost.kl, rel=near)
