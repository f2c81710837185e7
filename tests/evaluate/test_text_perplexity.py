"""The perplexity of any GGUF file on any text, against an independent computation from transformers' logits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hf_models import make_tokenizer, save_llama

from miniquant.core.errors import MiniquantError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.evaluate.text_perplexity import TextPerplexity, text_of, text_perplexity
from miniquant.formats.gguf import read_gguf, write_gguf
from miniquant.models import minillama
from miniquant.models.huggingface.convert import convert_folder

TEXT = "The import statement finds a module, loads it, and binds a name. 2 spaces  follow; señor Ñandú reads it.\n" * 12


def from_transformers(model, ids, bos, context, windows):
    """exp of the mean NLL of the second half of each window and its error, by the definition: one token at a time."""
    surprises = []
    for n in range(windows):
        window = list(ids[n * context : (n + 1) * context])
        if bos is not None:
            window[0] = bos
        with torch.no_grad():
            chances = model(torch.tensor([window])).logits[0].double().softmax(-1)
        surprises += [-math.log(chances[i - 1, window[i]]) for i in range(context // 2 + 1, context)]
    mean = sum(surprises) / len(surprises)
    square = sum(x * x for x in surprises) / len(surprises)
    error = math.sqrt((square - mean * mean) / (len(surprises) - 1))
    return math.exp(mean), math.exp(mean) * error, surprises


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A small Llama without a token at the beginning of a text: the model, its file and its tokenizer."""
    folder = tmp_path_factory.mktemp("llama")
    model = save_llama(folder / "hf")
    convert_folder(folder / "hf", folder / "m.gguf", "F32")
    return model, folder / "m.gguf", make_tokenizer()


@pytest.mark.parametrize("context", [32, 33])
def test_it_is_what_transformers_logits_give(llama, context):
    model, path, tokenizer = llama
    ids = tokenizer.encode(TEXT.removesuffix("\n")).ids
    mean, error, surprises = from_transformers(model, ids, None, context, len(ids) // context)
    heard = []
    found = text_perplexity(path, TEXT, context, float32_cache=True, advance=lambda *counts: heard.append(counts))
    assert found.nll.shape == (len(ids) // context, context - context // 2 - 1)
    assert np.abs(found.nll.reshape(-1) - surprises).max() < 1e-4
    assert found.perplexity.mean == pytest.approx(mean, rel=1e-5)
    assert found.perplexity.error == pytest.approx(error, rel=1e-4)
    assert heard == [(n + 1, len(found.nll)) for n in range(len(found.nll))]


def test_a_token_at_the_beginning_takes_the_first_place_of_each_window(minillama_model, tmp_path):
    from transformers import AutoTokenizer

    convert_folder(minillama.folder(), tmp_path / "m.gguf", "F32")
    tokenizer = AutoTokenizer.from_pretrained(minillama.folder())
    with LlamaCpp(tmp_path / "m.gguf", vocab_only=True) as llama:
        bos, ends = llama.around_a_text()
    assert bos == tokenizer.bos_token_id and not ends
    ids = tokenizer(TEXT.removesuffix("\n")).input_ids
    assert ids[0] == bos
    mean, error, _ = from_transformers(minillama_model, ids, bos, 64, 3)
    found = text_perplexity(tmp_path / "m.gguf", TEXT, 64, windows=3, float32_cache=True)
    assert found.perplexity.mean == pytest.approx(mean, rel=1e-5)
    assert found.perplexity.error == pytest.approx(error, rel=1e-4)
    other, _, _ = from_transformers(minillama_model, ids, None, 64, 3)
    assert abs(other / mean - 1) > 1e-3  # without the token in the later windows it is another figure


def test_the_cache_of_16_bits_that_llama_cpp_takes_by_default_changes_little(llama):
    _, path, _ = llama
    default, exact = (text_perplexity(path, TEXT, 32, 4, float32_cache=wide).perplexity.mean for wide in (False, True))
    assert default == pytest.approx(exact, rel=2e-3)


def test_the_context_is_the_model_s_own_where_that_is_below_512(llama):
    found = text_perplexity(llama[1], TEXT, windows=1)
    assert found.context == 128 and found.nll.shape == (1, 63)


def test_a_text_that_is_shorter_than_one_window_is_refused_with_both_counts(llama):
    ids = llama[2].encode(TEXT).ids
    exactly = llama[2].decode(ids[:32])
    assert llama[2].encode(exactly).ids == ids[:32]
    assert text_perplexity(llama[1], exactly, 32).nll.shape == (1, 15)
    shorter = llama[2].decode(ids[:31])
    with pytest.raises(MiniquantError, match="the text has 31 tokens in this vocabulary, and one window needs 32"):
        text_perplexity(llama[1], shorter, 32)


@pytest.mark.parametrize("context", [-1, 0, 3, 129, 2**40])
def test_a_context_that_is_too_small_or_beyond_the_model_s_is_refused(llama, context):
    with pytest.raises(MiniquantError, match=f"a context of {context} tokens; from 4 up to the model's 128"):
        text_perplexity(llama[1], TEXT, context)


def test_a_file_that_says_no_context_or_wants_an_end_is_refused(llama, tmp_path):
    write_gguf(tmp_path / "m.gguf", {"w": np.ones((1, 32), np.float32)}, {"general.architecture": "x"})
    with pytest.raises(MiniquantError, match=r"lacks x\.context_length: it holds no model"):
        text_perplexity(tmp_path / "m.gguf", TEXT)
    with read_gguf(llama[1]) as file:
        tensors = {name: file.tensor(name) for name in file.tensors}
        write_gguf(tmp_path / "end.gguf", tensors, file.typed() | {"tokenizer.ggml.add_eos_token": True})
    with pytest.raises(MiniquantError, match="the model wants a token after every text"):
        text_perplexity(tmp_path / "end.gguf", TEXT, 32)


def test_the_error_bar_counts_tokens_and_needs_two():
    found = TextPerplexity(np.log([[2.0, 8.0]]), 8)
    assert found.perplexity.mean == pytest.approx(4)
    assert found.perplexity.error == pytest.approx(4 * math.log(2))  # deviation log 2, of two tokens less one
    assert math.isnan(TextPerplexity(np.zeros((1, 1)), 4).perplexity.error)


def test_a_text_is_utf_8(tmp_path):
    (tmp_path / "t.txt").write_bytes("añb\r\n".encode())
    assert text_of(tmp_path / "t.txt") == "añb\r\n"
    (tmp_path / "t.txt").write_bytes(b"ab\xff")
    with pytest.raises(MiniquantError, match=r"t\.txt is no UTF-8 text: the byte at 2 fits no character"):
        text_of(tmp_path / "t.txt")
