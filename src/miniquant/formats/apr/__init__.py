"""APR: a model as JSON, every number as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.reading import Source
from ..registry import Format

if TYPE_CHECKING:
    from ..file import Beside
    from .read import AprFile


def _open(source: Source, beside: Beside) -> AprFile:
    from .read import open_apr

    return open_apr(source)


FORMAT = Format(
    name="apr",
    title="APR",
    extensions=(".apr", ".apr.json"),
    version=1,
    begins="b'{'",
    matches=lambda head: head.startswith(b"{"),
    open=_open,
)
