"""What lab 02 and the glossary say about the essay's slips (rows 27 to 29 of the errata), checked once more.

The figures of the essay *GGUF, the long way around* are typed here; PyTorch repeats its run from its own start.
"""

from __future__ import annotations

import functools
import re

import nbformat
import numpy as np
import pytest
import torch
from places import ROOT
from torch import nn

LOSSES = [33.0142, 24.2189, 16.8170, 10.8076, 6.1890, 2.9560, 1.0853, 0.4145, 0.3178, 0.2974]  # every tenth epoch
HOURS = torch.tensor([[1.0], [2.0], [3.0], [4.0]])


@functools.cache
def run(root: bool, steps: int) -> tuple[nn.Linear, list[float]]:
    """The essay's longer listing: the slope of the RMSE if ``root``, else of the MSE."""
    neuron = nn.Linear(1, 1)
    with torch.no_grad():
        neuron.weight.fill_(-0.6216)
        neuron.bias.fill_(0.7633)
    losses, parameters = [], [neuron.weight, neuron.bias]
    for _ in range(steps):
        mse = nn.MSELoss()(neuron(HOURS), 2 * HOURS)
        slopes = torch.autograd.grad(torch.sqrt(mse) if root else mse, parameters)
        with torch.no_grad():  # as torch.optim.SGD does, whose import takes a second
            for parameter, slope in zip(parameters, slopes):
                parameter -= 0.01 * slope
        losses.append(mse.item())
    return neuron, losses


def test_the_essays_run_is_one_with_the_root_taken_after_the_loss():
    neuron, losses = run(root=True, steps=100)
    assert losses[9::10] == pytest.approx(LOSSES, abs=2e-3)  # its start is printed with four digits
    assert neuron.weight.item() == pytest.approx(1.5441, abs=1e-4)
    assert neuron.bias.item() == pytest.approx(1.3291, abs=1e-4)
    assert neuron(torch.tensor([[5.0]])).item() == pytest.approx(9.0495, abs=1e-4)


def test_what_it_prints_as_its_loss_is_the_mse_and_not_the_rmse():
    _, losses = run(root=True, steps=100)
    assert losses[-1] == pytest.approx(LOSSES[-1], abs=1e-3) != pytest.approx(losses[-1] ** 0.5, abs=1e-3)


def test_finished_on_the_mse_the_same_neuron_says_ten_for_five_hours():
    neuron, _ = run(root=False, steps=2400)
    assert neuron(torch.tensor([[5.0]])).item() == pytest.approx(10, abs=1e-3)
    _, losses = run(root=True, steps=1000)
    assert losses[-1] ** 0.5 > 0.01, "the slope of a root does not shrink, so it never settles"


def test_sum_mean_and_root_have_their_minimum_at_one_weight():
    weights = np.linspace(0, 4, 401)
    errors = weights[:, None] * HOURS.numpy().T - 2 * HOURS.numpy().T  # (401, 4)
    squares = errors**2
    lowest = {float(weights[f(squares).argmin()]) for f in (lambda s: s.sum(1), lambda s: s.mean(1))}
    assert {*lowest, float(weights[np.sqrt(squares.mean(1)).argmin()])} == {2.0}


def test_no_page_of_the_course_expands_gguf_as_if_it_knew():
    expanded = re.compile(r"GPT-Generated|GGML Universal|Universal (?:File )?Format", re.I)
    for page in [*ROOT.glob("book/*.md"), *ROOT.glob("solutions/*.ipynb"), *ROOT.glob("*.md")]:
        text = page.read_text("utf-8")
        if page.suffix == ".ipynb":
            text = "\n".join(cell.source for cell in nbformat.reads(text, 4).cells)
        if page.name != "errata.md":
            assert not expanded.search(text), page.name
    glossary = (ROOT / "book/glossary.md").read_text("utf-8")
    assert "specification does not say what the letters mean" in re.sub(r"\s+", " ", glossary)
    assert expanded.search((ROOT / "book/errata.md").read_text("utf-8")), "the errata quote what they correct"
