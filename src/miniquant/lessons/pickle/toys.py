"""Pickles as the exercises of this lab see them, and pickles to try them on."""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...formats.pickle.scan import steps


def operations(data: bytes) -> list[tuple[str, Any]]:
    """The opcodes of a pickle with their arguments, as pickletools reads them.

    >>> operations(b"\\x80\\x02K\\x07.")
    [('PROTO', 2), ('BININT1', 7), ('STOP', None)]
    """
    return [(opcode.name, argument) for opcode, argument, _ in pickletools.genops(data)]


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
