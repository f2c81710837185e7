"""An array that says how long it is."""

import struct

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, body, edit, omit
from ...lab.spec import Finding
from .machine import Machine
from .naive import SCALARS


def read_array(data, at, machine):
    """The array of numbers at byte `at` of a GGUF file.

    data: the whole file, bytes; at: where the element type (u32) begins,
        then the count (u64), then the elements; SCALARS: element type ->
        bytes of an element; machine.allocate(size, purpose) asks for memory
    ->   (the elements as bytes, the place after them). Numbers are
         little-endian. Ask for memory once, for the bytes of the elements,
         also if these are 0 bytes.

    Raises FormatError if type and count or the elements are not all there,
    or the type is not in SCALARS; then no memory was asked for.
    """
    if at + 12 > len(data):
        raise FormatError("the head of an array is not there", offset=at)
    kind, count = struct.unpack_from("<IQ", data, at)
    if kind not in SCALARS:
        raise FormatError(f"elements of type {kind}", offset=at)
    size = count * SCALARS[kind]
    if size > len(data) - at - 12:
        raise FormatError(f"an array of {size} bytes, and {len(data) - at - 12} are left", offset=at + 4)
    machine.allocate(size, "an array")
    return data[at + 12 : at + 12 + size], at + 12 + size


def oracle(data, at, machine):
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


def _with_requests(function, case):
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
    return {"elements": result[0], "after": result[1], "bytes asked for": [asked for asked, _ in machine.requests]}


def cases(random):
    """Arrays that are there, arrays that are not, unknown types, then random ones."""

    def said(kind, count, elements=b""):
        return struct.pack("<IQ", kind, count) + elements

    good = [(said(4, 2, bytes(range(8))), 0), (b"abc" + said(0, 3, b"xyz") + b"after", 3), (said(12, 0), 0)]
    good += [(said(10, 1, bytes(range(7, -1, -1))), 0)]
    bad = [(said(4, 3, bytes(8)), 0), (said(4, 8, bytes(8)), 0), (said(4, 2**62, bytes(8)), 0), (b"", 0)]
    bad += [(said(12, 2**61 + 1, bytes(8)), 0), (said(0, 2**64 - 1, bytes(8)), 0), (said(9, 1, bytes(8)), 0)]
    bad += [
        (said(13, 0, bytes(8)), 0),
        (said(8, 1, bytes(8)), 0),
        (said(0, 3, b"xyz")[:11], 0),
        (said(2, 9, bytes(17)), 0),
    ]
    bad += [(said(0, 16, bytes(8)), 0), (b"abcdefgh" + said(0, 12, bytes(4)), 8)]
    bad += [(said(256 + 4, 2, bytes(8)), 0), (said(2**24, 2, bytes(8)), 0)]  # a type has four bytes
    bad += [(b"x" * 20 + said(4, 0)[:11], 20), (b"x" * 20, 20), (b"x" * 20, 15)]
    good += [(said(kind, 1, bytes(range(1, 9))), 0) for kind in (1, 3, 5, 6, 7, 11)]
    drawn = [(said(2, n, random.bytes(2 * n)), 0) for n in (5, 300)]
    return [(data, at, Machine()) for data, at in [*good, *bad, *drawn]]


