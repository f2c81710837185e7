"""GGUF files quantized with an importance matrix: the bytes of llama.cpp's own quantizer, and what is refused."""

from __future__ import annotations

import hashlib
import json
import platform

import gguf
import numpy as np
import pytest
from quantizer_models import IMATRIX, MODELS, STORED_WEIGHED, WEIGHED, write, write_importance
from thorough import tried

from miniquant.core.errors import FormatError, QuantizationError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, LazyTensor, encode, read_gguf, write_gguf
from miniquant.formats.gguf.imatrix import ImportanceMatrix, Squares, write_imatrix
from miniquant.formats.gguf.write import Weighed
from miniquant.models.file_types import PRESETS, place
from miniquant.models.quantize_gguf import quantize_gguf

ANSWERS = json.loads(STORED_WEIGHED.read_text("utf-8"))
LARGE = [name for name in WEIGHED if int(MODELS[name]["keys"]["block_count"]) > 3]
BEYOND_TYPES = ("Q4_0", "Q3_K_L", "Q4_K_M")  # the bytes of a large model, in as many types as there are kinds of rules
SAME_COMPILER = platform.machine() in ("x86_64", "AMD64")  # others fuse a product with a sum, and K-quants differ
same_bytes = pytest.mark.skipif(not SAME_COMPILER, reason="llama.cpp's answers are those of an x86-64 build")


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A small model, its importance matrix by a short path, and the importance of each column by name."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.gguf", "llama of 3 layers")
    return tmp_path / "in.gguf", write_importance(tmp_path / IMATRIX, "llama of 3 layers")


def weights(path):
    with read_gguf(path) as file:
        return {name: file.tensor(name) for name in file.tensors}


def hash_of_types(types):
    named = [(name, dtype.name) for name, dtype in types.items()]
    return hashlib.sha256(repr(named).encode()).hexdigest()[:12]


def raw(path):
    return {tensor.name: tensor.data for tensor in gguf.GGUFReader(path).tensors}


