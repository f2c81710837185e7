"""GPTQ: round one column, move the rest."""

EXERCISES = (
    "second_weight",
    "damped_hessian",
    "best_changes",
    "gptq_column",
    "gptq_matrix",
)
