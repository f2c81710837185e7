"""The registers of the runtime's kernels: what each function reads, computes and writes is what numpy says."""

from __future__ import annotations

import os
import subprocess
import sys
from ctypes import CFUNCTYPE, c_void_p, cast
from types import SimpleNamespace

import llvmlite.binding
import numba
import numpy as np
import pytest
from llvmlite import ir

from miniquant.runtime import lanes
from miniquant.runtime.lanes import (
    add_shared,
    as_half,
    bfloat_at,
    bfloats16,
    bits32,
    bytes16,
    bytes32,
    bytes64,
    call,
    dot,
    eight,
    every_byte64,
    every_float16,
    every_half8,
    every_half16,
    every_int16,
    fetch,
    float_at,
    floats16,
    half_at,
    halves16,
    int32_at,
    int_at,
    ints16,
    join,
    largest,
    nearest,
    outward,
    pause,
    plus_product,
    read_shared,
    signed,
    store,
    sum_of,
    unsigned,
    word_at,
    write_shared,
)

f32 = np.float32
RANDOM = np.random.default_rng(2)
BYTES = RANDOM.integers(0, 256, 80, np.uint8)
BELL = RANDOM.normal(size=16).astype(f32)
HALVES = np.array([0, -0.0, 1, -1.5, 65504, 6e-8, np.inf, -np.inf, *RANDOM.normal(size=8)], np.float16)
TIES = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, -127.5, 0.49, -0.51, 0, 3, -7.4, 7.6, 127, -128], f32)


def written(function, *given: np.ndarray, size: int = 64) -> np.ndarray:
    """The bytes that a function writes at its last argument, between guards; every address is odd."""
    rooms = [np.concatenate([np.zeros(1, np.uint8), array.view(np.uint8).reshape(-1)]) for array in given]
    out = np.full(size + 65, 0xA5, np.uint8)
    numba.njit(function)(*(room.ctypes.data + 1 for room in rooms), out.ctypes.data + 1)
    assert out[0] == 0xA5 and (out[size + 1 :] == 0xA5).all()
    return out[1 : size + 1]


@pytest.mark.parametrize(("read", "n"), [(bytes16, 16), (bytes32, 32), (bytes64, 64), (ints16, 64), (floats16, 64)])
def test_a_register_is_read_at_any_address_and_written_as_it_was(read, n):
    def copy(address, out):
        store(out, read(address))

    assert np.array_equal(written(copy, BYTES, size=n), BYTES[:n])


def test_floats_of_two_bytes_become_wider_and_lose_nothing():
    def wide(halves, words, out):
        store(out, halves16(halves))
        store(out + 64, bfloats16(words))

    words = BYTES[:32].view("<u2") & 0xBFFF
    found = written(wide, HALVES, words, size=128).view(f32)
    assert np.array_equal(found[:16], HALVES.astype(f32))
    assert np.array_equal(found[16:].view(np.uint32), words.astype(np.uint32) << 16)


def test_one_number_is_read_in_each_form():
    def one(floats, halves, words, out):
        store(out, float_at(floats))
        store(out + 4, half_at(halves + 6))
        store(out + 8, bfloat_at(words))
        store(out + 12, np.float32(word_at(words)))
        store(out + 16, np.float32(int32_at(words)))
        store(out + 20, np.float32(int_at(words)))

    words = np.frombuffer(bytes([1, 0xC0, 0xFE, 0xFF, 0xFE, 0xFF, 0xFF, 0xFF]), np.uint8)
    found = written(one, BELL, HALVES, words, size=24).view(f32)
    assert found[0] == BELL[0] and found[1] == -1.5
    assert found[2].view(np.uint32) == 0xC0010000
    assert found[3] == f32(0xFFFEC001) and found[4] == f32(0xFFFEC001 - 2**32)
    assert found[5] == f32(int(words.view("<i8")[0]))


def test_bits_become_bytes_the_lowest_first_and_words_become_bytes():
    def bits(words, out):
        store(out, bits32(words + 4))
        store(out + 32, eight(word_at(words), word_at(words + 8)))
        store(out + 40, join(bytes16(words), bytes16(words + 16)))

    found = written(bits, BYTES, size=72)
    assert np.array_equal(found[:32], np.unpackbits(BYTES[4:8], bitorder="little"))
    assert np.array_equal(found[32:40], np.concatenate([BYTES[:4], BYTES[8:12]]))
    assert np.array_equal(found[40:], BYTES[:32])


