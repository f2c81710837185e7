"""Try the readers of ``readers/`` on the suite, and keep what came out in ``results.json``, with their versions."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from . import suite
from .run import SECONDS, ask, report, try_all

READERS, RESULTS = suite.HERE / "readers", suite.HERE / "results.json"
ROOT = suite.HERE.parent
MODULES = ROOT / "_build" / "referee"
NODE = ("@huggingface/gguf@0.4.6", "@huggingface/tasks@0.21.54")  # as in tools/inspect_referee.py


class NotHere(Exception):
    """A reader cannot be had on this machine."""


class Reader(NamedTuple):
    """``prepare`` gets an empty folder and gives the command and the version."""

    formats: tuple[str, ...]
    prepare: Callable[[Path], tuple[list[str], str]]


def _python(script: str, package: str, _: Path) -> tuple[list[str], str]:
    return [sys.executable, str(READERS / script)], f"{package} {version(package)}"


def _node(_: Path) -> tuple[list[str], str]:
    modules = MODULES / "node_modules"
    if not (modules / "@huggingface" / "gguf").exists():
        MODULES.mkdir(parents=True, exist_ok=True)
        options = ["--silent", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix", str(MODULES)]
        try:
            done = subprocess.run(["npm", "install", *options, *NODE], capture_output=True, text=True)
        except OSError as error:
            raise NotHere(str(error)) from None
        if done.returncode:
            raise NotHere(done.stderr.strip()[-200:])
    found = json.loads((modules / "@huggingface" / "gguf" / "package.json").read_text("utf-8"))["version"]
    return ["node", str(READERS / "huggingface.mjs"), str(modules)], f"@huggingface/gguf {found}"


def _c(folder: Path) -> tuple[list[str], str]:
    compiler = shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        raise NotHere("there is no C compiler")
    for name in ("gguf_lite", "bump"):
        subprocess.run([compiler, "-std=c99", "-O2", "-o", folder / name, ROOT / "readers" / f"{name}.c"], check=True)
    return [sys.executable, str(READERS / "in_c.py"), str(folder)], f"readers/*.c of miniquant {version('miniquant')}"


ALL = {
    "miniquant": Reader(tuple(suite.ENDINGS), partial(_python, "ours.py", "miniquant")),
    "readers in C": Reader(("gguf-lite", "bump"), _c),
    "gguf": Reader(("gguf",), partial(_python, "gguf_package.py", "gguf")),
    "llama.cpp": Reader(("gguf",), partial(_python, "ggml.py", "xllamacpp")),
    "@huggingface/gguf": Reader(("gguf",), _node),
    "safetensors": Reader(("safetensors",), partial(_python, "safetensors_package.py", "safetensors")),
}


def suite_hash() -> str:
    """What the results belong to: the SHA-256 of the manifest."""
    return hashlib.sha256(suite.MANIFEST.read_bytes()).hexdigest()


def record_all(only: list[str] | None = None) -> int:
    """Try every reader, or some, and write ``results.json``; 3 if one of them cannot be had here."""
    results: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    if results.get("manifest") != suite_hash():
        results = {}
    results |= {"manifest": suite_hash(), "seconds": SECONDS}
    readers, missing = results.setdefault("readers", {}), 0
    for name, reader in ALL.items():
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as folder:
            try:
                command, told = reader.prepare(Path(own))
            except NotHere as error:
                print(f"{name} cannot be had here: {error}")
                missing = 3
                continue
            suite.unpack(Path(folder))
            entries = [entry for entry in suite.load() if entry["format"] in reader.formats]
            found = try_all(entries, lambda path: ask(command, Path(folder) / path))  # noqa: B023 called at once
        print(f"{told}\n  " + "\n  ".join(report(entries, found)[-len(reader.formats) :]), flush=True)
        kept = {path: [o.outcome, o.detail] if o.detail else [o.outcome] for path, o in found.items()}
        parts = {
            kind: sorted({p for e in entries if e["format"] == kind for p in found[e["path"]].parts})
            for kind in reader.formats
        }
        readers[name] = {"version": told, "compared": parts, "outcomes": kept}
    results["readers"] = {name: readers[name] for name in ALL if name in readers}
    RESULTS.write_text(json.dumps(results, indent=0, ensure_ascii=False) + "\n", "utf-8")
    return missing
