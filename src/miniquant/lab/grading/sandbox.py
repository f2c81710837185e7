"""Grade one notebook, inside a process of its own.

    python -m miniquant.lab.grading.sandbox '["NOTEBOOK", "REPORT", MEGABYTES, SECONDS, ["STEP TO SKIP", …]]'

The notebook's statements are run in order, each within a time limit, all together in half of the time; when that is
used up, only definitions are. ``check`` does nothing here, so an edited or deleted check does not matter. Then every
function that the notebook marks with ``@exercise`` is evaluated, each within its share of the time that is left. One
JSON line a step goes to the file REPORT.

This keeps accidents in: endless loops, huge allocations, files written in the wrong place, the network. It is no prison
for hostile code, which shares the process with its judge; for that, run the whole command in a container.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from miniquant.lab import Exercise
    from miniquant.lab.notebook import Code

SECONDS_A_STATEMENT = 20.0
SECONDS_A_DEFINITION = 5.0
LONGEST_TEXT = 1000  # characters of one text in the report
Say = Callable[..., None]


def main() -> None:
    """The command line; see the module's text."""
    start = time.monotonic()
    notebook, path, megabytes, seconds, skip = json.loads(sys.argv[1])
    end = start + seconds - min(1.0, seconds / 20)  # the process ends before it is stopped

    from miniquant.core.errors import MiniquantError
    from miniquant.lab.notebook import Code, read_code

    report = Path(path).open("w", buffering=1, encoding="utf-8")  # noqa: SIM115 open until the process ends

    def say(**line: Any) -> None:
        cut = {key: value[:LONGEST_TEXT] if isinstance(value, str) else value for key, value in line.items()}
        report.write(json.dumps(cut) + "\n")

    try:
        code = read_code(notebook)
    except (MiniquantError, OSError) as error:
        say(problem=str(error))
        code = Code()
    _load(code)  # before the walls go up: imports read many files
    _walls(megabytes)
    for line in code.lost:
        say(problem=line)
    scope = _run_cells(code, say, skip, (end - time.monotonic()) / 2)
    found = _answers(scope, Path(notebook).name, say)
    _evaluate({name: student for name, student in found.items() if name not in skip}, say, end)
    say(end=True)
    report.flush()
    os._exit(0)  # whatever threads the student left behind


def _run_cells(code: Code, say: Say, skip: list[str], seconds: float) -> dict[str, Any]:
    """Run the notebook's statements as the module ``__main__``, as Jupyter does; return what they defined."""
    from miniquant import lab
    from miniquant.lab.limit import TooSlow, time_limit
    from miniquant.lab.notebook import definitions

    lab.check = lambda function: None  # type: ignore[assignment, return-value]
    module = ModuleType("__main__")
    module.__dict__.update(display=lambda *a, **k: None, get_ipython=lambda: None)
    sys.modules["__main__"] = module
    defining = {id(step) for step in definitions(code.steps)}
    left = seconds
    for step in code.steps:
        defines = id(step) in defining
        limit = SECONDS_A_DEFINITION if defines else min(SECONDS_A_STATEMENT, left / 2)
        if step.place in skip or limit < 0.01:
            continue
        say(begin=step.place, seconds=limit)
        start = time.monotonic()
        try:
            with time_limit(limit):
                exec(compile(ast.Module([step.code], []), "notebook", "exec"), module.__dict__)
        except TooSlow:
            say(slow=step.place, problem=f"{step.place} was stopped after {limit:.2g} seconds")
        except BaseException as error:  # what it would have defined is missing; of exit() too
            if defines:
                say(problem=f"{step.place}: {_named(error)}")
        left -= time.monotonic() - start
    if left / 2 < 0.01:
        say(problem=f"the time for its cells, {seconds:.3g} seconds, was used up; after that only definitions were run")
    return module.__dict__


