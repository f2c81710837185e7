"""Lab 23's naive reader, its machine, its process, and the fuzzer: what must be harmed is, and what is fixed holds."""

from __future__ import annotations

import ast
import os
import struct
import tracemalloc
from dataclasses import fields as fields_of
from pathlib import Path

import numpy as np
import pytest
from thorough import tried

import miniquant
from miniquant import FormatError
from miniquant.formats.gguf import read_gguf, write_gguf
from miniquant.lab import evaluate, exercises
from miniquant.lab.limit import TooSlow
from miniquant.lessons.hostile_files import given, limited
from miniquant.lessons.hostile_files.build import gguf_file, info
from miniquant.lessons.hostile_files.fuzz import damaged, fuzz, places
from miniquant.lessons.hostile_files.limited import EXPORT, run_limited
from miniquant.lessons.hostile_files.machine import ROUNDS, Harm, Machine
from miniquant.lessons.hostile_files.naive import Parts, read_naive_gguf
from miniquant.lessons.hostile_files.plot import hardening

W = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
GIVEN = {name: getattr(given, name) for name in ("safe_string", "read_dims", "data_start")}
PARTS = GIVEN | {p.name: exercises()[p.name].reference for p in fields_of(Parts) if p.name not in GIVEN}


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """Two GGUF files, as bytes."""
    folder = tmp_path_factory.mktemp("valid")
    tensors = {"a.weight": (W, "Q8_0"), "b.weight": W[0, :5], "a.bias": W[0, :3]}
    write_gguf(folder / "a", tensors, {"general.architecture": "toy", "x": [1, 2, 3], "n": 7}, 64)
    write_gguf(
        folder / "b", {"a.weight": (W, "Q4_0"), "b.weight": W[:, :4]}, {"title": "small", "words": ["in", "out"]}
    )
    return [(folder / name).read_bytes() for name in "ab"]


def hardened(data: bytes, machine: Machine) -> dict[str, bytes]:
    return read_naive_gguf(data, machine, Parts(**PARTS))


@pytest.mark.parametrize("reader", [read_naive_gguf, hardened])
def test_honest_gguf_files_are_read_as_the_library_reads_them(reader, valid, tmp_path):
    for data in valid:
        (tmp_path / "f").write_bytes(data)
        with read_gguf(tmp_path / "f") as file:
            assert reader(data, Machine()) == {name: file.raw(name).tobytes() for name in file.tensors}


def test_an_answer_that_comes_after_the_time_is_up_is_not_taken_for_the_next_one(valid, monkeypatch):
    process = limited._Process()
    monkeypatch.setattr(limited, "_process", process)
    first, second = run_limited(valid[0]), run_limited(valid[1])
    late = process.child.stdout

    class TimeIsUp:
        def readline(self):
            raise TooSlow

        def close(self):
            late.close()

    process.child.stdout = TimeIsUp()
    with pytest.raises(TooSlow):
        run_limited(valid[0])
    assert run_limited(valid[1]) == second != first
    process.close()


# ---- files that harm the naive reader --------------------------------------------------------------------------------

