"""Real GGUF files: a parser of thirty lines, the official package and ggml read what we write, and we what they do."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from miniquant.errors import FormatError, MetadataError, MiniquantError, QuantizationError, SchemeError, WriteError
from miniquant.gguf import GGMLType, RawTensor, Typed, ValueType, blocks, encode, read_gguf, write_gguf
from miniquant.gguf.blocks import CODECS
from miniquant.gguf.metadata import NUMPY
from miniquant.llamacpp import LlamaCpp

PLAIN = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}
ENCODED = ["BF16", "Q8_0", "Q4_0", "Q4_1"]
ALIGNMENTS = [8, 16, 32, 64, 256, 4096]
Metadata = dict[str, Typed]
Tensors = dict[str, tuple[np.ndarray, str]]


@pytest.fixture
def path(no_leftovers) -> Path:
    return no_leftovers / "model.gguf"


@pytest.fixture(scope="module")
def ggml():
    with LlamaCpp(None) as llama:
        yield llama


# ---- a parser that shares no code with the library -------------------------------------------------------------------

FORMS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd"))  # struct's codes by the type's number


class Parsed:
    """A GGUF file taken apart with ``struct`` alone: ``pairs`` (key, type, element type, value), ``infos``."""

    def __init__(self, file: Path) -> None:
        self.bytes, self.at = file.read_bytes(), 0
        magic, version, n_tensors, n_pairs = self.take("4sIQQ")
        assert (magic, version) == (b"GGUF", 3)
        self.pairs = [self.pair() for _ in range(n_pairs)]
        self.infos = [self.info() for _ in range(n_tensors)]
        found = [value for key, _, _, value in self.pairs if key == "general.alignment"]
        self.alignment = found[0] if found else 32
        self.end_of_head = self.at
        self.data = self.at + -self.at % self.alignment

    def take(self, form: str) -> Any:
        values = struct.unpack_from("<" + form, self.bytes, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def string(self) -> str:
        length = self.take("Q")
        self.at += length
        return self.bytes[self.at - length : self.at].decode()

    def value(self, kind: int) -> Any:
        return self.string() if kind == 8 else self.take(FORMS[kind])

    def pair(self) -> tuple[str, int, int | None, Any]:
        key, kind = self.string(), self.take("I")
        if kind != 9:
            return key, kind, None, self.value(kind)
        of, count = self.take("IQ")
        return key, kind, of, [self.value(of) for _ in range(count)]

    def info(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self.string()
        dims = tuple(self.take("Q") for _ in range(self.take("I")))
        return name, dims, *self.take("IQ")


def plain(value: Any) -> Any:
    """Python numbers and lists, NaN as text so that it equals itself."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return "nan" if isinstance(value, float) and value != value else value


# ---- what a file may hold --------------------------------------------------------------------------------------------

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
keys = st.text("abcdefghijklmnopqrstuvwxyz0123456789_.-QK", min_size=1, max_size=20).filter(
    lambda key: key != "general.alignment" and not key.startswith("GGUF.")
)
names = st.text("abcdefghijklmnopqrstuvwxyz0123456789_.é☃", min_size=1, max_size=20)


def scalars(kind: ValueType) -> st.SearchStrategy[Any]:
    """Values that a type holds exactly."""
    if kind == ValueType.STRING:
        return text
    if kind == ValueType.BOOL:
        return st.booleans()
    dtype = NUMPY[kind]
    if dtype.kind == "f":
        return st.floats(width=dtype.itemsize * 8)
    limits = np.iinfo(dtype)
    return st.integers(int(limits.min), int(limits.max))


@st.composite
def typed_values(draw, empty: bool = True) -> Typed:
    kind = draw(st.sampled_from(ValueType))
    if kind != ValueType.ARRAY:
        return Typed(draw(scalars(kind)), kind)
    of = draw(st.sampled_from([kind for kind in ValueType if kind != ValueType.ARRAY]))
    items = draw(st.lists(scalars(of), min_size=0 if empty else 1, max_size=6))
    return Typed(items, ValueType.ARRAY, of)


