"""Quark's table on two models: it comes from these weights, reaches its bars, and the card of MiniLlama repeats it."""

from __future__ import annotations

import hashlib
import json
import platform
import re

import pytest
import quark_table
from places import ROOT
from tqdm import tqdm

from miniquant.calibrate import calibration_tokens
from miniquant.models import corpus, minillama

PROGRAMS = ("pytorch", "llamacpp")


@pytest.fixture(scope="module")
def table():
    return json.loads((ROOT / "experiments" / "28-quark-table" / "results.json").read_text("utf-8"))


def test_the_stored_table_has_every_row_of_both_models_as_their_weights_are_now(table):
    assert list(table["models"]) == list(quark_table.SUBJECTS) == ["MiniGPT", "MiniLlama"]
    for name, model in table["models"].items():
        assert list(model["rows"]) == list(quark_table.METHODS) == ["float", "Q4_1", "AWQ + Q4_1", "GPTQ + Q4_1"]
        weights = quark_table.SUBJECTS[name].weights.read_bytes()
        assert model["weights_sha256"] == hashlib.sha256(weights).hexdigest()


def test_it_was_measured_on_the_held_out_text_and_calibrated_on_training_text(table):
    if table["versions"]["python"] != platform.python_version():
        pytest.skip("another Python has other documentation")
    assert table["text_hash"] == corpus.text_hash(corpus.held_out_documents("topics"))
    found = table["models"]["MiniLlama"]
    windows = corpus.held_out_windows(tokenizer=minillama.load_tokenizer())
    tokens = calibration_tokens(tokenizer=minillama.load_tokenizer())
    assert (found["windows"], found["tokens"]) == (len(windows), windows[:, 1:].size)
    assert found["calibration"] == {"windows": 128, "sha256": quark_table._hash(tokens.astype("<i8").tobytes(), 12)}


def test_every_layer_of_every_file_is_the_frozen_one_and_no_fold_moves_a_logit(table):
    for name, layers in (("MiniGPT", 16), ("MiniLlama", 28)):
        model = table["models"][name]
        counts = {(row["equal"], row["layers"]) for row in model["rows"].values() if "layers" in row}
        assert counts == {(layers, layers)}
        assert list(model["folds"]) == ["AWQ", "SmoothQuant"]
        assert 0 < max(model["folds"].values()) < 1e-5
        assert len({row["bytes"] for label, row in model["rows"].items() if label != "float"}) == 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_gptq_leaves_less_than_half_of_the_divergence_on_both_models(table, program):
    for model in table["models"].values():
        assert model["rows"]["GPTQ + Q4_1"][program]["against_plain"]["kl_ratio"]["high"] < 0.5


def test_both_programs_tell_the_same_story(table):
    for model in table["models"].values():
        for row in model["rows"].values():
            one, two = (row[program]["perplexity"] for program in PROGRAMS)
            assert abs(one["mean"] - two["mean"]) < 0.01 * one["mean"]
            assert one["low"] < one["value"] < one["high"]


def test_a_small_run_gives_rows_of_the_same_form_and_files_that_are_equal(table, monkeypatch):
    subject = quark_table.SUBJECTS["MiniLlama"]
    methods = {name: quark_table.METHODS[name] for name in ("float", "Q4_1")}
    monkeypatch.setattr(quark_table, "METHODS", methods)
    monkeypatch.setattr(quark_table, "FOLDS", {"SmoothQuant": quark_table.FOLDS["SmoothQuant"]})
    windows = corpus.held_out_windows(limit=2, tokenizer=subject.tokenizer())
    found = quark_table.measure(subject, windows, calibration_tokens(2, 64, subject.tokenizer()), tqdm(disable=True))
    stored = table["models"]["MiniLlama"]
    assert found.keys() == stored.keys()
    for name, row in found["rows"].items():
        assert _form(row) == _form(stored["rows"][name])
        assert row["bytes"] == stored["rows"][name]["bytes"]
    assert found["rows"]["Q4_1"]["equal"] == 28
    assert found["folds"]["SmoothQuant"] < 1e-5


def _form(value):
    return {key: _form(part) for key, part in value.items()} if isinstance(value, dict) else type(value)


def test_a_file_with_another_integer_is_not_counted_as_equal(minillama_model, tmp_path):
    from miniquant.calibrate import round_to_nearest
    from miniquant.models.bridge import ModelExporter

    subject, frozen = quark_table.SUBJECTS["MiniLlama"], round_to_nearest(minillama_model)
    path = ModelExporter(export_dir=tmp_path).export_gguf_model(frozen, subject.folder, "llama", "F32")
    damaged = bytearray(path.read_bytes())
    tensor = next(t for t in quark_table.gguf.GGUFReader(path).tensors if t.name == "blk.2.attn_k.weight")
    damaged[tensor.data_offset + 4] ^= 1  # the first nibble of the first block
    path.write_bytes(damaged)
    assert quark_table.equal_layers(subject, frozen, path) == 27


def test_the_card_of_minillama_repeats_the_table(table):
    card = (minillama.folder() / "README.md").read_text("utf-8")
    assert quark_table.card_table(table) in card
    assert "| MiniGPT |" in card and "| MiniLlama |" in card


def test_the_results_say_nothing_about_whose_machine_it_was(table):
    assert set(table["hardware"]) == {"cpu", "cores", "system"}
    assert not re.search(r"/(home|root|work|tmp)\b", json.dumps(table))
