"""Compile ``formats/*.ksy`` with Kaitai Struct's compiler, and compare what the parsers read with this library.

    python tools/kaitai.py [options of pytest]      compile, then run tools/test_kaitai.py

The compiler comes through npm, its Python runtime through pip, each checked by its SHA-256; nothing of them is kept.
With ``PYODIDE_DIST`` set they come from that folder, as in ``tools/live.py``. The exit code is 3 if they cannot be had
here, for want of a registry, of a file in that folder or of node; it is 1 if a file is not the one that is pinned.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import yaml
from live import ROOT, LiveError, NotToBeHad, fetch

PINS: list[dict[str, object]] = [
    {
        "name": "kaitai-struct-compiler",
        "version": "0.11.0",
        "kind": "npm",
        "files": {
            "package/kaitai-struct-compiler.js": [
                "kaitai-struct-compiler.js",
                "c9aacee51040be0977299210fc2624e6bbf2a51770b3dca579accbbaa84ba353",
            ]
        },
    },
    {
        "name": "kaitaistruct",
        "version": "0.11",
        "kind": "pip",
        "files": {
            "kaitaistruct.py": ["kaitaistruct.py", "27715071dc49dc915efeed1f61fd61233bec5a6ad2afc6a067aa607b0c691a30"]
        },
    },
]
STORE = ROOT / "_build" / "kaitai"


class Compiled(NamedTuple):
    """The parser of each description by its name, such as ``gguf_lite``, and Kaitai's runtime."""

    parsers: dict[str, Any]
    runtime: ModuleType


@cache
def compiled() -> Compiled:
    """Fetch the compiler and compile every description.

    Raises ``NotToBeHad`` if the compiler cannot be fetched or there is no node, ``LiveError`` if a file is another.
    """
    fetch(PINS, STORE)
    descriptions = [yaml.safe_load(path.read_text("utf-8")) for path in sorted((ROOT / "formats").glob("*.ksy"))]
    command = ["node", str(Path(__file__).with_suffix(".mjs")), str(STORE / "kaitai-struct-compiler.js")]
    try:
        done = subprocess.run(command, input=json.dumps(descriptions), stdout=subprocess.PIPE, text=True)
    except OSError as error:
        raise NotToBeHad(f"the compiler needs node: {error}") from None
    if done.returncode:
        raise SystemExit("a description does not compile")
    sys.path.append(str(STORE))  # kaitaistruct, which the parsers import
    with tempfile.TemporaryDirectory() as folder:
        modules = {}
        for name, text in json.loads(done.stdout).items():
            path = Path(folder) / name
            path.write_text(text, "utf-8")
            modules[path.stem] = _load(path)
    found = {name: getattr(module, name.title().replace("_", "")) for name, module in modules.items()}
    return Compiled(found, sys.modules["kaitaistruct"])


def _load(path: Path) -> ModuleType:
    """A module under a name of its own: one of them is called like a package that the tests use."""
    spec = importlib.util.spec_from_file_location(f"kaitai_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """The command line."""
    try:
        compiled()
    except LiveError as error:
        print(f"== no compiler for the descriptions of the formats: {error}")
        return 3 if isinstance(error, NotToBeHad) else 1
    rooms = ("", "formats", "formats/gguf", "formats/gguf_lite", "formats/bump")
    sys.path[:0] = [str(ROOT / "tests" / room) for room in rooms]  # their files and models are compared
    tests = str(Path(__file__).with_name("test_kaitai.py"))
    return int(pytest.main(["-q", "-p", "no:nbval", tests, *sys.argv[1:]]) != pytest.ExitCode.OK)


if __name__ == "__main__":
    sys.exit(main())
