"""The loops of a product, run by Python: in place of registers they find numpy's arrays, read and written at addresses.

``test_bump_kernels`` compares what is compiled with the referees. Here nothing is compiled, so a fault in a loop shows
at once, and which line it is on. The expected products are those of ``integer_products``, which ggml's C has confirmed.
"""

from __future__ import annotations

import ctypes
import sys
from collections import Counter
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from miniquant import runtime
from miniquant.formats.bump import BumpType
from miniquant.formats.gguf.codecs import decode
from miniquant.runtime.integer_products import activation_type, encode_activations, integer_products


def at(address: int, dtype: str, n: int) -> np.ndarray:
    """Numbers that lie at an address."""
    dtype = np.dtype(dtype)
    return np.frombuffer((ctypes.c_uint8 * (n * dtype.itemsize)).from_address(int(address)), dtype)


def reader(dtype: str, n: int):
    return lambda address: at(address, dtype, n).copy()


def number(dtype: str, kind: type):
    return lambda address: kind(at(address, dtype, 1)[0])


def put(address, value) -> None:
    value = np.atleast_1d(value)
    assert value.dtype in (np.uint8, np.float32), value.dtype
    at(address, value.dtype, len(value))[:] = value


def bf16(address, n: int) -> np.ndarray:
    return (at(address, "<u2", n).astype(np.uint32) << 16).view(np.float32)


def added(address, n) -> int:
    found = at(address, "<i8", 1)
    before = int(found[0])
    found += n
    return before


def shared(address, value) -> None:
    at(address, "<i8", 1)[:] = value


def dot(total, u, s):
    return total + (u.astype(np.int32) * s.view(np.int8)).reshape(16, 4).sum(1, dtype=np.int32)


