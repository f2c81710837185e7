"""``config.json``: what a bump file's header has no place for, under the names that Hugging Face's models use.

It carries two checksums: that of the weights it belongs to, and its own (of this very text, with zeros where the 64
digits stand), so that a changed digit in it is noticed like one in the weights.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from typing import Any

import numpy as np

from ...core.errors import FormatError, MiniquantError
from ...core.reading import Source, as_bytes, path_of
from ..gguf.read import GGUFFile
from .types import ARCHITECTURES, BumpConfig

NAME = "config.json"
LARGEST = 2**20  # bytes
_OWN = re.compile(rb'"config_sha256": "([0-9a-f]{64})"')
_FIXED = {  # what every file of an architecture says
    "llama": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu"},
    "gpt2": {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new"},
}
_KEYS = {  # key -> field of BumpConfig
    "llama": {
        "num_hidden_layers": "layers",
        "vocab_size": "vocab",
        "hidden_size": "embed",
        "max_position_embeddings": "context",
        "num_attention_heads": "heads",
        "head_dim": "head_dim",
        "num_key_value_heads": "kv_heads",
        "intermediate_size": "intermediate",
        "rms_norm_eps": "epsilon",
        "rope_theta": "rope_theta",
        "tie_word_embeddings": "tied",
        "attention_bias": "attention_bias",
        "mlp_bias": "mlp_bias",
        "bos_token_id": "bos",
        "eos_token_id": "eos",
    },
    "gpt2": {
        "n_layer": "layers",
        "vocab_size": "vocab",
        "n_embd": "embed",
        "n_positions": "context",
        "n_head": "heads",
        "n_inner": "intermediate",
        "layer_norm_epsilon": "epsilon",
        "tie_word_embeddings": "tied",
        "bos_token_id": "bos",
        "eos_token_id": "eos",
    },
}


def config_path(path: str | os.PathLike[str]) -> str:
    """Where the ``config.json`` of a bump file lies: beside it."""
    return os.path.join(os.path.dirname(os.fsdecode(path)), NAME)


def config_text(config: BumpConfig, checksum: bytes, name: str) -> bytes:
    """The text of ``config.json`` for a bump file called ``name`` whose header has this checksum."""
    keys = _KEYS[config.architecture]
    values = {key: getattr(config, field) for key, field in keys.items()}
    own = {"file": name, "weights_sha256": checksum.hex(), "config_sha256": "0" * 64}
    blank = json.dumps({**_FIXED[config.architecture], **values, "bump": own}, indent=2).encode() + b"\n"
    return _OWN.sub(b'"config_sha256": "' + hashlib.sha256(blank).hexdigest().encode() + b'"', blank)


def addressed_path(path: str | os.PathLike[str], checksum: bytes) -> str:
    """Where the config of a bump file lies while both files are being replaced: under a name from its checksum."""
    return os.path.join(os.path.dirname(os.fsdecode(path)), f"config.{checksum.hex()[:16]}.json")


def is_addressed(name: str) -> bool:
    """Whether a file's name is one that ``addressed_path`` gives."""
    return re.fullmatch(r"config\.[0-9a-f]{16}\.json", name) is not None


def read_config(
    source: Source, checksum: bytes | None = None, config: Source | None = None
) -> tuple[BumpConfig, bytes]:
    """The config of a bump file, and the checksum of the weights that it was written with.

    source: the bump file; its ``config.json`` lies beside it, unless ``config`` is that file's path or its bytes.
    With the ``checksum`` of the weights, and a ``config.json`` beside them that belongs to others, the one named after
    that checksum counts, if it is there: the machine stopped while the two files were being replaced.

    Raises ``FormatError`` if it is missing, changed, or says anything that ``to-bump`` would not write.
    """
    path = path_of(source)
    if config is not None:
        return _Reader(config).read()
    if path is None:
        raise ConfigError("bytes have no folder to look into; pass the config.json that belongs to them", field=NAME)
    found, missing = None, None
    try:
        found = _Reader(config_path(path)).read()
    except FormatError as error:
        missing = error
    if checksum is not None and (found is None or found[1] != checksum):
        addressed = addressed_path(path, checksum)
        if os.path.exists(addressed):
            return _Reader(addressed).read()
    if found is None:
        assert missing is not None
        raise missing
    return found


