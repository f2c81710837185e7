"""Labs 11 to 13: damaged files that can be named by their evidence, and the numbers that the text rests on."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from places import ROOT

from miniquant import fake_quantize_state, open_gguf_lite, plots, preset, read_gguf_lite, write_gguf_lite
from miniquant.evaluate.verify import ACTIVATION_LIMIT, layer_errors, layer_outputs, over_limit, tensor_errors
from miniquant.lab import find
from miniquant.lab.checking import evaluate
from miniquant.lessons.verify.mystery import BUGS, DAMAGE, damaged_files
from miniquant.models.pretrained import load_gguf_lite, load_pretrained
from miniquant.plots.layers import _first_damaged

# ---- the mystery -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mystery(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mystery")
    model, good = load_pretrained(), folder / "good.gguf-lite"
    schemes = preset("int4-small-embeddings", model)
    write_gguf_lite(good, model, schemes)
    before = good.read_bytes()
    files = damaged_files(good, {name: w.numpy() for name, w in model.state_dict().items()}, folder)
    assert good.read_bytes() == before
    computed = {name: w.numpy() for name, w in fake_quantize_state(model, schemes).items()}
    found = {letter: {n: w.numpy() for n, w in read_gguf_lite(path).items()} for letter, path in files.items()}
    return good, files, computed, found


@pytest.fixture(scope="module")
def layers(mystery):
    good, files, _, _ = mystery
    expected, tokens = load_gguf_lite(good), torch.arange(40)[None]
    return {letter: layer_errors(expected, load_gguf_lite(path), tokens) for letter, path in files.items()}


def wrong(mystery, letter):
    _, _, computed, found = mystery
    return [name for name, error in tensor_errors(computed, found[letter]).items() if error > 0]


def test_every_damaged_file_is_legal_and_has_the_size_and_the_metadata_of_the_good_one(mystery):
    good, files, _, _ = mystery
    with open_gguf_lite(good) as expected:
        for path in files.values():
            assert path.stat().st_size == good.stat().st_size
            with open_gguf_lite(path) as file:
                assert file.metadata == expected.metadata
                assert list(file.tensors) == list(expected.tensors)


def test_no_two_files_have_the_same_bug_and_no_name_of_a_file_says_it(mystery):
    bugs = [damage.__name__.replace("_", " ") for damage in DAMAGE.values()]
    assert len(set(bugs)) == 5
    assert set(bugs) < set(BUGS)
    assert not any(word in path.name for path in mystery[1].values() for bug in bugs for word in bug.split())


def test_file_a_has_another_factor_in_each_group_of_64(mystery):
    _, _, computed, found = mystery
    (name,) = wrong(mystery, "A")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (found["A"][name] / computed[name]).reshape(len(computed[name]), -1, 64)
    middle = np.nanmedian(ratio, axis=2, keepdims=True)
    assert np.nanmax(np.abs(ratio / middle - 1)) < 1e-6
    assert len(np.unique(middle.round(3))) > 20


def test_file_b_has_its_neighbours_exchanged_in_one_layer(mystery):
    _, _, computed, found = mystery
    names = wrong(mystery, "B")
    assert len(names) == 4
    assert len({name.split(".")[1] for name in names}) == 1
    for name in names:
        pairs = computed[name].reshape(-1, 2)[:, ::-1]
        assert np.array_equal(found["B"][name].reshape(-1, 2), pairs)


def test_file_c_has_every_scale_off_by_less_than_a_thousandth_and_none_too_large(mystery):
    _, _, computed, found = mystery
    names = wrong(mystery, "C")
    assert len(names) == 17
    for name in names:
        gap = np.abs(computed[name]) - np.abs(found["C"][name])
        assert gap.min() >= 0
        assert np.all(gap <= np.abs(computed[name]) * 1e-3)


def test_file_d_has_two_tensors_in_each_others_place(mystery):
    _, _, computed, found = mystery
    one, two = wrong(mystery, "D")
    assert np.array_equal(found["D"][one], computed[two])
    assert np.array_equal(found["D"][two], computed[one])


def test_file_e_has_no_negative_weight_in_one_tensor(mystery):
    _, _, computed, found = mystery
    (name,) = wrong(mystery, "E")
    positive = computed[name] >= 0
    assert computed[name].min() < 0 <= found["E"][name].min()
    assert np.array_equal(found["E"][name][positive], computed[name][positive])


def test_the_first_output_that_is_not_exact_is_the_place_and_the_first_beyond_the_limit_need_not_be(mystery, layers):
    for letter in DAMAGE:
        place = wrong(mystery, letter)[0].removesuffix(".weight")
        assert over_limit(layers[letter], 0)[0] == _first_damaged(layers[letter]) == place
    assert over_limit(layers["C"], ACTIVATION_LIMIT)[0] != _first_damaged(layers["C"])


def _in_one_mode(expected, found, tokens):
    kept = expected.training
    expected.eval()
    errors = layer_errors(expected, found, tokens)
    expected.train(kept)
    return errors


def test_a_part_whose_mode_is_changed_is_named_although_the_model_has_its_mode_again():
    report = repr(evaluate(find("layer_errors"), _in_one_mode))
    assert "`block.fc2`, a part of the model, was in evaluation mode, and your function changed that" in report


def _weights_loaded(expected, found, tokens):
    before = layer_outputs(expected, tokens)
    expected.load_state_dict(found.state_dict())
    return tensor_errors(before, layer_outputs(expected, tokens))


def test_weights_that_a_call_changes_are_named_before_another_call_sees_them():
    report = repr(evaluate(find("layer_errors"), _weights_loaded))
    assert "your function changes the weights of `expected`; work on a copy" in report and "Every value" not in report


def test_a_report_on_the_mystery_never_says_the_right_word():
    spec = find("name_the_bug")
    for word in BUGS:
        report = evaluate(spec, lambda file, word=word: word)
        assert report.status == "failed"
        shown = repr(report).replace(repr(word), "")
        assert not any(repr(bug) in shown for bug in BUGS), shown
    assert evaluate(spec, lambda file: "a cosmic ray").what.endswith("not a word of the list BUGS")


# ---- the chart -------------------------------------------------------------------------------------------------------


def test_the_chart_of_layers_marks_where_each_line_begins_and_says_it_in_its_alternative_text(layers):
    figure = plots.layer_curves(layers, limit=ACTIVATION_LIMIT)
    (axes,) = figure.axes
    large = [line for line in axes.lines if line.get_markersize() == 9]
    assert [int(line.get_xdata()[0]) for line in large] == [
        list(errors).index(_first_damaged(errors)) for errors in layers.values()
    ]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["start", *(f"layer {i}" for i in range(4)), "end"]
    assert "C: not 0 from tok_emb on" in figure.alt
    assert figure.get_size_inches()[1] < 5


def test_the_chart_of_layers_can_show_models_without_an_error_with_nan_and_a_guess():
    errors = {"tok_emb": 0.0, "layers.0.ln1": 0.0, "ln_f": 0.0}
    assert "exactly 0 everywhere" in plots.layer_curves({"good": errors}).alt
    broken = plots.layer_curves({"bad": {**errors, "ln_f": math.nan}}, limit=1e-3, guess=0.5)
    assert "not 0 from ln_f on, at most nan" in broken.alt
    assert "your guess" in [line.get_label() for line in broken.axes[0].lines]


def test_a_guess_of_a_ratio_is_drawn_beside_the_files(mystery):
    from miniquant.formats.gguf_lite.sizes import file_sizes

    sizes = {"good": file_sizes(mystery[0])}
    for guess, lines in ((None, 0), (math.nan, 0), (8, 1)):
        axes = plots.size_bars(sizes, 14_000_000, bar=6, guess=guess).axes[0]
        assert sum(line.get_label() == "your guess" for line in axes.lines) == lines


# ---- the text --------------------------------------------------------------------------------------------------------


def cell(lab, name):
    notebook = json.loads(next((ROOT / "solutions").glob(f"{lab}-*.ipynb")).read_text("utf-8"))
    return next(c for c in notebook["cells"] if c["id"] == name)


@pytest.mark.parametrize(
    ("name", "config", "share"),
    [
        ("Llama-3-8B", {"vocab_size": 128256, "hidden": 4096, "layers": 32, "mlp": 14336, "kv": 8, "bias": 0}, 13),
        ("Qwen2.5-7B", {"vocab_size": 152064, "hidden": 3584, "layers": 28, "mlp": 18944, "kv": 4, "bias": 1}, 14),
    ],
)
def test_embeddings_and_head_of_large_models_are_the_share_that_lab_12_prints(name, config, share):
    """Counted tensor by tensor from the model's config, as the tensors are in its files; a head has 128 dims."""
    d, kv = config["hidden"], 128 * config["kv"]
    layer = [(d, d), (kv, d), (kv, d), (d, d), (config["mlp"], d), (config["mlp"], d), (d, config["mlp"]), (d,), (d,)]
    layer += [(d,), (kv,), (kv,)] * config["bias"]
    ends = 2 * config["vocab_size"] * d
    total = ends + d + config["layers"] * sum(math.prod(dims) for dims in layer)
    printed = "".join("".join(o["text"]) for o in cell("12", "l12-llama")["outputs"])
    line = next(line for line in printed.splitlines() if line.startswith(name))
    assert f"{total:,} weights, {ends:,} of them" in line
    assert line.endswith(f" {share} %")
    assert round(100 * ends / total) == share


def test_the_numbers_that_a_lab_needs_are_printed_and_not_true_or_false():
    for lab in ("11", "12", "13"):
        notebook = json.loads(next((ROOT / "solutions").glob(f"{lab}-*.ipynb")).read_text("utf-8"))
        for found in notebook["cells"]:
            for output in found.get("outputs", []):
                text = "".join(output.get("text", []))
                assert "True" not in text.split(), found["id"]
                assert "False" not in text.split(), found["id"]
