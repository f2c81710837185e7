"""``config.json`` of a Hugging Face folder: read key by key, and not one of them left unread.

A key that nobody asked for may change what the model computes, so it is refused by its name, unless it is known to
concern training, or the Python side alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import FormatError
from ...formats.safetensors.read import read_object, shown

HARMLESS = {  # token ids are read with the tokenizer
    "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_flash_attn_2_enabled",
    "_from_model_config", "_name_or_path", "attention_dropout", "attn_implementation", "attn_pdrop", "bos_token_id",
    "chunk_size_feed_forward", "dtype", "embd_pdrop", "eos_token_id", "finetuning_task", "id2label",
    "initializer_range", "is_llama_config", "label2id", "n_ctx", "num_labels", "output_attentions",
    "output_hidden_states", "output_past", "pad_token_id", "prefix", "pretraining_tp", "problem_type",
    "reorder_and_upcast_attn", "resid_pdrop", "return_dict", "sep_token_id", "summary_activation",
    "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj", "task_specific_params",
    "torch_dtype", "torchscript", "transformers.js_config", "transformers_version", "unk_token_id", "unsloth_fixed",
    "unsloth_version", "use_bfloat16", "use_cache", "use_return_dict",
}  # fmt: skip


class Row(NamedTuple):
    """What happens to a tensor: its names in both files ("{}" stands for the layer), and its shape in the checkpoint.

    ``transposed`` is for weights stored (in, out); ``heads`` for those whose rows must be put in rope's order.
    """

    theirs: str
    ours: str
    shape: tuple[int, ...]
    transposed: bool = False
    heads: int = 0


class Recipe(NamedTuple):
    """An architecture of one size: its keys, its tensors, and what may be left out.

    ``skipped`` is a regular expression of the buffers that a checkpoint may hold and a GGUF file does not; ``prefix``
    may stand before every name; ``added()`` gives the tensors that only the GGUF file has.
    """

    metadata: dict[str, Any]
    whole: list[Row]
    layer: list[Row]
    layers: int
    vocabulary: int
    tied: bool
    skipped: str
    prefix: str = ""
    added: Callable[[], dict[str, np.ndarray]] = dict


class Config:
    """The values of a ``config.json``; each method reads one of them, or raises ``FormatError`` with its name."""

    def __init__(self, path: Path, values: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self.values = dict(read_object(path) if values is None else values)
        self._read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        """A value as it is, the default where it is missing or null."""
        self._read.add(key)
        value = self.values.get(key)
        return default if value is None else value

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number above 0."""
        value = self.get(key, default)
        if type(value) is not int or not 0 < value < 2**31:
            raise self.error(key, f"{_found(value)}, expected a whole number above 0 and below 2**31")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A number above 0."""
        value = self.get(key, default)
        if type(value) not in (int, float) or not 0 < value < 1e38 or not math.isfinite(value):
            raise self.error(key, f"{_found(value)}, expected a number above 0")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"found {value!r:.40}, expected true or false")
        return value

    def one_of(self, key: str, known: tuple[Any, ...], default: Any = None) -> Any:
        """One of the values that llama.cpp computes in the same way."""
        value = self.get(key, default)
        if not any(type(value) is type(good) and value == good for good in known):
            wanted = " and ".join(map(repr, known))
            raise self.error(key, f"found {value!r:.80}; this converter knows {wanted}, the rest would come out wrong")
        return value

    def check_all_read(self) -> None:
        """Raises ``FormatError`` for a key that was not read, is not harmless, and says something."""
        for key, value in self.values.items():
            silent = value is None or value is False or value == [] or value == {}  # 0 is a number, and says something
            if key not in self._read and key not in HARMLESS and not silent:
                raise self.error(
                    key,
                    f"found {value!r:.80}, and this converter does not know the key; "
                    "if the model computes the same without it, take it out of config.json",
                )

    def error(self, key: str, message: str) -> FormatError:
        """The error that names the key."""
        return FormatError(message, path=self.path, field=shown(key))


def _found(value: Any) -> str:
    return "it is missing" if value is None else f"found {value!r:.40}"


def check_plain(config: Config) -> None:
    """Raises ``FormatError`` for what no architecture here knows: an encoder, quantized weights, code of its own."""
    config.one_of("is_encoder_decoder", (False,), False)
    if config.get("quantization_config") is not None:
        method = config.get("quantization_config")
        name = method.get("quant_method") if isinstance(method, Mapping) else method
        raise config.error(
            "quantization_config", f"the weights are quantized already ({name!r:.40}); take the original"
        )
    if config.get("auto_map") is not None:
        raise config.error("auto_map", "the folder brings Python code of its own, which nobody can convert")