def test_one_number_fills_a_register():
    def fill(halves, out):
        store(out, every_half8(halves + 6))
        store(out + 32, every_float16(np.float32(-2)))
        store(out + 96, every_int16(np.int32(-70000)))
        store(out + 160, every_byte64(np.uint8(200)))
        store(out + 224, every_half16(halves + 10))

    found = written(fill, HALVES, size=288)
    assert (found[:32].view(f32) == -1.5).all() and (found[32:96].view(f32) == -2).all()
    assert (found[96:160].view(np.int32) == -70000).all() and (found[160:224] == 200).all()
    assert (found[224:].view(f32) == f32(HALVES[5])).all()


@pytest.mark.parametrize("k", range(4))
def test_a_few_lanes_are_repeated_over_a_register(k):
    pair, four = getattr(lanes, f"pair{k}"), getattr(lanes, f"four{k}")

    def repeated(floats, out):
        store(out, pair(floats16(floats)))
        store(out + 64, four(floats16(floats)))

    found = written(repeated, BELL, size=128).view(f32)
    assert np.array_equal(found[:16], BELL[2 * k : 2 * k + 2].repeat(8))
    assert np.array_equal(found[16:], BELL[4 * k : 4 * k + 4].repeat(4))


def test_integers_become_floats_with_and_without_a_sign_and_floats_the_nearest_integers():
    def convert(data, floats, out):
        store(out, signed(bytes16(data)))
        store(out + 64, unsigned(bytes16(data)))
        store(out + 128, signed(ints16(data)))
        store(out + 192, nearest(floats16(floats)))
        store(out + 208, outward(floats16(floats)))

    found = written(convert, BYTES, TIES, size=224)
    assert np.array_equal(found[:64].view(f32), BYTES[:16].view(np.int8).astype(f32))
    assert np.array_equal(found[64:128].view(f32), BYTES[:16].astype(f32))
    assert np.array_equal(found[128:192].view(f32), BYTES[:64].view("<i4").astype(f32))
    assert np.array_equal(found[192:208].view(np.int8), np.rint(TIES))
    away = np.trunc(TIES + np.copysign(0.5, TIES.astype(float)))
    assert np.array_equal(found[208:].view(np.int8), away.astype(int).astype(np.int8))


def test_a_float_is_rounded_to_a_float16():
    def rounded(floats, out):
        for i in range(16):
            store(out + 4 * i, as_half(float_at(floats + 4 * i)))

    assert np.array_equal(written(rounded, BELL * 1000).view(f32), (BELL * f32(1000)).astype(np.float16).astype(f32))


def test_a_register_is_added_up_by_halves_and_gives_its_largest_magnitude():
    def one(floats, out):
        store(out, sum_of(floats16(floats)))
        store(out + 4, largest(floats16(floats)))

    for x in (BELL, -np.abs(BELL), np.arange(16, dtype=f32)[::-1] - 20, np.array([2.0**24, *[1] * 15], f32)):
        x = np.ascontiguousarray(x, f32)
        total = x
        while len(total) > 1:
            total = total[: len(total) // 2] + total[len(total) // 2 :]
        assert written(one, x, size=8).view(f32).tolist() == [total[0], np.abs(x).max()]


@lanes.intrinsic
def products(typing, total, u, s):
    """As ``dot`` computes them on a processor without an instruction for it."""

    def code(context, builder, signature, args):
        return builder.add(args[0], lanes._products(builder, args[1], args[2]))

    return total(total, u, s), code


def test_bytes_are_multiplied_and_added_up_by_four():
    def four(total, u, s, out):
        store(out, dot(ints16(total), bytes64(u), bytes64(s)))

    u = RANDOM.integers(0, 256, 64, np.uint8)
    s = RANDOM.integers(0, 256, 64, np.uint8)
    u[:8], s[:4], s[4:8] = 255, 128, 127
    total = np.arange(16, dtype=np.int32) * 1000 - 5

    def plain(total, u, s, out):
        store(out, products(ints16(total), bytes64(u), bytes64(s)))

    found = written(four, total, u, s)
    right = total + (u.astype(int) * s.view(np.int8)).reshape(16, 4).sum(1)
    assert np.array_equal(found.view(np.int32), right)
    assert np.array_equal(written(plain, total, u, s).view(np.int32), right)


def test_a_sum_of_products_is_total_plus_a_times_b():
    def loop(total, a, b, out):
        store(out, plus_product(floats16(total), floats16(a), floats16(b)))

    a, b, c = (np.ascontiguousarray(x, f32) for x in (BELL, BELL[::-1] + 2, np.arange(16)))
    found = written(loop, a, b, c).view(f32)
    assert np.allclose(found, a + b * c, rtol=1e-5, atol=1e-5)


def test_the_instruction_for_four_products_is_used_where_there_is_one_and_elsewhere_plain_ones_give_the_same():
    """The plain instructions, compiled for a processor of which nothing is known."""
    code = """
import numpy as np, numba
from miniquant.runtime.lanes import bytes64, dot, ints16, store
@numba.njit
def four(total, u, s):
    store(total, dot(ints16(total), bytes64(u), bytes64(s)))
u, s = np.random.default_rng(0).integers(0, 256, (2, 64), np.uint8)
u[:8], s[:4], s[4:8] = 255, 128, 127
total = np.arange(16, dtype=np.int32)
right = total + (u.astype(int) * s.view(np.int8)).reshape(16, 4).sum(1)
four(total.ctypes.data, u.ctypes.data, s.ctypes.data)
assert np.array_equal(total, right), (total, right)
assert "vpdpbusd" not in "".join(four.inspect_asm().values())
"""
    plain = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=plain)
    assert done.returncode == 0, done.stderr

    def here(total, u, s):
        store(total, dot(ints16(total), bytes64(u), bytes64(s)))

    found = numba.njit((numba.intp,) * 3)(here)
    features = found.overloads[found.signatures[0]].library.codegen._tm_features
    assert ("vpdpbusd" in "".join(found.inspect_asm().values())) == ("+avx512vnni" in features)


