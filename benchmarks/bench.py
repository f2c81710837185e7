"""How fast the codecs are, how fast files open, and how much memory writing takes: `make bench`, under a minute.

python benchmarks/bench.py [--size 4096] [--repetitions 15] [--out FOLDER]

Rates are in MB/s of float32, whatever the type in the file, so that all of them compare; one thread. The official
`gguf` package's numpy codecs and `np.copyto` run beside ours in the same process. Writes results.json, which
the book shows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from tqdm import tqdm

from miniquant import DType, GGUFLite, open_gguf_lite, preset, write_gguf_lite
from miniquant.core.machine import hardware, versions
from miniquant.formats.gguf_lite.write import encode_tensor
from miniquant.models.pretrained import load_pretrained

HERE = Path(__file__).resolve().parent
OFFICIAL = (gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0)
State = dict[str, np.ndarray]
Times = dict[str, float]  # "best" and "median"

# freed memory is kept and used again, so that a repetition does not wait for the system to hand out fresh pages
SURROUNDINGS = {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)}


def timed(work: Callable[[], Any], repetitions: int) -> Times:
    """The best and the median time of ``work``, in seconds, after one run that is not counted."""
    seconds = []
    for _ in range(repetitions + 1):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return {"best": min(seconds[1:]), "median": float(np.median(seconds[1:]))}


def codecs(state: State, folder: Path) -> dict[str, Callable[[], Any]]:
    """What is timed: name -> a function that encodes or decodes every matrix of the state once."""
    encode: dict[str, Callable[[], Any]] = {}
    decode: dict[str, Callable[[], Any]] = {}
    for dtype in DType:
        path = folder / f"{dtype.name}.gguf-lite"
        write_gguf_lite(path, state, dict.fromkeys(state, dtype.scheme))
        encode[f"encode {dtype.name}"] = partial(_encode, state, dtype)
        decode[f"decode {dtype.name}"] = partial(_decode, open_gguf_lite(path))
    for kind in OFFICIAL:
        blocks = [gguf.quants.quantize(w, kind) for w in state.values()]
        encode[f"encode {kind.name}, gguf package"] = partial(_each, gguf.quants.quantize, list(state.values()), kind)
        decode[f"decode {kind.name}, gguf package"] = partial(_each, gguf.quants.dequantize, blocks, kind)
    targets = [np.ones_like(w) for w in state.values()]  # written to, so its pages exist
    return {**encode, **decode, "np.copyto": lambda: [np.copyto(t, w) for t, w in zip(targets, state.values())]}


def _encode(state: State, dtype: DType) -> int:
    return sum(len(part) for w in state.values() for part in encode_tensor(w, dtype))


def _decode(file: GGUFLite) -> list[np.ndarray]:
    return [file.tensor(name) for name in file.tensors]


def _each(codec: Callable[..., np.ndarray], arrays: list[np.ndarray], kind: Any) -> list[np.ndarray]:
    return [codec(array, kind) for array in arrays]


def rates(state: State, folder: Path, repetitions: int, title: str) -> dict[str, Times]:
    """MB/s of float32 for each codec, best and median of the repetitions."""
    megabytes, found = sum(w.nbytes for w in state.values()) / 1e6, {}
    for name, job in tqdm(codecs(state, folder).items(), desc=title, unit="codec"):
        seconds = timed(job, repetitions)
        found[name] = {key: round(megabytes / value, 1) for key, value in seconds.items()}
    return found


def files(state: State, schemes: dict[str, str], folder: Path, repetitions: int) -> dict[str, Times]:
    """Milliseconds to open a file, and to open it and read every tensor as float32 into fresh memory."""
    lite, small, tensors = folder / "f32.gguf-lite", folder / "int4.gguf-lite", folder / "model.safetensors"
    write_gguf_lite(lite, state, {})
    write_gguf_lite(small, state, schemes)
    save_file(state, tensors)

    def read(path: Path) -> State:
        with open_gguf_lite(path) as file:
            return {name: file.tensor(name) for name in file.tensors}

    def read_lazily() -> State:
        with safe_open(tensors, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 not a dict

    work = {
        "open, GGUF-lite F32": lambda: open_gguf_lite(lite).close(),
        "open, GGUF-lite INT4": lambda: open_gguf_lite(small).close(),
        "open, safetensors": lambda: safe_open(tensors, framework="numpy").__enter__(),
        "open and read, GGUF-lite F32": lambda: read(lite),
        "open, read and dequantize, GGUF-lite INT4": lambda: read(small),
        "open and read, safetensors safe_open": read_lazily,
        "open and read, safetensors load_file": lambda: load_file(tensors),
    }
    found = {}
    for name, job in tqdm(work.items(), desc="files", unit="job"):
        found[name] = {key: round(1e3 * value, 3) for key, value in timed(job, repetitions).items()}
    return found


MEMORY = """
import json, sys, tracemalloc
import numpy as np
try:
    import resource
