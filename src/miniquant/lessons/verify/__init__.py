"""Verify the round trip (the assignment's Block C)."""

EXERCISES = (
    "max_abs_error",
    "tensor_errors",
    "beyond_limit",
    "layer_outputs",
    "layer_errors",
    "name_the_bug",
)
