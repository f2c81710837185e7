"""Rotations: the transform is the Hadamard matrix, a rotated model computes the same, its outliers are spread out."""

from __future__ import annotations

import copy

import gguf
import numpy as np
import pytest
import torch
from calibration import walk_linear_layers
from hf_models import LLAMA, LLAMA3, by_hand, randomise, save_llama, save_qwen2
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from miniquant.calibrate import calibration_tokens, fold_norms, plant_outliers, rotate, round_to_nearest
from miniquant.calibrate.inputs import get_weight
from miniquant.calibrate.rotation import fast_hadamard, random_rotation
from miniquant.core.errors import FormatError, QuantizationError, SchemeError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.models import minillama
from miniquant.models.bridge import ModelExporter
from miniquant.models.huggingface.convert import convert_folder, write_llama
from miniquant.models.language import logits_of
from miniquant.models.minigpt import random_model
from miniquant.models.quantizer import frozen_layers

SHAPES = {
    "grouped": {},
    "tied head": {"tie_word_embeddings": True},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "Llama 3": LLAMA3,
    "a width that is no power of two": {"hidden_size": 48, "num_attention_heads": 2, "num_key_value_heads": 1},
    "Qwen2": {"model_type": "qwen2", "tie_word_embeddings": True},
}


def small(model_type="llama", **config):
    kind, shape = {"llama": (LlamaForCausalLM, LlamaConfig), "qwen2": (Qwen2ForCausalLM, Qwen2Config)}[model_type]
    model = kind(shape(**LLAMA | config))
    randomise(model)
    return model.eval()


@pytest.fixture(scope="module")
def tokens():
    return np.random.default_rng(0).integers(0, 520, (4, 24))


@torch.no_grad()
def apart(model, other, tokens):
    ids = torch.from_numpy(tokens[:2])
    return float((logits_of(model, ids) - logits_of(other, ids)).abs().max())


def peak(x: np.ndarray) -> float:
    """The largest number in parts of the root mean square."""
    return float(np.abs(x).max() / np.sqrt(np.mean(np.square(x))))


# ---- the transform ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", range(8))
def test_the_fast_transform_is_the_matrix_of_signs(power):
    n = 2**power
    signs = np.array([[(-1) ** (i & j).bit_count() for j in range(n)] for i in range(n)])
    x = np.random.default_rng(power).normal(size=(3, n))
    assert np.allclose(fast_hadamard(x), x @ signs / np.sqrt(n), rtol=0, atol=1e-12)


@given(st.integers(0, 7), st.integers(0, 2**32 - 1))
def test_the_transform_keeps_sizes_and_undoes_itself(power, seed):
    x = np.random.default_rng(seed).normal(size=(2, 3, 2**power))
    y = fast_hadamard(x)
    assert np.allclose(np.square(y).sum(-1), np.square(x).sum(-1)) and np.allclose(fast_hadamard(y), x)


def test_the_transform_leaves_its_argument_and_the_dtype():
    x = np.arange(8, dtype=np.float32)
    y = fast_hadamard(x)
    assert y.dtype == np.float32 and x.tolist() == list(range(8)) and not np.shares_memory(x, y)
    assert not np.shares_memory(fast_hadamard(x[:1]), x)


@pytest.mark.parametrize("n", [0, 3, 12, 48])
def test_a_row_that_is_no_power_of_two_has_no_fast_transform(n):
    with pytest.raises(QuantizationError, match=f"takes rows of a power of two, found {n}"):
        fast_hadamard(np.zeros((2, n)))


@pytest.mark.parametrize("n", [1, 2, 3, 12, 48, 64, 100, 256])
def test_a_random_rotation_is_orthogonal_and_its_numbers_are_alike(n):
    q = random_rotation(n)
    assert np.allclose(q @ q.T, np.eye(n), atol=1e-12)
    limit = 1 if n & (n - 1) == 0 else np.sqrt(2)
    assert peak(q) <= limit + 1e-9
    assert np.array_equal(q, random_rotation(n)) and (n < 8 or not np.array_equal(q, random_rotation(n, seed=1)))


def test_equal_numbers_become_an_outlier_without_signs_and_none_with_them():
    x = np.ones(256)
    assert peak(fast_hadamard(x)) == 16
    assert peak(x @ random_rotation(256)) < 4


# ---- a rotated model -------------------------------------------------------------------------------------------------


