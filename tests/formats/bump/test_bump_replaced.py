"""Weights and config.json are replaced together: at every moment, the folder holds a model that loads."""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import shutil
import stat
import subprocess
import sys

import pytest
from bump_models import TINY, write_llama
from systems import posix
from thorough import tried

import miniquant.formats.bump.read as module
from miniquant.core.errors import FormatError
from miniquant.formats.bump import BumpFile, open_bump, write, write_bump
from miniquant.formats.bump.config import addressed_path, is_addressed
from miniquant.formats.bump.tokenizer import tokenizer_json
from miniquant.formats.fields import fields
from miniquant.formats.gguf.metadata import Typed, ValueType


def convert(folder, **how):
    write_llama(folder / "m.gguf", TINY, **how)
    write_bump(folder / "m.gguf", folder / "weights.bump")


def tokenizer(name):
    """The metadata of a tokenizer of two tokens."""
    model = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": ["a", name]}
    return model | {"tokenizer.ggml.merges": []}


def written(name):
    """The same, as a writer wants it."""
    return tokenizer(name) | {"tokenizer.ggml.merges": Typed([], ValueType.ARRAY, ValueType.STRING)}


KILLED = """
import os, sys
from miniquant.core import files
from miniquant.formats.bump import write

steps = 0
def counted(call):
    def step(*given, **named):  # the process dies before the step, or, with an odd number, right after it
        global steps
        steps += 1
        if 2 * steps == wanted:
            os._exit(9)
        result = call(*given, **named)
        if 2 * steps + 1 == wanted:
            os._exit(9)
        return result
    return step

for line in sys.stdin:
    folder, source, wanted = line.rstrip("\\n").split("\\t")
    wanted, pid = int(wanted), os.fork()
    if not pid:
        os.fsync = os.fstat  # a process that dies takes nothing with it that it has written
        for name in ("fsync", "replace", "link", "unlink", "chmod"):
            setattr(os, name, counted(getattr(os, name)))
        write.write_bump(source, os.path.join(folder, "weights.bump"))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@posix
def test_whenever_a_writer_is_killed_the_old_model_or_the_new_one_loads(tmp_path):
    """Before and after every system call that changes a name or flushes a file; and the next writer tidies up.

    On ordinary days only before: what was after is nearly what is before the next call.
    """
    old, new = tmp_path / "old.gguf", tmp_path / "new.gguf"
    write_llama(old, TINY, more=written("old"))
    write_llama(new, TINY, seed=1, more={"llama.context_length": 7, **written("new")})
    for there in ("old", "none"):
        (tmp_path / there).mkdir()
    write_bump(old, tmp_path / "old" / "weights.bump")
    steps = [(there, n) for there, last in (("old", 66), ("none", 48)) for n in range(2, last, tried(2, 1))]
    folders = [(tmp_path / f"{there} {n}", there, n) for there, n in steps]
    lines = []
    for folder, there, n in folders:
        shutil.copytree(tmp_path / there, folder)
        lines.append(f"{folder}\t{new}\t{n}\n")
    done = subprocess.run([sys.executable, "-c", KILLED], input="".join(lines), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = set()
    for (folder, there, _), code in zip(folders, map(int, done.stdout.split()), strict=True):
        path = folder / "weights.bump"
        if there == "old" or path.exists():
            with open_bump(path) as file:
                context = file.config.context
                assert file.tokenizer() == tokenizer_json(tokenizer("old" if context == 5 else "new"))
            names = {field.name for field in fields(path)}
            assert "unread" not in names
            assert any(name.startswith("tensor 'token_embd'") for name in names)
            seen.add((code, context, len(os.listdir(folder))))
            assert code == 9 or context == 7
        write_bump(new, path)
        with open_bump(path) as file:
            assert file.config.context == 7 and file.tokenizer() == tokenizer_json(tokenizer("new"))
        assert sorted(os.listdir(folder)) == ["config.json", "tokenizer.json", "weights.bump"]
    assert {(code, context) for code, context, _ in seen} == {(9, 5), (9, 7), (0, 7)}
    assert (0, 7, 3) in seen


def test_a_writer_that_fails_takes_nothing_from_the_model_that_is_there(tmp_path, monkeypatch):
    """The old model's tokenizer stands under its addressed name alone, as a killed writer may leave it."""
    convert(tmp_path, more=written("old"))
    path, text = tmp_path / "weights.bump", tokenizer_json(tokenizer("old"))
    (tmp_path / "tokenizer.json").rename(addressed_path(path, hashlib.sha256(text).digest(), "tokenizer.json"))
    for name in ("old", "new"):
        with monkeypatch.context() as patch:
            patch.setattr(write, "config_text", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                convert(tmp_path, more=written(name), seed=1)
        with open_bump(path) as file:
            assert file.tokenizer() == text
        assert len(os.listdir(tmp_path)) == 4  # the GGUF file, too
    convert(tmp_path, more=written("new"), seed=1)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "m.gguf", "tokenizer.json", "weights.bump"]


