"""The lab on the KV cache: its quantizer is Q4_1's, its cache is the forward pass's, and what it concludes is true."""

from __future__ import annotations

import re

import nbformat
import numpy as np
import pytest
from held_out import windows
from places import ROOT

from miniquant.evaluate.kv_cache import CacheShape
from miniquant.formats.gguf import GGMLType, decode, encode
from miniquant.lessons.kv_cache.append_key import append_key
from miniquant.lessons.kv_cache.attend import attend
from miniquant.lessons.kv_cache.cache_bytes import cache_bytes
from miniquant.lessons.kv_cache.full_context import full_context
from miniquant.lessons.kv_cache.quantize_along import quantize_along
from miniquant.lessons.kv_cache.restore_along import restore_along
from miniquant.models.numpy_gpt import NumpyGPT


def printed(cell: str) -> str:
    notebook = nbformat.read(next((ROOT / "solutions").glob("*-kv-cache.ipynb")), as_version=4)
    (found,) = [c for c in notebook.cells if c.id == cell]
    return "\n".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in found.outputs)


def row(cell: str, start: str) -> list[float]:
    """The numbers of a printed row after its name."""
    (found,) = re.findall(rf"^{re.escape(start)}(?=\s)(.*)$", printed(cell), re.M)
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d.,]*", found)]


def table(cell: str, *names: str) -> list[list[float]]:
    """The numbers of rows whose names are spread over columns, such as "per token" and "per channel"."""
    start = r"\s+".join(map(re.escape, names))
    return [
        [float(n) for n in re.findall(r"\d[\d.]*", rest.replace(",", ""))]
        for rest in re.findall(rf"^{start}\s(.*)$", printed(cell), re.M)
    ]


@pytest.mark.parametrize("k", ["F16", "Q8_0", "Q4_0"])
def test_the_bytes_are_the_library_s_which_llama_cpp_confirms(k):
    shape, kind = CacheShape(layers=3, kv_heads=2, width_k=64, width_v=64), GGMLType[k]
    mine = cache_bytes(3, 2, 64, 100, (kind.block, kind.n_bytes), (32, 24))
    assert mine == shape.n_bytes(100, k, "Q5_1")


def test_the_context_is_the_first_whose_cache_has_the_bytes_of_the_weights():
    for weights in range(1, 40):
        for per_token in range(1, 12):
            n = full_context(weights, per_token)
            assert n * per_token >= weights > (n - 1) * per_token


def test_along_the_last_axis_the_quantizer_is_q4_1(trained):
    x = trained.state_dict()["layers.0.attn.qkv.weight"].numpy()[:64].reshape(-1, 32)
    levels, scale, low = quantize_along(x, 1, 4)
    blocks = encode(x, GGMLType.Q4_1).reshape(-1, 20)
    assert np.array_equal(scale.ravel().view(np.uint8).reshape(-1, 2), blocks[:, :2])
    assert np.array_equal(low.ravel().view(np.uint8).reshape(-1, 2), blocks[:, 2:4])
    assert (
        np.abs(restore_along(levels, scale, low) - decode(blocks, GGMLType.Q4_1).reshape(x.shape)).max()
        < 1.01 * scale.max()
    )
    same = levels[:, :16] | levels[:, 16:] << 4
    assert (same == blocks[:, 4:]).mean() > 0.95  # ggml divides before it rounds the scale


def test_a_cache_of_the_solutions_is_the_forward_pass_with_tiles(trained):
    gpt = NumpyGPT({name: w.numpy() for name, w in trained.state_dict().items()})
    tokens, size = windows(1)[0][:21].tolist(), 8
    keys = [([], np.zeros((0, 4, 64), np.float32)) for _ in range(4)]
    values = [[] for _ in range(4)]

    def step(layer, q, k, v):
        keys[layer] = append_key(*keys[layer], k, size, 8)
        values[layer].append(v)
        return attend(q, *keys[layer], np.array(values[layer]))

    def kept(k):
        full = k.shape[1] // size * size
        tiles = k[:, :full].reshape(4, -1, size, 64)
        return np.concatenate([restore_along(*quantize_along(tiles, 2, 8)).reshape(4, full, 64), k[:, full:]], axis=1)

    steps = [gpt.step(token, at, step) for at, token in enumerate(tokens)]
    assert np.abs(np.array(steps) - gpt.logits(tokens, keep_k=kept, group_k=size)).max() < 0.01
    assert [len(groups) for groups, _ in keys] == [2] * 4


def test_llama_cpp_holds_as_many_bytes_as_the_student_counts():
    counts = re.search(r"holds: ([\d,]+); your count: ([\d,]+)", printed("kv-cache-held"))
    assert counts and counts[1] == counts[2]
    assert "K (q8_0)" in printed("kv-cache-log") and "V (q4_0)" in printed("kv-cache-log")
    assert "n_rot_k = 64" in printed("kv-cache-log")


def test_eight_bits_cost_next_to_nothing_and_keys_more_than_values():
    text = printed("kv-cache-types")
    assert len(re.findall(r"below 0\.0001", text)) == 2
    (keys,), (values,) = table("kv-cache-types", "Q4_0", "F16"), table("kv-cache-types", "F16", "Q4_0")
    assert keys[1] > 3 * values[1]


def test_the_student_s_quantizer_costs_what_llama_cpp_s_q4_1_costs():
    theirs, mine = map(float, re.findall(r"KL (\d\.\d+)", printed("kv-cache-referee")))
    assert theirs == pytest.approx(mine, rel=0.05)


def test_keys_gain_by_a_scale_for_each_channel_and_values_do_not():
    (per_token,), (values,) = (table("kv-cache-axes", "per token", v) for v in ("per token", "per channel"))
    (keys,), (both,) = (table("kv-cache-axes", "per channel", v) for v in ("per token", "per channel"))
    for bits in (0, 1):
        assert keys[bits] < 0.6 * per_token[bits]
        assert values[bits] >= per_token[bits] and both[bits] >= keys[bits]
    for name in ("MiniGPT, keys", "MiniLlama, keys"):
        token, channel, largest = row("kv-cache-errors", name)
        assert channel < 0.87 * token and largest < 3
    for name in ("MiniGPT, values", "MiniLlama, values"):
        token, channel, _ = row("kv-cache-errors", name)
        assert 0.9 < channel / token < 1


def test_the_tokens_that_wait_make_the_divergence_several_times_smaller():
    lost = [float(kl) for kl in re.findall(r"KL (\d\.\d+)", printed("kv-cache-residual"))]
    assert lost == sorted(lost, reverse=True)
    assert lost[0] > 4 * lost[-1]


def test_planted_channels_hurt_scales_per_token_and_the_rotation_repairs_most_of_it():
    assert "differ by 0.0" in printed("kv-cache-planted")
    assert row("kv-cache-planted", "per token")[1] > 50 * row("kv-cache-planted", "per token")[0]
    assert len(set(row("kv-cache-planted", "per channel"))) == 1
    kl = {
        (name, word): table("kv-cache-rotation", name, word)[0][0]
        for name in ("as trained", "planted")
        for word in ("no", "yes")
    }
    assert kl["planted", "yes"] < 0.2 * kl["planted", "no"]
    assert kl["as trained", "yes"] > kl["as trained", "no"]
    assert re.search(r"worse in (\d) of \1 windows", printed("kv-cache-rotation"))
