"""``miniquant assemble``: the student's functions as a folder that runs, with scripts, tests, manifest and README.

Everything is made in a folder of its own beside the target, run there, and then moved, file by file. What a student
has changed in the target stays: of README.md and the report, only the lines between two marks are measured again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree

from ...core.errors import MiniquantError
from ...core.files import atomic_write
from .module import Assembly, build
from .running import Done, run

MODULE, TESTS, FILE, MANIFEST, STATE = (
    "gguf_io.py",
    "test_gguf_io.py",
    "minigpt.gguf-lite",
    "manifest.json",
    ".assembled.json",
)
SCRIPTS = ("export.py", "load.py", "verify.py", TESTS, "pytest.ini")
PAGES = ("README.md", "PHASE_26_REPORT.md")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
OPEN = re.compile(r"^\*.*\*$", re.M)  # a line in italics waits for the student
RESULTS = "results.xml"


@dataclass(frozen=True, eq=False)
class Assembled:
    """What ``assemble`` did. ``tests`` maps a claim to (passed, how many); ``problems`` are scripts that failed.

    ``kept`` says for each file that the student has changed what was done about it; ``open`` counts the answers that
    the student has still to write, by page.
    """

    folder: Path
    functions: Assembly
    tests: dict[str, tuple[int, int]]
    kept: dict[str, str] = field(default_factory=dict)
    open: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every test passed and every script ran."""
        return bool(self.tests) and not self.problems and all(good == total for good, total in self.tests.values())

    def lines(self) -> list[str]:
        """The report, line by line."""
        count = len(self.functions.yours)
        found = [f"{count} of {count + len(self.functions.missing)} functions in {MODULE} are yours"]
        if self.functions.missing:
            found += ["the reference stands in for the others; go back to", *self._missing()]
        good, total = (sum(pair[i] for pair in self.tests.values()) for i in (0, 1))
        found.append(f"the assignment's tests on {MODULE}: {good} of {total} pass")
        for claim, (passed, cases) in self.tests.items():
            found.append(f"  {'✓' if passed == cases else '✗'} {claim}{f' ({passed} of {cases})' if cases > 1 else ''}")
        found += self.problems
        found += [f"{name}: {what}" for name, what in self.kept.items()]
        found += [f"{name}: {n} places wait for your answer" for name, n in self.open.items() if n]
        return [*found, f"the folder {self.folder.name} has {', '.join((MODULE, *SCRIPTS, FILE, MANIFEST, *PAGES))}"]

    def _missing(self) -> list[str]:
        """A line for each lab whose functions are not written yet, and one for each function that is wrong."""
        alike: dict[str, list[str]] = {}
        for name, reason in self.functions.missing.items():
            lab = f"  lab {self.functions.labs[name]}, "
            if reason.startswith("wrong on "):
                alike[f"{lab}{name}: {reason}"] = []  # the name first: the reason may be long
            else:
                alike.setdefault(f"{lab}{reason}: ", []).append(name)
        return [line + ", ".join(names) for line, names in alike.items()]

    def __repr__(self) -> str:
        return "\n".join(self.lines())


def assemble(
    notebooks: str | os.PathLike[str] = ".", out: str | os.PathLike[str] = "workspace/26-gguf-export"
) -> Assembled:
    """Put the functions of the notebooks of labs 08 to 13 into a folder that runs, test them there, and say the result.

    notebooks: a folder; only what is saved in it counts. out: the folder to write, made if it is missing.

    Raises ``MiniquantError`` if no notebook of these labs is in the folder, or ``out`` cannot be written.
    """
    paths = sorted(Path(notebooks).glob("[0-9][0-9]-*.ipynb"))
    if not paths:
        raise MiniquantError(
            f"there is no notebook such as 09-writer.ipynb in {notebooks}; give the folder of your labs"
        )
    functions, target = build(paths), Path(out).resolve()
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MiniquantError(f"cannot make the folder {target}: {error.strerror}") from error
    written = _state(target)
    with _stage(target) as stage:
        kept = _fill(stage, target, functions, written)
        written_file, tested, measured = run(stage, (("export.py",), _tests_of(stage), ("verify.py", "--markdown")))
        problems = [f"export.py failed: {_last(written_file.stderr)}"] if written_file.returncode else []
        tests = _tests(stage, tested)
        figures = measured.stdout.strip() or "Nothing is measured yet: verify.py failed."
        if measured.returncode and not measured.stdout.strip():
            problems.append(f"verify.py failed: {_last(measured.stderr)}")
        state = {name: _hash((stage / name).read_text("utf-8")) for name in (MODULE, *SCRIPTS) if name not in kept}
        pages = {name: _page(name, target, figures, written, kept) for name in PAGES}
        for name, text in pages.items():
            (stage / name).write_text(text, "utf-8")
            state[name] = written.get(name, "") if name in kept else _hash(text)
        state["figures"] = _hash(figures)
        for name in (MODULE, *SCRIPTS, FILE, MANIFEST, *PAGES):
            if (stage / name).exists() and not (name in SCRIPTS and name in kept):
                with atomic_write(target / name) as file:
                    file.write((stage / name).read_bytes())
        with atomic_write(target / STATE) as file:
            file.write((json.dumps(state, indent=2) + "\n").encode())
    waiting = {name: len(OPEN.findall(text)) for name, text in pages.items()}
    return Assembled(target, functions, tests, kept, waiting, problems)


