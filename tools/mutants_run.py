"""One mutant at a time: a fork that imports the changed source and runs the tests that execute its line."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import importlib
import importlib.abc
import importlib.util
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mutants_faults import Mutant

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "miniquant"
WORK = ROOT / ".mutants"  # what may be thrown away
ELSEWHERE = 1000.0  # added to the seconds of tests that execute no line of the module: they come last
TESTS_SECONDS = 20.0  # of the tests that are tried on one mutant, as they take without it
TABLE_SECONDS = 45.0  # the same for what no test executes, such as a table: any test may read it
COMPILING = 60  # seconds more for a mutant whose kernels are compiled again
_RUNTIME = ("kernels", "compiled", "lanes", "unpacking", "activations", "products")
COMPILED = ("core/registers.py", "core/kernel_cache.py", "core/machine_code.py", "formats/gguf/compiled/",
            *(f"runtime/{name}.py" for name in _RUNTIME))  # fmt: skip  # what numba compiles, or keeps
# of these: what is a part of other modules' kernels
CALLED = ["registers", "kernel_cache", "vectors", "bits", "searches", "k_quants", "compiled", "lanes", "unpacking"]
MEMORY = 4 * 2**30  # bytes a mutant may take beyond what the parent has
PRELOAD = ("numpy", "coverage", "pytest", "_pytest.doctest", "hypothesis.strategies", "hypothesis.extra.numpy",
           "hypothesis.internal.conjecture.engine", "rich.console", "click", "numba", "torch", "safetensors.torch",
           "tokenizers", "gguf")  # fmt: skip
SITE = """import os, sys
if "MINIQUANT_MUTANT" in os.environ:
    import importlib.util
    class Hook:
        name, path, source = os.environ["MINIQUANT_MUTANT"].split(os.pathsep)
        def find_spec(self, fullname, path=None, target=None):
            if fullname == self.name:
                return importlib.util.spec_from_file_location(fullname, self.path, loader=self)
        def create_module(self, spec):
            return None
        def get_code(self, fullname):  # python -m asks for it
            with open(self.source, encoding="utf-8") as file:
                return compile(file.read(), self.path, "exec")
        def exec_module(self, module):
            exec(self.get_code(module.__name__), module.__dict__)
    sys.meta_path.insert(0, Hook())
