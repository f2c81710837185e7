"""AWQ: larger columns before rounding, and clipped groups."""

EXERCISES = (
    "activation_size",
    "awq_scales",
    "fold_into_norm",
    "fold_block",
    "search_clip",
)
