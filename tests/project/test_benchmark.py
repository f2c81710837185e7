"""benchmarks/bench.py runs and writes what it should. How fast anything is, no test asserts."""

import json
import os
import subprocess
import sys

import pytest
from places import ROOT

from miniquant import DType

BENCH = ROOT / "benchmarks" / "bench.py"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    out = tmp_path_factory.mktemp("bench")
    command = [sys.executable, BENCH, "--size", "512", "--repetitions", "2", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "agg"}, timeout=240)
    assert done.returncode == 0, done.stderr
    return out, done


@pytest.fixture(scope="module")
def results(ran):
    return json.loads((ran[0] / "results.json").read_text())


def test_every_codec_is_measured_beside_the_official_ones_and_a_plain_copy(results):
    names = [f"{verb} {dtype.name}" for verb in ("encode", "decode") for dtype in DType]
    names += [f"{verb} {kind}, gguf package" for verb in ("encode", "decode") for kind in ("Q8_0", "Q4_0")]
    for part in ("512x512", "MiniGPT"):
        assert set(results[part]) == {*names, "np.copyto"}
        assert all(row["best"] >= row["median"] > 0 for row in results[part].values())  # rates: the best is the largest


def test_opening_and_reading_are_measured_beside_safetensors(results):
    assert len(results["files"]) == 7
    assert sum("safetensors" in name for name in results["files"]) == 3
    assert all(0 < row["best"] <= row["median"] for row in results["files"].values())  # times: the best is the smallest


def test_writing_takes_less_than_three_times_the_largest_tensor_and_opening_next_to_nothing(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH.parent))
    import bench

    found = bench.memory(2048, tmp_path)  # tensors of 16 MiB
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
    committed = json.loads((BENCH.parent / "results.json").read_text())
    assert {key for key in committed if "x" in key} == {"4096x4096"}
    assert set(committed) - {"4096x4096"} == set(results) - {"512x512"}
    assert set(committed["4096x4096"]) == set(results["512x512"])
    assert all(row["writing"] <= 3 for row in committed["memory"].values())
