"""A pickle that calls print when it is loaded."""

import io
import pickle

from ...lab import Exercise, Mistake, body, edit
from ...lab.compare import kind
from ...lab.spec import Finding
from ..shared.by_hand import by_digits


def harmless_payload(message):
    """A pickle that prints when it is loaded.

    message: str that UTF-8 can encode, of any length
    ->   bytes; pickle.loads of them calls print(message) once, with no
         other argument

    The pickle imports print, once or more often, and nothing else: no eval,
    no exec, no class of yours. The module of print is builtins. In
    protocols 0 to 2, and in a pickle without PROTO, it may be __builtin__
    as well. What
    pickle.loads returns is free.
    """

    class Payload:
        def __reduce__(self):
            return print, (message,)

    return pickle.dumps(Payload(), 4)


class _Stand:
    """Stands for an imported object: a call of it is written down and not made."""

    def __init__(self, name, calls):
        self.name, self.calls = name, calls

    def __call__(self, *arguments):
        self.calls.append(f"{self.name}({', '.join(map(repr, arguments))})")
        return f"what {self.name} returned"

    def __repr__(self):
        return self.name

    def __eq__(self, other):
        return isinstance(other, _Stand) and other.name == self.name

    __hash__ = None


class _Watcher(pickle.Unpickler):
    """Runs a pickle with stand-ins in the place of everything that it imports."""

    def __init__(self, data):
        super().__init__(io.BytesIO(data))
        self.calls = []
        self.old = data[:1] != b"\x80" or data[1:2] in (b"\0", b"\1", b"\2")  # then pickle knows the names of Python 2
        self.imported = []

    def find_class(self, module, name):
        module = "builtins" if module == "__builtin__" and self.old else module
        self.imported.append(f"{module}.{name}")
        return _Stand(f"{module}.{name}", self.calls)


BROKEN = (  # a part of the unpickler's message, and what it means
    ("Ran out of input", ": they end, and no STOP was read"),
    ("truncated", ": an opcode asks for more bytes than there are"),
    ("invalid load key", ": where an opcode is expected, there is a byte that is none"),
    ("codec can't decode", ": a text in them is not in the encoding of its opcode"),
    ("stack underflow", ": an opcode finds too few items on the stack"),
    ("unexpected MARK", ": a mark lies where an opcode needs an item"),
    ("argument list must be a tuple", ": REDUCE finds no tuple of arguments on the stack"),
    ("could not find MARK", ": an opcode needs a mark, and there is none"),
)


def watched_load(function, case):
    """The calls that loading would make; nothing is imported or called."""
    data = function(*case)
    if not isinstance(data, bytes):
        raise Finding("a pickle is bytes, and your function returned something else", kind(data) if "0x" in repr(data) else f"{kind(data)}: {data!r}"[:200])
    watcher = _Watcher(data)
    try:
        result = watcher.load()
    except Exception as error:
        _only_print(watcher)  # what it imports is a stand-in, with which the rest may fail
        why = next((words for part, words in BROKEN if part in str(error)), "")
        raise Finding(f"the bytes cannot be loaded{why}", f"{type(error).__name__}: {error}"[:200]) from None
    _only_print(watcher)
    if not watcher.calls:
        raise Finding("loading these bytes calls nothing", f"no call; the result is {result!r}"[:300])
    return watcher.calls


def _only_print(watcher):
    if set(watcher.imported) - {"builtins.print"}:
        raise Finding("it imports something other than print", f"it imports {', '.join(watcher.imported)}"[:300])


def oracle(message):
    """Byte by byte: import, push the text, a tuple of it, call, stop."""
    text = message.encode()
    return b"cbuiltins\nprint\n" + b"X" + by_digits(len(text), 4) + text + b"\x85R."


def cases(random):
    """Plain and awkward messages, none at all, a long one, and random letters."""
    awkward = ("it's", "café\nau lait", "", "C:\\new\\u0041", " both ends\t", 'say "hi": {0} 100 %s', "日本 🥐", "déjà vu " * 25 + "éàé", "cr\r\nlf\n", "\0 e\u0301", "end\\", "0123456789" * 7000)
    drawn = ["".join(chr(c) for c in random.integers(97, 123, n)) for n in (4, 40, 300)]
    return [(text,) for text in ("hello", "two words", "Hello World", *awkward, *drawn)]


