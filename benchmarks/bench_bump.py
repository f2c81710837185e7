"""Products from blocks, beside float32 `torch` and plain memory traffic, in one run: `make bench`.

python benchmarks/bench_bump.py [--size 4096] [--repetitions 150] [--out FOLDER]

Every job runs once in each repetition, in turns, so that a busy moment of the machine meets all of them; with one
thread, then with two. A matrix meets one vector, and then sixteen, as of a prompt. Beside the
milliseconds stands how many gigabytes of weights a job reads in a second. Writes bump.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from bench import HERE, table
from bench_gguf import in_turns
from tqdm import tqdm

from miniquant.core.machine import hardware, versions
from miniquant.formats.bump import BumpType
from miniquant.formats.gguf import decode, encode
from miniquant.runtime import kernels
from miniquant.runtime.integer_products import activation_type, encode_activations, integer_products

KINDS = kernels.kernels()
BATCH = 16  # tokens of a prompt
VECTOR, PROMPT = "float32, torch.mv", f"float32, {BATCH} tokens, torch.mm"


def shared(work: Callable[[np.ndarray], Any], w: np.ndarray, threads: int, pool: ThreadPoolExecutor) -> None:
    """The same work on a share of the rows for each thread; numpy lets the others run meanwhile."""
    list(pool.map(work, np.array_split(w, threads)))


def product(raw: np.ndarray, kind: BumpType, x: np.ndarray) -> np.ndarray:
    """What a few rows give, in float64; blocks meet the vector as it is rounded for them."""
    assert kind.ggml is not None
    if kind.ggml.block == 1:
        return decode(raw, kind.ggml).astype(float) @ x
    return integer_products(raw, kind.ggml, encode_activations(x[None], activation_type(kind.ggml)))[0]


def jobs(w: np.ndarray, x: np.ndarray, encoded: dict[BumpType, np.ndarray], threads: int) -> dict[str, Any]:
    """name -> (what is timed, the bytes that it reads)."""
    out, target, pool = np.empty(len(w), np.float32), np.ones_like(w), ThreadPoolExecutor(threads)
    weights, vector, product = torch.from_numpy(w), torch.from_numpy(x), torch.empty(len(w))
    xs, outs = np.tile(x, (BATCH, 1)), np.empty((BATCH, len(w)), np.float32)
    vectors, products = torch.from_numpy(xs), torch.empty(BATCH, len(w))

    def copy(rows: np.ndarray) -> None:
        start = (rows.ctypes.data - w.ctypes.data) // (4 * w.shape[1])
        np.copyto(target[start : start + len(rows)], rows)

    found: dict[str, Any] = {
        f"{kind.name}, blocks": (partial(kernels.matvec, raw.reshape(-1), kind, x, out), raw.nbytes)
        for kind, raw in encoded.items()
    }
    found |= {
        f"{kind.name}, {BATCH} tokens": (partial(kernels.matmul, raw.reshape(-1), kind, xs, outs), raw.nbytes)
        for kind, raw in encoded.items()
    }
    return found | {
        VECTOR: (partial(torch.mv, weights, vector, out=product), w.nbytes),
        PROMPT: (partial(torch.mm, vectors, weights.T, out=products), w.nbytes),
        "reading float32 (sum)": (partial(shared, np.sum, w, threads, pool), w.nbytes),
        "np.copyto": (partial(shared, copy, w, threads, pool), w.nbytes),
    }


def measured(w: np.ndarray, x: np.ndarray, encoded: dict[BumpType, np.ndarray], threads: int, repetitions: int) -> dict:
    """Milliseconds, gigabytes a second, and how many times faster than torch's product of as many tokens."""
    torch.set_num_threads(threads)
    kernels.THREADS = threads
    todo = jobs(w, x, encoded, threads)
    taken = in_turns({name: job for name, (job, _) in todo.items()}, repetitions)
    seconds = {name: {"best": min(times), "median": median(times)} for name, times in taken.items()}
    torch_s = {name: seconds[PROMPT if "tokens" in name else VECTOR] for name in seconds}
    return {
        name: {
            "best, ms": round(1e3 * s["best"], 3),
            "median, ms": round(1e3 * s["median"], 3),
            "GB/s": round(todo[name][1] / 1e9 / s["median"], 2),
            "times torch": round(torch_s[name]["median"] / s["median"], 2),
            "of the best": round(torch_s[name]["best"] / s["best"], 2),
        }
        for name, s in seconds.items()
    }


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of the matrix, a multiple of 256")
    parser.add_argument("--repetitions", type=int, default=150)
    parser.add_argument("--out", type=Path, default=HERE, help="a folder for bump.json")
    options = parser.parse_args(arguments)

    random, square = np.random.default_rng(0), f"{options.size}x{options.size}"
    w = random.standard_normal((options.size, options.size), np.float32) * np.float32(0.02)
    x = random.standard_normal(options.size, np.float32)
    encoded = {kind: encode(w, kind.ggml) for kind in tqdm(KINDS, desc="encoding", unit="type")}
    kernels.warm(KINDS)
    for kind, raw in encoded.items():  # right before it is fast
        out = np.empty(options.size, np.float32)
        kernels.matvec(raw.reshape(-1), kind, x, out)
        rows = slice(0, 64)
        assert np.abs(out[rows] - product(raw[rows], kind, x)).max() < 1e-4
        kernels.matmul(raw.reshape(-1), kind, np.stack([x, -x]), both := np.empty((2, options.size), np.float32))
        assert np.abs(both - [out, -out]).max() < 1e-3
    results: dict[str, Any] = {"matrix": square, "repetitions": options.repetitions}
    for threads in (1, 2):
        name = f"{threads} thread{'s' * (threads > 1)}"
        results[name] = measured(w, x, encoded, threads, options.repetitions)
        columns = ("best, ms", "median, ms", "GB/s", "times torch", "of the best")
        print(table(f"{square} matrix times vector or prompt, {name}", columns, results[name]))
    results |= {"versions": versions("numpy", "numba", "torch", "miniquant"), "hardware": hardware()}
    (options.out / "bump.json").write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    print("\nwrote bump.json")


if __name__ == "__main__":
    main()
