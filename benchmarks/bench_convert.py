"""Converting a Hugging Face folder, beside a plain copy of it.

python benchmarks/bench_convert.py [--megabytes 1000] [--types q8_0 q4_k_m] [--rounds 3] [--out FOLDER]

The folder is a llama of random weights in bfloat16, the same on every machine, with MiniLlama's tokenizer. Converting
and copying take turns, both up to the disk. Each conversion runs in a process of its own, which has loaded its compiled
codecs before the clock starts. Its memory is looked at afterwards: what it held at most, beyond what it held before.
Writes convert.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bench import HERE, llama_sizes, table
from safetensors.torch import save_file

from miniquant.core.machine import hardware, versions
from miniquant.models import minillama

TYPES = {"q4_k_m": ("Q4_K", "Q6_K")}  # of a mix
CONVERT = """
import sys, time
import numpy as np
from miniquant.formats.gguf import decode, encode
from miniquant.models.huggingface.convert import convert_folder
for kind in sys.argv[4:]:
    decode(encode(np.zeros((1, 256), np.float32), kind), kind)
before = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
start = time.perf_counter()
convert_folder(sys.argv[1], sys.argv[2], sys.argv[3])
held = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(time.perf_counter() - start, int(held[0]) - int(before[0]))
"""


def write_folder(folder: Path, megabytes: int) -> int:
    """A model folder of about so many megabytes; returns the bytes of its largest tensor, as float32."""
    shutil.copytree(minillama.folder(), folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    embed, kv, inner, layers = llama_sizes(megabytes, 16)
    config |= {"hidden_size": embed, "intermediate_size": inner, "num_hidden_layers": layers, "dtype": "bfloat16"}
    config |= {"num_attention_heads": embed // 64, "num_key_value_heads": embed // 256, "head_dim": 64}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    generator = torch.Generator().manual_seed(0)

    def matrix(*shape: int) -> torch.Tensor:
        return (torch.randn(shape, generator=generator) * 0.02).to(torch.bfloat16)

    vocab = config["vocab_size"]
    tensors = {"model.embed_tokens.weight": matrix(vocab, embed), "lm_head.weight": matrix(vocab, embed)}
    tensors["model.norm.weight"] = torch.ones(embed, dtype=torch.bfloat16)
    shapes = {"self_attn.q_proj": (embed, embed), "self_attn.k_proj": (kv, embed), "self_attn.v_proj": (kv, embed)}
    shapes |= {"self_attn.o_proj": (embed, embed), "mlp.gate_proj": (inner, embed), "mlp.up_proj": (inner, embed)}
    shapes |= {"mlp.down_proj": (embed, inner)}
    for i in range(layers):
        tensors |= {f"model.layers.{i}.{name}.weight": matrix(*shape) for name, shape in shapes.items()}
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"model.layers.{i}.{name}.weight"] = torch.ones(embed, dtype=torch.bfloat16)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return max(4 * w.numel() for w in tensors.values())


def copy(source: Path, target: Path) -> float:
    """Seconds to copy a folder, its bytes read and written, up to the disk."""
    start = time.perf_counter()
    shutil.copytree(source, target)
    for path in target.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    return time.perf_counter() - start


def convert(source: Path, target: Path, kind: str) -> tuple[float, float]:
    """Seconds, and the bytes that the process held at most beyond what it had before."""
    command = [sys.executable, "-c", CONVERT, source, target, kind, *TYPES.get(kind, (kind,))]
    compiled = {**os.environ, "MINIQUANT_COMPILED": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=compiled)
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds, kilobytes = map(float, done.stdout.split())
    return seconds, 1024 * kilobytes


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1000, help="of the folder")
    parser.add_argument("--types", nargs="+", default=["q8_0", "q4_k_m"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE, help="a folder for convert.json")
    options = parser.parse_args(arguments)

    with tempfile.TemporaryDirectory() as temporary:
        source, target = Path(temporary) / "model", Path(temporary) / "out"
        largest = write_folder(source, options.megabytes)
        size = sum(path.stat().st_size for path in source.iterdir())
        rows: dict[str, Any] = {}
        for kind in options.types:
            found = []
            for _ in range(options.rounds):
                copied = copy(source, target)
                shutil.rmtree(target)
                found.append((copied, *convert(source, target.with_suffix(".gguf"), kind)))
            copied, converted, held = np.array(found).T
            rows[kind] = {
                "copy, s": round(float(np.median(copied)), 2),
                "convert, s": round(float(np.median(converted)), 2),
                "speed of the copy": round(float(np.median(copied / converted)), 2),
                "peak, MB": round(float(held.max()) / 1e6, 1),
                "of the largest tensor": round(float(held.max()) / largest, 2),
            }
    print(table(f"{size / 1e6:.0f} MB in bfloat16, medians of {options.rounds} pairs", tuple(rows[kind]), rows))
    results = {"megabytes": round(size / 1e6), "largest tensor, MB of float32": round(largest / 1e6, 1), "types": rows}
    results |= {"versions": versions("numpy", "miniquant"), "hardware": hardware()}
    (options.out / "convert.json").write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    print("\nwrote convert.json")


if __name__ == "__main__":
    main()
