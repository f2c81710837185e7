"""The trained MiniGPT in llama.cpp itself: same tokens, same logits as far as its arithmetic allows, same text.

What llama.cpp does differently, and what the gates are made of: its GELU looks up a table of float16, its KV cache is
float16, and before a quantized matrix it rounds the activations to 8 bits (to bfloat16 before BF16). The first two move
a logit by 0.013 at most (logits reach 22), the last by a few tenths. ``test_llamacpp_steps`` rounds as it does.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from held_out import dequantized, kl, nll, ours, windows
from hypothesis import example, given, settings
from hypothesis import strategies as st
from measured_text import differs
from systems import posix
from thorough import THOROUGH, tried

from miniquant.evaluate import llamacpp, llamacpp_process
from miniquant.evaluate.llamacpp import LlamaCpp, LlamaCppError
from miniquant.formats.gguf import GGMLType, write_gguf
from miniquant.formats.gguf.codecs import CODECS
from miniquant.models import corpus
from miniquant.models.minigpt import MiniGPT, MiniGPTConfig, random_model
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import gguf_name, minigpt_metadata, write_minigpt

KINDS = [kind.name for kind, codec in CODECS.items() if codec.encodes]
QUANTIZED = [kind.name for kind, codec in CODECS.items() if codec.encodes and kind.block > 1]
SOME = tried(1, 3)
every_kind = pytest.mark.parametrize("kind", KINDS)
TEXTS = [
    "The import statement",
    "  two  spaces, a tab\t, a newline\n\n\nand three",
    "def f(x: int) -> str:\n    return f'{x!r:>10}'  # done",
    "it's we'll I'd they're 'quoted' don't CAN'T",
    "0 1 12 123 1234567890 3.14159 1e-9 0xFF",
    "naïve café Straße ½ µ ﬁ ǅ İ",
    "日本語のテキスト 中文 한국어 ไทย עברית العربية",
    "🙂 👩‍👩‍👧‍👦 🇪🇸 e\u0301 \u200b\u00a0\ufeff\u2028",
    "\x00\x01\x7f\x80\u0085\r\n\r\x0b\x0c",
    "<|endoftext|> in the middle <|endoftext|>",
    "!@#$%^&*()_+-=[]{};':\",./<>?\\|`~",
    "a" * 300,
    " " * 300,
    "𝄞𐍈\U0010ffff\uffff",
    "",
]


@dataclass
class Run:
    """One type: the file, llama.cpp with it, the model with its weights as the file holds them."""

    path: Path
    llama: LlamaCpp
    model: MiniGPT


@pytest.fixture(scope="module")
def tokenizer():
    return corpus.load_tokenizer()


@pytest.fixture(scope="module")
def runs(exported):
    """A run for every type, each llama.cpp in a process of its own."""
    made = {kind: Run(exported(kind), LlamaCpp(exported(kind)), dequantized(exported(kind))) for kind in KINDS}
    yield made
    for run in made.values():
        run.llama.close()


@pytest.fixture(scope="module")
def of_trained(trained):
    """The logits of the model as it was trained, for some windows."""
    return [ours(trained, window[:-1]) for window in windows(SOME)]


# ---- tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_llama_cpp_cuts_a_text_into_the_same_tokens_and_they_join_to_the_text(text, runs, tokenizer):
    llama, ids = runs["F32"].llama, tokenizer.encode(text).ids
    assert llama.tokenize(text, special=True) == ids
    assert llama.text(ids) == text.encode()


def test_llama_cpp_cuts_every_page_of_the_language_reference_into_the_same_tokens(runs, tokenizer):
    for text in corpus.documents("topics").values():
        ids = tokenizer.encode(text).ids
        assert runs["F32"].llama.tokenize(text, special=True) == ids
        assert runs["F32"].llama.text(ids) == text.encode()


@settings(max_examples=tried(75, 300))
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@example(text="\u0130\u0307 \u1e9e ﷺ")
@example(text="\ufeffa\u200d\u2060b")
def test_llama_cpp_cuts_any_unicode_into_the_same_tokens(runs, tokenizer, text):
    ids = tokenizer.encode(text).ids
    assert runs["F32"].llama.tokenize(text, special=True) == ids
    assert runs["F32"].llama.text(ids) == text.encode()


def test_the_name_of_a_special_token_is_a_token_only_when_asked_for(runs):
    llama = runs["F32"].llama
    assert llama.tokenize("<|endoftext|>", special=True) == [0]
    plain = llama.tokenize("<|endoftext|>")
    assert 0 not in plain
    assert llama.text(plain) == llama.text([0]) == b"<|endoftext|>"


def test_every_token_stands_for_the_same_bytes(runs, tokenizer):
    sizes = corpus.token_bytes(tokenizer)
    for token in range(tokenizer.get_vocab_size()):
        piece = runs["F32"].llama.text([token])
        if token:
            assert len(piece) == sizes[token]
        assert piece.decode("utf-8", "replace") == tokenizer.decode([token], skip_special_tokens=False)


# ---- logits ----------------------------------------------------------------------------------------------------------

TIGHT = 0.03  # of logits: over twice of what float16's rounding in GELU and KV cache was seen to do
TYPICAL = 0.003  # root mean square of the same


def assert_same_logits(theirs: np.ndarray, mine: np.ndarray) -> None:
    """As close as F32 weights are."""
    assert theirs.shape == mine.shape
    assert theirs.dtype == np.float32
    assert np.abs(theirs - mine).max() < TIGHT
    assert np.sqrt(np.mean((theirs - mine) ** 2)) < TYPICAL
    assert kl(mine, theirs) < 2e-6


@pytest.mark.parametrize("kind", ["F32", "F16"])
def test_logits_equal_pytorch_s_but_for_rounding_to_float16(kind, runs):
    for window in windows(tried(2, 3)):
        tokens = window[:-1]
        assert_same_logits(runs[kind].llama.logits(tokens.tolist()), ours(runs[kind].model, tokens))


@pytest.mark.parametrize("kind", [*QUANTIZED, "BF16"] if THOROUGH else ["TQ1_0", "BF16"])
def test_dequantized_weights_in_an_f32_file_give_the_same_logits(kind, runs, tokenizer, tmp_path):
    """What our decoder makes of the blocks, run by llama.cpp: no rounding of activations is in the way.

    On both sides the weights are the decoded ones, so that one type is as good as another.
    """
    path, tokens = tmp_path / "dequantized.gguf", windows(2)[1][:64]
    write_minigpt(path, runs[kind].model, tokenizer, "F32")
    with LlamaCpp(path) as llama:
        assert_same_logits(llama.logits(tokens.tolist()), ours(runs[kind].model, tokens))


def test_the_bound_sees_one_matrix_that_is_off_by_half_a_percent(runs):
    """So that the bound means something: of 18 matrices one is scaled by 1.005."""
    tokens = windows(3)[1][:-1]
    theirs = runs["F32"].llama.logits(tokens.tolist())
    for name in ("layers.2.mlp.fc2.weight", "layers.0.attn.qkv.weight"):
        model = load_pretrained()
        with torch.no_grad():
            model.get_parameter(name).mul_(1.005)
        with pytest.raises(AssertionError):
            assert_same_logits(theirs, ours(model, tokens))


@pytest.mark.parametrize("kind", [*QUANTIZED, "BF16"])
def test_a_quantized_file_differs_by_no_more_than_the_rounding_of_activations(kind, runs, of_trained):
    """NLL, KL and argmax against PyTorch with the same weights; and it is these weights that llama.cpp uses."""
    losses, divergences, agreements, moved = [], [], [], []
    for window, unrounded in zip(windows(SOME), of_trained, strict=True):
        tokens, targets = window[:-1], window[1:]
        theirs, mine = runs[kind].llama.logits(tokens.tolist()), ours(runs[kind].model, tokens)
        losses.append(nll(theirs, targets) - nll(mine, targets))
        divergences.append(kl(mine, theirs))
        agreements.append(np.mean(theirs.argmax(-1) == mine.argmax(-1)))
        moved.append(kl(unrounded, mine))
    assert abs(np.mean(losses)) < (6e-3 if differs("held-out") else 4e-3) * tried(3, 1)  # one window says less
    assert np.mean(divergences) < max(1e-3, np.mean(moved) / 1000)  # ternary weights leave little of this model
    assert np.mean(agreements) > (0.97 if GGMLType[kind].bits_per_weight > 2.5 else 0.95) - tried(0.02, 0)
    if GGMLType[kind].bits_per_weight < 5:  # 4 bits move the model much further than that
        assert np.mean(divergences) < np.mean(moved) / 10


def test_a_model_of_random_weights_and_another_shape_gives_the_same_logits(tokenizer, tmp_path):
    model = random_model(3, MiniGPTConfig(context=40, d_model=96, n_layers=3, n_heads=3, d_mlp=160))
    write_minigpt(tmp_path / "random.gguf", model, tokenizer)
    tokens = np.random.default_rng(0).integers(0, 1024, 40)
    with LlamaCpp(tmp_path / "random.gguf", context=40) as llama:
        difference = np.abs(llama.logits(tokens.tolist()) - ours(model, tokens))
    assert difference.max() < 0.01


def test_a_window_has_the_same_logits_whatever_was_asked_before(runs):
    llama, tokens = runs["F32"].llama, windows(2)[1][:100].tolist()
    first = llama.logits(tokens)
    llama.greedy(tokens[:7], 3)
    assert np.array_equal(llama.logits(tokens), first)
    assert np.allclose(llama.logits(tokens[:40]), first[:40], rtol=0, atol=TIGHT)


# ---- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", ["The import statement", "A function definition", "Lists are", "Return a string"])
def test_greedy_text_is_the_same_for_f32(prompt, runs, trained, tokenizer):
    ids = tokenizer.encode(prompt).ids
    mine = trained.greedy(ids, 30)
    top = np.sort(ours(trained, np.array(ids + mine[:-1])), axis=-1)[len(ids) - 1 :, -2:]
    assert (top[:, 1] - top[:, 0]).min() > TIGHT  # nowhere is the choice closer than the bound
    assert runs["F32"].llama.greedy(ids, 30) == mine
    assert runs["F32"].llama.text(mine).decode() == tokenizer.decode(mine)


def test_held_out_perplexity_is_within_half_a_percent_of_ours_for_f32(runs):
    theirs, mine = [], []
    for window in windows(tried(4, 8)):
        tokens, targets = window[:-1], window[1:]
        theirs.append(nll(runs["F32"].llama.logits(tokens.tolist()), targets))
        mine.append(nll(ours(runs["F32"].model, tokens), targets))
    assert abs(np.exp(np.mean(theirs) - np.mean(mine)) - 1) < 0.005
    assert np.abs(np.subtract(theirs, mine)).max() < 4e-4  # in each window, in truth


# ---- refusals and crashes --------------------------------------------------------------------------------------------


def test_norms_in_f16_load_and_abort_without_taking_us_with_them(trained, tokenizer, tmp_path):
    path = tmp_path / "f16-norms.gguf"
    tensors = {gguf_name(name): (w, "F16") for name, w in trained.state_dict().items()}
    write_gguf(path, tensors, minigpt_metadata(trained, tokenizer, "F16"))
    with pytest.raises(LlamaCppError, match="ended with code -"), LlamaCpp(path) as llama:
        llama.logits([1, 2, 3])


@pytest.mark.parametrize("part", ["magic", "data", "no tensors", "no file", "empty", "folder"])
def test_a_file_that_is_no_model_is_refused_with_llama_cpp_s_own_words(part, runs, tmp_path):
    path, good = tmp_path / "bad.gguf", runs["F32"].path.read_bytes()
    if part == "folder":
        path.mkdir()
    elif part == "no tensors":
        write_gguf(path, {}, {"general.architecture": "gpt2"})
    elif part != "no file":
        path.write_bytes({"magic": b"GGML" + good[4:], "data": good[:-5000], "empty": b""}[part])
    with pytest.raises(LlamaCppError, match=r"llama\.cpp refuses .*bad\.gguf: .*(fail|error|magic)"):
        LlamaCpp(path)


@pytest.mark.parametrize(
    ("missing", "complaint"),
    {
        "general.architecture": "architecture",
        "gpt2.block_count": "key not found in model: gpt2.block_count",
        "tokenizer.ggml.tokens": "cannot find tokenizer vocab",
        "blk.1.ffn_up.bias": "tensor 'blk.1.ffn_up.bias' not found",
    }.items(),
)
def test_a_file_without_something_that_llama_cpp_needs_is_refused(missing, complaint, trained, tokenizer, tmp_path):
    tensors = {gguf_name(name): w for name, w in trained.state_dict().items() if gguf_name(name) != missing}
    metadata = {key: value for key, value in minigpt_metadata(trained, tokenizer).items() if key != missing}
    write_gguf(tmp_path / "m.gguf", tensors, metadata)
    with pytest.raises(LlamaCppError, match=re.escape(complaint)):
        LlamaCpp(tmp_path / "m.gguf")


def test_calls_that_would_abort_or_mean_nothing_are_refused_and_the_next_one_works(runs):
    llama = runs["F32"].llama
    for tokens in ([], [1] * 257):
        with pytest.raises(LlamaCppError, match=f"{len(tokens)} tokens do not fit the context of 256"):
            llama.logits(tokens)
    for tokens in ([1024], [-1], [2**31 - 1]):
        with pytest.raises(LlamaCppError, match="llama_decode failed"):
            llama.logits(tokens)
    with pytest.raises(LlamaCppError, match="tokens do not fit the context"):
        llama.greedy([1] * 250, 10)
    with pytest.raises(LlamaCppError, match="surrogates not allowed"):
        llama.tokenize("\ud800")
    assert llama.logits([1]).shape == (1, 1024)
    assert llama.logits([1] * 256).shape == (256, 1024)


def test_without_a_model_what_needs_one_is_refused(tmp_path):
    with LlamaCpp(None) as llama:
        with pytest.raises(LlamaCppError, match="no model"):
            llama.tokenize("text")
        with pytest.raises(LlamaCppError, match="no model"):
            llama.logits([1])
        assert llama.quantize(np.ones((1, 32)), GGMLType.Q8_0).shape == (1, 34)


@posix
def test_a_process_that_is_killed_is_an_error_that_says_so():
    with LlamaCpp(None) as llama:
        os.kill(llama._process.pid, signal.SIGKILL)
        with pytest.raises(LlamaCppError, match="ended with code -9 in quantize"):
            llama.quantize(np.ones((1, 32)), GGMLType.Q8_0)


def test_a_closed_client_says_so_and_its_process_is_gone():
    llama = LlamaCpp(None)
    llama.close()
    llama.close()
    assert llama._process.poll() is not None
    with pytest.raises(LlamaCppError, match=r"this llama\.cpp was closed; make a new LlamaCpp"):
        llama.quantize(np.ones((1, 32)), GGMLType.Q8_0)


def test_no_process_is_left_behind_when_a_file_is_refused(tmp_path, monkeypatch):
    started = []
    real = subprocess.Popen
    monkeypatch.setattr(llamacpp.subprocess, "Popen", lambda *a, **k: started.append(real(*a, **k)) or started[-1])
    with pytest.raises(LlamaCppError):
        LlamaCpp(tmp_path / "missing.gguf")
    assert len(started) == 1
    assert started[0].poll() is not None


def test_check_reads_a_file_with_ggml_s_own_reader(runs, tmp_path):
    with LlamaCpp(None) as llama:
        for run in runs.values():
            llama.check(run.path)
        for _ in range(100):  # many complaints do not fill anything up
            with pytest.raises(LlamaCppError, match=r"missing\.gguf"):
                llama.check(tmp_path / "missing.gguf")


def test_llama_cpp_never_lives_in_our_own_process():
    with LlamaCpp(None) as llama:
        assert llama._process.pid != os.getpid()
    assert "xllamacpp" not in sys.modules
    if sys.platform == "linux":
        assert "xllamacpp" not in Path("/proc/self/maps").read_text()


def test_without_the_wheel_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(llamacpp_process.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LlamaCppError, match=r"its package is not installed: pip install xllamacpp$"):
        llamacpp_process._Inside()
