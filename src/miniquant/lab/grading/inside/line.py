"""The line from a student's process to the grader, and the objects of a case that stay at its other end."""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from .wire import WireError, decode, decode_error, encode, read, write

LONGEST_MESSAGE = 1 << 24  # bytes
Message = dict[str, Any]


class Line:
    """The line to the grader: messages, one JSON object each."""

    def __init__(self, handle: int) -> None:
        self.file = os.fdopen(handle, "r+b", buffering=0)
        self.rest = b""

    def say(self, **message: Any) -> None:
        """Send a message. Raises ``MemoryError`` for one that is longer than the grader reads."""
        data = memoryview(write(message))
        if len(data) > LONGEST_MESSAGE:
            raise MemoryError(f"more than {LONGEST_MESSAGE >> 20} MB to send")
        while data:
            data = data[self.file.write(data) :]

    def hear(self) -> Message:
        """The next message. Raises ``EOFError`` when the grader is gone."""
        pieces = [self.rest]
        while b"\n" not in pieces[-1]:
            piece = self.file.read(1 << 16)
            if not piece:
                raise EOFError
            pieces.append(piece)
        line, _, self.rest = b"".join(pieces).partition(b"\n")
        return read(line)

    def ask(self, **message: Any) -> Any:
        """A value that the grader computes. Raises the error that it raised there."""
        self.say(**message)
        answer = self.hear()
        if "error" in answer:
            raise decode_error(answer["error"])
        return decode(answer.get("value"), self.elsewhere)

    def elsewhere(self, data: Any) -> Any:
        """What only the grader has: an object of a case, by its number."""
        match data:
            case ["H", int(number), str(name)]:
                return Elsewhere(self, number, name)
            case ["D", str(module), str(name), dict(values)]:
                return _data_of(module, name, {key: decode(value, self.elsewhere) for key, value in values.items()})
            case ["P", str(path)]:
                return Path(path)
        raise WireError("an unknown tag")


class Elsewhere:
    """An object of a case that stays with the grader; its methods are called there."""

    def __init__(self, line: Line, number: int, name: str) -> None:
        self.__dict__.update(_line=line, _number=number, _name=name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it there."""
        return self._call("", arguments, named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._line.ask(ask="attribute", number=self._number, name=name)
        if found != "a method":
            return found
        return lambda *arguments, **named: self._call(name, arguments, named)

    def _call(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        data = encode(list(arguments), as_data), {key: encode(value, as_data) for key, value in named.items()}
        return self._line.ask(ask="method", number=self._number, name=name, arguments=data[0], named=data[1])

    def __deepcopy__(self, memo: object) -> Elsewhere:
        return self

    def __repr__(self) -> str:
        return str(self._name)


def as_data(value: Any) -> Any:
    """How a student's process carries what is no plain data: a dataclass by its fields, an enum by its name."""
    if isinstance(value, Elsewhere):
        return ["H", value._number, ""]
    kind = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        fields = {name: encode(getattr(value, name, None), as_data) for name in kind.__dataclass_fields__}
        return ["D", kind.__module__, kind.__name__, fields]
    if hasattr(kind, "__members__"):
        return ["E", kind.__module__, kind.__name__, str(getattr(value, "name", ""))]
    return None


def _data_of(module: str, name: str, values: dict[str, Any]) -> Any:
    """An object with these attributes: of the library's own class where the library is here."""
    if not module.startswith("miniquant.lessons"):
        with suppress(Exception):
            kind = getattr(importlib.import_module(module), name)
            return kind[values["name"]] if hasattr(kind, "__members__") else kind(**values)
    return type(name, (), values)()
