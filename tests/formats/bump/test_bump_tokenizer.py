"""``tokenizer.json`` beside a bump file cuts texts as llama.cpp does with the metadata that it was made from."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from bump_models import TINY, write_llama
from tokenizers import Tokenizer

from miniquant import FormatError, MiniquantError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.bump import open_bump, write_bump
from miniquant.formats.bump.tokenizer import KEYS, TOKENS, tokenizer_json
from miniquant.formats.bump.write import left_behind
from miniquant.formats.gguf import write_gguf
from miniquant.formats.gguf.metadata import Typed, ValueType
from miniquant.formats.gguf.pre_tokenizers import PRE_TOKENIZERS
from miniquant.models import minillama
from miniquant.models.corpus import load_tokenizer
from miniquant.models.to_gguf import minigpt_tokenizer_metadata

PIECES = ["def f(x: int = 0):", "\treturn -1;", "a->b::c<T>()", "x_1, y2 = 3.14e-10", "¿Dónde está?", "El niño comió"]
PIECES += ["🙂", "👩‍👩‍👧", "日本語", "العربية", "½ ﬁ", "\x00", "\x01", "\x1b[31m", "\x85", "\u200b", "\u2028", "\xa0"]
PIECES += [
    " ",
    "  ",
    "    ",
    "       ",
    " " * 33,
    "\n",
    "\n\n",
    "\r\n",
    "\t\t",
    "it's",
    "I'LL",
    "12345",
    "aaaaaaa",
    "====",
]
PIECES += ["<|endoftext|>", "<s>", "</s>", "<unk>", "<0x0A>", "\u2581", "\u0120", "!!! ###"]


def lines(count: int) -> list[str]:
    """Lines that tokenizers disagree about; a zero byte would end a text in C."""
    rng = random.Random(14)
    return ["".join(rng.choice(PIECES) for _ in range(rng.choice((1, 2, 3, 5, 9)))) for _ in range(count)]


def byte_level() -> dict:
    """The metadata of MiniGPT's tokenizer, as a reader of GGUF gives it."""
    found = minigpt_tokenizer_metadata(load_tokenizer())
    return {key: value.value if isinstance(value, Typed) else value for key, value in found.items()}


def sentencepiece(prefix: bool = True) -> dict:
    """The metadata of MiniLlama's tokenizer: a score for each token, minus the place of its first merge."""
    found = json.loads((minillama.folder() / "tokenizer.json").read_text("utf-8"))["model"]
    tokens, scores = sorted(found["vocab"], key=found["vocab"].__getitem__), {}
    for place, (left, right) in enumerate(found["merges"]):
        scores.setdefault(left + right, -float(place))
    kinds = [2, 3, 3] + [6 if token.startswith("<0x") else 1 for token in tokens[3:]]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": np.array([scores.get(token, 0.0) for token in tokens], np.float32),
        "tokenizer.ggml.token_type": np.array(kinds, np.int32),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_space_prefix": prefix,
        "tokenizer.ggml.add_bos_token": True,
    }


def referee(path, metadata) -> LlamaCpp:
    """llama.cpp with a file of a tokenizer alone."""
    keys = ("context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count")
    sizes = {f"llama.{key}": 8 for key in keys} | {"llama.attention.layer_norm_rms_epsilon": 1e-5}
    write_gguf(path, {}, {"general.architecture": "llama", **sizes, **metadata})
    return LlamaCpp(path, vocab_only=True)


def agree(path, metadata, given) -> Tokenizer:
    ours = Tokenizer.from_str(tokenizer_json(metadata).decode())
    with referee(path, metadata) as other:
        for line in given:
            if "\0" not in line or metadata["tokenizer.ggml.model"] == "gpt2":
                assert ours.encode(line, add_special_tokens=False).ids == other.tokenize(line, special=True), repr(line)
    return ours


@pytest.mark.parametrize("pre", [name for name, *_ in PRE_TOKENIZERS])
def test_a_byte_level_tokenizer_cuts_as_llama_cpp_does_by_every_rule_for_words(pre, tmp_path):
    metadata = byte_level() | {"tokenizer.ggml.pre": pre}
    ours = agree(tmp_path / "v.gguf", metadata, lines(400))
    text = "Nothing lost: ñ 🙂 \x01  \t"
    assert ours.decode(ours.encode(text).ids) == text
    assert len(ours.encode("a").ids) == 1  # no token before a text that no key asks for


