"""What a pickle would import, found without running it. A pickle is known here so that it can be refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from ...core.errors import PickleSecurityRisk
from ...core.reading import Source, path_of
from ..registry import Format

if TYPE_CHECKING:
    from ...core.slices import Bytes
    from ..field import Field
    from ..file import Beside


def _refuse(source: Source, beside: Beside) -> NoReturn:
    raise PickleSecurityRisk(
        f"{path_of(source) or 'the bytes'}: this is a pickle, and loading one runs whatever code it holds; take the "
        "same model as safetensors or GGUF (miniquant.formats.pickle.scan says what it would import)"
    )


def _fields(data: Bytes, source: Source, beside: Beside) -> Iterator[Field]:
    from .fields import pickle_fields

    return pickle_fields(data)


def _check(source: Source, beside: Beside) -> None:
    from .fields import check_pickle

    check_pickle(source)


def _is_pickle(head: bytes) -> bool:
    """What torch.save writes, a zip archive or pickles in a row, and any pickle of protocol 2 or later."""
    return head.startswith(b"PK\x03\x04") or (head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"))


FORMAT = Format(
    name="pickle",
    title="pickle",
    extensions=(".pt", ".pth", ".bin", ".ckpt", ".pkl"),
    version=None,
    begins="b'\\x80' or, from torch.save, b'PK'",
    matches=_is_pickle,
    open=_refuse,
    fields=_fields,
    check=_check,
)
