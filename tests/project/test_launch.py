"""Where the course runs away from home: workflows, container, Binder and Colab. None of them is started here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib

import address
import colab
import pytest
import yaml
from course_parts import PARTS
from lab_pages import lab_bar
from launch import links
from places import ROOT

from miniquant import course

WORKFLOWS = {path.stem: path for path in (ROOT / ".github" / "workflows").glob("*.yml")}
HOSTED = [*WORKFLOWS.values(), *(ROOT / ".devcontainer").iterdir(), *(ROOT / ".binder").iterdir()]
PYTHONS = re.findall(r"Python :: (3\.\d+)\"", (ROOT / "pyproject.toml").read_text("utf-8"))


def steps(name: str) -> list[dict]:
    jobs = yaml.safe_load(WORKFLOWS[name].read_text("utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_the_two_commands_run_on_three_systems_and_every_python_that_the_package_names():
    jobs = yaml.safe_load(WORKFLOWS["test"].read_text("utf-8"))["jobs"]
    matrix = jobs["commands"]["strategy"]["matrix"]
    assert matrix["python"] == PYTHONS == ["3.11", "3.12", "3.13", "3.14"]
    assert [system.partition("-")[0] for system in matrix["os"]] == ["ubuntu", "macos", "windows"]
    runs = [step["run"] for step in jobs["commands"]["steps"] if "run" in step]
    assert [run.split()[3] for run in runs] == ["setup", "test", "book"]
    assert "make lowest" in [step.get("run") for step in jobs["lowest"]["steps"]]


@pytest.mark.parametrize("name", sorted(WORKFLOWS))
def test_every_command_and_file_that_a_workflow_names_is_there(name):
    for step in steps(name):
        run = step.get("run", "")
        assert set(re.findall(r"miniquant\.course (\S+)", run)) <= set(course.COMMANDS)
        for file in re.findall(r"\b(?:tools|src|packages)/[\w./]+", run):
            assert (ROOT / file).exists(), file
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step["uses"])


def test_the_site_is_built_live_before_it_is_published_and_knows_its_address():
    runs = [step.get("run", "") + step.get("uses", "") for step in steps("site")]
    order = [
        next(i for i, run in enumerate(runs) if word in run)
        for word in ("course book", "course live", "upload-p", "deploy-p")
    ]
    assert order == sorted(order)
    assert any("SITE_ADDRESS" in step.get("env", {}) for step in steps("site"))
    assert "SITE_ADDRESS" in (ROOT / "book" / "_ext" / "site_fixes.py").read_text("utf-8")


def test_a_tag_that_is_not_the_version_makes_no_release(tmp_path):
    (check,) = [step["run"] for step in steps("release") if "GITHUB_REF_NAME#v" in step.get("run", "")]
    (tmp_path / "src" / "miniquant").mkdir(parents=True)
    (tmp_path / "src" / "miniquant" / "__init__.py").write_text('__version__ = "1.2.3"\n', "utf-8")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 1.2.3 (2027-01-31)\n", "utf-8")
    for tag, code in (("v1.2.3", 0), ("v1.2", 1), ("v1.2.4", 1)):
        done = subprocess.run(["bash", "-e", "-c", check], cwd=tmp_path, env={**os.environ, "GITHUB_REF_NAME": tag})
        assert done.returncode == code, tag


def test_container_and_binder_set_up_the_course_with_its_own_command():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    assert container["postCreateCommand"] == "python3 -m miniquant.course setup --cpu"
    assert (ROOT / ".devcontainer" / container["build"]["dockerfile"]).exists()
    assert (ROOT / ".binder" / "runtime.txt").read_text("utf-8").strip().partition("-")[2] in PYTHONS
    script = ROOT / ".binder" / "postBuild"
    assert "python -m miniquant.course setup --here --cpu" in script.read_text("utf-8")
    assert os.name == "nt" or os.access(script, os.X_OK)


@pytest.mark.parametrize("path", HOSTED, ids=lambda path: path.name)
def test_no_file_for_a_service_names_the_host_of_a_package_registry(path):
    assert not re.search(r"https?://|\.(org|io|com)/", re.sub(r"^#.*$", "", path.read_text("utf-8"), flags=re.M))


def test_launch_links_appear_when_the_repository_has_an_address_and_only_then():
    lab = PARTS[2].labs[1]
    assert "Open in" not in lab_bar(lab)
    bar = lab_bar(lab, False, "https://github.com/someone/course.git/", "trunk")
    assert (
        f'href="https://mybinder.org/v2/gh/someone/course/trunk?urlpath=lab/tree/notebooks/{lab.file}">Open in Binder<'
        in bar
    )
    assert f'href="https://colab.research.google.com/github/someone/course/blob/colab/{lab.file}">Open in Colab<' in bar
    for other in (
        "",
        "https://example.org/a/b",
        "https://github.com/a",
        "https://github.com/a/b/c",
        "git@github.com:a/b",
    ):
        assert links(other, "main", "x.ipynb") == []


def test_the_address_of_the_repository_is_written_once_and_the_metadata_follow_it():
    assert yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["repository"]["url"] == colab.repository()
    done = subprocess.run([sys.executable, address.__file__, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    for name in address.PACKAGES:
        without = address.with_urls((ROOT / name).read_text("utf-8"), "")
        given = address.with_urls(without, "https://github.com/a/b")
        assert tomllib.loads(given)["project"]["urls"]["Issues"] == "https://github.com/a/b/issues"
        assert tomllib.loads(given)["project"].keys() - {"urls"} == tomllib.loads(without)["project"].keys()
        assert address.with_urls(given, "") == without
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert yaml.safe_load(address.with_code(citation, "https://a.b/c"))["repository-code"] == "https://a.b/c"


def test_a_copy_for_colab_has_one_cell_more_and_the_lab_none(tmp_path, capsys):
    assert colab.main([str(tmp_path), "--repository", "https://github.com/a/b"]) == 0
    for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"):
        own, copy = (json.loads(each.read_text("utf-8")) for each in (path, tmp_path / path.name))
        assert copy["cells"][1:] == own["cells"]
        assert "miniquant/course.py" not in json.dumps(own)
        compile("".join(copy["cells"][0]["source"]), path.name, "exec")
        assert {**copy, "cells": []} == {**own, "cells": []}
    assert colab.main([str(tmp_path), "--repository", '"; evil()']) == 2
    assert "no address to clone from" in capsys.readouterr().err


def test_the_first_cell_for_colab_brings_the_course_and_shows_what_was_installed(tmp_path):
    course_folder, start = tmp_path / "course", tmp_path / "content"
    for name in ("miniquant", "src", "notebooks"):
        (course_folder / name).mkdir(parents=True)
        (course_folder / name / "course.py").write_text(
            "import sys\nprint('== installed: a b', *sys.argv[1:])\n", "utf-8"
        )
    start.mkdir()
    git = ["git", "-C", str(course_folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], check=True)
    cell = "".join(colab.for_colab({"cells": []}, str(course_folder))["cells"][0]["source"])
    script = f"{cell}\nprint(os.getcwd(), sys.path[0])"
    for first in (True, False):
        done = subprocess.run([sys.executable, "-c", script], cwd=start, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert ("the course is in" in done.stdout) == first
        assert "== installed: a b setup --here" in done.stdout
        assert done.stdout.split()[-2:] == [str(start / "miniquant-course" / each) for each in ("notebooks", "src")]
