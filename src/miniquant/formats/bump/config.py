"""``config.json``: what a bump file's header has no place for, under the names that Hugging Face's models use.

It carries three checksums: that of the weights it belongs to, that of their ``tokenizer.json``, and its own (of this
very text, with zeros where the 64 digits stand), so that a changed digit in it is noticed like one in the weights. Only
the ``config.json`` that C-Kernel-Engine's converter writes has none; it is known by its keys.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from typing import Any, NamedTuple

from ...core.errors import FormatError
from ...core.reading import Source, as_bytes, path_of
from ...core.slices import Slices
from .types import LAYOUTS, BumpConfig, fits_ckernel

NAME = "config.json"
ADDRESSED = re.compile(r"(config|tokenizer)\.([0-9a-f]{16})\.json")
LARGEST = 2**20  # bytes
_OWN = re.compile(rb'"config_sha256": "([0-9a-f]{64})"')
_FIXED = {  # what every file of an architecture says
    "llama": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu"},
    "gpt2": {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new"},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu"},
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
        "rope_factors": "rope_factors",
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
_KEYS["qwen2"] = _KEYS["llama"]
_CKERNEL = (  # the keys that C-Kernel-Engine's converter writes, all of ours too
    *("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"),
    *("vocab_size", "max_position_embeddings", "rms_norm_eps", "rope_theta"),
)


class Beside(NamedTuple):
    """What a ``config.json`` says: the model, and the SHA-256 of its weights and its tokenizer, if it has them."""

    config: BumpConfig
    checksum: bytes | None
    tokenizer: bytes | None


def config_path(path: str | os.PathLike[str]) -> str:
    """Where the ``config.json`` of a bump file lies: beside it."""
    return os.path.join(os.path.dirname(os.fsdecode(path)), NAME)


def config_text(config: BumpConfig, checksum: bytes, name: str, tokenizer: bytes | None = None) -> bytes:
    """The text of ``config.json`` for a bump file called ``name`` whose header has this checksum.

    tokenizer: the SHA-256 of the ``tokenizer.json`` beside it, if there is one
    """
    keys = _KEYS[config.architecture]
    values = {key: getattr(config, field) for key, field in keys.items()}
    own: dict[str, str | None] = {"file": name, "layout": config.layout}
    own |= {"weights_sha256": checksum.hex(), "config_sha256": "0" * 64}
    own["tokenizer_sha256"] = None if tokenizer is None else tokenizer.hex()
    blank = json.dumps({**_FIXED[config.architecture], **values, "bump": own}, indent=2).encode() + b"\n"
    return _OWN.sub(b'"config_sha256": "' + hashlib.sha256(blank).hexdigest().encode() + b'"', blank)


def addressed_path(path: str | os.PathLike[str], checksum: bytes, name: str = NAME) -> str:
    """Where a file beside a bump file lies while all are being replaced: under a name with this checksum in it."""
    stem, dot, suffix = name.rpartition(".")
    return os.path.join(os.path.dirname(os.fsdecode(path)), f"{stem}.{checksum.hex()[:16]}{dot}{suffix}")


def is_addressed(path: str) -> bool:
    """Whether a writer of bump files has put this file there under a name that ``addressed_path`` gives.

    Raises ``OSError`` if it cannot be read.
    """
    found = ADDRESSED.fullmatch(os.path.basename(path))
    if found is None:
        return False
    if found[1] == "config":
        return belongs_to(path) is not None
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest().startswith(found[2])


def read_config(source: Source, checksum: bytes | None = None, config: Source | None = None) -> Beside:
    """What the ``config.json`` of a bump file says.

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
    if checksum is not None and (found is None or found.checksum not in (checksum, None)):
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

    def read(self) -> Beside:
        size = self._load()
        if size > LARGEST:
            raise self._error(f"it has {size} bytes, and {LARGEST} at most would be believed", NAME)
        theirs = {"architectures", "model_type", *_CKERNEL}
        if not _OWN.search(self.text) and (found := self._parsed()).keys() == theirs:
            return Beside(self._of_ckernel(found), None, None)
        self._check_own()
        found = self._parsed()
        architecture = found.get("model_type")
        if not isinstance(architecture, str) or architecture not in _KEYS:
            names = ", ".join(_KEYS)
            raise self._error(f"found {architecture!r:.60}; there are layouts for {names}", "model_type")
        keys, fixed = _KEYS[architecture], _FIXED[architecture]
        for key in {**fixed, **keys, "bump": ""}.keys() ^ found.keys():
            raise self._error("it is missing" if key not in found else "a key that to-bump does not write", key)
        self._check_fixed(found, fixed)
        fields = {field: self._value(key, field, found[key]) for key, field in keys.items()}
        if architecture == "gpt2":
            if fields["embed"] % fields["heads"]:
                raise self._error(f"{fields['embed']} is no multiple of {fields['heads']} heads", "n_embd")
            head_dim = fields["embed"] // fields["heads"]
            fields |= {"head_dim": head_dim, "kv_heads": fields["heads"], "rope_theta": 0.0}
            fields |= {"attention_bias": True, "mlp_bias": True}
        own = self._own(found["bump"])
        config = BumpConfig(architecture, **fields, layout=own["layout"])
        if own["layout"] == "ckernel" and not fits_ckernel(config):
            raise self._error(f"found 'ckernel', which has no place for such a {architecture}", "bump.layout")
        digest = self._digits(own, "weights_sha256")
        assert digest is not None
        return Beside(config, digest, self._digits(own, "tokenizer_sha256"))

    def _of_ckernel(self, found: dict[str, Any]) -> BumpConfig:
        """What C-Kernel-Engine's converter writes: the layout has no head, and heads have one width."""
        self._check_fixed(found, {key: _FIXED["llama"][key] for key in ("architectures", "model_type")})
        keys = _KEYS["llama"]
        fields = {keys[key]: self._value(key, keys[key], found[key]) for key in _CKERNEL}
        if fields["embed"] % fields["heads"]:
            raise self._error(f"{fields['embed']} is no multiple of {fields['heads']} heads", "hidden_size")
        fields |= {"head_dim": fields["embed"] // fields["heads"], "tied": True}
        return BumpConfig("llama", **fields, layout="ckernel")

    def _check_fixed(self, found: dict[str, Any], fixed: dict[str, Any]) -> None:
        for key, value in fixed.items():
            if found[key] != value:
                raise self._error(f"found {found[key]!r:.60}, expected {value!r}", key)

    def _load(self) -> int:
        """Take in the text, if it is not too long; returns its length in bytes."""
        if isinstance(self.source, bytes | bytearray | memoryview | Slices):
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
        if field in ("tied", "attention_bias", "mlp_bias", "rope_factors"):
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

    def _own(self, found: Any) -> dict[str, Any]:
        """The part that ties the files together."""
        names = ("file", "layout", "weights_sha256", "config_sha256", "tokenizer_sha256")
        if not isinstance(found, dict) or found.keys() != set(names):
            raise self._error(f"expected {', '.join(names)}; run to-bump again", "bump")
        if found["layout"] not in LAYOUTS:
            raise self._error(f"found {found['layout']!r:.60}; there are {', '.join(LAYOUTS)}", "bump.layout")
        return found

    def _digits(self, found: dict[str, Any], key: str) -> bytes | None:
        digits = found[key]
        if digits is None and key == "tokenizer_sha256":
            return None
        if not isinstance(digits, str) or not re.fullmatch("[0-9a-f]{64}", digits):
            raise self._error(f"found {digits!r:.80}, expected 64 digits", f"bump.{key}")
        return bytes.fromhex(digits)

    def _error(self, message: str, field: str) -> ConfigError:
        at = self.text.find(b'"' + field.rpartition(".")[2].encode("utf-8", "replace") + b'"')
        where = field if self.path is not None else f"{NAME}: {field}"  # bytes have no name that would say so
        return ConfigError(message, path=self.path, field=where, offset=max(0, at))
