"""Which names a pickle asks for."""

import pickle
from collections import OrderedDict

from ...lab import Exercise, Mistake, body, edit
from ..shared.by_hand import by_digits
from .toys import Watched, evasions, short_text, watched


def imports_of(operations):
    """What a pickle would import.

    operations: a list of tuples (offset, opcode, argument, stack); stack is
        what lies there before the opcode, a list of str and None, its top
        the last item; at a STACK_GLOBAL it has two items or more
    ->   a list of (offset, module, name), one tuple for each opcode that
         imports, in the order of the operations

    GLOBAL and INST: the argument is the pair (module, name). STACK_GLOBAL:
    the name is on top of the stack, the module below it. An item that is no
    text is None on the stack; report it as "?". Every text, an empty one
    too, is reported as it is. EXT1, EXT2, EXT4: the module is "copyreg
    extension", the name is the argument as a text, such as "7". No other
    opcode imports, whatever its name.
    """
    found = []
    for offset, opcode, argument, stack in operations:
        if opcode in ("GLOBAL", "INST"):
            module, name = argument
        elif opcode == "STACK_GLOBAL":
            module, name = (text if text is not None else "?" for text in stack[-2:])
        elif opcode in ("EXT1", "EXT2", "EXT4"):
            module, name = "copyreg extension", str(argument)
        else:
            continue
        found.append((offset, module, name))
    return found


def oracle(operations):
    """A rule for each opcode, in a table."""
    rules = {
        "GLOBAL": lambda w: w.argument,
        "INST": lambda w: w.argument,
        "STACK_GLOBAL": lambda w: (w.stack[len(w.stack) - 2], w.stack[len(w.stack) - 1]),
        **{f"EXT{size}": lambda w: ("copyreg extension", f"{w.argument}") for size in (1, 2, 4)},
    }
    named = [(w.offset, rules[w.opcode](w)) for w in operations if w.opcode in rules]
    return [(offset, *("?" if text is None else text for text in pair)) for offset, pair in named]


def texts(module, name):
    """Two texts pushed by each opcode that pushes a text, and then the import."""
    raw = [text.encode() for text in (module, name)]
    pushes = [
        b"".join(b"S'%b'\n" % text for text in raw),
        b"".join(b"U" + bytes([len(text)]) + text for text in raw),
        b"".join(b"T" + by_digits(len(text), 4) + text for text in raw),
        b"".join(b"X" + by_digits(len(text), 4) + text for text in raw),
        b"".join(b"\x8d" + by_digits(len(text), 8) + text for text in raw),
    ]
    return [b"\x80\x04" + push + b"\x93." for push in pushes]


def memos(module, name):
    """The module, the name and a third text, each remembered, dropped and fetched by another pair of opcodes."""
    first, second, third = short_text(module), short_text(name), short_text("harmless")
    large = by_digits(70000, 4)
    return [
        b"\x80\x04" + first + b"p7\n0" + second + b"p3\n0" + third + b"g7\ng3\n\x93.",
        b"\x80\x04" + first + b"r" + large + b"0" + second + b"q\x020" + third + b"j" + large + b"h\x02\x93.",
        b"\x80\x04" + second + b"\x94" + first + b"\x94(" + third + b"1h\x01h\x00\x93.",
    ]


def cases(random):
    """One import, none; protocol 4, deep in a stack; every evasion; texts and memos of every kind; EXT; several."""
    add, number = b"coperator\nadd\n", b"K\x05"
    data = [
        b"cbuiltins\nprint\n.",
        pickle.dumps([1, "builtins", "print"]),
        pickle.dumps(OrderedDict(a=1), 4),
        pickle.dumps({"deep": [1, "x", OrderedDict(a=1)]}, 4),
        *evasions().values(),
        *texts("os", "getcwd"),
        *memos("os", "getcwd"),
        b"\x82\x070\x83\x07\x010\x84\x07\x00\x01\x00.",
        b"\x80\x04" + short_text("") + short_text("print") + b"\x93.",
        b"\x80\x04" + short_text("builtins") + short_text("") + b"\x93.",
        b"\x80\x04" + short_text("os") + number + short_text("print") + b"\x93.",
        b"\x80\x04" + number + number + b"\x930cbuiltins\nprint\n.",  # one more after one that is not known
        b"cos.path\njoin\n.",
        b"\x80\x04\x82\x070" + short_text("os") + short_text("getcwd") + b"\x930cbuiltins\nprint\n.",  # three ways, one after the other
        b"\x80\x04" + short_text("torch._utils") + short_text("os.system") + b"\x93.",
        b"(ixml.dom\nNode.x\n.",
        b"\x80\x04" + short_text("?") + short_text("os.system") + b"\x93.",
        b"\x80\x04" + short_text(" OS") + short_text("get cwd ") + b"\x93.",
        b"ca module\nwith a space\n.",
        b"c os\nsystem\n.",
        b"cos\n\n.",
        b"\x80\x05\x97\x98.",  # the letters EXT are in NEXT_BUFFER, too
        b"\x80\x04" + short_text("None") + short_text("none") + b"\x93.",
        texts("módulo", "größe")[3],
        b"\x80\x04" + short_text("os\n") + short_text("get\ncwd") + b"\x93.",
        add + add + b"0cbuiltins\nprint\n0" + add + b".",
        b"\x80\x02X\x01\x00\x00\x00aQ(K\x01tR.",
        pickle.dumps([OrderedDict(a=1), OrderedDict(b=2), {3}], 2),
        pickle.dumps({f"w{n}": int(n) for n in random.integers(0, 99, 6)}, 4),
    ]
    alike = (0, "EXTEND", 7, []), (2, "GLOBALS", ("os", "system"), []), (5, "EXT2", 0, ["os"])
    alike += (9, "INSTANCE", ("os", "system"), []), (11, "UNGLOBAL", ("os", "system"), []), (13, "EXT8", 7, [])
    alike += (15, "ON_STACK_GLOBAL", None, ["os", "system"]), (17, "GLOB", ("os", "system"), []), (19, "inst", ("os", "system"), [])
    alike += (22, "INST", ("os", "getcwd"), []), (21, "EXT1", 1, [])
    extended = [Watched(*one) for one in alike]
    return [*((watched(one),) for one in data), (extended,)]  # opcodes that begin like some that import


