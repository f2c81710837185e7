"""The files of a Hugging Face folder: what is read of them, what it costs, and every way in which they can be wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import torch
from hf_models import edit, save_gpt2, save_llama, save_qwen2
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from systems import linux, posix
from thorough import in_turns, tried

from miniquant.core.arrays import bfloat16_to_float32
from miniquant.core.errors import FormatError, MiniquantError, PickleSecurityRisk, QuantizationError, SchemeError
from miniquant.formats.safetensors.read import INDEX, MAX_TEXT, SINGLE, SafetensorsFile, open_checkpoint
from miniquant.formats.safetensors.types import MAX_HEADER
from miniquant.models.file_types import FILE_TYPES
from miniquant.models.huggingface import convert
from miniquant.models.huggingface.convert import convert_folder

SMALL = {"num_hidden_layers": 1}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A small Llama in one file and in shards, saved once."""
    base = tmp_path_factory.mktemp("saved")
    save_llama(base / "one", **SMALL)
    save_llama(base / "shards", max_shard_size="40KB", **SMALL)
    return base


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved / "one", tmp_path / "folder")


@pytest.fixture
def shards(saved, tmp_path):
    return shutil.copytree(saved / "shards", tmp_path / "folder")


def refused(folder, message, error=FormatError, kind="f16"):
    """One line, and what stood at the place of the output is still there, alone."""
    output = folder.parent / "m.gguf"
    output.write_bytes(b"before")
    with pytest.raises(error, match=message) as caught:
        convert_folder(folder, output, kind)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600
    assert output.read_bytes() == b"before"
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name, "m.gguf"]


def write(path, header, data=b"", length=None):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(header) if length is None else length) + header + data)


def entry(shape=(2, 3), offsets=(0, 24), dtype="F32", **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


# ---- one safetensors file --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_tensor_is_what_the_safetensors_library_saved(dtype, tmp_path):
    path = tmp_path / SINGLE
    saved = {
        "a": torch.randn(3, 5).to(dtype),
        "vector": torch.randn(7).to(dtype),
        "scalar": torch.tensor(1.5, dtype=dtype),
        "none": torch.empty(0, 4, dtype=dtype),
    }
    save_file(saved, path, {"format": "pt"})
    found = open_checkpoint(tmp_path)
    assert found.keys() == saved.keys()
    for name, w in saved.items():
        assert found[name].shape == tuple(w.shape)
        mapped = found[name].map()
        read = bfloat16_to_float32(mapped) if dtype == torch.bfloat16 else mapped.astype(np.float32)
        assert np.array_equal(read, w.float().numpy())


def test_bfloat16_is_widened_as_torch_does_it_for_every_bit_pattern():
    bits = np.arange(2**16, dtype=np.uint16)
    expected = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).float().numpy()
    assert np.array_equal(bfloat16_to_float32(bits).view(np.uint32), expected.view(np.uint32))


