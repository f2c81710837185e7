"""Run by the page's Python under Node: archives in which the modules that a lab starts with are compiled.

Python in the page would otherwise compile them again each time that a reader presses *Try it here*.
"""

from __future__ import annotations

import io
import linecache
import signal
import sys
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc  # type: ignore[attr-defined]  # py_compile reads files only

FIRST = """
from miniquant.inspect.hexview import hexview
from miniquant.lab import check, exercise, hint, predict

@exercise("magic_bytes")
def magic_bytes(magic, version):
    return magic.to_bytes(4, "big") + version.to_bytes(4, "big")

check(magic_bytes)
hexview(bytes(16))
"""
FIGURE = """
import io
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
ax.plot([0, 1], label="a")
ax.imshow([[0, 1]])
ax.legend()
fig.savefig(io.BytesIO(), format="png")
"""
UNUSED = (".pyi", ".pxd", ".h", ".a")  # what only those need who compile against a package
DATE = (2020, 1, 1, 0, 0, 0)


def run(source: str) -> None:
    """Run some code as a cell is run."""
    linecache.cache["<cell>"] = (len(source), None, source.splitlines(keepends=True), "<cell>")
    signal.setitimer = signal.getitimer = lambda *_: (0.0, 0.0)  # type: ignore[assignment]  # there is none in the page
    exec(compile(source, "<cell>", "exec"), {"__name__": "__main__"})


def used() -> list[str]:
    """The files of all modules that are loaded."""
    return [file for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))]


def compiled(archive: bytes, folder: str, files: list[str], with_source: bool) -> bytes:
    """An archive with the modules among ``files`` compiled. folder: where it lies when Python imports from it

    with_source: the source stays beside, for what reads it
    """
    wanted, packed = {file for file in files if file.endswith(".py")}, io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            data, path = old.read(name), f"{folder}/{name}"
            if name.endswith(UNUSED):
                continue
            if path in wanted:
                code = bytes(_code_to_hash_pyc(compile(data, path, "exec", dont_inherit=True), bytes(8), False))
                _add(new, _cached(name) if with_source else f"{name}c", code)
            if path not in wanted or with_source:
                _add(new, name, data)
    return packed.getvalue()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, DATE), data, zipfile.ZIP_DEFLATED)


def _cached(name: str) -> str:
    folder, _, file = name.rpartition("/")
    return f"{folder}/__pycache__/{file.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc"
