"""The machine that runs a pickle, for opcodes that make data and no others."""

import pickle
import pickletools
import struct

from ...lab import Exercise, Mistake, edit, omit
from .toys import operations


def run_pickle(operations):
    """Run a pickle that makes plain data.

    operations: [(opcode, argument), ...], such as [("PROTO", 2), ("BININT1", 7), ("STOP", None)]   ->   the object, here 7

    Raises ValueError for an opcode that is not in the table.
    """
    stack, memo, mark = [], {}, object()

    def above_the_mark():
        at = max(i for i, value in enumerate(stack) if value is mark)
        items = stack[at + 1 :]
        del stack[at:]
        return items

    for opcode, argument in operations:
        if opcode == "PROTO":
            continue
        elif opcode == "STOP":
            return stack.pop()
        elif opcode == "MARK":
            stack.append(mark)
        elif opcode in ("BININT1", "BINUNICODE"):
            stack.append(argument)
        elif opcode == "EMPTY_LIST":
            stack.append([])
        elif opcode == "EMPTY_DICT":
            stack.append({})
        elif opcode == "APPEND":
            value = stack.pop()
            stack[-1].append(value)
        elif opcode == "APPENDS":
            items = above_the_mark()
            stack[-1].extend(items)
        elif opcode == "SETITEM":
            value, key = stack.pop(), stack.pop()
            stack[-1][key] = value
        elif opcode == "SETITEMS":
            items = above_the_mark()
            stack[-1].update(zip(items[::2], items[1::2]))
        elif opcode == "TUPLE2":
            second, first = stack.pop(), stack.pop()
            stack.append((first, second))
        elif opcode == "BINPUT":
            memo[argument] = stack[-1]
        elif opcode == "BINGET":
            stack.append(memo[argument])
        else:
            raise ValueError(f"{opcode} makes more than data")


def oracle(operations):
    """The opcodes are written back as bytes, and Python's own unpickler runs them; only data opcodes get that far."""
    codes = {opcode.name: opcode.code.encode("latin-1") for opcode in pickletools.opcodes}
    bare = ["MARK", "EMPTY_LIST", "EMPTY_DICT", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "TUPLE2", "STOP"]
    data = b""
    for name, argument in operations:
        data += codes[name]
        if name in ("PROTO", "BININT1", "BINPUT", "BINGET"):
            data += bytes([argument])
        elif name == "BINUNICODE":
            data += struct.pack("<I", len(argument.encode())) + argument.encode()
        elif name not in bare:
            raise ValueError(f"{name} makes more than data")
    return pickle.loads(data)


def cases(random):
    """Every opcode, shared and nested objects, a memo out of order; random data; then pickles that import."""
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
    for k in (2, 5):
        drawn = random.integers(0, 256, k).tolist()
        made.append({f"w{i}": [n, ("pair", n // 2)] for i, n in enumerate(drawn)})
    by_hand = [
        b"]q\x05K\x07a]q\x03h\x05\x86.",
        b"cbuiltins\nprint\n.",
        b"]cbuiltins\nlen\n(]tR.",
        b"(]ibuiltins\nlist\n.",
    ]
    return [(operations(data),) for data in [*(pickle.dumps(value, 2) for value in made), *by_hand]]


EXERCISE = Exercise(
    goal="Write the machine that runs a pickle, for the fourteen opcodes that make plain data.",
    reference=run_pickle, oracle=oracle, cases=cases, minutes=15, difficulty="core",
    hints=(
        "Keep two things: a list for the stack and a dict for the memo. Most opcodes are one line each. For APPENDS and SETITEMS find the last mark, take what lies above it, and remove both.",
        "`items = stack[at + 1:]`, then `del stack[at:]`, then `stack[-1].extend(items)`. For SETITEMS the items are key, value, key, value: `zip(items[::2], items[1::2])`. Any other opcode: raise ValueError.",
    ),
    why="whoever has written this machine knows that loading a pickle means running it.",
    mistakes=(
        Mistake("the mark left behind", edit("del stack[at:]", "del stack[at + 1 :]"),
            cause="The items are taken off the stack and the mark is not, so the list below it is not found.",
            cure="Delete from the mark on: `del stack[at:]`.", see="an error that an object has no attribute extend"),
        Mistake("items in reverse", edit("return items", "return items[::-1]"),
            cause="Popped one after another, the items come from the top, last one first.",
            cure="Slice them off in one piece, or reverse what you popped.", see="[5, 3] where [3, 5] is expected"),
        Mistake("keys and values exchanged",
            edit("value, key = stack", "key, value = stack").edit("items[::2], items[1::2]", "items[1::2], items[::2]"),
            cause="The value lies on top, above its key.",
            cure="Pop the value first, and then the key.", see="{1: 'a'} where {'a': 1} is expected"),
        Mistake("BINPUT takes the top away", edit("memo[argument] = stack[-1]", "memo[argument] = stack.pop()"),
            cause="BINPUT only remembers the top; it stays where it is.",
            cure="Store `stack[-1]`, and do not pop.", see="an error about an empty list"),
        Mistake("BINGET pushes its number", edit("stack.append(memo[argument])", "stack.append(argument)"),
            cause="The argument of BINGET is where to look in the memo.",
            cure="Push `memo[argument]`.", see="a small integer in the place of a list"),
        Mistake("BINGET pushes something empty",
            edit("memo[argument] = stack[-1]", "memo[argument] = type(stack[-1])(stack[-1])"),
            cause="What was remembered is a list that was filled later; you remembered it as it was at the time.",
            cure="Keep the object itself in the memo, with no copy.", see="an empty list in the place of a filled one"),
        Mistake("a tuple in reverse", edit("second, first", "first, second"),
            cause="The second item of a pair lies on top.",
            cure="`second, first = stack.pop(), stack.pop()`.", see="(2, 'a') where ('a', 2) is expected"),
        Mistake("a list in the list", edit("extend(items)", "append(items)"),
            cause="All items were appended as one.",
            cure="Use `extend`.", see="[[3, 5]] where [3, 5] is expected"),
        Mistake("the whole stack returned", edit("return stack.pop()", "return stack"),
            cause="The result of a pickle is the one object on top of the stack.",
            cure="Return `stack.pop()` at STOP.", see="[7] where 7 is expected"),
        Mistake("unknown opcodes passed over", omit("raise ValueError"),
            cause="GLOBAL, REDUCE and INST import and call; a machine for data must refuse them, and yours goes on.",
            cure="End the chain with `else: raise ValueError(...)`.",
            see="plain data right, and something returned for a pickle that imports"),
    ),
)
