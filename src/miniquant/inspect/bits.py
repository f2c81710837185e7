"""Close looks at bits: the bits of a number, what an operation does to them, the three fields of a float16.

Each is a ``Picture``: HTML for a notebook, text for a terminal, the same facts in both. They need numpy alone.
"""

from __future__ import annotations

import math
import operator
import struct
from html import escape

from .markup import Picture, box, scroll, text_table

WIDEST = 16  # bits in one picture
_BITS = """
.mq.mq.mq .mq-bits td,.mq.mq.mq .mq-bits th{text-align:center;padding:.25em .5em;min-width:1.6em}
.mq.mq.mq .mq-bits th{text-align:right;font-weight:400;white-space:nowrap}
.mq.mq.mq .mq-bits td{border:1px solid currentColor}
.mq.mq.mq .mq-bits .mq-no{border-color:transparent;opacity:.8;font-size:.85em}
.mq.mq.mq .mq-bits .mq-one{background:rgba(86,180,233,.28);font-weight:700}
.mq.mq.mq .mq-bits .mq-cut{border-left:3px double currentColor}
.mq.mq.mq .mq-bits .mq-sum td{border-top:3px double currentColor}
.mq.mq.mq .mq-s{background:rgba(204,121,167,.28)}
.mq.mq.mq .mq-e{background:rgba(230,159,0,.28);border-style:dashed!important}
.mq.mq.mq .mq-f{background:rgba(86,180,233,.28)}
"""
_WORDS = {  # what an operation does, in one sentence
    "&": "A bit of the result is 1 where both bits above it are 1.",
    "|": "A bit of the result is 1 where at least one of the bits above it is 1.",
    "^": "A bit of the result is 1 where the two bits above it differ.",
}


def bits(number: int, width: int = 8) -> Picture:
    """The bits of an integer: their places, what each counts, their sum, and the number in two's complement.

    number: from 0 to 2**width - 1; width: how many bits, up to 16. Raises ``ValueError`` for anything else.

    >>> bits(0x8F)
    the 8 bits of 0x8f
    place     7   6   5   4  3  2  1  0
    counts  128  64  32  16  8  4  2  1
    bits      1   0   0   0  1  1  1  1
    without a sign: 128 + 8 + 4 + 2 + 1 = 143
    in two's complement: -128 + 8 + 4 + 2 + 1 = -113
    """
    number = _integer(number, width)
    places = list(range(width - 1, -1, -1))
    digits = f"{number:0{width}b}"
    ones = [2**place for place, digit in zip(places, digits) if digit == "1"]
    signed = [-one if one == 2 ** (width - 1) else one for one in ones]
    title = f"the {width} bits of {_hex(number, width)}"
    sums = [f"without a sign: {_sum(ones)}", f"in two's complement: {_sum(signed)}"]
    rows = [["counts", *(str(2**p) for p in places)], ["bits", *digits]]
    text = text_table(["place", *map(str, places)], rows, tuple(range(1, width + 1)))
    body = _row("place", [str(p) for p in places], "mq-no") + _row("counts", [str(2**p) for p in places], "mq-no")
    body += _bit_row("bits", digits)
    return _picture(title, text, body, sums)


def bit_operation(left: int, sign: str, right: int, width: int = 8) -> Picture:
    """What ``&``, ``|``, ``^``, ``<<`` or ``>>`` does to the bits of an integer.

    left, right: from 0 to 2**width - 1, for a shift right is the number of places; width: up to 16
    Raises ``ValueError`` for another operation or a number that does not fit.

    >>> bit_operation(0x8F, "&", 0x3C)
    0x8f & 0x3c = 0x0c
    place   7  6  5  4  3  2  1  0
    0x8f    1  0  0  0  1  1  1  1
    & 0x3c  0  0  1  1  1  1  0  0
    = 0x0c  0  0  0  0  1  1  0  0
    A bit of the result is 1 where both bits above it are 1.
    """
    left = _integer(left, width)
    shift = sign in ("<<", ">>")
    if not shift and sign not in _WORDS:
        raise ValueError(f"expected one of & | ^ << >>, found {sign!r}")
    right = _places(right, width) if shift else _integer(right, width)
    whole = {"&": left & right, "|": left | right, "^": left ^ right, "<<": left << right, ">>": left >> right}[sign]
    result = whole % 2**width
    operand = str(right) if shift else _hex(right, width)
    lines = [(_hex(left, width), left), *([] if shift else [(f"{sign} {operand}", right)])]
    last = f"{sign} {operand}" if shift else f"= {_hex(result, width)}"
    rows = [(name, f"{value:0{width}b}") for name, value in [*lines, (last, result)]]
    places = [str(place) for place in range(width - 1, -1, -1)]
    text = text_table(["place", *places], [[name, *digits] for name, digits in rows], tuple(range(1, width + 1)))
    body = _row("place", places, "mq-no")
    body += "".join(_bit_row(name, digits, "mq-sum" * (name == last)) for name, digits in rows)
    title = f"{_hex(left, width)} {sign} {operand} = {_hex(result, width)}"
    return _picture(title, text, body, [_moved(left, sign, right, width) if shift else _WORDS[sign]])


