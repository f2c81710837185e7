"""Every byte of a real GGUF file has one name, its value is right, and a broken file is named as far as it can be."""

import struct
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import tried

from conformance.gguf_files import CORPUS
from miniquant import FormatError
from miniquant.formats.fields import fields, parse
from miniquant.formats.gguf import GGMLType, RawTensor, Typed, ValueType, encode, read_gguf, write_gguf
from miniquant.formats.gguf.codecs import CODECS
from miniquant.formats.gguf.fields import block_fields
from miniquant.inspect.hexview import diff, hexview, ribbon, super_block
from miniquant.quantization.packing import pack_scales_and_mins

DETERMINED = settings(deadline=None, derandomize=True, max_examples=tried(15, 50))


def text(value):
    """A GGUF string."""
    return struct.pack("<Q", len(value)) + value


# 1. header  2. a text, a list of two texts, three small integers  3. w is 1 × 32 in Q4_0, b two float32  4. data
METADATA = (
    text(b"k") + struct.pack("<I", 8) + text(b"vw")
    + text(b"t") + struct.pack("<IIQ", 9, 8, 2) + text(b"a") + text(b"bc")
    + text(b"n") + struct.pack("<IIQ3b", 9, 1, 3, 1, -2, 3)
    + text(b"on") + struct.pack("<I?", 7, True)
)  # fmt: skip
INFOS = (
    text(b"w") + struct.pack("<I2QIQ", 2, 32, 1, 2, 0)
    + text(b"b") + struct.pack("<IQIQ", 1, 2, 0, 32)
)  # fmt: skip
HEAD = b"GGUF" + struct.pack("<IQQ", 3, 2, 4) + METADATA + INFOS
BLOCK = np.float16(0.5).tobytes() + bytes(range(0x10, 0x20))
TOY = HEAD + bytes(-len(HEAD) % 32) + BLOCK + bytes(14) + struct.pack("<2f", 1.0, -2.0) + bytes(24)
WEIGHTS = [0.5 * (q - 8) for q in [*range(16), *[1] * 16]]
SIZES = [  # name, length, value
    ("header.magic", 4, 0x46554747),
    ("header.version", 4, 3),
    ("header.n_tensors", 8, 2),
    ("header.n_kv", 8, 4),
    ("key 0: length", 8, 1),
    ("metadata 'k': key", 1, "k"),
    ("metadata 'k': type", 4, ValueType.STRING),
    ("metadata 'k': length", 8, 2),
    ("metadata 'k': value", 2, "vw"),
    ("key 1: length", 8, 1),
    ("metadata 't': key", 1, "t"),
    ("metadata 't': type", 4, ValueType.ARRAY),
    ("metadata 't': element type", 4, ValueType.STRING),
    ("metadata 't': items", 8, 2),
    ("metadata 't': elements", 19, ["a", "bc"]),
    ("key 2: length", 8, 1),
    ("metadata 'n': key", 1, "n"),
    ("metadata 'n': type", 4, ValueType.ARRAY),
    ("metadata 'n': element type", 4, ValueType.INT8),
    ("metadata 'n': items", 8, 3),
    ("metadata 'n': elements", 3, [1, -2, 3]),
    ("key 3: length", 8, 2),
    ("metadata 'on': key", 2, "on"),
    ("metadata 'on': type", 4, ValueType.BOOL),
    ("metadata 'on': value", 1, True),
    ("tensor 0: name: length", 8, 1),
    ("tensor 'w': name", 1, "w"),
    ("tensor 'w': n_dims", 4, 2),
    ("tensor 'w': dims", 16, (32, 1)),
    ("tensor 'w': type", 4, GGMLType.Q4_0),
    ("tensor 'w': offset", 8, 0),
    ("tensor 1: name: length", 8, 1),
    ("tensor 'b': name", 1, "b"),
    ("tensor 'b': n_dims", 4, 1),
    ("tensor 'b': dims", 8, (2,)),
    ("tensor 'b': type", 4, GGMLType.F32),
    ("tensor 'b': offset", 8, 32),
    ("padding before the data", -len(HEAD) % 32, bytes(-len(HEAD) % 32)),
    ("tensor 'w': data", 18, [WEIGHTS]),
    ("padding after 'w'", 14, bytes(14)),
    ("tensor 'b': data", 8, [1.0, -2.0]),
    ("padding after 'b'", 24, bytes(24)),
]


def place(name):
    """Where a field of the toy begins."""
    at = 0
    for field, size, _ in SIZES:
        if field == name:
            return at
        at += size
    raise KeyError(name)


