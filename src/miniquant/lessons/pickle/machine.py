"""The exercise of lab 02 on the machine that runs a pickle, for opcodes that make data and no others."""

from __future__ import annotations

import pickle
import pickletools
import struct
from functools import partial
from typing import Any

import numpy as np

from ...lab.spec import Case, Exercise, Mistake

Operation = tuple[str, Any]
MARK = Ellipsis  # equal to its own copies


def operations(data: bytes) -> list[Operation]:
    """The opcodes of a pickle with their arguments, as pickletools reads them.

    >>> operations(pickle.dumps([7], 2))
    [('PROTO', 2), ('EMPTY_LIST', None), ('BINPUT', 0), ('BININT1', 7), ('APPEND', None), ('STOP', None)]
    """
    return [(opcode.name, argument) for opcode, argument, _ in pickletools.genops(data)]


def run_pickle(operations: list[Operation]) -> Any:
    """The reference: opcodes that make data -> the object that they make."""
    return _machine(operations)


def run_oracle(operations: list[Operation]) -> Any:
    """The opcodes are written back as bytes, and Python's own unpickler runs them; only data opcodes get that far."""
    codes = {opcode.name: opcode.code.encode("latin-1") for opcode in pickletools.opcodes}
    forms = {"PROTO": "<B", "BININT1": "<B", "BINPUT": "<B", "BINGET": "<B"}
    bare = ["MARK", "EMPTY_LIST", "EMPTY_DICT", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "TUPLE2", "STOP"]
    data = b""
    for name, argument in operations:
        data += codes[name]
        if name in forms:
            data += struct.pack(forms[name], argument)
        elif name == "BINUNICODE":
            data += struct.pack("<I", len(argument.encode())) + argument.encode()
        elif name not in bare:
            raise ValueError(f"{name} makes more than data")
    return pickle.loads(data)


