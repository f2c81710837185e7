"""SentencePiece tokenizers, of merges or scores: llama.cpp cuts texts as transformers does, or they are refused."""

from __future__ import annotations

import json
import shutil
import struct

import gguf
import numpy as np
import pytest
import sentencepiece
from awkward_lines import awkward_lines
from hf_models import VOCABULARY, edit, make_tokenizer
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from miniquant.core.errors import FormatError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf.write import write_gguf
from miniquant.models import minillama
from miniquant.models.huggingface.bpe import NFC
from miniquant.models.huggingface.config import Config
from miniquant.models.huggingface.sentencepiece import AS_SENTENCEPIECE, BYTES, OTHER_SPACES, cut_by
from miniquant.models.huggingface.tokenizer import read_tokenizer

PARTS = json.loads(make_tokenizer("sentencepiece").to_str())
VOCAB = PARTS["model"]["vocab"]
MERGES = [tuple(merge) for merge in PARTS["model"]["merges"]]
NAMED = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


@pytest.fixture
def folder(tmp_path):
    """A folder with a tokenizer, and no model."""
    (tmp_path / "tokenizer.json").write_text(json.dumps(PARTS), "utf-8")
    about = {"tokenizer_class": "PreTrainedTokenizerFast", **NAMED}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(about), "utf-8")
    return tmp_path


def read(folder, model_type="llama", vocabulary=VOCABULARY):
    return read_tokenizer(folder, Config(folder / "config.json", {"model_type": model_type}), vocabulary)


def in_llamacpp(folder, lines, vocabulary=VOCABULARY):
    """The ids of lines in llama.cpp, which reads no tensors for that."""
    sizes = {"context_length": 8, "embedding_length": 8, "block_count": 1, "feed_forward_length": 8}
    sizes |= {"attention.head_count": 1, "attention.layer_norm_rms_epsilon": 1e-5, "vocab_size": vocabulary}
    keys = {f"llama.{key}": value for key, value in sizes.items()} | {"general.architecture": "llama"}
    write_gguf(folder / "vocabulary.gguf", {}, keys | read(folder, vocabulary=vocabulary).metadata)
    with LlamaCpp(folder / "vocabulary.gguf", vocab_only=True) as llama:
        return [llama.tokenize(line, special=True) for line in lines]


def in_transformers(folder, lines):
    return AutoTokenizer.from_pretrained(folder)(lines, add_special_tokens=False)["input_ids"]


def with_every_merge(lines):
    tokenizer = make_tokenizer("sentencepiece")
    return [encoding.ids for encoding in tokenizer.encode_batch(lines, add_special_tokens=False)]


def change(folder, **changes):
    """Change keys of tokenizer.json, and of its model those that are a model's."""
    parts = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    inner = {key: value for key, value in changes.items() if key in parts["model"]}
    parts["model"].update(inner)
    parts.update({key: value for key, value in changes.items() if key not in inner})
    (folder / "tokenizer.json").write_text(json.dumps(parts), "utf-8")


# ---- what the file holds ---------------------------------------------------------------------------------------------


def test_tokens_have_scores_and_types_and_the_keys_are_those_that_llamacpp_reads(folder):
    found, notes = read(folder)
    tokens = found["tokenizer.ggml.tokens"]
    assert notes == ()
    assert (found["tokenizer.ggml.model"], found["tokenizer.ggml.pre"]) == ("llama", "default")
    assert found["tokenizer.ggml.add_space_prefix"] is True
    assert (found["tokenizer.ggml.add_bos_token"], found["tokenizer.ggml.add_eos_token"]) == (True, False)
    roles = [found[f"tokenizer.ggml.{role}_token_id"] for role in ("unknown", "bos", "eos")]
    assert roles == [0, 1, 2]
    assert {token: i for i, token in enumerate(tokens[: len(VOCAB) + 1])} == VOCAB | {"<|tool|>": len(VOCAB)}
    kinds = [gguf.TokenType(kind).name for kind in found["tokenizer.ggml.token_type"]]
    assert kinds[:3] == ["UNKNOWN", "CONTROL", "CONTROL"]
    assert {token for token, kind in zip(tokens, kinds) if kind == "BYTE"} == set(BYTES) and kinds[3] == "BYTE"
    assert [token for token, kind in zip(tokens, kinds) if kind == "USER_DEFINED"] == ["<|tool|>"]
    scores = dict(zip(tokens, found["tokenizer.ggml.scores"]))
    assert len(found["tokenizer.ggml.scores"]) == VOCABULARY
    for place, (left, right) in enumerate(MERGES):
        first = MERGES.index(next(pair for pair in MERGES if "".join(pair) == left + right))
        assert scores[left + right] == -first >= -place
    assert scores["<unk>"] == scores["<0x41>"] == scores["<|tool|>"] == 0


