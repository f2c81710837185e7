"""The twelve bytes in which Q4_K and Q5_K hold their scales and mins, bit by bit."""

from __future__ import annotations

from html import escape

import numpy as np

from ..quantization.packing import unpack_scales_and_mins
from .markup import Picture, box, scroll

_STYLE = """
.mq.mq.mq .mq-fields td{text-align:center;padding:.2em;border:1px solid currentColor}
.mq.mq.mq .mq-fields th{text-align:right;font-weight:400;padding:.2em .6em}
.mq.mq.mq .mq-fields small{display:block;font-size:.9em}
.mq.mq.mq .mq-fields .mq-scale{background:rgba(86,180,233,.28)}
.mq.mq.mq .mq-fields .mq-minimum{background:rgba(230,159,0,.28);border-style:dashed}
.mq.mq.mq .mq-fields{table-layout:fixed;width:44em}
.mq.mq.mq .mq-fields th{width:9em}
.mq.mq.mq .mq-fields .mq-no{border-color:transparent;opacity:.8;font-size:.85em}
"""
_PLACES = [  # for each byte, from its highest bit: what it holds, which one, which bits of it
    *([("scale", 4 + j, "upper 2"), ("scale", j, "all 6")] for j in range(4)),
    *([("minimum", 4 + j, "upper 2"), ("minimum", j, "all 6")] for j in range(4)),
    *([("minimum", 4 + j, "lower 4"), ("scale", 4 + j, "lower 4")] for j in range(4)),
]
_WIDTHS = {"upper 2": 2, "lower 4": 4, "all 6": 6}


def scale_bits(packed: np.ndarray) -> Picture:
    """Every bit of the scale bytes of a Q4_K or Q5_K super-block, under the name of the number that it belongs to.

    packed: (12,) uint8. Raises ``ValueError`` for anything else.
    """
    packed = np.asarray(packed)
    if packed.dtype != np.uint8 or packed.shape != (12,):
        raise ValueError(f"expected the 12 bytes of scales (uint8), found {packed.dtype} of shape {packed.shape}")
    title = "12 bytes: 8 scales and 8 mins of 6 bits"
    lines, rows = [title], ""
    for at, (byte, places) in enumerate(zip(packed.tolist(), _PLACES)):
        bits, cells, words = f"{byte:08b}", "", []
        for what, number, which in places:
            field, bits = bits[: _WIDTHS[which]], bits[_WIDTHS[which] :]
            name = f"{what} {number}" + ("" if which == "all 6" else f", {which}")
            cells += f"<td class='mq-{what}' colspan='{len(field)}'>{field}<small>{name}</small></td>"
            words.append(f"{field} ({name})")
        lines.append(f"byte {at:2}  0x{byte:02x}  " + "  ".join(f"{word:<30}" for word in words).rstrip())
        rows += f"<tr><th scope='row'>byte {at}, 0x{byte:02x}</th>{cells}</tr>"
    numbers = "".join(f"<td class='mq-no'>{i}</td>" for i in range(7, -1, -1))
    found = [f"{name}: {' '.join(map(str, values))}" for name, values in _found(packed)]
    table = f"<table class='mq-fields mq-mono'><tr><th scope='row'>bit</th>{numbers}</tr>{rows}</table>"
    note = "".join(f"<p>{escape(line)}</p>" for line in found)
    note += "<p>Solid and blue: scales. Dashed and orange: mins.</p>"
    return Picture("\n".join([*lines, *found]), box(title, scroll(title, table) + note, _STYLE))


def _found(packed: np.ndarray) -> list[tuple[str, list[int]]]:
    scales, mins = unpack_scales_and_mins(packed)
    return [("scales", scales.tolist()), ("mins", mins.tolist())]