def traits(operations):
    """Which opcodes import, and what is special about their names and their stack."""
    rows = [row for row in operations if row[1] in ("GLOBAL", "INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4")]
    names, reported = {row[1] for row in rows}, oracle(operations)
    tops = [row[3][-2:] for row in rows if row[1] == "STACK_GLOBAL"]
    pairs = [row[2] if row[1] in ("GLOBAL", "INST") else tuple(row[3][-2:]) for row in rows if not row[1].startswith("EXT")]
    return {
        "STACK_GLOBAL takes an empty text as module or name": any("" in top for top in tops),
        "STACK_GLOBAL takes something that is no text as module or name": any(None in top for top in tops),
        "the stack has more than two items at a STACK_GLOBAL": any(row[1] == "STACK_GLOBAL" and len(row[3]) > 2 for row in rows),
        "a module has a dot in it": any("." in (pair[0] or "") for pair in pairs),
        "a name has a dot in it": any("." in (pair[1] or "") for pair in pairs),
        "the pickle has NEXT_BUFFER, which imports nothing": any(row[1] == "NEXT_BUFFER" for row in operations),
        "a module or a name is the text None or none": any(text in ("None", "none") for pair in pairs for text in pair),
        "a module or a name has a newline in it": any("\n" in (text or "") for pair in pairs for text in pair),
        "a module or a name has characters outside ASCII": any(not (text or "").isascii() for pair in pairs for text in pair),
        "GLOBAL, INST or STACK_GLOBAL asks for a module or a name with a space in it": any(" " in (text or "") for pair in pairs for text in pair),
        "EXT1, EXT2 or EXT4 imports": any(name.startswith("EXT") for name in names),
        "two imports have the same module and name, as they are reported": len({one[1:] for one in reported}) < len(reported),
        "there is more than one import": len(rows) > 1,
        **{f"{name} imports": True for name in names},
        "nothing is imported": not rows,
        "something is imported": bool(rows),
    }