@st.composite
def arrays(draw) -> tuple[np.ndarray, str]:
    """An array of 0 to 4 dims with a type that holds it; random bits where the type stores them as they are."""
    kind = draw(st.sampled_from([*PLAIN, *ENCODED]))
    shape = draw(st.lists(st.integers(1, 4), min_size=kind == "BF16", max_size=4))
    if kind.startswith("Q"):
        shape = [*shape[:3], draw(st.integers(1, 3)) * 32]
    if shape and draw(st.integers(0, 15)) == 0:
        shape[0] = 0
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if kind in PLAIN:
        dtype = np.dtype(PLAIN[kind])
        return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape), kind
    return np.asarray(rng.standard_normal(shape), np.float32).reshape(shape), kind


metadata_of_any_type = st.dictionaries(keys, typed_values(), max_size=6)
tensors_of_any_type = st.dictionaries(names, arrays(), max_size=5)


def given_to_write(tensors: Tensors) -> dict[str, Any]:
    """An array that has a type of its own is passed as it is, the others with the name of their type."""
    return {name: array if kind in PLAIN else (array, kind) for name, (array, kind) in tensors.items()}


def blocks_of(array: np.ndarray, kind: str) -> bytes:
    """The bytes that should stand in the file."""
    if kind in PLAIN:
        return array.tobytes()
    rows = np.atleast_1d(array)
    return gguf.quants.quantize(rows, gguf.GGMLQuantizationType[kind]).tobytes() if array.size else b""


# ---- what we write ---------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(metadata=metadata_of_any_type, tensors=tensors_of_any_type, alignment=st.sampled_from(ALIGNMENTS))
def test_every_byte_that_we_write_is_where_the_specification_says(path, metadata, tensors, alignment):
    write_gguf(path, given_to_write(tensors), metadata, alignment)
    file = Parsed(path)
    expected = [(key, typed.kind, typed.of, plain(typed.value)) for key, typed in metadata.items()]
    if alignment != 32:
        expected.append(("general.alignment", ValueType.UINT32, None, alignment))
    assert [(key, kind, of, plain(value)) for key, kind, of, value in file.pairs] == expected
    assert file.bytes[file.end_of_head : file.data] == bytes(file.data - file.end_of_head)
    end = 0
    for (name, dims, kind, offset), (given_name, (array, given_kind)) in zip(file.infos, tensors.items(), strict=True):
        data = blocks_of(array, given_kind)
        assert (name, dims[::-1], GGMLType(kind).name) == (given_name, array.shape, given_kind)
        assert offset == end  # llama.cpp wants them back to back
        start, end = file.data + offset, offset + len(data) + -len(data) % alignment
        assert file.bytes[start : start + len(data)] == data
        assert file.bytes[start + len(data) : file.data + end] == bytes(-len(data) % alignment)
    assert len(file.bytes) == file.data + end


@settings(max_examples=150)
@given(metadata=metadata_of_any_type, tensors=tensors_of_any_type, alignment=st.sampled_from(ALIGNMENTS))
def test_the_official_reader_reads_every_file_that_we_write(path, metadata, tensors, alignment):
    write_gguf(path, given_to_write(tensors), metadata, alignment)
    file = gguf.GGUFReader(path)
    assert file.alignment == alignment
    for key, (value, kind, of) in metadata.items():
        field = file.fields[key]
        assert field.types[0] == kind
        if of is not None and len(value):
            assert field.types[-1] == of
        assert plain(field.contents()) == plain(value)
    assert [tensor.name for tensor in file.tensors] == list(tensors)
    for tensor, (array, kind) in zip(file.tensors, tensors.values()):
        assert tensor.tensor_type.name == kind
        assert tuple(reversed(tensor.shape.tolist())) == array.shape
        assert tensor.data.tobytes() == blocks_of(array, kind)


@settings(max_examples=100)
@given(metadata=metadata_of_any_type, tensors=tensors_of_any_type, alignment=st.sampled_from(ALIGNMENTS))
def test_ggml_reads_every_file_that_we_write(path, ggml, metadata, tensors, alignment):
    write_gguf(path, given_to_write(tensors), metadata, alignment)
    ggml.check(path)