def float16_bits(value: bytes | float) -> Picture:
    """The 16 bits of a float16: sign, exponent and fraction, and the number that they make.

    value: its 2 bytes as they are in a little-endian file, or a number, which is rounded to the nearest float16
    Raises ``ValueError`` for another number of bytes or a number that float16 cannot hold.

    >>> float16_bits(b"\\x00\\x3c")
    the float16 in the bytes 00 3c: 1.0
              sign  exponent  fraction
    bits      0     01111     0000000000
    unsigned  0     15        0
    + (1 + 0/1024) × 2**(15 - 15) = 1.0
    """
    data = _two_bytes(value)
    number = struct.unpack("<H", data)[0]
    found = struct.unpack("<e", data)[0]
    fields = (number >> 15, number >> 10 & 31, number & 1023)
    digits = f"{number:016b}"
    parts = (digits[0], digits[1:6], digits[6:])
    title = f"the float16 in the bytes {data.hex(' ')}: {found}"
    heads = ["sign", "exponent", "fraction"]
    text = text_table(["", *heads], [["bits", *parts], ["unsigned", *map(str, fields)]])
    sides, widths = ("mq-s", "mq-e", "mq-f"), (1, 5, 10)
    which = [side for side, width in zip(sides, widths) for _ in range(width)]
    body = _row("place", [str(place) for place in range(15, -1, -1)], "mq-no")
    cells = "".join(f"<td class='{side}'>{digit}</td>" for side, digit in zip(which, digits))
    body += f"<tr><th scope='row'>bits</th>{cells}</tr>"
    for label, values in (("field", heads), ("unsigned", [str(field) for field in fields])):
        spans = "".join(f"<td colspan='{w}' class='{s}'>{v}</td>" for w, s, v in zip(widths, sides, values))
        body += f"<tr><th scope='row'>{label}</th>{spans}</tr>"
    bytes_ = "".join(f"<td colspan='8' class='mq-no'>{data[i]:02x}, byte {i}</td>" for i in (1, 0))
    body += f"<tr><th scope='row'>in the file</th>{bytes_}</tr>"
    return _picture(title, text, body, [_float16_sum(*fields, found)])


# ---- the parts -------------------------------------------------------------------------------------------------------


def _integer(number: int, width: int) -> int:
    """The number, if it fits into so many bits. Raises ``ValueError`` otherwise."""
    if not 1 <= width <= WIDEST:
        raise ValueError(f"a picture has 1 to {WIDEST} bits, found width {width!r}")
    try:
        found = operator.index(number)
    except TypeError:
        found = -1
    if not 0 <= found < 2**width:
        raise ValueError(f"expected an integer from 0 to {2**width - 1}, which fits in {width} bits; found {number!r}")
    return found


def _places(number: int, width: int) -> int:
    """The number of places of a shift. Raises ``ValueError`` if the picture cannot show it."""
    if not 0 <= operator.index(number) <= width:
        raise ValueError(f"expected a shift by 0 to {width} places, found {number!r}")
    return operator.index(number)


def _two_bytes(value: bytes | float) -> bytes:
    """The two bytes of a float16, given or made. Raises ``ValueError`` if there are none."""
    if isinstance(value, bytes | bytearray | memoryview):
        if len(value) != 2:
            raise ValueError(f"a float16 has 2 bytes, found {len(value)}")
        return bytes(value)
    try:
        return struct.pack("<e", value)
    except (OverflowError, struct.error):
        raise ValueError(f"expected 2 bytes or a number up to 65504, found {value!r}") from None


def _hex(number: int, width: int) -> str:
    return f"0x{number:0{math.ceil(width / 4)}x}"


def _sum(parts: list[int]) -> str:
    """The parts of a sum and the sum; one part, or none, stands alone."""
    if len(parts) < 2:
        return str(sum(parts))
    return f"{' + '.join(map(str, parts))} = {sum(parts)}"


def _moved(left: int, sign: str, right: int, width: int) -> str:
    """What a shift does, and what falls off."""
    digits = f"{left:0{width}b}"
    lost, side = (digits[:right], "left") if sign == "<<" else (digits[width - right :], "right")
    sentence = f"Every bit moves {right} place{'s' * (right != 1)} to the {side}, and zeros fill the free places."
    if not right:
        return sentence
    if sign == ">>":
        return f"{sentence} The bits {lost} fall off."
    if "1" not in lost:
        return sentence
    return f"{sentence} The bits {lost} leave the {width} bits: Python keeps them, numpy's uint{width} drops them."


def _float16_sum(sign: int, exponent: int, fraction: int, found: float) -> str:
    """How the three fields make the number."""
    mark = "-" if sign else "+"
    if exponent == 31:
        return f"exponent 31 is kept for infinity (fraction 0) and nan: {found}"
    if exponent == 0:
        return f"{mark} {fraction}/1024 × 2**-14 = {found} (exponent 0: no 1 before the fraction)"
    return f"{mark} (1 + {fraction}/1024) × 2**({exponent} - 15) = {found}"


def _row(label: str, cells: list[str], kind: str) -> str:
    return f"<tr><th scope='row'>{label}</th>{''.join(f'<td class={kind!r}>{cell}</td>' for cell in cells)}</tr>"


def _bit_row(label: str, digits: str, kind: str = "") -> str:
    """One row of bits; ones are bold and shaded, and a double line stands above a result."""
    cells = "".join(f"<td{' class=' + repr('mq-one') if digit == '1' else ''}>{digit}</td>" for digit in digits)
    return f"<tr{f' class={kind!r}' if kind else ''}><th scope='row'>{escape(label)}</th>{cells}</tr>"


def _picture(title: str, text: str, body: str, notes: list[str]) -> Picture:
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    html = box(title, scroll(title, f"<table class='mq-bits mq-mono'>{body}</table>") + below, _BITS)
    return Picture("\n".join([title, text, *notes]), html)
