"""The pictures of bytes: every byte has one name, broken files are shown too, and the HTML is sound."""

import io
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miniquant import PRESETS, FormatError, open_gguf_lite, preset, quantize_per_channel, quantize_per_group
from miniquant import write_gguf_lite as write
from miniquant.fields import parse
from miniquant.hexview import diff, fields, hexview, microscope, nibbles, ribbon
from miniquant.model import MiniGPTConfig, random_model

DETERMINED = settings(deadline=None, derandomize=True, max_examples=60)
SMALL = MiniGPTConfig(vocab_size=40, context=16, d_model=64, n_layers=1, n_heads=2, d_mlp=128)

# 1. header  2. one line of metadata  3. two descriptors  4. data: w is 1 × 64 in Q4, b two float32
TOY = (
    b"TFLG" + struct.pack("<3I", 1, 2, 4) + b"a=bc"
    + struct.pack("<H", 1) + b"w" + struct.pack("<B2IBQ", 2, 1, 64, 3, 0)
    + struct.pack("<H", 1) + b"b" + struct.pack("<BIBQ", 1, 2, 0, 34)
    + np.float16(0.5).tobytes() + bytes([0x21, 0x8F]) + bytes(30)
    + struct.pack("<2f", 1.0, -2.0)
)  # fmt: skip
NAMES = [
    ("header.magic", 0, 4, 0x474C4654),
    ("header.version", 4, 8, 1),
    ("header.n_tensors", 8, 12, 2),
    ("header.metadata_len", 12, 16, 4),
    ("metadata 'a'", 16, 20, "bc"),
    ("descriptor 0: name_len", 20, 22, 1),
    ("tensor 'w': name", 22, 23, "w"),
    ("tensor 'w': n_dims", 23, 24, 2),
    ("tensor 'w': dims", 24, 32, (1, 64)),
    ("tensor 'w': dtype", 32, 33, 3),
    ("tensor 'w': offset", 33, 41, 0),
    ("descriptor 1: name_len", 41, 43, 1),
    ("tensor 'b': name", 43, 44, "b"),
    ("tensor 'b': n_dims", 44, 45, 1),
    ("tensor 'b': dims", 45, 49, (2,)),
    ("tensor 'b': dtype", 49, 50, 0),
    ("tensor 'b': offset", 50, 58, 34),
    ("tensor 'w': scales", 58, 60, [[0.5]]),
    ("tensor 'w': values", 60, 92, [[1, 2, -1, -8] + [0] * 60]),
    ("tensor 'b': values", 92, 100, [1.0, -2.0]),
]


@pytest.fixture
def toy(tmp_path):
    path = tmp_path / "toy.gguf-lite"
    path.write_bytes(TOY)
    return path


def covers(parts, size):
    """Whether the fields are in order, none empty, and hold every byte exactly once."""
    ends = [0, *(f.end for f in parts)]
    return ends[-1] == size and all(f.start == e and f.end > f.start for f, e in zip(parts, ends))


# ---- fields ----------------------------------------------------------------------------------------------------------


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
            assert by_name[prefix + "dims"].value == info.dims
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
    assert not {"padding", "unread"} & {f.kind for f in parts}
    assert [f.value for f in parts if f.name.endswith(": name")] == list(state)
    assert {f.value for f in parts if f.kind == "metadata"} == {"out,in", "64", *metadata.values()}


def test_a_gap_between_tensors_is_padding():
    gap = bytearray(TOY)
    gap[50:58] = struct.pack("<Q", 40)
    gap = bytes(gap[:92]) + bytes(6) + TOY[92:] + b"!"
    parts, error = parse(gap)
    assert error is None
    assert [(f.start, f.end) for f in parts if f.kind == "padding"] == [(92, 98), (106, 107)]


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


# ---- hexview ---------------------------------------------------------------------------------------------------------


def test_the_text_of_the_toy_file_spelled_out(toy):
    w, b = "tensor 'w'", "tensor 'b'"
    lines = [
        "toy.gguf-lite, 100 bytes: bytes 0 to 99",
        "00000000  54 46 4c 47 01 00 00 00 02 00 00 00 04 00 00 00  TFLG............  "
        "header.magic, header.version, header.n_tensors, header.metadata_len",
        "00000010  61 3d 62 63 01 00 77 02 01 00 00 00 40 00 00 00  a=bc..w.....@...  "
        f"metadata 'a', descriptor 0: name_len, {w}: name, {w}: n_dims, {w}: dims",
        "00000020  03 00 00 00 00 00 00 00 00 01 00 62 01 02 00 00  ...........b....  "
        f"{w}: dtype, {w}: offset, descriptor 1: name_len, {b}: name, {b}: n_dims, {b}: dims",
        '00000030  00 00 22 00 00 00 00 00 00 00 00 38 21 8f 00 00  .."........8!...  '
        f"… {b}: dims, {b}: dtype, {b}: offset, {w}: scales, {w}: values",
        f"00000040  {'00 ' * 16} ................  … {w}: values",
        f"00000050  00 00 00 00 00 00 00 00 00 00 00 00 00 00 80 3f  ...............?  … {w}: values, {b}: values",
        f"00000060  00 00 00 c0{' ' * 37} ....{' ' * 12}  … {b}: values",
    ]
    assert repr(hexview(toy)) == "\n".join(lines)