def test_the_official_names_of_the_keys_are_used(folder):
    official = {value for value in vars(gguf.Keys.Tokenizer).values() if isinstance(value, str)}
    assert read(folder).metadata.keys() <= official


# ---- merges that no scores stand for ---------------------------------------------------------------------------------


def canonical():
    """Of every token only the merge that makes it, as a trainer of merges writes them."""
    ranks = {"".join(pair): place for place, pair in reversed(list(enumerate(MERGES)))}
    made = []
    for token in ranks:
        cut = cut_by(lambda left, right, token=token: ranks.get(left + right) if left + right != token else None, token)
        made.append((ranks[token], tuple(cut)))
    return [pair for _, pair in sorted(made)]


def test_merges_without_those_that_never_apply_give_the_same_ids(folder):
    merges = canonical()
    assert len(merges) < len(MERGES) and all(len(pair) == 2 for pair in merges)
    change(folder, merges=merges)
    lines = awkward_lines()
    ids = in_llamacpp(folder, lines)
    assert ids == in_transformers(folder, lines)
    assert ids == with_every_merge(lines)


def with_token(token, *merges, at=None):
    """The tokenizer with one more token, and merges at a place of the list, its end unless said otherwise."""
    at = len(MERGES) if at is None else at
    new = {name: i for i, name in enumerate(name for name in [*VOCAB, token])}
    return {"vocab": new, "merges": [*MERGES[:at], *merges, *MERGES[at:]], "added_tokens": PARTS["added_tokens"][:3]}


MERGED = {
    "a token that no merge makes": (
        with_token("zz"),
        "no merge joins 'z' and 'z' to the token 'zz'",
    ),
    "a character that is no token": (with_token("\nz"), r"no merge joins '\\n' and 'z' to the token"),
    "bytes that are joined": (
        with_token("<0x41><0x42>", ("<0x41>", "<0x42>")),
        "joins '<0x41>' and '<0x42>', and llama.cpp no bytes",
    ),
    "words that are tokens": ({"ignore_merges": True}, "model.ignore_merges: it is true"),
    "a text in lower case": (
        {"normalizer": {"type": "Lowercase"}},
        "normalizer: found .'type': 'Lowercase'. with the pre_tokenizer None; known are Prepend and Replace",
    ),
    "spaces that split": (
        {"normalizer": None, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}},
        "normalizer: found None with the pre_tokenizer .*Metaspace",
    ),
    "spaces put nobody knows where": (
        {"normalizer": None, "pre_tokenizer": {"type": "Metaspace", "split": False, "prepend_scheme": "last"}},
        "normalizer: found None with the pre_tokenizer .*last",
    ),
    "another way back": ({"decoder": {"type": "WordPiece"}}, "decoder: found .'type': 'WordPiece'"),
    "a token with a space before it": (
        {"added_tokens": [*PARTS["added_tokens"][:3], PARTS["added_tokens"][3] | {"normalized": True}]},
        "added_tokens: '<|tool|>' is normalized",
    ),
    "an unknown unknown": ({"unk_token": "<?>"}, "model.unk_token: found '<[?]>', which is not in the vocabulary"),
    "a list for the unknown": ({"unk_token": ["<unk>"]}, "model.unk_token: found"),
    "a byte without a token": (
        {"vocab": {("<0x4a>" if name == "<0x4A>" else name): i for name, i in VOCAB.items()}},
        "no token for the byte 0x4a: '<0x4A>' is needed",
    ),
    "a Unigram": ({"type": "Unigram"}, "model: found 'Unigram'; this converter knows BPE"),
}


@pytest.mark.parametrize("case", MERGED)
def test_a_tokenizer_that_no_scores_stand_for_is_refused(case, folder):
    changes, message = MERGED[case]
    change(folder, **changes)
    with pytest.raises(FormatError, match=message.replace("|tool|", r"\|tool\|")) as caught:
        read(folder)
    assert "\n" not in str(caught.value)


