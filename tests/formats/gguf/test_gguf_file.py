"""Real GGUF files: a parser of thirty lines, the official package and ggml read what we write, and we what they do."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import tried

from miniquant.core.errors import QuantizationError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, RawTensor, Typed, ValueType, encode, read_gguf, write_gguf
from miniquant.formats.gguf.codecs import CODECS
from miniquant.formats.gguf.metadata import NUMPY

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
    if GGMLType[kind].quantized:
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


@settings(max_examples=tried(15, 60))
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


@settings(max_examples=tried(15, 60))
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


@settings(max_examples=tried(15, 50))
@given(metadata=metadata_of_any_type, tensors=tensors_of_any_type, alignment=st.sampled_from(ALIGNMENTS))
def test_ggml_reads_every_file_that_we_write(path, ggml, metadata, tensors, alignment):
    write_gguf(path, given_to_write(tensors), metadata, alignment)
    ggml.check(path)


@settings(max_examples=tried(15, 60))
@given(metadata=metadata_of_any_type, tensors=tensors_of_any_type, alignment=st.sampled_from(ALIGNMENTS))
def test_a_file_that_is_read_and_written_again_is_the_same_to_the_byte(path, metadata, tensors, alignment):
    write_gguf(path, given_to_write(tensors), metadata, alignment)
    copy = path.with_name("copy.gguf")
    with read_gguf(path) as file:
        raw = {name: RawTensor(file.raw(name), info.dtype, info.shape) for name, info in file.tensors.items()}
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
            assert (info.shape, info.dtype.name) == (array.shape, kind)
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


@settings(max_examples=tried(15, 60))
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
            assert file.tensors[name].dtype.name == kind
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
        assert file.tensors["w"].dtype.name == {"bfloat16": "BF16"}.get(
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


@pytest.mark.parametrize("kind", [kind.name for kind, codec in CODECS.items() if codec.encodes])
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
        assert [info.dtype.name for info in file.tensors.values()] == ["Q4_0", "Q4_0", "F64", "I64"]
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


def test_spans_cover_the_header_without_gaps(path):
    w = np.ones((2, 64), np.float32)
    write_gguf(path, {"w": w, "v": w}, {"a": 1, "b": ["x"], "c": "text"}, 64)
    file, parsed = read_gguf(path), Parsed(path)
    ends = [24, *(end for _, end in file.spans.values())]
    assert [start for start, _ in file.spans.values()] == ends[:-1]
    assert (ends[-1], file.data_start) == (parsed.end_of_head, parsed.data)
    assert list(file.spans) == [
        *("metadata:a", "metadata:b", "metadata:c", "metadata:general.alignment", "tensor:w", "tensor:v")
    ]


def test_integers_in_the_other_byte_order_are_written_little_endian(tmp_path):
    write_gguf(tmp_path / "m.gguf", {"i": np.array([1, 2, 300], ">i4")}, {})
    with read_gguf(tmp_path / "m.gguf") as file:
        assert file.tensor("i").tolist() == [1, 2, 300]
    assert np.array([1, 2, 300], "<i4").tobytes() in (tmp_path / "m.gguf").read_bytes()
