"""llama.cpp runs the trained MiniGPT in the mix Q4_K_M and computes what PyTorch does with the weights of the file, but
for the rounding of its activations (to Q8_K: a float32 scale for 256 of them). ``tests/evaluate/test_llamacpp.py`` has
it of every type alone."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from measured_text import differs
from thorough import tried
from torch.nn.functional import log_softmax

from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, RawTensor, read_gguf, write_gguf
from miniquant.formats.gguf.codecs import CODECS
from miniquant.models import corpus
from miniquant.models.file_types import FILE_TYPES
from miniquant.models.minigpt import MiniGPT
from miniquant.models.to_gguf import gguf_name, minigpt_from_gguf, minigpt_types

KINDS = [*(kind.name for kind, codec in CODECS.items() if codec.searches), "Q4_K_M"]
WINDOWS = 4


@pytest.fixture(scope="module")
def windows():
    every = corpus.held_out_windows()
    return every[np.linspace(0, len(every) - 1, WINDOWS).astype(int)]


@pytest.fixture(scope="module")
def files(exported):
    """Every type written once."""
    return {kind: exported(kind) for kind in (*KINDS, "Q4_0", "Q8_0")}


@torch.no_grad()
def ours(model: MiniGPT, tokens: np.ndarray) -> torch.Tensor:
    """Log-probabilities after every token, by PyTorch."""
    return log_softmax(model(torch.from_numpy(tokens)[None])[0].double(), -1)


@pytest.fixture(scope="module")
def log_probabilities(files, windows):
    """Those of each window with a file's weights, by PyTorch."""

    def of(kind: str, windows: np.ndarray = windows) -> list[torch.Tensor]:
        with read_gguf(files[kind]) as file:
            model = minigpt_from_gguf(file)
        return [ours(model, window[:-1]) for window in windows]

    return of


def compare(path: Path, windows: np.ndarray, by_pytorch: list[torch.Tensor]) -> tuple[float, float, float]:
    """llama.cpp against PyTorch with the same weights: the difference of NLL, KL, the share of equal argmaxes."""
    losses, divergences, agreements = [], [], []
    with LlamaCpp(path) as llama:
        for window, mine in zip(windows, by_pytorch, strict=True):
            tokens, targets = window[:-1], window[1:]
            theirs = log_softmax(torch.from_numpy(llama.logits(tokens.tolist())).double(), -1)
            at = (torch.arange(len(targets)), torch.from_numpy(targets))
            losses.append(float(mine[at].mean() - theirs[at].mean()))
            divergences.append(float((mine.exp() * (mine - theirs)).sum(-1).mean()))
            agreements.append(float((mine.argmax(-1) == theirs.argmax(-1)).double().mean()))
    return float(np.mean(losses)), float(np.mean(divergences)), float(np.mean(agreements))


def divergence(float_model: list[torch.Tensor], quantized: list[torch.Tensor]) -> float:
    """KL of log-probabilities from the float model's, in nats a token."""
    pairs = zip(float_model, quantized, strict=True)
    return float(np.mean([float((p.exp() * (p - q)).sum(-1).mean()) for p, q in pairs]))


def test_llama_cpp_computes_what_pytorch_does_with_the_same_weights(files, windows, log_probabilities):
    loss, kl, agreement = compare(files["Q4_K_M"], windows, log_probabilities("Q4_K_M"))
    assert abs(loss) < (4e-3 if differs("held-out") else 2e-3)
    assert kl < 2e-3
    assert agreement > 0.97


def test_the_gates_see_blocks_whose_mins_are_added(files, windows, tmp_path):
    """So that they mean something: dmin with the other sign, in one matrix of eighteen."""
    with read_gguf(files["Q4_K"]) as file:
        tensors = {name: RawTensor(file.raw(name), info.dtype, info.shape) for name, info in file.tensors.items()}
        raw = np.array(file.raw("blk.0.ffn_up.weight")).reshape(-1, GGMLType.Q4_K.n_bytes)
        raw[:, 3] ^= 0x80
        info = file.tensors["blk.0.ffn_up.weight"]
        tensors["blk.0.ffn_up.weight"] = RawTensor(raw.reshape(-1), info.dtype, info.shape)
        write_gguf(tmp_path / "wrong.gguf", tensors, file.typed())
    with LlamaCpp(tmp_path / "wrong.gguf") as wrong, LlamaCpp(files["Q4_K"]) as right:
        tokens = windows[0][:-1].tolist()
        p, q = (log_softmax(torch.from_numpy(llama.logits(tokens)).double(), -1) for llama in (right, wrong))
    assert float((p.exp() * (p - q)).sum(-1).mean()) > 1e-2


def test_more_bits_mean_less_divergence_and_the_mix_lies_between(trained, files, windows, log_probabilities):
    few = windows[:: tried(2, 1)]
    float_model, kinds = [ours(trained, window[:-1]) for window in few], {*files} - {"IQ4_NL", "IQ4_XS", "Q8_0"}
    kl = {kind: divergence(float_model, log_probabilities(kind, few)) for kind in kinds}
    assert kl["Q2_K"] > 2 * kl["Q3_K"] > 6 * kl["Q4_K"]
    assert kl["Q4_K"] > kl["Q4_K_M"] > kl["Q5_K"] > 2 * kl["Q6_K"]
    assert kl["Q4_K"] < kl["Q4_0"], "K-quants do better with the same bits"


def test_the_mix_is_between_its_types_in_bytes(files):
    size = {kind: path.stat().st_size for kind, path in files.items()}
    assert size["Q2_K"] < size["Q3_K"] < size["Q4_K"] < size["Q4_K_M"] < size["Q5_K"] < size["Q6_K"] < size["Q8_0"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_official_reader_and_ggml_s_find_the_types_that_were_asked_for(kind, trained, files):
    reader = gguf.GGUFReader(files[kind])
    found = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
    assert found == {gguf_name(name): chosen for name, chosen in minigpt_types(trained, kind).items()}
    assert int(reader.fields["general.file_type"].parts[-1][0]) == FILE_TYPES[kind].number
    with LlamaCpp(None) as llama:
        llama.check(files[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_each_type_and_shape_of_the_file_decodes_as_the_official_package_decodes_it(kind, files):
    with read_gguf(files[kind]) as file:
        tensors = gguf.GGUFReader(files[kind]).tensors
        for tensor in {(tensor.tensor_type, tuple(tensor.shape)): tensor for tensor in tensors}.values():
            official = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            assert np.array_equal(file.tensor(tensor.name), official.reshape(file.tensors[tensor.name].shape))


def test_greedy_text_of_the_mix_begins_like_the_float_model_s(trained, files):
    """Four bits may part from float32 sooner or later; the first token after a strong cue does not."""
    tokenizer = corpus.load_tokenizer()
    ids = tokenizer.encode("An exception is raised when").ids
    with LlamaCpp(files["Q4_K_M"]) as llama:
        assert llama.greedy(ids, 1) == trained.greedy(ids, 1)
        assert llama.text(llama.greedy(ids, 12)).decode("utf-8", "replace").strip()
