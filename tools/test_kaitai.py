"""Run by ``tools/kaitai.py``: the parsers that Kaitai compiles from ``formats/*.ksy``, and this library's fields.

A parser is compared byte range by byte range: what it read where, against ``fields``. Padding is left out.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import test_gguf_file
import test_gguf_io
import written_files
from bump_models import SMALL, TINY, write_llama, write_qwen2
from hypothesis import given, settings
from hypothesis import strategies as st
from kaitai import compiled
from test_bump_malformed import tiny_gpt2
from toy_lite import TOY_BYTES

from conformance import gguf_files, gguf_lite_files
from miniquant import open_gguf_lite, write_gguf_lite
from miniquant.formats.bump import write_bump
from miniquant.formats.bump.config import read_config
from miniquant.formats.bump.types import ARCHITECTURES, BumpConfig, BumpType, parts
from miniquant.formats.fields import parse
from miniquant.formats.gguf import GGMLType, RawTensor, ValueType, read_gguf, write_gguf
from miniquant.formats.gguf_lite.types import DType

Read = list[tuple[int, int, Any]]  # (first byte, the one after the last, value)


def opened(name: str, data: bytes) -> Any:
    """A parser's object for a whole file."""
    found = compiled().parsers[name](compiled().runtime.KaitaiStream(io.BytesIO(data)))
    found._read()
    return found


def refusals() -> tuple[type[Exception], ...]:
    """What a parser raises for a malformed file: it ends too early, a rule is broken, or a text is not UTF-8."""
    return EOFError, compiled().runtime.ValidationFailedError, UnicodeDecodeError


def item(owner: Any, name: str, base: int = 0, field: str | None = None) -> tuple[int, int, Any]:
    """A field of a parser's object: where it lies, and its value."""
    value = getattr(owner, name)
    place = owner._debug[field or name]
    return base + place["start"], base + place["end"], value


def numbered(value: Any) -> Any:
    """A value as both sides can be compared: numbers of enums, floats by their bits, plain lists of plain values."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [numbered(each) for each in value]
    if hasattr(value, "_read"):  # a truth value, a text, a dim
        return numbered(value.value)
    if isinstance(value, float):
        return "nan" if value != value else np.float64(value).tobytes()
    return int(value) if isinstance(value, int) else value


def listed(found: Iterator[tuple[int, int, Any]]) -> Read:
    """What a parser read, in the order of the file, without what has no bytes."""
    return sorted((start, end, numbered(value)) for start, end, value in found if end > start)


# ---- what a parser read ----------------------------------------------------------------------------------------------


def of_gguf(file: Any) -> Iterator[tuple[int, int, Any]]:
    start, end, magic = item(file, "magic")
    yield start, end, int.from_bytes(magic, "little")
    for name in ("version", "n_tensors", "n_kv"):
        yield item(file, name)
    for pair in file.metadata:
        for name in ("length", "key", "type"):
            yield item(pair, name)
        if not hasattr(pair.value, "_read"):
            yield item(pair, "value")
            continue
        for name in pair.value.SEQ_FIELDS:
            yield item(pair.value, name)
    for info in file.infos:
        for name in ("length", "name", "n_dims", "dims", "type", "offset"):
            yield item(info, name)
    for tensor in file.tensors:
        if tensor.data is not None:
            yield item(tensor, "data", field="_m_data")


def of_gguf_lite(file: Any) -> Iterator[tuple[int, int, Any]]:
    start, end, magic = item(file, "magic")
    yield start, end, int.from_bytes(magic, "little")
    for name in ("version", "n_tensors", "metadata_len"):
        yield item(file, name)
    base = file._debug["metadata"]["start"]
    for place, line in zip(file.metadata._debug["lines"]["arr"], file.metadata.lines):
        yield base + place["start"], base + place["end"], line.value
    for descriptor in file.descriptors:
        for name in ("name_len", "name", "n_dims", "dims", "dtype", "offset"):
            yield item(descriptor, name)
    for tensor in file.tensors:
        for name in ("scales", "values"):
            if getattr(tensor, name) is not None:
                yield item(tensor, name, field=f"_m_{name}")


def of_bump(file: Any) -> Iterator[tuple[int, int, Any]]:
    start, end, magic = item(file, "magic")
    yield start, end, magic.decode()
    for name in file.SEQ_FIELDS[1:-1]:
        start, end, value = item(file, name)
        yield start, end, bytes(value) if name == "reserved" else value
    for place, value in zip(file._debug["types"]["arr"], file.types):
        yield place["start"], place["end"], value


def model_of(file: Any, config: BumpConfig) -> dict[str, Any]:
    """A bump file's tensors by their names, read on from the table of types."""
    sizes = config.kv_heads, config.intermediate, config.rope_factors, config.layout == "ckernel"
    model = type(file).Model(*sizes, file._io, file, file)
    model._read()
    found = {}
    for name in model.SEQ_FIELDS:
        value = getattr(model, name, None)
        if name == "layers":
            found |= {
                f"layers.{i}.{part}": getattr(layer, part) for i, layer in enumerate(value) for part in layer.SEQ_FIELDS
            }
        elif hasattr(value, "data"):
            found[name] = value
    return found


