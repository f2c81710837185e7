"""Any GGUF file, quantized: the same bytes as llama.cpp's own quantizer wrote, and what is refused."""

from __future__ import annotations

import hashlib
import json
import platform
import tracemalloc

import gguf
import numpy as np
import pytest
from quantizer_models import STORED, WHOLE, write

from miniquant.core.errors import QuantizationError, SchemeError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, RawTensor, Typed, ValueType, encode, read_gguf, write_gguf
from miniquant.models.corpus import load_tokenizer
from miniquant.models.file_types import PRESETS
from miniquant.models.pretrained import load_pretrained
from miniquant.models.quantize_gguf import quantize_gguf
from miniquant.models.to_gguf import write_minigpt

ANSWERS = json.loads(STORED.read_text("utf-8"))
SAME_COMPILER = platform.machine() in ("x86_64", "AMD64")  # others fuse a product with a sum, and K-quants differ
KEYS = {"general.architecture": "llama", "llama.block_count": 1}
same_bytes = pytest.mark.skipif(not SAME_COMPILER, reason="llama.cpp's answers are those of an x86-64 build")


def hash_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def minigpt(tmp_path_factory):
    path = tmp_path_factory.mktemp("minigpt") / "f32.gguf"
    write_minigpt(path, load_pretrained(), load_tokenizer(), "F32")
    return path


@pytest.fixture
def small(tmp_path):
    """One matrix of each kind of float, a norm, and an integer tensor."""
    w = np.random.default_rng(0).standard_normal((4, 256)).astype(np.float32)
    tensors = {
        "blk.0.ffn_up.weight": w,
        "blk.0.ffn_gate.weight": (w, "F16"),
        "blk.0.attn_q.weight": (w, "BF16"),
        "output_norm.weight": (w[0], "F16"),
        "blk.0.table": np.arange(6, dtype=np.int32).reshape(2, 3),
    }
    write_gguf(tmp_path / "in.gguf", tensors, KEYS)
    return tmp_path / "in.gguf"


@same_bytes
@pytest.mark.parametrize("name", WHOLE)
def test_the_file_is_the_one_that_llama_cpp_s_quantizer_writes(name, tmp_path):
    write(tmp_path / "in.gguf", name)
    for kind in ("Q5_0", "Q4_K_M", "Q3_K_L") if "24 layers" in name else PRESETS:
        quantize_gguf(tmp_path / "in.gguf", tmp_path / "out.gguf", kind)
        assert hash_of(tmp_path / "out.gguf") == ANSWERS[name][kind].split("; ")[-1], kind


@same_bytes
@pytest.mark.parametrize("kind", ["Q4_1", "Q5_1", "Q4_K_M", "Q3_K_M"])
def test_a_quantized_minigpt_is_llama_cpp_s_to_the_byte(kind, minigpt, tmp_path):
    quantize_gguf(minigpt, tmp_path / "out.gguf", kind)
    assert hash_of(tmp_path / "out.gguf") == ANSWERS["MiniGPT"][kind].split("; ")[-1]


def test_a_quantized_minigpt_runs_in_llama_cpp_and_an_exported_one_has_the_same_tensors(minigpt, tmp_path):
    quantize_gguf(minigpt, tmp_path / "out.gguf", "q4_k_m")
    write_minigpt(tmp_path / "exported.gguf", load_pretrained(), load_tokenizer(), "Q4_K_M")
    with read_gguf(tmp_path / "out.gguf") as ours, read_gguf(tmp_path / "exported.gguf") as exported:
        assert ours.tensors.keys() == exported.tensors.keys()
        assert all(np.array_equal(ours.raw(name), exported.raw(name)) for name in ours.tensors)
        assert {name: t.dtype for name, t in ours.tensors.items()} == {n: t.dtype for n, t in exported.tensors.items()}
    with LlamaCpp(tmp_path / "out.gguf", context=16) as llama:
        assert np.isfinite(llama.logits([1, 2, 3])).all()


