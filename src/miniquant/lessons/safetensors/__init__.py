"""Safetensors by hand: a writer, and a reader that refuses what is malformed."""

EXERCISES = (
    "tensor_entries",
    "safetensors_head",
    "read_safetensors_head",
    "check_layout",
)
