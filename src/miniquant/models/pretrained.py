"""The MiniGPT that comes with the package, and any MiniGPT from a GGUF-lite file."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from importlib import resources
from typing import Any

import torch
from safetensors import safe_open

from ..core.assets import asset
from ..core.errors import MiniquantError
from ..formats.gguf_lite.read import GGUFLite, open_gguf_lite
from .minigpt import MiniGPT, MiniGPTConfig, parameter_shapes, with_weights


def load_pretrained() -> MiniGPT:
    """The trained MiniGPT (``assets/minigpt.safetensors``; ``assets/MODEL_CARD.md`` says how it was made).

    Raises ``ModelMissing`` if the trained models are not installed.
    """
    with resources.as_file(asset("minigpt.safetensors")) as path, safe_open(path, framework="pt") as file:
        config = MiniGPTConfig(**json.loads(file.metadata()["config"]))
        return with_weights(config, {name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118 not a dict


def how_it_was_made() -> dict[str, object]:
    """The recipe, versions and text hash that training wrote into the weights' own file."""
    with resources.as_file(asset("minigpt.safetensors")) as path, safe_open(path, framework="pt") as file:
        made: dict[str, object] = json.loads(file.metadata()["made"])
    return made


def config_from_metadata(metadata: Mapping[str, str]) -> MiniGPTConfig:
    """The model's config, rebuilt from a file's metadata.

    Raises ``MiniquantError`` if the file describes another architecture, or a field is missing or not a number.

    >>> config_from_metadata({"architecture": "Llama"})
    Traceback (most recent call last):
    ...
    miniquant.core.errors.MiniquantError: the file's architecture is 'Llama'; this loads MiniGPT
    """
    if metadata.get("architecture") != "MiniGPT":
        raise MiniquantError(f"the file's architecture is {metadata.get('architecture')!r}; this loads MiniGPT")
    values: dict[str, Any] = {}
    for field in dataclasses.fields(MiniGPTConfig):
        key = f"config.{field.name}"
        if key not in metadata:
            raise MiniquantError(f"the metadata lacks {key}; the file was not written from a MiniGPT")
        kind = float if field.name == "layer_norm_epsilon" else int
        try:
            values[field.name] = kind(metadata[key])
        except ValueError:
            raise MiniquantError(f"the metadata says {key}={metadata[key][:60]!r}; expected a number") from None
        if not 0 < values[field.name] < 2**32:
            raise MiniquantError(
                f"the metadata says {key}={metadata[key][:60]}; expected a number above 0 and below 2**32"
            )
    try:
        return MiniGPTConfig(**values)
    except ValueError as error:
        raise MiniquantError(f"the metadata describes no MiniGPT: {error}") from None


def load_gguf_lite(path: str | os.PathLike[str]) -> MiniGPT:
    """Rebuild a MiniGPT from a GGUF-lite file alone, in evaluation mode.

    Raises ``FormatError`` for a malformed file, ``MiniquantError`` if its tensors do not make up a MiniGPT.
    """
    with open_gguf_lite(path) as file:
        return minigpt_of(file)


def minigpt_of(file: GGUFLite) -> MiniGPT:
    """Rebuild a MiniGPT from an open GGUF-lite file, in evaluation mode. Raises what ``load_gguf_lite`` raises."""
    config = config_from_metadata(file.metadata)
    shapes = {name: info.shape for name, info in file.tensors.items()}
    if config.n_layers > len(shapes):  # before anything of that size is built
        raise MiniquantError(f"{file.label}: {len(shapes)} tensors cannot make up {config.n_layers} layers")
    expected = parameter_shapes(config)
    if shapes != expected:
        wrong = sorted(shapes.items() ^ expected.items())[0][0]
        raise MiniquantError(
            f"{file.label}: tensor {wrong!r} has shape {shapes.get(wrong, 'missing')}, "
            f"a MiniGPT of this config has {expected.get(wrong, 'no such tensor')}"
        )
    return with_weights(config, {name: torch.from_numpy(file.tensor(name)) for name in file.tensors})
