"""Nibbles, ribbon and microscope show what is there, and the HTML of every picture is sound."""

import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from toy_file import TOY

from miniquant import preset, quantize_per_channel, quantize_per_group
from miniquant import write_gguf_lite as write
from miniquant.inspect.hexview import diff, hexview, microscope, nibbles, ribbon
from miniquant.models.minigpt import MiniGPTConfig, random_model

SMALL = MiniGPTConfig(vocab_size=40, context=16, d_model=64, n_layers=1, n_heads=2, d_mlp=128)


@pytest.fixture
def toy(tmp_path):
    path = tmp_path / "toy.gguf-lite"
    path.write_bytes(TOY)
    return path


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
    rects = [[float(r.get(key)) for key in ("x", "width", "height")] for r in ET.fromstring(picture.html).iter("rect")]
    assert [r[:2] for r in rects] == [[0, 160], [160, 40], [200, 380], [580, 20], [600, 320], [920, 80]]
    assert rects[3][2] < rects[4][2], "scales are short, whatever the colour"
    titles = [t.get("aria-label") for t in ET.fromstring(picture.html).iter("input")]
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
    path = tmp_path_factory.mktemp("drawn") / "it's & <b>.gguf-lite"
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


def test_a_view_is_one_stop_of_the_tab_key_whose_arrow_keys_reach_every_part(drawn):
    """Radio buttons of one form do so by themselves; the first is chosen, and nothing else takes the focus."""
    seen = []
    for name, picture in drawn.items():
        for form in ET.fromstring(picture.html).iter("form"):
            inputs = list(form.iter("input"))
            seen.append(name)
            assert {(i.get("type"), i.get("name")) for i in inputs} == {("radio", "mq")}, name
            assert [i.get("checked") for i in inputs].count("checked") == 1, name
            assert not [e for e in form.iter() if e.get("tabindex") is not None], name
            assert all(i.get("aria-label") for i in inputs), name
    assert {"hexview", "diff", "diff of lengths", "ribbon"} <= set(seen)
    assert not {"hexview of nothing", "ribbon of nothing"} & set(seen)


def test_what_explains_a_field_is_lit_with_it(toy):
    for picture in (hexview(toy), ribbon(toy)):
        root = ET.fromstring(picture.html)
        rows = [row.get("class") for row in root.iter("tr") if row.get("class")]
        picks = [label.get("class").split()[1] for label in root.iter("label")]
        assert list(dict.fromkeys(picks)) == rows, "rows of the table in the order of the file"
        for mark in rows:
            assert f".mq:has(.{mark}:hover,.{mark} :checked) .{mark}" in picture.html


def test_a_row_breaks_into_two_lines_of_eight_bytes_in_all_three_columns(toy):
    rows = [e for e in ET.fromstring(hexview(toy).html).iter("div") if e.get("class") == "mq-row"]
    for row in rows[:-1]:
        place, cells, letters = row
        assert [len(list(part.iter("i"))) for part in (place, cells, letters)] == [1, 1, 1]
        before = ET.tostring(cells, "unicode").partition("<i class")[0]
        assert len(re.sub("<[^>]*>", "", before)) == 24, "a letter or a space and two digits for each byte"
    assert [len(list(part.iter("i"))) for part in rows[-1]] == [0, 0, 0], "its four bytes are one line"


def test_colour_is_never_alone(drawn):
    root = ET.fromstring(drawn["hexview"].html)
    for run in (e for e in root.iter() if "mq-run" in e.get("class", "").split()):
        assert run[0].text in "HMNDTOSVP?", "each run begins with the letter of its kind"
    key = [e.text for e in root.iter() if "mq-key" in e.get("class", "")]
    assert key[:3] == ["H header", "M metadata", "N name"]


def test_pictures_are_the_same_in_another_process_and_need_neither_torch_nor_matplotlib(toy):
    program = (
        "import sys; from miniquant.inspect.hexview import *; "
        f"print(hexview({str(toy)!r}).html); print(ribbon({str(toy)!r}).html); print(nibbles(7)); "
        "assert not {'torch', 'matplotlib', 'pandas'} & set(sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True, env=None)
    expected = io.StringIO()
    print(hexview(toy).html, ribbon(toy).html, nibbles(7), sep="\n", file=expected)
    assert out.stdout == expected.getvalue()
