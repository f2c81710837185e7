"""What is installed: every requirement is pinned, each bound is written once, every lowest version is declared."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import distributions
from itertools import chain

import lowest
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from places import ROOT

from miniquant.course import OLDEST

GROUPS = lowest.PYPROJECT["dependency-groups"]
DECLARED = [*lowest.own(), *chain.from_iterable(GROUPS.values())]
LINES = [line for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines() if line and line[0] not in "#-"]
PINS = lowest.pins()


def test_every_requirement_is_pinned_to_a_version_within_its_bounds():
    for requirement in map(Requirement, DECLARED):
        (pin,) = Requirement(PINS[lowest.name_of(requirement.name)]).specifier
        assert pin.operator == "=="
        assert requirement.specifier.contains(pin.version), f"{requirement}, pinned to {pin.version}"


def test_constraints_pin_exact_versions_and_no_build_of_one_machine():
    for line in PINS.values():
        name, _, version = line.partition("==")
        assert re.fullmatch(r"[\w.-]+", name) and Version(version).local is None, line


def test_every_pinned_package_that_is_installed_accepts_the_oldest_python_of_the_course():
    """Debian 12 has Python 3.11.2; a package that asks for 3.11.5 stops the installation there."""
    oldest = ".".join(map(str, OLDEST)) + ".0"
    asked = {found.name: found.metadata.get("Requires-Python") for found in distributions()}
    refused = [f"{name} {asks}" for name, asks in asked.items() if asks and not SpecifierSet(asks).contains(oldest)]
    assert len(asked) > 100 and refused == []


def test_requirements_name_everything_that_the_two_commands_install():
    assert sorted(map(lowest.name_of, LINES)) == sorted(map(lowest.name_of, DECLARED))
    assert {"numpy", "torch", "safetensors", "matplotlib", "jupyter", "pytest"} <= set(map(lowest.name_of, LINES))


def test_a_bound_is_written_once():
    assert [line for line in LINES if not re.fullmatch(r"[\w.-]+", line)] == [PINS["torch"]]
    names = list(map(lowest.name_of, DECLARED))
    assert len(names) == len(set(names))


def test_running_a_bump_file_needs_numba_and_a_tokenizer_and_the_extra_brings_both():
    extras = lowest.PYPROJECT["project"]["optional-dependencies"]

    def brought(extra):
        own = [Requirement(each) for each in extras[extra]]
        inner = set().union(*(brought(name) for each in own for name in each.extras))
        return inner | {each.name for each in own if each.name != "miniquant"}

    assert brought("run") == {"numba", "tokenizers"}
    assert {"torch", "tokenizers", "safetensors"} <= brought("torch")


def test_torch_s_lowest_version_is_the_pinned_one():
    """``make lowest`` can then claim to test it."""
    assert {Version(PINS["torch"].partition("==")[2])} == {
        Version(lowest.lowest(each).partition("==")[2]) for each in lowest.own() if each.startswith("torch")
    }


def test_the_lowest_versions_are_printed_for_every_dependency_of_the_library():
    done = subprocess.run([sys.executable, lowest.__file__], capture_output=True, text=True, check=True)
    printed = {lowest.name_of(line): line for line in done.stdout.splitlines()}
    for each in lowest.own():
        found = Requirement(printed[lowest.name_of(each)])
        assert all(Requirement(each).specifier.contains(pin.version) for pin in found.specifier)
    assert printed["pytest"] == PINS["pytest"]


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy!=2.2"])
def test_a_dependency_without_a_lowest_version_is_refused(requirement):
    with pytest.raises(ValueError, match="names no lowest version"):
        lowest.lowest(requirement)


def test_the_quick_tests_exist_and_import_no_slow_referee():
    lines = (ROOT / "tests" / "quick.txt").read_text("utf-8").split()
    places = [line.rpartition("=")[2].partition("::") for line in lines if "/" in line]
    assert len(places) > 10
    for path, _, test in places:
        assert (ROOT / path).exists(), path
        assert not test or f"def {test}" in (ROOT / path).read_text("utf-8"), test
    assert not {"tests/evaluate", "tests/models/huggingface", "tests/lab/test_nbgrader.py"} & set(lines)


def test_no_test_changes_where_modules_are_found():
    for path in (ROOT / "tests").rglob("*.py"):
        if path.name != "test_build.py":
            assert "sys.path." not in path.read_text("utf-8"), path
