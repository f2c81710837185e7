"""benchmarks/bench.py runs and writes what it should. How fast anything is, no test asserts."""

import contextlib
import io
import json
import runpy
import sys
from types import SimpleNamespace

import bench
import pytest

from miniquant import DType


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folder that it wrote to, and what it said; the memory is that of tensors of 16 MiB."""
    out, said, shown, memory = tmp_path_factory.mktemp("bench"), io.StringIO(), io.StringIO(), bench.memory
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said), contextlib.redirect_stderr(shown):
        patch.setattr(bench, "memory", lambda size, folder: memory(2048, folder))
        bench.main(["--size", "256", "--repetitions", "2", "--out", str(out)])
    return out, SimpleNamespace(stdout=said.getvalue(), stderr=shown.getvalue())


@pytest.fixture(scope="module")
def results(ran):
    return json.loads((ran[0] / "results.json").read_text())


def test_every_codec_is_measured_beside_the_official_ones_and_a_plain_copy(results):
    names = [f"{verb} {dtype.name}" for verb in ("encode", "decode") for dtype in DType]
    names += [f"{verb} {kind}, gguf package" for verb in ("encode", "decode") for kind in ("Q8_0", "Q4_0")]
    for part in ("256x256", "MiniGPT"):
        assert set(results[part]) == {*names, "np.copyto"}
        assert all(row["best"] >= row["median"] > 0 for row in results[part].values())  # rates: the best is the largest


def test_opening_and_reading_are_measured_beside_safetensors(results):
    assert len(results["files"]) == 7
    assert sum("safetensors" in name for name in results["files"]) == 3
    assert all(0 < row["best"] <= row["median"] for row in results["files"].values())  # times: the best is the smallest


def test_writing_takes_less_than_three_times_the_largest_tensor_and_opening_next_to_nothing(results):
    found = results["memory"]
    assert set(found) == {dtype.name for dtype in DType}
    for name, row in found.items():
        assert 0 < row["writing"] <= 3, name
        assert row["opening"] < 2**20, name


def test_results_say_which_versions_and_which_kind_of_machine(results, ran):
    assert set(results["versions"]) == {"python", "numpy", "gguf", "safetensors", "miniquant"}
    assert set(results["hardware"]) == {"cpu", "cores", "system"}
    assert results["repetitions"] == 2 and str(ran[0]) not in json.dumps(results)


def test_the_table_is_there_and_progress_was_shown(ran):
    _, done = ran
    assert "encode Q4_PER_GROUP_64" in done.stdout and "np.copyto" in done.stdout and "median" in done.stdout
    assert "MiniGPT" in done.stderr and "100%" in done.stderr


def test_the_committed_results_come_from_this_benchmark_at_full_size(results):
    committed = json.loads((bench.HERE / "results.json").read_text())
    assert {key for key in committed if "x" in key} == {"4096x4096"}
    assert set(committed) - {"4096x4096"} == set(results) - {"256x256"}
    assert set(committed["4096x4096"]) == set(results["256x256"])
    assert all(row["writing"] <= 3 for row in committed["memory"].values())


def test_the_script_starts_a_process_of_its_own_in_which_freed_memory_is_kept(monkeypatch):
    calls = []
    monkeypatch.setattr(bench.subprocess, "call", lambda command, env: calls.append((command, env)) or 7)
    monkeypatch.delenv("MALLOC_MMAP_MAX_", raising=False)
    monkeypatch.setattr(sys, "argv", [bench.__file__, "--size", "64"])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(bench.__file__, run_name="__main__")
    [(command, environment)] = calls
    assert end.value.code == 7 and command == [sys.executable, bench.__file__, "--size", "64"]
    assert environment.items() >= bench.SURROUNDINGS.items()
