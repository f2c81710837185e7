"""The algorithms on Llamas: shared heads, SwiGLU, tied or not; folds are exact, files hold what was chosen."""

from __future__ import annotations

import copy
import importlib

import gguf
import numpy as np
import pytest
import torch
from calibration import walk_linear_layers
from hf_models import LLAMA, LLAMA3, by_hand, randomise, save_llama, save_qwen2
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from miniquant.calibrate import awq, calibration_tokens, gptq, plant_outliers, round_to_nearest, smoothquant, w8a8
from miniquant.calibrate.blocks import Rows, blocks_of, outside_blocks
from miniquant.calibrate.folding import Fold, fold_into_norm, fold_into_rows
from miniquant.calibrate.gptq import gptq_layer
from miniquant.calibrate.inputs import get_weight, output_error, walk_groups
from miniquant.calibrate.rounding import fake_quantize_nearest
from miniquant.core.errors import QuantizationError
from miniquant.models import corpus, minillama
from miniquant.models.bridge import ModelExporter
from miniquant.models.language import logits_of
from miniquant.models.quantizer import frozen_layers
from miniquant.quantization.grids import GRID_RULES

BIASED = {"attention_bias": True, "mlp_bias": True}
SHAPES = {
    "grouped": {},
    "one key for each query": {"num_key_value_heads": 4},
    "tied head": {"tie_word_embeddings": True},
    "biases": BIASED,
    "Llama 3": LLAMA3,
    "eager": {"attn_implementation": "eager"},
    "Qwen2": {"model_type": "qwen2", "tie_word_embeddings": True},
}
LAYERS = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"]
LAYERS += ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
ALGORITHMS = {
    "rounded to nearest": lambda model, tokens: round_to_nearest(model),
    "AWQ": lambda model, tokens: round_to_nearest(awq(model, tokens)),
    "GPTQ": gptq,
    "SmoothQuant": lambda model, tokens: round_to_nearest(smoothquant(model, tokens)),
}


def small(model_type="llama", **config):
    kind, shape = {"llama": (LlamaForCausalLM, LlamaConfig), "qwen2": (Qwen2ForCausalLM, Qwen2Config)}[model_type]
    model = kind(shape(**LLAMA | config))
    randomise(model)
    return model.eval()


@pytest.fixture(scope="module")
def tokens():
    return np.random.default_rng(0).integers(0, 520, (11, 24))  # not a multiple of the batch


@torch.no_grad()
def apart(model, other, tokens):
    ids = torch.from_numpy(tokens[:2])
    return float((logits_of(model, ids) - logits_of(other, ids)).abs().max())


@pytest.mark.parametrize("shape", SHAPES)
def test_the_inputs_are_those_that_hooks_on_a_whole_forward_pass_see(shape, tokens):
    model, seen = small(**SHAPES[shape]), {}
    names = [f"model.layers.{i}.{layer}" for i in range(2) for layer in LAYERS]
    handles = [
        model.get_submodule(name).register_forward_pre_hook(
            lambda _, x, name=name: seen.update({name: x[0].reshape(-1, x[0].shape[-1])})
        )
        for name in names
    ]
    with torch.no_grad():
        model(torch.from_numpy(tokens))
    for handle in handles:
        handle.remove()
    found = list(walk_linear_layers(model, tokens))
    assert [name for name, _, _ in found] == names
    for name, layer, inputs in found:
        x = seen[name].double().numpy()
        assert layer is model.get_submodule(name)
        assert np.allclose(inputs.hessian, x.T @ x / len(x), rtol=1e-4, atol=1e-5), name
        assert np.allclose(inputs.largest, np.abs(x).max(0), rtol=1e-5), name


# ---- folds -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def norms_in_float64(monkeypatch):
    """The norms of transformers go through float32, whatever they are given."""

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)

    for kind, name in (("llama", "Llama"), ("qwen2", "Qwen2")):
        monkeypatch.setattr(f"transformers.models.{kind}.modeling_{kind}.{name}RMSNorm.forward", forward)