def test_with_the_config_of_other_weights_the_one_named_after_these_counts(tmp_path):
    """As after a machine that stopped between two renames."""
    other = tmp_path / "other"
    other.mkdir()
    convert(tmp_path)
    convert(other, seed=1, more={"llama.context_length": 7})
    path, beside = tmp_path / "weights.bump", tmp_path / "config.json"
    with open_bump(path) as file:
        context, checksum = file.config.context, file.header.checksum
    beside.rename(addressed_path(path, checksum))
    beside.write_bytes((other / "config.json").read_bytes())
    with open_bump(path) as file:
        assert file.config.context == context != 7


def test_addressed_names_are_believed_only_with_what_they_stand_for(tmp_path):
    right = hashlib.sha256(b"{}").hexdigest()[:16]
    for name, text, expected in (
        (f"tokenizer.{right}.json", "{}", True),
        (f"tokenizer.{right}.json", "{ }", False),
        (f"config.{right}.json", "{}", False),
        (f"config.{right}.json", '{"bump": {"file": "x"}}', True),
        (f"tokenizer.{right}0.json", "{}", False),
        ("tokenizer.json", "{}", False),
    ):
        (tmp_path / name).write_text(text)
        assert is_addressed(str(tmp_path / name)) is expected, (name, text)


def test_a_config_that_a_killed_writer_left_days_ago_is_removed_and_another_file_is_not(tmp_path):
    convert(tmp_path)
    left, young, other = (tmp_path / f"config.{digit * 16}.json" for digit in "012")
    left.write_bytes((tmp_path / "config.json").read_bytes())
    young.write_bytes(left.read_bytes())
    other.write_text("{}")
    for path in (left, other):
        os.utime(path, (0, 0))
    convert(tmp_path, seed=1)
    assert sorted(path.name for path in tmp_path.glob("config*")) == [young.name, other.name, "config.json"]


def test_an_old_config_that_cannot_be_removed_does_not_stop_the_writer(tmp_path, monkeypatch):
    convert(tmp_path)
    left = tmp_path / f"config.{'0' * 16}.json"
    left.write_bytes((tmp_path / "config.json").read_bytes())
    os.utime(left, (0, 0))
    unlink = os.unlink

    def refused(path, *more, **named):
        if os.fspath(path) == str(left):
            raise PermissionError(1, "not yours", str(path))
        unlink(path, *more, **named)

    monkeypatch.setattr(os, "unlink", refused)
    convert(tmp_path, seed=1)
    assert left.exists()
    with open_bump(tmp_path / "weights.bump") as file:
        assert file.tensors


def test_the_checksum_is_that_of_the_mapping_and_not_of_what_the_path_names_by_now(tmp_path, monkeypatch):
    convert(tmp_path)
    path = tmp_path / "weights.bump"
    whole = path.read_bytes()
    other = tmp_path / "other"
    map_ = mmap.mmap

    def mapped(*given, **named):
        """Right after the mapping, another file takes the path: the right one after a damaged one, and the reverse."""
        found = map_(*given, **named)
        os.replace(other, path)
        return found

    damaged = whole[:-65] + bytes([whole[-65] ^ 1]) + whole[-64:]
    assert damaged != whole
    monkeypatch.setattr(mmap, "mmap", type("mmap", (), {"__new__": lambda cls, *g, **n: mapped(*g, **n)}))
    path.write_bytes(damaged)
    other.write_bytes(whole)
    with pytest.raises(FormatError, match="checksum"):
        BumpFile(path)
    other.write_bytes(damaged)
    with BumpFile(path):
        assert path.read_bytes() == damaged


def test_a_reader_that_meets_a_replacement_opens_the_new_model(tmp_path, monkeypatch):
    """It mapped the old weights, and read the new config.json."""
    convert(tmp_path)
    write_llama(tmp_path / "new.gguf", TINY, seed=1)
    read, calls = module.read_config, []

    def slow(*given):
        if not calls:
            write_bump(tmp_path / "new.gguf", tmp_path / "weights.bump")
        calls.append(given)
        return read(*given)

    monkeypatch.setattr(module, "read_config", slow)
    with open_bump(tmp_path / "weights.bump") as file:
        assert len(calls) == 2
        assert file.raw("token_embd").tobytes() != b""


def test_the_config_is_on_the_disk_before_the_weights_take_their_place(tmp_path, monkeypatch):
    convert(tmp_path)
    write_llama(tmp_path / "new.gguf", TINY, seed=1, more=written("new"))
    order, fsync, replace, link = [], os.fsync, os.replace, os.link
    size = (tmp_path / "weights.bump").stat().st_size

    def named(path):  # a link to an existing file fails, and a rename follows
        step = "to " + re.sub(r"\.[0-9a-f]{16}", ".CHECKSUM", os.path.basename(path))
        if not step.endswith(".tmp") and order[-1:] != [step]:
            order.append(step)

    def synced(descriptor):
        found = os.fstat(descriptor)
        order.append("folder" if stat.S_ISDIR(found.st_mode) else "weights" if found.st_size == size else "json")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda a, b: (named(b), replace(a, b)))
    monkeypatch.setattr(os, "link", lambda a, b, **more: (named(b), link(a, b, **more)))
    write_bump(tmp_path / "new.gguf", tmp_path / "weights.bump")
    assert order == [
        *("json", "to tokenizer.CHECKSUM.json", "folder"),
        *("json", "to config.CHECKSUM.json", "folder"),
        *("weights", "to weights.bump", "folder"),
        *("json", "to config.json", "folder"),
        *("json", "to tokenizer.json", "folder"),
    ]