@pytest.mark.parametrize("pre", [name for name, *_ in PRE_TOKENIZERS])
def test_a_token_of_a_whole_word_is_used_where_llama_cpp_uses_it(pre, tmp_path):
    """'LL is one word by some rules and two by others; no merges lead to the xylophone."""
    metadata, more = byte_level() | {"tokenizer.ggml.pre": pre}, ["LL", "'LL", "\u0120xylophone"]
    tokens = [*metadata["tokenizer.ggml.tokens"], *(t for t in more if t not in metadata["tokenizer.ggml.tokens"])]
    metadata["tokenizer.ggml.tokens"] = tokens
    metadata["tokenizer.ggml.token_type"] = np.ones(len(tokens), np.int32)
    metadata["tokenizer.ggml.merges"] = [*metadata["tokenizer.ggml.merges"], "L L", "' LL"]
    ours = agree(tmp_path / "v.gguf", metadata, ["I'LL", "a xylophone"])
    found = ours.encode("I'LL a xylophone", add_special_tokens=False).tokens
    assert ("'LL" in found) == (pre in ("llama-bpe", "smaug-bpe", "qwen2"))
    assert ("\u0120xylophone" in found) == (pre == "llama-bpe")


@pytest.mark.parametrize("prefix", [True, False])
def test_a_sentencepiece_tokenizer_cuts_as_llama_cpp_does(prefix, tmp_path):
    metadata = sentencepiece(prefix)
    ours = agree(tmp_path / "v.gguf", metadata, lines(400))
    text = "Nothing lost: ñ 🙂   \t"
    assert ours.decode(ours.encode(text).ids) == text
    assert ours.encode("a").ids[0] == 1 and len(ours.encode("a b", add_special_tokens=False).ids) >= 2
    theirs = Tokenizer.from_file(str(minillama.folder() / "tokenizer.json"))
    if prefix:
        assert all(ours.encode(line).ids == theirs.encode(line).ids for line in lines(400))


def test_the_tokens_around_a_text_are_those_of_the_keys_and_their_defaults():
    metadata = byte_level()
    plain = load_tokenizer().encode("a b").ids
    ends = {"tokenizer.ggml.bos_token_id": 7, "tokenizer.ggml.eos_token_id": 9}

    def ids(**keys):
        more = {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
        return Tokenizer.from_str(tokenizer_json(metadata | ends | more).decode()).encode("a b").ids

    assert ids(add_bos_token=False) == plain
    assert ids(add_bos_token=True) == [7, *plain]
    assert ids(add_bos_token=False, add_eos_token=True) == [*plain, 9]
    assert ids(add_bos_token=True, add_eos_token=True) == [7, *plain, 9]
    del metadata["tokenizer.ggml.add_bos_token"]
    assert ids()[0] != 7 and ids(pre="qwen2")[0] != 7 and ids(pre="llama-bpe")[0] == 7
    spm = {key: value for key, value in sentencepiece().items() if not key.endswith(("add_bos_token", "space_prefix"))}
    found = Tokenizer.from_str(tokenizer_json(spm).decode())
    assert found.encode("a").tokens[:2] in (["<s>", "\u2581a"], ["<s>", "\u2581"])


def test_a_token_of_no_use_is_left_out_and_one_of_a_user_is_found_in_a_text():
    metadata = byte_level()
    kinds = [1] * len(metadata["tokenizer.ggml.tokens"])
    kinds[500], kinds[501], kinds[502] = 5, 4, 2
    metadata["tokenizer.ggml.token_type"] = np.array(kinds, np.int32)
    found = json.loads(tokenizer_json(metadata))
    tokens = metadata["tokenizer.ggml.tokens"]
    assert tokens[500] not in found["model"]["vocab"] and len(found["model"]["vocab"]) == len(tokens) - 1
    assert [(t["id"], t["content"], t["special"]) for t in found["added_tokens"]] == [
        (501, tokens[501], False),
        (502, tokens[502], True),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "t5"}, "its tokenizer is of kind 't5'; gpt2 (byte-level BPE) and llama are known"),
        ({"pre": "deepseek-llm"}, "its rule for words is 'deepseek-llm' (tokenizer.ggml.pre); known are gpt-2, llama"),
        ({"tokens": 3}, "the key tokenizer.ggml.tokens is no list of str"),
        ({"tokens": "abc"}, "the key tokenizer.ggml.tokens is no list of str"),
        ({"tokens": []}, "its tokenizer has 0 tokens and 1024 types of tokens"),
        ({"token_type": np.array([1, 2], np.int32)}, "its tokenizer has 1024 tokens and 2 types of tokens"),
        ({"merges": ["ab"]}, "a merge in tokenizer.ggml.merges is no pair of tokens"),
        ({"add_bos_token": True, "bos_token_id": 1024}, "tokenizer.ggml.bos_token_id is 1024"),
        ({"add_bos_token": True, "bos_token_id": -1}, "a text gets a bos token, and tokenizer.ggml.bos_token_id is -1"),
        ({"add_eos_token": True, "eos_token_id": "x"}, "a text gets a eos token"),
    ],
)
def test_a_tokenizer_that_is_not_known_is_refused_by_name(change, message):
    metadata = byte_level()
    assert metadata["tokenizer.ggml.token_type"] is not None
    more = {f"tokenizer.ggml.{key}": value for key, value in change.items()}
    with pytest.raises(MiniquantError) as caught:
        tokenizer_json(metadata | more)
    assert message in str(caught.value)


