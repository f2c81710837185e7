"""A matrix of blocks times vectors, in the functions that numba compiles: tile by tile, in any number of threads.

A thread takes a few rows, unpacks them into a tile of its own, and multiplies the tile with every vector. A single
vector meets the blocks without a tile, see ``direct``. The next rows go to whoever is free: a busy core delays nobody.

Whatever is called w, x, tile, out, place or desk is an address, a stride is a number of bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from .direct import AHEAD, more, multiply_one, plus_mins
from .lanes import (
    add_shared,
    bfloat_at,
    bfloats16,
    bytes64,
    call,
    every_float16,
    fetch,
    float_at,
    floats16,
    half_at,
    halves16,
    int_at,
    pause,
    plus_product,
    read_shared,
    store,
    sum_of,
    write_shared,
)
from .unpacking import FORMS, to_tile

f32 = np.float32
FLOATS = F32, F16, BF16 = 0, 1, 30  # ggml's numbers
WITH_MINS = tuple(kind for kind, form in FORMS.items() if form.with_mins)

Vectors = tuple[int, int, int]  # the address of the first one, a stride, how many
Place = tuple[int, int]  # an address and a stride: where products are written

TILE = 16  # rows of a tile, at most
PIECE = 128  # rows that a thread takes at a time where there is one vector


def tile_bytes(n: int) -> int:
    """Of a row of ``n`` weights in a tile, at most."""
    return max(4 * n, _integer_bytes(n))


@register_jitable
def _integer_bytes(n: int) -> int:
    return (n + 63) // 64 * 128 + (n + 511) // 512 * 64


# ---- a row taken apart


@register_jitable
def unpack(kind: int, w: int, row: int, n: int) -> None:
    """One row of blocks into one row of a tile."""
    if kind in FLOATS:
        unpack_floats(kind, w, row, n)
        return
    mins = row + (n + 63) // 64 * 128
    if n % 64:
        store(mins - 64, every_float16(f32(0)))  # what the last block leaves free counts nothing
    if n % 512:
        store(mins + n // 512 * 64, every_float16(f32(0)))
    to_tile(kind, w, row, mins, n)


@register_jitable
def unpack_floats(kind: int, w: int, row: int, n: int) -> None:
    """F32, F16 or BF16 into float32."""
    for i in range(0, n - 15, 16):
        if kind == F16:
            store(row + 4 * i, halves16(w + 2 * i))
        elif kind == BF16:
            store(row + 4 * i, bfloats16(w + 2 * i))
        else:
            store(row + 4 * i, floats16(w + 4 * i))
    for i in range(n // 16 * 16, n):
        if kind == F16:
            store(row + 4 * i, half_at(w + 2 * i))
        elif kind == BF16:
            store(row + 4 * i, bfloat_at(w + 2 * i))
        else:
            store(row + 4 * i, float_at(w + 4 * i))


# ---- rows of a tile times vectors


@register_jitable
def two_by_one(w: int, v: int, x: int, n: int, with_mins: bool) -> tuple[float, float]:
    """Two rows of a tile, w and v, times one vector."""
    a = b = every_float16(f32(0))
    chunks = (n + 63) // 64
    for chunk in range(chunks):
        p, q, given = w + 128 * chunk, v + 128 * chunk, x + 192 * chunk
        a, b = more(a, bytes64(p), floats16(p + 64), given), more(b, bytes64(q), floats16(q + 64), given)
    if with_mins:
        a, b = plus_mins(a, w + 128 * chunks, x, n), plus_mins(b, v + 128 * chunks, x, n)
    return sum_of(a), sum_of(b)


@register_jitable
def two_by_four(w: int, v: int, xs: tuple[int, int, int, int], n: int, with_mins: bool) -> tuple[float, ...]:
    """Two rows times four vectors: what is loaded once serves several products."""
    x0, x1, x2, x3 = xs
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = every_float16(f32(0))
    chunks = (n + 63) // 64
    for chunk in range(chunks):
        p, q, at = w + 128 * chunk, v + 128 * chunk, 192 * chunk
        u, s = bytes64(p), floats16(p + 64)
        a0, a1 = more(a0, u, s, x0 + at), more(a1, u, s, x1 + at)
        a2, a3 = more(a2, u, s, x2 + at), more(a3, u, s, x3 + at)
        u, s = bytes64(q), floats16(q + 64)
        b0, b1 = more(b0, u, s, x0 + at), more(b1, u, s, x1 + at)
        b2, b3 = more(b2, u, s, x2 + at), more(b3, u, s, x3 + at)
    if with_mins:
        for i in range((n + 511) // 512):
            p, q = floats16(w + 128 * chunks + 64 * i), floats16(v + 128 * chunks + 64 * i)
            at = 192 * chunks + 64 * i
            s0, s1, s2, s3 = floats16(x0 + at), floats16(x1 + at), floats16(x2 + at), floats16(x3 + at)
            a0, b0 = plus_product(a0, p, s0), plus_product(b0, q, s0)
            a1, b1 = plus_product(a1, p, s1), plus_product(b1, q, s1)
            a2, b2 = plus_product(a2, p, s2), plus_product(b2, q, s2)
            a3, b3 = plus_product(a3, p, s3), plus_product(b3, q, s3)
    return sum_of(a0), sum_of(a1), sum_of(a2), sum_of(a3), sum_of(b0), sum_of(b1), sum_of(b2), sum_of(b3)


@register_jitable
def float_product(w: int, x: int, n: int) -> Any:
    """Floats times floats."""
    a = b = every_float16(f32(0))
    for i in range(0, n - 31, 32):
        a = plus_product(a, floats16(w + 4 * i), floats16(x + 4 * i))
        b = plus_product(b, floats16(w + 4 * i + 64), floats16(x + 4 * i + 64))
    total: Any = sum_of(a + b)
    for i in range(n // 32 * 32, n):
        total += float_at(w + 4 * i) * float_at(x + 4 * i)
    return total


@register_jitable
def multiply(kind: int, w: int, w_stride: int, tile: int, rows: int, n: int, given: Vectors, out: Place) -> None:
    """Rows of a matrix, at most ``TILE``, times all vectors. At out: the first row's product with the first vector."""
    (x, x_stride, tokens), (place, out_stride) = given, out
    floats = kind in FLOATS
    if tokens == 1 and not floats and n % 64 == 0:
        multiply_one(kind, w, w_stride, tile, rows, n, x, place)
        return
    stride = 4 * n if floats else _integer_bytes(n)
    step = 2 if tokens == 1 else rows  # one vector: take apart what is used next
    for first in range(0, rows, step):
        some = min(step, rows - first)
        if tokens == 1:
            for line in range(0, step * w_stride, 64):  # in a function of its own, LLVM would leave it out
                fetch(w + first * w_stride + AHEAD + line)
        for row in range(some):
            unpack(kind, w + (first + row) * w_stride, tile + row * stride, n)
        if floats:
            for t in range(tokens):
                for row in range(some):
                    found = float_product(tile + row * stride, x + t * x_stride, n)
                    store(place + t * out_stride + 4 * (first + row), found)
        else:
            multiply_tile(kind, tile, stride, some, n, given, (place + 4 * first, out_stride))