except ImportError:  # Windows: then only what Python allocates is counted
    resource = None
from miniquant import open_gguf_lite, write_gguf_lite

def peak():  # of this process so far, in bytes
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit if resource else 0

path, size, scheme = sys.argv[1], int(sys.argv[2]), sys.argv[3]
state = {f"w{i}": np.full((size, size), 0.5 + i, np.float32) for i in range(3)}  # filled in place: no temporaries
write_gguf_lite(path, {"w": np.ones((64, 64), np.float32)}, {"w": scheme})  # the imports and buffers of a first call
open_gguf_lite(path).tensor("w")
tracemalloc.start()
before = peak()
write_gguf_lite(path, state, dict.fromkeys(state, scheme))
writing = {"process": peak() - before, "python": tracemalloc.get_traced_memory()[1]}
tracemalloc.reset_peak()
held, before = tracemalloc.get_traced_memory()[0], peak()
file = open_gguf_lite(path)
opening = {"process": peak() - before, "python": tracemalloc.get_traced_memory()[1] - held}
print(json.dumps({"tensor": state["w0"].nbytes, "writing": writing, "opening": opening}))
"""


def memory(size: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Extra memory while writing and while opening three size × size matrices; each type in a process of its own.

    ``writing`` is in multiples of one matrix, the larger of what the process grew by and what Python allocated at its
    peak; ``opening`` is in bytes.
    """
    found = {}
    for dtype in tqdm(DType, desc="memory", unit="process"):
        command = [sys.executable, "-c", MEMORY, str(folder / "memory.gguf-lite"), str(size), dtype.scheme]
        seen = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        writing = max(seen["writing"].values()) / seen["tensor"]
        found[dtype.name] = {"writing": round(writing, 3), "opening": max(seen["opening"].values())}
    return found


def llama_sizes(megabytes: int, bits: float) -> tuple[int, int, int, int]:
    """Of a Llama of about so many megabytes: its width, that of keys and values, the inner width, and its layers."""
    embed = 1024 if megabytes < 300 else 2048
    kv, inner = embed // 4, embed * 11 // 4
    layer = 2 * embed * (embed + kv) + 3 * embed * inner
    return embed, kv, inner, max(1, round(megabytes * 8e6 / bits / layer))


def table(title: str, columns: tuple[str, ...], rows: dict[str, dict[str, float]]) -> str:
    """A titled table of numbers for the terminal; what a row lacks is left out."""
    width = max(map(len, rows))
    lines = [f"\n{title}", " " * width + "".join(f"{column:>12}" for column in columns)]
    for name, row in rows.items():
        cells = (f"{row[column]:,g}" if column in row else "" for column in columns)
        lines.append(f"{name:{width}}" + "".join(f"{cell:>12}" for cell in cells))
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of the large matrix, a multiple of 64")
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--out", type=Path, help="a folder for both files (default: where the repository keeps them)")
    options = parser.parse_args(arguments)

    model = load_pretrained()
    everything = {name: w.numpy() for name, w in model.state_dict().items()}
    matrices = {name: w for name, w in everything.items() if w.ndim == 2}
    large = np.random.default_rng(0).standard_normal((options.size, options.size), np.float32) * np.float32(0.02)
    square = f"{options.size}x{options.size}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = {
            "unit of the rates": "MB/s of float32, one thread",
            square: rates({"w": large}, folder, options.repetitions, square),
            "MiniGPT": rates(matrices, folder, options.repetitions, "MiniGPT"),
            "unit of the files": "ms",
            "files": files(everything, preset("int4-small-embeddings", model), folder, options.repetitions),
            "unit of the memory": "writing: multiples of the largest tensor; opening: bytes",
            "memory": memory(options.size, folder),
            "repetitions": options.repetitions,
            "versions": versions("numpy", "gguf", "safetensors", "miniquant"),
            "hardware": hardware(),
        }
    for title in (square, "MiniGPT"):
        print(table(f"{title}: MB/s of float32, one thread", ("best", "median"), results[title]))
    print(table("MiniGPT's file: ms", ("best", "median"), results["files"]))
    print(table("memory: writing / largest tensor; opening, bytes", ("writing", "opening"), results["memory"]))

    (options.out or HERE).joinpath("results.json").write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    print("\nwrote results.json")


if __name__ == "__main__":
    if "MALLOC_MMAP_MAX_" in os.environ:
        main()
    else:  # these must be set before a process starts, so this one starts another
        raise SystemExit(subprocess.call([sys.executable, *sys.argv], env={**os.environ, **SURROUNDINGS}))
