"""Tokenizers of Hugging Face folders: llama.cpp gives the ids that transformers gives, or the folder is refused."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import ExitStack
from itertools import permutations

import gguf
import numpy as np
import pytest
from awkward_lines import awkward_lines
from hf_models import TEXTS, VOCABULARY, edit, make_tokenizer, save_gpt2, save_llama, save_tokenizer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from thorough import tried
from tokenizers import Tokenizer, pre_tokenizers
from transformers import AutoTokenizer

from miniquant.core.errors import FormatError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import read_gguf
from miniquant.formats.gguf.pre_tokenizers import PRE_TOKENIZERS
from miniquant.models.huggingface.bpe import byte_symbols
from miniquant.models.huggingface.convert import convert_folder

BYTE_LEVEL = [name for name, *_ in PRE_TOKENIZERS]
RULES = [*BYTE_LEVEL, "sentencepiece"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A small model with each rule for words, converted, and the folder it came from."""
    base = tmp_path_factory.mktemp("rules")
    for name in RULES:
        save_llama(base / name, pre=name, num_hidden_layers=1)
        convert_folder(base / name, base / f"{name}.gguf", "f16")
    return base


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a small Llama, saved once."""
    folder = tmp_path_factory.mktemp("saved") / "folder"
    save_llama(folder, num_hidden_layers=1)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "folder")


def metadata(folder):
    convert_folder(folder, folder.parent / "m.gguf", "f16")
    with read_gguf(folder.parent / "m.gguf") as file:
        return dict(file.metadata)


def refused(folder, message):
    output = folder.parent / "m.gguf"
    output.write_bytes(b"before")
    with pytest.raises(FormatError, match=message) as caught:
        convert_folder(folder, output, "f16")
    assert "\n" not in str(caught.value)
    assert output.read_bytes() == b"before"
    assert sorted(p.name for p in folder.parent.iterdir()) == ["folder", "m.gguf"]


# ---- the same ids ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_llamacpp_gives_the_ids_that_transformers_gives(rule, folders):
    tokenizer = AutoTokenizer.from_pretrained(folders / rule)
    with LlamaCpp(folders / f"{rule}.gguf") as llama:
        for text in TEXTS:
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            assert llama.tokenize(text, special=True) == ids, text
            space = " " * (rule == "sentencepiece")  # before every piece of text between special tokens
            assert llama.text(ids).decode("utf-8").replace(space, "") == text.replace(space, "")


@pytest.mark.parametrize("rule", RULES)
def test_llamacpp_gives_two_thousand_awkward_lines_the_ids_that_transformers_gives(rule, folders):
    tokenizer, lines = AutoTokenizer.from_pretrained(folders / rule), awkward_lines()
    expected = tokenizer(lines, add_special_tokens=False)["input_ids"]
    with LlamaCpp(folders / f"{rule}.gguf", vocab_only=True) as llama:
        assert [llama.tokenize(line, special=True) for line in lines] == expected
    assert len(lines) == 2000 and sum(map(len, expected)) > 50_000


PIECES = st.sampled_from([
    *("'s", "'LL", "'ve", " ", "  ", "\n", "\r\n", "\t", "1", "42", "1234", "²", "Ⅷ", "٣", "abc", "É", "ß", "e\u0301"),
    *("日本", "한", "ไทย", "हि", "🙂", "\u200d", "\u3000", "\u00a0", ".", "...", "_", "$", "€", "<s>", "<|tool|>"),
])  # fmt: skip
FUZZED = st.lists(PIECES | st.characters(codec="utf-8", exclude_categories=["Cs", "Cn"]), max_size=20).map("".join)


@pytest.mark.parametrize("rule", RULES)
def test_llamacpp_gives_the_same_ids_for_any_text(rule, folders):
    with ExitStack() as stack:
        llama, tokenizer = stack.enter_context(LlamaCpp(folders / f"{rule}.gguf")), make_tokenizer(rule)

        @settings(max_examples=tried(37, 150))
        @given(FUZZED)
        def check(text):
            assert llama.tokenize(text, special=True) == tokenizer.encode(text, add_special_tokens=False).ids

        check()


def test_the_rules_are_different():
    """Else a wrong name would go unnoticed: a text that each pair of rules cuts in two ways."""
    text = "I'LL  say 12345 don't x\n\n\u3000y"
    cut = {json.dumps(make_tokenizer(rule).pre_tokenizer.pre_tokenize_str(text)) for rule in BYTE_LEVEL}
    assert len(cut) == len(BYTE_LEVEL) - 1  # smaug-bpe cuts as llama-bpe does, and merges inside words


def test_a_word_that_is_a_token_needs_no_merges_where_the_rule_says_so(tmp_path):
    """What sets llama-bpe apart from smaug-bpe: a token that no merge makes."""
    for rule, ignoring in (("llama-bpe", True), ("smaug-bpe", False)):
        save_llama(tmp_path / rule, pre=rule, num_hidden_layers=1)
        parts = json.loads((tmp_path / rule / "tokenizer.json").read_text("utf-8"))
        parts["model"]["vocab"]["xqzj"] = VOCABULARY
        (tmp_path / rule / "tokenizer.json").write_text(json.dumps(parts), "utf-8")
        convert_folder(tmp_path / rule, tmp_path / "m.gguf", "f16")
        tokenizer = AutoTokenizer.from_pretrained(tmp_path / rule)
        with LlamaCpp(tmp_path / "m.gguf") as llama:
            ids = llama.tokenize("xqzj")
            assert ids == tokenizer("xqzj")["input_ids"]
            assert (ids == [VOCABULARY]) == ignoring


ADDED = st.lists(
    st.tuples(st.text("abé", min_size=1, max_size=4), st.booleans()), max_size=4, unique_by=lambda token: token[0]
)


def test_added_tokens_that_are_accepted_are_found_as_transformers_finds_them(tmp_path):
    """Any few tokens over three letters, in any texts of these letters."""
    save_llama(tmp_path / "folder", num_hidden_layers=1)
    whole = json.loads((tmp_path / "folder" / "tokenizer.json").read_text("utf-8"))
    known, seen = whole["model"]["vocab"], []
    tokens_of = {"bos_token": "<s>", "eos_token": "</s>"}
    (tmp_path / "folder" / "tokenizer_config.json").write_text(json.dumps(tokens_of))

    @settings(max_examples=tried(12, 50))
    @given(ADDED, st.lists(st.text("abéc", max_size=12), min_size=10, max_size=10))
    @example([("ab", False), ("bbaa", True)], ["abbaa"])
    @example([("ba", True), ("bbab", False)], ["bbab"])
    def check(added, texts):
        entries = [
            {"id": 512 + n, "content": token, "normalized": late, "special": False}
            | {"lstrip": False, "rstrip": False, "single_word": False}
            for n, (token, late) in enumerate((token, late) for token, late in added if token not in known)
        ]
        parts = {**whole, "added_tokens": whole["added_tokens"] + entries}
        (tmp_path / "folder" / "tokenizer.json").write_text(json.dumps(parts), "utf-8")
        try:
            convert_folder(tmp_path / "folder", tmp_path / "m.gguf", "f16")
        except FormatError as error:
            assert "overlap in a text" in str(error)
            seen.append(False)
            return
        seen.append(True)
        tokenizer = Tokenizer.from_str(json.dumps(parts))
        with LlamaCpp(tmp_path / "m.gguf") as llama:
            for text in [*texts, *("".join(order) for order in permutations(token for token, _ in added))]:
                assert llama.tokenize(text, special=True) == tokenizer.encode(text, add_special_tokens=False).ids, text

    check()
    assert set(seen) == {True, False}


# ---- tokens, types, roles --------------------------------------------------------------------------------------------


def test_tokens_keep_their_ids_and_rows_without_one_get_a_name_of_type_unused(folder):
    found = metadata(folder)
    vocabulary = make_tokenizer().get_vocab(with_added_tokens=True)
    tokens, kinds = list(found["tokenizer.ggml.tokens"]), found["tokenizer.ggml.token_type"]
    assert {token: i for i, token in enumerate(tokens[:VOCABULARY])} == vocabulary
    assert tokens[VOCABULARY:] == [f"[PAD{i}]" for i in range(VOCABULARY, 520)]
    assert [tokens[i] for i in np.flatnonzero(kinds == gguf.TokenType.CONTROL)] == ["<s>", "</s>"]
    assert [tokens[i] for i in np.flatnonzero(kinds == gguf.TokenType.USER_DEFINED)] == ["<|tool|>"]
    assert [tokens[i] for i in np.flatnonzero(kinds == gguf.TokenType.UNUSED)] == tokens[VOCABULARY:]
    assert (kinds == gguf.TokenType.NORMAL).sum() == VOCABULARY - 3
    assert kinds.dtype == np.int32 and len(kinds) == len(tokens) == 520
    merges = json.loads(make_tokenizer().to_str())["model"]["merges"]
    assert [merge.split(" ") for merge in found["tokenizer.ggml.merges"]] == [list(merge) for merge in merges]


def test_the_tokenizer_s_own_files_say_which_token_has_which_role_and_config_json_the_rest(folder):
    edit(folder / "config.json", bos_token_id=7, eos_token_id=[8, 9], pad_token_id=5)
    found = metadata(folder)
    roles = {role: found.get(f"tokenizer.ggml.{role}_token_id") for role in ("bos", "eos", "padding", "unknown")}
    assert roles == {"bos": 0, "eos": 1, "padding": 5, "unknown": None}
    edit(folder / "tokenizer_config.json", eos_token=..., bos_token=..., pad_token={"content": "<|tool|>"})
    found = metadata(folder)
    assert [found[f"tokenizer.ggml.{role}_token_id"] for role in ("bos", "eos", "padding")] == [7, 8, 511]
    assert found["tokenizer.ggml.token_type"][511] == gguf.TokenType.CONTROL
    edit(folder / "config.json", bos_token_id=None, pad_token_id=-1)
    edit(folder / "tokenizer_config.json", pad_token=...)
    (folder / "special_tokens_map.json").write_text(json.dumps({"eos_token": {"content": "</s>"}}), "utf-8")
    found = metadata(folder)
    assert [found[f"tokenizer.ggml.{role}_token_id"] for role in ("bos", "eos")] == [1, 1]
    assert "tokenizer.ggml.padding_token_id" not in found


TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
}
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}


@pytest.mark.parametrize(
    ("post_processor", "first"),
    [
        (None, False),
        (BYTES, False),
        (TEMPLATE, True),
        ({"type": "Sequence", "processors": [BYTES, TEMPLATE]}, True),
        (TEMPLATE | {"single": TEMPLATE["single"][1:]}, False),
    ],
)
def test_whether_a_text_begins_with_a_token_is_what_transformers_does(post_processor, first, folder):
    edit(folder / "tokenizer.json", post_processor=post_processor)
    ids = AutoTokenizer.from_pretrained(folder)("hello")["input_ids"]
    found = metadata(folder)
    assert (ids[0] == 0) == found["tokenizer.ggml.add_bos_token"] == first
    assert found["tokenizer.ggml.add_eos_token"] is False


def test_a_chat_template_is_carried_from_either_place(folder):
    assert "tokenizer.chat_template" not in metadata(folder)
    edit(folder / "tokenizer_config.json", chat_template=[
        {"name": "default", "template": "{{ a }}"}, {"name": "rag", "template": "{{ b }}"}
    ])  # fmt: skip
    found = metadata(folder)
    assert (found["tokenizer.chat_template"], found["tokenizer.chat_template.rag"]) == ("{{ a }}", "{{ b }}")
    (folder / "chat_template.jinja").write_text("{{ messages }} é", "utf-8")
    assert metadata(folder)["tokenizer.chat_template"] == "{{ messages }} é"


def as_two_lists(folder):
    """The same tokenizer as GPT-2's vocab.json and merges.txt."""
    parts = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps(parts["model"]["vocab"]), "utf-8")
    merges = "\n".join(" ".join(merge) for merge in parts["model"]["merges"])
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}\n", "utf-8")
    (folder / "added_tokens.json").write_text(json.dumps({"<|tool|>": VOCABULARY - 1}), "utf-8")
    edit(folder / "tokenizer_config.json", tokenizer_class="GPT2Tokenizer", unk_token="</s>", backend=...)


