"""Every algorithm's model goes into every format, and what GPTQ has chosen arrives there bit for bit."""

import functools
from importlib import resources

import gguf
import numpy as np
import pytest
import torch

from miniquant.calibrate import awq, calibration_tokens, gptq, round_to_nearest, smoothquant
from miniquant.core.errors import QuantizationError, SchemeError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import read_gguf
from miniquant.formats.gguf_lite.read import open_gguf_lite
from miniquant.formats.gguf_lite.write import write_gguf_lite
from miniquant.models.bridge import ModelExporter
from miniquant.models.corpus import load_tokenizer
from miniquant.models.minigpt import MiniGPTConfig, random_model
from miniquant.models.pretrained import load_gguf_lite
from miniquant.models.quantizer import quantized_layers
from miniquant.models.to_gguf import gguf_name, minigpt_from_gguf, write_minigpt
from miniquant.models.to_gguf_lite import to_gguf_lite
from miniquant.quantization.symmetric import Quantized

ASSETS = resources.files("miniquant").joinpath("assets")
ALGORITHMS = {
    "AWQ": lambda model, tokens, rule: round_to_nearest(awq(model, tokens, rule), rule),
    "GPTQ": gptq,
    "SmoothQuant": lambda model, tokens, rule: round_to_nearest(smoothquant(model, tokens), rule),
    "AWQ, then GPTQ": lambda model, tokens, rule: gptq(awq(model, tokens, rule, clip=False), tokens, rule),
}
GGUF_RULES = ("Q8_0", "Q4_0", "Q4_1")
LITE_RULES = ("int8", "int4_g64")


@pytest.fixture(scope="module")
def small():
    """One layer, with the vocabulary of the committed tokenizer."""
    return random_model(3, MiniGPTConfig(vocab_size=1024, context=32, d_model=64, n_layers=1, n_heads=2, d_mlp=128))


@pytest.fixture(scope="module")
def text():
    return calibration_tokens(24, 32)


@pytest.fixture(scope="module")
def rounded(small, text):
    """The small model by an algorithm and a rule, made once; it may not be changed."""
    return functools.cache(lambda algorithm, rule: ALGORITHMS[algorithm](small, text, rule))


def logits(model, text):
    with torch.no_grad():
        return model(torch.from_numpy(text[:2]))