# ---- what our own fields say -----------------------------------------------------------------------------------------


def ours(data: bytes, beside: dict[str, bytes]) -> Read:
    """The fields of a valid file without its padding; weights as bytes, scales as the bits of each."""
    found, error = parse(data, beside)
    assert error is None, error
    read = []
    for field in found:
        value = field.value
        if field.category == "scales":
            value = field.raw.view("<u2")
        elif field.category == "values":
            value = bytes(field.raw)
        if field.category != "padding":
            read.append((field.start, field.end, numbered(value)))
    return read


FOUND: dict[str, Callable[[Any], Iterator[tuple[int, int, Any]]]]
FOUND = {"gguf": of_gguf, "gguf_lite": of_gguf_lite, "bump": of_bump}


def read_all(name: str, data: bytes, config: BumpConfig | None = None) -> tuple[Any, Read]:
    """The parser's object and everything that it read; of a bump file with its config, the tensors too."""
    file = opened(name, data)
    read = listed(FOUND[name](file))
    if config is not None:
        tensors = model_of(file, config)
        assert [part.name.lower() for part in parts(config)] == list(tensors)
        read += listed(item(tensor, "data") for tensor in tensors.values())
    return file, read


def assert_same_fields(name: str, data: bytes, beside: dict[str, bytes] | None = None) -> Any:
    """Both sides read the same values from the same bytes; the parser's object is returned."""
    config = read_config(data, config=beside["config.json"]).config if beside else None
    file, read = read_all(name, data, config)
    assert read == ours(data, beside or {})
    return file


# ---- valid files -----------------------------------------------------------------------------------------------------


def written(prefix: str) -> list[str]:
    return [name for name in written_files.FILES if name.startswith(prefix)]


@pytest.mark.parametrize("name", written("gguf "))
def test_a_gguf_file_that_is_written_here_has_the_same_fields(name, tmp_path):
    assert_same_fields("gguf", written_files.FILES[name](tmp_path))


@pytest.mark.parametrize("name", written("gguf-lite "))
def test_a_gguf_lite_file_that_is_written_here_has_the_same_fields(name, tmp_path):
    assert_same_fields("gguf_lite", written_files.FILES[name](tmp_path))


@pytest.mark.parametrize("name", written_files.MODELS)
def test_a_bump_file_that_is_written_here_has_the_same_fields(name):
    pair = written_files.bump_pair(written_files.MODELS[name])
    assert_same_fields("bump", pair["weights.bump"], pair)


@pytest.mark.parametrize("kind", GGMLType)
def test_a_tensor_of_any_type_has_its_place_its_shape_and_its_bytes(kind, tmp_path):
    raw = np.arange(6 * kind.n_bytes).astype(np.uint8)
    tensors = {"a": RawTensor(raw, kind, (3, 2 * kind.block)), "b": RawTensor(raw, kind, (2, 3, 1, kind.block))}
    tensors["none"] = RawTensor(raw[:0], kind, (0, kind.block))
    write_gguf(tmp_path / "m.gguf", tensors, {})
    file = assert_same_fields("gguf", (tmp_path / "m.gguf").read_bytes())
    assert [tensor.info.type.name.upper() for tensor in file.tensors] == 3 * [kind.name]
    assert [tensor.data for tensor in file.tensors] == [raw.tobytes(), raw.tobytes(), None]


