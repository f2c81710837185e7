"""The exercises of lab 02 on scanning: which names a pickle asks for, and which of them are on no list."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...formats.pickle.scan import UNKNOWN, steps
from ...lab.spec import Case, Exercise, Mistake

Found = list[tuple[int, str, str]]  # (byte, module, name)


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


# ---- imports_of ------------------------------------------------------------------------------------------------------


def imports_of(operations: list[Watched]) -> Found:
    """The reference: opcodes with their stacks -> (byte, module, name) of everything that is imported."""
    return _imports(operations)


def imports_oracle(operations: list[Watched]) -> Found:
    """A rule for each opcode, in a table."""
    rules: dict[str, Callable[[Watched], tuple[Any, Any]]] = {
        "GLOBAL": lambda w: w.argument,
        "INST": lambda w: w.argument,
        "STACK_GLOBAL": lambda w: (w.stack[len(w.stack) - 2], w.stack[len(w.stack) - 1]),
        **{f"EXT{size}": lambda w: ("copyreg extension", f"{w.argument}") for size in (1, 2, 4)},
    }
    named = [(w.offset, rules[w.opcode](w)) for w in operations if w.opcode in rules]
    return [(offset, module or "?", name or "?") for offset, (module, name) in named]


def short_text(value: str) -> bytes:
    """The opcode that pushes a short text, protocol 4."""
    return b"\x8c" + bytes([len(value)]) + value.encode()


def evasions() -> dict[str, bytes]:
    """Pickles that ask for ``print`` in ways that a careless scanner misses; harmless, and none is ever loaded here."""
    word = short_text("builtins") + b"\x94" + short_text("print") + b"\x94"  # pushed, and remembered as 0 and 1
    join = b"coperator\nadd\n" + short_text("pri") + short_text("nt") + b"\x86R"  # the name is the result of a call
    return {
        "GLOBAL": b"cbuiltins\nprint\n" + short_text("hello") + b"\x85R.",
        "STACK_GLOBAL": b"\x80\x04"
        + short_text("builtins")
        + short_text("print")
        + b"\x93"
        + short_text("hello")
        + b"\x85R.",
        "INST": b"(" + short_text("hello") + b"ibuiltins\nprint\n.",
        "through the memo": b"\x80\x04"
        + word
        + b"00"
        + short_text("harmless")
        + b"0h\x00h\x01\x93"
        + short_text("hello")
        + b"\x85R.",
        "between other texts": b"\x80\x04"
        + (
            short_text("builtins")
            + short_text("print")
            + short_text("collections")
            + short_text("OrderedDict")
            + b"00\x93)R."
        ),
        "spelled in escapes": b"\x80\x04" + b"Vb\\u0075iltins\nV\\u0070rint\n\x93" + short_text("hello") + b"\x85R.",
        "a computed name": b"\x80\x04" + short_text("builtins") + join + b"\x93" + short_text("hello") + b"\x85R.",
        "an extension code": b"\x80\x02\x82\x07)R.",
    }


def _imports_cases(random: np.random.Generator) -> list[Case]:
    data = [
        b"cbuiltins\nprint\n.",
        pickle.dumps([1, "builtins", "print"]),
        pickle.dumps(OrderedDict(a=1), 4),
        *evasions().values(),
        pickle.dumps([OrderedDict(a=1), OrderedDict(b=2), {3}], 2),
        pickle.dumps({f"w{n}": int(n) for n in random.integers(0, 99, 6)}, 4),
    ]
    return [(watched(one),) for one in data]


def _imports(
    operations: list[Watched],
    *,
    opcodes: tuple[str, ...] = ("GLOBAL", "INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4"),
    reversed_pair: bool = False,
    last_texts: bool = False,
    drops_unknown: bool = False,
) -> Found:
    found: Found = []
    seen: list[str] = []
    for offset, opcode, argument, stack in operations:
        if opcode in ("SHORT_BINUNICODE", "BINUNICODE", "UNICODE"):
            seen.append(argument)
        if opcode not in opcodes:
            continue
        if opcode == "STACK_GLOBAL":
            module, name = (seen if last_texts else stack)[-2:]
            module, name = (name, module) if reversed_pair else (module, name)
            if drops_unknown and None in (module, name):
                continue
            found.append((offset, module or UNKNOWN, name or UNKNOWN))
        elif opcode in ("GLOBAL", "INST"):
            found.append((offset, *argument))
        else:
            found.append((offset, "copyreg extension", str(argument)))
    return found


IMPORTS_OF = Exercise(
    name="imports_of",
    lab="02",
    goal="List every name that a pickle would import, with the byte at which it asks for it.",
    minutes=12,
    difficulty="stretch",
    reference=imports_of,
    oracle=imports_oracle,
    cases=_imports_cases,
    hints=(
        "Six opcodes import. GLOBAL and INST carry (module, name) as their argument; STACK_GLOBAL takes module and "
        "name from the top of the stack; EXT1, EXT2 and EXT4 carry a number that was registered somewhere.",
        "For STACK_GLOBAL: `module, name = stack[-2:]`, and `None` becomes `'?'`. For the EXT opcodes the module is "
        "`'copyreg extension'` and the name `str(argument)`. Let no case fall through.",
    ),
    why="what a scanner does not see, it declares harmless.",
    mistakes=(
        Mistake(
            "only GLOBAL",
            partial(_imports, opcodes=("GLOBAL",)),
            "GLOBAL is how old pickles import; since protocol 4 Python writes STACK_GLOBAL.",
            "Handle STACK_GLOBAL, INST and the three EXT opcodes as well.",
            "nothing found in a pickle of protocol 4",
        ),
        Mistake(
            "INST missed",
            partial(_imports, opcodes=("GLOBAL", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4")),
            "INST imports a class and calls it at once; Python no longer writes it, and still reads it.",
            "Treat INST like GLOBAL.",
            "nothing found in `(…ibuiltins`",
        ),
        Mistake(
            "extensions missed",
            partial(_imports, opcodes=("GLOBAL", "INST", "STACK_GLOBAL")),
            "EXT1, EXT2 and EXT4 import what their number is registered for.",
            "Report them, with `copyreg extension` for the module and the number for the name.",
            "nothing found where a number stands for a class",
        ),
        Mistake(
            "the last two texts pushed",
            partial(_imports, last_texts=True),
            "You took the two texts that were pushed last, and these need not be the two on top: the memo brings back "
            "old ones, and POP drops new ones.",
            "Look at `stack[-2:]`.",
            "a harmless name where builtins print is expected",
        ),
        Mistake(
            "module and name exchanged",
            partial(_imports, reversed_pair=True),
            "The name lies on top, above the module.",
            "`module, name = stack[-2:]`.",
            "('print', 'builtins') where ('builtins', 'print') is expected",
        ),
        Mistake(
            "computed names dropped",
            partial(_imports, drops_unknown=True),
            "A name that is no plain text was left out, and that is the most suspicious of all.",
            "Report it as `'?'`, so that no list can have it.",
            "one import too few where a name is the result of a call",
        ),
        Mistake(
            "calls in place of imports",
            lambda operations: [(w.offset, "call", w.opcode) for w in operations if w.opcode in ("REDUCE", "OBJ")],
            "These are the calls; what is called was imported by an opcode before.",
            "Report the opcodes that import.",
            "the word call where a module is expected",
        ),
    ),
)

# ---- off_the_list ----------------------------------------------------------------------------------------------------

Pairs = set[tuple[str, str]]


def off_the_list(found: Found, allowed: Pairs) -> Found:
    """The reference: (byte, module, name) and an allow-list of (module, name) -> those that are not on it."""
    return [entry for entry in found if entry[1:] not in allowed]


def off_oracle(found: Found, allowed: Pairs) -> Found:
    """Every entry against every pair, one comparison at a time."""
    bad = []
    for offset, module, name in found:
        if not any(module == m and name == n for m, n in allowed):
            bad.append((offset, module, name))
    return bad


def _off_cases(random: np.random.Generator) -> list[Case]:
    rebuild, ordered = ("torch._utils", "_rebuild_tensor_v2"), ("collections", "OrderedDict")
    listed: Pairs = {rebuild, ordered}
    pairs = [rebuild, ordered, ("os", "system"), ("builtins", "print"), ("torch._utils", "os.system")]
    drawn = [[(int(n), *pairs[int(n) % 5]) for n in random.integers(0, 200, 6)] for _ in range(2)]
    return [
        ([(0, "builtins", "print")], listed),
        ([(0, *ordered)], listed),
        ([(0, *ordered), (9, *rebuild), (30, "torch._utils", "warnings")], listed),
        ([(0, "mycollections", "OrderedDict"), (40, "torch._utils_evil", "run")], listed),
        ([(0, "torch._utils", "_rebuild_tensor_v2.__globals__")], listed),
        ([(5, "torch", "_utils._rebuild_tensor_v2")], listed),
        ([(0, "?", "?"), (3, "builtins", "?")], listed),
        ([(0, "os", "system"), (20, *ordered), (41, "posix", "system"), (60, "nt", "system")], listed),
        ([(7, "copyreg extension", "7")], listed),
        ([(0, *ordered)], set()),
        ([], listed),
        *((entries, listed) for entries in drawn),
    ]


def _judged(bad: Callable[[str, str, Pairs], bool]) -> Callable[[Found, Pairs], Found]:
    return lambda found, allowed: [entry for entry in found if bad(entry[1], entry[2], allowed)]


OFF_THE_LIST = Exercise(
    name="off_the_list",
    lab="02",
    goal="Say which imports are not on an allow-list of (module, name) pairs.",
    minutes=4,
    difficulty="warm-up",
    reference=off_the_list,
    oracle=off_oracle,
    cases=_off_cases,
    hints=(
        "An import passes if its module and its name stand on the list together, letter for letter.",
        "`[entry for entry in found if (entry[1], entry[2]) not in allowed]`.",
    ),
    why="an allow-list fails safe: what nobody thought of is refused.",
    mistakes=(
        Mistake(
            "the module alone compared",
            _judged(lambda module, name, allowed: module not in {m for m, _ in allowed}),
            "Whatever lies in a listed module passes, and a module holds all that it imports, too.",
            "Compare the pair.",
            "torch._utils.warnings let through",
        ),
        Mistake(
            "the name alone compared",
            _judged(lambda module, name, allowed: name not in {n for _, n in allowed}),
            "A listed name passes from any module, from the attacker's own too.",
            "Compare the pair.",
            "mycollections.OrderedDict let through",
        ),
        Mistake(
            "the beginning compared",
            _judged(
                lambda module, name, allowed: not any(f"{module}.{name}".startswith(f"{m}.{n}") for m, n in allowed)
            ),
            "A name that begins like a listed one passes; since protocol 4 a dot in a name means an attribute.",
            "Compare the whole pair.",
            "_rebuild_tensor_v2.__globals__ let through",
        ),
        Mistake(
            "module and name joined",
            _judged(lambda module, name, allowed: f"{module}.{name}" not in {f"{m}.{n}" for m, n in allowed}),
            "Joined with a dot, different pairs become the same text.",
            "Compare pairs; they need no joining.",
            "the module torch with a dotted name let through",
        ),
        Mistake(
            "a list of what is bad",
            _judged(lambda module, name, allowed: module in ("os", "posix", "nt", "subprocess", "builtins")),
            "This names a few bad modules and lets the rest through.",
            "Report what is not in `allowed`.",
            "an extension code let through",
        ),
        Mistake(
            "unknown names let through",
            _judged(lambda module, name, allowed: "?" not in (module, name) and (module, name) not in allowed),
            "A name that cannot be known was let through.",
            "Treat `?` like any other name: it is not on the list.",
            "('?', '?') let through",
        ),
        Mistake(
            "only the first",
            lambda found, allowed: [entry for entry in found if entry[1:] not in allowed][:1],
            "The search stopped at the first one.",
            "Report all of them.",
            "one entry where several are expected",
        ),
        Mistake(
            "what is allowed in place of what is not",
            _judged(lambda module, name, allowed: (module, name) in allowed),
            "The imports on the list were returned.",
            "Return those that are not on it.",
            "the harmless ones reported",
        ),
    ),
)