GOOD = {"w": entry()}
HEADERS = {
    "no bytes": (b"", "the file has 0 bytes, a header takes 8"),
    "a length of 2**63": (struct.pack("<Q", 2**63), rf"header.length at byte 0: found {2**63}; 0 bytes are left"),
    "a length one too long": (struct.pack("<Q", 3) + b"{}", "found 3; 2 bytes are left"),
    "no JSON": (struct.pack("<Q", 4) + b"{w:}", "header at byte 9: this is no JSON"),
    "no object": (struct.pack("<Q", 2) + b"[]", "header: this JSON is no object in braces"),
    "no UTF-8": (struct.pack("<Q", 2) + b"\xff\xff", "not valid UTF-8"),
    "brackets in brackets": (struct.pack("<Q", 200_000) + b"[" * 200_000, "this JSON cannot be read|this is no JSON"),
    "a name twice among many": (
        struct.pack("<Q", 1_200_017) + b"{" + b"".join(b'"n%06d":0,' % i for i in range(100_000)) + b'"n099999":0    }',
        "the name 'n099999' stands twice",
    ),
    "a number without an end": (struct.pack("<Q", 10_000) + b"1" * 10_000, "this JSON cannot be read"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_that_lies_is_refused_before_anything_is_allocated(case, tmp_path):
    data, message = HEADERS[case]
    path = tmp_path / SINGLE
    path.write_bytes(data)
    with pytest.raises(FormatError, match=message):
        SafetensorsFile(path)


def test_a_header_longer_than_the_library_takes_is_refused_unread(tmp_path):
    path = tmp_path / SINGLE
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", MAX_HEADER + 1))
        file.truncate(MAX_HEADER + 100)  # a hole
    with pytest.raises(FormatError, match="a header has 100000000 at most"):
        SafetensorsFile(path)
    with pytest.raises(SafetensorError):
        safe_open(path, "np")


ENTRIES = {
    "no entry": ({"w": 3}, "tensor 'w' at byte 8: its entry is not a dtype, a shape and data_offsets"),
    "a key too many": ({"w": entry(more=1)}, "its entry is not"),
    "8 bits": ({"w": entry(dtype="F8_E4M3")}, "dtype at byte 8: found 'F8_E4M3'; weights of F32, F16, BF16"),
    "whole numbers": ({"w": entry(dtype="I32")}, "found 'I32'"),
    "64 bits": ({"w": entry((1, 3), (0, 24), "F64")}, "found 'F64'"),
    "a dtype of numbers": ({"w": entry(dtype=3)}, "found 3"),
    "a negative dim": ({"w": entry((-2, -3))}, "not lists of whole numbers from 0 on"),
    "half a dim": ({"w": entry((2.0, 3))}, "not lists of whole numbers"),
    "a true dim": ({"w": entry((True, 6))}, "not lists of whole numbers"),
    "dims that multiply beyond any file": ({"w": entry((2**62, 2**62))}, "takes 8.5.*e.37 bytes, and it has 24"),
    "three offsets": ({"w": entry(offsets=(0, 24, 24))}, "not lists of whole numbers"),
    "another length": ({"w": entry((2, 4))}, r"F32 of shape \[2, 4\] takes 32 bytes, and it has 24"),
    "beyond the file": ({"w": entry((2, 4), (0, 32))}, "its 32 bytes from offset 0 end outside the data"),
    "backwards": ({"w": entry((0,), (24, 0))}, "takes 0 bytes, and it has -24"),
    "over each other": ({"w": entry((1, 3), (0, 12)), "v": entry((1, 4), (8, 24))}, "offset 8 lies inside 'w'"),
    "a gap": ({"w": entry((1, 3), (12, 24))}, "data at byte .*: the tensors take 12 bytes, the file has 24 for them"),
    "bytes of nobody": ({"w": entry((1, 3), (0, 12))}, "the tensors take 12 bytes, the file has 24 for them"),
    "a name twice": (b'{"w": %b, "w": %b}' % ((json.dumps(entry()).encode(),) * 2), "'w' stands twice"),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_an_entry_that_lies_is_refused_by_the_tensor_s_name(case, tmp_path):
    header, message = ENTRIES[case]
    write(tmp_path / SINGLE, header, bytes(24))
    with pytest.raises(FormatError, match=message):
        SafetensorsFile(tmp_path / SINGLE)


@settings(max_examples=tried(25, 100))
@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=3))
@example([(0, 255)])
@example([(7, 1)])
def test_what_is_accepted_after_a_few_bytes_changed_the_library_reads_the_same(tmp_path, changes):
    path = tmp_path / SINGLE
    write(path, {"__metadata__": {"a": "b"}, "w": entry(), "v": entry((4,), (24, 32), "F16")}, bytes(range(32)))
    data = bytearray(path.read_bytes())
    for at, byte in changes:
        data[at % len(data)] = byte
    path.write_bytes(data)
    try:
        found = open_checkpoint(tmp_path)
    except FormatError:
        return
    with safe_open(path, "np") as theirs:
        assert set(theirs.keys()) == found.keys()
        for name, stored in found.items():
            expected = theirs.get_slice(name)
            assert (tuple(expected.get_shape()), expected.get_dtype()) == (stored.shape, stored.dtype.name)
            if stored.dtype.name != "BF16":
                assert theirs.get_tensor(name).tobytes() == stored.map().tobytes()


# ---- a folder of them ------------------------------------------------------------------------------------------------


def test_a_folder_without_a_model_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", "no config.json in it: this is no Hugging Face model folder")
    (tmp_path / "folder" / "config.json").write_text("{", "utf-8")
    refused(tmp_path / "folder", r"config.json: byte 1: this is no JSON")
    (tmp_path / "folder" / "config.json").write_text("[]", "utf-8")
    refused(tmp_path / "folder", "config.json: this JSON is no object in braces")


def test_a_folder_without_weights_is_refused(folder):
    (folder / SINGLE).unlink()
    refused(folder, f"no {SINGLE} and no {INDEX} in it: there are no weights to convert")


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.PT", "consolidated.00.pth"]
)
def test_a_pickle_is_refused_and_never_opened(name, folder, monkeypatch):
    (folder / SINGLE).unlink()
    (folder / name).write_bytes(b"cos\nsystem\n(S'echo pwned'\ntR.")
    refused(folder, f"{re.escape(name)} is a pickle, and loading one runs whatever code it holds", PickleSecurityRisk)