def test_merges_of_one_token_must_stand_together(folder):
    place = next(i for i in range(1, len(MERGES)) if "".join(MERGES[i - 1]) == "".join(MERGES[i]))
    change(folder, merges=[*MERGES[:place], *MERGES[place + 1 :], MERGES[place]])
    with pytest.raises(FormatError, match=r"stand among others, and llama\.cpp has one score for all of them"):
        read(folder)


def test_a_token_that_llamacpp_cannot_make_needs_no_merge(folder):
    """Its characters stay three pieces, so no two of them ever make it."""
    assert not {"\x01\x02", "\x02\x03"} & VOCAB.keys()
    change(folder, **with_token("\x01\x02\x03"))
    lines = ["a\x01\x02\x03b", *awkward_lines(200)]
    assert in_llamacpp(folder, lines) == in_transformers(folder, lines)


def test_a_merge_out_of_order_is_refused_where_one_is_missing(folder):
    """The argument that a missing merge never applies needs parts that are made before the whole."""
    merges = canonical()
    whole = next(pair for pair in merges if len(pair[0]) > 1)
    change(folder, merges=[whole, *(pair for pair in merges if pair != whole)])
    with pytest.raises(FormatError, match="no merge joins"):
        read(folder)


# ---- where a space goes ----------------------------------------------------------------------------------------------


def metaspace(scheme):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": False}


@pytest.mark.parametrize("scheme", ["always", "first"])
def test_a_metaspace_is_converted_with_a_note_which_says_which_texts_differ(scheme, folder):
    change(folder, normalizer=None, pre_tokenizer=metaspace(scheme))
    assert read(folder).notes == (OTHER_SPACES,)
    lines = awkward_lines(names=False)
    assert in_llamacpp(folder, lines) == in_transformers(folder, lines)
    odd = [" x", "<s> x"]
    assert in_llamacpp(folder, odd) != in_transformers(folder, odd)


@pytest.mark.parametrize(
    "changes",
    [
        {"normalizer": None, "pre_tokenizer": metaspace("never")},
        {"normalizer": PARTS["normalizer"]["normalizers"][1]},
    ],
)
def test_a_tokenizer_that_puts_no_space_before_a_text_has_none_in_llamacpp(changes, folder):
    change(folder, **changes)
    found, notes = read(folder)
    assert found["tokenizer.ggml.add_space_prefix"] is False and notes == ()
    lines = awkward_lines()
    assert in_llamacpp(folder, lines) == in_transformers(folder, lines)


def test_the_class_of_llama_has_a_note_and_a_contradiction_is_refused(folder):
    edit(folder / "tokenizer_config.json", tokenizer_class="LlamaTokenizerFast")
    assert read(folder).notes == (OTHER_SPACES,)
    edit(folder / "tokenizer_config.json", add_prefix_space=True)
    read(folder)
    edit(folder / "tokenizer_config.json", add_prefix_space=False)
    with pytest.raises(FormatError, match=r"add_prefix_space: found False, and tokenizer\.json does the opposite"):
        read(folder)


