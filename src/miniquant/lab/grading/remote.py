"""A student's function as the grader calls it: plain data go to its process, and plain data come back."""

from __future__ import annotations

import copy
import importlib
import inspect
import time
import warnings
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ...core.errors import MiniquantError
from ..attempt import Far, Origin, Outcome
from ..catalogue import exercises
from ..changes import Change
from ..limit import TooSlow, memory_limit, time_limit
from ..spec import Exercise, Finding
from .inside.wire import WireError, decode, decode_error, encode, encode_error
from .room import Gone, Room
from .wasm import WasmRoom

# classes whose objects are their fields; an object of any other class of a case stays here, and its methods are called
DATA = {"ModelMetadata", "ModelWeights", "GGUFQuantization"}
HOMES = {name: "miniquant.models.export" for name in DATA}
# references that would act on what a student hands them: they load, read, write or run
NOT_LENT = {"load_restricted", "read_file", "write_file", "run_pickle", "harmless_payload", "within_one_step"}
GRACE = 2.0  # seconds that an answer may take beyond its own limit
MOST = {"reference": 2000, "method": 5000, "attribute": 5000}  # requests of a process, of each kind


def stage_of(spec: Exercise) -> str:
    """Where the observation of an exercise is found that runs beside the student's function; empty for all others.

    Such an ``observe`` is in a module called ``stage``, in which no solution and no oracle is.
    """
    observe = spec.observe
    if observe is None or not observe.__module__.endswith(".stage"):
        return ""
    return f"{observe.__module__}:{observe.__name__}"


class Remote(Far):
    """A student's answer to an exercise, in its process.

    ``seconds``: for one call, of the processor; ``until``: when the exercise must be over. ``met`` says whether a call
    used what is not there. Raises ``Gone`` when the process is.
    """

    def __init__(self, room: Room | WasmRoom, spec: Exercise, parameters: list[Any], lent: set[str]) -> None:
        self.room, self.spec, self.lent = room, spec, lent
        self.__name__ = spec.name
        self.__signature__ = signature_of(parameters)
        self.observed = bool(stage_of(spec))
        self.until = float("inf")
        self.met = False
        self.asked = dict.fromkeys(MOST, 0)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function gives or raises there."""
        self.told = Outcome()
        objects: list[Any] = []
        request: dict[str, Any] = {"call": self.spec.name, "may_view": self.spec.may_view}
        request |= {"seconds": self.seconds, "clock": self._clock()}
        folder = next((argument.parent for argument in arguments if isinstance(argument, Path)), None)
        if folder:
            place = str(self.room.scratch / "files")
            contents = {path.name: encode(path.read_bytes()) for path in folder.iterdir()}
            request["files"] = {"folder": place, "contents": contents}
            arguments = tuple(Path(place) / each.name if isinstance(each, Path) else each for each in arguments)
        if self.observed:
            request["observe"] = stage_of(self.spec)
        request["arguments"] = encode(list(arguments), lambda value: as_data(value, objects))
        self.room.say(**request)
        reply = self._reply(objects)
        if folder and isinstance(reply.get("files"), dict):
            _mirror(reply["files"], folder)
        return self._given(reply)

    def _clock(self) -> float:
        """The seconds that are left for the exercise."""
        return min(max(self.until - GRACE - time.monotonic(), 0.01), 1e6)

    def _reply(self, objects: list[Any]) -> dict[str, Any]:
        try:
            while True:
                reply = self.room.hear(self.until)
                if "ask" not in reply:
                    return reply
                self.room.say(**answer(reply, objects, self.lent, self.spec.name, self.asked))
        except TooSlow:  # the process did not keep to the limit that it was given
            self.room.end(late=True)
            raise

    def _given(self, reply: dict[str, Any]) -> Any:
        self.met = self.met or bool(reply.get("met"))
        self.told = Outcome(
            printed=str(reply.get("printed", "")),
            warned=str(reply.get("warned", "")),
            view=reply.get("view") is True,
            kept=reply.get("kept") is True,
            change=_change(reply.get("change"), len(self.__signature__.parameters)),
        )
        if reply.get("slow"):
            raise TooSlow("no end")
        if "ended" in reply:
            raise Gone(str(reply["ended"])[:200])
        if "result" in reply:
            try:
                return decode(reply["result"], _results)
            except WireError as error:
                raise Gone(f"its result is no data: {error}") from None
        try:
            data = dict(reply["error"])
        except (KeyError, TypeError, ValueError):
            raise Gone("its answer is none") from None
        raise _raised(data)


def _raised(data: dict[str, Any]) -> BaseException:
    match data.get("finding"):
        case [str(what), str(got)]:
            return Finding(what, got)
    error = decode_error(data)
    more: Any = error
    more.origin = Origin(data.get("own") is True, data.get("stub") is True, str(data.get("trace", ""))[:5000])
    with suppress(AttributeError):
        more.field, more.offset = data.get("field"), data.get("offset")
    return error


def _change(data: Any, most: int) -> Change | None:
    match data:
        case [int(index), before, after, str(place)] if 0 <= index < most:
            with suppress(WireError):
                return Change(index, decode(before, _results), decode(after, _results), place[:100])
    return None


def signature_of(parameters: list[Any]) -> inspect.Signature:
    """The signature that a student's process tells; an empty one if it tells none."""
    found = []
    with suppress(Exception):
        for name, kind, default in parameters[:100]:
            empty = inspect.Parameter.empty
            found.append(inspect.Parameter(name, inspect._ParameterKind(kind), default=None if default else empty))
        return inspect.Signature(found)
    return inspect.Signature()


