"""The exercise of lab 17 on memory: an array that says how long it is."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

import numpy as np

from ...core.errors import FormatError
from ...lab.spec import Case, Exercise, Finding, Mistake
from .machine import U64, Machine
from .naive import SCALARS
from .numbers import signed

# ---- read_array ------------------------------------------------------------------------------------------------------


def read_array(data: bytes, at: int, machine: Machine) -> tuple[bytes, int]:
    """The reference: a file, a place in it, a machine to ask for memory -> the elements' bytes, the place behind."""
    if at + 12 > len(data):
        raise FormatError("an array begins with 12 bytes; the file is truncated", offset=at)
    kind, count = struct.unpack_from("<IQ", data, at)
    if kind not in SCALARS:
        raise FormatError(f"found the element type {kind}", offset=at)
    size = count * SCALARS[kind]
    if size > len(data) - at - 12:
        raise FormatError(f"found {count} elements, {len(data) - at - 12} bytes are left", offset=at + 4)
    machine.allocate(size, "an array")
    return data[at + 12 : at + 12 + size], at + 12 + size


def read_array_oracle(data: bytes, at: int, machine: Machine) -> tuple[bytes, int]:
    """Element by element, and memory only once all of them are found."""
    head = list(data[at : at + 12])
    if len(head) < 12 or any(head[1:4]) or head[0] not in (0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12):
        raise FormatError("no array of numbers")
    width = (1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8)[head[0]]
    wanted = sum(digit << 8 * place for place, digit in enumerate(head[4:]))
    end = at + 12
    for _ in range(min(wanted, len(data) + 1)):
        end += width
    if end > len(data):
        raise FormatError("too long")
    machine.allocate(end - at - 12, "an array")
    return bytes(data[place] for place in range(at + 12, end)), end


def _array_cases(random: np.random.Generator) -> list[Case]:
    def said(kind: int, count: int, elements: bytes = b"") -> bytes:
        return struct.pack("<IQ", kind, count) + elements

    good = [(said(4, 2, bytes(range(8))), 0), (b"abc" + said(0, 3, b"xyz") + b"behind", 3), (said(12, 0), 0)]
    good += [(said(10, 1, bytes(range(8))), 0)]
    bad = [(said(4, 3, bytes(8)), 0), (said(4, 8, bytes(8)), 0), (said(4, 2**62, bytes(8)), 0), (b"", 0)]
    bad += [(said(12, 2**61 + 1, bytes(8)), 0), (said(0, 2**64 - 1, bytes(8)), 0), (said(9, 1, bytes(8)), 0)]
    bad += [
        (said(13, 1, bytes(8)), 0),
        (said(8, 1, bytes(8)), 0),
        (said(0, 3, b"xyz")[:11], 0),
        (said(2, 9, bytes(17)), 0),
    ]
    bad += [(said(0, 16, bytes(8)), 0), (b"abcdefgh" + said(0, 12, bytes(4)), 8)]
    drawn = [(said(2, n, random.bytes(2 * n)), 0) for n in (5, 60)]
    return [(data, at, Machine()) for data, at in [*good, *bad, *drawn]]


def _with_requests(function: Any, case: Case) -> Any:
    """The result, and what was asked of the machine; memory that was asked for before a refusal is a finding."""
    *_, machine = case
    try:
        result = function(*case)
    except FormatError:
        if machine.requests:
            asked = machine.requests[-1][0]
            raise Finding("memory was asked for before the count was checked", f"{asked} bytes asked for") from None
        raise
    if not isinstance(result, tuple) or len(result) != 2:
        return result
    return {"elements": result[0], "behind": result[1], "bytes asked for": [asked for asked, _ in machine.requests]}


def _array(
    data: bytes,
    at: int,
    machine: Machine,
    outside: Any = lambda count, width, left: count * width > left,
    *,
    first: bool = False,
    honest: bool = False,
    head: int = 12,
    known: Any = SCALARS,
    unknown: type[Exception] = FormatError,
    ask: Any = lambda count, width: count * width,
) -> tuple[bytes, int]:
    """Right unless told otherwise; each switch is a mistake."""
    if at + head > len(data) and not honest:
        raise FormatError("refused")
    kind, count = struct.unpack_from("<IQ", data, at)
    if kind not in known:
        raise unknown(kind)
    width = known[kind]
    if first:
        machine.requests.append((ask(count, width), "an array"))
    if outside(count, width, len(data) - at - 12):
        raise FormatError("refused")
    if not first:
        machine.requests.append((ask(count, width), "an array"))
    end = at + 12 + count * width
    return data[at + 12 : end], end


