"""The three questions of the README (the assignment's Block E)."""

EXERCISES = (
    "saving_ratio",
    "effective_bits",
    "ceiling_ratio",
    "largest_part",
    "what_costs",
    "readme_answers",
)