@pytest.mark.parametrize(
    ("name", "enum", "members"),
    [
        ("gguf", "TensorType", GGMLType),
        ("gguf", "ValueType", ValueType),
        ("gguf_lite", "Dtype", DType),
        ("bump", "TensorType", [kind for kind in BumpType if kind.ggml is not None]),
        ("bump", "Architecture", [SimpleNamespace(name=name, value=code) for code, name in ARCHITECTURES.items()]),
    ],
)
def test_the_names_of_the_types_are_ours(name, enum, members):
    found = {member.value: member.name.upper() for member in getattr(compiled().parsers[name], enum)}
    assert found == {member.value: member.name.upper() for member in members}


@pytest.mark.parametrize("name", gguf_files.LENIENT)
def test_what_our_reader_takes_beyond_what_it_writes_has_the_same_fields(name):
    assert_same_fields("gguf", gguf_files.LENIENT[name])


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(
    test_gguf_file.metadata_of_any_type, test_gguf_file.tensors_of_any_type, st.sampled_from(test_gguf_file.ALIGNMENTS)
)
def test_any_gguf_file_has_the_same_fields(metadata, tensors, alignment):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.gguf"
        write_gguf(path, test_gguf_file.given_to_write(tensors), metadata, alignment)
        file = assert_same_fields("gguf", path.read_bytes())
    assert file.alignment == alignment


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(test_gguf_io.state_dicts(), st.dictionaries(test_gguf_io.keys, test_gguf_io.values, max_size=3))
def test_any_gguf_lite_file_has_the_same_fields_and_metadata(model, metadata):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.gguf-lite"
        write_gguf_lite(path, *model, {k: v for k, v in metadata.items() if k not in test_gguf_io.own_keys})
        file = assert_same_fields("gguf_lite", path.read_bytes())
        with open_gguf_lite(path) as other:
            assert {line.key: line.value for line in file.metadata.lines} == other.metadata


LINEAR = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.5}
MODELS: dict[str, tuple[Callable[..., Any], str]] = {
    "a tiny llama": (partial(write_llama, sizes=TINY), "aligned"),
    "a llama with rope factors": (partial(write_llama, sizes=TINY, more=LINEAR), "aligned"),
    "a llama with a head": (
        partial(write_llama, sizes=TINY, extra={"output.weight": np.ones((3, 4), "f4")}),
        "aligned",
    ),
    "a llama with wide heads": (
        partial(write_llama, sizes=TINY, more={"llama.attention.key_length": 6}, head_dim=6),
        "aligned",
    ),
    "a larger llama": (partial(write_llama, sizes=SMALL, kinds={"ffn": "Q4_K", "attn_q": "Q6_K"}), "aligned"),
    "a qwen2": (partial(write_qwen2, sizes=TINY | {"layers": 3}), "aligned"),
    "a gpt2": (tiny_gpt2, "aligned"),
    "a tiny llama of C-Kernel-Engine": (partial(write_llama, sizes=TINY), "ckernel"),
    "a larger llama of C-Kernel-Engine": (partial(write_llama, sizes=SMALL, kinds={"": "Q4_K"}), "ckernel"),
}


def bump_of(name: str, folder: Path) -> dict[str, bytes]:
    write, layout = MODELS[name]
    write(folder / "m.gguf")
    write_bump(folder / "m.gguf", folder / "weights.bump", layout)
    return {name: (folder / name).read_bytes() for name in ("weights.bump", "config.json")}


@pytest.mark.parametrize("name", MODELS)
def test_the_tensors_of_a_model_have_the_same_names_and_bytes(name, tmp_path):
    pair = bump_of(name, tmp_path)
    assert_same_fields("bump", pair["weights.bump"], pair)


# ---- files that are not valid ----------------------------------------------------------------------------------------

SMALL_FILES = {
    "gguf": [gguf_files.VALID, *gguf_files.LENIENT.values()],
    "gguf_lite": [
        *(gguf_lite_files.VALID, TOY_BYTES),
        gguf_lite_files.one(bytes(2 + 64), dims=(1, 64), dtype=gguf_lite_files.Q8),
        gguf_lite_files.one(bytes(2 + 32), dims=(1, 64), dtype=gguf_lite_files.Q4),
    ],
}


