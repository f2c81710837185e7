"""Damage a valid file: numbers that lie, entries that come twice, flipped bits, cuts, splices. Pure and repeatable."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from .seeds import Seed

EXTREMES = [0, 1, 2, 3, 4, 7, 8, 9, 13, 31, 32, 33, 63, 64, 65, 255, 256, 2**15, 2**16 - 1, 2**16, 0x7C00, 0xFE00]
EXTREMES += [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**60, 2**61, 2**62]
EXTREMES += [2**63 - 1, 2**63, 2**64 - 2**5, 2**64 - 2, 2**64 - 1]
SPECIALS = [b"\0", b"\xff", b"\x80", b"\n", b"=", b"\xc0\xaf", b"\xed\xa0\x80", b"../", b"GGUF", b"TFLG"]
SPECIALS += [b"\x00\x7c", b"\x01\xfc", b"\x00\x7e"]  # float16: infinite, not a number
MOST = 1 << 16  # no file grows beyond this, in bytes

Repair = Callable[[bytearray], None]


def mutated(
    random: random.Random,
    seeds: Sequence[Seed],
    repair: Repair | None = None,
    injuries: Sequence[Callable[..., None]] = (),
) -> bytes:
    """One of the valid files after one to six injuries; the same generator gives the same bytes.

    ``repair`` mends what would hide all other damage, a checksum say; one file in sixteen goes without it.
    """
    seed = random.choice(seeds)
    data = bytearray(seed.data)
    for _ in range(1 + min(random.getrandbits(2), random.randrange(6))):
        random.choice(injuries or INJURIES)(random, data, seed, seeds)
    if random.getrandbits(3):
        data[:8] = seed.data[:8]  # magic and version: without them a reader looks at nothing else
    del data[MOST:]
    if repair and random.getrandbits(4):
        repair(data)
    return bytes(data)


def lie(random: random.Random, data: bytearray, seed: Seed, seeds: Sequence[Seed]) -> None:
    """One of the file's numbers says something else."""
    if not seed.numbers:
        return
    start, width = random.choice(seed.numbers)
    top = (1 << 8 * width) - 1
    old = int.from_bytes(data[start : start + width], "little")
    size = len(data)
    near = [old + 1, old - 1, 2 * old, -old, old + 32, old - 32, old ^ (1 << random.randrange(8 * width))]
    near += [size, size + 1, size - 1, size - start, size - start - width, size // 8, (1 << 64) // max(1, old)]
    drawn = random.choice(near if random.getrandbits(1) else EXTREMES)
    number = drawn if random.getrandbits(3) else random.getrandbits(64)
    data[start : start + width] = (number & top).to_bytes(width, "little")


def lie_anywhere(random: random.Random, data: bytearray, seed: Seed, seeds: Sequence[Seed]) -> None:
    """Some bytes become a number of 1, 2, 4 or 8 bytes: what a length inside an array is, no table says."""
    at, width = _place(random, data), 1 << random.getrandbits(2)
    data[at : at + width] = (random.choice(EXTREMES) & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def copy_number(random: random.Random, data: bytearray, seed: Seed, seeds: Sequence[Seed]) -> None:
    """One number takes the value of another: two offsets alike, a length that is a count."""
    if seed.numbers:
        (start, width), (source, _) = random.choice(seed.numbers), random.choice(seed.numbers)
        data[start : start + width] = data[source : source + width]


def grow(random: random.Random, data: bytearray, seed: Seed, seeds: Sequence[Seed]) -> None:
    """A number becomes larger, and what it counts is there: longer names, more dims, longer arrays."""
    if not seed.numbers:
        return
    (start, width), more = random.choice(seed.numbers), random.choice((1, 1, 2, 3, 60, 64, 300))
    old = int.from_bytes(data[start : start + width], "little")
    data[start : start + width] = ((old + more) & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    at = min(start + width + random.choice((0, 0, old)), len(data))
    data[at:at] = more * random.choice((b"a", b"\x01\0\0\0", bytes(4), b"\x01" + bytes(7), bytes(8)))


def repeat_entry(random: random.Random, data: bytearray, seed: Seed, seeds: Sequence[Seed]) -> None:
    """A descriptor or key stands twice (or its copy has another name), and mostly the count knows it."""
    count, entries = random.choice(list(seed.entries.items())) if seed.entries else (None, [])
    if not entries:
        return
    start, end = random.choice(entries)
    copy = data[start:end]
    if copy and random.getrandbits(1):
        copy[min(len(copy) - 1, random.choice((2, 8)))] ^= 1  # the first letter of the name, or near it
    at = random.choice(entries)[0]
    data[at:at] = copy
    if random.getrandbits(2):
        number = int.from_bytes(data[count[0] : sum(count)], "little") + 1
        data[count[0] : sum(count)] = (number & ((1 << 8 * count[1]) - 1)).to_bytes(count[1], "little")


def flip(random: random.Random, data: bytearray, seed: Seed, seeds: Sequence[Seed]) -> None:
    """One bit."""
    if data:
        data[min(_place(random, data), len(data) - 1)] ^= 1 << random.getrandbits(3)


def poke(random: random.Random, data: bytearray, seed: Seed, seeds: Sequence[Seed]) -> None:
    """A few bytes become others: random ones, or ones that have a meaning somewhere."""
    at = _place(random, data)
    piece = random.choice(SPECIALS) if random.getrandbits(1) else random.randbytes(1 + random.getrandbits(3))
    data[at : at + len(piece)] = piece


def cut(random: random.Random, data: bytearray, seed: Seed, seeds: Sequence[Seed]) -> None:
    """The file ends early."""
    del data[_place(random, data) :]


def insert(random: random.Random, data: bytearray, seed: Seed, seeds: Sequence[Seed]) -> None:
    """Some bytes more: at one place, or at the end."""
    at = _place(random, data) if random.getrandbits(1) else len(data)
    size = 1 + random.getrandbits(6)
    data[at:at] = random.randbytes(size) if random.getrandbits(1) else bytes(size)


def delete(random: random.Random, data: bytearray, seed: Seed, seeds: Sequence[Seed]) -> None:
    """Some bytes fewer."""
    at = _place(random, data)
    del data[at : at + 1 + random.getrandbits(5)]


def splice(random: random.Random, data: bytearray, seed: Seed, seeds: Sequence[Seed]) -> None:
    """A piece of one of the valid files lies over the bytes, or between them."""
    other = random.choice(seeds).data
    start, size = random.randrange(len(other)), 1 + random.getrandbits(7)
    at = _place(random, data)
    piece = other[start : start + size]
    data[at : at + (len(piece) if random.getrandbits(1) else 0)] = piece


def _place(random: random.Random, data: bytearray) -> int:
    """A place in the file, mostly near its beginning: damage to the weights is only another weight."""
    return min(random.randrange(len(data) + 1), random.randrange(len(data) + 1), random.randrange(len(data) + 1))


INJURIES = [lie] * 6 + [lie_anywhere, copy_number, repeat_entry, grow] * 2 + [flip, poke, cut, insert, delete, splice]
