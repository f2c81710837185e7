"""The rooms of the library: who may import whom, and no cycles. Read from the import lines, also those in functions."""

from __future__ import annotations

import ast
import functools
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from places import ROOT

from miniquant.models.corpus import _statements as statements

SOURCE = ROOT / "src" / "miniquant"
BELOW = {  # room -> the rooms that it may import
    "core": set(),
    "quantization": {"core"},
    "formats": {"core", "quantization"},
    "models": {"core", "quantization", "formats"},
    "runtime": {"core", "quantization", "formats"},
    "calibrate": {"core", "quantization", "formats", "models", "runtime"},
    "evaluate": {"core", "quantization", "formats", "models", "runtime", "calibrate"},
    "inspect": {"core", "quantization", "formats", "models", "runtime", "calibrate", "evaluate"},
    "plots": {"core", "quantization", "formats", "models", "runtime", "calibrate", "evaluate", "inspect"},
    "quark": {"core", "quantization", "formats", "models", "runtime", "calibrate"},
    "lab": {"core"},
    "cli": {
        *("core", "quantization", "formats", "models", "runtime", "calibrate", "evaluate", "inspect", "plots"),
        "lab",
    },
    "lessons": {
        *("core", "quantization", "formats", "models", "runtime", "calibrate", "evaluate", "inspect", "plots"),
        "lab",
    },
}


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


@functools.cache
def imports(module: str) -> set[str]:
    """The modules of this library that a module imports, wherever the line stands; type checking's lines left out."""
    path, found = MODULES[module], set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(source := path.read_text("utf-8"))
    if "TYPE_CHECKING" in source:
        for block in [node for node in statements(tree) if isinstance(node, ast.If)]:
            if "TYPE_CHECKING" in ast.unparse(block.test):
                block.body = []
    for node in statements(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])
            for alias in node.names:
                found.add(f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base)
    return found & set(MODULES) - {module}


def room_of(module: str) -> str:
    """The room of a module; the root itself, the command line and what has no room are called by their own names."""
    return [*module.split("."), ""][1] or "miniquant"


@pytest.mark.parametrize("room", BELOW)
def test_a_room_imports_only_rooms_below_it(room):
    for module in MODULES:
        if room_of(module) == room:
            for other in imports(module):
                assert room_of(other) in {room, *BELOW[room]}, f"{module} imports {other}"


def test_every_module_lies_in_a_room():
    outside = {module for module in MODULES if room_of(module) not in BELOW}
    assert outside == {
        "miniquant",
        "miniquant.course",
    }  # the root, and what sets up a checkout before anything is there
    assert imports("miniquant.course") == set()


def test_no_module_imports_itself_through_others():
    TopologicalSorter({module: imports(module) for module in MODULES}).prepare()  # raises CycleError and names the ring


def test_no_module_of_the_library_is_longer_than_400_lines():
    long = {module: n for module, path in MODULES.items() if (n := path.read_text("utf-8").count("\n")) > 400}
    assert long == {}