def test_scores_and_a_map_of_characters_are_looked_at():
    metadata = sentencepiece()
    with pytest.raises(MiniquantError, match="its tokenizer has 1536 tokens and 2 scores"):
        tokenizer_json(metadata | {"tokenizer.ggml.scores": np.zeros(2, np.float32)})
    with pytest.raises(MiniquantError, match=r"changes a text by tokenizer\.ggml.precompiled_charsmap"):
        tokenizer_json(metadata | {"tokenizer.ggml.precompiled_charsmap": np.zeros(2, np.uint8)})
    assert tokenizer_json({}) is None


def convert(folder, **how):
    write_llama(folder / "m.gguf", TINY, **how)
    write_bump(folder / "m.gguf", folder / "weights.bump")


def test_the_tokenizer_beside_a_bump_file_is_read_with_it_and_another_one_is_refused(tmp_path):
    metadata = sentencepiece()
    convert(tmp_path, more=metadata)
    assert Tokenizer.from_file(str(tmp_path / "tokenizer.json")).get_vocab_size() == 1536
    with open_bump(tmp_path / "weights.bump") as file:
        assert file.tokenizer() == (tmp_path / "tokenizer.json").read_bytes() == tokenizer_json(metadata)
    assert left_behind(tmp_path / "m.gguf") == ([], "")
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json(metadata) + b" ")
    with open_bump(tmp_path / "weights.bump") as file:
        with pytest.raises(FormatError, match=r"tokenizer\.json at byte 0: it is missing, or not the one that was"):
            file.tokenizer()
        (tmp_path / "tokenizer.json").unlink()
        with pytest.raises(FormatError, match="run to-bump again"):
            file.tokenizer()
    data = (tmp_path / "weights.bump").read_bytes()
    with open_bump(data, tmp_path / "config.json") as file, pytest.raises(MiniquantError, match="has no tokenizer"):
        file.tokenizer()


def test_a_model_without_a_known_tokenizer_stands_without_one_and_the_command_says_why(tmp_path):
    convert(tmp_path)
    assert not (tmp_path / "tokenizer.json").exists() and left_behind(tmp_path / "m.gguf") == ([], "")
    with open_bump(tmp_path / "weights.bump") as file, pytest.raises(MiniquantError, match="has no tokenizer beside"):
        file.tokenizer()
    convert(tmp_path, more={"tokenizer.ggml.model": "t5", "general.name": "x", "tokenizer.ggml.bos_token_id": 1})
    keys, reason = left_behind(tmp_path / "m.gguf")
    assert sorted(keys) == ["general.name", "tokenizer.ggml.model"] and reason.startswith(
        "its tokenizer is of kind 't5'"
    )
    assert {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"} == TOKENS < KEYS


def test_a_tokenizer_json_of_somebody_else_is_neither_replaced_nor_removed(tmp_path):
    theirs = tmp_path / "tokenizer.json"
    theirs.write_text("{}")
    with pytest.raises(MiniquantError, match=r"tokenizer\.json: the one there was not written by to-bump; choose anot"):
        convert(tmp_path, more=sentencepiece())
    convert(tmp_path)  # no tokenizer, so theirs may stay
    with pytest.raises(MiniquantError, match="was not written by to-bump"):
        convert(tmp_path, more=sentencepiece())
    assert theirs.read_text() == "{}"
    theirs.unlink()
    convert(tmp_path, more=sentencepiece())
    convert(tmp_path, more=sentencepiece(False))  # ours is replaced
    assert theirs.read_bytes() == tokenizer_json(sentencepiece(False))
    convert(tmp_path)  # and removed, when the next model has none
    assert not theirs.exists()


def test_a_gguf_file_s_own_arrays_are_read(tmp_path):
    """Texts and numbers that stay in the mapped file until they are asked for; an empty array of merges too."""
    metadata = sentencepiece() | {"tokenizer.ggml.merges": Typed([], ValueType.ARRAY, ValueType.STRING)}
    convert(tmp_path, more=metadata)
    assert (tmp_path / "tokenizer.json").read_bytes() == tokenizer_json(sentencepiece())
