"""The packages: what the two wheels hold, and that they work in an environment with nothing else than they ask for."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import lowest
import pytest
from packaging.requirements import Requirement
from places import ROOT

import miniquant

MODELS = ROOT / "packages" / "models"
SUMS = dict(line.split()[::-1] for line in (MODELS / "SHA256SUMS").read_text("utf-8").splitlines())
BUILT_FROM = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "MANIFEST.in",
    "_config.yml",
    "src/miniquant",
    "packages/models",
)


BUILD = """import os, sys
from setuptools import build_meta
out, library, models = sys.argv[1:]  # a build changes what stands there
os.chdir(library)
build_meta.build_wheel(out)
os.chdir(models)
build_meta.build_wheel(out, {"--build-option": "--compression=stored"})  # weights do not become much smaller"""


def quiet(*command: object, **options) -> str:
    """What a program prints; if it fails, the test fails with all that it said."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, encoding="utf-8", **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The two wheels, (library, models), built from a copy: building leaves files beside the sources."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheels")
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist")
    for name in BUILT_FROM:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, copy / name)
    folders = (copy, copy / "packages" / "models")
    for folder in folders:
        wanted = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["build-system"]
        assert wanted["build-backend"] == "setuptools.build_meta"
    quiet(sys.executable, "-c", BUILD, out, *folders)  # as pip does, in one process for both
    return next(out.glob("miniquant-*.whl")), next(out.glob("miniquant_models-*.whl"))


def needed(name: str) -> set[str]:
    """A distribution and all that it needs, without extras."""
    requirements = map(Requirement, metadata.requires(name) or ())
    inner = [each.name for each in requirements if not each.marker or each.marker.evaluate({"extra": ""})]
    return {name}.union(*map(needed, inner))


class Environment:
    """A virtual environment that has what the library's metadata asks for, linked from this one, and nothing else."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=os.name != "nt")
        self.bin = folder / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.bin / "python"
        self.site = site = Path(
            quiet(self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        )
        for name in set().union(*(needed(Requirement(each).name) for each in LIBRARY["dependencies"])):
            distribution = metadata.distribution(name)
            for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
                source = Path(str(distribution.locate_file(top)))
                try:
                    (site / top).symlink_to(source, source.is_dir())
                except OSError:  # Windows asks for a right that few have
                    shutil.copytree(source, site / top) if source.is_dir() else shutil.copy(source, site / top)

    def unpack(self, wheel: Path) -> None:
        """All that installing does with a wheel that has no commands."""
        zipfile.ZipFile(wheel).extractall(self.site)

    def install(self, wheel: Path) -> None:
        quiet(
            sys.executable,
            "-m",
            "pip",
            "--python",
            self.python,
            "install",
            "-q",
            "--no-deps",
            "--no-index",
            "--no-compile",
            wheel,
        )

    def run(self, *command: object, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        kept = {"capture_output": True, "text": True, "encoding": "utf-8", "cwd": cwd or self.bin.parent}
        return subprocess.run([*map(str, command)], env=clean | variables | {"PYTHONUTF8": "1"}, **kept)


LIBRARY = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def empty(wheels, tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("empty") / "env")
    environment.install(wheels[0])
    return environment


def test_the_library_s_wheel_is_small_and_holds_no_trained_model(wheels):
    names = zipfile.ZipFile(wheels[0]).namelist()
    assert wheels[0].stat().st_size < 2_000_000
    assert [name for name in names if name.endswith((".safetensors", ".model"))] == []
    sources = [path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "miniquant").rglob("*.py")]
    assert set(sources) <= set(names)
    assert {"miniquant/py.typed", "miniquant/assets/tokenizer.json", "miniquant/assets/evaluation.txt"} <= set(names)


def test_the_models_wheel_holds_the_files_of_a_checkout(wheels):
    wheel = zipfile.ZipFile(wheels[1])
    found = {name.partition("/")[2]: name for name in wheel.namelist() if name.startswith("miniquant_models/")}
    assert set(found) == {"__init__.py", *SUMS}
    for name, expected in SUMS.items():
        assert hashlib.sha256(wheel.read(found[name])).hexdigest() == expected


def test_the_files_of_the_models_are_those_of_their_version():
    assets = ROOT / "src" / "miniquant" / "assets"
    changed = [name for name in SUMS if hashlib.sha256((assets / name).read_bytes()).hexdigest() != SUMS[name]]
    assert changed == [], "write the new sums into packages/models/SHA256SUMS, and raise the version of that package"
    assert {file.relative_to(assets).as_posix() for file in (assets / "minillama").iterdir()} < set(SUMS)


def test_the_extra_admits_the_version_of_the_models_that_this_checkout_builds():
    (extra,) = map(Requirement, LIBRARY["optional-dependencies"]["models"])
    built = tomllib.loads((MODELS / "pyproject.toml").read_text("utf-8"))["project"]
    assert extra.name == built["name"]
    assert extra.specifier.contains(built["version"])
    assert {extra.name, LIBRARY["name"]} == set(lowest.OURS)


def test_the_metadata_is_complete(wheels):
    wheel = zipfile.ZipFile(wheels[0])
    (about,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    text = wheel.read(about).decode().partition("\n\n")[0]
    assert f"\nVersion: {miniquant.__version__}\n" in text
    for field in ("Summary", "Author", "License-Expression", "License-File", "Keywords", "Requires-Python"):
        assert re.search(rf"^{field}: \S", text, re.M), field
    versions = re.findall(r"^Classifier: Programming Language :: Python :: (3\.\d+)$", text, re.M)
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    assert "Description-Content-Type: text/markdown" in text


def test_library_and_command_work_with_nothing_but_what_the_wheel_asks_for(empty):
    write = "import miniquant as m, numpy as n; m.write_gguf_lite('a.gguf-lite', {'w': n.ones((2, 64), n.float32)}, {})"
    done = empty.run(empty.python, "-c", f"{write}; print(m.__file__)")
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(empty.bin.parent)
    said = empty.run(empty.bin / "miniquant", "--version")
    assert said.stdout.strip().endswith(miniquant.__version__)
    listed = empty.run(empty.bin / "miniquant", "list", "a.gguf-lite")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert re.search(r"w +F32 +2×64", listed.stdout)


def test_what_is_missing_is_named_with_the_line_that_installs_it(empty):
    done = empty.run(empty.bin / "miniquant", "export", "a.gguf")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "miniquant: this needs the package torch; pip install 'miniquant[labs]' brings it\n"


def test_the_commands_of_the_course_say_that_they_need_a_checkout_and_take_the_one_around_the_working_folder(empty):
    done = empty.run(empty.python, "-m", "miniquant.course", "book")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("miniquant.course: this works on a checkout of the course, the folder with book/")
    assert "clone or unpack the repository" in done.stderr
    done = empty.run(empty.python, "-m", "miniquant.course", "quick", "--show", cwd=ROOT / "book")
    assert (done.returncode, done.stderr) == (0, "")
    assert "@tests/quick.txt" in done.stdout


LOOK = """from miniquant.core.assets import asset
from miniquant.formats.safetensors.read import open_safetensors
with open_safetensors(asset("minigpt.safetensors")) as file:
    print(len(file.tensors), asset("minillama").joinpath("config.json").is_file())"""


def test_without_the_models_an_error_says_what_to_install_and_with_them_they_are_found(empty, wheels):
    missing = empty.run(empty.python, "-c", LOOK)
    assert missing.stderr.splitlines()[-1] == (
        "miniquant.core.errors.ModelMissing: the trained models are not installed, and minigpt.safetensors is one of "
        "their files; pip install 'miniquant[models]' brings them, and so does pip install ./packages/models in a "
        "checkout of the course"
    )
    empty.unpack(wheels[1])
    found = empty.run(empty.python, "-c", LOOK)
    assert (found.returncode, found.stdout.split()[1]) == (0, "True"), found.stderr


@pytest.mark.parametrize(
    ("shell", "begins"), [("bash", "_miniquant_completion()"), ("zsh", "#compdef miniquant"), ("fish", "function ")]
)
def test_the_lines_of_the_readme_give_each_shell_its_completion(empty, shell, begins):
    assert f"{shell}_source" in (ROOT / "README.md").read_text("utf-8")
    done = empty.run(empty.bin / "miniquant", _MINIQUANT_COMPLETE=f"{shell}_source")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().startswith(begins)


def test_a_version_is_written_where_it_is_looked_for():
    citation, changes = ((ROOT / name).read_text("utf-8") for name in ("CITATION.cff", "CHANGELOG.md"))
    assert f"\nversion: {miniquant.__version__}\n" in citation
    assert re.search(r"^## (\S+)", changes, re.M)[1] == miniquant.__version__
    assert LIBRARY["dynamic"] == ["version"]
