"""The lab on integer products: its functions are ggml's, and what it says about differences is true."""

from __future__ import annotations

import re

import nbformat
import numpy as np
import pytest
from places import ROOT

from miniquant.calibrate import plant_outliers
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, encode
from miniquant.formats.gguf.codecs import codec_of
from miniquant.formats.gguf.codecs.codec import split_fields
from miniquant.formats.gguf.codecs.q8_k import FIELDS
from miniquant.lab import evaluate as evaluate_exercise
from miniquant.lab import find
from miniquant.lessons.integer_products.encode_q8_1 import encode_q8_1
from miniquant.lessons.integer_products.parts import half_at
from miniquant.lessons.integer_products.product_q4_0 import product_q4_0
from miniquant.lessons.integer_products.product_q4_1 import product_q4_1
from miniquant.lessons.integer_products.product_q4_k import product_q4_k
from miniquant.lessons.integer_products.q8_k_parts import q8_k_parts
from miniquant.quantization.packing import unpack_runs, unpack_scales_and_mins
from miniquant.runtime.integer_products import encode_activations, integer_products


def printed(cell: str) -> str:
    notebook = nbformat.read(next((ROOT / "solutions").glob("*-integer-products.ipynb")), as_version=4)
    (found,) = [c for c in notebook.cells if c.id == cell]
    return "\n".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in found.outputs)


@pytest.fixture(scope="module")
def ggml():
    with LlamaCpp(None) as llama:
        yield llama


@pytest.fixture(scope="module")
def matrix(trained):
    return trained.state_dict()["layers.2.mlp.fc2.weight"].numpy()  # (256, 1024)


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).standard_t(4, (3, 1024)).astype(np.float32)


def parts_of_q4_k(raw, rows):
    p = codec_of("Q4_K").split(raw.reshape(rows, -1, 144))
    scales, mins = unpack_scales_and_mins(p["scales"])
    q = unpack_runs(p["qs"], 4, 32).reshape(*scales.shape, 32)
    return {"d": half_at(p["d"], 0), "dmin": half_at(p["dmin"], 0), "scales": scales, "mins": mins, "q": q}


def test_the_solutions_products_are_ggml_s_and_the_library_s(matrix, x, ggml):
    sizes = np.abs(x) @ np.abs(matrix).T
    q8_0 = ggml.round_activations(x, GGMLType.Q8_0)
    made = {
        "Q4_0": (q8_0, [product_q4_0(encode(matrix, "Q4_0").reshape(256, -1, 18), r.reshape(-1, 34)) for r in q8_0])
    }
    q8_1 = ggml.round_activations(x, GGMLType.Q8_1)
    made["Q4_1"] = (q8_1, [product_q4_1(encode(matrix, "Q4_1").reshape(256, -1, 20), r.reshape(-1, 36)) for r in q8_1])
    q8_k = ggml.round_activations(x, GGMLType.Q8_K)
    parts, rows = parts_of_q4_k(encode(matrix, "Q4_K"), 256), []
    for row in q8_k.reshape(3, -1, 292):
        p = split_fields(row, FIELDS)
        d, sums = np.ascontiguousarray(p["d"]).view("<f4")[:, 0], np.ascontiguousarray(p["bsums"]).view("<i2")
        rows.append(product_q4_k(parts, {"d": d, "q": p["qs"].view(np.int8), "sums": sums}))
    made["Q4_K"] = (q8_k, rows)
    for kind, (raw, found) in made.items():
        blocks = encode(matrix, kind)
        for theirs in (ggml.products(blocks, GGMLType[kind], raw), integer_products(blocks, GGMLType[kind], raw)):
            assert (np.abs(np.array(found) - theirs) <= 1e-6 * sizes).all(), kind


def test_the_solutions_activations_are_ggml_s_but_for_near_halves(x, ggml):
    mine = encode_q8_1(x.reshape(-1, 32))
    theirs = ggml.round_activations(x, GGMLType.Q8_1).reshape(-1, 36)
    assert (mine != theirs).sum() <= 2 and np.array_equal(mine[:, :2], theirs[:, :2])
    d, q, sums = q8_k_parts(x.reshape(-1, 256))
    p = split_fields(ggml.round_activations(x, GGMLType.Q8_K).reshape(-1, 292), FIELDS)
    assert np.allclose(d, np.ascontiguousarray(p["d"]).view("<f4")[:, 0], rtol=2e-7)
    assert (q != p["qs"].view(np.int8)).sum() <= 1
    assert (sums != np.ascontiguousarray(p["bsums"]).view("<i2")).sum() <= 1


def test_a_sum_of_q4_0_fits_16_bits_and_one_of_q8_0_does_not():
    assert 32 * 8 * 127 < 2**15 <= 32 * 127 * 127


def test_rounding_the_activations_costs_little_unless_there_are_outliers(trained):
    """The inputs of one layer, by a few random rows of its norm's kind; the lab has real text."""

    def cost(model, other):
        w = model.layers[1].mlp.fc1.weight.detach().numpy()
        gain = model.layers[1].ln2.weight.detach().numpy()
        x = (np.random.default_rng(0).normal(size=(40, 256)) * gain).astype(np.float32)
        back = encode_activations(x, other).reshape(40, -1, other.n_bytes)
        if other == GGMLType.Q8_0:
            rounded = half_at(back, 0)[..., None] * back[..., 2:].view(np.int8)
        else:
            rounded = back[..., :4].copy().view("<f4") * back[..., 4:260].view(np.int8)
        right = x @ w.T
        return np.sqrt(np.square(rounded.reshape(40, 256) @ w.T - right).sum() / np.square(right).sum())

    planted = plant_outliers(trained)
    assert cost(trained, GGMLType.Q8_0) < 0.01
    assert cost(planted, GGMLType.Q8_0) > 3 * cost(trained, GGMLType.Q8_0)
    assert cost(planted, GGMLType.Q8_K) > 1.5 * cost(planted, GGMLType.Q8_0)


def test_what_the_lab_says_about_costs_is_what_it_prints():
    rows = re.findall(
        r"^(as trained|planted) +(Q4_\w) × Q8_\w+ +([\d.]+) % +([\d.]+) %", printed("products-cost"), re.M
    )
    costs = {(model, kind): (float(w), float(a)) for model, kind, w, a in rows}
    assert all(a < 0.15 * w for (model, _), (w, a) in costs.items() if model == "as trained")
    for kind in ("Q4_0", "Q4_K"):
        assert costs["planted", kind][0] > 2 * costs["as trained", kind][0]
        assert costs["planted", kind][1] > 5 * costs["as trained", kind][1]
    assert costs["planted", "Q4_K"][1] > 2 * costs["planted", "Q4_0"][1]


def test_each_matrix_alone_is_right_and_the_model_says_the_same():
    assert "your integers: at most 5e-06" in printed("products-fed")
    yours, theirs = printed("products-speaks").strip().split("\n")
    assert yours.split(None, 2)[2] == theirs.split(None, 1)[1]


def test_another_way_to_write_the_product_of_q4_0_is_accepted():
    def product_q4_0(w, x):
        found = np.zeros(len(w))
        for b in range(len(x)):
            d, p = float(x[b, :2].view("<f2")[0]), x[b, 2:].view(np.int8).astype(int)
            for r in range(len(w)):
                q = w[r, b, 2:].astype(int)
                e = float(w[r, b, :2].view("<f2")[0])
                found[r] += d * e * (((q % 16) - 8) @ p[:16] + ((q // 16) - 8) @ p[16:])
        return found

    assert evaluate_exercise(find("product_q4_0"), product_q4_0).passed
