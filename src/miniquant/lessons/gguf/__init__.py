"""Real GGUF v3: the container (the assignment's stretch goal)."""

EXERCISES = (
    "gguf_header",
    "gguf_string",
    "key_value",
    "read_string",
    "read_key_value",
    "tensor_info",
    "aligned_offsets",
)
