"""The folder for a computer without a network: what goes in, and that nothing is asked of a registry there."""

from __future__ import annotations

import subprocess
import sys

import bundle
import pytest
from places import ROOT

from miniquant import course


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no clone, so no bundle is made here")
def test_the_course_goes_in_whole_and_nothing_that_was_built():
    names = bundle.tracked()
    assert {"README.md", "requirements.txt", "miniquant/course.py", "src/miniquant/course.py"} <= set(names)
    assert not [name for name in names if name.startswith((".venv/", "_build/"))]


def test_a_site_that_is_not_alive_and_a_folder_that_is_no_bundle_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "SITE", tmp_path)
    with pytest.raises(course.Stopped, match="the live site is not built; make live builds it"):
        bundle.copy_site(tmp_path / "site")
    (other := tmp_path / "mine").mkdir()
    (other / "thesis.txt").write_text("mine", "utf-8")
    with pytest.raises(course.Stopped, match="is no bundle"):
        bundle.make(other)
    assert (other / "thesis.txt").read_text("utf-8") == "mine"


def test_packages_for_another_python_are_refused_before_anything_is_installed(tmp_path):
    for name in course.REQUIREMENTS:
        (tmp_path / name).write_text("", "utf-8")
    (tmp_path / course.WHEELS).mkdir()
    (tmp_path / course.WHEELS / "for.txt").write_text("3.9 Plan9 mips\n", "utf-8")
    with pytest.raises(course.Stopped, match=r"are for Python 3\.9 Plan9 mips, and this is Python 3\.1\d"):
        course.setup(tmp_path)
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("bundled", [True, False])
def test_where_packages_lie_beside_the_course_no_registry_is_asked(tmp_path, bundled, monkeypatch):
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    if bundled:
        (tmp_path / course.WHEELS).mkdir()
    program = 'import os; print(os.environ.get("PIP_NO_INDEX"), os.environ.get("PIP_FIND_LINKS"))'
    course.logged(tmp_path, [sys.executable, "-c", program], tmp_path / "log")
    given = f"1 {tmp_path / course.WHEELS}" if bundled else "None None"
    assert (tmp_path / "log").read_text("utf-8").strip() == given


def test_outside_a_namespace_of_its_own_the_trial_does_nothing():
    done = subprocess.run([sys.executable, ROOT / "tools" / "bundle.py", "--inside"], capture_output=True, text=True)
    assert done.returncode == 1 and "has interfaces other than its own" in done.stderr
