"""The fuzzer of fuzz/: repeatable, within its limits, and able to find what is wrong with a reader."""

from __future__ import annotations

import functools
import gc
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from systems import posix
from thorough import tried

from fuzz import __main__ as command
from fuzz import bump, probe, readers, report, sources
from fuzz.mutate import INJURIES, MOST, mutated
from fuzz.readers import READERS, Reader
from miniquant.core.errors import FormatError
from miniquant.core.reading import MappedFile
from miniquant.formats.fields import fields

every_reader = pytest.mark.parametrize("name", READERS)
ROOT = Path(__file__).parents[2]
LIMITED = Path("/proc/self/status").exists()  # memory is limited and measured on Linux


@functools.cache
def seeds_of(name: str) -> list:
    """The valid files of a reader, made once."""
    return READERS[name].seeds()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "damaged"


# ---- the files -------------------------------------------------------------------------------------------------------


@every_reader
def test_the_valid_files_are_read_and_their_numbers_and_entries_lie_inside(name, path):
    for seed in seeds_of(name):
        path.write_bytes(seed.data)
        READERS[name].read(str(path))  # what is imported or computed once counts for no file
        assert probe.outcome(READERS[name].read, path, seed.data) == ("", "")
        assert all(start >= 0 and start + width <= len(seed.data) for start, width in seed.numbers)
        assert all(0 <= start < end <= len(seed.data) for both in seed.entries.values() for start, end in both)
        for (start, width), entries in seed.entries.items():
            assert int.from_bytes(seed.data[start : start + width], "little") == len(entries)


@every_reader
def test_a_damaged_file_is_the_same_each_time_and_its_neighbours_are_others(name):
    files = [probe.file_number(name, 7, number, seeds_of(name)) for number in range(100)]
    assert files[:2] == [probe.file_number(name, 7, number) for number in range(2)]
    assert files[:10] != [probe.file_number(name, 8, number, seeds_of(name)) for number in range(10)]
    assert len(set(files)) > 75
    assert max(map(len, files)) <= MOST


def test_every_injury_changes_a_file_of_each_kind():
    for name in READERS:
        seeds = seeds_of(name)
        seed = max(seeds, key=lambda seed: len(seed.numbers))
        for injure in set(INJURIES):
            changed = 0
            for number in range(30):
                data = bytearray(seed.data)
                injure(random.Random(number), data, seed, seeds)
                changed += bytes(data) != seed.data
            assert changed >= 5, (name, injure.__name__)


def test_a_repair_is_applied_to_most_files_and_not_to_all():
    def repair(data: bytearray) -> None:
        data[-4:] = b"done"

    files = [mutated(random.Random(number), seeds_of("gguf"), repair) for number in range(300)]
    repaired = sum(file.endswith(b"done") for file in files)
    assert 240 < repaired < 300


# ---- the readers hold ------------------------------------------------------------------------------------------------


@every_reader
def test_hundreds_of_damaged_files_are_read_or_refused_and_nothing_else(name, path):
    count = tried(300, 1500)
    tally = probe.run(name, 0, 0, count, path)
    assert tally.findings == []
    assert tally.accepted + tally.refused == count
    assert tally.accepted > count / 20
    assert tally.worst_memory < probe.MEMORY


@given(st.integers(0, 2**63), st.sampled_from(list(READERS)))
@settings(max_examples=tried(25, 100))
def test_whatever_the_number_of_a_file_it_is_read_or_refused(path, number, name):
    data = probe.file_number(name, number, 0, seeds_of(name))
    assert probe.outcome(READERS[name].read, path, data)[0] == ""


# ---- a reader that does not hold is found ----------------------------------------------------------------------------


def unchecked(*_: object) -> None:
    """What a check is when somebody forgot it."""


@pytest.mark.parametrize("name", ["gguf-lite", "gguf"])
@pytest.mark.parametrize("check", ["_check_places", "_need"])
def test_a_check_that_somebody_forgot_is_found_and_the_file_can_be_made_again(name, check, path, monkeypatch):
    monkeypatch.setattr(MappedFile, check, unchecked)
    number, problem = probe.run(name, 0, 0, 3000, path).findings[0]
    assert "Error" in problem or "error" in problem
    assert probe.outcome(READERS[name].read, path, probe.file_number(name, 0, number))[0] == problem


