"""The commands of the course, the same on every system: ``python -m miniquant.course book|test|lab`` in a checkout.

What each of them runs stands here and nowhere else; ``make`` calls this file. They run in ``.venv``, which is made the
first time and brought up to date when the requirements change. A Python with nothing installed can start this: it needs
the standard library alone, and imports nothing of miniquant.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

OLDEST = (3, 11)
UV = "uv==0.13.9"  # it knows where PyTorch keeps the builds for processors; pip would have to be told the address
REQUIREMENTS = ("requirements.txt", "constraints.txt", "pyproject.toml")
SITE = "_build/html/index.html"
WHEELS = "wheels"  # in a bundle: all packages, so that nothing is asked of a registry
BUILT = (
    *(".venv", ".venv-lowest", "_build", ".mutants", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache"),
    *("notebooks/workspace", "es/notebooks/workspace", "solutions/workspace"),
)


class Step(NamedTuple):
    """A line to print, and a program of ``.venv`` to run with its arguments and variables.

    A step that is ``beside`` runs while the next one that is not does, and what it says comes after that one's lines.
    """

    says: str
    command: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()
    beside: bool = False


class Command(NamedTuple):
    """What a command is for, its steps, and the line that is printed at the end; {root} in it is the checkout."""

    about: str
    steps: tuple[Step, ...]
    says: str = ""


# on two cores: one of three often waits
PYTEST = ("python", "-m", "pytest", "-q", "-p", "tools.longest_first", "-p", "tools.in_copies", "--copies", "3")
TWO = ("--copies", "2")  # beside others
NO_IRI = ("-p", "tools.without_iri")  # before nbval imports nbformat
TEXTS = ("-p", "tools.measured_text")  # outputs that depend on Python's documentation
KERNELS = ("-p", "tools.prepared_kernels")
NBVAL = ("--ignore-glob=*/workspace", "--nbval", "--nbval-current-env", "--nbval-sanitize-with", "tests/nbval.cfg")
COMPARED = (*PYTEST, *NO_IRI, *TEXTS, *KERNELS, *NBVAL)
ONE_THREAD = ("OMP_NUM_THREADS", "1")  # small matrices: more threads cost more than they bring
NO_WINDOW = ("MPLBACKEND", "agg")
NO_RECORD = ("MINIQUANT_PROGRESS", os.devnull)
BUILD = ("jupyter-book", "build", ".", "--toc", "book/_toc.yml")
BOOK = Step("running every lab and building the site", (*BUILD, "-n", "--all"))
SPANISH = ("python", "tools/spanish_site.py")

COMMANDS = {
    "book": Command(
        "run every lab and build the course site", (BOOK, Step("the site in Spanish", SPANISH)), "open {root}/" + SITE
    ),
    "test": Command(
        "run all tests",
        (
            Step("style", ("ruff", "check", ".")),
            Step("", ("ruff", "format", "--check", ".")),
            Step("types, and every lab, outputs compared (said at the end)", ("mypy",), beside=True),
            Step("", (*COMPARED, *TWO, "notebooks", "solutions"), (ONE_THREAD, NO_RECORD), beside=True),
            Step(
                "the library: units, properties, referees, doctests",
                (*PYTEST, "-p", "no:nbval", "--doctest-modules", "src", "tests"),
                (NO_WINDOW, ONE_THREAD),
            ),
        ),
    ),
    "test-spanish": Command(
        "run the labs in Spanish, whose cells compute what the English ones do, and compare their outputs",
        (Step("every lab in Spanish, outputs compared", (*COMPARED, "es/notebooks"), (ONE_THREAD, NO_RECORD)),),
    ),
    "lab": Command(
        "open JupyterLab on notebooks/; with a number, on that lab",
        (Step("", ("jupyter", "lab", "--notebook-dir=notebooks")),),
    ),
    "live": Command(
        "the site, with Python, an editor and llama.cpp in its pages",
        (Step("", ("python", "tools/live.py", "_build/html")),),
        "look at it: python -m http.server -d _build/html 8000, then open the address that it prints",
    ),
    "quick": Command(
        "the tests of formats, quantization and the engine of the labs, for everyday work",
        (Step("", (*PYTEST, "-p", "no:nbval", "@tests/quick.txt"), (NO_WINDOW, ONE_THREAD)),),
    ),
    "book-strict": Command(
        "build the site from the stored outputs, every warning an error",
        (
            Step(
                "building the site from the stored outputs, every warning an error",
                (*BUILD, "-W", "--keep-going", "-n", "--all"),
                (("LABS", "stored"),),
            ),
            Step("the site in Spanish", (*SPANISH, "--strict")),
            Step("", ("python", "tools/check_site.py", "_build/html")),
        ),
    ),
    "bundle": Command(
        "the whole course in one folder, for a computer without a network",
        (
            Step("the site, alive", ("python", "-m", "miniquant.course", "live")),
            Step("the course, its packages and the site in one folder", ("python", "tools/bundle.py")),
        ),
    ),
    "pdf": Command(
        "the course as one book on paper, from the site that is built; it needs a Chromium",
        (
            Step("", ("python", "-m", "pip", "install", "-q", "playwright==1.65.2", "pikepdf==10.18.0")),
            Step("the book: every page in order, printed", ("python", "tools/pdf.py")),
        ),
    ),
    "notebooks": Command(
        "derive notebooks/ from solutions/ and run both",
        (
            Step("", ("python", "tools/notebooks.py")),
            Step("", ("python", "tools/course.py")),
            Step("", ("python", "tools/spanish.py")),
        ),
    ),
    "setup": Command("make .venv, or bring it up to date, and run nothing", ()),
    "clean": Command("remove .venv, .venv-lowest and everything that was built", ()),
}


class Stopped(Exception):
    """A command cannot go on; the message says why and what to do."""


def checkout() -> Path:
    """The checkout of the course around the working folder, else the one in which this file lies.

    Raises ``Stopped`` if there is none: this file comes with the installed library, too.
    """
    for folder in (Path.cwd(), *Path.cwd().parents, Path(__file__).resolve().parents[2]):
        if (folder / "book" / "_toc.yml").is_file() and (folder / "src" / "miniquant").is_dir():
            return folder
    raise Stopped(
        "this works on a checkout of the course, the folder with book/, notebooks/ and src/, and the working folder "
        f"{Path.cwd()} is in none; clone or unpack the repository of the course, and give the command in its folder "
        "(what is installed here is the library alone)"
    )


def program(root: Path, name: str) -> str:
    """The full path of a program of ``.venv``."""
    folder = root / ".venv" / ("Scripts" if os.name == "nt" else "bin")
    return shutil.which(name, path=str(folder)) or str(folder / name)


def variables() -> dict[str, str]:
    """The environment in which everything runs.

    Figures appear in pages only if a notebook chooses its own backend; where Python may keep no compiled modules, each
    of the many kernels and workers compiles them anew; threads that wait for each other cost more than they bring.
    """
    unwanted = ("MPLBACKEND", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, "OMP_WAIT_POLICY": "passive", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def say(line: str) -> None:
    """Print a heading at once, before the lines of the programs that follow."""
    if line:
        print(f"== {line}", flush=True)


# ---- setting up ------------------------------------------------------------------------------------------------------


def up_to_date(root: Path) -> bool:
    """Whether ``.venv`` was installed from the requirements as they are now."""
    mark = root / ".venv" / ".installed"
    changed = max((root / name).stat().st_mtime for name in REQUIREMENTS)
    return mark.exists() and mark.stat().st_mtime >= changed


def setup(root: Path, cpu: bool = False) -> None:
    """Make ``.venv`` or bring it up to date. Raises ``Stopped`` if it cannot be done.

    cpu: take PyTorch's build for processors, which is small; on Linux the usual one brings gigabytes for graphics cards
    """
    if up_to_date(root):
        return
    say("setting up .venv (a few minutes the first time)")
    python = program(root, "python")
    refuse_other_wheels(root)
    if not Path(python).exists():
        if sys.version_info < OLDEST:
            raise Stopped(
                "miniquant needs Python 3.11 or newer, and this is "
                f"{sys.version_info[0]}.{sys.version_info[1]}; start this with a newer one, such as "
                f"python3.12 -m miniquant.course {' '.join(sys.argv[1:])} or make PYTHON=python3.12 book"
            )
        if subprocess.run([sys.executable, "-m", "venv", ".venv"], cwd=root).returncode:
            raise Stopped("Python could not make .venv; its own lines above say why")
        python = program(root, "python")
    log = root / ".venv" / "install.log"
    log.write_text("", "utf-8")
    if cpu and not (root / WHEELS).is_dir():
        processors_torch(root, python, log)
    requirements = ["-r", "requirements.txt", "-c", "constraints.txt"]
    logged(root, [python, "-m", "pip", "install", "--progress-bar", "on", *requirements], log)
    disable = [program(root, "jupyter"), "labextension", "disable", "--level=sys_prefix", "@jupyter/nbgrader"]
    with (root / ".venv" / "lab.log").open("wb") as file, contextlib.suppress(OSError):
        subprocess.run(disable, cwd=root, stdout=file, stderr=file)  # nbgrader's menu is for instructors
    (root / ".venv/etc/jupyter/jupyter_server_config.d/nbgrader.json").unlink(missing_ok=True)
    (root / ".venv" / ".installed").touch()


def this_python() -> str:
    """Version of Python and kind of machine, on which it depends which packages can be installed."""
    return f"{sys.version_info[0]}.{sys.version_info[1]} {platform.system()} {platform.machine()}"


def refuse_other_wheels(root: Path) -> None:
    """Raises ``Stopped`` if this is a bundle, and its packages are for another Python or machine."""
    mark = root / WHEELS / "for.txt"
    if mark.is_file() and (found := mark.read_text("utf-8").strip()) != this_python():
        raise Stopped(
            f"the packages of this bundle are for Python {found}, and this is Python {this_python()}; start it with "
            "that version of Python, or make a bundle on this machine (README.md, without a network)"
        )


def processors_torch(root: Path, python: str, log: Path) -> None:
    """Install the pinned version of torch, in its build for processors."""
    (torch,) = re.findall(r"^torch==\S+", (root / "constraints.txt").read_text("utf-8"), re.M)
    logged(root, [python, "-m", "pip", "install", UV], log)
    logged(root, [python, "-m", "uv", "pip", "install", "--python", python, "--torch-backend", "cpu", torch], log)


def logged(root: Path, command: list[str], log: Path) -> None:
    """Run an installer, a dot every three seconds, its lines in a file. Raises ``Stopped`` with the last of them."""
    wheels = root / WHEELS
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)} if wheels.is_dir() else {}
    environment = {**variables(), **offline}
    with log.open("ab") as file:
        running = subprocess.Popen(command, cwd=root, env=environment, stdout=file, stderr=subprocess.STDOUT)
        while True:
            try:
                code = running.wait(3)
                break
            except subprocess.TimeoutExpired:
                print(".", end="", flush=True)
    print(flush=True)
    if code:
        last = "\n".join(log.read_text("utf-8", "replace").splitlines()[-20:])
        raise Stopped(f"the installation stopped; the last lines of {log}:\n{last}")


def setup_here(root: Path, cpu: bool = False) -> None:
    """Install what the labs need and the Python that runs this lacks, without ``.venv``: for Binder and Colab."""
    import tomllib

    if sys.version_info < OLDEST:
        raise Stopped("miniquant needs Python 3.11 or newer")
    groups = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    log = root / "_build" / "install.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("", "utf-8")
    say("installing what the labs need and this Python lacks (a minute or two)")
    if cpu:
        processors_torch(root, sys.executable, log)
    logged(root, [sys.executable, "-m", "pip", "install", "-e", ".[labs]", *groups["referees"]], log)
    installed = re.findall(r"^Successfully installed (.*)$", log.read_text("utf-8", "replace"), re.M)
    say(f"installed: {' '.join(installed) or 'nothing, all was there'}")


# ---- running ---------------------------------------------------------------------------------------------------------


def wait(running: subprocess.Popen[bytes]) -> int:
    """The exit code of a program. Ctrl-C is for the program, which may ask what is meant: this waits on."""
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            return running.wait()


def perform(root: Path, command: Command, show: bool = False) -> int:
    """Run the steps of a command, up to the first that fails; its exit code, or 0.

    show: print them as they would be typed, and run nothing
    """
    beside: list[tuple[subprocess.Popen[bytes], Path]] = []
    for step in command.steps:
        if show:
            assigned = [f"{name}={shlex.quote(value)}" for name, value in step.variables]
            print(" ".join([*assigned, *map(shlex.quote, step.command)]) + " &" * step.beside)
            continue
        say(step.says)
        arguments = [program(root, step.command[0]), *step.command[1:]]
        environment = {**variables(), **dict(step.variables)}
        if step.beside:
            log = root / ".venv" / f"beside-{len(beside)}.log"
            with log.open("wb") as file:
                beside.append((subprocess.Popen(arguments, cwd=root, env=environment, stdout=file, stderr=file), log))
            continue
        codes = [wait(subprocess.Popen(arguments, cwd=root, env=environment))]
        for running, log in beside:
            codes.append(wait(running))
            print(log.read_text("utf-8", "replace"), end="", flush=True)
        beside = []
        if any(codes):
            return next(filter(None, codes))
    if not show:
        say(command.says.format(root=root))
    return 0


def of_lab(root: Path, number: str) -> Command:
    """The command that opens JupyterLab, on a lab if its number is given. Raises ``Stopped`` if there is none."""
    about, (step,), _ = COMMANDS["lab"]
    found = sorted((root / "notebooks").glob(f"{number}-*.ipynb")) if number else []
    if number and not found:
        raise Stopped(f"there is no lab {number}; the README lists them")
    chosen = tuple(f"notebooks/{path.name}" for path in found)
    root_user = ("--allow-root",) if getattr(os, "geteuid", lambda: 1)() == 0 else ()
    return Command(about, (step._replace(command=(*step.command, *chosen, *root_user)),))


def clean(root: Path) -> None:
    """Remove what was built or installed here, and nothing that anybody wrote."""
    for path in (root / name for name in BUILT):
        if path.is_symlink():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)
    for path in list(root.rglob("__pycache__")):
        shutil.rmtree(path)


def main(arguments: list[str] | None = None) -> int:
    """The command line: 0, the exit code of the program that failed, or 2 if a command cannot begin."""
    width = max(map(len, COMMANDS))
    parser = argparse.ArgumentParser(
        prog="python -m miniquant.course",
        description="Commands of the course, for the checkout around the working folder. Each sets up .venv by itself.",
        epilog="\n".join(f"{name:{width}}  {command.about}" for name, command in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="command", help="one of those below")
    parser.add_argument("lab", nargs="?", default="", help="the number of a lab, for the command lab")
    parser.add_argument("--show", action="store_true", help="print what the command runs in .venv, and run nothing")
    parser.add_argument("--cpu", action="store_true", help="setup: PyTorch's small build for processors")
    parser.add_argument("--here", action="store_true", help="setup: into the Python that runs this; for the labs alone")
    options = parser.parse_args(arguments)
    if options.lab and options.command != "lab":
        parser.error(f"{options.command} takes no number")
    if (options.cpu or options.here) and options.command != "setup":
        parser.error("--cpu and --here are for setup")
    try:
        return _run(checkout(), options)
    except Stopped as error:
        print(f"miniquant.course: {error}", file=sys.stderr)
        return 2


def _run(root: Path, options: argparse.Namespace) -> int:
    own = root / "src" / "miniquant" / "course.py"
    if not own.samefile(__file__):  # an installed library was started, and the checkout has a version of its own
        runpy.run_path(str(own), run_name="__main__")
    command = of_lab(root, options.lab) if options.command == "lab" else COMMANDS[options.command]
    if options.show:
        return perform(root, command, show=True)
    if options.command == "clean":
        clean(root)
        return 0
    if options.here:
        setup_here(root, options.cpu)
        return 0
    setup(root, options.cpu)
    code = 0
    if options.command in ("live", "pdf") and not (root / SITE).exists():  # a site that is there is taken as it is
        code = perform(root, COMMANDS["book"])
    return code or perform(root, command)


if __name__ == "__main__":
    sys.exit(main())
