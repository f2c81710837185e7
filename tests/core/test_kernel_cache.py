"""What numba compiled is kept under a name made from the sources, where the user's system has its caches."""

from __future__ import annotations

import os

import numba
import numpy as np
import pytest
from systems import posix

from miniquant.core import kernel_cache

SOURCE = "def twice(x):\n    x[0] *= 2\n"


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A folder with a module, and another one for what is kept."""
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text(SOURCE)
    monkeypatch.setenv("MINIQUANT_CACHE", str(tmp_path / "a" / "b"))
    return tmp_path / "room"


def function_of(room):
    """The function of the module; numba asks which file it is of."""
    space = {}
    exec(compile((room / "a.py").read_text(), room / "a.py", "exec"), space)
    return space["twice"]


def test_the_folder_s_name_is_made_from_the_sources_and_the_registers(room, tmp_path, monkeypatch):
    folder = kernel_cache.folder_for(room)
    assert folder.parent == tmp_path / "a" / "b" and folder.is_dir() and folder == kernel_cache.folder_for(room)
    assert folder.name.startswith("kernels-") and len(folder.name) == len("kernels-") + 16
    names = {folder}
    for name, text in (("a.py", "2"), ("b.py", "3"), ("a.py", "4")):
        (room / name).write_text(text)
        names.add(kernel_cache.folder_for(room))
    assert len(names) == 4
    (room / "notes.txt").write_text("what is no module does not count")
    assert kernel_cache.folder_for(room) in names
    (room / "b.py").rename(room / "c.py")
    names.add(kernel_cache.folder_for(room))
    assert len(names) == 5 and None not in names
    (tmp_path / "more").mkdir()
    for text in ("5", "6"):  # of a second folder
        (tmp_path / "more" / "d.py").write_text(text)
        names.add(kernel_cache.folder_for(room, tmp_path / "more"))
    assert len(names) == 7
    monkeypatch.setattr(kernel_cache, "__file__", str(tmp_path / "kernel_cache.py"))
    (tmp_path / "machine_code.py").write_text("")
    for name in ("registers.py", "machine_code.py"):
        (tmp_path / "registers.py").touch()
        names.add(kernel_cache.folder_for(room))
        (tmp_path / name).write_text("other")
        names.add(kernel_cache.folder_for(room))
    assert len(names) == 10


@posix
def test_the_folder_is_the_user_s_alone(room):
    assert kernel_cache.folder_for(room).stat().st_mode & 0o777 == 0o700


def test_what_is_compiled_lies_in_the_folder_and_other_programs_functions_stay_where_they_were(room):
    function, before = function_of(room), numba.config.CACHE_DIR
    found = kernel_cache.compiled(function, room, error_model="numpy")
    folder = kernel_cache.folder_for(room)
    assert not any(folder.iterdir())
    x = np.ones(1, np.float32)
    found(x)
    assert x[0] == 2 and list(folder.rglob("*.nbi")) and list(folder.rglob("*.nbc"))
    assert before == numba.config.CACHE_DIR
    assert found.targetoptions["nogil"] is True  # other threads go on meanwhile
    assert found.targetoptions["error_model"] == "numpy"
    again = kernel_cache.compiled(function_of(room), room, error_model="numpy")
    again(x)
    assert x[0] == 4 and sum(again.stats.cache_hits.values()) == 1


def test_a_copy_of_the_sources_elsewhere_or_newer_finds_what_was_compiled_and_another_text_does_not(room, tmp_path):
    x = np.ones(1, np.float32)
    kernel_cache.compiled(function_of(room), room)(x)
    room.rename(tmp_path / "elsewhere")
    room = tmp_path / "elsewhere"
    os.utime(room / "a.py", (1, 1))
    again = kernel_cache.compiled(function_of(room), room)
    again(x)
    assert x[0] == 4 and sum(again.stats.cache_hits.values()) == 1
    (room / "a.py").write_text(SOURCE.replace("2", "3"))
    changed = kernel_cache.compiled(function_of(room), room)
    changed(x)
    assert x[0] == 12 and not sum(changed.stats.cache_hits.values())


@pytest.mark.parametrize("how", ["", "a file", "may not be written to"])
def test_where_nothing_can_be_kept_every_process_compiles(how, room, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    if how == "may not be written to":
        monkeypatch.setattr(kernel_cache.os, "access", lambda folder, mode: mode != os.W_OK)
    else:
        monkeypatch.setenv("MINIQUANT_CACHE", str(tmp_path / "file" / "x") if how else "")
    assert kernel_cache.folder_for(room) is None
    x = np.ones(1, np.float32)
    kernel_cache.compiled(function_of(room), room)(x)
    assert x[0] == 2


@pytest.mark.parametrize("system, name, value, expected", [
    ("linux", "XDG_CACHE_HOME", "/x", "/x/miniquant"),
    ("linux", "XDG_CACHE_HOME", "", "/home/x/.cache/miniquant"),
    ("linux", "HOME", "/home/a", "/home/a/.cache/miniquant"),
    ("darwin", "XDG_CACHE_HOME", "/c", "/home/x/Library/Caches/miniquant"),
    ("win32", "LOCALAPPDATA", "/l", "/l/miniquant"),
    ("win32", "HOME", "/home/a", "/home/a/AppData/Local/miniquant"),
])  # fmt: skip
def test_each_system_has_its_folder_for_caches(system, name, value, expected, monkeypatch):
    for variable in ("MINIQUANT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "/home/x")
    monkeypatch.setattr(kernel_cache.sys, "platform", system)
    monkeypatch.setenv(name, value)
    assert kernel_cache._base().as_posix() == expected


def test_a_relative_folder_is_that_of_the_working_folder_and_a_user_without_a_home_has_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINIQUANT_CACHE", "kept")
    assert kernel_cache._base() == tmp_path / "kept"
    monkeypatch.delenv("MINIQUANT_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless(path):
        raise RuntimeError

    monkeypatch.setattr(kernel_cache.os.path, "expanduser", homeless)
    assert kernel_cache._base() is None
