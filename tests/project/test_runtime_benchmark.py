"""benchmarks/bench_runtime.py runs and writes what it should. How fast anything is, no test asserts."""

import json
import subprocess
import sys

from places import ROOT

BENCH = ROOT / "benchmarks" / "bench_runtime.py"


def test_it_measures_pairs_of_ours_and_llama_cpp(tmp_path):
    small = ["--megabytes", "10", "--types", "Q4_K_M", "--threads", "2", "--rounds", "1", "--prompt", "5", "--n", "3"]
    command = [sys.executable, BENCH, *small, "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "runtime.json").read_text())
    assert found["prompt"] == 5 and found["generated"] == 3 and str(tmp_path) not in json.dumps(found)
    ((title, pairs),) = found["models"].items()
    assert title.startswith("Q4_K_M, ") and title.endswith(" MB, 2 threads") and title in done.stdout
    assert list(pairs) == ["prompt", "generation"]
    for row in pairs.values():
        assert 0 < row["smallest"] <= row["ratio"] and row["ours"] > 0 < row["llama.cpp"]
