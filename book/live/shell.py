"""Python's side of a lab in the page: runs cells as Jupyter does, and says what needs a library that is not here.

It runs in a web worker, on Pyodide. A cell is run statement by statement. A statement that needs a library such as
PyTorch is left out, and so is what uses its names; the page then shows the output that is stored in the lab.
"""

from __future__ import annotations

import ast
import base64
import builtins
import io
import json
import linecache
import os
import signal
import sys
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import stand_ins

LATE = {
    "matplotlib": ["matplotlib"],
    "click": ["click"],
    "hypothesis": ["sortedcontainers", "hypothesis"],
}  # loaded when a cell needs it
SECONDS = 10.0  # for a cell; a check has a limit of its own for each call of the student's function
CHECK_SECONDS = 60.0
LONGEST = 200_000  # characters of text that one cell may print
SHOWS = {"check", "hint", "hexview", "diff", "ribbon", "print", "display", "progress", "board", "speak", "microscope"}


class Timer:
    """``signal.setitimer`` where there is none: Pyodide asks for a signal between two steps, and ``arm`` sets when."""

    def __init__(self, arm: Callable[[float, float, int], None]) -> None:
        self.arm, self.due = arm, 0.0

    def set(self, which: int, seconds: float, interval: float = 0.0) -> tuple[float, float]:
        """Send the signal of this timer after ``seconds``, then every ``interval``; 0 ends it."""
        before = self.get(which)
        self.due = time.monotonic() + seconds if seconds else 0.0
        number = signal.SIGPROF if which == signal.ITIMER_PROF else signal.SIGALRM
        self.arm(seconds, interval, int(number))
        return before

    def get(self, which: int) -> tuple[float, float]:
        """The seconds that are left, at least a little while the timer runs."""
        return (max(self.due - time.monotonic(), 0.001) if self.due else 0.0, 0.0)


class Absent:
    """Stands for something that needs a library which is not here; whatever is done with it raises the import's error.

    ``again`` is the import statement that binds the name once the library has been loaded.
    """

    def __init__(self, library: str, again: str = "") -> None:
        object.__setattr__(self, "_library", library)
        object.__setattr__(self, "_again", again)

    def __getattr__(self, name: str) -> Any:
        raise needs(self)

    def _fail(self, *args: Any, **kwargs: Any) -> Any:
        raise needs(self)

    __call__ = __iter__ = __getitem__ = __len__ = __enter__ = __bool__ = __add__ = __radd__ = __sub__ = __rsub__ = _fail
    __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __float__ = __int__ = __index__ = __lt__ = __gt__ = _fail
    __eq__ = __ne__ = __le__ = __ge__ = __matmul__ = __rmatmul__ = __pow__ = __mod__ = __abs__ = __fspath__ = _fail
    __delattr__ = __setattr__ = __or__ = __and__ = _fail
    __hash__ = object.__hash__
    __mro_entries__ = __contains__ = __setitem__ = __neg__ = __str__ = __repr__ = __format__ = _fail


def needs(value: Absent) -> ModuleNotFoundError:
    """The error of the import that ``value`` stands for."""
    library = object.__getattribute__(value, "_library")
    return ModuleNotFoundError(f"No module named {library!r}", name=library)


