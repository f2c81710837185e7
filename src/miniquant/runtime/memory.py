"""How much memory running a model takes: from blocks, and dequantized first.

What is counted is the resident set of a process of its own, pages of the mapped file included: the largest after any
token, less what the same process held right before it opened the file, with everything imported and all kernels
compiled. The interpreter, numpy and the compiler are much larger than a small model, and the same for both ways.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import MiniquantError
from ..formats.bump.read import open_bump

if TYPE_CHECKING:
    from .runtime import Runtime

WAYS = ("from blocks", "dequantized first")


class Memory(NamedTuple):
    """Bytes: the file, the arena, and what the process held after opening and after each token, less what before."""

    file: int
    arena: int
    tokens: list[int]

    @property
    def peak(self) -> int:
        """The most."""
        return max(self.tokens)


def measure(path: str | os.PathLike[str], way: str = "from blocks", n: int = 16) -> Memory:
    """Generate ``n`` tokens from a bump file in a process of its own, and look at its memory after each.

    ``way`` is one of ``WAYS``: "dequantized first" makes float32 of every tensor before it multiplies the same way.
    Raises ``MiniquantError`` if the process fails, or on a system that does not tell.
    """
    if way not in WAYS:
        raise MiniquantError(f"unknown way {way!r}; there are {', '.join(WAYS)}")
    command = [sys.executable, "-m", "miniquant.runtime.memory", os.fspath(path), way, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise MiniquantError(f"{path} could not be run: {done.stderr.strip()[-500:]}")
    return Memory(**json.loads(done.stdout))


def resident() -> int:
    """The resident set of this process in bytes: private memory and pages of mapped files."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        done = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True)
        if not done.stdout.strip().isdigit():
            raise MiniquantError("this system does not say how much memory a process holds") from None
        return int(done.stdout) * 1024


def _run(path: str, way: str, n: int) -> Memory:
    from ..formats.bump.types import BumpType
    from .kernels import warm
    from .runtime import Runtime

    with open_bump(path) as file:  # everything that reading brings along is there once before the first look
        size, first = file.n_bytes, file.config.bos or 0
        warm([*(tensor.dtype for tensor in file.tensors.values()), BumpType.FP32])
    before, found = resident(), []
    with Runtime(path) as model:
        if way == "dequantized first":
            _dequantize(model)
        found.append(resident() - before)
        model.greedy([first], min(n, model.context), lambda: found.append(resident() - before))
        return Memory(size, model.plan.size, found)


def _dequantize(model: Runtime) -> None:
    """Put float32 in the place of every matrix: what a program without products from blocks must do."""
    for name in model.file.tensors:
        model.replace_weight(name, model.file.tensor(name))


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1], sys.argv[2], int(sys.argv[3]))._asdict()))