EXERCISE = Exercise(
    traits=traits,
    goal="List every name that a pickle would import, with the byte at which it asks for it.",
    reference=imports_of, oracle=oracle, cases=cases, minutes=9, difficulty="stretch",
    hints=(
        "Six opcodes import, in three ways: by their argument, by the stack, by a number. Everything else imports nothing.",
        "A slice with a negative start takes the last items of a list. Compare with `None` by `is`, because an empty text is false as well.",
    ),
    why="a scanner calls harmless what it does not see.",
    mistakes=(
        Mistake("only GLOBAL",
            body('return [(offset, *argument) for offset, opcode, argument, _ in operations if opcode == "GLOBAL"]'),
            cause="GLOBAL is how old pickles import; since protocol 4 Python writes STACK_GLOBAL.",
            cure="Handle STACK_GLOBAL, INST and the three EXT opcodes as well.",
            see="nothing found in a pickle of protocol 4"),
        Mistake("INST missed", edit('("GLOBAL", "INST")', '("GLOBAL",)'),
            cause="INST imports as well, by its argument, like GLOBAL. Python 3 does not write it, but still reads it.",
            cure="Treat INST like GLOBAL.", see="nothing found in `(…ibuiltins`"),
        Mistake("extensions missed", edit(
                '        elif opcode in ("EXT1", "EXT2", "EXT4"):\n            module, name = "copyreg extension", str(argument)\n',
                "",
            ),
            cause="EXT1, EXT2 and EXT4 import what their number is registered for.",
            cure="Report them, with `copyreg extension` for the module and the number for the name.",
            see="nothing found where a number stands for a class"),
        Mistake("the last two texts pushed", edit("found = []", "found, texts = [], []")
            .edit(
                '        if opcode in ("GLOBAL"',
                '        if "UNICODE" in opcode:\n            texts.append(argument)\n        if opcode in ("GLOBAL"',
            )
            .edit("stack[-2:]", "texts[-2:]"),
            cause="You take module and name from the last two opcodes with UNICODE in their names. These texts need not be the two on top: the memo brings back old ones, and POP drops new ones.",
            cure="Look at `stack[-2:]`.", see="a harmless name where builtins print is expected"),
        Mistake("the bottom of the stack", edit("stack[-2:]", "stack[:2]"),
            cause="You took the two lowest items of the stack; the two on top are the last of the list.",
            cure="Look at `stack[-2:]`.", see="simple pickles right, and `?` for an import deep in a dict"),
        Mistake("an empty text taken for none", edit("text if text is not None", "text if text"),
            cause="An empty text was reported as `?`. It is false in Python, and yet it is a text.",
            cure="Compare with `None`.", see="`'?'` where `''` is expected"),
        Mistake("the number of an extension as a number", edit("str(argument)", "argument"),
            cause="The name of an extension is asked for as a text.",
            cure="Make a text of the number.", see="`7` where `'7'` is expected"),
        Mistake("module and name exchanged", edit("module, name = (text", "name, module = (text"),
            cause="The name lies on top, above the module.",
            cure="The module is the last but one, the name the last.", see="('print', 'builtins') where ('builtins', 'print') is expected"),
        Mistake("computed names dropped", edit(
                '(text if text is not None else "?" for text in stack[-2:])',
                "stack[-2:]\n            if None in (module, name):\n                continue",
            ),
            cause="An import whose module or name is no text was left out. Nobody knows what it is, so it is suspicious.",
            cure="Report it as `'?'`; no list has that name.",
            see="one import too few where a name is the result of a call"),
        Mistake("calls in place of imports", body(
                'return [(offset, "call", opcode) for offset, opcode, _, _ in operations if opcode in ("REDUCE", "OBJ")]'
            ),
            cause="You report opcodes that call. The opcodes that import are asked for.",
            cure="Report the opcodes that import.", see="the word call where a module is expected"),
        Mistake("an empty module taken for none", edit(
                'module, name = (text if text is not None else "?" for text in stack[-2:])',
                'module, name = stack[-2] or "?", "?" if stack[-1] is None else stack[-1]',
            ),
            cause="An empty text was reported as `?`. It is false in Python, and yet it is a text.",
            cure="Compare with `None`.", see="`'?'` where `''` is expected"),
        Mistake("EXT anywhere in the name", edit('opcode in ("EXT1", "EXT2", "EXT4")', '"EXT" in opcode'),
            cause="NEXT_BUFFER has the letters EXT as well, and it imports nothing.",
            cure="Compare with the three names.", see="an entry for NEXT_BUFFER, which imports nothing"),
        Mistake("EXT4 missed", edit('("EXT1", "EXT2", "EXT4")', '("EXT1", "EXT2")'),
            cause="There are three opcodes for extensions, and one is missing.",
            cure="Handle EXT1, EXT2 and EXT4.", see="two entries where three are expected"),
        Mistake("both unknown if one is", edit(
                'module, name = (text if text is not None else "?" for text in stack[-2:])',
                'module, name = ("?", "?") if None in stack[-2:] else stack[-2:]',
            ),
            cause="One of the two is known, and you reported both as unknown.",
            cure="Treat the module and the name separately.", see="`'?'` where `'builtins'` is expected"),
        Mistake("None reported", edit('(text if text is not None else "?" for text in stack[-2:])', "stack[-2:]"),
            cause="An item that is no text was reported as None.",
            cure="Report it as `'?'`.", see="None where `'?'` is expected"),
        Mistake("each name once", edit("return found", "return [entry for at, entry in enumerate(found) if entry[1:] not in [old[1:] for old in found[:at]]]"),
            cause="A name that is imported several times was reported once.",
            cure="Report every opcode that imports.", see="two entries where four are expected"),
        Mistake("no offset", edit("found.append((offset, module, name))", "found.append((module, name))"),
            cause="The byte at which the pickle asks is missing.",
            cure="Each entry begins with the offset.", see="a pair where three items are expected"),
        Mistake("module and name joined", edit("found.append((offset, module, name))", 'found.append((offset, f"{module}.{name}"))'),
            cause="Module and name became one text.",
            cure="Keep them apart: the offset, the module, the name.", see="`'builtins.print'` where `'builtins', 'print'` is expected"),
        Mistake("lists in place of tuples", edit("found.append((offset, module, name))", "found.append([offset, module, name])"),
            cause="Each entry is to be a tuple, and you made lists.",
            cure="Use round brackets.", see="`[0, 'builtins', 'print']` where a tuple is expected"),
        Mistake("only the first", edit("return found", "return found[:1]"),
            cause="Only the first import was reported.",
            cure="Go through all operations before you return.", see="one entry where several are expected"),
        Mistake("in the order of the names", edit("return found", "return sorted(found, key=lambda entry: entry[1:])"),
            cause="The imports were sorted by module and name.",
            cure="Leave them in the order of the operations.", see="the right entries in another order"),
    ),
)
