"""What grading takes: a generated class, graded with one process and with two; processor time and memory.

python benchmarks/bench_grading.py [--students 1000] [--alone 200] [--out FOLDER]

Two processes grade the whole class; one process alone grades its first students, since it takes as long for each.

The class has right answers, wrong ones, and notebooks that crash, never end or try to escape, in the shares below.
Every student hands in one lab, in turn those of LABS: the solved notebook, in which the others have one answer
replaced. The time of a notebook is limited to SECONDS. Time is that of the processor, of the grader and of all that it
started, since a clock measures what else the machine does; the clock is stored beside it. Memory is what belongs to the
processes of one grader, shared pages divided among them (Pss). Writes grading.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench import HERE

from miniquant.core.machine import hardware, versions
from miniquant.lab import exercises
from miniquant.lab.spec import Altered

SHARES = {"right": 60, "wrong": 25, "crashing": 5, "endless": 5, "hostile": 5}  # of a hundred
LABS = (
    "06-int8",
    "07-int4",
    "08-container",
    "09-writer",
    "10-reader",
    "14-gguf",
    "15-gguf-blocks",
    "25-four-bit-floats",
)
SECONDS = 20
BODIES = {
    "crashing": "    import os\n    os._exit(1)\n",
    "endless": "    while True:\n        pass\n",
    "hostile": "    import os, socket, subprocess\n"
    "    for act in (os.fork, socket.socket, lambda: subprocess.run(['sh']), lambda: open('/etc/passwd').read(),\n"
    "                lambda: os.kill(os.getppid(), 9), lambda: open('/tmp/x', 'w')):\n"
    "        try:\n            act()\n        except Exception:\n            pass\n",
}


def notebook_of(kind: str, lab: str, number: int) -> dict[str, Any]:
    """A solved lab in which one answer is of that kind."""
    found: dict[str, Any] = json.loads((HERE.parent / "solutions" / f"{lab}.ipynb").read_text("utf-8"))
    if kind == "right":
        return found
    names = [name for name in exercises() if exercises().lab_of(name) == lab[:2]]
    name = names[number % len(names)]
    for cell in found["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code" and re.search(rf'@exercise\("{name}"\)', text):
            head = text[: re.search(rf"def {name}\([^)]*\):\n", text).end()]  # type: ignore[union-attr]
            cell["source"] = [head + BODIES[kind] if kind in BODIES else head + _mistake(name, number)]
    return found


def _mistake(name: str, number: int) -> str:
    """The body of a mistake of the catalogue."""
    altered = [mistake.wrong for mistake in exercises()[name].mistakes if isinstance(mistake.wrong, Altered)]
    source = altered[number % len(altered)].source if altered else "def f():\n    return None\n"
    return source[source.index("\n") + 1 :]


def make_class(folder: Path, students: int) -> Counter[str]:
    """Write the notebooks; return how many there are of each kind."""
    kinds = [kind for kind, share in SHARES.items() for _ in range(share)]
    made: Counter[str] = Counter()
    for number in range(students):
        kind, lab = kinds[number * 37 % 100], LABS[number % len(LABS)]
        made[kind] += 1
        home = folder / f"{number:05}-{kind}"
        home.mkdir()
        (home / f"{lab}.ipynb").write_text(json.dumps(notebook_of(kind, lab, number)), "utf-8")
    return made


def memory_of(root: int) -> int:
    """Bytes that a process and all its descendants have to themselves, their shares of common pages among them."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    total = 0
    for pid in family:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += 1024 * int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1))  # type: ignore[union-attr]
    return total


def measure(folder: Path, jobs: int, out: Path) -> dict[str, Any]:
    """Grade the class once."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "miniquant.cli", "grade", str(folder), "--seed", "1", "--jobs", str(jobs)]
    process = subprocess.Popen(
        [*command, "--seconds", str(SECONDS), "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peak = [0]

    def watch() -> None:
        while process.poll() is None:
            peak[0] = max(peak[0], memory_of(process.pid))
            time.sleep(1)

    watching = threading.Thread(target=watch)
    watching.start()
    if process.wait():
        raise SystemExit("the grading failed")
    watching.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rows = [json.loads(line) for line in out.with_suffix(".jsonl").read_text().splitlines()]
    states: dict[str, Counter[str]] = {}
    for row in rows:
        counts = states.setdefault(row["student"].split("-")[1], Counter())
        counts.update(answer["status"] for answer in row["answers"].values())
    return {
        "students": len(rows),
        "processor_seconds": round(used, 1),
        "clock_seconds": round(time.monotonic() - start, 1),
        "megabytes_per_job": round(peak[0] / jobs / 2**20),
        "states": {kind: dict(counts) for kind, counts in states.items()},
    }


def main() -> None:
    """The command line; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--students", type=int, default=1000)
    parser.add_argument("--alone", type=int, default=200, help="students that one process grades alone")
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = {}
        for jobs, students in ((1, min(options.alone, options.students)), (2, options.students)):
            folder = Path(place) / f"class{jobs}"
            folder.mkdir()
            made = make_class(folder, students)
            found[str(jobs)] = measure(folder, jobs, Path(place) / f"grades{jobs}")
    results = {
        "hardware": hardware(),
        "versions": versions(),
        "seconds_a_notebook": SECONDS,
        "labs": list(LABS),
        "class": dict(made),
        "jobs": found,
    }
    (options.out / "grading.json").write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