@settings(max_examples=150)
@given(metadata=metadata_of_any_type, tensors=tensors_of_any_type, alignment=st.sampled_from(ALIGNMENTS))
def test_a_file_that_is_read_and_written_again_is_the_same_to_the_byte(path, metadata, tensors, alignment):
    write_gguf(path, given_to_write(tensors), metadata, alignment)
    copy = path.with_name("copy.gguf")
    with read_gguf(path) as file:
        raw = {name: RawTensor(file.raw(name), info.kind, info.shape) for name, info in file.tensors.items()}
        write_gguf(copy, raw, file.typed(), file.alignment)
    assert copy.read_bytes() == path.read_bytes()


@given(metadata=metadata_of_any_type, tensors=tensors_of_any_type)
def test_what_is_read_is_what_was_written(path, metadata, tensors):
    write_gguf(path, given_to_write(tensors), metadata)
    with read_gguf(path) as file:
        assert list(file.metadata) == list(metadata)
        assert file.types == {key: (typed.kind, typed.of) for key, typed in metadata.items()}
        for key, typed in metadata.items():
            value = file.metadata[key]
            assert plain(list(value) if typed.of == ValueType.STRING else value) == plain(typed.value)
        assert list(file.tensors) == list(tensors)
        for name, (array, kind) in tensors.items():
            found, info = file.tensor(name), file.tensors[name]
            assert (info.shape, info.kind.name) == (array.shape, kind)
            assert found.shape == array.shape
            if kind in ("F32", "F64") or kind.startswith("I"):
                assert found.dtype == array.dtype
                assert found.tobytes() == array.tobytes()
            elif array.size:
                rows = file.raw(name).reshape(*np.atleast_1d(array).shape[:-1], -1)
                official = gguf.quants.dequantize(rows, gguf.GGMLQuantizationType[kind])
                assert np.array_equal(found, official.reshape(array.shape), equal_nan=True)


@given(metadata=metadata_of_any_type, tensors=tensors_of_any_type)
def test_the_same_input_gives_the_same_bytes(path, metadata, tensors):
    other = path.with_name("other.gguf")
    write_gguf(path, given_to_write(tensors), metadata)
    write_gguf(other, given_to_write(tensors), metadata)
    assert path.read_bytes() == other.read_bytes()


# ---- what the official writer writes ---------------------------------------------------------------------------------


@settings(max_examples=150)
@given(
    metadata=st.dictionaries(keys, typed_values(empty=False), max_size=6),
    tensors=tensors_of_any_type,
    alignment=st.sampled_from([None, 1, 2, 4, *ALIGNMENTS]),
)
def test_we_read_every_file_that_the_official_writer_writes(path, metadata, tensors, alignment):
    metadata = {key: typed for key, typed in metadata.items() if key != "general.architecture"}
    writer = gguf.GGUFWriter(path, "gpt2")
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, (value, kind, of) in metadata.items():
        sub = None if of is None else gguf.GGUFValueType(of)
        writer.add_key_value(key, value, gguf.GGUFValueType(kind), sub)
    for name, (array, kind) in tensors.items():
        official = gguf.GGMLQuantizationType[kind]
        blocks = np.frombuffer(blocks_of(array, kind), PLAIN.get(kind, np.int8))  # uint8 would be taken for a shape
        writer.add_tensor(name, blocks, raw_shape=array.shape, raw_dtype=official)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    with read_gguf(path) as file:
        assert file.alignment == (alignment or 32)
        assert file.metadata["general.architecture"] == "gpt2"
        for key, (value, kind, of) in metadata.items():
            found = file.metadata[key]
            assert file.types[key] == (kind, of)
            assert plain(list(found) if of == ValueType.STRING else found) == plain(value)
        assert list(file.tensors) == list(tensors)
        for name, (array, kind) in tensors.items():
            assert file.tensors[name].shape == array.shape
            assert file.tensors[name].kind.name == kind
            assert file.raw(name).tobytes() == blocks_of(array, kind)
            assert file.tensor(name).shape == array.shape