def traits(message):
    """What is special about a message."""
    return {
        "`message` has capital letters": message != message.lower(),
        "`message` has a quote": "'" in message or '"' in message,
        "`message` has a backslash": "\\" in message,
        "`message` has a newline": "\n" in message,
        "`message` has characters outside Latin-1": any(ord(c) > 255 for c in message),
        "`message` has more than 65,535 bytes in UTF-8": len(message.encode()) > 65535,
        "`message` has more than 255 bytes in UTF-8": len(message.encode()) > 255,
        "`message` has a space": " " in message,
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Build a pickle that calls `print` with a message when it is loaded.",
    reference=harmless_payload, oracle=oracle, cases=cases, minutes=6, difficulty="core", observe=watched_load,
    hints=(
        "pickle asks an object how to build it again, and writes the answer down: a function and its arguments. Nothing in it says that the function must be a class of yours.",
        "Write a small class with a method `__reduce__`, and give one object of it to `pickle.dumps`. A tuple of one item has a comma in it.",
    ),
    why="this is how an attack is built; only the function would be another one.",
    mistakes=(
        Mistake("printed while it is built", edit("Payload(), 4", "print(message)"),
            cause="Loading this pickle calls nothing and gives None. A `print(message)` in your function runs while the pickle is built.",
            cure="Return the function and its arguments separately, without calling it.",
            see="the message on the screen before anything is loaded"),
        Mistake("printed in __reduce__", edit("return print, (message,)", "print(message)\n            return str, ()"),
            cause="The pickle imports `str` and not `print`. What `__reduce__` itself prints is printed while the pickle is made.",
            cure="Return `print` and its arguments from `__reduce__`, without calling it.",
            see="the message on the screen before anything is loaded, and an import of builtins.str"),
        Mistake("only the message", edit("Payload()", "message"),
            cause="This is a pickle of a text, and loading it calls nothing.",
            cure="Pickle an object whose `__reduce__` asks for a call.",
            see="no call at all, and the text as the result"),
        Mistake("the function without a call", edit("Payload()", "print"),
            cause="The pickle imports `print` and returns it, and nobody calls it.",
            cure="Let the `__reduce__` of an object return the function together with its arguments.",
            see="no call, and builtins.print as the result"),
        Mistake("a pair in place of a call", edit("Payload()", "(print, (message,))"),
            cause="The pair itself was pickled, as data. Returned by `__reduce__`, it becomes a call.",
            cure="Put it into the `__reduce__` of a class, and pickle an object of that class.",
            see="no call, and the pair as the result"),
        Mistake("arguments that are no tuple", edit("(message,)", "(message)"),
            cause="`(message)` is just the message; a tuple of one item has a comma in it.",
            cure="Write `(message,)`.", see="a PicklingError about a tuple"),
        Mistake("one argument for each letter", edit("(message,)", "tuple(message)"),
            cause="print gets each letter of the message as an argument of its own.",
            cure="Write `(message,)`.", see="a call with many short arguments"),
        Mistake("eval", edit("print, (message,)", 'eval, (f"print({message!r})",)'),
            cause="The pickle imports `eval`, which then runs Python source. Here it must import `print` itself.",
            cure="Name `print` as the function.", see="an import of builtins.eval"),
        Mistake("the repr of the message", edit("(message,)", "(repr(message),)"),
            cause="The pickle prints the repr of the message, with quotes, and not the message.",
            cure="Give the message itself to print.", see="`'hello'` with quotes in the call"),
        Mistake("a second newline", edit("(message,)", '(message + "\\n",)'),
            cause="The message has a newline at its end that nobody asked for; print adds one by itself.",
            cure="Give the message itself to print.", see="a message with a newline that nobody asked for"),
        Mistake("two calls", edit("Payload(), 4", "[Payload(), Payload()], 4"),
            cause="The pickle calls print twice.",
            cure="Pickle one object.", see="two calls where one is expected"),
        Mistake("the word hello", edit("(message,)", '("hello",)'),
            cause="The pickle prints a fixed text, and not the argument.",
            cure="Use `message`.", see="the first case right, all others wrong"),
        Mistake("characters counted", body("""
                head = b"cbuiltins\\nprint\\nX" + len(message).to_bytes(4, "little")
                return head + message.encode() + b"\\x85R."
            """),
            cause="The length of the text must count bytes, and é takes two. If it counts characters, the text is cut off, and its rest is read as opcodes.",
            cure="Take the length of the encoded bytes.", see="plain letters right, and bytes that cannot be loaded for others"),
        Mistake("a text of 255 bytes at most", body("""
                text = message.encode()
                return b"\\x80\\x04cbuiltins\\nprint\\n\\x8c" + bytes([len(text)]) + text + b"\\x85R."
            """),
            cause="SHORT_BINUNICODE holds 255 bytes at most, and the message may be longer.",
            cure="Use BINUNICODE, whose length has four bytes, or let `pickle.dumps` choose.",
            see="short messages right, and an error for a long one"),
        Mistake("None returned", edit("return pickle.dumps(Payload(), 4)", "return pickle.loads(pickle.dumps(Payload(), 4))"),
            cause="Your function returns None, and the bytes of the pickle are asked for. A function without a `return` gives None; so does loading the pickle at once, which returns what print returns.",
            cure="Return the bytes, and do not load them.", see="the message on the screen, and None in place of bytes"),
    ),
)
