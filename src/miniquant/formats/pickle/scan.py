"""What a pickle would import and call, found out without running it.

A pickle is a program for a small machine with a stack and a memo. The machine here goes through the same program and
writes down what each opcode would do; it imports nothing, calls nothing, and keeps only descriptions of values on its
stack. So it finds a name that is put together from two strings, or fetched back from the memo. What a program does with
the objects it may import is beyond it: an allow-list must hold harmless names only.

Source: ``pickletools`` and ``pickle`` in Python's standard library; ``torch/serialization.py`` for both kinds of files
that ``torch.save`` writes.
"""

from __future__ import annotations

import io
import os
import pickletools
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from ...core.errors import FormatError, PickleSecurityRisk
from ...core.reading import Source, path_of
from ...core.slices import SliceFile, as_slices

ZIP = b"PK\x03\x04"
UNKNOWN = "?"  # a name that only a running pickle would know
LEGACY_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # a pickle of torch's magic number; four more follow it
STORAGES = ("Float", "Half", "BFloat16", "Double", "Long", "Int", "Short", "Char", "Byte", "Bool")
STATE_DICT = frozenset(  # what a state dict saved by torch.save needs, and no more
    [("collections", "OrderedDict"), ("torch._utils", "_rebuild_tensor_v2"), ("torch._utils", "_rebuild_parameter")]
    + [("torch", f"{kind}Storage") for kind in STORAGES]
)


class Import(NamedTuple):
    """A name that a pickle asks for: at which byte, by which opcode, from which module."""

    offset: int
    opcode: str
    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name} ({self.opcode} at byte {self.offset})"


class Value(NamedTuple):
    """What stands for an object on the stack: how it is shown, and its text if it is a string known in advance."""

    shown: str
    text: str | None = None


class Step(NamedTuple):
    """One opcode: its bytes from ``offset`` to ``end``, its argument, what it asks for, the stack after it."""

    offset: int
    end: int
    opcode: str
    argument: Any
    wants: Import | None
    stack: tuple[Value, ...]


MARK = Value("MARK")
_MAKES = {  # opcode -> how what it pushes is shown
    **dict.fromkeys(("EMPTY_LIST", "LIST", "APPEND", "APPENDS"), "list"),
    **dict.fromkeys(("EMPTY_DICT", "DICT", "SETITEM", "SETITEMS"), "dict"),
    **dict.fromkeys(("EMPTY_SET", "ADDITEMS"), "set"),
    **dict.fromkeys(("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"), "tuple"),
    **dict.fromkeys(("NEXT_BUFFER", "READONLY_BUFFER"), "buffer"),
    **dict.fromkeys(("PERSID", "BINPERSID"), "persistent object"),
    "FROZENSET": "frozenset",
    "NONE": "None",
    "NEWTRUE": "True",
    "NEWFALSE": "False",
}
_KEEPS = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD", "READONLY_BUFFER"}  # change the one below
_TEXTS = {"STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}


def steps(data: bytes, start: int = 0) -> Iterator[Step]:
    """The opcodes of the pickle that begins at byte ``start``, up to its STOP, one after another.

    Raises ``FormatError`` where the bytes are no pickle: an unknown opcode, an argument that is cut short, a stack that
    runs empty, a memo entry that was never put.

    >>> [(step.opcode, step.argument) for step in steps(b"I5\\n.")]
    [('INT', 5), ('STOP', None)]
    """
    stack: list[Value] = []
    memo: dict[int, Value] = {}
    for opcode, argument, offset, end in _opcodes(data, start):
        try:
            wants = _apply(opcode, argument, data, offset, stack, memo)
        except (IndexError, KeyError) as error:
            found = f"the memo has no entry {argument}" if isinstance(error, KeyError) else "the stack is empty"
            raise FormatError(f"{opcode.name}: {found}; this is no pickle", field="pickle", offset=offset) from None
        yield Step(offset, end, opcode.name, argument, wants, tuple(stack))


def imports(data: bytes, start: int = 0) -> list[Import]:
    """Everything that the pickle at byte ``start`` would import, in order. Raises ``FormatError`` for malformed data.

    >>> imports(b"cbuiltins\\nprint\\n(S'hello'\\ntR.")
    [Import(offset=0, opcode='GLOBAL', module='builtins', name='print')]
    """
    return [step.wants for step in steps(data, start) if step.wants]


def off_list(found: Iterable[Import], allowed: Iterable[tuple[str, str]] = STATE_DICT) -> list[Import]:
    """The imports that an allow-list of (module, name) pairs does not have, in order.

    >>> [str(i) for i in off_list(imports(b"cbuiltins\\nprint\\n."))]
    ['builtins.print (GLOBAL at byte 0)']
    """
    pairs = set(allowed)
    return [wanted for wanted in found if (wanted.module, wanted.name) not in pairs]


def scan_file(source: Source) -> dict[str, list[Import]]:
    """What each pickle of a file would import: {the pickle's name: imports}; nothing is unpickled.

    Reads a file of ``torch.save`` (a zip archive: its entries ``*.pkl``; or the older five pickles in a row) and a
    plain pickle; which of them it is, the first bytes decide, as they do for ``torch.load``. Raises ``FormatError`` for
    anything else, and for a file that two readers could see differently; ``OSError`` if it cannot be opened.

    source: a path, bytes, or slices; of an archive, only the directory and the pickles are read
    """
    path = path_of(source)
    try:
        with open(path, "rb") if path is not None else io.BufferedReader(SliceFile(as_slices(source))) as file:
            archive = file.read(len(ZIP)) == ZIP
            file.seek(0)
            return _scan_archive(file) if archive else _scan_row(file.read())
    except FormatError as error:
        raise FormatError(error.message, path=path, field=error.field, offset=error.offset) from None


def _scan_archive(data: BinaryIO) -> dict[str, list[Import]]:
    try:
        with zipfile.ZipFile(data) as archive:
            entries = [entry for entry in archive.infolist() if entry.filename.endswith(".pkl")]
            names = [entry.filename for entry in entries]
            if not names:
                raise FormatError("a zip archive without an entry *.pkl; torch.save writes one", field="archive")
            if len(set(names)) < len(names):
                raise FormatError("two entries have the same name; readers take one or the other", field="archive")
            return {entry.filename: _located(entry.filename, archive.read(entry)) for entry in entries}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError, zlib.error) as error:
        raise FormatError(f"the archive cannot be read: {error}", field="archive") from None  # damaged, encrypted, …


