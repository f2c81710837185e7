"""Pickles as the exercises of this lab see them, and pickles to try them on."""

from __future__ import annotations

import pickle
import pickletools
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...formats.pickle.scan import steps

SMALL = ("PROTO", "BININT1", "BINUNICODE", "EMPTY_LIST", "EMPTY_DICT", "APPEND", "SETITEM", "TUPLE2", "STOP")
PLAIN = (*SMALL, "MARK", "APPENDS", "SETITEMS", "BINPUT", "BINGET")  # what plain data needs


def operations(data: bytes) -> list[tuple[str, Any]]:
    """The opcodes of a pickle with their arguments, as pickletools reads them.

    >>> operations(b"\\x80\\x02K\\x07.")
    [('PROTO', 2), ('BININT1', 7), ('STOP', None)]
    """
    return [(opcode.name, argument) for opcode, argument, _ in pickletools.genops(data)]


def small_pickle(value: Any) -> bytes:
    """A pickle of protocol 2 without the opcodes that only remember what nobody asks for.

    >>> [opcode for opcode, _ in operations(small_pickle([7]))]
    ['PROTO', 'EMPTY_LIST', 'BININT1', 'APPEND', 'STOP']
    """
    return pickletools.optimize(pickle.dumps(value, 2))


class Mark:
    """What the opcode MARK pushes; it is equal to nothing but itself."""

    def __repr__(self) -> str:
        return "MARK"


MARK = Mark()


def above_the_mark(stack: list[Any]) -> list[Any]:
    """Take the last mark and all items above it off the stack; return the items, the lowest first."""
    at = max(place for place, value in enumerate(stack) if value is MARK)
    items = stack[at + 1 :]
    del stack[at:]
    return items


FILL = {"APPEND": 1, "SETITEM": 2, "APPENDS": 0, "SETITEMS": 0}  # how many items each adds; 0: all above the mark


class Moment(NamedTuple):
    """One opcode of a pickle and the objects on the stack before it.

    ``filled`` is the list or the dict that the opcode fills, and ``added`` what it adds.
    """

    opcode: str
    stack: list[Any]
    filled: Any
    added: list[Any]


def moments(operations: list[tuple[str, Any]]) -> list[Moment]:
    """What happens in a pickle of plain data, up to its STOP.

    >>> [len(moment.stack) for moment in moments([("BININT1", 1), ("BININT1", 2), ("STOP", None)])]
    [0, 1, 2]
    """
    found: list[Moment] = []
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    make: dict[str, Callable[[Any], Any]] = {
        "EMPTY_LIST": lambda _: [],
        "EMPTY_DICT": lambda _: {},
        "MARK": lambda _: MARK,
        "BINGET": lambda n: memo[n],
    }
    for opcode, argument in operations:
        before = [*stack]
        added: list[Any] = []
        if opcode in FILL:
            added = [stack.pop() for _ in range(FILL[opcode])][::-1] or above_the_mark(stack)
        found.append(Moment(opcode, before, stack[-1] if opcode in FILL else None, added))
        if opcode == "STOP":
            break
        if opcode in ("APPEND", "APPENDS"):
            stack[-1].extend(added)
        elif opcode in ("SETITEM", "SETITEMS"):
            stack[-1].update(zip(added[::2], added[1::2]))
        elif opcode == "TUPLE2":
            stack[-2:] = [(stack[-2], stack[-1])]
        elif opcode == "BINPUT":
            memo[argument] = stack[-1]
        elif opcode != "PROTO":
            stack.append(make.get(opcode, lambda value: value)(argument))
    return found


def fillings(found: list[Moment], kind: type) -> list[int]:
    """How many opcodes fill each list, or each dict, of those that any opcode fills."""
    filled = [id(moment.filled) for moment in found if isinstance(moment.filled, kind)]  # all are alive, in ``found``
    return [filled.count(one) for one in set(filled)]


def run_by_python(operations: list[tuple[str, Any]], known: Collection[str]) -> Any:
    """Write the opcodes back as bytes, and let Python's own unpickler run them; ValueError for one that is not known."""
    codes = {opcode.name: opcode.code.encode("latin-1") for opcode in pickletools.opcodes}
    data = b""
    for name, argument in operations:
        if name not in known:
            raise ValueError(f"{name} is not one of the opcodes")
        data += codes[name]
        if name in ("PROTO", "BININT1", "BINPUT", "BINGET"):
            data += bytes([argument])
        elif name == "BINUNICODE":
            data += struct.pack("<I", len(argument.encode())) + argument.encode()
    return pickle.loads(data)


class Watched(NamedTuple):
    """One opcode as a scanner sees it: ``stack`` is what lies there before it, its texts, and None for all else."""

    offset: int
    opcode: str
    argument: Any
    stack: list[str | None]


def watched(data: bytes) -> list[Watched]:
    """The opcodes of a pickle, each with the stack before it; the argument of GLOBAL and INST is (module, name).

    >>> watched(b"cbuiltins\\nprint\\n.")[0]
    Watched(offset=0, opcode='GLOBAL', argument=('builtins', 'print'), stack=[])
    """
    found, before = [], ()
    for step in steps(data):
        named = step.opcode in ("GLOBAL", "INST")
        argument = (step.wants.module, step.wants.name) if named else step.argument
        found.append(Watched(step.offset, step.opcode, argument, [value.text for value in before]))
        before = step.stack
    return found


def short_text(value: str) -> bytes:
    """The opcode that pushes a short text, protocol 4."""
    return b"\x8c" + bytes([len(value)]) + value.encode()


def evasions() -> dict[str, bytes]:
    """Pickles that ask for ``print`` in ways that a careless scanner misses; harmless, and none is ever loaded here."""
    module, name, hello = short_text("builtins"), short_text("print"), short_text("hello") + b"\x85R."
    others = short_text("collections") + short_text("OrderedDict")
    join = b"coperator\nadd\n" + short_text("pri") + short_text("nt") + b"\x86R"  # the name is the result of a call
    return {
        "GLOBAL": b"cbuiltins\nprint\n" + hello,
        "STACK_GLOBAL": b"\x80\x04" + module + name + b"\x93" + hello,
        "INST": b"(" + short_text("hello") + b"ibuiltins\nprint\n.",
        "through the memo": b"\x80\x04%b\x94%b\x9400%b0h\x00h\x01\x93" % (module, name, short_text("harmless")) + hello,
        "between other texts": b"\x80\x04" + module + name + others + b"00\x93)R.",
        "spelled in escapes": b"\x80\x04Vb\\u0075iltins\nV\\u0070rint\n\x93" + hello,
        "a computed name": b"\x80\x04" + module + join + b"\x93" + hello,
        "an extension code": b"\x80\x02\x82\x07)R.",
    }


@dataclass
class Call:
    """Pickled, it is a call; unpickled, it is what the call returned."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.function, self.arguments
