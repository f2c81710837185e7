"""Grade one notebook, inside a process of its own.

    python -m miniquant.lab.grading.sandbox NOTEBOOK REPORT MEGABYTES [EXERCISE TO SKIP ...]

The notebook is not run as a whole. Its imports, assignments, functions and classes are executed in order, each within a
time limit; expressions (checks, plots, prints) are not, so an edited or deleted check does not matter. Then every
function that bears the name of an exercise is evaluated. One JSON line a step goes to the file REPORT.

This keeps accidents in: endless loops, huge allocations, files written in the wrong place, the network. It is no prison
for hostile code, which shares the process with its judge; for that, run the whole command in a container.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from pathlib import Path
from typing import Any

SECONDS_A_STATEMENT = 20.0


def main() -> None:
    """The command line; see the module's text."""
    notebook, path, megabytes, *skip = sys.argv[1:]
    cells = json.loads(Path(notebook).read_text("utf-8")).get("cells", [])
    sources = ["".join(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]

    from miniquant.lab import evaluate, exercises  # before the walls go up: imports read many files
    from miniquant.lab.limit import TooSlow, time_limit

    report = Path(path).open("w", buffering=1, encoding="utf-8")  # noqa: SIM115 open until the process ends
    known = exercises()
    _import_quietly("torch", "matplotlib.pyplot", "safetensors.torch", "IPython.display")
    _walls(int(megabytes))
    scope: dict[str, Any] = {"__name__": "__main__"}
    for source in sources:
        for statement in _statements(source):
            try:
                with time_limit(SECONDS_A_STATEMENT):
                    exec(compile(ast.Module([statement], []), "notebook", "exec"), scope)
            except (Exception, TooSlow, SystemExit):
                continue  # what it would have defined is missing, and the exercise will say so
    for name, spec in known.items():
        function = scope.get(name)
        if name in skip or not callable(function):
            continue
        report.write(json.dumps({"begin": name}) + "\n")
        found = evaluate(spec, getattr(function, "student", function))
        report.write(
            json.dumps({"exercise": name, "status": found.status, "what": found.what, "mistake": found.mistake})
        )
        report.write("\n")
    report.write(json.dumps({"end": True}) + "\n")
    report.flush()
    os._exit(0)  # whatever threads the student left behind


def _statements(source: str) -> list[ast.stmt]:
    """The statements of a cell that may define something; magics are dropped, a cell that does not parse has none."""
    lines = ["pass" if line.lstrip().startswith(("%", "!", "?")) else line for line in source.splitlines()]
    try:
        return [s for s in ast.parse("\n".join(lines)).body if not isinstance(s, ast.Expr)]
    except SyntaxError:
        return []


def _import_quietly(*names: str) -> None:
    import contextlib
    import importlib

    for name in names:
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
