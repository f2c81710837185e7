"""Write the tables of tensor types into ``formats/``: ``python tools/type_tables.py``; with ``--check`` only compare.

Each description of a format has its tables between two comments; they come from ``GGMLType`` and ``BumpType``.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from enum import IntEnum
from pathlib import Path

from miniquant.formats.bump.types import BumpType
from miniquant.formats.gguf.types import GGMLType

FOLDER = Path(__file__).resolve().parent.parent / "formats"
TABLE = re.compile(
    r"^( *)((?://|#) made by tools/type_tables\.py: (\w+)\n).*?^( *(?://|#) end of the table)$", re.M | re.S
)
Row = tuple[IntEnum, int, int]  # a type, and the weights and bytes of its blocks
TYPES: dict[str, tuple[Row, ...]] = {
    "gguf": tuple((kind, kind.block, kind.n_bytes) for kind in GGMLType),
    "bump": tuple((kind, kind.block, kind.blocks.n_bytes) for kind in BumpType if kind.ggml is not None),
}


def with_tables(text: str, rows: Iterable[Row]) -> str:
    """A description with its tables made anew."""
    tables = {"sizes": _sizes, "enum": _enum, "pattern": _pattern}

    def made(match: re.Match[str]) -> str:
        lines = "\n".join(tables[match[3]](tuple(rows)))
        return f"{match[1]}{match[2]}{textwrap.indent(lines, match[1])}\n{match[4]}"

    return TABLE.sub(made, text)


def _sizes(rows: tuple[Row, ...]) -> Iterator[str]:
    """Kaitai: two lists that a type's number leads into; 0 where no type has the number."""
    for name, column in (("block_weights", 1), ("block_bytes", 2)):
        found = {int(row[0]): row[column] for row in rows}
        listed = ", ".join(str(found.get(number, 0)) for number in range(max(found) + 1))
        yield f"{name}:"
        yield "  value: >-"
        yield textwrap.indent(textwrap.fill(f"[{listed}]", 100), "    ")


def _enum(rows: tuple[Row, ...]) -> Iterator[str]:
    """Kaitai: the numbers and their names."""
    for kind, weights, n_bytes in rows:
        yield f"{kind.value}: {kind.name.lower()} # {_about(weights, n_bytes)}"


def _pattern(rows: tuple[Row, ...]) -> Iterator[str]:
    """ImHex: an enum, and the sizes of each type's blocks."""
    yield f"enum TensorType : {'u8' if isinstance(rows[0][0], BumpType) else 'u32'} {{"
    yield from (f"    {kind.name} = {kind.value}, // {_about(weights, n_bytes)}" for kind, weights, n_bytes in rows)
    yield "};"
    for name, column in (("block_weights", 1), ("block_bytes", 2)):
        yield ""
        yield f"fn {name}(TensorType type) {{"
        yield "    match (type) {"
        yield from (f"        (TensorType::{row[0].name}): return {row[column]};" for row in rows)
        yield "        (_): return 0;"
        yield "    }"
        yield "};"


def _about(weights: int, n_bytes: int) -> str:
    return (
        f"{weights} weights in {n_bytes} bytes" if weights > 1 else f"a weight in {n_bytes} byte{'s' * (n_bytes > 1)}"
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only; write nothing")
    options, old = parser.parse_args(), 0
    for name, rows in TYPES.items():
        for path in sorted(FOLDER.glob(f"{name}.*")):
            text = path.read_text("utf-8")
            if (new := with_tables(text, rows)) == text:
                continue
            old += 1
            if options.check:
                print(f"formats/{path.name} is old; run tools/type_tables.py")
            else:
                path.write_text(new, "utf-8")
    return old if options.check else 0


if __name__ == "__main__":
    sys.exit(main())