def test_threads_read_write_and_add_to_numbers_that_they_share_in_one_piece():
    def share(address, out):
        store(out, np.float32(add_shared(address, 5)))
        store(out + 4, np.float32(read_shared(address)))
        write_shared(address + 8, read_shared(address) * 2)
        fetch(address)

    numbers = np.array([2**33, 1, 7], np.int64)
    out = np.zeros(2, f32)
    compiled = numba.njit((numba.intp, numba.intp))(share)
    compiled(numbers.ctypes.data, out.ctypes.data)
    assert out.tolist() == [f32(2**33), f32(2**33 + 5)] and numbers.tolist() == [2**33 + 5, 2**34 + 10, 7]
    code = "".join(compiled.inspect_llvm().values())
    assert "atomicrmw add" in code and "load atomic" in code and "store atomic" in code
    assert code.count("seq_cst, align 8") >= 3
    assert "llvm.prefetch.p0" in code and "i32 0, i32 3, i32 1)" in code


def test_fetching_what_is_no_address_does_no_harm():
    numba.njit(lambda address: fetch(address))(1)


@pytest.mark.parametrize(
    ("triple", "instruction"),
    [
        ("x86_64-unknown-linux-gnu", "call void @llvm.x86.sse2.pause()"),
        ("i686-pc-windows-msvc", "call void @llvm.x86.sse2.pause()"),
        ("aarch64-unknown-linux-gnu", "call void @llvm.aarch64.hint(i32 1)"),
        ("arm64-apple-darwin23.0.0", "call void @llvm.aarch64.hint(i32 1)"),
        ("riscv64-unknown-linux-gnu", ""),
    ],
)
def test_a_pause_is_the_processor_s_own_instruction_or_none(triple, instruction):
    module = ir.Module()
    module.triple = triple
    builder = ir.IRBuilder(ir.Function(module, ir.FunctionType(ir.VoidType(), []), "f").append_basic_block())
    signature, code = pause._defn(None)
    code(SimpleNamespace(get_dummy_value=lambda: None), builder, signature, ())
    builder.ret_void()
    calls = [line.strip().replace('"', "") for line in str(module).splitlines() if "call" in line]
    assert calls == [instruction] * bool(instruction)
    llvmlite.binding.parse_assembly(str(module)).verify()


def test_a_pause_takes_nothing_and_gives_nothing():
    assert numba.njit(lambda: pause())() is None


def test_a_function_of_c_is_called():
    seen = []
    function = CFUNCTYPE(None)(lambda: seen.append(1))
    numba.njit(lambda address: call(address))(cast(function, c_void_p).value)
    assert seen == [1]


def test_functions_keep_their_docstrings():
    for name in (
        "half_at",
        "word_at",
        "pair0",
        "four3",
        "signed",
        "unsigned",
        "nearest",
        "outward",
        "largest",
        "sum_of",
        "pause",
    ):
        assert getattr(lanes, name).__doc__, name
