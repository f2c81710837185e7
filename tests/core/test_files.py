"""Atomic writing: the old file or the new one, never a part of either, and nothing left behind."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from systems import posix

from miniquant import WriteError
from miniquant.core import files
from miniquant.core.errors import MiniquantError
from miniquant.core.files import atomic_write


@pytest.fixture(autouse=True, params=["without a name", "under a temporary name"])
def way(request, monkeypatch):
    """Both ways to keep the bytes before they are complete; a system without O_TMPFILE has the second one only."""
    if request.param == "under a temporary name":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no O_TMPFILE")
    return request.param


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


@pytest.mark.parametrize("there", [True, False], ids=["replaced", "new"])
def test_the_bytes_are_on_the_disk_before_the_name_changes_and_the_name_before_the_call_returns(
    there, old, monkeypatch
):
    order = []
    fsync, replace, link = os.fsync, os.replace, os.link

    def watched(descriptor):
        found = os.fstat(descriptor)
        order.append(f"fsync folder {found.st_ino}" if stat.S_ISDIR(found.st_mode) else f"fsync {found.st_size}")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(os, "replace", lambda a, b: (order.append("named"), replace(a, b)))
    monkeypatch.setattr(os, "link", lambda a, b, **k: (order.append("linked"), link(a, b, **k)))
    target = old if there else old.parent / "new"
    put(target, b"12345")
    folder = f"fsync folder {old.parent.stat().st_ino}"
    assert [step for step in order if step != "linked"] in (["fsync 5", "named", folder], ["fsync 5", folder])
    assert order[0] == "fsync 5"
    assert order[-1] == folder
    assert len(order) >= 3


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_an_error_or_an_interruption_inside_leaves_the_old_file_and_nothing_else(error, old):
    with pytest.raises(error), atomic_write(old) as file:
        file.write(b"half")
        raise error
    assert old.read_bytes() == b"old"
    assert os.listdir(old.parent) == ["file.bin"]


def test_an_error_of_the_source_stays_what_it_is(old):
    with pytest.raises(FileNotFoundError, match="No such file") as caught, atomic_write(old) as file:
        file.write(b"half")
        (old.parent / "missing").read_bytes()
    assert not isinstance(caught.value, WriteError)
    assert old.read_bytes() == b"old"


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


def test_an_error_without_a_number_is_told_in_its_own_words(old, monkeypatch):
    def fail(*_arguments):
        raise OSError("the disk is on fire")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(WriteError, match=r"file\.bin: the disk is on fire; whatever was there before is unchanged"):
        put(old)


def test_an_error_of_the_new_file_itself_names_the_file_that_was_to_be_written(old):
    message = f"cannot write the target: {os.strerror(errno.EBADF)}; whatever"
    with files._Raw(os.open(old, os.O_RDONLY), "the target") as raw, pytest.raises(WriteError, match=message):
        raw.write(b"new")


@posix
def test_a_disk_that_fills_up_in_the_middle_is_a_write_error(old):
    """The kernel itself refuses: a process that may not write files of more than 100,000 bytes."""
    program = """
    import os, resource, signal, sys
    from miniquant.core.files import atomic_write
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


