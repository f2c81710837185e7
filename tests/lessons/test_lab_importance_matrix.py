"""The lab on importance matrices: its search is ggml's, and what it concludes from its measurements is true."""

from __future__ import annotations

import argparse
import calendar
import copy
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from places import ROOT

from miniquant.calibrate import calibration_tokens, plant_outliers
from miniquant.calibrate.imatrix import collect_importance, text_chunks
from miniquant.evaluate.estimate import Estimate
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.evaluate.quality import evaluate
from miniquant.formats.gguf import GGMLType, decode, encode
from miniquant.lab import evaluate as evaluate_exercise
from miniquant.lab import find
from miniquant.lessons.importance_matrix.search_scale import TRIES, search_scale
from miniquant.models import corpus
from miniquant.models.corpus import held_out_windows, load_tokenizer
from miniquant.models.to_gguf import gguf_name
from miniquant.quantization.packing import pack_runs


def printed(cell: str) -> str:
    notebook = nbformat.read(next((ROOT / "solutions").glob("*-importance-matrix.ipynb")), as_version=4)
    (found,) = [c for c in notebook.cells if c.id == cell]
    return "\n".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in found.outputs)


def importance_of(model, tokens=None):
    found = collect_importance(model, calibration_tokens(8) if tokens is None else tokens, progress=False)
    return {name: squares.means()[0] for name, squares in found.squares.items()}


@pytest.fixture(scope="module")
def importance(trained):
    return importance_of(trained)


@pytest.fixture(scope="module")
def lost(trained, importance):
    """The KL of each held-out window, by type and by what the columns count."""
    windows = held_out_windows(length=128, limit=8)  # as in the lab
    planted = plant_outliers(trained)
    matrices = {
        "none": None,
        "alike": {name: np.ones_like(found) for name, found in importance.items()},
        "matrix": importance,
        "one token": of_one_token(trained),
        "docstrings": of_docstrings(trained),
    }

    def kl(model, kind, columns):
        twin = copy.deepcopy(model)
        with torch.no_grad():
            for name, part in twin.named_parameters():
                if (name := gguf_name(name)) in importance:
                    given = None if columns is None else columns[name]
                    back = decode(encode(part.numpy(), kind, given), kind)
                    part.copy_(torch.from_numpy(back.reshape(part.shape)))
        return evaluate(twin, windows, reference=trained).kl

    asked = [("Q4_0", "none"), ("Q4_0", "alike"), ("Q4_0", "matrix")]
    asked += [("Q2_K", "none"), ("Q2_K", "matrix"), ("Q2_K", "one token"), ("Q2_K", "docstrings")]
    found = {(kind, how): kl(trained, kind, matrices[how]) for kind, how in asked}
    of_planted = {"none": None, "matrix": importance_of(planted)}
    for kind in ("Q4_0", "Q4_1"):
        found |= {("planted", kind, how): kl(planted, kind, columns) for how, columns in of_planted.items()}
    return found


def of_one_token(model):
    return importance_of(model, np.full((1, 256), 200))


def of_docstrings(model):
    text = "\n".join(corpus._docstrings_of(Path(module.__file__)) for module in (argparse, calendar))
    return importance_of(model, text_chunks(text, load_tokenizer(), 256, 1))


def beyond_chance(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the mean of a is below that of b by more than two standard errors, window by window."""
    change = Estimate.of(a - b)
    return change.mean < -2 * change.error


def test_the_search_makes_ggml_s_blocks_but_for_a_few_near_ties(trained, importance):
    w = trained.state_dict()["layers.1.mlp.fc1.weight"].numpy()[:192]
    columns = importance["blk.1.ffn_up.weight"]
    row = np.square(w, dtype=np.float64).mean(axis=1, keepdims=True)
    counts = columns * np.sqrt(row + np.square(w, dtype=np.float64))
    scale, levels = search_scale(w.reshape(-1, 32).astype(np.float64), counts.reshape(-1, 32), TRIES)
    mine = np.hstack([scale.astype("<f2").view(np.uint8), pack_runs((levels + 8).astype(np.uint8), 4, 16)])
    with LlamaCpp(None) as llama:
        theirs = llama.quantize(w, GGMLType.Q4_0, columns).reshape(-1, 18)
    assert (mine == theirs).all(axis=1).mean() > 0.995


def test_without_a_matrix_ggml_does_not_search_for_q4_0(trained):
    w = trained.state_dict()["layers.1.mlp.fc1.weight"].numpy()
    with LlamaCpp(None) as llama:
        d = llama.quantize(w, GGMLType.Q4_0).reshape(-1, 18)[:, :2].copy().view("<f2")[:, 0]
    blocks = w.reshape(-1, 32)
    extreme = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)[:, 0]
    assert np.array_equal(d, (extreme / np.float32(-8)).astype(np.float16))


def test_the_search_gains_most_and_the_importance_the_rest(lost):
    none, alike, matrix = (lost["Q4_0", how] for how in ("none", "alike", "matrix"))
    assert beyond_chance(alike, none) and beyond_chance(matrix, alike)
    assert none.mean() - alike.mean() > alike.mean() - matrix.mean()


def test_a_min_is_what_planted_outliers_need(lost):
    found = {key[1:]: kl.mean() for key, kl in lost.items() if key[0] == "planted"}
    assert found["Q4_1", "none"] > 2 * found["Q4_0", "none"]
    assert found["Q4_1", "matrix"] < found["Q4_1", "none"] / 8
    assert found["Q4_0", "matrix"] > 0.85 * found["Q4_0", "none"]


def test_the_right_text_helps_and_the_wrong_one_harms(lost):
    assert beyond_chance(lost["Q2_K", "matrix"], lost["Q2_K", "none"])
    assert beyond_chance(lost["Q2_K", "docstrings"], lost["Q2_K", "none"])
    assert beyond_chance(lost["Q2_K", "none"], lost["Q2_K", "one token"])


def test_the_lab_prints_what_is_measured_here(lost):
    said = dict(re.findall(r"^(.+?) +KL (0\.\d+)", printed("imatrix-kl"), re.M))
    named = {"no matrix": "none", "all columns alike": "alike", "your matrix": "matrix"}
    assert said.keys() == named.keys()
    assert all(abs(float(said[name]) - lost["Q4_0", how].mean()) < 0.001 for name, how in named.items())


@pytest.mark.parametrize("how", ["formula", "levels alone"])
def test_other_ways_to_write_the_search_are_accepted(how):
    def search(w, cost, tries):
        first = np.abs(w).argmax(axis=1)
        extreme = w[np.arange(len(w)), first]
        all_levels, scales, keys = [], [], []
        for t in tries:
            q = np.clip(np.rint(w * (-t / extreme)[:, None]), -8, 7)
            up, down = (cost * w * q).sum(1), (cost * q * q).sum(1)
            all_levels.append(q.astype(np.int8))
            scales.append(up / down)
            keys.append(-up * up / down if how == "formula" else (cost * (w - (up / down)[:, None] * q) ** 2).sum(1))
        at = np.argmin(keys, axis=0)
        rows = np.arange(len(w))
        return np.array(scales)[at, rows][:, None], np.array(all_levels)[at, rows]

    search.__name__ = "search_scale"
    assert evaluate_exercise(find("search_scale"), search).passed
