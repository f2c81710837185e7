"""config.json: what is not known is refused by its name. And the command line that converts."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hf_models import GPT2, LLAMA, edit, save_gpt2, save_llama, save_qwen2
from rich.text import Text
from transformers import GPT2Config, LlamaConfig, Qwen2Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from miniquant import cli
from miniquant.core.errors import FormatError
from miniquant.formats.gguf import read_gguf
from miniquant.inspect import output
from miniquant.models.file_types import FILE_TYPES
from miniquant.models.huggingface.config import HARMLESS, Config
from miniquant.models.huggingface.convert import ARCHITECTURES, convert_folder, read_recipe
from miniquant.models.huggingface.llama import llama, rope_factors, rope_order
from miniquant.models.huggingface.sentencepiece import OTHER_SPACES


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A Llama, a Qwen2 and a GPT-2 that nobody changes."""
    base = tmp_path_factory.mktemp("config")
    save_llama(base / "llama", num_hidden_layers=1)
    save_qwen2(base / "qwen2", num_hidden_layers=1)
    save_gpt2(base / "gpt2", n_layer=1)
    return base


def refused(base, name, changes, message):
    folder = base / name
    before = (folder / "config.json").read_bytes()
    try:
        edit(folder / "config.json", **changes)
        with pytest.raises(FormatError, match=message) as caught:
            convert_folder(folder, base / "m.gguf", "f16")
    finally:
        (folder / "config.json").write_bytes(before)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600
    assert str(folder) in str(caught.value)
    assert not (base / "m.gguf").exists()