@pytest.fixture
def norms_in_float64(monkeypatch):
    """The norms of transformers go through float32, whatever they are given."""

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)

    for kind, name in (("llama", "Llama"), ("qwen2", "Qwen2")):
        monkeypatch.setattr(f"transformers.models.{kind}.modeling_{kind}.{name}RMSNorm.forward", forward)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rotated_model_computes_the_same_in_float64(shape, tokens, norms_in_float64):
    model = small(**SHAPES[shape]).double()
    before = {name: w.clone() for name, w in model.state_dict().items()}
    assert apart(model, fold_norms(model), tokens) < 1e-11
    for heads in (True, False):
        twin = rotate(model, heads=heads)
        assert apart(model, twin, tokens) < 1e-11
        moved = {name for name, w in twin.state_dict().items() if not torch.equal(w, before[name])}
        assert {name for name in before if name.endswith("weight")} <= moved
    assert all(torch.equal(w, before[name]) for name, w in model.state_dict().items()), "the model was touched"
    assert model.config.tie_word_embeddings == SHAPES[shape].get("tie_word_embeddings", False)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rotated_model_computes_the_same_in_float32(shape, tokens):
    model = small(**SHAPES[shape])
    assert apart(model, rotate(model), tokens) < 1e-5


@pytest.mark.parametrize("planted", [False, True])
def test_the_logits_of_minillama_stay_within_1e_5(minillama_model, planted):
    """Logits of up to 17, summed in float64; float32 sums alone are off by more than 1e-5, rotated or not."""
    tokens = calibration_tokens(2, 64, minillama.load_tokenizer())
    twin = rotate(plant_outliers(minillama_model) if planted else minillama_model)
    assert next(twin.parameters()).dtype == torch.float32
    assert apart(copy.deepcopy(minillama_model).double(), twin.double(), tokens) < 1e-5


def test_planted_outliers_are_spread_out(minillama_model):
    tokens = calibration_tokens(4, 64, minillama.load_tokenizer())
    peaks = {}
    for name, model in (("planted", plant_outliers(minillama_model)), ("rotated", None)):
        model = rotate(plant_outliers(minillama_model)) if model is None else model
        seen = {layer: inputs.largest for layer, _, inputs in walk_linear_layers(model, tokens)}
        peaks[name] = {
            layer: peak(largest) for layer, largest in seen.items() if layer.endswith(("q_proj", "gate_proj", "o_proj"))
        }
    entering = [layer for layer in peaks["planted"] if not layer.endswith("o_proj")]
    assert all(peaks["planted"][layer] > 5 and peaks["rotated"][layer] < 2 for layer in entering)


def test_a_fold_leaves_gains_of_one_and_takes_planted_outliers_out(minillama_model):
    """They were planted in the gains, so folding the gains alone undoes that; exactly, since both are powers of two."""
    plain, planted = fold_norms(minillama_model), fold_norms(plant_outliers(minillama_model))
    gains = [w for name, w in planted.state_dict().items() if "norm" in name]
    assert len(gains) == 9 and all((w == 1).all() for w in gains)
    assert all(torch.equal(w, planted.state_dict()[name]) for name, w in plain.state_dict().items())


def test_an_outlier_in_the_stream_itself_is_spread_by_the_rotation_alone(minillama_model):
    """An orthogonal matrix can make an outlier as well as spread one: the strongest direction goes to one channel."""
    tokens = calibration_tokens(4, 64, minillama.load_tokenizer())
    folded = fold_norms(minillama_model)
    _, _, seen = next(iter(walk_linear_layers(folded, tokens)))
    _, directions = np.linalg.eigh(seen.hessian)
    found = {}
    for name, model in (("planted", rotate(folded, directions)), ("rotated", rotate(rotate(folded, directions)))):
        _, _, seen = next(iter(walk_linear_layers(model, tokens)))
        found[name] = peak(np.sqrt(np.diag(seen.hessian)))
    assert found["planted"] > 4 and found["rotated"] < 1.5


def test_the_rotation_by_the_identity_is_the_fold(tokens):
    model = small()
    folded, same = fold_norms(model).state_dict(), rotate(model, np.eye(64), heads=False).state_dict()
    assert all(torch.equal(w, same[name]) for name, w in folded.items())


def test_weights_of_sixteen_bits_are_rotated_in_float32(tokens):
    model = small().to(torch.bfloat16)
    twin = rotate(model)
    assert {w.dtype for w in twin.state_dict().values()} == {torch.float32}
    assert model.lm_head.weight.dtype == torch.bfloat16
    assert apart(model.float(), twin, tokens) < 1e-5


