"""The products that llama.cpp computes: activations in blocks of 8-bit integers, with their sums, times blocks."""

EXERCISES = (
    "product_q4_0",
    "encode_q8_1",
    "product_q4_1",
    "q8_k_parts",
    "product_q4_k",
)