class Shell:
    """The state of one lab: its names, and where its outputs go.

    ``emit`` takes an output as JSON (as in a notebook file), ``arm`` sets the timer, ``load`` brings packages.
    """

    def __init__(self, emit: Callable[[str], None], arm: Callable[..., None], load: Callable[[str], Any]) -> None:
        self.emit, self.load = emit, load
        timer = Timer(arm)
        signal.setitimer, signal.getitimer = timer.set, timer.get  # type: ignore[assignment]
        self.main = types.ModuleType("__main__")
        self.names = self.main.__dict__
        self.names["__builtins__"] = builtins
        sys.modules["__main__"] = self.main
        sys.modules.update(stand_ins.ipython(self.display))
        builtins.display = self.display  # type: ignore[attr-defined]
        self.printed = 0
        self.files: dict[Path, tuple[float, int]] = {}
        self.late: set[str] = set()
        self.lacked = ""  # the first library that was missing
        os.environ["MPLBACKEND"] = "agg"

    # ---- outputs
    def out(self, **output: Any) -> None:
        """Send one output, as a notebook file keeps it."""
        self.emit(json.dumps(output))

    def write(self, text: str, name: str = "stdout") -> None:
        """Text that the cell prints; of very much only the beginning."""
        room = LONGEST - self.printed
        self.printed += len(text)
        if room > 0:
            self.out(output_type="stream", name=name, text=text[:room] + ("\n…\n" if len(text) > room else ""))

    def display(self, *values: Any, **_: Any) -> None:
        """Show values, as IPython's function of this name does."""
        for value in values:
            self.out(output_type="display_data", data=bundle(value), metadata={})

    # ---- running
    async def run(self, cell: str, source: str, edited: str = "[]") -> str:
        """Run a cell; JSON with ``state`` ("done", "error", "left out"), ``needs``, the library that is missing,
        ``why``, the error that ended it, and ``files``, the GGUF files that it wrote.

        edited: the ids of the cells that the student changed, as JSON; an error that comes from one of them is shown
        """
        name = f"<{cell}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        self.printed, needed, body, why = 0, "", [], ""
        before = self.workspace()
        sys.stdout, sys.stderr = Stream(self, "stdout"), Stream(self, "stderr")
        is_check = "check(" in source
        try:
            from miniquant.lab.limit import time_limit

            body = ast.parse(source, name).body
            for number, statement in enumerate(body):
                last = number == len(body) - 1 and isinstance(statement, ast.Expr) and not source.rstrip().endswith(";")
                with time_limit(CHECK_SECONDS if is_check else SECONDS):
                    found = self.statement(statement, name, last)
                while found in LATE and found not in self.late:
                    await self.bring(found)
                    with time_limit(2 * SECONDS):
                        found = self.statement(statement, name, last)
                if found and not isinstance(statement, ast.Import | ast.ImportFrom) and not _sets_threads(statement):
                    needed = needed or found
            self.flush_figures()
            state = "left out" if needed else "done"
        except BaseException as error:
            needed = self.excuse(error, {f"<{other}>" for other in json.loads(edited)}, name)
            state, why = "left out" if needed else "error", f"{type(error).__name__}: {error}"
            if needed:
                for missing in {found for each in body for found in _bound(each)} - set(self.names):
                    self.names[missing] = Absent(needed)
            else:
                self.report(error, name)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        return json.dumps(
            {
                "state": state,
                "needs": needed,
                "why": why,
                "title": stand_ins.TITLES.get(needed, needed),
                "files": self.written(before),
            }
        )

    def statement(self, statement: ast.stmt, file: str, last: bool) -> str:
        """Run one statement; the name of the library that it lacks, or nothing."""
        try:
            if last:
                value = eval(compile(ast.Expression(statement.value), file, "eval"), self.names)  # type: ignore[attr-defined]
                if value is not None:
                    self.names["_"] = value
                    self.out(output_type="execute_result", data=bundle(value), metadata={}, execution_count=None)
            elif isinstance(statement, ast.Import | ast.ImportFrom):
                for one in _single(statement):
                    self.imported(one, file)
            else:
                exec(compile(ast.Module([statement], []), file, "exec"), self.names)
        except (ModuleNotFoundError, OSError) as error:
            library = _missing(error)
            if not library:
                raise
            for name in _bound(statement):
                self.names[name] = Absent(library)
            self.lacked = self.lacked or ("" if library in LATE else library)
            return library
        return ""

    def imported(self, statement: ast.Import | ast.ImportFrom, file: str) -> None:
        """One import; a name that cannot be had is bound to what says so when it is used."""
        if isinstance(statement, ast.ImportFrom) and statement.module:
            own = stand_ins.of(statement.module, statement.names[0].name)
            if own is not None:
                self.names[statement.names[0].asname or statement.names[0].name] = own
                return
        try:
            exec(compile(ast.Module([statement], []), file, "exec"), self.names)
        except ModuleNotFoundError as error:
            library = _missing(error)
            if not library:
                raise
            self.lacked = self.lacked or ("" if library in LATE else library)
            for name in _bound(statement):
                self.names[name] = Absent(library, ast.unparse(statement) if library in LATE else "")

    async def bring(self, library: str) -> None:
        """Load a library, then repeat the imports that waited for it."""
        await self.load(json.dumps(LATE[library]))
        self.late.add(library)
        for value in list(self.names.values()):
            if isinstance(value, Absent) and object.__getattribute__(value, "_library") == library:
                again = object.__getattribute__(value, "_again")
                if again:
                    exec(again, self.names)

    def excuse(self, error: BaseException, edited: set[str], file: str) -> str:
        """Why a cell as it was given fails: what an earlier one lacked, or time; nothing for an error of one's own."""
        from miniquant.lab.limit import TooSlow

        places = {frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)}
        if edited & (places | {file}):
            return ""
        return "time" if isinstance(error, TooSlow) else self.lacked

    def report(self, error: BaseException, file: str) -> None:
        """An error as Jupyter shows it: the frames that lie in cells, and in what they call."""
        from miniquant.lab.limit import TooSlow
        from miniquant.lab.unknown_name import advice

        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        lines = traceback.format_exception(type(error), error, trace)
        kind, text = type(error).__name__, str(error)
        if isinstance(error, TooSlow):
            kind, text = "Stopped", f"this cell has no end, or takes longer than {SECONDS:g} s. Nothing else was lost."
            lines = [f"{kind}: {text}"]
        self.out(output_type="error", ename=kind, evalue=text, traceback="".join(lines).rstrip().split("\n"))
        if isinstance(error, NameError):
            self.write(advice(error) + "\n")

    def flush_figures(self) -> None:
        """Show the figures that a cell left open, and close them."""
        plt = sys.modules.get("matplotlib.pyplot")
        if plt is not None:
            for number in plt.get_fignums():
                self.display(plt.figure(number))
                plt.close(number)

    # ---- files
    def workspace(self) -> dict[Path, tuple[float, int]]:
        """The files of the lab, with time and size."""
        return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in Path("workspace").glob("**/*") if p.is_file()}

    def written(self, before: dict[Path, tuple[float, int]]) -> list[str]:
        """The GGUF files that were written since ``before``, in the order in which they were written."""
        now = self.workspace()
        return [
            p.as_posix() for p in sorted(now, key=now.__getitem__) if p.suffix == ".gguf" and now[p] != before.get(p)
        ]


