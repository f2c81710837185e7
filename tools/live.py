"""Make a built site live: Python, numpy, an editor and llama.cpp beside its pages, and *Try it here* on every lab.

What is fetched stands in ``tools/live_files.json``, with the SHA-256 of every file; it comes through npm and pip, or
from the folder that ``PYODIDE_DIST`` names (archives or single files). Everything is served by the site itself.

    python tools/live.py [_build/html]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from miniquant import __version__
from miniquant.core.language import speaking, translated

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "book" / "live"
PINS = Path(__file__).with_name("live_files.json")
COMPILER = Path(__file__).with_name("live_compile.mjs")
SMALL = 100_000  # bytes; a larger file of assets/ lies beside the wheel and is read when a cell opens it
STARTS = (  # what a press of the button loads, in _live
    *("*.js", "*.mjs", "*.py", "*.whl", "live.json", "editor/*.js"),
    *("pyodide/pyodide*", "pyodide/python_stdlib.zip", "pyodide/numpy-*"),
)
HOOK = (
    '<link rel="stylesheet" href="{0}_live/live.css">\n<script type="module" src="{0}_live/live.js"></script>\n</head>'
)
BAR = (  # in the page from the start, so that nothing moves when its script comes
    '<div class="mq-live-bar mq-live pst-js-only"><button type="button" class="first" disabled>{}</button>'
    '<p class="mq-live-about">{}</p></div>'
)
IMPORT = re.compile(r"""^((?:import|export)\b[^'"]*?from\s*|import\s*)(['"])([^'"./][^'"]*)\2""", re.M)


class LiveError(Exception):
    """Something that the live site needs is missing or is not what it should be; the message says what to do."""


class NotToBeHad(LiveError):
    """A package cannot be had here, from its registry or from the folder that was given; the site stays as it is."""


def digest(data: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def fetch(pins: list[dict[str, object]], store: Path) -> None:
    """Put every pinned file below ``store``, verified; what lies there already is not fetched again.

    Raises ``LiveError`` if a package cannot be had, or a file has another SHA-256.
    """
    for package in pins:
        files: dict[str, list[str]] = package["files"]  # type: ignore[assignment]
        wanted = {place: (inside, sha) for inside, (place, sha) in files.items()}
        if all(_is(store / place, sha) for place, (_, sha) in wanted.items()):
            continue
        given = _given(package)
        for place, (inside, sha) in wanted.items():
            data = given(inside)
            if digest(data) != sha:
                raise LiveError(
                    f"{inside} of {package['name']} {package['version']} has SHA-256 {digest(data)}, not {sha}"
                )
            target = store / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def _is(path: Path, sha: str) -> bool:
    return path.is_file() and digest(path.read_bytes()) == sha


class _given:
    """The files of one package, from ``PYODIDE_DIST`` or from an archive that npm or pip brings."""

    def __init__(self, package: dict[str, object]) -> None:
        self.package = package
        self.folder = Path(os.environ["PYODIDE_DIST"]) if os.environ.get("PYODIDE_DIST") else None
        self.archive: Path | None = None

    def __call__(self, inside: str) -> bytes:
        base = PurePosixPath(inside).name
        if base and self.folder and (self.folder / base).is_file():
            return (self.folder / base).read_bytes()
        if self.archive is None:
            self.archive = self._archive()
        if not inside:  # the archive itself
            return self.archive.read_bytes()
        try:
            if self.archive.suffix == ".tgz":
                with tarfile.open(self.archive) as tar:
                    file = tar.extractfile(inside)
                    assert file is not None
                    return file.read()
            with zipfile.ZipFile(self.archive) as wheel:
                return wheel.read(inside)
        except (KeyError, AssertionError):
            raise LiveError(f"{self.archive.name} holds no {inside}") from None
        except (tarfile.TarError, zipfile.BadZipFile) as error:
            raise LiveError(f"{self.archive} is no archive: {error}") from None

    def _archive(self) -> Path:
        name, version, kind = (str(self.package[key]) for key in ("name", "version", "kind"))
        flat = name.lstrip("@").replace("/", "-") if kind == "npm" else name.replace("-", "_")
        patterns = [f"{flat}-{version}.tgz"] if kind == "npm" else [f"{flat}-{version}-*.whl"]
        archives = ROOT / "_build" / "live_archives"
        for pattern in patterns:
            for found in sorted((self.folder or archives).glob(pattern)):
                return found
        if self.folder:
            raise NotToBeHad(f"the folder in PYODIDE_DIST has neither the files of {name} {version} nor its archive")
        archives.mkdir(parents=True, exist_ok=True)
        if kind == "npm":
            command = ["npm", "pack", "--silent", "--ignore-scripts", f"{name}@{version}"]
        else:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
            command += ["--python-version", "3.12", "-d", ".", f"{name}=={version}"]
        print(f"fetching {name} {version} with {kind}", flush=True)
        try:
            done = subprocess.run(command, cwd=archives, capture_output=True, text=True, timeout=900)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotToBeHad(f"{kind} cannot fetch {name} {version}: {error}") from None
        if done.returncode:
            raise NotToBeHad(f"{kind} cannot fetch {name} {version}: {done.stderr.strip()[-400:]}")
        return next(found for pattern in patterns for found in sorted(archives.glob(pattern)))


def wheel(path: Path) -> dict[str, int]:
    """Pack the library without its models; the models' paths below ``assets/`` and their sizes."""
    source = ROOT / "src"
    beside: dict[str, int] = {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted((source / "miniquant").rglob("*")):
            inside = file.relative_to(source).as_posix()
            if not file.is_file() or "__pycache__" in inside:
                continue
            if inside.startswith("miniquant/assets/") and file.stat().st_size > SMALL:
                beside[inside.removeprefix("miniquant/assets/")] = file.stat().st_size
                continue
            out.writestr(zipfile.ZipInfo(inside, (2020, 1, 1, 0, 0, 0)), file.read_bytes(), zipfile.ZIP_DEFLATED)
        about = f"Metadata-Version: 2.1\nName: miniquant\nVersion: {__version__}\n"
        out.writestr(zipfile.ZipInfo(f"miniquant-{__version__}.dist-info/METADATA", (2020, 1, 1, 0, 0, 0)), about)
    return beside


def relative_imports(folder: Path, names: dict[str, str]) -> None:
    """Let modules find each other by file: ``from "@codemirror/view"`` becomes ``from "./codemirror-view.js"``.

    Raises ``LiveError`` for a module that is not there.
    """

    def place(match: re.Match[str]) -> str:
        if match[3] not in names:
            raise LiveError(f"the editor imports {match[3]}, which is not among its files")
        return f"{match[1]}{match[2]}./{names[match[3]]}{match[2]}"

    for path in folder.glob("*.js"):
        path.write_text(IMPORT.sub(place, path.read_text("utf-8")), "utf-8")


def labs(site: Path) -> Iterator[tuple[Path, Path]]:
    """Every student lab's page, in both languages, and its notebook."""
    for folder in ("notebooks", "es/notebooks"):
        for notebook in sorted((ROOT / folder).glob("[0-9][0-9]-*.ipynb")):
            page = site / folder / f"{notebook.stem}.html"
            if page.exists():
                yield page, notebook


def mark(page: Path, notebook: Path, n_bytes: int) -> None:
    """Write each cell's id into its place in the page, the bar below its title, and load the script; a page that has
    them stays as it is.

    n_bytes: what a press of the button loads; the page says so

    Raises ``LiveError`` if the page and the notebook do not have the same number of code cells.
    """
    ids = [cell["id"] for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    text = page.read_text("utf-8")
    found = CELL.findall(text)
    if len(found) != len(ids):
        raise LiveError(f"{page.name} has {len(found)} code cells, its notebook {len(ids)}; build the site again")
    numbers = iter(ids)

    def with_id(match: re.Match[str]) -> str:
        number = next(numbers)
        return match[0] if "data-cell=" in match[0] else match[0].replace(" class=", f' data-cell="{number}" class=', 1)

    text = CELL.sub(with_id, text)
    language = "es" if notebook.parent.parent.name == "es" else "en"
    hook = HOOK.format("../" if language == "en" else "../../")
    text = BARS.sub("", text.replace(hook, "</head>")).replace("</head>", hook, 1)
    before, article, after = text.partition("<article")  # a title that only paper shows comes earlier
    after = after.replace("</h1>", f"</h1>{bar(n_bytes, language)}", 1)
    page.write_text(f"{before}{article}{after}", "utf-8")


def bar(n_bytes: int, language: str) -> str:
    """The bar below the title of a lab, in a language."""
    with speaking(language):
        about = (
            f"Python runs in this page. The first time it loads {n_bytes / 1e6:.0f} MB; nothing that you type "
            "leaves this computer."
        )
        return BAR.format(translated("Try it here"), translated(about))


BARS = re.compile('<div class="mq-live-bar .*?</div>')
CELL = re.compile(r'<div (?:data-cell="[^"]*" )?class="cell [^"]*docutils container"[^>]*>')


def inspect(site: Path, target: Path) -> None:
    """Load the inspector's script into its page, and write the samples that it offers."""
    page = site / "book" / "inspector.html"
    if not page.exists():
        return
    from live_samples import write

    write(target / "samples")
    text = page.read_text("utf-8")
    hook = '<script type="module" src="../_live/inspect.js"></script>'
    if hook not in text:
        page.write_text(text.replace("</head>", f"{hook}\n</head>", 1), "utf-8")


def make(site: Path) -> Path:
    """Everything, into ``_live`` below the site; the folder is returned.

    Raises ``LiveError`` if something is missing.
    """
    if not (site / "notebooks").is_dir():
        raise LiveError(f"{site} holds no built site; run make book first")
    pins = json.loads(PINS.read_text("utf-8"))
    store = ROOT / "_build" / "live_files"
    fetch(pins["packages"], store)
    target = site / "_live"
    shutil.rmtree(target, ignore_errors=True)
    for package in pins["packages"]:
        for place, _ in package["files"].values():
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(store / place, target / place)
    relative_imports(target / "editor", pins["editor"])
    for file in sorted(PAGE.iterdir()):
        if file.is_file():
            shutil.copy(file, target / file.name)
    name = f"miniquant-{__version__}-py3-none-any.whl"
    beside = wheel(target / name)
    for path in beside:
        (target / "assets" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "src" / "miniquant" / "assets" / path, target / "assets" / path)
    shutil.copy(PINS, target / "files.json")  # what it is made of, with versions and licences
    (target / "labs" / "es").mkdir(parents=True)
    known = list(labs(site))
    inspect(site, target)
    plain = [
        place for package in pins["packages"] for place, _ in package["files"].values() if place.startswith("wheels/")
    ]
    wheels = {Path(place).name.partition("-")[0]: place for place in plain}
    stems = list(dict.fromkeys(notebook.stem for _, notebook in known))
    about = {"wheel": name, "assets": beside, "wheels": wheels, "labs": stems}
    (target / "live.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    compile_modules(target)
    loaded = {file for pattern in STARTS for file in target.glob(pattern)}
    for page, notebook in known:
        mark(page, notebook, sum(file.stat().st_size for file in loaded))
        shutil.copy(notebook, target / "labs" / notebook.parent.relative_to(ROOT).parent / notebook.name)
    return target


def compile_modules(target: Path) -> None:
    """Compile the modules that a lab starts with, by the page's own Python; without Node the page compiles them itself.

    Raises ``LiveError`` if that Python does not run.
    """
    node = shutil.which("node")
    if not node:
        print("node is not here: Python will start more slowly in the page")
        return
    done = subprocess.run([node, str(COMPILER), str(target)], capture_output=True, text=True)
    if done.returncode:
        raise LiveError(f"Python of the page cannot compile its modules: {done.stderr.strip()[-400:]}")


def main() -> int:
    """The command line; with one line, 3 if a package cannot be had, 1 if anything else is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "_build" / "html")
    try:
        target = make(parser.parse_args().site.resolve())
    except LiveError as error:
        print(f"the site is not live: {error}")
        return 3 if isinstance(error, NotToBeHad) else 1
    total = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target}: {len(list((target / 'labs').rglob('*.ipynb')))} labs, {total / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