KILL, HANGUP = (getattr(signal, name, signal.SIGTERM) for name in ("SIGKILL", "SIGHUP"))  # Windows has neither
STEPS = [(step, number) for step in ("fsync", "chmod", "link", "replace") for number in (-KILL, KILL)]
STEPS += [("write", KILL), ("write", signal.SIGTERM), ("write", HANGUP)]
WAYS = ["without a name"] * hasattr(os, "O_TMPFILE") + ["under a temporary name"]
NEW = b"new" * 100_000
KILLED = """
import os, pathlib, signal, sys
from miniquant.core import files
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, by the children too

def write(path, way, step, number):
    if way == "under a temporary name" and hasattr(os, "O_TMPFILE"):
        del os.O_TMPFILE
    def killed(*given, **named):
        if number > 0:  # before the call; a negative number is after it
            os.kill(os.getpid(), number)
        call(*given, **named)
        os.kill(os.getpid(), -number)
    if step != "write":
        call = getattr(os, step)
        setattr(os, step, killed)
    with files.atomic_write(path) as file:
        file.write(b"new" * 100_000)
        file.flush()
        if step == "write":
            os.kill(os.getpid(), number)

for line in sys.stdin:
    folder, way, step, number = line.rstrip("\\n").split("\\t")
    pid = os.fork()
    if not pid:
        write(os.path.join(folder, "file.bin"), way, step, int(number))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> dict[tuple, tuple[int, Path]]:
    """Processes that were killed before or after a step of writing: their exit code and their folder."""
    cases = [(way, step, int(n), there) for way in WAYS for step, n in STEPS for there in (True, False)]
    folders = [tmp_path_factory.mktemp("killed") for _ in cases]
    lines = []
    for (way, step, number, there), folder in zip(cases, folders):
        if there:
            (folder / "file.bin").write_bytes(b"old")
        lines.append(f"{folder}\t{way}\t{step}\t{number}\n")
    command = [sys.executable, "-c", KILLED]
    done = subprocess.run(command, input="".join(lines), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(zip(cases, zip(map(int, done.stdout.split()), folders, strict=True), strict=True))


@posix
@pytest.mark.parametrize("there", [True, False], ids=["replaced", "new"])
@pytest.mark.parametrize(("step", "number"), STEPS)
def test_a_process_that_is_killed_leaves_the_old_file_or_the_new_one_and_the_next_write_leaves_nothing_else(
    there, step, number, way, killed
):
    code, folder = killed[way, step, int(number), there]
    unused = (way == "without a name" and not there and step == "replace") or (
        way != "without a name" and step == "link"
    )
    assert code == (0 if unused else -abs(number))
    path = folder / "file.bin"
    if there or path.exists():
        assert path.read_bytes() in ([NEW, b"old"] if there else [NEW])
    if code == 0:
        assert path.read_bytes() == NEW
    left = set(os.listdir(folder)) - {"file.bin"}
    named = there and ((step, number) in [("link", -KILL), ("replace", KILL)])
    if way == "without a name" and not named:
        assert not left
    put(folder / "other")
    assert set(os.listdir(folder)) - {"file.bin"} == {"other"}


def test_a_living_writer_s_file_is_not_removed_by_another_process(old, way):
    """Each of two processes writes while the other one begins and ends."""
    program = """
    import os, sys
    if sys.argv[2] == "under a temporary name" and hasattr(os, "O_TMPFILE"):
        del os.O_TMPFILE
    from miniquant.core.files import atomic_write
    with atomic_write(sys.argv[1]) as file:
        file.write(b"first")
        file.flush()
        print("open", flush=True)
        sys.stdin.readline()
    """
    command = [sys.executable, "-c", textwrap.dedent(program), old, way]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "open\n"
        put(old.parent / "second")
        other.communicate("go on\n")
    assert other.returncode == 0
    assert old.read_bytes() == b"first"
    assert sorted(os.listdir(old.parent)) == ["file.bin", "second"]


def test_one_write_inside_another_one_and_many_threads_do_not_disturb_each_other(old):
    with atomic_write(old) as outer:
        outer.write(b"outer")
        put(old.parent / "inner")
    assert old.read_bytes() == b"outer"
    problems: list[Exception] = []

    def often(n: int) -> None:
        try:
            for _ in range(30):
                put(old.parent / f"thread {n % 2}", bytes([n]) * 10_000)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=often, args=(n,)) for n in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not problems
    assert len(set((old.parent / "thread 0").read_bytes())) == 1


def test_the_lock_is_there_before_the_name_and_until_the_rename(old, monkeypatch):
    replace = os.replace

    def after_a_look_of_another_writer(a, b):
        files._ours.clear()
        files._remove_abandoned(os.fspath(old.parent))
        replace(a, b)

    monkeypatch.setattr(os, "replace", after_a_look_of_another_writer)
    put(old)
    assert old.read_bytes() == b"new"


def test_a_temporary_file_that_is_removed_before_it_is_locked_is_made_again(old, monkeypatch):
    lock, removed = files._lock, []

    def too_late(file):
        if not removed and (left := list(old.parent.glob(".*"))):
            removed.extend(left)
            left[0].unlink()
        lock(file)

    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    monkeypatch.setattr(files, "_lock", too_late)
    put(old)
    assert removed
    assert old.read_bytes() == b"new"


def test_a_system_that_only_pretends_to_lock_does_not_lose_what_the_process_itself_writes(old, monkeypatch):
    monkeypatch.setattr(files.fcntl, "flock", lambda *_: None)
    with atomic_write(old) as outer:
        outer.write(b"outer")
        put(old.parent / "inner")
    assert old.read_bytes() == b"outer"


def abandoned(folder: Path, monkeypatch) -> Path:
    """What a killed process leaves: the file whose last step, the rename, never came."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda a, b: (_ for _ in ()).throw(KeyboardInterrupt))
        patch.setattr(os, "unlink", lambda path: None)
        (folder / "a").write_bytes(b"")
        with pytest.raises(KeyboardInterrupt):
            put(folder / "a")
    (left,) = folder.glob(".*")
    return left