def test_a_stretch_keeps_its_bytes_under_the_columns_of_the_whole():
    whole, part = repr(hexview(TOY)).split("\n"), repr(hexview(TOY, 21, 14)).split("\n")
    assert part[0] == "bytes, 100 bytes: bytes 21 to 34"
    assert part[1][25:58] == whole[2][25:58]
    assert part[1][:25] == "00000010  " + " " * 15
    assert repr(hexview(TOY, -8)).split("\n")[0].endswith("bytes 92 to 99")
    assert repr(hexview(TOY, "tensor 'b': values")) == repr(hexview(TOY, 92))
    assert "nothing to show from byte 500 on" in repr(hexview(TOY, 500))
    with pytest.raises(KeyError, match="no field 'weights'"):
        hexview(TOY, "weights")


def test_each_run_of_bytes_says_where_it_is_what_it_is_and_what_it_holds():
    labels = [e.get("aria-label") for e in ET.fromstring(hexview(TOY).html).iter() if "mq-run" in e.get("class", "")]
    assert labels[0].startswith("bytes 0 to 3, header.magic = 0x474C4654 (")
    assert any(
        label.startswith("bytes 60 to 63, tensor 'w': values = [0, 0] to [0, 7]: 1, 2, -1, -8, 0") for label in labels
    )
    assert any(label.startswith("bytes 92 to 95, tensor 'b': values = [0]: 1 (") for label in labels)
    assert any(label.startswith("byte 32, tensor 'w': dtype = 3 (Q4_PER_GROUP_64) (") for label in labels)


# ---- diff ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "start", "end", "_value"), NAMES)
def test_a_byte_changed_in_any_field_is_found_and_its_field_named(name, start, end, _value):
    for at in {start, end - 1}:
        mine = bytearray(TOY)
        mine[at] ^= 0x55
        found = diff(bytes(mine), TOY)
        assert (found.equal, found.offset, found.field) == (False, at, name)
        assert repr(found).startswith(f"mine differs from the reference at byte {at}, in {name}\n")
        assert f"byte: {TOY[at]:02x} expected, {mine[at]:02x} found" in repr(found)
        marked = [e.text for e in ET.fromstring(found.html).iter("mark")]
        assert marked == [f"{TOY[at]:02x}", f"{mine[at]:02x}"]


def test_the_text_of_a_difference_spelled_out(toy):
    mine = TOY[:24] + struct.pack("<2I", 64, 1) + TOY[32:]
    assert repr(diff(mine, toy)) == "\n".join(
        [
            "mine differs from toy.gguf-lite at byte 24, in tensor 'w': dims",
            "  field: tensor 'w': dims, bytes 24 to 31: the shape, out first, as PyTorch has it",
            "  byte: 01 expected, 40 found",
            "  expected: 1 × 64",
            "  found: 64 × 1",
            "  lengths: 100 bytes expected, 100 found",
            "  note: a reader of mine stops: tensor 'w': dims at byte 24: Q4_PER_GROUP_64 needs rows of "
            "a multiple of 64, found (64, 1)",
            "  expected  00000000  54 46 4c 47 01 00 00 00 02 00 00 00 04 00 00 00",
            "  found     00000000  54 46 4c 47 01 00 00 00 02 00 00 00 04 00 00 00",
            "  expected  00000010  61 3d 62 63 01 00 77 02 01 00 00 00 40 00 00 00",
            "  found     00000010  61 3d 62 63 01 00 77 02 40 00 00 00 01 00 00 00",
            " " * 46 + "^^",
            "  expected  00000020  03 00 00 00 00 00 00 00 00 01 00 62 01 02 00 00",
            "  found     00000020  03 00 00 00 00 00 00 00 00 01 00 62 01 02 00 00",
        ]
    )


def test_equal_files_are_called_equal_with_their_length_and_hash(toy):
    found = diff(TOY, toy)
    assert (found.equal, found.offset, found.field) == (True, None, None)
    assert repr(found) == "mine and toy.gguf-lite are byte for byte equal: 100 bytes, SHA-256 2978601c2cddb871…"


