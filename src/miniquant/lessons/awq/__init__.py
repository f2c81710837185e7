"""AWQ: larger columns before rounding, and clipped groups."""

EXERCISES = (
    "activation_size",
    "output_error",
    "awq_scales",
    "fold_into_norm",
    "fold_into_value",
    "fold_block",
    "search_clip",
)
