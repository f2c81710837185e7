"""A pickle that calls print when it is loaded."""

import io
import pickle

from ...lab import Exercise, Mistake, edit
from ...lab.compare import kind
from ...lab.spec import Finding
from ..shared.by_hand import by_digits


def harmless_payload(message):
    """A pickle that prints when it is loaded.

    message: str   ->   bytes; pickle.loads of them calls print(message)
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
        self.calls.append((self.name, arguments))
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

    def find_class(self, module, name):
        return _Stand(f"{module}.{name}", self.calls)


def watched_load(function, case):
    """The calls that loading would make, and what it would return; nothing is imported or called."""
    data = function(*case)
    if not isinstance(data, bytes):
        raise Finding("a pickle is bytes, and your function returned something else", f"{kind(data)}: {data!r}"[:200])
    watcher = _Watcher(data)
    try:
        result = watcher.load()
    except Exception as error:
        raise Finding("the bytes are no pickle", f"{type(error).__name__} when it is loaded") from None
    return watcher.calls, repr(result) if isinstance(result, _Stand) else result


def oracle(message):
    """Byte by byte: import, push the text, a tuple of it, call, stop."""
    text = message.encode()
    return b"cbuiltins\nprint\n" + b"X" + by_digits(len(text), 4) + text + b"\x85R."


def cases(random):
    """Plain and awkward messages, none at all, and random letters."""
    drawn = ["".join(chr(c) for c in random.integers(97, 123, n)) for n in (4, 40)]
    return [(text,) for text in ("hello", "two words", "it's", "café\nau lait", "", *drawn)]


EXERCISE = Exercise(
    goal="Build a pickle that calls `print` with a message at the moment when it is loaded.",
    reference=harmless_payload, oracle=oracle, cases=cases, minutes=8, difficulty="core", observe=watched_load,
    hints=(
        "An object tells pickle how it is to be rebuilt by its method `__reduce__`, returning a pair: what to call, and a tuple of arguments. Nothing demands that it be a class of yours.",
        "A class whose `__reduce__` returns `(print, (message,))`; then `pickle.dumps` of one object of it.",
    ),
    why="you have just written malware, but for the choice of the function.",
    mistakes=(
        Mistake("printed while it is built", edit("Payload(), 4", "print(message)"),
            cause="`print(message)` runs at once, and what goes into the pickle is the None that it returns.",
            cure="Hand over the function and its arguments apart from each other: `(print, (message,))`.",
            see="the message on the screen before anything is loaded"),
        Mistake("only the message", edit("Payload()", "message"),
            cause="This is a pickle of a text, and loading it calls nothing.",
            cure="Pickle an object whose `__reduce__` asks for a call.",
            see="no call at all, and the text as the result"),
        Mistake("the function without a call", edit("Payload()", "print"),
            cause="The pickle imports `print` and returns it, and nobody calls it.",
            cure="Return `(print, (message,))` from `__reduce__`.", see="no call, and builtins.print as the result"),
        Mistake("a pair instead of a call", edit("Payload()", "(print, (message,))"),
            cause="The pair itself was pickled, as data. It becomes a call only if `__reduce__` returns it.",
            cure="Put it into the `__reduce__` of a class, and pickle an object of that class.",
            see="no call, and the pair as the result"),
        Mistake("arguments that are no tuple", edit("(message,)", "(message)"),
            cause="`(message)` is just the message; a tuple of one item has a comma in it.",
            cure="Write `(message,)`.", see="a PicklingError about a tuple"),
        Mistake("a letter each", edit("(message,)", "tuple(message)"),
            cause="`tuple(message)` takes the message apart, and print gets a letter for each argument.",
            cure="Write `(message,)`.", see="a call with many short arguments"),
        Mistake("eval", edit("print, (message,)", 'eval, (f"print({message!r})",)'),
            cause="It works, and it runs Python source where a single call was asked for.",
            cure="Name `print` itself.", see="a call of builtins.eval"),
    ),
)
