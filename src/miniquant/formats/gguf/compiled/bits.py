"""Float16 and fields of a few bits, for the functions that numba compiles."""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from .vectors import inner

f32, u8, u32 = np.float32, np.uint8, np.uint32


@inner
def to_half(x: Any) -> Any:
    """The bits of a float32 as a float16, halves to even; a NaN becomes quiet."""
    bits = f32(x).view(u32)
    sign, size = u32(bits >> u32(16) & u32(0x8000)), u32(bits & u32(0x7FFFFFFF))  # u32 once more: numba widens
    if size > u32(0x7F800000):
        return np.uint16(sign | u32(0x7E00) | size >> u32(13) & u32(0x3FF))
    if size >= u32(0x477FF000):  # 65520, half a step above the largest one
        return np.uint16(sign | u32(0x7C00))
    if size < u32(0x38800000):  # below 2⁻¹⁴ the steps are as wide as those of a float32 from 1/2 to 1
        return np.uint16(sign | f32(size.view(f32) + f32(0.5)).view(u32) - u32(0x3F000000))
    return np.uint16(sign | size + u32(0xFFF) + (size >> u32(13) & u32(1)) - u32(112 << 23) >> u32(13))


@inner
def from_half(bits: Any) -> Any:
    """The float32 that is as large as a float16."""
    h = u32(bits)
    sign, size = u32((h & u32(0x8000)) << u32(16)), u32((h & u32(0x7FFF)) << u32(13))
    if size >= u32(0x7C00 << 13):
        return u32(sign | size | u32(0x7F800000)).view(f32)
    if size < u32(0x400 << 13):
        small = f32(f32(h & u32(0x3FF)) * f32(2.0**-24)).view(u32)
        return u32(sign | small).view(f32)
    return u32(sign | size + u32(112 << 23)).view(f32)


@inner
def put_half(out: Any, at: Any, x: Any) -> None:
    """Write a float32 as a float16 at a byte of a block."""
    bits = to_half(x)
    out[at], out[at + 1] = u8(bits & np.uint16(255)), u8(bits >> np.uint16(8))


@inner
def half_at(block: Any, at: Any) -> Any:
    """The float16 at a byte of a block, as a float32."""
    return from_half(u32(block[at]) | u32(block[at + 1]) << u32(8))


@inner
def word_at(block: Any, at: Any) -> Any:
    """Four bytes of a block as a number, the first one lowest."""
    low = u32(block[at]) | u32(block[at + 1]) << u32(8)
    return np.int64(low | u32(block[at + 2]) << u32(16) | u32(block[at + 3]) << u32(24))


@inner
def put_runs(q: Any, drop: Any, width: Any, run: Any, out: Any) -> None:
    """As ``packing.pack_runs``: some bits of the integers, from bit ``drop`` on, into runs of bytes.

    q: (n,) uint8   ->   out: (n · width / 8,) uint8
    """
    keep, fields = u8((1 << width) - 1), 8 // width
    for first in range(0, len(out), run):
        part, given = out[first : first + run], q[first * fields : (first + run) * fields]
        for i in range(len(part)):
            part[i] = given[i] >> u8(drop) & keep
        for field in range(1, fields):
            above = given[field * run :]
            for i in range(len(part)):
                part[i] |= (above[i] >> u8(drop) & keep) << u8(width * field)
