"""Quantization-aware training: a gradient through rounding, and ternary weights in a file."""

EXERCISES = (
    "ternary_levels",
    "straight_through",
    "encode_tq2_0",
)
