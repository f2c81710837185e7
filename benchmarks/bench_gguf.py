"""Real GGUF: block codecs beside ggml's C and the official package, opening a file; and what llama.cpp makes of ours.

python benchmarks/bench_gguf.py [--size 4096] [--types Q8_0 Q4_K …] [--repetitions 9] [--windows 16] [--out FOLDER]

Rates are in MB/s of float32, whatever the type in the file, the best of the repetitions. In turns, so that a busy
moment of the machine meets all of them, run ours in numpy, ours compiled, both in one thread, ours compiled in two,
ggml's C in one, the `gguf` package's numpy where it has the type, and `np.copyto`. "encode" and "decode" return fresh
memory, as they do for a user; waiting for its pages is part of their time. "encode again" and "decode again" fill the
same memory each time, as `np.copyto` does. With --types only the codecs of those types run, and nothing is written.
Else it writes gguf.json; ten minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
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
from miniquant.evaluate.llamacpp_process import _Inside
from miniquant.evaluate.quality import evaluate, evaluate_in_llamacpp
from miniquant.formats.gguf import GGMLType, decode, encode, read_gguf, write_gguf
from miniquant.formats.gguf.codecs import CODECS, rows
from miniquant.formats.gguf.compiled import SWITCH
from miniquant.models.corpus import held_out_windows, load_tokenizer
from miniquant.models.file_types import FILE_TYPES
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import minigpt_from_gguf, write_minigpt

Job = Callable[[], Any]
KINDS = [kind for kind, codec in CODECS.items() if not codec.identity]
FORMS = {"numpy": ("0", 1), "compiled": ("1", 1), "two threads": ("1", 2)}  # the switch of the codecs, threads
COLUMNS = (*FORMS, "ggml's C", "official", "copy", "times C", "times one")


def in_turns(jobs: dict[str, Job], repetitions: int) -> dict[str, list[float]]:
    """Seconds of each job: every repetition runs all of them, another one first, after one that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    names = list(jobs)
    for repetition in range(repetitions + 1):
        for name in names[repetition % len(names) :] + names[: repetition % len(names)]:
            start = time.perf_counter()
            jobs[name]()
            seconds[name].append(time.perf_counter() - start)
    return {name: found[1:] for name, found in seconds.items()}


def in_form(job: Job, form: str, threads: int = 1) -> Job:
    """The same job in one form of the codecs, "0" for numpy or "1" for compiled, and so many threads."""

    def run() -> None:
        before, rows.THREADS, os.environ[SWITCH] = rows.THREADS, threads, form
        try:
            job()
        finally:
            rows.THREADS = before
            del os.environ[SWITCH]

    return run


def official(function: Callable[..., Any], array: np.ndarray, kind: GGMLType) -> Job | None:
    """The official package's way to encode or decode an array; ``None`` if it has none."""
    try:
        job = partial(function, array, gguf.GGMLQuantizationType(kind))
        function(array[:1], gguf.GGMLQuantizationType(kind))
    except (NotImplementedError, ValueError):  # no code for it; or no such type
        return None
    return job


def jobs_of(what: str, w: np.ndarray, raw: np.ndarray, kind: GGMLType, ggml: Any) -> dict[str, Job]:
    """What runs in turns: column -> a job."""
    kept, room, target = np.empty_like(w), np.empty_like(raw[: len(w)]), np.empty_like(w)
    if what == "encode":
        ours, theirs = partial(encode, w, kind), partial(ggml.quantize, w, kind, None)
        package = official(gguf.quants.quantize, w, kind)
    elif what == "decode":
        ours, theirs = partial(decode, raw, kind), partial(ggml.dequantize, raw, kind)
        package = official(gguf.quants.dequantize, raw, kind)
    elif what == "encode again":
        ours, package = partial(encode, w, kind, None, room), None
        theirs = partial(ggml.lib.ggml_quantize_chunk, kind, w.ctypes.data, room.ctypes.data, 0, *w.shape, None)
    else:
        to_float = ggml.lib.ggml_get_type_traits(kind).contents.to_float
        ours = partial(decode, raw, kind, kept)
        theirs, package = partial(to_float, raw.ctypes.data, kept.ctypes.data, kept.size), None
    forms = {name: in_form(ours, *form) for name, form in FORMS.items()}
    packages = {"official": package} if package else {}
    return forms | {"ggml's C": theirs} | packages | {"copy": partial(np.copyto, target, w)}