@pytest.mark.parametrize("name", WEIGHED)
def test_the_file_is_the_one_that_llama_cpp_s_quantizer_writes_with_the_same_importance(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of the importance matrix is in the file
    write(tmp_path / "in.gguf", name)
    write_importance(tmp_path / IMATRIX, name)
    kinds = list(BEYOND_TYPES if name in LARGE else ANSWERS[name])
    every = tried(2, 1)
    for kind in kinds[WEIGHED.index(name) % every :: every]:
        found = quantize_gguf("in.gguf", "out.gguf", kind, imatrix=IMATRIX)
        _, types, whole = ANSWERS[name][kind].split("; ")
        assert hash_of_types(found.after) == types, kind
        if SAME_COMPILER:
            assert hashlib.sha256((tmp_path / "out.gguf").read_bytes()).hexdigest() == whole, kind


@pytest.mark.parametrize("name", WEIGHED)
def test_with_an_importance_matrix_each_tensor_takes_the_type_that_llama_cpp_s_quantizer_chooses(name, tmp_path):
    write(tmp_path / "in.gguf", name)
    with read_gguf(tmp_path / "in.gguf") as file:
        before = {name: file.tensors[name].dtype for name in sorted(file.tensors, key=place)}
        shapes = {name: file.tensors[name].shape for name in before}
        for kind, answer in ANSWERS[name].items():
            after = before | PRESETS[kind].types_of(shapes, file.metadata, True)
            assert hash_of_types(after) == answer.split("; ")[1], kind


@pytest.mark.parametrize(
    ("preset", "without", "with_it"), [("Q4_0", "Q4_0", "Q4_1"), ("Q5_0", "Q5_0", "Q5_1"), ("IQ4_XS", "Q5_K", "IQ4_XS")]
)
def test_the_first_eighth_of_ffn_down_takes_another_type_with_an_importance_matrix(preset, without, with_it):
    shapes = {f"blk.{n}.ffn_down.weight": (256, 256) for n in range(16)}
    keys = {"general.architecture": "llama", "llama.block_count": 16}
    found = [[k.name for k in PRESETS[preset].types_of(shapes, keys, weighed).values()] for weighed in (False, True)]
    assert [types[:2] for types in found] == [[without] * 2, [with_it] * 2]
    assert [types[2:] for types in found] == [[preset] * 14] * 2


@same_bytes
@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_1", "Q2_K", "Q4_K_M", "IQ4_XS"])
def test_every_tensor_is_what_ggml_makes_of_it_with_its_importance(kind, model, tmp_path):
    source, means = model
    found = quantize_gguf(source, tmp_path / "out.gguf", kind, imatrix=IMATRIX)
    given, made = weights(source), raw(tmp_path / "out.gguf")
    assert found.weighed == means.keys()
    with LlamaCpp(None) as llama:
        for name in found.changed:
            theirs = llama.quantize(given[name], found.after[name], means[name][0] if name in means else None)
            assert np.array_equal(made[name].reshape(theirs.shape), theirs), name


def test_a_type_that_does_not_search_is_not_said_to_be_weighed(model, tmp_path):
    found = quantize_gguf(model[0], tmp_path / "out.gguf", "Q8_0", imatrix=IMATRIX)
    assert found.weighed == frozenset() and found.changed
    plain = quantize_gguf(model[0], tmp_path / "plain.gguf", "Q8_0")
    assert all(np.array_equal(a, raw(tmp_path / "out.gguf")[n]) for n, a in raw(tmp_path / "plain.gguf").items())
    assert plain.weighed == frozenset()


def test_each_expert_has_an_importance_of_its_own_and_no_piece_mixes_two(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    w = rng.standard_normal((3, 5, 256)).astype(np.float32)
    counts = rng.random((3, 256)).astype(np.float32)
    by_expert = np.concatenate([encode(w[i], "Q4_K", counts[i]) for i in range(3)])
    rows = w.reshape(-1, 256)
    for chunk in (1, 700, 10**6):
        monkeypatch.setattr("miniquant.formats.gguf.write.CHUNK", chunk)
        monkeypatch.setattr("miniquant.formats.gguf.write.PIECE", max(256, chunk))
        lazy = LazyTensor(w.shape, "float32", lambda start, stop: rows[start:stop])
        write_gguf(tmp_path / "e.gguf", {"a": Weighed(w, "Q4_K", counts), "b": Weighed(lazy, "Q4_K", counts)}, {})
        found = raw(tmp_path / "e.gguf")
        assert all(np.array_equal(found[name].reshape(15, -1), by_expert) for name in "ab")
    assert not np.array_equal(by_expert, encode(rows, "Q4_K", counts[0]))


def refused(path, what, error, tmp_path):
    with pytest.raises(error, match=what):
        quantize_gguf(path, tmp_path / "out.gguf", "Q4_K_M", imatrix="wrong.gguf")
    assert not (tmp_path / "out.gguf").exists()


def of(squares):
    write_imatrix(
        "wrong.gguf",
        ImportanceMatrix({k: Squares(v, np.ones(len(v), np.float32)) for k, v in squares.items()}, ("t",), 1, 8),
    )


def test_an_importance_matrix_of_another_model_is_refused(model, tmp_path):
    of({"blk.0.ffn_up.weight": np.ones((1, 128), np.float32)})
    refused(
        model[0],
        "has 128 columns for 'blk.0.ffn_up.weight', and the matrix has 256 columns: it was made for another model",
        QuantizationError,
        tmp_path,
    )
    of({"blk.0.ffn_up.weight": np.ones((2, 256), np.float32)})
    refused(model[0], "has 2 experts of 256 columns for .* and the matrix has 256 columns", QuantizationError, tmp_path)
    of({"h.0.mlp": np.ones((1, 256), np.float32)})
    refused(model[0], "none of the model's matrices: it has 'h.0.mlp', the model '", QuantizationError, tmp_path)


def test_one_of_the_token_embedding_that_does_not_fit_is_left_aside_as_llama_cpp_does(model, tmp_path):
    fits = np.ones((1, 256), np.float32)
    of({"token_embd.weight": np.ones((1, 4), np.float32), "blk.0.ffn_up.weight": fits})
    found = quantize_gguf(model[0], tmp_path / "out.gguf", "Q4_K_M", imatrix="wrong.gguf")
    assert found.weighed == {"blk.0.ffn_up.weight"}


def test_a_model_in_place_of_the_importance_matrix_is_refused(model, tmp_path):
    with pytest.raises(FormatError, match=r"is no importance matrix: it holds a model \('llama'\)"):
        quantize_gguf(model[0], tmp_path / "out.gguf", GGMLType.Q4_0, imatrix=model[0])
