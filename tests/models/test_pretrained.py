"""The model that comes with the package, and models rebuilt from a file alone."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import struct
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import torch

from conformance.gguf_lite_files import F32, assemble, descriptor
from miniquant import FormatError, MiniquantError, fake_quantize_state, preset, write_gguf_lite
from miniquant.models.minigpt import MiniGPT, MiniGPTConfig, random_model
from miniquant.models.pretrained import config_from_metadata, how_it_was_made, load_gguf_lite, load_pretrained

METADATA = {
    "architecture": "MiniGPT",
    "config.vocab_size": "10",
    "config.context": "6",
    "config.d_model": "8",
    "config.n_layers": "1",
    "config.n_heads": "2",
    "config.d_mlp": "12",
    "config.layer_norm_epsilon": "1e-05",
}
SMALL = MiniGPTConfig(vocab_size=10, context=6, d_model=8, n_layers=1, n_heads=2, d_mlp=12)


def as_text(metadata: dict[str, str]) -> bytes:
    return "\n".join(f"{k}={v}" for k, v in metadata.items()).encode()


def test_the_committed_model_is_the_default_shape_finite_and_in_evaluation_mode(trained):
    assert trained.config == MiniGPTConfig()
    assert not trained.training
    assert all(torch.isfinite(w).all() and w.dtype == torch.float32 for w in trained.state_dict().values())
    assert trained.state_dict()["tok_emb.weight"].shape == (1024, 256)


def test_the_model_is_loaded_afresh_each_time(trained):
    again = load_pretrained()
    with torch.no_grad():
        again.tok_emb.weight.zero_()
    assert trained.tok_emb.weight.any()
    assert load_pretrained().tok_emb.weight.any()


def test_the_model_says_how_it_was_made():
    made = how_it_was_made()
    assert {"recipe", "config", "python", "torch", "threads", "training_text", "training_tokens"} <= made.keys()
    assert made["config"] == MiniGPTConfig().to_dict()
    assert made["training_tokens"] > 100_000
    json.dumps(made)


def test_the_model_continues_text_with_words_of_its_text(trained):
    from miniquant.models.corpus import load_tokenizer

    tokenizer = load_tokenizer()
    prompt = tokenizer.encode("Return a new").ids
    words = tokenizer.decode(trained.greedy([0, *prompt], 12))
    assert len(words.split()) >= 3
    assert words.isascii()


@pytest.mark.parametrize("name", ["f32", "f16", "int8", "int4-small-embeddings"])
def test_a_model_is_rebuilt_from_the_file_alone(name, tmp_path):
    model = random_model(2)
    schemes = preset(name, model)
    write_gguf_lite(tmp_path / "m", model, schemes)
    loaded = load_gguf_lite(tmp_path / "m")
    assert type(loaded) is MiniGPT
    assert loaded.config == model.config
    assert not loaded.training
    expected = fake_quantize_state(model, schemes)
    assert all(torch.equal(w, expected[key]) for key, w in loaded.state_dict().items())


def test_a_model_is_rebuilt_in_another_process_that_has_only_the_file(tmp_path):
    model = random_model(6)
    write_gguf_lite(tmp_path / "m", model, preset("f32", model))
    shutil.move(tmp_path / "m", tmp_path / "moved.bin")
    how = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"  # torch is there already
    with ProcessPoolExecutor(1, multiprocessing.get_context(how)) as other:
        assert other.submit(continued, tmp_path / "moved.bin").result() == (model.greedy([1, 2, 3], 20), False)


def continued(path):
    """What a model of a file goes on with, and whether this is the process of the test."""
    torch.set_num_threads(1)
    return load_gguf_lite(path).greedy([1, 2, 3], 20), multiprocessing.parent_process() is None


def test_tensors_in_another_order_make_up_the_same_model(tmp_path):
    model = random_model(1, SMALL)
    state = dict(reversed(model.state_dict().items()))
    write_gguf_lite(tmp_path / "m", state, {}, METADATA)
    loaded = load_gguf_lite(tmp_path / "m")
    assert loaded.config == SMALL
    assert all(torch.equal(w, state[name]) for name, w in loaded.state_dict().items())


def test_a_config_survives_metadata():
    assert config_from_metadata(METADATA | {"author": "someone"}) == SMALL
    odd = MiniGPTConfig(layer_norm_epsilon=1 / 3)
    metadata = {f"config.{k}": f"{v}" for k, v in odd.to_dict().items()} | {"architecture": "MiniGPT"}
    assert config_from_metadata(metadata) == odd


@pytest.mark.parametrize("key", METADATA)
def test_metadata_without_a_field_says_which(key):
    metadata = {k: v for k, v in METADATA.items() if k != key}
    with pytest.raises(MiniquantError, match=key.removeprefix("config.")):
        config_from_metadata(metadata)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("architecture", "Llama", "'Llama'; this loads MiniGPT"),
        ("config.n_layers", "four", "config.n_layers='four'; expected a number"),
        ("config.n_layers", "", "expected a number"),
        ("config.n_layers", "1.5", "expected a number"),
        ("config.n_layers", "0", "above 0"),
        ("config.n_layers", "-1", "above 0"),
        ("config.n_heads", "0", "above 0"),
        ("config.n_heads", "3", "d_model 8 must be a multiple of n_heads 3"),
        ("config.d_model", "4294967296", r"below 2\*\*32"),
        ("config.vocab_size", "9" * 5000, "expected a number"),
        ("config.layer_norm_epsilon", "nan", "above 0"),
        ("config.layer_norm_epsilon", "inf", "below"),
        ("config.layer_norm_epsilon", "-1e-5", "above 0"),
    ],
)
def test_metadata_that_describes_no_minigpt_says_why_in_a_short_message(key, value, message):
    with pytest.raises(MiniquantError, match=message) as caught:
        config_from_metadata(METADATA | {key: value})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("config.n_layers", "4000000000"),
        ("config.n_layers", "2"),
        ("config.vocab_size", "4000000000"),
        ("config.vocab_size", "11"),
        ("config.d_mlp", "4000000000"),
        ("config.d_model", "4000000000"),
        ("config.context", "7"),
    ],
)
def test_a_config_that_does_not_fit_the_tensors_is_refused_before_anything_is_built(key, value, tmp_path):
    """Four thousand million layers would take hours and all memory, were the config believed."""
    write_gguf_lite(tmp_path / "m", dict(random_model(1, SMALL).state_dict()), {}, METADATA | {key: value})
    with pytest.raises(MiniquantError, match=r"layers|has shape|no file holds"):
        load_gguf_lite(tmp_path / "m")


def test_two_huge_dims_at_once_are_refused_too(tmp_path):
    huge = {"config.vocab_size": "4000000000", "config.d_model": "4000000000"}
    write_gguf_lite(tmp_path / "m", dict(random_model(1, SMALL).state_dict()), {}, METADATA | huge)
    with pytest.raises(MiniquantError):
        load_gguf_lite(tmp_path / "m")


def test_a_tensor_missing_added_or_misshapen_is_named(tmp_path):
    state = {name: w.numpy() for name, w in random_model(1, SMALL).state_dict().items()}
    for change, message in [
        ({"ln_f.bias": None}, r"'ln_f.bias' has shape missing, a MiniGPT of this config has \(8,\)"),
        ({"extra.weight": np.ones(2, np.float32)}, r"'extra.weight' has shape \(2,\), .* has no such tensor"),
        ({"pos_emb.weight": np.ones((8, 6), np.float32)}, r"'pos_emb.weight' has shape \(8, 6\), .* has \(6, 8\)"),
    ]:
        changed = {name: w for name, w in (state | change).items() if w is not None}
        write_gguf_lite(tmp_path / "m", changed, {}, METADATA)
        with pytest.raises(MiniquantError, match=message):
            load_gguf_lite(tmp_path / "m")


def test_a_file_that_is_no_model_and_a_malformed_file_are_refused(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(assemble([descriptor(b"w", (2,), F32)], struct.pack("<2f", 1, 2)))
    with pytest.raises(MiniquantError, match="this loads MiniGPT"):
        load_gguf_lite(path)
    path.write_bytes(assemble([], metadata=as_text(METADATA)))
    with pytest.raises(MiniquantError, match="0 tensors cannot make up 1 layers"):
        load_gguf_lite(path)
    path.write_bytes(b"TFLG" * 10)
    with pytest.raises(FormatError):
        load_gguf_lite(path)
    with pytest.raises(FileNotFoundError):
        load_gguf_lite(tmp_path / "missing")