def test_a_short_file_and_a_long_one_are_told_apart():
    short, long = diff(TOY[:70], TOY), diff(TOY + b"zz", TOY)
    assert (short.offset, short.field) == (70, "tensor 'w': values")
    assert repr(short).startswith("mine ends at byte 70, in tensor 'w': values\n")
    assert "missing: 30 bytes" in repr(short)
    assert (long.offset, long.field) == (100, None)
    assert repr(long).startswith("mine goes on after byte 100, where the reference ends\n  not expected: 7a 7a\n")


def test_files_of_one_name_are_called_mine_and_the_reference(toy, tmp_path):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / toy.name
    other.write_bytes(TOY[:-1] + b"?")
    assert repr(diff(other, toy)).startswith("mine differs from the reference at byte 99")


def test_a_difference_deep_in_a_large_file_is_found(tmp_path):
    write(tmp_path / "large", {"w": np.zeros((700, 1024), np.float32)}, {})
    mine = bytearray((tmp_path / "large").read_bytes())
    mine[2_500_000] = 1
    found = diff(bytes(mine), tmp_path / "large")
    assert (found.offset, found.field) == (2_500_000, "tensor 'w': values")
    assert len(found.html) < 60_000


def test_all_fields_that_differ_are_listed():
    mine = bytearray(TOY)
    mine[22] = ord("v")
    mine[95] = 0
    assert "fields that differ: tensor 'w': name, tensor 'b': values" in repr(diff(bytes(mine), TOY))


# ---- nibbles, ribbon, microscope -------------------------------------------------------------------------------------


