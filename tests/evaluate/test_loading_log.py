"""Every line that llama.cpp writes about a file comes from the bytes that we name: told twice, in two ways.

The official package says where the fields are and what they hold. And a byte that is changed in a field changes the
lines that name this field, and no other line.
"""

from __future__ import annotations

import re
import struct

import numpy as np
import pytest
from gguf import GGUFReader
from hf_models import save_llama

from miniquant.core.errors import MiniquantError
from miniquant.evaluate import loading_log as module
from miniquant.evaluate.llamacpp import LlamaCpp, LlamaCppError
from miniquant.evaluate.loading_log import loading_log
from miniquant.formats.gguf import write_gguf
from miniquant.models.corpus import load_tokenizer
from miniquant.models.huggingface.convert import convert_folder
from miniquant.models.to_gguf import minigpt_metadata, write_minigpt


@pytest.fixture(scope="module")
def path(trained, tmp_path_factory):
    found = tmp_path_factory.mktemp("log") / "minigpt.gguf"
    write_minigpt(found, trained, load_tokenizer(), "Q4_0")
    return found


@pytest.fixture(scope="module")
def log(path):
    return loading_log(path)


@pytest.fixture(scope="module")
def reader(path):
    return GGUFReader(path)


def line(log, start):
    (found,) = [one for one in log if one.short.startswith(start)]
    return found


def official_place(field, part):
    """Where a part of one of the official reader's fields is: its first byte and the one after its last."""
    start = field.offset + sum(int(before.nbytes) for before in field.parts[:part])
    return start, start + int(field.parts[part].nbytes)


def places(line):
    return [(field.start, field.end) for field in line.fields]


# ---- checked against the official package ----------------------------------------------------------------------------


def test_each_key_value_has_a_line_and_the_official_package_finds_it_at_the_same_bytes(log, reader):
    pairs = [field for name, field in reader.fields.items() if not name.startswith("GGUF.")]
    lines = [one for one in log if one.short.startswith("- kv")]
    assert len(lines) == len(pairs) == 18
    for number, (one, field) in enumerate(zip(lines, pairs)):
        assert one.made_from == f"key-value {number}, all of it"
        assert one.short.startswith(f"- kv {number}: {field.name} ")
        assert one.fields[0].start == field.offset
        assert one.fields[-1].end == field.offset + sum(int(part.nbytes) for part in field.parts)
        assert all(before.end == after.start for before, after in zip(one.fields, one.fields[1:]))
        value = field.contents()
        if isinstance(value, list):
            assert f",{len(value)}] = [" in one.short
        elif not isinstance(value, float):
            assert one.short.endswith(f" = {str(value).lower() if isinstance(value, bool) else value}")


@pytest.mark.parametrize(
    ("start", "key"),
    {
        "file type": "general.file_type",
        "arch": "general.architecture",
        "n_ctx_train": "gpt2.context_length",
        "n_embd ": "gpt2.embedding_length",
        "n_layer": "gpt2.block_count",
        "n_head ": "gpt2.attention.head_count",
        "n_head_kv": "gpt2.attention.head_count",
        "n_ff": "gpt2.feed_forward_length",
        "f_norm_eps": "gpt2.attention.layer_norm_epsilon",
        "general.name": "general.name",
        "vocab type": "tokenizer.ggml.model",
    }.items(),
)
def test_a_line_about_one_value_names_the_bytes_where_the_official_package_finds_that_value(start, key, log, reader):
    one, field = line(log, start), reader.get_field(key)
    assert places(one) == [official_place(field, field.data[0])]
    assert bytes(one.fields[0].raw) == field.parts[field.data[0]].tobytes()
    assert one.made_from == f"metadata {key!r}: value"
    value = field.contents()
    if start not in ("file type", "vocab type", "f_norm_eps"):
        assert one.short.endswith(f" = {value}")
    elif start == "f_norm_eps":
        assert float(one.short.split()[-1]) == pytest.approx(value, rel=0.05)


def test_the_first_line_has_the_counts_of_the_header(log, reader):
    assert log[0].text == (
        "llama_model_loader: loaded meta data with 18 key-value pairs and 52 tensors from minigpt.gguf "
        "(version GGUF V3 (latest))"
    )
    assert [reader.get_field(f"GGUF.{name}").contents() for name in ("version", "tensor_count", "kv_count")] == [
        3,
        52,
        18,
    ]
    assert places(log[0]) == [
        official_place(reader.get_field(f"GGUF.{name}"), 0) for name in ("version", "tensor_count", "kv_count")
    ]


