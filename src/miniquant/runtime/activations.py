"""Activations rounded to eight bits, as ``integer_products`` does it, laid out for the product with a tile.

For every 64 numbers there are 64 integers with a sign; 16 integers, the sums of four of those, times what the weights
are raised by, less than zero; and 16 floats, the scale of four numbers each. After them stand the sums of 32 numbers,
which mins are multiplied with. A row is filled up with zeros to a multiple of 64, its sums to a multiple of 16.

Source: ``quantize_row_q8_0_ref``, ``quantize_row_q8_1_ref`` and ``quantize_row_q8_K_ref`` in ``ggml-quants.c``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from .lanes import (
    as_half,
    bytes64,
    dot,
    every_byte64,
    every_float16,
    every_int16,
    float_at,
    floats16,
    int32_at,
    largest,
    nearest,
    outward,
    store,
)

f32, i32, u8 = np.float32, np.int32, np.uint8


def n_bytes(n: int) -> int:
    """Of a row of ``n`` activations."""
    return (n + 63) // 64 * 192 + (n + 511) // 512 * 64


def pack(by_256: bool, x: int, place: int, stride: int, n: int, tokens: int, raised: int) -> None:
    """Vectors of ``n`` float32 at x, to rows of ``stride`` bytes at place.   raised: 0 in a type with mins."""
    for t in range(tokens):
        if by_256:
            q8_k(x + 4 * n * t, place + stride * t, n, raised, raised == 0)
        else:
            q8_of_32(x + 4 * n * t, place + stride * t, n, raised, raised == 0)


@register_jitable
def q8_of_32(x: int, row: int, n: int, raised: int, with_sums: bool) -> None:
    """Blocks of 32: Q8_0, or Q8_1 if sums are wanted.   x: the address of n float32."""
    chunks = (n + 63) // 64
    sums = row + 192 * chunks
    for b in range(n // 32):
        low, high = floats16(x + 128 * b), floats16(x + 128 * b + 64)
        d = max(largest(low), largest(high)) / f32(127)
        inverse = f32(1) / d if d > 0 else f32(0)
        if np.isinf(inverse):
            inverse = f32(0)
        place = row + b // 2 * 192 + b % 2 * 32
        store(place, outward(low * inverse))
        store(place + 16, outward(high * inverse))
        half = as_half(d)
        for i in range(8):
            store(place + 128 + 4 * i, half)
        if with_sums:
            store(sums + 4 * b, d)
    if n % 64:
        place = row + 192 * (chunks - 1) + 32
        for i in range(8):
            store(place + 4 * i, i32(0))
            store(place + 128 + 4 * i, f32(0))
    _sums_of_four(row, chunks, raised)
    if with_sums:
        for b in range(n // 32):
            store(sums + 4 * b, as_half(float_at(sums + 4 * b) * f32(_sum_of_block(row, b))))
        _finish(row, sums, n)


@register_jitable
def q8_k(x: int, row: int, n: int, raised: int, with_sums: bool) -> None:
    """Super-blocks of 256: Q8_K."""
    chunks = n // 64
    sums = row + 192 * chunks
    for b in range(n // 256):
        top, at, place = f32(0), x + 1024 * b, row + 768 * b
        for i in range(16):
            top = max(top, largest(floats16(at + 64 * i)))
        extreme = f32(0)
        for i in range(256):
            extreme = float_at(at + 4 * i)
            if abs(extreme) == top:
                break
        inverse = f32(-127) / extreme if top > 0 else f32(0)
        d = f32(1) / inverse if top > 0 else f32(0)
        for i in range(16):
            store(place + i // 4 * 192 + i % 4 * 16, nearest(floats16(at + 64 * i) * inverse))
        for chunk in range(4):
            store(place + 192 * chunk + 128, every_float16(d))
    _sums_of_four(row, chunks, raised)
    if with_sums:
        for b in range(n // 32):
            d = float_at(row + b // 2 * 192 + 128)
            store(sums + 4 * b, d * f32(_sum_of_block(row, b)))
        _finish(row, sums, n)


@register_jitable
def _sums_of_four(row: int, chunks: int, raised: int) -> None:
    """Times -raised; with -1 in a type with mins, which has raised nothing: the sums of blocks are made from these."""
    for chunk in range(chunks):
        place = row + 192 * chunk
        found: Any = dot(every_int16(i32(0)), every_byte64(u8(1)), bytes64(place))
        store(place + 64, found * -max(raised, 1))


@register_jitable
def _sum_of_block(row: int, b: int) -> Any:
    total, place = i32(0), row + b // 2 * 192 + 64 + b % 2 * 32
    for i in range(8):
        total -= int32_at(place + 4 * i)
    return total


@register_jitable
def _finish(row: int, sums: int, n: int) -> None:
    """Zeros after the sums of blocks, and in the place of the sums of four, which were not raised."""
    for b in range(n // 32, (n + 511) // 512 * 16):
        store(sums + 4 * b, f32(0))
    for chunk in range((n + 63) // 64):
        store(row + 192 * chunk + 64, every_int16(i32(0)))
