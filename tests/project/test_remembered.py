"""What the kernels of one test run remember for each other is what they would compute, and never a student's work."""

from __future__ import annotations

import copy
import os

import numpy as np
import pytest
import remembered
import torch
from matplotlib.ticker import ScalarFormatter
from remembered import FOLDER, FUNCTIONS, Unknown, add, remembering

from miniquant import plots
from miniquant.models import corpus
from miniquant.models.minigpt import random_model
from miniquant.plots import style


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A folder of a run; everything is worth to be kept."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.delenv("MINIQUANT_THOROUGH", raising=False)
    monkeypatch.setattr(remembered, "WORTH", 0)
    monkeypatch.setattr(remembered, "LEAST", 0)
    return tmp_path


@pytest.fixture
def counted():
    """A function that counts its calls, and the same as kernels have it."""
    calls = []

    def summed(values, model=None, progress=False):
        calls.append(values)
        return values.sum() + (0 if model is None else float(model(torch.zeros(1, 2, dtype=int)).detach().sum()))

    return calls, remembering(summed)


def test_the_same_arguments_give_what_was_computed_and_others_are_computed(run, counted):
    calls, summed = counted
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert summed(values) == summed(values.copy()) == 15
    assert len(calls) == 1
    for other in (values + 1, values.reshape(3, 2), values.astype(np.int32)):
        assert summed(other) == other.sum()
    assert len(calls) == 4


def test_the_docstrings_that_pytest_has_read_are_not_read_by_the_kernels(run, tmp_path, monkeypatch):
    library = tmp_path / "library"
    library.mkdir()
    (library / "one.py").write_text(f'"""{"What one is. " * 10}"""')
    read = remembering(corpus._docstrings)(library, None)
    assert list(read) == ["one"]
    monkeypatch.setattr(corpus, "_docstrings_of", None)
    assert remembering(corpus._docstrings)(library, held_out=None) == read
    assert "miniquant.models.corpus:_docstrings" in FUNCTIONS


def test_a_model_is_known_by_all_its_weights_and_by_its_config(run, counted):
    calls, summed = counted
    model, values = random_model(1), np.ones(2)
    assert summed(values, model) == summed(values, copy.deepcopy(model))
    assert len(calls) == 1
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.layers[1].mlp.fc2.bias[3] += 1e-6
    summed(values, other)
    other = copy.deepcopy(model)
    other.layers[0].attn.n_heads = 4
    summed(values, other)
    assert len(calls) == 3
    with torch.no_grad():
        other.ln_f.bias[3] += 1e-6
    summed(values, other)
    assert len(calls) == 4


def figure(last=4.0, unit="bits"):
    x = np.array([1.0, 2.0, last])
    made = plots.curves({"one": (x, x**2)}, x_label="x", y_label="y", log_y=True, title="a title")
    made.axes[0].xaxis.set_major_formatter(lambda value, _: f"{value} {unit}")
    return made


def test_a_figure_is_drawn_once_and_again_if_anything_in_it_differs(run):
    drawn = []

    def svg(fig):
        drawn.append(style.svg(fig))
        return drawn[-1]

    svg = remembering(svg)
    assert svg(figure()) == svg(figure())
    assert len(drawn) == 1
    assert len({drawn[0], svg(figure(5.0)), svg(figure(unit="bytes"))}) == len(drawn) == 3
    own = figure()
    own.axes[0].yaxis.set_major_formatter(type("Own", (ScalarFormatter,), {"__module__": "__main__"})())
    svg(own), svg(own)
    assert len(drawn) == 5


class Own(torch.nn.Linear):
    pass


def hooked(model):
    model.ln_f.register_forward_hook(lambda *_: None)


def with_a_class_of_the_notebook(model):
    model.layers[0].mlp.fc1 = Own(64, 128)


@pytest.mark.parametrize("change", [hooked, with_a_class_of_the_notebook], ids=lambda change: change.__name__)
def test_a_model_that_is_more_than_its_weights_is_always_run(run, counted, change):
    calls, summed = counted
    model = random_model(1)
    change(model)
    assert summed(np.ones(2), model) == summed(np.ones(2), model)
    assert len(calls) == 2


def test_a_patched_forward_is_always_run(run, counted, monkeypatch):
    calls, summed = counted
    model = random_model(1)
    summed(np.ones(2), model)
    plain = type(model).forward

    def forward(self, tokens):
        return plain(self, tokens) + 1

    monkeypatch.setattr(type(model), "forward", forward)
    summed(np.ones(2), model)
    assert len(calls) == 2


@pytest.mark.parametrize(
    "value",
    [lambda x: x, Own, object(), [1, print], {"a": {lambda: 1}}],
    ids=["function", "class", "object", "list", "set"],
)
def test_what_no_bytes_describe_is_never_remembered(value):
    with pytest.raises(Unknown):
        add(remembered.hashlib.sha256(), value)


def test_a_file_is_known_by_its_bytes(run, tmp_path):
    read = remembering(lambda path: path.read_bytes())
    path = tmp_path / "file"
    for data in (b"one", b"two", b"one"):
        path.write_bytes(data)
        assert read(path) == data


@pytest.mark.parametrize("off", [(FOLDER, None), ("MINIQUANT_THOROUGH", "1")], ids=["outside", "thorough"])
def test_nothing_is_remembered_outside_of_a_run_or_in_a_thorough_one(run, counted, monkeypatch, off):
    name, value = off
    monkeypatch.delenv(name, raising=False)
    if value:
        monkeypatch.setenv(name, value)
    calls, summed = counted
    summed(np.ones(2))
    summed(np.ones(2))
    assert len(calls) == 2
    assert os.listdir(run) == []


def test_the_functions_exist_and_take_no_function_of_a_student():
    for name in FUNCTIONS:
        module, _, attribute = name.partition(":")
        assert module.startswith("miniquant.") and ".lessons" not in module
        assert callable(getattr(remembered.importlib.import_module(module), attribute))


def test_small_arrays_are_computed(run, counted, monkeypatch):
    monkeypatch.setattr(remembered, "LEAST", 100)
    calls, summed = counted
    for values in (np.ones(2), np.ones(2), np.ones(100), np.ones(100)):
        assert summed(values) == values.size
    assert len(calls) == 3