READ_ARRAY = Exercise(
    name="read_array",
    lab="17",
    goal="Read an array of numbers as bytes, and ask the machine for memory only once the file has shown that it is "
    "there.",
    minutes=8,
    difficulty="core",
    reference=read_array,
    oracle=read_array_oracle,
    cases=_array_cases,
    observe=_with_requests,
    hints=(
        "In this order: the 12 bytes of type and count are there; the type is in `SCALARS`; `count * SCALARS[kind]` "
        "bytes are there; only then `machine.allocate(size, ...)`.",
        'After `kind, count = struct.unpack_from("<IQ", data, at)` and the checks: '
        '`machine.allocate(size, "an array")`, and return `data[at + 12 : at + 12 + size]` with the place behind it.',
    ),
    why="an allocation that comes after its check costs an attacker as many bytes as it costs you.",
    mistakes=(
        Mistake(
            "the check after the allocation",
            partial(_array, first=True),
            "Memory was asked for first and the count looked at afterwards: the refusal comes when the harm is done.",
            "Move `machine.allocate` behind the last check.",
            "memory was asked for before the count was checked",
        ),
        Mistake(
            "every file taken for honest",
            partial(_array, outside=lambda count, width, left: False, honest=True, unknown=KeyError),
            "This reads every honest file, and believes the others: memory is asked for as the count says, and what is "
            "not there or not known is `struct.error` or `KeyError`.",
            "Check the twelve bytes, the type and the size first; each is a `FormatError`.",
            "struct.error, KeyError, and memory that nobody has",
        ),
        Mistake(
            "the last check after the allocation",
            partial(_array, first=True, honest=True, unknown=KeyError),
            "Memory was asked for before the count was held against the file, and `struct.error` and `KeyError` come "
            "out besides.",
            "Move `machine.allocate` behind the last check, and begin with the twelve bytes and the type.",
            "memory was asked for before the count was checked",
        ),
        Mistake(
            "nothing checked",
            partial(_array, outside=lambda count, width, left: False),
            "The count was believed, and so was everything that follows from it.",
            "Refuse if `count * SCALARS[kind]` is more than `len(data) - at - 12`.",
            "2**62 elements accepted",
        ),
        Mistake(
            "elements compared with bytes",
            partial(_array, outside=lambda count, width, left: count > left),
            "You compared the number of elements with a number of bytes.",
            "Multiply by the element's size first.",
            "3 elements of 4 bytes accepted in 8 bytes",
        ),
        Mistake(
            "product in 64 bits",
            partial(_array, outside=lambda count, width, left: count * width & U64 > left),
            "The product was cut to 64 bits: 2**62 elements of 4 bytes are then 0 bytes.",
            "Let the product be as large as it is, or divide instead of multiplying.",
            "2**62 elements accepted, 2**64 - 1 refused",
        ),
        Mistake(
            "a negative count accepted",
            partial(_array, outside=lambda count, width, left: signed(count) * width > left),
            "The count was compared as a signed number, and a negative one is less than what is left.",
            "Read it as `Q`.",
            "2**64 - 1 elements accepted, 2**62 refused",
        ),
        Mistake(
            "off by one at the end",
            partial(_array, outside=lambda count, width, left: count * width >= left),
            "You compared with `>=`, and an array may end with the file.",
            "Compare with `>`.",
            "FormatError for an array at the end of the file",
        ),
        Mistake(
            "its own twelve bytes forgotten",
            partial(_array, outside=lambda count, width, left: count * width > left + 12),
            "The elements were held against all bytes from `at` on, and twelve of them are type and count.",
            "`len(data) - at - 12` bytes are left.",
            "an array up to twelve bytes too long accepted",
        ),
        Mistake(
            "an unknown type",
            partial(_array, unknown=KeyError),
            "A type that is not in the table came out as `KeyError`.",
            "Ask whether the type is in `SCALARS`, and raise `FormatError`.",
            "KeyError",
        ),
        Mistake(
            "too little memory",
            partial(_array, ask=lambda count, width: count),
            "The machine was asked for as many bytes as there are elements.",
            "Ask for `count * SCALARS[kind]` bytes.",
            "2 bytes asked for where 8 are copied",
        ),
    ),
)