def repeated(first: int, times: int):
    return lambda v: v[first : first + 16 // times].repeat(times)


f32, rested, fetched, paused = np.float32, [], [], []
REGISTERS = {
    **{f"bytes{n}": reader("u1", n) for n in (16, 32, 64)},
    **{f"pair{k}": repeated(2 * k, 8) for k in range(4)},
    **{f"four{k}": repeated(4 * k, 4) for k in range(4)},
    "ints16": reader("<i4", 16),
    "floats16": reader("<f4", 16),
    "halves16": lambda address: at(address, "<f2", 16).astype(f32),
    "bfloats16": lambda address: bf16(address, 16),
    "float_at": number("<f4", f32),
    "half_at": number("<f2", f32),
    "bfloat_at": lambda address: bf16(address, 1)[0],
    "word_at": number("<u4", int),
    "int_at": number("<i8", int),
    "bits32": lambda address: np.unpackbits(at(address, "u1", 4), bitorder="little"),
    "fetch": lambda address: fetched.append(address),
    "store": put,
    "eight": lambda low, high: np.array([low, high], "<u4").view(np.uint8),
    "join": lambda a, b: np.concatenate([a, b]),
    "every_half8": lambda address: np.full(8, at(address, "<f2", 1)[0], f32),
    "every_half16": lambda address: np.full(16, at(address, "<f2", 1)[0], f32),
    "every_float16": lambda v: np.full(16, v, f32),
    "every_int16": lambda v: np.full(16, v, np.int32),
    "signed": lambda v: (v.view(np.int8) if v.dtype == np.uint8 else v).astype(f32),
    "unsigned": lambda v: v.astype(f32),
    "sum_of": lambda v: f32(v.sum()),
    "plus_product": lambda total, a, b: total + a * b,
    "dot": dot,
    "add_shared": added,
    "read_shared": number("<i8", int),
    "write_shared": shared,
    "pause": lambda: paused.append(None),
    "call": lambda address: rested.append(address),
}


def loaded() -> SimpleNamespace:
    """The functions of ``products``, imported anew with these registers; everything is put back afterwards."""
    names = [f"{runtime.__name__}.{name}" for name in ("lanes", "unpacking", "direct", "products")]
    before, held = {name: sys.modules[name] for name in names if name in sys.modules}, dict(vars(runtime))
    for name in names:
        sys.modules.pop(name, None)
        vars(runtime).pop(name.rpartition(".")[2], None)  # "from . import" takes it from there if it can
    vars(sys.modules.setdefault(names[0], ModuleType(names[0]))).update(REGISTERS)
    try:
        __import__(names[-1])
        return SimpleNamespace(**vars(sys.modules[names[-1]]))
    finally:
        for name in names:
            sys.modules.pop(name, None)
            vars(runtime).pop(name.rpartition(".")[2], None)
        sys.modules.update(before)
        vars(runtime).update(held)


LOOPS = loaded()
KINDS = [BumpType(kind) for kind in BumpType if kind.ggml is not None
         and int(kind.ggml) in {*LOOPS.FLOATS, *LOOPS.FORMS}]  # fmt: skip
FLOATS = [kind for kind in KINDS if kind.ggml.block == 1]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
of_integers = pytest.mark.parametrize("kind", [k for k in KINDS if k not in FLOATS], ids=lambda kind: kind.name)


def blocks(kind: BumpType, rows: int, n: int) -> np.ndarray:
    """Random blocks with scales of a sensible size: (rows, bytes) uint8."""
    random = np.random.default_rng(n)
    count = n // kind.ggml.block
    raw = random.integers(0, 256, (rows, count, kind.ggml.n_bytes), np.uint8)
    scale = random.uniform(-2, 2, (rows, count)).astype("<f2").view(np.uint8).reshape(rows, count, 2)
    if kind == BumpType.FP32:
        raw = random.normal(size=(rows, n)).astype("<f4").view(np.uint8)
    elif kind == BumpType.FP16:
        raw = scale
    elif kind == BumpType.BF16:
        raw[..., 1] = raw[..., 1] & 0x80 | 0x3F
    else:
        first = 208 if kind == BumpType.Q6_K else 0
        raw[..., first : first + 2] = scale
        if int(kind.ggml) in LOOPS.WITH_MINS:
            raw[..., 2:4] = scale[:, ::-1]
    return np.ascontiguousarray(raw).reshape(rows, -1)


def packed(x: np.ndarray, kind: BumpType) -> tuple[np.ndarray, int]:
    """Vectors in the form that a tile meets, by the compiled ``activations``; and the bytes of one."""
    if kind in FLOATS:
        return x, 4 * x.shape[1]
    from miniquant.runtime.kernels import Given, Matrix, packed_floats

    room = np.full(packed_floats(*x.shape), np.nan, np.float32)
    given = Given(x, room)
    found = given.packed(Matrix(np.zeros(kind.ggml.n_bytes, np.uint8), kind, (1, x.shape[1])))
    return room, found[1]


def expected(raw: np.ndarray, kind: BumpType, x: np.ndarray) -> np.ndarray:
    if kind in FLOATS:
        return x.astype(float) @ decode(raw, kind.ggml).astype(float).T
    return integer_products(raw, kind.ggml, encode_activations(x, activation_type(kind.ggml)))


def close(out: np.ndarray, raw: np.ndarray, kind: BumpType, x: np.ndarray) -> bool:
    sizes = np.abs(x.astype(float)) @ np.abs(decode(raw, kind.ggml).astype(float)).T
    return bool((np.abs(out - expected(raw, kind, x)) <= 2e-6 * sizes).all())


def sizes_of(kind: BumpType) -> tuple[int, int]:
    """Rows that fill chunks of 64, or of 512, and rows that do not."""
    return (37, 64) if kind in FLOATS else (256, 512, 1024) if kind.ggml.block == 256 else (32, 544, 64, 576)


class Room:
    """A matrix, vectors, a tile full of NaN, and room for products between guards that nobody may overwrite."""

    def __init__(self, kind: BumpType, rows: int, n: int, tokens: int) -> None:
        self.kind, self.rows, self.n, self.tokens = kind, rows, n, tokens
        self.raw = blocks(kind, rows, n)
        self.x = np.random.default_rng(n + 1).normal(size=(tokens, n)).astype(np.float32)
        self.given, self.x_stride = packed(self.x, kind)
        self.tile_bytes = LOOPS.TILE * LOOPS.tile_bytes(n)
        self.tile = np.full(self.tile_bytes + 256, 0xFF, np.uint8)
        self.out = np.full((tokens + 2, rows + 2), np.nan, np.float32)

    @property
    def vectors(self) -> tuple[int, int, int]:
        return self.given.ctypes.data, self.x_stride, self.tokens

    @property
    def place(self) -> tuple[int, int]:
        return self.out[1:, 1:].ctypes.data, self.out.strides[0]

    def right(self) -> bool:
        guards = self.out.copy()
        guards[1:-1, 1:-1] = np.nan
        untouched = np.isnan(guards).all() and (self.tile[self.tile_bytes :] == 0xFF).all()
        return bool(untouched) and close(self.out[1:-1, 1:-1], self.raw, self.kind, self.x)


@every_kind
@pytest.mark.parametrize(("rows", "tokens"), [(1, 1), (3, 1), (3, 2), (2, 5), (2, 6)])
def test_a_tile_of_rows_times_all_vectors_is_the_product_and_nothing_beside_it_is_touched(kind, rows, tokens):
    for n in sizes_of(kind):
        room = Room(kind, rows, n, tokens)
        LOOPS.multiply(int(kind.ggml), room.raw.ctypes.data, room.raw.shape[1], room.tile.ctypes.data, rows, n,
                       room.vectors, room.place)  # fmt: skip
        assert room.right(), n


@of_integers
def test_a_single_vector_needs_no_tile_only_room_for_the_mins_of_two_rows(kind):
    for n in (size for size in sizes_of(kind)[:2] if size % 64 == 0):
        room = Room(kind, 3, n, 1)
        LOOPS.multiply(int(kind.ggml), room.raw.ctypes.data, room.raw.shape[1], room.tile.ctypes.data, 3, n,
                       room.vectors, room.place)  # fmt: skip
        mins = 2 * -(-n // 512) * 64 if int(kind.ggml) in LOOPS.WITH_MINS else 0
        assert room.right() and (room.tile[mins:] == 0xFF).all() and not (room.tile[:mins] == 0xFF).any()


@of_integers
def test_what_is_left_of_a_chunk_counts_nothing(kind):
    """In a tile, the integers' scales and the mins of blocks that a row does not have are zeros."""
    n = 3 * 32 if kind.ggml.block == 32 else 256
    raw, tile = blocks(kind, 1, n), np.full(LOOPS.tile_bytes(n), 0xFF, np.uint8)
    LOOPS.unpack(int(kind.ggml), raw.ctypes.data, tile.ctypes.data, n)
    chunks = (n + 63) // 64
    values, mins = tile[: 128 * chunks].reshape(chunks, 128), tile[128 * chunks :].view(np.float32)
    scales = np.ascontiguousarray(values[:, 64:]).view(np.float32)
    assert np.isfinite(scales).all() and (scales.reshape(-1)[n // 4 :] == 0).all()
    weights = values[:, :64].reshape(-1)[:n].astype(float) - LOOPS.FORMS[int(kind.ggml)].raised
    found = weights * scales.reshape(-1)[: n // 4].repeat(4)
    if int(kind.ggml) in LOOPS.WITH_MINS:
        assert (mins[n // 32 : 16] == 0).all()
        found += mins[: n // 32].repeat(32).astype(float)
    right = decode(raw, kind.ggml)[0]
    assert np.allclose(found, right, rtol=1e-6, atol=1e-6 * np.abs(right).max())


@of_integers
def test_two_rows_are_asked_for_a_piece_at_a_time_some_time_before_they_are_used(kind):
    n = 2 * max(64, kind.ggml.block)
    room = Room(kind, 3, n, 1)
    stride, first = room.raw.shape[1], room.raw.ctypes.data
    fetched.clear()
    LOOPS.multiply(int(kind.ggml), first, stride, room.tile.ctypes.data, 3, n, room.vectors, room.place)
    asked = np.array(fetched) - first - LOOPS.AHEAD
    piece = 2 * stride // (n // max(64, kind.ggml.block))  # of two rows, what is used in one step
    assert [*asked] == [at + line for at in range(0, 4 * stride, piece) for line in range(0, piece, 64)]


@pytest.mark.parametrize(("tokens", "lines"), [(1, 2 * [*range(0, 204, 64)]), (2, [])])
def test_with_a_tile_rows_are_asked_for_two_at_a_time_and_never_for_several_vectors(tokens, lines):
    room = Room(BumpType.Q8_0, 3, 96, tokens)
    stride, first = room.raw.shape[1], room.raw.ctypes.data
    fetched.clear()
    LOOPS.multiply(8, first, stride, room.tile.ctypes.data, 3, 96, room.vectors, room.place)
    starts = [0] * (len(lines) // 2) + [2 * stride] * (len(lines) // 2)
    assert fetched == [first + start + LOOPS.AHEAD + line for start, line in zip(starts, lines)]


def desk_of(room: Room) -> np.ndarray:
    desk = np.zeros(LOOPS.JOB // 8 + 10, np.int64)
    desk[LOOPS.JOB // 8 :] = (int(room.kind.ggml), room.raw.ctypes.data, room.raw.shape[1], room.rows, room.n,
                              *room.vectors, *room.place)  # fmt: skip
    return desk


@pytest.mark.parametrize("helpers", [False, True])
@pytest.mark.parametrize("kind", [BumpType.Q8_0, BumpType.FP32], ids=lambda kind: kind.name)
@pytest.mark.parametrize(("tokens", "piece"), [(1, LOOPS.PIECE), (2, LOOPS.TILE)])
def test_who_puts_a_product_on_the_desk_computes_all_of_it_piece_by_piece_if_nobody_comes(kind, helpers, tokens, piece):
    room = Room(kind, 2 * piece + 1, 64, tokens)
    desk = desk_of(room)
    desk[LOOPS.NEXT // 8], desk[LOOPS.EPOCH // 8] = 99, 6
    LOOPS.work(desk.ctypes.data, room.tile.ctypes.data, helpers, -1, 0)
    assert room.right()
    assert desk[LOOPS.NEXT // 8] == 4 * piece and desk[LOOPS.EPOCH // 8] == 6 + helpers
    assert desk[LOOPS.OPEN // 8] == 0 == desk[LOOPS.ACTIVE // 8]


class Desk:
    """A desk on which somebody else changes numbers while a thread looks at it. It rests sooner than it would."""

    polls, rests = 40, 5

    def __init__(self, room: Room, monkeypatch) -> None:
        self.desk, self.looks, self.plans = desk_of(room), Counter(), {}
        self.written: list[tuple[str, int]] = []
        self.names = {getattr(LOOPS, name): name for name in ("OPEN", "EPOCH", "NEXT", "ACTIVE", "SHIFT")}
        space = LOOPS.work.__globals__
        monkeypatch.setitem(space, "POLLS", self.polls)
        monkeypatch.setitem(space, "RESTS", self.rests)
        monkeypatch.setitem(space, "read_shared", self.read)
        monkeypatch.setitem(space, "write_shared", self.write)
        monkeypatch.setitem(space, "add_shared", self.add)

    def __getitem__(self, name: str) -> int:
        return int(self.desk[getattr(LOOPS, name) // 8])

    def __setitem__(self, name: str, value: int) -> None:
        self.desk[getattr(LOOPS, name) // 8] = value

    def name(self, address: int) -> str:
        return self.names[address - self.desk.ctypes.data]

    def read(self, address: int) -> int:
        name = self.name(address)
        self.looks[name] += 1
        assert self.looks[name] < 100_000, "a thread looks for ever"
        if plan := self.plans.get((name, self.looks[name])):
            plan()
        return self[name]

    def write(self, address: int, value: int) -> None:
        self[self.name(address)] = value
        self.written.append((self.name(address), value))

    def add(self, address: int, n: int) -> int:
        name, before = self.name(address), added(address, n)
        self.written.append((name, self[name]))
        return before


def test_the_desk_is_set_before_it_opens_and_closed_before_the_wait_for_who_has_come(monkeypatch):
    room = Room(BumpType.Q8_0, 1, 32, 1)
    desk = Desk(room, monkeypatch)
    desk["ACTIVE"], desk["NEXT"] = 2, 5
    rested.clear()
    paused.clear()
    desk.plans = {("ACTIVE", 3): lambda: desk.__setitem__("ACTIVE", 1),
                  ("ACTIVE", 2 * desk.polls + 5): lambda: desk.__setitem__("ACTIVE", 0)}  # fmt: skip
    LOOPS.work(desk.desk.ctypes.data, room.tile.ctypes.data, True, -1, 1234)
    assert desk.written == [("NEXT", 0), ("EPOCH", 1), ("OPEN", 1), ("NEXT", LOOPS.PIECE), ("NEXT", 2 * LOOPS.PIECE),
                            ("OPEN", 0)]  # fmt: skip
    assert rested == 2 * [1234] and room.right()
    assert desk.looks["ACTIVE"] == 2 * desk.polls + 5 == len(paused) + 1


def test_a_helper_comes_once_to_each_product_and_goes_when_the_shift_ends(monkeypatch):
    room = Room(BumpType.Q8_0, 1, 32, 1)
    desk = Desk(room, monkeypatch)
    desk["SHIFT"], desk["NEXT"] = 7, 0
    rested.clear()

    def opened():
        desk["OPEN"], desk["EPOCH"], desk["NEXT"] = 1, desk["EPOCH"] + 1, 0

    def closed():
        desk["OPEN"] = 0

    def ended():
        desk["SHIFT"] = 8

    waits = desk.polls + 3
    desk.plans = {("SHIFT", waits): opened, ("SHIFT", waits + 9): opened, ("SHIFT", waits + 12): ended}
    LOOPS.work(desk.desk.ctypes.data, room.tile.ctypes.data, True, 7, 1234)
    assert [row for row in desk.written if row[0] == "ACTIVE"] == 2 * [("ACTIVE", 1), ("ACTIVE", 0)]
    assert room.right() and rested == [1234] and desk["EPOCH"] == 2
    assert LOOPS.work(desk.desk.ctypes.data, room.tile.ctypes.data, True, 7, 1234) is None  # the shift is over


def test_a_helper_goes_home_after_some_rests_in_a_row_without_a_product(monkeypatch):
    room = Room(BumpType.Q8_0, 1, 32, 1)
    desk = Desk(room, monkeypatch)
    rested.clear()
    paused.clear()

    def opened():
        desk["OPEN"], desk["EPOCH"], desk["NEXT"] = 1, desk["EPOCH"] + 1, 0

    desk.plans = {("SHIFT", 4 * desk.polls + 3): opened}
    LOOPS.work(desk.desk.ctypes.data, room.tile.ctypes.data, True, 0, 1234)
    assert room.right() and rested == (4 + desk.rests) * [1234]
    assert desk["SHIFT"] == 0 == desk["ACTIVE"]
    assert len(paused) == desk.looks["SHIFT"] - 2  # the look that finds a product, and the last one
    # a pause is tens of nanoseconds: it is not the wait between two tokens that sends it home
    assert LOOPS.RESTS * LOOPS.POLLS >= 2**20


def test_a_helper_that_comes_when_the_desk_has_just_closed_takes_no_part_and_may_come_to_the_next(monkeypatch):
    room = Room(BumpType.Q8_0, 1, 32, 1)
    desk = Desk(room, monkeypatch)
    desk["SHIFT"], desk["OPEN"], desk["EPOCH"] = 3, 1, 1
    desk.plans = {("OPEN", 2): lambda: desk.__setitem__("OPEN", 0), ("SHIFT", 2): lambda: desk.__setitem__("OPEN", 1),
                  ("SHIFT", 4): lambda: desk.__setitem__("SHIFT", 4)}  # fmt: skip
    LOOPS.work(desk.desk.ctypes.data, room.tile.ctypes.data, True, 3, 0)
    active = [row for row in desk.written if row[0] != "NEXT"]
    assert active == 2 * [("ACTIVE", 1), ("ACTIVE", 0)] and room.right()
    assert [name for name, _ in desk.written][:2] == ["ACTIVE", "ACTIVE"]


def test_the_first_product_of_all_has_a_number_that_no_helper_has_seen(monkeypatch):
    room = Room(BumpType.Q8_0, 1, 32, 1)
    desk = Desk(room, monkeypatch)
    desk["SHIFT"], desk["OPEN"], desk["EPOCH"] = 0, 1, 0
    desk.plans = {("SHIFT", 3): lambda: desk.__setitem__("SHIFT", 1)}
    LOOPS.work(desk.desk.ctypes.data, room.tile.ctypes.data, False, 0, 0)
    assert room.right()


def test_a_row_of_a_tile_has_room_for_floats_and_for_integers_with_scales_and_mins():
    assert [LOOPS.tile_bytes(n) for n in (1, 32, 64, 65, 512, 513)] == [192, 192, 256, 320, 2048, 2052]


def test_numbers_of_a_desk_that_change_lie_in_cache_lines_of_their_own_before_the_job():
    changing = [LOOPS.OPEN, LOOPS.EPOCH, LOOPS.NEXT, LOOPS.ACTIVE, LOOPS.SHIFT]
    assert all(b - a >= 64 for a, b in zip(changing, [*changing[1:], LOOPS.JOB]))
