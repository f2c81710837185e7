"""A PNG file as a picture in a notebook: its own bytes, unchanged."""

from __future__ import annotations

import os
from pathlib import Path

SIGNATURE = bytes.fromhex("89 50 4e 47 0d 0a 1a 0a")


class Png:
    """Shows a PNG file in a notebook; a terminal gets its name and size.

    Raises ``ValueError`` for a file that does not begin like a PNG, ``OSError`` if it cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.data = Path(path), Path(path).read_bytes()
        if len(self.data) < 24 or not self.data.startswith(SIGNATURE):
            raise ValueError(
                f"{self.path.name} does not begin like a PNG; found {self.data[:8].hex(' ') or 'no bytes'}"
            )

    def __repr__(self) -> str:
        width, height = (int.from_bytes(self.data[at : at + 4], "big") for at in (16, 20))
        return f"{self.path.name}: a picture of {width} × {height} pixels"

    def _repr_png_(self) -> bytes:
        return self.data
