"""A student's notebook in its process: its cells are run, then its functions are called as the grader asks.

All that leaves the process is plain data, and all of it is only what a student claims.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ...attempt import Outcome, attempts, is_own, is_stub
from ...limit import TooSlow, time_limit
from ...notebook import Code, Step, code_of, definitions
from ...trace import trace_of
from .absent import met
from .line import LONGEST_MESSAGE, Line, Message, as_data
from .slices import changed_by, relevant
from .wire import decode, encode, encode_error

SECONDS_A_STATEMENT = 20.0
SECONDS_A_DEFINITION = 5.0
LONGEST_TEXT = 1000  # characters of one text in a report
PRINTED = 1 << 16  # characters


class Answer:
    """A student's function with the name of its exercise; a stub is answered by the grader."""

    def __init__(self, name: str, function: Callable[..., Any], lent: Callable[..., Any]) -> None:
        self.exercise, self.student, self.lent = name, function, lent
        self.__name__, self.__doc__ = name, function.__doc__
        self.__wrapped__ = function
        self.failed = False

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function; while it is a stub, the grader gives what the solution gives."""
        try:
            return self.student(*arguments, **named)
        except NotImplementedError as error:
            if not is_stub(error, self.student):
                raise
            return self.lent(*arguments, **named)


@dataclass
class _Spec:
    """As much of an exercise as a call needs here."""

    observe: Callable[..., Any] | None = None
    may_view: bool = False
    oracle: None = None

    def run(self, function: Callable[..., Any], case: Any) -> Any:
        return self.observe(function, case) if self.observe else function(*case)


class _Given(tuple[Any, ...]):
    """The arguments of a call; a copy of them is made from the message, so that tensors share what they shared."""

    make: Callable[[], tuple[Any, ...]]

    def __deepcopy__(self, memo: object) -> tuple[Any, ...]:
        return self.make()


@dataclass
class Notebook:
    """The notebook of a student as a running module, and what became of its statements."""

    line: Line
    labs: dict[str, str]  # exercise -> its lab
    scope: dict[str, Any] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)  # names that a failed statement would have bound or changed
    marked: dict[str, tuple[str, Any]] = field(default_factory=dict)  # exercise -> (variable, function)
    earlier: dict[str, list[Any]] = field(default_factory=dict)

    def lend(self, name: str) -> Callable[..., Any]:
        """The reference of an exercise, asked of the grader."""

        def lent(*arguments: Any, **named: Any) -> Any:
            data = encode(list(arguments), as_data), {key: encode(value, as_data) for key, value in named.items()}
            return self.line.ask(ask="reference", name=name, arguments=data[0], named=data[1])

        lent.__name__ = name
        return lent

    def exercise(self, name: Any) -> Callable[[Callable[..., Any]], Answer]:
        """What ``@exercise`` is here."""
        if not isinstance(name, str) or name not in self.labs:
            raise ValueError(f"no exercise is called {name!r}")
        return lambda function: Answer(name, function, self.lend(name))

    def run(self, code: Code, skip: list[str], seconds: float, *, sliced: bool = False) -> None:
        """Run the statements as the module ``__main__``, as Jupyter does; when the time is over, only definitions.

        ``sliced``: only those on which the answers depend.
        """
        module = ModuleType("__main__")
        module.__dict__.update(display=lambda *a, **k: None, get_ipython=lambda: None)
        sys.modules["__main__"] = module
        self.scope = module.__dict__
        defining = {id(step) for step in definitions(code.steps)}
        left = seconds
        for step in relevant(code.steps) if sliced else code.steps:
            limit = SECONDS_A_DEFINITION if id(step) in defining else min(SECONDS_A_STATEMENT, left / 2)
            if step.place in skip or limit < 0.01:
                self.lost |= changed_by(step)
                continue
            self.line.say(begin=step.place, seconds=limit)
            start = time.monotonic()
            self._run_step(step, limit, defines=id(step) in defining)
            left -= time.monotonic() - start
        if left / 2 < 0.01:
            used = f"the time for its cells, {seconds:.3g} seconds, was used up"
            self.line.say(problem=f"{used}; after that only definitions were run")

    def _run_step(self, step: Step, limit: float, *, defines: bool) -> None:
        try:
            with time_limit(limit):
                exec(compile(ast.Module([step.code], []), "notebook", "exec"), self.scope)
        except TooSlow:
            self.lost |= changed_by(step)
            self.line.say(slow=step.place, problem=f"{step.place} was stopped after {limit:.2g} seconds")
        except BaseException as error:  # what it would have defined is missing; of exit() too
            self.lost |= changed_by(step)
            if defines and not met[0]:
                self.line.say(problem=f"{step.place}: {_named(error)}"[:LONGEST_TEXT])

    def answers(self) -> list[Message]:
        """The functions that answer exercises, as the notebook marks them, and what is wrong with the others."""
        found = []
        for variable, value in list(self.scope.items()):
            if type(value) is not Answer:
                continue
            if value.exercise == variable or value.exercise not in self.marked:
                self.marked[value.exercise] = variable, value.student
        for name, (_, function) in self.marked.items():
            how = "marked" if _is_from_here(function) else "imported"
            used = _globals_of(function, self.scope)
            found.append(
                {
                    "name": name,
                    "how": how,
                    "needs": bool({"*", *used} & self.lost - set(dir(builtins))),
                    **_signature(function),
                }
            )
        for name in self.labs:
            function = self.scope.get(name)
            if name not in self.marked and isinstance(function, FunctionType) and _is_from_here(function):
                found.append({"name": name, "how": "unmarked", "needs": False, "parameters": []})
        return found

    def call(self, request: Message) -> Message:
        """One call of an answer: what it gave or raised, and what it did beside."""
        name = str(request["call"])
        _, function = self.marked[name]
        observe = _found(request["observe"]) if request.get("observe") else None
        spec: Any = _Spec(observe, bool(request.get("may_view")))
        folder = _files(request.get("files") or {})

        def make() -> tuple[Any, ...]:
            return tuple(decode(request["arguments"], self.line.elsewhere, share=True))

        case = _Given(make())
        case.make = make
        before, start = met[0], self.earlier.setdefault(name, [])
        with time_limit(request["clock"]):
            (outcome,) = attempts(spec, function, [case], request.get("seconds"), start)
        reply = self._told(outcome, function)
        return {**reply, "met": met[0] > before, "files": _contents(folder) if folder else None}

    def _told(self, outcome: Outcome, function: Any) -> Message:
        told: Message = {"printed": outcome.printed[:PRINTED], "warned": outcome.warned[:LONGEST_TEXT]}
        told |= {"view": outcome.view, "kept": outcome.kept}
        if change := outcome.change:
            sides = [encode(side) for side in (change.before, change.after)]
            told["change"] = [change.index, *sides, str(change.place)[:100]]
        error = outcome.error
        if error is None:
            return {**told, "result": encode(outcome.result, as_data)}
        if isinstance(error, TooSlow):
            return {**told, "slow": True}
        more = {"own": is_own(error), "stub": is_stub(error, function), "trace": trace_of(error, function)[:5000]}
        if type(error).__name__ == "Finding" and type(error).__module__ == "miniquant.lab.spec":
            more["finding"] = [str(part)[:LONGEST_TEXT] for part in error.args]
        for extra in ("field", "offset"):
            if isinstance(value := getattr(error, extra, None), str | int):
                more[extra] = value
        return {**told, "error": encode_error(error, **more)}


def _named(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # a class of the student's may fail to be printed
        return type(error).__name__


def _is_from_here(function: Any) -> bool:
    return getattr(inspect.unwrap(function), "__module__", None) == "__main__"


def _found(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def _signature(function: Any) -> Message:
    """The parameters: name, kind, and whether there is a default."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except Exception:  # of something else than a function
        parameters = []
    return {"parameters": [[p.name, int(p.kind), p.default is not p.empty] for p in parameters]}


