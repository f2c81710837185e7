"""Which tensor is stored how: the names of the schemes, what each can hold, and presets for whole models."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.arrays import Array, is_torch, like, to_numpy
from ..core.errors import QuantizationError, SchemeError
from .symmetric import cast_checked, fake_quantize

GROUP_SIZE = 64
SCHEMES = ("f32", "f16", "q8_per_channel", "q4_per_group_64")  # the index is the dtype code of the format

PRESETS: dict[str, dict[str, str]] = {  # role -> scheme; a role that is not named stays f32
    "f32": {},
    "f16": {"weight": "f16", "token embedding": "f16", "position embedding": "f16"},
    "int8": {"weight": "q8_per_channel"},
    "int8-small-embeddings": {
        "weight": "q8_per_channel",
        "token embedding": "q8_per_channel",
        "position embedding": "q8_per_channel",
    },
    "int4": {"weight": "q4_per_group_64"},
    "int4-f16-embeddings": {"weight": "q4_per_group_64", "token embedding": "f16", "position embedding": "f16"},
    "int4-small-embeddings": {
        "weight": "q4_per_group_64",
        "token embedding": "q8_per_channel",
        "position embedding": "f16",
    },
    "int4-everything": {
        "weight": "q4_per_group_64",
        "token embedding": "q4_per_group_64",
        "position embedding": "q4_per_group_64",
    },
}


def role_of(name: str) -> str:
    """What a parameter is for, told from its name: weight, bias, norm, token embedding or position embedding.

    >>> [role_of(n) for n in ("tok_emb.weight", "pos_emb.weight", "layers.0.ln1.bias", "layers.0.mlp.fc1.bias")]
    ['token embedding', 'position embedding', 'norm', 'bias']
    """
    *owners, kind = name.lower().split(".")
    owner = owners[-1] if owners else kind
    if owner.startswith("ln") or "norm" in owner:
        return "norm"
    if owner == "wpe" or ("emb" in owner and "pos" in owner):
        return "position embedding"
    if owner == "wte" or "emb" in owner:
        return "token embedding"
    return "bias" if kind == "bias" else "weight"


def preset(name: str, model: Any) -> dict[str, str]:
    """The schemes of a named preset for every matrix of a model (an ``nn.Module`` or a state dict).

    Raises ``SchemeError`` for a name that is not in ``PRESETS``.

    >>> preset("int8", {"fc.weight": np.zeros((2, 2)), "fc.bias": np.zeros(2)})
    {'fc.weight': 'q8_per_channel'}
    """
    if name not in PRESETS:
        raise SchemeError(f"unknown preset {name!r}{_nearest(name, PRESETS)}; there are {', '.join(PRESETS)}")
    roles = PRESETS[name]
    matrices = [key for key, w in state_dict_of(model).items() if w.ndim == 2]
    return {key: roles[role_of(key)] for key in matrices if role_of(key) in roles}


def state_dict_of(model: Any) -> Mapping[str, Array]:
    """The state dict of a module, or the mapping itself.

    Raises ``SchemeError`` for anything else, for a name that is not a string, and for a value that is not an array.
    """
    state = model.state_dict() if hasattr(model, "state_dict") else model
    if not isinstance(state, Mapping):
        raise SchemeError(f"expected an nn.Module or a state dict, found {type(model).__name__}")
    for name, value in state.items():
        if not isinstance(name, str):
            raise SchemeError(f"the parameter name {name!r} is not a string")
        if not is_torch(value) and not isinstance(value, np.ndarray | np.generic):
            raise SchemeError(f"{name!r} is a {type(value).__name__}; a state dict holds tensors or numpy arrays")
    return state


def resolve(model: Any, schemes: Mapping[str, str]) -> dict[str, str]:
    """A scheme for every tensor of the model, in its order; what ``schemes`` does not name is ``f32``.

    Raises ``SchemeError`` if ``schemes`` names a parameter that the model lacks, a scheme that does not exist, or one
    that cannot hold the tensor; ``QuantizationError`` for tensors that are not floating point, or that f32 would round.
    """
    state = state_dict_of(model)
    if not isinstance(schemes, Mapping):
        raise SchemeError(f"schemes must be a dict, found {schemes!r}; for a preset, pass preset('int8', model)")
    for name in schemes:
        if name not in state:
            raise SchemeError(f"schemes names {name!r}, and the model has no such parameter{_nearest(name, state)}")
    resolved = {}
    for name, w in state.items():
        scheme = schemes.get(name, "f32")
        check_scheme(name, tuple(w.shape), scheme)
        floating = w.is_floating_point() if is_torch(w) else np.issubdtype(w.dtype, np.floating)
        if not floating:
            raise QuantizationError(
                f"{name!r} holds {w.dtype}, which the format has no type for; register the buffer with "
                "persistent=False, or leave it out of the state dict"
            )
        if name not in schemes and w.dtype.itemsize > 4:
            raise QuantizationError(
                f"{name!r} holds {w.dtype}, and f32 would round it; convert it, or name a scheme for it"
            )
        resolved[name] = scheme
    return resolved


def check_scheme(name: str, shape: tuple[int, ...], scheme: str) -> None:
    """Raise ``SchemeError`` unless ``scheme`` exists and can hold a tensor of this shape; say what can."""
    if scheme not in SCHEMES:
        raise SchemeError(
            f"unknown scheme {scheme!r} for {name!r}{_nearest(scheme, SCHEMES)}; there are {', '.join(SCHEMES)}"
        )
    if scheme.startswith("q") and len(shape) != 2:
        raise SchemeError(f"{scheme} stores matrices (out, in), and {name!r} has shape {shape}; store it as f32 or f16")
    if scheme == "q4_per_group_64" and shape[1] % GROUP_SIZE:
        raise SchemeError(
            f"q4_per_group_64 needs rows that are a multiple of {GROUP_SIZE} long, and {name!r} has shape {shape}; "
            "store it as q8_per_channel or f16"
        )


def fake_quantize_state(model: Any, schemes: Mapping[str, str]) -> dict[str, Array]:
    """Every tensor of the model as the file will give it back: name -> float32, arrays or tensors as they came.

    Nothing shares memory with the model. Raises what ``write_gguf_lite`` raises for the same tensors.
    """
    state, fake = state_dict_of(model), {}
    for name, scheme in resolve(model, schemes).items():
        try:
            fake[name] = _fake_quantize(state[name], scheme)
        except QuantizationError as error:
            raise QuantizationError(f"{name!r}: {error}") from None
    return fake


def fake_quantize_model(model: Any, schemes: Mapping[str, str]) -> Any:
    """A copy of an ``nn.Module`` that computes with the quantized weights, in evaluation mode."""
    twin = copy.deepcopy(model)
    twin.load_state_dict(fake_quantize_state(model, schemes))
    return twin.eval()


def _fake_quantize(w: Array, scheme: str) -> Array:
    if scheme == "q8_per_channel":
        return fake_quantize(w, 8, per="channel")
    if scheme == "q4_per_group_64":
        return fake_quantize(w, 4, per="group", group_size=GROUP_SIZE)
    array = to_numpy(w)
    stored = cast_checked(array.reshape(-1), np.float16 if scheme == "f16" else np.float32)
    return like(stored.astype(np.float32).reshape(array.shape), w)


def _nearest(name: object, known: Any) -> str:
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