def random_scales(half):
    """A scale for each place of a half; channels that are made of one row have the same."""
    random = np.random.default_rng(3)
    into_rows = np.exp(random.normal(size=len(half.rows.layer.weight)))[half.rows.of]
    return np.exp(random.normal(size=len(half.norm.weight))), into_rows


@pytest.mark.parametrize("shape", SHAPES)
def test_every_fold_is_exact_in_float64(shape, tokens, norms_in_float64):
    model = small(**SHAPES[shape]).double()
    twin = copy.deepcopy(model)
    for half in blocks_of(twin).halves:
        into_norm, into_rows = random_scales(half)
        fold_into_norm(half.norm, half.entering.values(), into_norm)
        fold_into_rows(half.rows, half.leaving[1], into_rows)
    moved = [name for name, w in model.state_dict().items() if not torch.equal(w, twin.state_dict()[name])]
    assert len([name for name in moved if name.endswith("weight")]) == 2 * (len(LAYERS) + 2)
    assert apart(model, twin, tokens) < 1e-12


@pytest.mark.parametrize("shape", SHAPES)
def test_folds_by_powers_of_two_change_no_bit_in_float32(shape, tokens):
    """So what other folds change in float32 comes from rounding each product, and not from where a scale went."""
    model = small(**SHAPES[shape])
    twin = copy.deepcopy(model)
    for half in blocks_of(twin).halves:
        into_norm, into_rows = (2 ** np.round(np.log2(scale)) for scale in random_scales(half))
        assert len(set(into_norm)) > 3 and len(set(into_rows)) > 3
        fold_into_norm(half.norm, half.entering.values(), into_norm)
        fold_into_rows(half.rows, half.leaving[1], into_rows)
    assert apart(model, twin, tokens) == 0


def test_the_biases_of_q_k_and_v_are_folded_as_the_rows_of_v_are(tokens):
    model = small(**SHAPES["Qwen2"])
    twin = copy.deepcopy(model)
    half = blocks_of(twin).halves[0]
    into_norm, into_rows = random_scales(half)
    fold_into_norm(half.norm, half.entering.values(), into_norm)
    fold_into_rows(half.rows, half.leaving[1], into_rows)
    q, k, v = (half.entering[f"model.layers.0.self_attn.{part}_proj"].bias for part in "qkv")
    before = model.model.layers[0].self_attn
    assert torch.equal(q, before.q_proj.bias) and torch.equal(k, before.k_proj.bias)
    of_rows = np.empty(len(v))
    of_rows[half.rows.of] = into_rows
    assert np.allclose(v.detach(), before.v_proj.bias.detach().numpy() / of_rows, rtol=1e-6)
    with torch.no_grad():
        v.copy_(before.v_proj.bias)  # left as it was
    assert apart(model, twin, tokens) > 1e-2


def test_blocks_that_attend_in_two_ways_are_refused():
    window = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}
    with pytest.raises(QuantizationError, match=r"^some blocks attend to a window and some to all tokens; only one"):
        blocks_of(small("qwen2", **window))
    assert len(blocks_of(small("qwen2", **window | {"max_window_layers": 0})).halves) == 4


def test_a_fold_into_gate_would_be_wrong_under_silu(tokens):
    model = small()
    twin = copy.deepcopy(model)
    mlp = twin.model.layers[0].mlp
    fold_into_rows(Rows(mlp.gate_proj, np.arange(96)), mlp.down_proj, np.linspace(0.5, 2, 96))
    assert apart(model, twin, tokens) > 1e-2


