"""Real GGUF v3: ggml's blocks, and llama.cpp (the assignment's stretch goal)."""

EXERCISES = (
    "encode_q8_0",
    "encode_q4_0",
    "decode_q4_0",
    "size_and_bits",
    "choose_types",
)
