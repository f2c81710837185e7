"""benchmarks/bench_bump.py runs and writes what it should. How fast anything is, no test asserts."""

import json

import bench_bump
import pytest
import torch

from miniquant.runtime import kernels


@pytest.fixture
def ran(tmp_path, monkeypatch, capsys):
    """The folder that it wrote to, and what it said."""
    monkeypatch.setattr(kernels, "THREADS", kernels.THREADS)  # which it sets, and torch's
    try:
        bench_bump.main(["--size", "256", "--repetitions", "2", "--out", str(tmp_path)])
    finally:
        torch.set_num_threads(1)
    return tmp_path, capsys.readouterr().out


def test_it_measures_blocks_beside_torch_and_memory_and_the_committed_results_are_its_own(ran):
    out, said = ran
    found, committed = (json.loads((folder / "bump.json").read_text()) for folder in (out, bench_bump.HERE))
    assert found["matrix"] == "256x256" and committed["matrix"] == "4096x4096"
    assert found.keys() == committed.keys()
    for threads in ("1 thread", "2 threads"):
        assert found[threads].keys() == committed[threads].keys()
        products = {f"{kind.name}, {what}" for kind in kernels.kernels() for what in ("blocks", "16 tokens")}
        beside = {"float32, torch.mv", "float32, 16 tokens, torch.mm", "reading float32 (sum)", "np.copyto"}
        assert found[threads].keys() == products | beside
        assert {"Q5_0, blocks", "Q5_1, 16 tokens"} < products
        for rows in (found[threads], committed[threads]):
            assert all(0 < row["best, ms"] <= row["median, ms"] for row in rows.values())
        assert f"256x256 matrix times vector or prompt, {threads}" in said
    assert str(out) not in json.dumps(found)


def test_the_committed_products_from_blocks_beat_float32_with_two_threads():
    rows = json.loads((bench_bump.HERE / "bump.json").read_text())["2 threads"]
    for kind in ("Q4_K", "Q8_0"):
        assert rows[f"{kind}, blocks"]["median, ms"] < rows["float32, torch.mv"]["median, ms"]
