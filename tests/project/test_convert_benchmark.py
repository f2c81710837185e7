"""benchmarks/bench_convert.py runs and writes what it should. How fast anything is, no test asserts."""

import json

import bench_convert


def test_it_measures_a_folder_s_conversion_beside_its_copy_and_the_memory(tmp_path):
    small = ["--megabytes", "20", "--types", "q8_0", "--rounds", "1", "--out", str(tmp_path)]
    bench_convert.main(small)
    found = json.loads((tmp_path / "convert.json").read_text())
    assert found["types"]["q8_0"]["copy, s"] > 0 < found["types"]["q8_0"]["convert, s"]
    assert found["types"]["q8_0"]["of the largest tensor"] <= 3
