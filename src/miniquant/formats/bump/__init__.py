"""bump: the file that is memory already, and a runtime that never dequantizes more than a block.

Reading and writing need numpy alone; the runtime compiles its kernels with numba when it is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...core.lazy import lazily
from ...core.reading import Source
from ..registry import Format

if TYPE_CHECKING:
    from ...core.slices import Bytes
    from ..field import Field
    from ..file import Beside
    from .read import BumpFile, open_bump
    from .types import BumpConfig, BumpType
    from .write import write_bump

__all__ = ["BumpConfig", "BumpFile", "BumpType", "open_bump", "write_bump"]
__getattr__ = lazily(
    __name__,
    {"write_bump": "write"}
    | dict.fromkeys(("BumpFile", "open_bump"), "read")
    | dict.fromkeys(("BumpConfig", "BumpType"), "types"),
)


def _open(source: Source, beside: Beside) -> BumpFile:
    from .read import open_bump

    return open_bump(source, beside.get("config.json"))


def _fields(data: Bytes, source: Source, beside: Beside) -> Iterator[Field]:
    from .fields import bump_fields

    return bump_fields(data, source, beside.get("config.json"))


def _check(source: Source, beside: Beside) -> None:
    from .fields import check_bump

    check_bump(source, beside.get("config.json"))


FORMAT = Format(
    name="bump",
    title="bump",
    extensions=(".bump",),
    version=3,
    begins="b'BUMP'",
    matches=lambda head: head.startswith(b"BUMP"),
    open=_open,
    fields=_fields,
    check=_check,
)
