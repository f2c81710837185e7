"""benchmarks/bench_gguf.py runs a subset of its rows. How fast anything is, no test asserts."""

import bench_gguf


def test_it_measures_the_types_that_are_named_and_writes_nothing(tmp_path, capsys):
    small = ["--size", "256", "--types", "Q8_0", "IQ3_S", "NVFP4", "--repetitions", "1", "--out", str(tmp_path)]
    bench_gguf.main(small)
    title, head, *rows = capsys.readouterr().out.strip().splitlines()
    assert title == "256x256: MB/s of float32, best of 1" and not list(tmp_path.iterdir())
    columns = ["numpy", "compiled", "two threads", "ggml's C", "official", "copy", "times C", "times one"]
    assert head.split() == " ".join(columns).split()
    every = ("encode", "encode again", "decode", "decode again")
    kinds = [
        f"{what} {kind}" for kind in ("Q8_0", "IQ3_S", "NVFP4") for what in every if kind != "IQ3_S" or "de" in what[:2]
    ]
    width = max(map(len, kinds))
    assert [row[:width].rstrip() for row in rows] == kinds
    for row in rows:
        cells = [row[at : at + 12].strip() for at in range(width, width + 96, 12)]
        without = [column for column, cell in zip(columns, cells, strict=True) if not cell]
        assert without in ([], ["official"]) and all(float(c.replace(",", "")) > 0 for c in cells if c)
