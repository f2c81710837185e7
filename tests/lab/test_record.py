"""The progress record: nothing is lost when notebooks write at once, and no content of the file raises an error."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys

import pytest

from miniquant.lab import progress, record

PROCESSES, WRITES = 4, 25


def write(number, together):
    """What one of the processes does, once all of them are there."""
    together.wait()
    for each in range(WRITES):
        record.write(f"{number}_{each}", "passed")
        record.write("shared", "failed")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv("MINIQUANT_PROGRESS", str(path))
    return path


def test_four_notebooks_that_write_at_once_lose_no_entry():
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    together = context.Barrier(PROCESSES)
    writers = [context.Process(target=write, args=(number, together)) for number in range(PROCESSES)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    found = record.read()
    assert len(found) == PROCESSES * WRITES + 1
    assert found["shared"] == {"status": "failed", "checks": PROCESSES * WRITES}


def test_a_writer_that_is_killed_leaves_a_whole_record(place):
    record.write("before", "passed")
    dying = "import os, json\nfrom miniquant.lab import record\n"
    dying += "json.dumps = lambda *a, **k: os._exit(9)\nrecord.write('after', 'passed')"
    assert subprocess.run([sys.executable, "-c", dying]).returncode == 9
    assert set(json.loads(place.read_text())) == {"before"}
    record.write("later", "passed")  # the lock died with its owner
    assert set(record.read()) == {"before", "later"}


def test_a_record_is_replaced_and_never_written_in_place(place):
    record.write("one", "passed")
    held = place.open()
    record.write("two", "passed")
    assert set(json.load(held)) == {"one"}, "a reader saw the file change under it"


@pytest.mark.parametrize(
    "text",
    [
        '{"pack_int4": []}',
        '{"pack_int4": "passed"}',
        '{"pack_int4": null}',
        '{"pack_int4": {"status": 3, "checks": 1}}',
        '{"pack_int4": {"status": "passed", "checks": "many"}}',
        '{"pack_int4": {"status": "passed", "checks": 1e400}}',
        '{"pack_int4": {"status": "excellent", "checks": 1}}',
        "[]",
        "{ not json",
        "\ud800",
        "[" * 100_000,
    ],
)
def test_whatever_the_record_holds_it_can_be_read_shown_and_written(place, text):
    place.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert record.read() == {}
    assert "0 of" in repr(progress())
    record.write("pack_int4", "failed")
    assert record.read() == {"pack_int4": {"status": "failed", "checks": 1}}


def test_a_wrong_entry_costs_no_other(place):
    place.write_text('{"a": [], "b": {"status": "passed", "checks": 2}}')
    record.write("c", "failed")
    assert record.read() == {"b": {"status": "passed", "checks": 2}, "c": {"status": "failed", "checks": 1}}


def test_a_record_on_the_null_device_is_no_record_and_leaves_no_file(monkeypatch):
    monkeypatch.setenv("MINIQUANT_PROGRESS", os.devnull)
    before = set(os.listdir(os.path.dirname(os.devnull) or "."))
    record.write("pack_int4", "passed")
    assert record.read() == {}
    assert set(os.listdir(os.path.dirname(os.devnull) or ".")) == before


def test_a_folder_that_cannot_be_written_to_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIQUANT_PROGRESS", str(tmp_path / "missing" / "progress.json"))
    record.write("pack_int4", "passed")
    assert record.read() == {}
