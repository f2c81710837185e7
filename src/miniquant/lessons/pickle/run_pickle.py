"""The machine that runs a pickle, for opcodes that make data and no others."""

import pickle
from itertools import pairwise

from ...lab import Exercise, Mistake, edit, omit
from .toys import MARK, PLAIN, above_the_mark, fillings, moments, operations, run_by_python


def run_pickle(operations):
    """Run a pickle that makes plain data.

    operations: a whole pickle, [(opcode, argument), ...], with one STOP, at
        its end, such as [("PROTO", 2), ("BININT1", 7), ("STOP", None)]
    ->   the object, here 7

    The opcodes are the nine of run_small_pickle with the same rules, and
    MARK, APPENDS, SETITEMS, BINPUT and BINGET. If nothing lies above the
    mark, APPENDS and SETITEMS add nothing and still take the mark away.
    Raises ValueError if there is any other opcode.
    """
    stack, memo = [], {}
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
        elif opcode == "MARK":
            stack.append(MARK)
        elif opcode == "APPENDS":
            items = above_the_mark(stack)
            stack[-1].extend(items)
        elif opcode == "SETITEMS":
            items = above_the_mark(stack)
            stack[-1].update(zip(items[::2], items[1::2]))
        elif opcode == "BINPUT":
            memo[argument] = stack[-1]
        elif opcode == "BINGET":
            stack.append(memo[argument])
        else:
            raise ValueError(f"{opcode} is not one of the opcodes")


def oracle(operations):
    """The opcodes are written back as bytes, and Python's own unpickler runs them; only data opcodes get that far."""
    return run_by_python(operations, PLAIN)