@pytest.mark.parametrize("kind", [kind for kind in GGMLType if kind not in CODECS], ids=lambda kind: kind.name)
def test_a_tensor_of_any_other_type_is_listed_and_copied_though_it_cannot_be_decoded(kind, path, ggml):
    """The types that come later, and those that never will: their bytes pass through."""
    raw = np.random.default_rng(1).integers(0, 256, (3, 2 * kind.n_bytes), dtype=np.uint8)
    write_gguf(path, {"w": RawTensor(raw, kind, (3, 2 * kind.block))}, {})
    ggml.check(path)
    with read_gguf(path) as file:
        assert file.tensors["w"][:3] == ("w", (3, 2 * kind.block), kind)
        assert file.raw("w").tobytes() == raw.tobytes()
        if kind.name in PLAIN:
            assert file.tensor("w").tobytes() == raw.tobytes()
        else:
            with pytest.raises(QuantizationError, match=f"no codec for {kind.name} here"):
                file.tensor("w")


# ---- arrays of every kind --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64"])
def test_a_torch_tensor_is_stored_in_its_own_type_to_the_bit(name, path):
    generator = torch.Generator().manual_seed(1)
    tensor = (torch.randn(5, 7, generator=generator) * 50).to(getattr(torch, name))
    tensor = tensor.requires_grad_() if tensor.is_floating_point() else tensor
    write_gguf(path, {"w": tensor, "turned": tensor.T}, {})
    with read_gguf(path) as file:
        assert file.tensors["w"].kind.name == {"bfloat16": "BF16"}.get(
            name, name.upper().replace("FLOAT", "F")
        ).replace("INT", "I")
        plain_tensor = tensor.detach()
        for key, expected in (("w", plain_tensor), ("turned", plain_tensor.T)):
            found = torch.from_numpy(file.tensor(key))
            assert torch.equal(found.to(expected.dtype), expected)


def test_every_float16_survives_as_f16_whatever_it_is(path):
    w = np.arange(65536, dtype=np.uint16).view(np.float16).reshape(256, 256)
    write_gguf(path, {"w": w}, {})
    with read_gguf(path) as file:
        stored = file.raw("w").view(np.uint16)
    nan = np.isnan(w.reshape(-1))
    assert np.array_equal(stored[~nan], w.reshape(-1).view(np.uint16)[~nan])
    assert np.isnan(stored[nan].view(np.float16)).all()


@pytest.mark.parametrize("kind", [kind.name for kind in CODECS])
def test_views_byte_orders_and_torch_tensors_are_written_as_their_values(kind, path):
    w = np.random.default_rng(2).standard_normal((64, 3 * max(32, GGMLType[kind].block))).astype(np.float32)
    tensors = [w, np.asfortranarray(w), w.astype(">f4"), np.repeat(w, 2, axis=1)[:, ::2], torch.from_numpy(w)]
    write_gguf(path, {str(i): (array, kind) for i, array in enumerate(tensors)}, {})
    with read_gguf(path) as file:
        assert len({file.raw(name).tobytes() for name in file.tensors}) == 1
        assert file.raw("0").tobytes() == encode(w, GGMLType[kind]).tobytes()


def test_a_type_may_be_named_or_given_and_a_numpy_scalar_is_a_tensor_without_dims(path):
    w = np.ones((2, 32), np.float32)
    write_gguf(path, {"a": (w, "q4_0"), "b": (w, GGMLType.Q4_0), "c": np.float64(0.1), "d": np.array(3)}, {})
    with read_gguf(path) as file:
        assert [info.kind.name for info in file.tensors.values()] == ["Q4_0", "Q4_0", "F64", "I64"]
        assert (file.tensor("c").shape, file.tensor("c")[()], file.tensor("d")[()]) == ((), 0.1, 3)