@contextmanager
def _stage(target: Path) -> Iterator[Path]:
    """A folder beside the target, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=".assemble-", dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(stage: Path, target: Path, functions: Assembly, written: dict[str, str]) -> dict[str, str]:
    """Put module, scripts and tests into the stage. Returns what was done about files that the student has changed."""
    kept: dict[str, str] = {}
    (stage / MODULE).write_text(functions.text, "utf-8")
    if _changed(target / MODULE, written):
        number = next(n for n in range(1, 1000) if not (target / f"gguf_io.{n}.py").exists())
        shutil.copyfile(target / MODULE, target / f"gguf_io.{number}.py")
        kept[f"gguf_io.{number}.py"] = f"your changes of {MODULE} are in it; {MODULE} itself is made from the notebooks"
    for name in SCRIPTS:
        (stage / name).write_text(skeleton(name), "utf-8")
        if _changed(target / name, written):
            shutil.copyfile(target / name, stage / name)
            kept[name] = "you have changed it, so it stays as it is"
    return kept


def _page(name: str, target: Path, figures: str, written: dict[str, str], kept: dict[str, str]) -> str:
    """README.md or the report: new, or the student's own text with new figures in it."""
    path = target / name
    if not _changed(path, written):
        return skeleton(name).replace("@FIGURES@", figures)
    text = path.read_text("utf-8")
    begin, end = text.find(BEGIN), text.find(END)
    inside = text[begin + len(BEGIN) : end].strip()
    if not 0 <= begin < end or _hash(inside) != written.get("figures"):
        kept[name] = "you have changed it, so it stays as it is"
        return text
    kept[name] = "your text stays; the figures between the marks are new"
    return f"{text[:begin]}{BEGIN}\n{figures}\n{text[end:]}"


def skeleton(name: str) -> str:
    """A file of the deliverable as it is before anybody has changed it."""
    return resources.files("miniquant").joinpath(f"assets/deliverable/{name}.template").read_text("utf-8")


def _changed(path: Path, written: dict[str, str]) -> bool:
    """Whether a file exists and is not what was written last."""
    return path.exists() and _hash(path.read_text("utf-8", "replace")) != written.get(path.name)


def _state(target: Path) -> dict[str, str]:
    try:
        found = json.loads((target / STATE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


# ---- running ---------------------------------------------------------------------------------------------------------


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it says nothing"


def _tests_of(stage: Path) -> tuple[str, ...]:
    """The command that runs the tests."""
    results = f"--junitxml={stage / RESULTS}"
    return "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={stage}", results, TESTS


def _tests(stage: Path, done: Done) -> dict[str, tuple[int, int]]:
    """The tests by claim: how many of its cases passed, and how many there are."""
    results = stage / RESULTS
    found: dict[str, tuple[int, int]] = {}
    if not results.exists():
        return {f"the tests do not run: {_last(done.stderr or done.stdout)}": (0, 1)}
    for case in ElementTree.parse(results).iter("testcase"):
        claim = case.get("name", "").split("[")[0].removeprefix("test_").replace("_", " ")
        good, total = found.get(claim, (0, 0))
        failed = any(case.find(what) is not None for what in ("failure", "error", "skipped"))
        found[claim] = (good + (not failed), total + 1)
    return found or {f"the tests do not run: {_last(done.stderr or done.stdout)}": (0, 1)}
