"""The pictures of bits say what Python's own arithmetic says."""

import struct
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from miniquant.inspect.bits import bit_operation, bits, float16_bits


def cells(picture, row):
    """The cells of one row of the picture's table."""
    return [td.text for td in list(ET.fromstring(picture.html).iter("tr"))[row].iter("td")]


def test_a_byte_is_the_sum_of_its_places_and_its_sign_is_that_of_numpy():
    for number in range(256):
        picture = bits(number)
        *_, plain, signed = repr(picture).split("\n")
        assert plain.split()[-1] == str(number)
        assert signed.split()[-1] == str(np.uint8(number).view(np.int8))
        assert "".join(cells(picture, 2)) == f"{number:08b}"


@pytest.mark.parametrize("sign", ["&", "|", "^", "<<", ">>"])
def test_an_operation_has_the_result_of_python_cut_to_the_width(sign):
    for left in (0, 1, 0x8F, 0xFF, 0x3C):
        for right in (0, 1, 4, 8) if "<" in sign or ">" in sign else (0, 0x0F, 0xF0, 0x55):
            picture = bit_operation(left, sign, right)
            expected = eval(f"{left} {sign} {right}") % 256
            assert "".join(cells(picture, -1)) == f"{expected:08b}"
            assert repr(picture).split("\n")[0].endswith(f"= 0x{expected:02x}")
            assert ET.fromstring(picture.html).find(".//tr[@class='mq-sum']") is not None


def test_a_shift_says_which_bits_are_lost():
    assert "The bits 1111 fall off" in repr(bit_operation(0x8F, ">>", 4))
    assert "The bits 1000 leave the 8 bits" in repr(bit_operation(0x8F, "<<", 4))
    assert "leave" not in repr(bit_operation(0x0F, "<<", 4))


def test_every_kind_of_float16_is_taken_apart_as_struct_reads_it():
    for number in [*range(0, 2**16, 97), 0, 1, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0x7C00, 0x7C01, 0x8000, 0xFC00, 0xFFFF]:
        data = number.to_bytes(2, "little")
        picture = float16_bits(data)
        title, *_, last = repr(picture).split("\n")
        assert title == f"the float16 in the bytes {data.hex(' ')}: {struct.unpack('<e', data)[0]}"
        assert "".join(cells(picture, 1)) == f"{number:016b}"
        sign, exponent, fraction = map(int, cells(picture, 3))
        assert (sign << 15 | exponent << 10 | fraction) == number
        assert last.partition("= ")[2].partition(" ")[0] == str(struct.unpack("<e", data)[0]) or exponent == 31


def test_a_number_is_rounded_to_its_nearest_float16():
    assert "66 2e: 0.0999755859375" in repr(float16_bits(0.1))
    assert repr(float16_bits(1)) == repr(float16_bits(b"\x00\x3c"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bits(256), "0 to 255"),
        (lambda: bits(-1), "0 to 255"),
        (lambda: bits(1.5), "0 to 255"),
        (lambda: bits(1, 32), "1 to 16 bits"),
        (lambda: bit_operation(1, "+", 1), "expected one of"),
        (lambda: bit_operation(1, "&", 256), "0 to 255"),
        (lambda: bit_operation(1, "<<", 9), "0 to 8 places"),
        (lambda: float16_bits(b"abc"), "2 bytes"),
        (lambda: float16_bits(1e6), "65504"),
        (lambda: float16_bits("1"), "65504"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_row_of_bits_is_a_labelled_table_that_scrolls_by_itself():
    for picture in (bits(3), bit_operation(3, "<<", 2), float16_bits(1.0)):
        tree = ET.fromstring(picture.html)
        scroller = tree.find(".//div[@role='group']")
        assert scroller.get("tabindex") == "0" and scroller.get("aria-label") in repr(picture)
        assert all(row.find("th").get("scope") == "row" for row in tree.iter("tr"))
