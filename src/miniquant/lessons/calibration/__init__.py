"""AWQ, GPTQ, SmoothQuant (the same bytes, better numbers)."""

EXERCISES = (
    "activation_size",
    "awq_scales",
    "fold_into_norm",
    "fold_block",
    "search_clip",
    "damped_hessian",
    "gptq_column",
    "smooth_scales",
)
