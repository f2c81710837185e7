"""Real GGUF against the official package: block codecs, opening a file; and what llama.cpp makes of our files.

python benchmarks/bench_gguf.py [--size 4096] [--repetitions 9] [--windows 16] [--out FOLDER]

Rates are in MB/s of float32, whatever the type in the file. Ours run as they are (in threads) and in one thread. Beside
them, in turns, so that a busy moment of the machine meets all of them, run `np.copyto` and a referee: the `gguf`
package's numpy codecs, and where it cannot encode or decode a type (K-quants, NVFP4, Q1_0, Q2_0), ggml's C. Every type
with a codec has its rows. All but `np.copyto` return fresh memory, as they do for a user, and waiting for its pages is
part of their time. Writes gguf.json; a few minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from bench import HERE, table
from tqdm import tqdm

from miniquant.core.machine import hardware, versions
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.evaluate.quality import evaluate, evaluate_in_llamacpp
from miniquant.formats.gguf import GGMLType, decode, encode, read_gguf, write_gguf
from miniquant.formats.gguf.codecs import CODECS, rows
from miniquant.models.corpus import held_out_windows, load_tokenizer
from miniquant.models.file_types import FILE_TYPES
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import minigpt_from_gguf, write_minigpt

Job = Callable[[], Any]


def in_turns(jobs: dict[str, Job], repetitions: int) -> dict[str, dict[str, float]]:
    """Best and median seconds of each job: every repetition runs all of them, after one that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repetitions + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - start)
    return {name: {"best": min(s[1:]), "median": float(np.median(s[1:]))} for name, s in seconds.items()}


def in_one_thread(job: Job) -> Job:
    """The same job with our threads switched off."""

    def run() -> None:
        threads, rows.THREADS = rows.THREADS, 1
        try:
            job()
        finally:
            rows.THREADS = threads

    return run


def official(function: Callable[..., Any], array: np.ndarray, kind: GGMLType) -> Job | None:
    """The official package's way to encode or decode an array; ``None`` if it has none."""
    try:
        job = partial(function, array, gguf.GGMLQuantizationType(kind))
        function(array[:1], gguf.GGMLQuantizationType(kind))
    except (NotImplementedError, ValueError):  # no code for it; or no such type
        return None
    return job


