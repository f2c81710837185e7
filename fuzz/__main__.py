"""``python -m fuzz``: read damaged files, so many or for so long; ``--record`` keeps the counts in results.json."""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np

from . import guided
from .probe import MEMORY, SECONDS, Tally, file_number, run
from .readers import READERS
from .sources import source_hash

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
CHUNK = 20_000  # files to a process


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code is the number of readers with findings."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--reader", choices=[*READERS, "all"], default="all")
    parser.add_argument("--files", type=int, default=10_000, help="damaged files for each reader")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other files")
    parser.add_argument("--guided", type=float, metavar="SECONDS", help="guided by coverage (atheris), for so long")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="write that damaged file to the output, and stop")
    parser.add_argument("--record", action="store_true", help=f"keep the counts in {RESULTS.name}")
    options = parser.parse_args(arguments)
    names = list(READERS) if options.reader == "all" else [options.reader]
    if options.show is not None:
        sys.stdout.buffer.write(file_number(names[0], options.seed, options.show))
        return 0
    failed = 0
    for name in names:
        if options.guided is not None and importlib.util.find_spec("atheris"):
            kind, result = "guided", guided.guide(name, options.guided / len(names))
        else:
            deadline = None if options.guided is None else time.monotonic() + options.guided / len(names)
            kind, result = "mutated", mutate(name, options.seed, options.files, deadline)
        failed += bool(result["findings"])
        if options.record:
            record(kind, name, result)
    return failed


def mutate(name: str, seed: int, files: int, deadline: float | None = None) -> dict:
    """Read so many damaged files (or until the deadline) in processes of their own, and say what came out."""
    total, done = Tally(), 0
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() and os.access(shm, os.W_OK) else None) as folder:
        path = Path(folder) / "damaged"
        while not total.findings and (done < files if deadline is None else time.monotonic() < deadline):
            count = CHUNK if deadline is not None else min(CHUNK, files - done)
            count = 1000 if deadline is not None else count
            add(total, chunk(name, seed, done, count, path))
            done += count
            print(f"\r{name}: {done} files, {total.accepted} read, {total.refused} refused", end="", flush=True)
    print(f", worst {total.worst_seconds:.3f} s, {total.worst_memory / 2**20:.1f} MiB")
    for number, problem in total.findings:
        print(f"  finding: file {number}: {problem}\n    python -m fuzz --reader {name} --seed {seed} --show {number}")
    found = {**vars(total), "fields": dict(total.fields.most_common(20))}
    return {"files": total.accepted + total.refused, "seed": seed, **found}


def chunk(name: str, seed: int, start: int, count: int, path: Path) -> Tally:
    """``probe.run`` in a process of its own, which a damaged file may kill."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), guided.in_numpy) as pool:
        try:
            return pool.submit(run, name, seed, start, count, path).result()
        except BrokenProcessPool:
            dead = path.read_bytes() if path.exists() else b""
            number = next((n for n in range(start, start + count) if file_number(name, seed, n) == dead), -1)
            return Tally(findings=[(number, f"the process died on a file of {len(dead)} bytes")])


def add(total: Tally, part: Tally) -> None:
    """Count one run to the others."""
    total.accepted += part.accepted
    total.refused += part.refused
    total.worst_seconds = max(total.worst_seconds, part.worst_seconds)
    total.worst_memory = max(total.worst_memory, part.worst_memory)
    total.fields += part.fields
    total.findings += part.findings


def record(kind: str, name: str, result: dict) -> None:
    """Put a result into results.json, beside those of the other readers."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    result["source"] = source_hash(*READERS[name].entries)
    results["limits"] = {"seconds": SECONDS, "memory": MEMORY}
    results["versions"] = {"python": platform.python_version(), "numpy": np.__version__}
    results.setdefault(kind, {})[name] = result
    RESULTS.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