EXERCISE = Exercise(
    goal="Read an array of numbers as bytes, and ask the machine for memory only once the file has shown that it is there.",
    reference=read_array, oracle=oracle, cases=cases, minutes=8, difficulty="core", observe=_with_requests,
    hints=(
        "In this order: the 12 bytes of type and count are there; the type is in `SCALARS`; the bytes of all elements are there; only then allocate.",
        "`struct.unpack_from` reads both numbers at once. `SCALARS` gives the bytes of one element, `machine.allocate` asks for memory, and a slice holds the elements.",
    ),
    why="an allocation that comes after its check costs an attacker as many bytes as it costs you.",
    mistakes=(
        Mistake("the check after the allocation", edit("    if size >", '    machine.requests.append((size, "an array"))\n    if size >').omit(
                "machine.allocate(size"
            ),
            cause="Memory was asked for first and the count looked at afterwards: the refusal comes when the harm is done.",
            cure="Move `machine.allocate` after the last check.",
            see="memory was asked for before the count was checked"),
        Mistake("every file taken for honest", body("""
                kind, count = struct.unpack_from("<IQ", data, at)
                size = count * SCALARS[kind]
                machine.requests.append((size, "an array"))
                return data[at + 12 : at + 12 + size], at + 12 + size
            """),
            cause="This reads every honest file, and believes the others: memory is asked for as the count says, and what is not there or not known is `struct.error` or `KeyError`.",
            cure="Check the twelve bytes, the type and the size first; each is a `FormatError`.",
            see="struct.error, KeyError, and memory that nobody has"),
        Mistake("the last check after the allocation", body("""
                kind, count = struct.unpack_from("<IQ", data, at)
                size = count * SCALARS[kind]
                machine.requests.append((size, "an array"))
                if size > len(data) - at - 12:
                    raise FormatError("refused")
                return data[at + 12 : at + 12 + size], at + 12 + size
            """),
            cause="Memory was asked for before the count was compared with the file, and `struct.error` and `KeyError` come out besides.",
            cure="Move `machine.allocate` after the last check, and begin with the twelve bytes and the type.",
            see="memory was asked for before the count was checked"),
        Mistake("nothing checked",
            omit("if size >").edit('machine.allocate(size, "an array")', 'machine.requests.append((size, "an array"))'),
            cause="The count was believed, and so was everything that follows from it.",
            cure="Refuse if `count * SCALARS[kind]` is more than `len(data) - at - 12`.",
            see="2**62 elements accepted"),
        Mistake("elements compared with bytes",
            edit("if size > len(data) - at - 12", "if count > len(data) - at - 12"),
            cause="You compared the number of elements with a number of bytes.",
            cure="Multiply by the element's size first.", see="3 elements of 4 bytes accepted in 8 bytes"),
        Mistake("product in 64 bits", edit("if size > len(data) - at - 12", "if size & (2**64 - 1) > len(data) - at - 12").edit(
                'machine.allocate(size, "an array")', 'machine.requests.append((size, "an array"))'
            ),
            cause="The product was cut to 64 bits: 2**62 elements of 4 bytes are then 0 bytes.",
            cure="Let the product be as large as it is, or divide instead of multiplying.",
            see="2**62 elements accepted, 2**64 - 1 refused"),
        Mistake("a negative count accepted", edit(
                "if size > len(data) - at - 12",
                "if (count - 2**64 if count >= 2**63 else count) * SCALARS[kind] > len(data) - at - 12",
            ).edit('machine.allocate(size, "an array")', 'machine.requests.append((size, "an array"))'),
            cause="The count was compared as a signed number, and a negative one is less than what is left.",
            cure="Read it as `Q`.", see="2**64 - 1 elements accepted, 2**62 refused"),
        Mistake("off by one at the end", edit("if size > len(data) - at - 12", "if size >= len(data) - at - 12"),
            cause="You compared with `>=`, and an array may end with the file.",
            cure="Compare with `>`.", see="FormatError for an array at the end of the file"),
        Mistake("its own twelve bytes forgotten", edit("if size > len(data) - at - 12", "if size > len(data) - at"),
            cause="The elements were compared with all bytes from `at` on, and twelve of them are type and count.",
            cure="`len(data) - at - 12` bytes are left.", see="an array up to twelve bytes too long accepted"),
        Mistake("the type in one byte", edit("if kind not in SCALARS", "kind %= 256\n    if kind not in SCALARS"),
            cause="Only the lowest byte of the type was looked at, and it has four.",
            cure="Compare the whole number.", see="type 260 accepted as type 4"),
        Mistake("an unknown type", omit("if kind not in"),
            cause="A type that is not in the table came out as `KeyError`.",
            cure="Ask whether the type is in `SCALARS`, and raise `FormatError`.", see="KeyError"),
        Mistake("too little memory", edit("allocate(size,", "allocate(count,"),
            cause="The machine was asked for as many bytes as there are elements.",
            cure="Ask for `count * SCALARS[kind]` bytes.", see="2 bytes asked for where 8 are copied"),
    ),
)
