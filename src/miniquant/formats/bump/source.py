"""What a GGUF file says about its model, as a bump file's config; whatever that cannot express is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.errors import MiniquantError
from ..gguf.read import GGUFFile
from .types import ARCHITECTURES, FACTORS, BumpConfig, fits_ckernel

_MUST_BE: dict[str, Any] = {  # keys that may stand there if they say this; a field of BumpConfig, or a value
    "rope.dimension_count": "head_dim",
    "attention.key_length": "head_dim",
    "attention.value_length": "head_dim",
    "vocab_size": "vocab",
    "rope.scaling.type": {"none"},
    "expert_count": {0},
    "expert_used_count": {0},
}


def config_of(file: GGUFFile, layout: str = "aligned") -> BumpConfig:
    """The config of the model in a GGUF file, for a bump file in one of ``LAYOUTS``.

    Raises ``MiniquantError`` for an architecture without a layout, and for a key that is missing, wrong, or asks for
    something that neither the header nor ``config.json`` can express.
    """
    found = _Keys(file)
    embed, heads = found.count("embedding_length"), found.count("attention.head_count")
    gpt2 = found.architecture == "gpt2"
    linear = not gpt2 and found.factor() is not None
    if linear and FACTORS in file.tensors:
        raise found.error(f"it has {FACTORS} and the rope scaling 'linear'; one or the other says how angles shrink")
    if embed % heads and (gpt2 or not found.has("attention.key_length")):
        raise found.error(f"embedding_length is {embed}, no multiple of {heads} heads")
    kv_heads = found.count("attention.head_count_kv", heads)
    if heads % kv_heads:
        raise found.error(f"attention.head_count is {heads}, no multiple of head_count_kv, {kv_heads}")
    config = BumpConfig(
        architecture=found.architecture,
        layers=found.count("block_count"),
        vocab=found.vocabulary(),
        embed=embed,
        context=found.count("context_length"),
        heads=heads,
        head_dim=embed // heads if gpt2 else found.count("attention.key_length", embed // heads or 1),
        kv_heads=kv_heads,
        intermediate=found.count("feed_forward_length"),
        epsilon=found.number("attention.layer_norm_epsilon" if gpt2 else "attention.layer_norm_rms_epsilon"),
        rope_theta=0.0 if gpt2 else found.number("rope.freq_base", 10000.0),
        tied="output.weight" not in file.tensors,
        attention_bias=gpt2 or any(".attn_" in name and name.endswith(".bias") for name in file.tensors),
        mlp_bias=gpt2 or any(".ffn_" in name and name.endswith(".bias") for name in file.tensors),
        bos=found.token("bos"),
        eos=found.token("eos"),
        rope_factors=linear or (not gpt2 and FACTORS in file.tensors),
        layout=layout,
    )
    found.check_rest(config)
    if layout == "ckernel" and not fits_ckernel(config):
        raise found.error(
            "the layout of C-Kernel-Engine holds a llama whose head is its embedding, whose heads are together as wide "
            "as the model, and whose positions have no factors; leave --layout out"
        )
    return config


def linear_factor(file: GGUFFile) -> float | None:
    """What every angle of rope is divided by, if the file's rope scaling is "linear"; else ``None``.

    Raises ``MiniquantError`` for a factor that is missing or no number above 0.
    """
    return _Keys(file).factor()


class _Keys:
    """The keys of a file's architecture, each read once; what nobody has read is an error at the end."""

    def __init__(self, file: GGUFFile) -> None:
        self.file = file
        architecture = file.metadata.get("general.architecture")
        if not isinstance(architecture, str) or architecture not in ARCHITECTURES.values():
            names = ", ".join(ARCHITECTURES.values())
            raise self.error(f"its architecture is {architecture!r:.60}; bump has layouts for {names}")
        self.architecture: str = architecture
        self.read: set[str] = set()

    def count(self, name: str, otherwise: int | None = None) -> int:
        value = self._get(name, otherwise)
        if type(value) is not int or not 0 < value < 2**32:
            raise self.error(f"the key {self.architecture}.{name} is {value!r:.60}, expected a whole number above 0")
        return value

    def number(self, name: str, otherwise: float | None = None) -> float:
        value = self._get(name, otherwise)
        if not isinstance(value, float) or not math.isfinite(value) or value <= 0:
            raise self.error(f"the key {self.architecture}.{name} is {value!r:.60}, expected a number above 0")
        return float(str(np.float32(value)))  # 1e-05, not 9.999999747378752e-06

    def factor(self) -> float | None:
        if self.file.metadata.get(f"{self.architecture}.rope.scaling.type") != "linear":
            return None
        self.read.add("rope.scaling.type")
        return self.number("rope.scaling.factor")

    def token(self, which: str) -> int | None:
        value = self.file.metadata.get(f"tokenizer.ggml.{which}_token_id")
        return value if type(value) is int and 0 <= value < 2**32 else None

    def vocabulary(self) -> int:
        info = self.file.tensors.get("token_embd.weight")
        if info is None or len(info.shape) != 2 or not 0 < info.shape[0] < 2**32:
            raise self.error("token_embd.weight is missing, or no matrix; the file holds no whole model")
        return info.shape[0]

    def check_rest(self, config: BumpConfig) -> None:
        for key in self.file.metadata:
            owner, _, name = key.partition(".")
            if owner != self.architecture or name in self.read:
                continue
            value, must = self.file.metadata[key], _MUST_BE.get(name)
            allowed: set[Any] | None = {getattr(config, must)} if isinstance(must, str) else must
            if not allowed or not isinstance(value, int | str) or value not in allowed:
                expected = f"expected {min(allowed)!r}" if allowed else "and nothing in a bump file can say that"
                raise self.error(f"the key {key} is {value!r:.60}, {expected}; the model would run differently")

    def has(self, name: str) -> bool:
        return f"{self.architecture}.{name}" in self.file.metadata

    def _get(self, name: str, otherwise: Any) -> Any:
        self.read.add(name)
        return self.file.metadata.get(f"{self.architecture}.{name}", otherwise)

    def error(self, message: str) -> MiniquantError:
        return MiniquantError(f"{self.file.label} cannot become a bump file: {message}")