def test_a_qwen2_with_nfc_is_converted_with_a_note(folder):
    tokenizer = json.loads(make_tokenizer("qwen2").to_str()) | {"normalizer": {"type": "NFC"}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    edit(folder / "tokenizer_config.json", unk_token=...)
    assert read(folder).notes == (NFC,)
    lines = awkward_lines(nfc=True)
    assert in_llamacpp(folder, lines) == in_transformers(folder, lines)
    assert in_llamacpp(folder, ["e\u0301"]) != in_transformers(folder, ["e\u0301"])


# ---- tokenizer.model -------------------------------------------------------------------------------------------------


def varint(number):
    out = bytearray()
    number &= 2**64 - 1
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number, value):
    """A field of Protocol Buffers: bytes, a float, or a whole number."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


def message(fields):
    return b"".join(field(number, value) for number, value in fields.items())


def piece(name, i):
    kind = {"<unk>": 2, "<s>": 3, "</s>": 3, "<|tool|>": 4}.get(name, 6 if name in BYTES else 1)
    score = -float(i - 258) if kind == 1 else 0.0
    return {1: name.encode("utf-8"), 2: score} | ({3: kind} if kind != 1 else {})


PIECES = [piece(name, i) for name, i in (VOCAB | {"<|tool|>": len(VOCAB)}).items()]
TRAINER = {3: 2, 40: 0, 41: 1, 42: 2, 43: -1}
NORMALIZER = {1: b"identity", 3: 1, 4: 0, 5: 1}


def model(pieces=PIECES, trainer=TRAINER, normalizer=NORMALIZER):
    parts = [field(1, message(one)) for one in pieces]
    return b"".join([*parts, field(2, message(trainer)), field(3, message(normalizer)), field(4, b"self test")])


@pytest.fixture
def alone(folder):
    """The same vocabulary as a tokenizer.model, and no tokenizer.json."""
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.model").write_bytes(model())
    (folder / "tokenizer_config.json").write_text("{}")
    return folder


def test_a_tokenizer_model_gives_the_ids_of_the_tokenizer_json_with_the_same_pieces(alone):
    found, notes = read(alone)
    assert notes == (AS_SENTENCEPIECE,)
    lines = awkward_lines()
    expected = with_every_merge(lines)
    assert in_llamacpp(alone, lines) == expected
    tokens = found["tokenizer.ggml.tokens"]
    assert list(tokens) == [*VOCAB, "<|tool|>", *(f"[PAD{i}]" for i in range(len(VOCAB) + 1, VOCABULARY))]
    scores = [one[2] for one in PIECES]
    assert np.array_equal(found["tokenizer.ggml.scores"][: len(scores)], np.float32(scores))
    kinds = found["tokenizer.ggml.token_type"]
    assert kinds[:4] == [2, 3, 3, 6] and kinds[len(VOCAB)] == 4 and set(kinds[259 : len(VOCAB)]) == {1}
    assert [found[f"tokenizer.ggml.{role}_token_id"] for role in ("unknown", "bos", "eos")] == [0, 1, 2]
    assert "tokenizer.ggml.padding_token_id" not in found
    assert (found["tokenizer.ggml.add_bos_token"], found["tokenizer.ggml.add_eos_token"]) == (True, False)
    assert found["tokenizer.ggml.add_space_prefix"] is True


def test_tokenizer_json_has_the_first_word_where_both_are_there(folder):
    (folder / "tokenizer.model").write_bytes(b"")
    assert read(folder).notes == ()


def test_what_the_model_leaves_out_has_the_defaults_of_sentencepiece(alone):
    (alone / "tokenizer.model").write_bytes(model(trainer={3: 2}, normalizer={4: 0}))
    found = read(alone).metadata
    assert [found[f"tokenizer.ggml.{role}_token_id"] for role in ("unknown", "bos", "eos")] == [0, 1, 2]
    assert found["tokenizer.ggml.add_space_prefix"] is True
    (alone / "tokenizer.model").write_bytes(model(normalizer={3: 0, 4: 0}))
    assert read(alone).metadata["tokenizer.ggml.add_space_prefix"] is False
    (alone / "tokenizer.model").write_bytes(model(trainer=TRAINER | {43: 0}))
    assert read(alone).metadata["tokenizer.ggml.padding_token_id"] == 0


def test_the_folder_says_what_stands_before_and_after_a_text_and_which_tokens_were_added(alone):
    about = {"add_bos_token": False, "add_eos_token": True, "eos_token": {"content": "</s>"}}
    about |= {"added_tokens_decoder": {str(len(PIECES)): {"content": "<|more|>", "special": True}}}
    (alone / "tokenizer_config.json").write_text(json.dumps(about))
    found = read(alone).metadata
    assert (found["tokenizer.ggml.add_bos_token"], found["tokenizer.ggml.add_eos_token"]) == (False, True)
    assert found["tokenizer.ggml.tokens"][len(PIECES)] == "<|more|>"
    assert found["tokenizer.ggml.token_type"][len(PIECES)] == gguf.TokenType.CONTROL
    (alone / "added_tokens.json").write_text(json.dumps({"<|late|>": len(PIECES) + 1}))
    with pytest.raises(FormatError, match="found id"):
        read(alone)
    edit(alone / "tokenizer_config.json", added_tokens_decoder=...)
    (alone / "added_tokens.json").write_text(json.dumps({"<|late|>": len(PIECES)}))
    assert read(alone).metadata["tokenizer.ggml.token_type"][len(PIECES)] == gguf.TokenType.USER_DEFINED


REFUSED = {
    "a Unigram": (model(trainer={}), r"trainer_spec.model_type: this SentencePiece model is Unigram, and llama.cpp's"),
    "words": (model(trainer={3: 3}), "trainer_spec.model_type: this SentencePiece model is of type 3"),
    "spaces that go": (model(normalizer={}), "normalizer_spec.remove_extra_whitespaces: found 1, expected 0"),
    "characters that change": (
        model(normalizer={4: 0, 2: b"map"}),
        "normalizer_spec.precompiled_charsmap: found b'map', expected b''",
    ),
    "spaces as they are": (model(normalizer={4: 0, 5: 0}), "normalizer_spec.escape_whitespaces: found 0, expected 1"),
    "spaces after words": (model(trainer={3: 2, 24: 1}), "trainer_spec.treat_whitespace_as_suffix: a space belongs"),
    "a piece twice": (model([*PIECES, PIECES[-2]]), rf"pieces\[{len(PIECES)}\]: .* is there twice"),
    "an unused piece": (model([*PIECES, {1: b"zq", 2: 0.0, 3: 5}]), r"pieces\[\d+\]: 'zq' is of type 5, which"),
    "a byte's name of two pieces": (
        model([*PIECES, *({1: text, 2: -1.0} for text in (b"<0", b"<0x", b"<0x4", b"1>"))]),
        r"pieces: llama.cpp would join \['<0x4', '1>'\] to the token of a byte",
    ),
    "too many": (
        model([*PIECES, *({1: f"q{i}".encode(), 2: 0.0} for i in range(600))]),
        "and the model has 512 tokens",
    ),
    "nothing": (b"", "it holds no pieces, so this is no SentencePiece model"),
    "a text": (b"\xff" * 20, "byte 10: this is no SentencePiece model"),
    "a group": (b"\x0b", "byte 1: this is no SentencePiece model"),
    "cut": (model()[:1000], r"byte \d+: this is no SentencePiece model"),
    "a score of text": (model([{1: b"a", 2: b"high"[:3]}]), "byte 2: this is no piece of a vocabulary"),
    "a score that is no number": (model([{1: b"a", 2: float("nan")}]), "byte 2: this is no piece of a vocabulary"),
    "a name of numbers": (model([{1: 7}]), "byte 2: this is no piece of a vocabulary"),
    "a name that is no text": (model([{1: b"\xff"}]), "byte 2: this is no piece of a vocabulary"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_model_that_llamacpp_would_run_differently_is_refused(case, alone):
    data, text = REFUSED[case]
    (alone / "tokenizer.model").write_bytes(data)
    with pytest.raises(FormatError, match=text) as caught:
        read(alone)
    assert "\n" not in str(caught.value) and "tokenizer.model" in str(caught.value)


def test_another_class_or_model_with_only_a_tokenizer_model_is_refused(alone):
    with pytest.raises(FormatError, match="tokenizer_class: found None; this converter knows 'LlamaTokenizer'"):
        read(alone, "qwen2")
    edit(alone / "tokenizer_config.json", tokenizer_class="T5Tokenizer")
    with pytest.raises(FormatError, match="tokenizer_class: found 'T5Tokenizer'"):
        read(alone)
    edit(alone / "tokenizer_config.json", tokenizer_class="LlamaTokenizer", add_prefix_space=False)
    with pytest.raises(FormatError, match=r"add_prefix_space: found False, and tokenizer\.model does the opposite"):
        read(alone)


@pytest.mark.parametrize("kept", ["tokenizer.json", "tokenizer.model"])
def test_minillama_s_tokenizer_gives_the_ids_of_transformers_and_of_sentencepiece(kept, tmp_path):
    for name in (kept, "tokenizer_config.json"):
        shutil.copy(minillama.folder() / name, tmp_path)
    if kept == "tokenizer.model":
        edit(tmp_path / "tokenizer_config.json", tokenizer_class="LlamaTokenizer")
    plain, lines = awkward_lines(names=False), awkward_lines()
    referee = sentencepiece.SentencePieceProcessor(model_file=str(minillama.folder() / "tokenizer.model"))

    ids = in_llamacpp(tmp_path, [*plain, *lines], vocabulary=len(referee))
    assert ids[: len(plain)] == referee.encode(plain)  # it does not know the names of tokens
    assert ids[len(plain) :] == in_transformers(minillama.folder(), lines)


def test_the_tokenizers_library_reads_what_the_tests_convert():
    assert Tokenizer.from_str(json.dumps(PARTS)).encode("a b").tokens[:2] == ["<s>", "▁a"]