def _run_cases(random: np.random.Generator) -> list[Case]:
    same = ["x"]
    made = [
        7,
        [3, 5],
        {"a": 1},
        ("a", 2),
        {"a": 1, "b": 2, "c": 3},
        [["a"], 4],
        [same, same, ("b", same)],
        {"hours": [1, 2, 3, 4], "jars": [2, 4, 6, 8]},
        {},
    ]
    drawn = [
        {f"w{i}": [int(n), ("pair", int(n) // 2)] for i, n in enumerate(random.integers(0, 256, k))} for k in (2, 5)
    ]
    hostile = [b"cbuiltins\nprint\n.", b"]cbuiltins\nlen\n(]tR.", b"(ibuiltins\nlist\n."]
    return [*((operations(pickle.dumps(value, 2)),) for value in [*made, *drawn]), *((operations(b),) for b in hostile)]


def _machine(
    operations: list[Operation],
    *,
    keep_mark: bool = False,
    backwards: bool = False,
    swapped: bool = False,
    put_pops: bool = False,
    get_pushes_number: bool = False,
    tuple_reversed: bool = False,
    one_item: bool = False,
    whole_stack: bool = False,
    ignores: bool = False,
    copies: bool = False,
) -> Any:
    stack: list[Any] = []
    memo: dict[int, Any] = {}

    def gathered() -> list[Any]:
        at = max(i for i, value in enumerate(stack) if value is MARK)
        items = stack[at + 1 :]
        del stack[at + 1 if keep_mark else at :]
        return items[::-1] if backwards else items

    def store(target: dict, key: Any, value: Any) -> None:
        target.update([(value, key)] if swapped else [(key, value)])

    for name, argument in operations:
        if name == "MARK":
            stack.append(MARK)
        elif name in ("BININT1", "BINUNICODE"):
            stack.append(argument)
        elif name in ("EMPTY_LIST", "EMPTY_DICT"):
            stack.append([] if name == "EMPTY_LIST" else {})
        elif name == "APPEND":
            value = stack.pop()
            stack[-1].append(value)
        elif name == "APPENDS":
            items = gathered()
            stack[-1].extend([items] if one_item else items)
        elif name == "SETITEM":
            value, key = stack.pop(), stack.pop()
            store(stack[-1], key, value)
        elif name == "SETITEMS":
            items = gathered()
            for key, value in zip(items[::2], items[1::2]):
                store(stack[-1], key, value)
        elif name == "TUPLE2":
            second, first = stack.pop(), stack.pop()
            stack.append((second, first) if tuple_reversed else (first, second))
        elif name == "BINPUT":
            memo[argument] = stack.pop() if put_pops else stack[-1]
        elif name == "BINGET":
            stack.append(argument if get_pushes_number else [] if copies else memo[argument])
        elif name == "STOP":
            return stack if whole_stack else stack.pop()
        elif name != "PROTO" and not ignores:
            raise ValueError(f"{name} makes more than data")
    raise ValueError("no STOP")


RUN_PICKLE = Exercise(
    name="run_pickle",
    lab="02",
    goal="Write the machine that runs a pickle, for the fourteen opcodes that make plain data.",
    minutes=15,
    difficulty="core",
    reference=run_pickle,
    oracle=run_oracle,
    cases=_run_cases,
    hints=(
        "Keep two things: a list for the stack and a dict for the memo. Most opcodes are one line each. For APPENDS "
        "and SETITEMS find the last mark, take what lies above it, and remove both.",
        "`items = stack[at + 1:]`, then `del stack[at:]`, then `stack[-1].extend(items)`. For SETITEMS the items are "
        "key, value, key, value: `zip(items[::2], items[1::2])`. Any other opcode: raise ValueError.",
    ),
    why="whoever has written this machine knows that loading a pickle means running it.",
    mistakes=(
        Mistake(
            "the mark left behind",
            partial(_machine, keep_mark=True),
            "The items are taken off the stack and the mark is not, so the list below it is not found.",
            "Delete from the mark on: `del stack[at:]`.",
            "an error that an object has no attribute extend",
        ),
        Mistake(
            "items in reverse",
            partial(_machine, backwards=True),
            "Popped one after another, the items come from the top, last one first.",
            "Slice them off in one piece, or reverse what you popped.",
            "[5, 3] where [3, 5] is expected",
        ),
        Mistake(
            "keys and values exchanged",
            partial(_machine, swapped=True),
            "The value lies on top, above its key.",
            "Pop the value first, and then the key.",
            "{1: 'a'} where {'a': 1} is expected",
        ),
        Mistake(
            "BINPUT takes the top away",
            partial(_machine, put_pops=True),
            "BINPUT only remembers the top; it stays where it is.",
            "Store `stack[-1]`, and do not pop.",
            "an error about an empty list",
        ),
        Mistake(
            "BINGET pushes its number",
            partial(_machine, get_pushes_number=True),
            "The argument of BINGET is where to look in the memo.",
            "Push `memo[argument]`.",
            "a small integer in the place of a list",
        ),
        Mistake(
            "BINGET pushes something empty",
            partial(_machine, copies=True),
            "What was remembered is a list that was filled later; you remembered it as it was at the time.",
            "Keep the object itself in the memo, with no copy.",
            "an empty list in the place of a filled one",
        ),
        Mistake(
            "a tuple in reverse",
            partial(_machine, tuple_reversed=True),
            "The second item of a pair lies on top.",
            "`second, first = stack.pop(), stack.pop()`.",
            "(2, 'a') where ('a', 2) is expected",
        ),
        Mistake(
            "a list in the list",
            partial(_machine, one_item=True),
            "All items were appended as one.",
            "Use `extend`.",
            "[[3, 5]] where [3, 5] is expected",
        ),
        Mistake(
            "the whole stack returned",
            partial(_machine, whole_stack=True),
            "The result of a pickle is the one object on top of the stack.",
            "Return `stack.pop()` at STOP.",
            "[7] where 7 is expected",
        ),
        Mistake(
            "unknown opcodes passed over",
            partial(_machine, ignores=True),
            "GLOBAL, REDUCE and INST import and call; a machine for data must refuse them, and yours goes on.",
            "End the chain with `else: raise ValueError(...)`.",
            "plain data right, and something returned for a pickle that imports",
        ),
    ),
)
