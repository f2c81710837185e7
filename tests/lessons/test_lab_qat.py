"""The lab on training with rounded weights: its blocks are ggml's, and what it concludes is true."""

from __future__ import annotations

import re

import nbformat
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
from places import ROOT

from miniquant.calibrate.qat import Ternary
from miniquant.calibrate.rounding import quantize_nearest
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType
from miniquant.lessons.qat.encode_tq2_0 import encode_tq2_0
from miniquant.lessons.qat.straight_through import restored, straight_through
from miniquant.lessons.qat.ternary_levels import ternary_levels


def printed(cell: str) -> str:
    notebook = nbformat.read(next((ROOT / "solutions").glob("*-quantization-aware-training.ipynb")), as_version=4)
    (found,) = [c for c in notebook.cells if c.id == cell]
    return "\n".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in found.outputs)


def lost(start: str) -> list[float]:
    """The two percentages of a line: on the text of the training, and on other text."""
    text = printed("qat-layer") + printed("qat-train")
    return [float(part) for part in re.findall(rf"^{start}.*?([\d.]+)%, on other text ([\d.]+)%", text, re.M)[0]]


@pytest.fixture
def blocks(trained):
    return trained.state_dict()["layers.2.mlp.fc2.weight"].numpy().reshape(-1, 256)


def test_the_levels_are_those_of_the_library(blocks):
    levels, scale = ternary_levels(blocks)
    q, grid = quantize_nearest(blocks, Ternary())
    assert np.array_equal(levels, q) and np.array_equal(scale.astype(np.float32), grid.scale)


def test_the_solution_writes_ggmls_bytes_and_the_package_reads_the_weights(blocks):
    levels, scale = ternary_levels(blocks)
    weights = levels * scale.astype(np.float32)
    raw = encode_tq2_0(levels, scale)
    with LlamaCpp(None) as llama:
        assert llama.quantize(weights, GGMLType.TQ2_0).tobytes() == raw
    read = dequantize(np.frombuffer(raw, np.uint8).reshape(-1, 66), GGMLQuantizationType.TQ2_0)
    assert np.array_equal(read, weights)


def test_the_gradient_is_what_pytorch_computes_with_the_trick_of_detach():
    random = np.random.default_rng(3)
    x, y, w = random.normal(size=(9, 8)), random.normal(size=(9, 5)), random.normal(size=(5, 8))
    weight = torch.from_numpy(w.copy()).requires_grad_()
    used = weight + (torch.from_numpy(restored(w)) - weight).detach()
    ((torch.from_numpy(x) @ used.T - torch.from_numpy(y)) ** 2).sum(dim=1).mean().backward()
    assert np.allclose(straight_through(x, y, w), weight.grad.numpy(), rtol=1e-12)


def test_few_of_the_moves_change_the_loss():
    assert "measured: 2 moves" in printed("qat-flat")
    assert "float weights: 400" in printed("qat-flat")


def test_training_one_layer_is_far_ahead_of_gptq_on_other_text_too():
    plain, gptq, trained = lost("rounded to nearest"), lost("GPTQ"), lost("trained:")
    for at in (0, 1):
        assert 3 * trained[at] < gptq[at] < plain[at]


def test_the_trained_file_is_far_better_than_the_rounded_one_of_the_same_size():
    rows = re.findall(r"^(trained|rounded to nearest) +([\d,]+) +([\d.]+) ± ([\d.]+)$", printed("qat-files"), re.M)
    (_, size, kl, error), (_, other_size, other_kl, _) = rows
    assert size == other_size and 4 * (float(kl) + float(error)) < float(other_kl)
    assert "bytes that ggml writes otherwise: 0" in printed("qat-weights")
    assert "largest difference 0.0" in printed("qat-weights")