def test_the_counts_of_the_types_are_those_of_the_official_package_at_the_same_bytes(log, reader):
    kinds = {}
    for tensor in reader.tensors:  # name length, name, n_dims, dims, type, offset
        kinds.setdefault(tensor.tensor_type.name.lower(), []).append(official_place(tensor.field, 4))
    found = {one.short.split()[2].strip(":"): one for one in log if one.short.startswith("- type")}
    assert set(found) == set(kinds) == {"f32", "q4_0", "q8_0"}
    for kind, one in found.items():
        assert places(one) == kinds[kind]
        assert int(one.short.split()[3]) == len(kinds[kind])
    assert found["q4_0"].made_from == "the type of 16 tensor infos"
    assert found["q8_0"].made_from == "the type of 1 tensor info"
    assert found["q8_0"].where.endswith(": 08 00 00 00")


def test_file_size_is_the_bytes_of_the_tensors_and_not_of_the_file(log, reader, path):
    size, bits = re.fullmatch(r"file size = (\S+) MiB \((\S+) BPW\)", line(log, "file size").short).groups()
    n_bytes = sum(int(tensor.n_bytes) for tensor in reader.tensors)
    weights = sum(int(tensor.n_elements) for tensor in reader.tensors)
    assert size == f"{n_bytes / 2**20:.2f}" != f"{path.stat().st_size / 2**20:.2f}"
    assert bits == f"{8 * n_bytes / weights:.2f}"
    assert line(log, "model params").short == f"model params = {weights / 1e6:.2f} M"
    dims = [official_place(tensor.field, 3) for tensor in reader.tensors]
    kinds = [official_place(tensor.field, 4) for tensor in reader.tensors]
    assert places(line(log, "model params")) == dims
    assert places(line(log, "file size")) == sorted(dims + kinds)


def test_the_lines_about_the_tokenizer_name_its_tokens_and_ids(log, reader):
    tokens = reader.get_field("tokenizer.ggml.tokens")
    count, elements = (
        official_place(tokens, 4),
        (official_place(tokens, 4)[1], reader.get_field("tokenizer.ggml.token_type").offset),
    )
    assert places(line(log, "n_vocab")) == [count]
    assert places(line(log, "max token length")) == places(line(log, "LF token")) == [elements]
    assert (
        line(log, "max token length").short == f"max token length = {max(len(t.encode()) for t in tokens.contents())}"
    )
    identity = reader.get_field("tokenizer.ggml.bos_token_id")
    assert places(line(log, "BOS token")) == [elements, official_place(identity, identity.data[0])]
    assert line(log, "BOS token").short == f"BOS token = 0 {tokens.contents()[0]!r}"
    assert line(log, "n_merges").short == f"n_merges = {len(reader.get_field('tokenizer.ggml.merges').contents())}"


# ---- checked by changing the file ------------------------------------------------------------------------------------


EDITS = {  # what is changed: the official reader's key, the new bytes of its value, lines that must change
    "context": ("gpt2.context_length", struct.pack("<I", 255), ["kv 3", "n_ctx_train"]),
    "width": ("gpt2.embedding_length", struct.pack("<I", 128), ["kv 4", "n_embd "]),
    "layers": ("gpt2.block_count", struct.pack("<I", 3), ["kv 5", "n_layer"]),
    "mlp": ("gpt2.feed_forward_length", struct.pack("<I", 512), ["kv 6", "n_ff"]),
    "heads": ("gpt2.attention.head_count", struct.pack("<I", 2), ["kv 7", "n_head ", "n_head_kv"]),
    "epsilon": ("gpt2.attention.layer_norm_epsilon", struct.pack("<f", 0.5), ["kv 8", "f_norm_eps"]),
    "name": ("general.name", b"OtherOn", ["kv 1:", "general.name"]),
    "file type": ("general.file_type", struct.pack("<I", 7), ["kv 2", "file type"]),
    "first token": ("tokenizer.ggml.bos_token_id", struct.pack("<I", 5), ["kv 15", "BOS token"]),
    "last token": ("tokenizer.ggml.eos_token_id", struct.pack("<I", 6), ["kv 16", "EOS token"]),
    "the text of token 0": ("tokenizer.ggml.tokens", b"<|beginning|>", ["kv 12", "BOS token", "EOS token"]),
    "quantization version": ("general.quantization_version", struct.pack("<I", 3), ["kv 9"]),
}


def changed_lines(path, log, start, new):
    """The old lines that are not in the log of the file with ``new`` at ``start``, complaints left out."""
    data = bytearray(path.read_bytes())
    data[start : start + len(new)] = new
    path.with_name("edited.gguf").write_bytes(data)
    found = {one.text.replace("edited.gguf", path.name) for one in loading_log(path.with_name("edited.gguf"))}
    return [one for one in log if one.fields and one.text not in found]


@pytest.mark.parametrize("edit", EDITS)
def test_a_changed_value_changes_the_lines_that_name_it_and_no_others(edit, path, log, reader):
    key, new, starts = EDITS[edit]
    field = reader.get_field(key)
    start, end = official_place(field, field.data[0])
    assert end - start == len(new)
    changed = changed_lines(path, log, start, new)
    assert [one for one in log if any(one.short.removeprefix("- ").startswith(s) for s in starts)] == changed
    for one in changed:
        assert any(field.start < end and start < field.end for field in one.fields)


