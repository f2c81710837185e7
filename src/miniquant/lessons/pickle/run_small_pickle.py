"""The machine for the nine simplest opcodes: a stack and nothing else."""

from ...lab import Exercise, Mistake, edit, omit
from .toys import SMALL, fillings, moments, operations, run_by_python, small_pickle


def run_small_pickle(operations):
    """Run a pickle that needs only a stack.

    operations: a whole pickle, [(opcode, argument), ...], with one STOP, at
        its end, such as [("PROTO", 2), ("BININT1", 7), ("STOP", None)]
    ->   the object, here 7

    The opcodes are PROTO, BININT1, BINUNICODE, EMPTY_LIST, EMPTY_DICT,
    APPEND, SETITEM, TUPLE2 and STOP. STOP returns the item on top, whatever
    lies below it. Raises ValueError if there is any other opcode.
    """
    stack = []
    for opcode, argument in operations:
        if opcode == "PROTO":
            continue
        elif opcode == "STOP":
            return stack.pop()
        elif opcode in ("BININT1", "BINUNICODE"):
            stack.append(argument)
        elif opcode == "EMPTY_LIST":
            stack.append([])
        elif opcode == "EMPTY_DICT":
            stack.append({})
        elif opcode == "APPEND":
            value = stack.pop()
            stack[-1].append(value)
        elif opcode == "SETITEM":
            value = stack.pop()
            key = stack.pop()
            stack[-1][key] = value
        elif opcode == "TUPLE2":
            second = stack.pop()
            first = stack.pop()
            stack.append((first, second))
        else:
            raise ValueError(f"{opcode} is not one of the nine opcodes")


def oracle(operations):
    """The opcodes are written back as bytes, and Python's own unpickler runs them."""
    return run_by_python(operations, SMALL)


def cases(random):
    """Each opcode, alone and nested; an item left below the top; random data; then opcodes that are none of the nine."""
    small = [
        7,
        "hours",
        "",
        [],
        [3],
        ("a", 2),
        {"a": 1},
        [[5]],
        {"a": [" Day\té 🥐 \n"]},
        ("a", (3, 3)),
        {255: {}},
        [{"a": (("b", 0), [9])}],
        {("k", 1): "", "day": [{}]},
    ]
    for n in random.integers(0, 256, 3).tolist():
        small.append([{f"w{n}": (n, [f"{n}"])}])
    refused = [small_pickle(value) for value in ([3, 5], {"a": 1, "b": 2}, [None], [300], ("a",), True)]
    refused += [b"J\x07\0\0\0.", b"\x8c\x01a.", b"]\x94.", b"\x89.", b").", b"G" + bytes(8) + b".", b"K\x07K\x050.", b"K\x07(K\x05."]
    refused += [b"I7\n.", b"\x8a\x01\x07.", b"C\x01a.", b"U\x01a.", b"S'a'\n.", b"Va\n.", b"F1.5\n.", b"\x8d\x01" + bytes(7) + b"a."]
    refused += [b"\x8f.", b"K\x01K\x02K\x03\x87.", b"\x80\x04\x95\x03" + bytes(7) + b"K\x07.", b"K\x072\x86.", b"\x89.", b"\x88."]
    by_hand = [b"\x80\x02]q\x00K\x07a.", b"cbuiltins\nprint\n.", b"cbuiltins\nlen\n]\x85R."]
    data = [*map(small_pickle, small), b"K\x01K\x02.", b"K\x01K\x02K\x03.", b"\x80\x04K\x07.", b"]K\x01a]K\x02aK\x03a.", b"}K\x01K\x02sK\x01K\x03s.", b"}K\x05K\x02sK\x04K\x03s.", b"}X\x01\0\0\0aK\x01sX\x01\0\0\0aK\x02sK\x01K\x03s.", b"]K\x01aK\x02aK\x03a.", b"]X\x01\0\0\0ba]aX\x01\0\0\0aa.", *refused, *by_hand]
    return [(operations(one),) for one in data]


