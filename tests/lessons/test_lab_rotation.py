"""The lab on rotations: its weights are the library's, and what it concludes from its measurements is true."""

from __future__ import annotations

import re

import nbformat
import numpy as np
import pytest
import torch
from places import ROOT

from miniquant.calibrate import fold_norms, plant_outliers, rotate
from miniquant.calibrate import rotation as library
from miniquant.evaluate.quality import evaluate_in_llamacpp
from miniquant.evaluate.speech import evaluation_windows
from miniquant.lab import evaluate as evaluate_exercise
from miniquant.lab import find
from miniquant.lessons.rotation.fast_hadamard import fast_hadamard
from miniquant.lessons.rotation.fold_gain import fold_gain
from miniquant.lessons.rotation.peaks import peaks
from miniquant.lessons.rotation.rotate_weights import rotate_weights
from miniquant.lessons.rotation.rotation_matrix import rotation_matrix
from miniquant.models import minillama
from miniquant.models.huggingface.convert import write_llama
from miniquant.models.quantize_gguf import quantize_gguf


def printed(cell: str) -> str:
    notebook = nbformat.read(next((ROOT / "solutions").glob("*-rotation.ipynb")), as_version=4)
    (found,) = [c for c in notebook.cells if c.id == cell]
    return "\n".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in found.outputs)


def table(cell: str) -> dict[str, list[float]]:
    """The numbers of each row of a printed table, by the name before them."""
    lines = [re.split(r" {2,}", line.strip()) for line in printed(cell).split("\n")[1:]]
    return {line[0]: [float(number) for number in line[1:]] for line in lines if len(line) > 1}


@pytest.fixture(scope="module")
def q():
    return rotation_matrix(np.random.default_rng(5).choice([-1.0, 1.0], 256))


def test_the_transform_and_the_matrix_are_the_library_s():
    x = np.random.default_rng(1).normal(size=(4, 64))
    assert np.allclose(fast_hadamard(x), library.fast_hadamard(x), rtol=0, atol=1e-12)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], 256)
    assert np.allclose(rotation_matrix(signs), library.random_rotation(256, seed=0), rtol=0, atol=1e-12)


def test_the_solution_s_weights_are_the_library_s(minillama_model, q):
    weights = {name: w.double().numpy() for name, w in minillama_model.state_dict().items()}
    places = {"model.norm": ["lm_head"]}
    for i in range(4):
        layer = f"model.layers.{i}"
        places[f"{layer}.input_layernorm"] = [f"{layer}.self_attn.{part}_proj" for part in "qkv"]
        places[f"{layer}.post_attention_layernorm"] = [f"{layer}.mlp.{part}_proj" for part in ("gate", "up")]
    for norm, readers in places.items():
        gain, new = fold_gain(weights[f"{norm}.weight"], [weights[f"{name}.weight"] for name in readers])
        weights[f"{norm}.weight"] = gain
        weights |= {f"{name}.weight": w for name, w in zip(readers, new)}
    turned = rotate_weights(weights, q)
    for name, w in rotate(minillama_model, q, heads=False).state_dict().items():
        assert np.allclose(turned[name], w.numpy(), rtol=0, atol=1e-6), name


def test_a_rotation_that_keeps_a_row_of_ones_passes_through_a_layer_norm():
    """As the lab says in brackets."""
    x = np.random.default_rng(2).normal(0.5, 1, (50, 8))
    first = np.ones((8, 1)) / np.sqrt(8)
    rest = np.linalg.qr(np.hstack([first, np.random.default_rng(3).normal(size=(8, 7))]))[0][:, 1:]
    inner, _ = np.linalg.qr(np.random.default_rng(4).normal(size=(7, 7)))
    keeps = first @ first.T + rest @ inner @ rest.T
    assert np.allclose(np.ones(8) @ keeps, 1) and np.allclose(keeps @ keeps.T, np.eye(8))

    def layer_norm(x):
        return torch.nn.functional.layer_norm(torch.from_numpy(x), (8,), eps=0).numpy()

    assert np.allclose(layer_norm(x @ keeps), layer_norm(x) @ keeps)


