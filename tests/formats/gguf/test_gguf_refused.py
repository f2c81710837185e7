"""What real GGUF cannot hold is refused by the writer, with a reason, and the file that stood there stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from miniquant.core.errors import MetadataError, MiniquantError, QuantizationError, SchemeError, WriteError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, RawTensor, Typed, ValueType, decode, encode, read_gguf, write_gguf
from miniquant.formats.gguf.codecs import CODECS
from miniquant.formats.gguf.write import SURE, largest

GOOD = np.ones((2, 64), np.float32)
nan, infinite, high = GOOD.copy(), GOOD.copy(), GOOD.copy()
nan[1, 5], infinite[1, 5], high[1, 5] = np.nan, -np.inf, 3e38


@pytest.fixture
def path(no_leftovers) -> Path:
    return no_leftovers / "model.gguf"


@pytest.fixture(scope="module")
def ggml():
    with LlamaCpp(None) as llama:
        yield llama


class Unpicklable:
    """No array at all."""


BAD_TENSORS = {
    "unknown type": ({"w": (GOOD, "Q9_9")}, SchemeError, "no codec for 'Q9_9'"),
    "a type without a codec": ({"w": (GOOD, "Q8_1")}, SchemeError, "no codec for 'Q8_1'"),
    "a type that is no type": ({"w": (GOOD, 3.5)}, SchemeError, "no codec for 3.5"),
    "row of 33": ({"w": (np.ones((2, 33), np.float32), "Q8_0")}, SchemeError, "multiple of 32 weights, found 33"),
    "row of 16": ({"w": (np.ones((32, 16), np.float32), "Q4_0")}, SchemeError, "multiple of 32 weights, found 16"),
    "scalar to Q8_0": ({"w": (np.float32(1), "Q8_0")}, SchemeError, "multiple of 32 weights, found 1"),
    "scalar to BF16": ({"w": (np.float32(1), "BF16")}, SchemeError, "cannot read a BF16 tensor of none"),
    "five dims": ({"w": np.ones((1, 1, 1, 1, 1), np.float32)}, SchemeError, "4 dims at most"),
    "name of 64 bytes": ({"w" * 64: GOOD}, SchemeError, "1 to 63 bytes"),
    "name of 64 bytes in 22 letters": ({"☃" * 21 + "w": GOOD}, SchemeError, "1 to 63 bytes"),
    "empty name": ({"": GOOD}, SchemeError, "1 to 63 bytes"),
    "name with a zero": ({"a\0b": GOOD}, SchemeError, "1 to 63 bytes"),
    "name that is no text": ({7: GOOD}, SchemeError, "1 to 63 bytes"),
    "name that is no unicode": ({"\ud800": GOOD}, MetadataError, "not valid Unicode"),
    "NaN to Q8_0": ({"w": (nan, "Q8_0")}, QuantizationError, "row 1, column 5 is nan; quantization needs finite"),
    "NaN to Q4_0": ({"w": (nan, "Q4_0")}, QuantizationError, "row 1, column 5 is nan"),
    "NaN to Q4_1": ({"w": (nan, "Q4_1")}, QuantizationError, "row 1, column 5 is nan"),
    "infinity to Q8_0": ({"w": (infinite, "Q8_0")}, QuantizationError, "row 1, column 5 is -inf"),
    "infinity to Q4_0": ({"w": (infinite, "Q4_0")}, QuantizationError, "row 1, column 5 is -inf"),
    "infinity to Q4_1": ({"w": (infinite, "Q4_1")}, QuantizationError, "row 1, column 5 is -inf"),
    "scale beyond float16, Q8_0": ({"w": (high, "Q8_0")}, QuantizationError, "3e.38; the scale of its block"),
    "scale beyond float16, Q4_0": ({"w": (-high, "Q4_0")}, QuantizationError, "-3e.38; the scale of its block"),
    "scale beyond float16, Q4_1": ({"w": (high, "Q4_1")}, QuantizationError, "3e.38; the scale of its block"),
    "minimum beyond float16, Q4_1": ({"w": (GOOD * 1e5, "Q4_1")}, QuantizationError, "100000; the scale of its block"),
    "beyond F16": ({"w": (high, "F16")}, QuantizationError, "3e.38; F16 cannot hold it; store the tensor as F32"),
    "beyond BF16": ({"w": (GOOD * np.float32(3.4e38), "BF16")}, QuantizationError, "BF16 cannot hold it"),
    "beyond F32": (
        {"w": (GOOD.astype(np.float64) * 1e300, "F32")},
        QuantizationError,
        "F32 cannot hold it; store the tensor as F64",
    ),
    "integers to Q8_0": ({"w": (np.ones((2, 64), np.int32), "Q8_0")}, QuantizationError, "holds int32"),
    "truth values": ({"w": np.ones(3, bool)}, SchemeError, "holds bool, which GGUF has no type for"),
    "unsigned bytes": ({"w": np.ones(3, np.uint8)}, SchemeError, "holds uint8"),
    "complex": ({"w": np.ones(3, complex)}, SchemeError, "holds complex128"),
    "objects": ({"w": np.array([Unpicklable()])}, SchemeError, "holds object"),
    "torch complex": ({"w": torch.ones(3, dtype=torch.complex64)}, SchemeError, "holds complex64"),
    "a list": ({"w": [1.0, 2.0]}, SchemeError, "is a list; pass an array"),
    "a number": ({"w": 1.0}, SchemeError, "is a float; pass an array"),
    "raw of a wrong size": ({"w": RawTensor(np.zeros(35, np.uint8), GGMLType.Q8_0, (32,))}, SchemeError, "takes 34 b"),
    "raw of a wrong dtype": ({"w": RawTensor(np.zeros(8, np.float32), GGMLType.F32, (8,))}, SchemeError, "found float"),
    "raw that is bytes": ({"w": RawTensor(bytes(34), GGMLType.Q8_0, (32,))}, SchemeError, "found bytes"),
    "raw of no type": ({"w": RawTensor(np.zeros(34, np.uint8), 99, (32,))}, SchemeError, "99 is no GGMLType"),
    "raw of a negative shape": ({"w": RawTensor(np.zeros(34, np.uint8), GGMLType.F32, (-1,))}, SchemeError, "counts"),
    "raw row of 33": ({"w": RawTensor(np.zeros(34, np.uint8), GGMLType.Q8_0, (33,))}, SchemeError, "multiple of 32"),
}
V, A = ValueType, ValueType.ARRAY
BAD_METADATA = {
    "key with a space": ({"a b": 1}, "the key 'a b' is not"),
    "key with an equals sign": ({"a=b": 1}, "letters, digits"),
    "key with an accent": ({"é": 1}, "letters, digits"),
    "key with a newline": ({"a\n": 1}, "letters, digits"),
    "key with a zero": ({"a\0": 1}, "letters, digits"),
    "empty key": ({"": 1}, "1 to 65535"),
    "key that is too long": ({"k" * 65536: 1}, "1 to 65535"),
    "key that is no text": ({1: 1}, "the key 1 is not"),
    "nested array": ({"a": [[1, 2]]}, "arrays of arrays are refused by llama.cpp"),
    "nested array, spelled out": ({"a": Typed([[1]], A, A)}, "arrays of arrays"),
    "nested array of numpy": ({"a": np.zeros((2, 2))}, r"no type for shape \(2, 2\)"),
    "text and numbers": ({"a": [1, "b"]}, "elements of one kind, found int, str"),
    "truth and numbers": ({"a": [True, 1]}, "elements of one kind, found bool, int"),
    "empty list": ({"a": []}, "an empty list has no type"),
    "integer above 64 bits": ({"a": 2**64}, "no type of 64 bits"),
    "integer below 64 bits": ({"a": -(2**63) - 1}, "no type of 64 bits"),
    "integers that no type holds together": ({"a": [-1, 2**63]}, "no type of 64 bits"),
    "256 as UINT8": ({"a": Typed(256, V.UINT8)}, "UINT8 holds 0 to 255, found 256"),
    "-1 as UINT64": ({"a": Typed(-1, V.UINT64)}, "UINT64 holds 0 to 18446744073709551615, found -1"),
    "128 in an array of INT8": ({"a": Typed([1, 128], A, V.INT8)}, "found 128"),
    "numpy's 300 as UINT8": ({"a": Typed(np.array([300]), A, V.UINT8)}, "found 300"),
    "float as integer": ({"a": Typed(1.0, V.UINT32)}, "does not fit the type UINT32"),
    "truth as integer": ({"a": Typed(True, V.UINT8)}, "does not fit the type UINT8"),
    "integer as truth": ({"a": Typed(1, V.BOOL)}, "does not fit the type BOOL"),
    "text as integer": ({"a": Typed("5", V.UINT32)}, "does not fit the type UINT32"),
    "integer as text": ({"a": Typed(5, V.STRING)}, "something else than text"),
    "text as an array of texts": ({"a": Typed("abc", A, V.STRING)}, "takes a list or a numpy array, found a str"),
    "number as an array": ({"a": Typed(5, A, V.UINT8)}, "found a int"),
    "list as a number": ({"a": Typed([1], V.UINT8)}, "does not fit"),
    "1e39 as FLOAT32": ({"a": 1e39}, "beyond FLOAT32"),
    "10**400 as FLOAT64": ({"a": Typed(10**400, V.FLOAT64)}, "beyond FLOAT64"),
    "array of no type": ({"a": Typed([1], A)}, "is no type"),
    "a type that does not exist": ({"a": Typed(1, 99)}, "kind 99 of None is no type"),
    "a type by its name": ({"a": Typed(1, "UINT8")}, "is no type"),
    "None": ({"a": None}, "no GGUF type for a NoneType"),
    "bytes": ({"a": b"abc"}, "no GGUF type for a bytes"),
    "dict": ({"a": {"b": 1}}, "no GGUF type for a dict"),
    "float16": ({"a": np.float16(1)}, "no type for shape .* of float16"),
    "text that is no unicode": ({"a": "\ud800"}, "not valid Unicode"),
}  # fmt: skip
BAD_ALIGNMENTS = {
    "zero": (0, {}), "24": (24, {}), "odd": (33, {}), "one": (1, {}), "four": (4, {}), "negative": (-32, {}),
    "fraction": (32.0, {}), "truth": (True, {}), "text": ("32", {}), "2**32": (2**32, {}),
    "metadata says 64": (32, {"general.alignment": 64}),
    "metadata says 64, typed": (32, {"general.alignment": Typed(64, V.UINT32)}),
    "metadata says 32, call 64": (64, {"general.alignment": 32}),
    "metadata says text": (32, {"general.alignment": "32"}),
    "metadata says an array": (32, {"general.alignment": np.array([32, 32])}),
}  # fmt: skip


def refused(path: Path, error: type[MiniquantError], message: str, *arguments: Any) -> None:
    """The call raises this error, and what stood at the path stays."""
    path.write_bytes(b"what was there before")
    with pytest.raises(error, match=message) as caught:
        write_gguf(path, *arguments)
    assert type(caught.value) is error
    assert path.read_bytes() == b"what was there before"


@pytest.mark.parametrize("case", BAD_TENSORS)
def test_a_tensor_that_gguf_cannot_hold_is_refused_and_the_old_file_stays(case, path):
    tensors, error, message = BAD_TENSORS[case]
    refused(path, error, message, {"good": GOOD} | tensors, {"a": 1})


@pytest.mark.parametrize("case", BAD_METADATA)
def test_metadata_that_gguf_cannot_hold_is_refused_and_the_old_file_stays(case, path):
    metadata, message = BAD_METADATA[case]
    refused(path, MetadataError, message, {"good": GOOD}, {"a.good.key": 1} | metadata)


@pytest.mark.parametrize("case", BAD_ALIGNMENTS)
def test_an_alignment_that_is_none_is_refused_and_the_old_file_stays(case, path):
    alignment, metadata = BAD_ALIGNMENTS[case]
    refused(path, SchemeError, "alignment", {"good": GOOD}, metadata, alignment)


def test_the_alignment_may_stand_in_the_metadata_of_any_integer_type_and_is_written_as_the_one_that_counts(path):
    for given_alignment in (64, Typed(64, V.UINT64), np.uint16(64)):
        write_gguf(path, {"w": GOOD}, {"general.alignment": given_alignment}, 64)
        file = read_gguf(path)
        assert file.types["general.alignment"] == (V.UINT32, None)
        assert file.data_start % 64 == 0


def test_a_folder_that_does_not_exist_is_a_write_error(tmp_path):
    with pytest.raises(WriteError, match="does not exist"):
        write_gguf(tmp_path / "none" / "model.gguf", {"w": GOOD}, {})


def test_the_largest_names_keys_and_dims_are_written_and_read(path, ggml):
    write_gguf(path, {"w" * 63: np.ones((1, 2, 3, 4), np.float32)}, {"k" * 65535: 1, "k": 2**32 - 1})
    ggml.check(path)
    with read_gguf(path) as file:
        assert file.tensors["w" * 63].shape == (1, 2, 3, 4)
        assert file.metadata == {"k" * 65535: 1, "k": 2**32 - 1}


@pytest.mark.parametrize(
    "codec", [codec for codec in CODECS.values() if codec.encodes], ids=lambda codec: codec.dtype.name
)
def test_weights_up_to_the_sure_size_come_back_finite_from_every_type_so_they_need_no_second_look(codec):
    random, n = np.random.default_rng(1), 4 * 256
    size = min(SURE, codec.reach)
    lone = np.zeros(n)
    lone[::97] = size
    drawn = [
        random.uniform(-1, 1, n),
        np.sign(random.normal(size=n)),
        np.sign(random.normal(size=n)) * 1e-6,
        lone / size,
    ]
    drawn += [np.where(np.arange(n) % 32 < 2, 1, 1 - 1e-4), 10 ** random.uniform(-8, 0, n)]
    w = np.array(drawn, np.float32) * np.float32(size)
    assert largest(w) <= size
    for importance in (None, *[random.uniform(1e-9, 1, n).astype(np.float32)] * codec.weighs):
        assert np.isfinite(decode(encode(w, codec.dtype, importance), codec.dtype)).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_the_largest_size_of_weights_is_no_number_where_one_of_them_is_none(wrong):
    assert not np.isfinite(largest(np.array([[1, wrong], [-5, 2]], np.float32)))
    assert largest(np.array([[1.0, -5]])) == 5 and largest(np.empty((0, 4))) == 0
