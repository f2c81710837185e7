"""Every byte of a file has one name, its value decodes right, and a broken file is named as far as it can be."""

import struct
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import tried
from toy_file import NAMES, TOY

import miniquant.formats.fields as module
from conformance.gguf_lite_files import CORPUS
from miniquant import PRESETS, FormatError, open_gguf_lite, preset
from miniquant import write_gguf_lite as write
from miniquant.formats.fields import fields, parse
from miniquant.inspect.hexview import diff, hexview, ribbon
from miniquant.models.minigpt import MiniGPTConfig, random_model

DETERMINED = settings(deadline=None, derandomize=True, max_examples=tried(15, 50))
OTHER_FORMATS = {  # have names of their own
    *("magic is real GGUF", "a safetensors file", "a pickle", "a zip archive, as torch.save writes"),
}
SMALL = MiniGPTConfig(vocab_size=40, context=16, d_model=64, n_layers=1, n_heads=2, d_mlp=128)


@pytest.fixture
def toy(tmp_path):
    path = tmp_path / "toy.gguf-lite"
    path.write_bytes(TOY)
    return path


def covers(parts, size):
    """Whether the fields are in order, none empty, and hold every byte exactly once."""
    ends = [0, *(f.end for f in parts)]
    return ends[-1] == size and all(f.start == e and f.end > f.start for f, e in zip(parts, ends))


def test_every_field_of_the_toy_file_has_its_place_and_its_value():
    found = []
    for f in fields(TOY):
        found.append((f.name, f.start, f.end, f.value.tolist() if isinstance(f.value, np.ndarray) else f.value))
    assert found == NAMES


def test_a_path_its_bytes_and_an_open_file_have_the_same_fields(toy):
    with open_gguf_lite(toy) as file:
        assert fields(str(toy)) == fields(toy) == fields(TOY) == fields(file)


@pytest.mark.parametrize("name", PRESETS)
def test_fields_cover_every_byte_of_every_preset_and_decode_to_what_the_reader_reads(name, tmp_path):
    model = random_model(3, SMALL)
    schemes = preset(name, model)
    path = tmp_path / "m.gguf-lite"
    write(path, model, schemes)
    parts = fields(path)
    assert covers(parts, path.stat().st_size)
    by_name = {f.name: f for f in parts}
    with open_gguf_lite(path) as file:
        for tensor, info in file.tensors.items():
            prefix = f"tensor {tensor!r}: "
            assert by_name[prefix + "dims"].value == info.shape
            assert by_name[prefix + "dtype"].value == info.dtype
            assert by_name[prefix + "offset"].value == info.offset
            if prefix + "scales" in by_name:
                values, scale = file.quantized(tensor)
                np.testing.assert_array_equal(by_name[prefix + "values"].value, values)
                np.testing.assert_array_equal(by_name[prefix + "scales"].value, scale)
            else:
                np.testing.assert_array_equal(by_name[prefix + "values"].value, file.tensor(tensor))
        for key, value in file.metadata.items():
            assert by_name[f"metadata {key!r}"].value == value


@DETERMINED
@given(data=st.data())
def test_fields_cover_every_byte_exactly_once_for_random_files(data, tmp_path_factory):
    state, schemes = {}, {}
    for i in range(data.draw(st.integers(0, 4))):
        scheme = data.draw(st.sampled_from(["f32", "f16", "q8_per_channel", "q4_per_group_64"]))
        dims = data.draw(st.lists(st.integers(0, 3), max_size=3))
        if scheme.startswith("q"):
            dims = [data.draw(st.integers(0, 3)), 64 * data.draw(st.integers(1, 2))]
        name = data.draw(st.text("äb.c'\n", min_size=1, max_size=4)) + str(i)
        state[name] = np.full(dims, 0.5, np.float32)
        schemes[name] = scheme
    metadata = data.draw(st.dictionaries(st.text("kö", min_size=1), st.text("v=\r\x0b"), max_size=3))
    path = tmp_path_factory.mktemp("f") / "x"
    write(path, state, schemes, metadata)
    parts, error = parse(path)
    assert error is None
    assert covers(parts, path.stat().st_size)
    assert not {"padding", "unread"} & {f.category for f in parts}
    assert [f.value for f in parts if f.name.endswith(": name")] == list(state)
    assert {f.value for f in parts if f.category == "metadata"} == {"out,in", "64", *metadata.values()}