@pytest.mark.parametrize("rule", GGUF_RULES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_gguf_file_holds_the_chosen_integers_as_the_official_package_decodes_them(rounded, tmp_path, algorithm, rule):
    model = rounded(algorithm, rule)
    path = ModelExporter(export_dir=tmp_path).export_gguf_model(model, ASSETS, "minigpt")
    state = model.state_dict()
    layers = {gguf_name(f"{name}.weight"): name for name in quantized_layers(model)}
    assert len(layers) == 4
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.name in layers:
            assert tensor.tensor_type.name == rule
            decoded = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            assert np.array_equal(decoded, state[f"{layers[tensor.name]}.weight"].numpy())


@pytest.mark.parametrize("rule", LITE_RULES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_gguf_lite_file_holds_the_chosen_integers_and_rebuilds_the_model_to_the_bit(
    rounded, text, tmp_path, algorithm, rule
):
    model = rounded(algorithm, rule)
    schemes, chosen = to_gguf_lite(model)
    write_gguf_lite(tmp_path / "m.gguf-lite", model, schemes, chosen=chosen)
    with open_gguf_lite(tmp_path / "m.gguf-lite") as file:
        for name, layer in quantized_layers(model).items():
            assert np.array_equal(file.quantized(f"{name}.weight").values, layer.frozen.q)
    back = load_gguf_lite(tmp_path / "m.gguf-lite")
    assert torch.equal(logits(back, text), logits(model, text))


def test_without_chosen_integers_gguf_lite_would_round_a_second_time(rounded, text, tmp_path):
    model = rounded("GPTQ", "int4_g64")
    schemes, _ = to_gguf_lite(model)
    write_gguf_lite(tmp_path / "m.gguf-lite", model, schemes)
    assert not torch.equal(logits(load_gguf_lite(tmp_path / "m.gguf-lite"), text), logits(model, text))


@pytest.fixture(scope="module", params=["int3_g64", "int2_g64", "Q4_1"])
def wide(request, text):
    """Rows of whole blocks of every type, rounded by a rule."""
    config = MiniGPTConfig(vocab_size=1024, context=32, d_model=256, n_layers=1, n_heads=2, d_mlp=256)
    return gptq(random_model(4, config), text, request.param)


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0", "Q4_K"])
def test_a_rule_without_a_type_of_its_own_goes_into_any_type_that_holds_its_weights(wide, text, tmp_path, kind):
    model = wide
    write_minigpt(tmp_path / "m.gguf", model, load_tokenizer(), kind)
    with read_gguf(tmp_path / "m.gguf") as file:
        back = minigpt_from_gguf(file)
    expected = logits(model, text)
    apart = float((logits(back, text) - expected).norm() / expected.norm())
    assert apart <= {"F32": 0, "F16": 1e-3, "Q8_0": 3e-2, "Q4_K": 0.2}[kind]


def test_llamacpp_computes_with_what_gptq_has_chosen(small, rounded, text, tmp_path):
    model = rounded("GPTQ", "Q4_1")
    path = ModelExporter(export_dir=tmp_path).export_gguf_model(model, ASSETS, "minigpt", "F32")
    with LlamaCpp(path, context=32) as llama:
        found = torch.from_numpy(llama.logits(text[0]))
    expected = logits(model, text)[0]
    float_ones = logits(small, text)[0]
    assert (found - expected).abs().max() < 0.3 * (found - float_ones).abs().max()


def test_gptq_in_q4_1_takes_as_many_bytes_as_rounding_to_nearest(small, rounded, tmp_path):
    sizes = []
    for name, model in (("a", rounded("GPTQ", "Q4_1")), ("b", round_to_nearest(small, "Q4_1"))):
        exporter = ModelExporter(export_dir=tmp_path / name)
        sizes.append(exporter.export_gguf_model(model, ASSETS, "minigpt").stat().st_size)
    write_minigpt(tmp_path / "c.gguf", small, load_tokenizer(), "Q4_1")
    assert {*sizes, (tmp_path / "c.gguf").stat().st_size} == {sizes[0]}


def test_what_gguf_lite_has_no_type_for_is_refused_by_name(small):
    with pytest.raises(SchemeError, match=r"attn\.qkv' is Q4_1; GGUF-lite holds frozen layers of int8 and int4_g64"):
        to_gguf_lite(round_to_nearest(small, "Q4_1"))


def test_chosen_integers_that_do_not_fit_are_refused_before_anything_is_written(tmp_path):
    state = {"w": np.ones((2, 64), np.float32)}
    q, scale = np.zeros((2, 64), np.int8), np.ones((2, 1), np.float16)
    wrong = {
        "no quantized tensor": ({"w": "f32"}, {"w": Quantized(q, scale)}),
        "'v', which is no": ({"w": "q4_per_group_64"}, {"v": Quantized(q, scale)}),
        r"scales of shape \(2, 1\); found \(2, 64\) and \(2,\)": (
            {"w": "q4_per_group_64"},
            {"w": Quantized(q, scale[:, 0])},
        ),
        "beyond -8 to 7": ({"w": "q4_per_group_64"}, {"w": Quantized(q + np.int8(8), scale)}),
        "not finite": ({"w": "q4_per_group_64"}, {"w": Quantized(q, scale * np.float16(np.inf))}),
    }
    for message, (schemes, chosen) in wrong.items():
        with pytest.raises((SchemeError, QuantizationError), match=message):
            write_gguf_lite(tmp_path / "w.gguf-lite", state, schemes, chosen=chosen)
    assert not list(tmp_path.iterdir())