def _globals_of(function: Any, scope: dict[str, Any]) -> set[str]:
    """The names outside of it that a function uses, and those that the notebook's functions that it uses use."""
    found: set[str] = set()
    waiting = [getattr(inspect.unwrap(function), "__code__", None)]
    while waiting:
        code = waiting.pop()
        if not isinstance(code, CodeType):
            continue
        waiting += [part for part in code.co_consts if isinstance(part, CodeType)]
        for name in set(code.co_names) - found:
            found.add(name)
            other = scope.get(name)
            if isinstance(other, Answer):
                other = other.student
            if isinstance(other, FunctionType):
                waiting.append(other.__code__)
            elif isinstance(other, type):
                waiting += [each.__code__ for each in vars(other).values() if isinstance(each, FunctionType)]
    return found


# ---- files of a call -------------------------------------------------------------------------------------------------


def _files(files: Message) -> Path | None:
    """Lay the files of a call into their folder; None if the call has none."""
    if not files:
        return None
    folder = Path(files["folder"])
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, data in files["contents"].items():
        (folder / name).write_bytes(decode(data))
    return folder


def _contents(folder: Path) -> Message:
    found: Message = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < LONGEST_MESSAGE:
            found[path.name] = encode(path.read_bytes())
    return found


# ---- the process -----------------------------------------------------------------------------------------------------