def codecs(w: np.ndarray, kinds: list[GGMLType], repetitions: int) -> dict[str, dict[str, float]]:
    """MB/s of float32, the best, for encoding and decoding one matrix in each type.

    F32 is missing: there is nothing to do but hand out the same bytes. An encoder that searches is measured on an
    eighth of the matrix, in fresh memory alone. Its decoder gets the blocks of that eighth eight times, and so does the
    decoder of a type that ggml encodes here, slowly.

    "times C" and "times one" are ratios of these rates: compiled to ggml, and two threads to one.
    """
    found, whole, ggml = {}, w, _Inside()
    for kind in tqdm(kinds, desc="codecs", unit="type"):
        codec = CODECS[kind]
        w = whole[: -(-len(whole) // 8)] if codec.searches or not codec.encodes else whole
        raw = encode(w, kind) if codec.encodes else ggml.quantize(w, kind, np.ones(w.shape[1], np.float32))
        raw = np.resize(raw, (len(whole), raw.shape[1]))  # rows again and again
        encodes = ("encode", "encode again")[: 0 if not codec.encodes else 1 if codec.searches else 2]
        for what in (*encodes, "decode", "decode again"):
            of = w if what in encodes else whole
            seconds = in_turns(jobs_of(what, of, raw, kind, ggml), repetitions)
            rates = {name: of.nbytes / 1e6 / min(each) for name, each in seconds.items()}
            rates["times C"] = rates["compiled"] / rates["ggml's C"]
            rates["times one"] = rates["two threads"] / rates["compiled"]
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
    found = {
        name: {"best": round(1e3 * min(s), 2), "median": round(1e3 * float(np.median(s)), 2)}
        for name, s in (ours | theirs).items()
    }
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
    parser.add_argument(
        "--types", nargs="+", choices=[kind.name for kind in KINDS], help="of codecs; nothing else runs"
    )
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--windows", type=int, default=16, help="of held-out text, for the perplexities")
    parser.add_argument("--out", type=Path, default=HERE, help="a folder for gguf.json")
    options = parser.parse_args(arguments)

    torch.set_num_threads(1)
    w = np.random.default_rng(0).standard_normal((options.size, options.size), np.float32) * np.float32(0.02)
    unit = f"{options.size}x{options.size}: MB/s of float32, best of {options.repetitions}"
    if options.types:
        found = codecs(w, [GGMLType[name] for name in options.types], options.repetitions)
        return print(table(unit, COLUMNS, found))
    with tempfile.TemporaryDirectory() as name:
        results = {
            "unit of the codecs": "MB/s of float32, best",
            "matrix": f"{options.size}x{options.size}",
            "codecs": codecs(w, KINDS, options.repetitions),
            "unit of opening": "ms, 300 tensors and 100,000 tokens",
            "opening": opening(Path(name), options.repetitions),
            "held-out perplexity": perplexities(Path(name), options.windows),
            "windows": options.windows,
            "repetitions": options.repetitions,
            "versions": versions("numpy", "gguf", "xllamacpp", "torch", "miniquant"),
            "hardware": hardware(),
        }
    print(table(unit, COLUMNS, results["codecs"]))
    print(table("300 tensors, 100,000 tokens: ms to open", ("best", "median"), results["opening"]))
    perplexity = ("bytes", "PyTorch", "llama.cpp", "change, %")
    print(table(f"held-out perplexity, {options.windows} windows", perplexity, results["held-out perplexity"]))

    (options.out / "gguf.json").write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    print("\nwrote gguf.json")


if __name__ == "__main__":
    main()
