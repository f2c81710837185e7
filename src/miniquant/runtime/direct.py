"""Two rows of blocks times one vector, straight from the blocks: what is unpacked stays in registers.

A tile pays when several vectors meet it. A single one, as in generating, meets each weight once; then writing a tile
and reading it again would take as long as the product. Only the mins, of which there are few, are written down. The
sums are made in the same order as with a tile, so they are the same to the last bit.

Each function is given the addresses of two rows and of room for their mins, that of the vector, and the number of
weights, which 64 divides. What is returned are sums in sixteen lanes, one register for each row.

The rows lie one after the other, and the next ones after them. What is needed a little later is asked for in small
steps: a processor waits if it is asked for two rows at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable

from .lanes import (
    bytes64,
    dot,
    every_float16,
    every_half8,
    every_int16,
    fetch,
    floats16,
    half_at,
    ints16,
    join,
    plus_product,
    signed,
    store,
    sum_of,
)
from .unpacking import FORMS, Form, one_of

f32, i32 = np.float32, np.int32
AHEAD = 4096  # bytes: as far before its use a row is asked for, where it is used once


@register_jitable
def more(total: Any, q: Any, scales: Any, x: int) -> Any:
    """Of 64 weights and 64 activations: sixteen sums of four products, each times its scale, are added to ``total``."""
    return _from(total, ints16(x + 64), q, scales, x)


@register_jitable
def more_unraised(total: Any, q: Any, scales: Any, x: int) -> Any:
    """The same for a type with mins: its integers were not raised, so there is nothing to take off."""
    return _from(total, every_int16(i32(0)), q, scales, x)


@register_jitable
def _from(total: Any, start: Any, q: Any, scales: Any, x: int) -> Any:
    return plus_product(total, signed(dot(start, q, bytes64(x))), scales * floats16(x + 128))


def of_32(block: Callable[[int], Any], size: int, with_mins: bool) -> Any:
    """The function for a type of 32 weights and ``size`` bytes a block; see ``unpacking.to_tile_by_32``."""
    add = more_unraised if with_mins else more

    @register_jitable
    def chunk(total: Any, at: int, x: int) -> Any:
        scales = join(every_half8(at), every_half8(at + size))
        return add(total, join(block(at), block(at + size)), scales, x)

    @register_jitable
    def mins_of(w: int, mins: int, n: int) -> None:
        for b in range(n // 32):
            store(mins + 4 * b, half_at(w + size * b + 2))

    @register_jitable
    def product(w: int, v: int, w_mins: int, v_mins: int, x: int, n: int) -> Any:
        a = b = every_float16(f32(0))
        for i in range(n // 64):
            for line in range(0, 4 * size, 64):
                fetch(w + 4 * size * i + AHEAD + line)
            a, b = chunk(a, w + 2 * size * i, x + 192 * i), chunk(b, v + 2 * size * i, x + 192 * i)
        if with_mins:
            mins_of(w, w_mins, n)
            mins_of(v, v_mins, n)
        return a, b

    return product


def of_256(block: Callable[[int], Any], scales: Callable[[int, int], Any], size: int, with_mins: bool) -> Any:
    """The function for a type of 256 weights and ``size`` bytes a block; see ``unpacking.to_tile_by_256``."""
    add = more_unraised if with_mins else more

    @register_jitable
    def chunks(total: Any, at: int, mins: int, x: int) -> Any:
        q0, q1, q2, q3 = block(at)
        s0, s1, s2, s3 = scales(at, mins)
        total = add(total, q0, s0, x)
        total = add(total, q1, s1, x + 192)
        total = add(total, q2, s2, x + 384)
        return add(total, q3, s3, x + 576)

    @register_jitable
    def product(w: int, v: int, w_mins: int, v_mins: int, x: int, n: int) -> Any:
        a = b = every_float16(f32(0))
        for i in range(n // 256):
            for line in range(0, 2 * size, 64):
                fetch(w + 2 * size * i + AHEAD + line)
            a = chunks(a, w + size * i, w_mins + 32 * i, x + 768 * i)
            b = chunks(b, v + size * i, v_mins + 32 * i, x + 768 * i)
        return a, b

    return product


@register_jitable
def plus_mins(total: Any, mins: int, x: int, n: int) -> Any:
    """The mins of a row times the sums of the activations that they are for, added to ``total``."""
    for i in range((n + 511) // 512):
        total = plus_product(total, floats16(mins + 64 * i), floats16(x + (n + 63) // 64 * 192 + 64 * i))
    return total


def of(form: Form) -> Any:
    """The function that multiplies any number of rows of a type with a vector, two at a time; see ``multiply_one``."""
    with_mins = form.with_mins
    by_32 = form.scales is None
    two = of_32(form.block, form.size, with_mins) if by_32 else of_256(form.block, form.scales, form.size, with_mins)

    @register_jitable
    def multiply(w: int, stride: int, room: int, rows: int, n: int, x: int, place: int) -> None:
        mins, mins2 = room, room + (n + 511) // 512 * 64
        if with_mins and n % 512:
            store(mins + n // 512 * 64, every_float16(f32(0)))
            store(mins2 + n // 512 * 64, every_float16(f32(0)))
        for row in range(0, rows, 2):
            other = min(row + 1, rows - 1)
            a, b = two(w + row * stride, w + other * stride, mins, mins2, x, n)
            if with_mins:
                a, b = plus_mins(a, mins, x, n), plus_mins(b, mins2, x, n)
            store(place + 4 * row, sum_of(a))
            store(place + 4 * other, sum_of(b))

    return multiply


# a type, then as ``multiply`` above; of an odd number of rows, the last one is computed twice
multiply_one = one_of({kind: of(form) for kind, form in FORMS.items()})