def config_label(source: Source, config: Source | None = None) -> str:
    """What an error message calls the config of a bump file."""
    if config is None:
        path = path_of(source)
        return NAME if path is None else config_path(path)
    return path_of(config) or NAME


def belongs_to(path: str | os.PathLike[str]) -> str | None:
    """The bump file that an existing ``config.json`` was written for; ``None`` if it has another origin."""
    try:
        with open(path, "rb") as file:
            return str(json.load(file)["bump"]["file"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


class ConfigError(FormatError):
    """What is wrong is the ``config.json``, not the bump file."""


class _Reader:
    """A ``config.json``; errors name the key and the byte at which it stands."""

    def __init__(self, source: Source) -> None:
        self.source, self.path, self.text = source, path_of(source), b""

    def read(self) -> tuple[BumpConfig, bytes]:
        size = self._load()
        if size > LARGEST:
            raise self._error(f"it has {size} bytes, and {LARGEST} at most would be believed", NAME)
        self._check_own()
        found = self._parsed()
        architecture = found.get("model_type")
        if not isinstance(architecture, str) or architecture not in _KEYS:
            names = " and ".join(_KEYS)
            raise self._error(f"found {architecture!r:.60}; there are layouts for {names}", "model_type")
        keys, fixed = _KEYS[architecture], _FIXED[architecture]
        for key in {**fixed, **keys, "bump": ""}.keys() ^ found.keys():
            raise self._error("it is missing" if key not in found else "a key that to-bump does not write", key)
        for key, value in fixed.items():
            if found[key] != value:
                raise self._error(f"found {found[key]!r:.60}, expected {value!r}", key)
        fields = {field: self._value(key, field, found[key]) for key, field in keys.items()}
        if architecture == "gpt2":
            if fields["embed"] % fields["heads"]:
                raise self._error(f"{fields['embed']} is no multiple of {fields['heads']} heads", "n_embd")
            head_dim = fields["embed"] // fields["heads"]
            fields |= {"head_dim": head_dim, "kv_heads": fields["heads"], "rope_theta": 0.0}
            fields |= {"attention_bias": True, "mlp_bias": True}
        return BumpConfig(architecture, **fields), self._checksum(found["bump"])

    def _load(self) -> int:
        """Take in the text, if it is not too long; returns its length in bytes."""
        if isinstance(self.source, bytes | bytearray | memoryview):
            data = as_bytes(self.source)
            self.text = bytes(data[:LARGEST])
            return len(data)
        try:
            with open(self.source, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                self.text = file.read(min(size, LARGEST))
        except OSError as error:
            reason = f"{error.strerror}; a bump file needs the config.json that was written with it, in its own folder"
            raise self._error(reason, NAME) from None
        return size

    def _check_own(self) -> None:
        digits = _OWN.findall(self.text)
        if len(digits) != 1:
            what = "a config.json that was written elsewhere" if not digits else "it stands there twice"
            raise self._error(f"expected one, of 64 digits, found {len(digits)}: {what}", "bump.config_sha256")
        blank = _OWN.sub(b'"config_sha256": "' + b"0" * 64 + b'"', self.text)
        if hashlib.sha256(blank).hexdigest().encode() != digits[0]:
            raise self._error("the text is not the one that was written; run to-bump again", "bump.config_sha256")

    def _parsed(self) -> dict[str, Any]:
        def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
            if len(dict(items)) < len(items):
                raise ValueError("a key stands twice")
            return dict(items)

        try:
            found = json.loads(self.text.decode("utf-8"), object_pairs_hook=pairs)
        except (ValueError, RecursionError) as error:
            raise self._error(f"not JSON as to-bump writes it: {error}", NAME) from None
        if not isinstance(found, dict):
            raise self._error("expected an object", NAME)
        return found

    def _value(self, key: str, field: str, value: Any) -> Any:
        if field in ("tied", "attention_bias", "mlp_bias"):
            right, wanted = isinstance(value, bool), "true or false"
        elif field in ("epsilon", "rope_theta"):
            right, wanted = isinstance(value, float) and 0 < value < math.inf, "a number with a point, above 0"
        elif field in ("bos", "eos"):
            right, wanted = value is None or (type(value) is int and 0 <= value < 2**32), "null or a token"
        else:
            right, wanted = type(value) is int and 0 < value < 2**32, "a whole number above 0"
        if not right:
            raise self._error(f"found {value!r:.60}, expected {wanted}", key)
        return value

    def _checksum(self, found: Any) -> bytes:
        if not isinstance(found, dict) or found.keys() != {"file", "weights_sha256", "config_sha256"}:
            raise self._error("expected file, weights_sha256 and config_sha256", "bump")
        digits = found["weights_sha256"]
        if not isinstance(digits, str) or not re.fullmatch("[0-9a-f]{64}", digits):
            raise self._error(f"found {digits!r:.80}, expected 64 digits", "bump.weights_sha256")
        return bytes.fromhex(digits)

    def _error(self, message: str, field: str) -> ConfigError:
        at = self.text.find(b'"' + field.rpartition(".")[2].encode("utf-8", "replace") + b'"')
        where = field if self.path is not None else f"{NAME}: {field}"  # bytes have no name that would say so
        return ConfigError(message, path=self.path, field=where, offset=max(0, at))


# ---- from GGUF -------------------------------------------------------------------------------------------------------

_MUST_BE: dict[str, Any] = {  # keys that may stand there if they say this; a field of BumpConfig, or a value
    "rope.dimension_count": "head_dim",
    "attention.key_length": "head_dim",
    "attention.value_length": "head_dim",
    "vocab_size": "vocab",
    "rope.scaling.type": {"none"},
    "expert_count": {0},
    "expert_used_count": {0},
}


def config_of(file: GGUFFile) -> BumpConfig:
    """The config of the model in a GGUF file.

    Raises ``MiniquantError`` for an architecture without a layout, and for a key that is missing, wrong, or asks for
    something that neither the header nor ``config.json`` can express.
    """
    found = _Keys(file)
    embed, heads = found.count("embedding_length"), found.count("attention.head_count")
    if embed % heads:
        raise found.error(f"embedding_length is {embed}, no multiple of {heads} heads")
    kv_heads = found.count("attention.head_count_kv", heads)
    if heads % kv_heads:
        raise found.error(f"attention.head_count is {heads}, no multiple of head_count_kv, {kv_heads}")
    llama = found.architecture == "llama"
    config = BumpConfig(
        architecture=found.architecture,
        layers=found.count("block_count"),
        vocab=found.vocabulary(),
        embed=embed,
        context=found.count("context_length"),
        heads=heads,
        head_dim=embed // heads,
        kv_heads=kv_heads,
        intermediate=found.count("feed_forward_length"),
        epsilon=found.number("attention.layer_norm_rms_epsilon" if llama else "attention.layer_norm_epsilon"),
        rope_theta=found.number("rope.freq_base", 10000.0) if llama else 0.0,
        tied="output.weight" not in file.tensors,
        attention_bias=not llama or any(".attn_" in name and name.endswith(".bias") for name in file.tensors),
        mlp_bias=not llama or any(".ffn_" in name and name.endswith(".bias") for name in file.tensors),
        bos=found.token("bos"),
        eos=found.token("eos"),
    )
    found.check_rest(config)
    return config


class _Keys:
    """The keys of a file's architecture, each read once; what nobody has read is an error at the end."""

    def __init__(self, file: GGUFFile) -> None:
        self.file = file
        architecture = file.metadata.get("general.architecture")
        if not isinstance(architecture, str) or architecture not in ARCHITECTURES.values():
            names = " and ".join(ARCHITECTURES.values())
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

    def _get(self, name: str, otherwise: Any) -> Any:
        self.read.add(name)
        return self.file.metadata.get(f"{self.architecture}.{name}", otherwise)

    def error(self, message: str) -> MiniquantError:
        return MiniquantError(f"{self.file.label} cannot become a bump file: {message}")