def covers(parts, size):
    """Whether the fields are in order, none empty, and hold every byte exactly once."""
    ends = [0, *(f.end for f in parts)]
    return ends[-1] == size and all(f.start == e and f.end > f.start for f, e in zip(parts, ends))


def plain(value):
    return value.tolist() if isinstance(value, np.ndarray) else value


def test_every_field_of_the_toy_file_has_its_place_and_its_value():
    parts, error = parse(TOY)
    assert error is None
    assert [(f.name, len(f), plain(f.value)) for f in parts] == SIZES
    assert covers(parts, len(TOY))
    assert len({f.name for f in parts}) == len(parts)


def test_a_path_its_bytes_and_an_open_file_have_the_same_fields(tmp_path):
    path = tmp_path / "toy.gguf"
    path.write_bytes(TOY)
    with read_gguf(path) as file:
        assert fields(str(path)) == fields(path) == fields(TOY) == fields(file)
        assert repr(hexview(file)) == repr(hexview(path))


@DETERMINED
@given(data=st.data())
def test_fields_cover_every_byte_and_decode_to_what_the_reader_reads_for_random_files(data, tmp_path_factory):
    names = st.text("äb.c'\n", min_size=1, max_size=4)
    tensors = {}
    for i in range(data.draw(st.integers(0, 4))):
        kind = data.draw(st.sampled_from(["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]))
        shape = data.draw(st.lists(st.integers(0, 3), min_size=int(kind == "BF16"), max_size=3))
        shape = [*shape, 32 * data.draw(st.integers(1, 3))] if GGMLType[kind].quantized else shape
        w = np.random.default_rng(i).normal(size=shape).astype(np.float32)
        tensors[data.draw(names) + str(i)] = (w, kind)
    value = st.one_of(
        st.booleans(),
        st.integers(-(2**31), 2**32 - 1),
        st.text("v=ö\r", max_size=5),
        st.lists(st.text("tö", max_size=3), min_size=1, max_size=5),
        st.lists(st.integers(-9, 9), min_size=1, max_size=9),
        st.just(Typed([], ValueType.ARRAY, ValueType.FLOAT64)),
    )
    metadata = data.draw(st.dictionaries(st.text("k._", min_size=1), value, max_size=4))
    alignment = data.draw(st.sampled_from([8, 32, 64]))
    path = tmp_path_factory.mktemp("f") / "x"
    write_gguf(path, tensors, metadata, alignment)
    parts, error = parse(path)
    assert error is None
    assert covers(parts, path.stat().st_size)
    by_name = {f.name: f for f in parts}
    with read_gguf(path) as file:
        for name, info in file.tensors.items():
            assert by_name[f"tensor {name!r}: type"].value == info.dtype
            assert by_name[f"tensor {name!r}: offset"].value == info.offset
            if info.shape:
                assert by_name[f"tensor {name!r}: dims"].value == info.shape[::-1]
            if info.n_bytes:
                np.testing.assert_array_equal(by_name[f"tensor {name!r}: data"].value, file.tensor(name))
                assert by_name[f"tensor {name!r}: data"].start == file.data_start + info.offset
        for key, (kind, of) in file.types.items():
            assert by_name[f"metadata {key!r}: type"].value == kind
            last = by_name.get(f"metadata {key!r}: {'elements' if of is not None else 'value'}")
            found = list(file.metadata[key]) if of is not None else file.metadata[key]
            assert plain(last.value) == found if last else len(found) == 0
    for picture in (hexview(path, 0, 2000), ribbon(path)):
        ET.fromstring(picture.html)
        assert repr(picture)


@DETERMINED
@given(st.integers(0, len(TOY)), st.binary(max_size=3), st.integers(0, len(TOY)))
def test_no_file_is_too_broken_to_be_shown(at, noise, end):
    broken = (TOY[:at] + noise + TOY[at + len(noise) :])[:end]
    parts, _ = parse(broken)
    assert covers(parts, len(broken))
    for picture in (hexview(broken), ribbon(broken), diff(broken, TOY), diff(TOY, broken)):
        ET.fromstring(picture.html)
        assert repr(picture)


def changed(name, form, *values):
    """The toy with one field overwritten."""
    at, data = place(name), struct.pack(form, *values)
    return TOY[:at] + data + TOY[at + len(data) :]


@pytest.mark.parametrize(
    ("broken", "field", "named"),
    [
        (changed("header.magic", "4s", b"GGUX"), "header.magic", None),
        (changed("header.version", "<I", 1), "header.version", "header.version"),
        (changed("header.version", ">I", 3), "header.version", "header.version"),
        (changed("header.n_tensors", "<Q", 2**60), "header.n_tensors", "header.n_kv"),
        (changed("header.n_kv", "<q", -1), "header.n_kv", "header.n_kv"),
        (changed("key 1: length", "<Q", 2**63), "key 1: length", "key 1: length"),
        (changed("metadata 't': key", "c", b"k"), "key 1", "key 1: length"),
        (changed("metadata 'k': type", "<I", 13), "metadata 'k': type", "metadata 'k': type"),
        (changed("metadata 't': element type", "<I", 9), "element type", "metadata 't': element type"),
        (changed("metadata 't': items", "<Q", 2**61), "metadata 't': length", "metadata 't': items"),
        (changed("metadata 'n': items", "<Q", 2**61), "metadata 'n': length", "metadata 'n': items"),
        (changed("metadata 'on': value", "B", 2), "metadata 'on'", "metadata 'on': value"),
        (changed("tensor 'w': n_dims", "<I", 5), "tensor 'w': n_dims", "tensor 'w': n_dims"),
        (changed("tensor 'w': dims", "<q", -32), "tensor 'w': dims", "tensor 'w': dims"),
        (changed("tensor 'w': dims", "<Q", 33), "tensor 'w': dims", "tensor 'w': dims"),
        (changed("tensor 'w': type", "<I", 4), "tensor 'w': type", "tensor 'w': type"),
        (changed("tensor 'w': offset", "<Q", 1), "tensor 'w': offset", "tensor 'w': offset"),
        (changed("tensor 'b': name", "c", b"w"), "tensor 1: name", "tensor 1: name: length"),
        (changed("tensor 'b': offset", "<Q", 64), "tensor 'b': offset", "tensor 'w': data"),
        (changed("tensor 'b': offset", "<Q", 0), "tensor 'w': offset", "tensor 'b': offset"),
        (TOY[: place("tensor 'b': data") + 7], "tensor 'b': offset", "tensor 'b': data"),
        (TOY[: place("metadata 'on': value")], "metadata 'on'", "metadata 'on': type"),
        (TOY[:23], "header", "header.n_tensors"),
    ],
)
def test_each_malformation_is_named_as_far_as_the_reader_gets(broken, field, named, tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(broken)
    parts, error = parse(broken)
    assert covers(parts, len(broken))
    if named is not None:
        with pytest.raises(FormatError) as caught:
            read_gguf(path)
        assert (error.field, error.offset) == (caught.value.field, caught.value.offset)
        assert named in [f.name for f in parts]
    assert field in error.field
    assert str(error) in repr(hexview(broken))
    assert str(tmp_path) not in repr(hexview(path)), "a folder of this machine has no place in a stored output"


@pytest.mark.parametrize("name", CORPUS)
def test_each_malformation_of_the_corpus_is_shown_with_the_readers_error(name, tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(CORPUS[name].data)
    parts, error = parse(path)
    assert covers(parts, len(CORPUS[name].data))
    if CORPUS[name].data[:4] == b"GGUF":
        assert CORPUS[name].field in error.field
        assert str(error) in repr(hexview(path))
    ET.fromstring(ribbon(path).html)


def test_a_truncated_tensor_shows_the_part_that_is_there():
    parts, _ = parse(TOY[: place("tensor 'b': data") + 7])
    assert (parts[-1].name, len(parts[-1]), parts[-1].value.tolist()) == ("tensor 'b': data", 7, [1.0])
    assert "cut short: 7 of 8 bytes" in parts[-1].explanation


def test_the_text_of_a_stretch_of_blocks_shows_the_weights_that_lie_in_it(tmp_path):
    path = tmp_path / "two.gguf"
    w = np.repeat(np.array([[-8.0], [-16.0]], np.float32), 32, 1) * np.tile([1, 0.5], 16)
    write_gguf(path, {"w": (w.astype(np.float32), "Q4_0")}, {})
    data = next(f for f in fields(path) if f.name == "tensor 'w': data")
    assert data.text(data.start + 18, data.end).startswith("d, qs of block 1; [1, 0] to [1, 31]: -16, -8, -16")
    assert data.text(data.start, data.start + 1).startswith("d of block 0; [0, 0] to [0, 31]: -8, -4")


def test_the_text_of_a_stretch_of_strings_shows_those_that_lie_in_it(tmp_path):
    path = tmp_path / "many.gguf"
    write_gguf(path, {}, {"t": [f"token{i}" for i in range(100)]})
    elements = next(f for f in fields(path) if f.name == "metadata 't': elements")
    assert elements.text() == ", ".join(f"[{i}] 'token{i}'" for i in range(6)) + ", …"
    assert elements.text(elements.start + 14 * 3, elements.start + 14 * 4) == "[3] 'token3'"


def test_a_string_of_more_than_forty_characters_shows_its_first_thirty_nine(tmp_path):
    path = tmp_path / "long.gguf"
    write_gguf(path, {}, {"t": ["a" * 40, "b" * 41]})
    elements = next(f for f in fields(path) if f.name == "metadata 't': elements")
    assert elements.text() == f"[0] '{'a' * 40}', [1] '{'b' * 39}…'"


def test_the_data_of_a_type_without_a_codec_is_named_by_its_type(tmp_path):
    path, kind = tmp_path / "raw.gguf", GGMLType.IQ1_S
    assert kind not in CODECS
    write_gguf(path, {"w": RawTensor(np.zeros(2 * kind.n_bytes, np.uint8), kind, (2, kind.block))}, {})
    data = next(f for f in fields(path) if f.name == "tensor 'w': data")
    assert data.text() == "2 blocks of type IQ1_S"


def test_the_difference_of_two_files_is_named_by_field():
    at = place("tensor 'w': data") + 2
    other = TOY[:at] + b"\xff" + TOY[at + 1 :]
    found = diff(other, TOY)
    assert (found.offset, found.field) == (at, "tensor 'w': data")


def test_the_ribbon_shows_metadata_infos_and_every_tensor_with_its_type():
    shown = repr(ribbon(TOY))
    assert "tensor 'w'   Q4_0     18" in shown
    assert "tensor 'b'   F32       8" in shown
    assert "scales of the next" not in ribbon(TOY).html
    for part in ("header", "metadata", "descriptors", "padding"):
        assert part in shown


# ---- K-quants --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [k for k, codec in CODECS.items() if codec.super_block], ids=lambda kind: kind.name)
def test_the_parts_of_a_super_block_are_named_and_each_byte_is_in_one(kind):
    w = np.random.default_rng(0).standard_normal(256).astype(np.float32)
    raw = encode(w, kind) if CODECS[kind].encodes else np.arange(kind.n_bytes).astype(np.uint8)
    parts = block_fields(raw, kind)
    assert covers(parts, kind.n_bytes)
    assert "d" in {part.name for part in parts}
    shown = super_block(raw, kind)
    assert all(part.name in repr(shown) for part in parts)
    ET.fromstring(shown.html)
    d = next(part for part in parts if part.name == "d")
    assert d.value == np.frombuffer(raw.tobytes()[d.start : d.end], "<f2")[0]


def test_the_scales_and_mins_of_q4_k_are_spelled_out():
    raw = np.zeros(144, np.uint8)
    raw[4:16] = pack_scales_and_mins(np.arange(8, dtype=np.uint8), np.arange(50, 58, dtype=np.uint8))
    scales = next(part for part in block_fields(raw, GGMLType.Q4_K) if part.name == "scales")
    assert "scales 0 1 2 3 4 5 6 7; mins 50 51 52 53 54 55 56 57" in scales.explanation


@pytest.mark.parametrize("raw", [np.zeros(143, np.uint8), np.zeros((1, 144), np.uint8)])
def test_a_super_block_of_another_size_is_refused(raw):
    with pytest.raises(ValueError, match="a super-block of Q4_K has 144 bytes"):
        super_block(raw, GGMLType.Q4_K)
    with pytest.raises(ValueError, match="a super-block of Q8_0"):
        super_block(np.zeros(34, np.uint8), GGMLType.Q8_0)


def test_a_stretch_of_a_k_quant_names_the_parts_that_lie_in_it(tmp_path):
    path = tmp_path / "two.gguf"
    write_gguf(path, {"w": (np.ones((2, 256), np.float32), "Q6_K")}, {})
    data = next(f for f in fields(path) if f.name == "tensor 'w': data")
    assert data.text(data.start, data.start + 16).startswith("ql of block 0; [0, 0] to [0, 255]: 1, 1")
    assert data.text(data.start + 191, data.start + 211).startswith("qh, scales, d of block 0, ql of block 1; ")
    assert "ql, 128 bytes" in data.explanation
    rows = repr(hexview(path, data.start, 212)).splitlines()[1:]
    assert rows[0].endswith("tensor 'w': data (ql of block 0)")
    assert rows[13].endswith("… tensor 'w': data (d of block 0, ql of block 1)")
