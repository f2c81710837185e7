"""The reader of GGUF that lab 23 attacks: naive on purpose, never part of the library. It runs on a ``Machine``.

It does what a C program does that was written for good files: numbers have 64 bits and wrap around, memory is allocated
by what the file says, and nothing is compared with the file's size. The author did check magic, version and types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ...core.errors import FormatError
from .machine import U64, Machine

ENTRY = 88  # bytes of a tensor's entry in the reader's table; 32 of them are room for four dims

# type of a value -> its bytes; a student's function cannot change it
SCALARS = MappingProxyType({0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8})
STRING, ARRAY = 8, 9
BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 8: (32, 34)}  # F32, F16, Q4_0, Q8_0: weights and bytes of a block
SMALLEST_STRING = 8  # its length, and nothing after it
SMALLEST_PAIR, SMALLEST_INFO = SMALLEST_STRING + 1 + 4 + 1, SMALLEST_STRING + 1 + 4 + 0 + 4 + 8


def naive_string(machine: Machine, data: bytes, at: int) -> tuple[str, int]:
    """A string as C keeps it: one byte more than its length, for the zero at its end."""
    length = machine.number(data, at, 8)
    text = machine.allocate(length + 1 & U64, "a string")
    machine.copy(text, 0, data, at + 8, length)
    return data[at + 8 : at + 8 + length].decode("latin-1"), at + 8 + length


def naive_array(data: bytes, at: int, machine: Machine) -> tuple[bytes, int]:
    """An array of numbers, its elements as bytes: their type, how many, then they."""
    kind, count = machine.number(data, at, 4), machine.number(data, at + 4, 8)
    if kind not in SCALARS:
        raise FormatError(f"element type {kind}")
    elements = machine.allocate(count * SCALARS[kind] & U64, "an array")
    machine.copy(elements, 0, data, at + 12, count * SCALARS[kind])
    end = at + 12 + count * SCALARS[kind]
    return data[at + 12 : end], end


def naive_dims(machine: Machine, data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """The dims go into the table of tensors, which has room for four."""
    n_dims = machine.number(data, at, 4)
    room = machine.allocate(32, "the dims of a tensor")
    dims = []
    for d in range(n_dims):
        machine.store(room, 8 * d, 8)
        dims.append(machine.number(data, at + 4 + 8 * d, 8))
    return tuple(dims), at + 4 + 8 * n_dims


def naive_size(dims: tuple[int, ...], weights: int, size: int) -> int:
    """Blocks of ``weights`` weights take ``size`` bytes. The product has 64 bits."""
    product = 1
    for dim in dims:
        product = product * dim & U64
    return product // weights * size & U64


def naive_start(position: int, alignment: int, file_size: int) -> int:
    """The next multiple of the alignment."""
    return (position + alignment - 1) // alignment * alignment


def fill(machine: Machine, weights: Any, data: bytes, at: int, dims: list[int], size: int) -> None:
    """Copy a tensor row by row, as the dims say: the last dim is a row."""
    row = (dims[-1] if dims else 1) * size
    rows = 1
    for dim in dims[:-1]:
        rows *= dim
    for index in range(rows if row else 0):
        machine.step()
        machine.copy(weights, index * row, data, at + index * row, row)


@dataclass(frozen=True)
class Parts:
    """The parts of the GGUF reader that can be replaced; these believe the file.

    A part that is ``None`` is the naive one below; it needs the machine, and a better one does not.
    """

    bounded_count: Callable[[int, int, int], int] = lambda count, smallest, left: count
    safe_string: Callable[[bytes, int], tuple[str, int]] | None = None
    read_array: Callable[[bytes, int, Machine], tuple[bytes, int]] = naive_array
    read_dims: Callable[[bytes, int], tuple[tuple[int, ...], int]] | None = None
    tensor_size: Callable[[tuple[int, ...], int, int], int] = naive_size
    data_start: Callable[[int, int, int], int] = naive_start
    fits_inside: Callable[[Any, Any, Any], bool] = lambda offset, size, left: True
    tensor_file: Callable[[str, set[str]], str] = lambda name, taken: name + ".bin"
    check_bounds: Callable[[dict[str, tuple[int, int]], int], int] = lambda tensors, data_size: 0


def read_naive_gguf(data: bytes, machine: Machine, parts: Parts | None = None) -> dict[str, bytes]:
    """Every tensor of a GGUF file, as bytes; ``parts`` are the pieces of it that are hardened already."""
    parts = parts or Parts()
    string = parts.safe_string or partial(naive_string, machine)
    dims_of = parts.read_dims or partial(naive_dims, machine)
    if data[:4] != b"GGUF" or machine.number(data, 4, 4) != 3 or len(data) < 24:
        raise FormatError("not a GGUF file of version 3")
    left = len(data) - 24
    n_tensors = parts.bounded_count(machine.number(data, 8, 8), SMALLEST_INFO, left)
    n_pairs = parts.bounded_count(machine.number(data, 16, 8), SMALLEST_PAIR, left)
    pairs = machine.allocate(n_pairs * ENTRY & U64, "the table of key-values")
    table = machine.allocate(n_tensors * ENTRY & U64, "the table of tensors")

    at = 24
    metadata: dict[str, Any] = {}
    for index in range(n_pairs):
        machine.step()
        machine.store(pairs, index * ENTRY, ENTRY)
        key, at = string(data, at)
        kind, at = machine.number(data, at, 4), at + 4
        if kind == STRING:
            metadata[key], at = string(data, at)
        elif kind == ARRAY and machine.number(data, at, 4) == STRING:
            count, at = parts.bounded_count(machine.number(data, at + 4, 8), SMALLEST_STRING, len(data) - at), at + 12
            metadata[key] = []
            for _ in range(count):
                machine.step()
                text, at = string(data, at)
                metadata[key].append(text)
        elif kind == ARRAY:
            metadata[key], at = parts.read_array(data, at, machine)
        elif kind in SCALARS:
            metadata[key], at = machine.number(data, at, SCALARS[kind]), at + SCALARS[kind]
        else:
            raise FormatError(f"type {kind}")

    entries, taken = [], set()
    for index in range(n_tensors):
        machine.step()
        machine.store(table, index * ENTRY, ENTRY)
        name, at = string(data, at)
        dims, at = dims_of(data, at)
        kind, offset, at = machine.number(data, at, 4), machine.number(data, at + 4, 8), at + 12
        if kind not in BLOCKS or (dims[0] if dims else 1) % BLOCKS[kind][0]:
            raise FormatError(f"tensor type {kind} with dims {dims}")
        file = parts.tensor_file(name, taken)
        taken.add(file)
        entries.append((name, file, dims, kind, offset))

    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int):
        raise FormatError("an alignment that is no number")
    start = machine.start = parts.data_start(at, alignment, len(data))
    places, left = {}, np.uint64(len(data) - min(start, len(data)))
    for name, _, dims, kind, offset in entries:
        places[name] = np.uint64(offset), np.uint64(parts.tensor_size(dims, *BLOCKS[kind]))
    with np.errstate(over="ignore"):  # sums wrap around, as in C
        for name, (offset, n_bytes) in places.items():
            if not parts.fits_inside(offset, n_bytes, left):
                raise FormatError(f"{name!r} does not lie inside the file")
        parts.check_bounds({name: place for name, place in places.items() if place[1]}, left)

    tensors = {}
    for name, file, dims, kind, offset in entries:
        n_bytes, (weights, size) = int(places[name][1]), BLOCKS[kind]
        buffer = machine.allocate(n_bytes, f"the weights of {name!r}")
        blocks = [dims[0] // weights if dims else 1, *dims[1:]]  # ggml's order: a row first
        fill(machine, buffer, data, start + offset, blocks[::-1], size)
        machine.claim(start + offset, n_bytes, name)
        tensors[name] = data[start + offset : start + offset + n_bytes]
        machine.create(file, tensors[name])
    return tensors
