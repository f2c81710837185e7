"""Rows become blocks in chunks and threads, whatever the type: no byte depends on how they are divided."""

from __future__ import annotations

import numpy as np
import pytest

from miniquant.core.errors import QuantizationError
from miniquant.formats.gguf import compiled
from miniquant.formats.gguf.codecs import rows

W = np.random.default_rng(0).standard_normal((7, 512)).astype(np.float32)
COUNTS = np.arange(512, dtype=np.float32)


@pytest.mark.parametrize("switch", ["0", "1"])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["F16", "Q8_0", "Q4_0"])
def test_no_byte_depends_on_chunks_or_threads(dtype, threads, switch, monkeypatch):
    monkeypatch.setenv(compiled.SWITCH, "0")
    raw, weighed = rows.encode(W, dtype), rows.encode(W, dtype, COUNTS)
    back = rows.decode(raw, dtype)
    assert np.array_equal(rows.encode(W.reshape(1, 7, 512), dtype, COUNTS), weighed[None])
    monkeypatch.setenv(compiled.SWITCH, switch)
    for name, value in {"CHUNK": 128, "LARGE": 2, "THREADS": threads, "PARALLEL_MIN": W.size - 1}.items():
        monkeypatch.setattr(rows, name, value)
    started = []
    pool = rows.ThreadPoolExecutor
    monkeypatch.setattr(rows, "ThreadPoolExecutor", lambda count: started.append(count) or pool(count))
    assert np.array_equal(rows.encode(W, dtype), raw)
    assert np.array_equal(rows.encode(W, dtype, COUNTS), weighed)
    assert np.array_equal(rows.decode(raw, dtype), back)
    assert started == [threads - 1] * 3 * (threads > 1)
    monkeypatch.setattr(rows, "PARALLEL_MIN", W.size)
    assert np.array_equal(rows.encode(W, dtype), raw) and len(started) == 3 * (threads > 1)


@pytest.mark.parametrize("part", [0, 1])
def test_an_error_of_any_thread_comes_out(part, monkeypatch):
    def broken(w, out, scratch):
        if (w[0, 0] == W[0, 0]) == (part == 0):
            raise MemoryError("no memory")

    monkeypatch.setenv(compiled.SWITCH, "0")
    monkeypatch.setattr(rows.codec_of("Q8_0"), "encode", broken, raising=False)
    for name, value in {"CHUNK": 512, "THREADS": 2, "PARALLEL_MIN": 0}.items():
        monkeypatch.setattr(rows, name, value)
    with pytest.raises(MemoryError, match="no memory"):
        rows.encode(W, "Q8_0")


def test_an_importance_is_finite_and_not_negative_and_zeros_are_allowed():
    rows.encode(W, "Q4_0", COUNTS)
    for value, said in ((-1, "-1"), (np.nan, "nan"), (np.inf, "inf")):
        wrong = np.where(COUNTS == 9, value, COUNTS)
        with pytest.raises(QuantizationError, match=f"^an importance is a finite number from 0 on, found {said}$"):
            rows.encode(W, "Q4_0", wrong)
    for wrong in (COUNTS[:256], np.ones((7, 512)), np.float32(1)):
        with pytest.raises(QuantizationError, match=r"^rows of 512 weights need an importance of each column, found "):
            rows.encode(W, "Q4_0", wrong)