@register_jitable
def multiply_tile(kind: int, tile: int, stride: int, rows: int, n: int, given: Vectors, out: Place) -> None:
    """Integers; of an odd number of rows, or of vectors that four do not divide, the last ones are computed again."""
    (x, x_stride, tokens), (place, out_stride) = given, out
    with_mins = kind in WITH_MINS
    last = tokens - 1
    for t in range(0, tokens, 4):
        t1, t2, t3 = min(t + 1, last), min(t + 2, last), min(t + 3, last)
        x0, x1, x2, x3 = x + t * x_stride, x + t1 * x_stride, x + t2 * x_stride, x + t3 * x_stride
        o0, o1 = place + t * out_stride, place + t1 * out_stride
        o2, o3 = place + t2 * out_stride, place + t3 * out_stride
        for row in range(0, rows, 2):
            other = min(row + 1, rows - 1)
            w, v, at, at2 = tile + row * stride, tile + other * stride, 4 * row, 4 * other
            if t == last:
                a0, b0 = two_by_one(w, v, x0, n, with_mins)
            else:
                a0, a1, a2, a3, b0, b1, b2, b3 = two_by_four(w, v, (x0, x1, x2, x3), n, with_mins)
                store(o1 + at, a1)
                store(o2 + at, a2)
                store(o3 + at, a3)
                store(o1 + at2, b1)
                store(o2 + at2, b2)
                store(o3 + at2, b3)
            store(o0 + at, a0)
            store(o0 + at2, b0)


# ---- threads that share a product: the desk is a few numbers of 64 bits, those that change in cache lines of their own

OPEN, EPOCH, NEXT, ACTIVE, SHIFT, JOB = 0, 64, 128, 192, 256, 320  # bytes from the desk's start
POLLS = 2**6  # looks at the desk, about two microseconds, before a thread lets others run: they may need its core
RESTS = 2**14  # of a helper, one after another, until it goes home


@register_jitable
def take_part(desk: int, tile: int) -> None:
    """Rows of the product that lies on the desk, as long as some are left."""
    job = desk + JOB
    kind, w, w_stride, rows, n = int_at(job), int_at(job + 8), int_at(job + 16), int_at(job + 24), int_at(job + 32)
    given = int_at(job + 40), int_at(job + 48), int_at(job + 56)
    out, out_stride = int_at(job + 64), int_at(job + 72)
    piece = PIECE if given[2] == 1 else TILE
    while True:
        first: Any = add_shared(desk + NEXT, piece)
        if first >= rows:
            return
        some = min(piece, rows - first)
        multiply(kind, w + first * w_stride, w_stride, tile, some, n, given, (out + 4 * first, out_stride))


def work(desk: int, tile: int, helpers: bool, shift: int, rest: int) -> None:
    """What each thread of a crew runs; one function, so that all that it needs is compiled once.

    shift: -1 for the thread that has put a product on the desk, which computes it with or without helpers; else this is
    a helper, until the number on the desk is another. rest: a function of C, ``sched_yield``
    """
    if shift >= 0:
        help_out(desk, tile, shift, rest)
        return
    write_shared(desk + NEXT, 0)
    if helpers:
        add_shared(desk + EPOCH, 1)
        write_shared(desk + OPEN, 1)
    take_part(desk, tile)
    write_shared(desk + OPEN, 0)
    polls = 0
    while read_shared(desk + ACTIVE) > 0:  # who has come is not done yet
        polls += 1
        pause()
        if polls % POLLS == 0:
            call(rest)


@register_jitable
def help_out(desk: int, tile: int, shift: int, rest: int) -> None:
    """Take part in one product after another, until the shift ends or no product comes for a while."""
    done, polls = -1, 0
    while read_shared(desk + SHIFT) == shift and polls < RESTS * POLLS:
        if read_shared(desk + OPEN) == 0 or read_shared(desk + EPOCH) == done:
            polls += 1
            pause()
            if polls % POLLS == 0:
                call(rest)
            continue
        polls = 0
        add_shared(desk + ACTIVE, 1)
        if read_shared(desk + OPEN) == 1:  # else the next product may be on its way to the desk
            done = read_shared(desk + EPOCH)
            take_part(desk, tile)
        add_shared(desk + ACTIVE, -1)
