"""INT8, per tensor and per channel."""

EXERCISES = (
    "absmax_scale",
    "round_scale",
    "quantize_per_tensor",
    "channel_scales",
    "quantize_per_channel",
    "dequantize_per_channel",
)