def assert_refused(name: str, data: bytes, config: Any = None) -> None:
    with pytest.raises(refusals()):
        read_all(name, data, config)


def assert_not_opened(name: str, data: bytes) -> None:
    """Refused before any weights are asked for."""
    with pytest.raises(refusals()):
        opened(name, data)


@pytest.mark.parametrize("name", SMALL_FILES)
def test_a_file_that_is_cut_before_the_end_of_its_data_is_refused_wherever_it_is_cut(name):
    for data in SMALL_FILES[name]:
        read_all(name, data)
        for length in range(max(end for _, end, _ in ours(data, {}))):
            assert_not_opened(name, data[:length])


def test_a_gguf_file_of_every_type_that_is_cut_anywhere_is_refused(tmp_path):
    raw = {kind: np.zeros(kind.n_bytes, np.uint8) for kind in GGMLType}
    tensors = {kind.name: RawTensor(raw[kind], kind, (kind.block,)) for kind in GGMLType}
    data = written_files.gguf_metadata(tmp_path)
    with read_gguf(data) as file:
        write_gguf(tmp_path / "all.gguf", tensors, file.typed(), 8)
    data = (tmp_path / "all.gguf").read_bytes()
    end = max(end for _, end, _ in ours(data, {}))
    read_all("gguf", data[:end])
    for length in range(end):
        assert_not_opened("gguf", data[:length])


@pytest.mark.parametrize("name", ["a tiny llama", "a gpt2", "a tiny llama of C-Kernel-Engine"])
def test_a_bump_file_that_is_cut_anywhere_or_continued_is_refused(name, tmp_path):
    pair = bump_of(name, tmp_path)
    data, config = pair["weights.bump"], read_config(pair["weights.bump"], config=pair["config.json"]).config
    read_all("bump", data, config)
    for length in range(len(data)):
        assert_refused("bump", data[:length], config)
    assert_refused("bump", data + bytes(1), config)
    assert_refused("bump", data + bytes(64), config)


@pytest.mark.parametrize(
    "change", [{"kv_heads": 2}, {"intermediate": 4}, {"rope_factors": True}, {"layout": "ckernel"}]
)
def test_a_model_of_other_sizes_is_not_in_the_file(change, tmp_path):
    pair = bump_of("a larger llama", tmp_path)
    config = read_config(pair["weights.bump"], config=pair["config.json"]).config
    change = {key: 2 * getattr(config, key) if type(value) is int else value for key, value in change.items()}
    assert_refused("bump", pair["weights.bump"], config._replace(**change))


# Things that take a look through a list, which no expression of Kaitai's can take.
NOT_SEEN = {"a key twice", "a name twice", "two tensors at one offset", "two tensors that overlap"}
NOT_SEEN |= {"a tensor inside another", "the first of three over the last"}
NOT_SEEN_IN_LITE = {"metadata with a key twice", "metadata with a line twice", "the same name twice"}
NOT_SEEN_IN_LITE |= {"the same name first and third", "two tensors at one offset", "two tensors overlap by one byte"}
NOT_SEEN_IN_LITE |= {"one tensor inside another", "the first of three overlaps the last"}
NOT_SEEN_IN_LITE |= {"a scalar in the middle of a tensor", "an overlap behind an empty tensor"}


@pytest.mark.parametrize("name", gguf_files.CORPUS)
def test_a_malformed_gguf_file_is_refused_unless_that_takes_a_look_through_a_list(name):
    if name in NOT_SEEN:
        read_all("gguf", gguf_files.CORPUS[name].data)
    else:
        assert_refused("gguf", gguf_files.CORPUS[name].data)


@pytest.mark.parametrize("name", gguf_lite_files.CORPUS)
def test_a_malformed_gguf_lite_file_is_refused_unless_that_takes_a_look_through_a_list(name):
    if name in NOT_SEEN_IN_LITE:
        read_all("gguf_lite", gguf_lite_files.CORPUS[name].data)
    else:
        assert_refused("gguf_lite", gguf_lite_files.CORPUS[name].data)
