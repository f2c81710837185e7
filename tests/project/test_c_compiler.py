"""Which C compiler the tests of the C readers take, and what they say where there is none; those here are stand-ins."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import c_compiler
import pytest
from places import ROOT

SOURCE = ROOT / "readers" / "bump.c"
SAYS = f"#!{sys.executable}\nimport sys\nprint(*sys.argv, sep='\\n')\n"


@pytest.fixture
def only(tmp_path, monkeypatch):
    """A machine that has only the compilers of these names; each prints how it was called."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)

    def have(*names: str) -> Path:
        for name in names:
            (tmp_path / name).write_text(SAYS, "utf-8")
            (tmp_path / name).chmod(0o755)
        return tmp_path

    return have


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are scripts of other systems")
@pytest.mark.parametrize(
    ("there", "taken"),
    [(("cl", "clang", "cc"), "cc"), (("cl", "clang"), "clang"), (("cl",), "cl")],
)
def test_the_first_of_cc_clang_and_cl_is_taken(only, there, taken):
    folder = only(*there)
    assert c_compiler.compiler() == [str(folder / taken)]


def test_a_machine_without_a_compiler_is_told_what_to_install(only):
    only()
    with pytest.raises(AssertionError, match="no C compiler: install one that is called cc, clang or cl"):
        c_compiler.compiled(SOURCE, Path("x"))


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are scripts of other systems")
def test_the_compiler_that_cc_names_comes_first_with_its_own_options(only, monkeypatch):
    folder = only("cc", "mine")
    monkeypatch.setenv("CC", f"{folder / 'mine'} -m64")
    called = c_compiler.compile_c(SOURCE, Path("x"), "-O2").stdout.split("\n")
    assert called[:3] == [str(folder / "mine"), "-m64", "-std=c99"]
    assert called[-5:-1] == ["-O2", "-o", "x", str(SOURCE)]


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are scripts of other systems")
def test_cl_is_called_in_its_own_words(only):
    only("cl")
    called = c_compiler.compile_c(SOURCE, Path("folder/x.exe"), "-O2").stdout.split("\n")[1:-1]
    assert called[-2:] == ["/Fefolder/x.exe", str(SOURCE)]
    assert "/Fofolder/x.obj" in called
    assert not [word for word in called if word.startswith("-")]