def test_only_what_a_writer_of_this_machine_has_left_is_removed(tmp_path, monkeypatch):
    left = abandoned(tmp_path, monkeypatch)
    digits = left.name.split(".")[-4]
    foreign = left.name.replace(digits, "0" * len(digits))  # another machine's lock may not be seen from here
    for name in (".a.tmp", "notes.tmp", ".a.xxxxxxxx.tmp", foreign, left.name[1:], f"{left.name}x"):
        (tmp_path / name).write_bytes(b"mine")
    link = tmp_path / left.name.replace(".a.", ".b.")
    link.symlink_to("notes.tmp")
    folder = tmp_path / left.name.replace(".a.", ".c.")
    folder.mkdir()
    others = set(os.listdir(tmp_path)) - {left.name}
    put(tmp_path / "other")
    assert set(os.listdir(tmp_path)) == others | {"other"}


def test_what_is_left_of_a_name_with_a_line_break_is_removed_too(tmp_path, monkeypatch):
    left = abandoned(tmp_path, monkeypatch)
    odd = left.with_name(left.name.replace(".a.", ".a\nb."))
    left.rename(odd)
    put(tmp_path / "other")
    assert set(os.listdir(tmp_path)) == {"a", "other"}


def test_the_mark_of_a_machine_is_eight_digits_made_of_its_name_whatever_that_is():
    program = "import importlib, platform, sys; from miniquant.core import files\nfor name in sys.argv[1:]:\n"
    program += "    platform.node = lambda: eval(name); print(importlib.reload(files)._HOST)"
    names = [ascii(name) for name in ("a", "b", "\udc80")]
    done = subprocess.run([sys.executable, "-c", program, *names], capture_output=True, text=True, check=True)
    marks = done.stdout.splitlines()
    assert len(marks) == len(set(marks)) == 3
    assert all(re.fullmatch("[0-9a-f]{8}", mark) for mark in marks)


def test_what_cannot_be_removed_or_listed_does_not_stop_the_writing(tmp_path, monkeypatch):
    left = abandoned(tmp_path, monkeypatch)

    def refuse(*_arguments):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "unlink", refuse)
    put(tmp_path / "first")
    monkeypatch.setattr(os, "scandir", refuse)
    put(tmp_path / "second")
    assert {left.name, "first", "second"} < set(os.listdir(tmp_path))


def test_a_system_without_links_copies_the_bytes(old, monkeypatch):
    """Android forbids links: the bytes have no name and cannot get one."""

    def refuse(*_arguments, **_named):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "link", refuse)
    put(old, b"copied" * 100_000)
    put(old.parent / "new", b"copied")
    assert old.read_bytes() == b"copied" * 100_000
    assert (old.parent / "new").read_bytes() == b"copied"
    assert sorted(os.listdir(old.parent)) == ["file.bin", "new"]


def test_a_new_file_that_somebody_else_creates_meanwhile_is_replaced(no_leftovers):
    path = no_leftovers / "file"
    with atomic_write(path) as file:
        file.write(b"mine")
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"mine"


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
    for bad in (old / "below", old.parent / ("x" * 300), f"{old}\0x", f"{old}\ud800"):
        with pytest.raises(WriteError, match="cannot write"):
            put(bad)
    assert os.listdir(old.parent) == ["file.bin"]


def test_a_folder_that_may_not_be_written_to_is_named(old, monkeypatch):
    def refuse(*_arguments, **_named):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(WriteError, match="Permission denied; choose a folder that you may write to"):
        put(old)
    assert old.read_bytes() == b"old"


@posix
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
    for name in ("plain", "mit Leerzeichen", "naïve-é", "-dash", "x" * 255, "漢" * 85, b"bytes", b"\xff"):
        put(name)
        with open(name, "rb") as file:
            assert file.read() == b"new"


def test_a_write_error_is_an_oserror_and_a_value_error():
    assert issubclass(WriteError, OSError)
    assert issubclass(WriteError, MiniquantError)
    assert issubclass(WriteError, ValueError)