def serve(handle: int) -> None:
    """Run the notebook that the first message holds, then answer calls until the grader is gone."""
    line = Line(handle)
    start = line.hear()
    notebook = Notebook(line, start["labs"])
    _furnish(notebook)
    try:
        code = code_of(decode(start["notebook"]), start["name"])
    except Exception as error:
        line.say(problem=str(error)[:LONGEST_TEXT])
        code = Code()
    for problem in code.lost:
        line.say(problem=problem[:LONGEST_TEXT])
    notebook.run(code, start["skip"], start["seconds"], sliced=start["sliced"])
    line.say(begin="", seconds=SECONDS_A_STATEMENT)
    line.say(found=notebook.answers(), lost=sorted(notebook.lost & set(notebook.labs)))
    while True:
        request = line.hear()
        try:
            reply = notebook.call(request)
        except TooSlow:
            reply = {"slow": True}
        except KeyboardInterrupt as error:
            reply = {"ended": _named(error)}
        except MemoryError:
            reply = {"error": encode_error(MemoryError("no memory is left"), own=False)}
        try:
            line.say(**reply)
        except MemoryError as error:
            line.say(error=encode_error(error, own=False))


def _furnish(notebook: Notebook) -> None:
    """Give ``miniquant.lab`` what a notebook takes from it; a check does nothing, edited or deleted as it may be."""
    lab: Any = sys.modules["miniquant.lab"]
    from ...figures import at_least, at_most
    from ...prediction import Prediction, predict

    def nothing(*_: Any, **__: Any) -> None:
        return None

    lab.exercise, lab.predict, lab.Prediction = notebook.exercise, predict, Prediction
    lab.at_least, lab.at_most = at_least, at_most
    for name in ("check", "hint", "progress", "board", "evaluate", "watch"):
        setattr(lab, name, nothing)
    lab.find, lab.exercises = _NotHere, lambda: {name: _NotHere(name) for name in notebook.labs}

    def answers(*notebooks: Any) -> Any:
        numbers = {os.path.basename(os.fsdecode(each))[:2] for each in notebooks}
        found = {name: notebook.lend(name) for name, number in notebook.labs.items() if number in numbers}
        return type("Answers", (), {**{k: staticmethod(v) for k, v in found.items()}, "yours": []})()

    module: Any = ModuleType("miniquant.lab.answers")
    module.answers = answers
    sys.modules["miniquant.lab.answers"] = lab.answers = module


class _NotHere:
    """An exercise as a notebook may look it up: its solution and its oracle are with the grader."""

    def __init__(self, name: str) -> None:
        def reference(*_: Any, **__: Any) -> None:
            raise NotImplementedError(f"the solution of {name} is not here")

        reference.__module__ = "miniquant.lessons"
        self.name, self.reference, self.oracle = name, reference, reference
