"""Which names a pickle asks for."""

import pickle
from collections import OrderedDict

from ...lab import Exercise, Mistake, body, edit
from .toys import evasions, short_text, watched


def imports_of(operations):
    """What a pickle would import.

    operations: a list of (offset, opcode, argument, stack); the top of a stack is its last item
    ->   a list of (offset, module, name), in order

    A module or name on the stack that is no text (None) is reported as "?". For the EXT opcodes the module is
    "copyreg extension", and the name is the number as a text.
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


def cases(random):
    """One import, none, one of protocol 4; every evasion; all EXT opcodes; an empty module; several; random data."""
    data = [
        b"cbuiltins\nprint\n.",
        pickle.dumps([1, "builtins", "print"]),
        pickle.dumps(OrderedDict(a=1), 4),
        *evasions().values(),
        b"\x82\x070\x83\x07\x010\x84\x07\x00\x01\x00.",
        b"\x80\x04" + short_text("") + short_text("print") + b"\x93.",
        pickle.dumps([OrderedDict(a=1), OrderedDict(b=2), {3}], 2),
        pickle.dumps({f"w{n}": int(n) for n in random.integers(0, 99, 6)}, 4),
    ]
    return [(watched(one),) for one in data]


EXERCISE = Exercise(
    goal="List every name that a pickle would import, with the byte at which it asks for it.",
    reference=imports_of, oracle=oracle, cases=cases, minutes=12, difficulty="stretch",
    hints=(
        "Six opcodes import. GLOBAL and INST carry (module, name) as their argument; STACK_GLOBAL takes module and name from the top of the stack; EXT1, EXT2 and EXT4 carry a number that was registered somewhere.",
        "For STACK_GLOBAL: `module, name = stack[-2:]`, and `None` becomes `'?'`. For the EXT opcodes the module is `'copyreg extension'` and the name `str(argument)`. Let no case fall through.",
    ),
    why="what a scanner does not see, it declares harmless.",
    mistakes=(
        Mistake("only GLOBAL",
            body('return [(offset, *argument) for offset, opcode, argument, _ in operations if opcode == "GLOBAL"]'),
            cause="GLOBAL is how old pickles import; since protocol 4 Python writes STACK_GLOBAL.",
            cure="Handle STACK_GLOBAL, INST and the three EXT opcodes as well.",
            see="nothing found in a pickle of protocol 4"),
        Mistake("INST missed", edit('("GLOBAL", "INST")', '("GLOBAL",)'),
            cause="INST imports a class and calls it at once; Python no longer writes it, and still reads it.",
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
            cause="You took the two texts that were pushed last, and these need not be the two on top: the memo brings back old ones, and POP drops new ones.",
            cure="Look at `stack[-2:]`.", see="a harmless name where builtins print is expected"),
        Mistake("module and name exchanged", edit("module, name = (text", "name, module = (text"),
            cause="The name lies on top, above the module.",
            cure="`module, name = stack[-2:]`.", see="('print', 'builtins') where ('builtins', 'print') is expected"),
        Mistake("computed names dropped", edit(
                '(text if text is not None else "?" for text in stack[-2:])',
                "stack[-2:]\n            if None in (module, name):\n                continue",
            ),
            cause="A name that is no plain text was left out, and that is the most suspicious of all.",
            cure="Report it as `'?'`, so that no list can have it.",
            see="one import too few where a name is the result of a call"),
        Mistake("calls in place of imports", body(
                'return [(offset, "call", opcode) for offset, opcode, _, _ in operations if opcode in ("REDUCE", "OBJ")]'
            ),
            cause="These are the calls; what is called was imported by an opcode before.",
            cure="Report the opcodes that import.", see="the word call where a module is expected"),
    ),
)
