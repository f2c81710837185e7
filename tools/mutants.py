"""Mutation testing: small faults are put into the source, one at a time, and the tests must notice each.

    python tools/mutants.py                                every module that needs it
    python tools/mutants.py core quantization/grids.py     these packages and modules
    python tools/mutants.py --minutes 30 --sample 100      stop after half an hour; 100 mutants of each module

The faults are those of mutmut; the runner is ours, because mutmut leaves out decorated functions, kernels that numba
compiles among them, and all code outside functions. Nothing on the disk is changed: torch and the like are imported
once, each mutant gets a fork of that process, and there an import hook hands out the changed source of one module. It
is tried with the tests of its own package (and those named in ``PACKAGES``; ``FILES`` has modules that are tried with
fewer) that execute the changed line, the quickest first, until one fails.

Each verdict goes into ``.mutants/`` at once, so a run can be broken off; a finished module goes into
``tests/mutants.json``. A module is measured again when its code has changed (docstrings and comments do not count), and
survivors without a reason are tried again at every run. Reasons are written into that file by hand, and are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from mutants_faults import fingerprint, mutants

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "miniquant"
RESULT = ROOT / "tests" / "mutants.json"
PAGE = ROOT / "book" / "exact.md"
BEGIN, END = "<!-- counts: make mutants -->\n", "<!-- end of counts -->\n"
WORST = 0.05  # of a package's mutants may survive

# package -> the folders of tests that are asked
PACKAGES = {
    "core": ["core"],
    "quantization": ["quantization"],
    "formats": ["formats"],
    "calibrate": ["calibrate"],
    "runtime": ["runtime", "formats/bump"],
}
# modules, or folders, that a package's tests would try for hours -> the files that are asked instead, which are quick
FILES = {
    "core/registers.py": ["core/test_registers.py"],
    "formats/gguf/codecs/rows.py": [
        f"formats/gguf/codecs/test_{n}.py" for n in ("rows", "compiled_in_python", "compiled_forms")
    ],
    "formats/gguf/compiled/": ["formats/gguf/codecs/test_compiled_in_python.py"],
    "formats/gguf/compiled/vectors.py": [f"formats/gguf/codecs/test_{n}.py" for n in ("compiled_registers", "rows")],
    "formats/gguf/write.py": [f"formats/gguf/test_{name}.py" for name in ("gguf_file", "gguf_refused", "gguf_lazy")],
    "runtime/compiled.py": ["runtime/test_bump_kernels.py"],
    "runtime/direct.py": ["runtime/test_products_in_python.py"],
    "runtime/lanes.py": ["runtime/test_lanes.py"],
    "runtime/products.py": ["runtime/test_products_in_python.py"],
    "runtime/unpacking.py": ["runtime/test_products_in_python.py"],
    "runtime/runtime.py": ["runtime/test_bump_runtime.py", "runtime/test_bump_speak.py"],
}


def modules_of(names: list[str]) -> list[str]:
    """Packages and modules as modules, in the order of the table; all when none is named."""
    every = [str(path.relative_to(SOURCE)) for package in PACKAGES for path in sorted((SOURCE / package).rglob("*.py"))]
    every = [module for module in every if not module.endswith("__init__.py")]
    if unknown := [name for name in names if name not in PACKAGES and name not in every]:
        sys.exit(f"no such package or module: {', '.join(unknown)}; packages are {', '.join(PACKAGES)}")
    return [m for m in every if not names or m in names or m.split("/")[0] in names]


def asked(module: str) -> list[str]:
    """The folders and files of tests that a module's mutants are tried with."""
    own = FILES.get(module) or FILES.get(module.rpartition("/")[0] + "/")
    return own or PACKAGES[module.split("/")[0]]


def current(module: str) -> str:
    """The fingerprint of a module as it is now."""
    return fingerprint((SOURCE / module).read_text("utf-8"))


def load() -> dict[str, Any]:
    """The stored result."""
    return json.loads(RESULT.read_text("utf-8"))


def save(result: dict[str, Any]) -> None:
    """Write the result, and the page with its counts."""
    order = modules_of([])
    result["modules"] = {m: result["modules"][m] for m in order if m in result["modules"]}
    result["not_measured"] = [m for m in result["not_measured"] if m in order and m not in result["modules"]]
    draft = RESULT.with_suffix(".tmp")
    draft.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    os.replace(draft, RESULT)
    PAGE.write_text(rendered(PAGE.read_text("utf-8"), result), "utf-8")


