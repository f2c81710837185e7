"""Real GGUF v3 (the assignment's stretch goal)."""

EXERCISES = (
    "gguf_header",
    "gguf_string",
    "key_value",
    "tensor_info",
    "aligned_offsets",
    "encode_q8_0",
    "encode_q4_0",
    "decode_q4_0",
)
