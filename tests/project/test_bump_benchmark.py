"""benchmarks/bench_bump.py runs and writes what it should. How fast anything is, no test asserts."""

import json
import os
import subprocess
import sys

from places import ROOT

from miniquant.runtime.kernels import kernels

BENCH = ROOT / "benchmarks" / "bench_bump.py"


def test_it_measures_blocks_beside_torch_and_memory_and_the_committed_results_are_its_own(tmp_path):
    command = [sys.executable, BENCH, "--size", "256", "--repetitions", "2", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "agg"}, timeout=240)
    assert done.returncode == 0, done.stderr
    found, committed = (json.loads((f / "bump.json").read_text()) for f in (tmp_path, BENCH.parent))
    assert found["matrix"] == "256x256" and committed["matrix"] == "4096x4096"
    assert found.keys() == committed.keys()
    for threads in ("1 thread", "2 threads"):
        assert found[threads].keys() == committed[threads].keys()
        products = {f"{kind.name}, {what}" for kind in kernels() for what in ("blocks", "16 tokens")}
        beside = {"float32, torch.mv", "float32, 16 tokens, torch.mm", "reading float32 (sum)", "np.copyto"}
        assert found[threads].keys() == products | beside
        assert {"Q5_0, blocks", "Q5_1, 16 tokens"} < products
        for rows in (found[threads], committed[threads]):
            assert all(0 < row["best, ms"] <= row["median, ms"] for row in rows.values())
        assert f"256x256 matrix times vector or prompt, {threads}" in done.stdout
    assert str(tmp_path) not in json.dumps(found)


def test_the_committed_products_from_blocks_beat_float32_with_two_threads():
    rows = json.loads((BENCH.parent / "bump.json").read_text())["2 threads"]
    for kind in ("Q4_K", "Q8_0"):
        assert rows[f"{kind}, blocks"]["median, ms"] < rows["float32, torch.mv"]["median, ms"]
