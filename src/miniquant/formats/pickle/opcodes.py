"""What the opcodes of a pickle do, in words, and which of them import a name or call something."""

from __future__ import annotations

IMPORTS = {"GLOBAL", "STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"}
CALLS = {"REDUCE", "BUILD", "OBJ", "NEWOBJ", "NEWOBJ_EX", "PERSID", "BINPERSID"}
MEMO = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET"}
FRAMES = {"PROTO", "FRAME", "STOP"}
MEANINGS = {
    "PROTO": "the protocol's number",
    "FRAME": "how many bytes belong together",
    "STOP": "the end: the top is the result",
    "MARK": "a mark to gather down to",
    "POP": "drops the top",
    "POP_MARK": "drops all down to the mark",
    "DUP": "doubles the top",
    "GLOBAL": "imports module, name from its own two lines",
    "STACK_GLOBAL": "imports module, name from the stack",
    "INST": "imports a class and calls it",
    "REDUCE": "calls a function with a tuple of arguments",
    "BUILD": "hands the top to the object below, as its state",
    "OBJ": "calls a class",
    "NEWOBJ": "makes an object of a class",
    "NEWOBJ_EX": "makes an object of a class, with keywords",
    "PERSID": "asks the loading program for an object",
    "BINPERSID": "asks the loading program for an object",
    "APPEND": "puts the top into the list",
    "APPENDS": "puts all down to the mark into the list",
    "SETITEM": "puts a key and a value into the dict",
    "SETITEMS": "puts pairs down to the mark into the dict",
    "ADDITEMS": "puts all down to the mark into the set",
    "TUPLE": "a tuple of all down to the mark",
    "TUPLE1": "a tuple of the top",
    "TUPLE2": "a tuple of the top two",
    "TUPLE3": "a tuple of the top three",
    "EMPTY_DICT": "an empty dict",
    "EMPTY_LIST": "an empty list",
    "EMPTY_TUPLE": "an empty tuple",
    "EMPTY_SET": "an empty set",
    "LIST": "a list of all down to the mark",
    "DICT": "a dict of the pairs down to the mark",
    "FROZENSET": "a frozenset of all down to the mark",
    "NONE": "None",
    "NEWTRUE": "True",
    "NEWFALSE": "False",
    **dict.fromkeys(("EXT1", "EXT2", "EXT4"), "imports what a number is registered for"),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), "remembers the top under a number"),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), "pushes what is remembered under a number"),
}


def kind_of(opcode: str) -> str:
    """The kind of an opcode: import, call, data, memo or frame.

    >>> [kind_of(name) for name in ("STACK_GLOBAL", "REDUCE", "BININT1", "MEMOIZE", "STOP")]
    ['import', 'call', 'data', 'memo', 'frame']
    """
    groups = {"import": IMPORTS, "call": CALLS, "memo": MEMO, "frame": FRAMES}
    return next((kind for kind, names in groups.items() if opcode in names), "data")