def cases(random):
    """Every opcode, shared and nested objects, a memo out of order, texts like marks; random data; then what imports."""
    same, two, one, pair, fixed = ["x"], ["x", "y"], {"a": 1}, {"a": 1, "b": 2}, ("a", 2)
    made = [
        7,
        [3, 5],
        {"a": 1},
        ("a", 2),
        {"a": 1, "b": 2, "c": 3},
        [["a"], 4],
        [[], {}, "", 0, [], "MARK", "mark", "(", "<mark>", "Mark", "MARKER", "<MARK>", "__MARK__", "__mark__", "|", ")", "*"],
        ["MARK", 7],
        [same, same, ("b", same)],
        [two, two],
        (pair, [pair]),
        [fixed, fixed, "day", "day"],
        {"hours": [1, 2, 3, 4], "jars": [2, 4, 6, 8]},
        {255: [3, 5], ("k", "k"): {"a": 1, "b": {}}, "": "", " Day\té 🥐 \n": 0},
        {},
        [one, one, {"day": {"a": 1}}],
    ]
    for k in (2, 5):
        drawn = random.integers(0, 256, k).tolist()
        made.append({f"w{i}": [n, ("pair", n // 2)] for i, n in enumerate(drawn)})
    by_hand = [
        b"]q\x05K\x07a]q\x03h\x05\x86.",  # remembered as number 5
        b"]q\x00h\x00K\x07a\x86.",  # fetched from the memo, then filled
        b"]q\x01]q\x01K\x03ah\x01\x86.",  # two lists remembered under one number
        b"X\x01\0\0\0aq\x02X\x01\0\0\0bq\x02h\x02\x86.",  # two texts, too
        b"K\x01K\x02.",  # two items left
        b"K\x01K\x02K\x03.",
        b"\x80\x04K\x07.",
        b"}K\x01K\x02sK\x01K\x03s.",  # one key, two SETITEM
        b"}(K\x01K\x02K\x05K\x06K\x01K\x03u.",  # one key, two values: the last one counts
        b"}(K\x01K\x02u(K\x03K\x04K\x05K\x06u.",  # one dict, filled in two steps, as Python does from 1,000 pairs on
        b"](K\x01e(K\x02K\x03eK\x04a.",  # one list, filled in three steps
        b"}K\x01K\x02s(K\x03K\x04u.",
        b"](K\x01](K\x02K\x03eK\x04e.",  # a mark above a mark
        b"cbuiltins\nprint\n.",
        b"]cbuiltins\nlen\n(]tR.",
        b"(]ibuiltins\nlist\n.",
        pickle.dumps([None, 1], 2),
        pickle.dumps([300], 2),
        pickle.dumps(("a",), 2),
        pickle.dumps([1, 2], 4),
        *(b"J\x07\0\0\0.", b"\x8c\x01a.", b"]\x94.", b"\x89.", b").", b"G" + bytes(8) + b".", b"K\x07K\x050.", b"]r\x07\0\0\0."),
    ]
    refused = [b"I7\n.", b"\x8a\x01\x07.", b"C\x01a.", b"U\x01a.", b"S'a'\n.", b"Va\n.", b"F1.5\n.", b"\x8d\x01" + bytes(7) + b"a."]
    refused += [b"\x8f.", b"K\x01K\x02K\x03\x87.", b"\x80\x04\x95\x03" + bytes(7) + b"K\x07.", b"K\x072\x86.", b"\x89.", b"\x88."]
    refused += [b"(K\x01l.", b"(K\x01K\x02d.", b"(K\x01K\x02t.", b"K\x07(K\x051.", b"]q\x07j\x07\0\0\0\x86.", b"]q\x07g7\n\x86.", b"]p7\n."]
    empty = [b"](e.", b"}(u.", b"]K\x01a(e.", b"}K\x01K\x02s(u."]  # nothing above the mark
    return [(operations(data),) for data in [*(pickle.dumps(value, 2) for value in made), *by_hand, *refused, *empty]]


def traits(operations):
    """Which opcodes a pickle has, and what is special about its marks and its memo."""
    names = [name for name, _ in operations]
    numbers = [argument for name, argument in operations if name == "BINPUT"]
    plain = set(names) <= set(PLAIN)
    found = moments(operations) if plain else []
    closing = [moment for moment in found if moment.opcode in ("APPENDS", "SETITEMS")]
    left = next((moment.stack for moment in found if moment.opcode == "STOP"), [])
    return {
        **{f"the pickle has {name}": True for name in names if name not in PLAIN},
        "no opcode is to be refused, and one SETITEMS has a key twice": any(_key_twice(moment) for moment in closing),
        "no opcode is to be refused, and a dict is the goal of more than one SETITEM or SETITEMS": max(fillings(found, dict), default=0) > 1,
        "no opcode is to be refused, and a list is the goal of more than one APPEND or APPENDS": max(fillings(found, list), default=0) > 1,
        "no opcode is to be refused, and nothing lies above a mark that APPENDS or SETITEMS takes away": any(not moment.added for moment in closing),
        "no opcode is to be refused, and a mark lies above another mark": any(sum(item is MARK for item in moment.stack) > 1 for moment in found),
        "no opcode is to be refused, and more than one item is on the stack at STOP": sum(item is not MARK for item in left) > 1,
        "two BINPUT have the same number": len(set(numbers)) < len(numbers),
        "the first number of a BINPUT is not 0": bool(numbers) and numbers[0] != 0,
        "no opcode is to be refused, and an object that BINGET fetched gets items later": _filled_later(found),
        "the result is a list with an empty item or 0 in it": plain and _has_empty(oracle(operations)),
        "an opcode has the argument MARK, a text": any(argument == "MARK" for _, argument in operations),
        "there is more than one MARK": names.count("MARK") > 1,
        **{f"the pickle has {name}": True for name in names if name != "STOP"},
        **{f"the pickle has no {name}": name not in names for name in PLAIN},
    }


def _has_empty(result):
    """Whether a list has an item that is false."""
    return isinstance(result, list) and not all(result)


def _key_twice(moment):
    """Whether a SETITEMS has a key twice."""
    keys = moment.added[::2]
    return moment.opcode == "SETITEMS" and len(set(keys)) < len(keys)


def _filled_later(found):
    """Whether a list or a dict that BINGET put on the stack gets items after that."""
    fetched = set()
    for moment, after in pairwise(found):
        if moment.filled is not None and moment.added and id(moment.filled) in fetched:
            return True
        if moment.opcode == "BINGET":
            fetched.add(id(after.stack[-1]))
    return False


OWN = """\
def above_the_mark(stack):
        at = max(i for i, value in enumerate(stack) if value is MARK)
        items = stack[at + 1 :]
        del stack[at:]
        return items

    for opcode, argument in operations:"""  # a student may write the function again
LOOP = "for opcode, argument in operations:"

EXERCISE = Exercise(
    traits=traits,
    goal="Write the whole machine: with the mark and the memo, it runs every pickle that makes plain data.",
    reference=run_pickle, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    hints=(
        "Copy your nine rules, and add five. The memo is a second store beside the stack, by number. It keeps the object itself.",
        "A dict can be the memo. One slice with a step takes the keys, another one the values; `zip` makes pairs of them.",
    ),
    why="you have now written this machine, and you know that loading a pickle means running it.",
    mistakes=(
        Mistake("the mark left on the stack", edit(LOOP, OWN.replace("del stack[at:]", "del stack[at + 1 :]")),
            cause="The items are taken off the stack and the mark is not, so the list or dict below it is not on top.",
            cure="Take the mark off as well.", see="an error that an object has no attribute extend"),
        Mistake("items in reverse", edit(LOOP, OWN.replace("return items", "return items[::-1]")),
            cause="The items above the mark are in reverse, the last one first.",
            cure="Take them off in one piece, or reverse what you took.", see="`[5, 3]` where `[3, 5]` is expected"),
        Mistake("the first mark in place of the last", edit(LOOP, OWN.replace("max(", "min(")),
            cause="Marks can be nested, and an opcode takes what lies above the last of them.",
            cure="Look for the mark from the top of the stack.", see="simple lists right, and an error for nested ones"),
        Mistake("a text as the mark",
            edit(LOOP, OWN.replace("value is MARK", 'value == "MARK"')).edit("stack.append(MARK)", 'stack.append("MARK")'),
            cause="The text MARK in the data is taken for a mark, as if your mark were this text.",
            cure="Push an object that is equal to nothing else, such as `MARK`.",
            see="one case wrong, the one whose data holds the text MARK"),
        Mistake("keys and values exchanged", edit("items[::2], items[1::2]", "items[1::2], items[::2]"),
            cause="In SETITEMS each key comes before its value.",
            cure="The items are key, value, key, value.", see="`{1: 'a', 2: 'b'}` where `{'a': 1, 'b': 2}` is expected"),
        Mistake("BINPUT takes the top away", edit("memo[argument] = stack[-1]", "memo[argument] = stack.pop()"),
            cause="BINPUT only remembers the top; it stays on the stack.",
            cure="Look at the top without taking it.", see="an error about an empty list"),
        Mistake("BINGET pushes its number", edit("stack.append(memo[argument])", "stack.append(argument)"),
            cause="The argument of BINGET is a number in the memo, not the object.",
            cure="Push what the memo holds under this number.", see="a small integer in place of a list"),
        Mistake("a copy in the memo",
            edit("memo[argument] = stack[-1]", "memo[argument] = type(stack[-1])(stack[-1])"),
            cause="BINGET gives a copy from the time of BINPUT, and what is put into the original later is missing in it. The memo must hold the object itself.",
            cure="Keep the object itself in the memo.", see="an empty list in place of a filled one"),
        Mistake("a copy from the memo", edit("stack.append(memo[argument])", "stack.append(type(memo[argument])(memo[argument]))"),
            cause="BINGET does not give the object itself: what is put into it later is missing in the original.",
            cure="Push the object itself.", see="`([], [7])` where `([7], [7])` is expected"),
        Mistake("the memo by order", edit("memo[argument] = stack[-1]", "memo[len(memo)] = stack[-1]"),
            cause="The numbers of the memo were counted up from 0. A pickle chooses them itself: each BINPUT names its number.",
            cure="Store under the argument of BINPUT.", see="most pickles right, and a KeyError for the number 5"),
        Mistake("the first object of a number", edit("memo[argument] = stack[-1]", "memo.setdefault(argument, stack[-1])"),
            cause="Where BINPUT uses a number again, your memo keeps the older object. The last one counts.",
            cure="Replace what the memo has under this number.", see="an older object where a number is used again"),
        Mistake("a new list", edit("stack[-1].extend(items)", "stack[-1] = stack[-1] + items"),
            cause="The list in the memo does not get the items of APPENDS: these are in a different list.",
            cure="Change the list that is on top; do not replace it.", see="an empty list where a shared one is expected"),
        Mistake("a list in the list", edit("extend(items)", "append(items)"),
            cause="All items were appended as one list.",
            cure="Use `extend`.", see="`[[3, 5]]` where `[3, 5]` is expected"),
        Mistake("the whole stack returned", edit("return stack.pop()", "return stack"),
            cause="The result of a pickle is one object, the one on top of the stack.",
            cure="At STOP, return the top item.", see="`[7]` where `7` is expected"),
        Mistake("unknown opcodes passed over", omit("raise ValueError"),
            cause="GLOBAL, REDUCE and INST import and call. A machine for data must refuse them, and yours goes on.",
            cure="End the chain with an `else` that raises a ValueError.",
            see="plain data right, and a result for a pickle that imports"),
        Mistake("the last pair missing", edit("zip(items[::2], items[1::2])", "zip(items[:-2:2], items[1:-2:2])"),
            cause="The last pair of SETITEMS is missing.",
            cure="Go to the last pair.", see="a dict without its last key"),
        Mistake("one pair alone", edit("zip(items[::2], items[1::2])", "[tuple(items[:2])]"),
            cause="SETITEMS stores all pairs above the mark, and you store the first one.",
            cure="Go through all of them.", see="a dict with one key"),
        Mistake("keys as texts", edit("zip(items[::2], items[1::2])", "zip(map(str, items[::2]), items[1::2])"),
            cause="A key may be a number or a pair. In SETITEMS you made texts of them.",
            cure="Use the keys as they are.", see="`'1'` where `1` is expected"),
        Mistake("the first value of a key", edit("zip(items[::2], items[1::2])", "reversed([*zip(items[::2], items[1::2])])"),
            cause="Where SETITEMS has a key twice, your dict has the first value. The last one counts.",
            cure="Store them in their order.", see="another value where a key occurs twice"),
        Mistake("None for an unknown opcode", edit('raise ValueError(f"{opcode} is not one of the opcodes")', "return None"),
            cause="An unknown opcode ends the machine with None, and no error says that the pickle was not run to its end.",
            cure="Raise a ValueError.", see="None where a ValueError is expected"),
        Mistake("a list in place of a pair", edit("(first, second)", "[first, second]"),
            cause="TUPLE2 makes a pair, which is a tuple, and you push a list.",
            cure="Push a tuple of the two items.", see="`['a', 2]` where `('a', 2)` is expected"),
    ),
)
