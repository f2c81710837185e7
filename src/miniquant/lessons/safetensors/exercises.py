"""The exercises of lab 03: safetensors by hand, a checkpoint without pickle, and what GGML did."""

from __future__ import annotations

from .checkpoint import FLATTEN_OPTIMIZER
from .ggml import GGML_HPARAMS
from .reader import CHECK_LAYOUT, READ_SAFETENSORS_HEAD
from .writer import SAFETENSORS_HEAD, TENSOR_ENTRIES

EXERCISES = [TENSOR_ENTRIES, SAFETENSORS_HEAD, READ_SAFETENSORS_HEAD, CHECK_LAYOUT, FLATTEN_OPTIMIZER, GGML_HPARAMS]