def test_types_before_and_after_are_told_and_what_is_no_matrix_is_kept(small, tmp_path):
    heard = []
    found = quantize_gguf(small, tmp_path / "out.gguf", "Q8_0", advance=lambda *counts: heard.append(counts))
    assert {name: kind.name for name, kind in found.before.items()} == {
        "output_norm.weight": "F16",
        "blk.0.attn_q.weight": "BF16",
        "blk.0.ffn_gate.weight": "F16",
        "blk.0.ffn_up.weight": "F32",
        "blk.0.table": "I32",
    }
    changed = {"blk.0.attn_q.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"}
    assert {name for name in found.after if found.after[name] != found.before[name]} == changed
    assert {found.after[name] for name in changed} == {GGMLType.Q8_0}
    assert found.twice == []
    assert [counts[:2] for counts in heard] == [(1024, 3072), (2048, 3072), (3072, 3072)]
    assert {name for _, _, name in heard} == changed
    with read_gguf(small) as old, read_gguf(tmp_path / "out.gguf") as new:
        assert list(new.tensors) == list(found.after)
        for name in old.tensors:
            expected = encode(old.tensor(name), "Q8_0").reshape(-1) if name in changed else old.raw(name)
            assert np.array_equal(new.raw(name), expected)


def test_metadata_is_kept_with_its_types_except_what_says_the_type_of_the_file(tmp_path):
    w = {"blk.0.ffn_up.weight": np.ones((2, 32), np.float32)}
    pairs = {
        "general.file_type": Typed(0, ValueType.UINT32),
        "x.small": Typed(7, ValueType.INT8),
        "x.names": ["one", "two"],
        "split.count": Typed(1, ValueType.UINT16),
        "split.no": Typed(0, ValueType.UINT16),
        "split.tensors.count": Typed(1, ValueType.INT32),
        "x.list": Typed([1, 2], ValueType.ARRAY, ValueType.UINT16),
    }
    write_gguf(tmp_path / "in.gguf", w, KEYS | pairs, alignment=64)
    quantize_gguf(tmp_path / "in.gguf", tmp_path / "out.gguf", "q5_0")
    with read_gguf(tmp_path / "in.gguf") as old, read_gguf(tmp_path / "out.gguf") as new:
        kept = [key for key in old.metadata if key != "general.file_type" and not key.startswith("split.")]
        assert list(new.metadata) == [*kept, "general.quantization_version", "general.file_type"]
        assert {key: new.types[key] for key in kept} == {key: old.types[key] for key in kept}
        assert list(new.metadata["x.names"]) == ["one", "two"] and new.metadata["x.list"].tolist() == [1, 2]
        assert new.metadata["general.file_type"] == gguf.LlamaFileType.MOSTLY_Q5_0
        assert new.metadata["general.quantization_version"] == gguf.GGML_QUANT_VERSION
        assert new.types["general.file_type"] == new.types["general.quantization_version"] == (ValueType.UINT32, None)
        assert new.alignment == 64


def test_what_is_quantized_already_is_refused_unless_it_is_asked_for(small, tmp_path):
    q8, out = tmp_path / "q8.gguf", tmp_path / "out.gguf"
    quantize_gguf(small, q8, "Q8_0")
    out.write_bytes(b"before")
    with pytest.raises(SchemeError, match=r"'blk\.0\.attn_q\.weight' is Q8_0 already, as are 2 more that would change"):
        quantize_gguf(q8, out, "Q4_0")
    assert out.read_bytes() == b"before"
    found = quantize_gguf(q8, out, "Q4_0", requantize=True)
    assert found.twice == ["blk.0.attn_q.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"]
    with read_gguf(q8) as old, read_gguf(out) as new:
        for name in found.twice:
            assert np.array_equal(new.raw(name), encode(old.tensor(name), "Q4_0").reshape(-1))
    assert quantize_gguf(q8, out, "Q8_0").twice == []  # nothing is rounded again
    assert out.read_bytes() == q8.read_bytes()


def test_blocks_that_cannot_be_decoded_here_are_refused_and_kept_where_nothing_is_to_change(tmp_path):
    raw = RawTensor(np.zeros(50, np.uint8), GGMLType.IQ1_S, (1, 256))
    write_gguf(tmp_path / "kept.gguf", {"blk.0.ffn_up.weight": raw}, KEYS)  # ggml counts one dim
    quantize_gguf(tmp_path / "kept.gguf", tmp_path / "out.gguf", "Q4_0")
    raw = RawTensor(np.zeros(2 * 50, np.uint8), GGMLType.IQ1_S, (2, 256))
    write_gguf(tmp_path / "in.gguf", {"blk.0.ffn_up.weight": raw}, KEYS)
    with pytest.raises(SchemeError, match=r"'blk\.0\.ffn_up\.weight' is IQ1_S, which cannot be decoded here"):
        quantize_gguf(tmp_path / "in.gguf", tmp_path / "out.gguf", "Q4_0", requantize=True)