def codecs(w: np.ndarray, repetitions: int) -> dict[str, dict[str, float]]:
    """Median MB/s of float32, for encoding and decoding one matrix in each type that has a codec.

    F32 is missing: neither ours nor the official package does anything there but hand out the same bytes. A type
    whose encoder searches is measured on an eighth of the matrix, and so is a type that is decoded only: ggml encodes
    its blocks, slowly. Where the package cannot do it, the referee is ggml, in one thread of a process of its own, the
    way there included.
    """
    found, whole = {}, w
    with LlamaCpp(None) as ggml:
        for kind, codec in tqdm([pair for pair in CODECS.items() if not pair[1].identity], desc="codecs", unit="type"):
            w = whole[: -(-len(whole) // 8)] if codec.searches or not codec.encodes else whole
            raw = encode(w, kind) if codec.encodes else ggml.quantize(w, kind, np.ones(w.shape[1], np.float32))
            referee = official(gguf.quants.dequantize, raw, kind) or partial(ggml.dequantize, raw, kind)
            pairs = {"decode": (partial(decode, raw, kind), referee)}
            if codec.encodes:
                referee = official(gguf.quants.quantize, w, kind) or partial(ggml.quantize, w, kind)
                pairs = {"encode": (partial(encode, w, kind), referee)} | pairs
            for what, (ours, theirs) in pairs.items():
                copy = partial(np.copyto, np.ones_like(w), w)
                jobs = {"ours": ours, "one thread": in_one_thread(ours), "referee": theirs, "copy": copy}
                rates = {name: w.nbytes / 1e6 / s["median"] for name, s in in_turns(jobs, repetitions).items()}
                rates["times"] = rates["ours"] / rates["referee"]
                found[f"{what} {kind.name}"] = {name: round(rate, 2) for name, rate in rates.items()}
    return found


def opening(
    folder: Path, repetitions: int, n_tensors: int = 300, n_tokens: int = 100_000
) -> dict[str, dict[str, float]]:
    """Milliseconds to open a file of many tensors and tokens, and to decode every token of it."""
    path = folder / "many.gguf"
    tokens = [f"token {i}" for i in range(n_tokens)]
    w = np.zeros((4, 64), np.float32)
    write_gguf(path, {f"blk.{i}.weight": (w, "Q8_0") for i in range(n_tensors)}, {"tokenizer.ggml.tokens": tokens})

    def all_tokens() -> list[str]:
        with read_gguf(path) as file:
            return list(file.metadata["tokenizer.ggml.tokens"])

    ours = in_turns({"ours": lambda: read_gguf(path).close(), "ours, and decode all tokens": all_tokens}, repetitions)
    theirs = in_turns({"gguf package": lambda: gguf.GGUFReader(path)}, 2)
    found = {name: {k: round(1e3 * s, 2) for k, s in row.items()} for name, row in (ours | theirs).items()}
    found["times"] = {k: round(found["gguf package"][k] / found["ours"][k], 1) for k in ("best", "median")}
    return found


def perplexities(folder: Path, n: int) -> dict[str, dict[str, float]]:
    """Held-out perplexity of the trained model from each type of file, by PyTorch with its weights and by llama.cpp."""
    model, tokenizer, every, found = load_pretrained(), load_tokenizer(), held_out_windows(), {}
    windows = every[np.linspace(0, len(every) - 1, n).astype(int)]
    for kind in tqdm(FILE_TYPES, desc="perplexity", unit="type"):
        path = folder / f"{kind}.gguf"
        write_minigpt(path, model, tokenizer, kind)
        with read_gguf(path) as file:
            mine = evaluate(minigpt_from_gguf(file), windows).perplexity.mean
        other = evaluate_in_llamacpp(path, windows).perplexity.mean
        found[kind] = {
            "bytes": path.stat().st_size,
            "PyTorch": round(mine, 4),
            "llama.cpp": round(other, 4),
            "change, %": round(100 * (other / mine - 1), 4),
        }
    return found


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of the matrix, a multiple of 256")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--windows", type=int, default=16, help="of held-out text, for the perplexities")
    parser.add_argument("--out", type=Path, default=HERE, help="a folder for gguf.json")
    options = parser.parse_args(arguments)

    torch.set_num_threads(1)
    w = np.random.default_rng(0).standard_normal((options.size, options.size), np.float32) * np.float32(0.02)
    with tempfile.TemporaryDirectory() as name:
        results = {
            "unit of the codecs": "MB/s of float32, median",
            "matrix": f"{options.size}x{options.size}",
            "threads": rows.THREADS,
            "codecs": codecs(w, options.repetitions),
            "unit of opening": "ms, 300 tensors and 100,000 tokens",
            "opening": opening(Path(name), options.repetitions),
            "held-out perplexity": perplexities(Path(name), options.windows),
            "windows": options.windows,
            "repetitions": options.repetitions,
            "versions": versions("numpy", "gguf", "xllamacpp", "torch", "miniquant"),
            "hardware": hardware(),
        }
    columns = ("ours", "one thread", "referee", "copy", "times")
    print(table(f"{results['matrix']}: MB/s of float32, {rows.THREADS} threads", columns, results["codecs"]))
    print(table("300 tensors, 100,000 tokens: ms to open", ("best", "median"), results["opening"]))
    perplexity = ("bytes", "PyTorch", "llama.cpp", "change, %")
    print(table(f"held-out perplexity, {options.windows} windows", perplexity, results["held-out perplexity"]))

    (options.out / "gguf.json").write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    print("\nwrote gguf.json")


if __name__ == "__main__":
    main()