def test_a_fold_into_rows_by_hand():
    source, linear = nn.Linear(1, 3), nn.Linear(4, 1)
    with torch.no_grad():
        source.weight.copy_(torch.tensor([[8.0], [8.0], [8.0]]))
        source.bias.copy_(torch.tensor([1.0, 2.0, 4.0]))
        linear.weight.copy_(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
        linear.bias.fill_(0.5)
    fold_into_rows(Rows(source, np.array([1, 2, 1, 2])), linear, np.array([2.0, 4.0, 2.0, 4.0]))
    assert source.weight.tolist() == [[8], [4], [2]] and source.bias.tolist() == [1, 1, 1]
    assert linear.weight.tolist() == [[2, 8, 6, 16]] and linear.bias.tolist() == [0.5]


def test_channels_of_one_row_need_one_scale():
    half = blocks_of(small()).halves[0]
    before = half.rows.layer.weight.clone()
    assert half.rows.of[:48].tolist() == [*range(16), *range(16), *range(16, 32)]  # two heads share the rows of v
    with pytest.raises(QuantizationError, match="same row need the same scale; found two for one row"):
        fold_into_rows(half.rows, half.leaving[1], np.linspace(1, 2, 64))
    assert torch.equal(half.rows.layer.weight, before)
    with pytest.raises(QuantizationError, match="positive number for each of 64 input channels"):
        fold_into_rows(half.rows, half.leaving[1], np.zeros(64))


def test_channels_of_one_row_are_judged_together():
    half = blocks_of(small()).halves[0]._replace(rows=Rows(None, np.array([0, 1, 0, 1])))
    shared, x = Fold(half, half.rows), np.array([1.0, 2.0, 5.0, 8.0])
    assert shared.mean(x).tolist() == [3, 5, 3, 5]
    assert shared.largest(x).tolist() == [5, 8, 5, 8]
    assert Fold(half, None).mean(x) is x and Fold(half, None).largest(x) is x


# ---- algorithms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [lambda m, t: awq(m, t, clip=False), smoothquant], ids=["AWQ", "SmoothQuant"])
@pytest.mark.parametrize("shape", SHAPES)
def test_before_rounding_a_llama_computes_the_same(shape, algorithm, tokens):
    model = small(**SHAPES[shape])
    before = {name: w.clone() for name, w in model.state_dict().items()}
    twin = algorithm(model, tokens)
    assert apart(model, twin, tokens) < 1e-5
    assert all(torch.equal(w, before[name]) for name, w in model.state_dict().items()), "the model was touched"
    moved = {name for name, w in twin.state_dict().items() if not torch.equal(w, before[name])}
    assert {name.split(".", 3)[3].removesuffix(".weight") for name in moved if "bias" not in name} == {
        *LAYERS,
        "input_layernorm",
        "post_attention_layernorm",
    }


def test_the_trained_minillama_computes_the_same_after_folds(minillama_model, monkeypatch):
    """Logits of up to 16, summed in float64; float32 sums alone are off by 1e-5, with folds and without.

    Scales that are powers of two would move nothing in float32 either. AWQ's KL to the float model would then be 0.98
    of plain rounding's without clipping, where its own scales give 0.90 (24 windows), so its own scales stay.
    """
    tokens = calibration_tokens(2, 64, minillama.load_tokenizer())
    assert tokens.shape == (2, 64) and 1000 < tokens.max() < 1536
    twin = smoothquant(minillama_model, tokens)
    up = [model.model.layers[3].mlp.up_proj.weight for model in (minillama_model, twin)]
    assert not torch.allclose(*up, rtol=0.1)
    monkeypatch.setattr(importlib.import_module("miniquant.calibrate.awq"), "ALPHAS", (0.5, 1))  # takes less time
    for made in (twin, awq(minillama_model, tokens, clip=False)):
        assert apart(copy.deepcopy(minillama_model).double(), made.double(), tokens) < 1e-5


def test_q_k_and_v_have_one_scale_that_is_best_for_all_three(tokens):
    """No group of layers that read the same numbers is worse than with plain rounding, in the first block's order."""
    model = plant_outliers(small())
    twin = awq(model, tokens, "Q4_1", clip=False)
    groups = list(walk_groups(model, tokens))
    assert [len(group.layers) for group in groups[:4]] == [3, 1, 2, 1]
    s = (model.model.layers[0].input_layernorm.weight / twin.model.layers[0].input_layernorm.weight).detach().numpy()
    assert s.max() / s.min() > 2
    errors = np.zeros(2)
    for name, layer in groups[0].layers.items():
        if not name.endswith("v_proj"):  # whose rows were scaled once more, for o
            w = get_weight(layer)
            mine = fake_quantize_nearest(get_weight(twin.get_submodule(name)), GRID_RULES["Q4_1"]) / s
            plain = fake_quantize_nearest(w, GRID_RULES["Q4_1"])
            errors += [output_error(v - w, groups[0].seen.hessian).sum() for v in (mine, plain)]
    assert errors[0] < 0.5 * errors[1]


def test_half_of_the_difficulty_leaves_activations_and_weights_alike_in_range(tokens):
    twin = smoothquant(small(), tokens)
    groups = list(walk_groups(twin, tokens))
    for group in groups[2::4]:  # gate and up: up's rows are scaled once more, but not its columns
        (gate, up) = (np.abs(get_weight(linear)) for linear in group.layers.values())
        assert (gate.max(axis=0) <= group.seen.largest * 1.001).all() and up.shape == gate.shape
    for group in groups[1::4]:  # o: heads that share rows of v share a scale, so it is the largest of them that fits
        (linear,) = group.layers.values()
        columns = group.fold.largest(np.abs(get_weight(linear)).max(axis=0))
        assert np.allclose(group.fold.largest(group.seen.largest), columns, rtol=1e-3)


def test_each_layer_sees_the_layers_that_were_rounded_before_it(tokens):
    model = small()
    finished = gptq(model, tokens)
    assert type(finished.lm_head) is nn.Linear and torch.equal(finished.lm_head.weight, model.lm_head.weight)
    for name, layer, seen in walk_linear_layers(finished, tokens):
        again = gptq_layer(get_weight(model.get_submodule(name)), seen.hessian, GRID_RULES["Q4_1"])
        assert np.array_equal(again.q, layer.frozen.q), name


def test_planted_outliers_change_no_bit_of_a_llama_s_logits(tokens):
    model = small()
    twin = plant_outliers(model, 3)
    assert apart(model, twin, tokens) == 0
    gains = [m.model.layers[1].post_attention_layernorm.weight for m in (twin, model)]
    assert sorted((gains[0] / gains[1]).tolist())[-4:] == [1, 32, 32, 32]
    with pytest.raises(QuantizationError, match="65 of 64 channels times 32 is nothing to plant"):
        plant_outliers(model, 65)


def test_the_head_stays_float_and_everything_in_the_blocks_is_rounded():
    for config, outside in (({}, ["lm_head"]), ({"tie_word_embeddings": True}, ["lm_head"])):
        model = small(**config)
        assert outside_blocks(model) == outside
        for rounded in (round_to_nearest(model), w8a8(model)):
            assert len(frozen_layers(rounded)) == 2 * len(LAYERS)
            assert torch.equal(rounded.lm_head.weight, model.lm_head.weight)


def test_weights_in_half_precision_are_calibrated_in_float32(tokens):
    model = small().to(torch.bfloat16)
    assert {w.dtype for w in awq(model, tokens).state_dict().values()} == {torch.float32}
    assert model.lm_head.weight.dtype == torch.bfloat16


def test_what_is_no_llama_has_no_text_or_is_not_finite_is_refused_by_name(tokens):
    model = small()
    with pytest.raises(
        QuantizationError, match="no description of Linear; there are MiniGPT, LlamaForCausalLM, Qwen2ForCausalLM"
    ):
        round_to_nearest(nn.Linear(2, 2))
    with pytest.raises(QuantizationError, match=r"LlamaForCausalLM has no default; .* calibration_tokens\(tokenizer="):
        gptq(model)
    with pytest.raises(QuantizationError, match="129 tokens from 0 to 0; the model takes 128 at most, from 0 to 519"):
        awq(model, np.zeros((1, 129), np.int64))
    with torch.no_grad():
        model.model.layers[1].post_attention_layernorm.weight[3] = torch.nan
    with pytest.raises(QuantizationError, match=r"what reaches model\.layers\.1\.mlp\.gate_proj is not finite"):
        smoothquant(model, tokens)


def test_a_model_that_never_enters_its_first_block_is_refused(tokens, monkeypatch):
    model = small()
    monkeypatch.setattr(model.model, "forward", lambda *_, **__: None)
    with pytest.raises(QuantizationError, match="run past its first block; it has a forward pass of its own"):
        gptq(model, tokens)


def test_no_hook_is_left_in_a_model_that_was_walked(tokens):
    model = small()
    list(walk_groups(model, tokens))
    assert not any(part._forward_pre_hooks for part in model.modules())


# ---- files -----------------------------------------------------------------------------------------------------------


def fields_of_q4_1(blocks, shape):
    """Scale, minimum and integers of Q4_1 blocks, taken apart by hand: two float16, then 32 nibbles, low ones first."""
    blocks = blocks.reshape(-1, 20)
    scale, minimum = (blocks[:, at : at + 2].copy().view(np.float16).reshape(shape[0], -1) for at in (0, 2))
    nibbles = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    return scale, minimum, nibbles.reshape(shape)


@pytest.fixture(scope="module", params=["grouped", "tied head", "Llama 3", "Qwen2"])
def folder_and_model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    if request.param == "Qwen2":
        return folder, save_qwen2(folder)
    return folder, save_llama(folder, pre="llama-bpe", **SHAPES[request.param])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_gguf_file_holds_the_frozen_integers_bit_for_bit(folder_and_model, algorithm, tokens, tmp_path):
    folder, model = folder_and_model
    made = ALGORITHMS[algorithm](model, tokens)
    path = ModelExporter(export_dir=tmp_path).export_gguf_model(made, folder, model.config.model_type)
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[model.config.model_type.upper()], 2)
    frozen = frozen_layers(made)
    assert len(frozen) == 2 * len(LAYERS)
    for name, (q, grid) in frozen.items():
        tensor = stored[f"{names.get_name(name)}.weight"]
        assert tensor.tensor_type.name == "Q4_1"
        rows = by_hand(f"{name}.weight", np.arange(len(q))[:, None], model.config)[:, 0]  # rope's order, in q and k
        scale, minimum, integers = fields_of_q4_1(tensor.data, q.shape)
        assert np.array_equal(integers, q[rows]), name
        assert np.array_equal(scale, grid.scale[rows]) and np.array_equal(minimum, grid.minimum[rows]), name
        decoded = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(decoded, made.get_submodule(name).weight.numpy()[rows]), name
    for name, w in made.state_dict().items():
        if "norm" in name:
            assert np.array_equal(stored[f"{names.get_name(name.removesuffix('.weight'))}.weight"].data, w.numpy())


# ---- bytes of a text -------------------------------------------------------------------------------------------------


def test_the_bytes_of_held_out_tokens_are_those_of_the_text():
    tokenizer, documents = minillama.load_tokenizer(), corpus.held_out_documents("topics")
    ids = corpus.encode_documents(tokenizer, documents)
    assert corpus.window_bytes(ids[None], tokenizer).sum() == sum(len(text.encode()) for text in documents)
    sizes = corpus.token_bytes(tokenizer)
    assert {token: int(sizes[tokenizer.token_to_id(token)]) for token in ("<s>", "</s>", "<0x0A>", "▁the", "’")} == {
        "<s>": 0,
        "</s>": 0,
        "<0x0A>": 1,
        "▁the": 4,
        "’": 3,
    }
