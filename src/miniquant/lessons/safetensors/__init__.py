"""Safetensors by hand, a checkpoint without pickle, and what GGML did."""

EXERCISES = (
    "tensor_entries",
    "safetensors_head",
    "read_safetensors_head",
    "check_layout",
    "flatten_optimizer",
    "ggml_hparams",
)