@pytest.mark.parametrize(
    ("part", "new", "lines"),
    [
        (3, struct.pack("<QQ", 256, 512), ["file size", "model params"]),
        (4, struct.pack("<I", 1), ["- type f32: 1 tensors", "file type", "file size"]),  # F16
    ],
)
def test_changed_dims_and_a_changed_type_change_the_lines_that_name_them(part, new, lines, trained, tmp_path):
    path, metadata = tmp_path / "one.gguf", minigpt_metadata(trained, load_tokenizer())
    del metadata["general.file_type"]
    write_gguf(path, {"token_embd.weight": np.zeros((1024, 256), np.float32)}, metadata)
    log, (tensor,) = loading_log(path), GGUFReader(path).tensors
    start, _ = official_place(tensor.field, part)
    changed = changed_lines(path, log, start, new)
    assert [one.short.split(" = ")[0] for one in changed] == lines
    assert all(start in [field.start for field in one.fields] for one in changed)


# ---- what else a caller meets ----------------------------------------------------------------------------------------


def test_the_log_is_the_same_each_time_and_has_no_folder_address_or_time(path, log):
    again = loading_log(path)
    assert again == log
    for one in log:
        assert str(path.parent) not in one.text
        assert not re.search(r"0x[0-9a-f]{4,}| ms\b|AVX|thread", one.text)


def test_an_f32_file_and_a_file_without_a_file_type_say_so(trained, tmp_path):
    metadata = minigpt_metadata(trained, load_tokenizer())
    del metadata["general.file_type"]
    write_gguf(tmp_path / "m.gguf", {"token_embd.weight": np.zeros((1024, 256), np.float32)}, metadata)
    log = loading_log(tmp_path / "m.gguf")
    assert line(log, "file type").short == "file type = (guessed) all F32"
    assert line(log, "file type").made_from == "the type of 1 tensor info"


def test_a_refused_file_gives_its_lines_and_then_the_complaint(tmp_path):
    write_gguf(tmp_path / "m.gguf", {}, {"general.architecture": "gpt2", "general.name": "me"})
    log = loading_log(tmp_path / "m.gguf")
    assert [one.short for one in log[:3]] == [
        "loaded meta data with 2 key-value pairs and 0 tensors from m.gguf (version GGUF V3 (latest))",
        "- kv 0: general.architecture str = gpt2",
        "- kv 1: general.name str = me",
    ]
    assert log[-1].short.endswith("key not found in model: gpt2.context_length")
    assert (log[-1].made_from, log[-1].fields, log[-1].where) == ("", (), "")


def test_a_container_without_tensors_is_enough_for_the_tokenizer(trained, tmp_path):
    path, tokenizer = tmp_path / "m.gguf", load_tokenizer()
    write_gguf(path, {}, minigpt_metadata(trained, tokenizer))
    assert loading_log(path)[-1].short.endswith("tensor 'token_embd.weight' not found")
    assert line(loading_log(path, vocab_only=True), "n_vocab").short == "n_vocab = 1024"
    with LlamaCpp(path, vocab_only=True) as llama:
        text = "An exception is raised when naïve code runs"
        assert llama.tokenize(text) == tokenizer.encode(text).ids
        assert llama.text(llama.tokenize(text)) == text.encode()
        assert "vocab_only            = 1\n" in llama.log
        for call in (lambda: llama.logits([1]), lambda: llama.greedy([1], 1), lambda: llama.steps([1], [])):
            with pytest.raises(LlamaCppError, match="only the vocabulary is loaded"):
                call()


def test_the_keys_of_another_architecture_are_found_by_its_name(tmp_path):
    save_llama(tmp_path / "folder")
    convert_folder(tmp_path / "folder", tmp_path / "m.gguf", "F32")
    log, reader = loading_log(tmp_path / "m.gguf"), GGUFReader(tmp_path / "m.gguf")
    for start, key in {
        "n_layer": "llama.block_count",
        "n_head_kv": "llama.attention.head_count_kv",
        "f_norm_rms_eps": "llama.attention.layer_norm_rms_epsilon",
    }.items():
        field = reader.get_field(key)
        assert places(line(log, start)) == [official_place(field, field.data[0])]
    assert not [one for one in log if one.short.startswith("f_norm_eps")]  # a default: no byte of the file says it


def test_a_file_that_ends_the_process_and_one_that_is_missing_raise(tmp_path, path, monkeypatch):
    def ends(*_, **__):
        raise LlamaCppError("llama.cpp ended with code -6 in load: ")

    with pytest.raises(FileNotFoundError):
        loading_log(tmp_path / "missing.gguf")
    monkeypatch.setattr(module, "LlamaCpp", ends)
    with pytest.raises(MiniquantError, match="ended with code -6"):
        loading_log(path)
