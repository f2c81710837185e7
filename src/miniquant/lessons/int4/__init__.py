"""INT4 per group, fake quantization, and why the scale is rounded first."""

EXERCISES = (
    "group_reshape",
    "ungroup",
    "bits_per_weight",
    "group_scales",
    "quantize_per_group",
    "dequantize_per_group",
)
