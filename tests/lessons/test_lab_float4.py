"""The lab on four-bit floats: its blocks are ggml's, and what it concludes from its measurements is true."""

from __future__ import annotations

import re

import gguf
import nbformat
import numpy as np
import pytest
from places import ROOT

from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, decode, encode
from miniquant.formats.gguf.codecs.four_bit_floats import VALUES
from miniquant.formats.gguf.codecs.nvfp4 import from_e4m3
from miniquant.lessons.float4.e2m1_values import e2m1_values
from miniquant.lessons.float4.e4m3_values import e4m3_values
from miniquant.lessons.float4.e8m0_exponents import e8m0_exponents
from miniquant.lessons.float4.encode_mxfp4 import encode_mxfp4
from miniquant.lessons.float4.encode_nvfp4 import encode_nvfp4


def printed(cell: str) -> str:
    notebook = nbformat.read(next((ROOT / "solutions").glob("*-four-bit-floats.ipynb")), as_version=4)
    (found,) = [c for c in notebook.cells if c.id == cell]
    return "\n".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in found.outputs)


def row(cell: str, start: str) -> list[float]:
    """The numbers of a printed row after its name."""
    (found,) = re.findall(rf"^{re.escape(start)}(.*)$", printed(cell), re.M)
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d.,]*", found)]


@pytest.fixture(scope="module")
def matrices(trained):
    state = trained.state_dict()
    return [w.numpy() for name, w in state.items() if w.ndim == 2 and name.startswith("layers")]


def test_the_tables_of_values_are_ggml_s():
    assert np.array_equal(e2m1_values(np.arange(16, dtype=np.uint8)) * 2, VALUES)
    codes = np.arange(127, dtype=np.uint8)
    assert np.array_equal(e4m3_values(codes), from_e4m3(codes))


def test_the_solution_writes_ggml_s_mxfp4_for_every_matrix_of_the_model(matrices):
    with LlamaCpp(None) as llama:
        for w in matrices:
            assert encode_mxfp4(w.reshape(-1, 32)) == llama.quantize(w, GGMLType.MXFP4).tobytes()


def test_the_solution_writes_ggml_s_nvfp4_for_ggml_s_scales(matrices):
    with LlamaCpp(None) as llama:
        for w in matrices:
            theirs = llama.quantize(w, GGMLType.NVFP4).reshape(-1, 36)
            assert encode_nvfp4(w.reshape(-1, 64), theirs[:, :4]) == theirs.tobytes()


def test_powers_of_two_have_an_exact_logarithm():
    exponents = np.arange(-100, 100)
    w = np.exp2(exponents).astype(np.float32)[:, None]
    assert np.array_equal(e8m0_exponents(w), exponents + 125)


def test_the_package_decodes_nvfp4_and_does_not_encode_it():
    kind = gguf.GGMLQuantizationType.NVFP4
    assert not gguf.quants.dequantize(np.zeros((1, 36), np.uint8), kind).any()
    with pytest.raises(NotImplementedError):
        gguf.quants.quantize(np.ones((1, 64), np.float32), kind)


def test_the_errors_are_those_of_ggml_s_blocks(trained):
    w = trained.state_dict()["layers.1.mlp.fc1.weight"].numpy()
    with LlamaCpp(None) as llama:
        for kind in (GGMLType.MXFP4, GGMLType.Q4_0, GGMLType.IQ4_NL, GGMLType.NVFP4):
            back = llama.dequantize(llama.quantize(w, kind), kind)
            error = 100 * np.sqrt(np.square(back - w).sum() / np.square(w).sum())
            assert row("float4-errors", kind.name) == [kind.bits_per_weight, round(float(error), 2)]


def test_the_power_of_two_costs_more_than_the_levels_on_this_model():
    even, floats, power, smaller = (
        row("float4-apart", start)[-2:]
        for start in (
            "integers -7 to 7, exact scale, blocks of 32",
            "E2M1, exact scale, blocks of 32",
            "E2M1, power of two, blocks of 32 (MXFP4)",
            "E2M1, exact scale, blocks of 16",
        )
    )
    assert abs(floats[0] - even[0]) < 0.3  # nearly equal
    assert power[0] - floats[0] > 5 * abs(floats[0] - even[0])
    assert smaller[0] < floats[0]
    assert even[1] - floats[1] > 3  # few large weights: the levels gain
    assert power[1] - floats[1] > 0.75 * (even[1] - floats[1])  # and the power of two loses most of it


def test_ggml_s_other_scales_are_a_little_worse():
    yours, ggml = row("float4-which", "yours"), row("float4-which", "ggml's")
    assert yours[0] < ggml[0] and yours[1] <= ggml[1]
    assert "there, yours: codes [8]" in printed("float4-scales")
    assert "there, ggml's: codes [7]" in printed("float4-scales")


def test_nvfp4_read_as_q4_0_has_the_size_of_q4_0_and_is_noise(trained):
    assert GGMLType.NVFP4.bits_per_weight == GGMLType.Q4_0.bits_per_weight
    w = trained.state_dict()["layers.1.mlp.fc1.weight"].numpy()
    read = decode(encode(w, GGMLType.NVFP4).reshape(1024, -1), GGMLType.Q4_0).ravel()
    known = np.isfinite(read) & (np.abs(read) < 1)
    assert not np.isfinite(read).all()
    assert abs(np.corrcoef(read[known], w.ravel()[known])[0, 1]) < 0.3
    assert printed("float4-noise").count("nan: 100%") == 1


def test_the_order_of_the_divergences_is_that_of_the_errors():
    kl = {name: row("float4-kl", name)[2] for name in ("MXFP4, yours", "NVFP4, yours", "Q4_0")}
    assert kl["MXFP4, yours"] > kl["NVFP4, yours"] > kl["Q4_0"]
