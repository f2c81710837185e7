"""Collecting an importance matrix: the mean squares are those of the numbers that llama.cpp multiplies by."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from miniquant.calibrate.imatrix import collect_importance, model_and_tokenizer, text_chunks
from miniquant.calibrate.inputs import calibration_tokens
from miniquant.core.errors import FormatError, QuantizationError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.models import corpus, minillama
from miniquant.models.minigpt import MiniGPTConfig, random_model
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import write_minigpt

TEXT = " ".join(corpus.held_out_documents("topics"))[:40_000]


@pytest.fixture(scope="module")
def minigpt():
    model = load_pretrained()
    tokens = text_chunks(TEXT, corpus.load_tokenizer(), 64, 3)
    return model, tokens, collect_importance(model, tokens, "a.txt", progress=False)


@pytest.fixture(scope="module")
def llama():
    model = minillama.load_minillama()
    tokens = text_chunks(TEXT, minillama.load_tokenizer(), 64, 3)
    return model, tokens, collect_importance(model, tokens, "a.txt", progress=False)


def hooked(model, tokens):
    """The inputs of every linear layer in one forward pass of PyTorch: name -> (tokens, in) float64."""
    seen, handles = {}, []
    for name, part in model.named_modules():
        if isinstance(part, torch.nn.Linear):
            handles.append(part.register_forward_pre_hook(lambda _, x, name=name: seen.setdefault(name, x[0])))
    with torch.no_grad():
        model(torch.from_numpy(tokens))
    for handle in handles:
        handle.remove()
    return {name: x.reshape(-1, x.shape[-1]).double().numpy() for name, x in seen.items()}


PLACES = {"attn.qkv": "attn_qkv", "attn.proj": "attn_output", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down"}
OF_LLAMA = {
    **{f"self_attn.{part}_proj": f"attn_{part}" for part in "qkv"},
    "self_attn.o_proj": "attn_output",
    **{f"mlp.{part}_proj": f"ffn_{part}" for part in ("gate", "up", "down")},
}


@pytest.mark.parametrize(
    ("which", "prefix", "parts"), [("minigpt", "layers.{}.", PLACES), ("llama", "model.layers.{}.", OF_LLAMA)]
)
def test_the_sums_are_those_of_the_squares_that_a_forward_pass_shows(which, prefix, parts, request):
    model, tokens, found = request.getfixturevalue(which)
    layers = len(found.squares) // len(parts)
    assert layers > 1
    if which == "minigpt":  # its blocks go by another name
        seen = {name.replace("blocks.", "layers."): x for name, x in hooked(model, tokens).items()}
    else:
        seen = hooked(model, tokens)
    names = {
        f"{prefix.format(n)}{theirs}": f"blk.{n}.{ours}.weight" for n in range(layers) for theirs, ours in parts.items()
    }
    assert found.squares.keys() == set(names.values())
    for theirs, ours in names.items():
        sums, counts = found.squares[ours]
        assert sums.dtype == counts.dtype == np.float32
        assert counts.tolist() == [tokens.size]
        assert np.allclose(sums[0], np.square(seen[theirs]).sum(0), rtol=1e-3), ours
    assert found[1:] == (("a.txt",), 3, 64)


def test_llama_cpp_multiplies_by_numbers_of_the_same_mean_squares(minigpt, tmp_path):
    model, tokens, found = minigpt
    write_minigpt(tmp_path / "m.gguf", model, corpus.load_tokenizer(), "F32")
    steps = {"attn_norm": "attn_qkv", "kqv_out": "attn_output", "ffn_norm": "ffn_up", "ffn_gelu": "ffn_down"}
    names = {f"{step}-{n}": f"blk.{n}.{part}.weight" for n in range(4) for step, part in steps.items()}
    sums = dict.fromkeys(names, 0.0)
    with LlamaCpp(tmp_path / "m.gguf", context=64, float32_cache=True) as llama:
        for chunk in tokens.tolist():
            for name, x in llama.steps(chunk, list(names)).items():
                sums[name] = sums[name] + np.square(x, dtype=np.float64).sum(0)
    for name, ours in names.items():
        assert np.allclose(found.squares[ours].sums[0], sums[name], rtol=0.01), name


def test_the_default_text_is_the_training_text_and_another_model_has_none():
    model = random_model(config=MiniGPTConfig(context=8, d_model=32, n_heads=2, n_layers=1, d_mlp=32))
    found = collect_importance(model, progress=False)
    assert found.datasets == ("calibration text",) and (found.chunk_count, found.chunk_size) == (128, 8)
    assert all(
        map(
            np.array_equal,
            found.squares["blk.0.ffn_up.weight"],
            collect_importance(model, calibration_tokens(length=8), progress=False).squares["blk.0.ffn_up.weight"],
        )
    )
    with pytest.raises(QuantizationError, match="has no default"):
        collect_importance(torch.nn.Linear(2, 2))


def test_chunks_do_not_overlap_and_what_is_left_is_not_used():
    tokenizer = corpus.load_tokenizer()
    ids = tokenizer.encode(TEXT.removesuffix("\n")).ids
    chunks = text_chunks(TEXT + "\n", tokenizer, 100)
    assert chunks.shape == (len(ids) // 100, 100) and chunks.dtype == np.int64
    assert chunks.reshape(-1).tolist() == ids[: chunks.size]
    assert np.array_equal(text_chunks(TEXT, tokenizer, 100, 2), chunks[:2])


def test_every_chunk_of_a_llama_begins_with_the_token_that_begins_a_text():
    tokenizer = minillama.load_tokenizer()
    ids = tokenizer.encode(TEXT).ids
    chunks = text_chunks(TEXT, tokenizer, 50, 4)
    assert chunks[:, 0].tolist() == [tokenizer.token_to_id("<s>")] * 4
    assert chunks[1, 1:].tolist() == ids[51:100]  # in place of a token, not before it


def test_a_text_shorter_than_a_chunk_is_refused():
    with pytest.raises(QuantizationError, match="the text has 1 token in this vocabulary, and one chunk needs 8;"):
        text_chunks("a", corpus.load_tokenizer(), 8)


def test_a_newline_at_the_end_of_a_text_is_no_token_of_it():
    tokenizer = corpus.load_tokenizer()
    one_more = len(tokenizer.encode("a b c\n").ids)
    with pytest.raises(QuantizationError, match=f"needs {one_more}"):
        text_chunks("a b c\n", tokenizer, one_more)


def test_a_folder_needs_its_tokenizer(tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((minillama.folder() / name).read_bytes())
    with pytest.raises(FormatError, match=r"no tokenizer\.json in it"):
        model_and_tokenizer(tmp_path)
    model, tokenizer = model_and_tokenizer(minillama.folder())
    assert model.dtype == torch.float32  # the folder holds float16
    assert tokenizer.get_vocab_size() == model.config.vocab_size
    ours = minillama.load_minillama().state_dict()
    assert all(torch.equal(w, ours[name]) for name, w in model.state_dict().items())


def test_weights_in_a_pickle_are_not_loaded(tmp_path):
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((minillama.folder() / name).read_bytes())
    torch.save(minillama.load_minillama().state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(FormatError, match=r"no \.safetensors file in it: weights in a pickle are not loaded"):
        model_and_tokenizer(tmp_path)