def test_vocab_json_and_merges_txt_give_the_same_tokens(tmp_path):
    folder = tmp_path / "folder"
    save_gpt2(folder)
    edit(folder / "tokenizer_config.json", unk_token="</s>")
    before = metadata(folder)
    as_two_lists(folder)
    after = metadata(folder)
    assert {k: list(v) if hasattr(v, "__len__") else v for k, v in after.items()} == {
        k: list(v) if hasattr(v, "__len__") else v for k, v in before.items()
    }
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with LlamaCpp(tmp_path / "m.gguf") as llama:
        for text in TEXTS:
            assert llama.tokenize(text, special=True) == tokenizer(text)["input_ids"]


def test_the_characters_for_bytes_are_those_of_the_tokenizers_library():
    assert sorted(byte_symbols()) == sorted(pre_tokenizers.ByteLevel.alphabet())
    for byte in range(128):  # each of these is a text of its own
        ((cut, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(chr(byte))
        assert cut == byte_symbols()[byte]


# ---- refused, by name ------------------------------------------------------------------------------------------------


def model(**changes):
    return lambda parts: parts["model"].update(changes)


def token(**changes):
    return lambda parts: parts["added_tokens"][2].update(changes)


def whole(**changes):
    return lambda parts: parts.update(changes)


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


REFUSED = {
    "WordPiece": (
        model(type="WordPiece"),
        "model: found 'WordPiece'; this converter knows BPE, of bytes or with byte_fallback",
    ),
    "no model": (whole(model=None), "model: found None"),
    "bytes of a SentencePiece": (model(byte_fallback=True), "normalizer: found None with the pre_tokenizer"),
    "dropout": (model(dropout=0.1), "model.dropout: found 0.1, which llama.cpp does not have"),
    "suffixes": (model(end_of_word_suffix="</w>"), "model.end_of_word_suffix: found '</w>'"),
    "a normalizer": (whole(normalizer={"type": "NFKC"}), "normalizer: found 'NFKC'; llama.cpp changes no text"),
    "another decoder": (whole(decoder={"type": "WordPiece"}), "decoder: found 'WordPiece', expected ByteLevel"),
    "no rule": (whole(pre_tokenizer=None), "pre_tokenizer: found None; the rules known by a name in llama.cpp are"),
    "whitespace": (whole(pre_tokenizer={"type": "Whitespace"}), "pre_tokenizer: found .'type': 'Whitespace'"),
    "a space in front": (whole(pre_tokenizer=BYTES), "pre_tokenizer: found .*'add_prefix_space': True"),
    "an own pattern": (
        whole(pre_tokenizer={"type": "Sequence", "pretokenizers": [split(r"\d+"), BYTES]}),
        "pre_tokenizer: found .*Regex",
    ),
    "merges ignored where llama.cpp does not": (
        model(ignore_merges=True),
        "pre_tokenizer: found .* with ignore_merges",
    ),
    "a template of two tokens": (
        whole(post_processor=TEMPLATE | {"single": TEMPLATE["single"][:1] * 2 + TEMPLATE["single"][1:]}),
        "post_processor: found .*; one token before and one after",
    ),
    "a template without the text": (
        whole(post_processor=TEMPLATE | {"single": TEMPLATE["single"][:1]}),
        "post_processor: found",
    ),
    "the end before the text": (
        whole(post_processor=TEMPLATE | {"single": [{"SpecialToken": {"id": "</s>"}}, {"Sequence": {"id": "A"}}]}),
        "post_processor: a text gets '</s>' where llama.cpp has a place for bos_token alone",
    ),
    "another post-processor": (whole(post_processor={"type": "Bert"}), "post_processor: found 'Bert'"),
    "a token that eats spaces": (token(lstrip=True), "added_tokens: '<|tool|>' has lstrip"),
    "a whole word": (token(single_word=True), "added_tokens: '<|tool|>' has single_word"),
    "an added token without an id": (token(id=None), r"added_tokens: found the token '<|tool|>' with id None"),
    "an added token with two ids": (token(content="<s>"), "found the token '<s>' with id 511, and id 0 before"),
    "an id twice": (token(id=7), "id 7 is '.' and '<|tool|>'"),
    "a token beyond the model": (token(id=520), "'<|tool|>' has id 520, and the model has 520 tokens"),
    "added tokens that are none": (whole(added_tokens={}), "added_tokens: this is no list of tokens"),
    "a vocabulary of letters": (model(vocab=["a"]), "model.vocab: this is no object of tokens and their numbers"),
    "a negative id": (lambda parts: parts["model"]["vocab"].update(a=-1), "model.vocab: this is no object"),
    "a byte without a token": (
        lambda parts: (parts["model"]["vocab"].pop("A"), parts["model"].update(merges=[])),
        "no token for the byte 0x41",
    ),
    "a token named as a filler": (lambda parts: parts["model"]["vocab"].update({"[PAD515]": 513}), "the name .PADn."),
    "a merge of three": (lambda parts: parts["model"]["merges"].insert(0, "a b c"), "merge 0 is 'a b c', expected two"),
    "a merge of numbers": (lambda parts: parts["model"]["merges"].insert(0, [1, 2]), "merge 0 is .1, 2., expected two"),
    "a merge of nothing": (
        lambda parts: parts["model"]["merges"].insert(0, ["Q", "Z"]),
        "merge 0, .'Q', 'Z'.: no token of that name",
    ),
    "a merge twice": (
        lambda parts: parts["model"]["merges"].append(parts["model"]["merges"][0]),
        r"merge \d+, .*, is there twice",
    ),
    "a zero character": (token(content="a\0b"), r"'a.x00b' has a zero character, where llama.cpp's texts end"),
    "a token of a page": (token(content="x" * 5000), "added_tokens: an added token has more than 4096 bytes"),
    "tokens that overlap": (
        lambda parts: parts["added_tokens"].extend(
            [{"id": 512, "content": "ab", "normalized": False}, {"id": 513, "content": "bcd", "normalized": False}]
        ),
        "added_tokens: 'ab' and 'bcd' overlap in a text, and llama.cpp would take the other one first",
    ),
    "no merges": (model(merges=None), "merges: this is no list of merges"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_tokenizer_that_llamacpp_would_run_differently_is_refused(case, folder):
    change, message = REFUSED[case]
    parts = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    change(parts)
    (folder / "tokenizer.json").write_text(json.dumps(parts), "utf-8")
    refused(folder, message.replace("|", r"\|"))


ABOUT = {
    "a role without a token": ({"pad_token": "<pad>"}, "pad_token: found '<pad>', which tokenizer.json does not have"),
    "a role of numbers": ({"eos_token": 3}, "eos_token: found 3"),
    "a beginning that the template lacks": ({"add_bos_token": True}, "add_bos_token: found True, and the"),
    "an end that the template lacks": ({"add_eos_token": True}, "add_eos_token: found True, and the"),
    "another number": (
        {"added_tokens_decoder": {"3": {"content": "<s>"}}},
        "added_tokens_decoder: '<s>' is 3, which tokenizer.json does not say",
    ),
    "numbers that are none": ({"added_tokens_decoder": {"x": {}}}, "added_tokens_decoder: this is no object"),
    "a template of numbers": ({"chat_template": 3}, "chat_template: found 3, expected a text"),
}  # fmt: skip


@pytest.mark.parametrize("case", ABOUT)
def test_a_tokenizer_config_that_contradicts_is_refused(case, folder):
    changes, message = ABOUT[case]
    edit(folder / "tokenizer_config.json", **changes)
    refused(folder, message)


def test_an_id_out_of_range_and_a_text_without_an_end_are_refused(folder):
    edit(folder / "tokenizer_config.json", eos_token=..., bos_token=...)
    edit(folder / "config.json", eos_token_id=50256)
    refused(folder, "config.json: eos_token_id: found 50256, and the model has 520 tokens")
    edit(folder / "config.json", eos_token_id=...)
    refused(folder, "eos_token: nothing says which token ends a text")


def test_files_that_are_missing_or_broken_are_named(folder):
    tokenizer = folder / "tokenizer.json"
    whole_text = tokenizer.read_text("utf-8")
    tokenizer.write_text(whole_text[:1000], "utf-8")
    refused(folder, r"tokenizer\.json: byte \d+: this is no JSON")
    tokenizer.write_bytes(b"\xff\xfe")
    refused(folder, r"tokenizer\.json: byte 0: not valid UTF-8")
    tokenizer.unlink()
    refused(folder, r"no tokenizer\.json, no tokenizer\.model, and no vocab\.json with merges\.txt in it$")


LISTS = {
    "another class": (
        lambda f: edit(f / "tokenizer_config.json", tokenizer_class="CodeGenTokenizer"),
        "tokenizer_class: found 'CodeGenTokenizer'",
    ),
    "a space in front": (
        lambda f: edit(f / "tokenizer_config.json", add_prefix_space=True),
        "add_prefix_space: found True",
    ),
    "an added token elsewhere": (
        lambda f: (f / "added_tokens.json").write_text('{"<|tool|>": 515}'),
        "found id 515, expected 511",
    ),
    "merges in one word": (lambda f: (f / "merges.txt").write_text("ab\n"), "merge 0 is 'ab', expected two tokens"),
}


@pytest.mark.parametrize("case", LISTS)
def test_gpt2_s_two_files_are_checked_as_well(case, tmp_path):
    folder = tmp_path / "folder"
    save_gpt2(folder, num_hidden_layers=1)
    as_two_lists(folder)
    change, message = LISTS[case]
    change(folder)
    refused(folder, re.escape(message))


def test_a_llama_with_gpt2_s_two_files_must_say_so(folder):
    as_two_lists(folder)
    metadata(folder)
    edit(folder / "tokenizer_config.json", tokenizer_class=...)
    (folder.parent / "m.gguf").unlink()
    refused(folder, "tokenizer_class: found None; this converter knows 'GPT2Tokenizer'")


def test_a_saved_tokenizer_may_have_any_of_the_rules(tmp_path):
    """The library writes trim_offsets both ways, and it concerns no token."""
    save_llama(tmp_path / "folder", num_hidden_layers=1)
    save_tokenizer(tmp_path / "folder", "qwen2")
    text = (tmp_path / "folder" / "tokenizer.json").read_text("utf-8")
    assert '"trim_offsets": true' in text
    (tmp_path / "folder" / "tokenizer.json").write_text(text.replace('"trim_offsets": true', '"trim_offsets": false'))
    assert metadata(tmp_path / "folder")["tokenizer.ggml.pre"] == "qwen2"