def test_plain_values_get_the_obvious_types(path):
    metadata = {
        "u32": 7, "i32": -7, "i64": -(2**40), "i64.too": 2**40, "u64": 2**63, "f32": 0.5, "bool": True, "text": "é",
        "ints": [1, 2], "floats": [1, 0.5], "bools": [True, False], "texts": ["a", ""], "tuple": (1, -1),
        "u16": np.uint16(9), "array": np.arange(3, dtype=np.int8), "f64": np.float64(0.1), "scalars": [np.uint8(1)],
        "large": [2**31], "larger": [0, 2**64 - 1], "np.bool": np.True_, "big-endian": np.array([1, 256], ">u2"),
    }  # fmt: skip
    write_gguf(path, {}, metadata)
    found = {key: kind.name if of is None else of.name + "[]" for key, (kind, of) in read_gguf(path).types.items()}
    assert found == {
        "u32": "UINT32", "i32": "INT32", "i64": "INT64", "i64.too": "INT64", "u64": "UINT64", "f32": "FLOAT32",
        "bool": "BOOL", "text": "STRING", "ints": "INT32[]", "floats": "FLOAT32[]", "bools": "BOOL[]",
        "texts": "STRING[]", "tuple": "INT32[]", "u16": "UINT16", "array": "INT8[]", "f64": "FLOAT64",
        "scalars": "UINT8[]", "large": "UINT32[]", "larger": "UINT64[]", "np.bool": "BOOL", "big-endian": "UINT16[]",
    }  # fmt: skip
    for key, _, _, value in Parsed(path).pairs:
        assert plain(value) == plain(list(metadata[key]) if isinstance(metadata[key], tuple) else metadata[key])


# ---- whole or not at all ---------------------------------------------------------------------------------------------

GOOD = np.ones((2, 64), np.float32)
nan, infinite, high = GOOD.copy(), GOOD.copy(), GOOD.copy()
nan[1, 5], infinite[1, 5], high[1, 5] = np.nan, -np.inf, 3e38


class Unpicklable:
    """No array at all."""


BAD_TENSORS = {
    "unknown type": ({"w": (GOOD, "Q9_9")}, SchemeError, "no codec for 'Q9_9'"),
    "a type without a codec": ({"w": (GOOD, "Q5_0")}, SchemeError, "no codec for 'Q5_0'"),
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


# ---- large files -----------------------------------------------------------------------------------------------------


def peak_of(work: Any) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", ">f4"])
@pytest.mark.parametrize("kind", [kind.name for kind in CODECS if kind.block <= 32])
def test_writing_takes_at_most_three_times_the_largest_tensor(kind, dtype, path):
    w = np.ones((1000, 3200), dtype)
    write_gguf(path, {"small": (w[:1], kind)}, {})  # the imports and buffers of a first call
    assert peak_of(lambda: write_gguf(path, {"a": (w, kind), "b": (w, kind)}, {})) < 3 * w.nbytes


def test_opening_costs_the_header_and_reading_costs_the_tensor(path):
    w = np.ones((1000, 3200), np.float32)
    write_gguf(path, {str(i): (w, "Q8_0") for i in range(3)}, {"a": 1})
    files = []
    assert peak_of(lambda: files.append(read_gguf(path))) < 50_000
    assert peak_of(lambda: files[0].raw("1")) < 50_000
    scratch = blocks.THREADS * 2 * 4 * blocks.CHUNK  # two rows of float32 a thread, whatever the tensor's size
    assert peak_of(lambda: files[0].tensor("1")) < w.nbytes + scratch + 2_000_000  # two copies would be 12.8 MB more


def test_a_file_of_a_terabyte_opens_at_once(path):
    """Its data is a hole: nothing but the header takes room on the disk."""
    dims = (2**20, 2**18)
    info = struct.pack("<Q", 1) + b"w" + struct.pack("<I2QIQ", 2, *dims, 0, 0)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + info)
    try:
        os.truncate(path, 96 + 4 * dims[0] * dims[1])
    except OSError:  # a file system that has no files of this size
        dims = (2**20, 2**8)
        path.write_bytes(path.read_bytes().replace(struct.pack("<Q", 2**18), struct.pack("<Q", 2**8)))
        os.truncate(path, 96 + 4 * dims[0] * dims[1])
    files = []
    assert peak_of(lambda: files.append(read_gguf(path))) < 50_000
    assert files[0].raw("w")[-4:].tolist() == [0, 0, 0, 0]


