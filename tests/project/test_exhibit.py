"""The live exhibit's JavaScript computes what the library computes, in Node or, without one, in Chromium."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from miniquant import pack_nibbles, quantize_per_group
from miniquant.quantization.symmetric import dequantize

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "book" / "_static" / "exhibit.js"


def cases() -> list[tuple[list[float], int, int]]:
    """(64 weights, bits, group size): every setting on weights of many sizes, ties and zeros included."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(0, size, 64) for size in (1e-9, 3e-7, 1e-4, 0.03, 1, 300, 15_000)]
    rows += [np.zeros(64), np.full(64, -0.25), np.arange(-32, 32) / 2, np.arange(64) * 2.0**-24]
    spiky = rng.normal(0, 0.03, 64)
    spiky[17] = 2.5
    ties = rng.integers(-14, 15, 64) / 2
    ties[::8] = 7  # a scale of exactly 1 in four bits, and halves
    rows += [spiky, ties, np.where(np.arange(64) < 16, 0, spiky)]
    rows += [rng.normal(0, 10.0 ** rng.uniform(-7, 4), 64) for _ in range(12)]
    return [(np.float32(row).tolist(), bits, size) for row in rows for bits in range(2, 9) for size in (8, 16, 32, 64)]


def in_javascript(given: list[tuple[list[float], int, int]], folder: Path) -> list[dict]:
    """What the script gives for each case."""
    data, call = json.dumps(given), "given.map(([w, bits, size]) => quantize(w, bits, size))"
    if node := shutil.which("node"):
        program = f"const {{ quantize }} = require({str(SCRIPT)!r}); const given = {data};"
        (folder / "run.js").write_text(f"{program}process.stdout.write(JSON.stringify({call}));")
        done = subprocess.run([node, folder / "run.js"], capture_output=True, encoding="utf-8", check=True)
        return json.loads(done.stdout)
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not browser:
        pytest.skip("neither Node nor Chromium is here to run JavaScript")
    page = f"<pre id=out></pre><script>var module = {{}}</script><script>{SCRIPT.read_text('utf-8')}</script>"
    page += f"<script>const {{ quantize }} = module.exports, given = {data};"
    (folder / "run.html").write_text(f"{page} out.textContent = JSON.stringify({call})</script>", "utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", str(folder / "run.html")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    return json.loads(done.stdout.partition('<pre id="out">')[2].partition("</pre>")[0])


def test_scales_levels_weights_errors_and_bytes_equal_the_library_s(tmp_path):
    given = cases()
    found = in_javascript(given, tmp_path)
    assert len(found) == len(given) > 700
    for (weights, bits, size), got in zip(given, found):
        w = np.float32([weights])
        quantized = quantize_per_group(w, bits, size)
        back = dequantize(quantized)
        assert got["scales"] == quantized.scale.astype(np.float64).ravel().tolist(), (bits, size)
        assert got["levels"] == quantized.values.ravel().tolist(), (bits, size)
        assert got["restored"] == back.astype(np.float64).ravel().tolist(), (bits, size)
        lost = w.astype(np.float64) - back
        assert got["worst"] == np.abs(lost).max()
        assert got["rmse"] == pytest.approx(np.sqrt((lost**2).mean()), rel=1e-12)
        head = quantized.scale.astype("<f2").tobytes()
        assert bytes(got["bytes"][: len(head)]) == head
        assert bytes(got["bytes"][len(head) :]) == packed(quantized.values[0], bits)


def packed(levels: np.ndarray, bits: int) -> bytes:
    """The integers as a file has them: bytes, nibbles; other widths one after the other from the lowest bit on."""
    if bits == 8:
        return levels.tobytes()
    if bits == 4:
        return pack_nibbles(levels).tobytes()
    whole = sum((int(level) % 2**bits) << (bits * i) for i, level in enumerate(levels))
    return whole.to_bytes(len(levels) * bits // 8, "little")
