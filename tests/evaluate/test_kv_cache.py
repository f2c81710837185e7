"""The KV cache in llama.cpp: the types that were asked for are the ones that it has, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from held_out import windows
from thorough import tried

from miniquant.core.errors import MiniquantError, SchemeError
from miniquant.evaluate.kv_cache import TYPES, CacheShape, cache_qualities, float32_logits
from miniquant.evaluate.llamacpp import LlamaCpp, LlamaCppError
from miniquant.evaluate.llamacpp_cache import cache_of
from miniquant.formats.gguf import GGMLType, decode, encode
from miniquant.models import minillama
from miniquant.models.huggingface.convert import convert_folder

F16, Q8_0, Q4_0 = GGMLType.F16, GGMLType.Q8_0, GGMLType.Q4_0
N = 20  # tokens


@pytest.fixture(scope="module")
def tokens():
    return windows(1)[0][:N].tolist()


@pytest.fixture(scope="module")
def parts(trained, tokens):
    """The keys and values of every layer, as PyTorch computes them: (layers, 2, tokens, width)."""
    found = []
    handles = [
        block.attn.qkv.register_forward_hook(lambda *call: found.append(call[2][0].split(256, dim=-1)[1:]))
        for block in trained.blocks
    ]
    with torch.no_grad():
        trained(torch.tensor([tokens]))
    for handle in handles:
        handle.remove()
    return np.array([[part.numpy() for part in layer] for layer in found])


def held(path, tokens, type_k, type_v, rotate=True):
    with LlamaCpp(path, cache_types=(type_k, type_v), rotate_cache=rotate) as llama:
        llama.logits(tokens)
        return llama.cache()


def hadamard(n):
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h / np.sqrt(n)


@pytest.mark.parametrize("kind", TYPES)
def test_llama_cpp_holds_the_types_that_were_asked_for_in_as_many_bytes_as_we_say(kind, exported, tokens):
    path, k, v = exported("F32"), GGMLType[kind], Q8_0
    cache = held(path, tokens, k, v)
    assert {(layer.type_k, layer.type_v) for layer in cache.layers} == {(k, v)}
    assert sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers) == CacheShape.of(path).n_bytes(
        N, k, v
    )
    assert (cache.n_rot_k, cache.n_rot_v) == (64 if k.quantized else 0, 64)


@pytest.mark.parametrize("float32_cache", [False, True])
def test_a_cache_of_floats_holds_the_keys_and_values_that_pytorch_computes(float32_cache, exported, tokens, parts):
    kind = np.float32 if float32_cache else np.float16
    with LlamaCpp(exported("F32"), float32_cache=float32_cache) as llama:
        llama.logits(tokens)
        for layer, (keys, values) in zip(llama.cache().layers, parts, strict=True):
            assert np.abs(layer.keys.view(kind) - keys).max() < 0.01
            assert np.abs(layer.values.view(kind) - values).max() < 0.01


@pytest.mark.parametrize("kind", [Q8_0, GGMLType.Q5_0, Q4_0])
def test_without_rotation_the_first_layer_s_rows_are_our_blocks(kind, exported, tokens, parts):
    layer = held(exported("F32"), tokens, kind, kind, rotate=False).layers[0]
    for raw, x in ((layer.keys, parts[0][0]), (layer.values, parts[0][1])):
        assert (raw == encode(x, kind).reshape(raw.shape)).mean() > 0.98  # a rounding apart: another order of sums


@pytest.mark.parametrize("kind", [Q8_0, Q4_0])
def test_with_rotation_each_head_s_64_numbers_were_multiplied_by_a_hadamard_matrix(kind, exported, tokens, parts):
    cache = held(exported("F32"), tokens, kind, kind)
    for raw, x in ((cache.layers[0].keys, parts[0][0]), (cache.layers[0].values, parts[0][1])):
        turned = (x.reshape(N, 4, 64) @ hadamard(64)).reshape(x.shape)
        back = decode(raw, kind).reshape(x.shape)
        step = np.abs(turned).max() / (127 if kind is Q8_0 else 7)
        assert np.abs(back - turned).max() < 1.2 * step
        assert np.abs(back - x).max() > 10 * np.abs(back - turned).mean()


def test_fewer_bits_cost_more_and_8_bits_cost_next_to_nothing(exported):
    pairs = [(kind, kind) for kind in ("F16", "Q8_0", "Q5_0", "Q4_0")]
    found = cache_qualities(exported("F32"), pairs, windows(tried(1, 3)))
    kl = [found[pair].kl_divergence.mean for pair in pairs]
    assert kl == sorted(kl)
    assert kl[0] < 1e-6 < kl[1] < 2e-4
    assert 2e-3 < kl[3] < 0.05


def test_keys_and_values_are_told_apart(exported):
    found = cache_qualities(exported("F32"), [("Q4_0", "F16"), ("F16", "Q4_0")], windows(tried(1, 2)), rotate=False)
    keys, values = (quality.kl_divergence.mean for quality in found.values())
    assert list(found) == [("Q4_0", "F16"), ("F16", "Q4_0")]
    assert keys > values > 1e-4


def test_another_reference_may_be_given(exported, trained):
    path, chosen = exported("F32"), windows(tried(1, 2))
    ours = cache_qualities(path, [("F16", "F16")], chosen, reference=trained)["F16", "F16"]
    theirs = cache_qualities(path, [("F16", "F16")], chosen)["F16", "F16"]
    assert np.array_equal(ours.nll, theirs.nll)
    assert ours.kl.mean() > theirs.kl.mean()  # GELU by a table, too


def test_logits_with_a_float32_cache_are_one_array_a_window(exported):
    first, second = float32_logits(exported("F32"), windows(2)[:, :9])
    assert first.shape == second.shape == (8, 1024)


def test_the_logits_of_the_last_file_are_kept(exported, monkeypatch):
    path, chosen = exported("F32"), windows(tried(1, 2))[:, :9]
    known = float32_logits(path, chosen)
    monkeypatch.setattr("miniquant.evaluate.kv_cache.LlamaCpp", None)
    assert np.array_equal(float32_logits(path, chosen), known)
    for other in ((exported("Q8_0"), chosen), (path, chosen[:, 1:])):
        with pytest.raises(TypeError):  # they would have to be computed
            float32_logits(*other)


def test_a_change_of_the_second_part_of_a_model_is_a_change(exported, tmp_path, monkeypatch):
    one, two = (tmp_path / f"m [x]-0000{n}-of-00002.gguf" for n in (1, 2))
    one.write_bytes(exported("F32").read_bytes())
    two.write_bytes(b"a tensor")
    float32_logits(one, windows(2)[:, :9])
    monkeypatch.setattr("miniquant.evaluate.kv_cache.LlamaCpp", None)
    float32_logits(one, windows(2)[:, :9])  # they are kept
    two.write_bytes(b"A tensor")
    with pytest.raises(TypeError):  # they would have to be computed
        float32_logits(one, windows(2)[:, :9])


def test_a_model_of_two_key_value_heads_needs_half_the_cache(tmp_path):
    convert_folder(minillama.folder(), tmp_path / "m.gguf", "F16")
    assert CacheShape.of(tmp_path / "m.gguf") == CacheShape(layers=4, kv_heads=2, width_k=64, width_v=64)


def test_what_llama_cpp_cannot_store_is_refused_in_its_words(exported):
    path = exported("F32")
    with pytest.raises(LlamaCppError, match="block size 256 does not divide n_embd_head_k=64"):
        LlamaCpp(path, cache_types=(GGMLType.Q4_K, F16))
    with pytest.raises(LlamaCppError, match="4321 is no type"):
        LlamaCpp(path, cache_types=(4321, F16))
    with pytest.raises(LlamaCppError, match="pass one of the two"):
        LlamaCpp(path, float32_cache=True, cache_types=(F16, F16))
    with pytest.raises(SchemeError, match="Q9"):
        cache_qualities(path, [("Q9", "F16")], windows(1))
    with pytest.raises(MiniquantError, match="a head of 80 numbers is no whole number of Q8_0's 32"):
        CacheShape(2, 2, 80, 80).n_bytes(1, "Q8_0", "F16")


def test_a_switch_in_the_user_s_environment_does_not_change_what_is_measured(exported, tokens, monkeypatch):
    monkeypatch.setenv("LLAMA_ATTN_ROT_DISABLE", "1")
    assert held(exported("F32"), tokens, Q8_0, Q8_0).n_rot_k == 64


@pytest.mark.parametrize("cut", [0, 5, 30, -1])
def test_a_cache_that_is_laid_out_in_another_way_is_refused(cut, exported, tokens):
    with LlamaCpp(exported("F32")) as llama:
        llama.logits(tokens)
        state = llama._call("state")
    with pytest.raises(MiniquantError, match="lays its cache out in another way"):
        cache_of(state[:cut])