def test_a_pickle_beside_the_safetensors_does_not_matter(folder):
    (folder / "pytorch_model.bin").write_bytes(b"\x80")
    convert_folder(folder, folder.parent / "m.gguf")


def test_a_truncated_checkpoint_is_refused(folder):
    data = (folder / SINGLE).read_bytes()
    for length in (0, 7, 100, 2000, len(data) - 1):
        (folder / SINGLE).write_bytes(data[:length])
        refused(folder, f"{SINGLE}: ")
    (folder / SINGLE).write_bytes(data + b"\0")
    refused(folder, "the tensors take .* bytes, the file has .* for them")


def test_other_files_of_weights_are_not_passed_over(folder):
    (folder / "adapter_model.safetensors").write_bytes((folder / SINGLE).read_bytes())
    refused(folder, f"found adapter_model.safetensors, {SINGLE}; without {INDEX} there is one file")
    (folder / SINGLE).unlink()
    refused(folder, "found adapter_model.safetensors; without")


def index_of(folder):
    return json.loads((folder / INDEX).read_text("utf-8"))["weight_map"]


def test_shards_and_their_index_must_agree(shards):
    places = index_of(shards)
    name, shard = next((n, s) for n, s in places.items() if list(places.values()).count(s) > 1)
    saved = {p.name: p.read_bytes() for p in shards.iterdir()}

    (shards / shard).unlink()
    refused(shards, f"{INDEX}: it names {shard}, not in this folder; download all of it")
    (shards / shard).write_bytes(saved[shard])

    other = next(other for other in places.values() if other != shard)
    for wrong, message in (
        (places | {name: other}, f"{shard}: it holds '{name}', which {INDEX} says is to be in {other}"),
        ({n: s for n, s in places.items() if n != name}, f"it holds '{name}', which {INDEX} says is nowhere"),
        (places | {"model.extra": shard}, f"it says that 'model.extra' is in {shard}, and it is not"),
        (places | {name: "../config.json"}, "it names ../config.json, not in this folder"),
        (places | {name: 3}, "weight_map: it is no object of names and files"),
        (None, "weight_map: it is no object of names and files"),
    ):
        edit(shards / INDEX, weight_map=wrong)
        refused(shards, re.escape(message))
    (shards / INDEX).write_bytes(saved[INDEX])

    (shards / "more.safetensors").write_bytes(saved[shard])
    refused(shards, f"{INDEX}: it knows nothing of more.safetensors")
    edit(shards / INDEX, weight_map=places | {"x": "more.safetensors"})
    refused(shards, f"more.safetensors: '.*' stands in {shard} too")
    (shards / "more.safetensors").unlink()
    (shards / INDEX).write_text('{"weight_map": {"a": "b", "a": "c"}}', "utf-8")
    refused(shards, "the name 'a' stands twice")
    (shards / INDEX).unlink()
    refused(shards, f"found model-00001-of-.*without {INDEX} there is one file")