def _answers(scope: dict[str, Any], notebook: str, say: Say) -> dict[str, tuple[Exercise, Any]]:
    """Exercise -> its description and the function that the notebook marks as its answer.

    A notebook whose name begins with the number of a lab counts for that lab alone, if it answers any of its exercises.
    A function that was imported, or lost its mark, is a failed answer.
    """
    from miniquant.lab import Exercise, exercises

    marked: dict[str, tuple[Exercise, Any]] = {}
    for variable, value in list(scope.items()):
        try:
            spec, student = value.exercise, value.student
        except Exception:
            continue
        if getattr(inspect.unwrap(student), "__module__", None) == "answers":
            continue  # fetched from the notebook of another lab
        if isinstance(spec, Exercise) and (variable == spec.name or spec.name not in marked):
            marked[spec.name] = spec, student
    labs = {spec.lab for spec, _ in marked.values()}
    labs = {notebook[:2]} if notebook[:2] in labs else labs
    found = {}
    for name, (spec, student) in marked.items():
        if spec.lab not in labs:
            say(problem=f"{name} belongs to lab {spec.lab} and does not count in this notebook")
        elif _is_from_here(student):
            found[name] = spec, student
        else:
            say(exercise=name, status="failed", what=f"{name} is imported; define it in the notebook")
    known = exercises()
    for name in known:
        function = scope.get(name)
        if name in marked or not isinstance(function, FunctionType) or not _is_from_here(function):
            continue
        if known.lab_of(name) in labs or known.lab_of(name) == notebook[:2] or not labs:
            what = f'{name} is not marked as an exercise; put @exercise("{name}") back above it'
            say(exercise=name, status="failed", what=what)
    return found


def _is_from_here(function: Any) -> bool:
    return getattr(inspect.unwrap(function), "__module__", None) == "__main__"


def _evaluate(found: dict[str, tuple[Exercise, Any]], say: Say, end: float) -> None:
    """Evaluate the answers. Each may take an equal share of the time that is left when its turn comes."""
    from miniquant.lab import evaluate
    from miniquant.lab.limit import TooSlow, time_limit

    say(exercises=list(found))
    for number, (name, (spec, student)) in enumerate(found.items()):
        share = max((end - time.monotonic()) / (len(found) - number), 0.01)
        say(begin=name, seconds=share)
        start, report = time.monotonic(), None
        try:
            with time_limit(share):
                report = evaluate(spec, student)
        except TooSlow:
            pass
        except BaseException as error:
            say(exercise=name, status="crashed", what=_named(error))
            continue
        if report is None or (not report.passed and time.monotonic() - start >= share):
            what = f"no result after {share:.2g} seconds, its share of the notebook's time"
            say(exercise=name, status="timed out", what=what)
            continue
        say(exercise=name, status=report.status, what=report.what, got=report.shown.got, mistake=report.mistake)


def _named(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # a class of the student's may fail to be printed
        return type(error).__name__


def _load(code: Code) -> None:
    """Import what the notebook will need: the lessons of the exercises that it names, and the large libraries."""
    from miniquant.lab import exercises

    texts, imported = set(), set()
    for step in code.steps:
        for node in ast.walk(step.code):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    known = exercises()
    for name in texts & set(known):
        known[name]
    if imported - {"miniquant.lab", "numpy", *sys.stdlib_module_names}:
        for name in ("torch", "matplotlib.pyplot", "safetensors.torch"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def _walls(megabytes: int) -> None:
    """Limit the memory; refuse the network, other processes, and writing outside the working folder."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass  # Windows has no such limit
    here = os.path.realpath(Path.cwd())

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto")):
            raise PermissionError("a graded notebook has no network")
        if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty"):
            raise PermissionError("a graded notebook starts no other program")
        if event == "open" and _writes(arguments) and not _inside(arguments[0], here):
            raise PermissionError(f"a graded notebook writes only in its own folder, not to {arguments[0]}")
        if event in ("os.remove", "os.rename", "os.rmdir", "shutil.rmtree") and not _inside(arguments[0], here):
            raise PermissionError(f"a graded notebook changes only its own folder, not {arguments[0]}")

    sys.addaudithook(refuse)


def _writes(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = arguments
    if isinstance(mode, str) and set(mode) & set("wax+"):
        return True
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))


def _inside(path: Any, folder: str) -> bool:
    if isinstance(path, int):
        return True  # a descriptor that is open already
    found = os.path.realpath(os.fsdecode(path))
    return found == os.devnull or os.path.commonpath([found, folder]) == folder


if __name__ == "__main__":
    main()
