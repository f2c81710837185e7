"""A folder whose JSON was tampered with is converted, and llama.cpp runs it, or refused: never a traceback."""

from __future__ import annotations

import copy
import hashlib
import json
import tempfile
from pathlib import Path

import pytest
from hf_models import save_gpt2, save_llama, save_qwen2
from hypothesis import example, given, settings
from hypothesis import strategies as st
from thorough import tried

from miniquant.core.errors import MiniquantError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.models.huggingface.convert import convert_folder

RUN: set[str] = set()  # SHA-256 of the files that llama.cpp has run: equal bytes behave alike
FILES = ("config.json", "tokenizer_config.json", "tokenizer.json", "model.safetensors.index.json")
ODD = [None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, 0.5, 1e999, "", "x", "0", "\ud800", [], [None], [[]], {}]
ANYTHING = st.recursive(
    st.sampled_from(ODD) | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = ["llama", "gpt2", "qwen2"]  # the last with a SentencePiece tokenizer
KEYS = st.sampled_from([
    *("rope_scaling", "rope_theta", "quantization_config", "auto_map", "sliding_window", "head_dim", "n_inner"),
    *("add_bos_token", "pad_token", "unk_token", "chat_template", "added_tokens_decoder", "normalizer", "merges"),
])  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Three small folders, as the text of their JSON files, and the rest beside it."""
    base = tmp_path_factory.mktemp("fuzz")
    save_llama(base / "llama", num_hidden_layers=1, max_shard_size="50KB")
    save_gpt2(base / "gpt2", n_layer=1, max_shard_size="50KB")
    save_qwen2(base / "qwen2", pre="sentencepiece", num_hidden_layers=1, max_shard_size="50KB")
    parsed = {name: {file: json.loads((base / name / file).read_text("utf-8")) for file in FILES} for name in NAMES}
    return base, parsed


def places(value, path=()):
    """The way to every value of a JSON document; of a long list or object only to the first few."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items)[:30]:
        yield from places(inner, (*path, key))


def tampered(document, path, value):
    if not path:
        return value
    out = copy.deepcopy(document)
    inner = out
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return out


def attempt(saved, name, file, path, value):
    """Convert with one value replaced; True if it was done, and llama.cpp runs it, False if it was refused."""
    base, parsed = saved
    folder, before = base / name, (base / name / file).read_bytes()
    with tempfile.TemporaryDirectory() as output:
        try:
            (folder / file).write_text(json.dumps(tampered(parsed[name][file], path, value)), "utf-8")
            convert_folder(folder, Path(output) / "m.gguf", "f16")
        except MiniquantError as error:
            assert len(str(error)) < 1000 and "\n" not in str(error)
            assert not list(Path(output).iterdir())
            return False
        finally:
            (folder / file).write_bytes(before)
        digest = hashlib.sha256((Path(output) / "m.gguf").read_bytes()).hexdigest()
        if digest not in RUN:
            with LlamaCpp(Path(output) / "m.gguf") as llama:
                llama.logits(llama.tokenize("hello"))
            RUN.add(digest)
        return True


@settings(max_examples=tried(15, 100))
@given(st.data(), st.sampled_from(NAMES), st.sampled_from(FILES), ANYTHING)
def test_any_value_in_any_place_is_converted_or_refused(saved, data, name, file, value):
    known = list(places(saved[1][name][file]))
    path = data.draw(st.sampled_from(known) | (KEYS | st.text(max_size=200)).map(lambda key: (key,)))
    attempt(saved, name, file, path, value)


NUMBERS = st.sampled_from([1, 2, 3, 7, 100, 511, 2**31 - 1, 1e-30, 1e-6, 0.5, 1.0, 1e30])


@settings(max_examples=tried(10, 50))
@given(st.data(), st.sampled_from(NAMES), NUMBERS)
def test_any_number_for_a_number_is_converted_or_refused(saved, data, name, value):
    """Most of these are refused, since the shapes do not fit; context, base, epsilon and the roles may be anything."""
    numbers = [
        path for path in places(saved[1][name]["config.json"]) if type(value_at(saved, name, path)) is type(value)
    ]
    attempt(saved, name, "config.json", data.draw(st.sampled_from(numbers)), value)


def value_at(saved, name, path):
    inner = saved[1][name]["config.json"]
    for key in path:
        inner = inner[key]
    return inner


@settings(max_examples=tried(10, 50))
@given(st.sampled_from(FILES), st.integers(0, 10**6), st.binary(max_size=4))
@example("config.json", 0, b"\xef\xbb\xbf")
def test_any_bytes_in_any_place_are_converted_or_refused(saved, file, at, data):
    base, _ = saved
    folder = base / "llama"
    before = (folder / file).read_bytes()
    at %= len(before)
    with tempfile.TemporaryDirectory() as output:
        try:
            (folder / file).write_bytes(before[:at] + data + before[at + len(data) + 1 :])
            convert_folder(folder, Path(output) / "m.gguf", "f16")
        except MiniquantError as error:
            assert len(str(error)) < 1000 and "\n" not in str(error)
            assert not list(Path(output).iterdir())
        finally:
            (folder / file).write_bytes(before)
