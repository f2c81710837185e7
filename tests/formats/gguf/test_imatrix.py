"""Importance matrices as GGUF files: the official package reads ours, ours are written again as they were."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from miniquant.core.errors import FormatError, QuantizationError
from miniquant.formats.gguf import GGMLType, Typed, ValueType, write_gguf
from miniquant.formats.gguf.imatrix import ImportanceMatrix, Squares, read_imatrix, write_imatrix
from miniquant.formats.gguf.write import weighed

f32 = np.float32
DENSE = Squares(np.array([[8, 2, 0]], f32), np.array([4], f32))
EXPERTS = Squares(np.array([[8, 2], [1, 3], [5, 5]], f32), np.array([2, 0, 10], f32))
MATRIX = ImportanceMatrix({"blk.1.ffn_up_exps.weight": EXPERTS, "blk.0.b.weight": DENSE}, ("a.txt", "ñ.txt"), 3, 512)
KEYS = {
    "general.type": "imatrix",
    "imatrix.datasets": Typed(["a.txt"], ValueType.ARRAY, ValueType.STRING),
    "imatrix.chunk_count": 1,
    "imatrix.chunk_size": 8,
}
TENSORS = {"w.in_sum2": np.ones(4, f32), "w.counts": np.ones(1, f32)}


def test_the_official_package_reads_the_keys_and_the_tensors_in_the_order_of_their_names(tmp_path):
    write_imatrix(tmp_path / "i.gguf", MATRIX)
    reader = gguf.GGUFReader(tmp_path / "i.gguf")
    fields = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    assert {key: field.contents() for key, field in fields.items()} == {
        "general.type": "imatrix",
        "imatrix.datasets": ["a.txt", "ñ.txt"],
        "imatrix.chunk_count": 3,
        "imatrix.chunk_size": 512,
    }
    assert [fields[f"imatrix.chunk_{key}"].types for key in ("count", "size")] == [[gguf.GGUFValueType.UINT32]] * 2
    found = [(t.name, t.tensor_type.name, t.shape.tolist(), t.data.tolist()) for t in reader.tensors]
    assert found == [  # shapes as ggml has them, columns first
        ("blk.0.b.weight.in_sum2", "F32", [3], [8, 2, 0]),
        ("blk.0.b.weight.counts", "F32", [1], [4]),
        ("blk.1.ffn_up_exps.weight.in_sum2", "F32", [2, 3], [[8, 2], [1, 3], [5, 5]]),
        ("blk.1.ffn_up_exps.weight.counts", "F32", [1, 3], [[2], [0], [10]]),
    ]


def test_what_was_written_is_read(tmp_path):
    write_imatrix(tmp_path / "i.gguf", MATRIX)
    found = read_imatrix(tmp_path / "i.gguf")
    assert found[1:] == MATRIX[1:]
    assert list(found.squares) == sorted(MATRIX.squares)
    for name, squares in MATRIX.squares.items():
        assert all(map(np.array_equal, found.squares[name], squares))


def test_the_importance_is_the_mean_and_an_expert_that_met_nothing_has_ones():
    assert DENSE.means().tolist() == [[2, 0.5, 0]]
    assert EXPERTS.means().tolist() == [[4, 1], [1, 1], [0.5, 0.5]]
    assert MATRIX.importance("blk.0.b.weight", (7, 3)).tolist() == [[2, 0.5, 0]]
    assert MATRIX.importance("blk.1.ffn_up_exps.weight", (3, 7, 2)).shape == (3, 2)
    assert MATRIX.importance("output.weight", (7, 3)) is None


def test_other_tensors_such_as_llama_cpp_s_statistics_are_left_aside(tmp_path):
    more = {"w.in_sum": np.ones(4, f32), "w.stats": np.ones(12, f32), "counts": np.ones(1, f32)}
    write_gguf(tmp_path / "i.gguf", TENSORS | more, KEYS | {"imatrix.stats_schema": "mean"})
    assert list(read_imatrix(tmp_path / "i.gguf").squares) == ["w"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"general.type": "model"},
            r"is no importance matrix: it says general.type = 'model'.*miniquant imatrix MODEL",
        ),
        ({"general.type": None}, "it says general.type = None"),
        ({"general.type": None, "general.architecture": "llama"}, r"it holds a model \('llama'\)"),
        ({"imatrix.chunk_count": None}, "imatrix.chunk_count is None, expected a number; llama.cpp refuses it as well"),
        ({"imatrix.chunk_size": "512"}, "imatrix.chunk_size is '512', expected a number"),
        ({"imatrix.chunk_size": True}, "imatrix.chunk_size is True, expected a number"),
        ({"imatrix.datasets": "a.txt"}, "imatrix.datasets is 'a.txt', expected the names of the texts"),
        ({"imatrix.datasets": [1, 2]}, "imatrix.datasets is .*, expected the names of the texts"),
        ({"w.in_sum2": None}, "'w.counts' has no 'w.in_sum2'; the importance matrix is not whole"),
        ({"w.counts": None}, "'w.in_sum2' has no 'w.counts'; make the importance matrix again"),
        ({"w.in_sum2": None, "w.counts": None}, "it holds no sums"),
        ({"w.counts": np.ones(2, f32)}, "'w' has 1 rows of sums and 2 counts"),
        (
            {"w.in_sum2": np.ones((1, 2, 2), f32)},
            r"'w.in_sum2' is F32 of shape \(1, 2, 2\).*expected F32 with one or two",
        ),
        ({"w.counts": np.array(1, f32)}, r"'w.counts' is F32 of shape \(\)"),
        ({"w.counts": np.ones(1, np.int32)}, r"'w.counts' is I32 of shape \(1,\)"),
        ({"w.in_sum2": np.array([1, -2], f32)}, "'w.in_sum2' holds -2; expected finite numbers from 0 on"),
        ({"w.counts": np.array([np.nan], f32)}, "'w.counts' holds nan"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:30],
)
def test_a_file_that_is_not_whole_is_refused_with_what_was_found(changed, said, tmp_path):
    keys, tensors = KEYS | {}, TENSORS | {}
    for name, value in changed.items():
        group = tensors if name.startswith("w.") else keys
        group.pop(name, None)
        if value is not None:
            group[name] = value
    write_gguf(tmp_path / "i.gguf", tensors, keys)
    with pytest.raises(FormatError, match=said):
        read_imatrix(tmp_path / "i.gguf")


def test_what_the_quantized_file_says_about_it_is_what_llama_cpp_writes():
    found = MATRIX.keys("x" * 200)
    assert {key: value.value for key, value in found.items()} == {
        "quantize.imatrix.file": "x" * 127,
        "quantize.imatrix.dataset": "a.txt",
        "quantize.imatrix.entries_count": 2,
        "quantize.imatrix.chunks_count": 3,
    }
    assert [value.kind for value in found.values()] == [ValueType.STRING] * 2 + [ValueType.UINT32] * 2
    assert len(MATRIX.keys("ñ" * 100)["quantize.imatrix.file"].value) == 63  # no half of a letter
    assert list(MATRIX._replace(datasets=(), chunk_count=0).keys("f")) == [
        "quantize.imatrix.file",
        "quantize.imatrix.entries_count",
    ]


def test_sums_are_stored_in_full_precision(tmp_path):
    w = np.array([[1 + 2**-23, 3e38, 1e-45]], f32)
    write_imatrix(tmp_path / "i.gguf", MATRIX._replace(squares={"w": Squares(w, np.array([1e9], f32))}))
    assert np.array_equal(read_imatrix(tmp_path / "i.gguf").squares["w"].sums, w)
    assert gguf.GGUFReader(tmp_path / "i.gguf").tensors[0].tensor_type == GGMLType.F32


def test_an_importance_of_another_number_of_columns_is_refused_and_says_so():
    with pytest.raises(QuantizationError, match="it was made for another model"):
        MATRIX.importance("blk.0.b.weight", (5, 4))


def test_an_importance_is_handed_to_the_writer_with_its_tensor():
    counts = MATRIX.importance("blk.0.b.weight", (5, 3))
    found = weighed(w := np.ones((5, 3), f32), GGMLType.Q4_0, counts)
    assert found.data is w and found.dtype is GGMLType.Q4_0 and found.importance is counts
    assert weighed(w, GGMLType.Q4_0, None) == (w, GGMLType.Q4_0)
