"""Converting a Hugging Face folder, beside a plain copy of it.

python benchmarks/bench_convert.py [--megabytes 200] [--types q8_0 q4_k_m] [--rounds 3] [--out FOLDER]

The folder is a llama of random weights in bfloat16, the same on every machine, with MiniLlama's tokenizer. Converting
and copying take turns, both up to the disk. Each runs in a process of its own, whose memory is looked at afterwards:
what it held at most, beyond what it held with everything imported. Writes convert.json.
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
from bench import HERE, table
from safetensors.torch import save_file

from miniquant.core.machine import hardware, versions
from miniquant.models import minillama

EMBED, INNER = 1024, 2816
CONVERT = """
import sys, time
from miniquant.models.huggingface.convert import convert_folder
import miniquant.models.file_types
from miniquant.formats.gguf import encode
import numpy as np
encode(np.zeros((1, 256), np.float32), sys.argv[3].upper().removesuffix("_M"))
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
    layer = 2.5 * EMBED * EMBED + 3 * EMBED * INNER
    layers = max(1, round(megabytes * 1e6 / 2 / layer))
    config |= {"hidden_size": EMBED, "intermediate_size": INNER, "num_hidden_layers": layers, "dtype": "bfloat16"}
    config |= {"num_attention_heads": EMBED // 64, "num_key_value_heads": EMBED // 256, "head_dim": 64}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    generator = torch.Generator().manual_seed(0)

    def matrix(*shape: int) -> torch.Tensor:
        return (torch.randn(shape, generator=generator) * 0.02).to(torch.bfloat16)

    vocab, kv = config["vocab_size"], EMBED // 4
    tensors = {"model.embed_tokens.weight": matrix(vocab, EMBED), "lm_head.weight": matrix(vocab, EMBED)}
    tensors["model.norm.weight"] = torch.ones(EMBED, dtype=torch.bfloat16)
    shapes = {"self_attn.q_proj": (EMBED, EMBED), "self_attn.k_proj": (kv, EMBED), "self_attn.v_proj": (kv, EMBED)}
    shapes |= {"self_attn.o_proj": (EMBED, EMBED), "mlp.gate_proj": (INNER, EMBED), "mlp.up_proj": (INNER, EMBED)}
    shapes |= {"mlp.down_proj": (EMBED, INNER)}
    for i in range(layers):
        tensors |= {f"model.layers.{i}.{name}.weight": matrix(*shape) for name, shape in shapes.items()}
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"model.layers.{i}.{name}.weight"] = torch.ones(EMBED, dtype=torch.bfloat16)
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
    done = subprocess.run([sys.executable, "-c", CONVERT, source, target, kind], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds, kilobytes = map(float, done.stdout.split())
    return seconds, 1024 * kilobytes


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200, help="of the folder")
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
