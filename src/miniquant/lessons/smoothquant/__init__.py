"""SmoothQuant: eight bits for weights and activations."""

EXERCISES = (
    "quantize_tokens",
    "widest_sum",
    "int_product",
    "smooth_scales",
    "smooth_block",
)
