"""A pytest plugin: ``-p tools.in_copies --copies 3`` runs the tests in copies of the process that collected them.

Each worker of pytest-xdist imports all libraries and collects all tests again, ten seconds here, and sends five
messages for each test through a format of its own. A copy (``os.fork``) has everything already. It takes one unit after
the other (``scope_of``), and sends what is reported to the process that collected. If a copy dies, the test that it ran
has failed, and other copies run what it has left.
"""

from __future__ import annotations

import gc
import itertools
import os
import traceback
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import pytest

from .longest_first import scope_of

WIDTH = 4  # bytes of a unit's number in the pipe


def pytest_addoption(parser: pytest.Parser) -> None:
    """The number of copies."""
    parser.addoption("--copies", type=int, default=0, help="run the tests in so many copies of this process")
    gc.set_threshold(20_000, 20, 20)  # 700, 10, 10 by default


def pytest_configure(config: pytest.Config) -> None:
    """What is imported and collected is no garbage."""
    if config.option.copies and hasattr(os, "fork"):
        gc.disable()


def pytest_collection_finish() -> None:
    """Python need not search what is imported and collected for garbage, and a copy need not copy its memory."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in copies; what is wrong before the first test is for pytest itself to say."""
    options = session.config.option
    if session.testsfailed or options.collectonly or not options.copies or not hasattr(os, "fork"):
        return None
    if folders := getattr(session.config, "_tmp_path_factory", None):
        folders.getbasetemp()  # one for all copies; a copy would make its own, and nobody would remove it
    left = {item.nodeid: item for item in session.items}
    while left:
        before = len(left)
        for nodeid in _round(session, options.copies, list(left.values())):
            left.pop(nodeid, None)
        if len(left) == before:
            raise RuntimeError(f"{before} tests are left, and the copies ended before they ran one")
    return True


def _round(session: pytest.Session, n: int, items: Sequence[pytest.Item]) -> Iterator[str]:
    """Run tests in ``n`` copies, and pass on what they report; the names of the tests that have ended."""
    units = [list(unit) for _, unit in itertools.groupby(items, lambda item: scope_of(item.nodeid))]
    numbers, end = os.pipe()  # which unit is next; it holds 16,000 of them
    os.write(end, b"".join(number.to_bytes(WIDTH, "little") for number in range(len(units))))
    os.close(end)
    running: dict[Any, int] = {}
    try:
        for _ in range(min(n, len(units))):
            ours, theirs = Pipe(duplex=False)
            if not (pid := os.fork()):
                _become_copy(session, _taken(units, numbers), theirs)
            theirs.close()
            running[ours] = pid
        yield from _passed_on(session, running)
    finally:
        os.close(numbers)
        for pid in running.values():
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def _passed_on(session: pytest.Session, running: dict[Any, int]) -> Iterator[str]:
    """Call the hooks that the copies name, until the last has ended; the names of the tests that have ended."""
    hook = session.config.hook
    current: dict[Any, dict[str, Any]] = {}
    while running:
        for copy in wait(list(running)):
            try:
                name, arguments = copy.recv()  # type: ignore[union-attr]
            except EOFError:
                code = os.waitstatus_to_exitcode(os.waitpid(running.pop(copy), 0)[1])
                if copy not in current:
                    continue
                name, arguments = "pytest_runtest_logfinish", current[copy]
                text = f"the process that ran this test ended with exit code {code}"
                hook.pytest_runtest_logreport(
                    report=pytest.TestReport(**arguments, keywords={}, outcome="failed", longrepr=text, when="call")
                )
            if name == "pytest_warning_recorded":
                hook.pytest_warning_recorded.call_historic(kwargs=arguments)
                continue
            if name == "pytest_runtest_logreport":
                report = hook.pytest_report_from_serializable(config=session.config, data=arguments["report"])
                arguments = {"report": report}
            getattr(hook, name)(**arguments)
            if name == "pytest_runtest_logstart":
                current[copy] = arguments
            elif name == "pytest_runtest_logfinish":
                yield current.pop(copy)["nodeid"]
            if session.shouldfail:
                raise session.Failed(session.shouldfail)


def _taken(units: list[list[pytest.Item]], numbers: int) -> Iterator[pytest.Item]:
    """The tests of the units that this copy takes; what is read from a pipe at once goes to nobody else."""
    while number := os.read(numbers, WIDTH):
        yield from units[int.from_bytes(number, "little")]


def _become_copy(session: pytest.Session, items: Iterator[pytest.Item], to: Connection[Any, Any]) -> None:
    """In the copy: run the tests; no return."""
    code = 1
    try:
        plugins, hook = session.config.pluginmanager, session.config.hook
        plugins.unregister(name="terminalreporter")
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()  # its files are those of all copies
        capture.start_global_capturing()
        plugins.register(_Sender(session.config, to))
        item = next(items, None)
        while item is not None:
            following = next(items, None)  # pytest keeps the fixtures that it needs, too
            hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following
        code = 0
    except Exception:  # of pytest itself, or of a plugin: a test's own errors are in its report
        capture.stop_global_capturing()
        traceback.print_exc()
    finally:
        to.close()
        os._exit(code)


class _Sender:
    """Sends the hooks that the process that collected should call, with their arguments."""

    def __init__(self, config: pytest.Config, to: Connection[Any, Any]) -> None:
        self.config, self.to = config, to

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self.to.send(("pytest_runtest_logstart", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        self.to.send(("pytest_runtest_logfinish", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.to.send(("pytest_runtest_logreport", {"report": data}))

    def pytest_warning_recorded(self, warning_message: Any, when: Any, nodeid: str, location: Any) -> None:
        found = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        self.to.send(("pytest_warning_recorded", found))