def test_a_seed_gives_the_same_weights_every_time_and_another_seed_others():
    first, again, other = (rotate(small(), heads=True, seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(w, again[name]) for name, w in first.items())
    assert not torch.equal(
        first["model.layers.0.self_attn.v_proj.weight"], other["model.layers.0.self_attn.v_proj.weight"]
    )


def test_a_head_that_was_tied_stands_alone_and_the_embedding_is_not_its_own_head():
    model = small(tie_word_embeddings=True)
    twin = rotate(model)
    assert not twin.config.tie_word_embeddings and model.config.tie_word_embeddings
    assert twin.lm_head.weight is not twin.model.embed_tokens.weight
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert not torch.allclose(twin.lm_head.weight, twin.model.embed_tokens.weight)


def test_other_models_and_matrices_that_are_no_rotation_are_refused():
    model = small()
    with pytest.raises(QuantizationError, match=r"MiniGPT is not rotated here; .* a LayerNorm subtracts the mean"):
        rotate(random_model())
    with pytest.raises(QuantizationError, match=r"a rotation of this model is \(64, 64\), found \(32, 32\)"):
        rotate(model, np.eye(32))
    for wrong in (np.eye(64) * 1.001, np.ones((64, 64)), np.full((64, 64), np.nan)):
        with pytest.raises(QuantizationError, match=r"differs from the identity by .*, so Q is not orthogonal"):
            rotate(model, wrong)


def test_no_rotation_passes_behind_swiglu(tokens):
    """The inputs of down are products of two numbers each: a mix before is no mix after."""
    model = small()
    twin, h = copy.deepcopy(model), torch.from_numpy(random_rotation(96)).float()
    mlp = twin.model.layers[0].mlp
    with torch.no_grad():
        mlp.up_proj.weight.copy_(h.T @ mlp.up_proj.weight)
        mlp.down_proj.weight.copy_(mlp.down_proj.weight @ h)
    assert apart(model, twin, tokens) > 1e-2


def test_a_layer_norm_commutes_with_no_rotation_that_moves_the_mean():
    x = torch.from_numpy(np.random.default_rng(0).normal(1, 2, (5, 64)))
    q = torch.from_numpy(random_rotation(64))
    norms = {
        "rms": lambda x: x / x.square().mean(-1, keepdim=True).sqrt(),
        "layer": lambda x: torch.nn.functional.layer_norm(x, (64,), eps=0),
    }
    off = {name: float((norm(x @ q) - norm(x) @ q).abs().max()) for name, norm in norms.items()}
    assert off["rms"] < 1e-12 and off["layer"] > 0.1


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["grouped", "tied head", "Llama 3", "Qwen2"])
def folder_and_model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    if request.param == "Qwen2":
        return folder, save_qwen2(folder)
    return folder, save_llama(folder, pre="llama-bpe", **SHAPES[request.param])


@pytest.mark.parametrize("kind", ["F32", "F16"])
def test_a_model_in_memory_becomes_the_file_of_its_folder(folder_and_model, kind, tmp_path):
    folder, model = folder_and_model
    convert_folder(folder, tmp_path / "folder.gguf", kind)
    write_llama(tmp_path / "memory.gguf", model, folder, kind)
    assert (tmp_path / "folder.gguf").read_bytes() == (tmp_path / "memory.gguf").read_bytes()


def test_a_rotated_model_is_an_ordinary_llama_for_llama_cpp(folder_and_model, tokens, tmp_path):
    folder, model = folder_and_model
    twin = rotate(model)
    types = write_llama(tmp_path / "rotated.gguf", twin, folder)
    assert "output.weight" in types  # its own, though the folder's is tied
    stored = {tensor.name: tensor.data for tensor in gguf.GGUFReader(tmp_path / "rotated.gguf").tensors}
    assert stored.keys() == types.keys()
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[model.config.model_type.upper()], 2)
    for name, w in twin.state_dict().items():
        owner, kind = name.rsplit(".", 1)
        expected = w.numpy() if w.ndim == 1 and kind == "weight" else by_hand(name, w.numpy(), model.config)
        assert np.array_equal(stored[f"{names.get_name(owner)}.{kind}"], expected), name
    ids = tokens[0].tolist()
    with LlamaCpp(tmp_path / "rotated.gguf", float32_cache=True) as llama, torch.no_grad():
        ours = logits_of(model, torch.tensor([ids]))[0].numpy()
        assert np.abs(llama.logits(ids) - ours).max() < 1e-4


def test_frozen_integers_of_a_rotated_model_go_into_a_file(folder_and_model, tmp_path):
    folder, model = folder_and_model
    frozen = round_to_nearest(rotate(model))
    path = ModelExporter(export_dir=tmp_path).export_gguf_model(frozen, folder, model.config.model_type)
    reader = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    assert reader["output.weight"].tensor_type.name == "Q8_0" and len(frozen_layers(frozen)) == 14
    name = "model.layers.1.mlp.down_proj"
    back = gguf.quants.dequantize(reader["blk.1.ffn_down.weight"].data, reader["blk.1.ffn_down.weight"].tensor_type)
    assert np.array_equal(back, get_weight(frozen.get_submodule(name)))


def test_another_model_or_folder_is_refused_before_anything_is_written(folder_and_model, tmp_path):
    folder, model = folder_and_model
    other = small(hidden_size=48, num_attention_heads=2, num_key_value_heads=1)
    with pytest.raises(SchemeError, match="a MiniGPT cannot be written as what"):
        write_llama(tmp_path / "x.gguf", random_model(), folder)
    expected = SchemeError if model.config.model_type == "qwen2" else FormatError
    with pytest.raises(expected, match=r"and the model has|cannot be written as what"):
        write_llama(tmp_path / "x.gguf", other, folder)
    assert not list(tmp_path.iterdir())