def test_planted_in_the_gains_and_folded_is_as_trained_and_folded(minillama_model):
    one, two = fold_norms(minillama_model), fold_norms(plant_outliers(minillama_model))
    assert all(torch.equal(w, two.state_dict()[name]) for name, w in one.state_dict().items())


def test_a_row_with_an_outlier_loses_its_peak():
    row = np.random.default_rng(0).normal(size=(1, 256))
    row[0, 100] = 32
    assert peaks(row)[0] > 14 and peaks(fast_hadamard(row))[0] < 2.5


def test_what_the_table_says_of_llama_cpp_is_what_is_measured(minillama_model, tmp_path):
    """Outliers cost several times the KL, the rotation takes them out, and as trained it changes little."""
    windows = evaluation_windows(tokenizer=minillama.load_tokenizer())[:2]

    def kl(model, kind):
        write_llama(tmp_path / "float.gguf", model, minillama.folder())
        quantize_gguf(tmp_path / "float.gguf", tmp_path / "small.gguf", kind)
        tokenizer = minillama.load_tokenizer()
        found = evaluate_in_llamacpp(tmp_path / "small.gguf", windows, minillama_model, tokenizer=tokenizer)
        return found.kl_divergence.mean

    planted = plant_outliers(minillama_model)
    found = [kl(model, "Q4_0") for model in (minillama_model, planted, rotate(planted))]
    assert found[1] > 3 * found[2] and 0.7 < found[2] / found[0] < 1.2
    said = table("rotation-kl")
    assert said["in the gains"][0] > 4 * said["in the gains, rotated"][0]
    assert said["in the gains, folded"][0] < 1.2 * said["in the gains, rotated"][0]
    assert said["in the stream"][0] > 2 * said["in the stream, rotated"][0]
    assert 0.7 < said["as trained, rotated"][0] / said["as trained"][0] < 1.2
    assert said["in the gains"][1] > 8 * said["in the gains, rotated"][1]


def test_four_bits_of_activations_need_the_outliers_gone():
    said = table("rotation-w4a4")
    assert said["in the gains"][0] > 50 * said["in the gains, rotated"][0]
    assert said["in the stream"][0] > 1.3 * said["in the stream, rotated"][0]
    assert said["in the gains, folded"][0] < 1.2 * said["in the gains, rotated"][0]
    assert "perplexity, in the gains: at least 500" in printed("rotation-w4a4")


def test_the_rotated_file_writes_what_the_float_model_writes():
    lines = printed("rotation-speaks").split("\n")
    text = {lines[i].split(",")[0] + lines[i].split(",")[1]: lines[i + 1].strip() for i in (0, 2, 4)}
    assert len(set(text.values())) == 2
    sizes = re.findall(r"Q2_K, ([\d,]+) bytes", printed("rotation-speaks"))
    assert len(sizes) == 2 and sizes[0] == sizes[1]


def _recursive(x):
    n = x.shape[1]
    if n == 1:
        return x / 1.0
    a, b = _recursive(x[:, : n // 2]), _recursive(x[:, n // 2 :])
    return np.hstack([a + b, a - b]) / np.sqrt(2)


def _by_the_matrix(x):
    h = np.array([[1.0]])
    while len(h) < x.shape[1]:
        h = np.block([[h, h], [h, -h]])
    return x @ h / np.sqrt(len(h))


def _largest_halves_first(x):
    y, half = x.copy(), x.shape[1] // 2
    while half:
        pairs = y.reshape(len(y), -1, 2, half)
        y = np.concatenate([pairs[:, :, :1] + pairs[:, :, 1:], pairs[:, :, :1] - pairs[:, :, 1:]], axis=2)
        y = y.reshape(x.shape)
        half //= 2
    return y / np.sqrt(x.shape[1])


@pytest.mark.parametrize("other", [_recursive, _by_the_matrix, _largest_halves_first])
def test_other_ways_to_write_the_transform_are_accepted(other):
    def fast_hadamard(x):
        return other(x)

    assert evaluate_exercise(find("fast_hadamard"), fast_hadamard).passed
