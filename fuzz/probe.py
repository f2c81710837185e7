"""Read damaged files one after the other, under limits: what came out, how long it took, how much memory."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from miniquant.core.errors import FormatError
from miniquant.lab.limit import TooSlow, time_limit

from .mutate import mutated
from .readers import READERS

try:
    import resource  # not on Windows
except ImportError:
    resource = None

SECONDS = 1.0  # of processor time, for one file
MEMORY = 64 << 20  # bytes of address space, beyond what the process had before the first file
MOST_FINDINGS = 5


@dataclass
class Tally:
    """What a run of files came to; ``worst_seconds`` of processor time, ``worst_memory`` in bytes."""

    accepted: int = 0
    refused: int = 0
    worst_seconds: float = 0.0
    worst_memory: int = 0
    fields: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[int, str]] = field(default_factory=list)  # (number of the file, what came out)


def file_number(name: str, seed: int, number: int, files: list | None = None) -> bytes:
    """Damaged file ``number`` of a run: the same bytes each time."""
    reader = READERS[name]
    return mutated(random.Random(f"{seed} {name} {number}"), files or reader.seeds(), reader.repair, reader.injuries)


def run(name: str, seed: int, start: int, count: int, path: Path) -> Tally:
    """Read the damaged files ``start`` to ``start + count``; each stands at ``path`` while it is read.

    The whole run gets ``MEMORY`` bytes of address space (Linux), each file ``SECONDS``. A file that kills the process
    is the one that then stands at ``path``.
    """
    os.environ["MINIQUANT_COMPILED"] = "0"  # loading numba would count for the file that is read just then
    reader, tally = READERS[name], Tally()
    files = reader.seeds()
    for seed_file in files:  # what is imported or computed once counts for no file
        outcome(reader.read, path, seed_file.data)
    with memory_limit() as used:
        for number in range(start, start + count):
            data = file_number(name, seed, number, files)
            before = time.process_time()
            problem, where = outcome(reader.read, path, data)
            seconds = time.process_time() - before
            tally.worst_seconds = max(tally.worst_seconds, seconds)
            if not problem and seconds > SECONDS:
                problem = f"took {seconds:.1f} s"
            if problem:
                tally.findings.append((number, problem))
                if len(tally.findings) >= MOST_FINDINGS:
                    break
            elif where:
                tally.refused += 1
                tally.fields[where] += 1
            else:
                tally.accepted += 1
    tally.worst_memory = used()
    return tally


def outcome(read, path: Path, data: bytes) -> tuple[str, str]:
    """(what should not have come out of reading these bytes, the part that was refused); two empty strings are fine."""
    path.unlink(missing_ok=True)  # a new file each time: whoever still maps the old one keeps it
    path.write_bytes(data)
    try:
        with time_limit(SECONDS, processor=True):
            read(str(path))
    except FormatError as error:
        if error.offset is None or not 0 <= error.offset <= len(data):
            return f"a FormatError at byte {error.offset} of {len(data)}: {error}", ""
        return "", (error.field or "").rsplit(": ", 1)[-1].split(" ")[0]
    except (Exception, TooSlow) as error:
        return f"{type(error).__name__}: {error}", ""
    return "", ""


@contextlib.contextmanager
def memory_limit():
    """Within the block the process gets ``MEMORY`` bytes more of address space, and then ``MemoryError``.

    Yields a function that says how far the memory in use (resident) rose at its peak. Linux only: elsewhere there is
    no limit, and the rise is 0.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        yield lambda: 0
        return

    def size(key: str) -> int:
        line = next(line for line in status.read_text().splitlines() if line.startswith(key))
        return int(line.split()[1]) << 10

    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    resident = size("VmRSS")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size("VmSize") + MEMORY, hard))
    try:
        yield lambda: max(0, size("VmHWM") - resident)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
