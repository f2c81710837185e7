"""Lab 23's naive readers, their machine, and the fuzzer: what must be harmed is, and what is mended holds."""

from __future__ import annotations

import ast
import struct
import tracemalloc
from dataclasses import fields as fields_of
from pathlib import Path

import numpy as np
import pytest

import miniquant
from miniquant import FormatError, open_gguf_lite, write_gguf_lite
from miniquant.formats.gguf import read_gguf, write_gguf
from miniquant.lab import exercises
from miniquant.lessons.hostile_files.fuzz import damaged, fuzz, places
from miniquant.lessons.hostile_files.machine import Harm, Machine
from miniquant.lessons.hostile_files.naive import Parts, read_naive_gguf, read_naive_lite
from miniquant.lessons.hostile_files.plot import hardening

W = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
PARTS = {part.name: exercises()[part.name].reference for part in fields_of(Parts)}


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """Two GGUF files and a GGUF-lite file, as bytes."""
    folder = tmp_path_factory.mktemp("valid")
    tensors = {"a.weight": (W, "Q8_0"), "b.weight": W[0, :5], "a.bias": W[0, :3]}
    write_gguf(folder / "a", tensors, {"general.architecture": "toy", "x": [1, 2, 3], "n": 7}, 64)
    write_gguf(folder / "b", {"a.weight": (W, "Q4_0"), "b.weight": W[:, :4]}, {"title": "small"})
    write_gguf_lite(folder / "c", {"a.weight": W, "b.weight": W[0, :3]}, {"a.weight": "f16"}, {"k": "v"})
    return [(folder / name).read_bytes() for name in "abc"]


def hardened(data: bytes, machine: Machine) -> dict[str, bytes]:
    return read_naive_gguf(data, machine, Parts(**PARTS))


@pytest.mark.parametrize("reader", [read_naive_gguf, hardened])
def test_honest_gguf_files_are_read_as_the_library_reads_them(reader, valid, tmp_path):
    for data in valid[:2]:
        (tmp_path / "f").write_bytes(data)
        with read_gguf(tmp_path / "f") as file:
            assert reader(data, Machine()) == {name: file.raw(name).tobytes() for name in file.tensors}


def test_honest_gguf_lite_files_are_read_as_the_library_reads_them(valid, tmp_path):
    (tmp_path / "f").write_bytes(valid[2])
    with open_gguf_lite(tmp_path / "f") as file:
        assert read_naive_lite(valid[2], Machine()) == {name: file.raw(name).tobytes() for name in file.tensors}


# ---- the attacks of the lab ------------------------------------------------------------------------------------------


def lite(n_tensors: int, *descriptors: bytes, metadata_len: int = 0, data: bytes = b"") -> bytes:
    return struct.pack("<4I", 0x474C4654, 1, n_tensors, metadata_len) + b"".join(descriptors) + data


def entry(name: bytes, dims: tuple[int, ...], offset: int = 0, n_dims: int | None = None) -> bytes:
    count = len(dims) if n_dims is None else n_dims
    shape = struct.pack(f"<B{len(dims)}I", count, *dims)
    return struct.pack("<H", len(name)) + name + shape + struct.pack("<BQ", 0, offset)


