"""The modules that a reader runs, found from the import lines, and a hash of what they do, to be stored with counts."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

import miniquant
from tools.mutants_faults import fingerprint

ROOT = Path(miniquant.__file__).parent
ROOMS = ("core", "quantization", "formats")
MODULES = {
    ".".join([part for part in path.relative_to(ROOT).with_suffix("").parts if part != "__init__"]): path
    for path in sorted(ROOT.rglob("*.py"))
}


@cache
def imported(module: str) -> frozenset[str]:
    """The modules that a module imports, wherever the line stands; all of its folder, if it lists the folder."""
    path = MODULES[module]
    text = path.read_text("utf-8")
    package = [part for part in module.split(".") if part]
    if path.name != "__init__.py":
        package.pop()
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                whole = ".".join([*base, alias.name])
                found.add(whole if whole in MODULES else ".".join(base))
    if "pkgutil.iter_modules" in text:
        folder = "".join(f"{part}." for part in package)
        found |= {name for name in MODULES if name.startswith(folder) and "." not in name.removeprefix(folder)}
    return frozenset(found & set(MODULES)) - {module}


def sources(*entries: str) -> list[str]:
    """These modules, those that they import, and what those import in turn, as far as they lie in ``ROOMS``."""
    found: set[str] = set()
    waiting = list(entries)
    while waiting:
        module = waiting.pop()
        if module not in found and module.partition(".")[0] in ROOMS:
            found.add(module)
            waiting += imported(module)
    return sorted(found)


def source_hash(*entries: str) -> str:
    """A hash of what these modules and those behind them do; comments and docstrings do not count."""
    parts = (f"{name} {fingerprint(MODULES[name].read_text('utf-8'))}\n" for name in sources(*entries))
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]