YARN = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0}
BOTH = {
    "no architecture": ({"architectures": ...}, "architectures: found None; this converter knows LlamaForCausalLM"),
    "another architecture": ({"architectures": ["MistralForCausalLM"]}, "architectures: found .'MistralForCausalLM'."),
    "a part of the architecture": ({"architectures": ["LlamaModel"]}, "architectures: found .'LlamaModel'."),
    "two architectures": ({"architectures": ["LlamaForCausalLM", "GPT2LMHeadModel"]}, "architectures: found"),
    "architectures that are none": ({"architectures": [["LlamaForCausalLM"]]}, "architectures: found"),
    "another model type": ({"model_type": "mistral"}, "model_type: found 'mistral'; .* knows '(llama|qwen2|gpt2)'"),
    "quantized weights": (
        {"quantization_config": {"quant_method": "awq", "bits": 4}},
        r"quantization_config: the weights are quantized already \('awq'\); take the original",
    ),
    "code of its own": ({"auto_map": {"AutoModel": "modeling.X"}}, "auto_map: the folder brings Python code"),
    "an encoder": ({"is_encoder_decoder": True}, "is_encoder_decoder: found True"),
    "a sliding window": ({"sliding_window": 4096}, "sliding_window: found 4096, and this converter does not know"),
    "experts": ({"num_local_experts": 8}, "num_local_experts: found 8, and this converter does not know"),
    "a scale of zero": ({"logit_scale": 0}, "logit_scale: found 0, and this converter does not know the key"),
    "a shift of zero": ({"norm_shift": 0.0}, "norm_shift: found 0.0, and this converter does not know the key"),
    "a scale of the logits": ({"logit_scale": 0.5}, "logit_scale: found 0.5, .* take it out of config.json"),
    "tied, or so": ({"tie_word_embeddings": "yes"}, "tie_word_embeddings: found 'yes', expected true or false"),
    "a vocabulary of text": ({"vocab_size": "520"}, "vocab_size: found '520', expected a whole number above 0"),
    "a vocabulary too large": ({"vocab_size": 521}, r"found shape \(520, 64\), config.json makes it \(521, 64\)"),
    "an immense vocabulary": ({"vocab_size": 2**31 - 1}, r"found shape \(520, 64\), config.json makes it"),
}  # fmt: skip
ONLY_LLAMA = {
    "no size": ({"hidden_size": ...}, "hidden_size: it is missing, expected a whole number above 0"),
    "another activation": ({"hidden_act": "gelu"}, "hidden_act: found 'gelu'; this converter knows 'silu' and 'swish'"),
    "yarn": ({"rope_parameters": YARN}, "rope_parameters: found the type 'yarn'; this converter knows default, linear"),
    "dynamic": (
        {"rope_parameters": ..., "rope_scaling": {"type": "dynamic", "factor": 2.0}},
        "rope_scaling: found the type 'dynamic'",
    ),
    "a rope of text": ({"rope_parameters": "linear"}, "rope_parameters: found 'linear', expected an object"),
    "an unknown number of the rope": (
        {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
        "rope_parameters: 'partial_rotary_factor' is unknown for the type default",
    ),
    "a scale that is missing": (
        {"rope_parameters": {"rope_type": "linear"}},
        r"rope_parameters.factor: it is missing, expected a number above 0",
    ),
    "a scale of nothing": (
        {"rope_parameters": {"rope_type": "linear", "factor": 0}},
        "rope_parameters.factor: found 0, expected a number above 0",
    ),
    "a band without a width": (
        {"rope_parameters": LLAMA3 | {"original_max_position_embeddings": 32}},
        "low_freq_factor is not below high_freq_factor",
    ),
    "two ropes": ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling: it differs from rope_parameters"),
    "two bases": ({"rope_theta": 5.0}, "rope_theta: found 5.0, and 10000.0 in rope_parameters"),
    "a base that is no number": (
        {"rope_parameters": {"rope_theta": True}},
        "rope_theta: found True, expected a number above 0",
    ),
    "an epsilon without end": ({"rms_norm_eps": 1e999}, "rms_norm_eps: found inf, expected a number above 0"),
    "heads that do not divide": ({"num_key_value_heads": 3}, "num_key_value_heads: found 3, which does not divide 4"),
    "a width that does not divide": (
        {"num_attention_heads": 6, "head_dim": None},
        "num_attention_heads: found 6, which does not divide hidden_size 64",
    ),
    "a head of odd width": ({"head_dim": 15}, "head_dim: found 15; rope turns pairs, so it must be even"),
    "an immense head": ({"head_dim": 2**31 - 2}, r"config.json makes it \(8589934584, 64\)"),
    "a million layers": ({"num_hidden_layers": 10**6}, "num_hidden_layers: found 1000000, and 12 tensors cannot"),
    "a layer fewer": ({"num_hidden_layers": 0}, "num_hidden_layers: found 0, expected a whole number above 0"),
    "biases": ({"attention_bias": True}, "lacks 'model.layers.0.self_attn.k_proj.bias', .* and 1 more"),
}  # fmt: skip
ONLY_QWEN2 = {
    "a sliding window": ({"use_sliding_window": True}, "use_sliding_window: found True; this converter knows False"),
    "layers that slide": ({"layer_types": ["sliding_attention"]}, "layer_types: found .'sliding_attention'.; this"),
    "layers of text": ({"layer_types": "full_attention"}, "layer_types: found 'full_attention'; this converter knows"),
    "factors, which llama.cpp has for a Llama alone": (
        {"rope_parameters": LLAMA3 | {"original_max_position_embeddings": 32}},
        "rope_parameters: found the type 'llama3'; this converter knows default, linear, and turning by other angles",
    ),
    "wide heads": ({"head_dim": 24}, "head_dim: found 24, and llama.cpp takes hidden_size 64 / 4 heads for a Qwen2"),
    "biases that the architecture has without": ({"attention_bias": True}, "attention_bias: found True, and this"),
    "a head of odd width": ({"head_dim": 15}, "head_dim: found 15; rope turns pairs, so it must be even"),
    "a million layers": ({"num_hidden_layers": 10**6}, "num_hidden_layers: found 1000000, and 14 tensors cannot"),
    "an untied head": ({"tie_word_embeddings": False}, "the checkpoint lacks 'lm_head.weight'"),
}
ONLY_GPT2 = {
    "another activation": ({"activation_function": "gelu"}, "activation_function: found 'gelu'; .* 'gelu_new' and"),
    "relu": ({"activation_function": "relu"}, "activation_function: found 'relu'"),
    "scores that are not scaled": ({"scale_attn_weights": False}, "scale_attn_weights: found False; .* knows True"),
    "scores scaled by the layer": (
        {"scale_attn_by_inverse_layer_idx": True},
        "scale_attn_by_inverse_layer_idx: found True; this converter knows False",
    ),
    "attention to an encoder": ({"add_cross_attention": True}, "add_cross_attention: found True"),
    "heads that do not divide": ({"n_head": 3}, "n_head: found 3, which does not divide n_embd 64"),
    "another context": ({"n_positions": 64}, r"wpe.weight': found shape \(128, 64\), config.json makes it \(64, 64\)"),
    "two layers": ({"n_layer": 2}, "the checkpoint lacks 'h.1.attn.c_attn.bias', .* and 9 more"),
    "an untied head": ({"tie_word_embeddings": False}, "the checkpoint lacks 'lm_head.weight'"),
}
CASES = [
    *(("llama", *case) for case in BOTH.items()),
    *(("gpt2", *case) for case in BOTH.items()),
    *(("llama", *case) for case in ONLY_LLAMA.items()),
    *(("qwen2", *case) for case in ONLY_QWEN2.items()),
    *(("gpt2", *case) for case in ONLY_GPT2.items()),
]


@pytest.mark.parametrize(("name", "case", "what"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_config_that_llamacpp_would_compute_differently_is_refused_by_its_key(name, case, what, saved):
    changes, message = what
    refused(saved, name, changes, message)


@pytest.mark.parametrize("changes", [
    {"sliding_window": None, "use_sliding_window": False, "layer_types": [], "unknown": {}},
    {"torch_dtype": "float32", "_name_or_path": "a/b", "use_cache": False, "attention_dropout": 0.1},
    {"model_type": ..., "transformers_version": ..., "dtype": ...},
])  # fmt: skip
def test_keys_that_say_nothing_and_keys_that_change_nothing_are_no_obstacle(changes, saved):
    before = (saved / "llama" / "config.json").read_bytes()
    convert_folder(saved / "llama", saved / "a.gguf", "f16")
    try:
        edit(saved / "llama" / "config.json", **changes)
        convert_folder(saved / "llama", saved / "b.gguf", "f16")
    finally:
        (saved / "llama" / "config.json").write_bytes(before)
    assert (saved / "a.gguf").read_bytes() == (saved / "b.gguf").read_bytes()


MADE = (
    (LlamaConfig(**LLAMA), "LlamaForCausalLM"),
    (Qwen2Config(**LLAMA), "Qwen2ForCausalLM"),
    (GPT2Config(**GPT2), "GPT2LMHeadModel"),
)


def test_every_key_that_transformers_writes_for_these_models_is_known(tmp_path):
    """Read, or known to be harmless: a new version of the library that writes more shows up here."""
    for config, name in MADE:
        config.architectures = [name]
        values = json.loads(config.to_json_string(use_diff=False))
        (tmp_path / "config.json").write_text(json.dumps(values), "utf-8")
        recipe, _ = read_recipe(tmp_path)
        assert recipe.vocabulary == 520
        assert len(HARMLESS & values.keys()) > 5


def published(**values):
    common = {"transformers_version": "4.42.3", "torch_dtype": "bfloat16", "use_cache": True, "initializer_range": 0.02}
    return common | {"bos_token_id": 0, "eos_token_id": [0, 1]} | values


PUBLISHED = {  # configs as they stand in folders that people download
    "SmolLM2": published(
        architectures=["LlamaForCausalLM"], model_type="llama", attention_bias=False, attention_dropout=0.0,
        hidden_act="silu", hidden_size=576, intermediate_size=1536, is_llama_config=True, max_position_embeddings=8192,
        num_attention_heads=9, num_hidden_layers=30, num_key_value_heads=3, pretraining_tp=1, rms_norm_eps=1e-5,
        rope_interleaved=False, rope_scaling=None, rope_theta=100000, tie_word_embeddings=True, vocab_size=49152,
    ),
    "Llama 3.2": published(
        architectures=["LlamaForCausalLM"], model_type="llama", head_dim=64, hidden_act="silu", hidden_size=2048,
        intermediate_size=8192, max_position_embeddings=131072, mlp_bias=False, num_attention_heads=32,
        num_hidden_layers=16, num_key_value_heads=8, rms_norm_eps=1e-5, rope_theta=500000.0, vocab_size=128256,
        rope_scaling={"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                      "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    ),
    "Qwen2.5": published(
        architectures=["Qwen2ForCausalLM"], model_type="qwen2", attention_dropout=0.0, hidden_act="silu",
        hidden_size=2048, intermediate_size=11008, max_position_embeddings=32768, max_window_layers=70,
        num_attention_heads=16, num_hidden_layers=36, num_key_value_heads=2, rms_norm_eps=1e-6, rope_theta=1000000.0,
        sliding_window=32768, tie_word_embeddings=True, use_sliding_window=False, vocab_size=151936,
    ),
    "GPT-2": published(
        architectures=["GPT2LMHeadModel"], model_type="gpt2", activation_function="gelu_new", attn_pdrop=0.1,
        embd_pdrop=0.1, layer_norm_epsilon=1e-5, n_ctx=1024, n_embd=768, n_head=12, n_layer=12, n_positions=1024,
        resid_pdrop=0.1, summary_activation=None, summary_first_dropout=0.1, summary_proj_to_labels=True,
        summary_type="cls_index", summary_use_proj=True, vocab_size=50257,
        task_specific_params={"text-generation": {"do_sample": True, "max_length": 50}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_configs_of_published_models_are_read(name, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(PUBLISHED[name]), "utf-8")
    recipe, _ = read_recipe(tmp_path)
    assert recipe.vocabulary == PUBLISHED[name]["vocab_size"]
    assert list(recipe.added()) == (["rope_freqs.weight"] if name == "Llama 3.2" else [])


# ---- rope ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("heads", "width"), [(1, 2), (1, 8), (3, 4), (4, 16)])
def test_the_order_of_rows_pairs_what_is_turned_together_head_by_head(heads, width):
    order = rope_order(heads, width).tolist()
    assert sorted(order) == list(range(heads * width))
    for head in range(heads):
        for pair in range(width // 2):
            first = head * width + 2 * pair
            assert order[first : first + 2] == [head * width + pair, head * width + pair + width // 2]


def test_the_factors_of_llama_3_are_those_of_transformers():
    scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    config = LlamaConfig(hidden_size=128, num_attention_heads=1, max_position_embeddings=131072)
    config.rope_parameters = {"rope_type": "llama3", "rope_theta": 500000.0, **scaling}
    theirs, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    plain = 500000.0 ** -(np.arange(0, 128, 2) / 128)
    ours = rope_factors(128, 500000.0, scaling)
    assert np.allclose(plain / ours, theirs.numpy(), rtol=1e-6)
    assert ours[0] == 1 and ours[-1] == 8 and 1 < ours[32] < 8


def test_only_llama_3_brings_factors(saved):
    assert llama(Config(saved / "llama" / "config.json")).added() == {}


def test_a_window_that_is_not_used_says_nothing(saved):
    before = (saved / "qwen2" / "config.json").read_bytes()
    try:
        edit(saved / "qwen2" / "config.json", sliding_window=64, max_window_layers=1, layer_types=["full_attention"])
        convert_folder(saved / "qwen2", saved / "a.gguf", "f16")
    finally:
        (saved / "qwen2" / "config.json").write_bytes(before)


# ---- the command line ------------------------------------------------------------------------------------------------


def call(*arguments):
    return CliRunner().invoke(cli.main, ["convert", *map(str, arguments)])


def test_the_command_says_what_it_wrote_and_what_it_left_out(saved, tmp_path):
    done = call(saved / "gpt2", "-o", tmp_path / "m.gguf", "--type", "q8_0")
    assert done.exit_code == 0, done.output
    with read_gguf(tmp_path / "m.gguf") as file:
        assert f"wrote {tmp_path / 'm.gguf'}, " in done.output
        assert f"{len(file.tensors)} tensors (11 F32, 5 Q8_0)" in done.output
    assert done.stderr == ""
    assert len(done.output.splitlines()) == 1


def test_the_command_prints_the_notes(tmp_path):
    save_llama(tmp_path / "folder", num_hidden_layers=1, pre="sentencepiece")
    edit(tmp_path / "folder" / "tokenizer_config.json", tokenizer_class="LlamaTokenizer")
    done = call(tmp_path / "folder", "-o", tmp_path / "m.gguf")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[1:] == [f"note: {OTHER_SPACES}"]


def test_the_default_is_q8_0_and_any_case_will_do(saved, tmp_path):
    for name, more in (("a", ()), ("b", ("--type", "Q8_0"))):
        assert call(saved / "llama", "-o", tmp_path / f"{name}.gguf", *more).exit_code == 0
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()


def test_help_names_every_type():
    output = call("--help").output
    assert "-o" in output and "Hugging Face FOLDER" in output
    assert set(FILE_TYPES) <= set(re.findall(r"[A-Z0-9_]+", output))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("llama",), "Missing option '-o'"),
        (("nothing", "-o", "m.gguf"), "Directory '.*nothing' does not exist"),
        (("llama/config.json", "-o", "m.gguf"), "is a file"),
        (("llama", "-o", "m.safetensors"), "give a name that ends in .gguf"),
        (("llama", "-o", "m.gguf", "--type", "q9"), "there is no type 'q9'; there are f32, f16, q4_0"),
    ],
)
def test_a_wrong_call_exits_with_2(arguments, message, saved, monkeypatch):
    monkeypatch.chdir(saved)
    done = call(*arguments)
    assert done.exit_code == 2
    assert re.search(message, done.stderr.replace("\n", " "))
    assert not list(saved.glob("m.*"))


def test_a_wrong_folder_exits_with_1_and_one_line(saved, tmp_path):
    (tmp_path / "folder").mkdir()
    edit_from = json.loads((saved / "llama" / "config.json").read_text("utf-8")) | {"architectures": ["X"]}
    (tmp_path / "folder" / "config.json").write_text(json.dumps(edit_from), "utf-8")
    command = [sys.executable, "-m", "miniquant.cli", "convert", "folder", "-o", "m.gguf"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    known = ", ".join(ARCHITECTURES)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == (f"miniquant: folder/config.json: architectures: found ['X']; this converter knows {known}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_bar_appears_after_a_second_on_a_terminal_and_nowhere_else(monkeypatch):
    import rich.console
    import rich.progress

    drawn, clock, real = [], iter(range(100)), rich.console.Console
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    for terminal in (False, True):
        console = real(force_terminal=terminal, file=io.StringIO())
        monkeypatch.setattr(rich.console, "Console", lambda stderr, console=console: console)
        monkeypatch.setattr(rich.progress.Progress, "start", lambda self: drawn.append(self))
        with output.late_bar("converting", "weights") as advance:
            advance(1, 4)  # one second in
            assert not drawn
            advance(2, 4, "blk.0.ffn_up.weight")
            advance(4_000_000, 4_000_000, "[b]\x1b")
        assert len(drawn) == terminal
    ((task,),) = (bar.tasks for bar in drawn)
    assert (task.completed, task.total) == (4_000_000, 4)
    assert Text.from_markup(task.description).plain == r"converting [b]\u001b"
    assert re.fullmatch(r"\d\.\d million weights/s", task.fields["rate"])


def test_counts_and_numbers_end_where_their_types_do(tmp_path):
    for value in (1, 2**31 - 1):
        assert Config(tmp_path, {"n": value}).count("n") == value
    for value in (0, -1, 2**31, 2**32, 1.0, True, "1"):
        with pytest.raises(FormatError, match="expected a whole number above 0 and below 2\\*\\*31"):
            Config(tmp_path, {"n": value}).count("n")
    for value in (1e-30, 1, 9e37):
        assert Config(tmp_path, {"x": value}).number("x") == value
    for value in (0, 0.0, -1e-30, 1e38, float("nan"), float("inf"), True, "1"):
        with pytest.raises(FormatError, match="expected a number above 0"):
            Config(tmp_path, {"x": value}).number("x")
