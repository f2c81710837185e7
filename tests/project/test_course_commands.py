"""``python -m miniquant.course``: one list of commands, for make too; a Python with nothing installed starts it."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

from miniquant import course

SOURCE = ROOT / "src" / "miniquant" / "course.py"
POSIX = pytest.mark.skipif(os.name == "nt", reason="the stand-ins are scripts of other systems")
STUB = f"""#!{sys.executable} -S
import os, sys
with open("called.txt", "a") as file:
    named = [f"{{name}}={{os.environ.get(name)}}" for name in ("MPLBACKEND", "OMP_NUM_THREADS", "MINIQUANT_PROGRESS")]
    print(os.path.basename(sys.argv[0]), *sys.argv[1:], *named, sep=" ", file=file)
print("I am", os.path.basename(sys.argv[0]), *sys.argv[1:3])
sys.exit(3 if any(word in " ".join(sys.argv) for word in os.environ.get("FAILS", "no word").split(",")) else 0)
"""


def test_it_imports_nothing_that_a_bare_python_lacks():
    for path in (SOURCE, ROOT / "miniquant" / "course.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)


def test_it_starts_in_a_fresh_checkout_with_nothing_installed():
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-S", "-m", "miniquant.course", "lab", "06", "--show"]  # -S: no installed package
    done = subprocess.run(command, cwd=ROOT, env=bare, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("jupyter lab --notebook-dir=notebooks notebooks/06-int8.ipynb")


def test_make_calls_it_and_has_no_command_of_its_own_for_these():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    rules = dict(re.findall(r"^([\w .-]+):[^\n=]*\n((?:\t.*\n?)+)", makefile, re.M))
    targets = {name: recipe for names, recipe in rules.items() for name in names.split()}
    for name in course.COMMANDS:
        recipe = "@$(COURSE) setup" if name == "setup" else targets[name]
        assert "@$(COURSE)" in recipe and recipe.strip() in makefile, name
    for word in ("jupyter", "--nbval", "requirements.txt -c", "ruff", "mypy"):
        assert word not in makefile
    shown = set(re.findall(r'@echo "make ([\w-]+) ', makefile))
    assert shown >= set(course.COMMANDS) - {"setup", "book-strict"}


def test_the_readme_and_the_page_on_troubles_name_it_for_those_without_make():
    readme, page = ((ROOT / name).read_text("utf-8") for name in ("README.md", "book/troubleshooting.md"))
    for name in ("book", "test", "lab"):
        assert f"python3 -m miniquant.course {name}" in readme
    for name in ("book", "lab"):
        assert f"\npy -m miniquant.course {name}\n" in page
    for text in (readme, page):
        assert set(re.findall(r"-m miniquant\.course (\w[\w-]*)", text)) <= set(course.COMMANDS)


def test_every_file_that_a_command_names_is_there():
    for name, command in course.COMMANDS.items():
        assert command.about
        for step in command.steps:
            for word in step.command:
                if re.fullmatch(r"@?[a-z]+/[\w./]+\.\w+", word):
                    assert (ROOT / word.lstrip("@")).exists(), (name, word)
        assert not command.steps or not command.steps[-1].beside  # nobody would wait for it


def test_importing_nbformat_builds_no_parser_of_addresses():
    """It takes three seconds in every process. The labs' tests load the plugin before nbval imports nbformat."""
    code = "import without_iri, nbformat, sys; sys.exit('lark' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "tools")})
    for command in course.COMMANDS["test"].steps:
        if "--nbval" in command.command:
            assert command.command.index("tools.without_iri") < command.command.index("--nbval")


def test_a_number_that_no_lab_has_and_options_in_the_wrong_place_are_refused(capsys):
    assert course.main(["lab", "99"]) == 2
    assert "there is no lab 99" in capsys.readouterr().err
    for arguments in (["book", "06"], ["test", "--cpu"], ["lab", "--here"], ["nothing"]):
        with pytest.raises(SystemExit, match="2"):
            course.main(arguments)


@pytest.fixture
def stands_in(tmp_path, monkeypatch):
    """A small checkout whose ``.venv`` is up to date and has programs that only write down how they are called."""
    (tmp_path / "book").mkdir()
    (tmp_path / "src" / "miniquant").mkdir(parents=True)
    for name in ("book/_toc.yml", *course.REQUIREMENTS):
        (tmp_path / name).write_text("torch==2.13.0\n", "utf-8")
    shutil.copy(SOURCE, tmp_path / "src" / "miniquant")
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "ruff", "mypy", "jupyter", "jupyter-book"):
        (programs / name).write_text(STUB, "utf-8")
        (programs / name).chmod(0o755)
    (tmp_path / ".venv" / ".installed").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "chosen by the shell")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def run(*arguments: str, **more: str) -> tuple[int, str, list[str]]:
        start = (
            "import runpy, sys; sys.argv[0] = 'src/miniquant/course.py'; runpy.run_path(sys.argv[0], None, '__main__')"
        )
        command = [sys.executable, "-S", "-c", start, *arguments]
        done = subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True)
        called = Path("called.txt").read_text("utf-8").splitlines() if Path("called.txt").exists() else []
        return done.returncode, done.stdout + done.stderr, called

    return run