COUNT_THAT_WRAPS = 2**64 // 88 + 1
ATTACKS = {
    "four gigabytes": (gguf_file(n_tensors=48_806_445), "huge allocation"),
    "a count that wraps": (gguf_file(n_tensors=COUNT_THAT_WRAPS), "write past a buffer"),
    "many dims": (gguf_file(info(b"w", (1,) * 200), data=bytes(4)), "write past a buffer"),
    "dims that wrap to 0": (gguf_file(info(b"w", (1, 2**62)), data=bytes(64)), "write past a buffer"),
    "an offset outside": (gguf_file(info(b"w", (4,), 1000), data=bytes(16)), "read past the file"),
    "a size outside": (gguf_file(info(b"w", (4,), 4), data=bytes(16)), "read past the file"),
    "the same bytes": (gguf_file(info(b"a", (4,)), info(b"b", (4,)), data=bytes(16)), "shared bytes"),
    "the same name": (gguf_file(info(b"a", (2,)), info(b"a", (2,), 8), data=bytes(16)), "lost tensor"),
    "out of the folder": (gguf_file(info(b"../../.profile", (1,)), data=bytes(4)), "file outside the folder"),
    "a terminal's commands": (gguf_file(info(b"\x1b[2J", (1,)), data=bytes(4)), "control characters"),
    "tensors of nothing": (gguf_file(*[info(b"w", (0,))] * 1000), "endless loop"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_harms_the_naive_reader_and_the_library_refuses_it_or_means_no_harm(name, tmp_path):
    data, kind = ATTACKS[name]
    machine = Machine(most_rounds=900 if kind == "endless loop" else ROUNDS)
    with pytest.raises(Harm) as caught:
        read_naive_gguf(data, machine)
    assert caught.value.kind == kind
    (tmp_path / "f").write_bytes(data)
    if kind in ("file outside the folder", "control characters"):  # a name is only a name to who makes no file of it
        with read_gguf(tmp_path / "f") as file:
            assert len(file.tensors) == 1
    else:
        with pytest.raises(FormatError):
            read_gguf(tmp_path / "f")


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_by_the_hardened_reader(name):
    with pytest.raises(FormatError):
        hardened(ATTACKS[name][0], Machine())


def test_the_machine_only_keeps_a_list_of_what_it_was_asked_for():
    machine = Machine()
    tracemalloc.start()
    try:
        with pytest.raises(Harm, match="4,294,967,160 bytes asked for the table of tensors"):
            read_naive_gguf(ATTACKS["four gigabytes"][0], machine)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(ATTACKS["four gigabytes"][0]) == 32
    assert machine.requests == [(0, "the table of key-values"), (4_294_967_160, "the table of tensors")]
    assert peak < 100_000


def test_every_kind_of_path_out_of_the_folder_is_noticed():
    for name in ("../x", "/etc/passwd", "a/../../x", "..\\x", "C:x", "..", "a/../.."):
        with pytest.raises(Harm, match="file outside the folder"):
            Machine().create(name)
    for name in ("x", "a/b", "a/../x", "..x", "a..b"):
        Machine().create(name)


# ---- the process -----------------------------------------------------------------------------------------------------


def test_an_honest_file_does_no_harm_and_its_tensors_become_files():
    ran = run_limited(gguf_file(info(b"a", (4, 2)), info(b"b", (5,), 32), data=bytes(52)))
    assert (ran.harm, ran.refused, ran.shared) == ("", "", 0)
    assert ran.asked == {"a": 32, "b": 20}
    assert ran.files == [f"{EXPORT}/a.bin", f"{EXPORT}/b.bin"]


@pytest.mark.parametrize("name", ["four gigabytes", "a count that wraps", "dims that wrap to 0", "out of the folder"])
def test_the_process_sees_the_harm_that_the_machine_sees(name):
    data, kind = ATTACKS[name]
    assert run_limited(data).harm == kind


def test_overlapping_tensors_are_accepted_and_their_common_bytes_are_counted():
    ran = run_limited(gguf_file(info(b"a", (16,)), info(b"b", (16,), 56), data=bytes(120)))
    assert (ran.harm, ran.shared, ran.tensors) == ("shared bytes", 8, ["a", "b"])
    assert ran.offsets == {"a": 0, "b": 56}


def test_a_name_is_followed_out_of_the_folder_but_not_out_of_the_sandbox(tmp_path):
    assert run_limited(gguf_file(info(b"../../x", (1,)), data=bytes(4))).files == ["home/you/x.bin"]
    for name in (f"{tmp_path}/x", "../../../../../x", "..\\..\\..\\..\\..\\x", "C:x"):
        ran = run_limited(gguf_file(info(name.encode(), (1,)), data=bytes(4)))
        assert (ran.harm, ran.files) == ("file outside the sandbox", []), name
    assert list(tmp_path.iterdir()) == []
    backslashes = run_limited(gguf_file(info(b"..\\x", (1,)), data=bytes(4))).files
    assert backslashes == ["home/you/models/x.bin" if os.sep == "\\" else "home/you/models/export/..\\x.bin"]


def test_a_file_that_ends_the_process_is_a_crash_and_the_next_file_gets_a_new_process(monkeypatch):
    process = limited._Process()
    first = process._started()
    first.kill()
    first.wait()
    good = gguf_file(info(b"a", (1,)), data=bytes(4))
    assert process.read(good).tensors == ["a"]
    monkeypatch.setattr(limited, "SECONDS", 0.0)  # killed before it can answer
    assert process.read(gguf_file(*[info(b"w", (0,))] * 4000)).harm == "crash"
    monkeypatch.undo()
    assert process.read(good).tensors == ["a"]
    process.close()


def test_no_path_of_the_machine_is_in_a_crash_s_sentence():
    ran = run_limited(gguf_file(info(b"n" * 300, (1,)), data=bytes(4)))
    assert ran.harm == "crash"
    assert "/tmp" not in ran.sentence and EXPORT not in ran.sentence


# ---- what is given ---------------------------------------------------------------------------------------------------


def text(length: int, data: bytes = b"") -> bytes:
    return struct.pack("<Q", length) + data


@pytest.mark.parametrize(
    ("data", "at", "found"),
    [
        (text(4, b"gpt2"), 0, ("gpt2", 12)),
        (b"xx" + text(3, "aé".encode()), 2, ("aé", 13)),
        (text(0), 0, ("", 8)),
        (text(2, b"abcd"), 0, ("ab", 10)),
    ],
)
def test_a_string_that_is_there_is_read(data, at, found):
    assert given.safe_string(data, at) == found


@pytest.mark.parametrize(
    ("data", "at"),
    [(b"", 0), (bytes(7), 0), (text(3, b"ab"), 0), (text(8, b"ab"), 0), (b"xx" + text(3, b"ab"), 2)]
    + [(text(n, b"abcd"), 0) for n in (2**64 - 1, 2**63 + 4, 2**32)]
    + [(text(2, b"a\xff"), 0), (text(1, "é".encode()), 0)],
)
def test_a_string_that_is_not_there_or_no_text_is_refused(data, at):
    with pytest.raises(FormatError):
        given.safe_string(data, at)


def dims(n_dims: int, *lengths: int) -> bytes:
    return struct.pack(f"<I{len(lengths)}Q", n_dims, *lengths)


@pytest.mark.parametrize(
    ("data", "at", "found"),
    [
        (dims(2, 64, 3), 0, ((64, 3), 20)),
        (b"xy" + dims(1, 5) + b"more", 2, ((5,), 14)),
        (dims(0), 0, ((), 4)),
        (dims(4, 1, 2, 3, 2**63), 0, ((1, 2, 3, 2**63), 36)),
    ],
)
def test_dims_that_are_there_are_read(data, at, found):
    assert given.read_dims(data, at) == found


@pytest.mark.parametrize(
    ("data", "at"),
    [
        *((dims(5, 1, 2, 3, 4, 5), 0), (dims(200, *range(200)), 0), (dims(260, *range(260)), 0), (dims(2**32 - 1), 0)),
        *((dims(2, 64), 0), (dims(1, 5)[:-1], 0), (b"\x01\0", 0), (b"", 0), (b"xxxx" + dims(1), 4)),
    ],
)
def test_more_than_four_dims_and_dims_that_are_not_there_are_refused(data, at):
    with pytest.raises(FormatError):
        given.read_dims(data, at)


@pytest.mark.parametrize(
    ("position", "alignment", "size", "start"),
    [(33, 32, 100, 64), (64, 32, 100, 64), (5, 1, 5, 5), (24, 8, 24, 24), (97, 32, 128, 128), (40, 64, 64, 64)],
)
def test_the_data_begin_at_the_next_multiple_of_the_alignment(position, alignment, size, start):
    assert given.data_start(position, alignment, size) == start


@pytest.mark.parametrize(
    ("position", "alignment", "size"),
    [(64, 0, 100), (33, 24, 100), (10, 3, 100), (97, 32, 127), (33, 2**31, 100), (40, 48, 1000), (101, 1, 100)],
)
def test_an_alignment_that_is_no_power_of_two_and_data_after_the_end_are_refused(position, alignment, size):
    with pytest.raises(FormatError):
        given.data_start(position, alignment, size)


# ---- the three test files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wrapping_file", "overlapping_file", "climbing_file"])
def test_the_students_files_are_judged_by_what_the_reader_did_and_the_hardened_reader_refuses_them(name):
    spec = exercises()[name]
    for case in spec.all_cases():
        for make in (spec.reference, spec.oracle):  # two ways to make such a file
            data = make(*case)
            assert run_limited(data).harm
            with pytest.raises(FormatError):
                hardened(data, Machine())


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("wrapping_file", lambda n_bytes: gguf_file(info(b"w", (n_bytes // 4,)), data=bytes(n_bytes))),
        ("wrapping_file", lambda n_bytes: gguf_file(n_tensors=COUNT_THAT_WRAPS)),
        ("overlapping_file", lambda shared: gguf_file(info(b"a", (16,)), info(b"b", (16,), 64), data=bytes(128))),
        ("climbing_file", lambda name, levels: gguf_file(info(name.encode(), (1,)), data=bytes(4))),
        ("climbing_file", lambda name, levels: gguf_file(info(b"..\\" * levels + name.encode(), (1,)), data=bytes(4))),
        ("climbing_file", lambda name, levels: b"not a file"),
    ],
)
def test_a_file_that_does_another_harm_or_none_does_not_pass(name, function):
    assert evaluate(exercises()[name], function, search=False).status == "failed"


# ---- hardening -------------------------------------------------------------------------------------------------------


def test_the_fuzzer_finds_what_is_wrong_with_the_naive_reader_and_nothing_in_the_hardened_one(valid):
    naive, fixed = fuzz(read_naive_gguf, valid, 2500), fuzz(hardened, valid, 2500)
    assert {"huge allocation", "read past the file", "write past a buffer", "shared bytes"} <= naive.harms.keys()
    assert {"file outside the folder", "control characters", "crash: ZeroDivisionError"} <= naive.harms.keys()
    assert fixed.harms == {}
    assert fixed.read > 120
    assert "no harm found" in repr(fixed)


@pytest.mark.parametrize("left_out", PARTS)
def test_every_part_is_needed(left_out, valid):
    parts = Parts(**{name: part for name, part in PARTS.items() if name != left_out})
    assert any(fuzz(lambda data, machine: read_naive_gguf(data, machine, parts), valid, n).harms for n in (500, 6000))


def test_what_the_library_and_the_hardened_reader_both_read_they_read_alike(valid, tmp_path):
    path, both = tmp_path / "f", 0
    for seed in range(tried(800, 2000)):
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
    assert both > 40


def test_a_damaged_file_is_the_same_each_time(valid):
    known = places(valid[0])
    assert [damaged(valid[0], *known, seed) for seed in range(50)] == [damaged(valid[0], *known, s) for s in range(50)]


def test_the_figure_says_how_many_files_did_harm(valid):
    stages = {"naive": fuzz(read_naive_gguf, valid, 200), "hardened": fuzz(hardened, valid, 200)}
    assert "0 of 'hardened'" in hardening(stages).alt
    guessed = [line.get_xdata()[0] for line in hardening(stages, guess=70).axes[0].get_lines()]
    assert guessed == [70]
    assert not hardening(stages).axes[0].get_lines()


def test_nothing_outside_the_lab_imports_the_naive_reader():
    package = Path(miniquant.__file__).parent
    lab = package / "lessons" / "hostile_files"
    inside = [path for path in lab.glob("*.py") if "naive" in path.read_text()]
    assert len(inside) > 2
    for path in package.rglob("*.py"):
        if path.parent != lab and "hostile_files" in (source := path.read_text()):
            names = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
            assert not [node for node in names if "hostile_files" in (node.module or "")], path
