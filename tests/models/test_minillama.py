"""MiniLlama: the folder is what transformers, SentencePiece and tokenizers understand, and all of them agree."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sentencepiece
import torch
import transformers
from safetensors import safe_open

from miniquant.models import corpus, minillama
from miniquant.models.language import context_of, logits_of
from miniquant.models.minigpt import random_model

transformers.logging.disable_progress_bar()
LINES = [
    "import the module",
    "  two  spaces",
    "\ttab\n\nlines \r\n",
    "é 漢字 🙂 \0\x7f",
    "0123 ½",
    "x<s>y</s> z",
    "▁",
    "",
]


@pytest.fixture(scope="module")
def pieces():
    return sentencepiece.SentencePieceProcessor(model_file=str(minillama.folder() / "tokenizer.model"))


def test_the_folder_is_a_llama_with_shared_keys_and_a_head_of_its_own(minillama_model):
    config = minillama_model.config
    assert type(minillama_model).__name__ == "LlamaForCausalLM"
    assert {key: getattr(config, key) for key in minillama.SHAPE} == minillama.SHAPE
    assert config.num_key_value_heads < config.num_attention_heads
    weights = minillama_model.state_dict()
    assert not torch.equal(weights["lm_head.weight"], weights["model.embed_tokens.weight"])
    assert not minillama_model.training
    assert all(w.dtype == torch.float32 and torch.isfinite(w).all() for w in weights.values())


def test_every_weight_is_stored_in_float16_and_the_folder_is_small(minillama_model):
    path = minillama.folder() / "model.safetensors"
    with safe_open(path, framework="pt") as file:
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        made = json.loads(file.metadata()["made"])
    assert all(w.dtype == torch.float16 for w in stored.values())
    assert stored.keys() == minillama_model.state_dict().keys()
    assert all(torch.equal(stored[name].float(), w) for name, w in minillama_model.state_dict().items())
    assert sum(file.stat().st_size for file in minillama.folder().iterdir()) < 12e6
    assert {"recipe", "python", "torch", "threads", "training_text", "training_tokens"} <= made.keys()


def test_the_folder_as_it_stands_generates_text_that_ends_where_the_length_says(minillama_model):
    tokenizer = transformers.AutoTokenizer.from_pretrained(minillama.folder())
    model = transformers.AutoModelForCausalLM.from_pretrained(minillama.folder())
    assert model.dtype == torch.float32
    ids = tokenizer("A list is a", return_tensors="pt").input_ids
    written = model.generate(ids, max_new_tokens=6)
    assert written.shape == (1, 6 + ids.shape[1]) or written[0, -1] == 2
    best = ids[0].tolist()
    for _ in range(written.shape[1] - len(best)):
        best.append(int(logits_of(minillama_model, torch.tensor([best]))[0, -1].argmax()))
    assert written[0].tolist() == best


def test_transformers_reads_the_same_tokens_as_the_tokenizer_of_the_library():
    theirs = transformers.AutoTokenizer.from_pretrained(minillama.folder())
    ours = minillama.load_tokenizer()
    for line in LINES:
        assert theirs(line).input_ids == ours.encode(line).ids
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.unk_token_id) == (1, 2, 0)


def test_sentencepiece_cuts_text_into_the_same_tokens(pieces):
    rng, ours = np.random.default_rng(0), minillama.load_tokenizer()
    alphabet = [*"abcdefghij \t\n\r-=.'_", "    ", "é", "漢", "🙂", "12", "\0", "▁", "self", "import "]
    texts = [line for line in LINES if "<s>" not in line] + corpus.held_out_documents("topics")[:10]
    texts += ["".join(rng.choice(alphabet, rng.integers(40))) for _ in range(300)]
    for text in texts:
        assert ours.encode(text).ids == [1, *pieces.encode(text)]
        assert ours.decode(ours.encode(text).ids) == text.replace("▁", " ")


def test_an_unknown_character_becomes_its_bytes_and_the_end_of_a_line_is_always_one():
    tokenizer = minillama.load_tokenizer()
    assert tokenizer.encode("漢\n").tokens == ["<s>", "▁", "<0xE6>", "<0xBC>", "<0xA2>", "<0x0A>"]
    assert [token for token in tokenizer.get_vocab() if "\n" in token] == []


def test_training_a_tokenizer_twice_gives_the_same_bytes_and_special_tokens_are_never_joined():
    documents = ["<s> ab </s> ab\n\nab " * 20, "cd é " * 9]
    found = minillama.train_sentencepiece(documents, 268)
    assert found == minillama.train_sentencepiece(documents, 268)
    tokenizer = minillama.to_tokenizer(found)
    assert [tokenizer.id_to_token(i) for i in (0, 1, 2, 3, 258)] == ["<unk>", "<s>", "</s>", "<0x00>", "<0xFF>"]
    assert tokenizer.encode("<s> ab").tokens[:2] == ["<s>", "<s>"]


def test_documents_stand_between_their_ends():
    ids = corpus.encode_documents(minillama.load_tokenizer(), ["a list", "", "é"])
    tokenizer = minillama.load_tokenizer()
    assert ids.dtype == np.int64
    expected = ["<s>", "▁a", "▁list", "</s>", "<s>", "</s>", "<s>", "▁", "<0xC3>", "<0xA9>", "</s>"]
    assert [tokenizer.id_to_token(i) for i in ids] == expected


def test_any_model_is_asked_for_its_logits_and_its_context(minillama_model):
    tokens, small = torch.tensor([[1, 5, 9]]), random_model()
    assert torch.equal(logits_of(small, tokens), small(tokens))
    assert torch.equal(logits_of(minillama_model, tokens), minillama_model(tokens).logits)
    assert logits_of(minillama_model, tokens).shape == (1, 3, 1536)
    assert (context_of(small), context_of(minillama_model)) == (32, 256)