ATTACKS = {
    "four gigabytes": (lite(48_806_446, data=bytes(44)), "huge allocation"),
    "a product that wraps": (lite(48_806_447, data=bytes(44)), "write past a buffer"),
    "many dims": (lite(1, entry(b"w", (1,) * 200), data=bytes(4)), "write past a buffer"),
    "dims that wrap to 0": (lite(1, entry(b"w", (2**16, 2**16)), data=bytes(2**18)), "write past a buffer"),
    "an offset outside": (lite(1, entry(b"w", (4,), 1000), data=bytes(16)), "read past the file"),
    "a size outside": (lite(1, entry(b"w", (4,), 4), data=bytes(16)), "read past the file"),
    "the same bytes": (lite(2, entry(b"a", (4,)), entry(b"b", (4,)), data=bytes(16)), "shared bytes"),
    "the same name": (lite(2, entry(b"a", (2,)), entry(b"a", (2,), 8), data=bytes(16)), "lost tensor"),
    "out of the folder": (lite(1, entry(b"../../.profile", (1,)), data=bytes(4)), "file outside the folder"),
    "a terminal's commands": (lite(1, entry(b"\x1b[2J", (1,)), data=bytes(4)), "control characters"),
    "tensors of nothing": (lite(10_000, *[entry(b"w", (0,))] * 10_000), "endless loop"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_harms_the_naive_reader_and_the_library_refuses_it_or_means_no_harm(name, tmp_path):
    data, kind = ATTACKS[name]
    with pytest.raises(Harm) as caught:
        read_naive_lite(data, Machine(memory=1 << 24 if kind == "endless loop" else 1 << 20))
    assert caught.value.kind == kind
    (tmp_path / "f").write_bytes(data)
    if kind in ("file outside the folder", "control characters"):  # a name is only a name to who makes no file of it
        assert len(open_gguf_lite(tmp_path / "f").tensors) == 1
    else:
        with pytest.raises(FormatError):
            open_gguf_lite(tmp_path / "f")


def test_the_machine_only_keeps_a_list_of_what_it_was_asked_for():
    machine = Machine()
    tracemalloc.start()
    try:
        with pytest.raises(Harm, match="4,294,967,248 bytes asked for the table of tensors"):
            read_naive_lite(ATTACKS["four gigabytes"][0], machine)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(ATTACKS["four gigabytes"][0]) == 60
    assert machine.requests == [(4_294_967_248, "the table of tensors")]
    assert peak < 100_000


def test_every_kind_of_path_out_of_the_folder_is_noticed():
    for name in ("../x", "/etc/passwd", "a/../../x", "..\\x", "C:x", "..", "a/../.."):
        with pytest.raises(Harm, match="file outside the folder"):
            Machine().create(name)
    for name in ("x", "a/b", "a/../x", "..x", "a..b"):
        Machine().create(name)


# ---- hardening -------------------------------------------------------------------------------------------------------


def test_the_fuzzer_finds_what_is_wrong_with_the_naive_reader_and_nothing_in_the_hardened_one(valid):
    naive, mended = fuzz(read_naive_gguf, valid[:2], 6000), fuzz(hardened, valid[:2], 6000)
    assert {"huge allocation", "read past the file", "write past a buffer", "shared bytes"} <= naive.harms.keys()
    assert {"file outside the folder", "control characters", "crash: ZeroDivisionError"} <= naive.harms.keys()
    assert mended.harms == {}
    assert mended.read > 300
    assert "no harm found" in repr(mended)


@pytest.mark.parametrize("left_out", PARTS)
def test_every_part_is_needed(left_out, valid):
    parts = Parts(**{name: part for name, part in PARTS.items() if name != left_out})
    assert fuzz(lambda data, machine: read_naive_gguf(data, machine, parts), valid[:2], 6000).harms


def test_what_the_library_and_the_hardened_reader_both_read_they_read_alike(valid, tmp_path):
    path, both = tmp_path / "f", 0
    for seed in range(2000):
        known = places(valid[seed % 2])
        data = damaged(valid[seed % 2], *known, seed)
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        try:
            mine = hardened(data, Machine())
            with read_gguf(path) as file:
                assert mine == {name: file.raw(name).tobytes() for name in file.tensors}
            both += 1
        except FormatError:
            pass
    assert both > 100


def test_a_damaged_file_is_the_same_each_time(valid):
    known = places(valid[0])
    assert [damaged(valid[0], *known, seed) for seed in range(50)] == [damaged(valid[0], *known, s) for s in range(50)]


def test_the_figure_says_how_many_files_did_harm(valid):
    stages = {"naive": fuzz(read_naive_gguf, valid[:2], 200), "hardened": fuzz(hardened, valid[:2], 200)}
    assert "0 of 'hardened'" in hardening(stages).alt


def test_nothing_outside_the_lab_imports_the_naive_readers():
    for path in Path(miniquant.__file__).parent.rglob("*.py"):
        if not path.name.startswith("lab17"):
            names = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
            assert not [node for node in names if "lab17_" in (node.module or "")], path