class Stream(io.TextIOBase):
    """What a cell prints, passed on a little later, so that many short lines are one message."""

    def __init__(self, shell: Shell, name: str) -> None:
        self.shell, self.name, self.kept, self.since = shell, name, [], time.monotonic()  # type: ignore[assignment]

    def write(self, text: str) -> int:
        """Keep the text; pass it on every tenth of a second."""
        self.kept.append(text)
        if time.monotonic() - self.since > 0.1:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Pass on what was kept."""
        self.since = time.monotonic()
        if self.kept:
            self.shell.write("".join(self.kept), self.name)
            self.kept = []


def only_shows(source: str) -> bool:
    """Whether a cell shows something and defines nothing, so that later cells do not need it.

    >>> only_shows("check(pack)"), only_shows("plots.curves(a)"), only_shows("x = 1"), only_shows("p.write_bytes(b'')")
    (True, True, False, False)
    """
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return False
    return all(isinstance(s, ast.Expr) and _shows(s.value) for s in body)


def _shows(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return isinstance(value, ast.Name | ast.Constant)
    if isinstance(value.func, ast.Name):
        return value.func.id in SHOWS
    return isinstance(value.func, ast.Attribute) and ast.unparse(value.func.value) == "plots"


def bundle(value: Any) -> dict[str, Any]:
    """The forms of a value that a page can show, by their types; text is always among them."""
    found: dict[str, Any] = {}
    if type(value).__module__.startswith("matplotlib") and hasattr(value, "savefig"):
        file = io.BytesIO()
        value.savefig(file, format="png", bbox_inches="tight")
        found["image/png"] = base64.b64encode(file.getvalue()).decode()
        found["text/plain"] = getattr(value, "alt", "") or repr(value)
        return found
    for kind, method in (
        ("text/html", "_repr_html_"),
        ("text/markdown", "_repr_markdown_"),
        ("image/svg+xml", "_repr_svg_"),
    ):
        make = getattr(value, method, None)
        if callable(make) and (text := make()) is not None:
            found[kind] = text
    found["text/plain"] = pretty(value)
    return found


def pretty(value: Any) -> str:
    """The text of a value as Jupyter prints it: a long container over several lines."""
    import pprint

    return pprint.pformat(value, width=80, sort_dicts=False) if isinstance(value, dict | list | tuple) else repr(value)


def _single(statement: ast.Import | ast.ImportFrom) -> list[ast.Import | ast.ImportFrom]:
    """The statement once for each name that it imports, so that one that is missing takes no other with it."""

    def copy(alias: ast.alias) -> ast.Import | ast.ImportFrom:
        if isinstance(statement, ast.Import):
            return ast.copy_location(ast.Import([alias]), statement)
        return ast.copy_location(ast.ImportFrom(statement.module, [alias], statement.level), statement)

    return [copy(alias) for alias in statement.names]


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.split(".")[0] for alias in statement.names]
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    return [n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _missing(error: ModuleNotFoundError | OSError) -> str:
    """What is not here, or may come late; nothing for an error of another kind."""
    if isinstance(error, ModuleNotFoundError):
        library = (error.name or "").split(".")[0]
        return library if library in stand_ins.NOT_HERE or library in LATE else ""
    return "process" if "does not support processes" in str(error) else ""


def _sets_threads(statement: ast.stmt) -> bool:
    return "torch.set_num_threads" in ast.unparse(statement)