def reading(monkeypatch, read) -> None:
    monkeypatch.setitem(READERS, "toy", Reader(read, lambda: seeds_of("gguf")[2:3], ()))


def test_a_reader_that_never_ends_is_found(path, monkeypatch):
    def read(path: str) -> None:
        while Path(path).stat().st_size % 2:
            pass

    monkeypatch.setattr(probe, "SECONDS", 0.05)
    monkeypatch.setattr(probe, "MOST_FINDINGS", 1)
    reading(monkeypatch, read)
    assert "TooSlow" in probe.run("toy", 0, 0, 1000, path).findings[0][1]


def test_a_reader_that_takes_more_memory_than_its_limit_is_found(path, monkeypatch):
    sizes = []

    def read(path: str) -> None:
        first = Path(path).read_bytes()[8:9]
        sizes.append(first)
        np.empty(1 << 28 if first == b"\x02" else 1 << 10, np.uint8)

    reading(monkeypatch, read)
    tally = probe.run("toy", 0, 0, 3000, path)
    assert ["MemoryError" in problem for _, problem in tally.findings] == [True] * 5 * LIMITED
    assert len(set(sizes)) > 2


def test_the_rise_of_memory_is_measured(path):
    """In a process of its own: one that has run other tests gives memory back while this one measures."""
    code = """
import sys
from pathlib import Path
import numpy as np
from fuzz import probe
from fuzz.readers import READERS, Reader

READERS["toy"] = Reader(lambda path: np.ones(40 << 20, np.uint8).sum(), READERS["gguf"].seeds, ())
print(probe.run("toy", 0, 0, 2, Path(sys.argv[1])).worst_memory >> 20)
"""
    found = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, cwd=ROOT)
    assert int(found.stdout) in (range(20, 64) if LIMITED else [0]), found


def test_an_error_at_a_byte_outside_the_file_is_found(path):
    def read(_: str) -> None:
        raise FormatError("made up", field="header", offset=99)

    assert "FormatError at byte 99 of 4" in probe.outcome(read, path, b"1234")[0]


def kill(name: str, seed: int, start: int, count: int, path: Path) -> None:
    """A reader that brings its process down on the fourth file."""
    path.write_bytes(probe.file_number(name, seed, start + 3))
    time.sleep(0)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def copied(monkeypatch):
    """The process of its own is a copy of this one, which is made at once; the test of records starts one."""
    fork = SimpleNamespace(get_context=lambda _: multiprocessing.get_context("fork"))
    if "fork" in multiprocessing.get_all_start_methods():
        monkeypatch.setattr(command, "multiprocessing", fork)