def traits(operations):
    """Which opcodes a pickle has, and how they are nested."""
    names = [name for name, _ in operations]
    small = set(names) <= set(SMALL)
    found = moments(operations) if small else []
    depth = [(moment.opcode, len(moment.stack)) for moment in found]
    return {
        **{f"the pickle has {name}": True for name in names if name not in ("STOP", *SMALL)},
        "no opcode is to be refused, and the pickle makes more than one list, dict or pair": sum(n in ("EMPTY_LIST", "EMPTY_DICT", "TUPLE2") for n, _ in depth) > 1,
        "no opcode is to be refused, and a list gets more than one item": max(fillings(found, list), default=0) > 1,
        "no opcode is to be refused, and a dict gets more than one pair": max(fillings(found, dict), default=0) > 1,
        "no opcode is to be refused, and more than one item is on the stack at STOP": any(n == "STOP" and deep > 1 for n, deep in depth),
        "no opcode is to be refused, and something lies below the two items of TUPLE2": any(n == "TUPLE2" and deep > 2 for n, deep in depth),
        "no opcode is to be refused, and something lies below the list of APPEND": any(n == "APPEND" and deep > 2 for n, deep in depth),
        "no opcode is to be refused, and something lies below the dict of SETITEM": any(n == "SETITEM" and deep > 3 for n, deep in depth),
        **{f"the pickle has {name}": True for name in names if name != "STOP"},
        **{f"the pickle has no {name}": name not in names for name in SMALL},
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Write a machine that runs a pickle, for the nine opcodes that need only a stack.",
    reference=run_small_pickle, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    hints=(
        "Follow the table row by row. An opcode that takes two values finds the second one on top.",
        "A Python list is a stack: `append` pushes, `pop()` takes the top, and `[-1]` looks at it without taking it.",
    ),
    why="this is all that a machine with a stack is: a loop, a list, and one rule for each opcode.",
    mistakes=(
        Mistake("keys and values exchanged",
            edit("value = stack.pop()\n            key = stack.pop()", "key = stack.pop()\n            value = stack.pop()"),
            cause="The value lies on top, above its key.",
            cure="Take the value first, then the key.", see="`{1: 'a'}` where `{'a': 1}` is expected"),
        Mistake("a tuple in reverse",
            edit("second = stack.pop()\n            first = stack.pop()", "first = stack.pop()\n            second = stack.pop()"),
            cause="The second item of the pair lies on top.",
            cure="Take the second item first, then the first.", see="`(2, 'a')` where `('a', 2)` is expected"),
        Mistake("the whole stack returned", edit("return stack.pop()", "return stack"),
            cause="The result of a pickle is one object, the one on top of the stack.",
            cure="At STOP, return the top item.", see="`[7]` where `7` is expected"),
        Mistake("the lowest item returned", edit("return stack.pop()", "return stack[0]"),
            cause="STOP returns the top of the stack, and you return the bottom. They can differ when more than one item is left.",
            cure="Return the last item of the list.", see="`1` where `2` is expected"),
        Mistake("the value stays on the stack", edit("value = stack.pop()\n            stack[-1].append", "value = stack[-1]\n            stack[-2].append"),
            cause="After APPEND the value still lies on top, above its list. APPEND takes it off the stack.",
            cure="Take the value with `pop()`; then the list is on top.", see="`3` where `[3]` is expected"),
        Mistake("the value in a list", edit("stack[-1][key] = value", "stack[-1].update({key: [value]})"),
            cause="The dict holds the value inside a list.",
            cure="Store the value as it is.", see="`{'a': [1]}` where `{'a': 1}` is expected"),
        Mistake("the first value of a key", edit("stack[-1][key] = value", "stack[-1].setdefault(key, value)"),
            cause="Where a key is set twice, your dict keeps the first value. The last one counts.",
            cure="Store the value, whether or not the dict has the key.", see="`{1: 2}` where `{1: 3}` is expected"),
        Mistake("unknown opcodes passed over", omit("raise ValueError"),
            cause="The machine skips an opcode that it does not know, and continues.",
            cure="End the chain with an `else` that raises a ValueError.",
            see="plain data right, and a result for an opcode that is none of the nine"),
        Mistake("a list in place of a pair", edit("(first, second)", "[first, second]"),
            cause="TUPLE2 makes a pair, which is a tuple, and you push a list.",
            cure="Push a tuple of the two items.", see="`['a', 2]` where `('a', 2)` is expected"),
        Mistake("the version pushed", edit('if opcode == "PROTO":\n            continue', 'if opcode == "PROTO":\n            stack.append(argument)')
            .edit("return stack.pop()", "return stack[0]"),
            cause="You return the lowest item, and where there is a PROTO, this is its version. PROTO pushes nothing, and STOP returns the top.",
            cure="Skip PROTO.", see="`2` where `7` is expected"),
        Mistake("the bottom in place of the top", edit("stack[-1].append(value)", "stack[0].append(value)"),
            cause="APPEND changes the list on top of the stack, and you change the lowest item.",
            cure="The top is the last item of your list.", see="simple lists right, nested ones wrong"),
        Mistake("more opcodes than asked for", edit('("BININT1", "BINUNICODE")', '("BININT1", "BINUNICODE", "BININT2", "NONE")'),
            cause="Your machine runs opcodes that are not in the table.",
            cure="Raise a ValueError for every opcode that is not one of the nine.", see="`[None]` where a ValueError is expected"),
        Mistake("None for an unknown opcode", edit('raise ValueError(f"{opcode} is not one of the nine opcodes")', "return None"),
            cause="An unknown opcode ends the machine with None, and no error says that the pickle was not run to its end.",
            cure="Raise a ValueError.", see="None where a ValueError is expected"),
    ),
)
