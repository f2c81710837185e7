"""GPTQ: round one column, move the rest."""

EXERCISES = (
    "damped_hessian",
    "gptq_column",
)