def test_strings_of_an_array_are_decoded_only_when_asked_for(path):
    tokens = [f"token {i}" for i in range(100_000)]
    write_gguf(path, {}, {"tokens": Typed(tokens, A, V.STRING)})
    files = []
    assert peak_of(lambda: files.append(read_gguf(path))) < 600_000  # 4 bytes for where each begins
    found = files[0].metadata["tokens"]
    assert len(found) == 100_000
    assert (found[7], found[-1], found[3:5]) == ("token 7", "token 99999", ["token 3", "token 4"])
    assert list(found) == tokens == found
    assert found != tokens[1:]
    assert repr(found) == "<100000 strings: 'token 0', 'token 1', 'token 2', 'token 3', …>"
    with pytest.raises(IndexError):
        found[100_000]


def test_numeric_arrays_are_views_of_the_file_that_cannot_change_it(path):
    write_gguf(path, {"w": GOOD}, {"a": np.arange(1_000_000)})
    files = []
    assert peak_of(lambda: files.append(read_gguf(path))) < 50_000
    for view in (files[0].metadata["a"], files[0].raw("w")):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1


def test_what_was_read_outlives_the_file_and_its_replacement(path):
    write_gguf(path, {"w": GOOD}, {"a": np.arange(5), "b": ["x", "y"]})
    with read_gguf(path) as file:
        w, raw, numbers, texts = file.tensor("w"), file.raw("w"), file.metadata["a"], file.metadata["b"]
        write_gguf(path, {"w": GOOD * 2}, {})
        assert np.array_equal(file.tensor("w"), GOOD)
    assert np.array_equal(w, GOOD)
    assert raw.tobytes() == GOOD.tobytes()
    assert numbers.tolist() == [0, 1, 2, 3, 4]
    assert list(texts) == ["x", "y"]
    w[0, 0] = 5  # a fresh array
    with pytest.raises(ValueError, match="closed; read inside the with block"):
        file.tensor("w")


def test_an_unknown_tensor_says_where_the_names_are(path):
    write_gguf(path, {"w": GOOD}, {})
    with read_gguf(path) as file, pytest.raises(KeyError, match=r"no tensor 'v' in .*; the names are in \.tensors"):
        file.tensor("v")


def test_spans_cover_the_header_without_gaps(path):
    write_gguf(path, {"w": GOOD, "v": GOOD}, {"a": 1, "b": ["x"], "c": "text"}, 64)
    file, parsed = read_gguf(path), Parsed(path)
    ends = [24, *(end for _, end in file.spans.values())]
    assert [start for start, _ in file.spans.values()] == ends[:-1]
    assert (ends[-1], file.data_start) == (parsed.end_of_head, parsed.data)
    assert list(file.spans) == [
        *("metadata:a", "metadata:b", "metadata:c", "metadata:general.alignment", "tensor:w", "tensor:v")
    ]


def test_a_missing_file_and_a_folder_are_os_errors(tmp_path):
    for place in (tmp_path / "none.gguf", tmp_path):
        with pytest.raises(OSError) as caught:
            read_gguf(place)
        assert not isinstance(caught.value, FormatError)


def test_a_path_may_be_text_bytes_or_a_path(path):
    for form in (path, str(path), os.fsencode(path)):
        write_gguf(form, {"w": GOOD}, {})
        assert np.array_equal(read_gguf(form).tensor("w"), GOOD)


def test_reading_and_writing_do_not_import_torch(tmp_path):
    program = """
import sys
import numpy as np
from miniquant.gguf import read_gguf, write_gguf
write_gguf(sys.argv[1], {"w": (np.ones((4, 64), np.float32), "Q4_1")}, {"a": 1})
assert read_gguf(sys.argv[1]).tensor("w").sum() == 256
assert "torch" not in sys.modules, "torch was imported"
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "w.gguf")], check=True)