def _scan_row(data: bytes) -> dict[str, list[Import]]:
    """One pickle, or the five of the older format, after which the storages follow."""
    if tarfile.is_tarfile(io.BytesIO(data)):
        raise FormatError("a tar archive, torch's oldest format; save the model anew", field="archive", offset=0)
    found, start = {}, 0
    legacy = data.startswith(LEGACY_TORCH)
    for number in range(5 if legacy else 1):
        walked = list(steps(data, start))
        found[f"pickle {number}"] = [step.wants for step in walked if step.wants]
        start = walked[-1].end
    if start < len(data) and not legacy:
        raise FormatError(f"{len(data) - start} bytes follow the pickle's end", field="pickle", offset=start)
    return found


def refuse_unlisted(path: str | os.PathLike[str], allowed: Iterable[tuple[str, str]] = STATE_DICT) -> None:
    """Raise ``PickleSecurityRisk`` if a file would import anything off the list; the first such name is told.

    Returns without an error for a file whose imports are all listed. That makes it as harmless as the listed names are.
    """
    pairs = set(allowed)
    for entry, found in scan_file(path).items():
        for wanted in off_list(found, pairs):
            raise PickleSecurityRisk(
                f"{os.fsdecode(path)}: {entry}: loading would import {wanted}, which is not on the list; do not load it"
            )


def _located(name: str, data: bytes) -> list[Import]:
    try:
        return imports(data)
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from None


def _opcodes(data: bytes, start: int) -> Iterator[tuple[pickletools.OpcodeInfo, Any, int, int]]:
    """(opcode, argument, first byte, byte after the last); pickletools reads the arguments, and calls nothing."""
    waiting = None
    source = data[start:]
    operations = pickletools.genops(source)
    at = start
    while True:
        try:
            opcode, argument, offset = next(operations)
        except StopIteration:
            break
        except Exception as error:  # ValueError in most cases; a hostile length may raise others
            raise FormatError(f"this is no pickle: {error}", field="pickle", offset=at) from None
        at = start + (offset or 0)  # genops knows the position of bytes
        if waiting:
            yield (*waiting, at)
        waiting = opcode, argument, at
    if waiting:
        yield (*waiting, waiting[2] + 1)  # STOP has one byte


def _apply(
    opcode: pickletools.OpcodeInfo, argument: Any, data: bytes, offset: int, stack: list[Value], memo: dict[int, Value]
) -> Import | None:
    """Let one opcode change the stack and the memo; return what it would import."""
    name = opcode.name
    if name == "MARK":
        stack.append(MARK)
    elif name == "DUP":
        stack.append(stack[-1])
    elif name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
        memo[len(memo) if name == "MEMOIZE" else argument] = stack[-1]
    elif name in ("GET", "BINGET", "LONG_BINGET"):
        stack.append(memo[argument])
    elif name in ("PROTO", "FRAME"):
        pass
    else:
        popped = _pop(opcode, stack)
        wants = _wanted(name, argument, data, offset, popped)
        if name in _KEEPS:
            stack.append(popped[0])
        elif opcode.stack_after:
            stack.append(_value(name, argument, popped, wants))
        return wants
    return None


def _pop(opcode: pickletools.OpcodeInfo, stack: list[Value]) -> list[Value]:
    """Take off the stack what the opcode takes: some values, all down to the last mark, or both; the lowest first."""
    before = opcode.stack_before
    popped: list[Value] = []
    if pickletools.markobject in before:
        while (value := stack.pop()) is not MARK:
            popped.insert(0, value)
        before = before[: before.index(pickletools.markobject)]
    for _ in before:
        popped.insert(0, stack.pop())
    return popped


def _wanted(name: str, argument: Any, data: bytes, offset: int, popped: list[Value]) -> Import | None:
    if name in ("GLOBAL", "INST"):  # two lines of text; a module's name may hold a space, so the bytes are asked
        module, attribute = (line.decode("utf-8", "replace") for line in data[offset + 1 :].split(b"\n", 2)[:2])
        return Import(offset, name, module, attribute)
    if name == "STACK_GLOBAL":
        return Import(offset, name, *(UNKNOWN if value.text is None else value.text for value in popped))
    if name in ("EXT1", "EXT2", "EXT4"):  # a number that some other code has registered a class for
        return Import(offset, name, "copyreg extension", str(argument))
    return None


def _value(name: str, argument: Any, popped: list[Value], wants: Import | None) -> Value:
    if wants:
        return Value(f"{wants.module}.{wants.name}" + ("(…)" if name == "INST" else ""))
    if name in ("REDUCE", "OBJ", "NEWOBJ", "NEWOBJ_EX"):
        return Value(f"{popped[0].shown}(…)" if popped else "object")
    if name in _MAKES:
        return Value(_MAKES[name])
    if name in _TEXTS and isinstance(argument, str):
        return Value(repr(argument), argument)
    return Value(repr(argument))