def test_a_part_of_a_split_file_is_refused(tmp_path):
    for count in (1, 2):
        pairs = KEYS | {"split.count": Typed(count, ValueType.UINT16)}
        write_gguf(tmp_path / f"{count}.gguf", {"blk.0.ffn_up.weight": np.ones((2, 32), np.float32)}, pairs)
    quantize_gguf(tmp_path / "1.gguf", tmp_path / "out.gguf", "Q4_0")
    with pytest.raises(SchemeError, match=r"2\.gguf is one part of a split file; join the parts"):
        quantize_gguf(tmp_path / "2.gguf", tmp_path / "out.gguf", "Q4_0")


def test_a_weight_that_is_no_number_is_refused_and_nothing_is_written(tmp_path):
    w = np.ones((2, 32), np.float32)
    w[1, 3] = np.nan
    write_gguf(tmp_path / "in.gguf", {"blk.0.ffn_up.weight": w}, KEYS)
    with pytest.raises(QuantizationError, match="row 1, column 3 is nan"):
        quantize_gguf(tmp_path / "in.gguf", tmp_path / "out.gguf", "Q4_0")
    assert not (tmp_path / "out.gguf").exists()


def test_an_unknown_type_is_refused(small, tmp_path):
    with pytest.raises(SchemeError, match=f"no type 'Q4_K'; there are {', '.join(PRESETS)}"):
        quantize_gguf(small, tmp_path / "out.gguf", "Q4_K")


def test_single_tensors_get_the_types_that_were_chosen_for_them(minigpt, tmp_path):
    types = {"blk.0.attn_qkv.weight": "Q6_K", "token_embd.weight": GGMLType.F16}
    quantize_gguf(minigpt, tmp_path / "plain.gguf", "Q4_0")
    quantize_gguf(minigpt, tmp_path / "chosen.gguf", PRESETS["Q4_0"].choosing(types))
    plain, chosen = (gguf.GGUFReader(tmp_path / f"{name}.gguf") for name in ("plain", "chosen"))
    for before, after in zip(plain.tensors, chosen.tensors, strict=True):
        expected = types.get(before.name, before.tensor_type.name)
        assert after.tensor_type.name == getattr(expected, "name", expected)
        assert (before.name in types) == (before.tensor_type != after.tensor_type)
        assert before.name in types or np.array_equal(before.data, after.data)
    with LlamaCpp(tmp_path / "chosen.gguf") as llama:
        assert np.isfinite(llama.logits([1, 2, 3])).all()


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"blk.9.attn_v.weight": "Q6_K"}, "Q6_K was chosen for 'blk.9.attn_v.weight', and there is no tensor of that"),
        ({"output_norm.weight": "Q8_0"}, r"there is a tensor of shape \(256,\) that is never quantized"),
        ({"blk.0.ffn_up.weight": "Q4_K_M"}, "Q4_K_M"),
    ],
)
def test_a_type_that_cannot_be_chosen_is_refused_and_nothing_is_written(types, message, small, tmp_path):
    with pytest.raises(SchemeError, match=message):
        quantize_gguf(small, tmp_path / "out.gguf", PRESETS["Q4_0"].choosing(types))
    assert not (tmp_path / "out.gguf").exists()


def test_a_type_whose_blocks_do_not_fit_into_a_row_is_refused(tmp_path):
    write_gguf(tmp_path / "in.gguf", {"blk.0.ffn_up.weight": np.zeros((2, 32), np.float32)}, KEYS)
    with pytest.raises(SchemeError, match="rows of 32 weights are no whole number of blocks of 256"):
        quantize_gguf(
            tmp_path / "in.gguf", tmp_path / "out.gguf", PRESETS["Q4_0"].choosing({"blk.0.ffn_up.weight": "Q4_K"})
        )


def test_memory_stays_below_three_times_the_largest_tensor(tmp_path):
    w = np.random.default_rng(0).standard_normal((2048, 2048), np.float32)
    write_gguf(tmp_path / "in.gguf", {f"blk.{n}.ffn_up.weight": w for n in range(3)}, KEYS | {"llama.block_count": 3})
    size = w.nbytes
    del w
    tracemalloc.start()
    quantize_gguf(tmp_path / "in.gguf", tmp_path / "out.gguf", "Q4_1")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size  # pieces of a quarter of it, and their blocks
