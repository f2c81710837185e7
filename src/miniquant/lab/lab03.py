"""The exercises of lab 03: safetensors by hand, a checkpoint without pickle, and what GGML did."""

from __future__ import annotations

from .lab03_checkpoint import FLATTEN_OPTIMIZER
from .lab03_ggml import GGML_HPARAMS
from .lab03_reader import CHECK_LAYOUT, READ_SAFETENSORS_HEAD
from .lab03_writer import SAFETENSORS_HEAD, TENSOR_ENTRIES

EXERCISES = [TENSOR_ENTRIES, SAFETENSORS_HEAD, READ_SAFETENSORS_HEAD, CHECK_LAYOUT, FLATTEN_OPTIMIZER, GGML_HPARAMS]
