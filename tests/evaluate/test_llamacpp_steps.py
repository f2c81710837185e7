"""llama.cpp's arithmetic, step by step: with our files it computes what ``ggml_arithmetic`` says, in every digit.

From the same input every step agrees: LayerNorm, each matrix of each type, attention, GELU, the logits. Over the whole
model it cannot be so, and nothing is wrong with either side: sums made in another order differ in the last bit of a
float32, and where a value lies next to a rounding boundary (of a float16 in GELU's table, of 8 bits before a quantized
matrix), that bit decides. Two runs of our own arithmetic, with sums in float32 and in float64, part by as much.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from ggml_arithmetic import Ggml
from held_out import kl, nll, ours, windows
from thorough import THOROUGH, tried

from miniquant.evaluate import llamacpp_process
from miniquant.evaluate.llamacpp import LlamaCpp, LlamaCppError
from miniquant.formats.gguf import read_gguf
from miniquant.models import corpus
from miniquant.models.file_types import FILE_TYPES
from miniquant.models.minigpt import MiniGPTConfig, random_model
from miniquant.models.to_gguf import minigpt_from_gguf, write_minigpt

PC = platform.machine().lower() in ("x86_64", "amd64")
TIGHT = 3e-6 if PC else 3e-3  # of the largest of a row; other processors round the tie between two integers otherwise
NUDGE = 1.002 if PC else 1.05  # what a tight bound must notice
SOME = tried(24, 64)  # tokens
every_type = pytest.mark.parametrize("kind", FILE_TYPES)


@dataclass
class Both:
    """A file in llama.cpp with a float32 cache, and the same file in our arithmetic."""

    path: Path
    llama: LlamaCpp
    ggml: Ggml


@pytest.fixture(scope="module")
def both(trained, exported):
    """One for each type that is asked for."""
    made = {}

    def get(kind: str) -> Both:
        if kind not in made:
            path = exported(kind)
            llama = LlamaCpp(path, float32_cache=True)
            made[kind] = Both(path, llama, Ggml(path, trained.state_dict(), trained.config))
        return made[kind]

    yield get
    for one in made.values():
        one.llama.close()


def apart(theirs: np.ndarray, mine: np.ndarray) -> float:
    """The largest difference, as a share of the largest number of its row."""
    return float((np.abs(theirs - mine) / np.abs(theirs).max(-1, keepdims=True)).max())


def assert_same_step(name: str, theirs: np.ndarray, mine: np.ndarray) -> None:
    assert theirs.shape == mine.shape, name
    if name == "inpL":  # one sum of two numbers, and what ggml decodes
        assert np.array_equal(theirs, mine)
    elif name.startswith("ffn_gelu"):  # the same float16, or its neighbour where a tanh differs in the last bit
        assert (np.abs(theirs - mine) <= np.maximum(np.abs(theirs) * 2**-10, 2**-24)).all(), name
        assert np.mean(theirs != mine) < 0.005, name
    else:
        assert apart(theirs, mine) < TIGHT, name


# ---- one step at a time ----------------------------------------------------------------------------------------------


@every_type
def test_every_step_of_llama_cpp_is_ours_from_the_same_input(kind, both):
    run = both(kind)
    tokens = windows(2)[1][:SOME]
    theirs = run.llama.steps(tokens.tolist(), STEPS)
    computed = run.ggml.steps(tokens, given=theirs)
    for name, mine in computed.items():
        assert_same_step(name, theirs[name], mine)
    logits = theirs["result_output"]
    assert np.array_equal(logits, run.llama.logits(tokens.tolist()))  # to watch changes nothing
    assert np.abs(logits - computed["result_output"]).max() < 4e-4


STEPS = [
    "inpL",
    *(
        f"{step}-{i}"
        for i in range(4)
        for step in ["attn_norm", "wqkv_b", "kqv_out", "ffn_inp", "ffn_norm", "ffn_up_b", "ffn_gelu", "l_out"]
    ),
    "result_norm",
    "result_output",
]


@pytest.mark.parametrize("kind", ["F32", "Q4_0"])
def test_each_parameter_that_is_a_little_off_is_noticed_at_its_own_step(kind, both):
    run, tokens = both(kind), windows(3)[1][:16]
    theirs = run.llama.steps(tokens.tolist(), STEPS)
    left_out = () if THOROUGH else ("layers.1.", "layers.2.")  # the first and the last stay
    for parameter, w in run.ggml.w.items():
        if parameter.startswith(left_out):
            continue
        run.ggml.w[parameter] = w * NUDGE
        try:
            mine = run.ggml.steps(tokens, given=theirs)
        finally:
            run.ggml.w[parameter] = w
        wrong = set()
        for name in STEPS:
            try:
                assert_same_step(name, theirs[name], mine[name])
            except AssertionError:
                wrong.add(name)
        assert wrong == expected_at(parameter), parameter


def expected_at(parameter: str) -> set[str]:
    """The step or steps that a parameter goes into."""
    if parameter in ("tok_emb.weight", "pos_emb.weight"):
        return {"inpL", "result_output"} if parameter.startswith("tok") else {"inpL"}
    if parameter.startswith("ln_f"):
        return {"result_norm"}
    _, i, *part, _ = parameter.split(".")
    steps = {
        "ln1": "attn_norm",
        "qkv": "wqkv_b",
        "proj": "ffn_inp",
        "ln2": "ffn_norm",
        "fc1": "ffn_up_b",
        "fc2": "l_out",
    }
    return {f"{steps[part[-1]]}-{i}"}


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1"])
def test_nibbles_in_the_wrong_order_are_noticed(kind, both):
    run, tokens, name = both(kind), windows(3)[1][:SOME], "layers.2.mlp.fc1.weight"
    theirs, right = run.llama.steps(tokens.tolist(), STEPS), run.ggml.w[name]
    run.ggml.w[name] = right.unflatten(-1, (-1, 2, 16)).flip(-2).flatten(1)
    try:
        mine = run.ggml.steps(tokens, given=theirs)
    finally:
        run.ggml.w[name] = right
    assert apart(theirs["ffn_up_b-2"], mine["ffn_up_b-2"]) > 0.1
    assert apart(theirs["ffn_up_b-1"], mine["ffn_up_b-1"]) < TIGHT


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_1", "Q6_K"])
def test_without_the_rounding_of_activations_no_matrix_would_agree(kind, both):
    """So the bound means that llama.cpp rounds, and as it is said here."""
    run, tokens = both(kind), windows(3)[1][:SOME]
    theirs = run.llama.steps(tokens.tolist(), STEPS)
    exact = theirs["ffn_norm-0"].astype(np.float64) @ run.ggml.w["layers.0.mlp.fc1.weight"].double().numpy().T
    exact += run.ggml.w["layers.0.mlp.fc1.bias"].numpy()
    assert apart(theirs["ffn_up_b-0"], exact) > 1e-4


def test_the_usual_cache_and_flash_attention_round_to_float16(both):
    run, tokens = both("F32"), windows(3)[1][:-1]
    names = ["wqkv_b-0", "kqv_out-0"]
    with LlamaCpp(run.path) as usual:
        rounded = usual.steps(tokens.tolist(), names)
    theirs = run.llama.steps(tokens.tolist(), names)
    assert np.array_equal(theirs["wqkv_b-0"], rounded["wqkv_b-0"])
    mine = run.ggml.attention(torch.from_numpy(theirs["wqkv_b-0"])).numpy()
    assert apart(theirs["kqv_out-0"], mine) < TIGHT
    assert 1e-4 < apart(rounded["kqv_out-0"], mine) < 1e-2


# ---- the whole way ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"])
def test_over_all_layers_llama_cpp_is_as_close_as_a_run_of_ours_with_shorter_sums(kind, both, trained):
    run = both(kind)
    short = Ggml(run.path, trained.state_dict(), trained.config, sums=torch.float32)
    losses, divergences, agreements, theirs_apart, ours_apart = [], [], [], [], []
    for i, window in enumerate(windows(tried(1, 7))):
        tokens, targets = window[:-1], window[1:]
        theirs, mine = run.llama.logits(tokens.tolist()), run.ggml.steps(tokens)["result_output"]
        losses.append(nll(theirs, targets) - nll(mine, targets))
        divergences.append(kl(mine, theirs))
        agreements.append(np.mean(theirs.argmax(-1) == mine.argmax(-1)))
        if i % 3 == 0:
            theirs_apart.append(np.mean((theirs - mine) ** 2))
            ours_apart.append(np.mean((short.steps(tokens)["result_output"] - mine) ** 2))
    assert np.sqrt(np.mean(theirs_apart)) < 1.5 * np.sqrt(np.mean(ours_apart))
    if kind in ("F32", "F16"):  # what rounds to float16 only
        assert np.abs(losses).max() < 4e-4
        assert np.mean(divergences) < 1e-6
        assert np.mean(agreements) >= 0.998
    elif kind == "BF16":
        assert abs(np.mean(losses)) < 4e-4
        assert np.mean(divergences) < 2e-5
        assert np.mean(agreements) >= 0.99
    else:  # what rounds to 8 bits
        assert abs(np.mean(losses)) < tried(3, 1) * 1e-3  # one window says less
        assert np.mean(divergences) < 2.5e-4
        assert np.mean(agreements) >= 0.985


@every_type
def test_a_model_of_random_weights_has_pytorch_s_logits_within_the_bound(kind, tmp_path):
    """Its logits are small, and nothing is decided by the last bit of a sum: here plain PyTorch is the judge."""
    config = MiniGPTConfig(context=64, n_layers=2, d_mlp=256)
    model, path = random_model(3, config), tmp_path / "random.gguf"
    write_minigpt(path, model, corpus.load_tokenizer(), kind)
    tokens = np.random.default_rng(0).integers(0, 1024, 64)
    with read_gguf(path) as file:
        stored = minigpt_from_gguf(file)
    with LlamaCpp(path, context=64) as llama:
        difference = np.abs(llama.logits(tokens.tolist()) - ours(stored, tokens))
    assert difference.max() < (3e-3 if kind in ("F32", "F16") else 0.12)


# ---- the client ------------------------------------------------------------------------------------------------------


def test_a_step_that_the_graph_lacks_is_missing_in_the_answer_and_a_call_leaves_nothing_behind(both):
    llama = both("F32").llama
    found = llama.steps([1, 2, 3], ["l_out-3", "l_out-4", "kq-0", "Qcur-0"])
    assert {name: value.shape for name, value in found.items()} == {"l_out-3": (3, 256), "kq-0": (4, 3, 256)}
    assert llama.steps([1, 2, 3], []) == {}
    with pytest.raises(LlamaCppError, match="do not fit the context"):
        llama.steps([1] * 257, ["inpL"])
    with LlamaCpp(None) as empty, pytest.raises(LlamaCppError, match="no model"):
        empty.steps([1], ["inpL"])


def test_parameters_are_found_by_their_defaults_and_an_order_that_is_not_understood_is_refused():
    """flash_attn_type (-1), then rates and sizes, two null pointers, type_k and type_v (1): wherever they stand."""
    for shift in (0, 1, 2, 6):
        defaults = llamacpp_process._Parameters()
        defaults.words[12 + shift] = defaults.words[13 + shift] = 0xFFFFFFFF
        defaults.words[20 + shift] = 0xBF800000
        defaults.words[26 + shift] = defaults.words[27 + shift] = 1
        assert llamacpp_process._places(defaults) == (13 + shift, 22 + shift, 26 + shift)
        defaults.words[25 + shift] = 7  # a pointer that is not null by default
        with pytest.raises(LlamaCppError, match=r"orders its parameters in another way; .* constraints\.txt"):
            llamacpp_process._places(defaults)