@posix
def test_a_file_that_kills_the_process_is_found_by_its_number(copied, path, monkeypatch):
    monkeypatch.setattr(command, "run", kill)
    [(number, problem)] = command.chunk("gguf-lite", 0, 40, 10, path).findings
    assert number == 43
    assert "the process died" in problem


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_counts_and_records(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    assert command.main(["--reader", "gguf-lite", "--files", "300", "--seed", "3", "--record"]) == 0
    assert "300 files" in capsys.readouterr().out
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["mutated"]["gguf-lite"]["files"] == 300
    assert found["mutated"]["gguf-lite"]["findings"] == []
    assert found["limits"] == {"seconds": 1.0, "memory": 64 << 20}


def test_without_atheris_the_files_are_damaged_without_its_guidance(copied, monkeypatch, capsys):
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    assert command.main(["--reader", "gguf", "--guided", "0.01"]) == 0
    assert "1000 files" in capsys.readouterr().out


def test_a_damaged_file_can_be_shown(capfdbinary):
    assert command.main(["--reader", "gguf", "--show", "5", "--seed", "2"]) == 0
    assert capfdbinary.readouterr().out == probe.file_number("gguf", 2, 5)


# ---- what was run ----------------------------------------------------------------------------------------------------


def test_the_page_on_security_says_what_was_recorded():
    results = json.loads(command.RESULTS.read_text("utf-8"))
    page = report.SECURITY.read_text("utf-8")
    assert page == report.rendered(page, results)


@every_reader
@pytest.mark.parametrize("kind", ["mutated", "guided"])
def test_what_was_recorded_is_of_today_s_sources(name, kind):
    """If not: ``python -m fuzz --record``, with ``--guided SECONDS`` too, then ``python -m fuzz.report``."""
    results = json.loads(command.RESULTS.read_text("utf-8"))
    assert results[kind][name]["source"] == sources.source_hash(*READERS[name].entries)


@every_reader
def test_the_modules_that_a_reader_runs_are_those_whose_hash_is_stored(name, path):
    """Whatever code of the library runs while valid and damaged files are read."""
    executed = set()

    def note(frame, event, _):
        if event == "call":
            executed.add(frame.f_code.co_filename)

    files = [seed.data for seed in seeds_of(name)] + [
        probe.file_number(name, 1, n, seeds_of(name)) for n in range(tried(50, 300))
    ]
    gc.collect()  # a generator of an earlier test that ends now would count as called
    sys.setprofile(note)
    try:
        for data in files:
            probe.outcome(READERS[name].read, path, data)
    finally:
        sys.setprofile(None)
    hashed = sources.sources(*READERS[name].entries)
    modules = {str(path): module for module, path in sources.MODULES.items() if module.partition(".")[0] != "lab"}
    ran = {modules[file] for file in executed & modules.keys()}
    assert READERS[name].entries[0] in ran
    assert ran <= {*hashed, ""}


def test_a_hash_changes_with_the_code_of_any_module_behind_a_reader_and_not_with_a_comment(tmp_path, monkeypatch):
    before = sources.source_hash("formats.gguf.read")
    known = sources.MODULES["formats.gguf.codecs.q6_k"]
    for more, same in (("\n# a comment\n", True), ("\nCHANGED = 1\n", False)):
        copy = tmp_path / "q6_k.py"
        copy.write_text(known.read_text("utf-8") + more, "utf-8")
        monkeypatch.setitem(sources.MODULES, "formats.gguf.codecs.q6_k", copy)
        assert (sources.source_hash("formats.gguf.read") == before) == same


def test_the_viewer_names_a_damaged_bump_file_s_tensors(path, monkeypatch):
    """Bump's fields are reached behind the checksums: the config.json beside the file is read, and names are given."""
    names = []

    def named(*given):
        found = fields(*given)
        names.extend(field.name for field in found)
        return found

    monkeypatch.setattr(readers, "fields", named)
    for seed in seeds_of("bump"):
        probe.outcome(READERS["viewer"].read, path, seed.data)
    assert any(name.startswith("tensor '") and name.endswith(": data") for name in names)
    data = bytearray(seeds_of("bump")[0].data)
    weights, _, config = bytes(data).partition(bump.BETWEEN)
    found = fields(weights, {"config.json": config})
    data[next(field.start for field in found if field.name.endswith(": data"))] ^= 1
    names.clear()
    bump.mend_if_bump(data)
    assert probe.outcome(READERS["viewer"].read, path, bytes(data)) == ("", "")
    assert any(name.endswith(": data") for name in names)


def test_many_files_were_read_by_each_reader_without_a_finding():
    results = json.loads(command.RESULTS.read_text("utf-8"))
    assert results["limits"] == {"seconds": probe.SECONDS, "memory": probe.MEMORY}
    for name, reader in READERS.items():
        found = results["mutated"][name]
        assert found["files"] >= 10_000
        assert found["files"] == found["accepted"] + found["refused"]
        assert bool(found["refused"]) == (reader.read is not readers.read_fields)  # the viewer refuses nothing
        assert found["findings"] == results["guided"][name]["findings"] == []
        assert found["worst_seconds"] < probe.SECONDS
        assert 0 <= found["worst_memory"] < probe.MEMORY
