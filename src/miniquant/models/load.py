"""A model from a file of any format: rebuilt as a MiniGPT, or as its decoded tensors under llama.cpp's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import MiniquantError
from ..core.reading import Source
from ..formats.file import Beside, TensorFile
from ..formats.registry import format_of, open_any

if TYPE_CHECKING:
    from .minigpt import MiniGPT


def load_any(source: Source, beside: Beside | None = None) -> MiniGPT:
    """Rebuild a MiniGPT from a file of a format that holds its config, in evaluation mode.

    Raises ``FormatError`` for a malformed file, ``MiniquantError`` if its tensors do not make up a MiniGPT.
    """
    format = format_of(source)
    if format.name not in _LOADERS:
        raise MiniquantError(f"{format.title} files hold no MiniGPT with its config; {', '.join(_LOADERS)} files do")
    with format.open(source, beside or {}) as file:
        return _LOADERS[format.name](file)


def weights_of(source: Source, beside: Beside | None = None) -> dict[str, np.ndarray]:
    """Every tensor of a file, decoded: name -> float32. A MiniGPT's names are llama.cpp's in every format."""
    with open_any(source, beside) as file:
        decode: Callable[[Any], dict[str, np.ndarray]] = _TENSORS.get(format_of(source).name, _tensors)
        return decode(file)


def _tensors(file: TensorFile[Any]) -> dict[str, np.ndarray]:
    from .to_gguf import gguf_name

    found = {}
    for name in file.tensors:
        try:
            known = gguf_name(name)
        except MiniquantError:
            known = name
        found[known] = file.tensor(name)
    return found


def _from_gguf_lite(file: Any) -> MiniGPT:
    from .pretrained import minigpt_of

    return minigpt_of(file)


def _from_gguf(file: Any) -> MiniGPT:
    from .to_gguf import minigpt_from_gguf

    return minigpt_from_gguf(file)


def _from_bump(file: Any) -> MiniGPT:
    from .from_bump import minigpt_from_bump

    return minigpt_from_bump(file)


def _bump_tensors(file: Any) -> dict[str, np.ndarray]:
    from .from_bump import gguf_tensors

    return gguf_tensors(file)


_LOADERS: Mapping[str, Callable[[Any], MiniGPT]] = {
    "gguf-lite": _from_gguf_lite,
    "gguf": _from_gguf,
    "bump": _from_bump,
}
_TENSORS: Mapping[str, Callable[[Any], dict[str, np.ndarray]]] = {"bump": _bump_tensors}