def test_an_index_may_name_a_single_file(folder):
    convert_folder(folder, folder.parent / "one.gguf")
    names = dict.fromkeys(open_checkpoint(folder), SINGLE)
    (folder / INDEX).write_text(json.dumps({"weight_map": names}), "utf-8")
    convert_folder(folder, folder.parent / "two.gguf")
    assert (folder.parent / "one.gguf").read_bytes() == (folder.parent / "two.gguf").read_bytes()


# ---- every tensor has its place --------------------------------------------------------------------------------------


def change(folder, changes):
    tensors = load_file(folder / SINGLE) | changes
    save_file({name: w for name, w in tensors.items() if w is not None}, folder / SINGLE)


def test_a_tensor_too_many_or_too_few_or_of_another_shape_is_refused_by_name(folder):
    whole = (folder / SINGLE).read_bytes()
    for changes, message in (
        ({"model.layers.0.mlp.extra": torch.ones(2)}, "holds 'model.layers.0.mlp.extra', without a place in Llama"),
        ({"model.layers.0.self_attn.q_proj.bias": torch.ones(64)}, "holds .*q_proj.bias', without a place"),
        ({"model.layers.1.mlp.up_proj.weight": torch.ones(2)}, "holds 'model.layers.1.mlp.up_proj.weight'"),
        ({"lm_head.weight": None}, "the checkpoint lacks 'lm_head.weight'"),
        ({"model.norm.weight": None, "lm_head.weight": None}, "lacks 'lm_head.weight', 'model.norm.weight'"),
        ({"model.norm.weight": torch.ones(65)}, r"'model.norm.weight': found shape \(65,\), config.json makes it \(64"),
        ({"model.layers.0.self_attn.k_proj.weight": torch.ones(64, 64)}, r"found shape \(64, 64\).* it \(32, 64\)"),
        ({f"extra.{i}": torch.ones(1) for i in range(9)}, "'extra.0', 'extra.1', 'extra.2' and 6 more, without"),
    ):  # fmt: skip
        (folder / SINGLE).write_bytes(whole)
        change(folder, changes)
        refused(folder, message)


def test_a_head_that_is_called_tied_and_is_not_is_refused(tmp_path):
    save_llama(tmp_path / "folder", tie_word_embeddings=True, **SMALL)
    embedding = load_file(tmp_path / "folder" / SINGLE)["model.embed_tokens.weight"]
    other = embedding.clone()
    other[-1, -1] += 1
    for wrong in (other, embedding[:-1].clone(), embedding.half()):
        change(tmp_path / "folder", {"lm_head.weight": wrong})
        refused(
            tmp_path / "folder", "tie_word_embeddings: it is true, and lm_head.weight is not model.embed_tokens.weight"
        )


def test_a_tied_head_is_compared_to_its_last_row_in_pieces_too(tmp_path, monkeypatch):
    save_llama(tmp_path / "folder", tie_word_embeddings=True, **SMALL)
    embedding = load_file(tmp_path / "folder" / SINGLE)["model.embed_tokens.weight"]
    monkeypatch.setattr(convert, "_PIECE", 7 * 64)  # 7 of 520 rows
    for row in (0, 6, 7, 300, 517, 518, 519):
        other = embedding.clone()
        other[row, 0] += 1
        change(tmp_path / "folder", {"lm_head.weight": other})
        refused(tmp_path / "folder", "tie_word_embeddings: it is true, and lm_head.weight is not")
    change(tmp_path / "folder", {"lm_head.weight": embedding.clone()})
    convert_folder(tmp_path / "folder", tmp_path / "m.gguf", "f16")


def test_gpt2_s_names_with_and_without_their_prefix_are_not_mixed(tmp_path):
    save_gpt2(tmp_path / "folder", n_layer=1)
    change(tmp_path / "folder", {"wte.weight": torch.ones(520, 64)})
    refused(tmp_path / "folder", "'wte.weight' stands there with and without 'transformer.'")
    change(tmp_path / "folder", {"wte.weight": None, "transformer.h.0.attn.c_attn.weight": torch.ones(192, 64)})
    refused(tmp_path / "folder", r"found shape \(192, 64\), config.json makes it \(64, 192\)")