def _mirror(files: dict[str, Any], folder: Path) -> None:
    """Make the grader's folder hold what the student's held after the call."""
    for old in folder.iterdir():
        old.unlink()
    for name, data in list(files.items())[:20]:
        with suppress(WireError, TypeError, ValueError, OSError):
            if Path(name).name == name:
                (folder / name).write_bytes(decode(data))


# ---- what a student's process may ask --------------------------------------------------------------------------------


def as_data(value: Any, objects: list[Any]) -> Any:
    """How an object of a case is carried: by its fields, by its name, or by a number under which it stays here."""
    kind = type(value)
    if kind.__name__ in DATA:
        if isinstance(value, Enum):
            return ["D", kind.__module__, kind.__name__, {"name": encode(value.name), "value": encode(value.value)}]
        if is_dataclass(value):
            values = {each.name: encode(getattr(value, each.name)) for each in fields(value)}
            return ["D", kind.__module__, kind.__name__, values]
    objects.append(value)
    return ["H", len(objects) - 1, repr(value)[:300]]


def _results(data: Any) -> Any:
    """What a student's process sends of classes of the library: only those in ``DATA`` are made anew."""
    match data:
        case ["D", str(), str(name), dict(values)] if name in DATA:
            kind = getattr(importlib.import_module(HOMES[name]), name)
            return kind(**{str(key): decode(value, _results) for key, value in values.items()})
        case ["E", str(), str(name), str(member)] if name in DATA:
            return getattr(importlib.import_module(HOMES[name]), name)[member]
        case ["D", _, str(name), _] | ["E", _, str(name), _]:
            return decode(["o", name, f"<{name}>"])
        case ["P", str(path)]:
            return decode(["o", "PosixPath", path])
    raise WireError("an unknown tag")


def answer(
    request: dict[str, Any], objects: list[Any], lent: set[str], busy: str, asked: dict[str, int]
) -> dict[str, Any]:
    """The reply to a request of a student's process: a value, or an error.

    It may call the public methods of the objects of the case that it has, read their public attributes, and ask for the
    reference of another exercise in place of a stub. ``lent`` collects the names of those: they count as not answered.
    """
    kind = str(request.get("ask"))
    asked[kind] = asked.get(kind, 0) + 1
    try:
        if asked[kind] > MOST.get(kind, 0):
            raise MiniquantError("asked too often")
        with time_limit(5.0), memory_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"value": encode(_answer(kind, request, objects, lent, busy), lambda value: _known(value, objects))}
    except Gone:
        raise
    except (Exception, TooSlow) as error:
        return {"error": encode_error(error)}


def _known(value: Any, objects: list[Any]) -> Any:
    return as_data(value, objects) if type(value).__name__ in DATA else None


def _answer(kind: str, request: dict[str, Any], objects: list[Any], lent: set[str], busy: str) -> Any:
    name = str(request["name"])
    if kind == "attribute":
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(objects[int(request["number"])], name)
        return "a method" if callable(found) else copy.deepcopy(found)
    arguments = list(decode(request["arguments"], lambda data: _of_objects(data, objects)))
    named = {str(key): decode(each, _results) for key, each in dict(request["named"]).items()}
    if kind == "method":
        if name.startswith("_"):
            raise AttributeError(name)
        target = objects[int(request["number"])]
        return (getattr(target, name) if name else target)(*arguments, **named)
    if kind == "reference" and name in exercises() and name not in NOT_LENT and name != busy:
        spec = exercises()[name]
        if spec.lab not in ("03", "16", "23"):
            lent.add(name)
            return spec.reference(*arguments, **named)
    raise NotImplementedError(f"{name} is not written yet")


def _of_objects(data: Any, objects: list[Any]) -> Any:
    match data:
        case ["H", int(number), _]:
            return objects[number]
    return _results(data)
