"""Tokens a second from a bump file, beside llama.cpp with the same model as GGUF: `make bench`.

python benchmarks/bench_runtime.py [--megabytes 100 600] [--types Q8_0 Q4_0 Q4_K_M] [--threads 1 2] [--rounds 5]

The models are llamas of random blocks, the same on every machine. Ours and llama.cpp take turns, so that a busy moment
of the machine meets both; what is compared is the two of a pair, and the median of the pairs counts. A prompt is read
with the logits after each token; then tokens are generated one by one. Writes runtime.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench import HERE, llama_sizes, table

from miniquant.core.machine import hardware, versions
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.bump import write_bump
from miniquant.formats.gguf import GGMLType, RawTensor, write_gguf
from miniquant.models.corpus import load_tokenizer
from miniquant.models.to_gguf import minigpt_tokenizer_metadata
from miniquant.runtime import kernels
from miniquant.runtime.runtime import Runtime

VOCAB, CONTEXT = 1024, 512
LARGEST = {"Q8_0": 127, "Q4_0": 8, "Q4_K": 15 * 40, "Q6_K": 32 * 90}  # an integer of a weight, about
BETTER = {"Q4_K_M": {"token_embd": "Q6_K", "attn_v": "Q6_K", "ffn_down": "Q6_K"}}  # in every other layer


def blocks(random: np.random.Generator, rows: int, n: int, kind: GGMLType) -> RawTensor:
    """Random bytes as weights of about the size of trained ones."""
    raw = random.integers(0, 256, (rows, n // kind.block, kind.n_bytes), np.uint8)
    scale = np.array([2 / np.sqrt(n) / LARGEST[kind.name]], "<f2")
    at = 208 if kind == GGMLType.Q6_K else 0
    raw[..., at : at + 2] = scale.view(np.uint8)
    if kind == GGMLType.Q4_K:
        raw[..., 2:4] = (scale * np.float16(7)).view(np.uint8)
    return RawTensor(raw.reshape(rows, -1), kind, (rows, n))


def write_llama(folder: Path, name: str, megabytes: int) -> Path:
    """A llama of about so many megabytes as GGUF and as bump."""
    main, better = GGMLType[name.removesuffix("_M")], BETTER.get(name, {})
    embed, kv, inner, layers = llama_sizes(megabytes, main.bits_per_weight + (0.3 if better else 0))
    shapes = {"attn_q": (embed, embed), "attn_k": (kv, embed), "attn_v": (kv, embed), "attn_output": (embed, embed)}
    shapes |= {"ffn_gate": (inner, embed), "ffn_up": (inner, embed), "ffn_down": (embed, inner)}
    random = np.random.default_rng(0)
    ones = np.ones(embed, np.float32)
    tensors: dict[str, Any] = {"output_norm.weight": ones}
    tensors["token_embd.weight"] = blocks(random, VOCAB, embed, GGMLType[better.get("token_embd", main.name)])
    for layer in range(layers):
        for part, shape in shapes.items():
            kind = GGMLType[better.get(part, main.name)] if layer % 2 == 0 else main
            tensors[f"blk.{layer}.{part}.weight"] = blocks(random, *shape, kind)
        tensors |= {f"blk.{layer}.{part}_norm.weight": ones for part in ("attn", "ffn")}
    keys = {
        "block_count": layers,
        "context_length": CONTEXT,
        "embedding_length": embed,
        "feed_forward_length": inner,
        "attention.head_count": embed // 64,
        "attention.head_count_kv": embed // 256,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10000.0,
    }
    metadata = {"general.architecture": "llama", **{f"llama.{key}": value for key, value in keys.items()}}
    write_gguf(folder / "m.gguf", tensors, metadata | minigpt_tokenizer_metadata(load_tokenizer()))
    write_bump(folder / "m.gguf", folder / "weights.bump")
    return folder


def seconds(job: Callable[[], Any]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def measured(folder: Path, threads: int, rounds: int, prompt: int, n: int) -> dict[str, dict[str, float]]:
    """Of a prompt and of generating: tokens a second of ours and of llama.cpp, and the ratio, medians of pairs."""
    kernels.THREADS = threads
    tokens = np.random.default_rng(1).integers(0, VOCAB, prompt).tolist()
    found = {}
    with (
        Runtime(folder / "weights.bump") as ours,
        LlamaCpp(folder / "m.gguf", CONTEXT, threads=threads, watched=False) as theirs,
    ):
        jobs = {
            "prompt": (prompt, lambda: ours.logits(tokens), lambda: theirs.logits(tokens)),
            "generation": (n, lambda: ours.greedy([1], n), lambda: theirs.greedy([1], n)),
        }
        for name, (count, mine, other) in jobs.items():
            pairs = np.array([(seconds(mine), seconds(other)) for _ in range(rounds + 1)])[1:]
            found[name] = {
                "ours": round(count / float(np.median(pairs[:, 0])), 1),
                "llama.cpp": round(count / float(np.median(pairs[:, 1])), 1),
                "ratio": round(float(np.median(pairs[:, 1] / pairs[:, 0])), 2),
                "smallest": round(float((pairs[:, 1] / pairs[:, 0]).min()), 2),
            }
    return found


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[100, 600], help="of the models")
    parser.add_argument("--types", nargs="+", default=["Q8_0", "Q4_0", "Q4_K_M"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=256, help="tokens of the prompt")
    parser.add_argument("--n", type=int, default=24, help="tokens that are generated")
    parser.add_argument("--out", type=Path, default=HERE, help="a folder for runtime.json")
    options = parser.parse_args(arguments)

    results: dict[str, Any] = {"prompt": options.prompt, "generated": options.n, "rounds": options.rounds, "models": {}}
    for megabytes in options.megabytes:
        for name in options.types:
            with tempfile.TemporaryDirectory() as temporary:
                folder = write_llama(Path(temporary), name, megabytes)
                size = (folder / "weights.bump").stat().st_size
                for threads in options.threads:
                    found = measured(folder, threads, options.rounds, options.prompt, options.n)
                    title = f"{name}, {size / 1e6:.0f} MB, {threads} thread{'s' * (threads > 1)}"
                    results["models"][title] = found
                    print(table(title, ("ours", "llama.cpp", "ratio", "smallest"), found))
    results |= {"versions": versions("numpy", "numba", "xllamacpp", "miniquant"), "hardware": hardware()}
    (options.out / "runtime.json").write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    print("\nwrote runtime.json")


if __name__ == "__main__":
    main()
