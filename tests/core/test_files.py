"""Atomic writing: the old file or the new one, never a part of either, and nothing left behind."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap

import pytest

from miniquant import WriteError
from miniquant.core.errors import MiniquantError
from miniquant.core.files import atomic_write


@pytest.fixture
def old(no_leftovers):
    """A file that is already there; whatever goes wrong, it stays."""
    path = no_leftovers / "file.bin"
    path.write_bytes(b"old")
    return path


def put(path, data: bytes = b"new") -> None:
    with atomic_write(path) as file:
        file.write(data)


def test_a_new_file_appears_and_an_old_one_is_replaced(old):
    put(old)
    assert old.read_bytes() == b"new"
    put(old.parent / "other")
    assert sorted(p.name for p in old.parent.iterdir()) == ["file.bin", "other"]


def test_nothing_changes_before_the_block_ends(old):
    with atomic_write(old) as file:
        file.write(b"n" * 100_000)
        file.flush()
        assert old.read_bytes() == b"old"
    assert old.stat().st_size == 100_000


def test_the_bytes_are_on_the_disk_before_the_name_changes(old, monkeypatch):
    order = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (order.append(f"fsync {os.fstat(fd).st_size}"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (order.append("rename"), replace(a, b)))
    put(old, b"12345")
    assert order[:2] == ["fsync 5", "rename"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_an_error_or_an_interruption_inside_leaves_the_old_file_and_nothing_else(error, old):
    with pytest.raises(error), atomic_write(old) as file:
        file.write(b"half")
        raise error
    assert old.read_bytes() == b"old"
    assert os.listdir(old.parent) == ["file.bin"]


@pytest.mark.parametrize("call", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_system_call_that_fails_is_a_write_error_that_names_the_reason(call, number, old, monkeypatch):
    def fail(*_arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(WriteError) as caught:
        put(old)
    assert str(old) in str(caught.value)
    assert os.strerror(number) in str(caught.value)
    assert "unchanged" in str(caught.value)
    assert old.read_bytes() == b"old"
    assert os.listdir(old.parent) == ["file.bin"]


def test_a_disk_that_fills_up_in_the_middle_is_a_write_error(old):
    """The kernel itself refuses: a process that may not write files of more than 100,000 bytes."""
    program = """
    import os, resource, signal, sys
    from miniquant.files import atomic_write
    from miniquant import WriteError
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    try:
        with atomic_write(sys.argv[1]) as file:
            for _ in range(100):
                file.write(bytes(10_000))
    except WriteError as error:
        print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), old], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "File too large; whatever was there before is unchanged" in done.stdout
    assert old.read_bytes() == b"old"
    assert os.listdir(old.parent) == ["file.bin"]


def test_a_process_that_is_killed_in_the_middle_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    program = """
    import os, signal, sys
    from miniquant.files import atomic_write
    with atomic_write(sys.argv[1]) as file:
        file.write(bytes(1_000_000))
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), path], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"


def test_a_missing_folder_is_named(no_leftovers):
    path = no_leftovers / "missing" / "file.bin"
    with pytest.raises(WriteError, match=r"missing does not exist; create it first"):
        put(path)
    assert not path.parent.exists()


def test_a_folder_is_not_overwritten(no_leftovers):
    (no_leftovers / "folder").mkdir()
    (no_leftovers / "link").symlink_to(no_leftovers / "folder")
    for name in ("folder", "link", "."):
        with pytest.raises(WriteError, match="is a folder; give the name of a file in it"):
            put(no_leftovers / name)
    assert os.listdir(no_leftovers / "folder") == []


def test_a_path_through_a_file_a_name_too_long_and_a_zero_character_are_write_errors(old):
    for bad in (old / "below", old.parent / ("x" * 300), f"{old}\0x"):
        with pytest.raises(WriteError, match="cannot write"):
            put(bad)
    assert os.listdir(old.parent) == ["file.bin"]


def test_a_folder_that_may_not_be_written_to_is_named(old, monkeypatch):
    import tempfile

    def refuse(**_arguments):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(WriteError, match="Permission denied; choose a folder that you may write to"):
        put(old)
    assert old.read_bytes() == b"old"


def test_a_device_or_pipe_is_not_replaced(no_leftovers):
    """Renaming a file over /dev/null would take it from every program on the machine."""
    pipe = no_leftovers / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(WriteError, match="not a regular file"):
        put(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_read_only_file_is_not_replaced(old, monkeypatch):
    old.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write to anything
    with pytest.raises(WriteError, match="read-only"):
        put(old)
    assert old.read_bytes() == b"old"


def test_a_link_is_followed_and_stays_a_link(old):
    link = old.parent / "link"
    link.symlink_to("file.bin")
    put(link)
    assert link.is_symlink()
    assert old.read_bytes() == b"new"
    dangling = old.parent / "dangling"
    dangling.symlink_to("target")
    put(dangling)
    assert (old.parent / "target").read_bytes() == b"new"


def test_permissions_are_kept_and_a_new_file_has_those_of_a_plain_open(old):
    for mode in (0o600, 0o644, 0o755):
        old.chmod(mode)
        put(old)
        assert stat.S_IMODE(old.stat().st_mode) == mode
    for mask in (0o022, 0o077):
        before = os.umask(mask)
        try:
            put(old.parent / f"atomic{mask}")
            (old.parent / f"plain{mask}").write_bytes(b"")
        finally:
            os.umask(before)
        plain = stat.S_IMODE((old.parent / f"plain{mask}").stat().st_mode)
        assert stat.S_IMODE((old.parent / f"atomic{mask}").stat().st_mode) == plain


def test_a_folder_that_cannot_be_flushed_does_not_undo_the_writing(old, monkeypatch):
    fsync, open_ = os.fsync, os.open

    def refuse_folders(fd):
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(fd)

    def refuse_to_open_folders(path, flags, *more, **named):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return open_(path, flags, *more, **named)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    put(old, b"first")
    assert old.read_bytes() == b"first"
    monkeypatch.setattr(os, "open", refuse_to_open_folders)
    put(old, b"second")
    assert old.read_bytes() == b"second"


def test_a_relative_path_and_an_unusual_name_work(no_leftovers, monkeypatch):
    monkeypatch.chdir(no_leftovers)
    for name in ("plain", "mit Leerzeichen", "naïve-é", "-dash", "x" * 255, "漢" * 85, b"bytes"):
        put(name)
        with open(name, "rb") as file:
            assert file.read() == b"new"


def test_a_write_error_is_an_oserror_and_a_value_error():
    assert issubclass(WriteError, OSError)
    assert issubclass(WriteError, MiniquantError)
    assert issubclass(WriteError, ValueError)
