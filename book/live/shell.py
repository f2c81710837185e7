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
from stand_ins import Absent, LeftOutError, needs
from statements import bound, makes, only_shows, sets_threads, single, used

LATE = {
    "matplotlib": ["matplotlib"],
    "click": ["click"],
    "hypothesis": ["sortedcontainers", "hypothesis"],
}  # loaded when a cell needs it
SECONDS = 10.0  # for a cell; a check has a limit of its own for each call of the student's function
CHECK_SECONDS = 60.0
LONGEST = 200_000  # characters of text that one cell may print
__all__ = ["Shell", "only_shows"]


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
        self.cell = ""  # the id of the one that runs
        self.page: list[dict[str, Any]] = []  # all cells of the lab
        self.ended: dict[str, tuple[str, str]] = {}  # by id: the state of a cell that was run, and the library it lacks
        self.lost: dict[str, list[ast.stmt]] = {}  # by id: the statements that were left out
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
    async def run(self, cell: str, source: str, page: str = "[]") -> str:
        """Run a cell; JSON with ``state`` ("done", "error", "left out"), ``needs``, the library that is missing,
        ``why``, the error that ended it, ``first``, the earlier cell that is to blame, and ``files``, the GGUF files
        that it wrote.

        page: the lab's cells in their order, as JSON with ``id``, ``source`` and ``edited``; an error that comes from
            one that the student changed is shown
        """
        name = f"<{cell}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        self.cell, self.page, self.lost[cell] = cell, json.loads(page), []
        self.printed, needed, body, why = 0, "", [], ""
        first: dict[str, str] | None = None
        before = self.workspace()
        sys.stdout, sys.stderr = Stream(self, "stdout"), Stream(self, "stderr")
        is_check = "check(" in source
        try:
            from miniquant.lab.limit import time_limit

            body = ast.parse(source, name).body
            for number, statement in enumerate(body):
                last = number == len(body) - 1 and isinstance(statement, ast.Expr) and not source.rstrip().endswith(";")
                with time_limit(CHECK_SECONDS if is_check else SECONDS):
                    error = self.statement(statement, name, last)
                while error and (found := _missing(error)) in LATE and found not in self.late:
                    await self.bring(found)
                    with time_limit(2 * SECONDS):
                        error = self.statement(statement, name, last)
                if error and not isinstance(statement, ast.Import | ast.ImportFrom) and not sets_threads(statement):
                    self.lost[cell].append(statement)
                    if not needed:
                        needed, first = _missing(error), self.source_of(error)
            self.flush_figures()
            state = "left out" if needed else "done"
        except BaseException as error:
            needed, first = self.excuse(error, name, body) or (needed, first)
            state, why = "left out" if needed else "error", f"{type(error).__name__}: {error}"
            if needed:
                self.lost[cell] = body
                for missing in {found for each in body for found in bound(each)} - set(self.names):
                    self.names[missing] = Absent(needed, "", cell, missing)
            else:
                self.report(error, first)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        self.ended[cell] = (state, needed)
        found = {"state": state, "needs": needed, "why": why, "title": _title(needed), "first": first}
        return json.dumps({**found, "files": self.written(before)})

    def statement(self, statement: ast.stmt, file: str, last: bool) -> Exception | None:
        """Run one statement; the error if it lacks a library."""
        try:
            if last:
                value = eval(compile(ast.Expression(statement.value), file, "eval"), self.names)  # type: ignore[attr-defined]
                if value is not None:
                    self.names["_"] = value
                    self.out(output_type="execute_result", data=bundle(value), metadata={}, execution_count=None)
            elif isinstance(statement, ast.Import | ast.ImportFrom):
                for one in single(statement):
                    self.imported(one, file)
            else:
                exec(compile(ast.Module([statement], []), file, "exec"), self.names)
        except (ModuleNotFoundError, OSError) as error:
            library = _missing(error)
            if not library:
                raise
            for name in bound(statement):
                self.names[name] = Absent(library, "", self.cell, name)
            return error
        return None

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
            for name in bound(statement):
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

    # ---- who is to blame
    def source_of(self, error: BaseException) -> dict[str, str] | None:
        """The earlier cell that did not make what an error asks for."""
        if isinstance(error, LeftOutError) and error.cell not in ("", self.cell):
            return self.blamed(error.cell, error.made)
        return None

    def blamed(self, cell: str, name: str) -> dict[str, str]:
        """What the page says of an earlier cell that did not make a name, or a file of that name."""
        state, library = self.ended.get(cell, ("not run", ""))
        state = "not run" if state == "done" else state  # it has been changed since
        return {"cell": cell, "name": name, "state": state, "needs": library, "title": _title(library)}

    def excuse(self, error: BaseException, file: str, body: list[ast.stmt]) -> tuple[str, dict[str, str] | None] | None:
        """Why a cell fails: the library that it lacks, and the earlier cell to blame; nothing if neither is known.

        The library is empty for an error of one's own, which is shown; a cell may be to blame for that as well.
        """
        from miniquant.lab.limit import TooSlow

        if isinstance(error, NameError):
            first = self.not_made(error.name or "")
            return (first["needs"], first) if first else None
        places = {frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)}
        if {f"<{each['id']}>" for each in self.page if each["edited"]} & (places | {file}):
            return "", None
        if isinstance(error, TooSlow):
            return "time", None
        for name in used(body):
            value = self.names.get(name)
            if isinstance(value, Absent):
                return str(needs(value).name), self.source_of(needs(value))
        if isinstance(error, FileNotFoundError) and str(error.filename).startswith(".."):
            return "folder", None
        if self.lost[self.cell]:
            return None  # what it lacks is known
        mentioned = {name for name in used(body) if not self.is_tool(name)}
        for cell in reversed(self.above()):
            statements = self.lost.get(cell, [])
            shared = mentioned & used(statements)
            if isinstance(error, FileNotFoundError) and statements:
                shared = {Path(str(error.filename)).name}  # nobody wrote it
            if shared:
                return self.ended[cell][1], self.blamed(cell, min(shared))
        return None

    def above(self) -> list[str]:
        """The ids of the cells before the one that runs."""
        ids = [each["id"] for each in self.page]
        return ids[: ids.index(self.cell)] if self.cell in ids else []

    def is_tool(self, name: str) -> bool:
        """Whether a name is a module, a function or a class: what many cells use, and none of them changes."""
        value = self.names.get(name, getattr(builtins, name, None))
        return isinstance(value, types.ModuleType | type | types.FunctionType | types.BuiltinFunctionType)

    def not_made(self, name: str) -> dict[str, str] | None:
        """The cell that makes a name which is not there: the nearest one above, or the first below."""
        makers = [each["id"] for each in self.page if each["id"] != self.cell and makes(each["source"], name)]
        above = [cell for cell in self.above() if cell in makers]
        return self.blamed((above[-1:] or makers)[0], name) if makers else None

    def report(self, error: BaseException, first: object) -> None:
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
        if isinstance(error, NameError) and not first:
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


def _title(library: str) -> str:
    return stand_ins.TITLES.get(library, library)


def _missing(error: BaseException) -> str:
    """What is not here, or may come late; nothing for an error of another kind."""
    if isinstance(error, LeftOutError):
        return str(error.name)
    if isinstance(error, ModuleNotFoundError):
        library = (error.name or "").split(".")[0]
        return library if library in stand_ins.NOT_HERE or library in LATE else ""
    return "process" if "does not support processes" in str(error) else ""