def test_rows_that_are_no_whole_blocks_are_refused_with_what_fits_them(tmp_path):
    save_llama(tmp_path / "folder", head_dim=10, **SMALL)
    message = "'model.layers.0.self_attn.o_proj.weight' has rows of 40 weights, and Q8_0 stores blocks of 32; "
    refused(tmp_path / "folder", message + "what fits it is F32, F16, BF16", SchemeError, "q8_0")
    refused(
        tmp_path / "folder",
        "has rows of 64 weights, and Q6_K stores blocks of 256; what fits it is F32, F16, Q4_0",
        SchemeError,
        "q4_k",
    )
    convert_folder(tmp_path / "folder", tmp_path / "m.gguf", "f16")


def test_an_unknown_type_is_refused_and_names_those_that_there_are(folder):
    for kind in ("q9", "", "Q8_1", 8, None):
        refused(folder, f"there are {', '.join(FILE_TYPES)}", SchemeError, kind)


def test_a_weight_that_is_not_finite_or_beyond_float16_is_refused_by_name(folder):
    w = load_file(folder / SINGLE)["lm_head.weight"]
    w[3, 5] = torch.inf
    change(folder, {"lm_head.weight": w})
    refused(folder, "'output.weight': the weight at row 3, column 5 is inf", QuantizationError, "q8_0")
    w[3, 5] = 1e6
    change(folder, {"lm_head.weight": w.bfloat16()})
    refused(
        folder, "'output.weight': the weight at row 3, column 5 is 999424; F16 cannot hold it", QuantizationError, "f16"
    )


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "q8_0"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_number_that_is_none_is_refused_in_every_tensor_and_type(kind, dtype, folder):
    for name, ours, value in (
        ("model.layers.0.input_layernorm.weight", "blk.0.attn_norm.weight", torch.nan),
        ("model.norm.weight", "output_norm.weight", -torch.inf),
        ("model.layers.0.mlp.up_proj.weight", "blk.0.ffn_up.weight", torch.nan),
    ):
        whole = (folder / SINGLE).read_bytes()
        w = load_file(folder / SINGLE)[name].to(dtype)
        w[..., 5][-1 if w.ndim > 1 else ...] = value
        change(folder, {name: w})
        row = len(w) - 1 if w.ndim > 1 else 0
        message = f"'{ours}': the weight at row {row}, column 5 is {value}; '{name}' in the checkpoint"
        refused(folder, re.escape(message), QuantizationError, kind)
        (folder / SINGLE).write_bytes(whole)


def test_a_head_is_looked_at_row_by_row_in_rope_s_order(folder):
    name = "model.layers.0.self_attn.q_proj.weight"
    w = load_file(folder / SINGLE)[name]
    w[8, 2] = torch.nan  # of a head of 16 rows: the second half's first, which comes second
    change(folder, {name: w})
    refused(folder, "'blk.0.attn_q.weight': the weight at row 1, column 2 is nan", QuantizationError)


@posix
def test_what_is_no_regular_file_is_refused_and_not_read(folder):
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", SINGLE):
        kept = (folder / name).read_bytes()
        (folder / name).unlink()
        (folder / name).symlink_to("/dev/zero")
        refused(folder, f"{name}: this is a pipe or a device; save what it gives as a file first")
        (folder / name).unlink()
        os.mkfifo(folder / name)
        refused(folder, f"{name}: this is a pipe or a device")
        (folder / name).unlink()
        (folder / name).write_bytes(kept)


def test_a_text_beyond_any_tokenizer_is_refused_before_it_is_parsed(folder):
    with open(folder / "config.json", "r+b") as file:
        file.truncate(2**40)  # a hole: it takes no disk
    tracemalloc.start()
    refused(folder, f"config.json: the file is longer than {MAX_TEXT} bytes")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * MAX_TEXT


