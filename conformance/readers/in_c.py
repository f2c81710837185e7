"""The readers in C of ``readers/``: ``python conformance/readers/in_c.py FOLDER FILE``.

FOLDER holds ``gguf_lite`` and ``bump``, compiled. They print lines, which are put into the suite's form here. A
program that a signal has ended ends this one in the same way, as far as an exit code can say it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def output(command: list[str]) -> str:
    """What a program prints; if it ends otherwise than with 0, so does this one."""
    done = subprocess.run(command, capture_output=True)
    if done.returncode:
        sys.stderr.buffer.write(done.stderr)
        sys.exit(done.returncode if done.returncode > 0 else 128 - done.returncode)
    return done.stdout.decode("utf-8", "surrogateescape")


def gguf_lite(program: str, path: str) -> dict[str, Any]:
    """The metadata, and each tensor's dims, type and weights."""
    said: dict[str, Any] = {"metadata": {}, "tensors": {}}
    for line in output([program, path]).splitlines():
        if line.endswith(("]  F32", "]  F16", "]  Q8_PER_CHANNEL", "]  Q4_PER_GROUP_64")):
            about, kind = line.rsplit("  ", 1)
            name, dims = about.rsplit("  [", 1)
            values = [
                x.replace("inf", "Infinity").replace("-nan", "nan").replace("nan", "NaN")
                for x in output([program, path, name]).split()
            ]
            numbers = [int(dim) for dim in dims[:-1].split(", ") if dim]
            said["tensors"][name] = {"type": kind, "dims": numbers, "values": values}
        elif line:
            key, _, value = line.partition("=")
            said["metadata"][key] = value
    return said


def bump(program: str, path: str) -> dict[str, Any]:
    """Each tensor's type, offset, bytes and hash; two numbers come from config.json, which it does not read."""
    try:
        config = json.loads(Path(path).with_name("config.json").read_bytes())
        heads = config.get("num_key_value_heads", config.get("n_head"))
        numbers = [str(heads), str(config.get("intermediate_size", config.get("n_inner")))]
    except (OSError, ValueError, AttributeError) as error:
        sys.exit(f"config.json: {error}")
    tensors = {}
    for line in output([program, path, *numbers]).splitlines()[1:]:
        name, kind, offset, size, digest = line.split("  ")
        tensors[name] = {"type": kind, "offset": int(offset), "bytes": int(size), "sha256": digest}
    return {"tensors": tensors}


if __name__ == "__main__":
    folder, path = sys.argv[1:]
    kinds = {"gguf-lite": ("gguf_lite", gguf_lite), "bump": ("bump", bump)}
    ending = path.rpartition(".")[2]
    if ending not in kinds:
        sys.exit(3)
    name, read = kinds[ending]
    print(json.dumps(read(str(Path(folder) / name), path)))