@POSIX
def test_the_tests_run_in_order_each_with_its_variables_and_types_and_labs_beside_the_library(stands_in):
    code, said, called = stands_in("test")
    assert code == 0
    called[2:] = sorted(called[2:])  # they run side by side
    assert [line.split(" -q")[0].split(" MPL")[0] for line in called] == [
        *("ruff check .", "ruff format --check ."),
        *("mypy", "python -m pytest", "python -m pytest"),
    ]
    labs, library = sorted(called[3:], key=lambda line: "doctest-modules" in line)
    assert labs.endswith("MPLBACKEND=None OMP_NUM_THREADS=1 MINIQUANT_PROGRESS=/dev/null")
    assert library.endswith("MPLBACKEND=agg OMP_NUM_THREADS=1 MINIQUANT_PROGRESS=None")
    assert said.index("== types") < said.index("== the library") < said.index("I am mypy")


@POSIX
@pytest.mark.parametrize(("fails", "last"), [("ruff check", "ruff check"), ("format", "ruff format")])
def test_the_first_failure_stops_a_command_with_its_own_code(stands_in, fails, last):
    code, _, called = stands_in("test", FAILS=fails)
    assert code == 3
    assert not any("doctest-modules" in line for line in called)
    assert last in called[-1]


@POSIX
@pytest.mark.parametrize("fails", ["nbval-current-env", "mypy", "doctest-modules"])
def test_what_runs_beside_ends_and_is_shown_whichever_fails(stands_in, fails):
    code, said, called = stands_in("test", FAILS=fails)
    assert code == 3
    assert said.index("== the library") < said.index("I am mypy")
    assert all(any(part in line for line in called) for part in ("nbval-current-env", "mypy", "doctest-modules"))


@POSIX
def test_an_environment_that_is_up_to_date_is_left_alone_and_an_old_one_is_installed_again(stands_in):
    assert stands_in("setup") == (0, "", [])
    os.utime(".venv/.installed", (1, 1))
    code, said, called = stands_in("setup")
    assert (code, called[0].split(" MPL")[0]) == (
        0,
        "python -m pip install --progress-bar on -r requirements.txt -c constraints.txt",
    )
    assert "setting up .venv" in said
    assert len(stands_in("setup")[2]) == len(called)  # and now it is up to date


@POSIX
def test_the_build_for_processors_comes_before_everything_else(stands_in):
    os.utime(".venv/.installed", (1, 1))
    _, _, called = stands_in("setup", "--cpu")
    assert [re.sub(r"--python \S+", "--python P", line.split(" MPL")[0]) for line in called[:3]] == [
        f"python -m pip install {course.UV}",
        "python -m uv pip install --python P --torch-backend cpu torch==2.13.0",
        "python -m pip install --progress-bar on -r requirements.txt -c constraints.txt",
    ]


@POSIX
def test_an_installation_that_stops_shows_its_last_lines_and_is_tried_again_the_next_time(stands_in):
    os.utime(".venv/.installed", (1, 1))
    code, said, _ = stands_in("book", FAILS="pip")
    assert code == 2
    assert "the installation stopped; the last lines of" in said and "I am python -m pip" in said
    code, said, called = stands_in("book")
    assert (code, [line.split()[0] for line in called[-2:]]) == (0, ["jupyter-book", "python"])
    assert said.splitlines()[-1] == f"== open {Path.cwd()}/_build/html/index.html"


@POSIX
def test_a_site_that_is_not_there_is_built_before_it_is_made_live(stands_in):
    assert [line.split()[0] for line in stands_in("live")[2]] == ["jupyter-book", "python", "python"]
    Path("_build/html").mkdir(parents=True)
    Path("_build/html/index.html").touch()
    assert [line.split()[0] for line in stands_in("live")[2]] == ["jupyter-book", *["python"] * 3]


@POSIX
def test_cleaning_removes_what_was_built_and_leaves_what_a_link_leads_to(stands_in, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.move(".venv", elsewhere / "kept")
    Path(".venv").symlink_to(elsewhere / "kept")
    Path("src/__pycache__").mkdir()
    Path("_build").mkdir()
    assert stands_in("clean")[:2] == (0, "")
    assert sorted(path.name for path in Path().iterdir()) == ["book", *sorted(course.REQUIREMENTS), "src"]
    assert not Path("src/__pycache__").exists()
    assert (elsewhere / "kept" / ".installed").exists()
