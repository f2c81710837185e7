"""The KV cache: its size, llama.cpp's types for it, and a quantizer of keys and values by hand."""

EXERCISES = (
    "cache_bytes",
    "full_context",
    "quantize_along",
    "restore_along",
    "append_key",
    "attend",
)
