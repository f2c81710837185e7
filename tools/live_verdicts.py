"""Run by both Pythons: the verdict on every reference, starter and catalogued mistake, as one JSON line each.

python tools/live_verdicts.py > native.jsonl
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from miniquant.lab import Exercise, evaluate, exercises

Entry = dict[str, Any]


def verdicts(names: list[str] | None = None) -> Iterator[Entry]:
    """One entry each: exercise, answer, and what the report says; an exercise that needs a library says which."""
    for name in names or list(exercises()):
        try:
            spec = exercises()[name]
            answers = [("reference", spec.reference), ("starter", _starter(spec))]
            answers += [(mistake.name, mistake.wrong) for mistake in spec.mistakes]
        except ModuleNotFoundError as error:
            yield {"exercise": name, "needs": error.name}
            continue
        for answer, function in answers:
            try:
                report = evaluate(spec, function, search=False)
            except ModuleNotFoundError as error:
                yield {"exercise": name, "needs": error.name}
                break
            said = [report.status, report.what, report.mistake, report.cause, report.cure, repr(report.shown)]
            yield {"exercise": name, "answer": answer, "said": said}


def _starter(spec: Exercise) -> Callable[..., Any]:
    """The stub that a student is given."""
    scope: dict[str, Any] = {}
    names = ", ".join(inspect.signature(spec.reference).parameters)
    exec(f"def {spec.name}({names}):\n    raise NotImplementedError", scope)
    found: Callable[..., Any] = scope[spec.name]
    return found


def difference(native: list[Entry], page: list[Entry]) -> list[str]:
    """What the two engines say otherwise, one line each; torch adds cases, so their number may differ."""
    known = {(e["exercise"], e["answer"]): e["said"] for e in native if "needs" not in e}
    found = {(e["exercise"], e["answer"]): e["said"] for e in page if "needs" not in e}
    left_out = {e["exercise"] for e in page if "needs" in e}
    lines = [
        f"{name} {answer}: no verdict in the page" for name, answer in set(known) - set(found) if name not in left_out
    ]
    for key, said in found.items():
        pairs = [
            (ours, theirs) for ours, theirs in zip(known[key], said) if without_count(ours) != without_count(theirs)
        ]
        lines += [f"{key[0]} {key[1]}: {ours!r} here, {theirs!r} in the page" for ours, theirs in pairs[:1]]
    return lines


def without_count(text: str) -> str:
    """A sentence without its number of cases."""
    return re.sub(r"^(right on all) \d+ cases$", r"\1 cases", text)


def both(live: Path, *names: str) -> tuple[list[Entry], list[Entry]]:
    """The verdicts of Python here, and of Python in the page; each in a process of its own."""
    commands = (sys.executable, __file__), ("node", str(Path(__file__).with_suffix(".mjs")), str(live))
    running = [subprocess.Popen([*command, *names], stdout=subprocess.PIPE, text=True) for command in commands]
    texts = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise SystemExit(f"the two processes ended with {[process.returncode for process in running]}")
    native, page = ([json.loads(line) for line in text.splitlines()] for text in texts)
    return native, page


def compare(live: Path) -> int:
    """Both engines on everything; 1 if they differ.

    An exercise that differs is judged again, alone: on a busy machine a call may reach its limit of time.
    """
    native, page = both(live)
    lines = difference(native, page)
    if again := sorted({line.split()[0] for line in lines}):
        print("judged again, alone:", ", ".join(again))
        lines = difference(*both(live, *again))
    needs: dict[str, list[str]] = {}
    for entry in page:
        if "needs" in entry:
            needs.setdefault(str(entry["needs"]), []).append(str(entry["exercise"]))
    total, out = len({e["exercise"] for e in native}), sum(map(len, needs.values()))
    print(f"{sum('needs' not in e for e in page)} verdicts in the page; {len(lines)} differ from those of Python here")
    print(f"{total - out} of {total} exercises work in the page; the others need", json.dumps(needs))
    print("\n".join(lines[:20]))
    return bool(lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--against"]:
        sys.exit(compare(Path(sys.argv[2])))
    for entry in verdicts(sys.argv[1:]):
        print(json.dumps(entry), flush=True)
