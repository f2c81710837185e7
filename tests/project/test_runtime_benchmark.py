"""benchmarks/bench_runtime.py runs and writes what it should. How fast anything is, no test asserts."""

import json

import bench_runtime

from miniquant.runtime import kernels


def test_it_measures_pairs_of_ours_and_llama_cpp(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(kernels, "THREADS", kernels.THREADS)  # which it sets
    small = ["--megabytes", "10", "--types", "Q4_K_M", "--threads", "2", "--rounds", "1", "--prompt", "5", "--n", "3"]
    bench_runtime.main([*small, "--out", str(tmp_path)])
    found = json.loads((tmp_path / "runtime.json").read_text())
    assert found["prompt"] == 5 and found["generated"] == 3 and str(tmp_path) not in json.dumps(found)
    ((title, pairs),) = found["models"].items()
    assert title.startswith("Q4_K_M, ") and title.endswith(" MB, 2 threads") and title in capsys.readouterr().out
    assert list(pairs) == ["prompt", "generation"]
    for row in pairs.values():
        assert 0 < row["smallest"] <= row["ratio"] and row["ours"] > 0 < row["llama.cpp"]