def test_a_gap_between_tensors_is_padding():
    gap = bytearray(TOY)
    gap[50:58] = struct.pack("<Q", 40)
    gap = bytes(gap[:92]) + bytes(6) + TOY[92:] + b"!"
    parts, error = parse(gap)
    assert error is None
    found = [f for f in parts if f.category == "padding"]
    assert [(f.start, f.end, bytes(f.raw)) for f in found] == [(92, 98, bytes(6)), (106, 107, b"!")]


def test_a_tensor_that_overlaps_is_left_out_and_those_after_it_are_shown():
    more = struct.pack("<H", 1) + b"c" + struct.pack("<BIBQ", 1, 2, 0, 8)  # 8 lies in the middle of w
    parts, error = parse(TOY[:8] + struct.pack("<I", 3) + TOY[12:58] + more + TOY[58:])
    assert error.field == "tensor 'c': offset"
    assert [f.name for f in parts[-3:]] == ["tensor 'w': scales", "tensor 'w': values", "tensor 'b': values"]


def test_an_error_shows_sixty_characters_of_a_tensor_s_name():
    name = b"n" * 61
    _, error = parse(TOY[:20] + struct.pack("<H", len(name)) + name + TOY[23:32] + b"\x09" + TOY[33:])
    assert error.field == f"tensor '{'n' * 60}': dtype"


def test_a_large_file_is_mapped_for_reading_only_and_has_the_same_fields(toy, monkeypatch):
    whole = parse(TOY)
    monkeypatch.setattr(module, "IN_MEMORY", 0)
    mapped = module.load(toy)
    assert not mapped.flags.writeable
    assert isinstance(mapped.base, np.memmap)
    assert parse(toy) == whole


@DETERMINED
@given(st.integers(0, len(TOY)), st.binary(max_size=3), st.integers(0, len(TOY)))
def test_no_file_is_too_broken_to_be_shown(at, noise, end):
    broken = (TOY[:at] + noise + TOY[at + len(noise) :])[:end]
    parts, _ = parse(broken)
    assert covers(parts, len(broken))
    for picture in (hexview(broken), ribbon(broken), diff(broken, TOY), diff(TOY, broken)):
        ET.fromstring(picture.html)
        assert repr(picture)


def test_parsing_stops_where_the_reader_stops_and_says_so(toy):
    broken = TOY[:32] + b"\x09" + TOY[33:]
    toy.write_bytes(broken)
    with pytest.raises(FormatError) as caught:
        open_gguf_lite(toy)
    parts, error = parse(broken)
    assert (error.field, error.offset) == (caught.value.field, caught.value.offset) == ("tensor 'w': dtype", 32)
    assert [(f.name, f.start, f.end) for f in parts[-2:]] == [("tensor 'w': dtype", 32, 33), ("unread", 33, 100)]
    assert "A reader stops here: tensor 'w': dtype at byte 32: found 9" in repr(hexview(broken))
    assert str(toy) not in repr(hexview(toy)), "a folder of this machine has no place in a stored output"


def test_a_truncated_tensor_shows_the_part_that_is_there():
    parts, error = parse(TOY[:95])
    assert "truncated" in str(error)
    assert (parts[-1].name, len(parts[-1]), parts[-1].value.tolist()) == ("tensor 'b': values", 3, [])
    assert "cut short: 3 of 8 bytes" in parts[-1].explanation


@pytest.mark.parametrize("name", [name for name in CORPUS if name not in OTHER_FORMATS])
def test_each_known_malformation_is_named_as_far_as_the_reader_gets(name):
    broken = CORPUS[name]
    parts, error = parse(broken.data)
    assert covers(parts, len(broken.data))
    assert broken.field in error.field
    assert broken.offset in (None, error.offset)
    assert str(error) in repr(hexview(broken.data))
