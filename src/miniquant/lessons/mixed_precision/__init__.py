"""A type for every matrix: what each one costs alone, and the best choice within a number of bytes."""

EXERCISES = (
    "one_at_a_time",
    "choice_cost",
    "add_matrix",
    "best_within",
    "choose_mix",
)
