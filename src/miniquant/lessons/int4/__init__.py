"""INT4 per group, fake quantization, and why memory and file must use the same scale."""

EXERCISES = (
    "group_reshape",
    "ungroup",
    "bits_per_weight",
    "group_scales",
    "quantize_per_group",
    "dequantize_per_group",
)