def test_every_byte_opens_into_the_two_values_that_were_packed():
    for byte in range(256):
        high, low = (n if n < 8 else n - 16 for n in (byte // 16, byte % 16))
        picture = nibbles(np.uint8(byte))
        assert repr(picture).split("\n")[-1].endswith(f" {low}")
        cells = [e.text for e in ET.fromstring(picture.html).iter("td")]
        assert cells[:8] == list("76543210")
        assert "".join(cells[8:16]) == f"{byte:08b}"
        assert [int(text.rpartition("= ")[2]) for text in cells[-2:]] == [high, low]


@pytest.mark.parametrize("wrong", [-1, 256, 3.0, "a", None, b"x"])
def test_what_is_not_one_byte_is_refused(wrong):
    with pytest.raises(ValueError, match="expected one byte"):
        nibbles(wrong)


def test_the_ribbon_counts_every_byte_and_draws_to_scale(toy):
    picture = ribbon(toy)
    assert repr(picture) == "\n".join(
        [
            "toy.gguf-lite, 100 bytes, to scale",
            "part         what    bytes     share",
            "header                  16   16.00 %",
            "metadata                 4    4.00 %",
            "descriptors             38   38.00 %",
            "tensor 'w'   scales      2    2.00 %",
            "tensor 'w'   Q4         32   32.00 %",
            "tensor 'b'   F32         8    8.00 %",
            "the file               100  100.00 %",
        ]
    )
    rects = [(float(r.get("x")), float(r.get("width"))) for r in ET.fromstring(picture.html).iter("rect")]
    assert rects == [(0, 160), (160, 40), (200, 380), (580, 20), (600, 320), (920, 80)]
    titles = [t.text for t in ET.fromstring(picture.html).iter("title")]
    assert titles[4] == "tensor 'w', Q4: bytes 60 to 91, 32 in all"


def test_a_head_too_thin_to_see_gets_a_magnifier(tmp_path):
    write(tmp_path / "big", {"w": np.ones((64, 640), np.float32)}, {})
    html = ribbon(tmp_path / "big").html
    assert "magnified" in html
    assert "magnified" not in ribbon(TOY).html
    heads = [float(r.get("width")) for r in ET.fromstring(html).iter("rect")][-3:]
    assert sum(heads) == pytest.approx(460, abs=0.1)


def test_the_microscope_shows_what_quantization_did_to_a_patch():
    w = np.zeros((6, 128), np.float32)
    w[2, 62:66] = [7.0, 3.4, -14.0, 5.2]
    w[2, 0], w[2, 70] = -7.0, 14.0
    picture = microscope(w, quantize_per_group(w), row=2, col=62, size=4)
    blocks = repr(picture).split("\n")
    assert blocks[0] == "rows 2 to 5, columns 62 to 65"
    assert blocks[3].split() == ["2", "7.0", "3.4", "-14.0", "5.2"]
    assert blocks[9].split() == ["2", "7", "3", "-7", "3"]
    assert blocks[15].split() == ["2", "7.0", "3.0", "-14.0", "6.0"]
    assert blocks[21].split() == ["2", "0.0", "0.4", "0.0", "-0.8"]
    assert blocks[-1] == "the largest residual is 0.8, in row 2, column 65; half a step is 1.0 there"
    tables = ET.fromstring(picture.html).findall(".//table")
    assert len(tables) == 4
    edges = [td.text for td in tables[1].iter("td") if td.get("class") == "mq-edge"]
    assert edges == ["-7", "0", "0", "0"], "a double line stands where a group begins"


def test_the_microscope_takes_scales_in_every_shape_and_order_and_torch_tensors():
    import torch

    w = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)
    q = quantize_per_channel(w)
    expected = repr(microscope(w, q))
    assert repr(microscope(w, (q.scale, q.values))) == expected
    assert repr(microscope(w, (q.values, q.scale[:, None].astype(np.float32)))) == expected
    assert repr(microscope(torch.from_numpy(w), quantize_per_channel(torch.from_numpy(w)))) == expected
    assert repr(microscope(w, (q.values, np.float16(0.01)), 1, 14)).startswith("rows 1 to 3, columns 14 to 15")


@pytest.mark.parametrize(
    ("quantized", "place", "message"),
    [
        ((np.zeros((2, 4), np.int8), np.ones(3, np.float16)), (0, 0), "scales of shape"),
        ((np.zeros((2, 3), np.int8), np.ones(2, np.float16)), (0, 0), "integers of its shape"),
        ((np.zeros((2, 4)), np.ones(2)), (0, 0), "expected integers"),
        (None, (0, 0), "in a pair"),
        ((np.zeros((2, 4), np.int8), np.ones(2, np.float16)), (2, 0), "row 2"),
    ],
)
def test_the_microscope_refuses_what_does_not_fit(quantized, place, message):
    with pytest.raises(ValueError, match=message):
        microscope(np.zeros((2, 4), np.float32), quantized, *place)


# ---- all of them -----------------------------------------------------------------------------------------------------


def pictures(path):
    w = np.linspace(-1, 1, 320, dtype=np.float32).reshape(5, 64)
    nasty = TOY[:16] + b"<=&'" + TOY[20:]
    return {
        "hexview": hexview(path, 0, 256),
        "hexview of a broken file": hexview(TOY[:77]),
        "hexview of nasty text": hexview(nasty),
        "hexview of nothing": hexview(b""),
        "diff": diff(nasty, TOY),
        "diff of lengths": diff(TOY[:50], TOY),
        "diff of equals": diff(TOY, TOY),
        "nibbles": nibbles(0x8F),
        "ribbon": ribbon(path),
        "ribbon of a broken file": ribbon(TOY[:77]),
        "ribbon of nothing": ribbon(b""),
        "microscope": microscope(w, quantize_per_group(w)),
    }


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    path = tmp_path_factory.mktemp("drawn") / "m.gguf-lite"
    model = random_model(0, SMALL)
    write(path, model, preset("int4-small-embeddings", model))
    return pictures(path)


def test_html_is_well_formed_small_and_loads_nothing(drawn):
    for name, picture in drawn.items():
        ET.fromstring(picture._repr_html_())
        lower = picture.html.lower()
        for word in ("<script", "http:", "https:", "url(", "@import", "src=", "onclick", " id="):
            assert word not in lower, (name, word)
        assert len(picture.html) < 60_000, name


def test_whatever_takes_the_focus_has_a_name(drawn):
    for name, picture in drawn.items():
        root = ET.fromstring(picture.html)
        for element in root.iter():
            if element.get("tabindex") is not None or element.get("role") == "img":
                assert element.get("aria-label"), (name, element.attrib)
                assert element.get("role"), (name, element.attrib)
            if element.tag == "summary":
                assert element.text, name


def test_colour_is_never_alone(drawn):
    root = ET.fromstring(drawn["hexview"].html)
    for run in (e for e in root.iter() if "mq-run" in e.get("class", "").split()):
        assert run[0].text in "HMNDTOSVP?", "each run begins with the letter of its kind"
    key = [e.text for e in root.iter() if "mq-key" in e.get("class", "")]
    assert key[:3] == ["H header", "M metadata", "N name"]


def test_pictures_are_the_same_in_another_process_and_need_neither_torch_nor_matplotlib(toy):
    program = (
        "import sys; from miniquant.hexview import *; "
        f"print(hexview({str(toy)!r}).html); print(ribbon({str(toy)!r}).html); print(nibbles(7)); "
        "assert not {'torch', 'matplotlib', 'pandas'} & set(sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True, env=None)
    expected = io.StringIO()
    print(hexview(toy).html, ribbon(toy).html, nibbles(7), sep="\n", file=expected)
    assert out.stdout == expected.getvalue()