def test_a_checkpoint_that_is_cut_while_it_is_read_is_named(folder, tmp_path):
    size = (folder / SINGLE).stat().st_size

    def cut(done, total, tensor):
        os.truncate(folder / SINGLE, size // 2)

    with pytest.raises(FormatError, match=rf"{SINGLE}: ends before byte \d+: it was cut while it was read"):
        convert_folder(folder, tmp_path / "m.gguf", "f16", cut)
    with pytest.raises(FormatError, match=r"lm_head.weight.: offset.* end outside the data section|embed_tokens"):
        convert_folder(folder, tmp_path / "m.gguf", "f16")
    assert not (tmp_path / "m.gguf").exists()


def test_a_checkpoint_that_disappears_while_it_is_read_is_no_failure_of_writing(folder, tmp_path):
    def gone(done, total, tensor):
        (folder / SINGLE).unlink(missing_ok=True)

    with pytest.raises(FileNotFoundError, match=SINGLE) as caught:
        convert_folder(folder, tmp_path / "m.gguf", "f16", gone)
    assert "cannot write" not in str(caught.value)


def test_a_folder_that_cannot_be_written_to_says_so(folder, tmp_path):
    with pytest.raises(MiniquantError, match=r"the folder .* does not exist; create it first"):
        convert_folder(folder, tmp_path / "none" / "m.gguf")


# ---- what it costs ---------------------------------------------------------------------------------------------------

COST = """
import re, sys
sys.modules["torch"] = sys.modules["safetensors"] = sys.modules["transformers"] = sys.modules["tokenizers"] = None
from miniquant.models.huggingface.convert import convert_folder
small, large, output, *kinds = sys.argv[1:]
for kind in kinds:
    convert_folder(small, output, kind)  # the imports and buffers of a first call
status = open("/proc/self/status").read()
before = int(re.search(r"VmRSS:\\s+(\\d+)", status)[1])
for kind in kinds:
    convert_folder(large, output, kind)
    print((int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) - before) * 1024)
"""
ROWS = {torch.float32: 4096, torch.bfloat16: 8192}  # of 1024 numbers: 16 MB
LARGE = {
    save_llama: lambda rows: {"vocab_size": rows, "hidden_size": 1024, "intermediate_size": 512, **SMALL},
    save_qwen2: lambda rows: {"vocab_size": rows, "hidden_size": 1024, "intermediate_size": 512, **SMALL},
    save_gpt2: lambda rows: {"n_embd": 1024, "n_inner": rows, "n_layer": 1},  # transposed
}


@linux
@pytest.mark.parametrize(("save", "dtype"), in_turns(LARGE, [torch.float32, torch.bfloat16]))
def test_it_takes_no_torch_and_at_most_three_times_the_largest_tensor(save, dtype, tmp_path):
    """Of real memory, what is mapped of the checkpoint included."""
    pre = {"pre": "sentencepiece"} if save is save_llama else {}
    save(tmp_path / "small", dtype, **pre)
    save(tmp_path / "large", dtype, **pre, **LARGE[save](ROWS[dtype]))
    largest = max(stored.n_bytes for stored in open_checkpoint(tmp_path / "large").values())
    assert largest >= 16_000_000
    kinds = ("f32", "q8_0")
    command = [sys.executable, "-c", COST, tmp_path / "small", tmp_path / "large", tmp_path / "m.gguf", *kinds]
    plain = {**os.environ, "MINIQUANT_COMPILED": "0"}  # numba takes memory, and is loaded where the machine is slow
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=plain)
    for kind, most in zip(kinds, done.stdout.split(), strict=True):
        assert int(most) <= 3 * largest, f"{int(most) / largest:.2f} times, {kind}"


def test_progress_counts_every_weight_once(folder):
    heard = []
    convert_folder(folder, folder.parent / "m.gguf", "q8_0", lambda done, total, tensor: heard.append((done, total)))
    weights = sum(w.numel() for w in load_file(folder / SINGLE).values())
    assert heard[-1] == (weights, weights)
    assert [done for done, _ in heard] == sorted({done for done, _ in heard})
    assert len(heard) >= len(open_checkpoint(folder))