def measure(module: str, entry: dict[str, Any] | None, known: dict[str, Any], deadline: float, sample: int) -> Any:
    """The entry of a module, or ``None`` if the time was up before its last mutant."""
    from mutants_run import WORK, choose, judge

    code = (SOURCE / module).read_text("utf-8")
    digest = fingerprint(code)
    every, left_out = mutants(code)
    chosen = {m.key for m in sorted(every, key=lambda m: m.key)[:sample]}  # a hash's order is as good as a seeded draw
    todo = [m for m in every if m.key in chosen]
    log = WORK / (module.replace("/", "+") + ".jsonl")
    rows = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")] if log.exists() else []
    done = {row["key"]: row for row in rows}
    if entry and entry["hash"] == digest:
        again = {s["key"] for s in entry["survived"] if not s["reason"]}
        done = {key: row for key, row in done.items() if key not in again}
    kills = Counter(row["killer"] for row in done.values() if row["killer"])
    _probe(module, code, todo, known)
    with log.open("a") as out:
        for mutant in todo:
            if mutant.key in done:
                continue
            if time.monotonic() > deadline:
                return None
            files = choose(module, mutant, known, kills)
            result, killer, seconds = judge(module, mutant, files) if files else ("survived", "", 0.0)
            kills[killer] += bool(killer)
            done[mutant.key] = {"key": mutant.key, "result": result, "killer": killer, "seconds": round(seconds, 2)}
            out.write(json.dumps(done[mutant.key]) + "\n")
            out.flush()
    reasons = {(s["original"], s["mutated"]): s["reason"] for s in (entry or {"survived": []})["survived"]}
    count = Counter(done[m.key]["result"] for m in todo)
    survived = [m for m in todo if done[m.key]["result"] == "survived"]
    return {
        "hash": digest,
        "mutants": len(every),
        "sampled": len(todo),
        "killed": count["killed"] + count["crash"],
        "timeout": count["timeout"],
        "left_out": dict(sorted(left_out.items())),
        "seconds": round(sum(done[m.key]["seconds"] for m in todo)),
        "survived": [
            {"line": m.line, "original": m.original, "mutated": m.mutated, "key": m.key}
            | {"reason": reasons.get((m.original, m.mutated), "")}
            for m in survived
        ],
    }


def _probe(module: str, code: str, todo: list[Any], known: dict[str, Any]) -> None:
    """The source as it is must pass, and one that only raises must fail: else nothing that follows means anything."""
    from dataclasses import replace

    from mutants_run import choose, judge

    tests = choose(module, replace(todo[0], function=None), known, Counter())[:2] if todo else []  # two files will do
    for source, expected in ((code, "survived"), ("raise ImportError('probe')\n", "killed")):
        if tests and (found := judge(module, replace(todo[0], source=source), tests))[0] != expected:
            sys.exit(f"{module}: the probe was {found[0]} by {found[1]}, expected {expected}; see .mutants/tmp/out.txt")


def counts(result: dict[str, Any]) -> str:
    """The result as Markdown: a row for each package, and what is not measured."""
    lines = ["| package | modules measured | mutants tried | killed | stopped by the clock | survived |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
    for package in PACKAGES:
        entries = [entry for module, entry in result["modules"].items() if module.startswith(package + "/")]
        every = len(modules_of([package]))
        tried, killed, late = (sum(e[key] for e in entries) for key in ("sampled", "killed", "timeout"))
        alive = sum(len(entry["survived"]) for entry in entries)
        cells = [f"`{package}`", f"{len(entries)} of {every}", f"{tried:,}", f"{killed:,}", f"{late:,}"]
        lines.append(f"| {' | '.join([*cells, f'{alive} ({alive / tried:.1%})' if tried else '–'])} |")
    sampled = {m: e for m, e in result["modules"].items() if e["sampled"] < e["mutants"]}
    if sampled:
        named = ", ".join(f"`{m}` ({e['sampled']} of {e['mutants']})" for m, e in sampled.items())
        lines += ["", f"Of these modules a sample was tried, drawn by a hash of the mutant: {named}."]
    if result["not_measured"]:
        lines += ["", f"Not measured yet: {', '.join(_names(result['not_measured']))}."]
    return "\n".join(lines) + "\n"


def _names(listed: list[str]) -> list[str]:
    """Modules as Markdown, a whole package as one entry."""
    whole = [package for package in PACKAGES if set(modules_of([package])) <= set(listed)]
    return [f"`{m}`" for m in listed if m.split("/")[0] not in whole] + [f"all of `{package}`" for package in whole]


def rendered(page: str, result: dict[str, Any]) -> str:
    """The page with the counts of this result."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{counts(result)}\n{END}{after}"


def main() -> int:
    """Measure what needs it. 0: all of it is done, 3: the time was up first."""
    from mutants_run import knowledge, prepare

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="packages or modules; all when none is named")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="stop then; the next run goes on from there"
    )
    parser.add_argument("--sample", type=int, default=10**9, help="so many mutants of each module")
    args = parser.parse_args()
    deadline = time.monotonic() + 60 * args.minutes
    result = load()
    todo = []
    for module in modules_of(args.what):
        entry = result["modules"].get(module)
        fresh = entry and entry["hash"] == current(module) and entry["sampled"] >= min(entry["mutants"], args.sample)
        if not fresh or not all(s["reason"] for s in entry["survived"]):
            todo.append(module)
    print(f"{len(todo)} modules to measure", flush=True)
    if todo:
        prepare()
    for module in todo:
        package = module.split("/")[0]
        try:
            known = knowledge(asked(module), [m for m in todo if m.startswith(package)], deadline)
            entry = measure(module, result["modules"].get(module), known, deadline, args.sample)
        except TimeoutError:
            entry = None
        if entry is None:
            print(f"time is up in {module}; the next run goes on from there")
            return 3
        result = load()
        result["modules"][module] = entry
        save(result)
        print(f"{module}: {entry['sampled']} of {entry['mutants']} mutants, {len(entry['survived'])} survived, "
              f"{entry['timeout']} timeouts, {entry['seconds']} s", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