"""  # sitecustomize.py of the processes that a test starts


def prepare() -> None:
    """Import once what every fork needs, but never miniquant itself."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", MPLBACKEND="agg")
    os.environ.update(COVERAGE_CORE="ctrace", MINIQUANT_PROGRESS="/dev/null")
    os.environ["MINIQUANT_CACHE"] = str(WORK / "kernels")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # nbval alone imports Jupyter, seconds for every fork
    (WORK / "site").mkdir(parents=True, exist_ok=True)
    for name in ("learnt", "kernels"):
        (WORK / name).mkdir(exist_ok=True)
    (WORK / "site" / "sitecustomize.py").write_text(SITE)
    global _lock
    _lock = (WORK / "lock").open("w")
    try:
        fcntl.flock(_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit("another run is at work here; wait for it, or end it")
    for name in PRELOAD:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert not any(name.split(".")[0] == "miniquant" for name in sys.modules), "a fork could not import it anew"
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page of the parent


class _Hook(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Hands out the changed source of one module; its path stays the one on the disk."""

    def __init__(self, module: str, source: str) -> None:
        self.name, self.path, self.source = dotted(module), str(SOURCE / module), source

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> Any:
        return (
            importlib.util.spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None
        )

    def get_filename(self, fullname: str) -> str:
        return self.path

    def get_data(self, path: str) -> bytes:
        return self.source.encode()


def dotted(module: str) -> str:
    """``core/files.py`` as ``miniquant.core.files``."""
    return ".".join(("miniquant", *Path(module).with_suffix("").parts))


class _Plugin:
    """Runs the wanted tests in their order, does not shrink failed examples, remembers times and failures."""

    def __init__(self, wanted: list[str] | None = None, cover: Any = None) -> None:
        self.wanted = None if wanted is None else {name: i for i, name in enumerate(wanted)}
        self.cover, self.collected, self.failed = cover, 0, list[str]()
        self.times: dict[str, float] = {}

    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings(), phases=phases, report_multiple_bugs=False, print_blob=False)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.wanted is not None:
            items[:] = sorted((i for i in items if i.nodeid in self.wanted), key=lambda i: self.wanted[i.nodeid])
        self.collected = len(items)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.began = sum(os.times()[:4])  # of the processor: a busy machine changes nothing
        if self.cover is not None:
            self.cover.switch_context(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.times[nodeid] = round(sum(os.times()[:4]) - self.began, 3)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid} (import)")


def _pytest(file: str, plugin: _Plugin, base: Path) -> int:
    import pytest

    # pytest would rewrite the asserts of a module that is named for its doctests, and read it from the disk for that
    args = [
        "-q",
        "--no-header",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        "-W",
        "ignore",
        "--assert=plain",
    ]
    args += [f"--rootdir={ROOT}", f"--basetemp={base}", file]
    args += ["-x"] if plugin.cover is None else []
    args += [] if file.startswith("tests/") else ["--doctest-modules"]
    return int(pytest.main(args, plugins=[plugin]))


def in_fork(work: Callable[[Path], int], wall: float) -> tuple[int | str, float, Path]:
    """What ``work(folder)`` returns in a fork, or "timeout" or "crash"; its seconds of the processor; the folder."""
    folder = WORK / "tmp"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        _child(work, folder)
    end = time.monotonic() + wall
    done = 0
    try:
        while not done and time.monotonic() < end:
            done, status, used = os.wait4(pid, os.WNOHANG)
            time.sleep(0 if done else 0.005)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what it left behind, or itself
        if not done:
            _, status, used = os.wait4(pid, 0)
    code: int | str = os.waitstatus_to_exitcode(status)
    if not done or code == -signal.SIGXCPU:
        code = "timeout"
    elif isinstance(code, int) and code < 0:
        code = "crash"
    return code, used.ru_utime + used.ru_stime, folder


def _child(work: Callable[[Path], int], folder: Path) -> None:
    code = 70
    try:
        os.setsid()
        out = os.open(folder / "out.txt", os.O_WRONLY | os.O_CREAT)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(ROOT)
        sys.path.insert(0, str(ROOT / "src"))
        os.environ["PYTHONPATH"] = os.pathsep.join([str(WORK / "site"), str(ROOT / "src")])
        code = work(folder)
        sys.stdout.flush()
    except BaseException as error:  # a fork must not come back into the parent's loop
        with contextlib.suppress(BaseException):
            print("fork:", repr(error), flush=True)
        code = 1 if isinstance(error, MemoryError | RecursionError) else 70
    finally:
        os._exit(code)


# ---- which test executes which line ----------------------------------------------------------------------------------


def knowledge(folders: list[str], modules: list[str], deadline: float) -> dict[str, dict[str, Any]]:
    """Of every test file in these folders, or named itself: its tests' times and the lines that they execute.

    It is learnt anew where something changed.
    """
    named = [ROOT / "tests" / folder for folder in folders]
    found = {path for place in named for path in (place.rglob("test_*.py") if place.is_dir() else [place])}
    files = sorted(str(path.relative_to(ROOT)) for path in found)
    files += [f"src/miniquant/{m}" for m in modules if ">>> " in (SOURCE / m).read_text("utf-8")]
    shared = hashlib.sha256()
    for path in sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "conformance").glob("*.py")]):
        shared.update(b"" if path.name.startswith("test_") else path.read_bytes())
    known = {}
    for file in files:
        stored = WORK / "learnt" / (file.replace("/", "+") + ".json")
        key = shared.hexdigest() + _sha(ROOT / file)
        if stored.exists():
            facts = json.loads(stored.read_text())
            if facts["key"] == key and all(_sha(SOURCE / m) == sha for m, sha in facts["sources"].items()):
                known[file] = facts
                continue
        if time.monotonic() > deadline:
            raise TimeoutError
        code, seconds, folder = in_fork(lambda folder, file=file: _learn(file, folder), 900)
        if code != 0:
            print(
                f"  {file}: NOT USED, it does not run ({code})\n{(folder / 'out.txt').read_text()[-500:]}", flush=True
            )
            continue
        known[file] = facts = {"key": key, **json.loads((folder / "learnt.json").read_text())}
        stored.write_text(json.dumps(facts))
        print(f"  {file}: {len(facts['times'])} tests, {seconds:.1f} s", *facts["failed"], flush=True)
    return known


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def _learn(file: str, folder: Path) -> int:
    import coverage

    _limit()
    cover = coverage.Coverage(data_file=None, source=[str(SOURCE)], config_file=False)
    cover.start()
    plugin = _Plugin(cover=cover)
    code = _pytest(file, plugin, folder / "t")
    cover.stop()
    data = cover.get_data()
    lines: dict[str, dict[str, list[int]]] = {}
    for path in data.measured_files():
        by_test = defaultdict(list)
        for line, tests in data.contexts_by_lineno(path).items():
            for test in {*tests} - {"", *plugin.failed}:
                by_test[test].append(line)
        if by_test:
            lines[str(Path(path).relative_to(SOURCE))] = by_test
    times = {test: seconds for test, seconds in plugin.times.items() if test not in plugin.failed}
    facts = {"times": times, "lines": lines, "failed": [f"NOT USED, fails: {t}" for t in sorted(set(plugin.failed))]}
    facts["sources"] = {module: _sha(SOURCE / module) for module in lines}
    (folder / "learnt.json").write_text(json.dumps(facts))
    return 0 if code in (0, 1, 5) else 1


def choose(
    module: str, mutant: Mutant, known: dict[str, Any], kills: Counter[str]
) -> list[tuple[str, list[str], float]]:
    """The tests for a mutant as (file, tests, seconds): files that killed before come first, then quick ones.

    Those that execute a line of the statement; where none does (coverage sees nothing of compiled code, and a module's
    own level runs at import) those that execute any of the function, or of the module. A constant, a table, and a
    function that only they call may be read by any test: files that name the module come first, then those of its
    folder.
    """
    spans = [(mutant.line, mutant.last), mutant.function or (0, 10**9)]
    if mutant.function and mutant.line == mutant.function[0]:  # executed at import: a default is read by every call
        spans = [mutant.function]
    rows: list[tuple[float, str, str]] = []
    for span in spans:
        for file, facts in known.items():
            for test, lines in facts["lines"].get(module, {}).items():
                if any(span[0] <= line <= span[1] for line in lines):
                    rows.append((facts["times"].get(test, 0.1), file, test))
        if rows:
            break
    for file, facts in known.items():  # tests of this module that start another process
        if Path(file).stem == f"test_{Path(module).stem}":
            alien = {test for lines in facts["lines"].values() for test in lines}
            rows += [(seconds, file, test) for test, seconds in facts["times"].items() if test not in alien]
    anywhere = not rows or not mutant.function  # a line of a table is executed by the test that imports it first
    direct = {file for _, file, _ in rows if span == spans[0]}
    if anywhere:
        touched = {(file, test) for _, file, test in rows}
        rows += [
            (ELSEWHERE + seconds, file, test)
            for file, facts in known.items()
            for test, seconds in facts["times"].items()
            if (file, test) not in touched
        ]
    by_file: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for seconds, file, test in sorted(rows):
        by_file[file].append((seconds % ELSEWHERE, test))
    chosen, total = [], 0.0
    first = {file: min(seconds for seconds, f, _ in rows if f == file) > ELSEWHERE for file in by_file}
    listing = {file: not anywhere or "unchanged" not in file for file in by_file}  # they see any table
    home = f"tests/{Path(module).parent}/"
    own = direct | {f for f in by_file if anywhere and (f == f"src/miniquant/{module}" or _names(f, module))}
    distant = {file: anywhere * (0 if file in own else 1 if file.startswith(home) else 2) for file in by_file}
    allowed = TABLE_SECONDS if anywhere else TESTS_SECONDS

    def order(f: str) -> tuple[bool, int, int, bool, float]:
        return listing[f], distant[f], -kills[f], first[f], sum(t for t, _ in by_file[f]) / len(by_file[f])

    for file in sorted(by_file, key=order):
        names, cost = [], 0.0
        for seconds, test in by_file[file]:
            if total + cost + seconds <= allowed or not (chosen or names):
                names.append(test)
                cost += seconds
        if names:
            chosen.append((file, names, cost))
            total += cost
    return chosen


def _names(file: str, module: str) -> bool:
    """Whether a test file names a module, as ``miniquant.core.files`` or in ``from miniquant.core import files``."""
    package, _, name = dotted(module).rpartition(".")
    text = (ROOT / file).read_text("utf-8")
    return re.search(rf"\b{re.escape(package)}(\.| import [^\n]*\b){name}\b", text) is not None


def judge(module: str, mutant: Mutant, files: list[tuple[str, list[str], float]]) -> tuple[str, str, float]:
    """What becomes of a mutant: "killed", "survived", "timeout" or "crash"; the file that killed it; the seconds."""
    cpu = int(15 + 4 * sum(cost for _, _, cost in files)) + COMPILING * _compiles(module, files)
    ended, seconds, folder = in_fork(lambda folder: _try(module, mutant, files, cpu, folder), 60 + 4 * cpu)
    if ended == 70:
        sys.exit(f"{module}:{mutant.line}: the run went wrong\n{(folder / 'out.txt').read_text()[-2000:]}")
    killer = folder / "killer"
    result = {0: "survived", 1: "killed"}.get(ended, str(ended)) if isinstance(ended, int) else ended
    return result, killer.read_text() if killer.exists() else "", seconds


def _compiles(module: str, files: list[tuple[str, list[str], float]]) -> bool:
    """Whether numba compiles the mutant."""
    return module.startswith(COMPILED) and not all(file.endswith("_in_python.py") for file, _, _ in files)


def _limit() -> None:
    """What no fork may exceed: memory, the length of a file. A test that needs more fails when it is learnt."""
    status = Path("/proc/self/statm")
    if status.exists():
        size = int(status.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**30, 2**30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _try(module: str, mutant: Mutant, files: list[tuple[str, list[str], float]], cpu: int, folder: Path) -> int:
    """0: every test passed, 1: one failed, 70: something is wrong with this runner."""
    _limit()
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 2))  # seconds: SIGXCPU ends a loop that never returns
    if _compiles(module, files):  # numba would take a kernel with another number in it for the one it has kept
        os.environ["MINIQUANT_CACHE"] = str(folder / "kernels")
        changed = "*.nb?" if Path(module).stem in CALLED else f"{Path(module).stem}.*.nb?"
        ignored = shutil.ignore_patterns(changed, "*.npz")  # a form in the latter has parts of several modules
        shutil.copytree(WORK / "kernels", folder / "kernels", ignore=ignored, dirs_exist_ok=True)
    sys.meta_path.insert(0, _Hook(module, mutant.source))
    (folder / "mutant.py").write_text(mutant.source)
    os.environ["MINIQUANT_MUTANT"] = os.pathsep.join([dotted(module), str(SOURCE / module), str(folder / "mutant.py")])
    for number, (file, names, _) in enumerate(files):  # file by file: most mutants never see a second one
        plugin = _Plugin(names)
        code = _pytest(file, plugin, folder / f"t{number}")
        if plugin.failed or code or plugin.collected < len(names):  # fewer tests: a parametrization noticed
            if code in (3, 4) and not plugin.failed and plugin.collected:
                return 70
            (folder / "killer").write_text(file)
            return 1
    return 0
